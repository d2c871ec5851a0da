/* SPDX-License-Identifier: Apache-2.0 */
/* breaker.h - a service that fails is left alone, and heals by itself. Pure; times are of the boot
 * clock. Each process has its own.
 *
 * B1  It opens after 5 failures in a row; and after 5 answers that there is nothing, or that it never
 *     will, of a service that has said neither yes nor no before: a mistyped URL says that to
 *     everything. Of one that is known such an answer is about that mark alone.
 * B2  While it is open nothing is asked but one probe at a time: after 10 s, then twice as long each
 *     time, never longer than 5 minutes. What is not asked uses up no attempt. A probe is about a mark
 *     that was asked about before, if one is due.
 * B3  The first answer that is no failure closes it. Nothing is disabled for good.
 * B4  Until it is known, and after a failure, at most as many calls begin as would open it: a
 *     service that has begun to fail gets no flood. */
#ifndef RP_CORE_CONFIRM_BREAKER_H
#define RP_CORE_CONFIRM_BREAKER_H

#include "core/confirm/answer.h"

#define RP_BREAKER_OPENS_AFTER 5
#define RP_BREAKER_AT_ONCE     16 /* calls to one service */

struct rp_breaker {
    int failures; /* in a row */
    int doubts;   /* gone or never, while it is not known */
    bool known;   /* it has said yes, not yet or no */
    bool open;
    int64_t wait_ms, probe_at_ms; /* open */
};

/* How many more calls may begin now, beside those under way. */
int rp_breaker_room(const struct rp_breaker *b, int under_way, int64_t now_ms);
void rp_breaker_heard(struct rp_breaker *b, enum rp_meaning meaning, int64_t now_ms);

#endif
