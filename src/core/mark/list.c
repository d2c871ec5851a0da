/* SPDX-License-Identifier: Apache-2.0 */
#include "core/mark/list.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/time.h"
#include "core/state.h"

#include <string.h>

#define PAGE           1000
#define PAGE_LEAST     100
#define PAGE_ARENA_MAX ((size_t)16 << 20)
#define STORES_ARENA   ((size_t)1 << 20)

struct listing {
    struct rp_db *db;
    const struct rp_list_filter *filter;
    struct rp_list_cursor *cursor;
    int64_t left; /* marks that may still be looked at */
    struct rp_marks *out;
};

int64_t rp_list_slack_ms(const struct rp_config *config)
{
    return 2 * RP_HOUR_MS + 2 * config->sweep_retry_most_ms + 2 * config->sweep_lease_ms;
}

static bool fits(const struct rp_list_filter *f, const struct rp_mark *m)
{
    if (f->store_id != 0 && m->store_id != f->store_id) return false;
    if (f->reason != NULL && strcmp(m->reason, f->reason) != 0) return false;
    if (f->state != 0 ? m->state != f->state : m->state == RP_DEAD) return false;
    return f->due_before_ms < 0 || m->due_at_ms < f->due_before_ms;
}

static bool full(const struct listing *l)
{
    return l->out->n == l->out->max || l->left <= 0;
}

/* The cursor stands after the last mark that was looked at, which may not be the last of its
 * page. */
static int look(struct listing *l, const struct rp_marks_query *query, const struct rp_mark *m, struct rp_error *err)
{
    l->left--;
    l->cursor->store_id = query->store_id;
    l->cursor->ms = query->by == RP_BY_ENDED ? m->ended_at_ms : m->next_at_ms;
    l->cursor->id = m->id;
    if (!fits(l->filter, m)) return 0;
    int r = rp_mark_copy(m, l->out->arena, &l->out->at[l->out->n], err);
    if (r == 0) l->out->n++;
    return r;
}

/* Sets *ended when the query has nothing more. */
static int walk(struct listing *l, struct rp_marks_query *query, bool *ended, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(PAGE_ARENA_MAX);
    *ended = false;
    while (!full(l)) {
        struct rp_marks page;
        size_t wanted = l->out->max - l->out->n;
        rp_arena_reset(&arena);
        int r = rp_marks_init(&page, wanted < PAGE_LEAST ? PAGE_LEAST : wanted < PAGE ? wanted : PAGE, &arena, err);
        if (r == 0) r = rp_marks_page(l->db, query, &page, err);
        for (size_t i = 0; r == 0 && i < page.n && !full(l); i++)
            r = look(l, query, &page.at[i], err);
        *ended = page.n == 0;
        if (r < 0 || *ended) return r;
    }
    return 0;
}

static void resume(const struct rp_list_cursor *cursor, struct rp_marks_query *query)
{
    if (cursor->id == 0 || cursor->store_id != query->store_id) return;
    query->begun = true;
    query->cursor_ms = cursor->ms;
    query->cursor_id = cursor->id;
}

static int walk_one(struct listing *l, struct rp_marks_query query, struct rp_error *err)
{
    bool ended;
    resume(l->cursor, &query);
    int r = walk(l, &query, &ended, err);
    l->cursor->done = r == 0 && ended;
    return r;
}

/* The index is on the time of the next look. */
static int64_t look_before(const struct rp_list_filter *f)
{
    if (f->due_before_ms < 0 || f->due_before_ms > RP_TIME_MAX_MS - f->slack_ms) return RP_TIME_MAX_MS;
    return f->due_before_ms + f->slack_ms;
}

/* Store by store in order of id: the cursor's is where the walk goes on. */
static int walk_waiting(struct listing *l, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(STORES_ARENA);
    struct rp_store_rows stores;
    int64_t from = l->cursor->store_id, only = l->filter->store_id;
    bool ended = true;
    int r = rp_store_list(l->db, &arena, &stores, err);
    for (size_t i = 0; i < stores.n && r == 0 && ended; i++) {
        int64_t id = stores.at[i].id;
        struct rp_marks_query query = { .by = RP_BY_DUE, .store_id = id, .before_ms = look_before(l->filter) };
        if (id < from || (only != 0 && id != only)) continue;
        resume(l->cursor, &query);
        r = walk(l, &query, &ended, err);
    }
    l->cursor->done = r == 0 && ended;
    return r;
}

int rp_marks_list(struct rp_db *db, const struct rp_list_filter *f, struct rp_list_cursor *cursor, int64_t looked_max,
                  struct rp_marks *out, struct rp_error *err)
{
    struct listing l = { .db = db, .filter = f, .cursor = cursor, .left = looked_max, .out = out };
    if (f->state != 0 && rp_state_final(f->state))
        return walk_one(
            &l, (struct rp_marks_query){ .by = RP_BY_ENDED, .state = f->state, .before_ms = RP_TIME_MAX_MS }, err);
    if (f->state == RP_DEAD) return walk_one(&l, (struct rp_marks_query){ .by = RP_BY_DEAD }, err);
    if (f->reason != NULL) return walk_one(&l, (struct rp_marks_query){ .by = RP_BY_REASON, .text = f->reason }, err);
    return walk_waiting(&l, err);
}
