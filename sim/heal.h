/* SPDX-License-Identifier: Apache-2.0 */
/* heal.h - the second part of a run. */
#ifndef RP_SIM_HEAL_H
#define RP_SIM_HEAL_H

struct sim_node;

void sim_heal(struct sim_node *n);

#endif
