/* SPDX-License-Identifier: Apache-2.0 */
/* Triggers of the connection (they are nobody's but the simulator's) write down every change; what is rolled back goes with it. */
#include "journal.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "sim.h"

#define ROWS_MAX 400

static const char script[] =
    "CREATE TEMP TABLE moved (n INTEGER PRIMARY KEY, what INTEGER, id INTEGER, tenant INTEGER, a TEXT, b TEXT, c TEXT, "
    "d TEXT, "
    "i1 INTEGER, i2 INTEGER, i3 INTEGER, i4 INTEGER, i5 INTEGER, i6 INTEGER, i7 INTEGER, i8 INTEGER, i9 INTEGER, i10 "
    "INTEGER, "
    "i11 INTEGER);\n"
    "CREATE TEMP TRIGGER mark_new AFTER INSERT ON main.mark BEGIN INSERT INTO moved VALUES (NULL, 1, NEW.id, "
    "NEW.tenant_id, "
    "NEW.key, NEW.etag, NEW.version, NEW.reason, 0, NEW.state, NEW.due_at, 0, COALESCE(NEW.next_at, 0), 0, NEW.fence, "
    "COALESCE(NEW.file_id, 0), NEW.outcome, NEW.checks, NEW.was); END;\n"
    "CREATE TEMP TRIGGER mark_moved AFTER UPDATE ON main.mark BEGIN INSERT INTO moved VALUES (NULL, 2, NEW.id, "
    "NEW.tenant_id, "
    "NEW.key, NEW.etag, NEW.version, NEW.reason, OLD.state, NEW.state, NEW.due_at, COALESCE(OLD.next_at, 0), "
    "COALESCE(NEW.next_at, 0), OLD.fence, NEW.fence, COALESCE(NEW.file_id, 0), NEW.outcome, NEW.checks, NEW.was); "
    "END;\n"
    "CREATE TEMP TRIGGER file_new AFTER INSERT ON main.file BEGIN INSERT INTO moved VALUES (NULL, 3, NEW.id, "
    "NEW.tenant_id, "
    "NEW.key, NEW.name, '', '', 0, NEW.status, NEW.was, NEW.mark_id, COALESCE(NEW.parent_id, 0), "
    "COALESCE(NEW.source_id, 0), "
    "COALESCE(NEW.txn_id, 0), NEW.size_bytes, COALESCE(NEW.deleted_with, 0), 0, 0); END;\n"
    "CREATE TEMP TRIGGER file_moved AFTER UPDATE ON main.file BEGIN INSERT INTO moved VALUES (NULL, 4, NEW.id, "
    "NEW.tenant_id, "
    "NEW.key, NEW.name, '', '', OLD.status, NEW.status, NEW.was, NEW.mark_id, COALESCE(NEW.parent_id, 0), "
    "COALESCE(NEW.source_id, 0), COALESCE(NEW.txn_id, 0), NEW.size_bytes, COALESCE(NEW.deleted_with, 0), 0, 0); END;\n"
    "CREATE TEMP TRIGGER hold_new AFTER INSERT ON main.hold BEGIN INSERT INTO moved VALUES (NULL, 5, NEW.id, "
    "COALESCE(NEW.tenant_id, 0), COALESCE(NEW.key, ''), '', '', '', NEW.scope, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0); END;\n"
    "CREATE TEMP TRIGGER hold_lifted AFTER UPDATE ON main.hold BEGIN INSERT INTO moved VALUES (NULL, 6, NEW.id, 0, '', "
    "'', '', '', "
    "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0); END;\n"
    "CREATE TEMP TRIGGER tenant_moved AFTER UPDATE ON main.tenant BEGIN INSERT INTO moved VALUES (NULL, 7, NEW.id, "
    "NEW.id, '', '', "
    "'', '', OLD.used_bytes + OLD.reserved_bytes, NEW.used_bytes + NEW.reserved_bytes, COALESCE(NEW.limit_bytes, -1), "
    "0, 0, 0, 0, "
    "0, 0, 0, 0); END;\n"
    "CREATE TEMP TRIGGER txn_new AFTER INSERT ON main.txn BEGIN INSERT INTO moved VALUES (NULL, 8, NEW.id, "
    "NEW.tenant_id, '', '', "
    "'', '', NEW.state, NEW.members, 0, 0, 0, 0, 0, 0, 0, 0, 0); END;\n"
    "CREATE TEMP TRIGGER txn_moved AFTER UPDATE ON main.txn BEGIN INSERT INTO moved VALUES (NULL, 9, NEW.id, "
    "NEW.tenant_id, '', '', "
    "'', '', NEW.state, NEW.members, 0, 0, 0, 0, 0, 0, 0, 0, 0); END;\n";

static const struct rp_sql read_rows = {
    .name = "journal",
    .text =
        "SELECT what, id, tenant, a, b, c, d, i1, i2, i3, i4, i5, i6, i7, i8, i9, i10, i11 FROM temp.moved ORDER BY n",
    .params = "",
    .columns = "iiissssiiiiiiiiiii"
};
static const struct rp_sql clear_rows = { .name = "journal_clear", .text = "DELETE FROM temp.moved", .params = "" };

/* One row of the journal, out of the statement's memory: judging asks the database as well. */
struct row {
    int what;
    int64_t id, tenant_id, i[11];
    char a[MODEL_KEY], b[MODEL_ETAG], c[MODEL_ETAG], d[80];
};
struct rows {
    struct row at[ROWS_MAX];
    size_t n;
};

static void text(char *to, size_t size, const struct rp_value *v)
{
    RP_ASSERT(v->n < size);
    memcpy(to, v->p, v->n + 1);
}

static int keep(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct rows *rows = ctx;
    (void)err;
    RP_ASSERT(rows->n < ROWS_MAX);
    struct row *r = &rows->at[rows->n++];
    r->what = (int)v[0].i;
    r->id = v[1].i;
    r->tenant_id = v[2].i;
    text(r->a, sizeof r->a, &v[3]);
    text(r->b, sizeof r->b, &v[4]);
    text(r->c, sizeof r->c, &v[5]);
    text(r->d, sizeof r->d, &v[6]);
    for (int i = 0; i < 11; i++)
        r->i[i] = v[7 + i].i;
    return 0;
}

void sim_journal_make(struct sim *s)
{
    struct rp_error err = { 0 };
    int r = rp_db_script(s->inner, script, &err);
    if (r < 0) fprintf(stderr, "%s\n", err.text);
    RP_ASSERT(r == 0);
}

static struct journal_mark mark_of(const struct row *r)
{
    return (struct journal_mark){ .id = r->id,
                                  .tenant_id = r->tenant_id,
                                  .file_id = r->i[7],
                                  .key = r->a,
                                  .etag = r->b,
                                  .version = r->c,
                                  .reason = r->d,
                                  .from = (int)r->i[0],
                                  .to = (int)r->i[1],
                                  .due_at_ms = r->i[2],
                                  .old_next_ms = r->i[3],
                                  .next_at_ms = r->i[4],
                                  .old_fence = r->i[5],
                                  .fence = r->i[6],
                                  .outcome = (int)r->i[8],
                                  .checks = (int)r->i[9],
                                  .was = (int)r->i[10] };
}

static struct journal_file file_of(const struct row *r)
{
    return (struct journal_file){ .id = r->id,
                                  .tenant_id = r->tenant_id,
                                  .key = r->a,
                                  .name = r->b,
                                  .from = (int)r->i[0],
                                  .to = (int)r->i[1],
                                  .was = (int)r->i[2],
                                  .mark_id = r->i[3],
                                  .parent_id = r->i[4],
                                  .source_id = r->i[5],
                                  .txn_id = r->i[6],
                                  .size_bytes = r->i[7],
                                  .with_id = r->i[8] };
}

static void note_hold(struct sim *s, struct sim_node *n, const struct row *r)
{
    struct model *m = s->model;
    if (r->what == JOURNAL_HOLD_NEW) {
        if (++n->holds_made > 1) sim_violate(s, "IDEMPOTENT", "one command placed two holds");
        RP_ASSERT(m->n_holds < MODEL_HOLDS_MAX);
        struct model_hold *h = &m->holds[m->n_holds++];
        *h = (struct model_hold){ .id = r->id, .tenant_id = r->tenant_id, .scope = (int)r->i[0] };
        memcpy(h->key, r->a, sizeof h->key);
        return;
    }
    for (size_t i = 0; i < m->n_holds; i++)
        if (m->holds[i].id == r->id) m->holds[i].lifted = true;
}

static void tell(struct sim *s, struct sim_node *n, const struct row *r)
{
    struct journal_mark mark = mark_of(r);
    struct journal_file file = file_of(r);
    struct journal_tenant tenant = { r->id, r->i[0], r->i[1], r->i[2] };
    switch ((enum journal_what)r->what) {
    case JOURNAL_MARK_NEW:
        sim_judge_new_mark(s, n, &mark);
        break;
    case JOURNAL_MARK:
        sim_judge_mark(s, n, &mark);
        break;
    case JOURNAL_FILE_NEW:
        sim_judge_new_file(s, n, &file);
        break;
    case JOURNAL_FILE:
        sim_judge_file(s, n, &file);
        break;
    case JOURNAL_HOLD_NEW:
    case JOURNAL_HOLD_LIFTED:
        note_hold(s, n, r);
        break;
    case JOURNAL_TENANT:
        sim_judge_tenant(s, n, &tenant);
        break;
    case JOURNAL_TXN_NEW:
    case JOURNAL_TXN:
        sim_judge_txn(s, n, r->id, r->i[0], r->i[1], r->what == JOURNAL_TXN_NEW);
        break;
    }
}

void sim_journal_read(struct sim *s, struct sim_node *n)
{
    static struct rows rows; /* too big for a coroutine's stack; nobody else runs meanwhile */
    struct rp_error err = { 0 };
    rows.n = 0;
    int r = rp_db_query(s->inner, &read_rows, NULL, keep, &rows, &err);
    if (r == 0 && rows.n > 0) r = rp_db_exec(s->inner, &clear_rows, NULL, NULL, &err);
    if (r < 0) fprintf(stderr, "%s\n", err.text);
    RP_ASSERT(r == 0);
    for (size_t i = 0; i < rows.n; i++)
        tell(s, n, &rows.at[i]);
    if (rows.n > 0) sim_judge_commit(s, n);
}
