/* SPDX-License-Identifier: Apache-2.0 */
#include "http/api/owned.h"

bool rp_owned_seen(struct rp_request *q, const struct rp_owned *owned, int64_t id, int r, int64_t tenant_id,
                   const struct rp_error *err)
{
    if (r == RP_ENOTFOUND || (r == 0 && q->who.tenant_id != 0 && q->who.tenant_id != tenant_id))
        rp_reply_not_found(q, owned->word, owned->kind, id);
    else if (r < 0)
        rp_reply_error(q, err);
    else
        return true;
    return false;
}

bool rp_owned_by(struct rp_request *q, const struct rp_owned *owned, int64_t id, int64_t *tenant_id)
{
    *tenant_id = q->who.tenant_id;
    if (*tenant_id != 0) return true;
    if (rp_request_may_block(q)) return owned->load(q, id, tenant_id);
    rp_request_later(q);
    return false;
}

void *rp_owned_command(struct rp_request *q, size_t size, const struct rp_verb *verb, int64_t tenant_id,
                       struct rp_command_parts *parts)
{
    struct rp_command *command = rp_command_new(q, size, verb);
    if (command == NULL) return NULL;
    command->tenant_id = tenant_id;
    parts->rules = rp_request_rules(q);
    parts->stores = rp_request_stores(q, &parts->n_stores);
    if (parts->rules != NULL && parts->stores != NULL) return command;
    rp_reply_no_memory(q);
    return NULL;
}
