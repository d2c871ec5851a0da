/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/url_key.h"

#include "base/error.h"

#include <string.h>
#include <sys/random.h>

#define URL_KEY "url_key"

struct keying {
    char fresh[RP_DIGEST_HEX];
    char key[RP_DIGEST_HEX];
};

static int key_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct keying *k = ctx;
    int64_t number;
    int r = rp_meta_fill(tx->db, URL_KEY, k->fresh, err);
    return r < 0 ? r : rp_meta_get(tx->db, URL_KEY, &number, k->key, sizeof k->key, err);
}

static int make_key(struct rp_catalog *catalog, struct keying *k, struct rp_error *err)
{
    uint8_t random[RP_DIGEST_BYTES];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return rp_error_set(err, RP_EFAILED, "no random numbers");
    rp_digest_hex(random, k->fresh);
    return rp_catalog_transact(catalog, key_tx, k, err);
}

int rp_url_key(struct rp_catalog *catalog, char out[RP_DIGEST_HEX], struct rp_error *err)
{
    struct keying k;
    int64_t number;
    int r = rp_meta_get(catalog->db, URL_KEY, &number, k.key, sizeof k.key, err);
    if (r == 0 && k.key[0] == 0) r = make_key(catalog, &k, err);
    if (r < 0) return rp_error_wrap(err, r, "the key of URLs");
    memcpy(out, k.key, RP_DIGEST_HEX);
    return 0;
}
