/* SPDX-License-Identifier: Apache-2.0 */
/* workers.h - one piece of work by several threads. */
#ifndef RP_STORE_WORKERS_H
#define RP_STORE_WORKERS_H

#include <stddef.h>

#define RP_WORKERS_MAX 16

/* `work` on this thread and on others beside it, so many in all, until each has returned. No thread
 * to be had: slower, not wrong. */
void rp_work_beside(size_t workers, void *(*work)(void *ctx), void *ctx);

#endif
