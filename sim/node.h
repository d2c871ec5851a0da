/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - a process: its connection, its store handle, what it is doing (N1 and N2 of world.h). */
#ifndef RP_SIM_NODE_H
#define RP_SIM_NODE_H

#include "base/time.h"
#include "catalog/catalog.h"
#include "core/confirm/confirm.h"
#include "core/run/run.h"
#include "core/store.h"
#include "random.h"
#include "task.h"
#include "verb.h"

#define SIM_KEYS 8 /* plain objects */

struct sim;
struct sim_task;

struct sim_node {
    struct sim *sim;
    int index, life; /* life: grows with every start */
    struct sim_task *task;
    bool dead;
    int64_t wakes_at_ms;
    struct sim_clock clock;
    struct rp_clock host;
    struct rp_boot boot;  /* each node has a host of its own */
    int64_t booted_ms;    /* true time */
    int64_t booted_at_ms; /* as the process knows it */
    int boots;
    bool anchored; /* the catalog knows what the clocks said in this boot */
    struct rp_catalog *catalog;
    struct rp_backend *backend;
    struct rp_store_config config;
    struct rp_store store;
    struct rp_raises *raises; /* as a session has them (lib/session.h) */
    struct rp_raise_hook raise_hook;
    struct rp_worker worker;
    struct rp_store *stores[1];
    struct rp_asker *asker; /* NULL: it has not asked anybody yet */
    int64_t calling;        /* the question whose answer it waits for, or has not committed; 0: none */
    struct rp_run run;      /* of the continuous sweep; id 0: none */
    struct sim_command command;

    /* when the command began */
    uint64_t began_at;          /* step */
    int64_t began_ms;           /* true time */
    int64_t latest_at_begin_ms; /* by the clock that was ahead of the others */
    int64_t epoch_at_begin;     /* the catalog's */
    unsigned put_backs_at_begin;
    size_t waiting_at_begin;                                  /* requests that may still happen */
    uint64_t jumps_at_begin, sent_at_begin, returns_at_begin; /* clocks set, users' uploads, copies back */
    uint64_t serial;                                          /* of the last upload */
    int deleted_at_begin;                                     /* how often its file had been deleted */
    bool known_ours;                                          /* the catalog knew that the bucket is its own */

    /* since then */
    int64_t early_ms; /* the latest moment that all clocks had passed */
    int64_t file_id;  /* the command's; 0: none */
    int holds_made;
    bool kept; /* it kept something alive */
    bool wrong_tenant;
    bool hid;           /* it has sent a delete marker */
    bool owned;         /* the store that it reaches was ours at some moment */
    int refs[SIM_KEYS]; /* what the guard said; -1: nothing */

    int64_t kept_ms; /* when the last command of this life began that kept something alive; 0: none did */
    int unresolved;  /* how often the database cannot be asked yet */
    int64_t outage_ends_ms;
    struct sim_random random; /* of its users */
};

void sim_node_work(struct sim_node *n);                               /* what a node does all its life */
void sim_node_begin(struct sim_node *n, const struct sim_command *c); /* what is judged counts from here */
void sim_node_close(struct sim_node *n);
int sim_node_open(struct sim_node *n, struct rp_error *err);
/* The epoch is raised now. */
void sim_raise(struct sim_node *n);
bool sim_node_is_up(const struct sim_node *n); /* or about to be */
/* Its command began in a catalog that was put back since. */
bool sim_is_stale(const struct sim_node *n);
/* Nobody hears what it answers: it is dead, or stale. */
bool sim_is_unheard(const struct sim_node *n);

#endif
