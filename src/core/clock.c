/* SPDX-License-Identifier: Apache-2.0 */
#include "core/clock.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/audit/audit.h"
#include "core/due.h"
#include "core/state.h"

#include <stdlib.h>

#define PAGE         1000
#define STORES_ARENA ((size_t)1 << 20)

struct accepting {
    struct rp_clock_accept *accept;
    struct rp_store_rows stores;
    const struct rp_store_row *store; /* whose page is moved */
    int64_t moved;                    /* by the last transaction */
    bool more;
};

/* What is made while this goes on counts by the boot clock too: its limit is that of the
 * transaction. */
static int move_page(struct rp_tx *tx, struct accepting *a, const struct rp_store_row *store, struct rp_error *err)
{
    const struct rp_clock_state *before = &a->accept->before;
    const struct rp_state_by by = { .store = store->name, .actor = a->accept->actor };
    struct rp_extend *extends = rp_arena_array(tx->arena, PAGE, sizeof *extends);
    struct rp_marks marks;
    int r = rp_marks_init(&marks, PAGE, tx->arena, err);
    if (r == 0 && extends == NULL) r = rp_error_set(err, RP_ENOMEM, "no memory for %d marks", PAGE);
    if (r == 0) r = rp_clock_marks(tx, store->id, tx->host_ms, before->wall_ms, &marks, err);
    if (r < 0) return r;
    for (size_t i = 0; i < marks.n; i++) {
        struct rp_due due = { .by = RP_DUE_AFTER, .from_ms = marks.at[i].due_at_ms, .grace_ms = before->ahead_ms };
        extends[i] = (struct rp_extend){ .mark = &marks.at[i], .due_at_ms = rp_due(&due, tx->late_ms) };
    }
    r = rp_state_lock_tenants(tx, marks.at, marks.n, err);
    if (r == 0) r = rp_state_extend(tx, &by, extends, marks.n, err);
    for (size_t i = 0; i < marks.n && r == 0; i++)
        a->moved += extends[i].done;
    a->more = marks.n == PAGE;
    return r;
}

static int page_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct accepting *a = ctx;
    a->moved = 0;
    a->more = false;
    if (!rp_clock_has_jumped(tx->ahead_ms)) return 0; /* it is over: nothing is made due any more */
    return move_page(tx, a, a->store, err);
}

static int audit(struct rp_tx *tx, const struct accepting *a, int64_t moved, struct rp_error *err)
{
    const struct rp_clock_accept *accept = a->accept;
    const struct rp_clock *clock = tx->catalog->clock;
    const struct rp_boot *boot = clock->boot(clock->ctx);
    struct rp_audit_entry entry = { .event = "clock.accepted", .actor = accept->actor, .details = json_object() };
    rp_json_set(entry.details, "host", rp_json_text(boot->host));
    rp_json_set(entry.details, "boot", rp_json_text(boot->id));
    rp_json_set(entry.details, "time_before", rp_json_time(accept->before.by_boot_ms));
    rp_json_set(entry.details, "time", rp_json_time(accept->before.wall_ms));
    rp_json_set(entry.details, "ahead_ms", json_integer(accept->before.ahead_ms));
    rp_json_set(entry.details, "made_due", json_integer(accept->made_due));
    rp_json_set(entry.details, "moved", json_integer(moved));
    return rp_tx_audit(tx, &entry, err);
}

/* The rest of what is to be moved, and the end of the jump. */
static int end_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct accepting *a = ctx;
    bool jumped = rp_clock_has_jumped(tx->ahead_ms);
    a->moved = 0;
    int r = rp_clock_set(tx, err);
    for (size_t i = 0; jumped && !a->accept->as_is && i < a->stores.n; i++)
        do
            r = r == 0 ? move_page(tx, a, &a->stores.at[i], err) : r;
        while (r == 0 && a->more);
    return r < 0 ? r : audit(tx, a, a->accept->moved + a->moved, err);
}

static int count(struct rp_catalog *catalog, struct accepting *a, struct rp_error *err)
{
    struct rp_clock_accept *accept = a->accept;
    int r = 0;
    for (size_t i = 0; i < a->stores.n && r == 0; i++) {
        int64_t due = 0, counted_before = 0;
        r = rp_clock_count_due(catalog->db, a->stores.at[i].id, accept->before.by_boot_ms, accept->before.wall_ms, &due,
                               &counted_before, err);
        accept->made_due += due;
        if (accept->dry_run && !accept->as_is) accept->moved += counted_before;
    }
    return r;
}

int rp_clock_accept(struct rp_catalog *catalog, struct rp_clock_accept *accept, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(STORES_ARENA);
    struct accepting a = { .accept = accept };
    accept->made_due = accept->moved = 0;
    int r = rp_clock_look(catalog, &accept->before, err);
    if (r == 0) r = rp_store_list(catalog->db, &arena, &a.stores, err);
    if (r < 0) return rp_error_wrap(err, r, "accept the clock");
    accept->stands = llabs(accept->before.ahead_ms) > RP_CLOCKS_APART_MS;
    if (!accept->stands) return 0;
    r = count(catalog, &a, err);
    for (size_t i = 0; i < a.stores.n && !accept->as_is && !accept->dry_run; i++) {
        a.store = &a.stores.at[i];
        do {
            r = r == 0 ? rp_catalog_transact(catalog, page_tx, &a, err) : r;
            if (r == 0) accept->moved += a.moved;
        } while (r == 0 && a.more);
    }
    if (r == 0 && !accept->dry_run) {
        r = rp_catalog_transact(catalog, end_tx, &a, err);
        if (r == 0) accept->moved += a.moved;
    }
    return r < 0 ? rp_error_wrap(err, r, "accept the clock") : 0;
}
