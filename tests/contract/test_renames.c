/* SPDX-License-Identifier: Apache-2.0 */
/* A store under another name than the one that its owner record was written under (stamps.h, L5),
 * and `stores rename`. On both engines, with objects in memory and in a directory. Needs
 * PostgreSQL: run under tests/lib/with-postgres. */
#include "owner_steps.h"

#include "base/cleanup.h"
#include "core/mark/mark.h"
#include "core/owner/raise.h"
#include "core/owner/refuse.h"
#include "core/owner/rename.h"
#include "lib/ask.h"

/* The world's store under another name, as the configuration has it. */
struct named {
    struct rp_store_config config;
    struct rp_store store;
};

static void open_named(struct world *w, const char *name, struct named *out)
{
    struct rp_store_row row;
    out->config = w->config;
    out->config.name = name;
    ok(rp_store_get(w->catalog, RP_STORE_STORE, name, &row, &err));
    out->store = w->store;
    out->store.id = row.id;
    out->store.config = &out->config;
}

static enum rp_ownership ownership_of(struct world *w, struct named *n)
{
    struct rp_owner owner;
    ok(rp_owner_look(w->catalog, &n->store, &owner, &err));
    return owner.ownership;
}

static void hold_key(struct world *w, struct rp_store *store, const char *key, int expected)
{
    struct rp_hold_command h = {
        .scope = RP_SCOPE_SUBJECT, .store = store, .key = key, .reason = "court", .command.actor = "tester"
    };
    assert_int_equal(ask_hold(w->catalog, &h, &w->arena, &err), expected);
}

static int rename_to(struct rp_catalog *catalog, const char *from, const char *to, bool dry_run)
{
    struct rp_rename_command c = {
        .command = { .verb = &rp_verb_store_rename, .actor = "tester" }, .from = from, .to = to, .dry_run = dry_run
    };
    err = (struct rp_error){ 0 };
    return ask_run(catalog, &c.command, &err);
}

/* Holds, marks and files hang on the row of the old name. */
static void a_store_that_is_renamed_is_refused_and_by_every_recovery(void **state)
{
    struct world *w = *state;
    struct named renamed;
    struct rp_owner before;
    struct rp_recovery recovery;
    make_ours(w);
    open_named(w, "renamed", &renamed);
    assert_int_equal(ownership_of(w, &renamed), RP_OWNER_RENAMED);
    assert_int_equal(rp_owner_check(w->catalog, &renamed.store, &err), RP_ENOTOWNER);
    assert_non_null(strstr(err.text, "the catalog knows it as 'main'"));
    assert_non_null(strstr(err.hint, "reprieve stores rename main renamed"));
    assert_int_equal(rp_owner_write(w->catalog, &renamed.store, "test", false, &err), RP_ENOTOWNER);
    assert_int_equal(rp_owner_accept_move(w->catalog, &renamed.store, "test", "tester", &before, &err), RP_ENOTOWNER);
    assert_int_equal(rp_owner_recover(w->catalog, &renamed.store, "test", "tester", false, &recovery, &err),
                     RP_ENOTOWNER);
    assert_int_equal(ownership_of(w, &renamed), RP_OWNER_RENAMED);
    assert_int_equal(look(w).ownership, RP_OWNER_OURS);
}

static void a_renamed_row_keeps_its_holds_and_what_was_opened_meanwhile_goes(void **state)
{
    struct world *w = *state;
    struct named renamed;
    make_ours(w);
    hold_key(w, &w->store, "k", 0);
    open_named(w, "renamed", &renamed);
    int64_t opened = renamed.store.id;
    ok(rename_to(w->catalog, "main", "renamed", true));
    assert_int_equal(look(w).ownership, RP_OWNER_OURS);
    ok(rename_to(w->catalog, "main", "renamed", false));
    assert_int_equal(rename_to(w->catalog, "main", "renamed", false), RP_ENOTFOUND);
    open_named(w, "renamed", &renamed);
    assert_int_equal(renamed.store.id, w->store.id);
    assert_int_equal(ownership_of(w, &renamed), RP_OWNER_OURS);
    w->store.config = &renamed.config;
    world_swept(w, 0); /* it is held */
    assert_true(world_exists(w, "k"));
    w->store.config = &w->config;
    open_named(w, "third", &renamed); /* a number is not given out twice */
    assert_true(renamed.store.id > opened);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE event = 'store.renamed'"), 1);
}

static void two_stores_are_not_made_one(void **state)
{
    struct world *w = *state;
    struct named other;
    make_ours(w);
    open_named(w, "other", &other);
    hold_key(w, &other.store, "k", 0);
    assert_int_equal(rename_to(w->catalog, "main", "other", false), RP_ECONFLICT);
    assert_non_null(strstr(err.text, "'other' is in the catalog already"));
    assert_int_equal(rename_to(w->catalog, "nobody", "new", false), RP_ENOTFOUND);
    assert_int_equal(look(w).ownership, RP_OWNER_OURS);
}

/* A daemon that opened the new name before the rename: what it were to write would hang on nothing. */
static void who_has_a_store_open_that_is_gone_is_refused(void **state)
{
    struct world *w = *state;
    struct named stale;
    struct rp_owner owner;
    make_ours(w);
    open_named(w, "renamed", &stale);
    struct rp_catalog *daemon = world_catalog(w, 1, NULL);
    ok(rename_to(daemon, "main", "renamed", false));
    rp_catalog_close(daemon);
    hold_key(w, &stale.store, "k", RP_ENOTOWNER);
    assert_non_null(strstr(err.text, "was renamed since this program has opened it"));
    assert_int_equal(world_number(w, "SELECT count(*) FROM hold"), 0);
    assert_int_equal(rp_owner_look(w->catalog, &stale.store, &owner, &err), RP_ENOTOWNER);
    assert_int_equal(rp_owner_look(w->catalog, &w->store, &owner, &err), RP_ENOTOWNER); /* by its old name */
    struct rp_store ours = w->store;
    w->store = stale.store;
    world_put(w, "l", "x");
    struct rp_mark_request q = { .key = "l", .grace_ms = 0, .at_ms = -1, .reason = "" };
    struct rp_mark_answer answer;
    assert_int_equal(rp_mark_many(w->catalog, &w->store, &q, 1, "tester", false, &answer, &err), RP_ENOTOWNER);
    expect_refused_sweep(w, "was renamed since this program has opened it");
    w->store = ours;
    assert_true(world_exists(w, "k"));
}

/* R9: what is known of the record keeps everybody from making anything under that name. */
static void nothing_is_made_under_a_name_that_is_another_stores(void **state)
{
    struct world *w = *state;
    struct named renamed;
    struct rp_raises *raises = rp_raises_new(w->catalog->clock);
    make_ours(w);
    world_put(w, "k", "x");
    open_named(w, "renamed", &renamed);
    renamed.store.raises = raises;
    rp_raises_set(raises, 0, renamed.store.id, false);
    ok(rp_owner_refuse_name(&renamed.store, &err)); /* nobody has looked */
    ok(rp_raises_look(raises, 0, w->catalog, &renamed.store, &err));
    assert_int_equal(rp_owner_refuse_name(&renamed.store, &err), RP_ENOTOWNER);
    hold_key(w, &renamed.store, "k", RP_ENOTOWNER);
    struct rp_mark_request q = { .key = "k", .grace_ms = 0, .at_ms = -1, .reason = "" };
    struct rp_mark_answer answer;
    (void)rp_mark_many(w->catalog, &renamed.store, &q, 1, "tester", false, &answer, &err);
    assert_int_equal(answer.what, RP_MARK_REFUSED);
    assert_int_equal(answer.error.code, RP_ENOTOWNER);
    ok(rename_to(w->catalog, "main", "renamed", false));
    assert_int_equal(rp_raises_look(raises, 0, w->catalog, &renamed.store, &err), RP_ENOTOWNER);
    assert_int_equal(rp_owner_refuse_name(&renamed.store, &err), RP_ENOTOWNER); /* this process has the row that went */
    renamed.store.raises = NULL;
    rp_raises_free(raises);
}

static void who_looked_before_a_rename_claims_nothing_after_it(void **state)
{
    struct world *w = *state;
    struct world_steps s = { .from_ms = 0 };
    struct named stale;
    make_ours(w);
    open_named(w, "renamed", &stale);
    ok(rename_to(w->catalog, "main", "renamed", false));
    rp_purge_batch_init(&s.batch);
    assert_int_equal(
        rp_purge_claim(w->catalog, &stale.store, &w->rules, &w->worker, w->rules.batch, &s.from_ms, &s.batch, &err),
        RP_ENOTOWNER);
    world_steps_done(&s);
}

struct writing {
    struct rp_catalog *other;
    int64_t store_id;
    int renamed;
};

static int write_there(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct writing *writing = ctx;
    int r = rp_store_share(tx, writing->store_id, "renamed", e);
    writing->renamed = rename_to(writing->other, "main", "renamed", false);
    return r;
}

static void a_rename_waits_for_whoever_writes_to_what_it_removes(void **state)
{
    struct world *w = *state;
    struct named stale;
    make_ours(w);
    open_named(w, "renamed", &stale);
    struct writing writing = { .other = world_catalog(w, 1, NULL), .store_id = stale.store.id };
    writing.other->patience_ms = 300;
    ok(rp_catalog_transact(w->catalog, write_there, &writing, &err));
    assert_true(writing.renamed < 0);
    assert_int_equal(world_number(w, "SELECT count(*) FROM store"), 2);
    ok(rename_to(w->catalog, "main", "renamed", false));
    rp_catalog_close(writing.other);
}

/* Another node, which owns the store `id` before the call of this number. */
struct between {
    struct world *w;
    struct rp_db *db; /* which does not wait long */
    int64_t id;
    int calls;
    bool owned;
};

static int own_it(void *ctx, const char *call, struct rp_error *e)
{
    struct between *b = ctx;
    struct rp_error busy = { 0 };
    char sql[80];
    (void)call, (void)e;
    if (b->calls-- != 0) return 0;
    snprintf(sql, sizeof sql, "UPDATE store SET owned_at = 7 WHERE id = %" PRId64, b->id);
    (void)rp_db_script(b->db, sql, &busy);
    b->owned = world_number(b->w, "SELECT count(*) FROM store WHERE owned_at = 7") == 1;
    return 0;
}

/* False: it makes fewer calls. */
static bool rename_while_it_is_owned(struct world *w, int before_call)
{
    struct named made;
    RP_CLEANUP(rp_db_closep) struct rp_db *db = dbs_open_again(&w->dbs, &(struct rp_db_options){ .busy_ms = 20 });
    struct between b = { .w = w, .db = db, .calls = -1 };
    const struct rp_db_fault fault = { .before = own_it, .ctx = &b };
    struct rp_catalog *catalog = world_catalog(w, 1, &fault);
    open_named(w, "renamed", &made);
    b.id = made.store.id;
    b.calls = before_call;
    int r = rename_to(catalog, "main", "renamed", false);
    bool reached = b.calls < 0;
    assert_int_equal(r, b.owned ? RP_ECONFLICT : 0);
    if (r == 0) ok(rename_to(w->catalog, "renamed", "main", false));
    b.calls = -1;
    rp_catalog_close(catalog);
    world_script(w, "UPDATE store SET owned_at = NULL WHERE id = %" PRId64, b.id);
    return reached;
}

static void a_rename_removes_no_row_that_another_node_has_owned_by_then(void **state)
{
    struct world *w = *state;
    int before_call = 0;
    make_ours(w);
    while (rename_while_it_is_owned(w, before_call))
        before_call++;
    assert_true(before_call > 5);
}

static void a_store_with_two_names_is_refused_until_nothing_hangs_on_the_other(void **state)
{
    struct world *w = *state;
    struct named second;
    struct rp_owner before;
    struct rp_recovery recovery;
    make_ours(w);
    open_named(w, "second", &second);
    ok(rp_memory_open(&second.store.backend, &err)); /* a store of its own, with stamps of its own */
    ok(rp_owner_write(w->catalog, &second.store, "test", false, &err));
    rp_backend_close(second.store.backend);
    second.store.backend = w->store.backend;
    assert_int_equal(ownership_of(w, &second), RP_OWNER_SWAPPED);
    assert_int_equal(rp_owner_write(w->catalog, &second.store, "test", false, &err), RP_ENOTOWNER);
    hold_key(w, &w->store, "k", 0);
    assert_int_equal(rp_owner_accept_move(w->catalog, &second.store, "test", "tester", &before, &err), RP_ENOTOWNER);
    assert_int_equal(rp_owner_recover(w->catalog, &second.store, "test", "tester", false, &recovery, &err),
                     RP_ENOTOWNER);
    assert_non_null(strstr(err.text, "'main'"));
    ok(ask_lift(w->catalog, world_number(w, "SELECT id FROM hold"), "tester", &err));
    ok(rp_owner_accept_move(w->catalog, &second.store, "test", "tester", &before, &err));
    ok(rp_owner_write(w->catalog, &second.store, "test", false, &err));
    put_record(w, catalog_epoch(w), "00c0ffee00c0ffee");
    assert_int_equal(rp_owner_check(w->catalog, &w->store, &err), RP_ENOTOWNER);
}

/* clang-format off */
#define ON(which, words, fn) { #fn " on " words, fn, world_set_up, world_tear_down, (void *)(uintptr_t)(which) }
/* Each engine once, each store once. */
#define ALL(fn) ON(1, "postgres, memory", fn), ON(2, "sqlite, fs", fn)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(a_store_that_is_renamed_is_refused_and_by_every_recovery),
        ALL(a_renamed_row_keeps_its_holds_and_what_was_opened_meanwhile_goes),
        ALL(two_stores_are_not_made_one),
        ALL(nothing_is_made_under_a_name_that_is_another_stores),
        ALL(who_has_a_store_open_that_is_gone_is_refused),
        ALL(who_looked_before_a_rename_claims_nothing_after_it),
        ALL(a_rename_waits_for_whoever_writes_to_what_it_removes),
        ALL(a_rename_removes_no_row_that_another_node_has_owned_by_then),
        ALL(a_store_with_two_names_is_refused_until_nothing_hangs_on_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
/* clang-format on */
