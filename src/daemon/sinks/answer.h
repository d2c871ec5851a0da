/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - what follows from a receiver's answer to an event. Pure.
 *
 * Y1  Down is no answer: what may be repeated (5xx, 408, 429, none at all) is repeated for ever,
 *     and so is what was never asked (its address is not allowed, the secret cannot be used).
 * Y2  Refused (any other 3xx or 4xx) is repeated as well: a receiver that is being set up anew says
 *     404 or 401 for a while. It ends where it would hold up what comes after:
 *       - the answer is about this event (400, 413, 415, 422), and it came RP_SINK_REFUSALS times;
 *       - nothing but refusals came RP_SINK_REFUSALS times, and the event is RP_SINK_HELD_MS old.
 *     Then the event is passed over: logged, counted, and still in the audit log.
 * Y3  Nothing is disabled: each next event is sent, and the first that is taken ends it. */
#ifndef RP_DAEMON_SINKS_ANSWER_H
#define RP_DAEMON_SINKS_ANSWER_H

#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>

#define RP_SINK_REFUSALS 20              /* a quarter of an hour, with the feed's pauses in between */
#define RP_SINK_HELD_MS  (3 * RP_DAY_MS) /* a weekend */
#define RP_SINK_AGAIN_MS (RP_HOUR_MS)    /* Retry-After counts up to this */

enum rp_sink_fate { RP_SINK_TAKEN, RP_SINK_AGAIN, RP_SINK_PASSED_OVER };

struct rp_sink_answer {
    int code;               /* of the call: 0 or an error */
    long status;            /* HTTP; 0: none came */
    int64_t retry_after_ms; /* -1: not said */
    int64_t event_age_ms;
    int64_t event_refusals;    /* of this event, with this one */
    int64_t refusals_in_a_row; /* of any event since one was taken, with this one */
    int64_t refusals_most;     /* 0: RP_SINK_REFUSALS */
};

bool rp_sink_is_refusal(int code, long status);
/* *again_ms: how long the next try waits at least. */
enum rp_sink_fate rp_sink_judge(const struct rp_sink_answer *answer, int64_t *again_ms);

#endif
