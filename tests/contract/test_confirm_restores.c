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
    answer = world_restore(w, "k");
    assert_int_equal(answer.what, RP_REPRIEVE_RETURNED);
    assert_string_equal(answer.agreed, "calendar, billing");
    w->config.mode = RP_MODE_PURGE;
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

/* ---- files ---- */

static int delete_confirmed(struct services *s, int64_t file_id, struct rp_file_command *out)
{
    static const char *const names[] = { "calendar" };
    static struct rp_confirmers_asked by;
    ok(rp_confirmers_find(&s->config, names, 1, &by, &err));
    *out = uploads_command(s->w, &rp_verb_delete, file_id);
    out->grace_ms = 0;
    out->confirmations = &by;
    return rp_command_run(s->w->catalog, &out->command);
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
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT id FROM dead_letter WHERE open = 1 AND mark_id = %lld",
             (long long)uploads_mark(w, kept).id);
    ok(ask_keep(w->catalog, world_number(w, sql), "tester", &as, &err));
    assert_int_equal(as, RP_REPRIEVED);
    uploads_expect(w, kept, RP_FILE_LIVE);
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM dead_letter WHERE open = 1"), 0);
    services_drop(&s);
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
    assert_int_equal(ask_all(&s).asked, 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_T1_from_the_first_call_on_a_restore_is_too_late),
        BOTH(what_was_refused_can_be_restored_but_not_after_a_yes),
        BOTH(who_keeps_a_dead_letter_is_told_who_has_deleted_already),
        BOTH(who_brings_it_back_from_quarantine_is_told_who_has_deleted_already),
        BOTH(a_restore_in_bulk_finds_what_was_asked_about_and_dead_letters),
        BOTH(a_deleted_file_and_what_belongs_to_it_wait_for_the_yes),
        BOTH(a_file_whose_delete_was_refused_lives_again),
        BOTH(the_safety_net_asks_whom_the_lost_mark_named),
        BOTH(what_was_asked_about_begins_anew_after_a_recovery_and_a_yes_waits_for_a_person),
        BOTH(a_file_that_a_service_has_given_up_waits_for_a_person_after_a_recovery),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
