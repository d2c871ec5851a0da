/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/auth.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <openssl/crypto.h>

#include "base/assert.h"
#include "base/time.h"
#include "http/server/inner.h"

#define SETS       256
#define WAYS       4
#define FRESH_US   INT64_C(30000000)
#define STALE_US   (10 * FRESH_US) /* used on while it is asked again, for as long as nobody can be asked */
#define ASK_US     INT64_C(5000000)
#define SECOND     INT64_C(1000000)
#define FAILURE_US (SECOND / RP_FAILURES_PER_SECOND)
#define ADDRESSES  1024 /* that failures are counted for; two of them may share a count */

struct entry {
    uint8_t hash[RP_DIGEST_BYTES];
    int64_t good_until_us;        /* 0: empty */
    _Atomic int64_t ask_again_us; /* one request asks the catalog then; the others go on */
    int64_t expires_at_ms;        /* 0: never */
    struct rp_principal who;
    _Atomic int64_t next_us; /* when the allowance that was used is whole again */
};

struct rp_tokens {
    _Atomic int64_t cost_us; /* of one request; 0: no limit */
    uint64_t seed;           /* so that nobody can choose whose count they share */
    _Atomic int64_t failures_us[ADDRESSES];
    _Atomic uint64_t generation; /* counts what was forgotten */
    pthread_rwlock_t lock;       /* of the entries, but for what is atomic */
    unsigned turn;
    struct entry entries[SETS][WAYS];
};

int rp_tokens_new(int64_t requests_per_second, struct rp_tokens **out, struct rp_error *err)
{
    struct rp_tokens *t = calloc(1, sizeof *t);
    if (t == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for tokens");
    if (getrandom(&t->seed, sizeof t->seed, 0) < 0) t->seed = (uint64_t)rp_monotonic_us();
    rp_tokens_limit(t, requests_per_second);
    pthread_rwlock_init(&t->lock, NULL);
    *out = t;
    return 0;
}

void rp_tokens_limit(struct rp_tokens *t, int64_t requests_per_second)
{
    int64_t cost_us = requests_per_second > 0 ? SECOND / requests_per_second : 0;
    atomic_store(&t->cost_us, requests_per_second > SECOND ? 1 : cost_us);
}

void rp_tokens_free(struct rp_tokens *t)
{
    if (t == NULL) return;
    pthread_rwlock_destroy(&t->lock);
    free(t);
}

/* A second's worth may come at once; after that, each `cost_us`. `used` is the moment by which
 * everything taken so far is paid. */
static bool take(_Atomic int64_t *used, int64_t cost_us, int64_t now)
{
    int64_t before = atomic_load_explicit(used, memory_order_relaxed), after;
    do {
        after = (before > now ? before : now) + cost_us;
        if (after - now > SECOND) return false;
    } while (!atomic_compare_exchange_weak_explicit(used, &before, after, memory_order_relaxed, memory_order_relaxed));
    return true;
}

static struct entry *find(struct rp_tokens *t, const uint8_t hash[RP_DIGEST_BYTES])
{
    for (size_t i = 0; i < WAYS; i++) {
        struct entry *e = &t->entries[hash[0]][i];
        if (e->good_until_us != 0 && CRYPTO_memcmp(e->hash, hash, RP_DIGEST_BYTES) == 0) return e;
    }
    return NULL;
}

/* True for the one that is to ask. */
static bool is_time_to_ask(struct entry *e, int64_t now_us)
{
    int64_t at = atomic_load_explicit(&e->ask_again_us, memory_order_relaxed);
    return now_us >= at && atomic_compare_exchange_strong(&e->ask_again_us, &at, now_us + ASK_US);
}

static bool is_good(const struct entry *e, int64_t now_us, int64_t now_ms)
{
    return e != NULL && now_us < e->good_until_us && (e->expires_at_ms == 0 || now_ms < e->expires_at_ms);
}

enum rp_token_found rp_tokens_find(struct rp_tokens *t, const uint8_t hash[RP_DIGEST_BYTES], int64_t now_us,
                                   int64_t now_ms, struct rp_principal *out)
{
    enum rp_token_found found = RP_TOKEN_UNKNOWN;
    _Static_assert(SETS == 256, "one byte of the hash says which set");
    pthread_rwlock_rdlock(&t->lock);
    struct entry *e = find(t, hash);
    int64_t cost_us = atomic_load_explicit(&t->cost_us, memory_order_relaxed);
    if (is_good(e, now_us, now_ms)) {
        *out = e->who;
        if (cost_us != 0 && !take(&e->next_us, cost_us, now_us))
            found = RP_TOKEN_LIMITED;
        else
            found = is_time_to_ask(e, now_us) ? RP_TOKEN_STALE : RP_TOKEN_FOUND;
    }
    pthread_rwlock_unlock(&t->lock);
    return found;
}

uint64_t rp_tokens_ticket(struct rp_tokens *t)
{
    return atomic_load(&t->generation);
}

static struct entry *slot_for(struct rp_tokens *t, const uint8_t hash[RP_DIGEST_BYTES])
{
    struct entry *e = find(t, hash);
    for (size_t i = 0; i < WAYS && e == NULL; i++)
        if (t->entries[hash[0]][i].good_until_us == 0) e = &t->entries[hash[0]][i];
    if (e == NULL) e = &t->entries[hash[0]][t->turn++ % WAYS];
    if (CRYPTO_memcmp(e->hash, hash, RP_DIGEST_BYTES) != 0) atomic_store(&e->next_us, 0);
    return e;
}

void rp_tokens_put(struct rp_tokens *t, uint64_t ticket, const uint8_t hash[RP_DIGEST_BYTES], int64_t now_us,
                   const struct rp_token *token)
{
    RP_ASSERT(token->id != 0);
    pthread_rwlock_wrlock(&t->lock);
    if (atomic_load(&t->generation) == ticket) {
        struct entry *e = slot_for(t, hash);
        memcpy(e->hash, hash, RP_DIGEST_BYTES);
        e->good_until_us = now_us + STALE_US;
        atomic_store(&e->ask_again_us, now_us + FRESH_US);
        e->expires_at_ms = token->expires_at_ms;
        rp_principal_of(token, &e->who);
    }
    pthread_rwlock_unlock(&t->lock);
}

void rp_tokens_forget(struct rp_tokens *t, int64_t token_id)
{
    pthread_rwlock_wrlock(&t->lock);
    atomic_fetch_add(&t->generation, 1);
    for (size_t i = 0; i < SETS * WAYS; i++) {
        struct entry *e = &t->entries[i / WAYS][i % WAYS];
        if (token_id == 0 || e->who.token_id == token_id) e->good_until_us = 0;
    }
    pthread_rwlock_unlock(&t->lock);
}

void rp_tokens_drop(struct rp_tokens *t, const uint8_t hash[RP_DIGEST_BYTES])
{
    pthread_rwlock_wrlock(&t->lock);
    struct entry *e = find(t, hash);
    if (e != NULL) e->good_until_us = 0;
    pthread_rwlock_unlock(&t->lock);
}

/* The count of an address: an IPv4 one, or the network of an IPv6 one, of which a guesser has as
 * many as it likes. */
static _Atomic int64_t *failures_of(struct rp_tokens *t, const struct sockaddr *from)
{
    uint64_t address = 0;
    if (from->sa_family == AF_INET)
        memcpy(&address, &((const struct sockaddr_in *)(const void *)from)->sin_addr, sizeof(struct in_addr));
    else if (from->sa_family == AF_INET6)
        memcpy(&address, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, sizeof address);
    address = (address ^ t->seed) * UINT64_C(0x9e3779b97f4a7c15);
    return &t->failures_us[(address ^ address >> 32) % ADDRESSES];
}

bool rp_tokens_failed(struct rp_tokens *t, const struct sockaddr *from)
{
    return take(failures_of(t, from), FAILURE_US, rp_monotonic_us());
}

void rp_principal_of(const struct rp_token *token, struct rp_principal *out)
{
    *out = (struct rp_principal){ .token_id = token->id,
                                  .tenant_id = token->tenant_id,
                                  .expires_at_ms = token->expires_at_ms,
                                  .scopes = token->scopes };
    (void)snprintf(out->tenant, sizeof out->tenant, "%s", token->tenant);
    (void)snprintf(out->actor, sizeof out->actor, "token:%s", token->name);
}
