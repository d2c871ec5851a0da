/* SPDX-License-Identifier: Apache-2.0 */
/* owned.h - what belongs to a tenant, files and transactions, as requests come to it.
 *
 * O1  A tenant's token acts on its own alone: whatever is another's is "no such" (TENANT). An
 *     admin's acts in the name of the tenant whose it is, which has to be read first.
 * O2  Whoever says false has answered, or has handed the request on to where it may read. */
#ifndef RP_HTTP_API_OWNED_H
#define RP_HTTP_API_OWNED_H

#include "base/id.h"
#include "http/api/shapes.h"

/* What is owned, in words and as an id. */
struct rp_owned {
    const char *word; /* "file" */
    enum rp_id_kind kind;
    /* Reads the tenant; false: answered. */
    bool (*load)(struct rp_request *q, int64_t id, int64_t *tenant_id);
};

/* After a read that came to `r`: may the caller know of it? */
bool rp_owned_seen(struct rp_request *q, const struct rp_owned *owned, int64_t id, int r, int64_t tenant_id,
                   const struct rp_error *err);
/* In whose name it is changed. */
bool rp_owned_by(struct rp_request *q, const struct rp_owned *owned, int64_t id, int64_t *tenant_id);

/* What every command over files needs of the server. */
struct rp_command_parts {
    const struct rp_upload_rules *rules;
    struct rp_store *const *stores;
    size_t n_stores;
};
/* A command of `size` bytes that begins with a struct rp_command, the rest of it zero; in the
 * request's arena. NULL: answered. */
void *rp_owned_command(struct rp_request *q, size_t size, const struct rp_verb *verb, int64_t tenant_id,
                       struct rp_command_parts *parts);

#endif
