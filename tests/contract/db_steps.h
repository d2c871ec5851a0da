/* SPDX-License-Identifier: Apache-2.0 */
/* db_steps.h - what the tests of the database port share. */
#ifndef RP_TESTS_DB_STEPS_H
#define RP_TESTS_DB_STEPS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/error.h"
#include "lib/dbs.h"

static struct rp_error err;

static inline void check_ok(int r, int line)
{
    if (r < 0) print_error("line %d: %s (%s)\n", line, err.text, rp_error_slug(r));
    assert_int_equal(r, 0);
}
#define ok(r) check_ok((r), __LINE__)

static const struct rp_sql count_all = { "count_all", "SELECT count(*) FROM t", "", NULL, "i" };

static inline int tear_down(void **state)
{
    dbs_drop(*state);
    free(*state);
    return 0;
}

static inline int take_int(void *ctx, const struct rp_value *row, struct rp_error *e)
{
    (void)e;
    *(int64_t *)ctx = row[0].i;
    return 0;
}

#endif
