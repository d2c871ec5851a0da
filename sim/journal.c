/* SPDX-License-Identifier: Apache-2.0 */
/* Triggers of the connection (they are nobody's but the simulator's) call a function with every
 * change. What is rolled back was never read: the next transaction begins with an empty journal. */
#include "journal.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "judge.h"
#include "node.h"
#include "task.h"
#include "world.h"

#define ROWS_MAX 2000

/* The triggers' function is called with: what, id, tenant, three texts, then numbers. */
#define NOTE(what, id, tenant, texts, numbers)                                                                         \
    "BEGIN SELECT sim_note(" #what ", " id ", " tenant ", " texts ", " numbers "); END;\n"
#define NO_TEXTS   "'', '', ''"
#define MARK_TEXTS "NEW.key, NEW.etag, NEW.version"
#define MARK_REST  "COALESCE(NEW.file_id, 0), NEW.outcome, NEW.checks, NEW.was, NEW.lease_by IS NOT NULL, NEW.in_place"
#define FILE_REST                                                                                                      \
    "NEW.status, NEW.was, NEW.mark_id, COALESCE(NEW.parent_id, 0), COALESCE(NEW.source_id, 0), "                       \
    "COALESCE(NEW.txn_id, 0), NEW.size_bytes, COALESCE(NEW.deleted_with, 0)"

/* clang-format off */
static const char script[] =
    "CREATE TEMP TRIGGER mark_new AFTER INSERT ON main.mark "
    NOTE(1, "NEW.id", "NEW.tenant_id", MARK_TEXTS, "0, NEW.state, NEW.due_at, 0, COALESCE(NEW.next_at, 0), 0, NEW.fence, " MARK_REST)
    "CREATE TEMP TRIGGER mark_moved AFTER UPDATE ON main.mark "
    NOTE(2, "NEW.id", "NEW.tenant_id", MARK_TEXTS, "OLD.state, NEW.state, NEW.due_at, COALESCE(OLD.next_at, 0), COALESCE(NEW.next_at, 0), "
         "OLD.fence, NEW.fence, " MARK_REST)
    "CREATE TEMP TRIGGER file_new AFTER INSERT ON main.file "
    NOTE(3, "NEW.id", "NEW.tenant_id", "NEW.key, NEW.name, ''", "0, " FILE_REST)
    "CREATE TEMP TRIGGER file_moved AFTER UPDATE ON main.file "
    NOTE(4, "NEW.id", "NEW.tenant_id", "NEW.key, NEW.name, ''", "OLD.status, " FILE_REST)
    "CREATE TEMP TRIGGER hold_new AFTER INSERT ON main.hold "
    NOTE(5, "NEW.id", "COALESCE(NEW.tenant_id, 0)", "COALESCE(NEW.key, ''), '', ''", "NEW.scope")
    "CREATE TEMP TRIGGER hold_lifted AFTER UPDATE ON main.hold "
    NOTE(6, "NEW.id", "0", NO_TEXTS, "0")
    "CREATE TEMP TRIGGER tenant_moved AFTER UPDATE ON main.tenant "
    NOTE(7, "NEW.id", "NEW.id", NO_TEXTS, "OLD.used_bytes + OLD.reserved_bytes, NEW.used_bytes + NEW.reserved_bytes, COALESCE(NEW.limit_bytes, -1)")
    "CREATE TEMP TRIGGER txn_new AFTER INSERT ON main.txn "
    NOTE(8, "NEW.id", "NEW.tenant_id", NO_TEXTS, "NEW.state")
    "CREATE TEMP TRIGGER txn_moved AFTER UPDATE ON main.txn "
    NOTE(9, "NEW.id", "NEW.tenant_id", NO_TEXTS, "NEW.state")
    "CREATE TEMP TRIGGER mark_gone AFTER DELETE ON main.mark "
    NOTE(10, "OLD.id", "OLD.tenant_id", NO_TEXTS, "COALESCE(OLD.ended_at, 0)")
    "CREATE TEMP TRIGGER file_gone AFTER DELETE ON main.file "
    NOTE(11, "OLD.id", "OLD.tenant_id", NO_TEXTS, "OLD.changed_at")
    "CREATE TEMP TRIGGER txn_gone AFTER DELETE ON main.txn "
    NOTE(12, "OLD.id", "OLD.tenant_id", NO_TEXTS,
         "CASE WHEN OLD.state = 1 THEN OLD.ends_at ELSE MIN(OLD.changed_at, OLD.ends_at) END, OLD.state <> 1 AND OLD.changed_at < OLD.ends_at")
    "CREATE TEMP TRIGGER hold_gone AFTER DELETE ON main.hold "
    NOTE(13, "OLD.id", "0", NO_TEXTS, "COALESCE(OLD.lifted_at, 0)")
    "CREATE TEMP TRIGGER key_new AFTER INSERT ON main.idempotency "
    NOTE(14, "NEW.id", "0", NO_TEXTS, "0")
    "CREATE TEMP TRIGGER key_gone AFTER DELETE ON main.idempotency "
    NOTE(15, "OLD.id", "0", "OLD.key, '', ''", "0")
    "CREATE TEMP TRIGGER run_gone AFTER DELETE ON main.run "
    NOTE(16, "OLD.id", "0", NO_TEXTS, "OLD.started_at, OLD.open IS NULL")
    "CREATE TEMP TRIGGER confirmation_new AFTER INSERT ON main.confirmation "
    NOTE(17, "NEW.id", "0", "NEW.name, '', ''", "0, NEW.state, NEW.mark_id, NEW.ordinal, NEW.attempts, 0")
    "CREATE TEMP TRIGGER confirmation_moved AFTER UPDATE ON main.confirmation "
    NOTE(18, "NEW.id", "0", "NEW.name, '', ''", "OLD.state, NEW.state, NEW.mark_id, NEW.ordinal, NEW.attempts, COALESCE(NEW.asked_at, 0)");
/* clang-format on */

#define NUMBERS_MAX 13

struct row {
    int what;
    int64_t id, tenant_id, i[NUMBERS_MAX];
    char a[MODEL_KEY], b[MODEL_ETAG], c[MODEL_ETAG];
};

/* Of the one transaction that can be open: a node goes on to another only outside of its own. */
static struct {
    struct row at[ROWS_MAX];
    size_t n;
} rows;

static void text(char *to, size_t size, sqlite3_value *v)
{
    size_t n = (size_t)sqlite3_value_bytes(v);
    RP_ASSERT(n < size);
    if (n > 0) memcpy(to, sqlite3_value_text(v), n);
    to[n] = '\0';
}

static void note(sqlite3_context *context, int n, sqlite3_value **v)
{
    (void)context;
    RP_ASSERT(rows.n < ROWS_MAX && n > 6 && n <= 6 + NUMBERS_MAX);
    struct row *r = &rows.at[rows.n++];
    r->what = sqlite3_value_int(v[0]);
    r->id = sqlite3_value_int64(v[1]);
    r->tenant_id = sqlite3_value_int64(v[2]);
    text(r->a, sizeof r->a, v[3]);
    text(r->b, sizeof r->b, v[4]);
    text(r->c, sizeof r->c, v[5]);
    for (int i = 0; i < NUMBERS_MAX; i++)
        r->i[i] = i + 6 < n ? sqlite3_value_int64(v[i + 6]) : 0;
}

static int add_function(sqlite3 *db, char **error, const void *api)
{
    (void)error, (void)api;
    return sqlite3_create_function(db, "sim_note", -1, SQLITE_UTF8, NULL, note, NULL, NULL);
}

void sim_journal_prepare(void)
{
    int r = sqlite3_auto_extension((void (*)(void))add_function);
    RP_ASSERT(r == SQLITE_OK);
}

void sim_journal_make(struct sim *s)
{
    struct rp_error err = { 0 };
    int r = rp_db_script(s->inner, script, &err);
    if (r < 0) fprintf(stderr, "%s\n", err.text);
    RP_ASSERT(r == 0);
}

void sim_journal_begin(void)
{
    rows.n = 0;
}

static struct journal_mark mark_of(const struct row *r)
{
    return (struct journal_mark){ .id = r->id,
                                  .tenant_id = r->tenant_id,
                                  .file_id = r->i[7],
                                  .key = r->a,
                                  .etag = r->b,
                                  .version = r->c,
                                  .from = (int)r->i[0],
                                  .to = (int)r->i[1],
                                  .due_at_ms = r->i[2],
                                  .old_next_ms = r->i[3],
                                  .next_at_ms = r->i[4],
                                  .old_fence = r->i[5],
                                  .fence = r->i[6],
                                  .outcome = (int)r->i[8],
                                  .checks = (int)r->i[9],
                                  .was = (int)r->i[10],
                                  .leased = r->i[11] != 0,
                                  .in_place = r->i[12] != 0 };
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

static struct journal_confirmation confirmation_of(const struct row *r)
{
    return (struct journal_confirmation){ .id = r->id,
                                          .name = r->a,
                                          .from = (int)r->i[0],
                                          .to = (int)r->i[1],
                                          .mark_id = r->i[2],
                                          .ordinal = r->i[3],
                                          .attempts = r->i[4],
                                          .asked_at_ms = r->i[5] };
}

static void note_hold(struct sim *s, struct sim_node *n, const struct row *r)
{
    struct model *m = s->model;
    if (r->what == JOURNAL_HOLD_NEW) {
        n->kept = true;
        if (++n->holds_made > 1) sim_violate(s, "IDEMPOTENT", "one command placed two holds");
        RP_ASSERT(m->n_holds < MODEL_HOLDS_MAX);
        struct model_hold *h = &m->holds[m->n_holds++];
        *h = (struct model_hold){ .id = r->id, .tenant_id = r->tenant_id, .scope = (int)r->i[0] };
        memcpy(h->key, r->a, sizeof h->key);
        return;
    }
    for (size_t i = 0; i < m->n_holds; i++)
        if (m->holds[i].id == r->id) {
            m->holds[i].lifted = true;
            m->holds[i].over_least_ms = sim_boot_time_least_ms(s);
        }
}

static void tell(struct sim *s, struct sim_node *n, const struct row *r)
{
    struct journal_mark mark = mark_of(r);
    struct journal_file file = file_of(r);
    struct journal_tenant tenant = { r->id, r->i[0], r->i[1], r->i[2] };
    struct journal_confirmation confirmation = confirmation_of(r);
    struct journal_gone gone = { (enum journal_what)r->what, r->id, r->i[0], r->a, r->i[1] != 0 };
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
        sim_judge_txn(s, n, r->id, r->i[0], r->what == JOURNAL_TXN_NEW);
        break;
    case JOURNAL_CONFIRMATION_NEW:
        sim_judge_new_confirmation(s, n, &confirmation);
        break;
    case JOURNAL_CONFIRMATION:
        sim_judge_confirmation(s, n, &confirmation);
        break;
    case JOURNAL_KEY_NEW:
        sim_judge_new_key(s, r->id);
        break;
    default:
        sim_judge_let_go(s, n, &gone);
    }
}

bool sim_journal_is_empty(void)
{
    return rows.n == 0;
}

void sim_journal_read(struct sim *s, struct sim_node *n)
{
    for (size_t i = 0; i < rows.n; i++)
        tell(s, n, &rows.at[i]);
    if (rows.n > 0) sim_judge_commit(s, n);
    bool gone = false;
    for (size_t i = 0; i < rows.n; i++)
        gone = gone || rows.at[i].what == JOURNAL_MARK_GONE || rows.at[i].what == JOURNAL_FILE_GONE;
    if (gone) sim_judge_left(s);
    rows.n = 0;
}
