/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/answer.h"

#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/json.h"
#include "catalog/audit/segment.h"
#include "core/retention/retention.h"
#include "core/run/run.h"
#include "core/safety_net/safety_net.h"
#include "core/state.h"
#include "lib/session.h"

#include <inttypes.h>
#include <string.h>

json_t *rp_error_json(const struct rp_error *err)
{
    json_t *o = rp_json_object("code", json_string(rp_error_slug(err->code)), "message", rp_json_text(err->text), NULL);
    if (err->hint[0] != 0) rp_json_set(o, "hint", rp_json_text(err->hint));
    return o;
}

/* ---- marks and restores ---- */

json_t *rp_mark_answer_json(const struct rp_mark_answer *a, const char *store, const char *key)
{
    static const char *const outcomes[] = { [RP_MARK_REFUSED] = "refused",
                                            [RP_MARK_SAME] = "same",
                                            [RP_MARK_EXTENDED] = "extended",
                                            [RP_MARK_CREATED] = "created",
                                            [RP_MARK_REPLACED] = "created" };
    char id[RP_ID_TEXT];
    json_t *o = rp_json_object("subject", rp_subject_json(store, key), "outcome", json_string(outcomes[a->what]), NULL);
    if (a->what == RP_MARK_REFUSED) {
        rp_json_set(o, "error", rp_error_json(&a->error));
        if (a->references > 0) rp_json_set(o, "references", json_integer(a->references));
        return o;
    }
    rp_json_set(o, "mark", json_string(rp_id_format(RP_ID_MARK, a->mark_id, id)));
    rp_json_set(o, "marked_at", rp_json_time(a->marked_at_ms));
    rp_json_set(o, "due_at", rp_json_time(a->due_at_ms));
    rp_json_set(o, "reason", rp_json_text(a->reason));
    rp_json_set(o, "size", json_integer(a->size_bytes));
    if (a->annotated) rp_json_set(o, "annotated", json_true());
    if (a->asked_now) rp_json_set(o, "restorable", json_false());
    if (a->annotate_note[0] != 0) rp_json_set(o, "annotation_failed", rp_json_text(a->annotate_note));
    return o;
}

json_t *rp_reprieve_answer_json(const struct rp_reprieve_answer *answer, const struct rp_mark *mark, const char *store,
                                bool dry_run)
{
    static const char *const outcomes[] = { [RP_REPRIEVE_REFUSED] = "refused",
                                            [RP_REPRIEVE_DONE] = "restored",
                                            [RP_REPRIEVE_ALREADY] = "already_restored",
                                            [RP_REPRIEVE_RETURNED] = "returned" };
    json_t *o = rp_mark_json(mark, store);
    rp_json_set(o, "outcome", json_string(outcomes[answer->what]));
    if (dry_run) rp_json_set(o, "dry_run", json_true());
    if (answer->what == RP_REPRIEVE_REFUSED) rp_json_set(o, "error", rp_error_json(&answer->error));
    if (answer->annotate_note[0] != 0) rp_json_set(o, "annotation_failed", rp_json_text(answer->annotate_note));
    if (answer->agreed != NULL) rp_json_set(o, "deleted_already_by", rp_json_text(answer->agreed));
    return o;
}

/* ---- what a person decides about ---- */

json_t *rp_dead_json(const struct rp_dead *dead, const struct rp_mark *mark, const char *store)
{
    char id[RP_ID_TEXT];
    json_t *o = json_object();
    rp_json_set(o, "id", json_string(rp_id_format(RP_ID_DEAD, dead->id, id)));
    rp_json_set(o, "died_at", rp_json_time(dead->died_at_ms));
    rp_json_set(o, "from", json_string(rp_state_name(dead->from_state)));
    rp_json_set(o, "attempts", json_integer(dead->attempts));
    rp_json_set(o, "error", rp_json_text(dead->error));
    rp_json_set(o, "mark", rp_mark_line(mark, store));
    return o;
}

json_t *rp_decided_json(const struct rp_dead_item *item, const char *store)
{
    json_t *o = rp_dead_json(&item->letter, &item->mark, store);
    rp_json_set(o, "state", json_string(rp_state_name(item->as)));
    if (item->annotate_note[0] != 0) rp_json_set(o, "annotation_failed", rp_json_text(item->annotate_note));
    return o;
}

json_t *rp_hold_json(const struct rp_hold *hold, const char *scope)
{
    char id[RP_ID_TEXT];
    json_t *o = json_object();
    rp_json_set(o, "id", json_string(rp_id_format(RP_ID_HOLD, hold->id, id)));
    rp_json_set(o, "scope", rp_json_text(scope));
    rp_json_set(o, "reason", rp_json_text(hold->reason));
    rp_json_set(o, "actor", rp_json_text(hold->actor));
    rp_json_set(o, "placed_at", rp_json_time(hold->placed_at_ms));
    return o;
}

json_t *rp_placed_json(const struct rp_hold_command *c, const char *scope, rp_store_name_fn *name_of, void *ctx)
{
    struct rp_hold hold = {
        .id = c->id, .reason = c->reason, .actor = c->command.actor, .placed_at_ms = c->placed_at_ms
    };
    json_t *o = rp_hold_json(&hold, scope), *claimed = json_array();
    for (size_t i = 0; i < c->claimed.n; i++)
        rp_json_append(claimed, rp_mark_line(&c->claimed.at[i], name_of(ctx, c->claimed.at[i].store_id)));
    rp_json_set(o, "claimed", claimed);
    rp_json_set(o, "claimed_total", json_integer(c->claimed_total));
    return o;
}

json_t *rp_lifted_json(int64_t hold_id)
{
    char id[RP_ID_TEXT];
    return json_pack("{s:s,s:b}", "id", rp_id_format(RP_ID_HOLD, hold_id, id), "lifted", 1);
}

/* ---- the audit log ---- */

json_t *rp_audit_json(const struct rp_audit_row *row)
{
    struct rp_error ignored = { 0 };
    char id[RP_ID_TEXT], hex[RP_DIGEST_HEX];
    json_t *o = json_object(), *details = NULL;
    rp_json_set(o, "lane", json_integer(row->lane));
    rp_json_set(o, "seq", json_integer(row->seq));
    rp_json_set(o, "at", rp_json_time(row->at_ms));
    rp_json_set(o, "event", rp_json_text(row->event));
    rp_json_set(o, "actor", rp_json_text(row->actor));
    if (row->mark_id != 0) rp_json_set(o, "mark", json_string(rp_id_format(RP_ID_MARK, row->mark_id, id)));
    if (row->tenant != NULL) rp_json_set(o, "tenant", rp_json_text(row->tenant));
    /* what the hash covers, and what is left of a tenant that is gone; no program may round it */
    if (row->tenant_id != 0) rp_json_set(o, "tenant_id", json_sprintf("%" PRId64, row->tenant_id));
    /* details that are no JSON any more were tampered with: shown as the text they are */
    if (row->details != NULL && rp_json_parse(row->details, strlen(row->details), &details, &ignored) < 0)
        details = rp_json_text(row->details);
    rp_json_set(o, "details", details != NULL ? details : json_null());
    rp_digest_hex(row->digest, hex);
    rp_json_set(o, "digest", json_string(hex));
    rp_digest_hex(row->hash, hex);
    rp_json_set(o, "hash", json_string(hex));
    return o;
}

json_t *rp_audit_verdict_json(const struct rp_audit_verdict *v)
{
    json_t *o = rp_json_object("ok", json_boolean(!v->broken), "lanes", json_integer((json_int_t)v->lanes), "rows",
                               json_integer(v->rows), "erased", json_integer(v->erased), "segments",
                               json_integer((json_int_t)v->segments), "sealed", json_integer(v->sealed),
                               "files_missing", json_integer((json_int_t)v->files_missing), NULL);
    if (v->broken)
        rp_json_set(o, "broken",
                    json_pack("{s:I,s:I,s:s}", "lane", (json_int_t)v->lane, "seq", (json_int_t)v->seq, "why", v->why));
    return o;
}

json_t *rp_segment_json(const struct rp_segment *s)
{
    char id[RP_ID_TEXT], sha256[RP_DIGEST_HEX], before[RP_DIGEST_HEX], after[RP_DIGEST_HEX];
    rp_digest_hex(s->sha256, sha256);
    rp_digest_hex(s->before, before);
    rp_digest_hex(s->after, after);
    json_t *o = rp_json_object("lane", json_integer(s->lane), "from", json_integer(s->from_seq), "to",
                               json_integer(s->to_seq), "rows", json_integer(s->to_seq - s->from_seq + 1), "first_at",
                               rp_json_time(s->first_at_ms), "last_at", rp_json_time(s->last_at_ms), "file",
                               rp_json_text(s->file), "bytes", json_integer(s->bytes), "sha256", json_string(sha256),
                               "before", json_string(before), "after", json_string(after), NULL);
    if (s->sealed_at_ms != 0) rp_json_set(o, "sealed_at", rp_json_time(s->sealed_at_ms));
    if (s->run_id != 0) rp_json_set(o, "run", json_string(rp_id_format(RP_ID_RUN, s->run_id, id)));
    return o;
}

/* ---- runs ---- */

static int open_json(const struct rp_run_row *row, json_t **out, struct rp_error *err)
{
    *out = rp_run_open_json(row, rp_worker_is_dead(row->locked_by), err);
    return *out != NULL ? 0 : RP_ECORRUPT;
}

int rp_record_json(const struct rp_record_row *row, json_t **out, struct rp_error *err)
{
    int r = rp_json_parse(row->body, strlen(row->body), out, err);
    return r < 0 ? rp_error_wrap(err, RP_ECORRUPT, "the record of a run") : 0;
}

static int found_open(void *ctx, const struct rp_run_row *row, struct rp_error *err)
{
    return open_json(row, ctx, err);
}

static int found_record(void *ctx, const struct rp_record_row *row, struct rp_error *err)
{
    return rp_record_json(row, ctx, err);
}

int rp_run_find_json(struct rp_db *db, int64_t run_id, json_t **out, struct rp_error *err)
{
    return rp_run_find(db, run_id, found_open, found_record, out, err);
}

struct each {
    rp_run_shown_fn *fn;
    void *ctx;
};

static int each_open(void *ctx, const struct rp_run_row *row, struct rp_error *err)
{
    const struct each *each = ctx;
    RP_CLEANUP(rp_json_decrefp) json_t *run = NULL;
    int r = open_json(row, &run, err);
    struct rp_run_shown shown = { .id = row->id, .started_at_ms = row->started_at_ms, .open = true, .run = run };
    return r < 0 ? r : each->fn(each->ctx, &shown, err);
}

static int each_record(void *ctx, const struct rp_record_row *row, struct rp_error *err)
{
    const struct each *each = ctx;
    RP_CLEANUP(rp_json_decrefp) json_t *run = NULL;
    int r = rp_record_json(row, &run, err);
    struct rp_run_shown shown = { .id = row->run_id, .started_at_ms = row->started_at_ms, .run = run };
    return r < 0 ? r : each->fn(each->ctx, &shown, err);
}

int rp_runs_each_json(struct rp_db *db, int64_t before_id, int64_t limit, rp_run_shown_fn *fn, void *ctx,
                      struct rp_error *err)
{
    struct each each = { .fn = fn, .ctx = ctx };
    int r = before_id == INT64_MAX ? rp_run_each_open(db, NULL, each_open, &each, err) : 0;
    return r < 0 ? r : rp_record_each(db, before_id, limit, each_record, &each, err);
}

/* ---- a dry run ---- */

static json_t *planned_json(const struct rp_planned *p)
{
    json_t *o = json_object();
    rp_json_set(o, "store", json_string(p->store->config->name));
    rp_json_set(o, "effect", json_string(rp_planned_effect(p)));
    rp_json_set(o, "marks", json_integer(p->marks));
    rp_json_set(o, "bytes", json_integer(p->bytes));
    rp_json_set(o, "guarded", json_integer(p->guarded));
    rp_json_set(o, "unconfirmed", json_integer(p->unconfirmed));
    rp_json_set(o, "examples", json_incref(p->examples));
    if (p->left_out || p->waiting > 0) rp_json_set(o, "left_out", rp_error_json(&p->why));
    return o;
}

json_t *rp_plan_json(const struct rp_plan *plan, const char *name)
{
    json_t *o = json_object(), *stores = json_array();
    int64_t scanned = 0;
    for (size_t i = 0; i < plan->n; i++) {
        rp_json_append(stores, planned_json(&plan->at[i]));
        scanned += plan->at[i].marks;
    }
    rp_json_set(o, "kind", json_string(RP_RUN_SWEEP));
    rp_json_set(o, "name", rp_json_text(name));
    rp_json_set(o, "dry_run", json_true());
    rp_json_set(o, "counts", json_pack("{s:I}", "scanned", (json_int_t)scanned));
    rp_json_set(o, "stores", stores);
    return o;
}

json_t *rp_retention_plan_json(const struct rp_figures *figures, bool complete)
{
    return json_pack("{s:s,s:s,s:b,s:o,s:b}", "kind", RP_RUN_RETENTION, "name", RP_RETENTION_NAME, "dry_run", 1,
                     "let_go", rp_let_go_json(figures), "complete", (int)complete);
}

json_t *rp_safety_net_plan_json(const struct rp_figures *figures, bool complete, json_t *examples)
{
    return json_pack("{s:s,s:s,s:b,s:{s:I},s:o,s:I,s:b,s:o}", "kind", RP_RUN_SAFETY_NET, "name", RP_NET_NAME, "dry_run",
                     1, "counts", "scanned", (json_int_t)figures->scanned, "repaired", rp_let_go_json(figures),
                     "behind", (json_int_t)figures->behind, "complete", (int)complete, "found", examples);
}

/* ---- what is told of one that ends ---- */

json_t *rp_cancelled_json(const struct rp_cancel_command *c, struct rp_error *err)
{
    json_t *run = rp_run_open_json(&c->run, false, err);
    if (run == NULL || !c->over) return run;
    rp_json_set(run, "state", json_string("finished"));
    rp_json_set(run, "outcome", json_string("cancelled"));
    return run;
}
