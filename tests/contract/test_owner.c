/* SPDX-License-Identifier: Apache-2.0 */
/* The owner record is written over the one that was looked at (owner.h, O5): what happens between
 * the look and the write. On both engines, with objects in memory and in a directory. Needs
 * PostgreSQL: run under tests/lib/with-postgres. */
#include "owner_steps.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/owner/stamps.h"

#define FOREIGN "{\"catalog\":\"cat_another\",\"epoch\":3,\"environment\":\"prod\"}"
#define NODES   4
#define ROUNDS  5

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
    ok(rp_owner_write(b->other, &b->w->store, "test", false, &err));
}

static void is_written_by_an_older_copy(struct between *b)
{
    put_record(b->w, catalog_epoch(b->w), "");
}

static void is_written_by_a_copy(struct between *b)
{
    put_record(b->w, catalog_epoch(b->w), "00c0ffee00c0ffee");
}

static int keep_text(void *ctx, const struct rp_value *row, struct rp_error *e)
{
    (void)e;
    snprintf(ctx, RP_STAMP_TEXT, "%s", row[0].p);
    return 0;
}

/* The very record that is being written, as if an answer had been lost. */
static void is_there_already(struct between *b)
{
    char stamp[RP_STAMP_TEXT] = "";
    const struct rp_sql last = { .name = "last",
                                 .text = "SELECT substr(word, length(word) - 16, 16) FROM meta WHERE name LIKE "
                                         "'stamps:%'",
                                 .params = "",
                                 .columns = "s" };
    ok(rp_db_query(b->w->dbs.db, &last, NULL, keep_text, stamp, &err));
    put_record(b->w, catalog_epoch(b->w), stamp);
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

static void an_empty_store_in_the_store_of_the_store_stays_empty(void **state)
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
    assert_int_equal(rp_owner_write(w->catalog, &w->store, "test", false, &err), RP_ENOTOWNER);
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
    assert_int_equal(rp_owner_recover(w->catalog, &w->store, "test", "tester", false, &recovery, &err), RP_ENOTOWNER);
    assert_string_equal(world_text(w, RP_STORE_OWNER), FOREIGN);
    ok(rp_owner_recover(w->catalog, &w->store, "test", "tester", false, &recovery, &err)); /* looked at now */
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
    assert_int_equal(rp_owner_recover(w->catalog, &w->store, "test", "tester", false, &recovery, &err), RP_ENOTOWNER);
    assert_string_equal(world_text(w, RP_STORE_OWNER), FOREIGN);
    world_remove(w, RP_STORE_OWNER);
    ok(rp_owner_recover(w->catalog, &w->store, "test", "tester", false, &recovery, &err));
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
    ok(rp_owner_recover(w->catalog, &w->store, "test", "tester", false, &recovery, &err));
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
    ok(rp_owner_write(w->catalog, &w->store, "test", false, &err));
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
    ok(rp_owner_write(w->catalog, &w->store, "test", false, &err));
    assert_true(b.happened);
    assert_int_equal(look(w).epoch, before + 1);
}

static void a_record_that_was_written_although_nobody_said_so_is_not_written_again(void **state)
{
    struct world *w = *state;
    struct between b = { .w = w, .happens = is_there_already };
    make_ours(w);
    int64_t before = look(w).catalog_epoch;
    set_between(&b);
    ok(rp_owner_write(w->catalog, &w->store, "test", false, &err));
    assert_true(b.happened);
    assert_int_equal(look(w).ownership, RP_OWNER_OURS);
    assert_int_equal(look(w).epoch, before + 1);
    assert_int_equal(catalog_epoch(w), before + 1);
}

static void of_a_catalog_and_its_older_copy_at_the_same_epoch_one_falls_behind(void **state)
{
    struct world *w = *state;
    struct between b = { .w = w, .happens = is_written_by_an_older_copy };
    make_ours(w);
    int64_t before = look(w).catalog_epoch;
    set_between(&b);
    ok(rp_owner_write(w->catalog, &w->store, "test", false, &err));
    assert_int_equal(look(w).epoch, before + 2); /* the copy is at before + 1 */
}

static void of_a_catalog_and_its_copy_at_the_same_epoch_the_first_that_writes_stays(void **state)
{
    struct world *w = *state;
    struct between b = { .w = w, .happens = is_written_by_a_copy };
    make_ours(w);
    set_between(&b);
    expect_refused_sweep(w, "belongs to another copy of this catalog");
    assert_true(b.happened && world_exists(w, "k"));
    assert_string_equal(look(w).stamp, "00c0ffee00c0ffee");
}

/* Between the look at the record and the look at the catalog. */
static int come_after_the_look(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    struct between *b = ctx;
    (void)e;
    if (b->happened || key == NULL || strcmp(call, "get") != 0 || strcmp(key, RP_STORE_OWNER) != 0) return 0;
    b->happened = true;
    b->happens(b);
    b->happens(b); /* the second one has seen the first one's record */
    return 0;
}

static void a_node_that_is_slow_to_look_is_not_locked_out(void **state)
{
    struct world *w = *state;
    struct between b = { .w = w, .happens = is_raised_by_another_node, .other = world_catalog(w, 1, NULL) };
    make_ours(w);
    int64_t before = look(w).catalog_epoch;
    w->after = come_after_the_look;
    w->ctx = &b;
    assert_int_equal(look(w).ownership, RP_OWNER_OURS);
    assert_true(b.happened);
    b.happened = false;
    ok(rp_owner_write(w->catalog, &w->store, "test", false, &err));
    assert_true(b.happened);
    w->after = NULL;
    assert_int_equal(look(w).ownership, RP_OWNER_OURS);
    assert_int_equal(look(w).epoch, before + 5);
    rp_catalog_close(b.other);
}

/* ---- a copy of the catalog ---- */

/* Both in one database, one of them at a time; what they do not share is in meta. */
static int find_changed(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx, (void)key;
    return strcmp(call, "put") == 0 ? rp_error_set(e, RP_ECHANGED, "it has changed") : 0;
}

static void a_store_that_does_not_write_over_an_unchanged_record_is_the_cause(void **state)
{
    struct world *w = *state;
    make_ours(w);
    w->before = find_changed;
    assert_int_equal(rp_owner_write(w->catalog, &w->store, "test", false, &err), RP_ECONFLICT);
    w->before = NULL;
    assert_non_null(strstr(err.text, "nobody has changed"));
}

static void copy_catalog(struct world *w)
{
    world_script(w, "CREATE TABLE meta_of_copy AS SELECT * FROM meta");
}

static void be_the_other(struct world *w)
{
    world_script(w, "CREATE TABLE meta_aside AS SELECT * FROM meta; DELETE FROM meta; "
                    "INSERT INTO meta SELECT * FROM meta_of_copy; DROP TABLE meta_of_copy; "
                    "ALTER TABLE meta_aside RENAME TO meta_of_copy");
}

static int fail_at_the_record(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx;
    if (key == NULL || strcmp(call, "put") != 0 || strcmp(key, RP_STORE_OWNER) != 0) return 0;
    return rp_error_set(e, RP_EUNAVAILABLE, "died");
}

static void raise_and_die(struct world *w, int times)
{
    w->before = fail_at_the_record;
    for (int i = 0; i < times; i++)
        assert_int_equal(rp_owner_write(w->catalog, &w->store, "test", false, &err), RP_EUNAVAILABLE);
    w->before = NULL;
}

static void expect_forked(struct world *w)
{
    assert_int_equal(look(w).ownership, RP_OWNER_FORKED);
    assert_int_equal(rp_owner_check(w->catalog, &w->store, &err), RP_ENOTOWNER);
    assert_int_equal(rp_owner_write(w->catalog, &w->store, "test", false, &err), RP_ENOTOWNER);
    expect_refused_sweep(w, "belongs to another copy of this catalog");
}

static void of_a_catalog_and_a_copy_that_died_before_its_record_the_one_that_writes_goes_on(void **state)
{
    struct world *w = *state;
    make_ours(w);
    for (int deaths = 1; deaths <= 3; deaths++) {
        copy_catalog(w);
        raise_and_die(w, deaths); /* the first catalog dies, then the copy does */
        be_the_other(w);
        raise_and_die(w, deaths);
        be_the_other(w);
        raise_and_die(w, 1);
        be_the_other(w);
        ok(rp_owner_write(w->catalog, &w->store, "test", false, &err));
        be_the_other(w); /* as far as the record */
        assert_int_equal(look(w).epoch, look(w).catalog_epoch);
        expect_forked(w);
        be_the_other(w);
        assert_int_equal(look(w).ownership, RP_OWNER_OURS);
        world_script(w, "DROP TABLE meta_of_copy");
    }
}

static void a_copy_that_recovers_takes_the_store_over(void **state)
{
    struct world *w = *state;
    struct rp_recovery recovery;
    make_ours(w);
    copy_catalog(w);
    ok(rp_owner_write(w->catalog, &w->store, "test", false, &err));
    be_the_other(w);
    world_script(w, "UPDATE meta SET number = number + 5 WHERE name = 'epoch'");
    expect_forked(w);
    w->before = fail_at_the_record;
    assert_int_equal(rp_owner_recover(w->catalog, &w->store, "test", "tester", false, &recovery, &err),
                     RP_EUNAVAILABLE);
    w->before = NULL;
    assert_int_equal(look(w).ownership, RP_OWNER_FORKED); /* what was not written is not taken */
    ok(rp_owner_recover(w->catalog, &w->store, "test", "tester", false, &recovery, &err));
    assert_int_equal(recovery.before.ownership, RP_OWNER_FORKED);
    assert_int_equal(look(w).ownership, RP_OWNER_OURS);
    be_the_other(w);
    world_script(w, "UPDATE meta SET number = number + 50 WHERE name = 'epoch'"); /* however far it counts */
    expect_forked(w);
    world_script(w, "DROP TABLE meta_of_copy");
}

/* ---- stamps ---- */

static void what_an_older_release_wrote_is_judged_by_its_epoch(void **state)
{
    struct world *w = *state;
    make_ours(w);
    put_record(w, catalog_epoch(w), "");
    assert_int_equal(look(w).ownership, RP_OWNER_OURS);
    put_record(w, catalog_epoch(w) + 1, "");
    assert_int_equal(look(w).ownership, RP_OWNER_AHEAD);
    put_record(w, catalog_epoch(w), "");
    ok(rp_owner_write(w->catalog, &w->store, "test", false, &err));
    assert_int_equal(strlen(look(w).stamp), RP_STAMP_TEXT - 1);
    world_script(w, "DELETE FROM meta WHERE name LIKE 'stamps:%%'"); /* a catalog that was upgraded alone */
    assert_int_equal(look(w).ownership, RP_OWNER_OURS);
    ok(rp_owner_write(w->catalog, &w->store, "test", false, &err));
    assert_int_equal(look(w).ownership, RP_OWNER_OURS);
    put_record(w, catalog_epoch(w), "00c0ffee00c0ffee");
    assert_int_equal(look(w).ownership, RP_OWNER_FORKED);
}

static void stamps_are_bounded_and_that_of_the_record_is_kept(void **state)
{
    struct world *w = *state;
    make_ours(w);
    raise_and_die(w, RP_STAMPS_MAX + 3);
    assert_int_equal(look(w).ownership, RP_OWNER_OURS);
    assert_int_equal(world_number(w, "SELECT length(word) FROM meta WHERE name LIKE 'stamps:%'"),
                     RP_STAMPS_MAX * RP_STAMP_TEXT);
    ok(rp_owner_write(w->catalog, &w->store, "test", false, &err));
    assert_int_equal(look(w).ownership, RP_OWNER_OURS);
    ok(rp_owner_write(w->catalog, &w->store, "test", false, &err));
    assert_int_equal(world_number(w, "SELECT length(word) FROM meta WHERE name LIKE 'stamps:%'"), 2 * RP_STAMP_TEXT);
    world_script(w, "UPDATE meta SET word = 'nonsense' WHERE name LIKE 'stamps:%%'");
    assert_int_equal(look(w).ownership, RP_OWNER_FORKED);
    struct rp_recovery recovery;
    assert_int_equal(rp_owner_recover(w->catalog, &w->store, "test", "tester", false, &recovery, &err), RP_ECORRUPT);
}

static void each_store_is_raised_within_a_minute(void **state)
{
    struct world *w = *state;
    struct rp_store_row row;
    struct rp_store_config config = w->config;
    struct rp_store second = w->store;
    make_ours(w);
    config.name = "second";
    ok(rp_memory_open(&second.backend, &err));
    ok(rp_store_get(w->catalog, RP_STORE_STORE, "second", &row, &err));
    second.id = row.id;
    second.config = &config;
    ok(rp_owner_write(w->catalog, &second, "test", false, &err));
    world_pass(w, 2 * RP_MINUTE_MS);
    struct rp_owner before, now;
    ok(rp_owner_look(w->catalog, &second, &before, &err));
    ok(rp_owner_write(w->catalog, &w->store, "test", true, &err)); /* the other one, a moment ago */
    ok(rp_owner_write(w->catalog, &second, "test", true, &err));
    ok(rp_owner_look(w->catalog, &second, &now, &err));
    assert_true(now.epoch > before.epoch);
    ok(rp_owner_write(w->catalog, &second, "test", true, &err));
    ok(rp_owner_look(w->catalog, &second, &before, &err));
    assert_int_equal(now.epoch, before.epoch);
    rp_backend_close(second.backend);
}

/* A host that was ahead when it raised, and is right again, would else owe nothing until that time
 * has come. */
static void a_raise_in_the_future_is_no_recent_one(void **state)
{
    struct world *w = *state;
    make_ours(w);
    w->host_ahead_ms = 2 * RP_MINUTE_MS;
    ok(rp_owner_write(w->catalog, &w->store, "test", true, &err));
    w->host_ahead_ms = 0;
    int64_t before = look(w).epoch;
    ok(rp_owner_write(w->catalog, &w->store, "test", true, &err));
    assert_true(look(w).epoch > before);
}

/* ---- at once ---- */

struct node {
    struct rp_store *store;
    struct rp_catalog *catalog;
    struct rp_error err;
    int code;
};

static void *raise_often(void *ctx)
{
    struct node *n = ctx;
    for (int i = 0; i < ROUNDS && n->code == 0; i++)
        n->code = rp_owner_write(n->catalog, n->store, "test", false, &n->err);
    return NULL;
}

static void nodes_that_raise_at_once_do_not_fail_each_other_and_the_highest_epoch_stays(void **state)
{
    struct world *w = *state;
    struct node nodes[NODES];
    pthread_t threads[NODES];
    make_ours(w);
    for (int i = 0; i < NODES; i++) {
        nodes[i] = (struct node){ .store = &w->store, .catalog = world_catalog(w, i + 1, NULL) };
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

/* The first of those that are asked for cannot be looked at. */
static struct rp_backend_ops denying;
static int (*stat_of_store)(struct rp_backend *, struct rp_item *, size_t, struct rp_error *);

static int deny_first(struct rp_backend *backend, struct rp_item *items, size_t n, struct rp_error *e)
{
    int r = stat_of_store(backend, items, n, e);
    if (n > 0) items[0].outcome = RP_OUT_DENIED;
    return r;
}

static void a_recovery_tells_what_it_could_not_look_at(void **state)
{
    struct world *w = *state;
    struct rp_recovery recovery;
    const struct rp_backend_ops *ops = w->store.backend->ops;
    make_ours(w);
    world_put(w, "l", "x");
    assert_int_equal(world_mark(w, "l", 0).what, RP_MARK_CREATED);
    world_script(w, "UPDATE meta SET number = 1 WHERE name = 'epoch'");
    denying = *ops;
    stat_of_store = ops->stat;
    denying.stat = deny_first;
    w->store.backend->ops = &denying;
    ok(rp_owner_recover(w->catalog, &w->store, "test", "tester", true, &recovery, &err));
    w->store.backend->ops = ops;
    assert_int_equal(recovery.waiting, 2);
    assert_int_equal(recovery.present, 1);
    assert_int_equal(recovery.changed, 0);
    assert_int_equal(recovery.not_seen, 1);
}

/* clang-format off */
#define ON(which, words, fn) { #fn " on " words, fn, world_set_up, world_tear_down, (void *)(uintptr_t)(which) }
/* Each engine once, each store once. */
#define ALL(fn) ON(1, "postgres, memory", fn), ON(2, "sqlite, fs", fn)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(a_store_that_is_taken_over_between_look_and_write_stays_the_others),
        ALL(an_empty_store_in_the_store_of_the_store_stays_empty),
        ALL(of_two_first_owners_the_first_stays),
        ALL(a_recovery_takes_over_only_what_was_looked_at),
        ALL(a_recovery_tells_what_it_could_not_look_at),
        ALL(a_recovery_of_a_missing_record_writes_it_only_if_it_is_still_missing),
        ALL(a_recovery_writes_over_a_record_that_is_too_long_to_be_read),
        ALL(the_node_that_comes_second_with_a_lower_epoch_leaves_the_record),
        ALL(the_node_that_comes_second_with_a_higher_epoch_writes_over_the_new_record),
        ALL(a_record_that_was_written_although_nobody_said_so_is_not_written_again),
        ALL(of_a_catalog_and_its_older_copy_at_the_same_epoch_one_falls_behind),
        ALL(of_a_catalog_and_its_copy_at_the_same_epoch_the_first_that_writes_stays),
        ALL(a_node_that_is_slow_to_look_is_not_locked_out),
        ALL(a_store_that_does_not_write_over_an_unchanged_record_is_the_cause),
        ALL(of_a_catalog_and_a_copy_that_died_before_its_record_the_one_that_writes_goes_on),
        ALL(a_copy_that_recovers_takes_the_store_over),
        ALL(what_an_older_release_wrote_is_judged_by_its_epoch),
        ALL(stamps_are_bounded_and_that_of_the_record_is_kept),
        ALL(each_store_is_raised_within_a_minute),
        ALL(a_raise_in_the_future_is_no_recent_one),
        ALL(nodes_that_raise_at_once_do_not_fail_each_other_and_the_highest_epoch_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
/* clang-format on */
