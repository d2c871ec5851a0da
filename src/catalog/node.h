/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - daemons on this catalog: their signs of life, and the ticks of schedules that they take
 * for all. A tick is taken by compare-and-set: one run a tick, however many daemons there are. Both
 * are on the database's clock. */
#ifndef RP_CATALOG_NODE_H
#define RP_CATALOG_NODE_H

#include "catalog/catalog.h"

#include <stdbool.h>
#include <stdint.h>

/* A sign of life of this node's sweeper, by the database's clock. */
int rp_node_seen(struct rp_tx *tx, const char *name, int64_t started_at_ms, struct rp_error *err);
int rp_node_newest(struct rp_db *db, int64_t *seen_at_ms, struct rp_error *err); /* 0: never any */
/* Nodes that were last seen before this are forgotten. */
int rp_node_forget(struct rp_tx *tx, int64_t before_ms, struct rp_error *err);

/* When the schedule's last tick was taken. One that is new is noted as taken now: nothing of the
 * past is made up for. */
int rp_schedule_last(struct rp_tx *tx, const char *name, int64_t *tick_at_ms, struct rp_error *err);
/* *mine: this caller took it; false: another one was faster. */
int rp_schedule_take(struct rp_tx *tx, const char *name, int64_t last_ms, int64_t tick_at_ms, bool *mine,
                     struct rp_error *err);

#endif
