/* SPDX-License-Identifier: Apache-2.0 */
/* users.h - users of plain objects, and those who run the place. */
#ifndef RP_SIM_USERS_H
#define RP_SIM_USERS_H

#include <stdbool.h>
#include <stddef.h>

struct sim;
struct sim_node;

int sim_give_mark(struct sim_node *n);
int sim_give_restore(struct sim_node *n);
int sim_give_hold(struct sim_node *n);
int sim_give_lift(struct sim_node *n);
int sim_give_dead(struct sim_node *n);
int sim_give_recover(struct sim_node *n);
int sim_give_import(struct sim_node *n);
int sim_give_quota(struct sim_node *n);
int sim_give_clock(struct sim_node *n);
const char *sim_key(size_t i);
/* Somebody uploads under a plain key, beside us. */
void sim_upload(struct sim *s, size_t key, bool same_bytes);

#endif
