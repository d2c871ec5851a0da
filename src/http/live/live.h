/* SPDX-License-Identifier: Apache-2.0 */
/* live.h - changes as they happen, to any number of clients: server-sent events read from the audit log.
 *
 * E1  One reader follows every lane by its sequence number: nothing is left out, and each lane is in order. It is woken by this
 *     process's commits and looks every 200 ms for those of others.
 * E2  An event's id is the cursor of all lanes after it ("1.120-3.44"): Last-Event-ID goes on exactly there, from the catalog if it
 *     is older than what is in memory.
 * E3  A ring of bounded size holds the last events for all clients. A client that falls behind it is disconnected and
 *     goes on from the catalog when it comes back; nobody waits for it.
 * E4  A tenant's token sees its own events only; ids show lanes and numbers, never names of others.
 * E5  An idle client gets a comment every 15 s, by which a dead one is noticed, with the id that it may go on from. Idle clients are
 *     suspended, without a thread.
 * E6  A stream ends after an hour, so that a token that expired meanwhile is asked for again, and at once when its token is
 *     revoked. The client comes back with the last id and misses nothing.
 * E7  An id that lies past the end of a lane (the catalog was rolled back) goes on from that end; a comment says so. */
#ifndef RP_HTTP_LIVE_LIVE_H
#define RP_HTTP_LIVE_LIVE_H

#include "base/log.h"
#include "catalog/audit.h"

struct MHD_Connection;
struct rp_clock;
struct rp_live;

struct rp_live_options {
    const char *catalog_url;
    const struct rp_clock *clock;
    size_t ring_events, ring_bytes, clients_max; /* 0: 16384, 8 MiB, 10000 */
    int64_t idle_ms;                             /* 0: 15 s */
    int64_t life_ms;                             /* 0: 1 h */
    struct rp_log *log;
    /* Sees every row once, in the reader's thread: tokens that were revoked elsewhere, alerts, ... May be NULL. */
    void (*seen)(void *ctx, const struct rp_audit_row *row);
    void *ctx;
};

int rp_live_start(const struct rp_live_options *options, struct rp_live **out, struct rp_error *err);
void rp_live_poke(struct rp_live *live); /* something was committed; cheap, from any thread; NULL is fine */
/* Ends every stream: all clients are resumed and closed, and no more are taken. Before the server stops. */
void rp_live_end(struct rp_live *live);
void rp_live_stop(struct rp_live *live);      /* after the server stopped; NULL is fine */
size_t rp_live_clients(struct rp_live *live); /* NULL: 0 */
/* Ends the streams of a token; the reader does it by itself for one whose revocation it reads (E6). 0: of all tokens. From any thread;
 * NULL is fine. */
void rp_live_forget_token(struct rp_live *live, int64_t token_id);

/* What one client listens to. */
struct rp_live_ask {
    struct MHD_Connection *connection;
    int64_t tenant_id, token_id; /* tenant 0: events of all */
    const char *after;           /* the last id that it has seen; NULL: from now on */
};
struct rp_stream_reply;
/* A new client: `how` is then what rp_reply_stream takes. RP_EINVAL: `after` is no id. RP_EBUSY: too many clients, or the end. */
int rp_live_open(struct rp_live *live, const struct rp_live_ask *ask, struct rp_stream_reply *how,
                 struct rp_error *err);

#endif
