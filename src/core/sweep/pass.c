/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sweep/pass.h"

#include "base/assert.h"
#include "base/time.h"
#include "base/wait.h"

#include <pthread.h>
#include <stdlib.h>

#define AT_ONCE 6 /* batches with the store: while one waits for its directory to be synced, others delete */

/* A batch, and where it is. */
struct slot {
    struct rp_batches *all;
    struct rp_purge_batch batch;
    pthread_t thread;
    bool used;     /* the batch is with the store, or back and not finished yet */
    bool threaded; /* its store's part has a thread of its own */
    bool back;     /* its store's part is done; under the lock */
};

struct rp_batches {
    struct slot slots[AT_ONCE];
    size_t n_used;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

struct rp_batches *rp_batches_new(struct rp_error *err)
{
    struct rp_batches *b = calloc(1, sizeof *b);
    if (b == NULL) {
        rp_error_set(err, RP_ENOMEM, "sweep: out of memory");
        return NULL;
    }
    RP_ASSERT(pthread_mutex_init(&b->lock, NULL) == 0);
    rp_wait_init(&b->changed);
    for (size_t i = 0; i < AT_ONCE; i++) {
        b->slots[i].all = b;
        rp_purge_batch_init(&b->slots[i].batch);
    }
    return b;
}

void rp_batches_freep(struct rp_batches **batches)
{
    struct rp_batches *b = *batches;
    if (b == NULL) return;
    RP_ASSERT(b->n_used == 0);
    for (size_t i = 0; i < AT_ONCE; i++)
        rp_purge_batch_done(&b->slots[i].batch);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

/* ---- the store's part, beside the catalog's ---- */

static void *purge_in_store(void *arg)
{
    struct slot *slot = arg;
    rp_purge_look(&slot->batch);
    rp_purge_quarantine(&slot->batch);
    rp_purge_return(&slot->batch);
    rp_purge_erase(&slot->batch);
    pthread_mutex_lock(&slot->all->lock);
    slot->back = true;
    pthread_cond_signal(&slot->all->changed);
    pthread_mutex_unlock(&slot->all->lock);
    return NULL;
}

static void send_to_store(struct slot *slot)
{
    if (!slot->used) slot->all->n_used++;
    slot->used = true;
    slot->back = false;
    slot->threaded = pthread_create(&slot->thread, NULL, purge_in_store, slot) == 0;
    if (!slot->threaded) purge_in_store(slot); /* no thread to be had: slower, not wrong */
}

static struct slot *find_back(struct rp_batches *b)
{
    for (size_t i = 0; i < AT_ONCE; i++)
        if (b->slots[i].used && b->slots[i].back) return &b->slots[i];
    return NULL;
}

/* Whichever is back first: the slowest holds nobody up. NULL: none within that time. */
static struct slot *wait_for_one(struct rp_batches *b, int64_t most_ms)
{
    struct slot *slot;
    struct timespec until = rp_wait_until(most_ms);
    RP_ASSERT(b->n_used > 0);
    pthread_mutex_lock(&b->lock);
    while ((slot = find_back(b)) == NULL && pthread_cond_timedwait(&b->changed, &b->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&b->lock);
    if (slot != NULL && slot->threaded) pthread_join(slot->thread, NULL);
    if (slot != NULL) slot->threaded = false;
    return slot;
}

/* ---- the catalog's part ---- */

/* A store that failed as a whole is left alone for the rest of this run. */
static void store_failed(struct rp_pass *p, const struct rp_error *why)
{
    p->left = 0;
    p->store_error = *why;
}

static int claim(struct rp_pass *p, struct rp_purge_batch *batch, struct rp_error *err)
{
    struct rp_sweep *s = p->sweep;
    batch->marks.n = 0;
    if (p->left <= 0 || rp_sweeper_has_enough(&s->by) || p->run->cancelled) return 0;
    int r = rp_purge_claim(s->by.catalog, p->store, &s->by.rules, s->by.worker, p->left, &p->from_ms, batch, err);
    if (r < 0) return r;
    if (batch->store_error.code < 0) { /* its clock could not be asked: nothing was claimed */
        store_failed(p, &batch->store_error);
        rp_figures_error(&p->run->figures, "%s", p->store_error.text);
        return 0;
    }
    p->left -= (int64_t)batch->marks.n;
    if (batch->marks.n > 0 && p->run->id == 0) r = rp_sweep_begin(s, p->run, err);
    if (r == 0 && batch->marks.n > 0 && p->total > 0) p->run->total = p->total;
    if (r == 0) r = rp_purge_check(s->by.catalog, &s->by.rules, s->by.worker->name, batch, err);
    if (r == 0) r = rp_purge_load(s->by.catalog, batch, err);
    if (r < 0) rp_purge_release(s->by.catalog, batch, s->by.worker->name);
    return r;
}

static int claim_one(struct rp_pass *p, struct rp_batches *b, bool *more, struct rp_error *err)
{
    struct slot *next = b->slots;
    while (next->used)
        next++;
    RP_ASSERT(next < b->slots + AT_ONCE);
    int r = claim(p, &next->batch, err);
    *more = r == 0 && next->batch.marks.n > 0;
    if (*more) send_to_store(next);
    return r;
}

static int finish(struct rp_pass *p, struct rp_purge_batch *batch, struct rp_error *err)
{
    struct rp_sweep *s = p->sweep;
    int r = rp_purge_finish(s->by.catalog, &s->by.rules, batch, p->run, err);
    if (r == 0 && s->finished != NULL) s->finished(s->ctx, batch, p->run);
    if (batch->store_error.code < 0) store_failed(p, &batch->store_error);
    return r;
}

/* S7 of purge.h: as often as it takes, whether the store's part is under way or waits to be
 * finished. A catalog that fails now is asked again soon; the lease ends by itself. */
static void renew(struct rp_pass *p, struct rp_purge_batch *batch)
{
    struct rp_error ignored = { 0 };
    if (rp_purge_is_renewal_due(batch)) (void)rp_purge_renew(p->sweep->by.catalog, batch, &ignored);
}

static void renew_all(struct rp_pass *p, struct rp_batches *b)
{
    for (size_t i = 0; i < AT_ONCE; i++)
        if (b->slots[i].used) renew(p, &b->slots[i].batch);
}

/* A slice is back: it is finished, and the next one sent. *more: what is given back may be claimed
 * again. */
static int go_on(struct rp_pass *p, struct slot *slot, bool *more, struct rp_error *err)
{
    struct rp_sweep *s = p->sweep;
    struct rp_purge_batch *batch = &slot->batch;
    int r = finish(p, batch, err);
    if (r == 0 && rp_purge_next(batch) && !rp_sweeper_is_stopped(&s->by) && !p->run->cancelled) {
        renew(p, batch);
        send_to_store(slot);
        return 0;
    }
    slot->used = false;
    slot->all->n_used--;
    if (batch->from == batch->marks.n) return r;
    if (!rp_purge_has_lease(batch))
        rp_figures_error(&p->run->figures,
                         "%s: leases ended before the store was done, and their marks are claimed again: %zu",
                         p->store->config->name, batch->marks.n - batch->from);
    rp_purge_release(s->by.catalog, batch, s->by.worker->name);
    p->from_ms = 0;
    *more = r == 0;
    return r;
}

/* Whatever is with the store is awaited and finished, also after a failure: the store's part of
 * it is done. */
int rp_pass_run(struct rp_pass *p, struct rp_batches *b, struct rp_error *err)
{
    bool more = true;
    int failed = 0;
    while ((more && failed == 0) || b->n_used > 0) {
        struct rp_error why = { 0 };
        struct slot *slot = NULL;
        int r = 0;
        renew_all(p, b);
        if (more && failed == 0 && b->n_used < AT_ONCE)
            r = claim_one(p, b, &more, &why);
        else if ((slot = wait_for_one(b, p->sweep->by.rules.lease_ms / 12)) != NULL)
            r = go_on(p, slot, &more, &why);
        if (r < 0 && failed == 0) {
            *err = why;
            failed = r;
        }
    }
    return failed;
}
