/* SPDX-License-Identifier: Apache-2.0 */
/* The questions that the catalog alone can answer. Each selects a text a violation; numbers are
 * those of catalog/mark/mark.h: 1 marked, 2 checking, 3 purging, 4 purged, 5 reprieved, 6 dead, 7
 * lost. */
#include "lib/invariants.h"

#include "base/assert.h"
#include "base/error.h"
#include "catalog/audit/audit.h"
#include "lib/invariants_store.h"

#include <stdio.h>
#include <string.h>

#define ASIDE         "key LIKE '.reprieve/quarantine/%'"
#define AUDITS(event) "(SELECT COUNT(*) FROM audit a WHERE a.mark_id = m.id AND a.event = '" event "')"
#define ITS_OWN       "(m.file_id IS NULL OR " INV_SECOND ")"                           /* else the file's row tells */
#define DUE           "'mark.created', 'mark.extended', 'file.pending', 'file.deleted'" /* these say when */
#define LETTERS       "(SELECT COUNT(*) FROM dead_letter d WHERE d.mark_id = m.id"
#define ASKED(how)    "(SELECT COUNT(*) FROM confirmation c WHERE c.mark_id = m.id AND " how ")"
#define EVENTS(event) "(SELECT COUNT(*) FROM audit WHERE event = '" event "')"
#define RFC3339(ms)   "strftime('%Y-%m-%dT%H:%M:%S', " ms " / 1000, 'unixepoch') || printf('.%03dZ', " ms " % 1000)"
#define HELD                                                                                                           \
    "EXISTS (SELECT 1 FROM hold h WHERE h.lifted_at IS NULL AND (h.scope = 4 OR (h.scope = 1 AND h.key IN "            \
    "(m.key, m.original)) OR (h.scope = 2 AND (substr(m.key, 1, length(h.key)) = h.key OR "                            \
    "substr(m.original, 1, length(h.key)) = h.key))))"

/* clang-format off */
static const struct question {
    const char *name;
    enum inv_when when;
    const char *text;
} questions[] = {
    { "NO-EARLY", INV_ALWAYS,
      "SELECT key || ' was purged before it was due' FROM mark WHERE state = 4 AND ended_at < due_at" },
    { "INTENT-FIRST", INV_ALWAYS,
      "SELECT key || ' is in state ' || state || ' and was never claimed' FROM mark WHERE state IN (2, 3, 4) AND fence = 0" },
    { "EVENTUAL", INV_HEALED,
      "SELECT m.key || ' still waits in state ' || m.state FROM mark m WHERE m.state IN (1, 2, 3) AND NOT " HELD },

    { "TALLY", INV_ALWAYS,
      "SELECT 'store ' || store_id || ', state ' || state || ': off by ' || SUM(marks) || ' marks, ' || SUM(bytes) || ' bytes' "
      "FROM (SELECT store_id, state, marks, bytes FROM tally UNION ALL SELECT store_id, state, -1, -size_bytes FROM mark) "
      "GROUP BY store_id, state HAVING SUM(marks) <> 0 OR SUM(bytes) <> 0" },
    { "TALLY", INV_ALWAYS,
      "SELECT 'store ' || store_id || ', state ' || state || ': what waits is off by ' || SUM(n) || ' marks, ' || SUM(b) || ' bytes, ' "
      "|| SUM(s) || ' s' FROM (SELECT store_id, state, waiting AS n, waiting_bytes AS b, marked_at_s AS s FROM tally UNION ALL "
      "SELECT store_id, state, -1, -size_bytes, -(marked_at / 1000) FROM mark WHERE state IN (1, 2, 3) "
      "AND (file_id IS NULL OR etag <> '' OR version <> '' OR original IS NOT NULL)) "
      "GROUP BY store_id, state HAVING SUM(n) <> 0 OR SUM(b) <> 0 OR SUM(s) <> 0" },
    { "ONE-ACTIVE", INV_ALWAYS,
      "SELECT key || ' has ' || COUNT(*) || ' marks that have not ended' FROM mark WHERE state NOT IN (4, 5, 7) "
      "GROUP BY store_id, key HAVING COUNT(*) > 1" },
    { "ONE-ACTIVE", INV_ALWAYS,
      "SELECT key || ' in state ' || state || ': its row does not fit' FROM mark "
      "WHERE (state IN (4, 5, 7)) <> (active IS NULL) OR (state IN (4, 5, 7)) <> (ended_at IS NOT NULL) "
      "OR (state IN (4, 5, 7)) <> (outcome <> 0) OR (state IN (1, 2, 3)) <> (next_at IS NOT NULL)" },

    { "RUNS", INV_ALWAYS,
      "SELECT 'run ' || r.id || ' is open, but does not hold its lock' FROM run r WHERE r.open = 1 AND r.kind NOT IN ('restore', 'retention', 'safety_net') AND NOT EXISTS "
      "(SELECT 1 FROM run_lock l WHERE l.name = r.kind || ':' || r.name AND l.run_id = r.id AND l.fence = r.fence)" },
    /* one that was left has given its lock back */
    { "RUNS", INV_ALWAYS,
      "SELECT r.kind || ' ' || r.id || ' is open, but another one holds its lock' FROM run r WHERE r.open = 1 "
      "AND r.kind IN ('restore', 'retention', 'safety_net') AND EXISTS (SELECT 1 FROM run_lock l WHERE l.run_id = r.id AND l.fence <> r.fence)" },
    { "RUNS", INV_ALWAYS,
      "SELECT 'restore ' || f.run_id || ' and its run are not open together' FROM restore_run f LEFT JOIN run r "
      "ON r.id = f.run_id WHERE f.open IS DISTINCT FROM r.open" },
    { "RUNS", INV_ALWAYS,
      "SELECT 'run ' || r.id || ' has ' || COUNT(c.run_id) || ' records' FROM run r LEFT JOIN run_record c ON c.run_id = r.id "
      "GROUP BY r.id HAVING COUNT(c.run_id) <> (r.open IS NULL)" },
    { "RUNS", INV_ALWAYS,
      "SELECT 'a record belongs to no run, or ' || COUNT(*) || ' of them' FROM run_record WHERE run_id NOT IN (SELECT id FROM run) "
      "HAVING COUNT(*) <> " INV_LET_GO("runs") },
    { "RUNS", INV_HEALED, "SELECT 'lock ' || name || ' is still held' FROM run_lock WHERE run_id IS NOT NULL" },

    { "DEAD", INV_ALWAYS,
      "SELECT m.key || ' in state ' || m.state || ' has ' || " LETTERS " AND d.open = 1) || ' open dead letters' "
      "FROM mark m WHERE " LETTERS " AND d.open = 1 AND d.from_state = m.was) <> (m.state = 6) "
      "OR " LETTERS " AND d.open = 1) <> (m.state = 6)" },
    { "DEAD", INV_ALWAYS,
      "SELECT 'dead letter ' || id || ' belongs to no mark' FROM dead_letter WHERE mark_id NOT IN (SELECT id FROM mark)" },

    { "AUDITED", INV_ALWAYS,
      "SELECT m.key || ': recorded as created ' || " AUDITS("mark.created") " || ' times' FROM mark m "
      "WHERE " AUDITS("mark.created") " <> (m.file_id IS NULL AND NOT (" ASIDE "))" },
    { "AUDITED", INV_ALWAYS,
      "SELECT m.key || ' in state ' || m.state || ': its end is not recorded exactly once' FROM mark m "
      "WHERE " AUDITS("mark.purged") " <> (state = 4) OR " AUDITS("mark.reprieved") " <> (state = 5 AND " ITS_OWN ") "
      "OR " AUDITS("mark.lost") " <> (state = 7)" },
    { "AUDITED", INV_ALWAYS,
      "SELECT m.key || ': deaths or retries are not recorded exactly once' FROM mark m "
      "WHERE " AUDITS("mark.dead") " <> " LETTERS ") OR " AUDITS("mark.retried") " <> " LETTERS " AND d.ended_as = 'retried')" },
    { "AUDITED", INV_ALWAYS,
      "SELECT m.key || ' is due at another time than was recorded last' FROM mark m JOIN audit a ON a.mark_id = m.id "
      "WHERE a.event IN (" DUE ") AND a.seq = (SELECT MAX(b.seq) FROM audit b WHERE b.mark_id = m.id "
      "AND b.event IN (" DUE ")) AND json_extract(a.details, '$.due_at') <> " RFC3339("m.due_at") " "
      "AND NOT EXISTS (SELECT 1 FROM audit c WHERE c.mark_id = m.id AND c.lane <> a.lane)" }, /* order shows in one lane only */
    { "AUDITED", INV_ALWAYS,
      "SELECT 'extension ' || a.seq || ' did not extend' FROM audit a JOIN audit b ON a.mark_id = b.mark_id AND a.lane = b.lane AND a.seq < b.seq "
      "WHERE b.event = 'mark.extended' AND a.event IN ('mark.created', 'mark.extended') "
      "AND json_extract(a.details, '$.due_at') >= json_extract(b.details, '$.due_at')" },
    { "AUDITED", INV_ALWAYS,
      "SELECT 'row ' || seq || ' (' || event || ') is about a mark that is not there' FROM audit "
      "WHERE mark_id IS NOT NULL AND mark_id NOT IN (SELECT id FROM mark) "
      "AND NOT EXISTS (SELECT 1 FROM audit WHERE event = 'retention.let_go')" },
    { "AUDITED", INV_ALWAYS,
      "SELECT 'holds: not one row for each placed and each lifted' WHERE " EVENTS("hold.placed") " <> (SELECT COUNT(*) FROM hold) + "
      INV_LET_GO("holds") " OR " EVENTS("hold.lifted") " <> (SELECT COUNT(*) FROM hold WHERE lifted_at IS NOT NULL) + "
      INV_LET_GO("holds") },
    { "AUDITED", INV_ALWAYS,
      "SELECT 'runs: not one row for each begun and each finished' WHERE " EVENTS("run.started") " <> (SELECT COUNT(*) FROM run) + "
      INV_LET_GO("runs") " OR " EVENTS("run.finished") " <> (SELECT COUNT(*) FROM run_record)" },
    { "AUDITED", INV_ALWAYS,
      "SELECT 'returns: not one row for each copy that came back' WHERE "
      INV_DIFFERS(EVENTS("object.returned"), "(SELECT COUNT(*) FROM mark WHERE " ASIDE " AND outcome = 5)") },
    { "AUDITED", INV_ALWAYS,
      "SELECT 'row ' || seq || ' records an event nobody knows: ' || event FROM audit WHERE event NOT IN ('mark.created', "
      "'mark.extended', 'mark.purged', 'mark.reprieved', 'mark.asked', 'mark.confirmed', 'mark.dead', 'mark.retried', 'mark.lost', 'hold.placed', "
      "'hold.lifted', 'run.started', 'run.finished', 'run.resumed', 'retention.let_go', 'object.returned', 'object.returned_again', 'orphan.detected', 'store.owned', 'store.recovered', 'store.moved', 'store.renamed', 'clock.accepted', 'audit.heads', "
      "'file.pending', 'file.uploaded', 'file.live', 'file.deleted', 'file.delete_failed', 'file.restored', 'file.cleaned', 'file.purged', "
      "'transaction.begun', 'transaction.committed', 'transaction.aborted', 'quota.set', 'store.level_changed', "
      "'store.keys_changed')" },
};
/* clang-format on */

struct asking {
    const char *prefix;
    struct rp_buf *out;
    int lines;
};

static int line(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct asking *a = ctx;
    (void)err;
    a->lines++;
    rp_buf_fmt(a->out, "%s: %s\n", a->prefix, row[0].type == RP_NULL_T ? "(null)" : row[0].p);
    return 0;
}

static int run(const struct inv_world *w, const struct rp_sql *sql, const struct rp_value *args, struct rp_buf *out)
{
    struct rp_error err = { 0 };
    struct asking a = { .prefix = sql->name, .out = out };
    int r = rp_db_query(w->catalog->db, sql, args, line, &a, &err);
    if (r == 0) return a.lines;
    rp_buf_fmt(out, "%s: the question could not be asked: %s\n", sql->name, err.text);
    return 1;
}

int inv_ask(const struct inv_world *world, const char *prefix, const char *text, struct rp_buf *out)
{
    struct rp_sql sql = { .name = prefix, .text = text, .params = "", .columns = "s" };
    return run(world, &sql, NULL, out);
}

int inv_ask_again(const struct inv_world *world, const struct rp_sql *sql, struct rp_buf *out)
{
    return run(world, sql, NULL, out);
}

/* Each keeps its place in memory, so that the connection prepares it once. */
static int ask_all(const struct inv_world *w, enum inv_when when, struct rp_buf *out)
{
    static struct rp_sql sql[sizeof questions / sizeof questions[0]];
    int n = 0;
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        sql[i] = (struct rp_sql){ .name = questions[i].name, .text = questions[i].text, .params = "", .columns = "s" };
        if (questions[i].when <= when) n += run(w, &sql[i], NULL, out);
    }
    return n;
}

static int check_chain(const struct inv_world *w, struct rp_buf *out)
{
    struct rp_error err = { 0 };
    struct rp_audit_verdict v;
    int r = rp_audit_verify(w->catalog, &v, &err);
    if (r == 0 && !v.broken) return 0;
    rp_buf_fmt(out, "AUDITED: the chain is broken at %lld.%lld: %s\n", (long long)v.lane, (long long)v.seq,
               r < 0 ? err.text : v.why);
    return 1;
}

/* What was answered is in the catalog, and no promise was shortened. */
static int check_answers(const struct inv_world *w, struct rp_buf *out)
{
    static const struct rp_sql answer = {
        .name = "AUDITED",
        .text = "SELECT $1 || ': the acknowledged mark is gone or due earlier' "
                "WHERE NOT EXISTS (SELECT 1 FROM mark WHERE id = $2 AND due_at >= $3)",
        .params = "sii",
        .columns = "s",
    };
    int n = 0;
    for (size_t i = 0; i < w->known->n; i++) {
        const struct inv_subject *s = &w->known->subjects[i];
        struct rp_value args[] = { rp_text(s->key), rp_int(s->mark_id), rp_int(s->due_at_ms) };
        if (s->promised) n += run(w, &answer, args, out);
    }
    return n;
}

static int check_calls(const struct inv_world *w, struct rp_buf *out)
{
    static const struct rp_sql recorded = {
        .name = "AUDITED",
        .text = "SELECT m.key || ': what services were asked, and their yes, is not recorded exactly once' FROM mark m "
                "WHERE " AUDITS("mark.asked") " <> " ASKED("c.asked_at IS NOT NULL") " OR " AUDITS(
                    "mark.confirmed") " <> " ASKED("c.state = 4"),
        .params = "",
        .columns = "s",
    };
    return w->unrecorded_calls ? 0 : run(w, &recorded, NULL, out);
}

static int check_attempts(const struct inv_world *w, struct rp_buf *out)
{
    static const struct rp_sql bounded = {
        .name = "AT-LEAST-ONCE",
        .text = "SELECT key || ': ' || attempts || ' attempts, and still tried' FROM mark "
                "WHERE state IN (1, 2, 3) AND attempts >= $1",
        .params = "i",
        .columns = "s",
    };
    struct rp_value max = rp_int(w->known->max_attempts);
    return run(w, &bounded, &max, out);
}

int inv_check_catalog(const struct inv_world *w, enum inv_when when, struct rp_buf *out)
{
    int n = ask_all(w, when, out);
    n += check_chain(w, out);
    n += check_answers(w, out);
    n += check_calls(w, out);
    n += check_attempts(w, out);
    return n + inv_check_files(w, when, out);
}

int inv_check(const struct inv_world *w, enum inv_when when, struct rp_buf *out)
{
    int n = inv_check_catalog(w, when, out);
    n += inv_check_store(w, when, out);
    if (w->known->seen[0] == '\0') return n;
    rp_buf_fmt(out, "%s\n", w->known->seen);
    return n + 1;
}

static const char everything_about_marks[] =
    "SELECT group_concat(id || ' ' || state || ' ' || was || ' ' || COALESCE(next_at, '-') || ' ' || fence || ' ' || "
    "attempts || ' ' || outcome || ' ' || COALESCE(note, '-'), ';') FROM (SELECT * FROM mark ORDER BY id) UNION ALL "
    "SELECT COUNT(*) || ' ' || COALESCE(MAX(seq), 0) FROM audit WHERE mark_id IS NOT NULL UNION ALL "
    "SELECT COUNT(*) || '' FROM dead_letter";

void inv_marks_digest(const struct inv_world *world, char out[RP_DIGEST_HEX])
{
    struct rp_buf text = RP_BUF(1 << 20);
    uint8_t digest[RP_DIGEST_BYTES];
    inv_ask(world, "FENCED", everything_about_marks, &text);
    RP_ASSERT(text.failed == 0);
    rp_digest_begin(world->catalog->digest);
    rp_digest_add(world->catalog->digest, rp_buf_text(&text), text.len);
    rp_digest_end(world->catalog->digest, digest);
    rp_digest_hex(digest, out);
    rp_buf_done(&text);
}

int inv_check_fenced(const struct inv_world *world, const char before[RP_DIGEST_HEX], struct rp_buf *out)
{
    char now[RP_DIGEST_HEX];
    inv_marks_digest(world, now);
    if (strcmp(now, before) == 0) return 0;
    rp_buf_fmt(out, "FENCED: a worker that had lost its lease changed a mark\n");
    return 1;
}
