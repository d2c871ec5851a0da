/* SPDX-License-Identifier: Apache-2.0 */
#include "core/undo.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "core/subject/subject.h"

#include <string.h>

#define PAGE           1000
#define PAGE_ARENA_MAX ((size_t)16 << 20)
#define STORES_MAX     256

struct undo {
    struct rp_db *db;
    const struct rp_undo_filter *filter;
    rp_undo_fn *fn;
    void *ctx;
    bool stopped;
};

static bool fits(const struct rp_undo_filter *f, const struct rp_mark *m)
{
    if (f->store_id != 0 && m->store_id != f->store_id) return false;
    if (f->store_id != 0 && strncmp(m->key, f->prefix, strlen(f->prefix)) != 0) return false;
    if (f->reason != NULL && strcmp(m->reason, f->reason) != 0) return false;
    if (f->actor != NULL && strcmp(m->actor, f->actor) != 0) return false;
    if (f->since_ms >= 0 && m->marked_at_ms < f->since_ms) return false;
    return f->until_ms < 0 || m->marked_at_ms < f->until_ms;
}

static int give(struct undo *u, const struct rp_mark *mark, struct rp_error *err)
{
    int r = u->fn(u->ctx, mark, err);
    u->stopped = r != 0;
    return r < 0 ? r : 0;
}

/* A copy in quarantine stands for the mark that it was made for. One without a run was returned already. */
static int give_original(struct undo *u, const struct rp_mark *aside, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA((size_t)1 << 16);
    enum rp_id_kind kind;
    int64_t id;
    struct rp_mark original;
    if (aside->run_id == 0 || aside->state != RP_MARKED) return 0;
    if (!rp_id_parse(aside->key + strlen(RP_STORE_QUARANTINE), &kind, &id) || kind != RP_ID_MARK) return 0;
    int r = rp_mark_get(u->db, id, &arena, &original, err);
    if (r < 0 || !fits(u->filter, &original)) return r;
    return give(u, &original, err);
}

static int give_mark(struct undo *u, const struct rp_mark *mark, struct rp_error *err)
{
    if (rp_quarantine_is(mark->key)) return u->filter->run_id != 0 ? give_original(u, mark, err) : 0;
    if (mark->state != RP_MARKED || !fits(u->filter, mark)) return 0;
    return give(u, mark, err);
}

typedef int take_fn(struct undo *u, const struct rp_mark *mark, struct rp_error *err);

static int walk(struct undo *u, struct rp_marks_query *query, take_fn *take, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(PAGE_ARENA_MAX);
    for (;;) {
        struct rp_marks page;
        rp_arena_reset(&arena);
        int r = rp_marks_init(&page, PAGE, &arena, err);
        if (r == 0) r = rp_marks_page(u->db, query, &page, err);
        if (r < 0 || page.n == 0) return r;
        for (size_t i = 0; i < page.n && r == 0 && !u->stopped; i++)
            r = take(u, &page.at[i], err);
        if (r < 0 || u->stopped) return r;
    }
}

/* Only waiting marks are in the indexes of prefix and reason: what lies in quarantine is found by its copies. */
static int walk_quarantine(struct undo *u, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct rp_store_row *stores = calloc(STORES_MAX, sizeof *stores);
    size_t n = 0;
    if (stores == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the list of stores");
    int r = rp_store_list(u->db, stores, STORES_MAX, &n, err);
    for (size_t i = 0; i < n && r == 0 && !u->stopped; i++) {
        struct rp_marks_query query = { .by = RP_BY_PREFIX, .store_id = stores[i].id, .text = RP_STORE_QUARANTINE };
        if (u->filter->store_id != 0 && u->filter->store_id != stores[i].id) continue;
        r = walk(u, &query, give_original, err);
    }
    return r;
}

int rp_undo_each(struct rp_db *db, const struct rp_undo_filter *f, rp_undo_fn *fn, void *ctx, struct rp_error *err)
{
    struct undo u = { .db = db, .filter = f, .fn = fn, .ctx = ctx };
    struct rp_marks_query query = { .by = RP_BY_SINCE, .since_ms = f->since_ms >= 0 ? f->since_ms : 0 };
    if (f->run_id != 0) {
        query = (struct rp_marks_query){ .by = RP_BY_RUN, .run_id = f->run_id };
        return walk(&u, &query, give_mark, err);
    }
    if (f->store_id != 0)
        query = (struct rp_marks_query){ .by = RP_BY_PREFIX, .store_id = f->store_id, .text = f->prefix };
    else if (f->reason != NULL)
        query = (struct rp_marks_query){ .by = RP_BY_REASON, .text = f->reason };
    int r = walk(&u, &query, give_mark, err);
    return r < 0 || u.stopped ? r : walk_quarantine(&u, err);
}
