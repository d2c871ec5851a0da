/* SPDX-License-Identifier: Apache-2.0 */
/* older.c - what waits for another mark: a purge that would take older versions along, while one of
 * them is in quarantine (S10); and a version in quarantine that was shown again and marked anew,
 * while that mark lasts (S11). */
#include "base/error.h"
#include "core/purge/batch.h"
#include "core/subject/subject.h"

typedef int choose_fn(struct rp_db *db, const int64_t *ids, size_t n, const char *returned, struct rp_arena *arena,
                      int64_t *out, size_t *n_out, struct rp_error *err);

static const struct {
    bool in_place; /* it is about what is hidden; else about what an erase takes along */
    choose_fn *choose;
    const char *note;
} reasons[] = {
    { false, rp_marks_on_older, "an older version of it is in quarantine" },
    { true, rp_marks_hidden_again, "it was shown again, and marked anew" },
};

/* What was returned is erased by nobody. */
static bool is_asked_about(const struct rp_store *store, const struct rp_purge_item *item, bool in_place)
{
    if (item->status != RP_ITEM_CLAIMED || rp_quarantine_is_returned(item->mark)) return false;
    return in_place ? item->mark->in_place : !rp_subject_stays_in_place(store, item->mark);
}

static void let_wait(struct rp_purge_batch *b, int64_t mark_id, const char *note)
{
    for (size_t i = 0; i < b->marks.n; i++) {
        struct rp_purge_item *item = &b->items[i];
        if (item->mark->id == mark_id) rp_purge_set_status(item, RP_ITEM_WAITS, "%s", note);
    }
}

static int load_waiting(struct rp_catalog *catalog, struct rp_purge_batch *b, size_t why, struct rp_error *err)
{
    int64_t *ids = rp_arena_array(&b->arena, b->marks.n + 1, sizeof *ids);
    int64_t *wait = rp_arena_array(&b->arena, b->marks.n + 1, sizeof *wait);
    size_t n = 0, found = 0;
    if (ids == NULL || wait == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = 0; i < b->marks.n; i++)
        if (is_asked_about(b->store, &b->items[i], reasons[why].in_place)) ids[n++] = b->marks.at[i].id;
    int r = n == 0 ? 0 : reasons[why].choose(catalog->db, ids, n, RP_REASON_RETURNED, &b->arena, wait, &found, err);
    for (size_t i = 0; i < found; i++)
        let_wait(b, wait[i], reasons[why].note);
    return r;
}

int rp_purge_load(struct rp_catalog *catalog, struct rp_purge_batch *b, struct rp_error *err)
{
    int r = rp_purge_load_returns(catalog, b, err);
    if (!rp_subject_may_have_older(b->store)) return r;
    for (size_t why = 0; why < sizeof reasons / sizeof reasons[0] && r == 0; why++)
        r = load_waiting(catalog, b, why, err);
    return r;
}
