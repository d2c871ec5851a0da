/* SPDX-License-Identifier: Apache-2.0 */
#include "http/content/signed_url.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/id.h"
#include "base/text/hex.h"
#include "base/time.h"

#define MESSAGE_BYTES 4096 /* key and content type are bounded far below it */
#define SIGNATURE_HEX (RP_DIGEST_HEX - 1)

struct rp_grant rp_grant_of(const char *method, const struct rp_file *file, const char *store, int64_t expires_at_ms)
{
    return (struct rp_grant){
        .method = method,
        .file_id = file->id,
        .store = store,
        .key = file->key,
        .size_bytes = file->size_bytes,
        .content_type = file->content_type != NULL ? file->content_type : "",
        .checksum = file->checksum,
        .expires_at_ms = expires_at_ms,
    };
}

struct message {
    uint8_t bytes[MESSAGE_BYTES];
    size_t n;
    bool full;
};

/* Each with its length before it, so that two grants never give the same bytes. */
static void add(struct message *m, const void *bytes, size_t n)
{
    if (m->full || n > UINT16_MAX || sizeof m->bytes - m->n < n + 2) {
        m->full = true;
        return;
    }
    m->bytes[m->n++] = (uint8_t)(n >> 8);
    m->bytes[m->n++] = (uint8_t)n;
    memcpy(m->bytes + m->n, bytes, n);
    m->n += n;
}

static void add_int(struct message *m, int64_t value)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> (56 - 8 * i));
    add(m, bytes, sizeof bytes);
}

static bool write_message(const struct rp_grant *grant, struct message *m)
{
    static const char what[] = "reprieve url 1";
    m->n = 0;
    m->full = false;
    add(m, what, sizeof what - 1);
    add(m, grant->method, strlen(grant->method));
    add_int(m, grant->file_id);
    add(m, grant->store, strlen(grant->store));
    add(m, grant->key, strlen(grant->key));
    add_int(m, grant->size_bytes);
    add(m, grant->content_type, strlen(grant->content_type));
    add(m, grant->checksum != NULL ? grant->checksum : (const uint8_t *)"-",
        grant->checksum != NULL ? RP_DIGEST_BYTES : 1);
    add_int(m, grant->expires_at_ms);
    return !m->full;
}

static bool read_key(const char *hex, uint8_t out[RP_DIGEST_BYTES])
{
    return hex && strlen(hex) == SIGNATURE_HEX && rp_hex_read(hex, RP_DIGEST_BYTES, out);
}

int rp_grant_sign(const struct rp_grant *grant, const char *key, char out[RP_DIGEST_HEX], struct rp_error *err)
{
    struct message m;
    uint8_t secret[RP_DIGEST_BYTES], mac[RP_DIGEST_BYTES];
    RP_ASSERT(strcmp(grant->method, "PUT") == 0 || strcmp(grant->method, "GET") == 0);
    if (!read_key(key, secret)) return rp_error_set(err, RP_ECONFIG, "the key that signs URLs is not 64 hex digits");
    if (!write_message(grant, &m)) return rp_error_set(err, RP_ETOOBIG, "a name is too long for a signed URL");
    int r = rp_hmac(secret, sizeof secret, m.bytes, m.n, mac);
    OPENSSL_cleanse(secret, sizeof secret);
    if (r < 0) return rp_error_set(err, r, "no memory to sign a URL");
    rp_digest_hex(mac, out);
    return 0;
}

/* Every key is tried, so that the time does not say which one fits. */
bool rp_grant_verify(const struct rp_grant *grant, const char *const *keys, size_t n_keys, const char *signature)
{
    bool valid = false, shaped = signature != NULL && strlen(signature) == SIGNATURE_HEX;
    for (size_t i = 0; i < n_keys; i++) {
        char right[RP_DIGEST_HEX];
        if (rp_grant_sign(grant, keys[i], right, NULL) < 0) continue;
        valid |= CRYPTO_memcmp(right, shaped ? signature : "", shaped ? SIGNATURE_HEX : 0) == 0 && shaped;
    }
    return valid;
}

const char *rp_url_base(const struct rp_config *config, const char *address, struct rp_arena *arena)
{
    return rp_config_base_url(config, address, arena);
}

int rp_signed_url(const struct rp_grant *grant, const char *base, const char *key, struct rp_arena *arena,
                  const char **out, struct rp_error *err)
{
    char signature[RP_DIGEST_HEX], id[RP_ID_TEXT];
    const char *folder = strcmp(grant->method, "PUT") == 0 ? "uploads" : "content";
    int r = rp_grant_sign(grant, key, signature, err);
    if (r < 0) return r;
    const char *url = rp_arena_fmt(arena, "%s/v1/%s/%s?expires=%" PRId64 "&signature=%s", base, folder,
                                   rp_id_format(RP_ID_FILE, grant->file_id, id), grant->expires_at_ms, signature);
    if (url == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a signed URL");
    *out = url;
    return 0;
}
