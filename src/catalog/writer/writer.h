/* SPDX-License-Identifier: Apache-2.0 */
/* writer.h - every change is a command of a verb; one transaction for all commands that wait.
 *
 * A command is one change that somebody asked for: a verb and what the verb needs. Whoever made it
 * submits it and is called back when its fate is durable. It takes up to three steps:
 *
 *   prepare   looks at what lies outside the catalog (stores, users' databases), once for all
 *             commands that wait
 *   run       in a writer's round: load, decide each, apply with one statement a table
 *   finish    what must happen outside after the commit
 *
 * A writer owns one connection and one lane and works in rounds: take what waits, look up
 * idempotency keys, lock what its commands need, run each verb over all of its commands, keep the
 * answers, commit once, answer them all.
 *
 * W1  A command is answered only after the commit that carries it: done() with error.code 0 means
 *     durable, a refusal (error.code < 0) means nothing of it was changed.
 * W2  A refusal is a decision: the verb sets command->error and leaves the command out of what it
 *     applies. A verb that returns a negative code fails the whole round: it is rolled back, and
 *     its commands are run one by one, so that one that cannot be done harms no other.
 * W3  A verb may be run again from its start (catalog.h, K3): it keeps nothing of an earlier run
 *     but overwrites its answers. Prepare and finish may be repeated too.
 * W4  A command with an idempotency key is looked up first: the same key and digest give the answer
 *     that was saved, byte for byte, also after a restart; another digest is RP_EKEYREUSED. What is
 *     saved is what render() wrote, in the transaction of the change. Two commands with one key are
 *     never in one round. Answers of done commands are saved, and of refusals that are decisions,
 *     not of failures that a repetition may heal (rp_error_retry).
 * W5  The queue is bounded: a full one is RP_EBUSY at once, and nothing waits anywhere else.
 * W6  A command of a tenant always goes to the same writer, so that commands of one tenant never
 *     wait for each other's row locks. Others are spread (command->spread); where writers meet on a
 *     subject, row locks settle it. A round locks for all of its verbs at once, in the one order
 *     (catalog.h, K8). A writer waits for no tenant: the commands of one that somebody else has
 *     locked go back and are tried in a later round, for half a minute.
 * W7  Prepare answers nothing and changes nothing in the catalog: what it could not find out is a
 *     fact for run. If run finds that its subject has moved on since, it sets command->stale, and
 *     the command is prepared and run once more.
 * W8  Finish runs only for commands that were run, done or refused, and whose run asked for it
 *     (command->unfinished). What keeps something alive is also unfinished until the raise hook has
 *     had the owner's epoch raised, if that is due.
 * W9  A command is logged by its verb, once, when its fate is durable: by rp_command_run, or by the
 *     HTTP server on one of its own threads (rp_command_log). No caller logs what a verb has done.
 * W10 Commands of one group take at most half of the threads that prepare and finish: a store that
 *     hangs leaves the others theirs. Those that ask several stores are a group of their own. A
 *     command that only waits for raises (a hold, a pause) has a thread that does nothing else. */
#ifndef RP_CATALOG_WRITER_H
#define RP_CATALOG_WRITER_H

#include "base/error.h"
#include "base/text/buf.h"
#include "catalog/catalog.h"

#define RP_ANSWER_MAX        ((size_t)32 << 20) /* bytes of any answer, also of one that is kept (W4) */
#define RP_WRITERS_MAX       16
#define RP_WRITER_ROUND_MAX  512  /* commands a commit */
#define RP_GROUP_SEVERAL     (-1) /* stores */
#define RP_WRITER_WEIGHT_MAX 2000 /* items of these commands, unless one alone has more */

struct rp_command;
struct rp_log;

/* What a round will lock (W6). */
struct rp_locks {
    struct rp_arena *arena;
    int64_t *tenants, *marks;
    size_t n_tenants, max_tenants, n_marks, max_marks;
    bool failed; /* no memory */
};
void rp_locks_tenant(struct rp_locks *locks, int64_t id); /* 0: none */
void rp_locks_mark(struct rp_locks *locks, int64_t id);   /* of no tenant; 0: none */

struct rp_verb {
    const char *name; /* for errors; "": it says nothing to anybody */
    /* W7. All commands are of this verb and of one group; n >= 1. May block. NULL: nothing to look
     * at. */
    void (*prepare)(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n);
    /* W6: what else it will lock than the command's tenant and what belongs to that. NULL:
     * nothing. */
    int (*locks)(struct rp_tx *tx, const struct rp_command *command, struct rp_locks *out, struct rp_error *err);
    /* All commands are of this verb; n >= 1. Sets command->error of those it refuses. */
    int (*run)(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err);
    /* W8. As prepare. */
    void (*finish)(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n);
    /* W9. NULL: nothing to say. */
    void (*log)(const struct rp_command *command, struct rp_log *log, int64_t at_ms);
    bool alone; /* it has a round of its own */
};

/* Embedded as the first member of a verb's own command. */
struct rp_command {
    const struct rp_verb *verb;
    int64_t tenant_id;
    uint64_t spread; /* without a tenant: commands of one subject have the same number */
    int64_t group;   /* of prepare and finish: the store that is asked; 0: not known, RP_GROUP_SEVERAL */
    size_t weight;   /* items; 0 is 1 */
    const char *actor;
    const char *request; /* the id of the request that asked for it, for the log; NULL: none */
    /* Whoever made it knows that it cannot be done: run refuses it with this, after its key was
     * looked up (W4). Of a verb without prepare. NULL: nothing of the kind. */
    const struct rp_error *refusal;
    struct rp_error error; /* out: refused or failed, and why */
    bool failed;           /* out: nothing was decided, the database or the queue refused it; error says why */
    int64_t due_at_ms;     /* out: when the first of the marks that it made or moved is due; 0: it made none */

    const char *key; /* idempotency key; NULL: none */
    uint8_t digest[RP_DIGEST_BYTES];
    /* With a key: writes the answer that is to be saved (of a done or a refused command), by the
     * writer's thread, inside the transaction: no I/O, no blocking. Once more after finish, if that
     * changed the answer. */
    int (*render)(struct rp_command *command, int *status, struct rp_buf *answer);
    bool replayed; /* out: the verb did not run; status and answer are those saved */
    int status;
    struct rp_buf answer;

    bool stale;      /* set by run: W7 */
    bool unfinished; /* set by run: W8 */
    uint64_t raises; /* W8: what the raise hook has to raise */
    bool amended;    /* set by finish: the answer is another one now */
    bool second;     /* it was stale once: run decides with what it has */

    void (*done)(struct rp_command *command); /* called once, by a writer's thread; the command is yours again */
    void *owner;
    struct {
        struct rp_command *next;
        int64_t key_hash;
        bool settled;                       /* refused or replayed by the idempotency look-up */
        bool known;                         /* prepare left it out: there was an answer under its key */
        bool busy;                          /* out of a round: one of its tenants was locked, nothing was decided */
        int64_t busy_since_ms, retry_at_ms; /* on the boot clock; 0: not busy */
    } inner;                                /* the writer's */
};

/* Takes one command through all of its steps and waits for it: on the caller's thread, or, if the
 * catalog belongs to a daemon's thread, through its writers. Returns command->error.code. `done` is
 * not called. */
int rp_command_run(struct rp_catalog *catalog, struct rp_command *command);
/* W9. Nothing for a replayed answer. */
void rp_command_log(const struct rp_command *command, struct rp_log *log, int64_t at_ms);

/* ---- the writers of a daemon ---- */

struct rp_writers;

struct rp_writers_options {
    const char *url; /* of the catalog */
    const struct rp_clock *clock;
    size_t n;           /* 1 for SQLite */
    size_t preparers;   /* threads for prepare and finish; 0: 4 */
    int first_lane;     /* and the n - 1 that follow; RP_LANE_LEASED: each leases one (lane.h) */
    const char *holder; /* of leased lanes: the node's name */
    size_t queue_max;   /* commands under way, of all writers together */
    /* After each commit, by a writer's thread: how many commands it carried, and when the first
     * mark that they made is due (0: they made none). May be NULL. */
    void (*committed)(void *ctx, size_t commands, int64_t due_at_ms);
    void *ctx;
    const struct rp_raise_hook *raise_hook; /* catalog.h, K6; may be NULL */
};

int rp_writers_start(const struct rp_writers_options *options, struct rp_writers **out, struct rp_error *err);
/* Everything submitted before is answered; the threads end. Nobody may submit any more. */
void rp_writers_stop(struct rp_writers *all);

/* 0: done() will be called. RP_EBUSY: the queue is full, done() is not called. */
int rp_writers_submit(struct rp_writers *all, struct rp_command *command, struct rp_error *err);
/* From now on changes through `catalog` go through the writers; reads stay on its own connection.
 * Only if it has a lane of its own, and not on SQLite, other changes than commands stay on it:
 * those of a sweeper. */
void rp_writers_attach(struct rp_writers *all, struct rp_catalog *catalog);
/* For command.c: submits the command and waits for it. */
void rp_writers_carry(struct rp_writers *all, struct rp_command *command);
/* What rp_catalog_transact does on an attached catalog of SQLite: a command of its own round,
 * waited for. Never refused for a full queue. */
int rp_writers_call(struct rp_writers *all, rp_tx_fn *fn, void *ctx, struct rp_error *err);

/* One round over these commands, no key twice. 0: committed, perhaps one by one; negative: the
 * database cannot be written; 1: nothing was committed, and that says nothing about the database.
 * With `wait` tenants are waited for, else commands of those that are locked come back `busy`. For
 * writers.c. */
int rp_round_run(struct rp_catalog *catalog, struct rp_command **commands, size_t n, bool wait);
/* The steps outside the catalog, for commands of one verb and group. Answers that finish has
 * amended are saved anew. */
void rp_commands_prepare(struct rp_catalog *catalog, struct rp_command **commands, size_t n);
void rp_commands_finish(struct rp_catalog *catalog, struct rp_command **commands, size_t n);
/* What finish begins with, and all that is done where it has no catalog: the raises that are due
 * (W8). */
void rp_commands_raise(const struct rp_raise_hook *raise_hook, struct rp_command **commands, size_t n);

struct rp_writers_state {
    size_t waiting;    /* commands under way */
    uint64_t rounds;   /* commits so far */
    uint64_t commands; /* answered so far */
    uint64_t refused;  /* by a full queue */
    int last_code;     /* of the last round: negative while the catalog cannot be written */
    int64_t last_ok_ms;
    int64_t refused_full_ms; /* on the boot clock: when the database last had no room; 0: never */
};
void rp_writers_state(struct rp_writers *all, struct rp_writers_state *out);

/* Has every writer write (its lane's row alone) and waits a second at most. */
struct rp_writers_look {
    int code;         /* of those that answered: the first failure */
    int64_t waits_ms; /* how long the slowest has not answered; 0: all have */
    bool judged;      /* one has answered, now or before, and so judged the clock (clock.h): */
    int64_t ahead_ms; /* of the host's clock */
};
void rp_writers_look(struct rp_writers *all, struct rp_writers_look *out);

#endif
