/* SPDX-License-Identifier: Apache-2.0 */
/* live.h - changes as they happen, as server-sent events to any number of clients. A reader of the
 * feed (feed/feed.h).
 *
 *   id: 1.120-3.44
 *   event: file.deleted
 *   data: {"at":...,"event":...,"actor":...,"mark"?,"tenant"?, then the row's details}
 *
 * E1  A client gets every event after its last id: nothing is left out, and each lane is in order
 *     (F1).
 * E2  An event's id is the cursor after it. Last-Event-ID goes on exactly there, from the catalog
 *     if it is older than what is in memory.
 * E3  A client that falls behind what is in memory is disconnected. When it comes back it goes on
 *     from the catalog. Nobody waits for it.
 * E4  A tenant's token sees its own events only, and ids that count nothing (seal.h). Those of an
 *     admin show lanes and numbers.
 * E5  An idle client gets a comment every 15 s, with the id that it may go on from. A client that
 *     is gone is noticed by it. Idle clients are suspended and need no thread.
 * E6  A stream ends after an hour, and at once when its token expires or is revoked, on whichever
 *     node. The client comes back with its last id and misses nothing.
 * E7  An id past the end of a lane (the catalog was rolled back) goes on from that end; a comment
 *     says so.
 * E8  An id before rows that have left the log (they were sealed, and are gone) goes on behind
 *     them, with an event `reset`: the client reads anew what it shows. */
#ifndef RP_HTTP_LIVE_LIVE_H
#define RP_HTTP_LIVE_LIVE_H

#include "base/log.h"

#include <stddef.h>
#include <stdint.h>

struct MHD_Connection;
struct rp_clock;
struct rp_error;
struct rp_feed;
struct rp_live;

struct rp_live_options {
    struct rp_feed *feed; /* outlives it */
    const struct rp_clock *clock;
    struct rp_log *log;
    const char *key;    /* 64 hex digits: seals the ids of tenants; shared by nodes. NULL: ids are plain */
    size_t clients_max; /* 0: 10000 */
    int64_t idle_ms;    /* 0: 15 s */
    int64_t life_ms;    /* 0: 1 h */
};

int rp_live_start(const struct rp_live_options *options, struct rp_live **out, struct rp_error *err);
/* Ends every stream: all clients are resumed and closed, and no more are taken. Before the server
 * stops. */
void rp_live_end(struct rp_live *live);
void rp_live_stop(struct rp_live *live);      /* after the server stopped; NULL is fine */
size_t rp_live_clients(struct rp_live *live); /* NULL: 0 */
/* Ends the streams of a token; 0: of all tokens. One whose revocation is read from the feed needs
 * no call (E6). From any thread; NULL is fine. */
void rp_live_forget_token(struct rp_live *live, int64_t token_id);

/* What one client listens to. */
struct rp_live_ask {
    struct MHD_Connection *connection;
    int64_t tenant_id, token_id; /* tenant 0: events of all */
    int64_t expires_at_ms;       /* of the token; 0: never */
    const char *after;           /* the last id that it has seen; NULL: from now on */
};
struct rp_stream_reply;
/* A new client: `how` is then what rp_reply_stream takes. RP_EINVAL: `after` is no id. RP_EBUSY:
 * too many clients, or the end. */
int rp_live_open(struct rp_live *live, const struct rp_live_ask *ask, struct rp_stream_reply *how,
                 struct rp_error *err);

#endif
