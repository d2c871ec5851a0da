/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/shares.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/assert.h"

struct rp_share {
    struct rp_share *next;
    int64_t tenant_id, held;
};

/* Where the tenant's share is, or would be. */
static struct rp_share **find(struct rp_shares *shares, int64_t tenant_id)
{
    struct rp_share **at = &shares->holders[(uint64_t)tenant_id % RP_SHARES_BUCKETS];
    while (*at != NULL && (*at)->tenant_id != tenant_id)
        at = &(*at)->next;
    return at;
}

static bool fits(const struct rp_shares *shares, int64_t limit, int64_t held, int64_t n)
{
    int64_t left = limit - shares->out - n;
    return left >= 0 && (held == 0 || held + n <= left);
}

bool rp_shares_take(struct rp_shares *shares, int64_t limit, int64_t tenant_id, int64_t n)
{
    RP_ASSERT(n > 0);
    pthread_mutex_lock(&shares->lock);
    struct rp_share **at = find(shares, tenant_id);
    bool ok = fits(shares, limit, *at != NULL ? (*at)->held : 0, n);
    if (ok && *at == NULL) {
        *at = calloc(1, sizeof **at);
        ok = *at != NULL;
        if (ok) (*at)->tenant_id = tenant_id;
    }
    if (ok) {
        (*at)->held += n;
        shares->out += n;
    }
    pthread_mutex_unlock(&shares->lock);
    return ok;
}

void rp_shares_give(struct rp_shares *shares, int64_t tenant_id, int64_t n)
{
    pthread_mutex_lock(&shares->lock);
    struct rp_share **at = find(shares, tenant_id), *share = *at;
    RP_ASSERT(share != NULL && share->held >= n && shares->out >= n);
    shares->out -= n;
    share->held -= n;
    if (share->held == 0) {
        *at = share->next;
        free(share);
    }
    pthread_mutex_unlock(&shares->lock);
}

int64_t rp_shares_out(struct rp_shares *shares)
{
    pthread_mutex_lock(&shares->lock);
    int64_t out = shares->out;
    pthread_mutex_unlock(&shares->lock);
    return out;
}
