/* SPDX-License-Identifier: Apache-2.0 */
/* wait.h - waits that end in time: on conditions that go by the monotonic clock, so that setting
 * the host's clock neither ends nor prolongs one. */
#ifndef RP_BASE_WAIT_H
#define RP_BASE_WAIT_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

void rp_wait_init(pthread_cond_t *cond);
/* So long from now: the moment that pthread_cond_timedwait takes for a condition of
 * rp_wait_init. */
struct timespec rp_wait_until(int64_t ms);

#endif
