/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/world.h"
#include "lib/ask.h"
#include "lib/bytes.h"
#include "lib/stores.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/buf.h"
#include "core/subject/quarantine.h"
#include "store/open.h"

#define BATCH 1000

static struct rp_error err;

void world_ok(int r, const struct rp_error *why, const char *file, int line)
{
    if (r < 0) print_error("%s:%d: %s (%s)\n", file, line, why->text, rp_error_slug(r));
    assert_int_equal(r, 0);
}

/* ---- the parts ---- */

static int64_t host_now(void *ctx)
{
    struct world *w = ctx;
    return rp_clock_now_ms(&rp_clock_host) + atomic_load(&w->host_ahead_ms);
}

static int64_t db_now(void *ctx)
{
    struct world *w = ctx;
    return rp_clock_now_ms(&rp_clock_host) + atomic_load(&w->db_ahead_ms);
}

static int count_call(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    static const char *const names[WORLD_CALLS] = { "put", "get", "stat", "remove", "copy", "annotate", "" };
    struct world *w = ctx;
    size_t i = 0;
    while (i < WORLD_OTHER && strcmp(names[i], call) != 0)
        i++;
    bool item = i == WORLD_REMOVE && key != NULL;
    atomic_fetch_add(item ? &w->removed : &w->calls[i], 1);
    return w->before != NULL ? w->before(w->ctx, call, key, e) : 0;
}

static int pass_after(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    struct world *w = ctx;
    return w->after != NULL ? w->after(w->ctx, call, key, e) : 0;
}

struct rp_catalog *world_catalog(struct world *w, int lane, const struct rp_db_fault *fault)
{
    struct rp_catalog *catalog = NULL;
    struct rp_catalog_options options = { .clock = &w->host_clock, .lane = lane };
    struct rp_db *db = dbs_open_again(&w->dbs, &(struct rp_db_options){ .clock = &w->db_clock });
    if (fault != NULL) ok(rp_db_fault_wrap(db, fault, &db, &err));
    ok(rp_catalog_adopt(db, &options, &catalog, &err));
    return catalog;
}

static void make_store(struct world *w, enum world_store store_name)
{
    const struct rp_backend_fault hooks = { count_call, pass_after, w };
    snprintf(w->root, sizeof w->root, "%s/objects", w->dbs.dir);
    if (store_name == WORLD_MEMORY)
        ok(rp_memory_open(&w->inner, &err));
    else
        ok(rp_fs_open(w->root, true, &w->inner, &err));
    ok(rp_backend_fault_wrap(w->inner, &hooks, &w->store.backend, &err));
}

void world_make(struct world *w, enum dbs_kind kind, enum world_store store_name)
{
    struct rp_store_row row;
    memset(w, 0, sizeof *w);
    w->host_clock = (struct rp_clock){ .now_ms = host_now, .ctx = w };
    w->db_clock = (struct rp_clock){ .now_ms = db_now, .ctx = w };
    w->arena = RP_ARENA((size_t)64 << 20);
    w->config = (struct rp_store_config){ .name = "main",
                                          .type = "fs",
                                          .path = w->root,
                                          .mode = RP_MODE_PURGE,
                                          .grace_ms = 5 * RP_DAY_MS,
                                          .allow_any_grace = true,
                                          .quarantine_ms = 7 * RP_DAY_MS };
    w->worker = (struct rp_worker){ .name = "worker" };
    w->uploads = (struct rp_upload_rules){ .expire_ms = RP_HOUR_MS,
                                           .max_size_bytes = 1000,
                                           .max_open_per_tenant = 1000000,
                                           .quota_default_bytes = 100000,
                                           .txn_timeout_ms = RP_HOUR_MS,
                                           .rollback_grace_ms = 5 * RP_DAY_MS };
    w->stores[0] = &w->store;
    w->rules = (struct rp_purge_rules){ .batch = 100,
                                        .lease_ms = 2 * RP_MINUTE_MS,
                                        .max_attempts = 3,
                                        .retry_first_ms = RP_SECOND_MS,
                                        .retry_most_ms = RP_MINUTE_MS,
                                        .random = 1 };
    dbs_make(&w->dbs, kind, NULL);
    make_store(w, store_name);
    w->catalog = world_catalog(w, 0, NULL);
    ok(rp_store_get(w->catalog, RP_STORE_STORE, "main", &row, &err));
    w->store.id = row.id;
    w->store.config = &w->config;
    w->store.environment = "test";
    w->store.level = RP_LEVEL_EXACT;
}

void world_drop(struct world *w)
{
    rp_catalog_close(w->catalog);
    rp_backend_close(w->store.backend);
    rp_backend_close(w->inner);
    rp_arena_done(&w->arena);
    dbs_drop(&w->dbs);
}

int world_set_up(void **state)
{
    uintptr_t which = (uintptr_t)*state;
    struct world *w = calloc(1, sizeof *w);
    if (w == NULL) return -1;
    world_make(w, which & WORLD_POSTGRES ? DBS_POSTGRES : DBS_SQLITE_FILE,
               which & WORLD_FILES ? WORLD_FS : WORLD_MEMORY);
    *state = w;
    return 0;
}

int world_leave(void **state)
{
    world_drop(*state);
    free(*state);
    return 0;
}

int world_tear_down(void **state)
{
    world_check(*state);
    return world_leave(state);
}

void world_count_anew(struct world *w)
{
#define WAITS                                                                                                          \
    "CASE WHEN state IN (1, 2, 3) AND (file_id IS NULL OR etag <> '' OR version <> '' OR original IS NOT NULL) "
    world_script(w, "%s",
                 "DELETE FROM tally;"
                 "INSERT INTO tally (lane, store_id, state, marks, bytes, waiting, waiting_bytes, marked_at_s) "
                 "SELECT 0, store_id, state, COUNT(*), CAST(SUM(size_bytes) AS BIGINT), "
                 "CAST(SUM(" WAITS "THEN 1 ELSE 0 END) AS BIGINT), CAST(SUM(" WAITS
                 "THEN size_bytes ELSE 0 END) AS BIGINT), "
                 "CAST(SUM(" WAITS "THEN marked_at / 1000 ELSE 0 END) AS BIGINT) FROM mark GROUP BY store_id, state");
#undef WAITS
}

void world_pass(struct world *w, int64_t ms)
{
    world_script(w,
                 "UPDATE mark SET next_at = next_at - %" PRId64 ", due_at = due_at - %" PRId64 ","
                 " marked_at = marked_at - %" PRId64 ";"
                 "UPDATE tally SET marked_at_s = marked_at_s - waiting * (%" PRId64 " / 1000);"
                 "UPDATE file SET url_ends_at = url_ends_at - %" PRId64 ";"
                 "UPDATE txn SET ends_at = ends_at - %" PRId64 ";"
                 "UPDATE confirmation SET asked_at = asked_at - %" PRId64 ", until_at = until_at - %" PRId64 ";"
                 "UPDATE run_lock SET locked_at = locked_at - %" PRId64 ";"
                 "UPDATE lane SET heads_at = heads_at - %" PRId64 ";"
                 "UPDATE meta SET number = number - %" PRId64 " WHERE name LIKE 'epoch_raised_at%%';",
                 ms, ms, ms, ms, ms, ms, ms, ms, ms, ms, ms);
}

void world_days(struct world *w, int days)
{
    for (; days > 0; days--) {
        world_pass(w, 26 * RP_HOUR_MS);
        assert_int_equal(world_sweep(w)->code, 0);
    }
}

/* ---- objects ---- */

void world_put(struct world *w, const char *key, const char *text)
{
    static const struct rp_pair headers[] = { { "cache-control", "no-store" }, { "content-type", "image/png" } };
    static const struct rp_pair user[] = { { "owner", "ada" }, { "purpose", "avatar" } };
    const struct rp_meta meta = { headers, 2, user, 2 };
    struct bytes from = { text, strlen(text) };
    struct rp_identity identity;
    ok(rp_backend_put(w->inner, key, &(struct rp_source){ bytes_read, &from }, &meta, RP_PUT_REPLACE, &identity, &err));
}

static const char *many_key(size_t i, char out[32])
{
    snprintf(out, 32, "many/%05zu", i);
    return out;
}

void world_put_many(struct world *w, size_t n, size_t n_bytes)
{
    RP_CLEANUP(rp_freep) char *text = calloc(n_bytes + 1, 1);
    memset(text, 'x', n_bytes);
    for (size_t i = 0; i < n; i++) {
        char key[32];
        struct bytes from = { text, n_bytes };
        struct rp_identity identity;
        struct rp_source source = { bytes_read, &from };
        ok(rp_backend_put(w->inner, many_key(i, key), &source, NULL, RP_PUT_REPLACE, &identity, &err));
    }
}

bool world_exists(struct world *w, const char *key)
{
    struct rp_item item = { .key = key };
    ok(rp_backend_stat(w->inner, &item, 1, &err));
    assert_true(item.outcome == RP_OUT_FOUND || item.outcome == RP_OUT_GONE);
    return item.outcome == RP_OUT_FOUND;
}

const char *world_text(struct world *w, const char *key)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf bytes = RP_BUF(1 << 20);
    struct rp_meta meta;
    struct rp_identity identity;
    int r = rp_backend_get(w->inner, key, &(struct rp_sink){ bytes_take, &bytes }, &w->arena, &meta, &identity, &err);
    if (r == RP_ENOTFOUND) return NULL;
    ok(r);
    return rp_arena_strdup(&w->arena, rp_buf_text(&bytes));
}

static const char *find_pair(const struct rp_pair *pairs, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(pairs[i].name, name) == 0) return pairs[i].value;
    return NULL;
}

const char *world_field(struct world *w, const char *key, const char *name)
{
    struct rp_meta meta;
    struct rp_identity identity;
    ok(rp_backend_get(w->inner, key, NULL, &w->arena, &meta, &identity, &err));
    const char *value = find_pair(meta.headers, meta.n_headers, name);
    return value != NULL ? value : find_pair(meta.user, meta.n_user, name);
}

void world_remove(struct world *w, const char *key)
{
    struct rp_item item = { .key = key };
    ok(rp_backend_stat(w->inner, &item, 1, &err));
    ok(rp_backend_remove(w->inner, &item, 1, NULL, &err));
    assert_int_equal(item.outcome, RP_OUT_DELETED);
}

void world_expect_object(struct world *w, const char *key, const char *text)
{
    const char *found = world_text(w, key);
    assert_non_null(found);
    assert_string_equal(found, text);
    assert_string_equal(world_field(w, key, "content-type"), "image/png");
    assert_string_equal(world_field(w, key, "cache-control"), "no-store");
    assert_string_equal(world_field(w, key, "owner"), "ada");
    assert_string_equal(world_field(w, key, "purpose"), "avatar");
}

/* ---- verbs ---- */

struct rp_mark_answer world_mark(struct world *w, const char *key, int64_t grace_ms)
{
    struct rp_mark_request request = { .key = key, .grace_ms = grace_ms, .at_ms = -1, .reason = "test" };
    struct rp_mark_answer answer;
    ok(rp_mark_many(w->catalog, &w->store, &request, 1, "tester", false, &answer, &err));
    return answer;
}

void world_mark_many(struct world *w, size_t n, int64_t grace_ms)
{
    static struct rp_mark_answer answers[BATCH];
    struct rp_mark_request requests[BATCH];
    char keys[BATCH][32];
    for (size_t first = 0; first < n; first += BATCH) {
        size_t count = n - first < BATCH ? n - first : BATCH;
        for (size_t i = 0; i < count; i++)
            requests[i] = (struct rp_mark_request){
                .key = many_key(first + i, keys[i]), .grace_ms = grace_ms, .at_ms = -1, .reason = "many"
            };
        ok(rp_mark_many(w->catalog, &w->store, requests, count, "tester", false, answers, &err));
        for (size_t i = 0; i < count; i++)
            assert_int_equal(answers[i].what, RP_MARK_CREATED);
    }
}

struct rp_mark world_newest(struct world *w, const char *key)
{
    struct rp_mark mark;
    ok(ask_newest(w->catalog, &w->store, key, &w->arena, &mark, &err));
    return mark;
}

struct rp_reprieve_answer world_restore(struct world *w, const char *key)
{
    struct rp_mark mark = world_newest(w, key);
    struct rp_reprieve_answer answer;
    ok(rp_reprieve_many(w->catalog, &w->store, &mark, 1, "tester", &answer, &err));
    return answer;
}

struct rp_sweep world_sweeper(struct world *w, struct rp_catalog *catalog, const char *name)
{
    struct rp_store **stores = rp_arena_alloc(&w->arena, sizeof(struct rp_store *));
    stores[0] = &w->store;
    return (struct rp_sweep){ .by.catalog = catalog,
                              .by.stores = stores,
                              .by.n_stores = 1,
                              .name = name,
                              .by.environment = "test",
                              .by.worker = &w->worker,
                              .by.rules = w->rules,
                              .limit = 100000,
                              .stale_after_ms = 30 * RP_MINUTE_MS };
}

struct rp_sweep_result *world_sweep(struct world *w)
{
    struct rp_sweep sweeper = world_sweeper(w, w->catalog, "main");
    struct rp_sweep_result *result = rp_arena_alloc(&w->arena, sizeof *result);
    ok(rp_sweep_run(&sweeper, result, &err));
    return result;
}

struct rp_sweep_result *world_swept(struct world *w, int64_t purged)
{
    struct rp_sweep_result *result = world_sweep(w);
    const struct rp_figures *figures = &result->run.figures;
    for (int64_t i = 0; i < figures->n_errors && i < RP_RUN_ERRORS_MAX; i++)
        print_error("%s\n", figures->errors[i]);
    assert_string_equal(result->outcome, "done");
    assert_int_equal(figures->purged, purged);
    return result;
}

void world_expect_sweep(struct world *w, int64_t purged, int64_t already_gone, int64_t skipped)
{
    const struct rp_figures *figures = &world_swept(w, purged)->run.figures;
    assert_int_equal(figures->already_gone, already_gone);
    assert_int_equal(figures->skipped, skipped);
    assert_int_equal(figures->failed, 0);
}

const char *world_aside_key(struct world *w, const char *key)
{
    static char text[RP_QUARANTINE_KEY];
    return rp_quarantine_key(world_newest(w, key).id, text);
}

void world_move_to_quarantine(struct world *w, const char *key, const char *text)
{
    w->config.mode = RP_MODE_QUARANTINE;
    world_put(w, key, text);
    assert_int_equal(world_mark(w, key, 0).what, RP_MARK_CREATED);
    world_expect_sweep(w, 1, 0, 0);
    assert_false(world_exists(w, key));
    assert_int_equal(world_newest(w, key).outcome, RP_END_QUARANTINED);
}

void world_steps_begin(struct world *w, struct rp_catalog *catalog, const char *name, struct world_steps *s)
{
    struct rp_sweep sweeper = world_sweeper(w, catalog, name);
    rp_purge_batch_init(&s->batch);
    s->from_ms = 0;
    ok(rp_run_begin(catalog, "sweep", name, &w->worker, sweeper.stale_after_ms, &s->run, &err));
    ok(rp_sweeper_admit(&sweeper.by, &w->store, &err));
}

void world_steps_claim(struct world *w, struct rp_catalog *catalog, struct world_steps *s)
{
    ok(rp_purge_claim(catalog, &w->store, &w->rules, &w->worker, w->rules.batch, &s->from_ms, &s->batch, &err));
}

void world_steps_erase(struct world *w, struct rp_catalog *catalog, struct world_steps *s)
{
    ok(rp_purge_check(catalog, &w->rules, w->worker.name, &s->batch, &err));
    rp_purge_look(&s->batch);
    ok(rp_purge_load(catalog, &s->batch, &err));
    rp_purge_quarantine(&s->batch);
    rp_purge_return(&s->batch);
    rp_purge_erase(&s->batch);
}

void world_steps_done(struct world_steps *s)
{
    rp_purge_batch_done(&s->batch);
}

/* ---- looking ---- */

int64_t world_number(struct world *w, const char *sql)
{
    const struct rp_sql query = { .name = "look", .text = sql, .params = "", .columns = "i" };
    struct rp_one one = { 0 };
    ok(rp_db_query(w->dbs.db, &query, NULL, rp_one_row, &one, &err));
    assert_true(one.found);
    return one.i[0];
}

void world_script(struct world *w, const char *fmt, ...)
{
    char text[4096];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    assert_in_range(n, 1, sizeof text - 1);
    ok(rp_db_script(w->dbs.db, text, &err));
}

static int drop_trigger(void *ctx, const struct rp_value *row, struct rp_error *e)
{
    (void)e;
    return rp_buf_fmt(ctx, "DROP TRIGGER \"%s\";", row[0].p);
}

void world_unlock(struct world *w)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf drops = RP_BUF(10000);
    const struct rp_sql triggers = { .name = "triggers",
                                     .text = "SELECT name FROM sqlite_master WHERE type = 'trigger'",
                                     .params = "",
                                     .columns = "s" };
    ok(rp_db_query(w->dbs.db, &triggers, NULL, drop_trigger, &drops, &err));
    ok(rp_db_script(w->dbs.db, rp_buf_text(&drops), &err));
}

void world_end_connections(struct world *w)
{
    world_script(w,
                 "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                 "AND application_name = '%s'",
                 w->dbs.schema);
}

int64_t world_count(struct world *w, enum rp_state state)
{
    char sql[80];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM mark WHERE state = %d", (int)state);
    return world_number(w, sql);
}

struct tallies {
    struct rp_tally_row rows[64];
    size_t n;
};

static int keep_tally(void *ctx, const struct rp_tally_row *row, struct rp_error *e)
{
    struct tallies *t = ctx;
    (void)e;
    assert_true(t->n < 64);
    t->rows[t->n++] = *row;
    return 0;
}

static void check_tallies(struct world *w)
{
    struct tallies t = { .n = 0 };
    int64_t counted = 0;
    char sql[200];
    ok(rp_tally_each(w->catalog->db, keep_tally, &t, &err));
    const struct rp_tally_row *rows = t.rows;
    for (size_t i = 0; i < t.n; i++) {
        const char *what[] = { "count(*)", "CAST(coalesce(sum(size_bytes), 0) AS bigint)" };
        int64_t said[] = { rows[i].marks, rows[i].bytes };
        for (size_t k = 0; k < 2; k++) {
            snprintf(sql, sizeof sql, "SELECT %s FROM mark WHERE store_id = %" PRId64 " AND state = %" PRId64, what[k],
                     rows[i].store_id, rows[i].state);
            assert_int_equal(world_number(w, sql), said[k]);
        }
        counted += rows[i].marks;
    }
    assert_int_equal(world_number(w, "SELECT count(*) FROM mark"), counted);
    struct rp_waiting waiting;
    ok(rp_marks_waiting(w->catalog->db, w->store.id, &waiting, &err));
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM mark WHERE store_id = %" PRId64 " AND state IN (1, 2, 3) AND "
             "(file_id IS NULL OR etag <> '' OR version <> '' OR original IS NOT NULL)",
             w->store.id);
    assert_int_equal(world_number(w, sql), waiting.marks);
}

/* Statuses of files: 1 pending, 2 scanning, 3 live, 4 deleted, 5 purged, 6 expired. Kinds of ledger
 * rows: 1 reserve, 2 use, 3 refund. */
static void check_files(struct world *w)
{
#define LEDGER(kind)  "(SELECT count(*) FROM ledger l WHERE l.file_id = f.id AND l.kind = " kind ")"
#define EVENTS(event) "(SELECT count(*) FROM audit WHERE event = '" event "')"
    static const char *const never[] = {
        "SELECT count(*) FROM file f WHERE NOT EXISTS (SELECT 1 FROM mark m WHERE m.id = f.mark_id AND m.file_id = "
        "f.id)",
        "SELECT count(*) FROM file f JOIN mark m ON m.id = f.mark_id WHERE f.status = 1 AND m.state <> 1",
        "SELECT count(*) FROM file f JOIN mark m ON m.id = f.mark_id WHERE f.status IN (2, 3) AND m.state <> 5",
        "SELECT count(*) FROM file f JOIN mark m ON m.id = f.mark_id WHERE f.status = 4 AND m.state NOT IN (1, 2, 3, "
        "6, "
        "7)",
        "SELECT count(*) FROM file f JOIN mark m ON m.id = f.mark_id WHERE f.status = 5 AND m.state NOT IN (1, 3, 4)",
        "SELECT count(*) FROM file f JOIN mark m ON m.id = f.mark_id WHERE f.status = 6 AND m.state NOT IN (3, 4, 6, "
        "7)",
        /* what lives has no mark that waits */
        "SELECT count(*) FROM mark m JOIN file f ON f.id = m.file_id WHERE f.status IN (2, 3) AND m.active = 1",
        /* what was never confirmed and is erased waits for a late PUT, or has waited */
        "SELECT count(*) FROM file f JOIN mark m ON m.id = f.mark_id WHERE f.status = 6 AND m.state = 4 AND NOT EXISTS"
        " (SELECT 1 FROM mark n WHERE n.file_id = f.id AND n.reason = 'late upload')",
        "SELECT count(*) FROM file WHERE (status IN (2, 3)) <> (live_name IS NOT NULL)",
        "SELECT count(*) FROM file WHERE live_name <> name",
        "SELECT count(*) FROM (SELECT 1 FROM file WHERE status IN (2, 3) GROUP BY tenant_id, name"
        " HAVING count(*) > 1) AS t",
        /* a child or derivative does not outlive what it belongs to */
        "SELECT count(*) FROM file f JOIN file o ON o.id = f.parent_id WHERE f.status IN (2, 3) AND o.status > 3",
        "SELECT count(*) FROM file f JOIN file o ON o.id = f.source_id WHERE f.status IN (2, 3) AND o.status > 3",
        "SELECT count(*) FROM file f WHERE " LEDGER("1") " <> 1",
        "SELECT count(*) FROM file f WHERE f.status IN (1, 6) AND " LEDGER("2") " <> 0",
        "SELECT count(*) FROM file f WHERE f.status IN (2, 3) AND " LEDGER("2") " <> 1",
        "SELECT count(*) FROM file f WHERE f.status = 4 AND " LEDGER("2") " <> CASE WHEN f.was = 1 THEN 0 ELSE 1 END",
        "SELECT count(*) FROM file f WHERE " LEDGER("3") " <> CASE WHEN f.status IN (5, 6) THEN 1 ELSE 0 END",
        "SELECT count(*) FROM ledger l WHERE NOT EXISTS (SELECT 1 FROM file f WHERE f.id = l.file_id"
        " AND f.tenant_id = l.tenant_id AND f.size_bytes = l.bytes)",
        "SELECT count(*) FROM tenant WHERE used_bytes < 0 OR reserved_bytes < 0 OR open_uploads < 0",
        "SELECT count(*) FROM txn t WHERE t.members < (SELECT count(*) FROM file f WHERE f.txn_id = t.id)",
        "SELECT count(*) FROM txn t JOIN file f ON f.txn_id = t.id WHERE (t.state = 2) <> (" LEDGER("2") " = 1)",
    };
    /* unless some were let go */
    static const char *const whole[] = {
        "SELECT count(*) FROM txn t WHERE t.members > (SELECT count(*) FROM file f WHERE f.txn_id = t.id)",
        "SELECT abs(" EVENTS("file.pending") " - (SELECT count(*) FROM file))",
        "SELECT abs(" EVENTS("file.uploaded") " - (SELECT count(*) FROM ledger WHERE kind = 2))",
        "SELECT abs(" EVENTS("file.purged") " - (SELECT count(*) FROM file WHERE status = 5))",
        "SELECT abs(" EVENTS("file.cleaned") " - (SELECT count(*) FROM file WHERE status = 6))",
    };
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (world_number(w, never[i]) != 0) fail_msg("found some: %s", never[i]);
    bool let_go = world_number(w, "SELECT " EVENTS("retention.let_go")) > 0;
    for (size_t i = 0; i < sizeof whole / sizeof whole[0] && !let_go; i++)
        if (world_number(w, whole[i]) != 0) fail_msg("found some: %s", whole[i]);
}

static int rebuild(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    return rp_quota_rebuild(tx, false, NULL, NULL, ctx, e);
}

/* QUOTA-EXACT: the counters are what the ledger sums up. */
static void check_quota(struct world *w)
{
    struct rp_quota_check check;
    ok(rp_catalog_transact(w->catalog, rebuild, &check, &err));
    assert_int_equal(check.tenants, world_number(w, "SELECT count(*) FROM tenant"));
    assert_int_equal(check.wrong, 0);
}

void world_check(struct world *w)
{
    static const char *const never[] = {
        "SELECT count(*) FROM mark WHERE (state IN (4, 5, 7)) <> (active IS NULL)",
        "SELECT count(*) FROM mark WHERE (state IN (4, 5, 7)) <> (ended_at IS NOT NULL)",
        "SELECT count(*) FROM mark WHERE (state IN (4, 5, 7)) <> (outcome <> 0)",
        "SELECT count(*) FROM mark WHERE (state IN (1, 2, 3)) <> (next_at IS NOT NULL)",
        "SELECT count(*) FROM (SELECT 1 FROM mark WHERE active = 1 GROUP BY store_id, key HAVING count(*) > 1) AS t",
        "SELECT count(*) FROM mark m WHERE (m.state = 6) <> EXISTS"
        " (SELECT 1 FROM dead_letter d WHERE d.mark_id = m.id AND d.open = 1)",
        "SELECT count(*) FROM run r WHERE (r.open IS NULL) <> EXISTS (SELECT 1 FROM run_record e WHERE e.run_id = "
        "r.id)",
        "SELECT count(*) FROM run r WHERE r.open = 1 AND NOT EXISTS (SELECT 1 FROM run_lock l WHERE l.run_id = r.id)",
    };
    struct rp_audit_verdict verdict;
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (world_number(w, never[i]) != 0) fail_msg("found some: %s", never[i]);
    check_tallies(w);
    check_files(w);
    check_quota(w);
    ok(rp_audit_verify(w->catalog, &verdict, &err));
    if (verdict.broken) fail_msg("audit %d.%d: %s", (int)verdict.lane, (int)verdict.seq, verdict.why);
}
