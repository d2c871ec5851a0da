/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon under load: wrk with 256 connections beside it on the same machine, every commit
 * durable.
 *
 *   each kind of request       how many a second, how long they take, what they cost in CPU and memory
 *   a kill in the middle       every upload that was answered is there
 *   PostgreSQL                 the same, beside a loop that makes each upload a transaction of its own (http_plain.h)
 *   abandoned uploads          what 100 times 100,000 uploads a day, 1 % of them abandoned, cost
 *
 * Figures are printed beside their targets and never asserted. What is asserted: what was answered
 * is what the catalog holds. BENCH_DIR: where it works (default: here). BENCH_SCALE=0.1: a tenth of
 * everything. */
#include "catalog/file/file.h"
#include "ground.h"
#include "http_daemon.h"
#include "http_load.h"
#include "http_plain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOAD_S      6
#define FILES_N     100000 /* that are confirmed, looked at and deleted */
#define OBJECTS_N   60000  /* of no file, marked and restored */
#define HOLD_S      2
#define ABANDONED_N 20000
#define KILL_S      1.5
#define DAY_UPLOADS 10000000 /* 100 times 100,000 */
#define DAY_S       86400

struct measures {
    double init_s, confirm_cpu_s, init_cpu_s; /* a second; CPU seconds of one request */
};

static double load_s(void)
{
    double seconds = LOAD_S * bench_scale();
    return seconds < 1 ? 1 : seconds;
}

/* ---- the table ---- */

static void print_header(void)
{
    printf("  %-22s %8s %9s %8s %8s %9s %8s %9s %9s\n", "", "answers", "a second", "p50 ms", "p99 ms", "peak MiB",
           "not 2xx", "us daemon", "us wrk");
}

static void print_answers(const char *what, const struct bench_answers *a, double target)
{
    double n = (double)a->answered;
    printf("  %-22s %8zu %9.0f %8.2f %8.2f %9.1f %8zu %9.1f %9.1f", what, a->answered, n / a->seconds, a->p50_ms,
           a->p99_ms, a->peak_mib, a->refused, a->daemon_cpu_s / n * 1e6, a->wrk_cpu_s / n * 1e6);
    if (target > 0) printf("   target %.0f: %.2f", target, n / a->seconds / target);
    if (a->broken > 0) printf("   %zu connections or answers lost", a->broken);
    printf("\n");
    fflush(stdout);
}

static void expect_rows(const struct bench_daemon *d, const char *what, size_t answered, const char *sql)
{
    int64_t rows = bench_daemon_count(d, sql);
    if (rows != (int64_t)answered) bench_fail("%zu %s were answered, the catalog has %" PRId64, answered, what, rows);
}

/* ---- one engine ---- */

static struct bench_answers measure(const struct bench_daemon *d, const char *what, const struct bench_load *load,
                                    double target)
{
    struct bench_answers a = bench_load_run(d, load);
    if (a.answered == 0) bench_fail("%s: nothing was answered", what);
    print_answers(what, &a, target);
    return a;
}

static size_t done_by(const struct bench_answers *a)
{
    return a->answered - a->refused;
}

static void measure_inits(const struct bench_daemon *d, bool targets, struct measures *out)
{
    struct bench_answers plain =
        measure(d, "init", &(struct bench_load){ .kind = "init", .seconds = load_s() }, targets ? 25000 : 0);
    expect_rows(d, "uploads", done_by(&plain), "SELECT COUNT(*) FROM file");
    struct bench_answers keyed =
        measure(d, "init, Idempotency-Key", &(struct bench_load){ .kind = "init_key", .seconds = load_s() },
                targets ? 15000 : 0);
    expect_rows(d, "uploads", done_by(&plain) + done_by(&keyed), "SELECT COUNT(*) FROM file");
    expect_rows(d, "uploads with a key", done_by(&keyed), "SELECT COUNT(*) FROM idempotency");
    out->init_s = (double)done_by(&plain) / plain.seconds;
    out->init_cpu_s = plain.daemon_cpu_s / (double)plain.answered;
}

/* Half of them as they were begun, which is how a folder is emptied; half without pattern, so that
 * each is on pages of its own. */
static void measure_deletes(const struct bench_daemon *d, const char *list, size_t n, bool targets)
{
    static const char *const names[] = { "delete, as begun", "delete, scattered" };
    size_t done = 0;
    for (int scattered = 0; scattered < 2; scattered++) {
        struct bench_listing half = { .status = RP_FILE_LIVE, .limit = n / 2, .scattered = scattered };
        bench_daemon_list(d, &half, list);
        struct bench_answers a =
            measure(d, names[scattered], &(struct bench_load){ .kind = "delete", .seconds = 60, .files = list },
                    targets ? 25000 : 0);
        done += done_by(&a);
    }
    expect_rows(d, "deletes", done, "SELECT COUNT(*) FROM file WHERE status = 4");
}

static void measure_files(const struct bench_daemon *d, bool targets, struct measures *out)
{
    char list[BENCH_PATH];
    size_t n = (size_t)(FILES_N * bench_scale());
    struct bench_listing pending = { .status = RP_FILE_PENDING, .limit = n, .objects = true };
    struct bench_listing live = { .status = RP_FILE_LIVE, .limit = n, .scattered = true };
    snprintf(list, sizeof list, "%s/files", d->dir);
    bench_daemon_list(d, &pending, list);
    sync();
    struct bench_answers confirm =
        measure(d, "confirm", &(struct bench_load){ .kind = "confirm", .seconds = 60, .files = list }, 0);
    expect_rows(d, "confirms", done_by(&confirm), "SELECT COUNT(*) FROM file WHERE status = 3");
    out->confirm_cpu_s = confirm.daemon_cpu_s / (double)confirm.answered;
    size_t live_n = bench_daemon_list(d, &live, list);
    measure(d, "get", &(struct bench_load){ .kind = "get", .seconds = load_s(), .files = list }, 0);
    measure_deletes(d, list, live_n, targets);
}

/* Objects of no file: marked one by one, restored, marked by the hundred; and holds. */
static void measure_marks(const struct bench_daemon *d, bool sqlite)
{
    static const char *const marked = "SELECT COUNT(*) FROM mark WHERE file_id IS NULL AND state = 1";
    char list[BENCH_PATH], restored[BENCH_PATH];
    size_t n = (size_t)(OBJECTS_N * bench_scale());
    double target = sqlite ? 25000 : 12000;
    snprintf(list, sizeof list, "%s/plain", d->dir);
    snprintf(restored, sizeof restored, "%s/marked", d->dir);
    bench_daemon_objects(d, n, list);
    sync();
    struct bench_load load = { .kind = "mark", .seconds = 60, .files = list, .admin = true };
    struct bench_answers one = measure(d, "mark", &load, target);
    expect_rows(d, "marks", done_by(&one), marked);
    size_t waiting = bench_daemon_marks(d, restored);
    load = (struct bench_load){ .kind = "restore", .seconds = 60, .files = restored, .admin = true };
    struct bench_answers back = measure(d, "restore", &load, 0);
    expect_rows(d, "marks", waiting - done_by(&back), marked);
    load = (struct bench_load){ .kind = "mark_many", .seconds = 60, .files = list, .admin = true };
    struct bench_answers many = measure(d, "mark, 100 items each", &load, 0);
    if (bench_daemon_count(d, marked) < (int64_t)(done_by(&many) - 1) * 100) bench_fail("marks of a list are missing");
    load = (struct bench_load){ .kind = "hold", .seconds = HOLD_S * bench_scale(), .admin = true };
    struct bench_answers hold = measure(d, "hold", &load, 0);
    expect_rows(d, "holds", done_by(&hold), "SELECT COUNT(*) FROM hold");
}

static void verify(const struct bench_daemon *d)
{
    const char *chain[] = { bench_binary(), "--config", d->config, "audit", "verify", NULL };
    const char *quota[] = { bench_binary(), "--config", d->config, "quota", "rebuild", NULL };
    bench_run(chain, NULL);
    bench_run(quota, NULL);
}

/* Those whose answer was on its way may be there as well: at most one a connection. */
static void measure_kill(struct bench_daemon *d)
{
    const char *count = "SELECT COUNT(*) FROM file";
    int64_t before = bench_daemon_count(d, count);
    struct bench_answers a = bench_load_run(d, &(struct bench_load){ .kind = "init", .kill_after_s = KILL_S });
    bench_daemon_died(d);
    int64_t done = (int64_t)done_by(&a), there = bench_daemon_count(d, count) - before;
    printf("  killed while it worked: %" PRId64 " uploads were answered, %" PRId64 " are there\n", done, there);
    if (there < done || there > done + BENCH_CONNECTIONS) bench_fail("the catalog does not hold what was answered");
    verify(d);
    bench_daemon_start(d);
}

static struct measures measure_engine(const char *base, const char *name, const char *postgres_url)
{
    struct bench_daemon d;
    struct measures out = { 0 };
    bool targets = postgres_url == NULL;
    bench_daemon_make(&d, base, name, postgres_url, "");
    bench_daemon_start(&d);
    printf("\n%s, %d connections, %d tenants%s\n", name, BENCH_CONNECTIONS, BENCH_TENANTS,
           targets ? "; targets: p99 under 30 ms, peak under 48 MiB (50 MB)" : "");
    print_header();
    measure_inits(&d, targets, &out);
    measure_files(&d, targets, &out);
    measure_kill(&d);
    measure_marks(&d, targets);
    bench_daemon_stop(&d);
    bench_daemon_remove(&d);
    return out;
}

/* ---- PostgreSQL ---- */

static void measure_plain(const char *base, const char *postgres_url, const struct measures *daemon)
{
    struct bench_daemon d;
    bench_daemon_make(&d, base, "plain", postgres_url, "");
    struct bench_plain plain = bench_plain_run(&d, load_s());
    double a_second = (double)plain.uploads / plain.seconds;
    expect_rows(&d, "uploads", plain.uploads, "SELECT COUNT(*) FROM file");
    printf("  a transaction each, one connection, no HTTP: %zu uploads, %.0f a second; the daemon: %.1f times as many "
           "(target 6)\n",
           plain.uploads, a_second, daemon->init_s / a_second);
    bench_daemon_remove(&d);
}

/* ---- abandoned uploads ---- */

static int64_t not_expired(const struct bench_daemon *d)
{
    return bench_daemon_count(d, "SELECT COUNT(*) FROM file WHERE status <> 6");
}

/* From the first upload that is past its time to the last one cleaned up. */
static double wait_for_expiry(const struct bench_daemon *d, int64_t n)
{
    const struct timespec moment = { .tv_nsec = 20000000 };
    double limit = bench_now_s() + 300, start = 0;
    for (int64_t left = n; left > 0; left = not_expired(d)) {
        if (start == 0 && left < n) start = bench_now_s();
        if (bench_now_s() > limit) bench_fail("%" PRId64 " abandoned uploads were not cleaned up", left);
        nanosleep(&moment, NULL);
    }
    return bench_now_s() - start;
}

static void measure_abandoned(const char *base, const struct measures *sqlite)
{
    struct bench_daemon d;
    char list[BENCH_PATH];
    bench_daemon_make(&d, base, "abandoned", NULL, "uploads: { expire: 6s }\n");
    bench_daemon_start(&d);
    snprintf(list, sizeof list, "%s/files", d.dir);
    struct bench_answers a =
        bench_load_run(&d, &(struct bench_load){ .kind = "init", .seconds = bench_scale() < 1 ? bench_scale() : 1 });
    struct bench_listing pending = { .status = RP_FILE_PENDING, .limit = ABANDONED_N, .objects = true };
    size_t n = bench_daemon_list(&d, &pending, list);
    if (done_by(&a) == 0 || n == 0) bench_fail("no upload was begun");
    double cpu_s = bench_daemon_cpu_s(&d);
    double seconds = wait_for_expiry(&d, (int64_t)done_by(&a));
    double each_cpu_s = (bench_daemon_cpu_s(&d) - cpu_s) / (double)done_by(&a);
    double day_s = DAY_UPLOADS * (sqlite->init_cpu_s + 0.99 * sqlite->confirm_cpu_s + 0.01 * each_cpu_s);
    printf("\n%zu abandoned uploads (%zu with bytes) cleaned up: %.0f a second, %.0f us of CPU each\n", done_by(&a), n,
           (double)done_by(&a) / seconds, each_cpu_s * 1e6);
    printf("100 times 100,000 uploads a day, 1 %% abandoned: %.0f uploads a second (%.1f %% of what was measured), and "
           "%.0f minutes of one core a day (%.1f %% of it)\n",
           (double)DAY_UPLOADS / DAY_S, (double)DAY_UPLOADS / DAY_S / sqlite->init_s * 100, day_s / 60,
           day_s / DAY_S * 100);
    verify(&d);
    bench_daemon_stop(&d);
    bench_daemon_remove(&d);
}

int main(void)
{
    const char *base = getenv("BENCH_DIR"), *postgres_url = getenv("RP_TEST_POSTGRES");
    if (base == NULL) base = ".";
    struct measures sqlite = measure_engine(base, "sqlite", NULL);
    measure_abandoned(base, &sqlite);
    if (postgres_url == NULL) {
        printf("\npostgres: not measured, RP_TEST_POSTGRES is not set (`make bench` sets it)\n");
        return 0;
    }
    struct measures postgres = measure_engine(base, "postgres", postgres_url);
    measure_plain(base, postgres_url, &postgres);
    return 0;
}
