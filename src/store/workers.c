/* SPDX-License-Identifier: Apache-2.0 */
#include "store/workers.h"

#include <pthread.h>

void rp_work_beside(size_t workers, void *(*work)(void *ctx), void *ctx)
{
    pthread_t threads[RP_WORKERS_MAX];
    size_t started = 0;
    while (started + 1 < workers && started < RP_WORKERS_MAX && pthread_create(&threads[started], NULL, work, ctx) == 0)
        started++;
    work(ctx);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}
