/* SPDX-License-Identifier: Apache-2.0 */
#include "http_load.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS     2
#define LIMIT_S     120 /* wrk ends by itself when all is answered */
#define AFTERMATH_S 1.0 /* how long clients of a killed daemon go on */

static const char *script(void)
{
    const char *path = getenv("BENCH_HTTP_LUA");
    if (path == NULL) bench_fail("BENCH_HTTP_LUA is not set; `make bench` sets it");
    return path;
}

static void read_result(const char *path, struct bench_answers *out)
{
    FILE *from = fopen(path, "re");
    if (from == NULL || fscanf(from, "%zu %zu %zu %lf %lf %lf", &out->answered, &out->refused, &out->broken,
                               &out->seconds, &out->p50_ms, &out->p99_ms) != 6)
        bench_fail("wrk left no result in %s", path);
    fclose(from);
}

/* A moment is the point here: nothing else says when to kill. */
static pid_t start_killer(pid_t victim, double after_s)
{
    pid_t pid = fork();
    if (pid < 0) bench_fail("fork: %s", strerror(errno));
    if (pid > 0) return pid;
    struct timespec wait = { .tv_sec = (time_t)after_s, .tv_nsec = (long)((after_s - (double)(time_t)after_s) * 1e9) };
    nanosleep(&wait, NULL);
    _exit(kill(victim, SIGKILL) == 0 ? 0 : 1);
}

static double run_wrk(const struct bench_daemon *d, const struct bench_load *load, const char *result)
{
    char connections[16], threads[16], limit[16], seconds[16], share[16];
    double limit_s = load->kill_after_s > 0 ? load->kill_after_s + AFTERMATH_S : LIMIT_S;
    snprintf(connections, sizeof connections, "-c%d", BENCH_CONNECTIONS);
    snprintf(threads, sizeof threads, "-t%d", THREADS);
    snprintf(limit, sizeof limit, "-d%.0fs", limit_s);
    snprintf(seconds, sizeof seconds, "%.3f", load->kill_after_s > 0 ? limit_s : load->seconds);
    snprintf(share, sizeof share, "%d", BENCH_CONNECTIONS / THREADS);
    const char *argv[] = { "wrk",
                           threads,
                           connections,
                           limit,
                           "-s",
                           script(),
                           d->url,
                           "--",
                           load->kind,
                           seconds,
                           share,
                           load->admin ? d->admin : d->tokens,
                           load->files != NULL ? load->files : "-",
                           result,
                           NULL };
    return bench_run(argv, NULL).cpu_s;
}

struct bench_answers bench_load_run(const struct bench_daemon *d, const struct bench_load *load)
{
    char result[BENCH_PATH], marks[BENCH_PATH + 16];
    struct bench_answers out = { 0 };
    pid_t killer = 0;
    snprintf(result, sizeof result, "%s/wrk", d->dir);
    snprintf(marks, sizeof marks, "%s.threads", result);
    (void)unlink(marks);
    bench_daemon_peak_mib(d);
    double cpu_s = bench_daemon_cpu_s(d);
    if (load->kill_after_s > 0) killer = start_killer(d->pid, load->kill_after_s);
    out.wrk_cpu_s = run_wrk(d, load, result);
    read_result(result, &out);
    if (killer != 0) {
        waitpid(killer, NULL, 0);
        return out;
    }
    out.daemon_cpu_s = bench_daemon_cpu_s(d) - cpu_s;
    out.peak_mib = bench_daemon_peak_mib(d);
    return out;
}
