/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - one request from its first byte to its answer: who asks, what for, and the ways to
 * answer.
 *
 * Q1  Everything of a request is in its arena and ends with it.
 * Q2  A handler ends in exactly one of: rp_reply_*, rp_request_submit (the answer comes when the
 *     command is durable), or, for streams, as stream.h says. After it, the request may not be
 *     touched.
 * Q3  An error is application/problem+json:
 *     {"type":"about:blank","title","status","code","detail","hint"?, and members of its own}.
 *     Texts of 5xx errors carry no path, host or SQL of ours; the log has them whole, under the
 *     same request id. */
#ifndef RP_HTTP_SERVER_REQUEST_H
#define RP_HTTP_SERVER_REQUEST_H

#include "base/arena.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "catalog/writer/writer.h"
#include "core/store.h"
#include "http/route/route.h"

#include <jansson.h>
#include <sys/types.h>

#define RP_REQUEST_ID 65 /* letters, digits and ._- */

struct MHD_Connection;
struct rp_server;
struct rp_stream;

/* Who asks, as the token says. */
struct rp_principal {
    int64_t token_id;      /* 0: nobody */
    int64_t tenant_id;     /* 0: admin, no tenant */
    int64_t expires_at_ms; /* 0: never */
    char tenant[64];       /* its name; "" for an admin */
    unsigned scopes;
    char actor[RP_ACTOR_MAX]; /* "token:NAME", in marks and the audit log */
    bool by_cookie;           /* a session of the console: changes need the CSRF header */
};

struct rp_request {
    struct rp_server *server;
    struct MHD_Connection *connection;
    const struct rp_route *route;
    struct rp_principal who;
    struct rp_arena arena;
    const char *args[RP_PATH_ARGS]; /* {segments} of the path */
    json_t *query;                  /* validated, typed as the shape says; never NULL in a handler */
    json_t *body;                   /* validated; NULL if the route takes none or none came */
    const char *key;                /* Idempotency-Key, NULL: none */
    uint8_t digest[RP_DIGEST_BYTES];
    struct rp_stream *stream; /* of a route that streams */
    int64_t began_ms;
    char id[RP_REQUEST_ID]; /* for the log and the header Request-Id: the caller's own, if that is sane, else made */

    /* the answer */
    int status;
    const char *content_type;
    struct rp_buf out;
    struct rp_pair_header {
        const char *name, *value; /* the arena's, or constant */
    } headers[8];
    size_t n_headers;

    struct rp_command *command; /* under way, or just done */
    rp_handler_fn *then;
    rp_handler_fn *refused; /* set before rp_request_submit; NULL: q->command->error is the answer */
    /* Set before rp_request_submit, may be NULL: runs exactly once, outside any transaction,
     * when the command's fate is durable (q->command->error says which) and before the answer
     * goes out; also when no writer took the command, and when the client is gone. It may not
     * reply. */
    rp_handler_fn *after;
    /* the rest is the server's */
    struct rp_request_inner *inner;
};

/* ---- what a handler finds around it ---- */

/* A catalog for this handler: reads on a connection of the calling thread of the pool, changes
 * through the writers. Only where the route blocks. It is lent until the handler returns. */
struct rp_catalog *rp_request_catalog(struct rp_request *q);
/* Stores by name or by the catalog's number; NULL: no such store. Opened at start; .backend
 * may be NULL, and .closed says why. */
struct rp_store *rp_request_store(struct rp_request *q, const char *name);
struct rp_store *rp_request_store_of(struct rp_request *q, int64_t store_id);
const struct rp_config *rp_request_config(const struct rp_request *q);
/* The store's name, also of one that is no longer configured. */
const char *rp_request_store_name(struct rp_request *q, int64_t store_id);
int64_t rp_request_now_ms(const struct rp_request *q);
/* The tenant that this call is about: the token's, or for an admin the one named in `tenant` of
 * the body or query, else "default". Makes a tenant that an admin names for the first time. May
 * be called where a route does not block only for tenants' tokens and for tenants seen before;
 * else it returns RP_EBUSY and the request is to be run again on the pool: rp_request_later(q). */
int rp_request_tenant(struct rp_request *q, int64_t *tenant_id, struct rp_error *err);
/* Runs the handler again on a thread of the pool. Ends the handler (Q2). */
void rp_request_later(struct rp_request *q);
/* Whether this run of the handler is on a thread of the pool: it may read the catalog and the
 * stores, whatever its row says. */
bool rp_request_may_block(const struct rp_request *q);
/* Before a handler of a route that blocks waits for a store: whether it may (pool.h, L1). False:
 * the handler has ended (Q2), and is run again from its start when it may. */
bool rp_request_enter(struct rp_request *q, int64_t store_id);
/* The store that has let it in; 0: none has. Whoever enters another one leaves it. */
int64_t rp_request_inside(const struct rp_request *q);
/* args[n] as an id; on failure the request has been answered (404: an id that is none names
 * nothing). */
bool rp_request_id(struct rp_request *q, size_t n, enum rp_id_kind kind, int64_t *out);
/* A member of query or body; those of other types: rp_json_get_int, rp_json_get_text
 * (base/text/json.h). */
bool rp_request_bool(const json_t *in, const char *name);

/* ---- ways to answer ---- */

void rp_reply_json(struct rp_request *q, int status, json_t *value); /* steals the value */
/* {"items":[...],"next_cursor":...}; steals the array. cursor NULL: the end. */
void rp_reply_list(struct rp_request *q, json_t *items, const char *cursor);
void rp_reply_text(struct rp_request *q, int status, const char *content_type, const char *text);
void rp_reply_empty(struct rp_request *q, int status);
void rp_reply_error(struct rp_request *q, const struct rp_error *err);
void rp_reply_no_memory(struct rp_request *q);
/* With members of its own: {"limit":...}; steals `more`. */
void rp_reply_problem(struct rp_request *q, const struct rp_error *err, json_t *more);
void rp_reply_header(struct rp_request *q, const char *name, const char *value); /* before the reply; value is copied */

/* An answer that is read as it is sent: a file's content, live events. `read` gives 1..max bytes
 * at `pos`, 0 after it suspended the connection itself (MHD_suspend_connection; whoever has more
 * to send resumes it, and read is asked again), -1 at the end and -2 to break the connection
 * off. It runs on an HTTP thread, also after the handler returned. `free` is called exactly
 * once, also when the client went away or the reply was never begun; the request and its arena
 * are no longer there then. */
struct rp_stream_reply {
    int64_t size; /* -1: not known */
    ssize_t (*read)(void *ctx, uint64_t pos, char *to, size_t max);
    void (*free)(void *ctx);
    void *ctx;
};
void rp_reply_stream(struct rp_request *q, int status, const char *content_type, const struct rp_stream_reply *how);

/* Submits a command (allocated in the request's arena; verb, tenant_id and its own members
 * filled in; the rest is filled in here). When it is durable, `then` runs and must reply at
 * once: with an idempotency key it runs inside the writer's transaction, else on an HTTP thread.
 * If it is refused or failed, q->refused runs in its stead. A replayed answer is sent as it was
 * saved; `refresh` (may be NULL) may first change it (a URL that is signed anew); negative: the
 * error is the answer. */
typedef int rp_refresh_fn(struct rp_request *q, json_t *answer, struct rp_error *err);
void rp_request_submit(struct rp_request *q, struct rp_command *command, rp_handler_fn *then, rp_refresh_fn *refresh);
/* The same for a command that cannot be done: refused with `why`, unless an answer was saved
 * under its key. */
void rp_request_refuse(struct rp_request *q, struct rp_command *command, const struct rp_error *why,
                       rp_refresh_fn *refresh);

#endif
