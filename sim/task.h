/* SPDX-License-Identifier: Apache-2.0 */
/* task.h - coroutines, and time that passes only when the simulator says so. */
#ifndef RP_SIM_TASK_H
#define RP_SIM_TASK_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_START_MS INT64_C(1800000000000)

struct sim_clock {
    int64_t ahead_ms, frozen_at_ms; /* frozen_at 0: it goes */
    int64_t ppm;
};

struct sim;
struct sim_node;

int64_t sim_clock_read(const struct sim *s, const struct sim_clock *clock);
int64_t sim_host_ms(const struct sim_node *n);
int64_t sim_db_ms(const struct sim *s);
int64_t sim_store_ms(const struct sim *s);
void sim_tasks_start(struct sim *s, void (*work)(struct sim_node *node));
/* Lets nodes go on until none is left. */
void sim_tasks_run(struct sim *s);
/* The running node is put aside for so long; 0: others may go first. The scheduler's own time
 * passes otherwise. */
void sim_sleep(struct sim *s, int64_t ms);
/* Before a call of the running node: counts a step, lets time pass and others run. False: the node
 * is dead. */
bool sim_step(struct sim_node *n, bool may_switch, const char *call);

void sim_note_clocks(struct sim_node *n); /* what all clocks have passed by now */
void sim_note_wrong(struct sim_node *n);  /* what its clock says may be taken for right now */
/* Bounds of the time by the boot clock of any host: catalog/clock.h. */
int64_t sim_boot_time_least_ms(const struct sim *s);
int64_t sim_boot_time_most_ms(const struct sim *s);

#endif
