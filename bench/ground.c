/* SPDX-License-Identifier: Apache-2.0 */
#include "ground.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void bench_fail(const char *fmt, ...)
{
    va_list args;
    fflush(stdout);
    fputs("bench: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

double bench_scale(void)
{
    const char *text = getenv("BENCH_SCALE");
    if (text == NULL || text[0] == '\0') return 1;
    char *end;
    double scale = strtod(text, &end);
    if (*end != '\0' || !(scale >= 0.001 && scale <= 10)) bench_fail("BENCH_SCALE=%s is not from 0.001 to 10", text);
    return scale;
}

double bench_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double to_s(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static _Noreturn void become(const char *const *argv, const char *stdin_file)
{
    int in = open(stdin_file != NULL ? stdin_file : "/dev/null", O_RDONLY);
    int out = open("/dev/null", O_WRONLY);
    if (in < 0 || out < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0) _exit(126);
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

struct bench_spent bench_run(const char *const *argv, const char *stdin_file)
{
    struct rusage used;
    int status;
    fflush(stdout);
    double start = bench_now_s();
    pid_t pid = fork();
    if (pid < 0) bench_fail("fork: %s", strerror(errno));
    if (pid == 0) become(argv, stdin_file);
    if (wait4(pid, &status, 0, &used) != pid) bench_fail("wait: %s", strerror(errno));
    double seconds = bench_now_s() - start;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        bench_fail("%s %s ended with status %#x", argv[0], argv[1], (unsigned)status);
    return (struct bench_spent){ .seconds = seconds,
                                 .cpu_s = to_s(used.ru_utime) + to_s(used.ru_stime),
                                 .peak_mib = (double)used.ru_maxrss / 1024 };
}

const char *bench_object(size_t i, char out[64])
{
    snprintf(out, 64, "d%03zu/object-%08zu", i / BENCH_DIR_OBJECTS, i);
    return out;
}

void bench_make_dir(const char *path)
{
    if (mkdir(path, 0777) < 0 && errno != EEXIST) bench_fail("%s: %s", path, strerror(errno));
}

static void make_object(const char *path, const char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || (n > 0 && write(fd, bytes, n) != (ssize_t)n) || close(fd) < 0)
        bench_fail("%s: %s", path, strerror(errno));
}

void bench_make_objects(const char *dir, size_t first, size_t n, size_t size_bytes)
{
    static char bytes[BENCH_OBJECT];
    char path[BENCH_PATH + 64], name[64];
    memset(bytes, 'x', sizeof bytes);
    if (size_bytes > sizeof bytes) bench_fail("objects of %zu bytes are too large", size_bytes);
    for (size_t i = first; i < first + n; i++) {
        if (i % BENCH_DIR_OBJECTS == 0 || i == first) {
            snprintf(path, sizeof path, "%s/d%03zu", dir, i / BENCH_DIR_OBJECTS);
            bench_make_dir(path);
        }
        snprintf(path, sizeof path, "%s/%s", dir, bench_object(i, name));
        make_object(path, bytes, size_bytes);
    }
}

void bench_list_objects(const char *file, const char *prefix, size_t n)
{
    char name[64];
    FILE *out = fopen(file, "we");
    if (out == NULL) bench_fail("%s: %s", file, strerror(errno));
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s%s\n", prefix, bench_object(i, name));
    if (fclose(out) != 0) bench_fail("%s: %s", file, strerror(errno));
}

void bench_write(const char *path, const char *text)
{
    make_object(path, text, strlen(text));
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void bench_remove_tree(const char *path)
{
    if (nftw(path, remove_entry, 32, FTW_DEPTH | FTW_PHYS) < 0 && errno != ENOENT)
        bench_fail("remove %s: %s", path, strerror(errno));
}
