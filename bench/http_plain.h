/* SPDX-License-Identifier: Apache-2.0 */
/* http_plain.h - what one would write without a writer that groups commits: each upload a
 * transaction of its own, over one connection with prepared statements, into the same tables. No
 * HTTP, no parsing, no look-up of what it could know: its lane's head and the tenant are kept in
 * memory, which a server with more than one process could not do. */
#ifndef RP_BENCH_HTTP_PLAIN_H
#define RP_BENCH_HTTP_PLAIN_H

#include "http_daemon.h"

struct bench_plain {
    size_t uploads;
    double seconds;
};

/* Begins uploads for this long in the catalog of a daemon that does not run. */
struct bench_plain bench_plain_run(const struct bench_daemon *d, double seconds);

#endif
