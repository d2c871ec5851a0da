/* SPDX-License-Identifier: Apache-2.0 */
/* inner.h - the parts of a running daemon; for the files of this folder alone. */
#ifndef RP_DAEMON_INNER_H
#define RP_DAEMON_INNER_H

#include "base/time.h"
#include "core/room.h"
#include "daemon/daemon.h"
#include "daemon/processor/processor.h"
#include "daemon/raiser.h"
#include "daemon/runs.h"
#include "daemon/sinks/sinks.h"
#include "daemon/sweeper.h"
#include "feed/feed.h"
#include "http/live/live.h"
#include "http/server/server.h"
#include "lib/session.h"

#include <pthread.h>

#define RP_NODE_MAX 61
#define RP_WATCHES  8 /* over room, restores, retention, lost files, imports, alerts, readers and buckets */

/* How long a stop may take. Buckets are interrupted RP_STORES_MS after the signal, and requests
 * that still wait RP_PATIENCE_MS after it; then the last raises go to the buckets, over connections
 * of their own. Whatever hangs all the same ends with the process. */
#define RP_STORES_MS   (5 * RP_SECOND_MS)
#define RP_PATIENCE_MS (10 * RP_SECOND_MS)
#define RP_STOP_MS     (15 * RP_SECOND_MS)
_Static_assert(RP_STORES_MS < RP_PATIENCE_MS && RP_PATIENCE_MS + RP_LAST_RAISE_MS < RP_STOP_MS,
               "there is time for each of them");

/* Settings that were read again. All of them stay until the end: a request under way may still look
 * at an older one. */
struct rp_setup {
    struct rp_setup *before;
    struct rp_arena arena;
    struct rp_config config;
    struct rp_store stores[RP_STORES_MAX];
};

struct rp_daemon {
    const struct rp_daemon_options *options;
    struct rp_session session;
    char node[RP_NODE_MAX], url_key[RP_DIGEST_HEX];
    int lock_fd;
    struct rp_metrics *metrics;
    struct rp_feed *feed;
    struct rp_feed_subscription *follows;
    struct rp_live *live;
    struct rp_writers *writers;
    struct rp_runs *runs;
    struct rp_watch *sweeper;
    struct rp_watch *asker; /* of confirmations */
    struct rp_watch *watches[RP_WATCHES];
    struct rp_rooms rooms;
    struct rp_raiser *raiser;
    struct rp_sinks *sinks;
    struct rp_processor *processor;
    struct rp_metrics_sink sinks_watched[RP_SINKS_MAX];
    char sink_readers[RP_SINKS_MAX][RP_FEED_READER];
    pthread_mutex_t lock;
    struct rp_server *server; /* under the lock, for the feed's thread */
    struct rp_setup *setups;  /* the newest first; NULL: those of the session */
};

bool rp_daemon_is_sqlite(const struct rp_daemon *d);
void rp_daemon_log(struct rp_daemon *d, enum rp_log_level level, const char *event, json_t *fields);

/* welcome.c */
struct rp_welcome {
    char token_file[4096]; /* "": none */
    char link[64];         /* the secret of the sign-in link; "": not the first start */
    bool no_token;
};
int rp_welcome_tokens(struct rp_daemon *d, struct rp_welcome *out, struct rp_error *err);

/* parts.c. After a failed start some of them may be there: they are stopped all the same. */
int rp_parts_start(struct rp_daemon *d, struct rp_welcome *welcome, struct rp_error *err);
void rp_parts_stop(struct rp_daemon *d);

/* reload.c */
void rp_daemon_reload(struct rp_daemon *d);
void rp_daemon_forget_setups(struct rp_daemon *d);
const struct rp_config *rp_daemon_config(const struct rp_daemon *d);

#endif
