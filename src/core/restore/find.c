/* SPDX-License-Identifier: Apache-2.0 */
/* find.c - which marks a filter is about, the newest first. Only waiting marks are in the indexes
 * of prefix and reason, so what lies in quarantine is found by its copies, store by store. A copy
 * has the run that made it: by run, one index finds both. None of these indexes is in the order of
 * the marks that are looked for: a look goes through all that fits and keeps the highest ids, which
 * are then loaded and handed out from the highest down (restore.h, N9). The id that was handed out
 * last is the place where the next batch begins. A run that was left open by a version that went
 * upward begins anew (schema step 16): what came back is not met again, what was refused is asked,
 * and counted, once more. */
#include "core/restore/restore.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "core/subject/quarantine.h"

#include <stdlib.h>
#include <string.h>

#define PAGE           1000
#define PAGES_MOST     50 /* between two pauses */
#define PAGE_ARENA_MAX ((size_t)16 << 20)
#define IDS_LEAST      1024

enum stage { STAGE_OVER = -1, STAGE_THERE = 0, STAGE_LATE = 1 }; /* N9, N10; stored */

void rp_restore_walk_init(struct rp_restore_walk *walk, struct rp_db *db, const struct rp_restore_filter *filter,
                          const struct rp_restore_cursor *cursor)
{
    *walk = (struct rp_restore_walk){ .db = db, .filter = filter, .cursor = *cursor, .ids_max = RP_RESTORE_IDS_MAX };
}

void rp_restore_walk_done(struct rp_restore_walk *walk)
{
    free(walk->ids);
    walk->ids = NULL;
}

bool rp_restore_is_over(const struct rp_restore_cursor *cursor)
{
    return cursor->stage == STAGE_OVER;
}

/* ---- what fits ---- */

static bool fits(const struct rp_restore_filter *f, const struct rp_mark *m)
{
    if (f->upto_id != 0 && m->id > f->upto_id) return false;
    if (f->store_id != 0 && m->store_id != f->store_id) return false;
    if (f->store_id != 0 && strncmp(m->key, f->prefix, strlen(f->prefix)) != 0) return false;
    if (f->reason != NULL && strcmp(m->reason, f->reason) != 0) return false;
    if (f->actor != NULL && strcmp(m->actor, f->actor) != 0) return false;
    if (f->since_ms >= 0 && m->marked_at_ms < f->since_ms) return false;
    return f->until_ms < 0 || m->marked_at_ms < f->until_ms;
}

/* A copy that waits for the end of its time: the mark that it was made for. One without a run was
 * returned already. */
static bool is_copy_of(const struct rp_restore_walk *w, const struct rp_mark *copy, int64_t *original)
{
    bool late = w->filter->upto_id != 0 && copy->id > w->filter->upto_id;
    if (copy->run_id == 0 || copy->state != RP_MARKED || late != (w->cursor.stage == STAGE_LATE)) return false;
    return rp_quarantine_original(copy->key, original);
}

/* ---- the highest ids ---- */

static int grow(struct rp_restore_walk *w, struct rp_error *err)
{
    size_t room = w->room == 0 ? IDS_LEAST : 2 * w->room;
    if (room > w->ids_max) room = w->ids_max;
    int64_t *ids = realloc(w->ids, room * sizeof *ids);
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu ids", room);
    w->ids = ids;
    w->room = room;
    return 0;
}

/* The lower half is looked for again, once the others were handed out. */
static void drop_lower_half(struct rp_restore_walk *w)
{
    size_t n = rp_ids_sort(w->ids, w->n), kept = (n + 1) / 2;
    memmove(w->ids, w->ids + n - kept, kept * sizeof *w->ids);
    w->n = kept;
    w->floor = w->ids[0];
}

static int keep(struct rp_restore_walk *w, int64_t id, struct rp_error *err)
{
    RP_ASSERT(w->ids_max > 1);
    if (w->cursor.id != 0 && id >= w->cursor.id) return 0;
    w->found++;
    if (w->n == w->ids_max) drop_lower_half(w);
    if (id < w->floor) return 0;
    int r = w->n < w->room ? 0 : grow(w, err);
    if (r == 0) w->ids[w->n++] = id;
    return r;
}

static int keep_originals(struct rp_restore_walk *w, const int64_t *ids, size_t n, struct rp_arena *arena,
                          struct rp_error *err)
{
    struct rp_marks originals;
    int r = rp_marks_init(&originals, n + 1, arena, err);
    if (r == 0) r = rp_marks_these(w->db, ids, n, &originals, err);
    for (size_t i = 0; i < originals.n && r == 0; i++)
        if (fits(w->filter, &originals.at[i])) r = keep(w, originals.at[i].id, err);
    return r;
}

/* ---- a look ---- */

static bool may_come_back(const struct rp_mark *mark)
{
    bool asked = mark->state == RP_CHECKING && rp_mark_has_confirmations(mark);
    return mark->state == RP_MARKED || mark->state == RP_DEAD || asked;
}

static int keep_page(struct rp_restore_walk *w, const struct rp_marks *page, bool copies, struct rp_error *err)
{
    int64_t originals[PAGE];
    size_t n = 0;
    int r = 0;
    RP_ASSERT(page->n <= PAGE);
    for (size_t i = 0; i < page->n && r == 0; i++) {
        const struct rp_mark *mark = &page->at[i];
        if (rp_quarantine_is(mark->key))
            n += copies && is_copy_of(w, mark, &originals[n]);
        else if (w->cursor.stage == STAGE_THERE && may_come_back(mark) && fits(w->filter, mark))
            r = keep(w, mark->id, err);
    }
    return r == 0 && n > 0 ? keep_originals(w, originals, n, page->arena, err) : r;
}

/* Marks come in order of id by reason and by time: nothing that follows fits. */
static bool is_past(const struct rp_restore_walk *w, const struct rp_marks_query *q, const struct rp_mark *mark)
{
    bool above =
        (w->filter->upto_id != 0 && mark->id > w->filter->upto_id) || (w->cursor.id != 0 && mark->id >= w->cursor.id);
    return above && (q->by == RP_BY_REASON || q->by == RP_BY_SINCE);
}

static int look_through(struct rp_restore_walk *w, struct rp_marks_query q, bool copies, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(PAGE_ARENA_MAX);
    struct rp_marks page = { .n = 1 };
    int r = 0;
    for (int i = 1; r == 0 && page.n > 0; i++) {
        rp_arena_reset(&arena);
        r = rp_marks_init(&page, PAGE, &arena, err);
        if (r == 0) r = rp_marks_page(w->db, &q, &page, err);
        if (r == 0) r = keep_page(w, &page, copies, err);
        if (r == 0 && page.n > 0 && is_past(w, &q, &page.at[page.n - 1])) break;
        if (r == 0 && i % PAGES_MOST == 0 && w->pause != NULL) r = w->pause(w->ctx, err);
    }
    return r;
}

static struct rp_marks_query query_of(const struct rp_restore_filter *f)
{
    if (f->run_id != 0) return (struct rp_marks_query){ .by = RP_BY_RUN, .run_id = f->run_id };
    if (f->store_id != 0)
        return (struct rp_marks_query){ .by = RP_BY_PREFIX, .store_id = f->store_id, .text = f->prefix };
    if (f->reason != NULL) return (struct rp_marks_query){ .by = RP_BY_REASON, .text = f->reason };
    return (struct rp_marks_query){ .by = RP_BY_SINCE, .since_ms = f->since_ms >= 0 ? f->since_ms : 0 };
}

static int look_at_copies(struct rp_restore_walk *w, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(PAGE_ARENA_MAX);
    struct rp_store_rows stores;
    int r = rp_store_list(w->db, &arena, &stores, err);
    for (size_t i = 0; i < stores.n && r == 0; i++) {
        int64_t id = stores.at[i].id;
        struct rp_marks_query q = { .by = RP_BY_PREFIX, .store_id = id, .text = RP_STORE_QUARANTINE };
        if (w->filter->store_id == 0 || w->filter->store_id == id) r = look_through(w, q, true, err);
    }
    return r;
}

int rp_restore_look(struct rp_restore_walk *w, struct rp_error *err)
{
    bool by_run = w->filter->run_id != 0;
    int r = 0;
    RP_ASSERT(!rp_restore_is_over(&w->cursor));
    w->n = 0;
    w->floor = w->found = 0;
    if (by_run || w->cursor.stage == STAGE_THERE) r = look_through(w, query_of(w->filter), by_run, err);
    if (r == 0 && !by_run) r = look_at_copies(w, err);
    w->n = rp_ids_sort(w->ids, w->n);
    w->looked = r == 0;
    return r;
}

/* ---- handed out ---- */

/* N11 */
static size_t whole_families(const struct rp_restore_walk *w, size_t n, const struct rp_marks *found)
{
    if (n == w->n || found->n == 0 || found->at[found->n - 1].file_id == 0) return n;
    int64_t next_ms = rp_id_time_ms(w->ids[w->n - n - 1]);
    size_t whole = n;
    while (whole > 0 && rp_id_time_ms(w->ids[w->n - whole]) == next_ms)
        whole--;
    return whole > 0 ? whole : n;
}

static int hand_out(struct rp_restore_walk *w, struct rp_marks *out, struct rp_error *err)
{
    size_t n = w->n < out->max ? w->n : out->max;
    int64_t ids[PAGE];
    RP_ASSERT(n == 0 || w->ids != NULL);
    for (size_t i = 0; i < n; i++)
        ids[i] = w->ids[w->n - 1 - i];
    int r = n > 0 ? rp_marks_these(w->db, ids, n, out, err) : 0;
    if (r < 0 || n == 0) return r;
    n = whole_families(w, n, out);
    while (out->n > 0 && out->at[out->n - 1].id < ids[n - 1])
        out->n--;
    w->n -= n;
    w->cursor.id = ids[n - 1];
    return 0;
}

static void next_stage(struct rp_restore_walk *w)
{
    bool late = w->cursor.stage == STAGE_THERE && w->filter->upto_id != 0;
    w->cursor = (struct rp_restore_cursor){ .stage = late ? STAGE_LATE : STAGE_OVER };
    w->looked = false;
}

int rp_restore_next(struct rp_restore_walk *w, struct rp_marks *out, struct rp_error *err)
{
    int r = 0;
    RP_ASSERT(out->max <= PAGE);
    out->n = 0;
    while (r == 0 && w->n == 0 && !rp_restore_is_over(&w->cursor)) {
        if (w->looked && w->floor == 0)
            next_stage(w);
        else
            r = rp_restore_look(w, err);
    }
    return r == 0 ? hand_out(w, out, err) : r;
}

int rp_restore_each(struct rp_db *db, const struct rp_restore_filter *filter, rp_restore_fn *fn, void *ctx,
                    struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(PAGE_ARENA_MAX);
    RP_CLEANUP(rp_restore_walk_done) struct rp_restore_walk walk;
    int r = 0;
    rp_restore_walk_init(&walk, db, filter, &(struct rp_restore_cursor){ 0 });
    while (r == 0 && !rp_restore_is_over(&walk.cursor)) {
        struct rp_marks page;
        rp_arena_reset(&arena);
        r = rp_marks_init(&page, PAGE, &arena, err);
        if (r == 0) r = rp_restore_next(&walk, &page, err);
        for (size_t i = 0; i < page.n && r == 0; i++)
            r = fn(ctx, &page.at[i], err);
    }
    return r < 0 ? r : 0;
}
