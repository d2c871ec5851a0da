/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's sweeper, its schedule, runs on demand and the watch, with real threads, writers and
 * a directory, on both engines. Needs PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/time.h"
#include "catalog/alert.h"
#include "catalog/audit/audit.h"
#include "catalog/run.h"
#include "catalog/writer/writer.h"
#include "core/file/file.h"
#include "core/hold.h"
#include "core/mark/mark.h"
#include "core/run/scheduled.h"
#include "daemon/runs.h"
#include "daemon/schedule.h"
#include "daemon/sweeper.h"
#include "daemon/watch/watch.h"
#include "lib/ask.h"
#include "lib/dbs.h"
#include "lib/session.h"

#define PATIENCE_MS (30 * RP_SECOND_MS) /* for what must happen; the tests wait for the thing itself */

struct stage {
    struct dbs dbs;
    char config[128], objects[128];
    struct rp_session session; /* the daemon's */
    struct rp_session test;    /* another program's, beside it */
    struct rp_writers *writers;
    struct rp_watch *loop;
};

static struct rp_error err;

static void ok_at(int r, int line)
{
    if (r < 0) fail_msg("line %d: %d %s", line, r, err.text);
}
#define ok(r) ok_at((r), __LINE__)

static void write_config(struct stage *s, const char *more)
{
    FILE *f = fopen(s->config, "we");
    assert_non_null(f);
    fprintf(f,
            "catalog: { url: \"%s\" }\nlog: { file: \"%s/log\" }\n"
            "stores: { main: { path: \"%s\", mode: purge, allow_any_grace: true, grace: 0s } }\n%s",
            s->dbs.url, s->dbs.dir, s->objects, more);
    fclose(f);
}

static void open_stage(struct stage *s, const char *more)
{
    struct rp_session_options options = { .config_file = s->config, .actor = "test" };
    write_config(s, more);
    ok(rp_session_open(&s->session, &options, &err));
    ok(rp_session_open(&s->test, &options, &err));
    struct rp_writers_options writers = { .url = s->session.config.catalog_url,
                                          .n = s->dbs.kind == DBS_POSTGRES ? 2 : 1,
                                          .first_lane = 9,
                                          .queue_max = 1000 };
    ok(rp_writers_start(&writers, &s->writers, &err));
}

static int set_up(void **state)
{
    struct stage *s = calloc(1, sizeof *s);
    dbs_make(&s->dbs, *state != NULL ? DBS_POSTGRES : DBS_SQLITE_FILE, NULL);
    snprintf(s->config, sizeof s->config, "%s/reprieve.yaml", s->dbs.dir);
    snprintf(s->objects, sizeof s->objects, "%s/objects", s->dbs.dir);
    assert_int_equal(mkdir(s->objects, 0700), 0);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct stage *s = *state;
    struct rp_audit_verdict verdict = { 0 };
    rp_watch_stop(s->loop);
    rp_writers_stop(s->writers);
    if (s->test.catalog != NULL) {
        ok(rp_audit_verify(s->test.catalog, &verdict, &err));
        assert_false(verdict.broken);
    }
    rp_session_close(&s->test);
    rp_session_close(&s->session);
    dbs_drop(&s->dbs);
    free(s);
    return 0;
}

static void start_loop(struct stage *s, const char *node)
{
    struct rp_watch_options options = { .session = &s->session, .writers = s->writers, .node = node, .lane = 12 };
    ok(rp_watch_start(&rp_sweep_watch, &options, &s->loop, &err));
}

static void stop_loop(struct stage *s)
{
    rp_watch_stop(s->loop);
    s->loop = NULL;
}

/* ---- looking ---- */

static int64_t number(struct stage *s, const char *text)
{
    struct rp_sql sql = { .name = "test", .text = text, .params = "", .columns = "i" };
    RP_CLEANUP(rp_db_closep) struct rp_db *db = dbs_open_again(&s->dbs, NULL);
    struct rp_one one = { 0 };
    ok(rp_db_query(db, &sql, NULL, rp_one_row, &one, &err));
    return one.i[0];
}

static void run_sql(struct stage *s, const char *text)
{
    RP_CLEANUP(rp_db_closep) struct rp_db *db = dbs_open_again(&s->dbs, NULL);
    ok(rp_db_script(db, text, &err));
}

/* Waits until the query answers so. Returns how long it took. */
static int64_t wait_for(struct stage *s, const char *sql, int64_t wanted)
{
    int64_t began_ms = rp_time_boot_ms(), got;
    const struct timespec moment = { .tv_nsec = 10000000 };
    while ((got = number(s, sql)) != wanted) {
        if (rp_time_boot_ms() - began_ms > PATIENCE_MS)
            fail_msg("%s: %lld, not %lld", sql, (long long)got, (long long)wanted);
        nanosleep(&moment, NULL);
    }
    return rp_time_boot_ms() - began_ms;
}

/* What must not happen is given this long to happen. */
static void let_pass(int64_t ms)
{
    const struct timespec pause = { .tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000 };
    nanosleep(&pause, NULL);
}

static void mark(struct stage *s, const char *key, int64_t grace_ms)
{
    struct rp_store *store;
    char path[256];
    snprintf(path, sizeof path, "%s/%s", s->objects, key);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs("x", f);
    fclose(f);
    ok(rp_session_store(&s->test, "main", &store, &err));
    struct rp_mark_request request = { .key = key, .grace_ms = grace_ms, .at_ms = -1, .reason = "test" };
    struct rp_mark_answer answer = { 0 };
    ok(rp_mark_many(s->test.catalog, store, &request, 1, "test", false, &answer, &err));
    if (answer.what != RP_MARK_CREATED) fail_msg("%s", answer.error.text);
}

static bool there(struct stage *s, const char *key)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", s->objects, key);
    return access(path, F_OK) == 0;
}

static uint64_t writers_rounds(struct stage *s)
{
    struct rp_writers_state now;
    rp_writers_state(s->writers, &now);
    return now.rounds;
}

#define PURGED  "SELECT COUNT(*) FROM mark WHERE state = 4"
#define RUNS    "SELECT COUNT(*) FROM run"
#define RECORDS "SELECT COUNT(*) FROM run_record"

/* ---- continuous ---- */

static void test_M11_what_others_mark_is_purged_within_seconds(void **state)
{
    struct stage *s = *state;
    open_stage(s, "");
    start_loop(s, "a");
    for (int i = 0; i < 3; i++) {
        char key[8];
        snprintf(key, sizeof key, "k%d", i);
        mark(s, key, 0);
        assert_true(wait_for(s, PURGED, i + 1) < 5 * RP_SECOND_MS); /* a second, on an idle machine */
        assert_false(there(s, key));
    }
    assert_int_equal(number(s, RUNS), 1); /* one run for all of it */
    assert_int_equal(number(s, RECORDS), 0);
    stop_loop(s);
    assert_int_equal(number(s, RECORDS), 1);
    assert_int_equal(number(s, "SELECT COUNT(*) FROM run_record WHERE name = 'continuous@a' AND outcome = 'done'"), 1);
    assert_int_equal(number(s, "SELECT COUNT(*) FROM run_lock WHERE run_id IS NOT NULL"), 0);
}

static void test_M11_nothing_is_purged_early_and_nothing_to_do_makes_no_run(void **state)
{
    struct stage *s = *state;
    open_stage(s, "");
    start_loop(s, "a");
    wait_for(s, "SELECT COUNT(*) FROM node WHERE name = 'a'", 1);
    mark(s, "soon", 2 * RP_SECOND_MS);
    int64_t due_ms = number(s, "SELECT due_at FROM mark");
    rp_watch_due(s->loop, due_ms);
    wait_for(s, PURGED, 1);
    assert_true(number(s, "SELECT ended_at - due_at FROM mark") >= 0);
    mark(s, "later", RP_HOUR_MS);
    stop_loop(s);
    start_loop(s, "a");
    let_pass(1500);
    stop_loop(s);
    assert_int_equal(number(s, RUNS), 1);
    assert_true(there(s, "later"));
}

static void test_X3_held_marks_wait_without_runs_or_haste(void **state)
{
    struct stage *s = *state;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    struct rp_hold_command hold = { .scope = RP_SCOPE_EVERYTHING, .reason = "test", .command.actor = "test" };
    int64_t lifted;
    open_stage(s, "");
    mark(s, "held", 0);
    ok(ask_hold(s->test.catalog, &hold, &arena, &err));
    start_loop(s, "a");
    let_pass(2000);
    assert_true(there(s, "held"));
    assert_int_equal(number(s, RUNS), 0);
    assert_true(writers_rounds(s) < 100); /* some looks a second, not thousands */
    ok(ask_resume(s->test.catalog, "test", &lifted, &err));
    wait_for(s, PURGED, 1);
}

static void test_M12_a_store_that_is_away_is_waited_for(void **state)
{
    struct stage *s = *state;
    char away[160];
    snprintf(away, sizeof away, "%s.away", s->objects);
    open_stage(s, "");
    start_loop(s, "a");
    mark(s, "first", 0);
    wait_for(s, PURGED, 1);
    mark(s, "second", 0);
    wait_for(s, PURGED, 2);
    mark(s, "third", RP_SECOND_MS);
    assert_int_equal(rename(s->objects, away), 0);
    let_pass(3000);
    assert_int_equal(number(s, PURGED), 2);
    assert_int_equal(number(s, "SELECT COUNT(*) FROM mark WHERE attempts > 0"), 0); /* uses up none */
    assert_true(rp_sweeper_idle_ms(s->loop) < 10 * RP_SECOND_MS);
    assert_int_equal(rename(away, s->objects), 0);
    wait_for(s, PURGED, 3);
}

static void test_a_store_that_was_away_at_the_start_is_opened_later(void **state)
{
    struct stage *s = *state;
    char away[160];
    snprintf(away, sizeof away, "%s.away", s->objects);
    open_stage(s, "");
    mark(s, "k", 0);
    assert_int_equal(rename(s->objects, away), 0);
    start_loop(s, "a");
    let_pass(1500);
    assert_int_equal(rename(away, s->objects), 0);
    wait_for(s, PURGED, 1);
}

static void test_a_run_that_died_gets_its_record_from_the_next_daemon(void **state)
{
    struct stage *s = *state;
    struct rp_worker gone = { .name = "gone" };
    struct rp_run run;
    open_stage(s, "lock: { stale_after: 1s }\n");
    ok(rp_run_begin(s->test.catalog, "sweep", "continuous@b", &gone, 1000, &run, &err));
    let_pass(1100);
    start_loop(s, "a");
    wait_for(s, RECORDS, 1);
    assert_int_equal(number(s, "SELECT COUNT(*) FROM run_record WHERE name = 'continuous@b' AND outcome = 'failed'"),
                     1);
    assert_int_equal(number(s, "SELECT COUNT(*) FROM run_lock WHERE run_id IS NOT NULL"), 0);
}

static void test_a_lock_that_was_taken_over_ends_the_run_and_a_new_one_begins(void **state)
{
    struct stage *s = *state;
    open_stage(s, "sweep: { lease: 1s }\n");
    start_loop(s, "a");
    mark(s, "k1", 0);
    wait_for(s, PURGED, 1);
    run_sql(s, "UPDATE run_lock SET fence = fence + 1, run_id = NULL; UPDATE run SET open = NULL;");
    mark(s, "k2", 0);
    wait_for(s, PURGED, 2); /* once its lease has ended: the batch that found out changed nothing */
    assert_int_equal(number(s, RUNS), 2);
    stop_loop(s);
    assert_int_equal(number(s, RECORDS), 1); /* the first one's is for whoever took it over */
}

/* ---- schedule ---- */

static void test_M11_a_tick_is_run_once_over_all_nodes_and_a_missed_one_at_start(void **state)
{
    struct stage *s = *state;
    struct rp_watch *other;
    open_stage(s, "sweep: { schedule: \"0 3 * * *\" }\n");
    mark(s, "k", 0);
    start_loop(s, "a");
    wait_for(s, "SELECT COUNT(*) FROM schedule WHERE name = 'sweep'", 1);
    let_pass(1200);
    assert_int_equal(number(s, RUNS), 0); /* a new schedule makes up for nothing */
    stop_loop(s);
    run_sql(s, "UPDATE schedule SET tick_at = tick_at - 172800000;"); /* down for two days: two ticks missed */
    struct rp_watch_options options = { .session = &s->session, .writers = s->writers, .node = "b", .lane = 13 };
    ok(rp_watch_start(&rp_sweep_watch, &options, &other, &err));
    start_loop(s, "a");
    wait_for(s, RECORDS, 1);
    let_pass(1200);
    rp_watch_stop(other);
    stop_loop(s);
    assert_int_equal(number(s, RUNS), 1);
    assert_int_equal(number(s, "SELECT COUNT(*) FROM run_record WHERE name = 'all' AND outcome = 'done'"), 1);
    assert_int_equal(number(s, PURGED), 1);
}

static int64_t upload(struct stage *s, const char *name)
{
    static const struct rp_upload_rules rules = {
        .expire_ms = 0, .max_size_bytes = 100, .max_open_per_tenant = 10, .quota_default_bytes = 1000
    };
    struct rp_tenant tenant;
    struct rp_store *store;
    ok(rp_session_store(&s->test, "main", &store, &err));
    ok(rp_tenant_make(s->test.catalog, "acme", &tenant, &err));
    struct rp_init c = { .command = { .verb = &rp_verb_init, .tenant_id = tenant.id, .actor = "test" },
                         .rules = &rules,
                         .store = store,
                         .name = name,
                         .content_type = "text/plain",
                         .size_bytes = 7 };
    if (rp_command_run(s->test.catalog, &c.command) < 0) fail_msg("%s", c.command.error.text);
    return c.file_id;
}

/* What a person marks may have any reason. */
static void test_M11_abandoned_uploads_do_not_wait_for_the_tick(void **state)
{
    struct stage *s = *state;
    struct rp_store *store;
    open_stage(s, "sweep: { schedule: \"0 3 1 1 *\" }\n");
    mark(s, "k", 0);
    ok(rp_session_store(&s->test, "main", &store, &err));
    struct rp_mark_request named = { .key = "k", .grace_ms = 1, .at_ms = -1, .reason = "abandoned" };
    struct rp_mark_answer answer = { 0 };
    ok(rp_mark_many(s->test.catalog, store, &named, 1, "test", false, &answer, &err));
    (void)upload(s, "first");
    start_loop(s, "a");
    assert_true(wait_for(s, "SELECT COUNT(*) FROM file WHERE status = 6", 1) < 5 * RP_SECOND_MS);
    (void)upload(s, "second"); /* also one that comes while it sleeps */
    assert_true(wait_for(s, "SELECT COUNT(*) FROM file WHERE status = 6", 2) < 5 * RP_SECOND_MS);
    assert_int_equal(number(s, "SELECT reserved_bytes + used_bytes + open_uploads FROM tenant"), 0);
    wait_for(s, PURGED, 2);
    assert_int_equal(number(s, "SELECT COUNT(*) FROM mark WHERE state = 1 AND file_id IS NULL"), 1);
    assert_true(there(s, "k"));
    stop_loop(s);
    assert_int_equal(number(s, "SELECT COUNT(*) FROM run_record WHERE name = 'continuous@a' AND outcome = 'done'"), 1);
}

static void test_intervals_are_the_longest_between_two_ticks(void **state)
{
    struct rp_cron cron;
    (void)state;
    ok(rp_cron_parse("*/15 * * * *", &cron, &err));
    assert_int_equal(rp_schedule_interval_ms(&cron, 0), 15 * RP_MINUTE_MS);
    ok(rp_cron_parse("0 2 * * *", &cron, &err));
    assert_int_equal(rp_schedule_interval_ms(&cron, 0), RP_DAY_MS);
    ok(rp_cron_parse("0 9 * * mon-fri", &cron, &err));
    assert_int_equal(rp_schedule_interval_ms(&cron, 0), 3 * RP_DAY_MS);
}

/* ---- on demand ---- */

/* As a request does: room first, then the command that begins it. */
static int begin_kind(struct stage *s, struct rp_runs *runs, const char *kind, const char *store, int64_t *id)
{
    struct rp_run run;
    struct rp_run_command c;
    ok(rp_runs_reserve(runs, &err));
    rp_run_command_init(&c, &run, kind, store != NULL ? store : "all", &s->session.worker, RP_HOUR_MS, "token:me");
    int r = rp_command_run(s->test.catalog, &c.command);
    if (r == 0) *id = run.id;
    rp_runs_start(runs, store, "token:me", r == 0 ? &run : NULL);
    return r;
}

static int begin(struct stage *s, struct rp_runs *runs, const char *store, int64_t *id)
{
    return begin_kind(s, runs, RP_RUN_SWEEP, store, id);
}

static void test_M2_an_import_is_a_run_on_demand_and_by_schedule(void **state)
{
    struct stage *s = *state;
    struct rp_runs *runs;
    struct rp_watch *watch;
    int64_t id = 0;
    open_stage(s, "");
    mark(s, "k", RP_DAY_MS);
    struct rp_runs_options options = { .session = &s->session, .writers = s->writers, .lane = 14 };
    ok(rp_runs_new(&options, &runs, &err));
    ok(begin_kind(s, runs, RP_RUN_IMPORT, "main", &id));
    wait_for(s, "SELECT COUNT(*) FROM run_record WHERE kind = 'import' AND name = 'main' AND outcome = 'done'", 1);
    rp_runs_stop(runs);
    s->session.config.stores[0].import_schedule = "0 3 * * *";
    struct rp_watch_options watching = { .session = &s->session, .writers = s->writers, .node = "a", .lane = 15 };
    ok(rp_watch_start(&rp_import_watch, &watching, &watch, &err));
    wait_for(s, "SELECT COUNT(*) FROM schedule WHERE name = 'import:main'", 1);
    rp_watch_stop(watch);
    assert_int_equal(number(s, RECORDS), 1); /* a new schedule makes up for nothing */
    run_sql(s, "UPDATE schedule SET tick_at = tick_at - 172800000;");
    ok(rp_watch_start(&rp_import_watch, &watching, &watch, &err));
    wait_for(s, "SELECT COUNT(*) FROM run_record WHERE kind = 'import' AND body LIKE '%\"scanned\":1,%'", 2);
    rp_watch_stop(watch);
    assert_int_equal(number(s, "SELECT COUNT(*) FROM run_lock WHERE run_id IS NOT NULL"), 0);
}

static void test_a_run_on_demand_answers_with_its_id_and_a_second_is_refused(void **state)
{
    struct stage *s = *state;
    struct rp_runs *runs;
    struct rp_run held;
    int64_t id = 0;
    open_stage(s, "");
    struct rp_runs_options options = { .session = &s->session, .writers = s->writers, .lane = 14 };
    ok(rp_runs_new(&options, &runs, &err));
    mark(s, "k", 0);
    ok(begin(s, runs, "main", &id));
    assert_true(id != 0);
    wait_for(s, RECORDS, 1);
    assert_int_equal(number(s, "SELECT run_id FROM run_record"), id);
    assert_int_equal(number(s, PURGED), 1);
    ok(rp_run_begin(s->test.catalog, "sweep", "main", &s->test.worker, RP_HOUR_MS, &held, &err));
    assert_int_equal(begin(s, runs, "main", &id), RP_ERUNNING);
    ok(rp_run_end(s->test.catalog, &held, "done", &err));
    for (int i = 0; i < 12;
         i++) { /* more than there are places for at a time: each ends, and its place is used again */
        ok(begin(s, runs, NULL, &id));
        wait_for(s, RECORDS, 3 + i);
    }
    rp_runs_stop(runs);
}

static bool log_says(struct stage *s, const char *words)
{
    char path[160], line[4096];
    bool found = false;
    snprintf(path, sizeof path, "%s/log", s->dbs.dir);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL)
        found = found || strstr(line, words) != NULL;
    fclose(f);
    return found;
}

/* The directory in the URL is there only later. */
static void test_a_run_whose_catalog_cannot_be_opened_says_so_and_begins_when_it_can(void **state)
{
    struct stage *s = *state;
    RP_CLEANUP(rp_freep) struct rp_session *late = malloc(sizeof *late);
    struct rp_runs *runs;
    char dir[96], url[160];
    int64_t id = 0, began_ms = rp_time_boot_ms();
    open_stage(s, "");
    mark(s, "k", 0);
    assert_non_null(late);
    *late = s->session;
    snprintf(dir, sizeof dir, "%s/later", s->dbs.dir);
    snprintf(url, sizeof url, "sqlite:%s/%s", dir, strrchr(s->dbs.url, '/') + 1);
    late->config.catalog_url = url;
    struct rp_runs_options options = { .session = late, .writers = s->writers, .lane = 14 };
    ok(rp_runs_new(&options, &runs, &err));
    ok(begin(s, runs, "main", &id));
    while (!log_says(s, "cleanup_failed")) {
        assert_true(rp_time_boot_ms() - began_ms < PATIENCE_MS);
        let_pass(10);
    }
    assert_int_equal(symlink(s->dbs.dir, dir), 0);
    wait_for(s, RECORDS, 1);
    assert_int_equal(number(s, PURGED), 1);
    assert_true(id != 0);
    rp_runs_stop(runs);
}

/* Its thread is there before it is begun: a run that nobody carries out would hold its lock. */
static void test_a_run_that_gets_no_thread_is_refused_before_it_begins(void **state)
{
    struct stage *s = *state;
    struct rp_runs *runs;
    pthread_attr_t usual, too_large;
    int64_t id = 0;
    open_stage(s, "");
    struct rp_runs_options options = { .session = &s->session, .writers = s->writers, .lane = 14 };
    ok(rp_runs_new(&options, &runs, &err));
    pthread_getattr_default_np(&usual);
    pthread_getattr_default_np(&too_large);
    pthread_attr_setstacksize(&too_large, (size_t)1 << 47);
    assert_int_equal(pthread_setattr_default_np(&too_large), 0);
    assert_int_equal(rp_runs_reserve(runs, &err), RP_EBUSY);
    assert_int_equal(pthread_setattr_default_np(&usual), 0);
    assert_non_null(strstr(err.text, "no thread"));
    rp_error_clear(&err);
    ok(begin(s, runs, "main", &id));
    wait_for(s, RECORDS, 1);
    rp_runs_stop(runs);
}

/* ---- the watch ---- */

#define RAISED  "SELECT COUNT(*) FROM audit WHERE event = 'alert.raised'"
#define CLEARED "SELECT COUNT(*) FROM audit WHERE event = 'alert.cleared'"

static void test_M10_two_watches_raise_and_clear_a_condition_once(void **state)
{
    struct stage *s = *state;
    struct rp_watch *watch[2];
    open_stage(s, "alerts: { marked_over: 2, no_worker_for: 0s }\n");
    for (int i = 0; i < 2; i++) {
        struct rp_watch_options options = {
            .session = &s->session, .writers = s->writers, .node = i == 0 ? "a" : "b", .lane = 14 + i, .every_ms = 50
        };
        ok(rp_watch_start(&rp_alert_watch, &options, &watch[i], &err));
    }
    mark(s, "k1", RP_DAY_MS);
    mark(s, "k2", RP_DAY_MS);
    let_pass(300);
    assert_int_equal(number(s, RAISED), 0);
    mark(s, "k3", RP_DAY_MS);
    wait_for(s, RAISED, 1);
    run_sql(s, "UPDATE tally SET marks = 0 WHERE state = 1;");
    wait_for(s, CLEARED, 1);
    let_pass(300);
    assert_int_equal(number(s, RAISED), 1);
    assert_int_equal(number(s, CLEARED), 1);
    run_sql(s, "UPDATE tally SET marks = 3 WHERE state = 1;");
    wait_for(s, RAISED, 2);
    wait_for(s, "SELECT COUNT(*) FROM alert WHERE told_at IS NOT NULL AND cleared_at IS NULL", 1); /* nobody to tell */
    for (int i = 0; i < 2; i++)
        rp_watch_stop(watch[i]);
    run_sql(s, "UPDATE tally SET marks = (SELECT COUNT(*) FROM mark WHERE state = 1) WHERE state = 1;");
}

static void test_C11_a_stale_lock_and_failed_runs_are_seen(void **state)
{
    struct stage *s = *state;
    struct rp_watch *watch;
    struct rp_run run;
    open_stage(s, "alerts: { lock_stale_over: 1s, error_rate_over: 10, no_worker_for: 0s }\n");
    ok(rp_run_begin(s->test.catalog, "sweep", "all", &s->test.worker, RP_HOUR_MS, &run, &err));
    struct rp_watch_options options = {
        .session = &s->session, .writers = s->writers, .node = "a", .lane = 14, .every_ms = 50
    };
    ok(rp_watch_start(&rp_alert_watch, &options, &watch, &err));
    wait_for(s, "SELECT COUNT(*) FROM alert WHERE name = 'ReprieveLockStale' AND cleared_at IS NULL", 1);
    ok(rp_run_end(s->test.catalog, &run, "failed", &err));
    wait_for(s, "SELECT COUNT(*) FROM alert WHERE name = 'ReprieveRunErrors' AND cleared_at IS NULL", 1);
    wait_for(s, "SELECT COUNT(*) FROM alert WHERE name = 'ReprieveLockStale' AND cleared_at IS NOT NULL", 1);
    rp_watch_stop(watch);
}

/* Sweeps that end hide no other run that does not. */
static void test_C11_each_scheduled_run_is_waited_for_by_itself(void **state)
{
    struct stage *s = *state;
    struct rp_watch *watch;
    struct rp_run run;
    open_stage(s, "sweep: { schedule: \"0 3 * * *\" }\nalerts: { no_worker_for: 0s }\n");
    ok(rp_run_begin(s->test.catalog, "retention", "records", &s->test.worker, RP_HOUR_MS, &run, &err));
    ok(rp_run_end(s->test.catalog, &run, "done", &err));
    ok(rp_run_begin(s->test.catalog, "sweep", "main", &s->test.worker, RP_HOUR_MS, &run, &err));
    ok(rp_run_end(s->test.catalog, &run, "done", &err));
    run_sql(s, s->dbs.kind == DBS_POSTGRES ? "ALTER TABLE run_record DISABLE TRIGGER USER;"
                                           : "DROP TRIGGER run_record_no_update;");
    run_sql(s, "UPDATE run_record SET finished_at = finished_at - 100000000 WHERE kind = 'retention';"); /* 27 h */
    struct rp_watch_options options = {
        .session = &s->session, .writers = s->writers, .node = "a", .lane = 14, .every_ms = 50
    };
    ok(rp_watch_start(&rp_alert_watch, &options, &watch, &err));
    wait_for(s,
             "SELECT COUNT(*) FROM alert WHERE name = 'ReprieveNoRun' AND cleared_at IS NULL "
             "AND details LIKE '%retention records%'",
             1);
    run_sql(s, "UPDATE run_record SET finished_at = finished_at + 100000000 WHERE kind = 'retention';");
    wait_for(s, "SELECT COUNT(*) FROM alert WHERE name = 'ReprieveNoRun' AND cleared_at IS NOT NULL", 1);
    ok(rp_run_begin(s->test.catalog, "safety_net", "files", &s->test.worker, RP_HOUR_MS, &run, &err));
    ok(rp_run_end(s->test.catalog, &run, "done", &err));
    run_sql(s, "UPDATE run_record SET finished_at = finished_at - 100000000 WHERE kind = 'safety_net';");
    wait_for(s,
             "SELECT COUNT(*) FROM alert WHERE name = 'ReprieveNoRun' AND cleared_at IS NULL "
             "AND details LIKE '%safety_net files%'",
             1);
    run_sql(s, "UPDATE run_record SET finished_at = finished_at + 100000000 WHERE kind = 'safety_net';");
    wait_for(s, "SELECT COUNT(*) FROM alert WHERE name = 'ReprieveNoRun' AND cleared_at IS NOT NULL", 1);
    rp_watch_stop(watch);
}

#define ON_BOTH(test)                                                                                                  \
    { #test " on sqlite", test, set_up, tear_down, NULL },                                                             \
    {                                                                                                                  \
#test " on postgres", test, set_up, tear_down, (void *)1                                                       \
    }

/* `sqlite` and `postgres` (with argument) are the halves that can run side by side. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(test_M11_what_others_mark_is_purged_within_seconds),
        ON_BOTH(test_M11_nothing_is_purged_early_and_nothing_to_do_makes_no_run),
        ON_BOTH(test_X3_held_marks_wait_without_runs_or_haste),
        ON_BOTH(test_M12_a_store_that_is_away_is_waited_for),
        ON_BOTH(test_a_store_that_was_away_at_the_start_is_opened_later),
        ON_BOTH(test_a_run_that_died_gets_its_record_from_the_next_daemon),
        ON_BOTH(test_a_lock_that_was_taken_over_ends_the_run_and_a_new_one_begins),
        ON_BOTH(test_M11_a_tick_is_run_once_over_all_nodes_and_a_missed_one_at_start),
        ON_BOTH(test_M11_abandoned_uploads_do_not_wait_for_the_tick),
        cmocka_unit_test(test_intervals_are_the_longest_between_two_ticks),
        cmocka_unit_test_setup_teardown(test_a_run_whose_catalog_cannot_be_opened_says_so_and_begins_when_it_can,
                                        set_up, tear_down),
        ON_BOTH(test_M2_an_import_is_a_run_on_demand_and_by_schedule),
        ON_BOTH(test_a_run_on_demand_answers_with_its_id_and_a_second_is_refused),
        { "test_a_run_that_gets_no_thread_is_refused_before_it_begins on sqlite",
          test_a_run_that_gets_no_thread_is_refused_before_it_begins, set_up, tear_down, NULL },
        ON_BOTH(test_M10_two_watches_raise_and_clear_a_condition_once),
        ON_BOTH(test_C11_a_stale_lock_and_failed_runs_are_seen),
        ON_BOTH(test_C11_each_scheduled_run_is_waited_for_by_itself),
    };
    if (argc > 1 && strcmp(argv[1], "postgres") == 0) cmocka_set_test_filter("* on postgres");
    if (argc > 1 && strcmp(argv[1], "sqlite") == 0) cmocka_set_skip_filter("* on postgres");
    return cmocka_run_group_tests_name("sweep_loop", tests, NULL, NULL);
}
