/* SPDX-License-Identifier: Apache-2.0 */
#include "core/reprieve.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/crashpoint.h"
#include "base/json.h"
#include "base/mutant.h"
#include "base/time.h"
#include "catalog/audit.h"
#include "catalog/dead.h"
#include "core/annotation.h"
#include "core/due.h"
#include "core/file/file.h"
#include "core/state.h"
#include "core/subject/subject.h"

#include <stdio.h>
#include <string.h>

const char *rp_reprieving_name(enum rp_reprieving what)
{
    static const char *const names[] = { [RP_REPRIEVE_REFUSED] = "refused",
                                         [RP_REPRIEVE_DONE] = "restored",
                                         [RP_REPRIEVE_ALREADY] = "already restored",
                                         [RP_REPRIEVE_RETURNED] = "returned from quarantine" };
    return names[what];
}

/* ---- decide ---- */

static struct rp_reprieve_decision too_late(const struct rp_mark *mark, const char *store, const char *why,
                                            struct rp_error *err)
{
    rp_error_set(err, RP_ETOOLATE, "%s:%s: too late, %s", store, mark->key, why);
    if (mark->state == RP_DEAD) rp_error_hint(err, "see `reprieve dead`: something of it may already be erased");
    return (struct rp_reprieve_decision){ .code = RP_ETOOLATE };
}

struct rp_reprieve_decision rp_reprieve_decide(const struct rp_mark *mark, const struct rp_mark *aside,
                                               const char *store, struct rp_error *err)
{
    if (rp_quarantine_is(mark->key)) {
        /* reprieved by itself it would be a copy that nobody returns and nobody erases */
        rp_error_set(err, RP_EINVAL, "%s:%s is a copy in quarantine", store, mark->key);
        rp_error_hint(err, "restore the mark that its name ends with: it is returned under its own key");
        return (struct rp_reprieve_decision){ .code = RP_EINVAL };
    }
    switch (mark->state) {
    case RP_MARKED:
        return (struct rp_reprieve_decision){ .what = RP_REPRIEVE_DONE };
    case RP_REPRIEVED:
        return (struct rp_reprieve_decision){ .what = RP_REPRIEVE_ALREADY };
    case RP_CHECKING:
        return too_late(mark, store, "its purge has begun (checking)", err);
    case RP_PURGING:
        if (RP_MUTANT(RESTORE_AFTER_CLAIM) && mark->file_id == 0)
            return (struct rp_reprieve_decision){ .what = RP_REPRIEVE_DONE };
        return too_late(mark, store, "its purge has begun", err);
    case RP_DEAD:
        if (mark->was == RP_CHECKING) return (struct rp_reprieve_decision){ .what = RP_REPRIEVE_DONE };
        return too_late(mark, store, "its purge has begun and failed", err);
    case RP_PURGED:
        if (aside != NULL && aside->state == RP_MARKED)
            return (struct rp_reprieve_decision){ .what = RP_REPRIEVE_RETURNED };
        if (aside != NULL && aside->state == RP_REPRIEVED)
            return (struct rp_reprieve_decision){ .what = RP_REPRIEVE_ALREADY };
        return too_late(mark, store, "it was purged", err);
    default:
        break;
    }
    return too_late(mark, store, "it was given up after a failed purge", err);
}

/* ---- load ---- */

int rp_reprieve_find(struct rp_catalog *catalog, const struct rp_store *store, const char *key, struct rp_arena *arena,
                     struct rp_mark *out, struct rp_error *err)
{
    struct rp_mark newest;
    struct rp_marks history = { .at = &newest, .max = 1, .arena = arena };
    int r = rp_marks_history(catalog->db, store->id, key, &history, err);
    if (r < 0) return r;
    if (history.n == 0) return rp_error_set(err, RP_ENOTFOUND, "%s:%s has no mark", store->config->name, key);
    *out = newest;
    return 0;
}

struct one {
    struct rp_mark aside;
    bool has_aside, copied;
    bool stands; /* the bytes stand under the key: copied now, or by a restore that ended after its copy */
    struct rp_identity copy;
    size_t same_as; /* the first of the batch that is about the same mark: itself, or one before */
};

struct batch {
    struct rp_store *store;
    const struct rp_mark *marks;
    struct rp_reprieve_answer *answers;
    struct one *ones;
    const char *actor;
    size_t n;
    struct rp_arena arena;
};

/* ---- what is done before the catalog decides ---- */

/* An object that changed or went carries no annotation of ours. A store that fails must not stop a rescue: that is noted,
 * and the same restore, given again, tries it again. */
static void remove_annotation(struct rp_catalog *catalog, struct batch *b, size_t i)
{
    const struct rp_mark *mark = &b->marks[i];
    struct rp_identity identity = rp_subject_identity(mark);
    struct rp_error why = { 0 };
    if (!mark->annotated || (mark->state != RP_MARKED && mark->state != RP_REPRIEVED)) return;
    int r = rp_annotation_remove(catalog, b->store, mark->key, &identity, &why);
    if (r < 0 && r != RP_ENOTFOUND && r != RP_ECHANGED)
        snprintf(b->answers[i].annotate_note, sizeof b->answers[i].annotate_note, "%.119s", why.text);
}

static int copy_back(struct rp_catalog *catalog, struct batch *b, size_t i, struct rp_error *err)
{
    struct one *one = &b->ones[i];
    const struct rp_mark *mark = &b->marks[i];
    int r = rp_subject_of(mark)->bring_back(b->store, &one->aside, mark->key, &one->copy, &one->copied, err);
    if (r == RP_EEXISTS) return r;
    if (r == 0 && mark->annotated) r = rp_annotation_remove(catalog, b->store, mark->key, &one->copy, err);
    one->stands = r == 0;
    return r < 0 ? rp_error_wrap(err, r, "return %s:%s from quarantine", b->store->config->name, mark->key) : 0;
}

static int prepare(struct rp_catalog *catalog, struct batch *b, size_t i, struct rp_error *err)
{
    const struct rp_mark *mark = &b->marks[i];
    struct one *one = &b->ones[i];
    while (b->marks[one->same_as].id != mark->id)
        one->same_as++;
    if (one->same_as < i) return 0;
    remove_annotation(catalog, b, i);
    if (mark->state != RP_PURGED || mark->outcome != RP_END_QUARANTINED) return 0;
    int r = rp_quarantine_mark(catalog->db, mark, &b->arena, &one->aside, err);
    if (r == RP_ENOTFOUND) return 0;
    if (r < 0) return r;
    one->has_aside = true;
    if (one->aside.state != RP_MARKED) return 0;
    struct rp_reprieve_answer *a = &b->answers[i];
    (void)copy_back(catalog, b, i, &a->error); /* this one is refused, the others go on */
    return 0;
}

/* ---- apply ---- */

static int audit_return(struct rp_tx *tx, struct batch *b, size_t i, struct rp_error *err)
{
    struct rp_audit_entry entry = { .event = "object.returned",
                                    .actor = b->actor,
                                    .mark_id = b->marks[i].id,
                                    .tenant_id = b->marks[i].tenant_id,
                                    .details = rp_mark_json(&b->marks[i], b->store->config->name) };
    return rp_tx_audit(tx, &entry, err);
}

/* The copy in quarantine has done its work, and has a mark of its own. It stays for a day: a delete that was sent before the object was
 * moved aside may still arrive, and where a store cannot tell identical bytes apart it would take what was returned. */
static int mark_leftover(struct rp_tx *tx, struct batch *b, const struct rp_mark *aside, struct rp_error *err)
{
    struct rp_state_by by = { .store = b->store->config->name, .actor = b->actor, .told = true };
    struct rp_mark leftover = { .store_id = aside->store_id,
                                .key = aside->key,
                                .due_at_ms = rp_due(&(struct rp_due){ .by = RP_DUE_RETURNED }, tx->late_ms),
                                .checks = aside->checks,
                                .tenant_id = aside->tenant_id,
                                .etag = aside->etag,
                                .version = aside->version,
                                .size_bytes = aside->size_bytes,
                                .modified_ms = aside->modified_ms,
                                .reason = "returned from quarantine",
                                .actor = b->actor }; /* of no file: that one lives again, the copy is nobody's */
    return rp_state_birth(tx, &by, &leftover, 1, err);
}

/* Whether somebody has returned it since it was looked at: the original's row is locked, so that nobody does so from now on. */
static int is_returned(struct rp_tx *tx, struct batch *b, size_t i, bool *out, struct rp_error *err)
{
    struct rp_mark aside = { .state = RP_MARKED };
    int r = rp_quarantine_mark(tx->db, &b->marks[i], tx->arena, &aside, err);
    *out = aside.state == RP_REPRIEVED;
    return r == RP_ENOTFOUND ? 0 : r;
}

static int apply_return(struct rp_tx *tx, struct batch *b, size_t i, struct rp_error *err)
{
    struct one *one = &b->ones[i];
    struct rp_reprieve_answer *a = &b->answers[i];
    bool returned;
    struct rp_move move = { .mark = &one->aside,
                            .to = RP_REPRIEVED,
                            .outcome = RP_END_RESTORED,
                            .attempts = one->aside.attempts,
                            .refence = true };
    int r = is_returned(tx, b, i, &returned, err);
    if (r < 0) return r;
    a->what = returned ? RP_REPRIEVE_ALREADY : RP_REPRIEVE_REFUSED;
    if (!returned && !one->stands) return 0; /* copy_back said why */
    rp_error_clear(&a->error);               /* of an earlier run */
    if (returned) return 0;
    if (one->aside.file_id != 0)
        r = rp_files_returned(tx, b->store->config->name, one->aside.file_id, &one->copy, b->actor, &a->error, err);
    if (r < 0 || a->error.code < 0) return r;
    r = rp_state_move(tx, &(struct rp_state_by){ .store = b->store->config->name, .actor = b->actor }, &move, 1, err);
    if (r < 0) return r;
    if (!move.done) {
        too_late(&b->marks[i], b->store->config->name, "its time in quarantine is over", &a->error);
        return 0;
    }
    r = mark_leftover(tx, b, &one->aside, err);
    if (r == 0) r = audit_return(tx, b, i, err);
    if (r == 0) a->what = RP_REPRIEVE_RETURNED;
    return r;
}

static int apply_one(struct rp_tx *tx, struct batch *b, const struct rp_mark *now, size_t i, struct rp_move *moves,
                     size_t *n_moves, struct rp_error *err)
{
    struct rp_reprieve_answer *a = &b->answers[i];
    const struct one *one = &b->ones[i];
    if (one->same_as < i) return 0;
    if (now->file_id != 0 && now->state == RP_MARKED) return 0; /* restore_files */
    if (one->has_aside && one->aside.state == RP_MARKED) return apply_return(tx, b, i, err);
    struct rp_reprieve_decision d =
        rp_reprieve_decide(now, one->has_aside ? &one->aside : NULL, b->store->config->name, &a->error);
    a->what = d.what;
    if (d.what == RP_REPRIEVE_DONE)
        moves[(*n_moves)++] = (struct rp_move){
            .mark = now, .to = RP_REPRIEVED, .outcome = RP_END_RESTORED, .attempts = now->attempts, .refence = true
        };
    return 0;
}

static const struct rp_mark *find_mark(const struct rp_marks *marks, int64_t id)
{
    for (size_t i = 0; i < marks->n; i++)
        if (marks->at[i].id == id) return &marks->at[i];
    return NULL;
}

/* A file's mark: the file is restored, with what belongs to it, or refused for reasons of its own. */
static int restore_files(struct rp_tx *tx, struct batch *b, const struct rp_marks *now, struct rp_error *err)
{
    struct rp_file_command *commands = rp_arena_array(tx->arena, b->n, sizeof *commands);
    struct rp_command **list = rp_arena_array(tx->arena, b->n, sizeof(struct rp_command *));
    size_t *from = rp_arena_array(tx->arena, b->n, sizeof *from);
    size_t n = 0;
    if (commands == NULL || list == NULL || from == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = 0; i < b->n; i++) {
        const struct rp_mark *mark = find_mark(now, b->marks[i].id);
        if (mark->file_id == 0 || mark->state != RP_MARKED || b->ones[i].same_as < i) continue;
        commands[n] = (struct rp_file_command){ .command = { .verb = &rp_verb_restore, .actor = b->actor },
                                                .stores = &b->store,
                                                .n_stores = 1,
                                                .arena = tx->arena,
                                                .file_id = mark->file_id };
        list[n] = &commands[n].command;
        from[n++] = i;
    }
    int r = n > 0 ? rp_verb_restore.run(tx, list, n, err) : 0;
    for (size_t k = 0; k < n && r == 0; k++) {
        struct rp_reprieve_answer *a = &b->answers[from[k]];
        a->error = commands[k].command.error;
        a->what = a->error.code < 0 ? RP_REPRIEVE_REFUSED : RP_REPRIEVE_DONE;
    }
    return r;
}

static int load_again(struct rp_tx *tx, struct batch *b, struct rp_marks *now, struct rp_error *err)
{
    int64_t *ids = rp_arena_array(tx->arena, b->n, sizeof *ids);
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = 0; i < b->n; i++)
        ids[i] = b->marks[i].id;
    int r = rp_marks_init(now, b->n, tx->arena, err);
    return r < 0 ? r : rp_marks_lock(tx, ids, b->n, now, err);
}

/* The rows are locked as loaded: on both engines nobody moves them before we do. */
static int transact(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct batch *b = ctx;
    struct rp_marks now;
    size_t n_moves = 0, n_dead = 0;
    struct rp_move *moves = rp_arena_array(tx->arena, b->n, sizeof *moves);
    int64_t *dead = rp_arena_array(tx->arena, b->n, sizeof *dead);
    if (moves == NULL || dead == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    int r = load_again(tx, b, &now, err);
    for (size_t i = 0; i < b->n && r == 0; i++) {
        const struct rp_mark *mark = find_mark(&now, b->marks[i].id);
        if (mark == NULL) return rp_error_set(err, RP_ECORRUPT, "a mark is gone from the catalog");
        if (mark->state == RP_DEAD && mark->was == RP_CHECKING && b->ones[i].same_as == i) dead[n_dead++] = mark->id;
        r = apply_one(tx, b, mark, i, moves, &n_moves, err);
    }
    if (r == 0) r = restore_files(tx, b, &now, err);
    if (r == 0)
        r = rp_state_move(tx, &(struct rp_state_by){ .store = b->store->config->name, .actor = b->actor }, moves,
                          n_moves, err);
    if (r == 0) r = rp_dead_end(tx, dead, n_dead, "kept", b->actor, err);
    for (size_t i = 0; i < n_moves && r == 0; i++)
        RP_ASSERT(moves[i].done);
    for (size_t i = 0; i < b->n && r == 0; i++)
        b->answers[i] = b->answers[b->ones[i].same_as];
    return r;
}

/* A copy back whose return the catalog has refused goes again, exactly that copy. One that was not decided about stays: another restore
 * may have found it and count on it, and the next one does. */
static void undo_copies(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        struct one *one = &b->ones[i];
        struct rp_item item = { .key = b->marks[i].key, .identity = one->copy };
        struct rp_error ignored = { 0 };
        if (one->copied && b->answers[i].what == RP_REPRIEVE_REFUSED)
            (void)rp_subject_of(&b->marks[i])->erase(b->store, &item, 1, &ignored);
    }
}

int rp_reprieve_many(struct rp_catalog *catalog, struct rp_store *store, const struct rp_mark *marks, size_t n,
                     const char *actor, struct rp_reprieve_answer *answers, struct rp_error *err)
{
    struct batch b = {
        .store = store, .marks = marks, .answers = answers, .actor = actor, .n = n, .arena = RP_ARENA((size_t)64 << 20)
    };
    RP_ASSERT(n > 0 && n <= RP_REPRIEVE_BATCH_MAX);
    int r = 0;
    b.ones = rp_arena_array(&b.arena, n, sizeof *b.ones);
    if (b.ones == NULL) return rp_error_set(err, RP_ENOMEM, "restore: out of memory");
    memset(answers, 0, n * sizeof *answers);
    for (size_t i = 0; i < n && r == 0; i++)
        r = prepare(catalog, &b, i, err);
    RP_CRASHPOINT("restore.copied");
    if (r == 0) r = rp_catalog_change(catalog, transact, &b, err);
    RP_CRASHPOINT("restore.committed");
    if (r == 0) undo_copies(&b);
    rp_arena_done(&b.arena);
    return r < 0 ? rp_error_wrap(err, r, "restore") : 0;
}
