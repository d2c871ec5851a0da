/* SPDX-License-Identifier: Apache-2.0 */
/* store_steps.h - what tests of the store port do over and over: put, get, stat, remove, list; each
 * checks itself. */
#ifndef RP_TESTS_STORE_STEPS_H
#define RP_TESTS_STORE_STEPS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "lib/bytes.h"
#include "store/open.h"

#define ok(call) must((call), &error, #call, __FILE__, __LINE__)

static inline void must(int r, const struct rp_error *err, const char *what, const char *file, int line)
{
    if (r >= 0) return;
    print_error("%s: %s (%s)\n", what, rp_error_slug(r), err->text);
    _fail(file, line);
}

static inline int put_bytes(struct rp_backend *s, const char *key, const char *text, size_t n,
                            const struct rp_meta *meta, int flags, struct rp_identity *out, struct rp_error *err)
{
    struct bytes b = { text, n };
    const struct rp_source from = { bytes_read, &b };
    return rp_backend_put(s, key, &from, meta, flags, out, err);
}

static inline struct rp_identity put_text(struct rp_backend *s, const char *key, const char *text)
{
    struct rp_error error = { 0 };
    struct rp_identity identity;
    ok(put_bytes(s, key, text, strlen(text), NULL, RP_PUT_REPLACE, &identity, &error));
    assert_int_equal(identity.size_bytes, strlen(text));
    return identity;
}

static inline int buf_write(void *ctx, const void *from, size_t n, struct rp_error *err)
{
    (void)err;
    return rp_buf_add(ctx, from, n);
}

static inline void expect_text(struct rp_backend *s, const char *key, const char *text)
{
    struct rp_error error = { 0 };
    struct rp_buf got = RP_BUF((size_t)64 << 20);
    const struct rp_sink to = { buf_write, &got };
    ok(rp_backend_get(s, key, &to, NULL, NULL, NULL, &error));
    assert_string_equal(rp_buf_text(&got), text);
    rp_buf_done(&got);
}

static inline void expect_absent(struct rp_backend *s, const char *key)
{
    struct rp_error error = { 0 };
    assert_int_equal(rp_backend_get(s, key, NULL, NULL, NULL, NULL, &error), RP_ENOTFOUND);
    struct rp_item item = { .key = key };
    ok(rp_backend_stat(s, &item, 1, &error));
    assert_int_equal(item.outcome, RP_OUT_GONE);
}

static inline struct rp_identity identity_of(struct rp_backend *s, const char *key)
{
    struct rp_error error = { 0 };
    struct rp_item item = { .key = key };
    ok(rp_backend_stat(s, &item, 1, &error));
    assert_int_equal(item.outcome, RP_OUT_FOUND);
    return item.identity;
}

static inline enum rp_outcome remove_one(struct rp_backend *s, const char *key, const struct rp_identity *identity)
{
    struct rp_error error = { 0 };
    struct rp_item item = { .key = key, .identity = *identity };
    ok(rp_backend_remove(s, &item, 1, NULL, &error));
    return item.outcome;
}

/* Keys of a listing, one a line, checked to be in order and each once. */
struct listing {
    struct rp_buf text;
    char last[RP_KEY_MAX + 1];
    size_t n, stop_after;
};

static inline int listing_add(void *ctx, const struct rp_entry *entry, struct rp_error *err)
{
    struct listing *l = ctx;
    (void)err;
    if (l->n > 0) assert_true(strcmp(l->last, entry->key) < 0);
    snprintf(l->last, sizeof l->last, "%s", entry->key);
    l->n++;
    rp_buf_str(&l->text, entry->key);
    rp_buf_char(&l->text, '\n');
    return l->n == l->stop_after ? 1 : 0;
}

static inline void expect_list(struct rp_backend *s, const char *prefix, const char *after, const char *lines)
{
    struct rp_error error = { 0 };
    struct listing l = { .text = RP_BUF((size_t)16 << 20) };
    ok(rp_backend_list(s, prefix, after, listing_add, &l, &error));
    assert_string_equal(rp_buf_text(&l.text), lines);
    rp_buf_done(&l.text);
}

static inline int tree_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)ftw;
    return type == FTW_DP ? rmdir(path) : unlink(path);
}

static inline void tree_remove(const char *path)
{
    nftw(path, tree_remove_one, 32, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static inline void tree_make(char *path, size_t size, const char *parent)
{
    snprintf(path, size, "%s/rp-store-XXXXXX", parent);
    assert_non_null(mkdtemp(path));
}

#endif
