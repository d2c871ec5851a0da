/* SPDX-License-Identifier: Apache-2.0 */
/* net.h - safety nets beside everything else, as retain.h. */
#ifndef RP_SIM_NET_H
#define RP_SIM_NET_H

#include <stdbool.h>

struct sim;
struct sim_node;

void sim_net_choose(struct sim *s);
bool sim_wants_net(struct sim_node *n);
int sim_give_net(struct sim_node *n);

#endif
