/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants themselves: a world in which all is well breaks none, and each promise that is
 * broken on purpose is named. A check that cannot fail would prove nothing in the fault loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "base/time.h"
#include "core/subject/quarantine.h"
#include "fault/trial.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { MARKED, PURGED, RESTORED, LIVE, DEAD, SUBJECTS };

static struct inv_subject *subject(struct trial *t, size_t i)
{
    return &t->shared->known.subjects[i];
}

static void script(struct trial *t, const char *sql)
{
    struct rp_error err = { 0 };
    if (rp_db_script(t->world.catalog->db, sql, &err) < 0) fail_msg("%s: %s", sql, err.text);
}

static void mark(struct trial *t, size_t i)
{
    assert_int_equal(trial_mark(t, &(struct trial_marking){ .first = i, .n = 1 }), 0);
}

/* The log defends itself with triggers; who breaks it on purpose takes them away. */
static void drop_triggers(struct trial *t)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf drops = RP_BUF(4096);
    assert_true(inv_ask(&t->world, "DROP TRIGGER", "SELECT name FROM sqlite_master WHERE type = 'trigger'", &drops) >
                0);
    for (char *at = drops.data; (at = strchr(at, ':')) != NULL;)
        *at = ' ';
    for (char *at = drops.data; (at = strchr(at, '\n')) != NULL;)
        *at = ';';
    script(t, rp_buf_text(&drops));
}

/* A mark in every state that lasts, and a hold that was lifted. */
static void every_state(struct trial *t)
{
    trial_begin(t);
    trial_open(t);
    trial_subjects(t, SUBJECTS);
    mark(t, PURGED);
    mark(t, DEAD);
    trial_advance(t, 6 * RP_DAY_MS);
    trial_deny(t, DEAD);
    for (int i = 0; i < 3; i++) {
        (void)trial_sweep(t);
        trial_advance(t, 2 * RP_HOUR_MS);
    }
    mark(t, RESTORED);
    assert_int_equal(trial_restore(t, RESTORED, 1), 0);
    mark(t, MARKED);
    assert_int_equal(trial_hold(t, LIVE), 0);
    assert_int_equal(trial_lift(t), 0);
    drop_triggers(t);
}

static void one_in_quarantine(struct trial *t)
{
    trial_begin(t);
    t->config.mode = RP_MODE_QUARANTINE;
    trial_open(t);
    trial_subjects(t, SUBJECTS);
    mark(t, 0);
    trial_advance(t, 6 * RP_DAY_MS);
    assert_int_equal(trial_sweep(t), 0);
    drop_triggers(t);
}

/* A file in every status that lasts, a family, and a transaction. */
enum { F_LIVE, F_CHILD, F_DELETED, F_RESTORED, F_EXPIRED, F_PENDING, F_MEMBER };

static size_t upload(struct trial *t, const struct trial_upload *u, bool confirmed)
{
    size_t i = trial_file(t, u);
    assert_int_equal(trial_init(t, i), 0);
    assert_int_equal(trial_put(t, i), 0);
    if (confirmed) assert_int_equal(trial_confirm(t, i), 0);
    return i;
}

static void every_status(struct trial *t)
{
    trial_begin(t);
    trial_open(t);
    upload(t, &(struct trial_upload){ .name = "live" }, true);
    upload(t, &(struct trial_upload){ .name = "child", .parent = F_LIVE + 1 }, true);
    upload(t, &(struct trial_upload){ .name = "deleted" }, true);
    upload(t, &(struct trial_upload){ .name = "restored" }, true);
    upload(t, &(struct trial_upload){ .name = "expired" }, false);
    trial_advance(t, 2 * RP_HOUR_MS);
    assert_int_equal(trial_sweep(t), 0);
    upload(t, &(struct trial_upload){ .name = "pending" }, false);
    assert_int_equal(trial_delete(t, F_DELETED, -1), 0);
    assert_int_equal(trial_delete(t, F_RESTORED, -1), 0);
    assert_int_equal(trial_undelete(t, F_RESTORED), 0);
    assert_int_equal(trial_txn_begin(t), 0);
    upload(t, &(struct trial_upload){ .name = "member", .txn = 1 }, false);
    assert_int_equal(trial_commit(t), 0);
    drop_triggers(t);
}

/* ---- tampering with the store ---- */

static void erase(struct trial *t, const char *key)
{
    struct rp_error err = { 0 };
    struct rp_item item = { .key = key };
    assert_int_equal(rp_backend_stat(t->bare, &item, 1, &err), 0);
    assert_int_equal(rp_backend_remove(t->bare, &item, 1, NULL, &err), 0);
    assert_int_equal(item.outcome, RP_OUT_DELETED);
}

static void erase_live(struct trial *t)
{
    erase(t, subject(t, LIVE)->key);
}

static void erase_marked(struct trial *t)
{
    erase(t, subject(t, MARKED)->key);
}

static void erase_restored(struct trial *t)
{
    erase(t, subject(t, RESTORED)->key);
}

static void erase_newer(struct trial *t)
{
    inv_upload(&t->world, subject(t, PURGED));
    erase(t, subject(t, PURGED)->key);
}

static void erase_file(struct trial *t)
{
    erase(t, t->shared->known.files[F_LIVE].key);
}

static void erase_restorable(struct trial *t)
{
    erase(t, t->shared->known.files[F_DELETED].key);
}

static void leave_late_upload(struct trial *t)
{
    assert_int_equal(trial_put(t, F_EXPIRED), 0);
}

static void upload_again_unnoticed(struct trial *t, size_t i)
{
    struct inv_subject other = *subject(t, i);
    inv_upload(&t->world, &other);
}

static void other_bytes(struct trial *t)
{
    upload_again_unnoticed(t, MARKED);
}

static void come_back(struct trial *t)
{
    upload_again_unnoticed(t, PURGED);
}

static void annotate(struct trial *t, size_t i, const char *name)
{
    struct rp_error err = { 0 };
    struct rp_item item = { .key = subject(t, i)->key };
    struct rp_pair pair = { name, "true" };
    assert_int_equal(rp_backend_stat(t->bare, &item, 1, &err), 0);
    assert_int_equal(rp_backend_annotate(t->bare, item.key, &item.identity, &pair, 1, &err), 0);
}

static void other_metadata(struct trial *t)
{
    annotate(t, LIVE, "colour");
}

static void annotation_without_mark(struct trial *t)
{
    annotate(t, RESTORED, "marked_for_deletion");
}

static void erase_copy(struct trial *t)
{
    char key[RP_QUARANTINE_KEY];
    erase(t, rp_quarantine_key(subject(t, 0)->mark_id, key));
}

static void make_file(const char *folder, const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    RP_CLEANUP(rp_fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
}

static void leave_aside(struct trial *t)
{
    make_file(t->root, "folder/.reprieve~s00");
}

static void leave_temp(struct trial *t)
{
    make_file(t->root, ".reprieve/tmp/half");
}

/* ---- deletes that the watch sees ---- */

static void delete_watched(struct trial *t, size_t i)
{
    struct rp_error err = { 0 };
    struct rp_item item = { .key = subject(t, i)->key };
    memcpy(item.identity.etag, subject(t, i)->etag, sizeof item.identity.etag);
    (void)rp_backend_remove(t->watched, &item, 1, NULL, &err);
}

static void delete_live(struct trial *t)
{
    delete_watched(t, LIVE);
}

static void delete_marked(struct trial *t)
{
    delete_watched(t, MARKED);
}

static void delete_claimed_early(struct trial *t)
{
    script(t, "UPDATE mark SET state = 3, fence = 1 WHERE state = 1");
    delete_watched(t, MARKED);
}

static void delete_due_on_two_clocks(struct trial *t)
{
    script(t, "UPDATE mark SET state = 3, fence = 1 WHERE state = 1");
    t->shared->known.host_ms = t->shared->known.store_ms = subject(t, MARKED)->due_at_ms;
    t->shared->known.db_ms = subject(t, MARKED)->due_at_ms - 1;
    delete_watched(t, MARKED);
}

/* ---- the table ---- */

#define LAST_AUDIT            "(SELECT MAX(seq) FROM audit)"
#define STATUS(number, name_) "UPDATE file SET status = " number " WHERE name = '" name_ "'"
#define MARK_OF(state_, active_, name_)                                                                                \
    "UPDATE mark SET state = " state_ ", active = " active_                                                            \
    " WHERE id = (SELECT mark_id FROM file WHERE name = '" name_ "')"
#define OF(state_) "(SELECT id FROM mark WHERE state = " state_ ")"
#define CONFIRMATION(state_and_asked)                                                                                  \
    "INSERT INTO confirmation (id, mark_id, ordinal, name, state, asked_at) VALUES (1, " OF(                           \
        "1") ", 0, 'calendar', " state_and_asked ")"
#define ASKED "what services were asked"

/* clang-format off */
static const struct violation {
    const char *words, *name; /* what is done; the invariant that must notice */
    enum inv_when when;
    void (*tamper)(struct trial *t);
    const char *sql;
    const char *says; /* a part of the line, where several questions have one name */
} violations[] = {
    { "a live object vanishes", "NO-LOSS", INV_ALWAYS, erase_live, NULL, NULL },
    { "a marked object vanishes", "NO-LOSS", INV_ALWAYS, erase_marked, NULL, NULL },
    { "a marked object has other bytes", "NO-LOSS", INV_ALWAYS, other_bytes, NULL,
      "its bytes are others" },
    { "a live object has other metadata", "NO-LOSS", INV_ALWAYS, other_metadata, NULL,
      "its metadata is other" },
    { "a restored object vanishes", "RESTORE-WINS", INV_ALWAYS, erase_restored, NULL, NULL },
    { "a restored object says it is marked", "RESTORE-WINS", INV_ALWAYS, annotation_without_mark, NULL, NULL },
    { "a restored mark is active again", "RESTORE-WINS", INV_ALWAYS, NULL,
      "UPDATE mark SET state = 1, active = 1, outcome = 0, ended_at = NULL, next_at = due_at WHERE state = 5", NULL },
    { "a newer upload vanishes", "NEWER-WINS", INV_ALWAYS, erase_newer, NULL, NULL },
    { "a live object is deleted", "INTENT-FIRST", INV_ALWAYS, delete_live, NULL, NULL },
    { "a mark that nobody claimed is deleted", "INTENT-FIRST", INV_ALWAYS, delete_marked, NULL, NULL },
    { "a purged mark was never claimed", "INTENT-FIRST", INV_ALWAYS, NULL, "UPDATE mark SET fence = 0 WHERE state = 4", NULL },
    { "a claimed mark is deleted before it is due", "NO-EARLY", INV_ALWAYS, delete_claimed_early, NULL, NULL },
    { "a mark is deleted that is due on two clocks", "NO-EARLY", INV_ALWAYS, delete_due_on_two_clocks, NULL, NULL },
    { "a mark ended before it was due", "NO-EARLY", INV_ALWAYS, NULL, "UPDATE mark SET due_at = ended_at + 1 WHERE state = 4", NULL },
    { "a mark waits when nothing should", "EVENTUAL", INV_HEALED, NULL, "", NULL },
    { "a purged object is there", "EVENTUAL", INV_HEALED, come_back, NULL, NULL },
    { "a mark is tried for ever", "AT-LEAST-ONCE", INV_ALWAYS, NULL, "UPDATE mark SET attempts = 3 WHERE state = 1", NULL },
    { "a tally counts one mark too many", "TALLY", INV_ALWAYS, NULL, "UPDATE tally SET marks = marks + 1 WHERE state = 1", NULL },
    { "a tally counts bytes twice", "TALLY", INV_ALWAYS, NULL, "UPDATE tally SET bytes = bytes * 2 WHERE state = 1", NULL },
    { "what waits is counted once too often", "TALLY", INV_ALWAYS, NULL, "UPDATE tally SET waiting = waiting + 1 WHERE state = 1",
      "what waits is off by" },
    { "a mark moves by itself", "TALLY", INV_ALWAYS, NULL, "UPDATE mark SET state = 3, fence = 1 WHERE state = 1", NULL },
    { "a subject has two marks", "ONE-ACTIVE", INV_ALWAYS, NULL,
      "DROP INDEX mark_subject; UPDATE mark SET key = (SELECT key FROM mark WHERE state = 1) WHERE state = 6", NULL },
    { "a mark is not active and has not ended", "ONE-ACTIVE", INV_ALWAYS, NULL, "UPDATE mark SET active = NULL WHERE state = 1", NULL },
    { "a mark waits for nobody", "ONE-ACTIVE", INV_ALWAYS, NULL, "UPDATE mark SET next_at = NULL WHERE state = 1", NULL },
    { "a run is open without its lock", "RUNS", INV_ALWAYS, NULL,
      "UPDATE run SET open = 1 WHERE id = (SELECT MAX(id) FROM run); DELETE FROM run_record WHERE run_id = (SELECT MAX(id) FROM run)",
      "does not hold its lock" },
    { "a record is missing", "RUNS", INV_ALWAYS, NULL, "DELETE FROM run_record WHERE run_id = (SELECT MAX(id) FROM run)",
      "has 0 records" },
    { "a record belongs to no run", "RUNS", INV_ALWAYS, NULL, "DELETE FROM run WHERE id = (SELECT MAX(id) FROM run)",
      "belongs to no run" },
    { "two runs have one lock", "RUNS", INV_ALWAYS, NULL,
      "INSERT INTO run (id, kind, name, locked_by, fence, started_at, figures, open) VALUES (1, 'retention', 'r', '', 0, 0, '{}', 1); "
      "INSERT INTO run_lock (name, locked_by, locked_at, fence, run_id) VALUES ('retention:r', '', 0, 1, 1)",
      "another one holds its lock" },
    { "a restore in bulk outlives its run", "RUNS", INV_ALWAYS, NULL,
      "INSERT INTO restore_run (run_id, upto_id, asked_by, open) VALUES ((SELECT MAX(id) FROM run), 0, '', 1)",
      "are not open together" },
    { "a lock is held when nothing runs", "RUNS", INV_HEALED, NULL, "UPDATE run_lock SET run_id = 1", NULL },
    { "a dead mark has no letter", "DEAD", INV_ALWAYS, NULL, "UPDATE dead_letter SET open = NULL", NULL },
    { "a letter says another state", "DEAD", INV_ALWAYS, NULL, "UPDATE dead_letter SET from_state = 2", NULL },
    { "a letter is about no mark", "DEAD", INV_ALWAYS, NULL, "UPDATE dead_letter SET mark_id = 1", "belongs to no mark" },
    { "a letter is about a purged mark", "DEAD", INV_ALWAYS, NULL, "UPDATE dead_letter SET mark_id = " OF("4"), NULL },
    { "the first audit row is gone", "AUDITED", INV_ALWAYS, NULL, "DELETE FROM audit WHERE seq = 1",
      "recorded as created 0 times" },
    { "the last audit row is gone", "AUDITED", INV_ALWAYS, NULL, "DELETE FROM audit WHERE seq = " LAST_AUDIT,
      "the chain is broken" },
    { "an audit row says something else", "AUDITED", INV_ALWAYS, NULL, "UPDATE audit SET actor = 'nobody' WHERE seq = 2", NULL },
    { "an audit row has other details", "AUDITED", INV_ALWAYS, NULL, "UPDATE audit SET details = '{}' WHERE seq = 2", NULL },
    { "a purge was not recorded", "AUDITED", INV_ALWAYS, NULL, "UPDATE audit SET event = 'audit.heads' WHERE event = 'mark.purged'",
      "its end is not recorded exactly once" },
    { "a restore was recorded that did not happen", "AUDITED", INV_ALWAYS, NULL,
      "UPDATE audit SET mark_id = " OF("1") " WHERE event = 'mark.reprieved'",
      "its end is not recorded exactly once" },
    { "a death was recorded twice", "AUDITED", INV_ALWAYS, NULL, "UPDATE audit SET event = 'mark.dead', mark_id = " OF("6") " WHERE seq = " LAST_AUDIT,
      "deaths or retries" },
    { "a service was asked in silence", "AUDITED", INV_ALWAYS, NULL, CONFIRMATION("2, 0"), ASKED },
    { "a yes was not recorded", "AUDITED", INV_ALWAYS, NULL, CONFIRMATION("4, NULL"), ASKED },
    { "an extension brings the end nearer", "AUDITED", INV_ALWAYS, NULL,
      "UPDATE audit SET event = 'mark.extended', mark_id = " OF("1") ", details = (SELECT details FROM audit WHERE mark_id = " OF("1") ") "
      "WHERE seq = " LAST_AUDIT, "did not extend" },
    { "a mark is gone, and its rows are not", "AUDITED", INV_ALWAYS, NULL, "DELETE FROM mark WHERE state = 5",
      "about a mark that is not there" },
    { "an acknowledged mark is gone", "AUDITED", INV_ALWAYS, NULL, "DELETE FROM mark WHERE state = 1",
      "the acknowledged mark is gone" },
    { "a promise is shorter than it was", "AUDITED", INV_ALWAYS, NULL, "UPDATE mark SET due_at = due_at - 1 WHERE state = 1",
      "is due at another time" },
    { "a hold was never recorded", "AUDITED", INV_ALWAYS, NULL, "INSERT INTO hold (id, scope, reason, actor, placed_at) VALUES (1, 4, '', '', 0)",
      "holds: not one row" },
    { "a hold was lifted in silence", "AUDITED", INV_ALWAYS, NULL, "DELETE FROM hold",
      "holds: not one row" },
    { "a run was never recorded", "AUDITED", INV_ALWAYS, NULL,
      "INSERT INTO run (id, kind, name, locked_by, fence, started_at, figures) VALUES (1, 'a', 'b', '', 0, 0, '{}'); "
      "INSERT INTO run_record (run_id, kind, name, outcome, started_at, finished_at, body) VALUES (1, 'a', 'b', '', 0, 0, '{}')",
      "runs: not one row" },
    { "an event has a name nobody knows", "AUDITED", INV_ALWAYS, NULL, "UPDATE audit SET event = 'mark.kissed' WHERE seq = 1",
      "an event nobody knows" },
    { "the owner record is another's", "OWNER", INV_HEALED, trial_usurp, NULL, NULL },
    { "the catalog is behind the owner record", "OWNER", INV_HEALED, NULL, "UPDATE meta SET number = 0 WHERE name = 'epoch'", NULL },
    { "an object was left aside", "LITTER", INV_HEALED, leave_aside, NULL, NULL },
    { "a temporary file was left", "LITTER", INV_HEALED, leave_temp, NULL, NULL },
}, in_quarantine[] = {
    { "a copy in quarantine vanishes", "NO-LOSS", INV_ALWAYS, erase_copy, NULL, NULL },
    { "a copy in quarantine has no mark", "QUARANTINE", INV_ALWAYS, NULL, "DELETE FROM mark WHERE key LIKE '.reprieve/%'", NULL },
    { "a copy's mark ended and the copy did not", "QUARANTINE", INV_ALWAYS, NULL,
      "UPDATE mark SET state = 7, active = NULL WHERE key LIKE '.reprieve/%'", NULL },
    { "a return was not recorded", "AUDITED", INV_ALWAYS, NULL, "UPDATE mark SET outcome = 5 WHERE key LIKE '.reprieve/%'",
      "returns: not one row" },
}, of_files[] = {
    { "the object of a live file vanishes", "NO-LOSS", INV_ALWAYS, erase_file, NULL, "it lives" },
    { "the object of a deleted file vanishes", "NO-LOSS", INV_ALWAYS, erase_restorable, NULL, "it can be restored" },
    { "a confirmed file is deleted, and nobody asked", "NO-LOSS", INV_ALWAYS, NULL, STATUS("4", "live"), "does not live" },
    { "a restored file is deleted again", "RESTORE-WINS", INV_ALWAYS, NULL, STATUS("4", "restored"), NULL },
    { "a deleted file lives", "AUDITED", INV_ALWAYS, NULL, STATUS("3", "deleted"), "deleted, and it lives" },
    { "an acknowledged upload is gone", "AUDITED", INV_ALWAYS, NULL, "DELETE FROM file WHERE name = 'pending'",
      "the acknowledged upload is gone" },
    { "an upload is due earlier than was said", "AUDITED", INV_ALWAYS, NULL,
      "UPDATE mark SET due_at = due_at - 1 WHERE id = (SELECT mark_id FROM file WHERE name = 'pending')",
      "the acknowledged upload is gone, or due earlier" },
    { "a counter is off by one", "QUOTA-EXACT", INV_ALWAYS, NULL, "UPDATE tenant SET used_bytes = used_bytes + 1", "its counters" },
    { "a reservation is forgotten", "QUOTA-EXACT", INV_ALWAYS, NULL, "UPDATE tenant SET reserved_bytes = 0", "its counters" },
    { "an upload is not counted", "QUOTA-EXACT", INV_ALWAYS, NULL, "UPDATE tenant SET open_uploads = 0", "its counters" },
    { "a refund did not happen", "QUOTA-EXACT", INV_ALWAYS, NULL, "DELETE FROM ledger WHERE kind = 3", "its ledger rows" },
    { "a refund happened too early", "QUOTA-EXACT", INV_ALWAYS, NULL,
      "UPDATE ledger SET kind = 3 WHERE kind = 1 AND file_id = (SELECT id FROM file WHERE name = 'pending')", "its ledger rows" },
    { "the ledger has other bytes", "QUOTA-EXACT", INV_ALWAYS, NULL, "UPDATE ledger SET bytes = 1 WHERE kind = 2", "of other bytes" },
    { "a pending upload has no mark", "FILES", INV_ALWAYS, NULL, "UPDATE file SET mark_id = 1 WHERE name = 'pending'",
      "its mark is in state" },
    { "the mark of a pending upload ended", "FILES", INV_ALWAYS, NULL, MARK_OF("5", "NULL", "pending"), "its mark is in state 5" },
    { "a mark waits for a live file", "FILES", INV_ALWAYS, NULL, MARK_OF("1", "1", "live"), "a mark waits for it" },
    { "nothing waits for a late upload", "FILES", INV_ALWAYS, NULL, "DELETE FROM mark WHERE reason = 'late upload'", "a late PUT" },
    { "a child outlives its parent", "FILES", INV_ALWAYS, NULL, STATUS("5", "live"), "what it belongs to does not" },
    { "a name lives twice", "ONE-NAME", INV_ALWAYS, NULL,
      "DROP INDEX file_live; UPDATE file SET name = 'child', live_name = 'child' WHERE name = 'live'", "lives 2 times" },
    { "a living file has not its name", "ONE-NAME", INV_ALWAYS, NULL, "UPDATE file SET live_name = NULL WHERE name = 'live'",
      "its row does not fit" },
    { "a transaction is undone", "TXN-ATOMIC", INV_ALWAYS, NULL, "UPDATE txn SET state = 1", "do not agree" },
    { "a member is lost", "TXN-ATOMIC", INV_ALWAYS, NULL, "UPDATE file SET txn_id = NULL", "counts 1 members" },
    { "an acknowledged commit is an abort", "AUDITED", INV_ALWAYS, NULL, "UPDATE txn SET state = 3", "in another state" },
    { "an upload was begun twice", "IDEMPOTENT", INV_ALWAYS, NULL, "UPDATE file SET content_type = 'text/file-0'", "was begun" },
    { "an answer was not kept", "IDEMPOTENT", INV_ALWAYS, NULL, "DELETE FROM idempotency WHERE key = 'begin'", "kept answers" },
    { "a confirm was not recorded", "AUDITED", INV_ALWAYS, NULL,
      "UPDATE audit SET event = 'audit.heads' WHERE event = 'file.uploaded'", "files: not one row" },
    { "the mark of a deletion was not recorded", "AUDITED", INV_ALWAYS, NULL,
      "UPDATE audit SET event = 'audit.heads' WHERE event = 'file.deleted'", "its mark was not recorded" },
    { "a restore was not recorded", "AUDITED", INV_ALWAYS, NULL,
      "UPDATE audit SET event = 'audit.heads' WHERE event = 'file.restored'", "the end of its mark" },
    { "a failed delete was recorded of a file that lives", "AUDITED", INV_ALWAYS, NULL,
      "UPDATE audit SET event = 'file.delete_failed', mark_id = (SELECT mark_id FROM file WHERE name = 'live') WHERE seq = " LAST_AUDIT,
      "not one failed delete" },
    { "a commit was not recorded", "AUDITED", INV_ALWAYS, NULL,
      "UPDATE audit SET event = 'audit.heads' WHERE event = 'transaction.committed'", "transactions: not one row" },
    { "an upload waits when nothing should", "EVENTUAL", INV_HEALED, NULL, "", "is still in status 1" },
    { "a late upload is left", "EVENTUAL", INV_HEALED, leave_late_upload, NULL, "nobody owns" },
};
/* clang-format on */

static bool is_named(const char *lines, const char *name)
{
    char start[64];
    snprintf(start, sizeof start, "%s: ", name);
    if (strncmp(lines, start, strlen(start)) == 0) return true;
    snprintf(start, sizeof start, "\n%s: ", name);
    return strstr(lines, start) != NULL;
}

static void expect(const struct violation *v, size_t n, void (*world)(struct trial *))
{
    RP_CLEANUP(rp_buf_done) struct rp_buf lines = RP_BUF(1 << 16);
    struct trial *t = trial_new(false);
    int missed = 0;
    for (size_t i = 0; i < n; i++) {
        world(t);
        rp_buf_clear(&lines);
        assert_int_equal(trial_check(t, INV_ALWAYS, &lines), 0);
        if (v[i].tamper != NULL) v[i].tamper(t);
        if (v[i].sql != NULL) script(t, v[i].sql);
        int said = trial_check(t, v[i].when, &lines);
        const char *text = rp_buf_text(&lines);
        bool noticed = said > 0 && is_named(text, v[i].name) && (v[i].says == NULL || strstr(text, v[i].says) != NULL);
        if (noticed && strstr(text, "could not be asked") == NULL) continue;
        print_error("%s: %s did not notice; what was said:\n%s", v[i].words, v[i].name, text);
        missed++;
    }
    trial_free(t);
    assert_int_equal(missed, 0);
}

static void each_broken_promise_is_named(void **state)
{
    (void)state;
    expect(violations, sizeof violations / sizeof violations[0], every_state);
}

static void each_promise_broken_in_quarantine_is_named(void **state)
{
    (void)state;
    expect(in_quarantine, sizeof in_quarantine / sizeof in_quarantine[0], one_in_quarantine);
}

static void each_promise_about_files_that_is_broken_is_named(void **state)
{
    (void)state;
    expect(of_files, sizeof of_files / sizeof of_files[0], every_status);
}

static void a_healthy_world_breaks_nothing(void **state)
{
    static void (*const worlds[])(struct trial *) = { every_state, one_in_quarantine, every_status };
    (void)state;
    for (size_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++) {
        RP_CLEANUP(rp_buf_done) struct rp_buf lines = RP_BUF(1 << 16);
        struct trial *t = trial_new(false);
        worlds[i](t);
        assert_int_equal(trial_check(t, INV_ALWAYS, &lines), 0);
        assert_int_equal(trial_heal(t), 0);
        trial_check(t, INV_HEALED, &lines);
        assert_string_equal(rp_buf_text(&lines), "");
        trial_free(t);
    }
}

/* The audit row of a call may be gone with a catalog that was put back: that question alone is left out. */
static void what_is_known_to_be_unrecorded_hides_nothing_else(void **state)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf lines = RP_BUF(1 << 16);
    struct trial *t = trial_new(false);
    (void)state;
    every_state(t);
    t->world.unrecorded_calls = true;
    script(t, CONFIRMATION("2, 0"));
    assert_int_equal(inv_check_catalog(&t->world, INV_ALWAYS, &lines), 0);
    script(t, "DELETE FROM hold");
    assert_int_equal(inv_check_catalog(&t->world, INV_ALWAYS, &lines), 1);
    assert_non_null(strstr(rp_buf_text(&lines), "holds: not one row"));
    trial_free(t);
}

static void what_a_safety_net_found_is_an_event_that_is_known(void **state)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf lines = RP_BUF(1 << 16);
    struct trial *t = trial_new(false);
    (void)state;
    every_state(t);
    script(t, "UPDATE audit SET event = 'orphan.detected' WHERE seq = " LAST_AUDIT);
    inv_check_catalog(&t->world, INV_ALWAYS, &lines);
    assert_null(strstr(rp_buf_text(&lines), "an event nobody knows"));
    trial_free(t);
}

static void a_change_without_lease_is_named(void **state)
{
    static const char *const changes[] = { "UPDATE mark SET attempts = attempts + 1 WHERE state = 6",
                                           "UPDATE mark SET state = 4 WHERE state = 6",
                                           "UPDATE mark SET note = 'mine' WHERE state = 1", "DELETE FROM dead_letter" };
    struct trial *t = trial_new(false);
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        RP_CLEANUP(rp_buf_done) struct rp_buf lines = RP_BUF(4096);
        char before[RP_DIGEST_HEX];
        every_state(t);
        inv_marks_digest(&t->world, before);
        assert_int_equal(inv_check_fenced(&t->world, before, &lines), 0);
        script(t, changes[i]);
        assert_int_equal(inv_check_fenced(&t->world, before, &lines), 1);
        assert_true(is_named(rp_buf_text(&lines), "FENCED"));
    }
    trial_free(t);
}

/* A fingerprint that misses a difference would have the loop skip a world that was never judged. */
static void a_fingerprint_tells_worlds_apart(void **state)
{
    static void (*const tampers[])(struct trial *) = { erase_live, other_bytes, other_metadata, trial_usurp };
    char first[RP_DIGEST_HEX], second[RP_DIGEST_HEX];
    struct trial *t = trial_new(false);
    (void)state;
    every_state(t);
    trial_fingerprint(t, first);
    trial_fingerprint(t, second);
    assert_string_equal(first, second);
    for (size_t i = 0; i < sizeof tampers / sizeof tampers[0]; i++) {
        every_state(t);
        trial_fingerprint(t, first);
        tampers[i](t);
        trial_fingerprint(t, second);
        assert_string_not_equal(first, second);
    }
    script(t, "UPDATE mark SET next_at = next_at + 1 WHERE state = 1");
    trial_fingerprint(t, first);
    assert_string_not_equal(first, second);
    subject(t, LIVE)->restored = true;
    trial_fingerprint(t, second);
    assert_string_not_equal(first, second);
    trial_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_healthy_world_breaks_nothing),
        cmocka_unit_test(each_broken_promise_is_named),
        cmocka_unit_test(each_promise_broken_in_quarantine_is_named),
        cmocka_unit_test(each_promise_about_files_that_is_broken_is_named),
        cmocka_unit_test(what_is_known_to_be_unrecorded_hides_nothing_else),
        cmocka_unit_test(what_a_safety_net_found_is_an_event_that_is_known),
        cmocka_unit_test(a_change_without_lease_is_named),
        cmocka_unit_test(a_fingerprint_tells_worlds_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
