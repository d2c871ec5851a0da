/* SPDX-License-Identifier: Apache-2.0 */
/* journal.h - what a transaction changed, row by row, as SQLite's triggers saw it. */
#ifndef RP_SIM_JOURNAL_H
#define RP_SIM_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

struct sim;
struct sim_node;

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
    const char *key, *etag, *version;
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

struct journal_gone {
    enum journal_what what;
    int64_t id, ended_at_ms; /* as the row said */
    const char *key;         /* of an answer: its Idempotency-Key */
    bool over;               /* of a run: it has its record; of a transaction: it had not run out of time */
};

void sim_journal_prepare(void); /* before the connection is opened */
void sim_journal_make(struct sim *s);
void sim_journal_begin(void);
bool sim_journal_is_empty(void);
/* After a commit of this node: everything that it changed, in order, is told to the judge. */
void sim_journal_read(struct sim *s, struct sim_node *n);

#endif
