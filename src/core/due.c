/* SPDX-License-Identifier: Apache-2.0 */
#include "core/due.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/time.h"

static int64_t asked(const struct rp_due *due, int64_t now_ms)
{
    RP_ASSERT(due->at_ms < 0 || due->grace_ms < 0);
    if (due->at_ms >= 0) return due->at_ms;
    if (due->grace_ms >= 0) return now_ms + due->grace_ms;
    return now_ms + (due->config != NULL ? due->config->grace_ms : RP_GRACE_DEFAULT_MS);
}

static int64_t moment(const struct rp_due *due, int64_t now_ms)
{
    switch (due->by) {
    case RP_DUE_AFTER:
        return due->from_ms + due->grace_ms;
    case RP_DUE_LATE:
        return due->from_ms + RP_LATE_PUT_MS;
    case RP_DUE_QUARANTINE:
        return now_ms + due->config->quarantine_ms;
    case RP_DUE_RETURNED:
        return now_ms + RP_RETURNED_MS;
    default:
        RP_ASSERT(due->by == RP_DUE_ASKED);
        return asked(due, now_ms);
    }
}

int64_t rp_due(const struct rp_due *due, int64_t now_ms)
{
    int64_t at_ms = moment(due, now_ms);
    return at_ms > now_ms ? at_ms : now_ms;
}

static bool is_in_range(int64_t span_ms)
{
    return span_ms >= RP_GRACE_LEAST_MS && span_ms <= RP_GRACE_MOST_MS;
}

/* A time that was asked for is some milliseconds nearer by now: in seconds, unless that looks allowed. */
static int64_t shown(int64_t span_ms)
{
    int64_t seconds_ms = (span_ms + RP_SECOND_MS / 2) / RP_SECOND_MS * RP_SECOND_MS;
    return span_ms < RP_SECOND_MS || is_in_range(seconds_ms) ? span_ms : seconds_ms;
}

int rp_grace_check(const struct rp_store_config *config, int64_t span_ms, struct rp_error *err)
{
    char text[RP_TIME_TEXT];
    if (config->allow_any_grace || is_in_range(span_ms)) return 0;
    if (span_ms < 0)
        rp_error_set(err, RP_EGRACE, "the time is in the past, and a grace is 1d to 30d");
    else
        rp_error_set(err, RP_EGRACE, "a grace of %s is outside 1d to 30d", rp_duration_format(shown(span_ms), text));
    return rp_error_hint(
        err, "choose a time in that range, or set allow_any_grace: true for store '%s' in the configuration",
        config->name);
}
