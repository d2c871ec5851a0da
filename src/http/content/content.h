/* SPDX-License-Identifier: Apache-2.0 */
/* content.h - the bytes of files over HTTP, in and out; for the files that carry them only.
 *
 * O1  Memory does not grow with a file: bytes go from the connection to the store, or the other
 *     way, a part at a time.
 * O2  What is taken is exactly what was promised (size, type, checksum), or nothing is stored. A
 *     key is written once.
 * O3  Only a live file is given out, and by a signed URL one that waits for its processor, which
 *     alone is given such a URL. Without a right to it a file is answered like one that does not
 *     exist.
 * O4  What a store gives out and takes by URLs of its own (target.h) does not pass through the
 *     daemon: a download is a redirect, an upload is refused, and says where it belongs.
 * O5  Uploads, and downloads, are at most a quarter of the connections each, and never more than
 *     RP_CONTENT_MOST; beyond, and beyond a tenant's share of them (shares.h): 503.
 * O6  An upload brings at least RP_CONTENT_SLOWEST bytes a second, looked at once in each
 *     http.timeout; else 408. One that brings nothing in that time is closed by the server. */
#ifndef RP_HTTP_CONTENT_CONTENT_H
#define RP_HTTP_CONTENT_CONTENT_H

#include "catalog/file/file.h"
#include "http/server/request.h"
#include "http/server/shares.h"

#define RP_CONTENT_MOST    1024
#define RP_CONTENT_SLOWEST 1024

/* The file and the store that a signed URL of this method speaks of; false: the request has been
 * answered. */
bool rp_content_granted(struct rp_request *q, const char *method, struct rp_file *file, struct rp_store **store);
/* The store's parts can be used; else RP_EUNAVAILABLE, or why it is closed. */
int rp_content_open(const struct rp_store *store, struct rp_error *err);

/* O5: counts one more upload or download of this tenant, RP_EBUSY if there are too many. What was
 * counted is given back: rp_shares_give. */
int rp_content_enter(const struct rp_request *q, struct rp_shares *open, int64_t tenant_id, struct rp_error *err);

/* PUT /v1/uploads/{id} */
void rp_upload_begin(struct rp_request *q);

#endif
