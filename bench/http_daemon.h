/* SPDX-License-Identifier: Apache-2.0 */
/* http_daemon.h - `reprieve serve` in a directory of its own, with tenants that have a token each,
 * and what it used. */
#ifndef RP_BENCH_HTTP_DAEMON_H
#define RP_BENCH_HTTP_DAEMON_H

#include "ground.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define BENCH_TENANTS 8

struct bench_daemon {
    char dir[BENCH_PATH / 2];
    char config[BENCH_PATH], objects[BENCH_PATH], tokens[BENCH_PATH];
    char admin[BENCH_PATH];       /* like tokens: one, of an admin */
    char catalog_url[BENCH_PATH]; /* as seen from outside: with a complete path */
    char url[128];
    pid_t pid; /* 0: it does not run */
};

const char *bench_binary(void);
/* Makes directory, configuration and tokens; `more` is further YAML. The catalog is SQLite in the
 * directory, or a schema of its own on this server. */
void bench_daemon_make(struct bench_daemon *d, const char *base, const char *name, const char *postgres_url,
                       const char *more);
void bench_daemon_remove(struct bench_daemon *d);

void bench_daemon_start(struct bench_daemon *d); /* returns when it answers */
void bench_daemon_stop(struct bench_daemon *d);  /* it must end well */
void bench_daemon_died(struct bench_daemon *d);  /* waits for one that was killed */
double bench_daemon_cpu_s(const struct bench_daemon *d);
/* The most resident memory since the last call, or since the start. */
double bench_daemon_peak_mib(const struct bench_daemon *d);

/* The only number of a query on its catalog. */
int64_t bench_daemon_count(const struct bench_daemon *d, const char *sql);
/* "ID TENANT" a line for files of the catalog, into a file. Returns how many. */
struct bench_listing {
    int64_t status; /* src/catalog/file/file.h */
    size_t limit;
    bool scattered; /* in an order without pattern; else as they were begun */
    bool objects;   /* their bytes are put into the store as well */
};
/* "KEY 0" a line for n objects that are of no file, made and listed. */
void bench_daemon_objects(const struct bench_daemon *d, size_t n, const char *file);
/* "MARK 0" a line for the marks that wait on objects of no file. Returns how many. */
size_t bench_daemon_marks(const struct bench_daemon *d, const char *file);
size_t bench_daemon_list(const struct bench_daemon *d, const struct bench_listing *what, const char *file);

#endif
