/* SPDX-License-Identifier: Apache-2.0 */
/* choose.h - what is given next, and what is given again. */
#ifndef RP_SIM_CHOOSE_H
#define RP_SIM_CHOOSE_H

struct sim_command;
struct sim_node;

/* The next command that somebody gives to this node. */
void sim_choose(struct sim_node *n, struct sim_command *out);
/* Gives it; keeps what somebody may give again. Returns the code of the answer. */
int sim_give(struct sim_node *n);

#endif
