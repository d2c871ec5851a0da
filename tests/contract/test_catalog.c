/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog on both engines: its schema, its transaction, its ids and its audit chains. Needs
 * PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "catalog/row.h"
#include "catalog/schema.h"
#include "catalog/statements/statements.h"
#include "changes.h"
#include "lib/world.h"

static struct rp_error err;

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    world_make(w, (enum dbs_kind)(uintptr_t)*state, WORLD_MEMORY);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world_drop(*state);
    free(*state);
    return 0;
}

static bool is_postgres(const struct world *w)
{
    return w->dbs.kind == DBS_POSTGRES;
}

/* ---- statements ---- */

static void sample_values(const char *types, struct rp_value *out)
{
    static const char zero[RP_DIGEST_BYTES];
    for (size_t i = 0; types != NULL && types[i] != 0; i++)
        out[i] = types[i] == 'i' ? rp_int(1) : types[i] == 's' ? rp_text("x") : rp_bytes(zero, sizeof zero);
}

static int run_sample(struct rp_db *db, const struct rp_sql *sql, bool nulls)
{
    struct rp_value args[16] = { 0 }, row[32] = { 0 };
    if (!nulls) {
        sample_values(sql->params, args);
        sample_values(sql->rows, row);
    }
    if (sql->rows != NULL && sql->columns != NULL)
        return rp_db_query_rows(db, sql, args, row, 1, rp_ignore_row, NULL, &err);
    if (sql->rows != NULL) return rp_db_exec_rows(db, sql, args, row, 1, NULL, &err);
    if (sql->columns != NULL) return rp_db_query(db, sql, args, rp_ignore_row, NULL, &err);
    return rp_db_exec(db, sql, args, NULL, &err);
}

static void test_every_statement_runs_with_the_types_it_declares(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < RP_SQL_COUNT; i++) {
        ok(rp_db_begin(w->dbs.db, true, &err));
        int r = run_sample(w->dbs.db, &rp_statements[i], false);
        if (r < 0) fail_msg("%s: %s", rp_statements[i].name, err.text);
        rp_db_rollback(w->dbs.db);
    }
}

/* PostgreSQL refuses a parameter whose type it cannot tell; with NULL nothing but the declaration
 * tells it. */
static void test_every_statement_is_planned_with_nulls(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < RP_SQL_COUNT; i++) {
        RP_CLEANUP(rp_buf_done) struct rp_buf plan = RP_BUF(1 << 20);
        struct rp_value nulls[16] = { 0 };
        int r = dbs_explain(w->dbs.db, &rp_statements[i], nulls, &plan, &err);
        if (r < 0) fail_msg("%s: %s", rp_statements[i].name, err.text);
    }
}

/* ---- opening ---- */

static void test_a_fresh_database_becomes_a_catalog_and_stays_the_same_one(void **state)
{
    struct world *w = *state;
    int schema = 0;
    struct rp_catalog *again = world_catalog(w, 3, NULL);
    assert_string_equal(again->id, w->catalog->id);
    assert_int_equal(strlen(again->id), 36);
    ok(rp_catalog_schema_of(again->db, &schema, &err));
    assert_int_equal(schema, rp_catalog_schema_known());
    rp_catalog_close(again);
    struct dbs other;
    dbs_make(&other, w->dbs.kind, NULL);
    ok(rp_catalog_open(other.url, &(struct rp_catalog_options){ .lane = 0 }, &again, &err));
    assert_string_not_equal(again->id, w->catalog->id);
    rp_catalog_close(again);
    dbs_drop(&other);
}

static int open_catalog(const struct world *w, bool migrate)
{
    struct rp_catalog *catalog = NULL;
    rp_error_clear(&err);
    int r = rp_catalog_open(w->dbs.url, &(struct rp_catalog_options){ .migrate = migrate }, &catalog, &err);
    rp_catalog_close(catalog);
    return r;
}

static void test_a_catalog_of_another_schema_is_refused(void **state)
{
    struct world *w = *state;
    int known = rp_catalog_schema_known();
    world_script(w, "UPDATE meta SET number = %d WHERE name = 'schema'", known + 1);
    assert_int_equal(open_catalog(w, false), RP_ESCHEMA);
    assert_non_null(strstr(err.hint, "upgrade"));
    assert_int_equal(open_catalog(w, true), RP_ESCHEMA); /* a newer one is not "migrated" down */
    assert_int_equal(world_number(w, "SELECT number FROM meta WHERE name = 'schema'"), known + 1);
    world_script(w, "UPDATE meta SET number = %d WHERE name = 'schema'", known);
    assert_int_equal(open_catalog(w, false), 0);
}

static void test_a_database_with_other_tables_is_refused_and_left_alone(void **state)
{
    struct world *w = *state;
    static const char *const contents[] = { "CREATE TABLE canvas (id bigint)",
                                            "CREATE TABLE meta (name text, number bigint)" };
    for (size_t i = 0; i < 2; i++) {
        struct dbs other;
        struct rp_catalog *catalog = NULL;
        dbs_make(&other, w->dbs.kind, NULL);
        ok(rp_db_script(other.db, contents[i], &err));
        int r = rp_catalog_open(other.url, &(struct rp_catalog_options){ .migrate = true }, &catalog, &err);
        assert_int_equal(r, RP_ESCHEMA);
        assert_null(catalog);
        assert_non_null(strstr(err.hint, "catalog.url"));
        assert_true(rp_db_script(other.db, "SELECT count(*) FROM mark", &err) < 0);
        dbs_drop(&other);
    }
}

struct creator {
    const char *url;
    char id[40];
    int lane, r;
    struct rp_error why;
    pthread_barrier_t *start;
};

static void *create(void *arg)
{
    struct creator *c = arg;
    struct rp_catalog *catalog = NULL;
    pthread_barrier_wait(c->start);
    c->r = rp_catalog_open(c->url, &(struct rp_catalog_options){ .lane = c->lane }, &catalog, &c->why);
    if (c->r == 0) snprintf(c->id, sizeof c->id, "%s", catalog->id);
    rp_catalog_close(catalog);
    return NULL;
}

static void test_two_who_create_the_same_catalog_at_once_both_get_it(void **state)
{
    struct world *w = *state;
    for (int round = 0; round < 8; round++) {
        struct dbs fresh;
        pthread_barrier_t start;
        pthread_t threads[2];
        struct creator creators[2];
        dbs_make(&fresh, w->dbs.kind, NULL);
        pthread_barrier_init(&start, NULL, 2);
        for (int i = 0; i < 2; i++) {
            creators[i] = (struct creator){ .url = fresh.url, .lane = i, .start = &start };
            assert_int_equal(pthread_create(&threads[i], NULL, create, &creators[i]), 0);
        }
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < 2; i++)
            world_ok(creators[i].r, &creators[i].why, __FILE__, __LINE__);
        assert_string_equal(creators[0].id, creators[1].id);
        pthread_barrier_destroy(&start);
        dbs_drop(&fresh);
    }
}

/* ---- transactions ---- */

static void test_a_change_that_lost_a_race_is_made_again_from_its_start(void **state)
{
    struct world *w = *state;
    const int codes[] = { RP_EBUSY, RP_ECONFLICT };
    for (int i = 0; i < 2; i++) {
        struct change c = { .fail_first = 3, .fail_code = codes[i] };
        ok(rp_catalog_transact(w->catalog, make_change, &c, &err));
        assert_int_equal(c.runs, 4);
        expect_changes(w, i + 1);
    }
}

static void test_a_change_that_never_gets_through_is_given_up_and_leaves_nothing(void **state)
{
    struct world *w = *state;
    struct change c = { .fail_first = INT32_MAX, .fail_code = RP_EBUSY };
    assert_int_equal(rp_catalog_transact(w->catalog, make_change, &c, &err), RP_EBUSY);
    assert_in_range(c.runs, 5, 50);
    expect_changes(w, 0);
    struct change refused = { .fail_first = 1, .fail_code = RP_EHELD };
    assert_int_equal(rp_catalog_transact(w->catalog, make_change, &refused, &err), RP_EHELD);
    assert_int_equal(refused.runs, 1); /* a decision is not a race */
    expect_changes(w, 0);
}

struct fault_plan {
    const char *call;
    bool after;
    int nth, seen, code;
};

static int inject(struct fault_plan *p, bool after, const char *call, struct rp_error *e)
{
    if (p->after != after || strcmp(call, p->call) != 0 || ++p->seen != p->nth) return 0;
    return rp_error_set(e, p->code, "injected");
}

static int inject_before(void *ctx, const char *call, struct rp_error *e)
{
    return inject(ctx, false, call, e);
}

static int inject_after(void *ctx, const char *call, struct rp_error *e)
{
    return inject(ctx, true, call, e);
}

static struct rp_catalog *faulty(struct world *w, struct fault_plan *plan)
{
    return world_catalog(w, 0, &(struct rp_db_fault){ .before = inject_before, .after = inject_after, .ctx = plan });
}

static void test_a_lost_commit_is_asked_for_until_it_is_known(void **state)
{
    struct world *w = *state;
    struct fault_plan happened = { .call = "commit", .after = true, .nth = 1, .code = RP_EUNKNOWN };
    struct rp_catalog *catalog = faulty(w, &happened);
    struct change c = { 0 };
    ok(rp_catalog_transact(catalog, make_change, &c, &err));
    assert_int_equal(c.runs, 1); /* it had happened: not made twice */
    expect_changes(w, 1);
    rp_catalog_close(catalog);

    struct fault_plan did_not = { .call = "commit", .after = false, .nth = 1, .code = RP_EUNKNOWN };
    catalog = faulty(w, &did_not);
    c = (struct change){ 0 };
    ok(rp_catalog_transact(catalog, make_change, &c, &err));
    assert_int_equal(c.runs, 2);
    assert_int_equal(err.code, 0); /* what went wrong on the way is over */
    assert_string_equal(err.text, "");
    expect_changes(w, 2);
    rp_catalog_close(catalog);
}

/* Its answer is lost, and another program commits on the same lane before anybody can ask. */
struct overtaken {
    struct rp_catalog *other;
    bool lost;
    int asked;
};

static int lose_and_overtake(void *ctx, const char *call, struct rp_error *e)
{
    struct overtaken *o = ctx;
    struct change c = { 0 };
    if (o->lost || strcmp(call, "commit") != 0) return 0;
    o->lost = true;
    ok(rp_catalog_transact(o->other, make_change, &c, e));
    return rp_error_set(e, RP_EUNKNOWN, "injected");
}

static int count_asked(void *ctx, const char *call, struct rp_error *e)
{
    struct overtaken *o = ctx;
    (void)e;
    o->asked += o->lost && strcmp(call, "begin") == 0;
    return 0;
}

static void test_a_lost_commit_that_nobody_can_know_of_is_asked_for_once(void **state)
{
    struct world *w = *state;
    struct overtaken o = { .other = w->catalog };
    struct rp_catalog *catalog =
        world_catalog(w, 0, &(struct rp_db_fault){ .before = count_asked, .after = lose_and_overtake, .ctx = &o });
    struct change c = { 0 };
    assert_int_equal(rp_catalog_transact(catalog, make_change, &c, &err), RP_EUNKNOWN);
    assert_non_null(strstr(err.text, "another program has changed the catalog since"));
    assert_int_equal(o.asked, 1);
    expect_changes(w, 2);
    rp_catalog_close(catalog);
}

static void test_a_commit_cut_off_on_the_wire_happens_once(void **state)
{
    struct world *w = *state;
    const enum cut cuts[] = { CUT_BEFORE_COMMIT, CUT_AFTER_COMMIT };
    for (int i = 0; i < 2; i++) {
        char url[600];
        struct cutter *cutter = cutter_start(&w->dbs, cuts[i], url, sizeof url);
        struct rp_catalog *catalog = NULL;
        struct change c = { 0 };
        ok(rp_catalog_open(url, &(struct rp_catalog_options){ .lane = 0 }, &catalog, &err));
        ok(rp_catalog_transact(catalog, make_change, &c, &err));
        assert_int_equal(c.runs, cuts[i] == CUT_BEFORE_COMMIT ? 2 : 1);
        expect_changes(w, i + 1);
        rp_catalog_close(catalog);
        cutter_stop(cutter);
        char socket[96]; /* stands where the next one's will */
        snprintf(socket, sizeof socket, "%s/.s.PGSQL.5432", w->dbs.dir);
        assert_int_equal(unlink(socket), 0);
    }
}

/* As after a cancelled wait for a standby: it is looked for, found, and not made again. */
static void test_a_commit_answered_with_a_warning_happens_once(void **state)
{
    struct world *w = *state;
    struct change c = { 0 };
    ok(rp_db_script(w->dbs.db,
                    "CREATE SEQUENCE warnings;"
                    "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS"
                    " $$BEGIN IF nextval('warnings') = 1 THEN RAISE WARNING 'in doubt'; END IF; RETURN NULL; END$$;"
                    "CREATE CONSTRAINT TRIGGER warns AFTER INSERT ON audit DEFERRABLE INITIALLY DEFERRED"
                    " FOR EACH ROW EXECUTE FUNCTION warn()",
                    &err));
    ok(rp_catalog_transact(w->catalog, make_change, &c, &err));
    assert_int_equal(world_number(w, "SELECT last_value FROM warnings"), 1);
    assert_int_equal(c.runs, 1);
    expect_changes(w, 1);
}

static void test_audit_tally_and_lane_are_saved_together_or_not_at_all(void **state)
{
    struct world *w = *state;
    int64_t made = 0;
    bool through = false;
    struct change first = { 0 };
    ok(rp_catalog_transact(w->catalog, make_change, &first, &err)); /* the lane is there: every call below is inside */
    made++;
    for (int nth = 1; !through; nth++) {
        for (int after = 0; after < 2; after++) {
            struct fault_plan plan = { .call = "run", .after = after == 1, .code = RP_EFAILED };
            struct rp_catalog *catalog = faulty(w, &plan);
            plan.seen = 0; /* opening it made calls too */
            plan.nth = nth;
            struct change c = { 0 };
            int r = rp_catalog_transact(catalog, make_change, &c, &err);
            through = plan.seen < nth;
            assert_int_equal(r, through ? 0 : RP_EFAILED);
            made += through;
            expect_changes(w, made);
            rp_catalog_close(catalog);
        }
    }
}

/* ---- ids ---- */

static void test_ids_grow_in_each_lane_and_never_meet_across_lanes(void **state)
{
    struct world *w = *state;
    struct rp_catalog *lanes[4];
    int64_t last[4] = { 0 };
    for (int i = 0; i < 4; i++)
        lanes[i] = world_catalog(w, i, NULL);
    for (int round = 0; round < 30; round++) {
        for (int i = 0; i < 4; i++) {
            struct change c = { 0 };
            ok(rp_catalog_transact(lanes[i], make_change, &c, &err));
            assert_true(c.id > last[i]);
            last[i] = c.id;
        }
    }
    assert_int_equal(world_number(w, "SELECT count(DISTINCT mark_id) FROM audit WHERE event = 'test.changed'"), 120);
    for (int i = 0; i < 4; i++)
        rp_catalog_close(lanes[i]);
}

static void test_ids_grow_when_the_clock_goes_back(void **state)
{
    struct world *w = *state;
    struct change before = { 0 }, after = { 0 };
    w->host_ahead_ms = w->db_ahead_ms = 2 * RP_HOUR_MS;
    ok(rp_catalog_transact(w->catalog, make_change, &before, &err));
    w->host_ahead_ms = w->db_ahead_ms = -2 * RP_HOUR_MS;
    struct rp_catalog *again = world_catalog(w, 0, NULL); /* nothing of it is in memory only */
    for (int i = 0; i < 3; i++) {
        ok(rp_catalog_transact(again, make_change, &after, &err));
        assert_true(after.id > before.id);
        before.id = after.id;
    }
    rp_catalog_close(again);
}

/* ---- audit ---- */

static int append_one(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct rp_audit_entry entry = { .event = "test.said",
                                    .actor = "tester",
                                    .mark_id = 7,
                                    .tenant_id = 3,
                                    .details = json_pack("{s:s}", "words", (const char *)ctx) };
    return rp_tx_audit(tx, &entry, e);
}

static void append(struct rp_catalog *catalog, int n)
{
    for (int i = 0; i < n; i++) {
        char words[32];
        snprintf(words, sizeof words, "number %d", i);
        ok(rp_catalog_transact(catalog, append_one, words, &err));
    }
}

/* Whoever can write the database file can take the triggers away; the chain is what still shows
 * it. */
static void drop_triggers(struct world *w)
{
    if (is_postgres(w))
        world_script(w, "ALTER TABLE audit DISABLE TRIGGER USER; ALTER TABLE run_record DISABLE TRIGGER USER");
    else
        world_script(w, "DROP TRIGGER audit_only_erase; DROP TRIGGER audit_no_delete;"
                        "DROP TRIGGER run_record_no_update; DROP TRIGGER run_record_no_delete");
}

static struct rp_audit_verdict verify(struct world *w)
{
    struct rp_audit_verdict verdict;
    ok(rp_audit_verify(w->catalog, &verdict, &err));
    return verdict;
}

static void expect_broken(struct world *w, int64_t lane, int64_t seq, const char *why)
{
    struct rp_audit_verdict v = verify(w);
    assert_true(v.broken);
    if (v.lane != lane || v.seq != seq || strstr(v.why, why) == NULL)
        fail_msg("found %" PRId64 ".%" PRId64 " (%s), not %" PRId64 ".%" PRId64 " (%s)", v.lane, v.seq, v.why, lane,
                 seq, why);
}

static void test_a_chain_of_many_pages_verifies(void **state)
{
    struct world *w = *state;
    struct rp_audit_verdict empty = verify(w);
    assert_false(empty.broken);
    assert_int_equal(empty.rows, 0);
    append(w->catalog, 1010);
    struct rp_audit_verdict v = verify(w);
    assert_false(v.broken);
    assert_int_equal(v.rows, 1010);
    assert_int_equal(v.lanes, 1);
    assert_int_equal(v.erased, 0);
}

static void test_a_changed_field_of_a_row_is_named(void **state)
{
    struct world *w = *state;
    static const char *const fields[] = { "event = 'test.lied'", "actor = 'somebody else'", "at = at + 1",
                                          "mark_id = 8",         "mark_id = NULL",          "tenant_id = 4",
                                          "digest = hash" };
    append(w->catalog, 5);
    drop_triggers(w);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        world_script(w, "CREATE TABLE kept AS SELECT * FROM audit WHERE seq = 3; UPDATE audit SET %s WHERE seq = 3",
                     fields[i]);
        if (i < 6)
            expect_broken(w, 0, 3, "its hash does not follow");
        else
            expect_broken(w, 0, 3, "its details are not what was recorded");
        world_script(w, "DELETE FROM audit WHERE seq = 3; INSERT INTO audit SELECT * FROM kept; DROP TABLE kept");
        assert_false(verify(w).broken);
    }
    world_script(w, "UPDATE audit SET hash = digest WHERE seq = 4");
    expect_broken(w, 0, 4, "its hash does not follow");
}

static void test_changed_details_are_named(void **state)
{
    struct world *w = *state;
    append(w->catalog, 5);
    drop_triggers(w);
    world_script(w, "UPDATE audit SET details = '{\"words\":\"other\"}' WHERE seq = 2");
    expect_broken(w, 0, 2, "its details are not what was recorded");
}

static void test_a_missing_row_is_named(void **state)
{
    struct world *w = *state;
    append(w->catalog, 5);
    drop_triggers(w);
    world_script(w, "DELETE FROM audit WHERE seq = 3");
    expect_broken(w, 0, 3, "the row is missing");
    world_script(w, "DELETE FROM audit WHERE seq = 1");
    expect_broken(w, 0, 1, "the row is missing");
}

static void test_a_swapped_pair_is_named(void **state)
{
    struct world *w = *state;
    append(w->catalog, 5);
    drop_triggers(w);
    world_script(w, "UPDATE audit SET seq = 100 WHERE seq = 2; UPDATE audit SET seq = 2 WHERE seq = 3;"
                    "UPDATE audit SET seq = 3 WHERE seq = 100");
    expect_broken(w, 0, 2, "its hash does not follow");
}

static void test_a_cut_tail_is_named(void **state)
{
    struct world *w = *state;
    append(w->catalog, 5);
    drop_triggers(w);
    world_script(w, "DELETE FROM audit WHERE seq >= 4");
    expect_broken(w, 0, 4, "ends before the lane's head");
    world_script(w, "DELETE FROM audit");
    expect_broken(w, 0, 1, "ends before the lane's head");
}

static void test_a_changed_or_removed_head_is_named(void **state)
{
    struct world *w = *state;
    append(w->catalog, 5);
    world_script(w, "UPDATE lane SET head = (SELECT hash FROM audit WHERE seq = 4)");
    expect_broken(w, 0, 5, "head is another");
    world_script(w, "DELETE FROM lane");
    expect_broken(w, 0, 1, "head is gone");
}

static void test_a_tail_cut_with_its_head_shows_in_another_lane(void **state)
{
    struct world *w = *state;
    struct rp_catalog *second = world_catalog(w, 1, NULL);
    append(w->catalog, 5);
    append(second, 1); /* and the heads of the others, as this is its first */
    drop_triggers(w);
    world_script(w,
                 "DELETE FROM audit WHERE lane = 0 AND seq >= 4;"
                 "UPDATE lane SET seq = 3, head = (SELECT hash FROM audit WHERE lane = 0 AND seq = 3) WHERE lane = 0");
    expect_broken(w, 0, 5, "another lane recorded this row; it is gone");
    rp_catalog_close(second);
}

static void test_a_chain_written_anew_shows_in_another_lane(void **state)
{
    struct world *w = *state;
    struct rp_catalog *second = world_catalog(w, 1, NULL);
    append(w->catalog, 5);
    append(second, 1);
    drop_triggers(w);
    world_script(w, "DELETE FROM audit WHERE lane = 0; DELETE FROM lane WHERE lane = 0");
    struct rp_catalog *again = world_catalog(w, 0, NULL); /* a perfect chain of other words */
    append(again, 9);
    expect_broken(w, 0, 5, "another lane recorded another hash here");
    rp_catalog_close(again);
    rp_catalog_close(second);
}

static void test_a_dropped_lane_shows_in_another_lane(void **state)
{
    struct world *w = *state;
    struct rp_catalog *second = world_catalog(w, 1, NULL);
    append(w->catalog, 2);
    append(second, 2); /* 1 word, heads, 1 word: seq 3 */
    world_pass(w, RP_HOUR_MS);
    append(w->catalog, 1); /* records lane 1 at seq 3 */
    append(second, 4);
    drop_triggers(w);
    world_script(w, "DELETE FROM audit WHERE lane = 1; DELETE FROM lane WHERE lane = 1");
    expect_broken(w, 1, 3, "another lane recorded this row; it is gone");
    rp_catalog_close(second);
}

static void test_heads_of_the_others_are_recorded_once_an_hour(void **state)
{
    struct world *w = *state;
    static const char count[] = "SELECT count(*) FROM audit WHERE event = 'audit.heads'";
    struct rp_catalog *second = world_catalog(w, 1, NULL);
    append(w->catalog, 3);
    assert_int_equal(world_number(w, count), 0); /* there were no others */
    append(second, 3);
    assert_int_equal(world_number(w, count), 1);
    world_pass(w, 59 * RP_MINUTE_MS);
    append(second, 2);
    assert_int_equal(world_number(w, count), 1);
    world_pass(w, 2 * RP_MINUTE_MS);
    append(second, 2);
    assert_int_equal(world_number(w, count), 2);
    assert_false(verify(w).broken);
    rp_catalog_close(second);
}

static int erase(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    return rp_audit_erase(tx, 0, *(int64_t *)ctx, e);
}

static void test_erased_details_leave_the_chain_whole(void **state)
{
    struct world *w = *state;
    int64_t seq = 2, none = 99;
    append(w->catalog, 4);
    ok(rp_catalog_transact(w->catalog, erase, &seq, &err));
    ok(rp_catalog_transact(w->catalog, erase, &seq, &err));
    struct rp_audit_verdict v = verify(w);
    assert_false(v.broken);
    assert_int_equal(v.erased, 1);
    assert_int_equal(v.rows, 4);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE details IS NULL"), 1);
    assert_int_equal(rp_catalog_transact(w->catalog, erase, &none, &err), RP_ENOTFOUND);
    drop_triggers(w);
    world_script(w, "UPDATE audit SET details = '{\"words\":\"number 0\"}' WHERE seq = 2"); /* what it did not say */
    expect_broken(w, 0, 2, "its details are not what was recorded");
}

static void test_the_database_refuses_to_change_audit_rows_and_records(void **state)
{
    struct world *w = *state;
    static const char *const changes[] = { "UPDATE audit SET actor = 'x'",
                                           "UPDATE audit SET details = '{}'",
                                           "UPDATE audit SET details = NULL, actor = 'x'",
                                           "DELETE FROM audit",
                                           "DELETE FROM audit WHERE seq = 1",
                                           "UPDATE run_record SET outcome = 'done'",
                                           "UPDATE run_record SET body = body",
                                           "DELETE FROM run_record" };
    append(w->catalog, 2);
    (void)world_sweep(w);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        rp_error_clear(&err);
        if (rp_db_script(w->dbs.db, changes[i], &err) == 0) fail_msg("not refused: %s", changes[i]);
        assert_non_null(strstr(err.text, "append-only"));
    }
    if (is_postgres(w))
        assert_true(rp_db_script(w->dbs.db, "TRUNCATE audit, run_record", &err) < 0);
    else {
        assert_true(rp_db_script(w->dbs.db, "INSERT OR REPLACE INTO run_record SELECT * FROM run_record", &err) < 0);
        assert_true(rp_db_script(w->dbs.db, "REPLACE INTO audit SELECT * FROM audit", &err) < 0);
    }
    world_check(w);
    assert_int_equal(world_number(w, "SELECT count(*) FROM run_record"), 1);
}

/* ---- lanes ---- */

struct pair {
    struct rp_catalog *holder, *other;
    sem_t inside, finished;
    bool overtook; /* the other one finished while the holder was still in its transaction */
    int r[2];
    struct rp_error why[2];
};

static int hold_open(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct pair *p = ctx;
    struct change c = { 0 };
    struct timespec until;
    int r = make_change(tx, &c, e);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    sem_post(&p->inside);
    p->overtook = sem_timedwait(&p->finished, &until) == 0;
    return r;
}

static void *hold(void *arg)
{
    struct pair *p = arg;
    p->r[0] = rp_catalog_transact(p->holder, hold_open, p, &p->why[0]);
    return NULL;
}

static void *overtake(void *arg)
{
    struct pair *p = arg;
    struct change c = { 0 };
    sem_wait(&p->inside);
    p->r[1] = rp_catalog_transact(p->other, make_change, &c, &p->why[1]);
    sem_post(&p->finished);
    return NULL;
}

static void test_two_lanes_do_not_wait_for_each_other(void **state)
{
    struct world *w = *state;
    pthread_t threads[2];
    struct pair p = { .holder = world_catalog(w, 1, NULL), .other = world_catalog(w, 2, NULL) };
    append(p.holder, 1);
    append(p.other, 1);
    sem_init(&p.inside, 0, 0);
    sem_init(&p.finished, 0, 0);
    assert_int_equal(pthread_create(&threads[0], NULL, hold, &p), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, overtake, &p), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++)
        world_ok(p.r[i], &p.why[i], __FILE__, __LINE__);
    assert_true(p.overtook);
    expect_changes(w, 2);
    sem_destroy(&p.inside);
    sem_destroy(&p.finished);
    rp_catalog_close(p.holder);
    rp_catalog_close(p.other);
}

/* clang-format off */
#define ON(kind, words, fn) { #fn " on " words, fn, set_up, tear_down, (void *)(uintptr_t)(kind) }
#define BOTH(fn) ON(DBS_SQLITE_FILE, "sqlite", fn), ON(DBS_POSTGRES, "postgres", fn)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_every_statement_runs_with_the_types_it_declares),
        BOTH(test_every_statement_is_planned_with_nulls),
        BOTH(test_a_fresh_database_becomes_a_catalog_and_stays_the_same_one),
        BOTH(test_a_catalog_of_another_schema_is_refused),
        BOTH(test_a_database_with_other_tables_is_refused_and_left_alone),
        BOTH(test_two_who_create_the_same_catalog_at_once_both_get_it),
        BOTH(test_a_change_that_lost_a_race_is_made_again_from_its_start),
        BOTH(test_a_change_that_never_gets_through_is_given_up_and_leaves_nothing),
        BOTH(test_a_lost_commit_is_asked_for_until_it_is_known),
        BOTH(test_a_lost_commit_that_nobody_can_know_of_is_asked_for_once),
        ON(DBS_POSTGRES, "postgres", test_a_commit_cut_off_on_the_wire_happens_once),
        ON(DBS_POSTGRES, "postgres", test_a_commit_answered_with_a_warning_happens_once),
        BOTH(test_audit_tally_and_lane_are_saved_together_or_not_at_all),
        BOTH(test_ids_grow_in_each_lane_and_never_meet_across_lanes),
        BOTH(test_ids_grow_when_the_clock_goes_back),
        BOTH(test_a_chain_of_many_pages_verifies),
        BOTH(test_a_changed_field_of_a_row_is_named),
        BOTH(test_changed_details_are_named),
        BOTH(test_a_missing_row_is_named),
        BOTH(test_a_swapped_pair_is_named),
        BOTH(test_a_cut_tail_is_named),
        BOTH(test_a_changed_or_removed_head_is_named),
        BOTH(test_a_tail_cut_with_its_head_shows_in_another_lane),
        BOTH(test_a_chain_written_anew_shows_in_another_lane),
        BOTH(test_a_dropped_lane_shows_in_another_lane),
        BOTH(test_heads_of_the_others_are_recorded_once_an_hour),
        BOTH(test_erased_details_leave_the_chain_whole),
        BOTH(test_the_database_refuses_to_change_audit_rows_and_records),
        ON(DBS_POSTGRES, "postgres", test_two_lanes_do_not_wait_for_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
/* clang-format on */
