/* SPDX-License-Identifier: Apache-2.0 */
/* inner.h - what the parts of the server know of a request and of each other; for the files of the
 * HTTP core only.
 *
 * A request belongs to one thread at a time. It is handed over in three ways, and whoever hands it
 * over does so as the last thing: to the pool (rp_pool_push), to a writer (rp_writers_submit), back
 * to its HTTP thread (MHD_resume_connection). The connection is suspended before the request leaves
 * its HTTP thread and resumed exactly once, by whoever has it then.
 *
 * A handler only notes how it ended (the phase); what follows from it is done after it has
 * returned, by rp_request_settle.
 *
 * Headers come first: who asks is known (`authorized`) before a byte of the body is read.
 *
 *   ARRIVING ──▶ HANDLING ─┬─ rp_reply_* ────────▶ REPLIED ───────────────────────────▶ SENT
 *    (body)       ▲        ├─ rp_request_submit ─▶ SUBMITTED ─▶ WAITING ─▶ DONE ─ then ─▶ REPLIED
 *                 └────────┼─ rp_request_later ── LATER
 *                          └─ rp_request_receive ▶ RECEIVING ─▶ HANDLING (stream->end)
 *
 * With an idempotency key `then` runs in WAITING, by the writer's thread, so that its reply is
 * saved in the same transaction. */
#ifndef RP_HTTP_SERVER_INNER_H
#define RP_HTTP_SERVER_INNER_H

#include <stdatomic.h>
#include <sys/types.h>

#include "http/server/request.h"
#include "http/server/server.h"
#include "http/server/shares.h"
#include "http/server/stream.h"

#include <microhttpd.h>

enum rp_phase {
    RP_ARRIVING,
    RP_HANDLING,
    RP_REPLIED,
    RP_SUBMITTED,
    RP_LATER,
    RP_WAITING,
    RP_DONE,
    RP_RECEIVING,
    RP_SENT
};

#define RP_BODY_MAX   ((size_t)64 << 10)  /* of a route that says nothing else */
#define RP_BODIES_MAX ((int64_t)64 << 20) /* of all requests together (shares.h) */
#define RP_ARENA_MAX  ((size_t)32 << 20)  /* a request's memory */
/* Bytes of an unwanted body that are read for the sake of the answer, before the connection is
 * just closed. */
#define RP_SWALLOW_MAX ((int64_t)1 << 20)

struct rp_slow_client;
struct rp_pool;
struct rp_tokens;
struct rp_tenants;
struct rp_slow_clients;

struct rp_request_inner {
    enum rp_phase phase;
    bool suspended; /* the connection is */
    bool early;     /* it was suspended before the body: the next call of the HTTP library comes before it, too */
    bool refused;   /* the answer stands while the body still comes; it is swallowed */
    bool on_pool, authorized, validated;
    bool asks_again;           /* the token is known, and this request asks the catalog whether it still is */
    bool ended;                /* the stream's end or abort was called */
    const char *method, *path; /* as they came; the HTTP library's */
    const char *raw_query;     /* as JSON; NULL: none */
    struct rp_slow_client *client;
    struct rp_catalog *catalog; /* of the pool's thread */
    struct rp_buf body;         /* as it came */
    int64_t length;             /* Content-Length; -1: none */
    int64_t held_bytes, holder; /* of the server's `bodies` */
    bool chunked;
    int64_t swallowed;
    int64_t began_us;
    int code; /* of the error that was replied; 0: none */

    /* of a command */
    rp_refresh_fn *refresh;
    size_t n_headers;  /* those that were there before `then` */
    const char *saved; /* under the key instead of the reply; NULL: the reply */
    size_t saved_n;
    int save_code; /* negative: there was no room for it, and the command fails with that */
    bool rendered;
    int rendered_code;

    struct rp_stream_reply how; /* of rp_reply_stream; read NULL: none */
    struct rp_request *next;    /* in the pool's queue */
    int64_t store;              /* the one that it waits for, or has been let in to (pool.h); 0: none */
    bool inside;                /* it has been let in */
};

/* Options with settings that were changed since the start. */
struct rp_server_now {
    struct rp_server_options options;
    struct rp_server_now *before; /* a request may still look at them */
};

struct rp_server {
    struct rp_server_options options;    /* as it was started */
    _Atomic(struct rp_server_now *) now; /* what rp_server_options_of gives; NULL: those */
    struct MHD_Daemon *daemon;
    int listen_fd;
    bool tls;
    char address[80];
    struct rp_tokens *tokens;
    struct rp_tenants *tenants;
    struct rp_pool *pool;
    struct rp_pool *lookups; /* of tokens: no handler is in their way, and connections alone bound what waits */
    struct rp_shares bodies; /* bytes of them */
    struct rp_slow_clients *slow_clients;
    uint32_t boot;              /* tells request ids of two runs apart */
    _Atomic uint32_t serial;    /* of requests */
    _Atomic int64_t open, away; /* requests under way; those whose connection is suspended by us */
    _Atomic bool stopping;      /* answers ask clients to close */
    _Atomic bool closing;       /* nobody is suspended any more */
};

/* ---- request.c ---- */

struct rp_request *rp_request_new(struct rp_server *server, struct MHD_Connection *connection, const char *method,
                                  const char *path);
void rp_request_free(struct rp_request *q);
/* Everything from the credentials to the handler's end, on this thread. `catalog` NULL: an HTTP
 * thread. */
void rp_request_run(struct rp_request *q, struct rp_catalog *catalog);
/* What follows from how the handler ended. False: the request has left this thread and may not
 * be touched. */
bool rp_request_settle(struct rp_request *q);
/* A command is done: its reply, on the HTTP thread. */
void rp_request_finish_command(struct rp_request *q);
/* Answers a request that cannot be served now. As rp_request_settle. */
bool rp_request_give_up(struct rp_request *q, const struct rp_error *why);
/* What is saved under the idempotency key in place of the reply; within `then`. */
void rp_request_save_instead(struct rp_request *q, json_t *answer);

/* ---- reply.c ---- */

void rp_reply_reset(struct rp_request *q); /* back to before the reply; headers that were there before `then` stay */
enum MHD_Result rp_reply_send(struct rp_request *q);
/* In the middle of a body, when the HTTP library takes no answer: writes it to the socket itself.
 * The connection must be closed then. With TLS it is just closed. */
void rp_reply_break_off(struct rp_request *q);

/* ---- others ---- */

int64_t rp_monotonic_us(void);
/* Suspends the connection, unless it is; from the HTTP thread. False: the server closes, and the
 * request stays where it is. */
bool rp_request_suspend(struct rp_request *q);
/* Back to the HTTP thread. The last thing. */
void rp_request_wake(struct rp_request *q);

#endif
