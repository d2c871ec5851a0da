/* SPDX-License-Identifier: Apache-2.0 */
/* From an older schema to this one: refused until it is asked for, then made in one transaction,
 * and the catalog is the same one afterwards. From every step that there is. On both engines. Needs
 * PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "catalog/catalog.h"
#include "catalog/mark/restore.h"
#include "catalog/schema.h"
#include "core/subject/quarantine.h"
#include "lib/world.h"

#define ID "cat_00000000000000000000000000000000"

static struct rp_error err;

/* A catalog as it was when only the first `n` steps were known. */
static void make_old(struct dbs *dbs, enum dbs_kind kind, size_t n)
{
    dbs_make(dbs, kind, NULL);
    for (size_t i = 0; i < n; i++)
        ok(rp_db_script(dbs->db, rp_schema_steps[i].sql, &err));
    ok(rp_meta_set(dbs->db, "schema", rp_schema_steps[n - 1].number, "", &err));
    ok(rp_meta_set(dbs->db, "catalog", 0, ID, &err));
}

static int open_it(const struct dbs *dbs, bool migrate, char id[64], int *schema)
{
    struct rp_catalog *catalog = NULL;
    rp_error_clear(&err);
    int r = rp_catalog_open(dbs->url, &(struct rp_catalog_options){ .migrate = migrate }, &catalog, &err);
    if (r == 0) r = rp_catalog_schema_of(catalog->db, schema, &err);
    if (r == 0) snprintf(id, 64, "%s", catalog->id);
    rp_catalog_close(catalog);
    return r;
}

static int nothing_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    (void)ctx;
    struct rp_audit_entry entry = { .event = "test.noted", .actor = "tester", .text = "{}" };
    return rp_tx_audit(tx, &entry, e);
}

static void expect_usable(const struct dbs *dbs)
{
    struct rp_catalog *catalog = NULL;
    struct rp_audit_verdict verdict;
    ok(rp_catalog_open(dbs->url, &(struct rp_catalog_options){ .lane = 0 }, &catalog, &err));
    ok(rp_catalog_transact(catalog, nothing_tx, NULL, &err));
    ok(rp_audit_verify(catalog, &verdict, &err));
    assert_int_equal(verdict.rows, 1);
    rp_catalog_close(catalog);
}

static void an_older_catalog_is_brought_up_to_date_when_it_is_asked_for(void **state)
{
    const enum dbs_kind *kind = *state;
    assert_true(rp_schema_steps_n > 1); /* or there is nothing to try */
    for (size_t n = 1; n < rp_schema_steps_n; n++) {
        struct dbs dbs;
        char id[64] = "";
        int schema = 0;
        make_old(&dbs, *kind, n);
        assert_int_equal(open_it(&dbs, false, id, &schema), RP_ESCHEMA);
        assert_non_null(strstr(err.hint, "reprieve migrate"));
        ok(rp_catalog_schema_of(dbs.db, &schema, &err));
        assert_int_equal(schema, rp_schema_steps[n - 1].number); /* refused means untouched */
        ok(open_it(&dbs, true, id, &schema));
        assert_int_equal(schema, rp_catalog_schema_known());
        assert_string_equal(id, ID);
        expect_usable(&dbs);
        dbs_drop(&dbs);
    }
}

/* Step 10: a copy in quarantine that was made before knows the key that it came from, by the id in
 * its own. */
static void a_copy_in_quarantine_learns_its_original(void **state)
{
    const enum dbs_kind *kind = *state;
    struct dbs dbs;
    char id[64] = "", copy[RP_QUARANTINE_KEY], sql[1024];
    int schema = 0;
    int64_t mark_id = INT64_C(0x5a3f19c7e60b2d84);
    make_old(&dbs, *kind, 5);
    snprintf(
        sql, sizeof sql,
        "INSERT INTO mark (id, store_id, key, active, state, was, next_at, due_at, marked_at, etag, version, "
        "size_bytes, modified_ms, reason, actor) VALUES "
        "(%" PRId64 ", 1, 'the original', NULL, 4, 3, NULL, 1, 1, '', '', 1, 1, '', ''), "
        "(7, 1, '%s', 1, 1, 1, 2, 2, 1, '', '', 1, 1, '', ''), (8, 1, 'plain', 1, 1, 1, 2, 2, 1, '', '', 1, 1, '', '')",
        mark_id, rp_quarantine_key(mark_id, copy));
    ok(rp_db_script(dbs.db, sql, &err));
    ok(open_it(&dbs, true, id, &schema));
    struct rp_arena arena = RP_ARENA(1 << 16);
    struct rp_mark mark;
    ok(rp_mark_get(dbs.db, 7, &arena, &mark, &err));
    assert_string_equal(mark.original, "the original");
    ok(rp_mark_get(dbs.db, 8, &arena, &mark, &err));
    assert_null(mark.original);
    rp_arena_done(&arena);
    dbs_drop(&dbs);
}

/* Step 15: a restore that was left open went up until then; now it begins at its newest mark. One
 * that is over is left alone. */
static void a_restore_that_was_left_open_begins_at_its_newest_mark(void **state)
{
    const enum dbs_kind *kind = *state;
    struct dbs dbs;
    char id[64] = "";
    int schema = 0;
    size_t before = rp_schema_steps_n;
    while (rp_schema_steps[before - 1].number >= 15)
        before--;
    make_old(&dbs, *kind, before);
    ok(rp_db_script(dbs.db,
                    "INSERT INTO restore_run (run_id, upto_id, asked_by, total, stage, cursor_id, cursor_key, open) "
                    "VALUES (7, 99, 'tester', 5, 1, 42, 'b', 1), (8, 99, 'tester', 5, -1, 42, 'b', NULL)",
                    &err));
    ok(open_it(&dbs, true, id, &schema));
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 16);
    struct rp_restore_row row;
    ok(rp_restore_get(dbs.db, 7, &arena, &row, &err));
    assert_int_equal(row.cursor.stage, 0);
    assert_int_equal(row.cursor.id, 0);
    assert_int_equal(row.total, 5);
    ok(rp_restore_get(dbs.db, 8, &arena, &row, &err));
    assert_int_equal(row.cursor.stage, -1);
    dbs_drop(&dbs);
}

static int table_is_set(void *ctx, const struct rp_value *v, struct rp_error *e)
{
    int *forgotten = ctx;
    (void)e;
    if (strstr(v[1].p, "autovacuum_vacuum_scale_factor=") != NULL) return 0;
    print_error("%s: no step of the schema says when PostgreSQL cleans it (@VACUUM)\n", v[0].p);
    (*forgotten)++;
    return 0;
}

/* Its defaults let a table of ten million rows wait for two million dead ones. */
static void postgres_is_told_of_every_table_when_to_clean_it(void **state)
{
    static const struct rp_sql tables = {
        "tables",
        "SELECT c.relname::text, COALESCE(pg_catalog.array_to_string(c.reloptions, ','), '') FROM pg_catalog.pg_class c"
        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p') AND n.nspname = $1",
        "s", NULL, "ss"
    };
    struct dbs dbs;
    int forgotten = 0;
    (void)state;
    make_old(&dbs, DBS_POSTGRES, rp_schema_steps_n);
    ok(rp_db_query(dbs.db, &tables, (struct rp_value[]){ rp_text(dbs.schema) }, table_is_set, &forgotten, &err));
    assert_int_equal(forgotten, 0);
    dbs_drop(&dbs);
}

/* Something of a later step is there already, and not by us. */
static void a_step_that_fails_leaves_the_catalog_as_it_was(void **state)
{
    const enum dbs_kind *kind = *state;
    struct dbs dbs;
    char id[64] = "";
    int schema = 0;
    make_old(&dbs, *kind, rp_schema_steps_n);
    ok(rp_meta_set(dbs.db, "schema", rp_schema_steps[0].number, "", &err));
    assert_true(open_it(&dbs, true, id, &schema) < 0);
    assert_non_null(strstr(err.text, "schema step"));
    ok(rp_catalog_schema_of(dbs.db, &schema, &err));
    assert_int_equal(schema, rp_schema_steps[0].number);
    dbs_drop(&dbs);
}

int main(void)
{
    static enum dbs_kind kinds[] = { DBS_SQLITE_FILE, DBS_POSTGRES };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(an_older_catalog_is_brought_up_to_date_when_it_is_asked_for, &kinds[0]),
        cmocka_unit_test_prestate(an_older_catalog_is_brought_up_to_date_when_it_is_asked_for, &kinds[1]),
        cmocka_unit_test_prestate(a_copy_in_quarantine_learns_its_original, &kinds[0]),
        cmocka_unit_test_prestate(a_copy_in_quarantine_learns_its_original, &kinds[1]),
        cmocka_unit_test_prestate(a_restore_that_was_left_open_begins_at_its_newest_mark, &kinds[0]),
        cmocka_unit_test_prestate(a_restore_that_was_left_open_begins_at_its_newest_mark, &kinds[1]),
        cmocka_unit_test(postgres_is_told_of_every_table_when_to_clean_it),
        cmocka_unit_test_prestate(a_step_that_fails_leaves_the_catalog_as_it_was, &kinds[0]),
        cmocka_unit_test_prestate(a_step_that_fails_leaves_the_catalog_as_it_was, &kinds[1]),
    };
    return cmocka_run_group_tests_name("migrate", tests, NULL, NULL);
}
