/* SPDX-License-Identifier: Apache-2.0 */
/* The story of a subject (core/explain.h), and which marks an undo in bulk finds
 * (core/restore/restore.h). On both engines. Needs PostgreSQL: run under
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

#include "base/cleanup.h"
#include "base/text/buf.h"
#include "core/dead.h"
#include "core/explain.h"
#include "core/hold.h"
#include "core/restore/restore.h"
#include "lib/ask.h"
#include "lib/uploads.h"

static struct rp_error err;

/* ---- explain ---- */

static int keep_words(void *ctx, const struct rp_story_line *line, struct rp_error *e)
{
    (void)e;
    return rp_buf_fmt(ctx, "%s: %s\n", line->event, line->words);
}

static struct rp_story_end explain_by(struct world *w, const char *schedule, const char *key, struct rp_buf *words)
{
    struct rp_story_end end;
    const struct rp_story story = { .fn = keep_words, .ctx = words, .sweep_schedule = schedule, .sweep_limit = 100000 };
    rp_buf_clear(words);
    ok(rp_explain(w->catalog, &w->store, key, &w->arena, &story, &end, &err));
    return end;
}

static struct rp_story_end explain(struct world *w, const char *key, struct rp_buf *words)
{
    return explain_by(w, "continuous", key, words);
}

static int64_t place_hold(struct world *w, enum rp_scope scope, const char *key, const char *tenant)
{
    struct rp_hold_command request = { .scope = scope,
                                       .store = key != NULL ? &w->store : NULL,
                                       .key = key,
                                       .tenant = tenant,
                                       .reason = "audit",
                                       .command.actor = "tester" };
    ok(ask_hold(w->catalog, &request, &w->arena, &err));
    return request.id;
}

static void a_subject_is_held_by_each_scope_that_covers_it_and_by_no_other(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf words = RP_BUF(10000);
    struct rp_file_command deleted;
    int64_t file = uploads_live(w, "photo", "bytes");
    assert_int_equal(uploads_delete(w, file, RP_DAY_MS, &deleted), 0);
    const char *key = uploads_file(w, file).key;
    (void)uploads_tenant(w, "other");
    const struct {
        enum rp_scope scope;
        const char *key;
        const char *tenant;
        bool held;
    } cases[] = {
        { RP_SCOPE_EVERYTHING, NULL, NULL, true },      { RP_SCOPE_SUBJECT, key, NULL, true },
        { RP_SCOPE_SUBJECT, "elsewhere", NULL, false }, { RP_SCOPE_PREFIX, "", NULL, true },
        { RP_SCOPE_PREFIX, "elsewhere/", NULL, false }, { RP_SCOPE_TENANT, NULL, "acme", true },
        { RP_SCOPE_TENANT, NULL, "other", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t id = place_hold(w, cases[i].scope, cases[i].key, cases[i].tenant);
        struct rp_story_end end = explain(w, key, &words);
        assert_int_equal(end.held, cases[i].held);
        assert_int_equal(strstr(end.words, "it is held (hold hld_") != NULL, cases[i].held);
        assert_int_equal(strstr(end.words, ", by tester)") != NULL, cases[i].held);
        ok(ask_lift(w->catalog, id, "tester", &err));
    }
    assert_false(explain(w, key, &words).held);
}

static void a_subject_that_is_marked_says_what_its_mode_will_do(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf words = RP_BUF(10000);
    world_put(w, "object", "bytes");
    assert_non_null(strstr(explain(w, "object", &words).words, "was never marked"));
    (void)world_mark(w, "object", RP_DAY_MS);
    w->config.mode = RP_MODE_OBSERVE;
    assert_non_null(strstr(explain(w, "object", &words).words, "mode observe"));
    w->config.mode = RP_MODE_QUARANTINE;
    assert_non_null(strstr(explain(w, "object", &words).words, "moved to quarantine"));
    w->config.mode = RP_MODE_PURGE;
    assert_non_null(strstr(explain(w, "object", &words).words, "and then purged"));
    assert_non_null(strstr(rp_buf_text(&words), "mark.created: marked for deletion"));
    world_script(w, "UPDATE mark SET note = 'the server was down'");
    assert_non_null(strstr(explain(w, "object", &words).words, "Last time: the server was down"));
    struct rp_story_end end;
    assert_int_equal(rp_explain(w->catalog, &w->store, "nothing", &w->arena,
                                &(struct rp_story){ .fn = keep_words, .ctx = &words }, &end, &err),
                     RP_ENOTFOUND);
}

static void what_is_overdue_says_when_it_goes(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf words = RP_BUF(10000);
    world_put(w, "object", "bytes");
    (void)world_mark(w, "object", RP_DAY_MS);
    assert_non_null(strstr(explain_by(w, "0 2 * * *", "object", &words).words, ", and then purged; "));
    world_pass(w, 2 * RP_DAY_MS);
    assert_non_null(strstr(explain(w, "object", &words).words, "purged as soon as a daemon or `reprieve sweep` gets"));
    struct rp_story_end end = explain_by(w, "0 2 * * *", "object", &words);
    assert_non_null(strstr(end.words, "purged by the next sweep, at "));
    assert_non_null(strstr(end.words, "T02:00:00.000Z ("));
    assert_non_null(strstr(end.words, "more than 100000 marks (sweep.limit) are due before it"));
    w->config.mode = RP_MODE_OBSERVE;
    assert_non_null(strstr(explain(w, "object", &words).words, "mode observe, so it stays"));
}

static void of_a_deleted_file_without_a_mark_it_says_who_mends_it(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf words = RP_BUF(10000);
    struct rp_file_command deleted;
    int64_t file = uploads_live(w, "photo", "bytes");
    assert_int_equal(uploads_delete(w, file, RP_DAY_MS, &deleted), 0);
    const char *key = uploads_file(w, file).key;
    assert_null(strstr(explain(w, key, &words).words, "safety-net"));
    world_script(w, "UPDATE mark SET key = 'elsewhere'");
    assert_non_null(strstr(explain(w, key, &words).words,
                           "its file is deleted and no mark waits for it: `reprieve safety-net` brings it back"));
    world_script(w, "UPDATE mark SET key = '%s'", key);
}

static void an_upload_that_has_ended_cannot_be_restored(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf words = RP_BUF(10000);
    const char *key = uploads_file(w, uploads_begin(w, "photo", "bytes")).key;
    world_pass(w, RP_HOUR_MS + RP_MINUTE_MS);
    (void)world_sweep(w);
    struct rp_story_end end = explain(w, key, &words);
    assert_int_equal(end.mark.state, RP_MARKED); /* its second mark waits */
    assert_non_null(strstr(end.words, "its file has ended and cannot be restored"));
    assert_null(strstr(end.words, "keeps it until then"));
}

static int deny(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx;
    return strcmp(call, "remove") == 0 && key != NULL ? rp_error_set(e, RP_EDENIED, "refused") : 0;
}

static void of_an_upload_that_waits_it_says_what_it_waits_for(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf words = RP_BUF(10000);
    struct rp_mark mark = uploads_mark(w, uploads_begin(w, "a.txt", "hello"));
    const char *says = explain(w, mark.key, &words).words;
    assert_non_null(strstr(says, "If it is not confirmed by "));
    assert_null(strstr(says, "restore"));
}

static void the_story_goes_on_through_failures_to_the_end(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf words = RP_BUF(10000);
    enum rp_state as;
    world_put(w, "object", "bytes");
    (void)world_mark(w, "object", RP_DAY_MS);
    world_pass(w, 2 * RP_DAY_MS);
    w->before = deny;
    (void)world_sweep(w);
    struct rp_story_end end = explain(w, "object", &words);
    assert_int_equal(end.mark.state, RP_PURGING);
    assert_non_null(strstr(end.words, "Its purge has begun (purging, attempt 2)"));
    assert_non_null(strstr(end.words, "Last time: "));
    world_script(w, "UPDATE mark SET note = NULL");
    assert_null(strstr(explain(w, "object", &words).words, "Last time: "));
    for (int i = 0; i < 2; i++) {
        world_pass(w, RP_HOUR_MS);
        (void)world_sweep(w);
    }
    assert_non_null(strstr(explain(w, "object", &words).words, "waits for a person: `reprieve dead show ded_"));
    assert_non_null(strstr(rp_buf_text(&words), "mark.dead: it became a dead letter"));
    ok(ask_keep(w->catalog, world_number(w, "SELECT id FROM dead_letter"), "tester", &as, &err));
    assert_non_null(strstr(explain(w, "object", &words).words, "its last mark ended as lost"));
    world_remove(w, "object");
    assert_non_null(strstr(explain(w, "object", &words).words, "does not exist"));
}

static int erase_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    const int64_t *seq = ctx;
    return rp_audit_erase(tx, 0, *seq, e);
}

static int stop_telling(void *ctx, const struct rp_story_line *line, struct rp_error *e)
{
    (void)ctx, (void)line;
    return rp_error_set(e, RP_EFAILED, "enough");
}

static void details_that_were_erased_are_said_to_be(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf words = RP_BUF(10000);
    struct rp_story_end end;
    world_put(w, "object", "bytes");
    (void)world_mark(w, "object", RP_DAY_MS);
    int64_t seq = world_number(w, "SELECT max(seq) FROM audit WHERE event = 'mark.created'");
    ok(rp_catalog_transact(w->catalog, erase_tx, &seq, &err));
    (void)explain(w, "object", &words);
    assert_string_equal(rp_buf_text(&words), "mark.created: marked for deletion (details erased)\n");
    assert_int_equal(rp_explain(w->catalog, &w->store, "object", &w->arena,
                                &(struct rp_story){ .fn = stop_telling, .ctx = NULL }, &end, &err),
                     RP_EFAILED);
}

/* ---- undo ---- */

struct found {
    struct rp_buf keys;
    int stop_after, code;
};

static int keep_key(void *ctx, const struct rp_mark *mark, struct rp_error *e)
{
    struct found *f = ctx;
    rp_buf_fmt(&f->keys, "%s ", mark->key);
    if (f->stop_after > 0 && --f->stop_after == 0)
        return f->code < 0 ? rp_error_set(e, f->code, "the caller has had enough") : 1;
    return 0;
}

static struct rp_mark_request request(const char *key, const char *reason)
{
    return (struct rp_mark_request){ .key = key, .grace_ms = RP_DAY_MS, .at_ms = -1, .reason = reason };
}

/* a/one (moved) and a/two (tidy) of tester, b/three (moved) of another; c/four (moved) of tester
 * lies in quarantine. */
static int64_t four_marks(struct world *w)
{
    const struct rp_mark_request first = request("c/four", "moved");
    const struct rp_mark_request mine[] = { request("a/one", "moved"), request("a/two", "tidy") };
    const struct rp_mark_request theirs = request("b/three", "moved");
    struct rp_mark_answer answers[2];
    static const char *const keys[] = { "a/one", "a/two", "b/three", "c/four" };
    for (size_t i = 0; i < 4; i++)
        world_put(w, keys[i], "bytes");
    ok(rp_mark_many(w->catalog, &w->store, &first, 1, "tester", false, answers, &err));
    world_pass(w, 2 * RP_DAY_MS);
    w->config.mode = RP_MODE_QUARANTINE;
    int64_t run = world_sweep(w)->run.id;
    ok(rp_mark_many(w->catalog, &w->store, mine, 2, "tester", false, answers, &err));
    ok(rp_mark_many(w->catalog, &w->store, &theirs, 1, "another", false, answers, &err));
    return run;
}

static void an_undo_finds_what_fits_every_filter_the_newest_first(void **state)
{
    struct world *w = *state;
    int64_t run = four_marks(w), store = w->store.id;
    int64_t now = world_newest(w, "a/one").marked_at_ms, before = world_newest(w, "c/four").marked_at_ms;
    struct rp_store_row second;
    ok(rp_store_get(w->catalog, RP_STORE_STORE, "second", &second, &err));
    const struct {
        struct rp_restore_filter filter;
        const char *found;
    } cases[] = {
        { { .since_ms = -1, .until_ms = -1 }, "b/three a/two a/one c/four " },
        { { .run_id = run, .since_ms = -1, .until_ms = -1 }, "c/four " },
        { { .run_id = run, .reason = "tidy", .since_ms = -1, .until_ms = -1 }, "" },
        { { .run_id = run, .store_id = second.id, .prefix = "", .since_ms = -1, .until_ms = -1 }, "" },
        { { .run_id = run, .store_id = store, .prefix = "a/", .since_ms = -1, .until_ms = -1 }, "" },
        { { .run_id = run, .store_id = store, .prefix = "c/", .since_ms = -1, .until_ms = -1 }, "c/four " },
        { { .store_id = store, .prefix = "a/", .since_ms = -1, .until_ms = -1 }, "a/two a/one " },
        { { .store_id = store, .prefix = "", .since_ms = -1, .until_ms = -1 }, "b/three a/two a/one c/four " },
        { { .store_id = second.id, .prefix = "", .since_ms = -1, .until_ms = -1 }, "" },
        { { .reason = "moved", .since_ms = -1, .until_ms = -1 }, "b/three a/one c/four " },
        { { .reason = "moved", .actor = "tester", .since_ms = -1, .until_ms = -1 }, "a/one c/four " },
        { { .actor = "another", .since_ms = -1, .until_ms = -1 }, "b/three " },
        { { .since_ms = before + 1, .until_ms = -1 }, "b/three a/two a/one " },
        { { .reason = "moved", .since_ms = before + 1, .until_ms = -1 }, "b/three a/one " },
        { { .since_ms = -1, .until_ms = now }, "c/four " },
        { { .since_ms = 0, .until_ms = 1 }, "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct found f = { .keys = RP_BUF(1000) };
        ok(rp_restore_each(w->catalog->db, &cases[i].filter, keep_key, &f, &err));
        if (strcmp(rp_buf_text(&f.keys), cases[i].found) != 0)
            fail_msg("filter %zu: \"%s\" instead of \"%s\"", i, rp_buf_text(&f.keys), cases[i].found);
        rp_buf_done(&f.keys);
    }
}

static void an_undo_stops_when_it_is_told_to_and_fails_when_its_caller_does(void **state)
{
    struct world *w = *state;
    int64_t run = four_marks(w);
    const struct rp_restore_filter all = { .since_ms = -1, .until_ms = -1 };
    const struct rp_restore_filter of_run = { .run_id = run, .since_ms = -1, .until_ms = -1 };
    for (int n = 1; n <= 4; n++) {
        struct found stops = { .keys = RP_BUF(1000), .stop_after = n };
        struct found fails = { .keys = RP_BUF(1000), .stop_after = n, .code = RP_EFULL };
        ok(rp_restore_each(w->catalog->db, &all, keep_key, &stops, &err));
        assert_int_equal(rp_restore_each(w->catalog->db, &all, keep_key, &fails, &err), RP_EFULL);
        int told = 0;
        for (const char *p = rp_buf_text(&stops.keys); *p != '\0'; p++)
            told += *p == ' ';
        assert_int_equal(told, n);
        assert_string_equal(rp_buf_text(&stops.keys), rp_buf_text(&fails.keys));
        rp_buf_done(&stops.keys);
        rp_buf_done(&fails.keys);
    }
    struct found f = { .keys = RP_BUF(1000), .stop_after = 1, .code = RP_EFULL };
    assert_int_equal(rp_restore_each(w->catalog->db, &of_run, keep_key, &f, &err), RP_EFULL);
    rp_buf_done(&f.keys);
}

/* What was returned, and a copy that nobody made under a mark's name, are not given again. */
static void an_undo_gives_nothing_twice(void **state)
{
    struct world *w = *state;
    struct found f = { .keys = RP_BUF(1000) };
    int64_t run = four_marks(w);
    const struct rp_restore_filter of_run = { .run_id = run, .since_ms = -1, .until_ms = -1 };
    const struct rp_restore_filter prefix = { .store_id = w->store.id, .prefix = "c/", .since_ms = -1, .until_ms = -1 };
    assert_int_equal(world_restore(w, "c/four").what, RP_REPRIEVE_RETURNED);
    ok(rp_restore_each(w->catalog->db, &of_run, keep_key, &f, &err));
    ok(rp_restore_each(w->catalog->db, &prefix, keep_key, &f, &err));
    assert_string_equal(rp_buf_text(&f.keys), "");
    rp_buf_done(&f.keys);
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
        BOTH(a_subject_is_held_by_each_scope_that_covers_it_and_by_no_other),
        BOTH(a_subject_that_is_marked_says_what_its_mode_will_do),
        BOTH(what_is_overdue_says_when_it_goes),
        BOTH(of_a_deleted_file_without_a_mark_it_says_who_mends_it),
        BOTH(an_upload_that_has_ended_cannot_be_restored),
        BOTH(of_an_upload_that_waits_it_says_what_it_waits_for),
        BOTH(the_story_goes_on_through_failures_to_the_end),
        BOTH(details_that_were_erased_are_said_to_be),
        BOTH(an_undo_finds_what_fits_every_filter_the_newest_first),
        BOTH(an_undo_stops_when_it_is_told_to_and_fails_when_its_caller_does),
        BOTH(an_undo_gives_nothing_twice),
    };
    return cmocka_run_group_tests_name("explain and undo", tests, NULL, NULL);
}
