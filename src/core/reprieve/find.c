/* SPDX-License-Identifier: Apache-2.0 */
/* find.c - which marks a filter is about. A walk has stages: first the marks themselves,
 * then, unless the filter names a run, the copies in quarantine of one store after the other: only
 * waiting marks are in the indexes of prefix and reason, so what lies in quarantine is found by its
 * copies. A copy has the run that made it: by run, one stage finds both. */
#include "core/reprieve/restore.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "core/state.h"
#include "core/subject/quarantine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE           1000
#define PAGES_MOST     50 /* looked at for one page of what fits */
#define PAGE_ARENA_MAX ((size_t)16 << 20)
#define STAGE_MARKS    0 /* else: the copies of the store with this number */
#define STAGE_OVER     (-1)

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

/* A copy in quarantine stands for the mark that it was made for. One without a run was returned already. */
static int take_original(struct rp_db *db, const struct rp_restore_filter *f, const struct rp_mark *copy,
                         struct rp_marks *out, struct rp_error *err)
{
    struct rp_mark original;
    enum rp_id_kind kind;
    int64_t id;
    if (copy->run_id == 0 || copy->state != RP_MARKED) return 0;
    if (!rp_id_parse(copy->key + strlen(RP_STORE_QUARANTINE), &kind, &id) || kind != RP_ID_MARK) return 0;
    int r = rp_mark_get(db, id, out->arena, &original, err);
    if (r == 0 && fits(f, &original)) out->at[out->n++] = original;
    return r;
}

static int take(struct rp_db *db, const struct rp_restore_filter *f, int64_t stage, const struct rp_mark *mark,
                struct rp_marks *out, struct rp_error *err)
{
    bool by_copies = stage != STAGE_MARKS || f->run_id != 0;
    if (rp_quarantine_is(mark->key)) return by_copies ? take_original(db, f, mark, out, err) : 0;
    if (mark->state != RP_MARKED || !fits(f, mark)) return 0;
    int r = rp_mark_copy(mark, out->arena, &out->at[out->n], err);
    out->n += r == 0;
    return r;
}

static struct rp_marks_query query_of(const struct rp_restore_filter *f, const struct rp_restore_cursor *c)
{
    struct rp_marks_query q = { .by = RP_BY_SINCE, .since_ms = f->since_ms >= 0 ? f->since_ms : 0 };
    if (c->stage != STAGE_MARKS)
        q = (struct rp_marks_query){ .by = RP_BY_PREFIX, .store_id = c->stage, .text = RP_STORE_QUARANTINE };
    else if (f->run_id != 0)
        q = (struct rp_marks_query){ .by = RP_BY_RUN, .run_id = f->run_id };
    else if (f->store_id != 0)
        q = (struct rp_marks_query){ .by = RP_BY_PREFIX, .store_id = f->store_id, .text = f->prefix };
    else if (f->reason != NULL)
        q = (struct rp_marks_query){ .by = RP_BY_REASON, .text = f->reason };
    q.begun = c->id != 0;
    q.cursor_id = c->id;
    snprintf(q.cursor_key, sizeof q.cursor_key, "%s", c->key);
    return q;
}

/* The store whose copies come next. */
static int next_stage(struct rp_db *db, const struct rp_restore_filter *f, struct rp_restore_cursor *c,
                      struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(PAGE_ARENA_MAX);
    struct rp_store_rows stores;
    int64_t before = c->stage;
    *c = (struct rp_restore_cursor){ .stage = STAGE_OVER };
    if (f->run_id != 0) return 0;
    int r = rp_store_list(db, &arena, &stores, err);
    for (size_t i = 0; i < stores.n && r == 0 && c->stage == STAGE_OVER; i++) {
        int64_t id = stores.at[i].id;
        if (id > before && (f->store_id == 0 || f->store_id == id)) c->stage = id;
    }
    return r;
}

/* Marks come in order of id by reason and by time: nothing that follows fits. */
static bool is_past(const struct rp_restore_filter *f, const struct rp_marks_query *q, const struct rp_mark *mark)
{
    return f->upto_id != 0 && mark->id > f->upto_id && (q->by == RP_BY_REASON || q->by == RP_BY_SINCE);
}

static int look(struct rp_db *db, const struct rp_restore_filter *f, struct rp_restore_cursor *c, struct rp_marks *page,
                struct rp_marks *out, struct rp_error *err)
{
    struct rp_marks_query q = query_of(f, c);
    int r = rp_marks_page(db, &q, page, err);
    if (r < 0) return r;
    for (size_t i = 0; i < page->n && r == 0; i++)
        r = take(db, f, c->stage, &page->at[i], out, err);
    if (r < 0) return r;
    if (page->n == 0 || is_past(f, &q, &page->at[page->n - 1])) return next_stage(db, f, c, err);
    c->id = q.cursor_id;
    snprintf(c->key, sizeof c->key, "%s", q.cursor_key);
    return 0;
}

bool rp_restore_is_over(const struct rp_restore_cursor *cursor)
{
    return cursor->stage == STAGE_OVER;
}

int rp_restore_page(struct rp_db *db, const struct rp_restore_filter *filter, struct rp_restore_cursor *cursor,
                    struct rp_marks *out, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(PAGE_ARENA_MAX);
    int r = 0;
    for (int i = 0; i < PAGES_MOST && r == 0 && out->n <= out->max / 2 && !rp_restore_is_over(cursor); i++) {
        struct rp_marks page;
        rp_arena_reset(&arena);
        r = rp_marks_init(&page, out->max - out->n, &arena, err);
        if (r == 0) r = look(db, filter, cursor, &page, out, err);
    }
    return r;
}

int rp_restore_each(struct rp_db *db, const struct rp_restore_filter *filter, rp_restore_fn *fn, void *ctx,
                    struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(PAGE_ARENA_MAX);
    struct rp_restore_cursor cursor = { .stage = STAGE_MARKS };
    int r = 0;
    while (r == 0 && !rp_restore_is_over(&cursor)) {
        struct rp_marks page;
        rp_arena_reset(&arena);
        r = rp_marks_init(&page, PAGE, &arena, err);
        if (r == 0) r = rp_restore_page(db, filter, &cursor, &page, err);
        for (size_t i = 0; i < page.n && r == 0; i++)
            r = fn(ctx, &page.at[i], err);
    }
    return r < 0 ? r : 0;
}

json_t *rp_restore_filter_json(struct rp_db *db, const struct rp_restore_filter *f)
{
    char id[RP_ID_TEXT], store[RP_STORE_NAME] = "?";
    struct rp_error ignored = { 0 };
    json_t *o = json_object();
    if (f->run_id != 0) rp_json_set(o, "run", json_string(rp_id_format(RP_ID_RUN, f->run_id, id)));
    if (f->store_id != 0) {
        (void)rp_store_name(db, f->store_id, store, &ignored);
        rp_json_set(o, "prefix", rp_subject_json(store, f->prefix));
    }
    if (f->reason != NULL) rp_json_set(o, "reason", rp_json_text(f->reason));
    if (f->actor != NULL) rp_json_set(o, "actor", rp_json_text(f->actor));
    if (f->since_ms >= 0) rp_json_set(o, "since", rp_json_time(f->since_ms));
    if (f->until_ms >= 0) rp_json_set(o, "until", rp_json_time(f->until_ms));
    return o;
}
