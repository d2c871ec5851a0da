/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/clock.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/time.h"
#include "catalog/row.h"
#include "catalog/statements/statements.h"

#include <stdio.h>
#include <stdlib.h>

#define FOLLOW_PART 1000                /* of the time that passed: J4 */
#define NOTE_MS     (10 * RP_MINUTE_MS) /* what others read is no older, while this host writes at all */
#define HEARD_MS    (30 * RP_MINUTE_MS)
#define FORGET_MS   (90 * RP_DAY_MS)

static int64_t by_boot_ms(const struct rp_anchor *anchor, int64_t boot_ms)
{
    return anchor->wall_ms + (boot_ms - anchor->boot_ms);
}

static int64_t within(int64_t value, int64_t most)
{
    return value > most ? most : value < -most ? -most : value;
}

static int anchor_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct rp_anchor *anchor = ctx;
    (void)err;
    *anchor = (struct rp_anchor){
        .known = true, .boot_ms = row[0].i, .wall_ms = row[1].i, .ahead_ms = row[2].i, .noted_at_ms = row[3].i
    };
    return 0;
}

static int read_anchor(struct rp_catalog *catalog, struct rp_anchor *out, struct rp_error *err)
{
    const struct rp_clock *clock = catalog->clock;
    *out = (struct rp_anchor){ 0 };
    if (clock->boot == NULL) return 0;
    struct rp_value id = rp_text(clock->boot(clock->ctx)->id);
    int r = rp_db_query(catalog->db, RP_SQL(clock_get), &id, anchor_row, out, err);
    return r < 0 ? rp_error_wrap(err, r, "read what the clocks said") : 0;
}

static void remember(const struct rp_clock *clock, const struct rp_anchor *anchor)
{
    if (anchor->known && clock->booted_at_ms != NULL)
        __atomic_store_n(clock->booted_at_ms, anchor->wall_ms - anchor->boot_ms, __ATOMIC_RELAXED);
}

int rp_clock_load(struct rp_catalog *catalog, struct rp_error *err)
{
    struct rp_anchor anchor;
    if (catalog->clock->booted_at_ms == NULL) return 0;
    int r = read_anchor(catalog, &anchor, err);
    if (r == 0) remember(catalog->clock, &anchor);
    return r;
}

int rp_clock_look(struct rp_catalog *catalog, struct rp_clock_state *out, struct rp_error *err)
{
    const struct rp_clock *clock = catalog->clock;
    struct rp_clock_state state = { 0 };
    struct rp_anchor anchor;
    int r = read_anchor(catalog, &anchor, err);
    if (r == 0) r = rp_db_now_ms(catalog->db, &state.db_ms, err);
    if (r < 0) return r;
    state.known = anchor.known;
    state.wall_ms = state.by_boot_ms = rp_clock_wall_ms(clock);
    state.boot_ms = rp_clock_boot_ms(clock);
    if (anchor.known) state.by_boot_ms = by_boot_ms(&anchor, state.boot_ms);
    state.ahead_ms = state.wall_ms - state.by_boot_ms;
    *out = state;
    return 0;
}

int rp_clock_refuse(int64_t ahead_ms, struct rp_error *err)
{
    char by[RP_TIME_TEXT];
    if (!rp_clock_has_jumped(ahead_ms)) return 0;
    rp_error_set(err, RP_ECLOCK,
                 "the clock of this host jumped: it is %s ahead of the time that has passed since its boot. Nothing is "
                 "purged until it is set right or, if it is right now, until `reprieve clock accept`",
                 rp_duration_format(ahead_ms / RP_SECOND_MS * RP_SECOND_MS, by));
    return rp_error_hint(err, "set the clock right or, if it is right now, run `reprieve clock accept`");
}

/* ---- for the transaction ---- */

/* What this process knows already counts more than what the wall clock says now: the catalog may
 * have lost its row. */
int rp_clock_make(struct rp_catalog *catalog, struct rp_error *err)
{
    const struct rp_clock *clock = catalog->clock;
    if (catalog->clock_known || clock->boot == NULL) return 0;
    const struct rp_boot *boot = clock->boot(clock->ctx);
    int64_t now_ms = rp_clock_now_ms(clock);
    struct rp_value args[] = { rp_text(boot->id), rp_text(boot->host), rp_int(rp_clock_boot_ms(clock)), rp_int(now_ms),
                               rp_int(now_ms) };
    struct rp_value before = rp_int(now_ms - FORGET_MS);
    int64_t made = 0;
    int r = rp_db_exec(catalog->db, RP_SQL(clock_make), args, &made, err);
    if (r == 0 && made > 0) r = rp_db_exec(catalog->db, RP_SQL(clock_forget), &before, NULL, err);
    if (r < 0) return rp_error_wrap(err, r, "note what the clocks say");
    catalog->clock_known = true;
    return 0;
}

static int64_t earliest(int64_t a, int64_t b, int64_t c)
{
    int64_t least = a < b ? a : b;
    return least < c ? least : c;
}

static int64_t latest(int64_t a, int64_t b, int64_t c)
{
    int64_t most = a > b ? a : b;
    return most > c ? most : c;
}

/* J2 and J3. */
static void judge(struct rp_tx *tx, int64_t db_ms)
{
    int64_t boot_time_ms = tx->anchor.known ? by_boot_ms(&tx->anchor, tx->boot_ms) : tx->wall_ms;
    tx->ahead_ms = tx->wall_ms - boot_time_ms;
    tx->host_ms = tx->wall_ms;
    tx->db_ms = db_ms;
    if (llabs(tx->ahead_ms) <= RP_CLOCKS_APART_MS) boot_time_ms = tx->wall_ms;
    if (rp_clock_has_jumped(tx->ahead_ms)) {
        tx->host_ms = boot_time_ms;
        if (rp_clock_has_jumped(db_ms - boot_time_ms)) tx->db_ms = boot_time_ms;
    }
    tx->late_ms = latest(tx->host_ms, tx->db_ms, boot_time_ms);
    tx->early_ms = earliest(tx->host_ms, tx->db_ms, boot_time_ms);
}

int rp_clock_judge(struct rp_tx *tx, struct rp_error *err)
{
    const struct rp_clock *clock = tx->catalog->clock;
    int64_t db_ms = tx->db_ms;
    /* in this order: a process that was stopped in between sees a boot clock that is ahead,
     * which is no jump */
    tx->wall_ms = rp_clock_wall_ms(clock);
    tx->boot_ms = rp_clock_boot_ms(clock);
    judge(tx, db_ms);
    if (rp_clock_has_jumped(tx->ahead_ms)) {
        int r = read_anchor(tx->catalog, &tx->anchor, err);
        if (r < 0) return r;
        judge(tx, db_ms);
    }
    tx->catalog->clock_known = tx->anchor.known; /* else it is made before the next one */
    remember(clock, &tx->anchor);
    return 0;
}

int rp_clock_note(struct rp_tx *tx, struct rp_error *err)
{
    const struct rp_clock *clock = tx->catalog->clock;
    struct rp_anchor *a = &tx->anchor;
    bool changed = llabs(tx->ahead_ms - a->ahead_ms) > RP_MINUTE_MS;
    if (!a->known || (!changed && llabs(tx->late_ms - a->noted_at_ms) < NOTE_MS)) return 0;
    int64_t boot_ms = a->boot_ms, wall_ms = a->wall_ms;
    if (llabs(tx->ahead_ms) <= RP_CLOCKS_APART_MS) { /* J4 */
        boot_ms = tx->boot_ms;
        wall_ms = by_boot_ms(a, boot_ms) + within(tx->ahead_ms, (boot_ms - a->boot_ms) / FOLLOW_PART);
    }
    struct rp_value args[] = { rp_text(clock->boot(clock->ctx)->id),
                               rp_int(boot_ms),
                               rp_int(wall_ms),
                               rp_int(tx->ahead_ms),
                               rp_int(tx->late_ms),
                               rp_int(a->boot_ms),
                               rp_int(a->noted_at_ms) };
    int r = rp_db_exec(tx->db, RP_SQL(clock_note), args, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "note what the clocks say") : 0;
}

/* ---- all hosts ---- */

struct worst {
    int64_t ahead_ms;
    char *host;
};

static int worst_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct worst *w = ctx;
    (void)err;
    if (row[0].i <= 0) return 0;
    w->ahead_ms = row[0].i;
    snprintf(w->host, 64, "%.*s", (int)row[1].n, (const char *)row[1].p);
    return 0;
}

int rp_clock_worst(struct rp_db *db, int64_t now_ms, int64_t *ahead_ms, char host[64], struct rp_error *err)
{
    struct rp_value since = rp_int(now_ms - HEARD_MS);
    struct worst worst = { .host = host };
    host[0] = 0;
    int r = rp_db_query(db, RP_SQL(clock_worst), &since, worst_row, &worst, err);
    if (r < 0) return rp_error_wrap(err, r, "read what the clocks said");
    *ahead_ms = worst.ahead_ms;
    return 0;
}

/* ---- to accept the time ---- */

static int count_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    int64_t *counts = ctx;
    (void)err;
    counts[0] = row[0].i;
    counts[1] = row[1].i;
    return 0;
}

int rp_clock_count_due(struct rp_db *db, int64_t store_id, int64_t from_ms, int64_t to_ms, int64_t *due,
                       int64_t *counted_before, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(store_id), rp_int(from_ms), rp_int(to_ms) };
    int64_t counts[2] = { 0 };
    int r = rp_db_query(db, RP_SQL(mark_made_due), args, count_row, counts, err);
    if (r < 0) return rp_error_wrap(err, r, "count what a jump makes due");
    *due = counts[0];
    *counted_before = counts[1];
    return 0;
}

int rp_clock_marks(struct rp_tx *tx, int64_t store_id, int64_t from_ms, int64_t to_ms, struct rp_marks *out,
                   struct rp_error *err)
{
    struct rp_value args[] = { rp_int(store_id), rp_int(from_ms), rp_int(to_ms), rp_int((int64_t)(out->max - out->n)) };
    int r = rp_db_query(tx->db, RP_SQL(mark_to_move), args, rp_marks_row, out, err);
    return r < 0 ? rp_error_wrap(err, r, "look for what a jump makes due") : 0;
}

int rp_clock_set(struct rp_tx *tx, struct rp_error *err)
{
    const struct rp_clock *clock = tx->catalog->clock;
    RP_ASSERT(tx->anchor.known);
    int r = rp_db_query(tx->db, RP_SQL(lane_lock_all), NULL, rp_ignore_row, NULL, err);
    struct rp_value args[] = { rp_text(clock->boot(clock->ctx)->id), rp_int(tx->boot_ms), rp_int(tx->wall_ms),
                               rp_int(tx->late_ms) };
    if (r == 0) r = rp_db_exec(tx->db, RP_SQL(clock_set), args, NULL, err);
    if (r < 0) return rp_error_wrap(err, r, "take the clock for right");
    tx->ahead_ms = 0;
    tx->anchor =
        (struct rp_anchor){ .known = true, .boot_ms = tx->boot_ms, .wall_ms = tx->wall_ms, .noted_at_ms = tx->late_ms };
    return 0;
}
