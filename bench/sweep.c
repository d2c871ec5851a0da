/* SPDX-License-Identifier: Apache-2.0 */
/* Marking and sweeping with the real binary, beside what people would do instead, measured in the
 * same run:
 *
 *   xargs -P2 rm                 the fastest way to delete files whose names are known; remembers and promises nothing
 *   list, read, delete           a mark on every object (an extended attribute), and a job that looks at all of them
 *
 * Then: what the same 1,000 due marks cost beside few and beside many that wait; and a restore in
 * bulk, 100,000 marks of a million taken back by their reason and by their prefix. Numbers are
 * printed, never asserted. BENCH_DIR: where the disk part works (default: here). BENCH_SCALE=0.1: a
 * tenth of everything. */
#include "fill.h"
#include "ground.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define DUE_N      100000
#define WAITING_N  900000
#define FEW_N      10000
#define MANY_N     1000000
#define ROUND_N    1000
#define ROUNDS     6 /* the first, which also warms up, does not count */
#define MARK_XATTR "user.due"

static const char config[] = "catalog: { url: \"sqlite:catalog.db\" }\n"
                             "stores: { main: { path: objects, mode: purge, allow_any_grace: true } }\n";

struct ground {
    char dir[BENCH_PATH / 2];
    char config[BENCH_PATH], objects[BENCH_PATH], list[BENCH_PATH];
};

static const char *binary(void)
{
    const char *path = getenv("REPRIEVE_BIN");
    if (path == NULL) bench_fail("REPRIEVE_BIN is not set; `make bench` sets it");
    return path;
}

static void ground_open(struct ground *g, const char *base)
{
    snprintf(g->dir, sizeof g->dir, "%s/reprieve-bench-%ld", base, (long)getpid());
    snprintf(g->config, sizeof g->config, "%s/reprieve.yaml", g->dir);
    snprintf(g->objects, sizeof g->objects, "%s/objects", g->dir);
    snprintf(g->list, sizeof g->list, "%s/list", g->dir);
    bench_make_dir(g->dir);
    bench_make_dir(g->objects);
    bench_write(g->config, config);
}

/* ---- the table ---- */

static const char *file_system(const char *dir)
{
    struct statfs fs;
    if (statfs(dir, &fs) < 0) return "?";
    if (fs.f_type == 0xEF53) return "ext4";
    if (fs.f_type == 0x01021994) return "tmpfs";
    return fs.f_type == 0x58465342 ? "xfs" : fs.f_type == 0x9123683E ? "btrfs" : "another file system";
}

static void print_figure(double value, const char *format)
{
    if (value > 0)
        printf(format, value);
    else
        printf(" %9s", "");
}

static void print_row(const char *what, size_t n, struct bench_spent spent, double peer_s)
{
    printf("  %-32s %8zu %9.2f %9.0f", what, n, spent.seconds, (double)n / spent.seconds);
    print_figure(spent.cpu_s, " %9.2f");
    print_figure(spent.peak_mib, " %9.1f");
    if (peer_s > 0) printf(" %9.2f", peer_s / spent.seconds);
    printf("\n");
    fflush(stdout);
}

/* ---- ours ---- */

static struct bench_spent run_mark(const struct ground *g, const char *grace)
{
    const char *argv[] = { binary(),  "--config", g->config, "--json",   "--quiet", "mark",
                           "--stdin", "--grace",  grace,     "--reason", "bulk",    NULL };
    sync();
    return bench_run(argv, g->list);
}

static struct bench_spent run_sweep(const struct ground *g, size_t limit)
{
    char text[24];
    const char *argv[] = { binary(), "--config", g->config, "--json", "--quiet", "sweep", "--limit", text, NULL };
    snprintf(text, sizeof text, "%zu", limit);
    sync();
    return bench_run(argv, NULL);
}

static struct bench_spent run_restore(const struct ground *g, const char *filter, const char *value)
{
    const char *argv[] = { binary(), "--config", g->config, "--json", "--quiet", "restore", filter, value, NULL };
    sync();
    return bench_run(argv, NULL);
}

/* ---- xargs -P2 rm ---- */

static struct bench_spent run_rm(const struct ground *g, double *with_sync_s)
{
    const char *argv[] = { "xargs", "-P2", "rm", NULL };
    sync();
    double start = bench_now_s();
    struct bench_spent spent = bench_run(argv, g->list);
    sync();
    *with_sync_s = bench_now_s() - start;
    spent.peak_mib = 0;
    return spent;
}

/* ---- list everything, read its mark, delete what is due ---- */

static void mark_objects(const char *dir, size_t first, size_t n, const char *due)
{
    char path[BENCH_PATH + 64], name[64];
    for (size_t i = first; i < first + n; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, bench_object(i, name));
        if (setxattr(path, MARK_XATTR, due, strlen(due), 0) < 0) bench_fail("mark %s: %s", path, strerror(errno));
    }
}

static size_t delete_due_in(const char *dir, long long now_s)
{
    char path[BENCH_PATH + 320], due[32];
    size_t deleted = 0;
    DIR *stream = opendir(dir);
    if (stream == NULL) bench_fail("%s: %s", dir, strerror(errno));
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        if (entry->d_type == DT_DIR) {
            deleted += delete_due_in(path, now_s);
            continue;
        }
        ssize_t n = getxattr(path, MARK_XATTR, due, sizeof due - 1);
        if (n < 0) bench_fail("%s: %s", path, strerror(errno));
        due[n] = '\0';
        if (atoll(due) <= now_s && unlink(path) == 0) deleted++;
    }
    closedir(stream);
    return deleted;
}

static struct bench_spent run_loop(const char *dir, size_t due_n)
{
    sync();
    double start = bench_now_s();
    clock_t cpu = clock();
    size_t deleted = delete_due_in(dir, 1000000);
    struct bench_spent spent = { .seconds = bench_now_s() - start,
                                 .cpu_s = (double)(clock() - cpu) / (double)CLOCKS_PER_SEC };
    if (deleted != due_n) bench_fail("the loop deleted %zu of %zu", deleted, due_n);
    return spent;
}

static void measure_loop(const struct ground *g, size_t due_n, size_t waiting_n, double rm_s)
{
    char probe[BENCH_PATH + 64];
    char words[96];
    snprintf(probe, sizeof probe, "%s/d000/object-00000000", g->objects);
    bench_make_objects(g->objects, 0, due_n, BENCH_OBJECT);
    if (setxattr(probe, MARK_XATTR, "0", 1, 0) < 0 && errno == ENOTSUP) {
        printf("  list, read the mark, delete: no extended attributes on this file system\n");
        return;
    }
    mark_objects(g->objects, 0, due_n, "1");
    bench_make_objects(g->objects, due_n, waiting_n, 0);
    mark_objects(g->objects, due_n, waiting_n, "2000000");
    snprintf(words, sizeof words, "list %zu, delete what is due", due_n + waiting_n);
    print_row(words, due_n, run_loop(g->objects, due_n), rm_s);
}

/* ---- a medium ---- */

static void measure_medium(const char *label, const char *base, size_t due_n, size_t waiting_n)
{
    struct ground g;
    double rm_sync_s;
    ground_open(&g, base);
    printf("\n%s (%s): %zu due of %zu marks, objects of %d bytes\n", label, file_system(base), due_n, due_n + waiting_n,
           BENCH_OBJECT);
    printf("  %-32s %8s %9s %9s %9s %9s %9s\n", "", "objects", "seconds", "a second", "CPU s", "peak MiB", "rm = 1");
    bench_make_objects(g.objects, 0, due_n, BENCH_OBJECT);
    bench_list_objects(g.list, "main:", due_n);
    bench_fill(g.config, &(struct bench_fill){ .waiting_n = waiting_n });
    print_row("reprieve mark --stdin", due_n, run_mark(&g, "0s"), 0);
    struct bench_spent sweep = run_sweep(&g, due_n);

    bench_make_objects(g.objects, 0, due_n, BENCH_OBJECT);
    char prefix[BENCH_PATH + 1];
    snprintf(prefix, sizeof prefix, "%s/", g.objects);
    bench_list_objects(g.list, prefix, due_n);
    struct bench_spent rm = run_rm(&g, &rm_sync_s);
    print_row("reprieve sweep", due_n, sweep, rm.seconds);
    print_row("xargs -P2 rm", due_n, rm, rm.seconds);
    print_row("xargs -P2 rm, and sync", due_n, (struct bench_spent){ .seconds = rm_sync_s }, rm.seconds);
    measure_loop(&g, due_n, waiting_n, rm.seconds);
    bench_remove_tree(g.dir);
}

/* ---- few and many that wait ---- */

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Medians over the rounds. */
static struct bench_spent measure_rounds(const char *base, size_t waiting_n, bool scattered)
{
    struct ground g;
    double seconds[ROUNDS], cpu_s[ROUNDS];
    ground_open(&g, base);
    bench_fill(g.config, &(struct bench_fill){ .waiting_n = waiting_n,
                                               .due_n = (size_t)ROUNDS * ROUND_N,
                                               .objects_dir = g.objects,
                                               .scattered = scattered });
    for (int i = 0; i < ROUNDS; i++) {
        struct bench_spent spent = run_sweep(&g, ROUND_N);
        seconds[i] = spent.seconds;
        cpu_s[i] = spent.cpu_s;
    }
    bench_remove_tree(g.dir);
    qsort(seconds + 1, ROUNDS - 1, sizeof *seconds, by_value);
    qsort(cpu_s + 1, ROUNDS - 1, sizeof *cpu_s, by_value);
    return (struct bench_spent){ .seconds = seconds[ROUNDS / 2], .cpu_s = cpu_s[ROUNDS / 2] };
}

static void measure_waiting(const char *base, size_t few_n, size_t many_n)
{
    printf("\nA sweep of %d due marks beside %zu and beside %zu that wait: milliseconds, medians of %d\n", ROUND_N,
           few_n, many_n, ROUNDS - 1);
    printf("  %-32s %8s %9s %9s %9s %9s %9s\n", "", "few", "many", "ratio", "CPU few", "CPU many", "ratio");
    for (int scattered = 0; scattered < 2; scattered++) {
        struct bench_spent few = measure_rounds(base, few_n, scattered), many = measure_rounds(base, many_n, scattered);
        printf("  %-32s %8.1f %9.1f %9.2f %9.1f %9.1f %9.2f\n", scattered ? "scattered among them" : "lying together",
               few.seconds * 1e3, many.seconds * 1e3, many.seconds / few.seconds, few.cpu_s * 1e3, many.cpu_s * 1e3,
               many.cpu_s / few.cpu_s);
        fflush(stdout);
    }
}

/* ---- a restore in bulk ---- */

static void measure_restore(const char *base, size_t n, size_t waiting_n)
{
    struct ground g;
    ground_open(&g, base);
    printf("\nA restore in bulk (%s): %zu of %zu marks, with a line of JSON each; wanted: 100000 in 10 seconds\n",
           file_system(base), n, n + waiting_n);
    printf("  %-32s %8s %9s %9s %9s %9s\n", "", "marks", "seconds", "a second", "CPU s", "peak MiB");
    bench_make_objects(g.objects, 0, n, 0);
    bench_list_objects(g.list, "main:", n);
    bench_fill(g.config, &(struct bench_fill){ .waiting_n = waiting_n });
    run_mark(&g, "5d");
    print_row("reprieve restore --reason", n, run_restore(&g, "--reason", "bulk"), 0);
    run_mark(&g, "5d");
    print_row("reprieve restore --prefix", n, run_restore(&g, "--prefix", "main:d"), 0);
    bench_remove_tree(g.dir);
}

int main(void)
{
    double scale = bench_scale();
    const char *disk = getenv("BENCH_DIR");
    size_t due_n = (size_t)(DUE_N * scale), waiting_n = (size_t)(WAITING_N * scale);
    if (disk == NULL) disk = ".";
    binary();
    measure_medium("disk", disk, due_n, waiting_n);
    measure_medium("memory", "/dev/shm", due_n, waiting_n);
    measure_waiting(disk, FEW_N, (size_t)(MANY_N * scale));
    measure_restore(disk, due_n, waiting_n);
    return 0;
}
