/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_steps.h - a world to sweep on either engine, and what a sweep is expected to do. */
#ifndef RP_TESTS_SWEEP_STEPS_H
#define RP_TESTS_SWEEP_STEPS_H

#include <stdlib.h>
#include <string.h>

#include "lib/world.h"

static struct rp_error err;

static inline int set_up(void **state)
{
    uintptr_t which = (uintptr_t)*state;
    struct world *w = calloc(1, sizeof *w);
    world_make(w, which & 1 ? DBS_POSTGRES : DBS_SQLITE_FILE, which & 2 ? WORLD_FS : WORLD_MEMORY);
    *state = w;
    return 0;
}

static inline int tear_down(void **state)
{
    world_check(*state); /* whatever a test did */
    world_drop(*state);
    free(*state);
    return 0;
}

static inline void put_due(struct world *w, const char *key)
{
    world_put(w, key, "x");
    assert_int_equal(world_mark(w, key, 0).what, RP_MARK_CREATED);
}

static inline void expect_purged(struct world *w, int64_t n)
{
    struct rp_sweep_result *r = world_sweep(w);
    if (r->run.figures.n_errors > 0) print_error("%s\n", r->run.figures.errors[0]);
    assert_string_equal(r->outcome, "done");
    assert_int_equal(r->run.figures.purged, n);
}

/* The sweep ends in words that contain `words` and has purged nothing. */
static inline void expect_nothing_purged(struct world *w, const char *words)
{
    int64_t removed = w->removed;
    struct rp_sweep_result *r = world_sweep(w);
    assert_string_not_equal(r->outcome, "done");
    assert_int_equal(r->run.figures.purged + r->run.figures.already_gone, 0);
    assert_true(r->run.figures.n_errors > 0);
    if (strstr(r->run.figures.errors[0], words) == NULL) fail_msg("\"%s\"", r->run.figures.errors[0]);
    assert_int_equal(w->removed, removed);
}

/* clang-format off */
#define ON(which, words, fn) { #fn " on " words, fn, set_up, tear_down, (void *)(uintptr_t)(which) }
#define ALL(fn) ON(1, "postgres, memory", fn), ON(2, "sqlite, fs", fn)
#define BOTH(fn) ON(0, "sqlite, memory", fn), ON(1, "postgres, memory", fn)
/* clang-format on */

#endif
