/* SPDX-License-Identifier: Apache-2.0 */
/* auth.h - the tokens that were seen lately, so that a request with a known one asks nobody.
 *
 * A1  What is kept is the SHA-256 of a secret and whom it stands for; hashes are compared in
 *     constant time.
 * A2  A token that was forgotten is not found by any request that begins afterwards; a look-up in
 *     the catalog that began before is not put in. Every half minute one request asks the catalog
 *     again, so that a lost notice heals; meanwhile, and for five minutes while nobody can be
 *     asked, the others go on.
 * A3  The number of entries is bounded; the one in the way goes.
 * A4  Requests a second are counted for each token, and failed credentials for each address that
 *     they come from. They are looked up first: many may share an address, and a guesser locks
 *     nobody out. */
#ifndef RP_HTTP_SERVER_AUTH_H
#define RP_HTTP_SERVER_AUTH_H

#include "catalog/token.h"
#include "http/server/request.h"

struct rp_tokens;

#define RP_FAILURES_PER_SECOND 50

int rp_tokens_new(int64_t requests_per_second, struct rp_tokens **out, struct rp_error *err);
void rp_tokens_limit(struct rp_tokens *tokens, int64_t requests_per_second); /* from now on; 0: no limit. Any thread. */
void rp_tokens_free(struct rp_tokens *tokens);

enum rp_token_found {
    RP_TOKEN_UNKNOWN, /* ask the catalog */
    RP_TOKEN_FOUND,
    RP_TOKEN_STALE,  /* found, and this request is the one that asks the catalog again (A2) */
    RP_TOKEN_LIMITED /* found, but too many requests */
};
/* `now_us` by the monotonic clock, `now_ms` by the wall clock: for expiry. */
enum rp_token_found rp_tokens_find(struct rp_tokens *tokens, const uint8_t hash[RP_DIGEST_BYTES], int64_t now_us,
                                   int64_t now_ms, struct rp_principal *out);

/* To be taken before the catalog is asked, and given back with what it said (A2). */
uint64_t rp_tokens_ticket(struct rp_tokens *tokens);
void rp_tokens_put(struct rp_tokens *tokens, uint64_t ticket, const uint8_t hash[RP_DIGEST_BYTES], int64_t now_us,
                   const struct rp_token *token);
void rp_tokens_drop(struct rp_tokens *tokens, const uint8_t hash[RP_DIGEST_BYTES]); /* the catalog knows it no more */
void rp_tokens_forget(struct rp_tokens *tokens, int64_t token_id);                  /* 0: all */

/* Counts a failure; false: there were too many from this address. */
struct sockaddr;
bool rp_tokens_failed(struct rp_tokens *tokens, const struct sockaddr *from);

void rp_principal_of(const struct rp_token *token, struct rp_principal *out);

#endif
