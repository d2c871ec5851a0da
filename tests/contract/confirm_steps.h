/* SPDX-License-Identifier: Apache-2.0 */
/* confirm_steps.h - outside services that answer as a test says, and an asker that calls them. */
#ifndef RP_TESTS_CONFIRM_STEPS_H
#define RP_TESTS_CONFIRM_STEPS_H

#include <pthread.h>

#include "base/id.h"
#include "core/confirm/confirm.h"
#include "core/dead.h"
#include "lib/ask.h"
#include "lib/uploads.h"
#include "sweep_steps.h"

#define SERVICES 3

struct service {
    long status; /* 0: no answer */
    const char *body;
    int64_t retry_after_ms;
    int calls, under_way, most_under_way;
    char id[RP_ID_TEXT]; /* of the last call */
    char said[4096];     /* its body */
};

/* calendar: due, 410 is gone; billing: due; mail: now. */
struct services {
    struct world *w;
    struct rp_confirmer_config configs[SERVICES];
    struct rp_config config;
    struct service at[SERVICES];
    void (*during)(struct services *s, int which); /* while it is called, by the thread of the call; may be NULL */
    void (*answered)(struct services *s, const char *name);
    pthread_mutex_t lock;
    struct rp_asker *asker;
    int64_t most;                 /* calls of a pass of the next asker */
    volatile sig_atomic_t stop;   /* its asker claims nothing more, and gives up calls */
    volatile sig_atomic_t enough; /* it claims nothing more */
    char key[RP_DIGEST_HEX];
};

enum { CALENDAR, BILLING, MAIL };

struct rp_asker *services_asker(struct services *s, struct rp_catalog *catalog, struct rp_error *e);
void services_make(struct world *w, struct services *s);
void services_drop(struct services *s);
struct rp_asker_pass ask_all(struct services *s);
struct rp_mark_answer mark_confirmed(struct services *s, const char *key, int64_t grace_ms, const char *first,
                                     const char *second);
/* Put, marked, due. */
void put_to_confirm(struct services *s, const char *key, const char *first, const char *second);
enum rp_state state_of(struct services *s, const char *key);
/* Of the mark's confirmations, in order: P, A, W, Y, R, F. */
const char *confirmed(struct services *s, const char *key);
int64_t confirmation_id(struct services *s, const char *key, size_t which);
int say_later(struct services *s, int64_t id, bool yes);
/* The open dead letter; 0: there is none. */
int64_t letter_of(struct services *s, const char *key);
/* How often an event of this subject was audited. */
int64_t audited(struct services *s, const char *event, const char *key);

#endif
