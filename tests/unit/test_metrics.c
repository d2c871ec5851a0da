/* SPDX-License-Identifier: Apache-2.0 */
/* What Prometheus reads: every name of INTERFACE, in a form that promtool accepts, with a bounded
 * number of labels. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "catalog/run.h"
#include "core/purge/purge.h"
#include "http/route/route.h"
#include "lib/world.h"
#include "metrics/metrics.h"
#include "metrics/series.h"

static struct rp_error err;

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    world_make(w, DBS_SQLITE_FILE, WORLD_MEMORY);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world_drop(*state);
    free(*state);
    return 0;
}

static char *written(struct rp_metrics *m, struct world *w)
{
    struct rp_buf out = RP_BUF((size_t)8 << 20);
    struct rp_store *stores[] = { w != NULL ? &w->store : NULL };
    ok(rp_metrics_write(m, w != NULL ? w->dbs.db : NULL, stores, w != NULL ? 1 : 0, rp_clock_now_ms(NULL), &out, &err));
    return out.data;
}

static void has(const char *text, const char *line)
{
    if (strstr(text, line) == NULL) fprintf(stderr, "no '%s' in:\n%s\n", line, text);
    assert_non_null(strstr(text, line));
}

static const struct rp_metrics_route calls[] = {
    { &calls[0], "GET", "/v1/files" },
    { &calls[1], "POST", "/v1/files" },
};

static bool routes(size_t i, struct rp_metrics_route *out)
{
    if (i < sizeof calls / sizeof calls[0]) *out = calls[i];
    return i < sizeof calls / sizeof calls[0];
}

static struct rp_metrics *new_metrics(void)
{
    struct rp_metrics *m = NULL;
    ok(rp_metrics_new(routes, &m, &err));
    return m;
}

static void use_everything(struct rp_metrics *m)
{
    rp_metrics_request(m, &calls[1], 201, 700);
    rp_metrics_request(m, NULL, 404, 30000);
    rp_metrics_request(m, NULL, 299, 30000);
    rp_metrics_round(m, 1);
    rp_metrics_round(m, 130);
    rp_metrics_abandoned(m, "acme", 2, 4096);
    rp_metrics_failure(m, "webhook");
    rp_metrics_event(m, "media", "stale");
    const struct rp_run run = { .kind = "sweep", .name = "all", .started_at_ms = INT64_C(1789999997623) };
    struct rp_run stopped = { .kind = "sweep", .name = "main", .started_at_ms = INT64_C(1789999997623) };
    rp_metrics_run(m, &run, "done", INT64_C(1790000000123));
    rp_metrics_run(m, &stopped, "partial", INT64_C(1790000000123));
    stopped.figures.n_errors = 3;
    rp_metrics_run(m, &stopped, "partial", INT64_C(1790000000123));
    rp_metrics_run(m, &run, "failed", INT64_C(1790000000123));
}

static void every_name_is_there(void **state)
{
    static const char *const names[] = { "reprieve_marks",
                                         "reprieve_marks_overdue",
                                         "reprieve_oldest_overdue_seconds",
                                         "reprieve_purged_total",
                                         "reprieve_bytes_freed_total",
                                         "reprieve_uploads_abandoned_total",
                                         "reprieve_quota_refunded_bytes_total",
                                         "reprieve_failures_total",
                                         "reprieve_dead_letters",
                                         "reprieve_runs_total",
                                         "reprieve_run_duration_seconds",
                                         "reprieve_last_run_timestamp_seconds",
                                         "reprieve_worker_last_seen_timestamp_seconds",
                                         "reprieve_events_total",
                                         "reprieve_http_requests_total",
                                         "reprieve_http_duration_seconds",
                                         "reprieve_commit_batch_size",
                                         "reprieve_store_guarantee" };
    struct rp_metrics *m = new_metrics();
    use_everything(m);
    RP_CLEANUP(rp_freep) char *text = written(m, *state);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char line[128];
        snprintf(line, sizeof line, "# TYPE %s ", names[i]);
        has(text, line);
    }
    has(text, "reprieve_runs_total{kind=\"sweep\",name=\"main\",outcome=\"partial\"} 2\n");
    has(text, "reprieve_runs_with_errors_total{kind=\"sweep\",name=\"main\"} 1\n");
    has(text, "reprieve_runs_with_errors_total{kind=\"sweep\",name=\"all\"} 1\n");
    has(text, "reprieve_catalog_up 1\n");
    has(text, "reprieve_marks{state=\"marked\"} 0\n");
    has(text, "reprieve_http_requests_total{route=\"POST /v1/files\",status=\"201\"} 1\n");
    has(text, "reprieve_http_requests_total{route=\"none\",status=\"404\"} 1\n");
    has(text, "reprieve_http_requests_total{route=\"none\",status=\"other\"} 1\n");
    has(text, "reprieve_http_duration_seconds_bucket{le=\"0.001\"} 1\n");
    has(text, "reprieve_http_duration_seconds_bucket{le=\"0.05\"} 3\n");
    has(text, "reprieve_http_duration_seconds_count 3\n");
    has(text, "reprieve_commit_batch_size_bucket{le=\"128\"} 1\n");
    has(text, "reprieve_commit_batch_size_bucket{le=\"256\"} 2\n");
    has(text, "reprieve_commit_batch_size_sum 131.000000\n");
    has(text, "reprieve_uploads_abandoned_total{tenant=\"acme\"} 2\n");
    has(text, "reprieve_quota_refunded_bytes_total{tenant=\"acme\"} 4096\n");
    has(text, "reprieve_events_total{store=\"media\",outcome=\"stale\"} 1\n");
    has(text, "reprieve_runs_total{kind=\"sweep\",name=\"all\",outcome=\"done\"} 1\n");
    has(text, "reprieve_run_duration_seconds_bucket{le=\"5\"} 4\n");
    has(text, "reprieve_last_run_timestamp_seconds{name=\"all\"} 1790000000.123\n");
    has(text, "reprieve_store_guarantee{store=\"main\",level=\"");
    rp_metrics_free(m);
}

/* Its own words, from the program that will read it. */
static void promtool_has_nothing_to_say(void **state)
{
    char path[] = "/tmp/rp-metrics.XXXXXX", command[128];
    struct rp_metrics *m = new_metrics();
    use_everything(m);
    rp_metrics_failure(m, "quote \" backslash \\ line\nend \xff");
    char *text = written(m, *state);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    snprintf(command, sizeof command, "promtool check metrics <%s 2>&1", path);
    FILE *p = popen(command, "r");
    char said[4096] = "";
    size_t n = fread(said, 1, sizeof said - 1, p);
    int code = pclose(p);
    if (code != 0 || n > 0) fprintf(stderr, "promtool: %s\n", said);
    assert_int_equal(code, 0);
    assert_int_equal(n, 0);
    unlink(path);
    free(text);
    rp_metrics_free(m);
}

static void label_values_are_escaped(void **state)
{
    (void)state;
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(100);
    rp_metric_label(&b, "a\"b\\c\nd\xff\xc3\xa9");
    assert_string_equal(rp_buf_text(&b), "a\\\"b\\\\c\\nd\xef\xbf\xbd\xc3\xa9");
}

static size_t lines_with(const char *text, const char *what)
{
    size_t n = 0;
    for (; (text = strstr(text, what)) != NULL; text++)
        n++;
    return n;
}

static void tenants_beyond_a_thousand_are_others(void **state)
{
    (void)state;
    struct rp_metrics *m = new_metrics();
    char name[32];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 1500; i++) {
            snprintf(name, sizeof name, "tenant-%d", i);
            rp_metrics_abandoned(m, name, 1, 10);
        }
    RP_CLEANUP(rp_freep) char *text = written(m, NULL);
    assert_int_equal(lines_with(text, "reprieve_uploads_abandoned_total{"), 1001);
    has(text, "reprieve_uploads_abandoned_total{tenant=\"tenant-999\"} 2\n");
    has(text, "reprieve_uploads_abandoned_total{tenant=\"other\"} 1000\n");
    has(text, "reprieve_quota_refunded_bytes_total{tenant=\"other\"} 10000\n");
    rp_metrics_free(m);
}

static void without_a_catalog_the_rest_is_there(void **state)
{
    (void)state;
    struct rp_metrics *m = new_metrics();
    use_everything(m);
    RP_CLEANUP(rp_freep) char *text = written(m, NULL);
    has(text, "reprieve_catalog_up 0\n");
    has(text, "reprieve_http_duration_seconds_count 3\n");
    assert_null(strstr(text, "reprieve_marks{"));
    rp_metrics_free(m);
}

static void what_the_catalog_holds_is_shown(void **state)
{
    struct world *w = *state;
    struct rp_metrics *m = new_metrics();
    world_put_many(w, 5, 100);
    world_mark_many(w, 5, 60000);
    world_pass(w, 3600000);
    RP_CLEANUP(rp_freep) char *text = written(m, w);
    has(text, "reprieve_marks{state=\"marked\"} 5\n");
    has(text, "reprieve_marks_overdue 5\n");
    const char *late = strstr(text, "\nreprieve_oldest_overdue_seconds ");
    assert_non_null(late);
    assert_true(strtod(late + strlen("\nreprieve_oldest_overdue_seconds "), NULL) > 3000);
    struct rp_store_config observed = *w->store.config;
    const struct rp_store_config *before = w->store.config;
    observed.mode = RP_MODE_OBSERVE; /* it is not purged, and its marks are nobody's fault */
    w->store.config = &observed;
    RP_CLEANUP(rp_freep) char *watched = written(m, w);
    has(watched, "\nreprieve_oldest_overdue_seconds 0\n");
    has(watched, "\nreprieve_marks_overdue 0\n");
    w->store.config = before;
    rp_metrics_free(m);
}

static void a_sweep_is_counted_by_its_batches(void **state)
{
    struct world *w = *state;
    struct rp_metrics *m = new_metrics();
    struct world_steps steps;
    world_put_many(w, 4, 100);
    world_mark_many(w, 4, 60000);
    world_pass(w, 3600000);
    world_remove(w, "many/00002");
    world_steps_begin(w, w->catalog, "main", &steps);
    world_steps_claim(w, w->catalog, &steps);
    world_steps_erase(w, w->catalog, &steps);
    ok(rp_purge_finish(w->catalog, &w->rules, &steps.batch, &steps.run, &err));
    rp_metrics_batch(m, &steps.batch);
    ok(rp_run_end(w->catalog, &steps.run, "done", &err));
    world_steps_done(&steps);
    RP_CLEANUP(rp_freep) char *text = written(m, w);
    has(text, "reprieve_purged_total{store=\"main\",outcome=\"erased\"} 3\n");
    has(text, "reprieve_purged_total{store=\"main\",outcome=\"already_gone\"} 1\n");
    has(text, "reprieve_bytes_freed_total{store=\"main\"} 300\n");
    has(text, "reprieve_last_run_timestamp_seconds{name=\"main\"} "); /* from its record: nobody told m of it */
    rp_metrics_free(m);
}

static void *count_much(void *ctx)
{
    struct rp_metrics *m = ctx;
    char name[32];
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof name, "t%d", i % 50);
        rp_metrics_abandoned(m, name, 1, 1);
        rp_metrics_request(m, &calls[i % 2], 200, i);
    }
    return NULL;
}

static void nothing_is_lost_between_threads(void **state)
{
    (void)state;
    struct rp_metrics *m = new_metrics();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_much, m), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    RP_CLEANUP(rp_freep) char *text = written(m, NULL);
    for (int i = 0; i < 50; i++) {
        char line[128];
        snprintf(line, sizeof line, "reprieve_uploads_abandoned_total{tenant=\"t%d\"} 1600\n", i);
        has(text, line);
    }
    has(text, "reprieve_http_requests_total{route=\"GET /v1/files\",status=\"200\"} 40000\n");
    has(text, "reprieve_http_requests_total{route=\"POST /v1/files\",status=\"200\"} 40000\n");
    has(text, "reprieve_http_duration_seconds_count 80000\n");
    rp_metrics_free(m);
}

static void no_metrics_are_fine(void **state)
{
    (void)state;
    use_everything(NULL);
    rp_metrics_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_name_is_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(promtool_has_nothing_to_say, set_up, tear_down),
        cmocka_unit_test(label_values_are_escaped),
        cmocka_unit_test(tenants_beyond_a_thousand_are_others),
        cmocka_unit_test(without_a_catalog_the_rest_is_there),
        cmocka_unit_test_setup_teardown(what_the_catalog_holds_is_shown, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_sweep_is_counted_by_its_batches, set_up, tear_down),
        cmocka_unit_test(nothing_is_lost_between_threads),
        cmocka_unit_test(no_metrics_are_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
