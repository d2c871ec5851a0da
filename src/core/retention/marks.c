/* SPDX-License-Identifier: Apache-2.0 */
/* marks.c - which ended marks may go. Whoever reads ended marks must not be misled by what is left:
 *
 * M1  A mark that is a file's, or that of a file's copy in quarantine, goes with its file
 *     (files.c): a file points at its last mark, and a second mark waits for a late PUT.
 * M2  A mark whose copy waits in quarantine stays, and so do all later marks of its subject: the
 *     copy can be restored by the mark's id, and a return asks whether a later mark was purged
 *     (DESIGN section 5).
 * M3  A copy's own mark stays as long as the mark of what was copied: a restore given again is told
 *     by it that the copy was returned.
 * M4  A mark with an open dead letter has not ended. Its decided ones go with it, and so does what
 *     its confirmations were asked and said.
 * M5  Marks of a subject go from the oldest on, also where an older one ended later, by a clock
 *     that was wrong, or is locked. So its newest mark is never an older one than it was: it is
 *     the same one, or there is none.
 *
 * A look begins where the one of the last run found the first mark that had to stay for another
 * reason than M1 (meta `retention_marks`): what lies before are marks of files, which go with
 * them. */
#include "base/assert.h"
#include "base/error.h"
#include "catalog/retention.h"
#include "core/retention/steps.h"
#include "core/subject/quarantine.h"

#include <string.h>

#define FLOOR "retention_marks"

/* ---- which of them stay ---- */

struct judging {
    const struct rp_old_marks *marks;
    bool *stays;
};

/* M2 */
static int keep_with_copy(void *ctx, int64_t store_id, const char *original, const char *key)
{
    struct judging *j = ctx;
    int64_t of = 0;
    if (!rp_quarantine_original(key, &of)) return 0;
    for (size_t i = 0; i < j->marks->n; i++) {
        const struct rp_old_mark *m = &j->marks->at[i];
        if (m->id >= of && m->store_id == store_id && strcmp(m->key, original) == 0) j->stays[i] = true;
    }
    return 0;
}

/* M3 */
static int keep_copies(struct rp_db *db, struct judging *j, struct rp_arena *arena, struct rp_error *err)
{
    int64_t *of = rp_arena_array(arena, j->marks->n + 1, sizeof *of), id;
    struct rp_ids there;
    size_t n = 0;
    if (of == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", j->marks->n);
    for (size_t i = 0; i < j->marks->n; i++)
        if (rp_quarantine_original(j->marks->at[i].key, &id)) of[n++] = id;
    n = rp_ids_sort(of, n);
    int r = rp_marks_there(db, arena, of, n, &there, err);
    if (r < 0) return r;
    there.n = rp_ids_sort(there.at, there.n);
    for (size_t i = 0; i < j->marks->n; i++)
        if (rp_quarantine_original(j->marks->at[i].key, &id) && rp_ids_contain(there.at, there.n, id))
            j->stays[i] = true;
    return 0;
}

static int judge(struct rp_db *db, const struct rp_old_marks *marks, struct rp_arena *arena, bool **stays,
                 struct rp_error *err)
{
    struct judging j = { .marks = marks, .stays = rp_arena_array(arena, marks->n + 1, sizeof *j.stays) };
    if (j.stays == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", marks->n);
    int r = rp_old_marks_copies(db, marks, keep_with_copy, &j, err);
    if (r == 0) r = keep_copies(db, &j, arena, err);
    *stays = j.stays;
    return r;
}

static bool is_of_file(const struct rp_old_mark *m)
{
    return m->file_id != 0; /* M1 */
}

/* ---- the step ---- */

static int begin(struct rp_db *db, struct rp_retention_batch *batch, struct rp_error *err)
{
    return batch->cursor.marks.at_id != 0 ? 0 : rp_retention_floor_load(db, FLOOR, &batch->cursor.marks.at_ms, err);
}

int rp_retention_find_marks(const struct rp_retention_step *step, struct rp_db *db, struct rp_arena *arena,
                            struct rp_retention_batch *batch, struct rp_ids *out, struct rp_error *err)
{
    (void)step;
    struct rp_old_marks marks = { 0 };
    bool *stays = NULL;
    int r = begin(db, batch, err);
    if (r == 0) r = rp_old_marks_init(&marks, (size_t)batch->limit, arena, err);
    if (r == 0)
        r = rp_old_marks_page(db, batch->before_ms, batch->cursor.marks.at_ms, batch->cursor.marks.at_id, &marks, err);
    if (r == 0) r = judge(db, &marks, arena, &stays, err);
    if (r < 0) return r;
    RP_ASSERT(stays != NULL);
    for (size_t i = 0; i < marks.n; i++) {
        const struct rp_old_mark *m = &marks.at[i];
        if (is_of_file(m)) continue;
        if (!stays[i])
            out->at[out->n++] = m->id;
        else if (batch->cursor.marks.first_kept_ms == 0)
            batch->cursor.marks.first_kept_ms = m->ended_at_ms;
    }
    batch->more = marks.n == (size_t)batch->limit;
    if (marks.n == 0) return 0;
    batch->cursor.marks.page_ms = marks.at[0].ended_at_ms;
    batch->cursor.marks.at_ms = marks.at[marks.n - 1].ended_at_ms;
    batch->cursor.marks.at_id = marks.at[marks.n - 1].id;
    return 0;
}

/* Others may have ended in the very moment that the last one seen did. */
static int save_floor(struct rp_tx *tx, const struct rp_retention_batch *batch, struct rp_error *err)
{
    if (batch->more || batch->cursor.marks.at_id == 0) return 0;
    return rp_retention_floor_save(tx, FLOOR, batch->cursor.marks.first_kept_ms, batch->cursor.marks.at_ms - 1, err);
}

struct going {
    struct rp_old_mark *at;
    size_t n;
    struct rp_ids ids;
};

/* M5: it goes if all older marks of its subject do. */
static int go_in_order(void *ctx, int64_t id, int64_t older)
{
    struct going *g = ctx;
    size_t self = 0;
    while (self < g->n && g->at[self].id != id)
        self++;
    RP_ASSERT(self < g->n);
    const struct rp_old_mark *m = &g->at[self];
    for (size_t i = 0; i < g->n && older > 0; i++)
        older -= g->at[i].id < id && g->at[i].store_id == m->store_id && strcmp(g->at[i].key, m->key) == 0;
    if (older == 0) g->ids.at[g->ids.n++] = id;
    return 0;
}

static int order(struct rp_tx *tx, struct going *g, struct rp_error *err)
{
    struct rp_ids all = { .at = rp_arena_array(tx->arena, g->n + 1, sizeof *all.at) };
    g->ids.at = rp_arena_array(tx->arena, g->n + 1, sizeof *g->ids.at);
    if (all.at == NULL || g->ids.at == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", g->n);
    for (size_t i = 0; i < g->n; i++)
        all.at[all.n++] = g->at[i].id;
    return rp_marks_older(tx->db, tx->arena, &all, go_in_order, g, err);
}

/* Whether each of them may go is asked again, now that they are locked. */
int rp_retention_let_go_marks(const struct rp_retention_step *step, struct rp_tx *tx, struct rp_retention_batch *batch,
                              const struct rp_ids *ids, struct rp_error *err)
{
    (void)step;
    struct rp_old_marks marks = { 0 };
    struct going go = { .n = 0 };
    bool *stays = NULL;
    int r = rp_old_marks_init(&marks, ids->n, tx->arena, err);
    if (r == 0) r = rp_old_marks_lock(tx, batch->before_ms, ids, &marks, err);
    if (r == 0) r = judge(tx->db, &marks, tx->arena, &stays, err);
    go.at = marks.at;
    for (size_t i = 0; i < marks.n && r == 0; i++)
        if (!stays[i] && !is_of_file(&marks.at[i])) go.at[go.n++] = marks.at[i];
    if (r == 0) r = order(tx, &go, err);
    if (r == 0) r = rp_marks_remove(tx, &go.ids, &batch->gone, err);
    if (go.ids.n < ids->n && batch->cursor.marks.first_kept_ms == 0)
        batch->cursor.marks.first_kept_ms = batch->cursor.marks.page_ms;
    return r < 0 ? r : save_floor(tx, batch, err);
}
