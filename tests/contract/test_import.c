/* SPDX-License-Identifier: Apache-2.0 */
/* Import (core/mark/import.h): marks made of annotations that others wrote. On both engines, with
 * objects in memory and in a directory; on a real S3 server in scenario/import_from_s3. Needs
 * PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/hold.h"
#include "core/mark/import_run.h"
#include "lib/ask.h"
#include "lib/world.h"

#define DAY   RP_DAY_MS
#define GRACE (5 * DAY)

static struct rp_error err;

static int set_up(void **state)
{
    uintptr_t which = (uintptr_t)*state;
    struct world *w = calloc(1, sizeof *w);
    world_make(w, which & 1 ? DBS_POSTGRES : DBS_SQLITE_FILE, which & 2 ? WORLD_FS : WORLD_MEMORY);
    w->config.grace_ms = GRACE;
    w->config.allow_any_grace = false; /* what is imported was promised elsewhere */
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world_check(*state); /* whatever a test did */
    world_drop(*state);
    free(*state);
    return 0;
}

static void annotate(struct world *w, const char *key, const struct rp_pair *fields, size_t n)
{
    struct rp_item item = { .key = key };
    if (!world_exists(w, key)) world_put(w, key, "bytes");
    ok(rp_backend_stat(w->inner, &item, 1, &err));
    ok(rp_backend_annotate(w->inner, key, &item.identity, fields, n, &err));
}

/* As another program would: NULL leaves a field out. */
static void annotated(struct world *w, const char *key, const char *flag, const char *marked_on,
                      const char *delete_after)
{
    const struct rp_pair fields[] = { { "marked_for_deletion", flag },
                                      { "marked_for_deletion_on", marked_on },
                                      { "delete_after", delete_after } };
    annotate(w, key, fields, 3);
}

static const char *epoch(struct world *w, int64_t ms)
{
    return rp_arena_fmt(&w->arena, "%" PRId64, ms);
}

static bool was_limited;
/* All of it; the counts are the import's, the last batch is lost. */
static struct rp_import_counts import_with(struct world *w, struct rp_import how)
{
    RP_CLEANUP(rp_import_end) struct rp_import import = how;
    int r;
    import.store = &w->store;
    import.actor = "tester";
    if (import.prefix == NULL) import.prefix = "";
    ok(rp_import_begin(&import, &err));
    while ((r = rp_import_next(&import, w->catalog, &err)) > 0)
        continue;
    ok(r);
    was_limited = import.limited;
    return import.counts;
}

static struct rp_import_counts import_all(struct world *w)
{
    return import_with(w, (struct rp_import){ 0 });
}

static void expect_due(struct world *w, const char *key, int64_t due_at_ms)
{
    struct rp_mark m = world_newest(w, key);
    assert_int_equal(m.state, RP_MARKED);
    if (llabs(m.due_at_ms - due_at_ms) > 30000)
        fail_msg("%s is due %" PRId64 " instead of %" PRId64, key, m.due_at_ms, due_at_ms);
}

/* ---- what an annotation says: pure ---- */

static struct rp_import_note note_of(const char *flag, const char *marked_on, const char *delete_after)
{
    struct rp_pair user[4];
    struct rp_import_note note;
    struct rp_meta meta = { .user = user };
    user[meta.n_user++] = (struct rp_pair){ "owner", "ada" };
    if (flag != NULL) user[meta.n_user++] = (struct rp_pair){ "marked_for_deletion", flag };
    if (marked_on != NULL) user[meta.n_user++] = (struct rp_pair){ "marked_for_deletion_on", marked_on };
    if (delete_after != NULL) user[meta.n_user++] = (struct rp_pair){ "delete_after", delete_after };
    rp_import_read(&meta, GRACE, &note);
    return note;
}

static void only_a_clear_yes_is_a_mark(void **state)
{
    (void)state;
    static const char *const yes[] = { "true", "True", "TRUE", "1" };
    static const char *const no[] = { "false", "False", "0", "" };
    static const char *const unclear[] = { "yes", "maybe", "2", " true", "true,true", "null" };
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_int_equal(note_of(yes[i], NULL, NULL).flag, RP_IMPORT_YES);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_int_equal(note_of(no[i], "1700000000000", "1700000000000").flag, RP_IMPORT_NO);
    for (size_t i = 0; i < sizeof unclear / sizeof *unclear; i++)
        assert_int_equal(note_of(unclear[i], NULL, NULL).flag, RP_IMPORT_UNCLEAR);
    assert_int_equal(note_of(NULL, "1700000000000", "1700000000000").flag, RP_IMPORT_NO);
}

static void times_are_read_where_they_are_unambiguous(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms; /* -1: unreadable */
    } times[] = {
        { "1700000000000", 1700000000000 },
        { "1700000000", 1700000000000 },
        { "1700000000.75", 1700000000000 },
        { "1700000000123.9", 1700000000123 },
        { "2023-11-14T22:13:20Z", 1700000000000 },
        { "2023-11-14T23:13:20.5+01:00", 1700000000500 },
        { "2023-11-14", 1699920000000 },
        { "", -1 },
        { "0", -1 },
        { "-1700000000000", -1 },
        { "1700000000000000", -1 }, /* microseconds */
        { "170000000", -1 },        /* 1975, or cut */
        { "17000000000", -1 },      /* 11 digits: neither */
        { "1700000000000ms", -1 },
        { "1.7e12", -1 },
        { "5d", -1 },
        { "soon", -1 },
        { "1970-01-01T00:00:00Z", -1 },
        { "9999999999999999999999999", -1 },
    };
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        struct rp_import_note after = note_of("true", NULL, times[i].text), on = note_of("true", times[i].text, NULL);
        bool read = times[i].ms >= 0;
        if (after.at_ms != times[i].ms) fail_msg("'%s' was read as %" PRId64, times[i].text, after.at_ms);
        assert_int_equal(after.time, read ? RP_IMPORT_DELETE_AFTER : RP_IMPORT_UNREADABLE);
        assert_int_equal(on.at_ms, read ? times[i].ms + GRACE : -1);
        assert_int_equal(on.time, read ? RP_IMPORT_MARKED_ON : RP_IMPORT_UNREADABLE);
    }
}

static void delete_after_counts_before_the_other_and_is_never_replaced_by_it(void **state)
{
    (void)state;
    assert_int_equal(note_of("1", "1700000000000", "1800000000000").at_ms, 1800000000000);
    assert_int_equal(note_of("1", "1700000000000", "never").at_ms, -1); /* later than the other would be */
    assert_int_equal(note_of("1", "1700000000000", "never").time, RP_IMPORT_UNREADABLE);
    assert_int_equal(note_of("1", NULL, NULL).time, RP_IMPORT_ABSENT);
}

static void a_reason_is_cut_between_characters(void **state)
{
    char text[512] = "";
    struct rp_pair user[] = { { "marked_for_deletion", "true" }, { "deletion_reason", text } };
    const struct rp_meta meta = { .user = user, .n_user = 2 };
    struct rp_import_note note;
    (void)state;
    rp_import_read(&meta, GRACE, &note);
    assert_string_equal(note.reason, "imported");
    for (size_t i = 0; i < 80; i++)
        strcat(text, "\xe2\x82\xac");
    rp_import_read(&meta, GRACE, &note);
    assert_int_equal(strlen(note.reason), 198);
    memset(text, 'x', RP_REASON_MAX);
    text[RP_REASON_MAX] = '\0';
    rp_import_read(&meta, GRACE, &note);
    assert_string_equal(note.reason, text); /* as long as one may be */
    strcpy(text, "bad \xff bytes");
    rp_import_read(&meta, GRACE, &note);
    assert_string_equal(note.reason, "bad ");
}

/* ---- the walk ---- */

static void test_M2_marked_six_days_ago_imported_and_swept(void **state)
{
    struct world *w = *state;
    int64_t now = rp_clock_now_ms(NULL);
    annotated(w, "old", "true", epoch(w, now - 6 * DAY), NULL);
    annotated(w, "young", "true", epoch(w, now - 4 * DAY), NULL);
    annotated(w, "told", "True", epoch(w, now - 6 * DAY), epoch(w, now + 2 * DAY));
    annotated(w, "timeless", "1", NULL, NULL);
    annotated(w, "garbled", "1", "yesterday", NULL);
    annotated(w, "kept", "false", epoch(w, now - 6 * DAY), NULL);
    annotated(w, "vague", "perhaps", epoch(w, now - 6 * DAY), NULL);
    world_put(w, "plain", "bytes");
    struct rp_import_counts c = import_all(w);
    assert_int_equal(c.looked_at, 8);
    assert_int_equal(c.annotated, 5);
    assert_int_equal(c.marked, 5);
    assert_int_equal(c.unreadable, 1);
    assert_int_equal(c.unclear, 1);
    assert_int_equal(c.refused, 0);
    assert_int_equal(world_count(w, RP_MARKED), 5);
    expect_due(w, "old", now);
    expect_due(w, "young", now + DAY);
    expect_due(w, "told", now + 2 * DAY);
    expect_due(w, "timeless", now + GRACE);
    expect_due(w, "garbled", now + GRACE);
    assert_int_equal(world_sweep(w)->run.figures.purged, 1);
    assert_false(world_exists(w, "old"));
    world_pass(w, DAY + 60000);
    assert_int_equal(world_sweep(w)->run.figures.purged, 1);
    assert_false(world_exists(w, "young"));
    assert_true(world_exists(w, "kept") && world_exists(w, "vague") && world_exists(w, "plain"));
}

/* As a command line or a daemon does it. */
static void import_run(struct world *w, struct rp_run *run, const char **outcome)
{
    struct rp_importer importer = { .catalog = w->catalog,
                                    .import = { .store = &w->store, .prefix = "", .actor = "tester" } };
    ok(rp_run_begin(w->catalog, RP_RUN_IMPORT, "main", &w->worker, RP_HOUR_MS, run, &err));
    ok(rp_import_carry(&importer, run, outcome, &err));
}

static void test_M2_the_age_of_an_annotation_is_in_the_records_of_its_import_and_its_sweep(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(rp_freep) struct rp_run *run = calloc(1, sizeof *run);
    const char *outcome = NULL;
    int64_t now = rp_clock_now_ms(NULL), six_days_s = 6 * DAY / 1000;
    annotated(w, "old", "true", epoch(w, now - 6 * DAY), NULL);
    annotated(w, "told", "true", epoch(w, now - DAY), epoch(w, now + 2 * DAY));
    annotated(w, "ahead", "true", epoch(w, now + DAY), NULL);
    annotated(w, "vague", "perhaps", NULL, NULL);
    import_run(w, run, &outcome);
    assert_string_equal(outcome, "done");
    assert_int_equal(run->figures.scanned, 4);
    assert_int_equal(run->figures.marked, 3);
    assert_int_equal(run->figures.skipped, 1);
    assert_int_equal(run->figures.n_errors, 0);
    assert_string_equal(run->figures.oldest, "main:old");
    assert_in_range(run->figures.oldest_age_s, six_days_s - 60, six_days_s + 60);
    assert_int_equal(world_number(w, "SELECT count(*) FROM run_record WHERE kind = 'import' AND name = 'main' AND "
                                     "outcome = 'done' AND body LIKE '%\"marked\":3,%'"),
                     1);
    assert_in_range(world_newest(w, "told").marked_at_ms, now - DAY - 1000, now - DAY + 1000);
    assert_true(world_newest(w, "ahead").marked_at_ms >= now); /* nobody marks in the future */
    struct rp_sweep_result *r = world_sweep(w);
    assert_int_equal(r->run.figures.purged, 1);
    assert_in_range(r->run.figures.oldest_age_s, six_days_s - 60, six_days_s + 60);
    assert_in_range(r->run.figures.age_sum_s / r->run.figures.aged, six_days_s - 60, six_days_s + 60);
    import_run(w, run, &outcome); /* again: what is left is marked already */
    assert_int_equal(run->figures.marked, 0);
    assert_int_equal(run->figures.skipped, 3);
}

static void test_M2_an_import_that_is_stopped_before_it_began_is_partial(void **state)
{
    static const volatile sig_atomic_t stop = 1;
    struct world *w = *state;
    RP_CLEANUP(rp_freep) struct rp_run *run = calloc(1, sizeof *run);
    struct rp_importer importer = { .catalog = w->catalog,
                                    .import = { .store = &w->store, .prefix = "", .actor = "tester" },
                                    .stop = &stop };
    const char *outcome = NULL;
    annotated(w, "old", "true", NULL, NULL);
    ok(rp_run_begin(w->catalog, RP_RUN_IMPORT, "main", &w->worker, RP_HOUR_MS, run, &err));
    ok(rp_import_carry(&importer, run, &outcome, &err));
    assert_string_equal(outcome, "partial");
    assert_int_equal(run->figures.marked, 0);
}

static int deny_reading(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx;
    bool denied = key != NULL && strcmp(key, "secret") == 0 && strcmp(call, "get") == 0;
    return denied ? rp_error_set(e, RP_EDENIED, "denied") : 0;
}

static void test_M2_an_object_that_cannot_be_read_is_an_error_of_the_run(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(rp_freep) struct rp_run *run = calloc(1, sizeof *run);
    const char *outcome = NULL;
    annotated(w, "secret", "true", NULL, NULL);
    annotated(w, "k", "true", NULL, NULL);
    w->before = deny_reading;
    import_run(w, run, &outcome);
    w->before = NULL;
    assert_string_equal(outcome, "partial");
    assert_int_equal(run->figures.marked, 1);
    assert_int_equal(run->figures.failed, 1);
    assert_int_equal(run->figures.n_errors, 1);
}

static void what_is_marked_already_stays_as_it_is(void **state)
{
    struct world *w = *state;
    int64_t now = rp_clock_now_ms(NULL);
    world_put(w, "ours", "bytes");
    annotated(w, "again", "true", NULL, epoch(w, now + 2 * DAY));
    assert_int_equal(world_mark(w, "ours", 3 * DAY).what, RP_MARK_CREATED);
    assert_int_equal(import_all(w).marked, 1);
    annotated(w, "ours", "true", NULL, epoch(w, now + 9 * DAY));
    annotated(w, "again", "true", NULL, epoch(w, now + 9 * DAY));
    struct rp_import_counts c = import_all(w);
    assert_int_equal(c.already_marked, 2);
    expect_due(w, "ours", now + 3 * DAY);
    expect_due(w, "again", now + 2 * DAY);
}

static void a_restore_takes_the_annotation_away_and_nothing_else(void **state)
{
    struct world *w = *state;
    annotated(w, "k", "true", NULL, "1700000000000");
    assert_int_equal(import_all(w).marked, 1);
    assert_int_equal(world_restore(w, "k").what, RP_REPRIEVE_DONE);
    assert_null(world_field(w, "k", "marked_for_deletion"));
    assert_null(world_field(w, "k", "delete_after"));
    assert_string_equal(world_field(w, "k", "owner"), "ada");
    assert_int_equal(import_all(w).annotated, 0);
    assert_int_equal(world_sweep(w)->run.figures.purged, 0);
    assert_true(world_exists(w, "k"));
}

static void a_dry_run_says_the_same_and_changes_nothing(void **state)
{
    struct world *w = *state;
    annotated(w, "a", "true", NULL, "1700000000000");
    annotated(w, "b", "true", NULL, NULL);
    int64_t audited = world_number(w, "SELECT count(*) FROM audit");
    struct rp_import_counts c = import_with(w, (struct rp_import){ .dry_run = true });
    assert_int_equal(c.marked, 2);
    assert_int_equal(world_count(w, RP_MARKED), 0);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit"), audited);
    assert_int_equal(import_all(w).marked, 2);
    assert_int_equal(import_with(w, (struct rp_import){ .dry_run = true }).already_marked, 2);
}

static void nothing_is_written_to_the_store(void **state)
{
    struct world *w = *state;
    w->config.mode = RP_MODE_OBSERVE;
    w->config.annotate = true;
    annotated(w, "a", "true", NULL, NULL);
    assert_int_equal(import_all(w).marked, 1);
    assert_int_equal(w->calls[WORLD_PUT] + w->calls[WORLD_COPY] + w->calls[WORLD_ANNOTATE] + w->calls[WORLD_REMOVE], 0);
}

static void the_limit_counts_marks_and_the_prefix_bounds_the_walk(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 20; i++)
        annotated(w, rp_arena_fmt(&w->arena, "p/%02d", i), "true", NULL, NULL);
    annotated(w, "q", "true", NULL, NULL);
    for (int round = 1; round <= 3; round++) {
        assert_int_equal(import_with(w, (struct rp_import){ .limit = 7, .prefix = "p/" }).marked, round < 3 ? 7 : 6);
        assert_int_equal(world_count(w, RP_MARKED), round < 3 ? 7 * round : 20);
        assert_int_equal(was_limited, round < 3);
    }
    assert_int_equal(world_newest(w, "p/06").state, RP_MARKED);
    assert_int_equal(import_with(w, (struct rp_import){ .limit = 7, .prefix = "p/" }).already_marked, 20);
    assert_int_equal(import_with(w, (struct rp_import){ .limit = 1, .prefix = "q" }).marked, 1);
    assert_false(was_limited); /* there was no more */
}

static void a_newer_upload_that_asks_for_it_has_a_mark_of_its_own(void **state)
{
    struct world *w = *state;
    int64_t now = rp_clock_now_ms(NULL);
    annotated(w, "k", "true", NULL, epoch(w, now + 2 * DAY));
    assert_int_equal(import_all(w).marked, 1);
    world_put(w, "k", "newer and longer");
    const struct rp_pair fields[] = { { "marked_for_deletion", "true" } };
    annotate(w, "k", fields, 1);
    struct rp_import_counts c = import_all(w);
    assert_int_equal(c.marked, 1);
    assert_int_equal(c.already_marked, 0);
}

static void a_store_of_several_pages_is_walked_to_its_end(void **state)
{
    struct world *w = *state;
    world_put_many(w, 2500, 1);
    annotated(w, "many/00000", "true", NULL, NULL);
    annotated(w, "many/00999", "true", NULL, NULL);
    annotated(w, "many/01000", "true", NULL, NULL);
    annotated(w, "many/02499", "true", NULL, NULL);
    struct rp_import_counts c = import_all(w);
    assert_int_equal(c.looked_at, 2500);
    assert_int_equal(c.marked, 4);
}

static void X3_what_is_held_is_marked_and_not_purged(void **state)
{
    struct world *w = *state;
    struct rp_hold_command hold = {
        .scope = RP_SCOPE_SUBJECT, .store = &w->store, .key = "held", .reason = "legal", .command.actor = "tester"
    };
    annotated(w, "held", "true", NULL, NULL);
    annotated(w, "free", "true", NULL, NULL);
    ok(ask_hold(w->catalog, &hold, &w->arena, &err));
    struct rp_import_counts c = import_all(w);
    assert_int_equal(c.marked, 2);
    assert_int_equal(c.refused, 0);
    world_pass(w, 8 * DAY);
    assert_int_equal(world_sweep(w)->run.figures.purged, 1);
    assert_true(world_exists(w, "held"));
    assert_false(world_exists(w, "free"));
}

static void a_guarantee_that_is_too_weak_refuses(void **state)
{
    struct world *w = *state;
    annotated(w, "k", "true", NULL, NULL);
    w->store.level = RP_LEVEL_WINDOW;
    assert_int_equal(import_all(w).refused, 1);
    w->config.allow_window_deletes = true;
    assert_int_equal(import_all(w).marked, 1);
}

/* ---- what happens meanwhile ---- */

/* Before the mark looks at the object, somebody uploads it anew. */
static int upload_anew(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    struct world *w = ctx;
    (void)key, (void)e;
    if (strcmp(call, "stat") == 0) world_put(w, "k", "newer and longer");
    return 0;
}

static void NEWER_WINS_an_upload_after_its_annotation_was_read_is_not_marked(void **state)
{
    struct world *w = *state;
    annotated(w, "k", "true", NULL, "1700000000000");
    w->ctx = w;
    w->before = upload_anew;
    struct rp_import_counts c = import_all(w);
    w->before = NULL;
    assert_int_equal(c.refused, 1);
    assert_int_equal(world_count(w, RP_MARKED), 0);
    assert_int_equal(world_sweep(w)->run.figures.purged, 0);
    assert_string_equal(world_text(w, "k"), "newer and longer");
}

/* Gone when it is read; unreadable alone; and a store that does not answer at all. */
static int get_fails(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx;
    if (strcmp(call, "get") != 0 || key == NULL) return 0;
    if (strcmp(key, "gone") == 0) return rp_error_set(e, RP_ENOTFOUND, "gone");
    if (strcmp(key, "locked") == 0) return rp_error_set(e, RP_EDENIED, "locked");
    return 0;
}

static int get_is_unavailable(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx;
    return strcmp(call, "get") == 0 && key != NULL && strcmp(key, "many/01500") == 0
               ? rp_error_set(e, RP_EUNAVAILABLE, "no answer")
               : 0;
}

static struct {
    int code;
    atomic_int asked;
} outage;

static int nothing_is_read(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx;
    if (strcmp(call, "get") != 0 || key == NULL) return 0;
    atomic_fetch_add(&outage.asked, 1);
    return rp_error_set(e, outage.code, "no answer");
}

/* Whatever says that it is not about this one object; and it is not asked for all the others in
 * vain. */
static void trouble_of_the_store_as_a_whole_ends_the_import(void **state)
{
    struct world *w = *state;
    static const int codes[] = { RP_EUNAVAILABLE, RP_ENOMEM, RP_ECONFIG, RP_ECLOCK }; /* RP_OF_STORE */
    world_put_many(w, 400, 1);
    w->before = nothing_is_read;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        RP_CLEANUP(rp_import_end) struct rp_import import = { .store = &w->store, .prefix = "", .actor = "tester" };
        outage.code = codes[i];
        atomic_store(&outage.asked, 0);
        ok(rp_import_begin(&import, &err));
        assert_int_equal(rp_import_next(&import, w->catalog, &err), codes[i]);
        assert_true(atomic_load(&outage.asked) < 100);
    }
    w->before = NULL;
}

static void one_object_that_cannot_be_read_harms_no_other(void **state)
{
    struct world *w = *state;
    annotated(w, "gone", "true", NULL, NULL);
    annotated(w, "locked", "true", NULL, NULL);
    annotated(w, "open", "true", NULL, NULL);
    w->before = get_fails;
    struct rp_import_counts c = import_all(w);
    w->before = NULL;
    assert_int_equal(c.looked_at, 3);
    assert_int_equal(c.marked, 1);
    assert_int_equal(c.refused, 1);
    assert_int_equal(world_newest(w, "open").state, RP_MARKED);
}

static void a_store_that_fails_ends_the_import_and_the_next_goes_on(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(rp_import_end) struct rp_import import = { .store = &w->store, .prefix = "", .actor = "tester" };
    int r;
    world_put_many(w, 1600, 1);
    annotated(w, "many/00001", "true", NULL, NULL);
    annotated(w, "many/01599", "true", NULL, NULL);
    w->before = get_is_unavailable;
    ok(rp_import_begin(&import, &err));
    while ((r = rp_import_next(&import, w->catalog, &err)) > 0)
        continue;
    w->before = NULL;
    assert_int_equal(r, RP_EUNAVAILABLE);
    assert_int_equal(import.counts.marked, 1);
    struct rp_import_counts c = import_all(w);
    assert_int_equal(c.already_marked, 1);
    assert_int_equal(c.marked, 1);
}

/* ---- a store that annotates by making another upload ---- */

static const struct rp_backend_ops *plain_ops;

static int take_text(void *ctx, const void *from, size_t n, struct rp_error *e)
{
    (void)e;
    strncat(ctx, from, n);
    return 0;
}

static int64_t give_text(void *ctx, void *to, size_t n, struct rp_error *e)
{
    const char **text = ctx;
    size_t left = strlen(*text);
    (void)e;
    assert_true(left <= n);
    memcpy(to, *text, left);
    *text += left;
    return (int64_t)left;
}

static int annotate_by_copy(struct rp_backend *backend, const char *key, struct rp_identity *identity,
                            const struct rp_pair *changes, size_t n, struct rp_error *e)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    char bytes[64] = "";
    const char *text = bytes;
    struct rp_meta meta;
    struct rp_identity read;
    int r = plain_ops->annotate(backend, key, identity, changes, n, e);
    if (r == 0) r = plain_ops->get(backend, key, &(struct rp_sink){ take_text, bytes }, &arena, &meta, &read, e);
    if (r < 0) return r;
    return plain_ops->put(backend, key, &(struct rp_source){ give_text, &text }, &meta, RP_PUT_REPLACE, identity, e);
}

static void test_M2_the_annotated_objects_new_identity_becomes_the_marks(void **state)
{
    struct world *w = *state;
    struct rp_mark_request q = { .key = "k", .grace_ms = -1, .at_ms = -1, .reason = "", .annotate = true };
    struct rp_mark_answer answer;
    struct rp_backend_ops copying = *w->store.backend->ops;
    struct rp_item now = { .key = "k" };
    plain_ops = w->store.backend->ops;
    copying.annotate = annotate_by_copy;
    w->store.backend->ops = &copying;
    world_put(w, "k", "bytes");
    ok(rp_mark_many(w->catalog, &w->store, &q, 1, "tester", false, &answer, &err));
    assert_string_equal(answer.annotate_note, "");
    assert_true(answer.annotated);
    ok(rp_backend_stat(w->inner, &now, 1, &err));
    struct rp_mark m = world_newest(w, "k");
    assert_string_equal(m.etag, now.identity.etag);
    assert_int_equal(m.modified_ms, now.identity.modified_ms);
    ok(rp_mark_many(w->catalog, &w->store, &q, 1, "tester", false, &answer, &err));
    assert_int_equal(answer.what, RP_MARK_SAME);
    assert_int_equal(import_all(w).already_marked, 1);
    world_pass(w, 6 * DAY);
    assert_int_equal(world_sweep(w)->run.figures.purged, 1);
    assert_false(world_exists(w, "k"));
    w->store.backend->ops = plain_ops;
}

/* clang-format off */
#define ON(which, words, fn) { #fn " on " words, fn, set_up, tear_down, (void *)(uintptr_t)(which) }
/* Each engine once, each store once. */
#define ALL(fn) ON(1, "postgres, memory", fn), ON(2, "sqlite, fs", fn)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_clear_yes_is_a_mark),
        cmocka_unit_test(times_are_read_where_they_are_unambiguous),
        cmocka_unit_test(delete_after_counts_before_the_other_and_is_never_replaced_by_it),
        cmocka_unit_test(a_reason_is_cut_between_characters),
        ALL(test_M2_marked_six_days_ago_imported_and_swept),
        ALL(test_M2_the_age_of_an_annotation_is_in_the_records_of_its_import_and_its_sweep),
        ALL(test_M2_an_import_that_is_stopped_before_it_began_is_partial),
        ALL(test_M2_an_object_that_cannot_be_read_is_an_error_of_the_run),
        ALL(what_is_marked_already_stays_as_it_is),
        ALL(a_restore_takes_the_annotation_away_and_nothing_else),
        ALL(a_dry_run_says_the_same_and_changes_nothing),
        ALL(nothing_is_written_to_the_store),
        ALL(the_limit_counts_marks_and_the_prefix_bounds_the_walk),
        ALL(a_store_of_several_pages_is_walked_to_its_end),
        ALL(X3_what_is_held_is_marked_and_not_purged),
        ALL(a_guarantee_that_is_too_weak_refuses),
        ALL(NEWER_WINS_an_upload_after_its_annotation_was_read_is_not_marked),
        ALL(one_object_that_cannot_be_read_harms_no_other),
        ALL(trouble_of_the_store_as_a_whole_ends_the_import),
        ALL(a_newer_upload_that_asks_for_it_has_a_mark_of_its_own),
        ALL(a_store_that_fails_ends_the_import_and_the_next_goes_on),
        ALL(test_M2_the_annotated_objects_new_identity_becomes_the_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
/* clang-format on */
