/* SPDX-License-Identifier: Apache-2.0 */
/* Another writer between any two statements. Each pair of changes that meet is tried once for every
 * call that the first one makes of the database: right before that call the second one begins, on
 * another connection, and goes as far as it comes: to its end, or to a lock that the first one
 * holds. Then the first one goes on. What both were told and what is there in the end must be what
 * one of the two orders gives. PostgreSQL only: SQLite has one writer. Needs PostgreSQL: run under
 * tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "catalog/mark/dead.h"
#include "core/check/references.h"
#include "core/dead.h"
#include "core/hold.h"
#include "core/recover/recover.h"
#include "lib/ask.h"
#include "lib/uploads.h"

#define DAY       RP_DAY_MS
#define CALLS_MAX 200

static struct rp_error err;

struct meeting {
    struct world w;
    struct rp_catalog *ours; /* asks before each call */
    struct rp_catalog *theirs;
    const struct pair *pair;
    bool armed, begun;
    int at, n;
    pthread_t thread;
    atomic_bool ended;
    int code[2]; /* ours, theirs */
    struct rp_error why[2];
    /* what a pair is about */
    char key[64];
    struct rp_mark mark;
    int64_t file_id, id;
    struct rp_mark_answer marked;
    struct rp_reprieve_answer restored;
    struct rp_file_command file[2];
    struct rp_init init[2];
    struct rp_run run[2];
    struct rp_store_row store[2];
    int64_t lifted[2];
    enum rp_state kept_as;
    struct world_steps first, steps;
    struct rp_database_config database;
    struct rp_reference references[1];
    char url[120];
    struct rp_recovery recovery;
    struct rp_arena arena; /* of the second one's answers */
};

struct pair {
    const char *name;
    void (*prepare)(struct meeting *m);
    int (*ours)(struct meeting *m, struct rp_error *e);
    int (*theirs)(struct meeting *m, struct rp_error *e);
    void (*judge)(struct meeting *m);
};

/* ---- the loop ---- */

static void *second(void *arg)
{
    struct meeting *m = arg;
    m->code[1] = m->pair->theirs(m, &m->why[1]);
    atomic_store(&m->ended, true);
    return NULL;
}

static bool waits_for_a_lock(struct meeting *m)
{
    char sql[160];
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM pg_stat_activity WHERE application_name = '%s' AND wait_event_type = 'Lock'",
             m->w.dbs.schema);
    return world_number(&m->w, sql) > 0;
}

static int before(void *ctx, const char *call, struct rp_error *e)
{
    struct meeting *m = ctx;
    const struct timespec moment = { .tv_nsec = 200000 };
    (void)call, (void)e;
    if (!m->armed || ++m->n != m->at) return 0;
    m->begun = true;
    assert_int_equal(pthread_create(&m->thread, NULL, second, m), 0);
    while (!atomic_load(&m->ended) && !waits_for_a_lock(m))
        nanosleep(&moment, NULL);
    return 0;
}

static void meet(struct meeting *m, const struct pair *pair, int at)
{
    m->pair = pair;
    m->at = at;
    m->n = 0;
    m->begun = false;
    atomic_store(&m->ended, false);
    memset(m->why, 0, sizeof m->why);
    snprintf(m->key, sizeof m->key, "%.40s %d", pair->name, at);
    rp_arena_reset(&m->w.arena);
    rp_arena_reset(&m->arena);
    pair->prepare(m);
    m->armed = true;
    m->code[0] = pair->ours(m, &m->why[0]);
    m->armed = false;
    if (m->begun)
        assert_int_equal(pthread_join(m->thread, NULL), 0);
    else
        (void)second(m);
    pair->judge(m);
}

/* Until the first one makes no such call any more: then the second one comes after it. */
static void meet_everywhere(struct meeting *m, const struct pair *pair)
{
    int at = 0;
    do {
        assert_in_range(++at, 1, CALLS_MAX);
        meet(m, pair, at);
    } while (m->begun);
    world_ok(m->code[0], &m->why[0], __FILE__, __LINE__);
    print_message("%s: %d calls\n", pair->name, at - 1);
    assert_in_range(at, 4, CALLS_MAX);
}

static void both_went_well(struct meeting *m)
{
    for (int i = 0; i < 2; i++)
        world_ok(m->code[i], &m->why[i], __FILE__, __LINE__);
}

/* Exactly one; the other was told `code`. Returns who. */
static int one_went_well(struct meeting *m, int code)
{
    int who = m->code[0] == 0 ? 0 : 1;
    if (m->code[1 - who] != code)
        fail_msg("%s, call %d: %s (%s)", m->pair->name, m->at, m->why[1 - who].text, rp_error_slug(m->code[1 - who]));
    world_ok(m->code[who], &m->why[who], __FILE__, __LINE__);
    return who;
}

/* ---- marks ---- */

static void mark_it(struct meeting *m)
{
    world_put(&m->w, m->key, "bytes");
    (void)world_mark(&m->w, m->key, DAY);
    m->mark = world_newest(&m->w, m->key);
}

static void mark_the_older(struct meeting *m)
{
    mark_it(m);
    world_put(&m->w, m->key, "newer bytes");
}

static int mark_for_long(struct meeting *m, struct rp_error *e)
{
    struct rp_mark_request request = { .key = m->key, .grace_ms = 10 * DAY, .at_ms = -1, .reason = "" };
    return rp_mark_many(m->ours, &m->w.store, &request, 1, "first", false, &m->marked, e);
}

static int restore_it(struct meeting *m, struct rp_error *e)
{
    return rp_reprieve_many(m->theirs, &m->w.store, &m->mark, 1, "second", &m->restored, e);
}

static void judge_more_time(struct meeting *m)
{
    both_went_well(m);
    bool same = m->marked.mark_id == m->mark.id;
    struct rp_mark newest = world_newest(&m->w, m->key);
    assert_int_equal(m->marked.what, same ? RP_MARK_EXTENDED : RP_MARK_CREATED);
    assert_int_equal(m->restored.what, RP_REPRIEVE_DONE);
    assert_int_equal(newest.id, m->marked.mark_id);
    assert_int_equal(newest.state, same ? RP_REPRIEVED : RP_MARKED);
    assert_int_equal(newest.due_at_ms, m->marked.due_at_ms);
}

static void judge_newer(struct meeting *m)
{
    both_went_well(m);
    bool replaced = m->marked.what == RP_MARK_REPLACED;
    struct rp_mark newest = world_newest(&m->w, m->key), old;
    if (!replaced) assert_int_equal(m->marked.what, RP_MARK_CREATED);
    assert_int_equal(newest.id, m->marked.mark_id);
    assert_int_equal(newest.state, RP_MARKED); /* what was restored is the older upload */
    assert_int_equal(newest.size_bytes, (int64_t)strlen("newer bytes"));
    ok(rp_mark_get(m->w.catalog->db, m->mark.id, &m->w.arena, &old, &err));
    assert_int_equal(old.state, RP_REPRIEVED);
    assert_int_equal(old.outcome, replaced ? RP_END_SUPERSEDED : RP_END_RESTORED);
}

/* ---- files against a sweep ---- */

static void claim_begin(struct meeting *m)
{
    char name[24];
    snprintf(name, sizeof name, "claim %d", m->at);
    world_steps_begin(&m->w, m->theirs, name, &m->steps);
}

static int claim_it(struct meeting *m, struct rp_error *e)
{
    return rp_purge_claim(m->theirs, &m->w.store, &m->w.rules, &m->w.worker, 10, &m->steps.from_ms, &m->steps.batch, e);
}

static void claim_end(struct meeting *m)
{
    world_steps_erase(&m->w, m->theirs, &m->steps);
    ok(rp_purge_finish(m->theirs, &m->w.rules, &m->steps.batch, &m->steps.run, &err));
    ok(rp_run_end(m->theirs, &m->steps.run, "done", &err));
    world_steps_done(&m->steps);
}

static void delete_it_now(struct meeting *m)
{
    m->file_id = uploads_live(&m->w, m->key, "bytes");
    world_ok(uploads_delete(&m->w, m->file_id, 0, &m->file[0]), &m->file[0].command.error, __FILE__, __LINE__);
    m->mark = uploads_mark(&m->w, m->file_id);
    claim_begin(m);
}

static int run_file(struct rp_catalog *catalog, struct rp_file_command *c, struct rp_error *e)
{
    int r = rp_command_run(catalog, &c->command);
    *e = c->command.error;
    return r;
}

static int put_it_off(struct meeting *m, struct rp_error *e)
{
    m->file[0] = uploads_command(&m->w, &rp_verb_delete, m->file_id);
    m->file[0].grace_ms = 10 * DAY;
    return run_file(m->ours, &m->file[0], e);
}

static int restore_file(struct meeting *m, struct rp_error *e)
{
    m->file[0] = uploads_command(&m->w, &rp_verb_file_restore, m->file_id);
    return run_file(m->ours, &m->file[0], e);
}

static void judge_put_off(struct meeting *m)
{
    both_went_well(m);
    bool claimed = m->steps.batch.marks.n > 0;
    struct rp_mark mark = uploads_mark(&m->w, m->file_id);
    assert_int_equal(m->file[0].event != NULL, !claimed);
    assert_int_equal(mark.id, m->mark.id);
    assert_int_equal(mark.state, claimed ? RP_CHECKING : RP_MARKED); /* its store has references */
    assert_true(claimed ? mark.due_at_ms == m->mark.due_at_ms : mark.due_at_ms > m->mark.due_at_ms + 9 * DAY);
    claim_end(m);
    uploads_expect(&m->w, m->file_id, claimed ? RP_FILE_PURGED : RP_FILE_DELETED);
}

static void judge_restored(struct meeting *m)
{
    world_ok(m->code[1], &m->why[1], __FILE__, __LINE__);
    bool claimed = m->steps.batch.marks.n > 0;
    assert_int_equal(m->code[0], claimed ? RP_ETOOLATE : 0);
    claim_end(m);
    uploads_expect(&m->w, m->file_id, claimed ? RP_FILE_PURGED : RP_FILE_LIVE);
    assert_int_equal(world_exists(&m->w, uploads_file(&m->w, m->file_id).key), !claimed);
}

/* ---- files against users ---- */

static void make_live(struct meeting *m)
{
    m->file_id = uploads_live(&m->w, m->key, "bytes");
}

static int delete_file(struct meeting *m, struct rp_error *e)
{
    m->file[0] = uploads_command(&m->w, &rp_verb_delete, m->file_id);
    return run_file(m->ours, &m->file[0], e);
}

static int begin_child(struct meeting *m, struct rp_error *e)
{
    m->init[1] = uploads_init(&m->w, "child", 5);
    m->init[1].parent_id = m->file_id;
    int r = rp_command_run(m->theirs, &m->init[1].command);
    *e = m->init[1].command.error;
    return r;
}

static void judge_child(struct meeting *m)
{
    world_ok(m->code[0], &m->why[0], __FILE__, __LINE__);
    uploads_expect(&m->w, m->file_id, RP_FILE_DELETED);
    if (m->code[1] == 0)
        uploads_expect(&m->w, m->init[1].file_id, RP_FILE_DELETED); /* with its parent */
    else
        assert_int_equal(m->code[1], RP_EOWNERGONE);
}

static void delete_for_a_day(struct meeting *m)
{
    make_live(m);
    world_ok(uploads_delete(&m->w, m->file_id, DAY, &m->file[0]), &m->file[0].command.error, __FILE__, __LINE__);
}

static int restore_and_delete(struct meeting *m, struct rp_error *e)
{
    struct rp_file_command *c = &m->file[1];
    *c = uploads_command(&m->w, &rp_verb_file_restore, m->file_id);
    c->arena = &m->arena;
    int r = run_file(m->theirs, c, e);
    if (r < 0) return r;
    c->command.verb = &rp_verb_delete;
    c->grace_ms = 2 * DAY;
    return run_file(m->theirs, c, e);
}

static void judge_deleted_again(struct meeting *m)
{
    both_went_well(m);
    enum rp_status status = uploads_file(&m->w, m->file_id).status;
    assert_true(status == RP_FILE_LIVE || status == RP_FILE_DELETED);
    assert_int_equal(uploads_mark(&m->w, m->file_id).state, status == RP_FILE_LIVE ? RP_REPRIEVED : RP_MARKED);
    assert_true(m->file[0].event != NULL || status == RP_FILE_DELETED);
}

static void make_key(struct meeting *m)
{
    (void)m;
}

static int render(struct rp_command *command, int *status, struct rp_buf *answer)
{
    const struct rp_init *c = (const struct rp_init *)command;
    *status = command->error.code < 0 ? 400 : 201;
    return rp_buf_fmt(answer, "%" PRId64, c->file_id);
}

static int begin_under_key(struct meeting *m, int who, struct rp_error *e)
{
    struct rp_init *c = &m->init[who];
    *c = uploads_init(&m->w, m->key, 5);
    c->command.key = m->key;
    c->command.render = render;
    int r = rp_command_run(who == 0 ? m->ours : m->theirs, &c->command);
    *e = c->command.error;
    return r;
}

static int begin_first(struct meeting *m, struct rp_error *e)
{
    return begin_under_key(m, 0, e);
}

static int begin_second(struct meeting *m, struct rp_error *e)
{
    return begin_under_key(m, 1, e);
}

static void judge_same_answer(struct meeting *m)
{
    char sql[160];
    both_went_well(m);
    assert_string_equal(rp_buf_text(&m->init[0].command.answer), rp_buf_text(&m->init[1].command.answer));
    assert_int_equal(m->init[0].command.replayed + m->init[1].command.replayed, 1);
    snprintf(sql, sizeof sql, "SELECT count(*) FROM file WHERE name = '%s'", m->key);
    assert_int_equal(world_number(&m->w, sql), 1);
    for (int i = 0; i < 2; i++)
        rp_buf_done(&m->init[i].command.answer);
}

/* ---- dead letters, holds, runs, stores ---- */

static int deny(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx;
    return strcmp(call, "remove") == 0 && key != NULL ? rp_error_set(e, RP_EDENIED, "refused") : 0;
}

static void let_it_die(struct meeting *m)
{
    struct world *w = &m->w;
    world_put(w, m->key, "bytes");
    m->id = world_mark(w, m->key, 0).mark_id;
    world_script(w, "UPDATE mark SET attempts = 2 WHERE id = %" PRId64, m->id);
    w->before = deny;
    (void)world_sweep(w);
    w->before = NULL;
    assert_int_equal(world_newest(w, m->key).state, RP_DEAD);
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT id FROM dead_letter WHERE mark_id = %" PRId64, m->id);
    m->file_id = world_number(w, sql);
}

static int retry(struct meeting *m, struct rp_error *e)
{
    return ask_retry(m->ours, m->file_id, "first", e);
}

static int give_up(struct meeting *m, struct rp_error *e)
{
    return ask_keep(m->theirs, m->file_id, "second", &m->kept_as, e);
}

static void judge_letter(struct meeting *m)
{
    int who = one_went_well(m, RP_ENOTFOUND);
    assert_int_equal(world_newest(&m->w, m->key).state, who == 0 ? RP_PURGING : RP_LOST);
    world_script(&m->w, "UPDATE mark SET next_at = next_at + %" PRId64 " WHERE next_at IS NOT NULL", 100 * DAY);
}

static void pause_twice(struct meeting *m)
{
    struct rp_hold_command request = { .scope = RP_SCOPE_EVERYTHING, .reason = "pause", .command.actor = "tester" };
    for (int i = 0; i < 2; i++)
        ok(ask_hold(m->w.catalog, &request, &m->w.arena, &err));
}

static int resume_first(struct meeting *m, struct rp_error *e)
{
    return ask_resume(m->ours, "first", &m->lifted[0], e);
}

static int resume_second(struct meeting *m, struct rp_error *e)
{
    return ask_resume(m->theirs, "second", &m->lifted[1], e);
}

static void judge_resumed(struct meeting *m)
{
    both_went_well(m);
    assert_int_equal(m->lifted[0] + m->lifted[1], 2); /* each hold by one of them */
    assert_int_equal(world_number(&m->w, "SELECT count(*) FROM hold WHERE lifted_at IS NULL"), 0);
}

static int run_first(struct meeting *m, struct rp_error *e)
{
    return rp_run_begin(m->ours, "sweep", m->key, &m->w.worker, RP_HOUR_MS, &m->run[0], e);
}

static int run_second(struct meeting *m, struct rp_error *e)
{
    return rp_run_begin(m->theirs, "sweep", m->key, &m->w.worker, RP_HOUR_MS, &m->run[1], e);
}

static void judge_runs(struct meeting *m)
{
    int who = one_went_well(m, RP_ERUNNING);
    ok(rp_run_end(m->w.catalog, &m->run[who], "done", &err));
}

static void leave_run(struct meeting *m)
{
    ok(rp_run_begin(m->w.catalog, "sweep", m->key, &m->w.worker, RP_HOUR_MS, &m->run[0], &err));
    world_script(&m->w, "UPDATE run_lock SET locked_at = locked_at - %" PRId64 " WHERE name = 'sweep:%s'", DAY, m->key);
}

static int end_first(struct meeting *m, struct rp_error *e)
{
    return rp_run_end(m->ours, &m->run[0], "done", e);
}

static int step_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    return rp_run_step(tx, ctx, e);
}

static int step_first(struct meeting *m, struct rp_error *e)
{
    return rp_catalog_transact(m->ours, step_tx, &m->run[0], e);
}

static void judge_takeover(struct meeting *m)
{
    char sql[100];
    both_went_well(m);
    snprintf(sql, sizeof sql, "SELECT count(*) FROM run_record WHERE run_id = %" PRId64, m->run[0].id);
    assert_int_equal(world_number(&m->w, sql), 1);
    assert_true(m->run[1].fence > m->run[0].fence);
    ok(rp_run_end(m->w.catalog, &m->run[1], "done", &err));
}

/* A run that says it is alive is not taken over; one that was taken over is told. */
static void judge_step(struct meeting *m)
{
    int who = m->code[0] == 0 && m->code[1] == RP_ERUNNING ? 0 : 1;
    if (who == 1 && m->code[0] < 0) assert_int_equal(m->code[0], RP_ECHANGED);
    world_ok(m->code[who], &m->why[who], __FILE__, __LINE__);
    ok(rp_run_end(m->w.catalog, &m->run[who], "done", &err));
}

static int note_first(struct meeting *m, struct rp_error *e)
{
    return rp_store_get(m->ours, RP_STORE_STORE, m->key, &m->store[0], e);
}

static int note_second(struct meeting *m, struct rp_error *e)
{
    return rp_store_get(m->theirs, RP_STORE_STORE, m->key, &m->store[1], e);
}

static void judge_stores(struct meeting *m)
{
    both_went_well(m);
    assert_int_equal(m->store[0].id, m->store[1].id);
    assert_string_equal(m->store[0].name, m->key);
}

static int recover(struct meeting *m, struct rp_error *e)
{
    return rp_owner_recover(m->ours, &m->w.store, "test", "first", false, &m->recovery, e);
}

/* A recovery ends the marks of objects itself. */
static void judge_recovered(struct meeting *m)
{
    both_went_well(m);
    struct rp_mark newest = world_newest(&m->w, m->key);
    assert_int_equal(newest.state, RP_REPRIEVED);
    assert_int_equal(newest.outcome, m->restored.what == RP_REPRIEVE_DONE ? RP_END_RESTORED : RP_END_RECOVERED);
}

static int restore_file_second(struct meeting *m, struct rp_error *e)
{
    m->file[1] = uploads_command(&m->w, &rp_verb_file_restore, m->file_id);
    m->file[1].arena = &m->arena;
    return run_file(m->theirs, &m->file[1], e);
}

/* Files it only gives more time. */
static void judge_recovered_file(struct meeting *m)
{
    both_went_well(m);
    assert_non_null(m->file[1].event);
    uploads_expect(&m->w, m->file_id, RP_FILE_LIVE);
}

/* ---- two workers ---- */

static void claim_with_a_lease_that_ends(struct meeting *m)
{
    struct world *w = &m->w;
    char name[24];
    snprintf(name, sizeof name, "first %d", m->at);
    struct rp_mark_request request = { .key = m->key, .at_ms = -1, .reason = "", .if_unreferenced = true };
    world_put(w, m->key, "bytes");
    ok(rp_mark_many(w->catalog, &w->store, &request, 1, "tester", false, &m->marked, &err));
    m->id = m->marked.mark_id;
    claim_begin(m);
    world_steps_begin(w, m->ours, name, &m->first);
    int64_t lease_ms = w->rules.lease_ms;
    w->rules.lease_ms = -1;
    world_steps_claim(w, m->ours, &m->first);
    w->rules.lease_ms = lease_ms;
    assert_int_equal(m->first.batch.marks.n, 1);
    assert_int_equal(m->first.batch.marks.at[0].state, RP_CHECKING);
}

static int check_it(struct meeting *m, struct rp_error *e)
{
    return rp_purge_check(m->ours, &m->w.rules, "first", &m->first.batch, e);
}

/* Whoever is second finds it claimed again or done; one purge is told, whoever did it. */
static void judge_check(struct meeting *m)
{
    char sql[120];
    both_went_well(m);
    if (m->steps.batch.marks.n == 0) world_steps_claim(&m->w, m->theirs, &m->steps); /* what is locked is passed over */
    assert_int_equal(m->steps.batch.marks.n, 1);
    assert_true(m->steps.batch.marks.at[0].fence > m->first.batch.marks.at[0].fence);
    bool late = m->steps.batch.marks.at[0].state == RP_CHECKING;
    assert_int_equal(m->first.batch.items[0].status == RP_ITEM_KEPT, late);
    rp_purge_erase(&m->first.batch);
    ok(rp_purge_finish(m->ours, &m->w.rules, &m->first.batch, &m->first.run, &err));
    assert_int_equal(m->first.run.figures.purged, 0); /* FENCED */
    ok(rp_run_end(m->ours, &m->first.run, "done", &err));
    world_steps_done(&m->first);
    claim_end(m);
    assert_false(world_exists(&m->w, m->key));
    assert_int_equal(world_newest(&m->w, m->key).state, RP_PURGED);
    snprintf(sql, sizeof sql, "SELECT count(*) FROM audit WHERE event = 'mark.purged' AND mark_id = %" PRId64, m->id);
    assert_int_equal(world_number(&m->w, sql), 1);
}

static const struct pair pairs[] = {
    { "more time, restored", mark_it, mark_for_long, restore_it, judge_more_time },
    { "a newer upload, restored", mark_the_older, mark_for_long, restore_it, judge_newer },
    { "put off, claimed", delete_it_now, put_it_off, claim_it, judge_put_off },
    { "file restored, claimed", delete_it_now, restore_file, claim_it, judge_restored },
    { "deleted, a child begun", make_live, delete_file, begin_child, judge_child },
    { "restored, deleted again", delete_for_a_day, restore_file, restore_and_delete, judge_deleted_again },
    { "one key twice", make_key, begin_first, begin_second, judge_same_answer },
    { "retried, given up", let_it_die, retry, give_up, judge_letter },
    { "resumed twice", pause_twice, resume_first, resume_second, judge_resumed },
    { "two runs of one name", make_key, run_first, run_second, judge_runs },
    { "ended, taken over", leave_run, end_first, run_second, judge_takeover },
    { "goes on, taken over", leave_run, step_first, run_second, judge_step },
    { "one store twice", make_key, note_first, note_second, judge_stores },
    { "recovered, restored", mark_it, recover, restore_it, judge_recovered },
    { "recovered, file restored", delete_for_a_day, recover, restore_file_second, judge_recovered_file },
    { "checked, taken over", claim_with_a_lease_that_ends, check_it, claim_it, judge_check },
};

/* ---- the test ---- */

static void make_guard(struct meeting *m)
{
    struct rp_db *db = NULL;
    snprintf(m->url, sizeof m->url, "sqlite:%s/app.db", m->w.dbs.dir);
    ok(rp_db_open(m->url, &(struct rp_db_options){ 0 }, &db, &err));
    ok(rp_db_script(db, "CREATE TABLE used (key TEXT)", &err));
    rp_db_close(db);
    m->database = (struct rp_database_config){ .name = "app", .url = m->url, .read_url = "" };
    m->references[0] = (struct rp_reference){ .database = "app", .table = "used", .column = "key" };
    const struct rp_config config = { .environment = "test", .databases = &m->database, .n_databases = 1 };
    struct rp_store_config store_name = m->w.config;
    store_name.referenced_by = m->references;
    store_name.n_referenced_by = 1;
    ok(rp_references_new(&config, &store_name, &m->w.store.references, &err));
}

static int set_up(void **state)
{
    struct meeting *m = calloc(1, sizeof *m);
    if (m == NULL) return -1;
    world_make(&m->w, DBS_POSTGRES, WORLD_MEMORY);
    m->ours = world_catalog(&m->w, 1, &(struct rp_db_fault){ .before = before, .ctx = m });
    m->theirs = world_catalog(&m->w, 2, NULL);
    m->arena = RP_ARENA((size_t)1 << 20);
    (void)uploads_tenant(&m->w, "acme");
    make_guard(m);
    *state = m;
    return 0;
}

static int tear_down(void **state)
{
    struct meeting *m = *state;
    rp_references_free(m->w.store.references);
    world_check(&m->w);
    rp_catalog_close(m->ours);
    rp_catalog_close(m->theirs);
    rp_arena_done(&m->arena);
    world_drop(&m->w);
    free(m);
    return 0;
}

static void whoever_comes_between_two_statements_is_as_if_before_or_after(void **state)
{
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        meet_everywhere(*state, &pairs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(
        whoever_comes_between_two_statements_is_as_if_before_or_after, set_up, tear_down) };
    return cmocka_run_group_tests_name("between two statements", tests, NULL, NULL);
}
