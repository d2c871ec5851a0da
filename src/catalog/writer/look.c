/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the writers can write, and what they say of the clock. */
#include "catalog/writer/writers.h"

#include "base/time.h"
#include "base/wait.h"

#define LOOK_MS RP_SECOND_MS

/* The transaction around it is the write: it keeps the lane's row. It has judged the clock. */
static int write_nothing(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    (void)err;
    *(int64_t *)ctx = tx->ahead_ms;
    return 0;
}

static void look_done(struct rp_command *command)
{
    struct rp_writer *w = command->owner;
    pthread_mutex_lock(&w->all->lock);
    w->looking = false;
    w->look_code = command->error.code;
    if (w->look_code == 0) w->ahead_ms = w->look_ahead_ms;
    w->answered = w->answered || w->look_code == 0;
    pthread_cond_broadcast(&w->all->idle);
    pthread_mutex_unlock(&w->all->lock);
}

static void look(struct rp_writer *w)
{
    pthread_mutex_lock(&w->all->lock);
    bool again = !w->looking;
    w->looking = true;
    if (again) w->look_began_ms = rp_time_boot_ms();
    pthread_mutex_unlock(&w->all->lock);
    if (!again) return;
    w->look = (struct rp_change){ .command = { .verb = &rp_verb_change, .done = look_done, .owner = w },
                                  .fn = write_nothing,
                                  .ctx = &w->look_ahead_ms };
    atomic_fetch_add(&w->all->waiting, 1);
    rp_queue_push(&w->queue, &w->look.command);
}

static bool is_looking(const struct rp_writers *all)
{
    bool any = false;
    for (size_t i = 0; i < all->n; i++)
        any |= all->at[i].looking;
    return any;
}

void rp_writers_look(struct rp_writers *all, struct rp_writers_look *out)
{
    struct timespec end = rp_wait_until(LOOK_MS);
    int64_t now_ms;
    *out = (struct rp_writers_look){ 0 };
    for (size_t i = 0; i < all->n; i++)
        look(&all->at[i]);
    pthread_mutex_lock(&all->lock);
    for (int r = 0; r == 0 && is_looking(all);)
        r = pthread_cond_timedwait(&all->idle, &all->lock, &end);
    now_ms = rp_time_boot_ms();
    for (size_t i = 0; i < all->n; i++) {
        const struct rp_writer *w = &all->at[i];
        if (!w->looking && out->code == 0) out->code = w->look_code;
        if (w->answered) out->ahead_ms = w->ahead_ms;
        out->judged = out->judged || w->answered;
        if (w->looking && now_ms - w->look_began_ms >= out->waits_ms) out->waits_ms = now_ms - w->look_began_ms + 1;
    }
    pthread_mutex_unlock(&all->lock);
}
