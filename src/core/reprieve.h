/* SPDX-License-Identifier: Apache-2.0 */
/* reprieve.h - the verb restore (alias unmark): a mark that no purge has claimed yet ends as reprieved.
 *
 * V1  Restore and claim are compare-and-sets on the same row: exactly one wins (RESTORE-WINS). After the claim a restore
 *     is RP_ETOOLATE, definitely.
 * V2  Restoring again, or the same mark twice in a batch, gives the same answer.
 * V3  What was moved to quarantine comes back under its key with headers and metadata, unless something newer stands
 *     there. The copy back is made first and the catalog decides after it; if the catalog says "too late", the copy
 *     goes again. The copy in quarantine is then marked, due a day later. */
#ifndef RP_CORE_REPRIEVE_H
#define RP_CORE_REPRIEVE_H

#include "base/error.h"
#include "catalog/mark.h"
#include "core/store.h"

#define RP_REPRIEVE_BATCH_MAX 1000

enum rp_reprieving { RP_REPRIEVE_REFUSED, RP_REPRIEVE_DONE, RP_REPRIEVE_ALREADY, RP_REPRIEVE_RETURNED };
const char *rp_reprieving_name(enum rp_reprieving what);

struct rp_reprieve_answer {
    enum rp_reprieving what;
    struct rp_error error;   /* refused: why */
    char annotate_note[120]; /* restored, but its annotation could not be removed: the same restore tries that again */
};

/* Pure: what a restore of this mark means. `aside`: the mark of its copy in quarantine, as rp_quarantine_mark
 * gives it, NULL if there is none. */
struct rp_reprieve_decision {
    enum rp_reprieving what;
    int code;
};
struct rp_reprieve_decision rp_reprieve_decide(const struct rp_mark *mark, const struct rp_mark *aside,
                                               const char *store, struct rp_error *err);

/* The mark that a restore of this subject is about: the active one, else the last. RP_ENOTFOUND if it never had one. */
int rp_reprieve_find(struct rp_catalog *catalog, const struct rp_store *store, const char *key, struct rp_arena *arena,
                     struct rp_mark *out, struct rp_error *err);

/* Restores up to RP_REPRIEVE_BATCH_MAX marks of one store; answers[i] belongs to marks[i] (as they were read; they may
 * have moved since). Returns negative only if nothing was decided. The catalog's keeper finds the answers whole. */
int rp_reprieve_many(struct rp_catalog *catalog, struct rp_store *store, const struct rp_mark *marks, size_t n,
                     const char *actor, struct rp_reprieve_answer *answers, struct rp_error *err);

#endif
