/* SPDX-License-Identifier: Apache-2.0 */
/* The owner record is written over the one that was looked at (owner.h, O5): what happens between the look and the write. On both
 * engines, with objects in memory and in a directory. Needs PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/owner.h"
#include "lib/world.h"

#define FOREIGN "{\"catalog\":\"cat_another\",\"epoch\":3,\"environment\":\"prod\"}"
#define NODES   4
#define ROUNDS  5

static struct rp_error err;

static int set_up(void **state)
{
    uintptr_t which = (uintptr_t)*state;
    struct world *w = calloc(1, sizeof *w);
    world_make(w, which & 1 ? DBS_POSTGRES : DBS_SQLITE_FILE, which & 2 ? WORLD_FS : WORLD_MEMORY);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world_check(*state);
    world_drop(*state);
    free(*state);
    return 0;
}

/* ---- what comes between ---- */

/* Happens once, right before the owner record is written. */
struct between {
    struct world *w;
    void (*happens)(struct between *b);
    struct rp_catalog *other;
    bool happened;
};

static int come_between(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    struct between *b = ctx;
    (void)e;
    if (b->happened || key == NULL || strcmp(call, "put") != 0 || strcmp(key, RP_STORE_OWNER) != 0) return 0;
    b->happened = true;
    b->happens(b);
    return 0;
}

static void set_between(struct between *b)
{
    b->w->before = come_between;
    b->w->ctx = b;
}

static void is_usurped(struct between *b)
{
    world_put(b->w, RP_STORE_OWNER, FOREIGN);
}

static void is_emptied(struct between *b)
{
    world_remove(b->w, RP_STORE_OWNER);
    if (world_exists(b->w, "k")) world_remove(b->w, "k");
}

/* As a node that looked earlier and writes now. */
static void is_written_again(struct between *b)
{
    world_put(b->w, RP_STORE_OWNER, world_text(b->w, RP_STORE_OWNER));
}

static void is_raised_by_another_node(struct between *b)
{
    ok(rp_owner_assert(b->other, &b->w->place, "test", false, &err));
}

static void is_written_by_a_copy(struct between *b)
{
    char record[256];
    snprintf(record, sizeof record, "{\"catalog\":\"%s\",\"epoch\":%lld,\"environment\":\"test\"}", b->w->catalog->id,
             (long long)world_number(b->w, "SELECT number FROM meta WHERE name = 'epoch'"));
    world_put(b->w, RP_STORE_OWNER, record);
}

/* ---- looking ---- */

static struct rp_owner look(struct world *w)
{
    struct rp_owner owner;
    ok(rp_owner_look(w->catalog, &w->place, &owner, &err));
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
    ok(rp_owner_assert(w->catalog, &w->place, "test", false, &err));
    world_put(w, "k", "x");
    assert_int_equal(world_mark(w, "k", 0).what, RP_MARK_CREATED);
}

/* ---- somebody else ---- */

static void a_store_that_is_taken_over_between_look_and_write_stays_the_others(void **state)
{
    struct world *w = *state;
    struct between b = { .w = w, .happens = is_usurped };
    make_ours(w);
    set_between(&b);
    expect_refused_sweep(w, "belongs to catalog cat_another");
    assert_true(b.happened && world_exists(w, "k"));
    assert_string_equal(world_text(w, RP_STORE_OWNER), FOREIGN);
    expect_refused_sweep(w, "belongs to catalog cat_another");
    assert_string_equal(world_text(w, RP_STORE_OWNER), FOREIGN);
}

static void an_empty_place_in_the_place_of_the_store_stays_empty(void **state)
{
    struct world *w = *state;
    struct between b = { .w = w, .happens = is_emptied };
    make_ours(w);
    set_between(&b);
    expect_refused_sweep(w, "owner record is gone");
    assert_true(b.happened);
    assert_false(world_exists(w, RP_STORE_OWNER));
    expect_refused_sweep(w, "owner record is gone"); /* nor is anything believed to be gone later on */
    assert_false(world_exists(w, RP_STORE_OWNER));
}

static void of_two_first_owners_the_first_stays(void **state)
{
    struct world *w = *state;
    struct between b = { .w = w, .happens = is_usurped };
    set_between(&b);
    assert_int_equal(rp_owner_assert(w->catalog, &w->place, "test", false, &err), RP_ENOTOWNER);
    assert_string_equal(world_text(w, RP_STORE_OWNER), FOREIGN);
}

/* ---- recovering ---- */

static void a_recovery_takes_over_only_what_was_looked_at(void **state)
{
    struct world *w = *state;
    struct between b = { .w = w, .happens = is_usurped };
    struct rp_recovery recovery;
    make_ours(w);
    world_put(w, RP_STORE_OWNER, "{\"catalog\":\"cat_first\",\"epoch\":9,\"environment\":\"test\"}");
    set_between(&b);
    assert_int_equal(rp_owner_recover(w->catalog, &w->place, "test", "tester", false, &recovery, &err), RP_ENOTOWNER);
    assert_string_equal(world_text(w, RP_STORE_OWNER), FOREIGN);
    ok(rp_owner_recover(w->catalog, &w->place, "test", "tester", false, &recovery, &err)); /* looked at now */
    assert_string_equal(recovery.before.catalog, "cat_another");
    assert_int_equal(look(w).ownership, RP_OWNER_OURS);
}

static void a_recovery_of_a_missing_record_writes_it_only_if_it_is_still_missing(void **state)
{
    struct world *w = *state;
    struct between b = { .w = w, .happens = is_usurped };
    struct rp_recovery recovery;
    make_ours(w);
    world_remove(w, RP_STORE_OWNER);
    set_between(&b);
    assert_int_equal(rp_owner_recover(w->catalog, &w->place, "test", "tester", false, &recovery, &err), RP_ENOTOWNER);
    assert_string_equal(world_text(w, RP_STORE_OWNER), FOREIGN);
    world_remove(w, RP_STORE_OWNER);
    ok(rp_owner_recover(w->catalog, &w->place, "test", "tester", false, &recovery, &err));
    assert_int_equal(look(w).ownership, RP_OWNER_OURS);
}

static void a_recovery_writes_over_a_record_that_is_too_long_to_be_read(void **state)
{
    struct world *w = *state;
    struct rp_recovery recovery;
    char *text = malloc(10000);
    make_ours(w);
    memset(text, 'x', 9999);
    text[9999] = '\0';
    world_put(w, RP_STORE_OWNER, text);
    free(text);
    assert_int_equal(look(w).ownership, RP_OWNER_DAMAGED);
    ok(rp_owner_recover(w->catalog, &w->place, "test", "tester", false, &recovery, &err));
    assert_int_equal(look(w).ownership, RP_OWNER_OURS);
}

/* ---- nodes of the same catalog ---- */

static void the_node_that_comes_second_with_a_lower_epoch_leaves_the_record(void **state)
{
    struct world *w = *state;
    struct between b = { .w = w, .happens = is_raised_by_another_node, .other = world_catalog(w, 1, NULL) };
    make_ours(w);
    int64_t before = look(w).catalog_epoch;
    set_between(&b);
    ok(rp_owner_assert(w->catalog, &w->place, "test", false, &err));
    assert_true(b.happened);
    assert_int_equal(look(w).epoch, before + 2);
    assert_int_equal(look(w).ownership, RP_OWNER_OURS);
    rp_catalog_close(b.other);
}

static void the_node_that_comes_second_with_a_higher_epoch_writes_over_the_new_record(void **state)
{
    struct world *w = *state;
    struct between b = { .w = w, .happens = is_written_again };
    make_ours(w);
    int64_t before = look(w).catalog_epoch;
    set_between(&b);
    ok(rp_owner_assert(w->catalog, &w->place, "test", false, &err));
    assert_true(b.happened);
    assert_int_equal(look(w).epoch, before + 1);
}

static void of_a_catalog_and_its_copy_at_the_same_epoch_one_falls_behind(void **state)
{
    struct world *w = *state;
    struct between b = { .w = w, .happens = is_written_by_a_copy };
    make_ours(w);
    int64_t before = look(w).catalog_epoch;
    set_between(&b);
    ok(rp_owner_assert(w->catalog, &w->place, "test", false, &err));
    assert_int_equal(look(w).epoch, before + 2); /* the copy is at before + 1 */
}

struct node {
    struct rp_place *place;
    struct rp_catalog *catalog;
    struct rp_error err;
    int code;
};

static void *raise_often(void *ctx)
{
    struct node *n = ctx;
    for (int i = 0; i < ROUNDS && n->code == 0; i++)
        n->code = rp_owner_assert(n->catalog, n->place, "test", false, &n->err);
    return NULL;
}

static void nodes_that_raise_at_once_do_not_fail_each_other_and_the_highest_epoch_stays(void **state)
{
    struct world *w = *state;
    struct node nodes[NODES];
    pthread_t threads[NODES];
    make_ours(w);
    for (int i = 0; i < NODES; i++) {
        nodes[i] = (struct node){ .place = &w->place, .catalog = world_catalog(w, i + 1, NULL) };
        assert_int_equal(pthread_create(&threads[i], NULL, raise_often, &nodes[i]), 0);
    }
    for (int i = 0; i < NODES; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < NODES; i++) {
        world_ok(nodes[i].code, &nodes[i].err, __FILE__, __LINE__);
        rp_catalog_close(nodes[i].catalog);
    }
    struct rp_owner owner = look(w);
    assert_int_equal(owner.ownership, RP_OWNER_OURS);
    assert_int_equal(owner.epoch, owner.catalog_epoch);
}

/* clang-format off */
#define ON(which, words, fn) { #fn " on " words, fn, set_up, tear_down, (void *)(uintptr_t)(which) }
#define ALL(fn) ON(0, "sqlite, memory", fn), ON(1, "postgres, memory", fn), ON(2, "sqlite, fs", fn), ON(3, "postgres, fs", fn)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(a_store_that_is_taken_over_between_look_and_write_stays_the_others),
        ALL(an_empty_place_in_the_place_of_the_store_stays_empty),
        ALL(of_two_first_owners_the_first_stays),
        ALL(a_recovery_takes_over_only_what_was_looked_at),
        ALL(a_recovery_of_a_missing_record_writes_it_only_if_it_is_still_missing),
        ALL(a_recovery_writes_over_a_record_that_is_too_long_to_be_read),
        ALL(the_node_that_comes_second_with_a_lower_epoch_leaves_the_record),
        ALL(the_node_that_comes_second_with_a_higher_epoch_writes_over_the_new_record),
        ALL(of_a_catalog_and_its_copy_at_the_same_epoch_one_falls_behind),
        ALL(nodes_that_raise_at_once_do_not_fail_each_other_and_the_highest_epoch_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
/* clang-format on */
