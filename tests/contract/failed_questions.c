/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/failed_calls.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/json.h"
#include "catalog/alert.h"
#include "catalog/mark/dead.h"
#include "catalog/metrics.h"
#include "catalog/node.h"
#include "catalog/writer/idempotency.h"
#include "core/check/references.h"
#include "core/explain.h"
#include "core/guarantee.h"
#include "core/hold.h"
#include "core/mark/list.h"
#include "core/quota.h"
#include "core/recover/recover.h"
#include "core/restore/restore.h"
#include "core/sweep/plan.h"
#include "lib/ask.h"
#include "lib/fault_db.h"

/* ---- questions about marks ---- */

static int tell_line(void *ctx, const struct rp_story_line *line, struct rp_error *e)
{
    (void)e;
    return say(ctx, "%s %s %s %s\n", line->event, line->actor, line->words, line->mark);
}

static int explain(struct asking *a, struct rp_error *e)
{
    struct rp_story_end end;
    int r = rp_explain(a->catalog, &a->w.store, "held/a", &a->arena, &(struct rp_story){ .fn = tell_line, .ctx = a },
                       &end, e);
    return r < 0 ? r : say(a, "%d %d %d %.30s", end.object, end.has_mark, end.held, end.words);
}

static int list_marks(struct asking *a, struct rp_error *e)
{
    struct rp_list_filter filters[] = { { .due_before_ms = -1 },
                                        { .store_id = a->w.store.id, .due_before_ms = -1, .reason = "why" },
                                        { .state = RP_PURGED, .due_before_ms = -1 },
                                        { .state = RP_DEAD, .due_before_ms = -1 } };
    int r = 0;
    for (size_t i = 0; i < 4 && r == 0; i++) {
        struct rp_list_cursor cursor = { 0 };
        struct rp_marks page;
        while (r == 0 && !cursor.done) {
            r = rp_marks_init(&page, 2, &a->arena, e);
            if (r == 0) r = rp_marks_list(a->catalog->db, &filters[i], &cursor, 3, &page, e);
            for (size_t k = 0; r == 0 && k < page.n; k++)
                r = say(a, "%zu %s\n", i, page.at[k].key);
        }
    }
    return r;
}

static int keep_mark(void *ctx, const struct rp_mark *mark, struct rp_error *e)
{
    struct asking *a = ctx;
    struct rp_mark copy;
    int r = rp_mark_copy(mark, &a->arena, &copy, e);
    return r < 0 ? r : say(a, "%s %s\n", copy.key, copy.reason);
}

static int undo(struct asking *a, struct rp_error *e)
{
    struct rp_restore_filter filters[] = {
        { .run_id = a->run_id, .since_ms = -1, .until_ms = -1 },
        { .store_id = a->w.store.id, .prefix = "held/", .since_ms = -1, .until_ms = -1 },
        { .reason = "why", .since_ms = -1, .until_ms = -1 },
        { .since_ms = 1, .until_ms = -1 },
    };
    int r = 0;
    for (size_t i = 0; i < 4 && r == 0; i++)
        r = rp_restore_each(a->catalog->db, &filters[i], keep_mark, a, e);
    return r;
}

static int foresee(struct asking *a, struct rp_error *e)
{
    struct rp_mark mark;
    struct rp_reprieve_answer answer;
    int r = rp_mark_get(a->catalog->db, a->aside_id, &a->arena, &mark, e);
    if (r == 0) r = rp_reprieve_foresee(a->catalog->db, &mark, "main", &a->arena, &answer, e);
    return r < 0 ? r : say(a, "%d %s", answer.what, answer.error.text);
}

static int count_marks(struct asking *a, struct rp_error *e)
{
    struct rp_overdue all, plain;
    struct rp_marks history;
    int64_t next = 0, named = 0, some = 0, dead = 0;
    int64_t far = RP_TIME_MAX_MS, store = a->w.store.id;
    struct rp_db *db = a->catalog->db;
    int r = rp_marks_overdue(db, store, far, &all, e);
    if (r == 0) r = rp_marks_overdue_plain(db, store, far, &plain, e);
    if (r == 0) r = rp_marks_next(db, store, false, &next, e);
    if (r == 0) r = rp_marks_next(db, store, true, &named, e);
    if (r == 0) r = rp_count_overdue(db, store, far, 100, &some, e);
    if (r == 0) r = rp_count_dead(db, 100, &dead, e);
    if (r == 0) r = rp_marks_init(&history, 10, &a->arena, e);
    if (r == 0) r = rp_marks_history(db, store, "held/a", &history, e);
    return r < 0 ? r
                 : say(a, "%" PRId64 " %" PRId64 " %d %d %" PRId64 " %" PRId64 " %zu", all.marks, plain.marks, next > 0,
                       named > 0, some, dead, history.n);
}

static int plan(void *ctx, const struct rp_store *store, const struct rp_mark *mark, struct rp_error *e)
{
    (void)e;
    return say(ctx, "%s:%s\n", store->config->name, mark->key);
}

static void make_sweeper(struct asking *a)
{
    a->sweeper = world_sweeper(&a->w, a->catalog, "main");
}

static int plan_sweep(struct asking *a, struct rp_error *e)
{
    int r = rp_plan_each(&a->sweeper, plan, a, e);
    return r < 0 ? r : rp_sweeper_may_purge(&a->sweeper.by, &a->w.store, e);
}

static int tell_dead(void *ctx, const struct rp_dead *dead, struct rp_error *e)
{
    (void)e;
    return say(ctx, "%" PRId64 " %s\n", dead->id, dead->error);
}

static int dead_letters(struct asking *a, struct rp_error *e)
{
    int r = rp_dead_each(a->catalog->db, 0, 10, tell_dead, a, e);
    return r < 0 ? r : rp_dead_get(a->catalog->db, a->dead_id, tell_dead, a, e);
}

/* ---- questions about the rest ---- */

static int list_holds(struct asking *a, struct rp_error *e)
{
    struct rp_hold_line *lines = NULL;
    size_t n = 0;
    int r = rp_holds_list(a->catalog->db, 0, 10, &a->arena, &lines, &n, e);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = say(a, "%s %s %s\n", lines[i].hold.reason, lines[i].hold.key != NULL ? lines[i].hold.key : "-",
                lines[i].tenant != NULL ? lines[i].tenant : "-");
    return r;
}

static int tell_run(void *ctx, const struct rp_run_row *row, struct rp_error *e)
{
    struct asking *a = ctx;
    RP_CLEANUP(rp_json_decrefp) json_t *body = rp_run_open_json(row, true, e);
    return body == NULL ? e->code : say(a, "%s %s\n", row->kind, row->name);
}

static int tell_record(void *ctx, const struct rp_record_row *row, struct rp_error *e)
{
    (void)e;
    return say(ctx, "%s %s\n", row->name, row->outcome);
}

static int tell_end(void *ctx, const char *kind, const char *name, int64_t at_ms, struct rp_error *e)
{
    (void)e, (void)at_ms;
    return say(ctx, "%s %s\n", kind, name);
}

static int runs(struct asking *a, struct rp_error *e)
{
    int r = rp_run_each_open(a->catalog->db, NULL, tell_run, a, e);
    if (r == 0) r = rp_record_each(a->catalog->db, INT64_MAX, 5, tell_record, a, e);
    if (r == 0) r = rp_record_get(a->catalog->db, a->run_id, tell_record, a, e);
    return r < 0 ? r : rp_run_each_end(a->catalog->db, 5, tell_end, a, e);
}

static int tell_alert(void *ctx, const struct rp_alert_row *row, struct rp_error *e)
{
    (void)e;
    return say(ctx, "%s %s\n", row->name, row->details);
}

static int tell_lock(void *ctx, const struct rp_held_lock *lock, struct rp_error *e)
{
    (void)e;
    return say(ctx, "%s %s\n", lock->name, lock->locked_by);
}

static int alerts(struct asking *a, struct rp_error *e)
{
    struct rp_db *db = a->catalog->db;
    struct rp_run_counts counts = { 0 };
    int64_t oldest = 0, last = 0, abandoned = 0;
    int r = rp_alert_each(db, tell_alert, a, e);
    if (r == 0) r = rp_figure_oldest_due(db, a->w.store.id, RP_TIME_MAX_MS, &oldest, e);
    if (r == 0) r = rp_figure_runs(db, 0, &counts, e);
    if (r == 0) r = rp_figure_last_run(db, &last, e);
    if (r == 0) r = rp_figure_last_run_of(db, "sweep", "main", &last, e);
    if (r == 0) r = rp_figure_abandoned(db, 0, 10, &abandoned, e);
    if (r == 0) r = rp_lock_each_held(db, NULL, tell_lock, a, e);
    if (r == 0) r = rp_lock_each_held(db, "sweep:open", tell_lock, a, e);
    return r < 0 ? r
                 : say(a, "%d %" PRId64 " %" PRId64 " %d %" PRId64, oldest > 0, counts.runs, counts.errors, last > 0,
                       abandoned);
}

static int tell_node(void *ctx, const char *name, int64_t seen_ms, struct rp_error *e)
{
    (void)e, (void)seen_ms;
    return say(ctx, "%s\n", name);
}

static int nodes(struct asking *a, struct rp_error *e)
{
    int64_t seen = 0;
    int r = rp_node_each(a->catalog->db, 10, tell_node, a, e);
    if (r == 0) r = rp_node_newest(a->catalog->db, &seen, e);
    return r < 0 ? r : say(a, "%d", seen > 0);
}

static int tell_token(void *ctx, const struct rp_token *token, struct rp_error *e)
{
    RP_CLEANUP(rp_json_decrefp) json_t *shown = rp_token_json(token);
    (void)e, (void)shown;
    return say(ctx, "%s %s\n", token->name, token->tenant);
}

static int tokens(struct asking *a, struct rp_error *e)
{
    struct rp_token token;
    bool any = false;
    int r = rp_token_list(a->catalog->db, 0, 3, 0, tell_token, a, e);
    if (r == 0) r = rp_token_any(a->catalog->db, &any, e);
    if (r == 0) r = rp_token_get(a->catalog->db, a->token_id, &token, e);
    if (r == 0) r = rp_token_find_by_hash(a->catalog->db, a->hash, &token, e);
    return r < 0 ? r : say(a, "%d %s", any, token.name);
}

static int tell_tenant(void *ctx, const struct rp_tenant *tenant, struct rp_error *e)
{
    (void)e;
    return say(ctx, "%s %" PRId64 "\n", tenant->name, tenant->used_bytes);
}

static int tenants(struct asking *a, struct rp_error *e)
{
    struct rp_tenant tenant;
    int r = rp_tenant_each(a->catalog->db, 0, 5, tell_tenant, a, e);
    if (r == 0) r = rp_tenant_find(a->catalog->db, "acme", &tenant, e);
    if (r == 0) r = rp_tenant_by_id(a->catalog->db, tenant.id, &tenant, e);
    return r < 0 ? r : say(a, "%s", tenant.name);
}

static int files(struct asking *a, struct rp_error *e)
{
    struct rp_files_query queries[] = { { .tenant_id = a->tenant_id, .deleted = true },
                                        { .tenant_id = a->tenant_id, .prefix = "p" },
                                        { .tenant_id = a->tenant_id, .status = RP_FILE_LIVE } };
    struct rp_files page;
    struct rp_file file;
    struct rp_mark mark;
    struct rp_txn txn;
    int r = 0;
    for (size_t i = 0; i < 3 && r == 0; i++) {
        r = rp_files_init(&page, 5, &a->arena, e);
        if (r == 0) r = rp_files_page(a->catalog->db, &queries[i], &page, e);
        for (size_t k = 0; r == 0 && k < page.n; k++)
            r = say(a, "%s %s\n", page.at[k].name, page.at[k].key);
    }
    if (r == 0) r = rp_file_get(a->catalog->db, a->file_id, &a->arena, &file, e);
    if (r == 0) r = rp_file_mark(a->catalog->db, a->file_id, &a->arena, &mark, e);
    if (r == 0) r = rp_txn_get(a->catalog->db, a->txn_id, &txn, e);
    if (r == 0) r = rp_files_init(&page, 5, &a->arena, e);
    if (r == 0) r = rp_files_members(a->catalog->db, a->txn_id, &page, e);
    return r < 0 ? r : say(a, "%s %s %d %zu", file.name, mark.key, txn.state, page.n);
}

static int see_file(struct asking *a, struct rp_error *e)
{
    uint8_t checksum[RP_DIGEST_BYTES] = { 1 };
    struct rp_file file;
    struct rp_seen seen = { 0 };
    int r = rp_file_get(a->catalog->db, a->file_id, &a->arena, &file, e);
    if (r == 0) r = rp_file_see(&file, &a->w.store, checksum, &seen, e);
    return r < 0 ? r : say(a, "%d %d %d", seen.outcome, seen.checked, seen.checksum_fits);
}

static int count_tally(void *ctx, const struct rp_tally_row *row, struct rp_error *e)
{
    (void)row, (void)e;
    (*(size_t *)ctx)++;
    return 0;
}

static int facts(struct asking *a, struct rp_error *e)
{
    struct rp_store_rows stores;
    struct rp_store_row main;
    size_t n_tallies = 0;
    int64_t epoch = 0;
    int r = rp_store_list(a->catalog->db, &a->arena, &stores, e);
    if (r == 0) r = rp_store_find(a->catalog->db, "main", &main, e);
    if (r == 0) r = rp_tally_each(a->catalog->db, count_tally, &n_tallies, e);
    if (r == 0) r = rp_meta_get(a->catalog->db, "epoch", &epoch, NULL, 0, e);
    return r < 0 ? r : say(a, "%zu %zu %" PRId64, stores.n, n_tallies, epoch);
}

static int tell_audit(void *ctx, const struct rp_audit_row *row, struct rp_error *e)
{
    (void)e;
    return say(ctx, "%s %s\n", row->event, row->details != NULL ? "details" : "-");
}

static int audit(struct asking *a, struct rp_error *e)
{
    struct rp_audit_head heads[16];
    int64_t lanes[16];
    size_t n_heads = 0, n_lanes = 0, n = 0;
    struct rp_db *db = a->catalog->db;
    int r = rp_audit_of_mark(db, a->mark_id, tell_audit, a, e);
    if (r == 0) r = rp_audit_lane(db, 0, 0, tell_audit, a, e);
    if (r == 0) r = rp_audit_tail(db, 0, 0, 3, tell_audit, a, &n, e);
    if (r == 0) r = rp_audit_heads(db, heads, 16, &n_heads, e);
    if (r == 0) r = rp_audit_lanes(db, lanes, 16, &n_lanes, e);
    return r < 0 ? r : say(a, "%zu %zu %zu", n, n_heads, n_lanes);
}

static int verify(struct asking *a, struct rp_error *e)
{
    struct rp_audit_verdict verdict;
    int r = rp_audit_verify(a->catalog, &verdict, e);
    return r < 0 ? r : say(a, "%d %" PRId64 " %zu", verdict.broken, verdict.rows, verdict.lanes);
}

static int owner(struct asking *a, struct rp_error *e)
{
    struct rp_recovery recovery;
    int r = rp_owner_check(a->catalog, &a->w.store, e);
    if (r == 0) r = rp_owner_recover(a->catalog, &a->w.store, "test", "tester", true, &recovery, e);
    return r < 0 ? r
                 : say(a, "%d %" PRId64 " %" PRId64 " %" PRId64, recovery.before.ownership, recovery.waiting,
                       recovery.present, recovery.missing);
}

static int tell_quota(void *ctx, const struct rp_tenant *counted, const struct rp_tenant *summed, struct rp_error *e)
{
    (void)e, (void)summed;
    return say(ctx, "%s\n", counted->name);
}

static int prove_quota(struct asking *a, struct rp_error *e)
{
    struct rp_quota_check check;
    int r = ask_proof(a->catalog, false, tell_quota, a, &check, e);
    return r < 0 ? r : say(a, "%" PRId64 " %" PRId64, check.tenants, check.wrong);
}

static int find_keys(struct asking *a, struct rp_error *e)
{
    struct rp_saved kept = { .tenant_id = a->tenant_id, .key = "kept", .digest = a->hash };
    kept.hash = rp_key_hash(kept.tenant_id, kept.key);
    int r = rp_keys_find(a->catalog->db, &kept, 1, &a->arena, e);
    return r < 0 ? r : say(a, "%d %d %s", kept.found, kept.code, kept.found ? kept.answer : "-");
}

static int ask_guard(struct asking *a, struct rp_error *e)
{
    const char *keys[] = { "held/a", "nobody" };
    struct rp_referenced found[2] = { 0 };
    struct rp_references *guard = NULL;
    int r = rp_references_new(&a->whole, &a->w.config, &guard, e);
    if (r == 0) r = rp_references_check(guard, e);
    if (r == 0) r = rp_references_count(guard, keys, 2, found, e);
    rp_references_free(guard);
    if (r == 0 && found[1].rows < 0) r = RP_EUNAVAILABLE; /* what one place names is known all the same */
    return r < 0 ? r : say(a, "%" PRId64 " %" PRId64, found[0].rows, found[1].rows);
}

static int load_guarantee(struct asking *a, struct rp_error *e)
{
    struct rp_store store = a->w.store;
    store.guarantee = rp_guarantee_new(RP_LEVEL_WINDOW, false);
    if (store.guarantee == NULL) return rp_error_set(e, RP_ENOMEM, "no memory for a guarantee");
    int r = rp_guarantee_load(a->catalog->db, &store, e);
    if (r == 0) r = say(a, "%d %d", rp_store_level(&store), rp_guarantee_changed_at_ms(&store) > 0);
    rp_guarantee_free(store.guarantee);
    return r;
}

static int open_catalog(struct asking *a, struct rp_error *e)
{
    struct rp_db_fault fault = { .before = half_before_db, .ctx = a };
    struct rp_db_options options = { .clock = &a->w.db_clock };
    struct rp_catalog_options as = { .clock = &a->w.host_clock, .lane = 2 };
    struct rp_db *db = NULL;
    struct rp_catalog *catalog = NULL;
    int r = rp_db_open(a->w.dbs.url, &options, &db, e);
    if (r == 0 && (r = rp_db_fault_wrap(db, &fault, &db, e)) < 0) rp_db_close(db);
    if (r == 0) r = rp_catalog_adopt(db, &as, &catalog, e);
    if (r == 0) r = say(a, "%s", catalog->id);
    rp_catalog_close(catalog);
    return r;
}

const struct question failed_questions[] = {
    { .name = "explain", .ask = explain },
    { .name = "list marks", .ask = list_marks },
    { .name = "undo", .ask = undo },
    { .name = "foresee", .ask = foresee },
    { .name = "count marks", .ask = count_marks },
    { .name = "plan a sweep", .ask = plan_sweep, .prepare = make_sweeper },
    { .name = "dead letters", .ask = dead_letters },
    { .name = "list holds", .ask = list_holds },
    { .name = "runs", .ask = runs },
    { .name = "alerts", .ask = alerts },
    { .name = "nodes", .ask = nodes },
    { .name = "tokens", .ask = tokens },
    { .name = "tenants", .ask = tenants },
    { .name = "files", .ask = files },
    { .name = "see a file", .ask = see_file },
    { .name = "facts", .ask = facts },
    { .name = "audit rows", .ask = audit },
    { .name = "verify the audit log", .ask = verify },
    { .name = "whose store", .ask = owner },
    { .name = "prove the quota", .ask = prove_quota },
    { .name = "find kept answers", .ask = find_keys },
    { .name = "ask a guard", .ask = ask_guard, .says = RP_ECONFIG, .or_says = RP_EUNAVAILABLE },
    { .name = "load a guarantee", .ask = load_guarantee },
    { .name = "open the catalog", .ask = open_catalog },
};
const size_t failed_questions_n = sizeof failed_questions / sizeof failed_questions[0];
