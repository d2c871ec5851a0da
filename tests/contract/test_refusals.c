/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused or left out, and said so: a store that is closed, a lock that is lost, a query
 * that is none, scopes of holds. On both engines. Needs PostgreSQL: run under
 * tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/token.h"
#include "core/check/references.h"
#include "core/hold.h"
#include "core/sweep/plan.h"
#include "lib/ask.h"
#include "lib/uploads.h"

static struct rp_error err;

/* ---- a closed store ---- */

struct told {
    int stores;
    int64_t due;
    int code;
};

static void tell(void *ctx, const struct rp_store *store, int64_t due, const struct rp_error *why)
{
    struct told *told = ctx;
    (void)store;
    told->stores++;
    told->due += due;
    told->code = why->code;
}

static int count_planned(void *ctx, const struct rp_store *store, const struct rp_mark *mark, struct rp_error *e)
{
    (void)store, (void)mark, (void)e;
    ++*(int *)ctx;
    return 0;
}

static void a_store_that_could_not_be_opened_is_left_out_and_told(void **state)
{
    struct world *w = *state;
    struct told told = { 0 };
    struct rp_sweep_result *result = calloc(1, sizeof *result);
    struct rp_backend *backend = w->store.backend;
    int planned = 0;
    assert_non_null(result);
    world_put(w, "object", "bytes");
    (void)world_mark(w, "object", RP_DAY_MS);
    world_pass(w, 2 * RP_DAY_MS);
    w->store.backend = NULL;
    rp_error_set(&w->store.closed, RP_EUNAVAILABLE, "the server does not answer");
    struct rp_sweep sweeper = world_sweeper(w, w->catalog, "main");
    sweeper.left_out = tell;
    sweeper.ctx = &told;
    ok(rp_sweep_run(&sweeper, result, &err));
    assert_string_equal(result->outcome, "failed"); /* no store was open */
    assert_int_equal(result->code, RP_EUNAVAILABLE);
    assert_int_equal(told.stores, 1);
    assert_int_equal(told.due, 1);
    assert_int_equal(told.code, RP_EUNAVAILABLE);
    assert_int_equal(rp_sweep_count_too_weak(&sweeper, &w->store, &err), 0);
    ok(rp_plan_each(&sweeper, count_planned, &planned, &err));
    assert_int_equal(planned, 1);
    w->store.backend = backend;
    *result = (struct rp_sweep_result){ 0 };
    ok(rp_sweep_run(&sweeper, result, &err)); /* and it goes on when it opens */
    assert_string_equal(result->outcome, "done");
    assert_false(world_exists(w, "object"));
    free(result);
}

/* ---- a lost lock ---- */

static void a_continuous_run_that_lost_its_lock_says_so_and_is_not_closed_twice(void **state)
{
    struct world *w = *state;
    struct rp_run mine, theirs;
    const char *outcome = NULL;
    struct rp_sweep sweeper = world_sweeper(w, w->catalog, "main");
    ok(rp_run_begin(w->catalog, "sweep", "main", &w->worker, RP_HOUR_MS, &mine, &err));
    ok(rp_sweep_renew(&sweeper, &mine, &err));
    assert_false(mine.lost);
    world_pass(w, 2 * RP_HOUR_MS);
    ok(rp_run_begin(w->catalog, "sweep", "main", &w->worker, RP_HOUR_MS, &theirs, &err));
    assert_int_equal(rp_sweep_renew(&sweeper, &mine, &err), RP_ECHANGED);
    assert_true(mine.lost);
    rp_figures_error(&theirs.figures, "a store did not answer");
    ok(rp_sweep_close(&sweeper, &theirs, &outcome, &err));
    assert_string_equal(outcome, "partial");
    assert_int_equal(world_number(w, "SELECT count(*) FROM run_record"), 2);
}

/* ---- queries that are none ---- */

static void a_query_may_not_hold_what_means_something_to_the_port(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *sql;
        int code;
    } cases[] = {
        { "SELECT key FROM used WHERE a = $1", RP_ECONFIG },
        { "SELECT key FROM used WHERE a = $9", RP_ECONFIG },
        { "SELECT key FROM used WHERE a IN (@ROWS)", RP_ECONFIG },
        { "SELECT key FROM used WHERE a = @Z", RP_ECONFIG },
        { "SELECT key FROM used; DROP TABLE used", RP_ECONFIG },
        { "SELECT key FROM used WHERE mail = 'a@b' AND price = '$' || '@' || '$x' || '@[' || '$:'", 0 },
    };
    struct rp_database_config database = { .name = "app", .url = "sqlite::memory:", .read_url = "sqlite::memory:" };
    struct rp_config whole = { .environment = "test", .databases = &database, .n_databases = 1 };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rp_reference reference = { .database = "app", .sql = cases[i].sql };
        struct rp_references *guard = NULL;
        w->config.referenced_by = &reference;
        w->config.n_referenced_by = 1;
        assert_int_equal(rp_references_new(&whole, &w->config, &guard, &err), cases[i].code);
        assert_int_equal(guard != NULL, cases[i].code == 0);
        rp_references_free(guard);
    }
    w->config.n_referenced_by = 0;
}

/* ---- holds ---- */

static void a_scope_is_read_as_people_write_it(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *text;
        int code;
        enum rp_scope scope;
    } cases[] = {
        { "everything", 0, RP_SCOPE_EVERYTHING },
        { "tenant/acme", 0, RP_SCOPE_TENANT },
        { "main:a.png", 0, RP_SCOPE_SUBJECT },
        { "main:a/*", 0, RP_SCOPE_PREFIX },
        { "main:*", 0, RP_SCOPE_PREFIX },
        { "no-colon", RP_EINVAL, 0 },
        { ":key", RP_EINVAL, 0 },
        { "main:", RP_EINVAL, 0 },
        { "main:*.png", RP_EINVAL, 0 },
        { "main:a*b*", RP_EINVAL, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rp_scope_name name = { 0 };
        int r = rp_scope_read(cases[i].text, &w->arena, &name, &err);
        if (r != cases[i].code) fail_msg("%s: %s", cases[i].text, rp_error_slug(r));
        if (r == 0) assert_int_equal(name.scope, cases[i].scope);
    }
}

static void a_tenants_hold_lists_its_own_claimed_marks_alone(void **state)
{
    struct world *w = *state;
    struct world_steps s;
    struct rp_file_command deleted;
    world_put(w, "plain", "bytes");
    (void)world_mark(w, "plain", RP_DAY_MS);
    int64_t file = uploads_live(w, "photo", "bytes");
    assert_int_equal(uploads_delete(w, file, RP_DAY_MS, &deleted), 0);
    world_pass(w, 2 * RP_DAY_MS);
    world_steps_begin(w, w->catalog, "main", &s);
    world_steps_claim(w, w->catalog, &s);
    assert_int_equal(s.batch.marks.n, 2);
    struct rp_hold_command request = {
        .scope = RP_SCOPE_TENANT, .tenant = "acme", .reason = "audit", .command.actor = "tester"
    };
    ok(ask_hold(w->catalog, &request, &w->arena, &err));
    assert_int_equal(request.claimed.n, 1);
    assert_string_equal(request.claimed.at[0].key, uploads_file(w, file).key);
    world_steps_erase(w, w->catalog, &s);
    ok(rp_purge_finish(w->catalog, &w->rules, &s.batch, &s.run, &err));
    ok(rp_run_end(w->catalog, &s.run, "done", &err));
    world_steps_done(&s);
}

static void holds_are_listed_in_pages(void **state)
{
    struct world *w = *state;
    struct rp_hold_line *lines = NULL;
    size_t n = 0, seen = 0;
    int64_t after = 0;
    for (int i = 0; i < 5; i++) {
        struct rp_hold_command request = { .scope = RP_SCOPE_EVERYTHING, .reason = "audit", .command.actor = "tester" };
        ok(ask_hold(w->catalog, &request, &w->arena, &err));
    }
    do {
        ok(rp_holds_list(w->catalog->db, after, 2, &w->arena, &lines, &n, &err));
        for (size_t i = 0; i < n; i++) {
            assert_true(lines[i].hold.id > after);
            after = lines[i].hold.id;
        }
        seen += n;
    } while (n > 0);
    assert_int_equal(seen, 5);
}

/* ---- names ---- */

static void a_tenants_name_is_of_few_characters(void **state)
{
    struct world *w = *state;
    static const char *const refused[] = {
        "", ".hidden", "a b", "a/b", "\xc3\xa4", "0123456789012345678901234567890123456789012345678901234567890123"
    };
    struct rp_tenant tenant;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_int_equal(rp_tenant_make(w->catalog, refused[i], &tenant, &err), RP_EINVAL);
    assert_int_equal(world_number(w, "SELECT count(*) FROM tenant"), 0);
    ok(rp_tenant_make(w->catalog, "A.b_c-d@e9", &tenant, &err));
    assert_int_equal(rp_tenant_find(w->catalog->db, "nobody", &tenant, &err), RP_ENOTFOUND);
    assert_int_equal(rp_tenant_by_id(w->catalog->db, 1, &tenant, &err), RP_ENOTFOUND);
}

struct wanted {
    struct rp_token token;
    int64_t expires_in_ms;
};

static int create_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct wanted *wanted = ctx;
    struct rp_token token = wanted->token;
    char secret[RP_TOKEN_SECRET];
    int r = rp_token_secret(token.kind, secret, e);
    if (wanted->expires_in_ms != 0) token.expires_at_ms = tx->late_ms + wanted->expires_in_ms;
    return r < 0 ? r : rp_token_create(tx, &token, secret, "tester", e);
}

static void a_token_without_name_scope_or_future_is_not_made(void **state)
{
    struct world *w = *state;
    static const struct {
        struct wanted wanted;
        int code;
    } cases[] = {
        { { .token = { .kind = RP_TOKEN_BEARER, .name = "", .scopes = 1 } }, RP_EINVAL },
        { { .token = { .kind = RP_TOKEN_BEARER, .name = "a\nb", .scopes = 1 } }, RP_EINVAL },
        { { .token = { .kind = RP_TOKEN_BEARER, .name = "a\x7f", .scopes = 1 } }, RP_EINVAL },
        { { .token = { .kind = RP_TOKEN_BEARER, .name = "\xff", .scopes = 1 } }, RP_EINVAL },
        { { .token = { .kind = RP_TOKEN_BEARER, .name = "none", .scopes = 0 } }, RP_EINVAL },
        { { .token = { .kind = RP_TOKEN_BEARER, .name = "more", .scopes = RP_TOKEN_SCOPES_ALL + 1 } }, RP_EINVAL },
        { { .token = { .kind = RP_TOKEN_BEARER, .name = "past", .scopes = 1 }, .expires_in_ms = -1 }, RP_EINVAL },
        { { .token = { .kind = RP_TOKEN_BEARER, .name = "good", .scopes = 1 }, .expires_in_ms = 1000 }, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wanted wanted = cases[i].wanted;
        int r = rp_catalog_transact(w->catalog, create_tx, &wanted, &err);
        if (r != cases[i].code) fail_msg("'%s': %s", wanted.token.name, rp_error_slug(r));
    }
    assert_int_equal(world_number(w, "SELECT count(*) FROM token"), 1);
}

#define ON(engine, test)                                                                                               \
    {                                                                                                                  \
        .name = #test, .test_func = (test), .setup_func = world_set_up, .teardown_func = world_tear_down,              \
        .initial_state = (void *)(uintptr_t)(engine)                                                                   \
    }
#define BOTH(test) ON(0, test), ON(1, test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(a_store_that_could_not_be_opened_is_left_out_and_told),
        BOTH(a_continuous_run_that_lost_its_lock_says_so_and_is_not_closed_twice),
        BOTH(a_query_may_not_hold_what_means_something_to_the_port),
        BOTH(a_scope_is_read_as_people_write_it),
        BOTH(a_tenants_hold_lists_its_own_claimed_marks_alone),
        BOTH(holds_are_listed_in_pages),
        BOTH(a_tenants_name_is_of_few_characters),
        BOTH(a_token_without_name_scope_or_future_is_not_made),
    };
    return cmocka_run_group_tests_name("refusals", tests, NULL, NULL);
}
