/* SPDX-License-Identifier: Apache-2.0 */
/* content.h - the bytes of files over HTTP, in and out; for the files that carry them only.
 *
 * O1  Memory does not grow with a file: bytes go from the connection to the store, or the other
 *     way, a part at a time.
 * O2  What is taken is exactly what was promised (size, type, checksum), or nothing is stored. A
 *     key is written once.
 * O3  Only a live file is given out. Without a right to it a file is answered like one that does
 *     not exist.
 * O4  What a store gives out and takes by URLs of its own (target.h) does not pass through the
 *     daemon: a download is a redirect, an upload is refused, and says where it belongs.
 * O5  Uploads, and downloads, are at most a quarter of the connections each, and never more than
 *     RP_CONTENT_MOST; beyond: 503. */
#ifndef RP_HTTP_CONTENT_CONTENT_H
#define RP_HTTP_CONTENT_CONTENT_H

#include "catalog/file/file.h"
#include "http/server/request.h"

#include <stdatomic.h>

#define RP_CONTENT_MOST 1024

/* The file and the store that a signed URL of this method speaks of; false: the request has been
 * answered. */
bool rp_content_granted(struct rp_request *q, const char *method, struct rp_file *file, struct rp_store **store);
/* The store's parts can be used; else RP_EUNAVAILABLE, or why it is closed. */
int rp_content_open(const struct rp_store *store, struct rp_error *err);

/* O5: counts one more upload or download, RP_EBUSY if there are too many; and one less. */
int rp_content_enter(const struct rp_request *q, _Atomic int64_t *open, struct rp_error *err);
void rp_content_leave(_Atomic int64_t *open);

/* PUT /v1/uploads/{id} */
void rp_upload_begin(struct rp_request *q);

#endif
