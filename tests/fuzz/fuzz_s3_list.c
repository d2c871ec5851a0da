/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a page of a listing, of objects and versions or of uploads, escaped or not: read
 * whole, with keys that are keys, or refused with nothing handed over. */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/text/utf8.h"
#include "store/s3/xml/xml.h"

/* A text as an answer. */
#define TEXT(xml, n) (&(struct rp_buf){ .data = (char *)(uintptr_t)(xml), .len = (n) })

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_key(const char *key)
{
    const size_t n = strlen(key);
    RP_ASSERT(n > 0 && n <= RP_KEY_MAX && rp_utf8_valid(key, n));
}

static int check_listed(void *ctx, const struct s3_listed *listed, struct rp_error *err)
{
    const struct rp_identity *id = &listed->entry.identity;
    (void)err;
    ++*(size_t *)ctx;
    check_key(listed->entry.key);
    RP_ASSERT(memchr(id->etag, '\0', sizeof id->etag) && memchr(id->version, '\0', sizeof id->version));
    RP_ASSERT(strcmp(id->version, "null") != 0);
    RP_ASSERT(id->size_bytes >= 0 && id->modified_ms >= 0 && id->modified_ms % 1000 == 0);
    RP_ASSERT(!listed->is_marker || (id->size_bytes == 0 && *id->etag == '\0'));
    return 0;
}

static int check_partial(void *ctx, const struct rp_partial *partial, struct rp_error *err)
{
    (void)err;
    ++*(size_t *)ctx;
    check_key(partial->key);
    RP_ASSERT(*partial->upload != '\0' && strlen(partial->upload) < S3_UPLOAD_MAX);
    return 0;
}

static void check_end(int r, size_t n, const struct s3_page *page, const struct rp_error *err)
{
    RP_ASSERT(r == 0 || (r == RP_ECORRUPT && *err->text != '\0' && n == 0));
    if (r < 0) return;
    RP_ASSERT(page->n == n && (!page->truncated || *page->next != '\0'));
    RP_ASSERT(memchr(page->next, '\0', sizeof page->next) && memchr(page->next_id, '\0', sizeof page->next_id));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct s3_page page;
    struct rp_error err = { 0 };
    size_t n = 0;
    int r = rp_s3_read_list(TEXT(data, size), check_listed, &n, &page, &err);
    check_end(r, n, &page, &err);
    n = 0;
    r = rp_s3_read_partials(TEXT(data, size), check_partial, &n, &page, &err);
    check_end(r, n, &page, &err);
    return 0;
}
