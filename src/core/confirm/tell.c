/* SPDX-License-Identifier: Apache-2.0 */
/* tell.c - confirmations in audit rows, log lines and answers. */
#include "base/id.h"
#include "base/text/json.h"
#include "catalog/audit/audit.h"
#include "core/confirm/inner.h"
#include "core/state.h"

static const char *const states[RP_CONFIRM_STATES] = {
    [RP_CONFIRM_PENDING] = "pending", [RP_CONFIRM_ASKED] = "asked",     [RP_CONFIRM_WAITING] = "waiting",
    [RP_CONFIRM_YES] = "yes",         [RP_CONFIRM_REFUSED] = "refused", [RP_CONFIRM_FAILED] = "failed",
};

json_t *rp_confirm_json(const struct rp_mark *mark, const char *store, const struct rp_confirmation *c)
{
    char id[RP_ID_TEXT];
    json_t *o = rp_mark_json(mark, store);
    rp_json_set(o, "confirmation", rp_json_text(c->name));
    rp_json_set(o, "idempotency_key", json_string(rp_id_format(RP_ID_CONFIRMATION, c->id, id)));
    if (c->note != NULL) rp_json_set(o, "note", rp_json_text(c->note));
    return o;
}

int rp_confirm_audit(struct rp_tx *tx, const char *event, const char *actor, const struct rp_mark *mark,
                     const char *store, const struct rp_confirmation *c, struct rp_error *err)
{
    struct rp_audit_entry entry = { .event = event,
                                    .actor = actor,
                                    .mark_id = mark->id,
                                    .tenant_id = mark->tenant_id,
                                    .details = rp_confirm_json(mark, store, c) };
    return rp_tx_audit(tx, &entry, err);
}

/* ---- all that is known of a mark's confirmations ---- */

static void set_time(json_t *o, const char *name, int64_t at_ms)
{
    if (at_ms != 0) rp_json_set(o, name, rp_json_time(at_ms));
}

static json_t *line(const struct rp_confirmation *c)
{
    char id[RP_ID_TEXT];
    json_t *o =
        rp_json_object("id", json_string(rp_id_format(RP_ID_CONFIRMATION, c->id, id)), "name", rp_json_text(c->name),
                       "state", json_string(states[c->state]), "attempts", json_integer(c->attempts), NULL);
    set_time(o, "asked_at", c->asked_at_ms);
    set_time(o, "until", c->until_at_ms);
    set_time(o, "answered_at", c->answered_at_ms);
    if (c->note != NULL) rp_json_set(o, "note", rp_json_text(c->note));
    rp_json_set(o, "tries", json_array());
    return o;
}

static int add_try(void *ctx, const struct rp_attempt *a, struct rp_error *err)
{
    json_t *tries = json_object_get(json_array_get(ctx, (size_t)a->ordinal), "tries");
    json_t *o = rp_json_object("at", rp_json_time(a->at_ms), "status", json_integer((json_int_t)a->status), NULL);
    (void)err;
    if (a->body[0] != 0) rp_json_set(o, "body", rp_json_text(a->body));
    if (a->error[0] != 0) rp_json_set(o, "error", rp_json_text(a->error));
    rp_json_append(tries, o);
    return 0;
}

int rp_confirmations_json(struct rp_db *db, int64_t mark_id, struct rp_arena *arena, json_t **out, struct rp_error *err)
{
    struct rp_confirmations all;
    json_t *list = json_array();
    int r = rp_confirmations_of(db, &mark_id, 1, arena, &all, err);
    for (size_t i = 0; i < all.n && r == 0; i++)
        rp_json_append(list, line(&all.at[i]));
    if (r == 0 && all.n > 0) r = rp_attempts_each(db, mark_id, add_try, list, err);
    if (r < 0) {
        json_decref(list);
        return r;
    }
    *out = list;
    return 0;
}
