/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the answer to a multi-object delete, an error, a single text, or tags: read whole or
 * refused; and what was named as deleted can be written as a body and is the same key when it is
 * read again. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/text/utf8.h"
#include "store/s3/xml/xml.h"

/* A text as an answer. */
#define TEXT(xml, n) (&(struct rp_buf){ .data = (char *)(uintptr_t)(xml), .len = (n) })

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int same_key(void *ctx, const struct s3_deleted *deleted, struct rp_error *err)
{
    const struct s3_deleted *first = ctx;
    (void)err;
    RP_ASSERT(strcmp(deleted->key, first->key) == 0 && strcmp(deleted->version, first->version) == 0);
    return 1;
}

/* "<Delete ...><Object>...</Object></Delete>" is, but for its names, what a server answers. */
static void check_written(const struct s3_deleted *deleted)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf body = RP_BUF(65536), answer = RP_BUF(65536);
    struct rp_item item = { .key = deleted->key };
    struct rp_error err = { 0 };
    memcpy(item.identity.version, deleted->version, strlen(deleted->version) + 1);
    RP_ASSERT(rp_s3_write_delete(&body, (struct rp_item *const[]){ &item }, 1, true, false, &err) == 0);
    const char *begin = strstr(rp_buf_text(&body), "<Key>"), *end = strstr(rp_buf_text(&body), "</Object>");
    RP_ASSERT(begin && end && end > begin);
    rp_buf_fmt(&answer, "<DeleteResult><Deleted>%.*s</Deleted></DeleteResult>", (int)(end - begin), begin);
    RP_ASSERT(rp_s3_read_deleted(&answer, same_key, (void *)(uintptr_t)deleted, &err) == 1);
}

static int check_deleted(void *ctx, const struct s3_deleted *deleted, struct rp_error *err)
{
    const size_t n = strlen(deleted->key);
    (void)err;
    RP_ASSERT(n > 0 && n <= RP_KEY_MAX && rp_utf8_valid(deleted->key, n));
    RP_ASSERT(strlen(deleted->version) < RP_VERSION_MAX && strcmp(deleted->version, "null") != 0);
    RP_ASSERT(*deleted->code != '\0' || *deleted->message == '\0');
    if (++*(size_t *)ctx <= 4) check_written(deleted);
    return 0;
}

static void check_fault(const char *xml, size_t n)
{
    struct s3_fault fault;
    rp_s3_read_fault(TEXT(xml, n), &fault);
    RP_ASSERT(rp_utf8_valid(fault.message, strlen(fault.message)) && strpbrk(fault.message, "\r\n\t") == NULL);
    RP_ASSERT(strlen(fault.code) < sizeof fault.code && strlen(fault.region) < sizeof fault.region &&
              strlen(fault.endpoint) < sizeof fault.endpoint);
}

static void check_tags(const char *xml, size_t n)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    RP_CLEANUP(rp_buf_done) struct rp_buf body = RP_BUF((size_t)4 << 20);
    struct rp_pair *pairs = NULL;
    size_t n_pairs = 0;
    struct rp_error err = { 0 };
    if (rp_s3_read_tags(TEXT(xml, n), &arena, &pairs, &n_pairs, &err) < 0) return;
    RP_ASSERT(n_pairs <= RP_META_MAX_PAIRS);
    RP_ASSERT(rp_s3_write_tags(&body, pairs, n_pairs, &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *xml = (const char *)data;
    struct rp_error err = { 0 };
    size_t n = 0;
    char text[64];
    int r = rp_s3_read_deleted(TEXT(xml, size), check_deleted, &n, &err);
    RP_ASSERT(r == 0 || (r == RP_ECORRUPT && n == 0));
    check_fault(xml, size);
    check_tags(xml, size);
    r = rp_s3_read_text(TEXT(xml, size), "CopyObjectResult", "ETag", text, sizeof text, &err);
    RP_ASSERT(r == 0 || r == RP_ECORRUPT || r == RP_EFAILED);
    return 0;
}
