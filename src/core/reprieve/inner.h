/* SPDX-License-Identifier: Apache-2.0 */
/* inner.h - one round of the verb reprieve, for the files of this folder. */
#ifndef RP_CORE_REPRIEVE_INNER_H
#define RP_CORE_REPRIEVE_INNER_H

#include "core/reprieve/reprieve.h"

/* One mark of the round: the first item that is about it decides, the others are told what came of
 * it. */
struct rp_reprieve_subject {
    struct rp_reprieve_command *command;
    struct rp_reprieve_item *item;
    const struct rp_mark *now;
    struct rp_command *file; /* the file's own command, if its file is restored; NULL: it is not */
};

struct rp_reprieve_round {
    struct rp_tx *tx;
    struct rp_reprieve_subject *subjects;
    size_t n;
    struct rp_marks now;
    struct rp_move *moves;
    const struct rp_reprieve_subject **dead;
    size_t n_moves, n_dead;
};

static inline const char *rp_reprieve_store_name(const struct rp_reprieve_item *item)
{
    return item->store->config->name;
}

/* ---- decide.c ---- */

/* RP_ETOOLATE, and why. */
enum rp_reprieving rp_reprieve_too_late(const struct rp_mark *mark, const char *store, const char *why,
                                        struct rp_error *err);

/* A refusal because services are asked names them. */
int rp_reprieve_name_services(struct rp_db *db, const struct rp_mark *mark, const char *store, struct rp_arena *arena,
                              struct rp_error *refusal, struct rp_error *err);
/* Of what is returned from quarantine: which services had said yes to its purge. What it held there
 * does not come back with it. */
int rp_reprieve_see_agreed(struct rp_db *db, const struct rp_mark *mark, struct rp_arena *arena,
                           struct rp_reprieve_answer *answer, struct rp_error *err);

/* ---- look.c ---- */

void rp_reprieve_prepare(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n);
/* V6 */
bool rp_reprieve_is_foreign(const struct rp_reprieve_command *c, const struct rp_mark *mark);
/* The item's mark and store; RP_ENOTFOUND in the words for what does not exist. */
int rp_reprieve_find_mark(struct rp_catalog *catalog, struct rp_reprieve_command *c, struct rp_reprieve_item *item,
                          struct rp_error *err);

/* ---- returns.c ---- */

/* Whether somebody has returned it since it was looked at: the original's row is locked, nobody
 * does so from now on. */
int rp_reprieve_is_returned(struct rp_tx *tx, const struct rp_reprieve_subject *s, bool *out, struct rp_error *err);
/* The copy is the object's again: its mark ends. */
int rp_reprieve_end_copy(struct rp_tx *tx, const struct rp_reprieve_subject *s, bool *done, struct rp_error *err);
/* Of an object that is no file's: both, and its answer. */
int rp_reprieve_return(struct rp_tx *tx, const struct rp_reprieve_subject *s, struct rp_error *err);

/* ---- files.c ---- */

/* The file's own verb decides while its mark waits, is lost, or is a dead letter that nothing was
 * erased of; of what was returned from quarantine; and where the file is what was asked for. */
bool rp_reprieve_is_of_file(const struct rp_reprieve_subject *s);
/* A file in quarantine that prepare could not look at. */
bool rp_reprieve_is_left(const struct rp_reprieve_command *c, const struct rp_reprieve_item *item);
/* All such subjects of the round, and their answers. */
int rp_reprieve_files(struct rp_reprieve_round *round, struct rp_command *const *commands, size_t n,
                      struct rp_error *err);

#endif
