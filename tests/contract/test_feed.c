/* SPDX-License-Identifier: Apache-2.0 */
/* Durable readers of the feed (feed/feed.h): every event comes at least once, in the order of its
 * lane, whatever happens between delivering and saving. On both engines. Needs PostgreSQL: run
 * under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text/json.h"
#include "base/time.h"
#include "base/wait.h"
#include "catalog/audit/feed.h"
#include "catalog/file/file.h"
#include "catalog/writer/writer.h"
#include "feed/feed.h"
#include "lib/dbs.h"

#define LANES       4
#define WRITER_LANE 100 /* the cursors' own: no event of a test is in it */
#define RING        64
#define PATIENCE_MS 20000
#define RECORDS_MAX 20000

static struct rp_error err;

static void check(int r, int line)
{
    if (r < 0) fprintf(stderr, "line %d: %s\n", line, err.text);
    assert_int_equal(r, 0);
}
#define ok(r) check((r), __LINE__)

/* ---- what was delivered ---- */

struct record {
    int64_t lane, seq;
};

struct recorder {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct record *records;
    size_t n, batches;
    int fails; /* deliveries that are still to fail */
    bool shut; /* deliveries wait */
    int inside;
};

static void recorder_init(struct recorder *r)
{
    *r = (struct recorder){ .records = calloc(RECORDS_MAX, sizeof *r->records) };
    pthread_mutex_init(&r->lock, NULL);
    rp_wait_init(&r->changed);
}

static void recorder_done(struct recorder *r)
{
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->changed);
    free(r->records);
}

static int record(void *ctx, const struct rp_feed_batch *batch, struct rp_feed_dealt *all, struct rp_error *why)
{
    struct recorder *r = ctx;
    (void)all;
    pthread_mutex_lock(&r->lock);
    r->inside++;
    pthread_cond_broadcast(&r->changed);
    while (r->shut)
        pthread_cond_wait(&r->changed, &r->lock);
    r->inside--;
    for (size_t i = 0; i < batch->n && r->n < RECORDS_MAX; i++)
        r->records[r->n++] = (struct record){ batch->events[i]->lane, batch->events[i]->seq };
    r->batches++;
    int code = r->fails > 0 ? rp_error_set(why, RP_EUNAVAILABLE, "not now") : 0;
    if (r->fails > 0) r->fails--;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return code;
}

/* Until there are so many. */
static void wait_for_records(struct recorder *r, size_t n)
{
    struct timespec until = rp_wait_until(PATIENCE_MS);
    pthread_mutex_lock(&r->lock);
    while (r->n < n && pthread_cond_timedwait(&r->changed, &r->lock, &until) == 0)
        continue;
    size_t got = r->n;
    pthread_mutex_unlock(&r->lock);
    if (got < n) fprintf(stderr, "%zu of %zu records\n", got, n);
    assert_true(got >= n);
}

/* F1, F3: a lane never jumps over a row, and ends at `to`. */
static void expect_all(const struct record *records, size_t n, const struct rp_feed_cursor *from,
                       const struct rp_feed_cursor *to)
{
    struct rp_feed_cursor at = *from;
    for (size_t i = 0; i < n; i++) {
        int64_t seen = rp_feed_cursor_seq(&at, records[i].lane);
        assert_true(records[i].seq <= seen + 1);
        if (records[i].seq == seen + 1) rp_feed_cursor_set(&at, records[i].lane, records[i].seq);
    }
    for (int64_t lane = 0; lane < LANES; lane++)
        assert_int_equal(rp_feed_cursor_seq(&at, lane), rp_feed_cursor_seq(to, lane));
}

/* The same, and nothing came twice. */
static void expect_once(const struct record *records, size_t n, const struct rp_feed_cursor *from,
                        const struct rp_feed_cursor *to)
{
    expect_all(records, n, from, to);
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            assert_false(records[i].lane == records[j].lane && records[i].seq == records[j].seq);
}

/* ---- a catalog, its writers, and the feed ---- */

struct stage {
    struct dbs dbs;
    struct rp_catalog *catalogs[LANES];
    struct rp_writers *writers;
    struct rp_feed *feed;
    struct rp_feed_subscription *subscription;
    struct recorder recorder;
    struct rp_feed_cursor begin;
    int64_t tenant_id;
};

static struct rp_writers *start_writers(const char *url)
{
    struct rp_writers *writers = NULL;
    struct rp_writers_options options = { .url = url, .n = 1, .first_lane = WRITER_LANE, .queue_max = 16 };
    ok(rp_writers_start(&options, &writers, &err));
    return writers;
}

static struct rp_feed *start_feed(const char *url)
{
    struct rp_feed *feed = NULL;
    const struct rp_feed_options options = { .catalog_url = url, .ring_events = RING };
    ok(rp_feed_start(&options, &feed, &err));
    return feed;
}

/* Every lane has its first rows and knows the others: afterwards a change is one row. */
static void begin_lanes(struct stage *s);

static int set_up(void **state)
{
    struct stage *s = calloc(1, sizeof *s);
    struct rp_tenant tenant;
    dbs_make(&s->dbs, (enum dbs_kind)(uintptr_t)*state, NULL);
    for (int i = 0; i < LANES; i++) {
        struct rp_catalog_options options = { .lane = i };
        ok(rp_catalog_open(s->dbs.url, &options, &s->catalogs[i], &err));
    }
    ok(rp_tenant_make(s->catalogs[0], "acme", &tenant, &err));
    s->tenant_id = tenant.id;
    s->writers = start_writers(s->dbs.url);
    recorder_init(&s->recorder);
    begin_lanes(s);
    s->feed = start_feed(s->dbs.url);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct stage *s = *state;
    rp_feed_unsubscribe(s->subscription);
    rp_feed_stop(s->feed);
    rp_writers_stop(s->writers);
    for (int i = 0; i < LANES; i++)
        rp_catalog_close(s->catalogs[i]);
    recorder_done(&s->recorder);
    dbs_drop(&s->dbs);
    free(s);
    return 0;
}

struct change {
    const char *event;
    int64_t tenant_id;
    int n;
};

static int change_tx(struct rp_tx *tx, void *ctx, struct rp_error *why)
{
    const struct change *c = ctx;
    int r = 0;
    for (int i = 0; r == 0 && i < c->n; i++) {
        struct rp_audit_entry entry = {
            .event = c->event, .actor = "tester", .tenant_id = c->tenant_id, .details = json_pack("{s:i}", "number", i)
        };
        r = rp_tx_audit(tx, &entry, why);
    }
    return r;
}

static void commit(struct stage *s, int lane, const char *event, int64_t tenant_id, int n)
{
    struct change c = { .event = event, .tenant_id = tenant_id, .n = n };
    ok(rp_catalog_transact(s->catalogs[lane], change_tx, &c, &err));
    rp_feed_poke(s->feed);
}

/* `n` changes, a few at a time in every lane. */
static void commit_many(struct stage *s, int n)
{
    for (int i = 0; i < n; i += 20)
        commit(s, (i / 20) % LANES, "file.deleted", 0, 20);
}

static void read_heads(struct stage *s, struct rp_feed_cursor *out)
{
    struct rp_audit_head heads[RP_FEED_CURSOR_LANES];
    size_t n = 0;
    ok(rp_audit_heads(s->dbs.db, heads, RP_FEED_CURSOR_LANES, &n, &err));
    rp_feed_cursor_from(out, heads, n);
}

static void begin_lanes(struct stage *s)
{
    for (int round = 0; round < 2; round++)
        for (int lane = 0; lane < LANES; lane++)
            commit(s, lane, "file.deleted", 0, 1);
    read_heads(s, &s->begin);
}

static void subscribe(struct stage *s, const char *name, struct rp_feed_want want)
{
    const struct rp_feed_reader reader = {
        .name = name, .want = want, .deliver = record, .ctx = &s->recorder, .writers = s->writers
    };
    ok(rp_feed_subscribe(s->feed, &reader, &s->subscription, &err));
}

static void unsubscribe(struct stage *s)
{
    rp_feed_unsubscribe(s->subscription);
    s->subscription = NULL;
}

static void restart_feed(struct stage *s)
{
    unsubscribe(s);
    rp_feed_stop(s->feed);
    s->feed = start_feed(s->dbs.url);
}

static void load(struct stage *s, const char *name, struct rp_feed_cursor *out)
{
    struct rp_audit_head kept[RP_FEED_CURSOR_LANES];
    size_t n = 0;
    ok(rp_feed_cursor_load(s->dbs.db, name, kept, RP_FEED_CURSOR_LANES, &n, &err));
    rp_feed_cursor_from(out, kept, n);
}

static void expect_ends(struct stage *s, bool once)
{
    struct rp_feed_cursor ends;
    read_heads(s, &ends);
    (once ? expect_once : expect_all)(s->recorder.records, s->recorder.n, &s->begin, &ends);
}

/* ---- the cursor in the catalog ---- */

struct saving {
    const char *name;
    struct rp_audit_head at[3];
    size_t n;
};

static int saving_tx(struct rp_tx *tx, void *ctx, struct rp_error *why)
{
    const struct saving *saving = ctx;
    return rp_feed_cursor_save(tx, saving->name, saving->at, saving->n, why);
}

static void expect_cursor(struct stage *s, const char *name, const char *expected)
{
    struct rp_feed_cursor at;
    char text[RP_FEED_CURSOR_TEXT];
    load(s, name, &at);
    rp_feed_cursor_format(&at, text);
    assert_string_equal(text, expected);
}

static void a_saved_cursor_never_goes_back(void **state)
{
    struct stage *s = *state;
    struct saving steps[] = {
        { "a", { { 1, 5 }, { 3, 7 } }, 2 },
        { "a", { { 1, 4 }, { 2, 1 }, { 3, 9 } }, 3 },
        { "b", { { 1, 2 } }, 1 },
    };
    expect_cursor(s, "a", "0");
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        ok(rp_writers_call(s->writers, saving_tx, &steps[i], &err));
    expect_cursor(s, "a", "1.5-2.1-3.9");
    expect_cursor(s, "b", "1.2");
    expect_cursor(s, "c", "0");
}

/* ---- a durable reader ---- */

static void it_goes_on_where_it_ended(void **state)
{
    struct stage *s = *state;
    subscribe(s, "sink", (struct rp_feed_want){ 0 });
    commit_many(s, 200);
    wait_for_records(&s->recorder, 200);
    unsubscribe(s);
    commit_many(s, 200); /* more than memory holds, and nobody has joined */
    subscribe(s, "sink", (struct rp_feed_want){ 0 });
    wait_for_records(&s->recorder, 400);
    restart_feed(s);
    commit_many(s, 40);
    subscribe(s, "sink", (struct rp_feed_want){ 0 });
    wait_for_records(&s->recorder, 440);
    unsubscribe(s);
    expect_ends(s, true);
}

static void a_new_one_begins_at_the_end(void **state)
{
    struct stage *s = *state;
    commit_many(s, 100);
    read_heads(s, &s->begin);
    subscribe(s, "sink", (struct rp_feed_want){ 0 });
    restart_feed(s); /* before anything came: its beginning is kept */
    commit_many(s, 100);
    subscribe(s, "sink", (struct rp_feed_want){ 0 });
    wait_for_records(&s->recorder, 100);
    unsubscribe(s);
    expect_ends(s, true);
}

static void an_old_cursor_is_caught_up_from_the_catalog(void **state)
{
    struct stage *s = *state;
    subscribe(s, "sink", (struct rp_feed_want){ 0 });
    restart_feed(s);
    commit_many(s, 3000);
    subscribe(s, "sink", (struct rp_feed_want){ 0 });
    commit_many(s, 100);
    wait_for_records(&s->recorder, 3100);
    unsubscribe(s);
    expect_ends(s, true);
}

static void what_could_not_be_delivered_comes_again(void **state)
{
    struct stage *s = *state;
    s->recorder.fails = 3;
    subscribe(s, "sink", (struct rp_feed_want){ 0 });
    commit(s, 1, "file.deleted", 0, 10);
    wait_for_records(&s->recorder, 40);
    unsubscribe(s);
    assert_int_equal(s->recorder.n, 40);
    expect_ends(s, false);
}

static void what_could_not_be_saved_comes_again(void **state)
{
    struct stage *s = *state;
    subscribe(s, "sink", (struct rp_feed_want){ 0 });
    ok(rp_db_script(s->dbs.db, "ALTER TABLE feed_cursor RENAME TO hidden;", &err));
    commit(s, 1, "file.deleted", 0, 10);
    wait_for_records(&s->recorder, 20); /* delivered, not saved, delivered */
    unsubscribe(s);
    ok(rp_db_script(s->dbs.db, "ALTER TABLE hidden RENAME TO feed_cursor;", &err));
    restart_feed(s);
    commit(s, 2, "file.deleted", 0, 10);
    size_t had = s->recorder.n;
    subscribe(s, "sink", (struct rp_feed_want){ 0 });
    /* Those of the run before, once more, and the new ones. */
    wait_for_records(&s->recorder, had + 20);
    unsubscribe(s);
    expect_ends(s, false);
}

static bool is_logged(struct rp_log *log, const char *file, const char *event)
{
    rp_log_flush(log);
    char line[1024];
    bool found = false;
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    while (!found && fgets(line, sizeof line, f) != NULL)
        found = strstr(line, event) != NULL;
    fclose(f);
    return found;
}

/* F6 */
static void it_goes_on_from_the_end_of_a_catalog_that_was_rolled_back(void **state)
{
    struct stage *s = *state;
    struct timespec pause = { .tv_nsec = 5 * 1000 * 1000 };
    struct rp_log *log = NULL;
    char file[128];
    snprintf(file, sizeof file, "%s/log", s->dbs.dir);
    ok(rp_log_open(file, RP_LOG_WARNING, &log, &err));
    const struct rp_feed_options options = { .catalog_url = s->dbs.url, .ring_events = RING, .log = log };
    rp_feed_stop(s->feed);
    s->feed = NULL;
    ok(rp_feed_start(&options, &s->feed, &err));
    subscribe(s, "sink", (struct rp_feed_want){ 0 });
    commit(s, 1, "file.deleted", 0, 10);
    wait_for_records(&s->recorder, 10);
    ok(rp_db_script(s->dbs.db, "UPDATE lane SET seq = seq - 5 WHERE lane = 1;", &err));
    for (int i = 0; i < PATIENCE_MS / 5 && !is_logged(log, file, "feed.reader_went_back"); i++)
        nanosleep(&pause, NULL);
    assert_true(is_logged(log, file, "feed.reader_went_back"));
    commit(s, 2, "file.deleted", 0, 3);
    wait_for_records(&s->recorder, 13);
    unsubscribe(s);
    assert_int_equal(s->recorder.n, 13);
    restart_feed(s);
    rp_log_close(log);
}

static void one_that_hangs_holds_up_nobody(void **state)
{
    struct stage *s = *state;
    struct recorder stuck;
    struct rp_feed_subscription *other = NULL;
    recorder_init(&stuck);
    stuck.shut = true;
    const struct rp_feed_reader reader = { .name = "stuck", .deliver = record, .ctx = &stuck, .writers = s->writers };
    ok(rp_feed_subscribe(s->feed, &reader, &other, &err));
    subscribe(s, "sink", (struct rp_feed_want){ 0 });
    commit_many(s, 1000);
    wait_for_records(&s->recorder, 1000);
    expect_ends(s, true);
    pthread_mutex_lock(&stuck.lock);
    assert_int_equal(stuck.n, 0);
    stuck.shut = false;
    pthread_cond_broadcast(&stuck.changed);
    pthread_mutex_unlock(&stuck.lock);
    wait_for_records(&stuck, 1000); /* memory has forgotten the most of it */
    rp_feed_unsubscribe(other);
    recorder_done(&stuck);
}

static void it_gets_what_it_wants_and_passes_the_rest(void **state)
{
    struct stage *s = *state;
    static const char *const names[] = { "mark.created", "token.revoked", NULL };
    const struct rp_feed_want want = { .tenant_id = s->tenant_id, .names = names };
    struct rp_feed_cursor at;
    subscribe(s, "sink", want);
    for (int i = 0; i < 3; i++) {
        commit(s, 1, "file.deleted", s->tenant_id, 500);
        commit(s, 1, "mark.created", 0, 5);
        commit(s, 2, "mark.created", s->tenant_id, 5);
    }
    wait_for_records(&s->recorder, 15);
    commit(s, 1, "file.deleted", 0, 1500);
    int64_t end_ms = rp_time_boot_ms() + PATIENCE_MS, passed = 0;
    struct timespec pause = { .tv_nsec = 5000000 };
    /* Its cursor is kept although nothing came. */
    while (passed < 2000 && rp_time_boot_ms() < end_ms) {
        nanosleep(&pause, NULL);
        load(s, "sink", &at);
        passed = rp_feed_cursor_seq(&at, 1) - rp_feed_cursor_seq(&s->begin, 1);
    }
    assert_true(passed >= 2000);
    unsubscribe(s);
    assert_int_equal(s->recorder.n, 15);
    for (size_t i = 0; i < 15; i++)
        assert_int_equal(s->recorder.records[i].lane, 2);
}

/* ---- several nodes under one name (F8) ---- */

/* Every change through the writers fails, after the last of its own statements. */
static void refuse_changes(struct stage *s)
{
    bool sqlite = s->dbs.kind == DBS_SQLITE_FILE;
    ok(rp_db_script(s->dbs.db,
                    sqlite ? "CREATE TRIGGER refuse BEFORE UPDATE ON lane WHEN NEW.lane = 100 "
                             "BEGIN SELECT RAISE(ABORT, 'not now'); END;"
                           : "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
                             "'BEGIN RAISE EXCEPTION ''not now''; END';"
                             "CREATE TRIGGER refuse BEFORE UPDATE ON lane FOR EACH ROW WHEN (NEW.lane = 100) "
                             "EXECUTE FUNCTION refuse();",
                    &err));
}

static void allow_changes(struct stage *s)
{
    bool sqlite = s->dbs.kind == DBS_SQLITE_FILE;
    ok(rp_db_script(s->dbs.db, sqlite ? "DROP TRIGGER refuse;" : "DROP TRIGGER refuse ON lane;", &err));
}

static uint64_t count_changes(struct stage *s)
{
    struct rp_writers_state state;
    rp_writers_state(s->writers, &state);
    return state.commands;
}

/* Until so many more were tried. */
static void wait_for_changes(struct stage *s, uint64_t n)
{
    struct timespec pause = { .tv_nsec = 5 * 1000 * 1000 };
    uint64_t before = count_changes(s);
    for (int i = 0; i < PATIENCE_MS / 5 && count_changes(s) < before + n; i++)
        nanosleep(&pause, NULL);
    assert_true(count_changes(s) >= before + n);
}

static void subscribe_as(struct stage *s, const char *node)
{
    const struct rp_feed_reader reader = {
        .name = "sink", .deliver = record, .ctx = &s->recorder, .writers = s->writers, .holder = node, .lease_ms = 300
    };
    ok(rp_feed_subscribe(s->feed, &reader, &s->subscription, &err));
}

static void set_lease(struct stage *s, const char *set)
{
    char sql[200];
    snprintf(sql, sizeof sql, "UPDATE feed_lease SET %s WHERE reader = 'sink';", set);
    ok(rp_db_script(s->dbs.db, sql, &err));
}

/* Another node deals with ten events, whoever has the lease here. */
static void deal_elsewhere(struct stage *s)
{
    struct saving saving = { .name = "sink", .n = 1 };
    struct rp_feed_cursor ends;
    commit(s, 1, "file.deleted", 0, 10);
    read_heads(s, &ends);
    saving.at[0] = (struct rp_audit_head){ .lane = 1, .seq = rp_feed_cursor_seq(&ends, 1) };
    ok(rp_catalog_transact(s->catalogs[0], saving_tx, &saving, &err));
}

static void expect_ten_more(struct stage *s, size_t had)
{
    commit(s, 1, "file.deleted", 0, 10);
    wait_for_records(&s->recorder, had + 10);
    unsubscribe(s);
    assert_int_equal(s->recorder.n, had + 10);
}

static void one_that_stood_by_begins_at_the_saved_cursor_also_at_the_second_try(void **state)
{
    struct stage *s = *state;
    subscribe_as(s, "another");
    unsubscribe(s);
    set_lease(s, "until_at = 9000000000000");
    subscribe_as(s, "one");
    deal_elsewhere(s);
    refuse_changes(s);
    set_lease(s, "until_at = 0");
    wait_for_changes(s, 1);
    allow_changes(s);
    expect_ten_more(s, 0);
}

static void set_shut(struct recorder *r, bool shut)
{
    pthread_mutex_lock(&r->lock);
    r->shut = shut;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static void wait_until_inside(struct recorder *r)
{
    pthread_mutex_lock(&r->lock);
    while (r->inside == 0)
        pthread_cond_wait(&r->changed, &r->lock);
    pthread_mutex_unlock(&r->lock);
}

static void one_that_froze_goes_on_from_the_saved_cursor_also_at_the_second_try(void **state)
{
    struct stage *s = *state;
    subscribe_as(s, "one");
    set_shut(&s->recorder, true);
    commit(s, 1, "file.deleted", 0, 1);
    wait_until_inside(&s->recorder);
    deal_elsewhere(s);
    set_lease(s, "holder = 'another', fence = fence + 1, until_at = 0");
    refuse_changes(s);
    set_shut(&s->recorder, false);
    wait_for_changes(s, 2); /* the cursor's, and the lease's */
    allow_changes(s);
    expect_ten_more(s, 1);
}

/* ---- killed between deliver and save ---- */

#define BATCHES_TO_LIVE 3

struct victim {
    int fd;
    int batches; /* until it is killed; 0: it lives */
};

/* Another process: what it was given stands in a file that outlives it. */
static int write_and_die(void *ctx, const struct rp_feed_batch *batch, struct rp_feed_dealt *all, struct rp_error *why)
{
    (void)all;
    struct victim *v = ctx;
    (void)why;
    for (size_t i = 0; i < batch->n; i++) {
        struct record r = { batch->events[i]->lane, batch->events[i]->seq };
        if (write(v->fd, &r, sizeof r) != sizeof r) _exit(2);
    }
    if (v->batches > 0 && --v->batches == 0) raise(SIGKILL);
    return 0;
}

/* Until it is killed, or the cursor that it has saved is at this place. */
static int victim_main(const char *url, const char *file, int batches, const char *place)
{
    struct victim v = { .fd = open(file, O_WRONLY | O_APPEND), .batches = batches };
    struct rp_writers *writers = start_writers(url);
    struct rp_feed *feed = start_feed(url);
    struct rp_feed_subscription *s = NULL;
    const struct rp_feed_reader reader = { .name = "sink", .deliver = write_and_die, .ctx = &v, .writers = writers };
    struct timespec pause = { .tv_nsec = 5000000 };
    struct rp_catalog *catalog = NULL;
    struct rp_catalog_options options = { .lane = WRITER_LANE };
    struct rp_feed_cursor goal, at = { 0 };
    if (v.fd < 0 || rp_feed_cursor_parse(place, &goal, &err) < 0) return 2;
    if (rp_catalog_open(url, &options, &catalog, &err) < 0) return 2;
    if (rp_feed_subscribe(feed, &reader, &s, &err) < 0) return 2;
    while (!rp_feed_cursor_within(&goal, &at)) {
        struct rp_audit_head kept[RP_FEED_CURSOR_LANES];
        size_t n = 0;
        nanosleep(&pause, NULL);
        if (rp_feed_cursor_load(catalog->db, "sink", kept, RP_FEED_CURSOR_LANES, &n, &err) < 0) return 2;
        rp_feed_cursor_from(&at, kept, n);
    }
    rp_feed_unsubscribe(s);
    rp_feed_stop(feed);
    rp_writers_stop(writers);
    rp_catalog_close(catalog);
    return 0;
}

/* How it ended, as waitpid says it. */
static int run_victim(struct stage *s, const char *file, int batches, const char *place)
{
    char number[16];
    int status = 0;
    snprintf(number, sizeof number, "%d", batches);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "test_feed", s->dbs.url, file, number, place, (char *)NULL);
        _exit(3);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static size_t read_records(const char *file, struct record *out)
{
    FILE *f = fopen(file, "rb");
    assert_non_null(f);
    size_t n = fread(out, sizeof *out, RECORDS_MAX, f);
    fclose(f);
    return n;
}

static void killed_between_deliver_and_save_it_misses_nothing(void **state)
{
    struct stage *s = *state;
    struct rp_feed_cursor ends;
    char file[128], place[RP_FEED_CURSOR_TEXT];
    snprintf(file, sizeof file, "%s/delivered", s->dbs.dir);
    close(open(file, O_CREAT | O_WRONLY, 0600));
    subscribe(s, "sink", (struct rp_feed_want){ 0 }); /* it exists from here on */
    unsubscribe(s);
    commit_many(s, 3000);
    read_heads(s, &ends);
    rp_feed_cursor_set(&ends, WRITER_LANE, 0);
    rp_feed_cursor_format(&ends, place);
    for (int kills = 0; kills < 3; kills++) {
        int status = run_victim(s, file, BATCHES_TO_LIVE, place);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    int status = run_victim(s, file, 0, place);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    size_t n = read_records(file, s->recorder.records);
    expect_all(s->recorder.records, n, &s->begin, &ends);
    assert_true(n > 3000); /* the last batches before each death came twice */
}

static void a_cursor_reads_as_it_was_written(void **state)
{
    const char *const good[] = { "0", "0.1", "1.120-3.44", "0.1-255.1000000000000000" };
    char text[RP_FEED_CURSOR_TEXT];
    struct rp_feed_cursor a, b;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ok(rp_feed_cursor_parse(good[i], &a, &err));
        assert_int_equal(rp_feed_cursor_format(&a, text), strlen(good[i]));
        assert_string_equal(text, good[i]);
    }
    a.n = 0;
    for (int64_t lane = RP_LANE_MAX; lane >= 0; lane--)
        rp_feed_cursor_set(&a, lane, RP_FEED_CURSOR_SEQ_MAX);
    rp_feed_cursor_format(&a, text);
    ok(rp_feed_cursor_parse(text, &b, &err));
    assert_true(rp_feed_cursor_within(&a, &b) && rp_feed_cursor_within(&b, &a));
    rp_feed_cursor_set(&b, 7, 0);
    assert_int_equal(rp_feed_cursor_seq(&b, 7), 0);
    assert_int_equal(rp_feed_cursor_seq(&b, 8), RP_FEED_CURSOR_SEQ_MAX);
    assert_true(rp_feed_cursor_within(&b, &a));
    assert_false(rp_feed_cursor_within(&a, &b));
    assert_true(rp_feed_cursor_sum(&a) - rp_feed_cursor_sum(&b) == (uint64_t)RP_FEED_CURSOR_SEQ_MAX);
}

static void what_is_no_cursor_is_refused(void **state)
{
    const char *const bad[] = { "abc",
                                "1",
                                "1.",
                                ".1",
                                "1.0",
                                "01.5",
                                "1.05",
                                "1.5-",
                                "1.5-1.6",
                                "2.5-1.6",
                                "256.1",
                                "-1.5",
                                "1.-5",
                                "1.5 ",
                                "1.5,2.6",
                                "00",
                                "1.99999999999999999999",
                                "1.5-2" };
    struct rp_feed_cursor cursor;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(rp_feed_cursor_parse(bad[i], &cursor, &err), RP_EINVAL);
}

#define ON(kind, test)                                                                                                 \
    {                                                                                                                  \
        .name = #test " (" #kind ")", .test_func = (test), .setup_func = set_up, .teardown_func = tear_down,           \
        .initial_state = (void *)(uintptr_t)(kind)                                                                     \
    }
#define BOTH(test) ON(DBS_SQLITE_FILE, test), ON(DBS_POSTGRES, test)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cursor_reads_as_it_was_written),
        cmocka_unit_test(what_is_no_cursor_is_refused),
        BOTH(a_saved_cursor_never_goes_back),
        BOTH(it_goes_on_where_it_ended),
        BOTH(a_new_one_begins_at_the_end),
        BOTH(an_old_cursor_is_caught_up_from_the_catalog),
        BOTH(what_could_not_be_delivered_comes_again),
        BOTH(what_could_not_be_saved_comes_again),
        BOTH(it_goes_on_from_the_end_of_a_catalog_that_was_rolled_back),
        BOTH(one_that_hangs_holds_up_nobody),
        BOTH(it_gets_what_it_wants_and_passes_the_rest),
        BOTH(one_that_stood_by_begins_at_the_saved_cursor_also_at_the_second_try),
        BOTH(one_that_froze_goes_on_from_the_saved_cursor_also_at_the_second_try),
        BOTH(killed_between_deliver_and_save_it_misses_nothing),
    };
    if (argc == 5) return victim_main(argv[1], argv[2], atoi(argv[3]), argv[4]);
    return cmocka_run_group_tests_name("feed", tests, NULL, NULL);
}
