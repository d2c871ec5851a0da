/* SPDX-License-Identifier: Apache-2.0 */
/* owner_steps.h - what the tests of owner records share. */
#ifndef RP_TESTS_OWNER_STEPS_H
#define RP_TESTS_OWNER_STEPS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/recover/recover.h"
#include "lib/stores.h"
#include "lib/world.h"

static struct rp_error err;

static void put_record(struct world *w, int64_t epoch, const char *stamp)
{
    char record[256];
    snprintf(record, sizeof record,
             "{\"catalog\":\"%s\",\"epoch\":%" PRId64 ",\"stamp\":\"%s\",\"environment\":\"test\"}", w->catalog->id,
             epoch, stamp);
    world_put(w, RP_STORE_OWNER, record);
}

static int64_t catalog_epoch(struct world *w)
{
    return world_number(w, "SELECT number FROM meta WHERE name = 'epoch'");
}

static struct rp_owner look(struct world *w)
{
    struct rp_owner owner;
    ok(rp_owner_look(w->catalog, &w->store, &owner, &err));
    return owner;
}

static void expect_refused_sweep(struct world *w, const char *words)
{
    struct rp_sweep_result *r = world_sweep(w);
    assert_string_not_equal(r->outcome, "done");
    assert_int_equal(r->run.figures.purged + r->run.figures.already_gone, 0);
    assert_true(r->run.figures.n_errors > 0);
    if (strstr(r->run.figures.errors[0], words) == NULL) fail_msg("\"%s\"", r->run.figures.errors[0]);
    assert_int_equal(w->removed, 0);
}

static void make_ours(struct world *w)
{
    ok(rp_owner_write(w->catalog, &w->store, "test", false, &err));
    world_put(w, "k", "x");
    assert_int_equal(world_mark(w, "k", 0).what, RP_MARK_CREATED);
}

#endif
