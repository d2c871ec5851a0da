/* SPDX-License-Identifier: Apache-2.0 */
/* References counted in a user's database: before a mark that asks for it, and before its purge. On both engines, with
 * objects in memory and in a directory. Needs PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "core/check/references.h"
#include "core/check/waits.h"
#include "core/state.h"
#include "lib/ask.h"
#include "lib/uploads.h"
#include "sweep_steps.h"

#define HOUR RP_HOUR_MS

/* A user's database with a column and a query that name keys. */
struct user {
    struct dbs dbs;
    struct rp_database_config database;
    struct rp_reference references[2];
    struct rp_config config;
};

static void user_make(struct world *w, struct user *u, const char *sql)
{
    dbs_make(&u->dbs, w->dbs.kind, NULL);
    ok(rp_db_script(u->dbs.db, "CREATE TABLE canvas (id bigint, image_key text); CREATE TABLE post (url text)", &err));
    u->database =
        (struct rp_database_config){ .name = "app", .url = u->dbs.url, .read_url = "", .statement_timeout_ms = 300 };
    u->references[0] = (struct rp_reference){ .database = "app", .table = "canvas", .column = "image_key" };
    u->references[1] = (struct rp_reference){ .database = "app", .sql = sql };
    u->config = (struct rp_config){ .databases = &u->database, .n_databases = 1 };
    w->config.referenced_by = u->references;
    w->config.n_referenced_by = 2;
    ok(rp_references_new(&u->config, &w->config, &w->store.references, &err));
}

static void user_drop(struct world *w, struct user *u)
{
    rp_references_free(w->store.references);
    w->store.references = NULL;
    dbs_drop(&u->dbs);
}

static void user_does(struct user *u, const char *sql)
{
    ok(rp_db_script(u->dbs.db, sql, &err));
}

static const char url_keys[] = "SELECT substr(url, 8) FROM post -- after the host";

static struct rp_mark_answer mark_unreferenced(struct world *w, const char *key)
{
    struct rp_mark_request q = { .key = key, .grace_ms = 0, .at_ms = -1, .reason = "", .if_unreferenced = true };
    struct rp_mark_answer answer;
    ok(rp_mark_many(w->catalog, &w->store, &q, 1, "tester", false, &answer, &err));
    return answer;
}

static void test_M6_what_is_referenced_is_not_marked_and_the_answer_says_how_often(void **state)
{
    struct world *w = *state;
    struct user u;
    user_make(w, &u, url_keys);
    world_put(w, "k", "x");
    world_put(w, "free", "x");
    user_does(&u, "INSERT INTO canvas VALUES (1, 'k'), (2, 'k'), (3, 'K'), (4, NULL); INSERT INTO post VALUES "
                  "('host://k'), (NULL)");
    bool sqlite = w->dbs.kind != DBS_POSTGRES; /* which may hold a key as bytes, equal to no text: a reference too */
    if (sqlite) user_does(&u, "INSERT INTO canvas VALUES (5, CAST('k' AS BLOB))");
    struct rp_mark_answer a = mark_unreferenced(w, "k");
    assert_int_equal(a.error.code, RP_EREFERENCED);
    assert_int_equal(a.references, sqlite ? 4 : 3);
    assert_non_null(strstr(a.error.text, " rows (canvas.image_key in app)"));
    assert_int_equal(mark_unreferenced(w, "free").what, RP_MARK_CREATED);
    expect_purged(w, 1);
    assert_int_equal(world_mark(w, "k", 0).what, RP_MARK_CREATED); /* without the condition it is the user's word */
    user_drop(w, &u);
}

static void test_M6_what_became_referenced_is_skipped_and_can_be_restored_until_it_is_not(void **state)
{
    struct world *w = *state;
    struct user u;
    user_make(w, &u, url_keys);
    world_put(w, "k", "x");
    assert_int_equal(mark_unreferenced(w, "k").what, RP_MARK_CREATED);
    user_does(&u, "INSERT INTO post VALUES ('host://k')");
    struct rp_sweep_result *r = world_sweep(w);
    assert_string_equal(r->outcome, "done");
    assert_int_equal(r->run.figures.skipped, 1);
    struct rp_mark m = world_newest(w, "k");
    assert_int_equal(m.state, RP_MARKED);
    assert_int_equal(m.attempts, 0);
    assert_string_equal(m.note, "still referenced by 1 row (sql referenced_by[1] in app)");
    expect_purged(w, 0); /* not asked again at once */
    user_does(&u, "DELETE FROM post");
    world_pass(w, 2 * HOUR);
    expect_purged(w, 1);
    assert_false(world_exists(w, "k"));
    world_put(w, "k", "x");
    assert_int_equal(mark_unreferenced(w, "k").what, RP_MARK_CREATED);
    user_does(&u, "INSERT INTO canvas VALUES (1, 'k')");
    (void)world_sweep(w);
    assert_int_equal(world_restore(w, "k").what, RP_REPRIEVE_DONE);
    user_drop(w, &u);
}

/* Due, and nothing but the guard between it and its end: as long as the guard fails it stays, however often it is asked. */
static void expect_guarded(struct world *w, const char *words)
{
    for (int i = 0; i < 5; i++) {
        expect_nothing_purged(w, words);
        struct rp_mark m = world_newest(w, "k");
        assert_int_equal(m.state, RP_MARKED);
        assert_int_equal(m.attempts, 0);
        world_pass(w, 2 * HOUR);
    }
    assert_true(world_exists(w, "k"));
    assert_int_equal(mark_unreferenced(w, "other").error.code, RP_EUNAVAILABLE);
}

/* With a mark that is made if nothing refers to it, and something else beside it. */
static void user_begin(struct world *w, struct user *u)
{
    user_make(w, u, url_keys);
    world_put(w, "k", "x");
    world_put(w, "other", "x");
    assert_int_equal(mark_unreferenced(w, "k").what, RP_MARK_CREATED);
}

/* ---- asked whenever a mark of people or rules is due, whatever it was made with ---- */

static void expect_kept(struct world *w, const char *key)
{
    struct rp_sweep_result *r = world_sweep(w);
    assert_int_equal(r->run.figures.skipped, 1);
    assert_int_equal(r->run.figures.purged, 0);
    struct rp_mark m = world_newest(w, key);
    RP_CLEANUP(rp_json_decrefp) json_t *line = rp_mark_line(&m, "main");
    char at[RP_TIME_TEXT];
    assert_int_equal(m.state, RP_MARKED);
    assert_int_equal(m.attempts, 0);
    assert_non_null(strstr(rp_json_get_text(line, "note", ""), "still referenced by"));
    assert_string_equal(rp_json_get_text(line, "asked_again_at", ""), rp_time_format(m.next_at_ms, at));
}

static void test_M6_a_mark_that_was_made_without_asking_is_asked_about_when_it_is_due(void **state)
{
    struct world *w = *state;
    struct user u;
    user_make(w, &u, url_keys);
    put_due(w, "k"); /* before the application deletes its row */
    user_does(&u, "INSERT INTO canvas VALUES (1, 'k')");
    expect_kept(w, "k");
    user_does(&u, "DELETE FROM canvas");
    world_pass(w, 2 * HOUR);
    expect_purged(w, 1);
    user_drop(w, &u);
}

static void test_M6_a_list_that_was_configured_later_is_asked_and_one_taken_away_is_not(void **state)
{
    struct world *w = *state;
    struct user u;
    put_due(w, "k");
    user_make(w, &u, url_keys);
    user_does(&u, "INSERT INTO canvas VALUES (1, 'k')");
    expect_kept(w, "k");
    struct rp_references *list = w->store.references;
    w->store.references = NULL;
    world_pass(w, 2 * HOUR);
    expect_purged(w, 1);
    w->store.references = list;
    user_drop(w, &u);
}

static void test_M6_files_are_asked_about_and_uploads_that_were_never_seen_are_not(void **state)
{
    struct world *w = *state;
    struct user u;
    struct rp_file_command c;
    char row[256];
    user_make(w, &u, url_keys);
    int64_t live = uploads_live(w, "a", "hello");
    assert_int_equal(uploads_delete(w, live, 0, &c), 0);
    snprintf(row, sizeof row, "INSERT INTO canvas VALUES (1, '%s')", uploads_file(w, live).key);
    user_does(&u, row);
    expect_kept(w, uploads_file(w, live).key);
    uploads_expect(w, live, RP_FILE_DELETED);
    assert_int_equal(uploads_restore(w, live, &c), 0); /* restored until they say yes */
    int64_t never = uploads_begin(w, "b", "x");
    user_does(&u, "DROP TABLE canvas"); /* nobody can be asked */
    world_pass(w, 2 * HOUR);
    (void)world_sweep(w);
    uploads_expect(w, never, RP_FILE_EXPIRED);
    assert_int_equal(uploads_mark(w, never).state, RP_PURGED);
    user_drop(w, &u);
}

static void test_M6_a_copy_in_quarantine_is_not_asked_about_again(void **state)
{
    struct world *w = *state;
    struct user u;
    w->config.mode = RP_MODE_QUARANTINE;
    put_due(w, "k");
    world_swept(w, 1);
    user_make(w, &u, url_keys);
    user_does(&u, "DROP TABLE canvas");
    world_pass(w, 8 * RP_DAY_MS);
    world_swept(w, 1);
    user_drop(w, &u);
}

/* A node that knows of no list has taken over what another was asking about. */
static void test_M6_a_mark_under_check_whose_list_is_gone_waits_and_is_claimed_anew(void **state)
{
    struct world *w = *state;
    struct user u;
    struct world_steps s;
    user_make(w, &u, url_keys);
    put_due(w, "k");
    world_steps_begin(w, w->catalog, "main", &s);
    world_steps_claim(w, w->catalog, &s);
    assert_int_equal(world_newest(w, "k").state, RP_CHECKING);
    ok(rp_run_end(w->catalog, &s.run, "failed", &err));
    struct rp_references *list = w->store.references;
    w->store.references = NULL;
    world_pass(w, HOUR);
    (void)world_sweep(w);
    assert_int_equal(world_newest(w, "k").state, RP_MARKED);
    world_pass(w, HOUR);
    expect_purged(w, 1);
    w->store.references = list;
    world_steps_done(&s);
    user_drop(w, &u);
}

static void test_M6_a_failing_look_up_never_counts_as_unreferenced(void **state)
{
    struct world *w = *state;
    struct user u;
    user_begin(w, &u);
    user_does(&u, "ALTER TABLE canvas RENAME TO gone");
    expect_guarded(w, "canvas");
    /* a view in its place that never comes to an end: stopped by the time limit */
    user_does(&u, "CREATE VIEW canvas AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                  "SELECT 'no ' || i AS image_key FROM n LEFT JOIN gone ON gone.id = n.i");
    expect_guarded(w, "references of store 'main'");
    user_does(&u, "DROP VIEW canvas; ALTER TABLE gone RENAME TO canvas");
    expect_purged(w, 1);
    user_drop(w, &u);
}

static void test_M6_a_locked_table_never_counts_as_unreferenced(void **state)
{
    struct world *w = *state;
    struct user u;
    user_begin(w, &u);
    ok(rp_db_begin(u.dbs.db, true, &err));
    user_does(&u, "LOCK TABLE canvas IN ACCESS EXCLUSIVE MODE");
    expect_guarded(w, "references of store 'main'");
    rp_db_rollback(u.dbs.db);
    expect_purged(w, 1);
    user_drop(w, &u);
}

static void test_M6_a_query_that_is_no_list_of_keys_and_a_list_taken_away_purge_nothing(void **state)
{
    struct world *w = *state;
    struct user u;
    user_begin(w, &u);
    struct rp_references *good = w->store.references;
    u.references[1].sql = "SELECT url, url FROM post";
    ok(rp_references_new(&u.config, &w->config, &w->store.references, &err));
    expect_guarded(w, "references of store 'main'");
    rp_references_free(w->store.references);
    w->store.references = NULL; /* no referenced_by any more */
    expect_nothing_purged(w, "no referenced_by");
    assert_int_equal(mark_unreferenced(w, "other").error.code, RP_EREFERENCESUNKNOWN);
    world_pass(w, 2 * HOUR);
    w->store.references = good;
    expect_purged(w, 1);
    user_drop(w, &u);
}

/* ---- a database that does not answer ---- */

struct patience {
    struct rp_clock clock;
    int64_t ahead_ms; /* of the boot clock */
    struct rp_waits *waits;
    const char *kind, *name; /* whom it is about */
    int left_alone, answers; /* how often somebody was told so */
};

static int64_t boot_now(void *ctx)
{
    return rp_time_boot_ms() + ((struct patience *)ctx)->ahead_ms;
}

static void told(void *ctx, const struct rp_whom *whom, int64_t left_ms, const struct rp_error *why)
{
    struct patience *p = ctx;
    assert_string_equal(whom->kind, p->kind);
    assert_string_equal(whom->name, p->name);
    assert_true((left_ms > 0) == (why != NULL));
    p->left_alone += why != NULL;
    p->answers += why == NULL;
}

static void patience_make(struct world *w, struct patience *p)
{
    *p = (struct patience){ .clock = { .boot_ms = boot_now, .ctx = p }, .kind = "database", .name = "app" };
    p->waits = rp_waits_new(&p->clock);
    assert_non_null(p->waits);
    rp_waits_tell(p->waits, told, p);
    rp_references_use(w->store.references, p->waits);
}

static const char never_ends[] =
    "ALTER TABLE canvas RENAME TO gone;"
    "CREATE VIEW canvas AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT 'no ' || i AS image_key FROM n LEFT JOIN gone ON gone.id = n.i";
static const char ends[] = "DROP VIEW canvas; ALTER TABLE gone RENAME TO canvas";

static void test_M12_a_database_that_hangs_is_left_alone_longer_each_time(void **state)
{
    struct world *w = *state;
    struct user u;
    struct patience p;
    user_make(w, &u, url_keys);
    patience_make(w, &p);
    world_put(w, "k", "x");
    world_put(w, "other", "x");
    assert_int_equal(mark_unreferenced(w, "k").what, RP_MARK_CREATED);
    user_does(&u, never_ends);
    int64_t least_ms = 5 * RP_SECOND_MS;
    for (int i = 1; i <= 3; i++) {
        expect_nothing_purged(w, "references of store 'main' in app.canvas"); /* asked */
        assert_int_equal(p.left_alone, i);
        int64_t left_ms = rp_references_left_alone_ms(w->store.references, NULL);
        assert_true(left_ms > least_ms - RP_SECOND_MS);
        struct rp_mark m = world_newest(w, "k");
        assert_true(m.next_at_ms - rp_clock_now_ms(&rp_clock_host) > left_ms - RP_SECOND_MS);
        world_pass(w, 2 * HOUR);
        expect_nothing_purged(w, "database 'app' is left alone for now"); /* not asked */
        assert_int_equal(p.left_alone, i);
        assert_int_equal(world_newest(w, "k").state, RP_MARKED);
        assert_int_equal(world_newest(w, "k").attempts, 0);
        world_pass(w, 2 * HOUR);
        p.ahead_ms += left_ms;
        least_ms *= 2;
    }
    user_does(&u, ends);
    expect_purged(w, 1);
    assert_int_equal(p.answers, 1);
    user_drop(w, &u);
    rp_waits_free(p.waits);
}

static void test_M12_while_a_database_is_left_alone_others_go_on_and_people_are_answered(void **state)
{
    struct world *w = *state;
    struct user u;
    struct patience p;
    struct rp_references *second;
    user_make(w, &u, url_keys);
    patience_make(w, &p);
    world_put(w, "k", "x");
    world_put(w, "other", "x");
    assert_int_equal(mark_unreferenced(w, "k").what, RP_MARK_CREATED);
    ok(rp_references_new(&u.config, &w->config, &second, &err)); /* another store that names it */
    rp_references_use(second, p.waits);
    user_does(&u, never_ends);
    expect_nothing_purged(w, "references of store 'main' in app.canvas");
    assert_true(rp_references_left_alone_ms(second, &err) > 0);
    assert_non_null(strstr(err.text, "left alone"));
    w->uploads.expire_ms = 0; /* an upload that nobody can refer to */
    uploads_put(w, uploads_begin(w, "never confirmed", "x"), "x");
    expect_purged(w, 1);
    struct rp_mark_answer a = mark_unreferenced(w, "other"); /* a person asks: the database does not answer */
    assert_int_equal(a.error.code, RP_EUNAVAILABLE);
    assert_null(strstr(a.error.text, "left alone"));
    user_does(&u, ends);
    assert_int_equal(mark_unreferenced(w, "other").what, RP_MARK_CREATED);
    assert_int_equal(rp_references_left_alone_ms(second, NULL), 0); /* it has answered */
    rp_references_free(second);
    world_pass(w, 2 * HOUR);
    expect_purged(w, 2);
    user_drop(w, &u);
    rp_waits_free(p.waits);
}

static void test_M12_a_wrong_question_leaves_its_database_to_others(void **state)
{
    struct world *w = *state;
    struct user u;
    struct patience p;
    user_make(w, &u, url_keys);
    patience_make(w, &p);
    world_put(w, "k", "x");
    world_put(w, "other", "x");
    assert_int_equal(mark_unreferenced(w, "k").what, RP_MARK_CREATED);
    user_does(&u, "ALTER TABLE canvas RENAME TO gone");
    expect_guarded(w, "canvas"); /* asked each time */
    assert_int_equal(p.left_alone, 0);
    user_does(&u, "ALTER TABLE gone RENAME TO canvas");
    expect_purged(w, 1);
    user_drop(w, &u);
    rp_waits_free(p.waits);
}

/* ---- row-level security, which leaves rows out without a word ---- */

/* Who may read the tables, and is none of their owners. */
static void role_make(struct user *u, const char *role)
{
    char text[400];
    snprintf(text, sizeof text,
             "CREATE ROLE %s; GRANT USAGE ON SCHEMA %s TO %s; GRANT SELECT ON canvas, post TO %s;"
             "ALTER TABLE canvas ENABLE ROW LEVEL SECURITY", /* without a policy it shows nothing to others */
             role, u->dbs.schema, role, role);
    user_does(u, text);
}

static void role_drop(struct user *u, const char *role)
{
    char text[200];
    snprintf(text, sizeof text, "DROP OWNED BY %s; DROP ROLE %s", role, role);
    user_does(u, text);
}

/* From now on `role` asks. */
static void user_asks_as(struct world *w, struct user *u, const char *role)
{
    static char url[700];
    snprintf(url, sizeof url, "%s&options=-c%%20role%%3D%s", u->dbs.url, role);
    u->database.url = url;
    rp_references_free(w->store.references);
    ok(rp_references_new(&u->config, &w->config, &w->store.references, &err));
}

static void test_M6_rows_that_row_security_hides_are_never_taken_for_none(void **state)
{
    struct world *w = *state;
    struct user u;
    char role[64];
    user_make(w, &u, url_keys);
    snprintf(role, sizeof role, "sees_some_%s", u.dbs.schema);
    world_put(w, "k", "x");
    world_put(w, "other", "x");
    assert_int_equal(mark_unreferenced(w, "k").what, RP_MARK_CREATED);
    user_does(&u, "INSERT INTO canvas VALUES (1, 'k'), (2, 'other')");
    role_make(&u, role);
    user_asks_as(w, &u, role);
    expect_guarded(w, "row-level security policy for table \"canvas\"");
    assert_non_null(strstr(world_newest(w, "k").note, "BYPASSRLS"));
    assert_non_null(strstr(mark_unreferenced(w, "other").error.text, "BYPASSRLS"));
    assert_int_equal(rp_references_check(w->store.references, &err), RP_EUNAVAILABLE); /* as doctor asks */
    char text[100];
    snprintf(text, sizeof text, "ALTER ROLE %s BYPASSRLS", role);
    user_does(&u, text);
    expect_purged(w, 0);
    assert_non_null(strstr(world_newest(w, "k").note, "still referenced by 1"));
    role_drop(&u, role);
    user_drop(w, &u);
}

/* Its owner's policies apply to what it shows, whoever asks. */
static void test_M6_a_view_whose_owner_row_security_filters_is_no_answer(void **state)
{
    struct world *w = *state;
    struct user u;
    char role[64], text[400];
    user_make(w, &u, url_keys);
    snprintf(role, sizeof role, "owns_view_%s", u.dbs.schema);
    world_put(w, "k", "x");
    world_put(w, "other", "x");
    assert_int_equal(mark_unreferenced(w, "k").what, RP_MARK_CREATED);
    user_does(&u, "INSERT INTO canvas VALUES (1, 'k'), (2, 'other')");
    role_make(&u, role);
    snprintf(text, sizeof text,
             "ALTER TABLE canvas RENAME TO kept; CREATE VIEW canvas AS SELECT * FROM kept;"
             "GRANT CREATE ON SCHEMA %s TO %s; ALTER VIEW canvas OWNER TO %s",
             u.dbs.schema, role, role);
    user_does(&u, text);
    expect_guarded(w, "row-level security policy for table \"kept\"");
    user_does(&u, "ALTER VIEW canvas OWNER TO CURRENT_USER"); /* who owns the table sees all of it */
    expect_purged(w, 0);
    assert_non_null(strstr(world_newest(w, "k").note, "still referenced by 1"));
    role_drop(&u, role);
    user_drop(w, &u);
}

/* clang-format off */
int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(test_M6_what_is_referenced_is_not_marked_and_the_answer_says_how_often),
        ALL(test_M6_what_became_referenced_is_skipped_and_can_be_restored_until_it_is_not),
        ALL(test_M6_a_mark_that_was_made_without_asking_is_asked_about_when_it_is_due),
        BOTH(test_M6_a_list_that_was_configured_later_is_asked_and_one_taken_away_is_not),
        BOTH(test_M6_files_are_asked_about_and_uploads_that_were_never_seen_are_not),
        BOTH(test_M6_a_copy_in_quarantine_is_not_asked_about_again),
        BOTH(test_M6_a_mark_under_check_whose_list_is_gone_waits_and_is_claimed_anew),
        BOTH(test_M6_a_failing_look_up_never_counts_as_unreferenced),
        ON(1, "postgres, memory", test_M6_a_locked_table_never_counts_as_unreferenced),
        BOTH(test_M6_a_query_that_is_no_list_of_keys_and_a_list_taken_away_purge_nothing),
        BOTH(test_M12_a_database_that_hangs_is_left_alone_longer_each_time),
        BOTH(test_M12_while_a_database_is_left_alone_others_go_on_and_people_are_answered),
        BOTH(test_M12_a_wrong_question_leaves_its_database_to_others),
        ON(1, "postgres, memory", test_M6_rows_that_row_security_hides_are_never_taken_for_none),
        ON(1, "postgres, memory", test_M6_a_view_whose_owner_row_security_filters_is_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
/* clang-format on */
