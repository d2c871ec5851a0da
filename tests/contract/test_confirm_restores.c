/* SPDX-License-Identifier: Apache-2.0 */
/* What can be brought back, and how, when outside services are asked (core/confirm): restores, dead
 * letters that are kept, files and what belongs to them, the safety net, a catalog put back. On both
 * engines. Needs PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/cleanup.h"
#include "confirm_steps.h"
#include "core/explain.h"
#include "core/hold.h"
#include "core/recover/recover.h"
#include "core/safety_net/safety_net.h"
#include "lib/restoring.h"

static void test_T1_from_the_first_call_on_a_restore_is_too_late(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    put_to_confirm(&s, "early", "calendar", NULL);
    assert_int_equal(world_restore(w, "early").what, RP_REPRIEVE_DONE);
    put_to_confirm(&s, "late", "calendar", NULL);
    s.at[CALENDAR].status = 500;
    (void)ask_all(&s);
    struct rp_reprieve_answer late = world_restore(w, "late");
    assert_int_equal(late.error.code, RP_ETOOLATE);
    assert_non_null(
        strstr(late.error.text, "late: too late, an outside service was asked to delete its half: calendar"));
    assert_non_null(strstr(late.error.hint, "if it refuses, restore it then"));
    services_drop(&s);
}

/* An asker has claimed it, and may be counting its references. */
static void while_nobody_was_asked_yet_no_service_is_named(void **state)
{
    struct world *w = *state;
    struct services s;
    struct rp_purge_batch batch;
    const struct rp_purge_rules rules = { .batch = 10, .lease_ms = 2 * RP_MINUTE_MS };
    const struct rp_worker asker = { .name = "asker" };
    const struct rp_confirm_claim claim = { .services = "|calendar|" };
    services_make(w, &s);
    put_to_confirm(&s, "k", "calendar", NULL);
    rp_purge_batch_init(&batch);
    ok(rp_purge_claim_to_confirm(w->catalog, &w->store, &rules, &asker, &claim, 10, &batch, &err));
    assert_int_equal(batch.marks.n, 1);
    rp_purge_batch_done(&batch);
    struct rp_reprieve_answer answer = world_restore(w, "k");
    assert_int_equal(answer.error.code, RP_ETOOLATE);
    assert_non_null(strstr(answer.error.text, "k: too late, whether it may go is being looked at"));
    assert_null(strstr(answer.error.text, "service"));
    assert_non_null(strstr(answer.error.hint, "try again in a moment"));
    services_drop(&s);
}

static void what_was_refused_can_be_restored_but_not_after_a_yes(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    put_to_confirm(&s, "refused", "calendar", "billing");
    put_to_confirm(&s, "half", "billing", "calendar");
    s.at[CALENDAR].status = 423;
    (void)ask_all(&s);
    assert_string_equal(confirmed(&s, "refused"), "RP");
    assert_string_equal(confirmed(&s, "half"), "YR");
    assert_int_equal(world_restore(w, "refused").what, RP_REPRIEVE_DONE);
    assert_int_equal(state_of(&s, "refused"), RP_REPRIEVED);
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM dead_letter WHERE open = 1"), 1);
    struct rp_reprieve_answer half = world_restore(w, "half");
    assert_int_equal(half.error.code, RP_ETOOLATE);
    assert_non_null(strstr(half.error.text, "has deleted its half: billing; asked: calendar"));
    assert_non_null(strstr(half.error.hint, "`reprieve dead` lists it"));
    services_drop(&s);
}

/* Nothing follows from it that stands anywhere. */
static void a_no_about_a_dead_letter_changes_nothing(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    s.at[CALENDAR].status = 404;
    put_to_confirm(&s, "k", "calendar", NULL);
    assert_int_equal(ask_all(&s).dead, 1);
    const char *sql = "SELECT MAX(answered_at) FROM confirmation";
    int64_t id = confirmation_id(&s, "k", 0), answered_ms = world_number(w, sql);
    int64_t rows = world_number(w, "SELECT COUNT(*) FROM audit");
    world_pass(w, RP_MINUTE_MS);
    assert_int_equal(say_later(&s, id, false), 0);
    assert_string_equal(confirmed(&s, "k"), "F");
    assert_int_equal(world_number(w, sql), answered_ms);
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM audit"), rows);
    assert_int_equal(say_later(&s, id, true), 0);
    assert_int_equal(state_of(&s, "k"), RP_CHECKING);
    services_drop(&s);
}

static int hear_kept(void *ctx, const struct rp_story_line *line, struct rp_error *e)
{
    bool *told = ctx;
    (void)e;
    if (strcmp(line->event, "mark.reprieved") == 0) *told = strstr(line->words, "deleted already by: billing") != NULL;
    return 0;
}

static void who_keeps_a_dead_letter_is_told_who_has_deleted_already(void **state)
{
    struct world *w = *state;
    struct services s;
    enum rp_state as;
    services_make(w, &s);
    put_to_confirm(&s, "k", "billing", "calendar");
    s.at[CALENDAR].status = 409;
    s.at[CALENDAR].body = "still in use \r\n";
    (void)ask_all(&s);
    ok(ask_keep(w->catalog, letter_of(&s, "k"), "tester", &as, &err));
    assert_int_equal(as, RP_REPRIEVED);
    struct rp_mark mark = world_newest(w, "k");
    assert_int_equal(mark.outcome, RP_END_KEPT);
    assert_non_null(strstr(mark.note, "refused (409): still in use; deleted already by: billing"));
    assert_true(world_exists(w, "k"));
    struct rp_story_end end;
    bool told = false;
    const struct rp_story story = { .fn = hear_kept, .ctx = &told };
    ok(rp_explain(w->catalog, &w->store, "k", &w->arena, &story, &end, &err));
    assert_true(told);
    assert_non_null(strstr(end.words, "ended as reprieved: given up. Deleted already by: billing."));
    services_drop(&s);
}

static struct rp_reprieve_answer restore_mark(struct world *w, int64_t mark_id)
{
    struct rp_reprieve_item item = { .mark_id = mark_id };
    struct rp_reprieve_command c;
    rp_reprieve_command_init(&c, &item, 1, "tester", &w->arena);
    c.stores = w->stores;
    c.n_stores = 1;
    assert_int_equal(rp_command_run(w->catalog, &c.command), 0);
    return item.answer;
}

static void who_brings_it_back_from_quarantine_is_told_who_has_deleted_already(void **state)
{
    struct world *w = *state;
    struct services s;
    struct rp_reprieve_answer answer;
    services_make(w, &s);
    w->config.mode = RP_MODE_QUARANTINE;
    put_to_confirm(&s, "k", "calendar", "billing");
    assert_int_equal(ask_all(&s).yes, 2);
    (void)world_sweep(w);
    assert_false(world_exists(w, "k"));
    answer = restore_mark(w, world_newest(w, "k").id);
    assert_int_equal(answer.what, RP_REPRIEVE_RETURNED);
    assert_string_equal(answer.agreed, "calendar, billing");
    w->config.mode = RP_MODE_PURGE;
    services_drop(&s);
}

static void nobody_who_has_deleted_its_half_is_left_out_of_the_answer(void **state)
{
    static char names[SERVICES][64];
    struct world *w = *state;
    struct services s;
    struct rp_confirmer_list by;
    struct rp_mark_answer marked;
    char all[SERVICES * 66];
    const char *asked[SERVICES];
    services_make(w, &s);
    for (int i = 0; i < SERVICES; i++) {
        snprintf(names[i], sizeof names[i], "%c%062d", 'a' + i, i);
        s.configs[i].name = asked[i] = names[i];
        s.configs[i].when = RP_CONFIRM_DUE;
    }
    w->config.mode = RP_MODE_QUARANTINE;
    world_put(w, "k", "x");
    ok(rp_confirmers_find(&s.config, asked, SERVICES, &by, &err));
    struct rp_mark_request q = { .key = "k", .grace_ms = 0, .at_ms = -1, .reason = "", .confirmations = &by };
    ok(rp_mark_many(w->catalog, &w->store, &q, 1, "tester", false, &marked, &err));
    assert_int_equal(ask_all(&s).yes, SERVICES);
    (void)world_sweep(w);
    struct rp_reprieve_answer answer = restore_mark(w, marked.mark_id);
    assert_int_equal(answer.what, RP_REPRIEVE_RETURNED);
    snprintf(all, sizeof all, "%s, %s, %s", names[0], names[1], names[2]);
    assert_string_equal(answer.agreed, all);
    services_drop(&s);
}

/* Also what is refused is counted: nobody takes it for restored. */
static void a_restore_in_bulk_finds_what_was_asked_about_and_dead_letters(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    RP_CLEANUP(restoring_free) struct restoring *t = restoring_new(w, w->catalog);
    const struct rp_restore_filter everything = restoring_prefix(w, "");
    s.at[CALENDAR].status = 202;
    s.at[BILLING].status = 409;
    put_to_confirm(&s, "asked", "calendar", NULL);
    put_to_confirm(&s, "refused", "billing", NULL);
    put_to_confirm(&s, "half", "mail", "billing");
    (void)ask_all(&s);
    assert_string_equal(confirmed(&s, "half"), "YR");
    world_put(w, "waiting", "x");
    world_mark(w, "waiting", RP_DAY_MS);
    restoring_begin(t, &everything);
    assert_string_equal(restoring_carry(t), "partial");
    assert_int_equal(restoring_counted(w, t->run.id, "restored"), 2);
    assert_int_equal(state_of(&s, "waiting"), RP_REPRIEVED);
    assert_int_equal(state_of(&s, "refused"), RP_REPRIEVED);
    assert_int_equal(state_of(&s, "asked"), RP_CHECKING);
    assert_int_equal(state_of(&s, "half"), RP_DEAD);
    services_drop(&s);
}

/* ---- what other tools see ---- */

static int fail_annotate(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx;
    if (key == NULL || strcmp(call, "annotate") != 0) return 0;
    return rp_error_set(e, RP_EUNAVAILABLE, "the store is away");
}

static struct rp_dead_item keep_letter(struct services *s, int64_t id, int code)
{
    struct rp_dead_item item = { .id = id };
    struct rp_dead_command c = { .command = { .verb = &rp_verb_dead_keep, .actor = "tester" },
                                 .stores = s->w->stores,
                                 .n_stores = 1,
                                 .items = &item,
                                 .n = 1,
                                 .max = 1,
                                 .arena = &s->w->arena };
    assert_int_equal(rp_command_run(s->w->catalog, &c.command), code);
    return item;
}

static struct rp_dead_item keep_in_store(struct services *s, const char *key)
{
    return keep_letter(s, letter_of(s, key), 0);
}

/* An import would mark it again, and at once: a time of deletion that is past is due. */
static void expect_rescued(struct world *w, const char *key)
{
    static const char *const ours[] = { "marked_for_deletion", "marked_for_deletion_on", "delete_after",
                                        "deletion_reason" };
    assert_true(world_exists(w, key));
    for (size_t i = 0; i < 4; i++)
        assert_null(world_field(w, key, ours[i]));
}

static void a_dead_letter_that_is_restored_or_kept_leaves_no_annotation(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    w->config.annotate = true;
    put_to_confirm(&s, "restored", "calendar", NULL);
    put_to_confirm(&s, "kept", "calendar", NULL);
    put_to_confirm(&s, "half", "billing", "calendar");
    s.at[CALENDAR].status = 409;
    (void)ask_all(&s);
    assert_string_equal(world_field(w, "restored", "marked_for_deletion"), "true");
    assert_int_equal(world_restore(w, "restored").what, RP_REPRIEVE_DONE);
    expect_rescued(w, "restored");
    assert_int_equal(keep_in_store(&s, "kept").as, RP_REPRIEVED);
    expect_rescued(w, "kept");
    assert_int_equal(keep_in_store(&s, "half").as, RP_REPRIEVED);
    expect_rescued(w, "half");
    services_drop(&s);
}

static void a_store_that_fails_keeps_nobody_from_giving_a_dead_letter_up(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    w->config.annotate = true;
    put_to_confirm(&s, "k", "calendar", NULL);
    s.at[CALENDAR].status = 409;
    (void)ask_all(&s);
    w->before = fail_annotate;
    struct rp_dead_item kept = keep_in_store(&s, "k");
    assert_int_equal(kept.as, RP_REPRIEVED);
    assert_non_null(strstr(kept.annotate_note, "the store is away"));
    assert_string_equal(world_field(w, "k", "marked_for_deletion"), "true");
    w->before = NULL;
    assert_int_equal(world_restore(w, "k").what, RP_REPRIEVE_ALREADY);
    expect_rescued(w, "k");
    services_drop(&s);
}

static int fail_remove(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx;
    if (key == NULL || strcmp(call, "remove") != 0) return 0;
    return rp_error_set(e, RP_EDENIED, "denied");
}

static void a_purge_that_is_given_up_leaves_no_annotation_either(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    w->config.annotate = true;
    w->before = fail_remove;
    for (int away = 0; away < 2; away++) {
        const char *key = away ? "away" : "k";
        world_put(w, key, "x");
        assert_int_equal(world_mark(w, key, 0).what, RP_MARK_CREATED);
        w->before = fail_remove;
        for (int i = 0; i < 5 && letter_of(&s, key) == 0; i++) {
            (void)world_sweep(w);
            world_pass(w, RP_HOUR_MS);
        }
        assert_string_equal(world_field(w, key, "marked_for_deletion"), "true");
        w->before = away ? fail_annotate : NULL;
        assert_int_equal(keep_in_store(&s, key).as, RP_LOST);
        w->before = NULL;
        if (away) assert_int_equal(world_restore(w, key).error.code, RP_ETOOLATE);
        expect_rescued(w, key);
    }
    services_drop(&s);
}

/* ---- files ---- */

static int delete_named(struct services *s, int64_t file_id, int64_t grace_ms, const char *const *names, size_t n,
                        struct rp_file_command *out)
{
    static struct rp_confirmer_list by;
    ok(rp_confirmers_find(&s->config, names, n, &by, &err));
    *out = uploads_command(s->w, &rp_verb_delete, file_id);
    out->grace_ms = grace_ms;
    out->confirmations = &by;
    return rp_command_run(s->w->catalog, &out->command);
}

static int delete_confirmed(struct services *s, int64_t file_id, struct rp_file_command *out)
{
    static const char *const names[] = { "calendar" };
    return delete_named(s, file_id, 0, names, 1, out);
}

static void a_deleted_file_and_what_belongs_to_it_wait_for_the_yes(void **state)
{
    struct world *w = *state;
    struct services s;
    struct rp_file_command c;
    services_make(w, &s);
    int64_t file = uploads_live(w, "a.txt", "hello"), child = uploads_child(w, "b.txt", file, 0);
    assert_int_equal(delete_confirmed(&s, file, &c), 0);
    expect_purged(w, 0);
    assert_int_equal(ask_all(&s).yes, 2);
    assert_non_null(strstr(s.at[CALENDAR].said, "\"tenant\":\"acme\""));
    assert_non_null(strstr(s.at[CALENDAR].said, "\"file\":\"fil_"));
    assert_int_equal(uploads_restore(w, file, &c), RP_ETOOLATE);
    assert_non_null(strstr(c.command.error.text, "too late to restore: an outside service "));
    expect_purged(w, 2);
    uploads_expect(w, file, RP_FILE_PURGED);
    uploads_expect(w, child, RP_FILE_PURGED);
    services_drop(&s);
}

static int64_t letter_of_file(struct world *w, int64_t file_id)
{
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT id FROM dead_letter WHERE open = 1 AND mark_id = %lld",
             (long long)uploads_mark(w, file_id).id);
    return world_number(w, sql);
}

static void a_file_whose_delete_was_refused_lives_again(void **state)
{
    struct world *w = *state;
    struct services s;
    struct rp_file_command c;
    enum rp_state as;
    services_make(w, &s);
    s.at[CALENDAR].status = 409;
    int64_t restored = uploads_live(w, "a.txt", "hello"), kept = uploads_live(w, "b.txt", "hello");
    assert_int_equal(delete_confirmed(&s, restored, &c), 0);
    assert_int_equal(delete_confirmed(&s, kept, &c), 0);
    (void)ask_all(&s);
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM audit WHERE event = 'file.delete_failed'"), 2);
    assert_int_equal(uploads_restore(w, restored, &c), 0);
    uploads_expect(w, restored, RP_FILE_LIVE);
    ok(ask_keep(w->catalog, letter_of_file(w, kept), "tester", &as, &err));
    assert_int_equal(as, RP_REPRIEVED);
    uploads_expect(w, kept, RP_FILE_LIVE);
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM dead_letter WHERE open = 1"), 0);
    services_drop(&s);
}

static struct rp_reprieve_item restore_file(struct world *w, int64_t file_id)
{
    struct rp_reprieve_item item = { .file_id = file_id };
    struct rp_reprieve_command c = uploads_restore_as(w, &item, "acme");
    (void)rp_command_run(w->catalog, &c.command);
    return item;
}

/* As after a roll-back: the letter is open again, and the object was purged since. */
static void a_file_whose_object_is_gone_does_not_come_back_from_a_dead_letter(void **state)
{
    struct world *w = *state;
    struct services s;
    struct rp_file_command c;
    services_make(w, &s);
    s.at[CALENDAR].status = 409;
    int64_t gone = uploads_live(w, "gone.txt", "hello"), root = uploads_live(w, "root.txt", "hello");
    int64_t child = uploads_child(w, "child.txt", root, 0);
    assert_int_equal(delete_confirmed(&s, gone, &c), 0);
    assert_int_equal(delete_confirmed(&s, root, &c), 0);
    (void)ask_all(&s);
    world_remove(w, uploads_file(w, gone).key);
    world_remove(w, uploads_file(w, child).key);
    struct rp_reprieve_item item = restore_file(w, gone);
    assert_int_equal(item.answer.error.code, RP_ETOOLATE);
    assert_non_null(strstr(item.answer.error.text, "its object is not there any more"));
    uploads_expect(w, gone, RP_FILE_DELETED);
    assert_int_equal(restore_file(w, root).answer.what, RP_REPRIEVE_DONE);
    uploads_expect(w, root, RP_FILE_LIVE);
    uploads_expect(w, child, RP_FILE_DELETED);
    struct rp_dead_item kept = keep_letter(&s, letter_of_file(w, gone), RP_ETOOLATE);
    assert_non_null(strstr(kept.error.text, "its object is not there any more"));
    uploads_expect(w, gone, RP_FILE_DELETED);
    s.at[CALENDAR].status = 200;
    ok(ask_retry(w->catalog, letter_of_file(w, gone), "tester", &err));
    assert_int_equal(ask_all(&s).yes, 1);
    expect_purged(w, 0);
    uploads_expect(w, gone, RP_FILE_PURGED);
    services_drop(&s);
}

static int64_t hold_file(struct world *w, int64_t file_id)
{
    struct rp_hold_command q = { .command = { .actor = "tester" },
                                 .scope = RP_SCOPE_SUBJECT,
                                 .store = &w->store,
                                 .key = uploads_file(w, file_id).key,
                                 .reason = "audit" };
    ok(ask_hold(w->catalog, &q, &w->arena, &err));
    return q.id;
}

/* The service refuses the parent, is not yet sure about its child, and is not asked about what
 * belongs to that. */
struct waiting_family {
    int64_t parent, child, thumb;
};

static struct waiting_family refused_above_asked(struct services *s)
{
    struct world *w = s->w;
    struct rp_file_command c;
    struct waiting_family f = { .parent = uploads_live(w, "parent.txt", "hello") };
    f.child = uploads_child(w, "child.txt", f.parent, 0);
    f.thumb = uploads_child(w, "thumb.png", 0, f.child);
    int64_t child_held = hold_file(w, f.child), thumb_held = hold_file(w, f.thumb);
    assert_int_equal(delete_confirmed(s, f.parent, &c), 0);
    s->at[CALENDAR].status = 409;
    (void)ask_all(s);
    assert_int_equal(uploads_mark(w, f.parent).state, RP_DEAD);
    ok(ask_lift(w->catalog, child_held, "tester", &err));
    s->at[CALENDAR].status = 202;
    (void)ask_all(s);
    assert_int_equal(uploads_mark(w, f.child).state, RP_CHECKING);
    assert_int_equal(uploads_mark(w, f.thumb).state, RP_MARKED);
    ok(ask_lift(w->catalog, thumb_held, "tester", &err));
    return f;
}

static void expect_child_left(struct world *w, const struct waiting_family *f)
{
    uploads_expect(w, f->parent, RP_FILE_LIVE);
    uploads_expect(w, f->child, RP_FILE_DELETED);
    uploads_expect(w, f->thumb, RP_FILE_DELETED);
}

static void test_F4_what_a_service_is_asked_about_keeps_its_parent_not_away(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    struct waiting_family f = refused_above_asked(&s);
    struct rp_reprieve_item item = { .file_id = f.parent };
    struct rp_reprieve_command c = uploads_restore_as(w, &item, "acme");
    assert_int_equal(rp_command_run(w->catalog, &c.command), 0);
    expect_child_left(w, &f);
    assert_int_equal(c.n_family, 1);
    assert_int_equal(c.family[0].file_id, f.child);
    assert_int_equal(c.family[0].answer.error.code, RP_ETOOLATE);
    assert_non_null(strstr(c.family[0].answer.error.text, "was asked to delete its half: calendar"));
    assert_int_equal(restore_file(w, f.thumb).answer.error.code, RP_EOWNERGONE);
    s.at[CALENDAR].status = 423;
    world_pass(w, RP_DAY_MS);
    (void)ask_all(&s); /* also about the thumb */
    assert_int_equal(uploads_mark(w, f.child).state, RP_DEAD);
    assert_int_equal(restore_file(w, f.child).answer.what, RP_REPRIEVE_DONE);
    uploads_expect(w, f.child, RP_FILE_LIVE);
    uploads_expect(w, f.thumb, RP_FILE_LIVE);
    services_drop(&s);
}

static void test_F4_a_parent_is_given_back_while_its_child_waits_for_a_service(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    struct waiting_family f = refused_above_asked(&s);
    assert_int_equal(keep_letter(&s, letter_of_file(w, f.parent), 0).as, RP_REPRIEVED);
    expect_child_left(w, &f);
    s.at[CALENDAR].status = 200;
    world_pass(w, RP_DAY_MS);
    assert_int_equal(ask_all(&s).yes, 2);
    expect_purged(w, 2);
    uploads_expect(w, f.parent, RP_FILE_LIVE);
    services_drop(&s);
}

static void a_refusal_for_one_of_the_family_says_which(void **state)
{
    struct world *w = *state;
    struct world_steps steps;
    struct rp_file_command c;
    int64_t parent = uploads_live(w, "parent.txt", "hello"), child = uploads_child(w, "child.txt", parent, 0);
    int64_t held = hold_file(w, parent);
    char id[RP_ID_TEXT];
    assert_int_equal(uploads_delete(w, parent, 0, &c), 0);
    world_steps_begin(w, w->catalog, "main", &steps);
    world_steps_claim(w, w->catalog, &steps);
    assert_int_equal(steps.batch.marks.n, 1);
    struct rp_reprieve_item item = restore_file(w, parent);
    assert_int_equal(item.answer.error.code, RP_ETOOLATE);
    assert_non_null(strstr(item.answer.error.text, "'child.txt'"));
    assert_non_null(strstr(item.answer.error.text, rp_id_format(RP_ID_FILE, child, id)));
    assert_non_null(strstr(item.answer.error.text, "its purge has begun"));
    assert_non_null(strstr(item.answer.error.hint, "restore this one again"));
    world_steps_erase(w, w->catalog, &steps);
    ok(rp_purge_finish(w->catalog, &w->rules, &steps.batch, &steps.run, &err));
    ok(rp_run_end(w->catalog, &steps.run, "done", &err));
    world_steps_done(&steps);
    assert_int_equal(restore_file(w, parent).answer.what, RP_REPRIEVE_DONE);
    uploads_expect(w, child, RP_FILE_PURGED);
    ok(ask_lift(w->catalog, held, "tester", &err));
}

static void the_safety_net_asks_whom_the_lost_mark_named(void **state)
{
    struct world *w = *state;
    struct services s;
    struct rp_file_command c;
    struct rp_run run;
    const char *outcome = NULL;
    services_make(w, &s);
    s.at[CALENDAR].status = 409;
    int64_t lost = uploads_live(w, "a.txt", "hello"), parent = uploads_live(w, "b.txt", "hello");
    int64_t child = uploads_child(w, "c.txt", parent, 0);
    assert_int_equal(delete_confirmed(&s, lost, &c), 0);
    assert_int_equal(delete_confirmed(&s, parent, &c), 0);
    uploads_lose_mark(w, lost);
    uploads_lose_mark(w, child); /* and it lives, as if it had never gone along */
    world_script(w, "UPDATE file SET status = 3, live_name = name, deleted_with = NULL WHERE id = %lld",
                 (long long)child);
    struct rp_safety_net net = { .catalog = w->catalog,
                                 .config = &s.config,
                                 .uploads = &w->uploads,
                                 .worker = &w->worker,
                                 .actor = "tester",
                                 .limit = 100,
                                 .stale_after_ms = RP_MINUTE_MS };
    ok(rp_safety_net_begin(&net, &run, &err));
    ok(rp_safety_net_carry(&net, &run, &outcome, &err));
    assert_string_equal(outcome, "done");
    world_pass(w, 40 * RP_DAY_MS);
    (void)ask_all(&s);
    (void)world_sweep(w);
    const int64_t all[] = { lost, parent, child };
    for (size_t i = 0; i < 3; i++) {
        uploads_expect(w, all[i], RP_FILE_DELETED);
        assert_int_equal(uploads_mark(w, all[i]).state, RP_DEAD);
        assert_non_null(strstr(uploads_mark(w, all[i]).note, "calendar refused"));
    }
    services_drop(&s);
}

/* ---- a catalog put back ---- */

static void recover(struct world *w)
{
    struct rp_recovery recovery;
    ok(rp_owner_recover(w->catalog, &w->store, "test", "tester", false, &recovery, &err));
}

/* Nobody knows what was said since the backup: who was only asked is asked again, and where one has
 * said yes, a person decides. */
static void what_was_asked_about_begins_anew_after_a_recovery_and_a_yes_waits_for_a_person(void **state)
{
    struct world *w = *state;
    struct services s;
    struct rp_file_command c;
    services_make(w, &s);
    s.at[CALENDAR].status = 202;
    int64_t asked = uploads_live(w, "a.txt", "hello");
    assert_int_equal(delete_confirmed(&s, asked, &c), 0);
    (void)ask_all(&s);
    assert_int_equal(uploads_mark(w, asked).state, RP_CHECKING);
    recover(w);
    assert_int_equal(uploads_mark(w, asked).state, RP_MARKED);
    struct rp_confirmations all;
    int64_t mark_id = uploads_mark(w, asked).id;
    ok(rp_confirmations_of(w->catalog->db, &mark_id, 1, &w->arena, &all, &err));
    assert_int_equal(all.at[0].state, RP_CONFIRM_PENDING);
    assert_int_equal(all.at[0].until_at_ms, 0); /* another deadline */
    assert_int_equal(say_later(&s, all.at[0].id, true), RP_ENOTFOUND);
    assert_int_equal(ask_all(&s).calls, 0);
    world_pass(w, 40 * RP_DAY_MS);
    s.at[CALENDAR].status = 200;
    assert_int_equal(ask_all(&s).yes, 1);
    expect_purged(w, 1);

    put_to_confirm(&s, "plain", "billing", "calendar");
    s.at[CALENDAR].status = 500;
    (void)ask_all(&s);
    assert_string_equal(confirmed(&s, "plain"), "YA");
    recover(w);
    assert_int_equal(state_of(&s, "plain"), RP_REPRIEVED); /* of nobody's: mark it again */
    services_drop(&s);
}

static void a_file_that_a_service_has_given_up_waits_for_a_person_after_a_recovery(void **state)
{
    struct world *w = *state;
    struct services s;
    struct rp_file_command c;
    services_make(w, &s);
    int64_t file = uploads_live(w, "a.txt", "hello");
    assert_int_equal(delete_confirmed(&s, file, &c), 0);
    assert_int_equal(ask_all(&s).yes, 1);
    recover(w);
    assert_int_equal(uploads_mark(w, file).state, RP_DEAD);
    assert_non_null(strstr(uploads_mark(w, file).note, "decide whether it is still to go"));
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM dead_letter WHERE open = 1"), 1);
    recover(w);
    world_pass(w, 40 * RP_DAY_MS);
    (void)ask_all(&s);
    expect_purged(w, 0);
    uploads_expect(w, file, RP_FILE_DELETED);
    services_drop(&s);
}

static void a_letter_of_a_recovery_that_is_retried_waits_until_it_is_due(void **state)
{
    static const char *const names[] = { "mail" };
    struct world *w = *state;
    struct services s;
    struct rp_file_command c;
    services_make(w, &s);
    int64_t file = uploads_live(w, "a.txt", "hello");
    assert_int_equal(delete_named(&s, file, 2 * RP_DAY_MS, names, 1, &c), 0);
    assert_int_equal(ask_all(&s).yes, 1);
    recover(w);
    ok(ask_retry(w->catalog, world_number(w, "SELECT MAX(id) FROM dead_letter WHERE open = 1"), "tester", &err));
    assert_int_equal(uploads_mark(w, file).state, RP_CHECKING);
    expect_purged(w, 0);
    world_pass(w, 3 * RP_DAY_MS);
    expect_purged(w, 1);
    services_drop(&s);
}

static int64_t question_of(struct world *w, int64_t mark_id, size_t which)
{
    struct rp_confirmations all;
    ok(rp_confirmations_of(w->catalog->db, &mark_id, 1, &w->arena, &all, &err));
    return all.at[which].id;
}

/* A person may have kept it since the backup, whatever a service says to a call from before. */
static void a_late_yes_after_a_recovery_erases_no_dead_letter(void **state)
{
    static const char *const names[] = { "calendar", "billing" };
    struct world *w = *state;
    struct services s;
    struct rp_file_command c;
    services_make(w, &s);
    int64_t file = uploads_live(w, "a.txt", "hello");
    assert_int_equal(delete_named(&s, file, 0, names, 2, &c), 0);
    s.at[BILLING].status = 202;
    (void)ask_all(&s);
    s.at[CALENDAR].status = 409;
    put_to_confirm(&s, "plain", "calendar", NULL);
    (void)ask_all(&s);
    assert_int_equal(state_of(&s, "plain"), RP_DEAD);
    recover(w);
    assert_int_equal(uploads_mark(w, file).state, RP_DEAD);
    assert_int_equal(say_later(&s, question_of(w, uploads_mark(w, file).id, 1), true), RP_ENOTFOUND);
    assert_int_equal(say_later(&s, confirmation_id(&s, "plain", 0), true), RP_ENOTFOUND);
    expect_purged(w, 0);
    assert_int_equal(state_of(&s, "plain"), RP_DEAD);
    services_drop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_T1_from_the_first_call_on_a_restore_is_too_late),
        BOTH(while_nobody_was_asked_yet_no_service_is_named),
        BOTH(what_was_refused_can_be_restored_but_not_after_a_yes),
        BOTH(a_no_about_a_dead_letter_changes_nothing),
        BOTH(who_keeps_a_dead_letter_is_told_who_has_deleted_already),
        BOTH(who_brings_it_back_from_quarantine_is_told_who_has_deleted_already),
        BOTH(nobody_who_has_deleted_its_half_is_left_out_of_the_answer),
        BOTH(a_restore_in_bulk_finds_what_was_asked_about_and_dead_letters),
        BOTH(a_dead_letter_that_is_restored_or_kept_leaves_no_annotation),
        BOTH(a_store_that_fails_keeps_nobody_from_giving_a_dead_letter_up),
        BOTH(a_purge_that_is_given_up_leaves_no_annotation_either),
        BOTH(a_deleted_file_and_what_belongs_to_it_wait_for_the_yes),
        BOTH(a_file_whose_delete_was_refused_lives_again),
        BOTH(a_file_whose_object_is_gone_does_not_come_back_from_a_dead_letter),
        BOTH(test_F4_what_a_service_is_asked_about_keeps_its_parent_not_away),
        BOTH(test_F4_a_parent_is_given_back_while_its_child_waits_for_a_service),
        BOTH(a_refusal_for_one_of_the_family_says_which),
        BOTH(the_safety_net_asks_whom_the_lost_mark_named),
        BOTH(what_was_asked_about_begins_anew_after_a_recovery_and_a_yes_waits_for_a_person),
        BOTH(a_file_that_a_service_has_given_up_waits_for_a_person_after_a_recovery),
        BOTH(a_letter_of_a_recovery_that_is_retried_waits_until_it_is_due),
        BOTH(a_late_yes_after_a_recovery_erases_no_dead_letter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
