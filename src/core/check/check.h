/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - questions asked of a batch of due marks before the point of no return. Today:
 * references.
 *
 * Q1  `mark.checks` is a set of the bits below. A mark passes if every check of its set says
 *     yes.
 * Q2  Whoever cannot know does not say yes: a check that failed, or one that this version has
 *     not.
 * Q3  A check is asked of all marks of a batch that have it, at once, and not of those that
 *     another has refused. */
#ifndef RP_CORE_CHECK_H
#define RP_CORE_CHECK_H

#include "catalog/mark/mark.h"
#include "core/store.h"

enum rp_says { RP_SAYS_YES, RP_SAYS_NO, RP_SAYS_UNKNOWN };

struct rp_check_answer {
    enum rp_says says;  /* whether it may be purged */
    int64_t references; /* counted; -1: they were not */
    char note[120];     /* why not */
};

struct rp_check {
    const char *name;
    int64_t bit;        /* of mark.checks */
    bool asks_for_good; /* that it was asked is committed first, for asked counts as erased (confirmations, later) */
    /* Of all marks it picks those that have its bit and a yes so far, and refuses some of them.
     * Negative: it cannot know of any. */
    int (*ask)(struct rp_store *store, const struct rp_mark *const *marks, size_t n, struct rp_arena *arena,
               struct rp_check_answer *answers, struct rp_error *err);
};

#define RP_CHECKS 1
extern const struct rp_check rp_checks[RP_CHECKS];

/* The first check of a set; NULL: none that this version knows. */
const char *rp_check_name(int64_t checks);

/* Asks each check of each mark. Fails only if one cannot know (the last such error); its marks
 * have that answer. */
int rp_check_ask(struct rp_store *store, const struct rp_mark *const *marks, size_t n, struct rp_arena *arena,
                 struct rp_check_answer *answers, struct rp_error *err);

#endif
