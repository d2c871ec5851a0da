/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - memory that runs out. */
#ifndef RP_SIM_MEMORY_H
#define RP_SIM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* The n-th allocation of our code from now on fails; 0: none. */
void sim_memory_fail(int64_t nth);
bool sim_memory_failed(void); /* since the last call of sim_memory_fail */
void sim_pool_use(void);      /* SQLite's own memory (pool.c) */

#endif
