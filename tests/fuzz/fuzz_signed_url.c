/* SPDX-License-Identifier: Apache-2.0 */
/* What stands in signed URLs and in the headers around a file's bytes. The first byte chooses: a
 * signature and the grant that it is held against, or a header. No signature but the right one
 * fits; a range lies within its object; no name breaks out of its header. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "http/content/headers.h"
#include "http/content/signed_url.h"

static const char key[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The texts up to the next NUL, one after the other; "" when there is none left. */
static char *next_text(char **at, const char *end)
{
    char *text = *at;
    size_t n = strlen(text);
    *at = text + n < end ? text + n + 1 : text + n;
    return text;
}

static void try_grant(char *text, const char *end)
{
    const char *signature = next_text(&text, end), *const keys[] = { key };
    struct rp_grant grant = { .method = strlen(signature) % 2 ? "PUT" : "GET", .expires_at_ms = (int64_t)strlen(text) };
    grant.store = next_text(&text, end);
    grant.key = next_text(&text, end);
    grant.content_type = next_text(&text, end);
    char right[RP_DIGEST_HEX];
    bool possible = rp_grant_sign(&grant, key, right, NULL) == 0;
    RP_ASSERT(rp_grant_verify(&grant, keys, 1, signature) == (possible && strcmp(signature, right) == 0));
    if (!possible) return;
    RP_ASSERT(rp_grant_verify(&grant, keys, 1, right));
    grant.size_bytes ^= 1;
    RP_ASSERT(!rp_grant_verify(&grant, keys, 1, right));
}

static void try_range(const char *text, int64_t size)
{
    int64_t first, length;
    enum rp_range_kind kind = rp_range_parse(text, size, &first, &length);
    RP_ASSERT(first >= 0 && length >= 0 && first <= size && length <= size - first);
    RP_ASSERT(kind != RP_RANGE_PART || length > 0);
    RP_ASSERT(kind == RP_RANGE_PART || (first == 0 && length == size));
}

static void try_header(const char *text)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(65536);
    const char *shown = rp_disposition(text, &arena);
    RP_ASSERT(shown && strncmp(shown, "attachment", 10) == 0 && strlen(shown) < 2048);
    size_t quotes = 0;
    for (const char *p = shown; *p; p++) {
        RP_ASSERT(*p >= 0x20 && *p < 0x7f);
        quotes += *p == '"';
    }
    RP_ASSERT(quotes == 0 || quotes == 2);
    for (const char *p = rp_content_type_safe(text); *p; p++)
        RP_ASSERT(*p >= 0x20 && *p < 0x7f);
    RP_ASSERT(rp_content_type_fits(text, text));
    if (rp_etag_same(text, "abc")) RP_ASSERT(rp_etag_listed(text, "abc"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2) return 0;
    RP_CLEANUP(rp_freep) char *text = malloc(n);
    RP_ASSERT(text);
    memcpy(text, data + 1, n - 1);
    text[n - 1] = '\0';
    switch (data[0] % 3) {
    case 0:
        try_grant(text, text + n - 1);
        break;
    case 1:
        try_range(text + 1, (uint8_t)text[0]);
        break;
    default:
        try_header(text);
        break;
    }
    return 0;
}
