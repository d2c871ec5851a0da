/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed segments of the audit log, on both engines: rows go only once a file holds them, the chain
 * still proves itself afterwards, and nothing passes a reader. Needs PostgreSQL: run under
 * tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text/json.h"
#include "catalog/audit/feed.h"
#include "catalog/audit/segment.h"
#include "core/retention/retention.h"
#include "lib/world.h"

#define LATER (INT64_MAX / 2) /* every row is older */

static struct rp_error err;
static char dir[128]; /* of the segments */

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    world_make(w, (enum dbs_kind)(uintptr_t)*state, WORLD_MEMORY);
    snprintf(dir, sizeof dir, "%s/segments", w->dbs.dir);
    rp_error_clear(&err);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a directory of ours */
    world_drop(*state);
    free(*state);
    return 0;
}

static bool is_postgres(const struct world *w)
{
    return w->dbs.kind == DBS_POSTGRES;
}

/* ---- helpers ---- */

static int append_one(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    const int *i = ctx;
    struct rp_audit_entry entry = { .event = "test.said",
                                    .actor = "t\xc3\xa9ster \"quoted\"",
                                    .mark_id = *i % 2 == 0 ? 7 : 0,
                                    .tenant_id = 3,
                                    .details = json_pack("{s:i,s:s}", "number", *i, "words", "a\nb \xe2\x98\x83") };
    return rp_tx_audit(tx, &entry, e);
}

static void append(struct rp_catalog *catalog, int n)
{
    for (int i = 0; i < n; i++)
        ok(rp_catalog_transact(catalog, append_one, &i, &err));
}

static int append_batch(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    int r = 0;
    for (int i = 0; i < *(int *)ctx && r == 0; i++)
        r = append_one(tx, &i, e);
    return r;
}

static int64_t rows_of(struct world *w, const char *where)
{
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT COUNT(*) FROM audit WHERE %s", where);
    return world_number(w, sql);
}

static struct rp_audit_verdict verify(struct world *w)
{
    struct rp_audit_verdict verdict;
    ok(rp_audit_verify_files(w->catalog, dir, &verdict, &err));
    return verdict;
}

/* A file is there and cannot be read. */
static void expect_no_verdict(struct world *w, int code, const char *words)
{
    struct rp_audit_verdict v;
    assert_int_equal(rp_audit_verify_files(w->catalog, dir, &v, &err), code);
    if (strstr(err.text, words) == NULL) fail_msg("'%s' does not say '%s'", err.text, words);
    rp_error_clear(&err);
}

static void expect_whole(struct world *w, size_t segments, int64_t sealed)
{
    struct rp_audit_verdict v = verify(w);
    if (v.broken) fail_msg("broken at %" PRId64 ".%" PRId64 ": %s", v.lane, v.seq, v.why);
    assert_int_equal(v.segments, segments);
    assert_int_equal(v.sealed, sealed);
    assert_int_equal(v.files, segments);
}

static void expect_broken(struct world *w, int64_t seq, const char *why)
{
    struct rp_audit_verdict v = verify(w);
    assert_true(v.broken);
    if (v.lane != 0 || v.seq != seq || strstr(v.why, why) == NULL)
        fail_msg("found %" PRId64 ".%" PRId64 " (%s), not 0.%" PRId64 " (%s)", v.lane, v.seq, v.why, seq, why);
}

/* The first `rows` of what lane 0 has and is not sealed. */
static struct rp_segment export(struct world *w, int64_t rows)
{
    const struct rp_segment_ask ask = { .dir = dir, .to_max = LATER, .older_than_ms = LATER, .rows_max = rows };
    struct rp_segment segment;
    ok(rp_segment_export(w->catalog->db, &ask, &segment, &err));
    return segment;
}

static int seal_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    return rp_segment_seal(tx, ctx, LATER, "tester", e);
}

static struct rp_segment seal(struct world *w, int64_t rows)
{
    struct rp_segment segment = export(w, rows);
    ok(rp_catalog_transact(w->catalog, seal_tx, &segment, &err));
    return segment;
}

struct going {
    int64_t from, to, gone;
};

static int go_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct going *g = ctx;
    return rp_segment_let_go(tx, 0, g->from, g->to, &g->gone, e);
}

static int let_go(struct world *w, int64_t from, int64_t to)
{
    struct going g = { .from = from, .to = to };
    return rp_catalog_transact(w->catalog, go_tx, &g, &err);
}

/* Retention of the audit log alone. */
static struct rp_retention retention_of(struct world *w, int64_t kept_ms)
{
    usleep(3000); /* what was written is older than 1 ms */
    return (struct rp_retention){ .catalog = w->catalog,
                                  .rules = { .marks_ms = RP_FOREVER_MS,
                                             .files_ms = RP_FOREVER_MS,
                                             .keys_ms = RP_FOREVER_MS,
                                             .audit_ms = kept_ms,
                                             .segments = dir },
                                  .worker = &w->worker,
                                  .actor = "tester",
                                  .stale_after_ms = RP_MINUTE_MS };
}

static int64_t gone_of(const struct rp_figures *figures)
{
    for (size_t i = 0; i < figures->n_let_go; i++)
        if (strcmp(figures->let_go[i].what, "audit") == 0) return figures->let_go[i].rows;
    return -1;
}

static int64_t retain_after(struct world *w, int64_t kept_ms, const char *expected)
{
    struct rp_retention retention = retention_of(w, kept_ms);
    struct rp_run run;
    const char *outcome = NULL;
    ok(rp_retention_begin(&retention, &run, &err));
    ok(rp_retention_carry(&retention, &run, &outcome, &err));
    assert_string_equal(outcome, expected);
    return gone_of(&run.figures);
}

static int64_t retain(struct world *w)
{
    return retain_after(w, 1, "done");
}

static void path_of(const struct rp_segment *segment, char path[RP_SEGMENT_PATH])
{
    ok(rp_segment_path(dir, segment->file, path, &err));
}

/* What protects the tables is taken away, as whoever can write the database can. */
static void unlock(struct world *w)
{
    if (is_postgres(w))
        world_script(w, "ALTER TABLE audit DISABLE TRIGGER USER; ALTER TABLE audit_segment DISABLE TRIGGER USER");
    else
        world_unlock(w);
}

static size_t files_in_dir(void)
{
    DIR *d = opendir(dir);
    size_t n = 0;
    if (d == NULL) return 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

/* ---- sealed, then let go ---- */

static void test_a_run_seals_and_lets_go_and_the_chain_verifies(void **state)
{
    struct world *w = *state;
    struct rp_segment_file file;
    struct rp_segment last;
    char path[RP_SEGMENT_PATH];
    int n = 2500;
    ok(rp_catalog_transact(w->catalog, append_batch, &n, &err));
    assert_int_equal(retain(w), 2500); /* the run's own rows stay, the lane's last one always */
    assert_int_equal(rows_of(w, "seq <= 2500"), 0);
    assert_int_equal(rows_of(w, "seq = 2501"), 1);
    expect_whole(w, 1, 2500);
    ok(rp_segment_last(w->catalog->db, 0, &last, &err));
    path_of(&last, path);
    ok(rp_segment_read(path, NULL, NULL, &file, &err));
    assert_int_equal(file.segment.to_seq, 2500);
    assert_memory_equal(file.segment.sha256, last.sha256, sizeof last.sha256);
    assert_int_equal(rows_of(w, "event = 'audit.sealed' AND actor = 'tester'"), 1);
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM run_record WHERE kind = 'retention'"), 1);
    append(w->catalog, 10);
    int64_t head = world_number(w, "SELECT seq FROM lane WHERE lane = 0");
    assert_int_equal(retain(w), head - 2500);
    expect_whole(w, 2, head);
    struct rp_audit_verdict v;
    ok(rp_audit_verify(w->catalog, &v, &err)); /* without a look at the files */
    assert_false(v.broken);
    assert_int_equal(v.files + v.files_missing, 0);
}

static void test_what_is_not_old_enough_stays(void **state)
{
    struct world *w = *state;
    append(w->catalog, 20);
    assert_int_equal(retain_after(w, RP_HOUR_MS, "done"), 0);
    assert_int_equal(retain_after(w, RP_FOREVER_MS, "done"), 0);
    assert_int_equal(rows_of(w, "event = 'test.said'"), 20);
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM audit_segment"), 0);
    assert_int_equal(files_in_dir(), 0);
    struct rp_segment young = export(w, 5);
    young.last_at_ms = LATER; /* a clock that was ahead when the file was written */
    assert_int_equal(rp_catalog_transact(w->catalog, seal_tx, &young, &err), RP_ECHANGED);
    assert_non_null(strstr(err.text, "not old enough"));
}

static void test_a_dry_run_counts_and_writes_nothing(void **state)
{
    struct world *w = *state;
    struct rp_figures figures = { 0 };
    bool complete;
    int n = 1200;
    ok(rp_catalog_transact(w->catalog, append_batch, &n, &err));
    (void)seal(w, 4);
    ok(let_go(w, 1, 2));
    struct rp_retention retention = retention_of(w, 1);
    ok(rp_retention_look(&retention, &figures, &complete, &err));
    assert_int_equal(gone_of(&figures), 1198); /* two sealed ones, then all but the last, which is audit.sealed */
    assert_int_equal(rows_of(w, "event = 'test.said'"), 1198);
    assert_int_equal(files_in_dir(), 1);
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM audit_segment"), 1);
}

static void expect_refused(struct world *w, const char *sql)
{
    rp_error_clear(&err);
    if (rp_db_script(w->dbs.db, sql, &err) >= 0) fail_msg("not refused: %s", sql);
    assert_non_null(strstr(err.text, "append-only"));
}

static void test_the_database_lets_only_sealed_rows_go(void **state)
{
    struct world *w = *state;
    append(w->catalog, 10);
    expect_refused(w, "DELETE FROM audit WHERE seq = 1");
    (void)seal(w, 4);
    expect_refused(w, "DELETE FROM audit WHERE seq = 5");
    expect_refused(w, "DELETE FROM audit WHERE seq BETWEEN 4 AND 5");
    expect_refused(w, "UPDATE audit SET actor = 'x' WHERE seq = 1");
    expect_refused(w, "UPDATE audit_segment SET to_seq = 9");
    expect_refused(w, "DELETE FROM audit_segment");
    if (is_postgres(w)) {
        expect_refused(w, "TRUNCATE audit");
        expect_refused(w, "TRUNCATE audit_segment");
        /* a table of the same name elsewhere covers nothing */
        expect_refused(w, "CREATE TEMP TABLE audit_segment AS SELECT * FROM audit_segment; "
                          "UPDATE pg_temp.audit_segment SET to_seq = 9; DELETE FROM audit WHERE seq = 5");
    } else {
        expect_refused(w, "REPLACE INTO audit_segment SELECT * FROM audit_segment");
    }
    world_script(w, "DELETE FROM audit WHERE seq = 1 AND lane = 0");
    assert_int_equal(let_go(w, 2, 4), 0);
    assert_int_equal(rows_of(w, "seq <= 4"), 0);
    expect_whole(w, 1, 4);
    assert_true(let_go(w, 5, 6) < 0);
}

/* ---- readers ---- */

struct cursor {
    const char *name;
    struct rp_audit_head at;
};

static int cursor_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    const struct cursor *c = ctx;
    return rp_feed_cursor_save(tx, c->name, &c->at, 1, e);
}

static void stand(struct world *w, const char *name, int64_t lane, int64_t seq)
{
    struct cursor c = { .name = name, .at = { .lane = lane, .seq = seq } };
    ok(rp_catalog_transact(w->catalog, cursor_tx, &c, &err));
}

/* As long as a name can be. */
#define LONG_NAME "queues-of-those-who-want-to-know-of-everything-that-was-ever-asked-and-answered"
_Static_assert(sizeof LONG_NAME == RP_FEED_READER, "a byte more would be cut");

static void test_nothing_passes_a_readers_cursor(void **state)
{
    struct world *w = *state;
    struct rp_segment_reader reader;
    append(w->catalog, 20);
    stand(w, "mail", 0, 12);
    stand(w, LONG_NAME, 1, 5); /* of lane 0 it has read nothing */
    assert_int_equal(retain(w), 0);
    ok(rp_segment_reader(w->catalog->db, 0, &reader, &err));
    assert_string_equal(reader.name, LONG_NAME);
    stand(w, LONG_NAME, 0, 8);
    assert_int_equal(retain(w), 8);
    expect_whole(w, 1, 8);
    struct rp_segment further = export(w, 5); /* up to row 13 */
    assert_int_equal(rp_catalog_transact(w->catalog, seal_tx, &further, &err), RP_ECHANGED);
    assert_non_null(strstr(err.text, "'" LONG_NAME "'"));
    stand(w, LONG_NAME, 0, 100);
    assert_int_equal(retain(w), 4);
    expect_whole(w, 2, 12);
}

/* ---- erased details ---- */

static int erase_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    return rp_audit_erase(tx, 0, *(int64_t *)ctx, e);
}

static int erase(struct world *w, int64_t seq)
{
    return rp_catalog_transact(w->catalog, erase_tx, &seq, &err);
}

static int count_details(void *ctx, const struct rp_audit_row *row, struct rp_error *e)
{
    (void)e;
    *(int *)ctx += row->details != NULL;
    return 0;
}

static void test_erased_details_are_not_in_the_file(void **state)
{
    struct world *w = *state;
    struct rp_segment_file file;
    char path[RP_SEGMENT_PATH];
    int with_details = 0;
    append(w->catalog, 6);
    ok(erase(w, 2));
    struct rp_segment early = export(w, 5);
    assert_int_equal(early.with_details, 4);
    ok(erase(w, 3)); /* between export and seal */
    assert_int_equal(rp_catalog_transact(w->catalog, seal_tx, &early, &err), RP_ECHANGED);
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM audit_segment"), 0);
    struct rp_segment segment = seal(w, 5);
    assert_string_equal(segment.file, early.file);
    path_of(&segment, path);
    ok(rp_segment_read(path, count_details, &with_details, &file, &err));
    assert_int_equal(with_details, 3);
    assert_int_equal(file.erased, 2);
    assert_int_equal(erase(w, 4), RP_EGONE);
    assert_non_null(strstr(err.text, segment.file));
    int64_t gone = retain(w); /* and row 6, and audit.sealed */
    assert_int_equal(rows_of(w, "seq <= 7"), 0);
    expect_whole(w, 2, gone);
}

/* ---- crashes ---- */

static void test_a_run_goes_on_wherever_the_one_before_ended(void **state)
{
    struct world *w = *state;
    char path[RP_SEGMENT_PATH], part[RP_SEGMENT_PATH];
    append(w->catalog, 10);
    struct rp_segment first = export(w, 4), again = export(w, 4); /* exported, not sealed */
    assert_string_equal(first.file, again.file);
    assert_memory_equal(first.sha256, again.sha256, sizeof first.sha256);
    assert_int_equal(files_in_dir(), 1);
    snprintf(part, sizeof part, "%s/.%s.000.part", dir, w->catalog->id); /* half a file */
    FILE *f = fopen(part, "w");
    assert_non_null(f);
    assert_true(fputs("{\"segment\":1,", f) >= 0 && fclose(f) == 0);
    struct rp_segment sealed = seal(w, 4); /* sealed, rows left */
    expect_whole(w, 1, 4);
    ok(let_go(w, 1, 2)); /* and some of them gone */
    expect_whole(w, 1, 4);
    path_of(&sealed, path);
    assert_int_equal(access(path, R_OK), 0);
    assert_int_equal(access(part, F_OK), -1);
    int64_t gone = retain(w); /* rows 3 and 4, then the others, and audit.sealed */
    assert_int_equal(rows_of(w, "seq <= 11"), 0);
    expect_whole(w, 2, gone + 2);
    assert_int_equal(rp_catalog_transact(w->catalog, seal_tx, &first, &err), RP_ECHANGED); /* whoever was slower */
    assert_non_null(strstr(err.text, "was sealed up to row"));
}

/* ---- tampering ---- */

static void overwrite(const char *path, const char *from, const char *to)
{
    static char text[65536];
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    char *at = strstr(text, from);
    assert_non_null(at);
    assert_int_equal(strlen(from), strlen(to));
    assert_int_equal(fseek(f, at - text, SEEK_SET), 0);
    assert_true(fputs(to, f) >= 0 && fclose(f) == 0);
}

static void expect_file(const char *path, int expected, const char *why)
{
    struct rp_segment_file file;
    rp_error_clear(&err);
    assert_int_equal(rp_segment_read(path, NULL, NULL, &file, &err), expected);
    if (why != NULL && strstr(err.text, why) == NULL) fail_msg("%s", err.text);
}

static void test_a_file_proves_itself(void **state)
{
    struct world *w = *state;
    char path[RP_SEGMENT_PATH];
    static const struct {
        const char *from, *to, *why;
    } edits[] = {
        { "\"number\\\":3", "\"number\\\":8", "row 0.4: its details are not" },
        { "\"mark\":7", "\"mark\":9", "row 0.1: its hash does not follow" },
        { "\"seq\":3,", "\"seq\":4,", "line 4: a row is missing before it" },
        { "\"lane\":0", "\"lane\":1", "row 1.1: its hash does not follow" },
        { "\"rows\":5", "\"rows\":4", "does not say where the rows above end" },
        { "\"segment\":1", "\"segment\":2", "no segment that this reprieve can read" },
        { "{\"seq\":2", "[\"seq\":2", "line 3" },
    };
    append(w->catalog, 6);
    struct rp_segment segment = export(w, 5);
    path_of(&segment, path);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        overwrite(path, edits[i].from, edits[i].to);
        expect_file(path, RP_ECORRUPT, edits[i].why);
        overwrite(path, edits[i].to, edits[i].from);
        expect_file(path, 0, NULL);
    }
    assert_int_equal(truncate(path, segment.bytes - 1), 0);
    expect_file(path, RP_ECORRUPT, "cut off");
    assert_int_equal(truncate(path, segment.bytes - 100), 0);
    expect_file(path, RP_ECORRUPT, "line");
    assert_int_equal(truncate(path, 0), 0);
    expect_file(path, RP_ECORRUPT, "ends before the segment does");
    assert_int_equal(unlink(path), 0);
    expect_file(path, RP_ENOTFOUND, NULL);
}

static void test_a_changed_file_is_named_and_a_missing_one_is_told(void **state)
{
    struct world *w = *state;
    char path[RP_SEGMENT_PATH];
    append(w->catalog, 10);
    struct rp_segment segment = seal(w, 6);
    ok(let_go(w, 1, 6));
    path_of(&segment, path);
    overwrite(path, "\"actor\":\"t", "\"actor\":\"b");
    expect_broken(w, 1, segment.file);
    overwrite(path, "\"actor\":\"b", "\"actor\":\"t");
    expect_whole(w, 1, 6);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    expect_no_verdict(w, RP_EUNAVAILABLE, "directory");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink(segment.file, path), 0); /* it names itself */
    expect_no_verdict(w, RP_EINVAL, segment.file);
    assert_int_equal(unlink(path), 0);
    struct rp_audit_verdict v = verify(w);
    assert_false(v.broken); /* it may lie elsewhere */
    assert_int_equal(v.files_missing, 1);
    assert_string_equal(v.missing, segment.file);
}

static void test_a_changed_segment_is_named(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *change;
        int64_t seq;
        const char *why;
    } changes[] = {
        { "UPDATE audit_segment SET hash_after = sha256 WHERE to_seq = 4", 5, "does not follow from the one before" },
        { "UPDATE audit_segment SET hash_after = sha256 WHERE to_seq = 8", 9, "its hash does not follow" },
        { "UPDATE audit_segment SET from_seq = 2 WHERE to_seq = 4", 1, "that begins here is missing" },
        { "UPDATE audit_segment SET to_seq = 7 WHERE to_seq = 8", 8, "the row is missing" },
        { "UPDATE audit_segment SET sha256 = hash_after WHERE to_seq = 4", 1, "is not the file that was sealed" },
        { "UPDATE audit_segment SET file = 'other' WHERE to_seq = 4", 1, "not what the audit log says" },
        { "DELETE FROM audit_segment WHERE to_seq = 4", 1, "that begins here is missing" },
        { "DELETE FROM audit_segment WHERE to_seq = 8", 5, "the row is missing" },
        { "DELETE FROM audit WHERE seq = 9", 9, "the row is missing" },
        { "DELETE FROM audit", 9, "the chain ends before" },
    };
    append(w->catalog, 12);
    (void)seal(w, 4);
    (void)seal(w, 4);
    ok(let_go(w, 1, 8));
    expect_whole(w, 2, 8);
    unlock(w);
    world_script(w, "CREATE TABLE kept AS SELECT * FROM audit_segment; CREATE TABLE kept_rows AS SELECT * FROM audit");
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        world_script(w, "%s", changes[i].change);
        expect_broken(w, changes[i].seq, changes[i].why);
        world_script(w, "DELETE FROM audit_segment; INSERT INTO audit_segment SELECT * FROM kept;"
                        "DELETE FROM audit; INSERT INTO audit SELECT * FROM kept_rows");
        expect_whole(w, 2, 8);
    }
    /* the row that tells of it is what shows a segment that is gone with all its rows */
    world_script(w, "UPDATE audit SET details = NULL WHERE event = 'audit.sealed'");
    world_script(w, "UPDATE audit_segment SET file = 'other' WHERE to_seq = 4");
    assert_false(verify(w).broken);
}

/* Rows that a segment covers but that are still there. */
static void test_changed_rows_that_are_sealed_are_named(void **state)
{
    struct world *w = *state;
    append(w->catalog, 12);
    struct rp_segment segment = seal(w, 8);
    ok(let_go(w, 1, 3));
    unlock(w);
    world_script(w,
                 "UPDATE audit SET actor = 'liar' WHERE seq = 4"); /* the first: only the file knows what it follows */
    expect_broken(w, 4, "its hash does not follow");
    world_script(w, "DELETE FROM audit WHERE seq = 4");
    expect_whole(w, 1, 8);
    world_script(w, "UPDATE audit SET actor = 'liar' WHERE seq = 6");
    expect_broken(w, 6, "its hash does not follow");
    world_script(w, "DELETE FROM audit WHERE seq <= 6; UPDATE audit SET hash = digest WHERE seq = 8");
    expect_broken(w, 8, "its hash does not follow");
    (void)segment;
}

static void test_a_broken_chain_is_not_sealed(void **state)
{
    struct world *w = *state;
    append(w->catalog, 10);
    unlock(w);
    world_script(w, "UPDATE audit SET actor = 'liar' WHERE seq = 3");
    assert_int_equal(retain_after(w, 1, "failed"), 0);
    assert_int_equal(rows_of(w, "event = 'test.said'"), 10);
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM audit_segment"), 0);
    assert_int_equal(
        world_number(w, "SELECT COUNT(*) FROM run_record WHERE body LIKE '%audit row 0.3: its hash does not%'"), 1);
}

/* ---- several lanes ---- */

static void test_heads_of_other_lanes_are_held_against_segments(void **state)
{
    struct world *w = *state;
    char path[RP_SEGMENT_PATH];
    struct rp_catalog *other = world_catalog(w, 1, NULL);
    append(w->catalog, 6);
    append(other, 1); /* records that lane 0 is at 6 */
    rp_catalog_close(other);
    append(w->catalog, 6);
    (void)seal(w, 6); /* the head that was recorded is where the segment ends */
    ok(let_go(w, 1, 6));
    expect_whole(w, 1, 6);
    unlock(w);
    world_script(
        w, "DELETE FROM audit WHERE event = 'audit.sealed';"
           "UPDATE lane SET seq = 12, head = (SELECT hash FROM audit WHERE lane = 0 AND seq = 12) WHERE lane = 0");
    struct rp_segment last;
    ok(rp_segment_last(w->catalog->db, 0, &last, &err));
    path_of(&last, path);
    assert_int_equal(unlink(path), 0);
    world_script(w, "DELETE FROM audit WHERE lane = 0; DELETE FROM audit_segment; "
                    "UPDATE lane SET seq = 0 WHERE lane = 0");
    expect_broken(w, 6, "another lane recorded this row; it is gone");
}

static void test_a_recorded_head_inside_a_segment_is_found_in_its_file(void **state)
{
    struct world *w = *state;
    struct rp_catalog *other = world_catalog(w, 1, NULL);
    append(w->catalog, 3);
    append(other, 1); /* records that lane 0 is at 3 */
    rp_catalog_close(other);
    append(w->catalog, 6);
    (void)seal(w, 6);
    ok(let_go(w, 1, 6));
    expect_whole(w, 1, 6);
    struct rp_audit_verdict v;
    ok(rp_audit_verify(w->catalog, &v, &err)); /* without the file nobody can tell */
    assert_false(v.broken);
}

/* clang-format off */
#define ON(kind, words, fn) { #fn " on " words, fn, set_up, tear_down, (void *)(uintptr_t)(kind) }
#define BOTH(fn) ON(DBS_SQLITE_FILE, "sqlite", fn), ON(DBS_POSTGRES, "postgres", fn)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_a_run_seals_and_lets_go_and_the_chain_verifies),
        BOTH(test_what_is_not_old_enough_stays),
        BOTH(test_a_dry_run_counts_and_writes_nothing),
        BOTH(test_the_database_lets_only_sealed_rows_go),
        BOTH(test_nothing_passes_a_readers_cursor),
        BOTH(test_erased_details_are_not_in_the_file),
        BOTH(test_a_run_goes_on_wherever_the_one_before_ended),
        ON(DBS_SQLITE_FILE, "sqlite", test_a_file_proves_itself),
        BOTH(test_a_changed_file_is_named_and_a_missing_one_is_told),
        BOTH(test_a_changed_segment_is_named),
        BOTH(test_changed_rows_that_are_sealed_are_named),
        BOTH(test_a_broken_chain_is_not_sealed),
        BOTH(test_heads_of_other_lanes_are_held_against_segments),
        BOTH(test_a_recorded_head_inside_a_segment_is_found_in_its_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
/* clang-format on */
