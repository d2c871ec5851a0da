/* SPDX-License-Identifier: Apache-2.0 */
/* http_load.h - wrk against a daemon: 2 threads, 256 connections, requests of one kind
 * (http.lua). */
#ifndef RP_BENCH_HTTP_LOAD_H
#define RP_BENCH_HTTP_LOAD_H

#include "http_daemon.h"

#define BENCH_CONNECTIONS 256

struct bench_load {
    const char *kind;    /* init, init_key, confirm, get, delete, mark, mark_many, restore, hold */
    double seconds;      /* no new requests after that */
    const char *files;   /* those it is about, each once (get: again and again); NULL with init and hold */
    bool admin;          /* with an admin's token; else with those of the tenants */
    double kill_after_s; /* the daemon is killed then; 0: it is not */
};

struct bench_answers {
    size_t answered, refused, broken; /* refused: a status above 399; broken: connections and time-outs */
    double seconds;                   /* from the first request to the last answer */
    double p50_ms, p99_ms;
    double daemon_cpu_s, wrk_cpu_s, peak_mib; /* of the daemon; 0 if it was killed */
};

struct bench_answers bench_load_run(const struct bench_daemon *d, const struct bench_load *load);

#endif
