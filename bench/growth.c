/* SPDX-License-Identifier: Apache-2.0 */
/* What has ended costs nothing: the same questions asked of a catalog with many records of what has
 * ended and of one with few, in the same run. Claims (a sweep of 1,000 due marks), `explain`, lists
 * and metrics of a daemon, and memory.
 *
 *   many   10,000,000 ended and 1,000,000 waiting marks, 10,000 tenants, 200,000 purged files beside 50 of one tenant
 *   few    10,000 marks, ended and waiting; 10 tenants, 200 purged files
 *
 * Rows are put there by SQL, without audit rows. Then a retention lets half of the ended marks go.
 * Numbers are printed, never asserted; wanted are ratios up to 1.3 and less than 64 MiB. BENCH_DIR:
 * where it works (default: here). BENCH_SCALE=0.1: a tenth of the many. BENCH_POSTGRES: a URL, else
 * SQLite. */
#include "base/cleanup.h"
#include "base/error.h"
#include "base/time.h"
#include "db/db.h"
#include "ground.h"
#include "http_daemon.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS  6 /* of sweeps; the first, which also warms up, does not count */
#define ROUND_N 1000
#define ASKED   41
#define WARM_UP 5

struct shape {
    int64_t ended, waiting, tenants, purged;
};

struct side {
    struct bench_daemon daemon;
    double sweep_s, sweep_cpu_s, explain_s, sweep_mib;
};

/* ---- filling ---- */

#define NUMBERS(n) "WITH RECURSIVE n(i) AS (SELECT CAST(1 AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i < " n ") "
#define ID(at)     "(" at " - 1577836800000) * 2097152 + i %% 2000000"

/* Of twenty ended marks seventeen are purged and three reprieved; they ended within the last 60
 * days. */
static const char ended_marks[] =
    "INSERT INTO mark (id, store_id, key, active, state, was, next_at, due_at, marked_at, fence, run_id, etag, "
    "version, "
    "size_bytes, modified_ms, outcome, ended_at, reason, actor) " NUMBERS(
        "%1$" PRId64) ", s(i, at, st) AS (SELECT i, "
                      "CAST(%2$" PRId64 " AS bigint) + i * 5184000000 / %1$" PRId64
                      ", CASE WHEN i %% 20 < 17 THEN 4 ELSE 5 END FROM n) "
                      "SELECT " ID(
                          "at") ", 1, 'ended/' || i, NULL, st, 1, NULL, at, at, 1, i / 1000, 'e', '', 4096, at, "
                                "CASE WHEN st = 4 THEN 1 ELSE 5 END, at + 1000, 'bench', 'bench' FROM s";
static const char waiting_marks[] =
    "INSERT INTO mark (id, store_id, key, active, state, was, next_at, due_at, marked_at, fence, etag, version, "
    "size_bytes, modified_ms, reason, actor) " NUMBERS(
        "%1$" PRId64) ", s(i, at) AS (SELECT i, CAST(%2$" PRId64 " AS bigint) + i FROM n) "
                      "SELECT " ID("at") ", 1, '%3$s/' || i, 1, 1, 1, at + %4$" PRId64 ", at + %4$" PRId64
                                         ", at, 0, 'e', '', 4096, at, 'bench', 'bench' FROM s";
static const char purged_files[] =
    "INSERT INTO file (id, tenant_id, name, live_name, store_id, key, status, was, size_bytes, content_type, etag, "
    "version, modified_ms, mark_id, url_ends_at, created_at, changed_at) " NUMBERS(
        "%1$" PRId64) "SELECT i, (SELECT id FROM tenant WHERE name = 'tenant-0'), 'f' || i, "
                      "CASE WHEN i <= 50 THEN 'f' || i ELSE NULL END, 1, 'files/' || i, CASE WHEN i <= 50 "
                      "THEN 3 ELSE 5 END, 1, "
                      "4096, '', '', '', 0, i, 0, i, %2$" PRId64 " FROM n";
static const char others[] = "INSERT INTO tenant (id, name) " NUMBERS(
    "%1$" PRId64) "SELECT 1000 + i, 'other-' || i FROM n;"
                  "INSERT INTO run_record (run_id, kind, name, outcome, started_at, finished_at, body) " NUMBERS(
                      "%2$" PRId64) "SELECT i * 1000, 'sweep', 'main', 'done', %3$" PRId64 ", %3$" PRId64 " + 1, "
                                    "'{\"kind\":\"sweep\",\"name\":\"main\",\"counts\":{}}' FROM n;"
                                    "INSERT INTO tally (lane, store_id, state, marks, bytes) "
                                    "SELECT 0, store_id, state, COUNT(*), 4096 * COUNT(*) FROM mark GROUP BY store_id, "
                                    "state "
                                    "ON CONFLICT (lane, store_id, state) DO UPDATE SET marks = excluded.marks, bytes = "
                                    "excluded.bytes;";

static void script(struct rp_db *db, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void script(struct rp_db *db, const char *fmt, ...)
{
    char text[4096];
    struct rp_error err = { 0 };
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof text) bench_fail("a statement is too long");
    if (rp_db_script(db, text, &err) < 0) bench_fail("%s", err.text);
}

static void fill(const struct bench_daemon *d, const struct shape *shape)
{
    RP_CLEANUP(rp_db_closep) struct rp_db *db = NULL;
    struct rp_error err = { 0 };
    int64_t now_ms = rp_clock_wall_ms(&rp_clock_host), past_ms = now_ms - 70 * RP_DAY_MS;
    if (rp_db_open(d->catalog_url, &(struct rp_db_options){ 0 }, &db, &err) < 0) bench_fail("%s", err.text);
    if (rp_db_begin(db, true, &err) < 0) bench_fail("%s", err.text);
    script(db, ended_marks, shape->ended, past_ms);
    script(db, waiting_marks, shape->waiting, now_ms - 2 * RP_DAY_MS, "waits", 20 * RP_DAY_MS);
    script(db, waiting_marks, (int64_t)ROUNDS * ROUND_N, now_ms - RP_DAY_MS, "due", (int64_t)0);
    script(db, purged_files, shape->purged, past_ms);
    script(db, others, shape->tenants, shape->tenants * 10, past_ms);
    if (rp_db_commit(db, &err) < 0) bench_fail("%s", err.text);
}

/* ---- commands ---- */

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_value);
    return values[n / 2];
}

static double explain_s(const struct side *s)
{
    const char *const argv[] = { bench_binary(), "--config", s->daemon.config, "--json",
                                 "--quiet",      "explain",  "main:ended/77",  NULL };
    return bench_run(argv, NULL).seconds;
}

static struct bench_spent sweep(const struct side *s)
{
    char limit[16];
    const char *const argv[] = { bench_binary(), "--config", s->daemon.config, "--json", "--quiet", "sweep", "--limit",
                                 limit,          NULL };
    snprintf(limit, sizeof limit, "%d", ROUND_N);
    return bench_run(argv, NULL);
}

/* Few and many by turns, so that a slow minute shows in both. */
static void measure_commands(struct side *const sides[2])
{
    double sweeps[2][ROUNDS], cpu[2][ROUNDS], explains[2][ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        for (int k = 0; k < 2; k++) {
            struct bench_spent spent = sweep(sides[k]);
            sweeps[k][i] = spent.seconds;
            cpu[k][i] = spent.cpu_s;
            sides[k]->sweep_mib = spent.peak_mib;
            explains[k][i] = explain_s(sides[k]);
        }
    for (int k = 0; k < 2; k++) {
        sides[k]->sweep_s = median(sweeps[k] + 1, ROUNDS - 1);
        sides[k]->sweep_cpu_s = median(cpu[k] + 1, ROUNDS - 1);
        sides[k]->explain_s = median(explains[k] + 1, ROUNDS - 1);
    }
}

/* ---- requests ---- */

static size_t drop(char *p, size_t size, size_t n, void *ctx)
{
    (void)p, (void)ctx;
    return size * n;
}

static struct curl_slist *bearer(const char *file)
{
    char secret[160], line[200];
    FILE *f = fopen(file, "re");
    if (f == NULL || fgets(secret, sizeof secret, f) == NULL) bench_fail("%s: no token", file);
    fclose(f);
    secret[strcspn(secret, "\n")] = 0;
    snprintf(line, sizeof line, "Authorization: Bearer %s", secret);
    return curl_slist_append(NULL, line);
}

struct asking {
    CURL *curl;
    struct curl_slist *headers;
    double times[ASKED];
};

static void begin(struct asking *a, const struct bench_daemon *d, const char *path, bool as_tenant)
{
    char url[300];
    snprintf(url, sizeof url, "%s%s", d->url, path);
    *a = (struct asking){ .curl = curl_easy_init(), .headers = bearer(as_tenant ? d->tokens : d->admin) };
    curl_easy_setopt(a->curl, CURLOPT_URL, url);
    curl_easy_setopt(a->curl, CURLOPT_HTTPHEADER, a->headers);
    curl_easy_setopt(a->curl, CURLOPT_WRITEFUNCTION, drop);
}

static double ask(struct asking *a, const char *path)
{
    long status = 0;
    double begun = bench_now_s();
    if (curl_easy_perform(a->curl) != CURLE_OK) bench_fail("%s did not answer", path);
    curl_easy_getinfo(a->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) bench_fail("%s answered %ld", path, status);
    return bench_now_s() - begun;
}

/* By turns, too. */
static void ask_both(struct side *const sides[2], const char *path, bool as_tenant, double out[2])
{
    struct asking a[2];
    for (int k = 0; k < 2; k++)
        begin(&a[k], &sides[k]->daemon, path, as_tenant);
    for (int i = -WARM_UP; i < ASKED; i++)
        for (int k = 0; k < 2; k++) {
            double took = ask(&a[k], path);
            if (i >= 0) a[k].times[i] = took;
        }
    for (int k = 0; k < 2; k++) {
        out[k] = median(a[k].times, ASKED);
        curl_slist_free_all(a[k].headers);
        curl_easy_cleanup(a[k].curl);
    }
}

static const struct {
    const char *path;
    bool as_tenant;
} asked[] = {
    { "/v1/files?limit=20", true },
    { "/v1/files?status=purged&limit=20", true },
    { "/v1/marks?limit=20", false },
    { "/v1/marks?state=purged&limit=20", false },
    { "/v1/marks?reason=bench&limit=20", false },
    { "/v1/runs?limit=20", false },
    { "/v1/dead-letters?limit=20", false },
    { "/v1/holds?limit=20", false },
    { "/v1/tokens?limit=20", false },
    { "/v1/quotas?limit=20", false },
    { "/v1/alerts", false },
    { "/v1/audit?limit=20", false },
    { "/metrics", false },
};

/* ---- both ---- */

static void print_ratio(const char *what, const char *unit, double few, double many)
{
    printf("  %-36s %9.2f %9.2f %-4s %6.2f\n", what, few, many, unit, many / few);
    fflush(stdout);
}

static void make(struct side *s, const char *base, const char *name, const struct shape *shape)
{
    double begun = bench_now_s();
    bench_daemon_make(&s->daemon, base, name, getenv("BENCH_POSTGRES"),
                      "retention: { marks: 40d, files: 40d }\nalerts: { marked_over: 0 }\n");
    bench_daemon_start(&s->daemon); /* the store gets its number */
    bench_daemon_stop(&s->daemon);
    fill(&s->daemon, shape);
    printf("  %s: %" PRId64 " ended and %" PRId64 " waiting marks, %" PRId64 " tenants, %" PRId64
           " files; filled in %.0f s\n",
           name, shape->ended, shape->waiting, shape->tenants, shape->purged, bench_now_s() - begun);
    fflush(stdout);
}

static void compare(struct side *few, struct side *many)
{
    struct side *const sides[] = { few, many };
    double took[2];
    measure_commands(sides);
    printf("  %-36s %9s %9s      %6s\n", "medians", "few", "many", "ratio");
    print_ratio("sweep of 1000 due marks", "ms", few->sweep_s * 1e3, many->sweep_s * 1e3);
    print_ratio("the same, CPU", "ms", few->sweep_cpu_s * 1e3, many->sweep_cpu_s * 1e3);
    print_ratio("explain", "ms", few->explain_s * 1e3, many->explain_s * 1e3);
    bench_daemon_start(&few->daemon);
    bench_daemon_start(&many->daemon);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        ask_both(sides, asked[i].path, asked[i].as_tenant, took);
        print_ratio(asked[i].path, "ms", took[0] * 1e3, took[1] * 1e3);
    }
    print_ratio("peak memory of a sweep", "MiB", few->sweep_mib, many->sweep_mib);
    print_ratio("peak memory of the daemon", "MiB", bench_daemon_peak_mib(&few->daemon),
                bench_daemon_peak_mib(&many->daemon));
    bench_daemon_stop(&few->daemon);
    bench_daemon_stop(&many->daemon);
}

static void measure_retention(struct side *s)
{
    const char *const argv[] = { bench_binary(), "--config", s->daemon.config, "--quiet", "retention", NULL };
    int64_t before = bench_daemon_count(&s->daemon, "SELECT COUNT(*) FROM mark");
    struct bench_spent spent = bench_run(argv, NULL);
    int64_t gone = before - bench_daemon_count(&s->daemon, "SELECT COUNT(*) FROM mark");
    printf("\n  retention let %" PRId64 " marks go in %.1f s: %.0f a second, peak %.1f MiB\n", gone, spent.seconds,
           (double)gone / spent.seconds, spent.peak_mib);
}

static int64_t scaled(double scale, int64_t n)
{
    return (int64_t)((double)n * scale) + 1;
}

int main(void)
{
    static struct side few, many;
    double scale = bench_scale();
    const char *base = getenv("BENCH_DIR");
    const struct shape small = { 9000, 1000, 10, 200 };
    const struct shape large = { scaled(scale, 10000000), scaled(scale, 1000000), scaled(scale, 10000),
                                 scaled(scale, 200000) };
    if (base == NULL) base = ".";
    curl_global_init(CURL_GLOBAL_DEFAULT);
    make(&few, base, "few", &small);
    make(&many, base, "many", &large);
    compare(&few, &many);
    measure_retention(&many);
    bench_daemon_remove(&few.daemon);
    bench_daemon_remove(&many.daemon);
    curl_global_cleanup();
    return 0;
}
