/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - the HTTP server: libmicrohttpd with a thread pool in poll mode, a pool for handlers
 * that block, and bounds on everything.
 *
 * N1  Bounds: connections (2 x the open-file limit is never reached), bytes of headers, bytes of a
 *     body and of all bodies in memory, seconds without progress, seconds a request may take to
 *     arrive, requests that wait for the pool (503 with Retry-After beyond), requests a second a
 *     token.
 * N2  A request waits suspended: no thread waits for a commit or a slow client.
 * N3  Stop: no new connections, what was accepted is answered (bounded time), live streams are
 *     ended, then threads end.
 * N4  Listens on loopback unless the configuration names another address; a public one without
 *     TLS needs listen_insecure: true in so many words. */
#ifndef RP_HTTP_SERVER_SERVER_H
#define RP_HTTP_SERVER_SERVER_H

#include "base/log.h"
#include "catalog/writer/writer.h"
#include "config/config.h"
#include "core/store.h"

#include <stdbool.h>

struct rp_server;
struct rp_live;
struct rp_metrics;
struct rp_rooms;
struct rp_run;
struct rp_worker;

/* What runs beside the requests and is asked by some of them (src/daemon). All may be NULL in
 * tests of the server alone. */
struct rp_beside {
    void *ctx;
    /* A run that a person asks for, a sweep or a restore: room for it is reserved (RP_EBUSY: too
     * many are under way), with the worker that it is begun for. What follows in any case is
     * start_run: `begun` NULL gives the room back. `store`: of a sweep; NULL: all. */
    int (*reserve_run)(void *ctx, const struct rp_worker **worker, struct rp_error *err);
    void (*start_run)(void *ctx, const char *store, const char *actor, const struct rp_run *begun);
    /* Milliseconds since the sweeper was last seen alive. */
    int64_t (*sweeper_idle_ms)(void *ctx);
};

struct rp_server_options {
    const struct rp_config *config;
    const char *catalog_url;
    const struct rp_clock *clock;
    struct rp_writers *writers;
    struct rp_store *stores; /* as config->stores; outlive the server */
    size_t n_stores;
    struct rp_log *log;
    struct rp_metrics *metrics;
    struct rp_rooms *rooms; /* may be NULL */
    struct rp_live *live;
    struct rp_beside beside;
    const char *url_key; /* 64 hex digits: signs URLs; shared by nodes */
};

int rp_server_start(const struct rp_server_options *options, struct rp_server **out, struct rp_error *err);
/* The address it really listens on ("127.0.0.1:8420"): the port may have been given as 0. */
const char *rp_server_address(const struct rp_server *server);
void rp_server_stop(struct rp_server *server, int64_t patience_ms);

/* A token's change is seen by the next request: called by api/access.c and by whoever reads the
 * audit log's tail. */
void rp_server_forget_token(struct rp_server *server, int64_t token_id); /* 0: all */
/* Of bodies that are in memory, or promised by their headers. */
int64_t rp_server_body_bytes(struct rp_server *server);

/* Settings changed (SIGHUP): requests that begin from now on find these (rp_request_config,
 * rp_request_store). The stores are the same ones in the same order. Both outlive the server, as
 * those before them do: a request under way keeps what it has. Any thread. */
void rp_server_configure(struct rp_server *server, const struct rp_config *config, struct rp_store *stores);

const struct rp_server_options *rp_server_options_of(const struct rp_server *server);

#endif
