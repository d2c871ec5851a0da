/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - what a service's answer means, and what follows from it. Pure.
 *
 *   2xx but 202      yes
 *   202              not yet: it calls back, or is asked again until the deadline
 *   what `gone` has  yes: there was nothing left to delete
 *   409, 423         refused: a dead letter at once, nothing is erased
 *   408, 429, 5xx,   asked again, later each time, until the deadline
 *   no answer
 *   all else         never: a dead letter at once. A redirect is not followed. */
#ifndef RP_CORE_CONFIRM_ANSWER_H
#define RP_CORE_CONFIRM_ANSWER_H

#include "catalog/mark/confirmation.h"
#include "config/config.h"

enum rp_meaning {
    RP_MEANS_YES,
    RP_MEANS_GONE,
    RP_MEANS_LATER,
    RP_MEANS_REFUSED,
    RP_MEANS_NEVER,
    RP_MEANS_AGAIN,
    RP_MEANINGS
};
const char *rp_meaning_name(enum rp_meaning meaning);
/* `status` 0: no answer came. */
enum rp_meaning rp_meaning_of(const struct rp_confirmer_config *config, long status);

struct rp_heard {
    enum rp_meaning meaning;
    long status;            /* 0: no answer came; or it was said later, by a call of theirs */
    int64_t retry_after_ms; /* -1: it says nothing of that */
    const char *words;      /* of the answer, or why none came */
};

#define RP_CONFIRM_NOTE 240
struct rp_confirm_decision {
    struct rp_confirmation after;
    struct rp_move move;        /* of the mark, from `checking`; its note is the one below, or NULL */
    char note[RP_CONFIRM_NOTE]; /* in the mark */
    char words[RP_CONFIRM_NOTE];
};
/* `last`: every other one of the mark has said yes. `random`: any number, for the jitter. `out` stays
 * where it is while its move is used. */
void rp_confirm_decide(const struct rp_mark *mark, const struct rp_confirmation *asked, bool last,
                       const struct rp_heard *heard, int64_t now_ms, uint64_t random, struct rp_confirm_decision *out);

#endif
