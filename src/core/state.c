/* SPDX-License-Identifier: Apache-2.0 */
#include "core/state.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text/json.h"
#include "catalog/audit/audit.h"
#include "catalog/file/file.h"
#include "catalog/mark/dead.h"
#include "core/due.h"
#include "store/backend.h"

#include <stdio.h>
#include <string.h>

#define TO(state) (1U << (state))

const char *const rp_state_names[RP_STATES] = { [RP_MARKED - 1] = "marked",       [RP_CHECKING - 1] = "checking",
                                                [RP_PURGING - 1] = "purging",     [RP_PURGED - 1] = "purged",
                                                [RP_REPRIEVED - 1] = "reprieved", [RP_DEAD - 1] = "dead",
                                                [RP_LOST - 1] = "lost",           NULL };

static const struct {
    unsigned to;
    const char *event; /* audited when a mark arrives here; NULL: recorded in the mark alone */
} states[RP_STATES] = {
    [RP_MARKED] = { TO(RP_CHECKING) | TO(RP_PURGING) | TO(RP_REPRIEVED), NULL },
    [RP_CHECKING] = { TO(RP_PURGING) | TO(RP_MARKED) | TO(RP_REPRIEVED) | TO(RP_DEAD) | TO(RP_CHECKING), NULL },
    [RP_PURGING] = { TO(RP_PURGED) | TO(RP_DEAD) | TO(RP_PURGING) | TO(RP_REPRIEVED), NULL },
    [RP_PURGED] = { 0, "mark.purged" },
    [RP_REPRIEVED] = { 0, "mark.reprieved" },
    [RP_DEAD] = { TO(RP_CHECKING) | TO(RP_PURGING) | TO(RP_REPRIEVED) | TO(RP_LOST), "mark.dead" },
    [RP_LOST] = { 0, "mark.lost" },
};

static const char *const ends[RP_ENDS] = {
    [RP_END_NONE] = "",
    [RP_END_ERASED] = "erased",
    [RP_END_GONE] = "already gone",
    [RP_END_SUPERSEDED] = "superseded by a newer upload",
    [RP_END_QUARANTINED] = "moved to quarantine",
    [RP_END_RESTORED] = "restored",
    [RP_END_RECOVERED] = "reprieved by a recovery",
    [RP_END_KEPT] = "given up",
    [RP_END_CONFIRMED] = "confirmed",
};

const char *rp_state_name(enum rp_state state)
{
    RP_ASSERT(state >= RP_MARKED && state < RP_STATES);
    return rp_state_names[state - 1];
}

bool rp_state_parse(const char *name, enum rp_state *out)
{
    for (int s = RP_MARKED; s < RP_STATES; s++) {
        if (strcmp(rp_state_names[s - 1], name) != 0) continue;
        *out = (enum rp_state)s;
        return true;
    }
    return false;
}

bool rp_state_may_move(enum rp_state from, enum rp_state to)
{
    return (states[from].to & TO(to)) != 0;
}

const char *rp_end_name(enum rp_end end)
{
    RP_ASSERT(end >= RP_END_NONE && end < RP_ENDS);
    return ends[end];
}

static void add_mark(json_t *o, const struct rp_mark *mark, const char *store)
{
    rp_json_set(o, "subject", rp_subject_json(store, mark->key));
    rp_json_set(o, "reason", rp_json_text(mark->reason));
    rp_json_set(o, "marked_at", rp_json_time(mark->marked_at_ms));
    rp_json_set(o, "due_at", rp_json_time(mark->due_at_ms));
    rp_json_set(o, "size", json_integer(mark->size_bytes));
}

json_t *rp_mark_json(const struct rp_mark *mark, const char *store)
{
    char id[RP_ID_TEXT];
    json_t *o = json_object();
    rp_json_set(o, "mark", json_string(rp_id_format(RP_ID_MARK, mark->id, id)));
    add_mark(o, mark, store);
    return o;
}

json_t *rp_subject_json(const char *store, const char *key)
{
    char text[RP_KEY_MAX + 80];
    snprintf(text, sizeof text, "%.64s:%.*s", store, RP_KEY_MAX, key);
    return rp_json_text(text);
}

json_t *rp_mark_line(const struct rp_mark *mark, const char *store)
{
    char id[RP_ID_TEXT];
    json_t *o = json_object();
    rp_json_set(o, "id", json_string(rp_id_format(RP_ID_MARK, mark->id, id)));
    add_mark(o, mark, store);
    if (mark->file_id != 0) rp_json_set(o, "file", json_string(rp_id_format(RP_ID_FILE, mark->file_id, id)));
    rp_json_set(o, "state", json_string(rp_state_name(mark->state)));
    rp_json_set(o, "actor", rp_json_text(mark->actor));
    if (mark->outcome != RP_END_NONE) rp_json_set(o, "outcome", json_string(rp_end_name(mark->outcome)));
    if (mark->ended_at_ms != 0) rp_json_set(o, "ended_at", rp_json_time(mark->ended_at_ms));
    if (mark->checks & RP_CHECK_REFERENCES) rp_json_set(o, "only_if", json_string("unreferenced"));
    if (mark->attempts > 0) rp_json_set(o, "attempts", json_integer(mark->attempts));
    if (mark->run_id != 0) rp_json_set(o, "run", json_string(rp_id_format(RP_ID_RUN, mark->run_id, id)));
    if (mark->note != NULL) rp_json_set(o, "note", rp_json_text(mark->note));
    bool refused = mark->state == RP_MARKED && mark->note != NULL && mark->next_at_ms > mark->due_at_ms;
    if (refused) rp_json_set(o, "asked_again_at", rp_json_time(mark->next_at_ms));
    return o;
}

/* ---- changes ---- */

static int audit(struct rp_tx *tx, const char *actor, const char *event, const struct rp_mark *mark, json_t *details,
                 struct rp_error *err)
{
    struct rp_audit_entry entry = {
        .event = event, .actor = actor, .mark_id = mark->id, .tenant_id = mark->tenant_id, .details = details
    };
    return rp_tx_audit(tx, &entry, err);
}

static json_t *promise_json(const struct rp_mark *mark, const char *store)
{
    json_t *o = rp_mark_json(mark, store);
    if (mark->etag[0] != 0) rp_json_set(o, "etag", rp_json_text(mark->etag));
    if (mark->checks & RP_CHECK_REFERENCES) rp_json_set(o, "only_if", json_string("unreferenced"));
    return o;
}

static void fill(struct rp_tx *tx, struct rp_mark *mark)
{
    if (mark->id == 0) mark->id = rp_tx_new_id(tx);
    if (mark->marked_at_ms == 0) mark->marked_at_ms = tx->late_ms;
    if (mark->etag == NULL) mark->etag = "";
    if (mark->version == NULL) mark->version = "";
    mark->state = RP_MARKED;
}

/* `sign` 1: it is in that state now; -1: it was. */
static void tally(struct rp_tx *tx, const struct rp_mark *mark, enum rp_state state, int64_t sign)
{
    bool waits = state == RP_MARKED || state == RP_CHECKING || state == RP_PURGING;
    rp_tx_tally(tx, mark->store_id, state, sign, sign * mark->size_bytes);
    if (waits && !rp_mark_is_unseen(mark))
        rp_tx_tally_waiting(tx, mark->store_id, state, sign, sign * mark->size_bytes,
                            sign * (mark->marked_at_ms / 1000));
}

/* In order of their numbers, like all locks. Few stores, as a rule one. */
static int share_stores(struct rp_tx *tx, const struct rp_state_by *by, const struct rp_mark *marks, size_t n,
                        struct rp_error *err)
{
    int r = 0;
    for (int64_t next = 0, done = 0; r == 0; done = next) {
        for (size_t i = 0; i < n; i++)
            if (marks[i].store_id > done && (next == done || marks[i].store_id < next)) next = marks[i].store_id;
        if (next == done) return 0;
        r = rp_store_share(tx, next, by->store, err);
    }
    return r;
}

int rp_state_birth(struct rp_tx *tx, const struct rp_state_by *by, struct rp_mark *marks, size_t n,
                   struct rp_error *err)
{
    for (size_t i = 0; i < n; i++)
        fill(tx, &marks[i]);
    int r = share_stores(tx, by, marks, n, err);
    if (r == 0) r = rp_marks_add(tx, marks, n, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        tally(tx, &marks[i], RP_MARKED, 1);
        if (!by->told)
            r = audit(tx, marks[i].actor, "mark.created", &marks[i], promise_json(&marks[i], by->store), err);
    }
    return r;
}

int rp_state_lock_tenants(struct rp_tx *tx, const struct rp_mark *marks, size_t n, struct rp_error *err)
{
    int64_t *ids = rp_arena_array(tx->arena, n + 1, sizeof *ids);
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++)
        ids[i] = marks[i].tenant_id;
    return rp_tenants_lock(tx, ids, n, err);
}

int rp_state_extend(struct rp_tx *tx, const struct rp_state_by *by, struct rp_extend *extends, size_t n,
                    struct rp_error *err)
{
    int r = rp_marks_extend(tx, extends, n, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        struct rp_mark later = *extends[i].mark;
        later.due_at_ms = extends[i].due_at_ms;
        if (extends[i].reason != NULL) later.reason = extends[i].reason;
        const char *actor = extends[i].actor != NULL ? extends[i].actor : by->actor;
        if (!extends[i].done) continue;
        rp_tx_keep(tx, later.store_id);
        if (!by->told) r = audit(tx, actor, "mark.extended", &later, promise_json(&later, by->store), err);
    }
    return r;
}

/* A fresh claim moves marked to its next state; a takeover leaves the state as it was. */
int rp_state_claim(struct rp_tx *tx, const struct rp_claim *claim, struct rp_marks *out, struct rp_error *err)
{
    int r = rp_marks_claim(tx, claim, out, err);
    for (size_t i = 0; i < out->n && r == 0; i++) {
        const struct rp_mark *m = &out->at[i];
        RP_ASSERT(m->due_at_ms <= claim->now_ms || claim->confirmers != NULL);                 /* NO-EARLY */
        RP_ASSERT(((m->checks & RP_CHECK_CONFIRMATIONS) != 0) == (claim->confirmers != NULL)); /* T5 */
        RP_ASSERT(m->was == m->state || rp_state_may_move(m->was, m->state));
        if (m->was == m->state) continue;
        tally(tx, m, m->was, -1);
        tally(tx, m, m->state, 1);
    }
    return r;
}

int rp_state_unclaim(struct rp_tx *tx, const struct rp_claim *claim, int64_t db_ms, struct rp_error *err)
{
    return rp_marks_unclaim(tx, claim, db_ms + claim->lease_ms, err);
}

int rp_state_renew(struct rp_tx *tx, const struct rp_mark *const *marks, size_t n, int64_t lease_ms, size_t *renewed,
                   struct rp_error *err)
{
    for (size_t i = 0; i < n; i++)
        RP_ASSERT(marks[i]->state == RP_PURGING);
    return rp_marks_renew(tx, marks, n, tx->db_ms + lease_ms, renewed, err);
}

/* Who deleted the file waits for that, and hears that it did not happen. A damaged row keeps no mark
 * from ending: then its name is not said. */
static int tell_of_file(struct rp_tx *tx, const struct rp_state_by *by, const struct rp_move *move,
                        struct rp_error *err)
{
    const struct rp_mark *mark = move->mark;
    struct rp_file file;
    char id[RP_ID_TEXT];
    struct rp_error why = { 0 };
    int r = mark->file_id != 0 ? rp_file_get(tx->db, mark->file_id, tx->arena, &file, &why) : RP_ENOTFOUND;
    if (r == RP_ENOTFOUND) return 0;
    if (r < 0 && r != RP_ECORRUPT) {
        *err = why;
        return r;
    }
    json_t *details = rp_mark_json(mark, move->store != NULL ? move->store : by->store);
    rp_json_set(details, "file", json_string(rp_id_format(RP_ID_FILE, mark->file_id, id)));
    if (r == 0) rp_json_set(details, "name", rp_json_text(file.name));
    rp_json_set(details, "error", rp_json_text(move->note != NULL ? move->note : "attempts used up"));
    return audit(tx, move->actor != NULL ? move->actor : by->actor, "file.delete_failed", mark, details, err);
}

static int audit_move(struct rp_tx *tx, const struct rp_state_by *by, const struct rp_move *move, struct rp_error *err)
{
    const char *event = states[move->to].event;
    if (by->told) return 0;
    if (event == NULL && move->mark->state == RP_DEAD) event = "mark.retried";
    if (event == NULL) return 0;
    json_t *details = rp_mark_json(move->mark, move->store != NULL ? move->store : by->store);
    if (move->outcome != RP_END_NONE) rp_json_set(details, "outcome", json_string(rp_end_name(move->outcome)));
    if (move->note != NULL) rp_json_set(details, "note", rp_json_text(move->note));
    int r = audit(tx, move->actor != NULL ? move->actor : by->actor, event, move->mark, details, err);
    return r == 0 && move->to == RP_DEAD ? tell_of_file(tx, by, move, err) : r;
}

static int add_dead_letter(struct rp_tx *tx, const struct rp_move *move, struct rp_error *err)
{
    struct rp_dead letter = { .id = rp_tx_new_id(tx),
                              .mark_id = move->mark->id,
                              .from_state = move->mark->state,
                              .attempts = move->attempts,
                              .error = move->note != NULL ? move->note : "attempts used up",
                              .died_at_ms = tx->late_ms };
    return rp_dead_add(tx, &letter, 1, err);
}

/* Past the point of no return nothing but the store's own word reprieves: another upload stands
 * there, and nothing of it was erased. */
static bool is_fit(const struct rp_move *move)
{
    return move->mark->state != RP_PURGING || move->to != RP_REPRIEVED || move->outcome == RP_END_SUPERSEDED;
}

int rp_state_move(struct rp_tx *tx, const struct rp_state_by *by, struct rp_move *moves, size_t n, struct rp_error *err)
{
    for (size_t i = 0; i < n; i++) {
        int64_t checks = (moves[i].mark->checks | moves[i].sets) & ~moves[i].clears;
        RP_ASSERT(rp_state_may_move(moves[i].mark->state, moves[i].to) && is_fit(&moves[i]));
        RP_ASSERT(moves[i].to != RP_PURGING || (checks & RP_CHECK_CONFIRMATIONS) == 0); /* T5 */
        RP_ASSERT(moves[i].to != RP_MARKED || (checks & RP_CHECK_AGREED) == 0);         /* T6 */
    }
    int r = rp_marks_move(tx, moves, n, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        const struct rp_move *move = &moves[i];
        if (!move->done) continue;
        tally(tx, move->mark, move->mark->state, -1);
        tally(tx, move->mark, move->to, 1);
        if (move->to == RP_REPRIEVED && move->mark->state != RP_PURGING) rp_tx_keep(tx, move->mark->store_id);
        if (move->to == RP_DEAD) r = add_dead_letter(tx, move, err);
        if (r == 0) r = audit_move(tx, by, move, err);
    }
    return r;
}

int rp_state_move_all(struct rp_tx *tx, const struct rp_state_by *by, struct rp_move *moves, size_t n,
                      struct rp_error *err)
{
    int r = rp_state_move(tx, by, moves, n, err);
    for (size_t i = 0; i < n && r == 0; i++)
        if (!moves[i].done) r = rp_error_set(err, RP_ECONFLICT, "another writer was faster");
    return r;
}

/* ---- what was lost is brought back ---- */

static int audit_orphan(struct rp_tx *tx, const struct rp_state_by *by, const struct rp_mark *mark, const char *what,
                        struct rp_error *err)
{
    json_t *details = rp_mark_json(mark, by->store);
    rp_json_set(details, "what", json_string(what));
    return audit(tx, by->actor, RP_EVENT_ORPHAN, mark, details, err);
}

int rp_state_watch(struct rp_tx *tx, const struct rp_state_by *by, struct rp_mark *mark, const char *what,
                   struct rp_error *err)
{
    const struct rp_due promised = { .by = RP_DUE_AFTER, .from_ms = mark->due_at_ms };
    RP_ASSERT(!rp_state_final(mark->state) && mark->state != RP_DEAD && mark->next_at_ms == 0);
    mark->next_at_ms = rp_due(&promised, tx->late_ms); /* NO-EARLY */
    int r = rp_marks_watch(tx, mark, 1, err);
    return r < 0 ? r : audit_orphan(tx, by, mark, what, err);
}

int rp_state_write_letter(struct rp_tx *tx, const struct rp_state_by *by, const struct rp_mark *mark, const char *what,
                          struct rp_error *err)
{
    RP_ASSERT(mark->state == RP_DEAD && rp_state_may_move(RP_DEAD, mark->was));
    const struct rp_dead letter = { .id = rp_tx_new_id(tx),
                                    .mark_id = mark->id,
                                    .from_state = mark->was,
                                    .attempts = mark->attempts,
                                    .error = mark->note != NULL ? mark->note : "its letter was lost",
                                    .died_at_ms = tx->late_ms };
    int r = rp_dead_add(tx, &letter, 1, err);
    return r < 0 ? r : audit_orphan(tx, by, mark, what, err);
}
