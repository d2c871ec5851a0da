/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - what is asked about a batch of due marks before the point of no return: whether
 * anything still refers to their objects.
 *
 * Q1  `mark.checks` is a set of the bits below. A mark passes if every check of its set says
 *     yes.
 * Q2  Whoever cannot know does not say yes: a check that failed, or one that this version has
 *     not.
 * Q3  What cannot be known because somebody does not answer keeps nobody else waiting: a database
 *     or server that is left alone (waits.h) is not asked, and its marks wait as long.
 *     Confirmations are asked by others, before (core/confirm): here a mark that still waits for one
 *     has no yes.
 * Q4  A check is asked of all marks of a batch that have it, at once, and not of those that
 *     another has refused.
 * Q5  Where a store has referenced_by, it is asked of every mark that people and rules made, when
 *     it is due, whatever the mark was made with: the store's configuration decides at the claim. Not
 *     of an upload that was never seen there, which nothing can refer to, nor of a copy in
 *     quarantine, whose object has gone. */
#ifndef RP_CORE_CHECK_H
#define RP_CORE_CHECK_H

#include "catalog/mark/mark.h"
#include "core/store.h"

enum rp_says { RP_SAYS_YES, RP_SAYS_NO, RP_SAYS_UNKNOWN };

struct rp_check_answer {
    enum rp_says says;  /* whether it may be purged */
    int64_t references; /* counted; -1: they were not, or are not known */
    int64_t wait_ms;    /* UNKNOWN: nobody is asked before that time has passed; 0: soon */
    char note[240];     /* why not */
};

struct rp_check {
    const char *name;
    int64_t bit; /* of mark.checks */
    /* Of all marks it picks those that have its bit and a yes so far, and refuses some of them.
     * Negative: it cannot know of any. Who knows of some refuses the others itself. */
    int (*ask)(struct rp_store *store, const struct rp_mark *const *marks, size_t n, struct rp_arena *arena,
               struct rp_check_answer *answers, struct rp_error *err);
};

#define RP_CHECKS 1
extern const struct rp_check rp_checks[RP_CHECKS];

/* Q5 */
bool rp_store_asks(const struct rp_store *store);
/* What is asked of this mark when it is due there: a set. */
int64_t rp_checks_of(const struct rp_store *store, const struct rp_mark *mark);
/* The first check of a set; NULL: none that this version knows. */
const char *rp_check_name(int64_t checks);

/* Asks each check of each mark. Fails only if one cannot know (the last such error); its marks
 * have that answer. */
int rp_check_ask(struct rp_store *store, const struct rp_mark *const *marks, size_t n, struct rp_arena *arena,
                 struct rp_check_answer *answers, struct rp_error *err);

#endif
