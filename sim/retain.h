/* SPDX-License-Identifier: Apache-2.0 */
/* retain.h - retentions beside everything else. */
#ifndef RP_SIM_RETAIN_H
#define RP_SIM_RETAIN_H

#include <stdbool.h>

struct sim;
struct sim_node;

/* Whether and how often this run lets go while things go wrong, and after how long; whether this
 * node does it now. */
void sim_retention_choose(struct sim *s);
bool sim_wants_retention(struct sim_node *n);
int sim_give_retain(struct sim_node *n);

#endif
