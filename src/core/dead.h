/* SPDX-License-Identifier: Apache-2.0 */
/* dead.h - what a person can decide about a dead letter: to have it tried again where it was, or to
 * give it up.
 *
 * A1  Retried, it is due as it was, and its attempts count from zero.
 * A2  Given up, its mark is reprieved if nothing can have been erased, else lost. A lost mark's
 *     file stays deleted: it can be restored if its object is there (reprieve.h, V8), or deleted
 *     once more.
 * A3  The second decision on a letter is refused: not found.
 * A5  Of confirmations (core/confirm): retried, whoever has not said yes is asked anew, with a deadline
 *     of its own. Given up, the note says who has said yes, for its half is gone; a file lives again,
 *     unless its name does, what it belongs to does not, or its object is gone: it is to be retried.
 * A4  RP_EERASING: its copy in quarantine is being erased at this moment; nothing was changed.
 * A6  What is given up loses its annotation first (annotation.h, N1). */
#ifndef RP_CORE_DEAD_H
#define RP_CORE_DEAD_H

#include "catalog/mark/dead.h"
#include "catalog/mark/mark.h"
#include "catalog/writer/writer.h"
#include "core/mark/annotation.h"

#define RP_DEAD_ITEMS_MAX 1000

struct rp_dead_item {
    int64_t id; /* the letter's */
    /* out; texts in the command's arena */
    struct rp_error error; /* refused, and why */
    struct rp_dead letter;
    struct rp_mark mark; /* as it is now */
    char store[RP_STORE_NAME];
    enum rp_state as;                     /* what the mark is now */
    bool gone;                            /* of prepare: the file that would live again has no object any more */
    char annotate_note[RP_ANNOTATE_NOTE]; /* kept, but its annotation stands: a restore tries to remove it again */
};

struct rp_dead_command {
    struct rp_command command;
    bool all; /* every open letter after `after_id`, the oldest first, as many as there is room for */
    int64_t after_id;
    int64_t since_ms;     /* all: those that died since; 0: all of them */
    const char *endpoint; /* all: those whose confirmation waits for this service; NULL or "": all */
    struct rp_dead_item *items;
    size_t n, max;                  /* n: out with `all` */
    bool complete;                  /* out: none is left */
    struct rp_store *const *stores; /* keep: to find that of the mark (A6) */
    size_t n_stores;
    struct rp_arena *arena;
};
extern const struct rp_verb rp_verb_dead_retry, rp_verb_dead_keep;

#endif
