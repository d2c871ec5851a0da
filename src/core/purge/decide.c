/* SPDX-License-Identifier: Apache-2.0 */
/* decide.c - what becomes of a mark: pure functions of what is known about it. */
#include "base/assert.h"
#include "base/random.h"
#include "base/time.h"
#include "core/due.h"
#include "core/purge/purge.h"

#define RECHECK_MS RP_HOUR_MS /* a mark that a check has refused is asked about again after this */

static const struct {
    bool open;       /* the store has still to act on it */
    enum rp_end end; /* of the mark; NONE: it is tried again, or dead */
    bool certain;    /* also if the store failed as a whole: it vouched for this one before */
    bool skipped;    /* it waits, and nothing went wrong */
} means[RP_ITEMS] = {
    [RP_ITEM_KEPT] = { .skipped = true },
    [RP_ITEM_WAITS] = { .skipped = true },
    [RP_ITEM_CLAIMED] = { .open = true },
    [RP_ITEM_COPIED] = { .open = true },
    [RP_ITEM_ERASED] = { .end = RP_END_ERASED, .certain = true },
    [RP_ITEM_GONE] = { .end = RP_END_GONE },
    [RP_ITEM_CHANGED] = { .end = RP_END_SUPERSEDED },
    [RP_ITEM_MOVED] = { .end = RP_END_QUARANTINED, .certain = true },
    [RP_ITEM_MOVED_GONE] = { .end = RP_END_QUARANTINED },
    [RP_ITEM_MOVED_CHANGED] = { .end = RP_END_QUARANTINED },
    [RP_ITEM_RETURNED] = { .certain = true, .skipped = true },
};

bool rp_purge_is_open(enum rp_purge_status status)
{
    return means[status].open;
}

bool rp_purge_is_end(enum rp_purge_status status)
{
    return means[status].end != RP_END_NONE;
}

bool rp_purge_is_skipped(enum rp_purge_status status)
{
    return means[status].skipped;
}

enum rp_purge_status rp_purge_status_after(enum rp_purge_status before, enum rp_outcome outcome)
{
    static const enum rp_purge_status after[][2] = {
        /* without a copy, with one */
        [RP_OUT_DELETED] = { RP_ITEM_ERASED, RP_ITEM_MOVED },
        [RP_OUT_GONE] = { RP_ITEM_GONE, RP_ITEM_MOVED_GONE },
        [RP_OUT_CHANGED] = { RP_ITEM_CHANGED, RP_ITEM_MOVED_CHANGED },
        [RP_OUT_FOUND] = { RP_ITEM_FAILED, RP_ITEM_FAILED },
        [RP_OUT_DENIED] = { RP_ITEM_FAILED, RP_ITEM_FAILED },
        [RP_OUT_RETRY] = { RP_ITEM_FAILED, RP_ITEM_FAILED },
        [RP_OUT_UNKNOWN] = { RP_ITEM_UNKNOWN, RP_ITEM_UNKNOWN },
    };
    RP_ASSERT(means[before].open);
    return outcome == RP_OUT_NONE ? before : after[outcome][before == RP_ITEM_COPIED];
}

uint64_t rp_purge_random(struct rp_purge_rules *rules)
{
    return rp_random_next(&rules->random);
}

int64_t rp_purge_backoff_ms(const struct rp_purge_rules *rules, int64_t failures, uint64_t random)
{
    int64_t wait = rules->retry_first_ms;
    RP_ASSERT(failures >= 1 && wait > 0);
    for (int64_t i = 1; i < failures && wait < rules->retry_most_ms; i++)
        wait *= 2;
    if (wait > rules->retry_most_ms) wait = rules->retry_most_ms;
    int64_t half = wait / 2;
    return half + (int64_t)(random % (uint64_t)(wait + 1));
}

int64_t rp_purge_recheck_ms(const struct rp_check_answer *answer, const struct rp_purge_rules *rules, uint64_t random)
{
    return answer->says == RP_SAYS_NO ? RECHECK_MS : answer->wait_ms + rp_purge_backoff_ms(rules, 1, random);
}

struct rp_move rp_purge_decide_check(const struct rp_mark *mark, const struct rp_check_answer *answer,
                                     const struct rp_purge_rules *rules, int64_t now_ms, uint64_t random)
{
    struct rp_move move = { .mark = mark, .to = RP_PURGING, .attempts = mark->attempts };
    move.next_at_ms = mark->next_at_ms;
    RP_ASSERT(mark->state == RP_CHECKING);
    if (answer->says == RP_SAYS_YES) return move;
    move.to = (mark->checks & RP_CHECK_AGREED) != 0 ? RP_CHECKING : RP_MARKED; /* no way back after a yes */
    move.note = answer->note;
    move.next_at_ms = now_ms + rp_purge_recheck_ms(answer, rules, random);
    return move;
}

/* What another upload has replaced is not purged: nothing was erased, and what stands there has no
 * promise. A file, and a copy in quarantine, end with their mark all the same: what was uploaded as
 * them is gone. */
static enum rp_state state_after(const struct rp_mark *mark, enum rp_end end)
{
    return end == RP_END_SUPERSEDED && mark->file_id == 0 && mark->original == NULL ? RP_REPRIEVED : RP_PURGED;
}

struct rp_move rp_purge_judge(const struct rp_purge_item *item, bool store_failed, const struct rp_purge_rules *rules,
                              int64_t now_ms, uint64_t random)
{
    const struct rp_mark *mark = item->mark;
    struct rp_move purged = { .mark = mark, .to = RP_PURGED, .attempts = mark->attempts, .outcome = RP_END_GONE };
    struct rp_move again = { .mark = mark, .to = RP_PURGING, .attempts = mark->attempts };
    RP_ASSERT(mark->state == RP_PURGING);
    if (store_failed && !means[item->status].certain) {
        again.next_at_ms = now_ms + rp_purge_backoff_ms(rules, 1, random);
        again.note = "the store was unavailable";
        return again;
    }
    if (rp_purge_is_skipped(item->status)) {
        struct rp_due kept = { .by = RP_DUE_RETURNED };
        again.next_at_ms = item->status == RP_ITEM_RETURNED ? rp_due(&kept, now_ms) : now_ms + RECHECK_MS;
        again.note = item->note;
        return again;
    }
    if (rp_purge_is_end(item->status)) {
        purged.to = state_after(mark, means[item->status].end);
        purged.outcome = means[item->status].end;
        return purged;
    }
    again.attempts = mark->attempts + 1;
    again.note = item->note[0] != 0 ? item->note : "the store did not say whether it was deleted";
    if (again.attempts >= rules->max_attempts)
        again.to = RP_DEAD;
    else
        again.next_at_ms = now_ms + rp_purge_backoff_ms(rules, again.attempts, random);
    return again;
}
