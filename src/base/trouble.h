/* SPDX-License-Identifier: Apache-2.0 */
/* trouble.h - something fails again and again: it is left alone, longer each time, and the log
 * hears of it now and then. Moments are of the boot clock. */
#ifndef RP_BASE_TROUBLE_H
#define RP_BASE_TROUBLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define RP_SAY_AGAIN_MS (10 * RP_MINUTE_MS) /* the same trouble is in the log once in this time */

struct rp_trouble {
    int failures;     /* in a row */
    int64_t until_ms; /* leave it alone */
    int said_code;    /* what the log heard last; 0: nothing since it went well */
    int64_t said_at_ms;
};

/* It failed once more, now: until_ms is `first` from now, doubled each time up to `most`. Returns
 * whether the log should hear of it. */
bool rp_trouble_again(struct rp_trouble *trouble, int code, int64_t boot_ms, int64_t first_ms, int64_t most_ms);
void rp_trouble_over(struct rp_trouble *trouble);
/* How long that is. */
int64_t rp_trouble_backoff_ms(int64_t failures, int64_t first_ms, int64_t most_ms);

#endif
