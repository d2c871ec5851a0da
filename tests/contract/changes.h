/* SPDX-License-Identifier: Apache-2.0 */
/* changes.h - a change that keeps everything a transaction keeps, and what must be there after n of
 * them. */
#ifndef RP_TESTS_CHANGES_H
#define RP_TESTS_CHANGES_H

#include "base/text/json.h"
#include "catalog/audit/audit.h"
#include "lib/world.h"

struct change {
    int runs, fail_first, fail_code; /* the first runs of the function fail so */
    int64_t id;
};

/* Everything that a transaction keeps: an id, an audit row, a tally. */
static int make_change(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct change *c = ctx;
    c->runs++;
    c->id = rp_tx_new_id(tx);
    rp_tx_tally(tx, 1, RP_MARKED, 1, 10);
    struct rp_audit_entry entry = {
        .event = "test.changed", .actor = "tester", .mark_id = c->id, .details = json_pack("{s:i}", "run", c->runs)
    };
    int r = rp_tx_audit(tx, &entry, e);
    if (r < 0) return r;
    return c->runs <= c->fail_first ? rp_error_set(e, c->fail_code, "told to fail") : 0;
}

static void expect_changes(struct world *w, int64_t n)
{
    struct rp_error err = { 0 };
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE event = 'test.changed'"), n);
    assert_int_equal(world_number(w, "SELECT CAST(coalesce(sum(marks), 0) AS bigint) FROM tally"), n);
    assert_int_equal(world_number(w, "SELECT CAST(coalesce(sum(bytes), 0) AS bigint) FROM tally"), 10 * n);
    assert_int_equal(world_number(w, "SELECT CAST(coalesce(sum(seq), 0) AS bigint) FROM lane"),
                     world_number(w, "SELECT count(*) FROM audit"));
    struct rp_audit_verdict verdict;
    ok(rp_audit_verify(w->catalog, &verdict, &err));
    assert_false(verdict.broken);
}

#endif
