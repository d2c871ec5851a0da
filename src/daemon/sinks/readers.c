/* SPDX-License-Identifier: Apache-2.0 */
/* readers.c - the watch over readers of the feed that nobody configures any more: their cursors
 * would hold back the sealing of the audit log for ever. One is forgotten once no node has worked
 * for it for a day: as long as a node with the older configuration may come back. */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/audit/feed.h"
#include "daemon/processor/processor.h"
#include "daemon/sinks/sinks.h"
#include "daemon/watch/watch.h"

#include <string.h>

#define EVERY_MS    RP_HOUR_MS
#define LEFT_FOR_MS RP_DAY_MS

static bool is_configured(const struct rp_config *config, const char *reader)
{
    char name[RP_FEED_READER];
    for (size_t i = 0; i < config->n_sinks; i++)
        if (strcmp(rp_sink_reader(&config->sinks[i], name), reader) == 0) return true;
    return config->processor_url[0] != 0 && strcmp(reader, RP_PROCESSOR_READER) == 0;
}

struct forgetting {
    const char *reader;
    bool forgotten;
};

static int forget_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct forgetting *f = ctx;
    return rp_feed_reader_forget(tx, f->reader, tx->db_ms - LEFT_FOR_MS, &f->forgotten, err);
}

static int see_reader(void *ctx, const char *reader, struct rp_error *err)
{
    struct rp_session *s = ctx;
    struct forgetting f = { .reader = reader };
    if (is_configured(&s->config, reader)) return 0;
    int r = rp_catalog_transact(s->catalog, forget_tx, &f, err);
    if (r == 0 && f.forgotten)
        rp_session_log(s, RP_LOG_WARNING, "feed.reader_forgotten",
                       rp_json_object("reader", rp_json_text(reader), "note",
                                      json_string("it is not configured any more, and no node worked for it for a day"),
                                      NULL));
    return r;
}

static void look_at_readers(struct rp_watch *w)
{
    struct rp_error why = { 0 };
    if (rp_feed_readers(w->session.catalog->db, see_reader, &w->session, &why) < 0)
        rp_metrics_failure(w->options.metrics, "catalog");
}

const struct rp_watch_kind rp_readers_watch = { .what = "the watch over readers of the feed",
                                                .every_ms = EVERY_MS,
                                                .catalog = RP_WATCH_BRIEFLY,
                                                .bytes = sizeof(struct rp_watch),
                                                .look = look_at_readers };
