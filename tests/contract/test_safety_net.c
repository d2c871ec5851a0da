/* SPDX-License-Identifier: Apache-2.0 */
/* T4: what nothing would find any more is found and brought back, a bounded number a run, until
 * nothing is left; and while others are at work nothing is a finding. On both engines. Needs
 * PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/id.h"
#include "base/log.h"
#include "catalog/audit/feed.h"
#include "core/dead.h"
#include "core/safety_net/safety_net.h"
#include "lib/ask.h"
#include "lib/uploads.h"

#define DAY   RP_DAY_MS
#define GRACE (5 * RP_DAY_MS) /* of the world's store */

static struct rp_error err;
static struct rp_config config;

static struct rp_safety_net net_of(struct world *w, struct rp_catalog *catalog)
{
    config = (struct rp_config){ .stores = &w->config, .n_stores = 1 };
    return (struct rp_safety_net){ .catalog = catalog,
                                   .config = &config,
                                   .uploads = &w->uploads,
                                   .worker = &w->worker,
                                   .actor = "tester",
                                   .limit = 1000,
                                   .stale_after_ms = RP_MINUTE_MS };
}

static int64_t repaired(const struct rp_run *run, const char *what)
{
    for (size_t i = 0; i < run->figures.n_let_go; i++)
        if (strcmp(run->figures.let_go[i].what, what) == 0) return run->figures.let_go[i].rows;
    return -1;
}

static int64_t sum(const struct rp_run *run)
{
    int64_t n = 0;
    for (size_t i = 0; i < run->figures.n_let_go; i++)
        n += run->figures.let_go[i].rows;
    return n;
}

static const char *carry(struct rp_safety_net *net, struct rp_run *run)
{
    const char *outcome = NULL;
    ok(rp_safety_net_begin(net, run, &err));
    ok(rp_safety_net_carry(net, run, &outcome, &err));
    return outcome;
}

/* A whole run, which must succeed. */
static struct rp_run *run_limited(struct world *w, int64_t limit)
{
    static struct rp_run run;
    struct rp_safety_net net = net_of(w, w->catalog);
    net.limit = limit;
    assert_string_equal(carry(&net, &run), "done");
    return &run;
}

static struct rp_run *run_once(struct world *w)
{
    return run_limited(w, 1000);
}

static void expect_nothing_left(struct world *w)
{
    assert_int_equal(sum(run_once(w)), 0);
}

/* ---- what is bad ---- */

static int64_t deleted(struct world *w, const char *name)
{
    struct rp_file_command c;
    int64_t id = uploads_live(w, name, "hello");
    ok(uploads_delete(w, id, DAY, &c));
    return id;
}

static int64_t lost(struct world *w, const char *name)
{
    int64_t id = deleted(w, name);
    uploads_lose_mark(w, id);
    return id;
}

static void expect_due_in(struct world *w, int64_t file_id, int64_t ms)
{
    struct rp_mark mark = uploads_mark(w, file_id);
    int64_t now_ms = world_number(w, "SELECT @NOW_MS");
    assert_int_equal(mark.state, RP_MARKED);
    assert_in_range(mark.due_at_ms, now_ms + ms - RP_MINUTE_MS, now_ms + ms + RP_MINUTE_MS);
}

static int64_t audits(struct world *w, int64_t mark_id, const char *event)
{
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM audit WHERE mark_id = %" PRId64 " AND event = '%s'", mark_id,
             event);
    return world_number(w, sql);
}

/* ---- files ---- */

static void test_a_deleted_file_without_a_mark_is_marked_again_and_can_be_restored(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t gone = lost(w, "gone"), ended = deleted(w, "ended"), waits = deleted(w, "waits");
    int64_t waiting = uploads_mark(w, waits).id;
    world_script(w,
                 "UPDATE mark SET state = 5, active = NULL, next_at = NULL, outcome = 5, ended_at = marked_at "
                 "WHERE id = %" PRId64,
                 uploads_mark(w, ended).id);
    world_count_anew(w);
    struct rp_run *run = run_once(w);
    assert_int_equal(repaired(run, "deletes"), 2);
    assert_int_equal(sum(run), 2);
    assert_int_equal(run->figures.marked, 2);
    assert_true(run->figures.scanned >= 3);
    expect_due_in(w, gone, GRACE);
    expect_due_in(w, ended, GRACE);
    assert_string_equal(uploads_mark(w, gone).reason, "safety net: lost delete");
    assert_int_equal(audits(w, uploads_mark(w, gone).id, "file.deleted"), 1);
    assert_int_equal(uploads_mark(w, waits).id, waiting);
    expect_nothing_left(w);
    ok(uploads_restore(w, gone, &c));
    uploads_expect(w, gone, RP_FILE_LIVE);
    world_pass(w, 6 * DAY);
    world_swept(w, 2);
    uploads_expect(w, ended, RP_FILE_PURGED);
    uploads_expect_quota(w, 5, 0, 0);
}

static void test_an_upload_without_a_mark_expires_and_is_refunded_once(void **state)
{
    struct world *w = *state;
    int64_t pending = uploads_begin(w, "pending", "hello"), txn = uploads_txn_begin(w);
    int64_t member = uploads_member(w, txn, "member", "hello", 0), waits = uploads_begin(w, "waits", "hello");
    int64_t waiting = uploads_mark(w, waits).id;
    struct rp_txn_command c;
    uploads_lose_mark(w, pending);
    uploads_lose_mark(w, member);
    struct rp_run *run = run_once(w);
    assert_int_equal(repaired(run, "uploads"), 2);
    assert_int_equal(sum(run), 2);
    assert_string_equal(uploads_mark(w, pending).reason, RP_REASON_ABANDONED);
    assert_string_equal(uploads_mark(w, member).reason, RP_REASON_ROLLBACK);
    expect_due_in(w, pending, RP_HOUR_MS);
    expect_due_in(w, member, RP_HOUR_MS + 5 * DAY);
    assert_int_equal(audits(w, uploads_mark(w, pending).id, "orphan.detected"), 1);
    assert_int_equal(uploads_mark(w, waits).id, waiting);
    expect_nothing_left(w);
    ok(uploads_commit(w, txn, &c)); /* it has not lost its time */
    world_pass(w, 2 * RP_HOUR_MS);
    world_sweep(w);
    uploads_expect(w, pending, RP_FILE_EXPIRED);
    uploads_expect_quota(w, 5, 0, 0);
    expect_nothing_left(w);
}

/* What a person has given up is no finding. */
static void test_what_was_given_up_stays_given_up(void **state)
{
    struct world *w = *state;
    int64_t id = deleted(w, "kept");
    world_script(
        w,
        "UPDATE mark SET state = 7, active = NULL, next_at = NULL, outcome = 7, ended_at = marked_at, was = 6, "
        "fence = 1 WHERE id = %" PRId64,
        uploads_mark(w, id).id);
    world_count_anew(w);
    expect_nothing_left(w);
}

/* ---- children ---- */

/* Where the log goes meanwhile. */
struct logging {
    char path[40];
    struct rp_log *log;
};

static void begin_log(struct world *w, struct logging *l)
{
    snprintf(l->path, sizeof l->path, "/tmp/safety-net-XXXXXX");
    int fd = mkstemp(l->path);
    assert_true(fd >= 0);
    close(fd);
    ok(rp_log_open(l->path, RP_LOG_WARNING, &l->log, &err));
    w->catalog->log = l->log;
}

static int64_t count_lines(struct world *w, struct logging *l, const char *a, const char *b)
{
    char line[4096];
    int64_t n = 0;
    w->catalog->log = NULL;
    rp_log_close(l->log);
    FILE *f = fopen(l->path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL)
        n += strstr(line, a) != NULL && strstr(line, b) != NULL;
    fclose(f);
    unlink(l->path);
    return n;
}

static void give_owner(struct world *w, int64_t child, const char *as, int64_t owner)
{
    world_script(w, "UPDATE file SET %s = %" PRId64 " WHERE id = %" PRId64, as, owner, child);
}

static void test_what_belongs_to_something_gone_follows_it_however_deep(void **state)
{
    struct world *w = *state;
    struct logging l;
    struct rp_file_command c;
    char id[RP_ID_TEXT], reason[80];
    int64_t child = uploads_live(w, "child", "hello"), grand = uploads_child(w, "grand", 0, child);
    int64_t great = uploads_child(w, "great", grand, 0), alone = uploads_live(w, "alone", "hello");
    int64_t root = uploads_live(w, "root", "hello"), both = uploads_live(w, "both", "hello");
    ok(uploads_delete(w, root, 20 * DAY, &c));
    give_owner(w, child, "parent_id", root);
    give_owner(w, both, "parent_id", root);
    give_owner(w, both, "source_id", root);
    begin_log(w, &l);
    struct rp_run *run = run_once(w);
    assert_int_equal(repaired(run, "children"), 4);
    assert_int_equal(sum(run), 4);
    assert_int_equal(count_lines(w, &l, "\"event\":\"orphan.detected\"", rp_id_format(RP_ID_FILE, root, id)), 2);
    uploads_expect(w, child, RP_FILE_DELETED);
    uploads_expect(w, great, RP_FILE_DELETED);
    uploads_expect(w, alone, RP_FILE_LIVE);
    snprintf(reason, sizeof reason, "safety net: its parent %s is gone", rp_id_format(RP_ID_FILE, root, id));
    assert_string_equal(uploads_mark(w, child).reason, reason);
    expect_due_in(w, child, 20 * DAY); /* as long as it can come back */
    expect_due_in(w, great, 20 * DAY);
    expect_nothing_left(w);
    ok(uploads_restore(w, root, &c));
    uploads_expect(w, child, RP_FILE_LIVE);
    uploads_expect(w, great, RP_FILE_LIVE);
    uploads_expect(w, both, RP_FILE_LIVE);
    expect_nothing_left(w);
}

/* What it belonged to cannot come back. */
static void test_what_belongs_to_something_purged_or_expired_has_its_grace(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t purged = uploads_live(w, "purged", "hello"), expired = uploads_begin(w, "expired", "hello");
    ok(uploads_delete(w, purged, 0, &c));
    world_swept(w, 1);
    world_pass(w, 2 * RP_HOUR_MS);
    world_sweep(w);
    uploads_expect(w, expired, RP_FILE_EXPIRED);
    int64_t child = uploads_live(w, "child", "hello"), derived = uploads_live(w, "derived", "hello");
    give_owner(w, child, "parent_id", purged);
    give_owner(w, derived, "source_id", expired);
    assert_int_equal(repaired(run_once(w), "children"), 2);
    expect_due_in(w, child, GRACE);
    expect_due_in(w, derived, GRACE);
    assert_int_equal(uploads_restore(w, child, &c), RP_EOWNERGONE);
    expect_nothing_left(w);
    world_pass(w, 6 * DAY);
    world_sweep(w);
    uploads_expect(w, child, RP_FILE_PURGED);
}

/* ---- marks ---- */

static void test_a_mark_that_nobody_looks_at_is_looked_at_when_it_is_due(void **state)
{
    struct world *w = *state;
    struct world_steps s;
    world_put(w, "due", "hello");
    world_mark(w, "due", 0);
    world_put(w, "later", "hello");
    world_mark(w, "later", DAY);
    world_put(w, "claimed", "hello");
    world_mark(w, "claimed", 0);
    world_steps_begin(w, w->catalog, "other", &s);
    world_steps_claim(w, w->catalog, &s);
    ok(rp_run_end(w->catalog, &s.run, "failed", &err));
    world_steps_done(&s);
    world_script(w, "UPDATE mark SET next_at = NULL");
    world_swept(w, 0);
    struct rp_run *run = run_once(w);
    assert_int_equal(repaired(run, "marks"), 3);
    assert_int_equal(sum(run), 3);
    assert_int_equal(run->figures.marked, 0);
    assert_int_equal(audits(w, world_newest(w, "due").id, "orphan.detected"), 1);
    world_swept(w, 2); /* and not the one that is due later */
    assert_true(world_exists(w, "later"));
    assert_int_equal(world_newest(w, "later").next_at_ms, world_newest(w, "later").due_at_ms);
    expect_nothing_left(w);
}

static void test_a_dead_mark_without_a_letter_gets_one(void **state)
{
    struct world *w = *state;
    struct rp_dead_item item = { .id = 0 };
    world_put(w, "dead", "hello");
    world_mark(w, "dead", 0);
    world_script(w, "UPDATE mark SET state = 6, was = 3, next_at = NULL, fence = 1, attempts = 3, note = 'denied'");
    world_count_anew(w);
    struct rp_run *run = run_once(w);
    assert_int_equal(repaired(run, "letters"), 1);
    assert_int_equal(sum(run), 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM dead_letter WHERE open = 1 AND error = 'denied'"), 1);
    expect_nothing_left(w);
    struct rp_dead_command retry = { .command = { .verb = &rp_verb_dead_retry, .actor = "tester" },
                                     .all = true,
                                     .items = &item,
                                     .max = 1,
                                     .arena = &w->arena };
    ok(rp_command_run(w->catalog, &retry.command));
    world_swept(w, 1);
    expect_nothing_left(w);
}

/* ---- the run ---- */

static void test_a_run_brings_so_many_back_and_the_next_goes_on(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "lost %d", i);
        lost(w, name);
    }
    int64_t root = deleted(w, "root");
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "child %d", i);
        give_owner(w, uploads_live(w, name, "hello"), "parent_id", root);
    }
    static const int64_t deletes[] = { 2, 2, 1, 0, 0 }, children[] = { -1, -1, 1, 2, 0 };
    for (size_t i = 0; i < 5; i++) {
        struct rp_run *run = run_limited(w, 2);
        assert_int_equal(repaired(run, "deletes"), deletes[i]);
        assert_int_equal(repaired(run, "children"), children[i]);
    }
    assert_int_equal(world_number(w, "SELECT count(*) FROM run_record WHERE kind = 'safety_net' AND outcome = 'done' "
                                     "AND body LIKE '%\"deletes\":2%'"),
                     2);
    expect_nothing_left(w);
}

struct stopping {
    volatile sig_atomic_t flag;
};

static void stop_after_one(void *ctx, const struct rp_run *run)
{
    struct stopping *s = ctx;
    (void)run;
    s->flag = 1;
}

static void test_a_run_is_stopped_taken_over_and_cancelled(void **state)
{
    struct world *w = *state;
    struct rp_safety_net net = net_of(w, w->catalog);
    struct stopping s = { 0 };
    struct rp_run run, other;
    const char *outcome = "";
    int64_t gone = lost(w, "gone"), pending = uploads_begin(w, "pending", "hello");
    uploads_lose_mark(w, pending);
    net.finished = stop_after_one;
    net.ctx = &s;
    net.stop = &s.flag;
    ok(rp_safety_net_begin(&net, &run, &err));
    assert_int_equal(rp_safety_net_begin(&net, &other, &err), RP_ERUNNING);
    rp_error_clear(&err);
    ok(rp_safety_net_carry(&net, &run, &outcome, &err));
    assert_null(outcome);
    assert_int_equal(uploads_mark(w, gone).state, RP_MARKED);
    assert_int_equal(world_number(w, "SELECT count(*) FROM mark WHERE reason = 'abandoned' AND active = 1"), 0);

    net.stop = NULL;
    ok(rp_safety_net_begin(&net, &other, &err));
    assert_int_equal(other.id, run.id);
    ok(rp_safety_net_carry(&net, &other, &outcome, &err));
    assert_string_equal(outcome, "done");
    assert_int_equal(repaired(&other, "deletes"), 1);
    assert_int_equal(repaired(&other, "uploads"), 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM run_record"), 1);

    s.flag = 0;
    net.cancel = &s.flag;
    assert_string_equal(carry(&net, &run), "cancelled");
}

/* Between the look of one and its change another one acts. */
struct meeting {
    struct world *w;
    void (*act)(struct meeting *m);
    int64_t file, parent;
    int begins; /* until it does */
    struct rp_run theirs;
};

static int meet(void *ctx, const char *call, struct rp_error *e)
{
    struct meeting *m = ctx;
    (void)e;
    if (strcmp(call, "begin") != 0 || m->begins < 0 || m->begins-- != 0) return 0;
    m->act(m);
    return 0;
}

static void mend_it_first(struct meeting *m)
{
    struct rp_safety_net theirs = net_of(m->w, m->w->catalog);
    world_script(m->w, "UPDATE run_lock SET locked_at = locked_at - %" PRId64, RP_HOUR_MS);
    assert_string_equal(carry(&theirs, &m->theirs), "done");
}

/* The begins of a run: it is begun, entered, and then one for each batch. */
#define FIRST_BATCH 2

static void test_two_nodes_at_once_mend_each_once(void **state)
{
    struct world *w = *state;
    struct meeting m = { .w = w, .act = mend_it_first, .file = lost(w, "gone"), .begins = FIRST_BATCH };
    const struct rp_db_fault fault = { .before = meet, .ctx = &m };
    struct rp_run run;
    const char *outcome = "";
    m.begins = -1;
    struct rp_catalog *catalog = world_catalog(w, 7, &fault);
    struct rp_safety_net net = net_of(w, catalog);
    m.begins = FIRST_BATCH;
    ok(rp_safety_net_begin(&net, &run, &err));
    assert_int_equal(rp_safety_net_carry(&net, &run, &outcome, &err), RP_ECHANGED);
    rp_error_clear(&err);
    assert_null(outcome);
    assert_true(run.lost);
    assert_int_equal(m.theirs.id, run.id);
    assert_int_equal(repaired(&m.theirs, "deletes"), 1);
    rp_catalog_close(catalog);
    assert_int_equal(world_number(w, "SELECT count(*) FROM mark WHERE active = 1"), 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM run_record"), 1);
}

static void mark_it_first(struct meeting *m)
{
    struct rp_file_command c;
    world_script(m->w, "UPDATE file SET status = 3, live_name = name WHERE id = %" PRId64, m->file);
    ok(uploads_delete(m->w, m->file, 3 * DAY, &c));
    ok(uploads_restore(m->w, m->parent, &c));
}

/* G2: what is no finding any more under the lock is left alone. */
static void test_what_was_mended_since_the_look_is_left_alone(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    struct meeting m = { .w = w, .act = mark_it_first, .begins = -1 };
    const struct rp_db_fault fault = { .before = meet, .ctx = &m };
    struct rp_run run;
    m.file = lost(w, "gone");
    m.parent = uploads_live(w, "parent", "hello");
    int64_t child = uploads_live(w, "child", "hello");
    ok(uploads_delete(w, m.parent, DAY, &c));
    give_owner(w, child, "parent_id", m.parent);
    struct rp_catalog *catalog = world_catalog(w, 7, &fault);
    struct rp_safety_net net = net_of(w, catalog);
    m.begins = FIRST_BATCH;
    assert_string_equal(carry(&net, &run), "done");
    rp_catalog_close(catalog);
    assert_true(m.begins < 0);
    assert_int_equal(sum(&run), 0);
    expect_due_in(w, m.file, 3 * DAY);
    uploads_expect(w, child, RP_FILE_LIVE);
}

/* The same where the child was found, and its parent came back. */
static void restore_the_parent(struct meeting *m)
{
    struct rp_file_command c;
    ok(uploads_restore(m->w, m->parent, &c));
}

static void test_a_child_whose_parent_came_back_since_the_look_lives(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    struct meeting m = { .w = w, .act = restore_the_parent, .begins = -1 };
    const struct rp_db_fault fault = { .before = meet, .ctx = &m };
    struct rp_run run;
    m.parent = uploads_live(w, "parent", "hello");
    int64_t child = uploads_live(w, "child", "hello");
    ok(uploads_delete(w, m.parent, DAY, &c));
    give_owner(w, child, "parent_id", m.parent);
    struct rp_catalog *catalog = world_catalog(w, 7, &fault);
    struct rp_safety_net net = net_of(w, catalog);
    m.begins = FIRST_BATCH + 2; /* behind the batches of deletes and uploads */
    assert_string_equal(carry(&net, &run), "done");
    rp_catalog_close(catalog);
    assert_true(m.begins < 0);
    assert_int_equal(sum(&run), 0);
    uploads_expect(w, child, RP_FILE_LIVE);
}

static int count_findings(void *ctx, const struct rp_net_finding *finding, struct rp_error *e)
{
    (void)e;
    assert_non_null(finding->orphan->what);
    assert_non_null(finding->would);
    assert_string_equal(finding->orphan->store, "main");
    ++*(int *)ctx;
    return 0;
}

static void test_a_dry_run_says_what_it_would_do_and_writes_nothing(void **state)
{
    struct world *w = *state;
    struct rp_safety_net net = net_of(w, w->catalog);
    struct rp_run run = { 0 };
    bool complete = false;
    int n = 0;
    lost(w, "gone");
    int64_t root = deleted(w, "root"), child = uploads_live(w, "child", "hello");
    give_owner(w, child, "parent_id", root);
    int64_t rows = world_number(w, "SELECT count(*) FROM audit"), facts = world_number(w, "SELECT count(*) FROM meta");
    ok(rp_safety_net_dry_run(&net, count_findings, &n, &run.figures, &complete, &err));
    assert_true(complete);
    assert_int_equal(n, 2);
    assert_int_equal(repaired(&run, "deletes"), 1);
    assert_int_equal(repaired(&run, "children"), 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit"), rows);
    assert_int_equal(world_number(w, "SELECT count(*) FROM meta"), facts);
    uploads_expect(w, child, RP_FILE_LIVE);
    assert_int_equal(sum(run_once(w)), 2);
}

/* Rows as so many inits would leave them, without ledger and objects. */
static void add_children(struct world *w, int64_t parent, int first, int n)
{
    world_script(w,
                 "INSERT INTO file (id, tenant_id, name, store_id, key, status, size_bytes, content_type, etag, "
                 "version, modified_ms, mark_id, parent_id, was, url_ends_at, created_at, changed_at) "
                 "WITH RECURSIVE n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
                 "SELECT i, tenant_id, 'n' || i, store_id, 'k' || i, %d, 1, '', '', '', 0, mark_id, id, 4, 0, 0, 0 "
                 "FROM n, file WHERE id = %" PRId64,
                 first, first + n - 1, RP_FILE_LIVE, parent);
}

static void test_a_dry_run_that_does_not_see_all_children_says_so(void **state)
{
    struct world *w = *state;
    struct rp_safety_net net = net_of(w, w->catalog);
    struct rp_run few = { 0 }, many = { 0 };
    bool complete = false;
    int n = 0;
    int64_t root = deleted(w, "root");
    add_children(w, root, 1, RP_NET_BATCH - 1);
    ok(rp_safety_net_dry_run(&net, count_findings, &n, &few.figures, &complete, &err));
    assert_int_equal(repaired(&few, "children"), RP_NET_BATCH - 1);
    assert_true(complete);
    add_children(w, root, RP_NET_BATCH, 2);
    ok(rp_safety_net_dry_run(&net, count_findings, &n, &many.figures, &complete, &err));
    assert_int_equal(repaired(&many, "children"), RP_NET_BATCH);
    assert_false(complete);
    world_script(w, "DELETE FROM file WHERE id <= %d", RP_NET_BATCH + 1);
}

/* G5. A mark that somebody has put under the file's key by hand is in the way. */
static void test_one_that_cannot_be_mended_holds_up_no_other(void **state)
{
    struct world *w = *state;
    struct rp_safety_net net = net_of(w, w->catalog);
    struct rp_run run;
    int64_t root = deleted(w, "root"), stuck = uploads_live(w, "stuck", "hello"),
            free = uploads_live(w, "free", "hello");
    give_owner(w, stuck, "parent_id", root);
    give_owner(w, free, "parent_id", root);
    world_script(
        w,
        "INSERT INTO mark (id, store_id, key, active, state, was, next_at, due_at, marked_at, etag, version, "
        "size_bytes, modified_ms, reason, actor) SELECT 77, store_id, key, 1, 1, 1, 9000000000000, 9000000000000, "
        "1, '', '', 5, 1, '', '' FROM file WHERE id = %" PRId64,
        stuck);
    assert_string_equal(carry(&net, &run), "partial");
    assert_int_equal(repaired(&run, "children"), 1);
    assert_int_equal(run.figures.failed, 1);
    assert_int_equal(run.figures.n_errors, 1);
    uploads_expect(w, stuck, RP_FILE_LIVE);
    uploads_expect(w, free, RP_FILE_DELETED);
    assert_int_equal(world_number(w, "SELECT number FROM meta WHERE name = 'safety_net_children' AND word = '4'"), 0);
    assert_string_equal(carry(&net, &run), "partial"); /* and it is found each time */
    world_script(w, "DELETE FROM mark WHERE id = 77");
    assert_int_equal(repaired(run_once(w), "children"), 1);
}

/* ---- a catalog in which nothing is wrong ---- */

static void test_in_a_busy_catalog_nothing_is_a_finding(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t root = uploads_live(w, "root", "hello");
    uploads_child(w, "child", root, 0);
    uploads_begin(w, "pending", "hello");
    uploads_member(w, uploads_txn_begin(w), "member", "hello", 0);
    struct rp_txn_command abort_it = uploads_txn(w, &rp_verb_txn_abort, uploads_txn_begin(w));
    uploads_member(w, abort_it.txn_id, "rolled back", "hello", 0);
    ok(rp_command_run(w->catalog, &abort_it.command));
    deleted(w, "waits");
    int64_t early = uploads_begin(w, "early", "hello");
    ok(uploads_delete(w, early, DAY, &c));
    expect_nothing_left(w);
    ok(uploads_delete(w, root, DAY, &c));
    expect_nothing_left(w);
    w->config.mode = RP_MODE_QUARANTINE;
    world_days(w, 2); /* some expire, some are in quarantine */
    expect_nothing_left(w);
    struct world_steps s;
    ok(uploads_delete(w, uploads_live(w, "claimed", "hello"), 0, &c));
    world_steps_begin(w, w->catalog, "other", &s);
    world_steps_claim(w, w->catalog, &s);
    expect_nothing_left(w);
    world_steps_erase(w, w->catalog, &s);
    expect_nothing_left(w);
    ok(rp_run_end(w->catalog, &s.run, "failed", &err));
    world_steps_done(&s);
    w->config.mode = RP_MODE_PURGE;
    world_days(w, 40);
    expect_nothing_left(w);
}

/* G7 */
#define TOO_OLD (-1) /* whatever waits is older */
static int begin_reading(struct rp_tx *tx, void *ctx, struct rp_error *why)
{
    struct rp_audit_head heads[8];
    size_t n = 0;
    int r = rp_audit_heads(tx->db, heads, 8, &n, why);
    return r < 0 ? r : rp_feed_cursor_save(tx, ctx, heads, n, why);
}

static void test_a_reader_that_is_far_behind_is_told_and_counted(void **state)
{
    struct world *w = *state;
    struct rp_safety_net net = net_of(w, w->catalog);
    struct rp_run plan = { 0 }, run;
    struct logging l;
    bool complete;
    int n = 0;
    ok(rp_catalog_transact(w->catalog, begin_reading, "sink:ops", &err));
    config.alerts.sink_lag_over_ms = TOO_OLD;
    ok(rp_safety_net_dry_run(&net, count_findings, &n, &plan.figures, &complete, &err));
    assert_int_equal(plan.figures.behind, 0);
    uploads_live(w, "after", "hello");
    ok(rp_safety_net_dry_run(&net, count_findings, &n, &plan.figures, &complete, &err));
    assert_int_equal(plan.figures.behind, 1);
    config.alerts.sink_lag_over_ms = 0; /* the alert is turned off */
    ok(rp_safety_net_dry_run(&net, count_findings, &n, &plan.figures, &complete, &err));
    assert_int_equal(plan.figures.behind, 0);
    config.alerts.sink_lag_over_ms = RP_HOUR_MS;
    ok(rp_safety_net_dry_run(&net, count_findings, &n, &plan.figures, &complete, &err));
    assert_int_equal(plan.figures.behind, 0);
    begin_log(w, &l);
    config.alerts.sink_lag_over_ms = TOO_OLD;
    assert_string_equal(carry(&net, &run), "done");
    assert_int_equal(run.figures.behind, 1);
    assert_int_equal(count_lines(w, &l, "\"event\":\"feed.reader_behind\"", "\"reader\":\"sink:ops\""), 1);
}

static void test_readers_that_are_behind_are_all_counted_however_many(void **state)
{
    struct world *w = *state;
    struct rp_safety_net net = net_of(w, w->catalog);
    struct rp_run plan = { 0 };
    bool complete;
    int n = 0;
    char name[16];
    for (int i = 0; i < 130; i++) {
        snprintf(name, sizeof name, "sink:%d", i);
        ok(rp_catalog_transact(w->catalog, begin_reading, name, &err));
    }
    uploads_live(w, "after", "hello");
    config.alerts.sink_lag_over_ms = TOO_OLD;
    ok(rp_safety_net_dry_run(&net, count_findings, &n, &plan.figures, &complete, &err));
    assert_int_equal(plan.figures.behind, 130);
    config.alerts.sink_lag_over_ms = 0;
}

#define IN(test, kind)                                                                                                 \
    {                                                                                                                  \
#test " on " #kind, test, world_set_up, world_tear_down, (void *)(uintptr_t)WORLD_##kind                       \
    }
#define ON_BOTH(test) IN(test, SQLITE), IN(test, POSTGRES)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(test_a_deleted_file_without_a_mark_is_marked_again_and_can_be_restored),
        ON_BOTH(test_an_upload_without_a_mark_expires_and_is_refunded_once),
        ON_BOTH(test_what_was_given_up_stays_given_up),
        ON_BOTH(test_what_belongs_to_something_gone_follows_it_however_deep),
        ON_BOTH(test_what_belongs_to_something_purged_or_expired_has_its_grace),
        ON_BOTH(test_a_mark_that_nobody_looks_at_is_looked_at_when_it_is_due),
        ON_BOTH(test_a_dead_mark_without_a_letter_gets_one),
        ON_BOTH(test_a_run_brings_so_many_back_and_the_next_goes_on),
        ON_BOTH(test_a_run_is_stopped_taken_over_and_cancelled),
        ON_BOTH(test_two_nodes_at_once_mend_each_once),
        ON_BOTH(test_what_was_mended_since_the_look_is_left_alone),
        ON_BOTH(test_a_child_whose_parent_came_back_since_the_look_lives),
        ON_BOTH(test_a_dry_run_says_what_it_would_do_and_writes_nothing),
        ON_BOTH(test_a_dry_run_that_does_not_see_all_children_says_so),
        ON_BOTH(test_one_that_cannot_be_mended_holds_up_no_other),
        ON_BOTH(test_a_reader_that_is_far_behind_is_told_and_counted),
        ON_BOTH(test_readers_that_are_behind_are_all_counted_however_many),
        ON_BOTH(test_in_a_busy_catalog_nothing_is_a_finding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
