/* SPDX-License-Identifier: Apache-2.0 */
/* ground.h - what a benchmark stands on: a clock, commands with their peak memory, equal files.
 * A benchmark has nobody to report to: what goes wrong ends it with a line on standard error. */
#ifndef RP_BENCH_GROUND_H
#define RP_BENCH_GROUND_H

#include <stddef.h>
#include <stdint.h>

#define BENCH_PATH        512
#define BENCH_OBJECT      4096 /* bytes */
#define BENCH_DIR_OBJECTS 1000

_Noreturn void bench_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* BENCH_SCALE of the environment, 1 without it. */
double bench_scale(void);
double bench_now_s(void);

struct bench_spent {
    double seconds;
    double cpu_s;    /* of all cores, user and system: what a busy machine distorts least */
    double peak_mib; /* of resident memory */
};
/* Runs a command with standard input from a file (NULL: nothing) and waits for it. */
struct bench_spent bench_run(const char *const *argv, const char *stdin_file);

/* "d012/object-00012345", the name of the i-th object. */
const char *bench_object(size_t i, char out[64]);
/* Objects `first` to `first + n` of `size_bytes` below a directory, their directories with them. */
void bench_make_objects(const char *dir, size_t first, size_t n, size_t size_bytes);
/* Their names, one a line, each after a prefix. */
void bench_list_objects(const char *file, const char *prefix, size_t n);
void bench_make_dir(const char *path);
void bench_write(const char *path, const char *text);
void bench_remove_tree(const char *path);

#endif
