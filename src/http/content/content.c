/* SPDX-License-Identifier: Apache-2.0 */
/* content.c - what uploads and downloads share: how many at once, whether the store can, and
 * what a signed URL grants. */
#include "http/content/content.h"

#include "base/text/json.h"
#include "http/content/signed_url.h"
#include "http/server/server.h"

int rp_content_enter(const struct rp_request *q, struct rp_shares *open, int64_t tenant_id, struct rp_error *err)
{
    int64_t most = rp_request_config(q)->http_connections_max / 4;
    if (most > RP_CONTENT_MOST) most = RP_CONTENT_MOST;
    if (most < 1) most = 1;
    if (rp_shares_take(open, most, tenant_id, 1)) return 0;
    rp_error_set(err, RP_EBUSY, "too many of the tenant's files, or of all, are being transferred already");
    return rp_error_hint(err, "try again in a moment");
}

int rp_content_open(const struct rp_store *store, struct rp_error *err)
{
    if (store == NULL) return rp_error_set(err, RP_EUNAVAILABLE, "the file's store is not configured any more");
    int r = rp_store_refuse_closed(store, err);
    if (r < 0 || rp_backend_has_parts(store->backend)) return r;
    rp_error_set(err, RP_EUNAVAILABLE, "store '%s' carries no bytes through the daemon", store->config->name);
    return rp_error_hint(err, "files whose bytes go through the daemon need a store that does");
}

/* ---- signed URLs ---- */

/* A file that is not there is held against the signature all the same: it takes the time and
 * gets the answer of a wrong one. */
static bool signature_fits(struct rp_request *q, const char *method, const struct rp_file *file)
{
    const char *const keys[] = { rp_server_options_of(q->server)->url_key };
    const char *store = rp_request_store_name(q, file->store_id);
    struct rp_grant grant =
        rp_grant_of(method, file, store != NULL ? store : "", rp_json_get_int(q->query, "expires", 0));
    return rp_grant_verify(&grant, keys, keys[0] != NULL ? 1 : 0, rp_json_get_text(q->query, "signature", ""));
}

static int check_url(struct rp_request *q, const char *method, int64_t id, struct rp_file *file, struct rp_error *err)
{
    int r = rp_file_get(rp_request_catalog(q)->db, id, &q->arena, file, err);
    if (r < 0 && r != RP_ENOTFOUND) return r;
    if (r == RP_ENOTFOUND) *file = (struct rp_file){ .id = id, .key = "", .content_type = "" };
    if (!signature_fits(q, method, file) || r == RP_ENOTFOUND) {
        rp_error_set(err, RP_EFORBIDDEN, "the signature is not one for this URL");
        return rp_error_hint(err, "use the URL as it was given, with its method");
    }
    if (rp_json_get_int(q->query, "expires", 0) > rp_request_now_ms(q)) return 0;
    rp_error_set(err, RP_EEXPIRED, "the URL has ended");
    return rp_error_hint(err, "ask for a new one");
}

bool rp_content_granted(struct rp_request *q, const char *method, struct rp_file *file, struct rp_store **store)
{
    struct rp_error err = { 0 };
    int64_t id;
    if (!rp_request_id(q, 0, RP_ID_FILE, &id)) return false;
    if (check_url(q, method, id, file, &err) < 0) {
        rp_reply_error(q, &err);
        return false;
    }
    *store = rp_request_store_of(q, file->store_id);
    return true;
}
