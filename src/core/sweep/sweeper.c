/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sweep/sweeper.h"

#include "catalog/clock.h"
#include "core/guarantee.h"
#include "core/owner/owner.h"

/* Asked between two slices of a batch: the process is to stop. */
bool rp_sweeper_is_stopped(const struct rp_sweeper *s)
{
    return s->stop != NULL && __atomic_load_n(s->stop, __ATOMIC_RELAXED) != 0;
}

bool rp_sweeper_has_enough(const struct rp_sweeper *s)
{
    return rp_sweeper_is_stopped(s) || (s->enough != NULL && __atomic_load_n(s->enough, __ATOMIC_RELAXED) != 0);
}

static int refuse_observed(const struct rp_store *store, struct rp_error *err)
{
    const struct rp_store_config *config = store->config;
    if (config->mode != RP_MODE_OBSERVE) return 0;
    rp_error_set(err, RP_EOBSERVE, "store '%s' is in mode observe: nothing of it is purged", config->name);
    return rp_error_hint(err, "set stores.%s.mode to quarantine or purge when you are ready", config->name);
}

/* What the claim, and asserting ownership, would find. */
int rp_sweeper_may_purge(const struct rp_sweeper *s, struct rp_store *store, struct rp_error *err)
{
    struct rp_clock_state clock;
    int r = rp_store_refuse_closed(store, err);
    if (r == 0) r = refuse_observed(store, err);
    if (r == 0) r = rp_guarantee_ensure(s->catalog, store, RP_GUARANTEE_LOOK, err);
    if (r == 0) r = rp_clock_look(s->catalog, &clock, err);
    if (r == 0) r = rp_clock_refuse(clock.ahead_ms, err);
    return r < 0 ? r : rp_owner_check(s->catalog, store, err);
}

int rp_sweeper_admit(const struct rp_sweeper *s, struct rp_store *store, struct rp_error *err)
{
    int r = rp_store_refuse_closed(store, err);
    if (r == 0) r = refuse_observed(store, err);
    if (r == 0) r = rp_guarantee_ensure(s->catalog, store, RP_GUARANTEE_SWEEP, err);
    return r < 0 ? r : rp_owner_write(s->catalog, store, s->environment, s->lazily, err);
}
