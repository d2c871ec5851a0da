/* SPDX-License-Identifier: Apache-2.0 */
/* newest.c - the audit log, newest first. Lanes have no common order: their ends are merged by
 * time. */
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "catalog/audit/audit.h"

#include <stdlib.h>

#define CHUNK       64                 /* rows of a lane that are read together */
#define CHUNK_BYTES ((size_t)64 << 20) /* of their texts */

struct lane {
    struct rp_audit_head *at;
    struct rp_arena arena;
    struct rp_audit_row rows[CHUNK]; /* oldest first */
    size_t n;
};

struct newest {
    struct rp_db *db;
    struct lane *lanes;
    size_t n;
};

static void newest_done(struct newest *newest)
{
    for (size_t i = 0; newest->lanes != NULL && i < newest->n; i++)
        rp_arena_done(&newest->lanes[i].arena);
    free(newest->lanes);
}

static int take_row(void *ctx, const struct rp_audit_row *row, struct rp_error *err)
{
    struct lane *lane = ctx;
    if (row->seq > lane->at->seq || lane->n == CHUNK) return 0;
    return rp_audit_row_keep(row, &lane->arena, &lane->rows[lane->n++], err);
}

/* A lane whose rows end here has nothing older. */
static int refill(struct rp_db *db, struct lane *lane, struct rp_error *err)
{
    size_t n;
    if (lane->n > 0 || lane->at->seq <= 0) return 0;
    rp_arena_reset(&lane->arena);
    int64_t after = lane->at->seq > CHUNK ? lane->at->seq - CHUNK : 0;
    int r = rp_audit_tail(db, lane->at->lane, after, CHUNK, take_row, lane, &n, err);
    if (r == 0 && lane->n == 0) lane->at->seq = 0;
    return r;
}

/* The lane whose last row is the newest; NULL: nothing is left. */
static int find_newest(struct newest *newest, struct lane **out, struct rp_error *err)
{
    int r = 0;
    *out = NULL;
    for (size_t i = 0; i < newest->n && r == 0; i++) {
        struct lane *lane = &newest->lanes[i];
        r = refill(newest->db, lane, err);
        if (r < 0 || lane->n == 0) continue;
        if (*out == NULL || lane->rows[lane->n - 1].at_ms > (*out)->rows[(*out)->n - 1].at_ms) *out = lane;
    }
    return r;
}

int rp_audit_newest(struct rp_db *db, struct rp_audit_head *at, size_t n, size_t max, rp_audit_fn *fn, void *ctx,
                    struct rp_error *err)
{
    RP_CLEANUP(newest_done) struct newest newest = { .db = db, .lanes = calloc(n + 1, sizeof(struct lane)), .n = n };
    struct lane *lane = NULL;
    if (newest.lanes == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the audit log");
    for (size_t i = 0; i < n; i++) {
        newest.lanes[i].at = &at[i];
        newest.lanes[i].arena = RP_ARENA(CHUNK_BYTES);
    }
    int r = find_newest(&newest, &lane, err);
    for (size_t given = 0; r == 0 && lane != NULL && given < max; given++) {
        const struct rp_audit_row *row = &lane->rows[--lane->n];
        lane->at->seq = row->seq - 1;
        r = fn(ctx, row, err);
        if (r == 0) r = find_newest(&newest, &lane, err);
    }
    return r;
}
