/* SPDX-License-Identifier: Apache-2.0 */
/* sweeps.h - sweeps of nodes. */
#ifndef RP_SIM_SWEEPS_H
#define RP_SIM_SWEEPS_H

struct sim_node;

int sim_give_sweep(struct sim_node *n);

#endif
