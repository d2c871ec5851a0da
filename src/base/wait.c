/* SPDX-License-Identifier: Apache-2.0 */
#include "base/wait.h"

#include "base/assert.h"

void rp_wait_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    RP_ASSERT(pthread_condattr_init(&monotonic) == 0);
    RP_ASSERT(pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
    RP_ASSERT(pthread_cond_init(cond, &monotonic) == 0);
    pthread_condattr_destroy(&monotonic);
}

struct timespec rp_wait_until(int64_t ms)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    int64_t ns = at.tv_nsec + ms % 1000 * 1000000;
    at.tv_sec += (time_t)(ms / 1000 + ns / 1000000000);
    at.tv_nsec = (long)(ns % 1000000000);
    return at;
}
