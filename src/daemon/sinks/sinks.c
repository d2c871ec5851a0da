/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sinks/sinks.h"

#include "base/error.h"
#include "base/text/json.h"
#include "base/time.h"
#include "config/events.h"
#include "daemon/sinks/answer.h"
#include "daemon/sinks/message.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define CALL_MS (10 * RP_SECOND_MS)
#define TURN_MS (5 * RP_SECOND_MS) /* then the cursor is saved and the lease renewed */
_Static_assert(TURN_MS + CALL_MS <= 2 * RP_FEED_LEASE_MS / 3, "the lease lasts longer than a turn");

struct sink {
    struct rp_sinks *all;
    const struct rp_sink_config *config; /* as it was at the start */
    size_t place;
    char reader[RP_FEED_READER];
    const char *names[RP_EVENT_NAMES_MAX];
    struct rp_feed_subscription *subscription;
    struct rp_hook_line line;
    struct rp_buf body;
    /* of the event that waits, and of all since one was taken */
    int64_t lane, seq, event_refusals, refusals_in_a_row;
};

struct rp_sinks {
    struct rp_sinks_options options;
    const struct rp_config *_Atomic config; /* the settings in force */
    _Atomic bool halted;
    size_t n;
    struct sink at[RP_SINKS_MAX];
};

const char *rp_sink_reader(const struct rp_sink_config *sink, char out[RP_FEED_READER])
{
    snprintf(out, RP_FEED_READER, "sink:%s", sink->name);
    return out;
}

/* ---- one event ---- */

static int send_event(struct sink *sink, const struct rp_feed_event *event, struct rp_hook_answer *answer,
                      struct rp_error *err)
{
    char id[RP_SINK_EVENT_ID];
    const struct rp_sinks_options *o = &sink->all->options;
    int r = rp_sink_message(event, &sink->body, err);
    if (r < 0) return r;
    const struct rp_config *config = atomic_load(&sink->all->config);
    const struct rp_sink_config *now = &config->sinks[sink->place]; /* a reload keeps their places */
    const struct rp_hook_call call = { .url = sink->config->url,
                                       .secrets = { now->secret, now->secret_old },
                                       .id = rp_sink_event_id(event, id),
                                       .event = event->name,
                                       .body = rp_buf_text(&sink->body),
                                       .body_bytes = sink->body.len,
                                       .at_ms = rp_clock_now_ms(o->clock),
                                       .timeout_ms = CALL_MS,
                                       .allow = config->outbound_allow,
                                       .line = &sink->line };
    return (o->send != NULL ? o->send : rp_hook_send)(&call, answer, err);
}

static void count_refusal(struct sink *sink, const struct rp_feed_event *event)
{
    bool same = sink->lane == event->lane && sink->seq == event->seq;
    sink->lane = event->lane;
    sink->seq = event->seq;
    sink->event_refusals = same ? sink->event_refusals + 1 : 1;
    sink->refusals_in_a_row++;
}

static void log_passed_over(const struct sink *sink, const struct rp_feed_event *event, long status)
{
    char id[RP_SINK_EVENT_ID];
    const struct rp_sinks_options *o = &sink->all->options;
    json_t *fields =
        rp_json_object("sink", json_string(sink->config->name), "id", json_string(rp_sink_event_id(event, id)), "name",
                       rp_json_text(event->name), "lane", json_integer(event->lane), "seq", json_integer(event->seq),
                       "status", json_integer(status), "tries", json_integer(sink->event_refusals), NULL);
    rp_log_event(o->log, RP_LOG_ERROR, rp_clock_now_ms(o->clock), "event.refused", fields);
}

/* 0: it was dealt with. */
static int deliver_one(struct sink *sink, const struct rp_feed_event *event, int64_t *again_ms, struct rp_error *err)
{
    const struct rp_sinks_options *o = &sink->all->options;
    struct rp_hook_answer answer = { .retry_after_ms = -1 };
    int code = send_event(sink, event, &answer, err);
    if (rp_sink_is_refusal(code, answer.status)) count_refusal(sink, event);
    const struct rp_sink_answer judged = { .code = code,
                                           .status = answer.status,
                                           .retry_after_ms = answer.retry_after_ms,
                                           .event_age_ms = rp_clock_now_ms(o->clock) - event->at_ms,
                                           .event_refusals = sink->event_refusals,
                                           .refusals_in_a_row = sink->refusals_in_a_row,
                                           .refusals_most = o->refusals };
    enum rp_sink_fate fate = rp_sink_judge(&judged, again_ms);
    static const char *const outcomes[] = {
        [RP_SINK_TAKEN] = "delivered", [RP_SINK_AGAIN] = "failed", [RP_SINK_PASSED_OVER] = "refused"
    };
    rp_metrics_delivery(o->metrics, sink->config->name, outcomes[fate]);
    if (fate == RP_SINK_AGAIN) return code;
    if (fate == RP_SINK_TAKEN) sink->refusals_in_a_row = 0;
    if (fate == RP_SINK_PASSED_OVER) log_passed_over(sink, event, answer.status);
    rp_error_clear(err);
    return 0;
}

/* ---- the feed's reader ---- */

static int deliver(void *ctx, const struct rp_feed_batch *batch, struct rp_feed_dealt *out, struct rp_error *err)
{
    struct sink *sink = ctx;
    int64_t began_ms = rp_time_boot_ms();
    int r = 0;
    out->partly = true;
    for (out->n = 0; r == 0 && out->n < batch->n; out->n += r == 0) {
        if (atomic_load(&sink->all->halted) || rp_time_boot_ms() - began_ms >= TURN_MS) return 0;
        r = deliver_one(sink, batch->events[out->n], &out->again_ms, err);
    }
    return r;
}

static int start_one(struct rp_sinks *sinks, const struct rp_sink_config *config, struct rp_error *err)
{
    struct sink *sink = &sinks->at[sinks->n++];
    const struct rp_sinks_options *o = &sinks->options;
    *sink = (struct sink){
        .all = sinks, .config = config, .place = sinks->n - 1, .body = RP_BUF(RP_FEED_JSON_MAX + RP_SINK_EVENT_ID + 16)
    };
    rp_sink_reader(config, sink->reader);
    rp_event_names_of(config->events, sink->names);
    const struct rp_feed_reader reader = { .name = sink->reader,
                                           .want = { .names = sink->names },
                                           .deliver = deliver,
                                           .ctx = sink,
                                           .writers = o->writers,
                                           .holder = o->node,
                                           .lease_ms = o->lease_ms };
    return rp_feed_subscribe(o->feed, &reader, &sink->subscription, err);
}

/* ---- all of them ---- */

int rp_sinks_start(const struct rp_sinks_options *options, struct rp_sinks **out, struct rp_error *err)
{
    struct rp_sinks *sinks = calloc(1, sizeof *sinks);
    if (sinks == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for events_out");
    sinks->options = *options;
    atomic_store(&sinks->config, options->config);
    int r = 0;
    for (size_t i = 0; i < options->config->n_sinks && r == 0; i++)
        r = start_one(sinks, &options->config->sinks[i], err);
    if (r < 0) {
        rp_sinks_stop(sinks);
        return r;
    }
    *out = sinks;
    return 0;
}

void rp_sinks_configure(struct rp_sinks *sinks, const struct rp_config *config)
{
    if (sinks != NULL) atomic_store(&sinks->config, config);
}

void rp_sinks_halt(struct rp_sinks *sinks)
{
    if (sinks != NULL) atomic_store(&sinks->halted, true);
}

void rp_sinks_stop(struct rp_sinks *sinks)
{
    if (sinks == NULL) return;
    rp_sinks_halt(sinks);
    for (size_t i = 0; i < sinks->n; i++) {
        rp_feed_unsubscribe(sinks->at[i].subscription);
        rp_hook_line_done(&sinks->at[i].line);
        rp_buf_done(&sinks->at[i].body);
    }
    free(sinks);
}
