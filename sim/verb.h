/* SPDX-License-Identifier: Apache-2.0 */
/* verb.h - what can be asked of a node: every verb with its rules, and one asking of it. */
#ifndef RP_SIM_VERB_H
#define RP_SIM_VERB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_node;

enum sim_verb {
    VERB_NONE,
    VERB_START, /* a node opens its catalog and its store */
    VERB_MARK,
    VERB_RESTORE,
    VERB_SWEEP,
    VERB_HOLD,
    VERB_LIFT,
    VERB_DEAD,
    VERB_RECOVER,
    VERB_IMPORT,
    VERB_INIT,
    VERB_PUT,
    VERB_CONFIRM,
    VERB_DELETE,
    VERB_UNDELETE,
    VERB_RETURN, /* from quarantine, by its mark */
    VERB_RESULT,
    VERB_BEGIN,
    VERB_COMMIT,
    VERB_ABORT,
    VERB_QUOTA,
    VERB_CLOCK,  /* somebody accepts the time of this node's host */
    VERB_RETAIN, /* what has ended is let go */
    VERB_NET,    /* what was lost is brought back */
    VERB_ASK,    /* outside services are asked */
    VERB_ANSWER, /* ... and answer later */
    VERBS
};
/* A command as a user gives it; given again, it is the same one. */
struct sim_command {
    enum sim_verb verb;
    size_t keys[3], n_keys; /* plain objects */
    size_t file, txn;       /* of the users' lists; SIZE_MAX: none */
    int64_t grace_ms;
    bool if_unreferenced, annotate, flag;
    int body;          /* which body goes with the Idempotency-Key */
    unsigned services; /* bits: those that must say yes */
    size_t question;   /* that a service answers */
};
/* A move of a mark or a file, and who may make it; from 0: it was not there. */
struct sim_move {
    int from, to;
    unsigned by; /* bits: SIM_BY */
};
#define SIM_BY(verb) (1u << VERB_##verb)
bool sim_may_move(const struct sim_move *moves, size_t n, int from, int to, enum sim_verb by);

/* Nothing is said but the verb. */
struct sim_command sim_command_of(enum sim_verb verb);

const char *sim_verb_name(enum sim_verb verb);
/* Gives the node's command to the core, and notes what was heard. Returns the code of the answer. */
int sim_verb_give(struct sim_node *n);
/* It claims marks, and looks whose store it is before. */
bool sim_claims(enum sim_verb verb);
/* The daemon does it without being asked: sweeps, questions, retentions, safety nets. */
bool sim_is_by_itself(enum sim_verb verb);
/* Somebody who hears no answer asks again. */
bool sim_repeats(enum sim_verb verb);
/* It asks the store's clock. */
bool sim_asks_store(enum sim_verb verb);

#endif
