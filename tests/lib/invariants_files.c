/* SPDX-License-Identifier: Apache-2.0 */
/* The questions about files. Numbers are those of catalog/file/file.h: statuses 1 pending, 2
 * scanning, 3 live, 4 deleted, 5 purged, 6 expired; ledger 1 reserve, 2 use, 3 refund; and of
 * catalog/file/transaction.h: 1 open, 2 committed, 3 aborted. */
#include "lib/invariants.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "catalog/file/file.h"
#include "catalog/mark/mark.h"
#include "lib/bytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LEDGER(kind)  "(SELECT COUNT(*) FROM ledger l WHERE l.file_id = f.id AND l.kind = " kind ")"
#define AUDITS(event) "(SELECT COUNT(*) FROM audit a WHERE a.mark_id = m.id AND a.event = '" event "')"
#define EVENTS(event) "(SELECT COUNT(*) FROM audit WHERE event = '" event "')"
#define ITS_MARK      " FROM file f LEFT JOIN mark m ON m.id = f.mark_id AND m.file_id = f.id WHERE "

/* clang-format off */
static const struct question {
    const char *name;
    enum inv_when when;
    const char *text;
} questions[] = {
    { "QUOTA-EXACT", INV_ALWAYS,
      "SELECT f.name || ' in status ' || f.status || ': its ledger rows do not fit' FROM file f WHERE " LEDGER("1") " <> 1 "
      "OR " LEDGER("2") " > 1 OR (f.status IN (1, 6) AND " LEDGER("2") " <> 0) OR (f.status IN (2, 3) AND " LEDGER("2") " <> 1) "
      "OR (f.status = 4 AND " LEDGER("2") " <> (f.was <> 1)) OR " LEDGER("3") " <> (f.status IN (5, 6))" },
    { "QUOTA-EXACT", INV_ALWAYS,
      "SELECT 'tenant ' || t.name || ': its counters are not what its files are' FROM tenant t WHERE "
      "t.used_bytes <> (SELECT COALESCE(SUM(size_bytes), 0) FROM file f WHERE f.tenant_id = t.id AND "
      "(f.status IN (2, 3) OR (f.status = 4 AND f.was <> 1))) OR "
      "t.reserved_bytes <> (SELECT COALESCE(SUM(size_bytes), 0) FROM file f WHERE f.tenant_id = t.id AND "
      "(f.status = 1 OR (f.status = 4 AND f.was = 1))) OR "
      "t.open_uploads <> (SELECT COUNT(*) FROM file f WHERE f.tenant_id = t.id AND (f.status = 1 OR (f.status = 4 AND f.was = 1)))" },
    { "QUOTA-EXACT", INV_ALWAYS,
      "SELECT 'ledger row of file ' || file_id || ': of no file, or of other bytes' FROM ledger l WHERE NOT EXISTS "
      "(SELECT 1 FROM file f WHERE f.id = l.file_id AND f.size_bytes = l.bytes AND f.tenant_id = l.tenant_id)" },

    { "FILES", INV_ALWAYS,
      "SELECT f.name || ' in status ' || f.status || ': its mark is in state ' || COALESCE(m.state, '-')" ITS_MARK
      "NOT COALESCE(CASE f.status WHEN 1 THEN m.state = 1 WHEN 2 THEN m.state IN (5, 7) WHEN 3 THEN m.state IN (5, 7) "
      "WHEN 4 THEN m.state IN (1, 2, 3, 6, 7) WHEN 5 THEN m.state IN (1, 3, 4) ELSE m.state IN (3, 4, 6, 7) END, 0)" },
    { "FILES", INV_ALWAYS,
      "SELECT f.name || ' lives, and a mark waits for it' FROM mark m JOIN file f ON f.id = m.file_id "
      "WHERE f.status IN (2, 3) AND m.active = 1" },
    { "FILES", INV_ALWAYS,
      "SELECT f.name || ' was never confirmed, and nothing waits for a late PUT'" ITS_MARK "f.status = 6 AND m.state = 4 "
      "AND NOT EXISTS (SELECT 1 FROM mark m WHERE m.file_id = f.id AND m.key = f.key AND " INV_SECOND ")" },
    { "FILES", INV_ALWAYS,
      "SELECT f.name || ' lives, and what it belongs to does not' FROM file f JOIN file o ON o.id IN (f.parent_id, f.source_id) "
      "WHERE f.status IN (2, 3) AND o.status > 3" },
    { "ONE-NAME", INV_ALWAYS,
      "SELECT name || ' lives ' || COUNT(*) || ' times' FROM file WHERE status IN (2, 3) GROUP BY tenant_id, name "
      "HAVING COUNT(*) > 1" },
    { "ONE-NAME", INV_ALWAYS,
      "SELECT name || ' in status ' || status || ': its row does not fit' FROM file "
      "WHERE (status IN (2, 3)) <> (live_name IS NOT NULL) OR live_name <> name" },

    { "TXN-ATOMIC", INV_ALWAYS,
      "SELECT f.name || ' and its transaction do not agree' FROM file f JOIN txn t ON t.id = f.txn_id "
      "WHERE (t.state = 2) <> (" LEDGER("2") " = 1)" },
    { "TXN-ATOMIC", INV_ALWAYS,
      "SELECT 'transaction ' || t.id || ' counts ' || t.members || ' members' FROM txn t "
      "WHERE " INV_DIFFERS("t.members", "(SELECT COUNT(*) FROM file f WHERE f.txn_id = t.id)") },

    { "IDEMPOTENT", INV_ALWAYS,
      "SELECT content_type || ' was begun ' || COUNT(*) || ' times' FROM file GROUP BY content_type HAVING COUNT(*) > 1" },
    { "IDEMPOTENT", INV_ALWAYS,
      "SELECT 'there are ' || COUNT(*) || ' kept answers for what was begun' FROM idempotency WHERE status < 300 "
      "HAVING COUNT(*) <> (SELECT COUNT(*) FROM file) + (SELECT COUNT(*) FROM txn) "
      "AND NOT EXISTS (SELECT 1 FROM audit WHERE event = 'retention.let_go')" },

    { "AUDITED", INV_ALWAYS,
      "SELECT 'files: not one row for each that began, was confirmed, expired, was purged' WHERE "
      EVENTS("file.pending") " <> (SELECT COUNT(*) FROM file) + " INV_LET_GO("files") " OR "
      INV_DIFFERS(EVENTS("file.uploaded"), "(SELECT COUNT(*) FROM ledger WHERE kind = 2)") " OR "
      EVENTS("file.cleaned") " + " EVENTS("file.purged") " <> (SELECT COUNT(*) FROM file WHERE status IN (5, 6)) + "
      INV_LET_GO("files") " OR "
      INV_DIFFERS(EVENTS("file.cleaned"), "(SELECT COUNT(*) FROM file WHERE status = 6)") },
    { "AUDITED", INV_ALWAYS,
      "SELECT f.name || ': its mark was not recorded' FROM mark m JOIN file f ON f.id = m.file_id "
      "WHERE NOT " INV_SECOND " AND " AUDITS("file.pending") " + " AUDITS("file.deleted") " = 0" },
    { "AUDITED", INV_ALWAYS,
      "SELECT f.name || ': the end of its mark was not recorded exactly once' FROM mark m JOIN file f ON f.id = m.file_id "
      "WHERE NOT " INV_SECOND " AND "
      AUDITS("file.uploaded") " + " AUDITS("file.restored") " <> (m.state = 5)" },
    { "AUDITED", INV_ALWAYS,
      "SELECT f.name || ': not one failed delete for each death of its mark' FROM mark m JOIN file f ON f.id = m.file_id "
      "WHERE " AUDITS("file.delete_failed") " <> " AUDITS("mark.dead") },
    { "AUDITED", INV_ALWAYS,
      "SELECT 'transactions: not one row for each begun, committed, aborted' WHERE "
      INV_DIFFERS(EVENTS("transaction.begun"), "(SELECT COUNT(*) FROM txn)") " OR "
      INV_DIFFERS(EVENTS("transaction.committed"), "(SELECT COUNT(*) FROM txn WHERE state = 2)") " OR "
      INV_DIFFERS(EVENTS("transaction.aborted"), "(SELECT COUNT(*) FROM txn WHERE state = 3)") },

    { "EVENTUAL", INV_HEALED,
      "SELECT name || ' is still in status ' || status FROM file WHERE status IN (1, 4)" },
};
/* clang-format on */

static int ask_all(const struct inv_world *w, enum inv_when when, struct rp_buf *out)
{
    static struct rp_sql sql[sizeof questions / sizeof questions[0]];
    int n = 0;
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        sql[i] = (struct rp_sql){ .name = questions[i].name, .text = questions[i].text, .params = "", .columns = "s" };
        if (questions[i].when <= when) n += inv_ask_again(w, &sql[i], out);
    }
    return n;
}

/* ---- what users were told ---- */

static int say(struct rp_buf *out, const char *name, const struct inv_file *f, const char *what)
{
    rp_buf_fmt(out, "%s: %s: %s\n", name, f->name, what);
    return 1;
}

static bool stands(const struct inv_world *w, const struct inv_file *f)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf bytes = RP_BUF(4096);
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 16);
    struct rp_sink sink = { .write = bytes_take, .ctx = &bytes };
    struct rp_meta meta;
    struct rp_identity identity;
    struct rp_error err = { 0 };
    int r = rp_backend_get(w->backend, f->key, &sink, &arena, &meta, &identity, &err);
    RP_ASSERT(r == 0 || r == RP_ENOTFOUND);
    return r == 0 && strcmp(rp_buf_text(&bytes), f->bytes) == 0;
}

static int check_file(const struct inv_world *w, const struct inv_file *f, struct rp_buf *out)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 18);
    struct rp_error err = { 0 };
    struct rp_file row;
    struct rp_mark mark;
    if (!f->begun) return 0;
    if (rp_file_get(w->catalog->db, f->id, &arena, &row, &err) < 0 || strcmp(row.key, f->key) != 0 ||
        rp_mark_get(w->catalog->db, f->mark_id, &arena, &mark, &err) < 0 || mark.due_at_ms < f->due_at_ms)
        return say(out, "AUDITED", f, "the acknowledged upload is gone, or due earlier");
    bool lives = row.status == RP_FILE_LIVE || row.status == RP_FILE_SCANNING;
    if (f->confirmed && !f->asked && !lives) return say(out, "NO-LOSS", f, "confirmed, and it does not live");
    if (f->restored && !lives) return say(out, "RESTORE-WINS", f, "restored, and it does not live");
    if (f->deleted && !f->restored && lives) return say(out, "AUDITED", f, "deleted, and it lives");
    if (lives && !stands(w, f)) return say(out, "NO-LOSS", f, "it lives, and its bytes are gone or others");
    rp_mark_get(w->catalog->db, row.mark_id, &arena, &mark, &err);
    bool waits = row.status == RP_FILE_DELETED && row.was != RP_FILE_PENDING && mark.state == RP_MARKED &&
                 strcmp(mark.key, f->key) == 0;
    if (waits && !stands(w, f)) return say(out, "NO-LOSS", f, "it can be restored, and its bytes are gone or others");
    return 0;
}

static int check_txn(const struct inv_world *w, const struct inv_txn *t, struct rp_buf *out)
{
    char text[160];
    if (!t->begun) return 0;
    snprintf(text, sizeof text,
             "SELECT 'an acknowledged transaction is in another state' WHERE NOT EXISTS "
             "(SELECT 1 FROM txn WHERE id = %" PRId64 " AND (%d = 0 OR state = %d))",
             t->id, t->committed || t->aborted, t->committed ? 2 : 3);
    return inv_ask(w, "AUDITED", text, out);
}

/* Nothing is left under our keys but what lives. */
struct listing {
    const struct inv_world *world;
    struct rp_buf *out;
    int n;
};

static int check_object(void *ctx, const struct rp_entry *entry, struct rp_error *err)
{
    struct listing *l = ctx;
    char text[320];
    (void)err;
    snprintf(
        text, sizeof text,
        "SELECT 'nobody owns %.100s' WHERE NOT EXISTS (SELECT 1 FROM file WHERE key = '%.100s' AND status IN (2, 3))",
        entry->key, entry->key);
    l->n += inv_ask(l->world, "EVENTUAL", text, l->out);
    return 0;
}

static int check_objects(const struct inv_world *w, struct rp_buf *out)
{
    struct listing l = { .world = w, .out = out };
    struct rp_error err = { 0 };
    int r = rp_backend_list(w->backend, INV_TENANT "/", "", check_object, &l, &err);
    RP_ASSERT(r == 0);
    return l.n;
}

int inv_check_files(const struct inv_world *w, enum inv_when when, struct rp_buf *out)
{
    int n = ask_all(w, when, out);
    for (size_t i = 0; i < w->known->n_files; i++)
        n += check_file(w, &w->known->files[i], out);
    for (size_t i = 0; i < w->known->n_txns; i++)
        n += check_txn(w, &w->known->txns[i], out);
    return when == INV_HEALED ? n + check_objects(w, out) : n;
}
