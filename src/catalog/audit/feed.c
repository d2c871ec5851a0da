/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/audit/feed.h"

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "catalog/row.h"
#include "catalog/statements/statements.h"

#include <stdio.h>

#define READERS_PAGE 64
#define NAMES_MAX    ((size_t)1 << 20) /* bytes, of all readers */

struct loading {
    struct rp_audit_head *out;
    size_t n, max;
};

static int cursor_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct loading *l = ctx;
    if (l->n == l->max) return rp_error_set(err, RP_ETOOBIG, "more than %zu lanes", l->max);
    l->out[l->n++] = (struct rp_audit_head){ .lane = row[0].i, .seq = row[1].i };
    return 0;
}

int rp_feed_cursor_load(struct rp_db *db, const char *reader, struct rp_audit_head *out, size_t max, size_t *n,
                        struct rp_error *err)
{
    struct rp_value name = rp_text(reader);
    struct loading loading = { .out = out, .max = max };
    int r = rp_db_query(db, RP_SQL(feed_cursor_load), &name, cursor_row, &loading, err);
    if (r < 0) return rp_error_wrap(err, r, "load the cursor of reader '%s'", reader);
    *n = loading.n;
    return 0;
}

int rp_feed_cursor_save(struct rp_tx *tx, const char *reader, const struct rp_audit_head *at, size_t n,
                        struct rp_error *err)
{
    struct rp_value name = rp_text(reader);
    struct rp_rows rows = rp_rows_of(RP_SQL(feed_cursor_save), tx->arena, n);
    for (size_t i = 0; i < n; i++)
        rp_rows_add(&rows, RP_ROW(rp_int(at[i].lane), rp_int(at[i].seq)));
    int r = rp_rows_exec(&rows, tx->db, &name, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "save the cursor of reader '%s'", reader) : 0;
}

/* ---- lag ---- */

static int lag_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct rp_feed_lag *lag = ctx;
    (void)err;
    lag->rows += row[0].i;
    if (row[1].i != 0 && (lag->oldest_at_ms == 0 || row[1].i < lag->oldest_at_ms)) lag->oldest_at_ms = row[1].i;
    return 0;
}

static int begun_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    (void)row;
    (void)err;
    *(bool *)ctx = true;
    return 0;
}

int rp_feed_lag(struct rp_db *db, const char *reader, struct rp_feed_lag *out, struct rp_error *err)
{
    struct rp_value name = rp_text(reader);
    struct rp_feed_lag lag = { 0 };
    int r = rp_db_query(db, RP_SQL(feed_cursor_load), &name, begun_row, &lag.begun, err);
    if (r == 0 && lag.begun) r = rp_db_query(db, RP_SQL(feed_lag), &name, lag_row, &lag, err);
    if (r < 0) return rp_error_wrap(err, r, "how far reader '%s' is behind", reader);
    *out = lag;
    return 0;
}

/* ---- readers that there are ---- */

struct readers {
    struct rp_arena *arena;
    const char *names[READERS_PAGE];
    size_t n;
};

static int reader_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct readers *page = ctx;
    page->names[page->n] = rp_arena_strdup(page->arena, row[0].p);
    if (page->names[page->n] == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    page->n++;
    return 0;
}

int rp_feed_readers(struct rp_db *db, rp_feed_reader_fn *fn, void *ctx, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena names = RP_ARENA(NAMES_MAX);
    struct readers page = { .arena = &names };
    const char *after = "";
    int r = 0;
    do {
        struct rp_value args[] = { rp_text(after), rp_int(READERS_PAGE) };
        page.n = 0;
        r = rp_db_query(db, RP_SQL(feed_readers), args, reader_row, &page, err);
        if (r < 0) rp_error_wrap(err, r, "look for readers of the audit log");
        for (size_t i = 0; i < page.n && r == 0; i++)
            r = fn(ctx, page.names[i], err);
        if (page.n > 0) after = page.names[page.n - 1];
    } while (r == 0 && page.n == READERS_PAGE);
    return r;
}

int rp_feed_reader_forget(struct rp_tx *tx, const char *reader, int64_t before_ms, bool *forgotten,
                          struct rp_error *err)
{
    struct rp_value args[] = { rp_text(reader), rp_int(before_ms) };
    struct rp_feed_lease lease;
    int64_t removed = 0;
    *forgotten = false;
    int r = rp_feed_lease_get(tx->db, reader, &lease, err);
    if (r < 0) return r;
    r = rp_db_exec(tx->db, RP_SQL(feed_lease_remove), args, &removed, err);
    bool held = lease.fence != 0 && removed == 0; /* or taken in this moment */
    if (r == 0 && !held) r = rp_db_exec(tx->db, RP_SQL(feed_cursor_remove), args, NULL, err);
    if (r < 0) return rp_error_wrap(err, r, "forget reader '%s'", reader);
    *forgotten = !held;
    return 0;
}

/* ---- leases ---- */

static int lease_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct rp_feed_lease *lease = ctx;
    (void)err;
    snprintf(lease->holder, sizeof lease->holder, "%s", row[0].p);
    lease->fence = row[1].i;
    lease->until_ms = row[2].i;
    return 0;
}

int rp_feed_lease_get(struct rp_db *db, const char *reader, struct rp_feed_lease *out, struct rp_error *err)
{
    struct rp_value name = rp_text(reader);
    *out = (struct rp_feed_lease){ 0 };
    int r = rp_db_query(db, RP_SQL(feed_lease_get), &name, lease_row, out, err);
    return r < 0 ? rp_error_wrap(err, r, "the lease of reader '%s'", reader) : 0;
}

int rp_feed_lease_take(struct rp_tx *tx, const char *reader, const char *holder, int64_t lease_ms, int64_t *fence,
                       struct rp_error *err)
{
    struct rp_value args[] = { rp_text(reader), rp_text(holder), rp_int(tx->db_ms), rp_int(tx->db_ms + lease_ms) };
    struct rp_feed_lease lease = { 0 };
    int64_t changed = 0;
    *fence = 0;
    int r = rp_db_exec(tx->db, RP_SQL(feed_lease_take), args, &changed, err);
    if (r == 0 && changed > 0) r = rp_feed_lease_get(tx->db, reader, &lease, err);
    if (r < 0) return rp_error_wrap(err, r, "take the lease of reader '%s'", reader);
    *fence = lease.fence;
    return 0;
}

int rp_feed_lease_renew(struct rp_tx *tx, const char *reader, int64_t fence, int64_t lease_ms, bool *held,
                        struct rp_error *err)
{
    struct rp_value args[] = { rp_text(reader), rp_int(fence), rp_int(tx->db_ms + lease_ms) };
    int64_t changed = 0;
    int r = rp_db_exec(tx->db, RP_SQL(feed_lease_renew), args, &changed, err);
    if (r < 0) return rp_error_wrap(err, r, "renew the lease of reader '%s'", reader);
    *held = changed > 0;
    return 0;
}
