/* SPDX-License-Identifier: Apache-2.0 */
/* writer.h - group commit: one transaction for every command that waits.
 *
 * A command is one change that somebody asked for: a verb and what the verb needs. Whoever made it submits it and is called
 * back when its fate is durable. A writer owns one connection and one lane and works in rounds: take what waits, run each
 * verb over all of its commands (load, decide each, apply with one statement a table), commit once, answer them all.
 *
 * W1  A command is answered only after the commit that carries it: done() with error.code 0 means durable, a refusal
 *     (error.code < 0) means nothing of it was changed.
 * W2  A refusal is a decision: the verb sets command->error and leaves the command out of what it applies. A verb that
 *     returns a negative code fails the whole round: it is rolled back, and its commands are run one by one, so that
 *     one that cannot be done harms no other.
 * W3  A verb may be run again from its start (catalog.h, K3): it keeps nothing of an earlier run but overwrites its answers.
 * W4  A command with an idempotency key is looked up first: the same key and digest give the answer that was kept,
 *     byte for byte, also after a restart; another digest is RP_EKEYREUSED. What is kept is what render() wrote, in the same
 *     transaction as the change. Two commands with one key are never in one round. An answer is kept for done commands and for
 *     refusals that are decisions, not for failures that a repetition may heal (rp_error_retry).
 * W5  The queue is bounded: a full one is RP_EBUSY at once, and nothing waits anywhere else.
 * W6  A command always goes to the writer of its tenant, so that commands of one tenant never wait for each other's row locks. */
#ifndef RP_CATALOG_WRITER_H
#define RP_CATALOG_WRITER_H

#include "base/buf.h"
#include "base/error.h"
#include "catalog/catalog.h"

#define RP_WRITERS_MAX      16
#define RP_WRITER_ROUND_MAX 512 /* commands a commit */

struct rp_command;

struct rp_verb {
    const char *name;
    /* All commands are of this verb; n >= 1. Sets command->error of those it refuses. */
    int (*run)(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err);
};

/* Embedded as the first member of a verb's own command. */
struct rp_command {
    const struct rp_verb *verb;
    int64_t tenant_id;
    const char *actor;
    struct rp_error error; /* out: refused or failed, and why */

    const char *key; /* idempotency key; NULL: none */
    uint8_t digest[RP_DIGEST_BYTES];
    /* With a key: writes the answer that is to be kept (of a done or a refused command), by the writer's thread, inside the
     * transaction: no I/O, no blocking. */
    int (*render)(struct rp_command *command, int *status, struct rp_buf *answer);
    bool replayed; /* out: the verb did not run; status and answer are those kept */
    int status;
    struct rp_buf answer;

    void (*done)(struct rp_command *command); /* called once, by the writer's thread; the command is yours again */
    void *owner;
    struct rp_command *next; /* the writer's */
    int64_t key_hash;        /* the writer's */
    bool settled;            /* the writer's: refused or replayed by the idempotency look-up */
};

/* Runs one command in a transaction of its own, on the caller's thread: for the command line and the library. Returns
 * command->error.code. `done` is not called. */
int rp_command_run(struct rp_catalog *catalog, struct rp_command *command);

/* ---- the writers of a daemon ---- */

struct rp_writers;

struct rp_writers_options {
    const char *url; /* of the catalog */
    const struct rp_clock *clock;
    size_t n;         /* 1 for SQLite */
    int first_lane;   /* and the n - 1 that follow */
    size_t queue_max; /* commands that wait, of all writers together */
    /* After each commit, by a writer's thread: how many commands it carried. May be NULL. */
    void (*committed)(void *ctx, size_t commands);
    void *ctx;
};

int rp_writers_start(const struct rp_writers_options *options, struct rp_writers **out, struct rp_error *err);
/* Everything submitted before is answered; the threads end. Nobody may submit any more. */
void rp_writers_stop(struct rp_writers *all);

/* 0: done() will be called. RP_EBUSY: the queue is full, done() is not called. */
int rp_writers_submit(struct rp_writers *all, struct rp_command *command, struct rp_error *err);
/* Runs `fn` in a transaction of its own by the first writer, in turn with the rounds, and waits for it: what
 * rp_catalog_transact does on a catalog that was attached (rp_writers_attach). */
int rp_writers_call(struct rp_writers *all, rp_tx_fn *fn, void *ctx, struct rp_error *err);
/* From now on changes through `catalog` go through the writers, so that two connections never fight for SQLite's one write
 * lock. Reads stay on the catalog's own connection. On PostgreSQL it does nothing. */
void rp_writers_attach(struct rp_writers *all, struct rp_catalog *catalog);

struct rp_writers_state {
    size_t waiting;    /* commands in the queue */
    uint64_t rounds;   /* commits so far */
    uint64_t commands; /* answered so far */
    uint64_t refused;  /* by a full queue */
    int last_code;     /* of the last round: negative while the catalog cannot be written */
    int64_t last_ok_ms;
};
void rp_writers_state(struct rp_writers *all, struct rp_writers_state *out);

#endif
