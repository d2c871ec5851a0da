/* SPDX-License-Identifier: Apache-2.0 */
/* Marking and sweeping a bucket with the real binary, beside what people would do instead, measured
 * in the same run on the same server:
 *
 *   a bare loop                  multi-object deletes of 1,000 known keys with libcurl, over 1 and over 4 connections; no catalog
 *   rclone delete                the tools that people have; both list first
 *   aws s3 rm --recursive
 *
 * Then: what a listing through the store takes beside a bare one, and a sweep on a server that
 * fails 5 % of everything. Figures are printed beside their targets and never asserted. What is
 * asserted: after each, the bucket is empty, and the catalog says purged. RP_TEST_S3 and its keys
 * name the server. BENCH_DIR: where the catalog is (default: here). BENCH_SCALE=0.1: a tenth of
 * everything. BENCH_AWS: the aws command. BENCH_PARTS="list failures sweep tools": these parts
 * only. BENCH_SERVER="PID PID": the server's processes, whose CPU time is shown too. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "catalog/mark/mark.h"
#include "db/db.h"
#include "ground.h"
#include "s3_bare.h"
#include "store/open.h"

#define OBJECTS_N  20000
#define ROUNDS     3 /* of the sweep and the bare loops, one after the other; medians count */
#define LIST_N     15
#define BARE_MANY  4
#define DUE_LATE_S 2 /* the store's clock must be past due_at as well, and a Date header is a second old at worst */
#define TARGET     0.9
#define TARGET_MIB 47.7 /* 50 MB */

struct ground {
    char dir[BENCH_PATH / 2], config[BENCH_PATH], list[BENCH_PATH], catalog[BENCH_PATH];
};

static const char *binary(void)
{
    const char *path = getenv("REPRIEVE_BIN");
    if (path == NULL) bench_fail("REPRIEVE_BIN is not set; `make bench` sets it");
    return path;
}

static void ground_open(struct ground *g, const char *base, const struct bench_bucket *b)
{
    char text[2048];
    snprintf(g->dir, sizeof g->dir, "%s/reprieve-bench-%ld", base, (long)getpid());
    snprintf(g->config, sizeof g->config, "%s/reprieve.yaml", g->dir);
    snprintf(g->list, sizeof g->list, "%s/list", g->dir);
    snprintf(g->catalog, sizeof g->catalog, "sqlite:%s/catalog.db", g->dir);
    snprintf(text, sizeof text,
             "catalog: { url: \"sqlite:catalog.db\" }\n"
             "stores:\n  main:\n    type: s3\n    endpoint: %s\n    region: " BENCH_REGION "\n    bucket: %s\n"
             "    access_key: %s\n    secret_key: %s\n    style: path\n    keys: write_once\n    mode: purge\n"
             "    allow_any_grace: true\n",
             b->endpoint, b->name, b->access, b->secret);
    bench_make_dir(g->dir);
    bench_write(g->config, text);
}

/* ---- the table ---- */

struct spent {
    struct bench_spent own;
    double server_s; /* CPU seconds of the server meanwhile */
};
struct figures {
    struct spent round[ROUNDS];
};

static int by_seconds(const void *a, const void *b)
{
    const struct spent *x = a, *y = b;
    return (x->own.seconds > y->own.seconds) - (x->own.seconds < y->own.seconds);
}

static struct spent median(struct figures *f)
{
    qsort(f->round, ROUNDS, sizeof *f->round, by_seconds);
    return f->round[ROUNDS / 2];
}

static bool is_wanted(const char *part)
{
    const char *parts = getenv("BENCH_PARTS");
    return parts == NULL || *parts == '\0' || strstr(parts, part) != NULL;
}

static void print_head(void)
{
    printf("  %-34s %8s %8s %9s %8s %8s %9s %8s\n", "", "objects", "seconds", "a second", "CPU s", "server", "peak MiB",
           "bare = 1");
}

static void print_number(double value, int width, int digits)
{
    if (value > 0)
        printf(" %*.*f", width, digits, value);
    else
        printf(" %*s", width, "");
}

static void print_row(const char *what, size_t n, struct spent spent, double peer_s, const char *remark)
{
    printf("  %-34s %8zu %8.2f %9.0f %8.2f", what, n, spent.own.seconds, (double)n / spent.own.seconds,
           spent.own.cpu_s);
    print_number(spent.server_s, 8, 2);
    print_number(spent.own.peak_mib, 9, 1);
    print_number(peer_s > 0 ? peer_s / spent.own.seconds : 0, 8, 2);
    printf("  %s\n", remark);
    fflush(stdout);
}

/* In the order they were run, before median() sorts them. */
static void print_rounds(const char *what, const struct figures *f)
{
    printf("  %-34s", what);
    for (int i = 0; i < ROUNDS; i++)
        printf(" %6.2f s (CPU %.2f + %.2f)", f->round[i].own.seconds, f->round[i].own.cpu_s, f->round[i].server_s);
    printf("\n");
}

static struct spent run(const char *const *argv, const char *stdin_file)
{
    const double before_s = bench_server_cpu_s();
    struct spent spent = { .own = bench_run(argv, stdin_file) };
    spent.server_s = bench_server_cpu_s() - before_s;
    return spent;
}

static void expect_empty(const struct bench_bucket *b, const char *who)
{
    const size_t left = bench_bucket_list(b);
    if (left != 0) bench_fail("%s left %zu objects", who, left);
}

/* ---- ours ---- */

static int take_number(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    (void)err;
    *(int64_t *)ctx = row[0].i;
    return 0;
}

static void expect_purged(const struct ground *g, size_t n)
{
    char sql[96];
    struct rp_error err = { 0 };
    RP_CLEANUP(rp_db_closep) struct rp_db *db = NULL;
    int64_t purged = -1;
    snprintf(sql, sizeof sql, "SELECT COUNT(*) FROM mark WHERE state = %d", (int)RP_PURGED);
    const struct rp_sql query = { .name = "bench_count", .text = sql, .params = "", .columns = "i" };
    int r = rp_db_open(g->catalog, &(struct rp_db_options){ 0 }, &db, &err);
    if (r == 0) r = rp_db_query(db, &query, NULL, take_number, &purged, &err);
    if (r < 0) bench_fail("%s", err.text);
    if (purged != (int64_t)n) bench_fail("the catalog says purged of %" PRId64 " of %zu", purged, n);
}

static void measure_sweep(const char *base, size_t n, struct spent *mark, struct spent *sweep)
{
    struct ground g;
    struct bench_bucket b;
    char limit[24];
    bench_bucket_make(&b, "sweep");
    bench_bucket_fill(&b, n);
    ground_open(&g, base, &b);
    bench_list_objects(g.list, "main:", n);
    snprintf(limit, sizeof limit, "%zu", n);
    const char *mark_argv[] = { binary(), "--config", g.config,  "--json", "--quiet",
                                "mark",   "--stdin",  "--grace", "0s",     NULL };
    const char *sweep_argv[] = { binary(), "--config", g.config, "--json", "--quiet", "sweep", "--limit", limit, NULL };
    *mark = run(mark_argv, g.list);
    nanosleep(&(struct timespec){ .tv_sec = DUE_LATE_S }, NULL);
    *sweep = run(sweep_argv, NULL);
    expect_empty(&b, "the sweep");
    expect_purged(&g, n);
    bench_bucket_remove(&b);
    bench_remove_tree(g.dir);
}

/* ---- the others ---- */

static struct spent measure_bare(size_t n, int connections)
{
    struct bench_bucket b;
    bench_bucket_make(&b, "bare");
    bench_bucket_fill(&b, n);
    const double before_s = bench_server_cpu_s();
    struct spent spent = { .own = bench_bucket_delete(&b, n, connections) };
    spent.server_s = bench_server_cpu_s() - before_s;
    expect_empty(&b, "the bare loop");
    bench_bucket_remove(&b);
    return spent;
}

static void set_tools_up(const struct bench_bucket *b)
{
    const char *const values[][2] = {
        { "RCLONE_CONFIG_BENCH_TYPE", "s3" },
        { "RCLONE_CONFIG_BENCH_PROVIDER", "Ceph" },
        { "RCLONE_CONFIG_BENCH_ENDPOINT", b->endpoint },
        { "RCLONE_CONFIG_BENCH_REGION", BENCH_REGION },
        { "RCLONE_CONFIG_BENCH_ACCESS_KEY_ID", b->access },
        { "RCLONE_CONFIG_BENCH_SECRET_ACCESS_KEY", b->secret },
        { "AWS_ACCESS_KEY_ID", b->access },
        { "AWS_SECRET_ACCESS_KEY", b->secret },
        { "AWS_DEFAULT_REGION", BENCH_REGION },
        { "AWS_CONFIG_FILE", "/dev/null" },
        { "AWS_SHARED_CREDENTIALS_FILE", "/dev/null" },
        { "AWS_EC2_METADATA_DISABLED", "true" },
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        setenv(values[i][0], values[i][1], 1);
    unsetenv("AWS_SESSION_TOKEN");
    unsetenv("AWS_PROFILE");
    unsetenv("AWS_CA_BUNDLE"); /* rclone fails where it is set */
}

static struct spent measure_tool(const char *name, size_t n)
{
    struct bench_bucket b;
    char remote[96], url[96];
    const char *aws = getenv("BENCH_AWS");
    bench_bucket_make(&b, name);
    bench_bucket_fill(&b, n);
    set_tools_up(&b);
    snprintf(remote, sizeof remote, "bench:%s", b.name);
    snprintf(url, sizeof url, "s3://%s", b.name);
    const char *rclone_argv[] = { "rclone", "--config", "", "delete", remote, NULL };
    const char *aws_argv[] = {
        aws ? aws : "/usr/bin/aws", "--endpoint-url", b.endpoint, "s3", "rm", "--recursive", "--quiet", url, NULL
    };
    struct spent spent = run(strcmp(name, "rclone") == 0 ? rclone_argv : aws_argv, NULL);
    expect_empty(&b, name);
    bench_bucket_remove(&b);
    return spent;
}

static void measure_tools(size_t n, double sweep_s, double best_s)
{
    static const char *const tools[][2] = { { "rclone", "rclone delete" }, { "aws", "aws s3 rm --recursive" } };
    char remark[96];
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        const struct spent spent = measure_tool(tools[i][0], n);
        snprintf(remark, sizeof remark, "the sweep: %.1f times as fast (target: more than 1)",
                 spent.own.seconds / sweep_s);
        print_row(tools[i][1], n, spent, best_s, remark);
    }
}

static void measure_deletes(const char *base, size_t n)
{
    struct figures sweep, mark, one, many;
    char remark[96];
    printf("\n%zu objects of %d bytes; sweep and bare loops: medians of %d\n", n, BENCH_OBJECT, ROUNDS);
    print_head();
    for (int i = 0; i < ROUNDS; i++) {
        one.round[i] = measure_bare(n, 1);
        measure_sweep(base, n, &mark.round[i], &sweep.round[i]);
        many.round[i] = measure_bare(n, BARE_MANY);
    }
    print_rounds("sweep", &sweep);
    print_rounds("bare loop, 1 connection", &one);
    print_rounds("bare loop, 4 connections", &many);
    const struct spent s = median(&sweep), o = median(&one), m = median(&many);
    const double best_s = o.own.seconds < m.own.seconds ? o.own.seconds : m.own.seconds;
    print_row("reprieve mark --stdin", n, median(&mark), 0, "");
    snprintf(remark, sizeof remark, "target %.1f; peak under %.1f MiB", TARGET, TARGET_MIB);
    print_row("reprieve sweep", n, s, best_s, remark);
    print_row("bare loop, 1 connection", n, o, best_s, "");
    print_row("bare loop, 4 connections", n, m, best_s, "");
    if (is_wanted("tools")) measure_tools(n, s.own.seconds, best_s);
}

/* ---- listings ---- */

static int count_entry(void *ctx, const struct rp_entry *entry, struct rp_error *err)
{
    (void)entry;
    (void)err;
    ++*(size_t *)ctx;
    return 0;
}

static size_t list_by_store(struct rp_backend *backend)
{
    struct rp_error err = { 0 };
    size_t seen = 0;
    if (rp_backend_list(backend, "", "", count_entry, &seen, &err) < 0) bench_fail("list: %s", err.text);
    return seen;
}

/* store NULL: the bare loop. */
static struct spent list_once(const struct bench_bucket *b, struct rp_backend *backend, size_t n)
{
    const double start_s = bench_now_s(), server_s = bench_server_cpu_s();
    const clock_t cpu = clock();
    const size_t seen = backend != NULL ? list_by_store(backend) : bench_bucket_list(b);
    const struct spent spent = { .own = { .seconds = bench_now_s() - start_s,
                                          .cpu_s = (double)(clock() - cpu) / (double)CLOCKS_PER_SEC },
                                 .server_s = bench_server_cpu_s() - server_s };
    if (seen != n) bench_fail("%s lists %zu of %zu", backend != NULL ? "the store" : "the bare loop", seen, n);
    return spent;
}

static struct spent list_median(struct spent rounds[LIST_N])
{
    struct spent sum = { 0 };
    for (int i = 0; i < LIST_N; i++) {
        sum.own.cpu_s += rounds[i].own.cpu_s / LIST_N;
        sum.server_s += rounds[i].server_s / LIST_N;
    }
    qsort(rounds, LIST_N, sizeof *rounds, by_seconds);
    sum.own.seconds = rounds[LIST_N / 2].own.seconds;
    return sum;
}

static void measure_listings(size_t n)
{
    struct bench_bucket b;
    struct rp_error err = { 0 };
    RP_CLEANUP(rp_backend_closep) struct rp_backend *backend = NULL;
    struct spent ours[LIST_N], bare[LIST_N];
    char remark[32];
    bench_bucket_make(&b, "list");
    bench_bucket_fill(&b, n);
    const struct rp_s3_options options = { .endpoint = b.endpoint,
                                           .region = BENCH_REGION,
                                           .bucket = b.name,
                                           .style = "path",
                                           .access_key = b.access,
                                           .secret_key = b.secret,
                                           .session_token = "",
                                           .profile = "",
                                           .ca_file = "" };
    if (rp_s3_open(&options, &backend, &err) < 0) bench_fail("open: %s", err.text);
    for (int i = 0; i < LIST_N; i++) {
        bare[i] = list_once(&b, NULL, n);
        ours[i] = list_once(&b, backend, n);
    }
    const struct spent of_bare = list_median(bare);
    printf("\nListings of %zu objects, in turn; medians of %d, CPU: means\n", n, LIST_N);
    print_head();
    snprintf(remark, sizeof remark, "target %.1f", TARGET);
    print_row("through the store", n, list_median(ours), of_bare.own.seconds, remark);
    print_row("a bare loop", n, of_bare, of_bare.own.seconds, "");
    bench_bucket_remove(&b);
}

/* ---- failures ---- */

/* The scenario of the tests, with more objects: it judges and prints by itself. */
static void measure_failures(size_t n)
{
    const char *script = getenv("BENCH_FAILURES");
    char objects[24];
    int status = 0;
    if (script == NULL) bench_fail("BENCH_FAILURES is not set; `make bench` sets it");
    snprintf(objects, sizeof objects, "%zu", n);
    printf("\nA sweep on a server that fails 5 %% of everything\n");
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        setenv("OBJECTS", objects, 1);
        execlp(script, script, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) bench_fail("%s failed", script);
}

int main(void)
{
    const char *base = getenv("BENCH_DIR");
    const size_t n = (size_t)(OBJECTS_N * bench_scale());
    binary();
    if (is_wanted("list")) measure_listings(n);
    if (is_wanted("failures")) measure_failures(n / 4);
    if (is_wanted("sweep")) measure_deletes(base != NULL ? base : ".", n);
    return 0;
}
