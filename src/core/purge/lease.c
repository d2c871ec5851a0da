/* SPDX-License-Identifier: Apache-2.0 */
/* lease.c - how long a batch is ours (S7). The catalog's clock says when others may take it over,
 * the boot clock when we stop. */
#include "base/time.h"
#include "core/purge/batch.h"
#include "core/state.h"

void rp_purge_lease_begins(struct rp_purge_batch *b, const struct rp_clock *clock, int64_t lease_ms, int64_t boot_ms)
{
    b->clock = clock;
    b->lease_ms = lease_ms;
    b->claimed_at_ms = boot_ms;
    __atomic_store_n(&b->lease_ends_ms, boot_ms + lease_ms, __ATOMIC_RELAXED);
}

static int64_t left_ms(const struct rp_purge_batch *b)
{
    return __atomic_load_n(&b->lease_ends_ms, __ATOMIC_RELAXED) - rp_clock_boot_ms(b->clock);
}

bool rp_purge_has_lease(const struct rp_purge_batch *b)
{
    return left_ms(b) > 0;
}

void rp_purge_slice_begins(struct rp_purge_batch *b)
{
    b->slice_ends_ms = rp_clock_boot_ms(b->clock) + b->lease_ms / 6;
}

bool rp_purge_has_slice(const struct rp_purge_batch *b)
{
    return rp_purge_has_lease(b) && rp_clock_boot_ms(b->clock) < b->slice_ends_ms;
}

bool rp_purge_is_renewal_due(const struct rp_purge_batch *b)
{
    return rp_purge_has_lease(b) && left_ms(b) <= b->lease_ms - b->lease_ms / 3;
}

bool rp_purge_next(struct rp_purge_batch *b)
{
    b->from = b->to;
    return b->from < b->marks.n && rp_purge_has_lease(b) && rp_clock_boot_ms(b->clock) < b->claimed_at_ms + b->lease_ms;
}

struct renewing {
    const struct rp_purge_batch *batch;
    bool all; /* every mark was still ours */
};

/* Only ids, fences and states are read: the items belong to the store's part meanwhile. */
static int renew_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct renewing *renewing = ctx;
    const struct rp_purge_batch *b = renewing->batch;
    const struct rp_mark **marks = rp_arena_array(tx->arena, b->marks.n + 1, sizeof(struct rp_mark *));
    size_t n = 0, renewed = 0;
    if (marks == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = b->from; i < b->marks.n; i++)
        if (b->marks.at[i].state == RP_PURGING) marks[n++] = &b->marks.at[i];
    int r = rp_state_renew(tx, marks, n, b->lease_ms, &renewed, err);
    renewing->all = renewed == n;
    return r;
}

int rp_purge_renew(struct rp_catalog *catalog, struct rp_purge_batch *b, struct rp_error *err)
{
    struct renewing renewing = { .batch = b };
    int64_t boot_ms = rp_clock_boot_ms(b->clock);
    int r = rp_catalog_transact(catalog, renew_tx, &renewing, err);
    if (r < 0) return rp_error_wrap(err, r, "renew leases of store '%s'", b->store->config->name);
    __atomic_store_n(&b->lease_ends_ms, renewing.all ? boot_ms + b->lease_ms : 0, __ATOMIC_RELAXED);
    return 0;
}
