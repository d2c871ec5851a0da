/* SPDX-License-Identifier: Apache-2.0 */
/* mend.c - marks that nobody looks at, and dead ones without a letter: locked, asked again, and
 * brought back by the state machine (core/state.h). Files are mended in core/file/orphans.c. */
#include "base/error.h"
#include "base/id.h"
#include "core/due.h"
#include "core/safety_net/steps.h"
#include "core/state.h"

/* Their rows as they are now, locked in order of id (catalog.h, K8). */
static int lock_marks(struct rp_tx *tx, const struct rp_orphan *orphans, size_t n, struct rp_marks *out,
                      struct rp_error *err)
{
    int64_t *ids = rp_arena_array(tx->arena, n + 1, sizeof *ids);
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", n);
    for (size_t i = 0; i < n; i++)
        ids[i] = orphans[i].id;
    size_t distinct = rp_ids_sort(ids, n);
    int r = rp_marks_init(out, distinct, tx->arena, err);
    return r < 0 ? r : rp_marks_lock(tx, ids, distinct, out, err);
}

static struct rp_mark *mark_of(const struct rp_marks *marks, int64_t id)
{
    for (size_t i = 0; i < marks->n; i++)
        if (marks->at[i].id == id) return &marks->at[i];
    return NULL;
}

int rp_net_mend_marks(struct rp_tx *tx, const struct rp_mending *mending, struct rp_orphan *orphans, size_t n,
                      struct rp_error *err)
{
    struct rp_marks marks = { 0 };
    int r = lock_marks(tx, orphans, n, &marks, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        struct rp_state_by by = { .store = orphans[i].store, .actor = mending->actor };
        struct rp_mark *mark = mark_of(&marks, orphans[i].id);
        bool waits = mark != NULL && mark->state >= RP_MARKED && mark->state <= RP_PURGING && mark->next_at_ms == 0;
        if (!waits) continue;
        r = rp_state_watch(tx, &by, mark, orphans[i].what, err);
        orphans[i].done = true;
    }
    return r;
}

int rp_net_mend_letters(struct rp_tx *tx, const struct rp_mending *mending, struct rp_orphan *orphans, size_t n,
                        struct rp_error *err)
{
    struct rp_marks marks = { 0 };
    struct rp_ids missing;
    int64_t *ids = rp_arena_array(tx->arena, n + 1, sizeof *ids);
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", n);
    int r = lock_marks(tx, orphans, n, &marks, err);
    for (size_t i = 0; i < marks.n && r == 0; i++)
        ids[i] = marks.at[i].id;
    if (r == 0) r = rp_orphans_letterless(tx->db, tx->arena, ids, marks.n, &missing, err);
    if (r == 0) missing.n = rp_ids_sort(missing.at, missing.n);
    for (size_t i = 0; i < n && r == 0; i++) {
        struct rp_state_by by = { .store = orphans[i].store, .actor = mending->actor };
        if (!rp_ids_contain(missing.at, missing.n, orphans[i].id)) continue;
        r = rp_state_write_letter(tx, &by, mark_of(&marks, orphans[i].id), orphans[i].what, err);
        orphans[i].done = true;
    }
    return r;
}
