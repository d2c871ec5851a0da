/* SPDX-License-Identifier: Apache-2.0 */
/* shares.h - something bounded that tenants take parts of: bytes of bodies in memory, uploads,
 * downloads.
 *
 * H1  No more than `limit` is out at any time.
 * H2  Who holds some gets more only while that leaves as much for others as it then holds itself:
 *     one tenant has half at most, two have a third each. So nobody holds everything. */
#ifndef RP_HTTP_SERVER_SHARES_H
#define RP_HTTP_SERVER_SHARES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define RP_SHARES_BUCKETS 64

struct rp_shares {
    pthread_mutex_t lock;
    int64_t out;                                 /* of all */
    struct rp_share *holders[RP_SHARES_BUCKETS]; /* only those who hold something */
};
#define RP_SHARES                                                                                                      \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                                              \
    }

/* False: not now. */
bool rp_shares_take(struct rp_shares *shares, int64_t limit, int64_t tenant_id, int64_t n);
void rp_shares_give(struct rp_shares *shares, int64_t tenant_id, int64_t n);
int64_t rp_shares_out(struct rp_shares *shares);

#endif
