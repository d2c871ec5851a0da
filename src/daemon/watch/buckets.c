/* SPDX-License-Identifier: Apache-2.0 */
/* The watch over buckets: what they guarantee, at start and once a day, and how their clocks go,
 * every minute.
 *
 * P1  One thread of its own: a bucket that hangs holds up the looks at the others, and nothing
 *     else. A start does not wait for it.
 * P2  A bucket that does not answer is asked again, after a minute at first and an hour at most;
 *     the trouble is in the log once in ten minutes. It is open all the same: who needs it is told.
 * P3  In mode observe it is only read. Once its mode lets it be written, it is probed at the next
 *     look.
 * P4  Directories need none of it: their guarantee is the program's own, their clock the host's. */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "base/trouble.h"
#include "core/guarantee.h"
#include "daemon/watch/watch.h"

#define EVERY_MS   RP_MINUTE_MS
#define PROBE_MS   RP_DAY_MS
#define RETRY_MS   RP_MINUTE_MS
#define RETRY_MOST RP_HOUR_MS

struct store_watch {
    struct rp_watch watch;
    struct rp_trouble buckets[RP_STORES_MAX]; /* until_ms: when to probe */
};

static void say(struct store_watch *w, enum rp_log_level level, const char *event, const char *store, json_t *fields)
{
    rp_json_set(fields, "node", rp_json_text(w->watch.node));
    rp_json_set(fields, "store", json_string(store));
    rp_session_log(&w->watch.session, level, event, fields);
}

static void failed(struct store_watch *w, struct rp_trouble *bucket, const char *store, const struct rp_error *why)
{
    if (!rp_trouble_again(bucket, why->code, rp_time_boot_ms(), RETRY_MS, RETRY_MOST)) return;
    json_t *o = rp_json_object("code", json_string(rp_error_slug(why->code)), "error", rp_json_text(why->text), NULL);
    say(w, RP_LOG_ERROR, "store.not_probed", store, o);
}

static void probed(struct store_watch *w, struct rp_trouble *bucket, const struct rp_store *store)
{
    *bucket = (struct rp_trouble){ .until_ms = rp_time_boot_ms() + PROBE_MS };
    json_t *o = rp_json_object("guarantee", json_string(rp_level_name(rp_store_level(store))), "written",
                               json_boolean(store->config->mode != RP_MODE_OBSERVE), NULL);
    say(w, RP_LOG_INFO, "store.probed", store->config->name, o);
}

/* The clock comes first: a bucket that does not answer one request is not asked a dozen. */
static void look_at(struct store_watch *w, size_t i)
{
    const struct rp_store_config *config = &w->watch.session.config.stores[i];
    struct rp_trouble *bucket = &w->buckets[i];
    struct rp_store *store;
    struct rp_error why = { 0 };
    int r = rp_session_store(&w->watch.session, config->name, &store, &why);
    if (r == 0) store->config = config;
    if (r == 0) r = rp_guarantee_ask_clock(store, w->watch.session.catalog->clock, &why);
    bool opened_up =
        r == 0 && config->mode != RP_MODE_OBSERVE && !rp_guarantee_is_known(store) && bucket->failures == 0;
    bool due = opened_up || rp_time_boot_ms() >= bucket->until_ms;
    if (r == 0 && due) {
        r = rp_guarantee_probe(w->watch.session.catalog, store, &why);
        if (r == 0) probed(w, bucket, store);
    }
    if (r < 0) failed(w, bucket, config->name, &why);
}

static void look(struct rp_watch *watch)
{
    struct store_watch *w = (struct store_watch *)watch;
    for (size_t i = 0; i < w->watch.session.config.n_stores && !rp_watch_is_ending(&w->watch); i++)
        if (rp_config_is_s3(&w->watch.session.config.stores[i])) look_at(w, i);
}

const struct rp_watch_kind rp_store_watch = {
    .what = "the watch over buckets", .every_ms = EVERY_MS, .bytes = sizeof(struct store_watch), .look = look
};
