/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store_watch.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/time.h"
#include "core/guarantee.h"
#include "daemon/pulse.h"
#include "daemon/trouble.h"

#include <stdlib.h>

#define EVERY_MS   RP_MINUTE_MS
#define PROBE_MS   RP_DAY_MS
#define RETRY_MS   RP_MINUTE_MS
#define RETRY_MOST RP_HOUR_MS

struct rp_store_watch {
    struct rp_pulse pulse;
    struct rp_trouble buckets[RP_STORES_MAX]; /* until_ms: when to probe */
};

static void say(struct rp_store_watch *w, enum rp_log_level level, const char *event, const char *store, json_t *fields)
{
    rp_json_set(fields, "node", rp_json_text(w->pulse.node));
    rp_json_set(fields, "store", json_string(store));
    rp_log_event(w->pulse.session.log, level, rp_session_now_ms(&w->pulse.session), event, fields);
    rp_log_flush(w->pulse.session.log);
}

static void failed(struct rp_store_watch *w, struct rp_trouble *bucket, const char *store, const struct rp_error *why)
{
    if (!rp_trouble_again(bucket, why->code, RETRY_MS, RETRY_MOST)) return;
    json_t *o = json_object();
    rp_json_set(o, "code", json_string(rp_error_slug(why->code)));
    rp_json_set(o, "error", rp_json_text(why->text));
    say(w, RP_LOG_ERROR, "store.not_probed", store, o);
}

static void probed(struct rp_store_watch *w, struct rp_trouble *bucket, const struct rp_store *store)
{
    json_t *o = json_object();
    *bucket = (struct rp_trouble){ .until_ms = rp_time_boot_ms() + PROBE_MS };
    rp_json_set(o, "guarantee", json_string(rp_level_name(rp_store_level(store))));
    rp_json_set(o, "written", json_boolean(store->config->mode != RP_MODE_OBSERVE));
    say(w, RP_LOG_INFO, "store.probed", store->config->name, o);
}

/* The clock comes first: a bucket that does not answer one request is not asked a dozen. */
static void look_at(struct rp_store_watch *w, size_t i)
{
    const struct rp_store_config *config = &w->pulse.session.config.stores[i];
    struct rp_trouble *bucket = &w->buckets[i];
    struct rp_store *store;
    struct rp_error why = { 0 };
    int r = rp_session_store(&w->pulse.session, config->name, &store, &why);
    if (r == 0) store->config = config;
    if (r == 0) r = rp_guarantee_ask_clock(store, w->pulse.session.catalog->clock, &why);
    bool opened_up =
        r == 0 && config->mode != RP_MODE_OBSERVE && !rp_guarantee_is_known(store) && bucket->failures == 0;
    bool due = opened_up || rp_time_boot_ms() >= bucket->until_ms;
    if (r == 0 && due) {
        r = rp_guarantee_probe(w->pulse.session.catalog, store, &why);
        if (r == 0) probed(w, bucket, store);
    }
    if (r < 0) failed(w, bucket, config->name, &why);
}

static void look(void *ctx)
{
    struct rp_store_watch *w = ctx;
    for (size_t i = 0; i < w->pulse.session.config.n_stores && !rp_pulse_is_ending(&w->pulse); i++)
        if (rp_config_is_s3(&w->pulse.session.config.stores[i])) look_at(w, i);
}

int rp_store_watch_start(const struct rp_store_watch_options *options, struct rp_store_watch **out,
                         struct rp_error *err)
{
    struct rp_store_watch *w = calloc(1, sizeof *w);
    if (w == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the watch over the stores");
    const struct rp_pulse_options pulse = { .what = "the watch over the stores",
                                            .session = options->session,
                                            .writers = options->writers,
                                            .node = options->node,
                                            .lane = options->lane,
                                            .every_ms = options->every_ms > 0 ? options->every_ms : EVERY_MS,
                                            .look = look,
                                            .ctx = w };
    int r = rp_pulse_start(&w->pulse, &pulse, err);
    if (r < 0) {
        free(w);
        return r;
    }
    *out = w;
    return 0;
}

void rp_store_watch_stop(struct rp_store_watch *w)
{
    if (w == NULL) return;
    rp_pulse_stop(&w->pulse);
    free(w);
}

void rp_store_watch_configure(struct rp_store_watch *w, const struct rp_config *config)
{
    if (w != NULL) rp_pulse_configure(&w->pulse, config);
}
