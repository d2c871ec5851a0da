/* SPDX-License-Identifier: Apache-2.0 */
/* asking.h - askers of nodes, calls of services that answer later, and which deletes name
 * services. */
#ifndef RP_SIM_ASKING_H
#define RP_SIM_ASKING_H

#include <stdbool.h>

#include "core/confirm/confirm.h"

struct sim;
struct sim_command;
struct sim_node;

bool sim_wants_asking(struct sim_node *n, struct sim_command *out);
bool sim_takes_call(struct sim_node *n, struct sim_command *out); /* one whose time has come */
void sim_name_services(struct sim *s, struct sim_command *c);
/* Those of the command, as the core takes them. */
int sim_named_services(struct sim_node *n, struct rp_confirmer_list *out, struct rp_error *err);
int sim_give_ask(struct sim_node *n);
int sim_give_answer(struct sim_node *n);

#endif
