/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/json.h"
#include "lib/restoring.h"

static struct rp_error err;

static void batch_finished(void *ctx, const struct rp_run *run, const struct rp_reprieve_item *items, size_t n)
{
    struct restoring *t = ctx;
    (void)run, (void)items;
    assert_true(n <= RP_REPRIEVE_ITEMS_MAX);
    if (t->batches++ == 0 && t->between != NULL) t->between(t);
}

struct restoring *restoring_new(struct world *w, struct rp_catalog *catalog)
{
    struct restoring *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->w = w;
    t->catalog = catalog;
    t->restorer = (struct rp_restorer){ .catalog = catalog,
                                        .stores = w->stores,
                                        .n_stores = 1,
                                        .cancel = &t->cancel,
                                        .stop = &t->stop,
                                        .finished = batch_finished,
                                        .ctx = t };
    return t;
}

void restoring_free(struct restoring **t)
{
    free(*t);
}

void restoring_begin(struct restoring *t, const struct rp_restore_filter *filter)
{
    ok(rp_restore_begin(t->catalog, filter, "all", &t->w->worker, "tester", &t->run, &err));
}

const char *restoring_carry(struct restoring *t)
{
    ok(rp_restore_carry(&t->restorer, &t->run, &t->outcome, &err));
    return t->outcome;
}

static int keep_record(void *ctx, const struct rp_record_row *row, struct rp_error *e)
{
    return rp_json_parse(row->body, strlen(row->body), ctx, e);
}

int64_t restoring_counted(struct world *w, int64_t run_id, const char *what)
{
    RP_CLEANUP(rp_json_decrefp) json_t *record = NULL;
    ok(rp_record_get(w->catalog->db, run_id, keep_record, &record, &err));
    return rp_json_get_int(json_object_get(record, "counts"), what, -1);
}

void restoring_expect(struct world *w, int64_t run_id, const char *outcome)
{
    RP_CLEANUP(rp_json_decrefp) json_t *record = NULL;
    ok(rp_record_get(w->catalog->db, run_id, keep_record, &record, &err));
    assert_string_equal(rp_json_get_text(record, "outcome", ""), outcome);
    assert_null(json_object_get(record, "progress")); /* it is over */
}

void restoring_put_due(struct world *w, const char *key)
{
    world_put(w, key, "x");
    assert_int_equal(world_mark(w, key, 0).what, RP_MARK_CREATED);
}

void restoring_mark_many(struct world *w, size_t n)
{
    world_put_many(w, n, 1);
    world_mark_many(w, n, RP_DAY_MS);
}

struct rp_restore_filter restoring_prefix(struct world *w, const char *prefix)
{
    return (struct rp_restore_filter){ .store_id = w->store.id, .prefix = prefix, .since_ms = -1, .until_ms = -1 };
}

void restoring_stop(struct restoring *t)
{
    t->stop = 1;
}

void restoring_resume(struct restoring *t)
{
    ok(rp_run_resume(t->catalog, RP_RUN_RESTORE, &t->w->worker, RESTORING_STALE, &t->run, &err));
}
