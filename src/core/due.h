/* SPDX-License-Identifier: Apache-2.0 */
/* due.h - when a mark is due. Nobody else computes it.
 *
 * D1  A promise counts from the latest clock that we see, and is never due before that moment.
 * D2  The time is stored with the mark: a setting that changes later moves no promise that was
 *     made.
 * D3  The range of grace binds what people ask for; other marks have settings of their own. */
#ifndef RP_CORE_DUE_H
#define RP_CORE_DUE_H

#include "base/time.h"
#include "config/config.h"

#include <stdint.h>

struct rp_error;

#define RP_GRACE_DEFAULT_MS (5 * RP_DAY_MS) /* as stores.*.grace; tests/unit/test_config.c compares them */
#define RP_GRACE_LEAST_MS   (1 * RP_DAY_MS)
#define RP_GRACE_MOST_MS    (30 * RP_DAY_MS)
#define RP_LATE_PUT_MS      (24 * RP_HOUR_MS) /* how long after its URL's end a PUT may still arrive */
#define RP_RETURNED_MS      RP_DAY_MS         /* how long a delete may still be under way to what was returned */

enum rp_due_by {
    RP_DUE_ASKED, /* at_ms, else grace_ms, else the store's grace */
    RP_DUE_AFTER, /* grace_ms after from_ms: an upload that nobody confirms, a transaction's file after its end, what
                        * another program has marked, a mark that a jump of the clock moves */
    RP_DUE_LATE,  /* what a PUT that began in time may leave: after its URL's end (from_ms) */
    RP_DUE_QUARANTINE, /* a copy in quarantine: when the store's quarantine is over */
    RP_DUE_RETURNED    /* the copy of what was returned from quarantine */
};

struct rp_due {
    enum rp_due_by by;
    int64_t at_ms, grace_ms;              /* ASKED: -1 if not given; AFTER: grace_ms */
    int64_t from_ms;                      /* AFTER, LATE */
    const struct rp_store_config *config; /* ASKED, QUARANTINE; NULL: the store is not configured any more */
};

int64_t rp_due(const struct rp_due *due, int64_t now_ms);

/* D3: RP_EGRACE unless the span is in the range, or the store's configuration lifts it. */
int rp_grace_check(const struct rp_store_config *config, int64_t span_ms, struct rp_error *err);

#endif
