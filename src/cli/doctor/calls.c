/* SPDX-License-Identifier: Apache-2.0 */
/* Who is called, and who is told of what happens. */
#include "cli/doctor/doctor.h"

#include "base/time.h"
#include "catalog/audit/feed.h"
#include "catalog/file/process.h"
#include "cli/handshake.h"
#include "daemon/sinks/sinks.h"

#include <inttypes.h>
#include <stdio.h>

void rp_doctor_endpoints(struct rp_doctor *d)
{
    const struct rp_config *config = &d->cli->session.config;
    struct rp_endpoint endpoint;
    for (size_t i = 0; rp_endpoint_of(config, i, &endpoint); i++) {
        struct rp_error why = { 0 };
        long status = 0;
        snprintf(d->check, sizeof d->check, "%s", endpoint.name);
        int r = rp_endpoint_shake(&endpoint, config, rp_session_now_ms(&d->cli->session), &status, &why);
        const char *remedy = status == 0
                                 ? "see that the server runs and can be reached from here"
                                 : "see in the server's log why it refuses a POST of {\"event\":\"handshake\"}; "
                                   "if it is the signature, that both have the same secret";
        if (r < 0)
            rp_judge(d, RP_DOUBTFUL, why.hint[0] != 0 ? why.hint : remedy, "%s", why.text);
        else
            rp_judge(d, RP_FINE, "", "answers %s handshake with status %ld",
                     rp_endpoint_is_signed(&endpoint) ? "a signed" : "an unsigned", status);
    }
}

static void check_sink(struct rp_doctor *d, const struct rp_sink_config *sink)
{
    struct rp_session *s = &d->cli->session;
    struct rp_feed_lag lag;
    struct rp_error why = { 0 };
    char reader[RP_FEED_READER], since[RP_TIME_TEXT];
    int64_t limit_ms = s->config.alerts.sink_lag_over_ms;
    snprintf(d->check, sizeof d->check, "sink %s", sink->name);
    if (rp_feed_lag(s->catalog->db, rp_sink_reader(sink, reader), &lag, &why) < 0) {
        rp_judge_error(d, &why, "");
    } else if (!lag.begun) {
        rp_judge(d, RP_DOUBTFUL, "start `reprieve serve` with this configuration", "no daemon has begun with it yet");
    } else if (lag.oldest_at_ms == 0) {
        rp_judge(d, RP_FINE, "", "it was told of everything");
    } else {
        bool late = limit_ms > 0 && rp_session_now_ms(s) - lag.oldest_at_ms > limit_ms;
        rp_judge(d, late ? RP_DOUBTFUL : RP_FINE,
                 "see that a daemon runs, and what its log says in feed.reader_waits and event.refused",
                 "events before it: %" PRId64 ", the oldest since %s", lag.rows,
                 rp_time_format(lag.oldest_at_ms, since));
    }
}

void rp_doctor_sinks(struct rp_doctor *d)
{
    const struct rp_config *config = &d->cli->session.config;
    for (size_t i = 0; i < config->n_sinks; i++)
        check_sink(d, &config->sinks[i]);
}

void rp_doctor_processor(struct rp_doctor *d)
{
    struct rp_session *s = &d->cli->session;
    struct rp_error why = { 0 };
    int64_t dead = 0;
    if (s->config.processor_url[0] == 0) return;
    if (rp_process_count_dead(s->catalog->db, RP_DOCTOR_LISTED_MAX, &dead, &why) < 0)
        rp_judge_error(d, &why, "");
    else
        rp_judge(d, dead > 0 ? RP_DOUBTFUL : RP_FINE,
                 "the log says why in processor.gave_up; a daemon that is started again tries them once more",
                 "files that it could not be told of, and that stay scanning: %" PRId64 "%s", dead,
                 dead == RP_DOCTOR_LISTED_MAX ? " or more" : "");
}
