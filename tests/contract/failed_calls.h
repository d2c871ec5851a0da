/* SPDX-License-Identifier: Apache-2.0 */
/* failed_calls.h - what test_failed_calls_answer_nothing.c asks, and of which world. Questions
 * stand in failed_questions.c, changes in failed_changes.c. */
#ifndef RP_TESTS_CONTRACT_FAILED_CALLS_H
#define RP_TESTS_CONTRACT_FAILED_CALLS_H

#include "base/text/buf.h"
#include "catalog/token.h"
#include "lib/uploads.h"

enum port { DATABASE, STORE, MEMORY, PORTS };

struct asking {
    struct world w;
    struct rp_catalog *catalog; /* behind the faults */
    struct rp_arena arena;      /* of one question */
    struct rp_buf answer;
    enum port port;
    int n, at, wrong; /* calls so far; the one that fails; faults that were not told */
    bool armed, struck;
    int64_t before; /* of the catalog: changes with every commit of another connection */
    /* the world that is asked about */
    int64_t tenant_id, file_id, aside_id, txn_id, run_id, mark_id, dead_id, token_id;
    int number; /* makes every change a new one */
    char name[64], link[RP_TOKEN_SECRET], secret[RP_TOKEN_SECRET];
    uint8_t hash[RP_DIGEST_BYTES];
    struct rp_database_config database;
    struct rp_reference references[2];
    struct rp_config whole;
    struct rp_sweep sweeper;
    struct rp_command *batch[2];
    struct rp_init inits[2];
    struct rp_file_command files[2];
    struct rp_txn_command txns[2];
};

struct question {
    const char *name;
    int (*ask)(struct asking *a, struct rp_error *e); /* says its answer */
    void (*prepare)(struct asking *a);                /* without faults; may be NULL */
    bool steps;                                       /* of several transactions, each whole by itself */
    int says, or_says;                                /* other codes that a fault may be told as */
};
extern const struct question failed_questions[], failed_changes[];
extern const size_t failed_questions_n, failed_changes_n;

/* Appends to the answer. The first argument is a struct asking, as callbacks have it. */
int say(void *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What set_up makes as well. */
int half_keys_tx(struct rp_tx *tx, void *ctx, struct rp_error *e);
int half_alert_tx(struct rp_tx *tx, void *ctx, struct rp_error *e);
int half_node_tx(struct rp_tx *tx, void *ctx, struct rp_error *e);
void half_pause(struct asking *a);
/* Asked around every call of the database. */
int half_before_db(void *ctx, const char *call, struct rp_error *e);

#endif
