/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/answer.h"

#include "base/cleanup.h"
#include "base/id.h"
#include "base/json.h"
#include "core/run.h"
#include "core/state.h"
#include "lib/session.h"

#include <stdio.h>
#include <string.h>

json_t *rp_error_json(const struct rp_error *err)
{
    json_t *o = json_object();
    rp_json_set(o, "code", json_string(rp_error_slug(err->code)));
    rp_json_set(o, "message", rp_json_text(err->text));
    if (err->hint[0] != 0) rp_json_set(o, "hint", rp_json_text(err->hint));
    return o;
}

/* ---- marks and restores ---- */

json_t *rp_mark_answer_json(const struct rp_mark_answer *a, const char *store, const char *key, const char *reason)
{
    static const char *const outcomes[] = { [RP_MARK_REFUSED] = "refused",
                                            [RP_MARK_SAME] = "same",
                                            [RP_MARK_EXTENDED] = "extended",
                                            [RP_MARK_CREATED] = "created",
                                            [RP_MARK_REPLACED] = "created" };
    char id[RP_ID_TEXT];
    json_t *o = json_object();
    rp_json_set(o, "subject", rp_subject_json(store, key));
    rp_json_set(o, "outcome", json_string(outcomes[a->what]));
    if (a->what == RP_MARK_REFUSED) {
        rp_json_set(o, "error", rp_error_json(&a->error));
        if (a->references > 0) rp_json_set(o, "references", json_integer(a->references));
        return o;
    }
    rp_json_set(o, "mark", json_string(rp_id_format(RP_ID_MARK, a->mark_id, id)));
    rp_json_set(o, "marked_at", rp_json_time(a->marked_at_ms));
    rp_json_set(o, "due_at", rp_json_time(a->due_at_ms));
    /* an older mark keeps the reason that it was made with */
    if (a->what == RP_MARK_CREATED || a->what == RP_MARK_REPLACED) rp_json_set(o, "reason", rp_json_text(reason));
    rp_json_set(o, "size", json_integer(a->size_bytes));
    if (a->annotated) rp_json_set(o, "annotated", json_true());
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
    if (row->tenant_id != 0) rp_json_set(o, "tenant", json_integer(row->tenant_id));
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
    json_t *o = json_object();
    rp_json_set(o, "ok", json_boolean(!v->broken));
    rp_json_set(o, "lanes", json_integer((json_int_t)v->lanes));
    rp_json_set(o, "rows", json_integer(v->rows));
    rp_json_set(o, "erased", json_integer(v->erased));
    if (v->broken)
        rp_json_set(o, "broken",
                    json_pack("{s:I,s:I,s:s}", "lane", (json_int_t)v->lane, "seq", (json_int_t)v->seq, "why", v->why));
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
