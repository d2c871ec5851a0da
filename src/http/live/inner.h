/* SPDX-License-Identifier: Apache-2.0 */
/* inner.h - what the files of live.h share: the hub, its clients and its thread.
 *
 *   running   MHD asks for bytes: first `text`, then (while `after` is set) the next part from the
 *             catalog, then what the feed has in memory
 *   waiting   suspended: nothing more is in memory; in list `waiting`, longest first
 *   fetching  suspended: the catch-up thread reads the next part for it; in list `fetching`, first
 *             come first
 *
 * C1  Everything of a client is guarded by the hub's lock. Order of locks: ours, then those inside
 *     MHD and the feed.
 * C2  A client is freed by MHD only while it is not suspended: who holds a waiting or fetching
 *     client may use it.
 * C3  After `ending` nothing is suspended any more. */
#ifndef RP_HTTP_LIVE_INNER_H
#define RP_HTTP_LIVE_INNER_H

#include "feed/feed.h"
#include "http/live/live.h"
#include "http/live/seal.h"

#include <pthread.h>
#include <stdatomic.h>

/* Words for one client or for many; counted under the hub's lock. */
struct rp_text {
    size_t refs, len;
    char data[];
};

enum rp_live_state { RP_LIVE_RUNNING, RP_LIVE_WAITING, RP_LIVE_FETCHING };

struct rp_live_client {
    struct rp_live *live;
    struct MHD_Connection *connection;
    struct rp_live_client *older, *newer; /* all clients */
    /* Those of one state; also `reading`: running with a part from the catalog. */
    struct rp_live_client *prev, *next;
    int64_t tenant_id, token_id;
    int64_t began_ms, since_ms; /* since_ms: in its state */
    int64_t ends_ms;            /* with its token; INT64_MAX: never */
    uint64_t at;                /* the number of the event that comes next */
    char *after;                /* goes on from here, from the catalog; NULL: from memory */
    struct rp_text *text;       /* to be sent first */
    size_t sent;                /* bytes of `text`, or else of event `at` */
    enum rp_live_state state;
    bool part;  /* `text` is a part from the catalog: one of parts_max */
    bool ended; /* says no more */
};

struct rp_live_list {
    struct rp_live_client *first, *last;
};

/* The same words for everybody who is at the same event. */
struct rp_shared {
    struct rp_text *text; /* NULL: to be made anew */
    uint64_t at;
};

struct rp_live {
    struct rp_live_options options;
    struct rp_feed *feed;
    struct rp_feed_subscription *follows;
    pthread_mutex_t lock;
    pthread_cond_t to_fetch;                   /* the catch-up thread has something to do; the feed has looked */
    pthread_cond_t fetched;                    /* the catch-up thread is between two clients */
    struct rp_shared hello[2], idle[2], again; /* [1]: with the id as a tenant sees it */
    struct rp_seal seal;
    char sealed[RP_LIVE_ID_TEXT]; /* the id of the event `sealed_number`; "": of none */
    uint64_t sealed_number;
    int64_t next_end_ms; /* no token ends before */
    struct rp_live_client *newest;
    struct rp_live_list waiting, fetching, reading;
    struct rp_live_client *in_hand; /* of the catch-up thread */
    size_t n_clients, n_parts;
    uint64_t looks; /* of the feed */
    bool ending;
    /* The feed's thread's: clients at once, since memory was given back. */
    size_t most;
    _Atomic size_t listening; /* n_clients, for who holds no lock */

    struct rp_feed_log *log; /* of the catch-up thread; NULL: nobody had to catch up yet */
    pthread_t fetcher;
    bool has_fetcher;
};

/* All of these: with the lock held. */
void rp_live_list_add(struct rp_live_list *list, struct rp_live_client *client);
void rp_live_list_remove(struct rp_live_list *list, struct rp_live_client *client);
/* NULL: no memory; also without the lock. */
struct rp_text *rp_text_new(const char *bytes, size_t len);
void rp_text_drop(struct rp_text **text);
/* Whether ids are sealed for it; also without the lock. */
bool rp_live_seals(const struct rp_live_client *client);
/* Out of waiting or fetching, to be asked again by MHD. */
void rp_live_resume(struct rp_live_client *client);
void rp_live_text_done(struct rp_live_client *client); /* `text` was sent, or is given up */
void rp_live_end_client(struct rp_live_client *client);
/* The feed's thread: clients whose events came; clients that have been idle for long. */
void rp_live_wake(struct rp_live *live, const struct rp_feed_batch *batch);
void rp_live_tend(struct rp_live *live, int64_t now_ms);
void rp_live_end_all(struct rp_live *live);

void *rp_live_fetch_thread(void *ctx); /* ctx: the hub */

#endif
