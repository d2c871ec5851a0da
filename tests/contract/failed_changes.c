/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "contract/failed_calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "catalog/alert.h"
#include "catalog/node.h"
#include "catalog/retention.h"
#include "catalog/writer/idempotency.h"
#include "core/guarantee.h"
#include "core/hold.h"
#include "core/mark/import.h"
#include "core/quota.h"
#include "lib/ask.h"

static struct rp_error err;

/* ---- changes; each is a new one, so that what was done before is not in its way ---- */

static int change_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct asking *a = ctx;
    struct rp_token token = {
        .kind = RP_TOKEN_LINK, .scopes = 1, .tenant_id = a->tenant_id, .expires_at_ms = tx->late_ms + 1000
    };
    struct rp_token session = { 0 }, revoked;
    snprintf(token.name, sizeof token.name, "%s", a->name);
    int r = rp_token_create(tx, &token, a->link, "tester", e);
    if (r == 0) r = rp_token_use_link(tx, a->link, a->secret, &session, e);
    return r < 0 ? r : rp_token_revoke(tx, session.id, "tester", &revoked, e);
}

static int change_tokens(struct asking *a, struct rp_error *e)
{
    return rp_catalog_transact(a->catalog, change_tx, a, e);
}

int half_node_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct asking *a = ctx;
    int64_t last = 0;
    bool mine = false;
    int r = rp_node_seen(tx, a->name, 1, e);
    if (r == 0) r = rp_schedule_last(tx, a->name, &last, e);
    if (r == 0) r = rp_schedule_take(tx, a->name, last, last + 1, &mine, e);
    if (r == 0) r = rp_node_forget(tx, 1, e);
    return r < 0 ? r : mine ? 0 : rp_error_set(e, RP_EFAILED, "the tick was not taken");
}

static int change_nodes(struct asking *a, struct rp_error *e)
{
    return rp_catalog_transact(a->catalog, half_node_tx, a, e);
}

int half_alert_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct asking *a = ctx;
    struct rp_alert_row row = { .raised_at_ms = tx->late_ms };
    bool raised = false, again = true, cleared = false, mine = false;
    snprintf(row.name, sizeof row.name, "%.40s", a->name);
    int r = rp_alert_raise(tx, row.name, "warning", "{}", &raised, e);
    if (r == 0) r = rp_alert_raise(tx, row.name, "warning", "{}", &again, e);
    if (r == 0) r = rp_alert_try(tx, &row, &mine, e);
    row.tries = 1;
    if (r == 0) r = rp_alert_told(tx, &row, e);
    if (r == 0) r = rp_alert_clear(tx, row.name, "{}", &cleared, e);
    if (r < 0) return r;
    return raised && !again && cleared && mine ? 0 : rp_error_set(e, RP_EFAILED, "an alert is not as it should be");
}

static int change_alerts(struct asking *a, struct rp_error *e)
{
    return rp_catalog_transact(a->catalog, half_alert_tx, a, e);
}

static int change_quota(struct asking *a, struct rp_error *e)
{
    return ask_quota(a->catalog, "acme", 1000 + a->number, "tester", e);
}

static void spoil_quota(struct asking *a)
{
    world_script(&a->w, "UPDATE tenant SET used_bytes = used_bytes + 7 WHERE name = 'acme'");
}

static int repair_quota(struct asking *a, struct rp_error *e)
{
    struct rp_quota_check check;
    int r = ask_proof(a->catalog, true, NULL, NULL, &check, e);
    return r < 0 ? r : check.wrong == 1 ? 0 : rp_error_set(e, RP_EFAILED, "%d wrong", (int)check.wrong);
}

int half_keys_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct asking *a = ctx;
    int64_t forgotten = 0;
    struct rp_saved kept = {
        .tenant_id = a->tenant_id, .key = a->name, .digest = a->hash, .status = 200, .answer = "ok"
    };
    kept.hash = rp_key_hash(kept.tenant_id, kept.key);
    int r = rp_keys_save(tx, &kept, 1, e);
    struct rp_old_query old = { .kind = RP_OLD_KEYS };
    return r < 0 ? r : rp_old_remove(tx, &old, &(struct rp_ids){ .at = &kept.hash, .n = 1 }, &forgotten, e);
}

static int change_keys(struct asking *a, struct rp_error *e)
{
    return rp_catalog_transact(a->catalog, half_keys_tx, a, e);
}

static int change_holds(struct asking *a, struct rp_error *e)
{
    struct rp_hold_command request = {
        .scope = RP_SCOPE_TENANT, .tenant = "acme", .reason = a->name, .command.actor = "tester"
    };
    return ask_hold(a->catalog, &request, &a->arena, e);
}

void half_pause(struct asking *a)
{
    struct rp_hold_command request = { .scope = RP_SCOPE_EVERYTHING, .reason = "pause", .command.actor = "tester" };
    if (world_number(&a->w, "SELECT count(*) FROM hold WHERE scope = 4 AND lifted_at IS NULL") > 0) return;
    ok(ask_hold(a->w.catalog, &request, &a->w.arena, &err));
}

static int resume(struct asking *a, struct rp_error *e)
{
    int64_t lifted = 0;
    int r = ask_resume(a->catalog, "tester", &lifted, e);
    return r < 0 ? r : lifted > 0 ? 0 : rp_error_set(e, RP_EFAILED, "nothing was lifted");
}

static void leave_run(struct asking *a)
{
    struct rp_run run;
    ok(rp_run_begin(a->w.catalog, "sweep", a->name, &a->w.worker, 1, &run, &err));
    world_script(&a->w, "UPDATE run_lock SET locked_at = locked_at - 100000 WHERE name = 'sweep:%s'", a->name);
}

static int bury(struct asking *a, struct rp_error *e)
{
    bool buried = false;
    int r = rp_run_bury(a->catalog, "sweep", a->name, &a->w.worker, 1000, &buried, e);
    return r < 0 ? r : buried ? 0 : rp_error_set(e, RP_EFAILED, "it was not buried");
}

static int take_over(struct asking *a, struct rp_error *e)
{
    struct rp_run run;
    return rp_run_begin(a->catalog, "sweep", a->name, &a->w.worker, 1000, &run, e);
}

static void annotate(struct asking *a)
{
    const struct rp_pair fields[] = { { "marked_for_deletion", "true" } };
    struct rp_item item = { .key = a->name };
    world_put(&a->w, a->name, "bytes");
    ok(rp_backend_stat(a->w.inner, &item, 1, &err));
    ok(rp_backend_annotate(a->w.inner, a->name, &item.identity, fields, 1, &err));
}

static int import_marks(struct asking *a, struct rp_error *e)
{
    RP_CLEANUP(rp_import_end)
    struct rp_import import = { .store = &a->w.store, .prefix = a->name, .actor = "tester", .limit = 0 };
    int r = rp_import_begin(&import, e);
    if (r == 0) r = 1;
    while (r == 1)
        r = rp_import_next(&import, a->catalog, e);
    if (r == 0 && import.counts.marked != 1) r = rp_error_set(e, RP_EPARTLY, "not all are marked");
    return r;
}

static int note_changed_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct asking *a = ctx;
    return rp_guarantee_note_changed(tx, &a->w.store, a->name, "tester", e);
}

static void forget_changed(struct asking *a)
{
    world_script(&a->w, "DELETE FROM meta WHERE name LIKE 'keys_changed:%%'");
}

static int note_changed(struct asking *a, struct rp_error *e)
{
    a->w.config.keys = RP_KEYS_WRITE_ONCE;
    int r = rp_catalog_transact(a->catalog, note_changed_tx, a, e);
    a->w.config.keys = RP_KEYS_REUSED;
    return r;
}

static int erase_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    (void)ctx;
    return rp_audit_erase(tx, 0, 1, e);
}

static int erase_details(struct asking *a, struct rp_error *e)
{
    return rp_catalog_transact(a->catalog, erase_tx, NULL, e);
}

static int note_store(struct asking *a, struct rp_error *e)
{
    struct rp_store_row row;
    int r = rp_store_get(a->catalog, RP_STORE_STORE, a->name, &row, e);
    return r < 0 ? r : say(a, "%s", strcmp(row.name, a->name) == 0 ? "noted" : row.name);
}

/* ---- two commands in one transaction ---- */

static int batch_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct asking *a = ctx;
    return a->batch[0]->verb->run(tx, a->batch, 2, e);
}

static int run_batch(struct asking *a, struct rp_error *e)
{
    int r = rp_catalog_transact(a->catalog, batch_tx, a, e);
    for (size_t i = 0; r == 0 && i < 2; i++)
        if (a->batch[i]->error.code < 0) r = rp_error_set(e, a->batch[i]->error.code, "%s", a->batch[i]->error.text);
    return r;
}

static const char *name_of(struct asking *a, const char *what)
{
    char *name = rp_arena_alloc(&a->w.arena, 80);
    assert_non_null(name);
    snprintf(name, 80, "%s of %s", what, a->name);
    return name;
}

static void with_files(struct asking *a, const struct rp_verb *verb, int64_t one, int64_t two)
{
    a->files[0] = uploads_command(&a->w, verb, one);
    a->files[1] = uploads_command(&a->w, verb, two);
    for (size_t i = 0; i < 2; i++) {
        a->files[i].grace_ms = verb == &rp_verb_delete ? 2 * RP_DAY_MS : -1;
        a->batch[i] = &a->files[i].command;
    }
}

static void two_inits(struct asking *a)
{
    int64_t parent = uploads_live(&a->w, name_of(a, "parent"), "bytes");
    for (size_t i = 0; i < 2; i++) {
        a->inits[i] = uploads_init(&a->w, name_of(a, i == 0 ? "one" : "two"), 5);
        a->inits[i].metadata = "{\"a\":1}";
        a->batch[i] = &a->inits[i].command;
    }
    a->inits[0].parent_id = parent;
    a->inits[1].txn_id = uploads_txn_begin(&a->w);
    a->inits[1].replaces_id = parent;
}

static void two_confirms(struct asking *a)
{
    struct world *w = &a->w;
    (void)uploads_live(w, name_of(a, "one"), "older"); /* which the first one replaces */
    int64_t ids[] = { uploads_begin(w, name_of(a, "one"), "bytes"), uploads_begin(w, name_of(a, "two"), "bytes") };
    with_files(a, &rp_verb_confirm, ids[0], ids[1]);
    for (size_t i = 0; i < 2; i++) {
        struct rp_file file = uploads_file(w, ids[i]);
        uploads_put(w, ids[i], "bytes");
        ok(rp_file_see(&file, &w->store, NULL, &a->files[i].seen, &err));
    }
}

/* The child comes first: it waits for its parent. */
static void child_and_parent(struct asking *a)
{
    struct world *w = &a->w;
    struct rp_init child = uploads_init(w, name_of(a, "child"), 5);
    child.parent_id = uploads_begin(w, name_of(a, "parent"), "bytes");
    world_ok(rp_command_run(w->catalog, &child.command), &child.command.error, __FILE__, __LINE__);
    with_files(a, &rp_verb_confirm, child.file_id, child.parent_id);
    for (size_t i = 0; i < 2; i++) {
        struct rp_file file = uploads_file(w, a->files[i].file_id);
        uploads_put(w, file.id, "bytes");
        ok(rp_file_see(&file, &w->store, NULL, &a->files[i].seen, &err));
    }
}

static void child_and_parent_deleted(struct asking *a)
{
    struct rp_file_command done;
    int64_t parent = uploads_live(&a->w, name_of(a, "parent"), "bytes");
    int64_t child = uploads_child(&a->w, name_of(a, "child"), parent, 0);
    assert_int_equal(uploads_delete(&a->w, parent, RP_DAY_MS, &done), 0);
    with_files(a, &rp_verb_file_restore, child, parent);
}

static void two_families(struct asking *a)
{
    int64_t one = uploads_live(&a->w, name_of(a, "one"), "bytes");
    int64_t two = uploads_live(&a->w, name_of(a, "two"), "bytes");
    (void)uploads_child(&a->w, name_of(a, "child"), one, 0);
    (void)uploads_child(&a->w, name_of(a, "derivative"), 0, two);
    with_files(a, &rp_verb_delete, one, two);
}

static void two_deleted(struct asking *a)
{
    struct rp_file_command done;
    two_families(a);
    int64_t one = a->files[0].file_id, two = a->files[1].file_id;
    assert_int_equal(uploads_delete(&a->w, one, RP_DAY_MS, &done), 0);
    assert_int_equal(uploads_delete(&a->w, two, RP_DAY_MS, &done), 0);
}

static void two_extended(struct asking *a)
{
    two_deleted(a);
    with_files(a, &rp_verb_delete, a->files[0].file_id, a->files[1].file_id);
}

static void two_restored(struct asking *a)
{
    two_deleted(a);
    with_files(a, &rp_verb_file_restore, a->files[0].file_id, a->files[1].file_id);
}

/* One is accepted, the other rejected. */
static void two_results(struct asking *a)
{
    a->w.uploads.scan = true;
    int64_t one = uploads_live(&a->w, name_of(a, "one"), "bytes");
    int64_t two = uploads_live(&a->w, name_of(a, "two"), "bytes");
    a->w.uploads.scan = false;
    with_files(a, &rp_verb_result, one, two);
    for (size_t i = 0; i < 2; i++)
        a->files[i].process_key = uploads_file(&a->w, a->files[i].file_id).process_key;
    a->files[0].accept = true;
}

static void with_txns(struct asking *a, const struct rp_verb *verb)
{
    for (size_t i = 0; i < 2; i++) {
        int64_t replaced = uploads_live(&a->w, name_of(a, i == 0 ? "old one" : "old two"), "bytes");
        int64_t txn = uploads_txn_begin(&a->w);
        (void)uploads_member(&a->w, txn, name_of(a, i == 0 ? "one" : "two"), "bytes", replaced);
        (void)uploads_member(&a->w, txn, name_of(a, i == 0 ? "three" : "four"), "bytes", 0);
        a->txns[i] = uploads_txn(&a->w, verb, txn);
        if (verb == &rp_verb_txn_commit) uploads_see(&a->w, &a->txns[i]);
        a->batch[i] = &a->txns[i].command;
    }
}

static void two_begins(struct asking *a)
{
    for (size_t i = 0; i < 2; i++) {
        a->txns[i] = uploads_txn(&a->w, &rp_verb_txn_begin, 0);
        a->batch[i] = &a->txns[i].command;
    }
}

static void two_commits(struct asking *a)
{
    with_txns(a, &rp_verb_txn_commit);
}

static void two_aborts(struct asking *a)
{
    with_txns(a, &rp_verb_txn_abort);
}

/* ---- marks ---- */

static void two_objects(struct asking *a)
{
    world_put(&a->w, name_of(a, "one"), "bytes");
    world_put(&a->w, name_of(a, "two"), "bytes");
}

static int mark_two(struct asking *a, struct rp_error *e)
{
    char names[2][80];
    struct rp_mark_request requests[2];
    struct rp_mark_answer answers[2];
    for (size_t i = 0; i < 2; i++) {
        snprintf(names[i], sizeof names[i], "%s of %s", i == 0 ? "one" : "two", a->name);
        requests[i] = (struct rp_mark_request){ .key = names[i], .grace_ms = -1, .at_ms = -1, .reason = "why" };
    }
    int r = rp_mark_many(a->catalog, &a->w.store, requests, 2, "tester", false, answers, e);
    for (size_t i = 0; r == 0 && i < 2; i++)
        if (answers[i].what != RP_MARK_CREATED) r = rp_error_set(e, answers[i].error.code, "%s", answers[i].error.text);
    return r;
}

static void two_marked(struct asking *a)
{
    two_objects(a);
    (void)world_mark(&a->w, name_of(a, "one"), RP_DAY_MS);
    (void)world_mark(&a->w, name_of(a, "two"), RP_DAY_MS);
}

static int restore_two(struct asking *a, struct rp_error *e)
{
    struct rp_mark marks[2];
    struct rp_reprieve_answer answers[2];
    char name[80];
    int r = 0;
    for (size_t i = 0; r == 0 && i < 2; i++) {
        snprintf(name, sizeof name, "%s of %s", i == 0 ? "one" : "two", a->name);
        r = ask_newest(a->catalog, &a->w.store, name, &a->arena, &marks[i], e);
    }
    if (r == 0) r = rp_reprieve_many(a->catalog, &a->w.store, marks, 2, "tester", answers, e);
    for (size_t i = 0; r == 0 && i < 2; i++)
        if (answers[i].what == RP_REPRIEVE_REFUSED)
            r = rp_error_set(e, answers[i].error.code, "%s", answers[i].error.text);
    return r;
}

/* ---- quarantine, writers ---- */

static void sweep_into_quarantine(struct asking *a)
{
    world_pass(&a->w, 2 * RP_DAY_MS);
    a->w.config.mode = RP_MODE_QUARANTINE;
    (void)world_sweep(&a->w);
    a->w.config.mode = RP_MODE_PURGE;
}

static void object_in_quarantine(struct asking *a)
{
    world_put(&a->w, a->name, "bytes");
    a->mark_id = world_mark(&a->w, a->name, RP_DAY_MS).mark_id;
    sweep_into_quarantine(a);
}

/* As after a restore that ended right after its copy. */
static void an_object_at_its_key(struct asking *a)
{
    object_in_quarantine(a);
    world_put(&a->w, a->name, "bytes");
}

static void file_in_quarantine(struct asking *a)
{
    struct rp_file_command done;
    int64_t id = uploads_live(&a->w, a->name, "bytes");
    assert_int_equal(uploads_delete(&a->w, id, RP_DAY_MS, &done), 0);
    a->mark_id = uploads_file(&a->w, id).mark_id;
    sweep_into_quarantine(a);
}

static int return_it(struct asking *a, struct rp_error *e)
{
    struct rp_mark mark;
    struct rp_reprieve_answer answer;
    int r = rp_mark_get(a->catalog->db, a->mark_id, &a->arena, &mark, e);
    if (r == 0) r = rp_reprieve_many(a->catalog, &a->w.store, &mark, 1, "tester", &answer, e);
    if (r == 0 && answer.what == RP_REPRIEVE_REFUSED) r = rp_error_set(e, answer.error.code, "%s", answer.error.text);
    return r;
}

static int run_writers(struct asking *a, struct rp_error *e)
{
    struct rp_writers_options options = {
        .url = a->w.dbs.url, .clock = &a->w.host_clock, .n = 1, .first_lane = 3, .queue_max = 10
    };
    struct rp_writers *writers = NULL;
    int r = rp_writers_start(&options, &writers, e);
    if (r == 0) rp_writers_stop(writers);
    return r;
}

const struct question failed_changes[] = {
    { .name = "begin two uploads", .ask = run_batch, .prepare = two_inits },
    { .name = "confirm two", .ask = run_batch, .prepare = two_confirms },
    { .name = "confirm a child and its parent", .ask = run_batch, .prepare = child_and_parent },
    { .name = "restore a child and its parent", .ask = run_batch, .prepare = child_and_parent_deleted },
    { .name = "delete two families", .ask = run_batch, .prepare = two_families },
    { .name = "give two families more time", .ask = run_batch, .prepare = two_extended },
    { .name = "restore two families", .ask = run_batch, .prepare = two_restored },
    { .name = "two results", .ask = run_batch, .prepare = two_results },
    { .name = "begin two transactions", .ask = run_batch, .prepare = two_begins },
    { .name = "commit two transactions", .ask = run_batch, .prepare = two_commits },
    { .name = "abort two transactions", .ask = run_batch, .prepare = two_aborts },
    { .name = "mark two", .ask = mark_two, .prepare = two_objects, .steps = true },
    { .name = "restore two", .ask = restore_two, .prepare = two_marked, .steps = true },
    { .name = "return an object from quarantine", .ask = return_it, .prepare = object_in_quarantine, .steps = true },
    { .name = "return what stands already",
      .ask = return_it,
      .prepare = an_object_at_its_key,
      .steps = true,
      .says = RP_EEXISTS },
    { .name = "return a file from quarantine", .ask = return_it, .prepare = file_in_quarantine, .steps = true },
    { .name = "start and stop the writers", .ask = run_writers, .steps = true },
    { .name = "make, use and revoke tokens", .ask = change_tokens },
    { .name = "signs of life and ticks", .ask = change_nodes },
    { .name = "raise and clear an alert", .ask = change_alerts },
    { .name = "repair a quota", .ask = repair_quota, .prepare = spoil_quota },
    { .name = "keep answers", .ask = change_keys },
    { .name = "hold a tenant", .ask = change_holds },
    { .name = "resume", .ask = resume, .prepare = half_pause },
    { .name = "bury a run", .ask = bury, .prepare = leave_run },
    { .name = "take a run over", .ask = take_over, .prepare = leave_run },
    { .name = "import", .ask = import_marks, .prepare = annotate, .steps = true, .says = RP_EPARTLY },
    { .name = "note that keys change", .ask = note_changed, .prepare = forget_changed },
    { .name = "erase details", .ask = erase_details },
    { .name = "note a store", .ask = note_store, .steps = true },
    { .name = "set a quota", .ask = change_quota },
};
const size_t failed_changes_n = sizeof failed_changes / sizeof failed_changes[0];
