/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sinks/answer.h"

bool rp_sink_is_refusal(int code, long status)
{
    return code != 0 && status >= 300 && status < 500 && status != 408 && status != 429;
}

static bool is_about_the_event(long status)
{
    return status == 400 || status == 413 || status == 415 || status == 422;
}

/* Y2 */
static bool is_over(const struct rp_sink_answer *a)
{
    int64_t most = a->refusals_most > 0 ? a->refusals_most : RP_SINK_REFUSALS;
    if (!rp_sink_is_refusal(a->code, a->status)) return false;
    if (is_about_the_event(a->status) && a->event_refusals >= most) return true;
    return a->refusals_in_a_row >= most && a->event_age_ms >= RP_SINK_HELD_MS;
}

enum rp_sink_fate rp_sink_judge(const struct rp_sink_answer *a, int64_t *again_ms)
{
    *again_ms = 0;
    if (a->code == 0) return RP_SINK_TAKEN;
    if (is_over(a)) return RP_SINK_PASSED_OVER;
    *again_ms = a->retry_after_ms > RP_SINK_AGAIN_MS ? RP_SINK_AGAIN_MS : a->retry_after_ms;
    if (*again_ms < 0) *again_ms = 0;
    return RP_SINK_AGAIN;
}
