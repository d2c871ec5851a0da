/* SPDX-License-Identifier: Apache-2.0 */
/* judge.h - the questions put to every change, to every byte that goes, and to the world in the end
 * (journal.c, judge*.c, check.c). */
#ifndef RP_SIM_JUDGE_H
#define RP_SIM_JUDGE_H

#include <stdbool.h>

#include "bucket/bucket.h"

struct sim;
struct sim_node;
struct journal_confirmation;
struct journal_file;
struct journal_gone;
struct journal_mark;
struct journal_tenant;
struct model_mark;

/* ---- what was committed, row by row (journal.h) ---- */

/* judge.c */
void sim_judge_new_mark(struct sim *s, struct sim_node *n, const struct journal_mark *row);
void sim_judge_mark(struct sim *s, struct sim_node *n, const struct journal_mark *row);
/* judge_files.c */
void sim_judge_new_file(struct sim *s, struct sim_node *n, const struct journal_file *row);
void sim_judge_file(struct sim *s, struct sim_node *n, const struct journal_file *row);
void sim_judge_tenant(struct sim *s, struct sim_node *n, const struct journal_tenant *row);
void sim_judge_txn(struct sim *s, struct sim_node *n, int64_t id, int64_t state, int is_new);
/* All rows of a commit were told: what must hold of them together. */
void sim_judge_commit(struct sim *s, struct sim_node *n);
/* judge_confirm.c */
void sim_judge_new_confirmation(struct sim *s, struct sim_node *n, const struct journal_confirmation *row);
void sim_judge_confirmation(struct sim *s, struct sim_node *n, const struct journal_confirmation *row);
/* ... and a mark that moves, before the model knows of it. */
void sim_judge_asked_mark(struct sim *s, struct sim_node *n, const struct model_mark *m,
                          const struct journal_mark *row);
/* judge_gone.c */
void sim_judge_new_key(struct sim *s, int64_t id);
void sim_judge_let_go(struct sim *s, struct sim_node *n, const struct journal_gone *row);
/* ... and all that a commit let go, together. */
void sim_judge_left(struct sim *s);

/* ---- bytes, answers, and the end ---- */

/* Bytes went away (judge.c). */
void sim_judge_gone(struct sim *s, struct sim_node *n, const struct bucket_object *object, bool overwritten);
void sim_judge_returned(struct sim *s); /* in the end, of plain objects */
void sim_judge_hidden(struct sim *s);   /* likewise */
/* What stood under the key was returned from quarantine, and its copy there waits to be looked at. */
bool sim_is_owed(struct sim *s, const char *key);
/* A request of a sweep about this key is sent now. */
void sim_judge_sent(struct sim *s, const struct sim_node *n, const char *key);
/* A plain object may be lost there, and nobody has accepted that. `reused`: write-once keys were
 * seen to change (judge.c). */
bool sim_is_weak(const struct sim *s, bool reused);
/* Another catalog's record gives way to a recovery only - where the store can write under a
 * condition. Canaries come and go. This and the next two: judge_owner.c. */
void sim_judge_record(struct sim *s, const struct sim_node *n, const struct bucket_object *object, bool overwritten);
/* A node has said that something is kept alive: a catalog put back from a backup made before would
 * be behind. */
void sim_judge_kept(struct sim_node *n);
/* It has raised what was to be raised: so would one put back that has only what came within that
 * minute. */
void sim_judge_once_more(struct sim_node *n);
/* In the end: what may go has gone, and what is said of it is true (judge_gone.c). */
void sim_judge_remains(struct sim_node *n);
int sim_holder(const struct sim_node *n); /* node and life, in one number */
/* A service is called now (this and the next ones: judge_confirm.c). */
void sim_judge_call(struct sim *s, const struct sim_node *n, int service, int64_t confirmation_id);
/* `what` happens to this mark: all of its services have said yes, in truth. */
void sim_judge_agreed(struct sim *s, const struct model_mark *m, const char *what);
/* One of its services is asked before it is due. */
bool sim_is_asked_now(const struct sim *s, int64_t mark_id);
/* One of its services never says anything but no; and in the end that is a dead letter. */
bool sim_is_refused(struct sim *s, const struct model_mark *m);
void sim_judge_refused(struct sim *s);
/* The questions of tests/lib/invariants.h, and those of the end (check.c). */
void sim_check(struct sim *s, bool healed);

#endif
