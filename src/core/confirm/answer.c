/* SPDX-License-Identifier: Apache-2.0 */
#include "core/confirm/answer.h"

#include "base/assert.h"
#include "base/time.h"

#include <stdio.h>

#define RETRY_FIRST_MS (10 * RP_SECOND_MS)
#define RETRY_MOST_MS  RP_HOUR_MS
#define LATER_MS       (15 * RP_MINUTE_MS) /* after a 202 that does not say when to ask again */
#define SOONEST_MS     RP_SECOND_MS        /* whatever a service says */

const char *rp_meaning_name(enum rp_meaning meaning)
{
    static const char *const names[RP_MEANINGS] = {
        [RP_MEANS_YES] = "yes",         [RP_MEANS_GONE] = "gone",    [RP_MEANS_LATER] = "not_yet",
        [RP_MEANS_REFUSED] = "refused", [RP_MEANS_NEVER] = "failed", [RP_MEANS_AGAIN] = "retried",
    };
    RP_ASSERT((unsigned)meaning < RP_MEANINGS);
    return names[meaning];
}

enum rp_meaning rp_meaning_of(const struct rp_confirmer_config *config, long status)
{
    if (status == 202) return RP_MEANS_LATER;
    if (status >= 200 && status < 300) return RP_MEANS_YES;
    if (status == 409 || status == 423) return RP_MEANS_REFUSED;
    for (int32_t i = 0; i < config->gone.n; i++)
        if (config->gone.at[i] == status) return RP_MEANS_GONE;
    if (status == 408 || status == 429) return RP_MEANS_AGAIN;
    return status >= 300 && status < 500 ? RP_MEANS_NEVER : RP_MEANS_AGAIN;
}

/* Doubled after each attempt up to the most, and +-50 %. */
static int64_t backoff_ms(int64_t attempts, uint64_t random)
{
    int64_t wait = RETRY_FIRST_MS;
    for (int64_t i = 1; i < attempts && wait < RETRY_MOST_MS; i++)
        wait *= 2;
    if (wait > RETRY_MOST_MS) wait = RETRY_MOST_MS;
    return wait / 2 + (int64_t)(random % (uint64_t)(wait + 1));
}

/* An attempt is always made at the deadline itself, never after it. */
static int64_t ask_again_at(const struct rp_confirmation *asked, const struct rp_heard *heard, int64_t now_ms,
                            uint64_t random)
{
    int64_t wait = heard->meaning == RP_MEANS_LATER ? LATER_MS : backoff_ms(asked->attempts, random);
    bool longer = heard->retry_after_ms > wait, sooner = heard->meaning == RP_MEANS_LATER && heard->retry_after_ms >= 0;
    if (longer || sooner) wait = heard->retry_after_ms;
    if (wait < SOONEST_MS) wait = SOONEST_MS;
    return asked->until_at_ms - now_ms < wait ? asked->until_at_ms : now_ms + wait;
}

static void said_yes(const struct rp_mark *mark, bool last, int64_t now_ms, struct rp_confirm_decision *d)
{
    d->after.state = RP_CONFIRM_YES;
    d->move.sets = RP_CHECK_AGREED;
    d->move.attempts = 0; /* those of the purge are counted from here */
    d->move.next_at_ms = now_ms;
    if (!last) return;
    d->move.clears = RP_CHECK_CONFIRMATIONS;
    if (mark->due_at_ms > now_ms) d->move.next_at_ms = mark->due_at_ms;
}

static void dies(enum rp_confirmation_state as, struct rp_confirm_decision *d)
{
    d->after.state = as;
    d->move.to = RP_DEAD;
    d->move.next_at_ms = 0;
    d->move.attempts = d->after.attempts;
}

static void describe(const struct rp_heard *heard, struct rp_confirm_decision *d)
{
    static const char *const said[RP_MEANINGS] = {
        [RP_MEANS_YES] = "said yes",    [RP_MEANS_GONE] = "said that it is gone", [RP_MEANS_LATER] = "said: not yet",
        [RP_MEANS_REFUSED] = "refused", [RP_MEANS_NEVER] = "will not say yes",    [RP_MEANS_AGAIN] = "gave no yes",
    };
    char status[24] = "";
    bool words = heard->words != NULL && heard->words[0] != 0;
    if (heard->status != 0) snprintf(status, sizeof status, " (%ld)", heard->status);
    snprintf(d->words, sizeof d->words, "%s%s%s%.150s", said[heard->meaning], status, words ? ": " : "",
             words ? heard->words : "");
    snprintf(d->note, sizeof d->note, "%.40s %.150s%s", d->after.name, d->words,
             d->move.to == RP_DEAD && d->after.state == RP_CONFIRM_FAILED && heard->meaning != RP_MEANS_NEVER
                 ? ", until its time was over"
                 : "");
}

void rp_confirm_decide(const struct rp_mark *mark, const struct rp_confirmation *asked, bool last,
                       const struct rp_heard *heard, int64_t now_ms, uint64_t random, struct rp_confirm_decision *out)
{
    bool yes = heard->meaning == RP_MEANS_YES || heard->meaning == RP_MEANS_GONE;
    bool over = now_ms >= asked->until_at_ms;
    RP_ASSERT(asked->state != RP_CONFIRM_YES && asked->asked_at_ms != 0);
    *out = (struct rp_confirm_decision){ .after = *asked };
    out->move = (struct rp_move){ .mark = mark, .to = RP_CHECKING, .attempts = mark->attempts, .note = out->note };
    if (yes)
        said_yes(mark, last, now_ms, out);
    else if (heard->meaning == RP_MEANS_REFUSED)
        dies(RP_CONFIRM_REFUSED, out);
    else if (heard->meaning == RP_MEANS_NEVER || over)
        dies(RP_CONFIRM_FAILED, out);
    else {
        out->after.state = heard->meaning == RP_MEANS_LATER ? RP_CONFIRM_WAITING : RP_CONFIRM_ASKED;
        out->move.next_at_ms = ask_again_at(asked, heard, now_ms, random);
    }
    bool answered = heard->meaning != RP_MEANS_AGAIN;
    if (answered) out->after.answered_at_ms = now_ms;
    describe(heard, out);
    out->after.note = out->words;
}
