/* SPDX-License-Identifier: Apache-2.0 */
/* users.h - those who give commands: what they ask next, what they know, and whether the answer was
 * true (choose.c, users.c, uploads.c, sweeps.c, retain.c, net.c). */
#ifndef RP_SIM_USERS_H
#define RP_SIM_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/confirm/confirm.h"
#include "core/file/file.h"

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
const char *sim_verb_name(enum sim_verb verb);
/* It claims marks, and looks whose store it is before. */
bool sim_claims(enum sim_verb verb);

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
    int given;
};

/* The answer under an Idempotency-Key was let go: given again, it is a new one. */
struct sim_forgotten {
    uint64_t at; /* step; 0: never */
    int times;
};

/* What a user knows of an upload. */
struct sim_file {
    size_t tenant, parent, source, replaces, txn; /* SIZE_MAX: none */
    char name[16], text[48], key[RP_FILE_KEY_TEXT];
    char answer[160]; /* to its init, word for word */
    int64_t id, mark_id, due_at_ms;
    int64_t url_ends_ms, sent_at_ms; /* true times */
    int64_t arrived_id;              /* of the file whose bytes arrived last */
    bool begun, put, late;           /* late: its bytes are still under way */
    struct sim_forgotten forgotten;
};
struct sim_txn {
    size_t tenant;
    char answer[32];
    int64_t id;
    bool begun;
    struct sim_forgotten forgotten;
};

struct sim;
struct sim_node;

/* The next command that somebody gives to this node. */
void sim_choose(struct sim_node *n, struct sim_command *out);
/* Gives it; notes what was heard. Returns the code of the answer. */
int sim_give(struct sim_node *n);
int sim_give_mark(struct sim_node *n);
int sim_give_restore(struct sim_node *n);
int sim_give_hold(struct sim_node *n);
int sim_give_lift(struct sim_node *n);
int sim_give_dead(struct sim_node *n);
int sim_give_recover(struct sim_node *n);
int sim_give_import(struct sim_node *n);
int sim_give_quota(struct sim_node *n);
int sim_give_clock(struct sim_node *n);
int sim_give_sweep(struct sim_node *n);
int sim_give_retain(struct sim_node *n);
/* Whether and how often this run lets go while things go wrong, and after how long; whether this
 * node does it now (retain.c). */
void sim_retention_choose(struct sim *s);
bool sim_wants_retention(struct sim_node *n);
int sim_give_net(struct sim_node *n);
/* The same of safety nets (net.c). */
void sim_net_choose(struct sim *s);
bool sim_wants_net(struct sim_node *n);
/* The same of askers, and of services that call; which deletes name services, and these as the core
 * takes them (asking.c). */
bool sim_wants_asking(struct sim_node *n, struct sim_command *out);
bool sim_takes_call(struct sim_node *n, struct sim_command *out); /* one whose time has come */
void sim_name_services(struct sim *s, struct sim_command *c);
int sim_named_services(struct sim_node *n, struct rp_confirmer_list *out, struct rp_error *err);
int sim_give_ask(struct sim_node *n);
int sim_give_answer(struct sim_node *n);
/* The answer under this key was let go. */
void sim_forget_key(struct sim *s, const char *key);
int sim_give_init(struct sim_node *n);
int sim_give_put(struct sim_node *n);
int sim_give_confirm(struct sim_node *n);
int sim_give_file(struct sim_node *n); /* delete, undelete, return, result */
int sim_give_txn(struct sim_node *n);  /* begin, commit, abort */
const char *sim_key(size_t i);
/* Somebody uploads under a plain key, beside us. */
void sim_upload(struct sim *s, size_t key, bool same_bytes);
/* Bytes of an upload arrive at last. */
void sim_put_arrives(struct sim *s, size_t file);

#endif
