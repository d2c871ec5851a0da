/* SPDX-License-Identifier: Apache-2.0 */
/* One row that cannot be, among many that are as they should be: its mark fails alone and waits for
 * a person in the end, everybody else's come to theirs. On both engines. Needs PostgreSQL: run
 * under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/dead.h"
#include "core/state.h"
#include "core/subject/quarantine.h"
#include "lib/ask.h"
#include "lib/uploads.h"

#define PLAIN 5

static struct rp_error err;

/* ---- what a batch is made of ---- */

struct scene {
    int64_t deleted, other, abandoned; /* files that are as they should be */
    int64_t bad, bad_mark;             /* the one that is edited */
    const char *bad_key;
};

static int64_t delete_now(struct world *w, const char *name)
{
    struct rp_file_command c;
    int64_t id = uploads_live(w, name, "bytes");
    assert_int_equal(uploads_delete(w, id, 0, &c), 0);
    return id;
}

static int64_t abandon(struct world *w, const char *name)
{
    int64_t id = uploads_begin(w, name, "bytes");
    uploads_put(w, id, "bytes");
    return id;
}

static struct scene make_scene(struct world *w, bool pending)
{
    struct scene s;
    world_put_many(w, PLAIN, 4);
    world_mark_many(w, PLAIN, 0);
    s.deleted = delete_now(w, "deleted");
    s.bad = pending ? abandon(w, "bad") : delete_now(w, "bad");
    s.other = delete_now(w, "other");
    s.abandoned = abandon(w, "abandoned");
    s.bad_mark = uploads_mark(w, s.bad).id;
    s.bad_key = uploads_file(w, s.bad).key;
    world_pass(w, 2 * RP_HOUR_MS);
    return s;
}

static struct rp_mark bad_mark(struct world *w, const struct scene *s)
{
    struct rp_mark mark;
    ok(rp_mark_get(w->catalog->db, s->bad_mark, &w->arena, &mark, &err));
    return mark;
}

static void expect_the_others_ended(struct world *w, const struct scene *s)
{
    assert_int_equal(world_number(w, "SELECT count(*) FROM mark WHERE file_id IS NULL AND state = 4"), PLAIN);
    uploads_expect(w, s->deleted, RP_FILE_PURGED);
    uploads_expect(w, s->other, RP_FILE_PURGED);
    uploads_expect(w, s->abandoned, RP_FILE_EXPIRED);
}

/* ---- each damage ---- */

static const struct damage {
    const char *words; /* of the dead letter */
    bool pending;      /* of an upload that nobody confirmed: found at the claim, and nothing is erased */
    const char *sql;   /* :bad is the file */
} damages[] = {
    { "is gone from the catalog", false, "DELETE FROM file WHERE id = :bad" },
    { "is damaged in the catalog", false, "UPDATE file SET status = 99 WHERE id = :bad" },
    { "refunded before", false, "INSERT INTO ledger (file_id, kind, tenant_id, bytes, at) VALUES (:bad, 3, 1, 5, 1)" },
    { "tenant is gone", false, "UPDATE file SET tenant_id = 777 WHERE id = :bad" },
    { "is gone from the catalog", true, "DELETE FROM file WHERE id = :bad" },
    { "is damaged in the catalog", true, "UPDATE file SET status = 99 WHERE id = :bad" },
    { "refunded before", true, "INSERT INTO ledger (file_id, kind, tenant_id, bytes, at) VALUES (:bad, 3, 1, 5, 1)" },
    { "tenant is gone", true, "UPDATE file SET tenant_id = 777 WHERE id = :bad" },
    { "is not its last", true, "UPDATE file SET mark_id = 777 WHERE id = :bad" },
};

static void edit(struct world *w, const struct damage *d, const struct scene *s)
{
    char sql[400];
    const char *at = strstr(d->sql, ":bad");
    snprintf(sql, sizeof sql, "%.*s%" PRId64 "%s", (int)(at - d->sql), d->sql, s->bad, at + strlen(":bad"));
    world_script(w, "%s", sql);
}

static int keep_letter(void *ctx, const struct rp_dead *dead, struct rp_error *e)
{
    struct rp_dead *out = ctx;
    (void)e;
    assert_int_equal(out->id, 0); /* there is one */
    *out = *dead;
    assert_non_null(strstr(dead->error, "retry"));
    assert_non_null(strstr(dead->error, "fil_"));
    return 0;
}

static int64_t the_letter(struct world *w, const struct scene *s, const char *words)
{
    struct rp_dead letter = { 0 };
    struct rp_mark mark = bad_mark(w, s);
    ok(rp_dead_each(w->catalog->db, 0, 10, keep_letter, &letter, &err));
    assert_int_equal(letter.mark_id, s->bad_mark);
    assert_int_equal(mark.state, RP_DEAD);
    assert_int_equal(letter.attempts, w->rules.max_attempts);
    if (strstr(mark.note, words) == NULL) fail_msg("\"%s\" does not say \"%s\"", mark.note, words);
    return letter.id;
}

static void sweep_until_dead(struct world *w, const struct scene *s)
{
    for (int64_t i = bad_mark(w, s).attempts; i < w->rules.max_attempts; i++) {
        world_pass(w, RP_DAY_MS);
        struct rp_sweep_result *result = world_sweep(w);
        assert_string_equal(result->outcome, "partial");
        assert_int_equal(result->run.figures.failed, 1);
    }
}

static void try_damage(struct world *w, const struct damage *d)
{
    enum rp_state as;
    struct scene s = make_scene(w, d->pending);
    edit(w, d, &s);
    struct rp_sweep_result *result = world_sweep(w);
    assert_string_equal(result->outcome, "partial");
    assert_int_equal(result->run.figures.failed, 1);
    assert_int_equal(bad_mark(w, &s).state, RP_PURGING);
    assert_int_equal(bad_mark(w, &s).attempts, 1);
    expect_the_others_ended(w, &s);
    sweep_until_dead(w, &s);
    if (d->pending) assert_true(world_exists(w, s.bad_key));
    int64_t letter = the_letter(w, &s, d->words);
    world_put(w, "later", "x");
    (void)world_mark(w, "later", 0);
    assert_string_equal(world_sweep(w)->outcome, "done");
    ok(ask_keep(w->catalog, letter, "tester", &as, &err));
    assert_int_equal(as, RP_LOST);
}

static void test_a_damaged_row_ends_alone(void **state)
{
    enum dbs_kind kind = (enum dbs_kind)(uintptr_t)*state;
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        struct world w;
        world_make(&w, kind, WORLD_MEMORY);
        try_damage(&w, &damages[i]);
        world_drop(&w);
    }
}

/* What looks as if another writer had been faster is tried again and again before it is believed:
 * here with few marks. */
static void test_a_file_with_the_mark_of_another_ends_alone(void **state)
{
    struct world w;
    world_make(&w, (enum dbs_kind)(uintptr_t)*state, WORLD_MEMORY);
    w.rules.max_attempts = 1;
    world_put(&w, "plain", "x");
    (void)world_mark(&w, "plain", 0);
    struct scene s = { .bad = delete_now(&w, "bad") };
    s.bad_mark = uploads_mark(&w, s.bad).id;
    world_script(&w, "UPDATE file SET mark_id = (SELECT id FROM mark WHERE key = 'plain')");
    assert_string_equal(world_sweep(&w)->outcome, "partial");
    assert_int_equal(world_newest(&w, "plain").state, RP_PURGED);
    (void)the_letter(&w, &s, "another writer was faster");
    world_drop(&w);
}

/* ---- marks themselves ---- */

/* In no state that there is, or in a final one and due: it is not claimed, and lists say what it
 * is. */
static void test_a_mark_in_a_state_that_cannot_be_is_left_alone(void **state)
{
    static const int states[] = { 0, RP_PURGED, RP_REPRIEVED, RP_DEAD, RP_LOST, 99 };
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        struct world w;
        world_make(&w, (enum dbs_kind)(uintptr_t)*state, WORLD_MEMORY);
        world_put(&w, "bad", "x");
        world_put(&w, "good", "x");
        (void)world_mark(&w, "bad", 0);
        (void)world_mark(&w, "good", 0);
        world_script(&w, "UPDATE mark SET state = %d WHERE key = 'bad'", states[i]);
        assert_string_equal(world_sweep(&w)->outcome, "done");
        assert_false(world_exists(&w, "good"));
        assert_true(world_exists(&w, "bad"));
        world_drop(&w);
    }
}

/* ---- many of them ---- */

static void test_many_damaged_rows_hold_nobody_up(void **state)
{
    enum { FILES = 40, NTH = 7 };
    struct world w;
    int64_t ids[FILES], n_bad = 0;
    world_make(&w, (enum dbs_kind)(uintptr_t)*state, WORLD_MEMORY);
    w.rules.retry_first_ms = w.rules.retry_most_ms; /* on a busy machine the sweep would meet them twice */
    for (size_t i = 0; i < FILES; i++) {
        char name[20];
        snprintf(name, sizeof name, "file%zu", i);
        ids[i] = i % 2 == 0 ? delete_now(&w, name) : abandon(&w, name);
    }
    world_pass(&w, 2 * RP_HOUR_MS);
    for (size_t i = 0; i < FILES; i += NTH, n_bad++)
        world_script(&w, "DELETE FROM file WHERE id = %" PRId64, ids[i]);
    struct rp_sweep_result *result = world_sweep(&w);
    assert_string_equal(result->outcome, "partial");
    assert_int_equal(result->run.figures.failed, n_bad);
    for (size_t i = 0; i < FILES; i++)
        if (i % NTH != 0) uploads_expect(&w, ids[i], i % 2 == 0 ? RP_FILE_PURGED : RP_FILE_EXPIRED);
    assert_int_equal(world_count(&w, RP_PURGING), n_bad);
    world_drop(&w);
}

/* ---- a row that was mended ---- */

static void test_what_was_mended_and_retried_ends_as_if_nothing_had_been(void **state)
{
    for (int pending = 0; pending < 2; pending++) {
        struct world w;
        world_make(&w, (enum dbs_kind)(uintptr_t)*state, WORLD_MEMORY);
        struct scene s = make_scene(&w, pending == 1);
        world_script(&w, "UPDATE file SET status = status + 90 WHERE id = %" PRId64, s.bad);
        (void)world_sweep(&w);
        sweep_until_dead(&w, &s);
        world_script(&w, "UPDATE file SET status = status - 90 WHERE id = %" PRId64, s.bad);
        ok(ask_retry(w.catalog, the_letter(&w, &s, "damaged"), "tester", &err));
        assert_string_equal(world_sweep(&w)->outcome, "done");
        uploads_expect(&w, s.bad, pending == 1 ? RP_FILE_EXPIRED : RP_FILE_PURGED);
        uploads_expect_quota(&w, 0, 0, 0);
        assert_false(world_exists(&w, s.bad_key));
        world_check(&w);
        world_drop(&w);
    }
}

/* ---- quarantine ---- */

static void test_the_copy_of_a_damaged_one_has_its_mark(void **state)
{
    static const char *const edits[] = { "DELETE FROM file", "UPDATE file SET status = 99" };
    for (size_t i = 0; i < 2; i++) {
        struct world w;
        char key[RP_QUARANTINE_KEY];
        world_make(&w, (enum dbs_kind)(uintptr_t)*state, WORLD_MEMORY);
        w.config.mode = RP_MODE_QUARANTINE;
        w.config.quarantine_ms = 30 * RP_DAY_MS;
        struct scene s = make_scene(&w, false);
        world_script(&w, "%s WHERE id = %" PRId64, edits[i], s.bad);
        assert_string_equal(world_sweep(&w)->outcome, "partial");
        sweep_until_dead(&w, &s);
        (void)rp_quarantine_key(s.bad_mark, key);
        assert_true(world_exists(&w, key));
        assert_int_equal(world_newest(&w, key).state, RP_MARKED);
        world_pass(&w, 31 * RP_DAY_MS);
        assert_string_equal(world_sweep(&w)->outcome, "done");
        assert_false(world_exists(&w, key));
        world_drop(&w);
    }
}

/* clang-format off */
#define ON(kind, words, fn) { #fn " on " words, fn, NULL, NULL, (void *)(uintptr_t)(kind) }
#define BOTH(fn) ON(DBS_SQLITE_FILE, "sqlite", fn), ON(DBS_POSTGRES, "postgres", fn)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_a_damaged_row_ends_alone),
        BOTH(test_a_file_with_the_mark_of_another_ends_alone),
        BOTH(test_a_mark_in_a_state_that_cannot_be_is_left_alone),
        BOTH(test_many_damaged_rows_hold_nobody_up),
        BOTH(test_what_was_mended_and_retried_ends_as_if_nothing_had_been),
        BOTH(test_the_copy_of_a_damaged_one_has_its_mark),
    };
    return cmocka_run_group_tests_name("damaged rows", tests, NULL, NULL);
}
/* clang-format on */
