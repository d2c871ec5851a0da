/* SPDX-License-Identifier: Apache-2.0 */
/* journal.h - what a transaction changed, row by row, as SQLite's triggers saw it. */
#ifndef RP_SIM_JOURNAL_H
#define RP_SIM_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

struct sim;
struct sim_node;
struct model_mark;

enum journal_what {
    JOURNAL_MARK_NEW = 1,
    JOURNAL_MARK,
    JOURNAL_FILE_NEW,
    JOURNAL_FILE,
    JOURNAL_HOLD_NEW,
    JOURNAL_HOLD_LIFTED,
    JOURNAL_TENANT,
    JOURNAL_TXN_NEW,
    JOURNAL_TXN,
    JOURNAL_MARK_GONE,
    JOURNAL_FILE_GONE,
    JOURNAL_TXN_GONE,
    JOURNAL_HOLD_GONE,
    JOURNAL_KEY_NEW,
    JOURNAL_KEY_GONE,
    JOURNAL_RUN_GONE,
    JOURNAL_CONFIRMATION_NEW,
    JOURNAL_CONFIRMATION
};

struct journal_mark {
    int64_t id, tenant_id, file_id;
    const char *key, *etag, *version, *reason;
    int from, to, was, outcome, checks;
    int64_t due_at_ms, old_next_ms, next_at_ms, old_fence, fence;
    bool leased, in_place;
};
struct journal_file {
    int64_t id, tenant_id, mark_id, parent_id, source_id, txn_id, with_id, size_bytes;
    const char *key, *name;
    int from, to, was;
};
struct journal_tenant {
    int64_t id, before_bytes, after_bytes, limit_bytes; /* used and reserved together; limit -1: the default */
};

struct journal_confirmation {
    int64_t id, mark_id, ordinal, attempts, asked_at_ms;
    const char *name;
    int from, to;
};

/* judge.c */
void sim_judge_new_mark(struct sim *s, struct sim_node *n, const struct journal_mark *row);
void sim_judge_mark(struct sim *s, struct sim_node *n, const struct journal_mark *row);
/* judge_files.c */
void sim_judge_new_file(struct sim *s, struct sim_node *n, const struct journal_file *row);
void sim_judge_file(struct sim *s, struct sim_node *n, const struct journal_file *row);
void sim_judge_tenant(struct sim *s, struct sim_node *n, const struct journal_tenant *row);
void sim_judge_txn(struct sim *s, struct sim_node *n, int64_t id, int64_t state, int64_t members, int is_new);
/* All rows of a commit were told: what must hold of them together. */
void sim_judge_commit(struct sim *s, struct sim_node *n);
/* judge_confirm.c */
void sim_judge_new_confirmation(struct sim *s, struct sim_node *n, const struct journal_confirmation *row);
void sim_judge_confirmation(struct sim *s, struct sim_node *n, const struct journal_confirmation *row);
/* ... and a mark that moves, before the model knows of it. */
void sim_judge_asked_mark(struct sim *s, struct sim_node *n, const struct model_mark *m,
                          const struct journal_mark *row);
/* judge_gone.c */
struct journal_gone {
    enum journal_what what;
    int64_t id, ended_at_ms; /* as the row said */
    const char *key;         /* of an answer: its Idempotency-Key */
    bool over;               /* of a run: it has its record; of a transaction: it had not run out of time */
};
void sim_judge_new_key(struct sim *s, int64_t id);
void sim_judge_let_go(struct sim *s, struct sim_node *n, const struct journal_gone *row);
/* ... and all that a commit let go, together. */
void sim_judge_left(struct sim *s);

#endif
