/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - memory that runs out. */
#ifndef RP_SIM_MEMORY_H
#define RP_SIM_MEMORY_H

#include <stdint.h>

/* The n-th allocation of our code from now on fails; 0: none. */
void sim_memory_fail(int64_t nth);
void sim_pool_use(void); /* SQLite's own memory (pool.c) */

#endif
