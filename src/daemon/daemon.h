/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.h - `reprieve serve`: the HTTP server and everything that runs beside it, from start to
 * drain.
 *
 * Z1  Start: configuration, catalog, stores, writers, sweeper, server, watch; each failure ends it
 *     with its own error. A second daemon on the same SQLite catalog is refused (RP_ERUNNING), as
 *     is one on a port that is taken.
 * Z2  SIGTERM and SIGINT drain: what was accepted is answered, live streams end, the sweeper
 *     finishes its batches and closes its run, the writers write what waits; a second signal ends
 *     the process at once, which loses nothing that was acknowledged.
 * Z3  SIGHUP reads the configuration again and opens the log anew. What a running daemon cannot
 *     change is named in the log and kept; a file with an error changes nothing.
 * Z4  The first start of the embedded default makes an admin token and keeps it in
 *     DATA/admin.token, readable by its owner alone. */
#ifndef RP_DAEMON_DAEMON_H
#define RP_DAEMON_DAEMON_H

#include "base/error.h"

#include <stdbool.h>

/* What a person wants to know when it is up. */
struct rp_daemon_ready {
    const char *url; /* http://127.0.0.1:8420 */
    const char *node;
    const char *token_file; /* where the first admin token is kept; NULL: nowhere */
    const char *sign_in;    /* the console's one-time link; NULL: not the first start */
    bool no_token;          /* nobody can call it yet */
    const char *log_file;   /* "" or "-" as configured */
};

struct rp_daemon_options {
    const char *config_file, *data; /* as in rp_session_options */
    void (*ready)(void *ctx, const struct rp_daemon_ready *ready);
    void *ctx;
};

/* Returns when it was asked to stop (0), or could not start. */
int rp_daemon_serve(const struct rp_daemon_options *options, struct rp_error *err);

#endif
