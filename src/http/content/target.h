/* SPDX-License-Identifier: Apache-2.0 */
/* target.h - where a file's bytes go to and come from: the store itself, if it gives out URLs of
 * its own, else the daemon (signed_url.h). No I/O.
 *
 * A1  A URL of the store is for one key and one method, until its end. For an upload it binds the
 *     size, the type, and that nothing stands under the key, as far as the store can bind them; the
 *     headers that go with it must be sent as they are.
 * A2  A download's URL lasts RP_CONTENT_URL_MS: long enough to follow a redirect, too short to
 *     be passed around. */
#ifndef RP_HTTP_CONTENT_TARGET_H
#define RP_HTTP_CONTENT_TARGET_H

#include "core/file/file.h"
#include "http/content/signed_url.h"
#include "http/server/request.h"

#define RP_CONTENT_URL_MS (5 * RP_MINUTE_MS)

/* Whether bytes of this store go directly between the client and the store. */
bool rp_target_is_direct(const struct rp_store *store);

/* Where the bytes that the grant (of PUT) speaks of are to be sent. */
int rp_target_upload(struct rp_request *q, const struct rp_grant *grant, const struct rp_store *store,
                     struct rp_presigned *out, struct rp_error *err);
/* Whether an upload like this one could be signed, before anything is reserved for it: its key
 * is not known yet. RP_EBUSY until this process knows what the store can bind (A1): a URL that
 * binds less would let a second PUT change a file that lives. */
int rp_target_may_upload(struct rp_request *q, const struct rp_init *init, struct rp_error *err);
/* {"method":"PUT","url","headers":{...},"expires_at"}, for problems; NULL: no memory. */
json_t *rp_target_json(const struct rp_presigned *target, int64_t ends_at_ms);

/* Where the content of a live file is to be fetched, of a direct store; `method` as in
 * rp_presign. */
int rp_target_content(struct rp_request *q, const char *method, const struct rp_file *file,
                      const struct rp_store *store, const char **url, struct rp_error *err);

#endif
