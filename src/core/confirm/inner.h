/* SPDX-License-Identifier: Apache-2.0 */
/* inner.h - what the files of this folder share: marks that one asker has claimed for one service. */
#ifndef RP_CORE_CONFIRM_INNER_H
#define RP_CORE_CONFIRM_INNER_H

#include "base/id.h"
#include "core/confirm/breaker.h"
#include "core/confirm/confirm.h"
#include "core/journal.h"

#include <pthread.h>

struct rp_service {
    const struct rp_confirmer_config *config;
    char name[66]; /* "|calendar|" */
    struct rp_breaker breaker;
    int under_way;
    int64_t again_ms[RP_STORES_MAX]; /* of the boot clock: it had nothing there, and is looked for again then */
};

struct rp_round;

/* One mark of a round, and the one confirmation that is asked for now. */
struct rp_asking {
    struct rp_round *round;
    const struct rp_mark *mark;
    struct rp_confirmation now; /* its texts are the configuration's */
    bool ours, last;            /* asked: committed; every other one has said yes */
    const char *body;
    char id[RP_ID_TEXT];
    uint64_t random;
    int64_t called_at_ms, called_boot_ms;
    pthread_t thread;
    bool threaded;
    bool calling; /* its thread is not joined yet */
    bool back;    /* under the asker's lock */
    struct rp_confirm_answer answer;
    enum rp_meaning meaning;
    struct rp_confirm_decision decision;
};

struct rp_round {
    struct rp_round *next;
    struct rp_asker *asker;
    struct rp_service *service;
    size_t which; /* of the asker's stores */
    struct rp_purge_batch batch;
    struct rp_asking *askings; /* one a mark */
    size_t n;
};

/* What an asker knows of a store. Times are of the boot clock. */
struct rp_asker_store {
    bool may;             /* it may be purged */
    int64_t may_until_ms; /* that holds until then */
    int64_t strays_ms;    /* strays are looked for again then */
};

struct rp_asker {
    struct rp_asker_options options;
    struct rp_service services[RP_CONFIRMERS_MAX];
    char names[RP_CONFIRMERS_MAX * 64 + 2]; /* of all of them: "|calendar|mail|" */
    size_t n;
    struct rp_round *rounds; /* with calls under way */
    int under_way;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t enough_ms; /* of the boot clock: when somebody began to wait for its end; 0: nobody does */
    struct rp_asker_pass *pass;
    struct rp_asker_store at[RP_STORES_MAX];
};

/* ---- asker.c ---- */

const char *rp_asker_name(const struct rp_asker *asker);
struct rp_journal rp_asker_journal(const struct rp_asker *asker);
/* It may be the turn of a service that had nothing there. */
void rp_asker_look_again(struct rp_asker *asker);
/* This store could not be looked at, which took since then (boot clock): it is left alone for a while. */
void rp_asker_store_failed(struct rp_asker *asker, size_t which, int64_t since_ms);

/* ---- strays.c ---- */

/* C8. *n: how many were claimed. */
int rp_strays_bury(struct rp_asker *asker, struct rp_store *store, size_t *n, struct rp_error *err);

/* ---- known.c: what the catalog knows of a round's marks ---- */

/* Whose turn it is for a mark. */
struct rp_turn {
    const struct rp_confirmation *next; /* the first that has not said yes; NULL: none */
    bool last;                          /* all others have said yes */
    bool untouched;                     /* nobody was ever asked */
};
/* `all` may hold those of other marks as well. */
struct rp_turn rp_turn_of(const struct rp_confirmations *all, int64_t mark_id);

struct rp_round_known {
    struct rp_confirmations all;
    struct rp_marks locked;
};
int rp_round_load(struct rp_tx *tx, struct rp_round *round, struct rp_round_known *k, struct rp_error *err);
/* FENCED */
bool rp_round_is_ours(const struct rp_round_known *k, const struct rp_mark *mark);

/* ---- leave.c ---- */

/* C5, C10, C11: what is left for now is not `ours` any more. */
int rp_round_leave(struct rp_round *round, struct rp_error *err);

/* ---- round.c: the catalog's part ---- */

const char *rp_round_store(const struct rp_round *round);
int rp_round_no_memory(struct rp_error *err);
struct rp_asking *rp_round_asking(const struct rp_round *round, const struct rp_mark *mark);

/* Some are left (leave.c), the others "asked", committed: those that are `ours` are to be called. */
int rp_round_ask(struct rp_round *round, struct rp_error *err);
/* What came back of these becomes what the catalog knows. */
int rp_round_finish(struct rp_round *round, struct rp_asking *const *back, size_t n, struct rp_error *err);

/* ---- call.c ---- */

/* A thread of its own; else the call is made here. */
void rp_asking_call(struct rp_asking *asking);
int rp_asking_body(const struct rp_asking *asking, const char *tenant, struct rp_arena *arena, const char **out,
                   struct rp_error *err);

/* ---- tell.c: audit rows and log lines ---- */

json_t *rp_confirm_json(const struct rp_mark *mark, const char *store, const struct rp_confirmation *c);
int rp_confirm_audit(struct rp_tx *tx, const char *event, const char *actor, const struct rp_mark *mark,
                     const char *store, const struct rp_confirmation *c, struct rp_error *err);

#endif
