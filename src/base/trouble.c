/* SPDX-License-Identifier: Apache-2.0 */
#include "base/trouble.h"

int64_t rp_trouble_backoff_ms(int64_t failures, int64_t first_ms, int64_t most_ms)
{
    int64_t wait = first_ms;
    while (failures-- > 1 && wait < most_ms)
        wait *= 2;
    return wait < most_ms ? wait : most_ms;
}

bool rp_trouble_again(struct rp_trouble *t, int code, int64_t boot_ms, int64_t first_ms, int64_t most_ms)
{
    t->failures++;
    t->until_ms = boot_ms + rp_trouble_backoff_ms(t->failures, first_ms, most_ms);
    if (t->said_code == code && boot_ms - t->said_at_ms < RP_SAY_AGAIN_MS) return false;
    t->said_code = code;
    t->said_at_ms = boot_ms;
    return true;
}

void rp_trouble_over(struct rp_trouble *t)
{
    t->failures = t->said_code = 0;
}
