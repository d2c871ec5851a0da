/* SPDX-License-Identifier: Apache-2.0 */
/* services.h - outside services that hold the other half of what users delete, and that are asked
 * before anything of it is erased (src/core/confirm).
 *
 * V1  A service remembers every question that it was asked, by its idempotency key. The same key is
 *     the same question about the same mark, and the same question has the same key: whatever a
 *     catalog that was put back has forgotten, the service has not.
 * V2  It acts before it answers: what it has deleted is gone although nobody may hear of it. It has
 *     agreed in truth once a yes was on its way: in an answer, or in a call of its own.
 * V3  What it has said it says again; a no may become a yes, a yes never a no. Only a call of its
 *     own may contradict that (asking.c), for whoever sends it may be mistaken.
 * V4  It loses questions, fails, is down for days, hangs, breaks off after it has acted, and
 *     answers later. */
#ifndef RP_SIM_SERVICES_H
#define RP_SIM_SERVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "core/confirm/confirm.h"
#include "random.h"

#define SIM_SERVICES  3
#define SIM_QUESTIONS 800
#define SIM_CALLS     200 /* of services, that are still to come */

enum sim_word { WORD_NONE, WORD_YES, WORD_NO, WORD_LATER };

/* What a service remembers. */
struct sim_question {
    int64_t id, mark_id;
    int service;
    enum sim_word word, at_last; /* at_last: what it says when `later` is over */
    int64_t decided_ms;          /* true time: when that is */
    bool agreed;                 /* V2 */
    bool stubborn;               /* it never says anything but no again */
};

/* A call of a service. */
struct sim_call {
    size_t question;
    bool yes;
    int64_t at_ms; /* true time: not before */
};

struct sim_services {
    struct rp_confirmer_config configs[SIM_SERVICES];
    struct rp_config config;
    struct sim_random random, choosing;
    int asks; /* how often, in 10,000 commands, a node asks what may be asked; 0: nobody names a service */
    int64_t down_until_ms[SIM_SERVICES]; /* true time */
    int naming;                          /* how often, in 10,000 deletes, somebody names one */
    struct sim_question questions[SIM_QUESTIONS];
    size_t n_questions;
    struct sim_call calls[SIM_CALLS];
    size_t n_calls;
};

struct sim;
struct sim_node;

void sim_services_choose(struct sim *s);
/* -1: there is none. */
int sim_service_of(const char *name);
const char *sim_service_name(int service);
/* Once everything has healed they answer, and most of those that have said no say yes. */
void sim_services_heal(struct sim *s);
struct sim_question *sim_question(struct sim *s, int64_t confirmation_id);
/* A service will call by itself. */
void sim_will_call(struct sim *s, size_t question, bool yes, int64_t in_ms);
/* rp_confirm_send_fn, of a node. */
void sim_service_send(void *ctx, const struct rp_confirm_call *call, struct rp_confirm_answer *out);

#endif
