/* SPDX-License-Identifier: Apache-2.0 */
/* copies.c - the copy in quarantine is a subject of its own, with a mark of its own: the same
 * promise, later. */
#include "core/due.h"
#include "core/purge/batch.h"
#include "core/state.h"
#include "core/subject/subject.h"

#include <string.h>

struct copies {
    struct rp_mark *marks;
    const char **keys; /* of marks */
    int64_t *from;     /* the marks whose copies they are */
    size_t n;
};

/* What is hidden in place is left to whoever decides about the dead letter: a mark of its own would
 * erase it before. A dead letter's copy needs its mark as well: given up, nobody else would erase
 * it. Whether there is one an attempt that failed early cannot know; an earlier one may have made
 * it. Its mark then learns what stands there, if anything does. */
static bool left_a_copy(const struct rp_purge_batch *b, const struct rp_move *move)
{
    if (!move->done) return false;
    if (move->to == RP_DEAD && rp_subject_stays_in_place(b->store, move->mark)) return false;
    return move->outcome == RP_END_QUARANTINED ||
           (move->to == RP_DEAD && rp_subject_is_quarantined(b->store, move->mark));
}

static struct rp_mark mark_of(const struct rp_tx *tx, const struct rp_purge_batch *b, const struct rp_run *run,
                              const struct rp_purge_item *item, const char *key)
{
    struct rp_due due = { .by = RP_DUE_QUARANTINE, .config = b->store->config };
    return (struct rp_mark){ .store_id = item->mark->store_id,
                             .key = key,
                             .original = item->mark->key,
                             .due_at_ms = rp_due(&due, tx->late_ms),
                             .tenant_id = item->mark->tenant_id,
                             .run_id = run->id,
                             .etag = item->copy.etag,
                             .version = item->copy.version,
                             .size_bytes = item->copy.size_bytes,
                             .modified_ms = item->copy.modified_ms,
                             .in_place = item->in_place,
                             .reason = "quarantine",
                             .actor = run->worker->name,
                             .file_id = item->status == RP_ITEM_DAMAGED ? 0 : item->mark->file_id };
}

static int collect(struct rp_tx *tx, struct rp_purge_batch *b, const struct rp_run *run, const struct rp_move *moves,
                   size_t n, struct copies *out, struct rp_error *err)
{
    *out = (struct copies){ .marks = rp_arena_array(tx->arena, n + 1, sizeof *out->marks),
                            .keys = rp_arena_array(tx->arena, n + 1, sizeof(char *)),
                            .from = rp_arena_array(tx->arena, n + 1, sizeof *out->from) };
    if (out->marks == NULL || out->keys == NULL || out->from == NULL)
        return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        if (!left_a_copy(b, &moves[i])) continue;
        char *key = rp_arena_alloc(tx->arena, RP_QUARANTINE_KEY);
        if (key == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
        out->keys[out->n] = rp_quarantine_key(moves[i].mark->id, key);
        out->from[out->n] = moves[i].mark->id;
        out->marks[out->n++] = mark_of(tx, b, run, rp_purge_item_of(b, moves[i].mark), key);
    }
    return 0;
}

static bool is_marked(const struct rp_marks *marks, const char *key)
{
    for (size_t i = 0; i < marks->n; i++)
        if (strcmp(marks->at[i].key, key) == 0) return true;
    return false;
}

/* A mark that died, was retried and is purged now has its copy marked already. */
static int drop_marked(struct rp_tx *tx, const struct rp_store *store, struct copies *c, struct rp_error *err)
{
    struct rp_marks active;
    size_t kept = 0;
    int r = rp_marks_init(&active, c->n + 1, tx->arena, err);
    if (r == 0) r = rp_marks_active(tx, store->id, c->keys, c->n, &active, err);
    for (size_t i = 0; i < c->n && r == 0; i++) {
        if (is_marked(&active, c->keys[i])) continue;
        c->from[kept] = c->from[i];
        c->marks[kept++] = c->marks[i];
    }
    c->n = kept;
    return r;
}

int rp_purge_mark_copies(struct rp_tx *tx, struct rp_purge_batch *batch, struct rp_run *run,
                         const struct rp_move *moves, size_t n, struct rp_error *err)
{
    struct rp_state_by by = { .store = batch->store->config->name, .actor = run->worker->name, .told = true };
    struct copies c;
    int r = collect(tx, batch, run, moves, n, &c, err);
    if (r == 0 && c.n > 0) r = drop_marked(tx, batch->store, &c, err);
    if (r < 0 || c.n == 0) return r;
    run->figures.marked += (int64_t)c.n;
    r = rp_state_birth(tx, &by, c.marks, c.n, err);
    return r < 0 ? r : rp_subjects_copied(tx, c.marks, c.from, c.n, err);
}
