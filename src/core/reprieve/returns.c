/* SPDX-License-Identifier: Apache-2.0 */
/* returns.c - an object came back from quarantine: its copy's mark ends, and the copy gets
 * another. */
#include "catalog/audit/audit.h"
#include "core/due.h"
#include "core/reprieve/inner.h"
#include "core/state.h"
#include "core/subject/subject.h"

static int audit_return(struct rp_tx *tx, const struct rp_reprieve_subject *s, struct rp_error *err)
{
    struct rp_audit_entry entry = { .event = "object.returned",
                                    .actor = s->command->command.actor,
                                    .mark_id = s->item->mark.id,
                                    .tenant_id = s->item->mark.tenant_id,
                                    .details = rp_mark_json(&s->item->mark, rp_reprieve_store_name(s->item)) };
    return rp_tx_audit(tx, &entry, err);
}

/* The copy in quarantine has done its work, and gets a mark of its own. It stays for a day: a
 * delete that was sent before the object was moved may still arrive, and where a store cannot tell
 * identical bytes apart it would take what was returned; then it comes back once more
 * (core/purge/returns.c). It is of no file: that one lives again, the copy is nobody's. */
static int mark_leftover(struct rp_tx *tx, const struct rp_reprieve_subject *s, struct rp_error *err)
{
    const struct rp_mark *copy = &s->item->copy.mark;
    struct rp_state_by by = { .store = rp_reprieve_store_name(s->item), .told = true };
    struct rp_mark leftover = { .store_id = copy->store_id,
                                .key = copy->key,
                                .original = s->item->mark.key,
                                .in_place = copy->in_place,
                                .due_at_ms = rp_due(&(struct rp_due){ .by = RP_DUE_RETURNED }, tx->late_ms),
                                .tenant_id = copy->tenant_id,
                                .etag = copy->etag,
                                .version = copy->version,
                                .size_bytes = copy->size_bytes,
                                .modified_ms = copy->modified_ms,
                                .reason = RP_REASON_RETURNED,
                                .actor = s->command->command.actor };
    return rp_state_birth(tx, &by, &leftover, 1, err);
}

int rp_reprieve_is_returned(struct rp_tx *tx, const struct rp_reprieve_subject *s, bool *out, struct rp_error *err)
{
    struct rp_mark copy = { .state = RP_MARKED };
    int r = rp_quarantine_mark(tx->db, &s->item->mark, tx->arena, &copy, err);
    *out = copy.state == RP_REPRIEVED;
    if (r == 0 && copy.state == RP_MARKED) s->item->copy.mark.fence = copy.fence;
    return r == RP_ENOTFOUND ? 0 : r;
}

int rp_reprieve_end_copy(struct rp_tx *tx, const struct rp_reprieve_subject *s, bool *done, struct rp_error *err)
{
    struct rp_reprieve_item *item = s->item;
    struct rp_state_by by = { .store = rp_reprieve_store_name(item), .actor = s->command->command.actor };
    struct rp_move move = { .mark = &item->copy.mark,
                            .to = RP_REPRIEVED,
                            .outcome = RP_END_RESTORED,
                            .attempts = item->copy.mark.attempts,
                            .refence = true };
    int r = rp_state_move(tx, &by, &move, 1, err);
    *done = move.done;
    if (r < 0 || !move.done) return r;
    r = mark_leftover(tx, s, err);
    if (r == 0) r = audit_return(tx, s, err);
    if (r == 0) item->answer.what = RP_REPRIEVE_RETURNED;
    return r;
}

int rp_reprieve_return(struct rp_tx *tx, const struct rp_reprieve_subject *s, struct rp_error *err)
{
    struct rp_reprieve_item *item = s->item;
    struct rp_reprieve_answer *a = &item->answer;
    bool returned = false, done = false, stands = item->copy.bytes == RP_BYTES_STAND;
    int r = rp_reprieve_is_returned(tx, s, &returned, err);
    if (r < 0) return r;
    a->what = returned ? RP_REPRIEVE_ALREADY : RP_REPRIEVE_REFUSED;
    if (!returned && !stands) a->error = item->copy.error;
    if (returned || !stands) return 0;
    r = rp_reprieve_end_copy(tx, s, &done, err);
    if (r == 0 && !done)
        rp_reprieve_too_late(&item->mark, rp_reprieve_store_name(item), "its time in quarantine is over", &a->error);
    return r;
}
