/* SPDX-License-Identifier: Apache-2.0 */
#include "core/dead.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "core/confirm/confirm.h"
#include "core/file/file.h"
#include "core/journal.h"
#include "core/state.h"
#include "core/subject/subject.h"

#define LOOK_ARENA ((size_t)256 << 10)

static int keep_letter(void *ctx, const struct rp_dead *dead, struct rp_error *err)
{
    struct rp_dead_command *c = ctx;
    struct rp_dead_item *item = &c->items[c->n];
    if (c->n == c->max) return 0;
    item->id = dead->id;
    item->letter = *dead;
    item->as = 0;
    item->letter.error = rp_arena_strdup(c->arena, dead->error);
    c->n++;
    return item->letter.error != NULL ? 0 : rp_error_set(err, RP_ENOMEM, "no memory for a dead letter");
}

/* Into the room of one item. */
static int load_letter(struct rp_tx *tx, struct rp_dead_command *c, struct rp_dead_item *item, struct rp_error *err)
{
    struct rp_dead_command one = { .items = item, .max = 1, .arena = c->arena };
    return rp_dead_get(tx->db, item->id, keep_letter, &one, err);
}

/* Where all services have said yes it waits until it is due, as it did before it died. */
static struct rp_move decide(const struct rp_mark *mark, bool retry, int64_t now_ms)
{
    bool untouched = mark->was == RP_CHECKING;
    bool early = mark->due_at_ms > now_ms && (mark->checks & RP_CHECK_CONFIRMATIONS) == 0;
    int64_t next_at_ms = early ? mark->due_at_ms : now_ms;
    if (retry) return (struct rp_move){ .mark = mark, .to = mark->was, .next_at_ms = next_at_ms, .refence = true };
    return (struct rp_move){ .mark = mark,
                             .to = untouched ? RP_REPRIEVED : RP_LOST,
                             .outcome = RP_END_KEPT,
                             .attempts = mark->attempts,
                             .note = mark->note,
                             .refence = true };
}

/* The copy in quarantine that an earlier attempt made belongs to the retried mark again: erased by
 * a mark of its own meanwhile, it would be gone when it is needed. Its time begins when the purge
 * has ended. */
static int rejoin_copy(struct rp_tx *tx, const struct rp_state_by *by, const struct rp_mark *mark, struct rp_error *err)
{
    char key[RP_QUARANTINE_KEY];
    const char *keys[] = { rp_quarantine_key(mark->id, key) };
    struct rp_marks active;
    int r = rp_marks_init(&active, 1, tx->arena, err);
    if (r == 0) r = rp_marks_active(tx, mark->store_id, keys, 1, &active, err);
    if (r < 0 || active.n == 0) return r;
    if (active.at[0].state != RP_MARKED) {
        rp_error_set(err, RP_EERASING, "its copy in quarantine is being erased");
        return rp_error_hint(err, "retry it when that is done; if that is a dead letter too, retry that one first");
    }
    struct rp_move move = { .mark = &active.at[0], .to = RP_REPRIEVED, .outcome = RP_END_KEPT, .refence = true };
    r = rp_state_move_all(tx, by, &move, 1, err);
    return r < 0 ? r : rp_files_take_over(tx, mark, &active.at[0].id, 1, err);
}

/* Somebody may have decided about it until its mark was locked: then the letter is not open any
 * more. */
static int load_locked(struct rp_tx *tx, struct rp_dead_command *c, struct rp_dead_item *item, struct rp_error *err)
{
    struct rp_marks marks = { 0 };
    int r = load_letter(tx, c, item, err);
    if (r == 0) r = rp_marks_init(&marks, 1, c->arena, err);
    if (r == 0) r = rp_marks_lock(tx, &item->letter.mark_id, 1, &marks, err);
    if (r == 0) r = load_letter(tx, c, item, err);
    if (r < 0) return r;
    if (marks.n == 0 || marks.at[0].state != RP_DEAD)
        return rp_error_set(err, RP_ECORRUPT, "the dead letter's mark is not dead");
    item->mark = marks.at[0];
    return rp_store_name(tx->db, item->mark.store_id, item->store, err);
}

/* Its texts stay where they are. */
static void update_mark(struct rp_mark *mark, const struct rp_move *move, int64_t now_ms)
{
    mark->state = move->to;
    mark->outcome = move->outcome;
    mark->ended_at_ms = rp_state_final(move->to) ? now_ms : 0;
    mark->attempts = move->attempts;
    mark->note = move->note;
}

/* A5: who has said yes, behind what the mark's note says already. */
static int note_agreed(struct rp_tx *tx, struct rp_dead_command *c, struct rp_mark *mark, struct rp_error *err)
{
    const char *names;
    int r = rp_confirmations_agreed(tx->db, mark->id, tx->arena, &names, err);
    if (r < 0 || names[0] == 0) return r;
    mark->note =
        rp_arena_fmt(c->arena, "%.160s; deleted already by: %.200s", mark->note != NULL ? mark->note : "", names);
    return mark->note != NULL ? 0 : rp_error_set(err, RP_ENOMEM, "no memory for a dead letter");
}

/* A5: nothing of it was erased, and it is no longer to be. */
static int keep_file(struct rp_tx *tx, struct rp_dead_command *c, struct rp_dead_item *item, struct rp_error *err)
{
    struct rp_file_command f = { .command = { .verb = &rp_verb_file_restore, .actor = c->command.actor },
                                 .arena = c->arena,
                                 .file_id = item->mark.file_id,
                                 .kept = true,
                                 .note = item->mark.note,
                                 .store_name = item->store };
    struct rp_command *list[] = { &f.command };
    struct rp_error gone = { 0 };
    const struct rp_file_return nothing = { .why = &gone };
    if (item->gone) f.returned = &nothing;
    rp_error_set(&gone, RP_ETOOLATE, "%s:%s: too late, its object is not there any more", item->store, item->mark.key);
    rp_error_hint(&gone, "retry it: its purge then ends");
    struct rp_move move = {
        .to = RP_REPRIEVED, .outcome = RP_END_KEPT, .attempts = item->mark.attempts, .note = item->mark.note
    };
    int r = rp_verb_file_restore.run(tx, list, 1, err);
    if (r == 0 && f.command.error.code < 0) {
        *err = f.command.error;
        return err->code;
    }
    item->as = RP_REPRIEVED;
    if (r == 0) update_mark(&item->mark, &move, tx->late_ms);
    return r;
}

/* Another decision than the one that was asked for, not trouble with the catalog. */
static bool is_refusal(int r)
{
    return r == RP_ENOTFOUND || r == RP_EERASING || r == RP_ENAMETAKEN || r == RP_EOWNERGONE || r == RP_ETOOLATE;
}

static int decide_one(struct rp_tx *tx, struct rp_dead_command *c, struct rp_dead_item *item, struct rp_error *err)
{
    bool retry = c->command.verb == &rp_verb_dead_retry;
    int r = load_locked(tx, c, item, err);
    if (r < 0) return r;
    bool confirms = item->mark.was == RP_CHECKING && (item->mark.checks & RP_CHECK_CONFIRMATIONS) != 0;
    if (retry && confirms) r = rp_confirmations_renew(tx, item->mark.id, err);
    if (!retry && item->mark.was == RP_CHECKING) r = note_agreed(tx, c, &item->mark, err);
    if (r == 0 && !retry && item->mark.was == RP_CHECKING && item->mark.file_id != 0)
        return keep_file(tx, c, item, err);
    if (r < 0) return r;
    struct rp_state_by by = { .store = item->store, .actor = c->command.actor };
    struct rp_move move = decide(&item->mark, retry, tx->late_ms);
    item->as = move.to;
    if (retry) r = rejoin_copy(tx, &by, &item->mark, err);
    if (r == 0) r = rp_state_move_all(tx, &by, &move, 1, err);
    if (r == 0) r = rp_dead_end(tx, &item->mark.id, 1, retry ? "retried" : "kept", c->command.actor, err);
    if (r == 0 && retry) c->command.due_at_ms = move.next_at_ms;
    if (r == 0) update_mark(&item->mark, &move, tx->late_ms);
    return r;
}

static int decide_all(struct rp_tx *tx, struct rp_dead_command *c, struct rp_error *err)
{
    int r = 0;
    if (c->all) {
        c->n = 0;
        r = rp_dead_each_of(tx->db, c->after_id, (int64_t)c->max, c->since_ms, c->endpoint, keep_letter, c, err);
        c->complete = c->n < c->max;
    }
    for (size_t i = 0; i < c->n && r == 0; i++) {
        struct rp_error why = { 0 };
        r = decide_one(tx, c, &c->items[i], &why);
        bool refused = is_refusal(r);
        if (r < 0 && !refused) *err = why;
        c->items[i].error = why;
        if (refused) r = 0;
    }
    if (r == 0 && c->n == 1 && !c->all) c->command.error = c->items[0].error;
    return r;
}

static int run(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = decide_all(tx, (struct rp_dead_command *)commands[i], err);
    return r;
}

/* After a roll-back its letter may be open again (reprieve.h, V8). */
static bool is_gone(struct rp_store *store, const struct rp_mark *mark)
{
    struct rp_error ignored = { 0 };
    struct rp_item seen = { .key = mark->key };
    if (mark->was != RP_CHECKING || mark->file_id == 0 || mark->etag[0] == 0) return false;
    if (store == NULL || store->backend == NULL) return false;
    return rp_subject_in(store)->look(store, &seen, 1, &ignored) == 0 && seen.outcome == RP_OUT_GONE;
}

/* A5, A6. What cannot be found here is refused by run, or kept as it is. */
static void look(struct rp_catalog *catalog, struct rp_dead_command *c, struct rp_dead_item *item)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(LOOK_ARENA);
    struct rp_dead_item letter = { .id = item->id };
    struct rp_dead_command one = { .items = &letter, .max = 1, .arena = &arena };
    struct rp_error ignored = { 0 };
    struct rp_mark mark = { 0 };
    item->annotate_note[0] = 0;
    item->gone = false;
    int r = rp_dead_get(catalog->db, item->id, keep_letter, &one, &ignored);
    if (r == 0) r = rp_mark_get(catalog->db, letter.letter.mark_id, &arena, &mark, &ignored);
    if (r < 0 || mark.state != RP_DEAD || rp_quarantine_is(mark.key)) return;
    struct rp_store *store = rp_store_by_id(c->stores, c->n_stores, mark.store_id);
    item->gone = is_gone(store, &mark);
    rp_annotation_end(catalog, store, &mark, item->annotate_note);
}

static void prepare_keep(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct rp_dead_command *c = (struct rp_dead_command *)commands[i];
        for (size_t k = 0; k < c->n; k++)
            look(catalog, c, &c->items[k]);
    }
}

static int tenant_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    (void)err;
    rp_locks_tenant(ctx, row[0].i);
    return 0;
}

static int add_locks(struct rp_tx *tx, const struct rp_command *command, struct rp_locks *out, struct rp_error *err)
{
    const struct rp_dead_command *c = (const struct rp_dead_command *)command;
    int64_t *ids = rp_arena_array(tx->arena, c->n + 1, sizeof *ids);
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = 0; i < c->n && !c->all; i++)
        ids[i] = c->items[i].id;
    return rp_dead_tenants(tx, c->all ? NULL : ids, c->n, c->after_id, tenant_row, out, err);
}

static void write_log(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    const struct rp_dead_command *c = (const struct rp_dead_command *)command;
    struct rp_journal j = rp_journal_of(command, log, at_ms);
    for (size_t i = 0; i < c->n; i++) {
        const struct rp_dead_item *item = &c->items[i];
        if (item->error.code < 0 || command->error.code < 0) continue;
        const char *event = command->verb == &rp_verb_dead_retry ? "mark.retried"
                            : item->as == RP_LOST                ? "mark.lost"
                                                                 : "mark.reprieved";
        rp_journal_decided(&j, event, item->store, &item->mark, rp_state_name(item->as));
    }
}

_Static_assert(offsetof(struct rp_dead_command, command) == 0, "a command is the first member");
const struct rp_verb rp_verb_dead_retry = {
    .name = "retry", .locks = add_locks, .run = run, .log = write_log, .alone = true
};
const struct rp_verb rp_verb_dead_keep = {
    .name = "keep", .prepare = prepare_keep, .locks = add_locks, .run = run, .log = write_log, .alone = true
};
