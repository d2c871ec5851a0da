/* SPDX-License-Identifier: Apache-2.0 */
/* restore.c - a restore in bulk: a run that the daemon carries out, or, as a dry run, what it
 * would do. For admins. */
#include "core/restore/restore.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "catalog/run.h"
#include "http/api/marks.h"
#include "http/api/runs.h"
#include "http/api/shapes.h"
#include "lib/answer.h"

#include <string.h>

#define BATCH_ARENA_MAX ((size_t)16 << 20)
#define DRY_RUN_MAX     100000 /* marks that a dry run looks at */
#define DRY_RUN_SHOWN   1000

/* ---- shapes ---- */

static const struct rp_field bulk_fields[] = {
    { RP_FIELD("run", ID), .id = RP_ID_RUN, .help = "what this run marked or moved to quarantine" },
    { RP_FIELD("prefix", TEXT), .least = 2, .most = RP_KEY_MAX + 65, .help = "STORE:PREFIX" },
    { RP_FIELD("reason", TEXT), .most = RP_REASON_MAX, .help = "marks with this reason" },
    { RP_FIELD("actor", TEXT), .least = 1, .most = RP_ACTOR_MAX, .help = "marks that this one made" },
    { RP_FIELD("since", WHEN), .help = "marks made since; a moment, or how long ago" },
    { RP_FIELD("until", WHEN), .help = "marks made before" },
    { RP_FIELD("dry_run", BOOL), .help = "only says what would be done" },
};
static const struct rp_shape bulk_shape = RP_SHAPE("restore_request", bulk_fields, "every given filter must fit");

static const struct rp_field foreseen_fields[] = {
    { RP_FIELD("dry_run", BOOL), .required = true, .help = "true: nothing is changed" },
    { RP_FIELD("restored", INT), .required = true, .help = "how many would be" },
    { RP_FIELD("already_restored", INT), .required = true, .help = "have been before" },
    { RP_FIELD("returned", INT), .required = true, .help = "would come back from quarantine" },
    { RP_FIELD("refused", INT), .required = true, .help = "could not be" },
    { RP_FIELD("complete", BOOL), .required = true, .help = "false: more than 100,000 fit" },
    { RP_FIELD("items", LIST), .of = &rp_shape_restored, .required = true, .help = "the first 1,000" },
};
static const struct rp_shape foreseen_shape = RP_SHAPE("restore_plan", foreseen_fields, "what a restore would do");

/* ---- the filter ---- */

static int read_prefix(struct rp_request *q, const char *text, struct rp_restore_filter *f, struct rp_error *err)
{
    const char *colon = strchr(text, ':');
    char store_name[64];
    if (colon == NULL || colon == text || (size_t)(colon - text) >= sizeof store_name) {
        rp_error_set(err, RP_EINVAL, "prefix: expected STORE:PREFIX, found '%.*s'", rp_utf8_cut(text, 64), text);
        return RP_EINVAL;
    }
    memcpy(store_name, text, (size_t)(colon - text));
    store_name[colon - text] = 0;
    const struct rp_store *store = rp_request_store(q, store_name);
    if (store == NULL) return rp_error_set(err, RP_ENOTFOUND, "no store '%s'", store_name);
    f->store_id = store->id;
    f->prefix = colon + 1;
    return f->prefix[0] != 0 ? rp_key_check(f->prefix, strlen(f->prefix), err) : 0;
}

static int read_filter(struct rp_request *q, struct rp_restore_filter *f, struct rp_error *err)
{
    const char *prefix = rp_json_get_text(q->body, "prefix", NULL);
    *f = (struct rp_restore_filter){ .run_id = rp_json_get_int(q->body, "run", 0),
                                     .reason = rp_json_get_text(q->body, "reason", NULL),
                                     .actor = rp_json_get_text(q->body, "actor", NULL),
                                     .since_ms = rp_json_get_int(q->body, "since", -1),
                                     .until_ms = rp_json_get_int(q->body, "until", -1) };
    if (f->run_id == 0 && prefix == NULL && f->reason == NULL && f->actor == NULL && f->since_ms < 0 &&
        f->until_ms < 0) {
        rp_error_set(err, RP_EINVAL, "restore what? no filter is given");
        return rp_error_hint(err, "give run, prefix, reason, actor, since or until");
    }
    int r = 0;
    if (f->run_id != 0) r = rp_run_find(rp_request_catalog(q)->db, f->run_id, NULL, NULL, NULL, err);
    return r == 0 && prefix != NULL ? read_prefix(q, prefix, f, err) : r;
}

/* ---- a dry run ---- */

struct foreseeing {
    struct rp_request *q;
    bool complete;
    struct rp_arena arena; /* of one mark */
    int64_t taken;
    int64_t counts[RP_REPRIEVE_RETURNED + 1];
    json_t *items;
};

static int foresee_mark(void *ctx, const struct rp_mark *mark, struct rp_error *err)
{
    struct foreseeing *f = ctx;
    const char *store = rp_request_store_name(f->q, mark->store_id);
    struct rp_reprieve_answer answer;
    f->complete = f->taken < DRY_RUN_MAX;
    if (!f->complete) return 1;
    f->taken++;
    rp_arena_reset(&f->arena);
    int r = rp_reprieve_foresee(rp_request_catalog(f->q)->db, mark, store, &f->arena, &answer, err);
    if (r < 0) return r;
    f->counts[answer.what]++;
    if (json_array_size(f->items) < DRY_RUN_SHOWN)
        rp_json_append(f->items, rp_reprieve_answer_json(&answer, mark, store, true));
    return 0;
}

static json_t *foreseen_json(const struct foreseeing *f)
{
    json_t *o = json_object();
    rp_json_set(o, "restored", json_integer(f->counts[RP_REPRIEVE_DONE]));
    rp_json_set(o, "already_restored", json_integer(f->counts[RP_REPRIEVE_ALREADY]));
    rp_json_set(o, "returned", json_integer(f->counts[RP_REPRIEVE_RETURNED]));
    rp_json_set(o, "refused", json_integer(f->counts[RP_REPRIEVE_REFUSED]));
    rp_json_set(o, "dry_run", json_true());
    rp_json_set(o, "complete", json_boolean(f->complete));
    rp_json_set(o, "items", json_incref(f->items));
    return o;
}

static void dry_run(struct rp_request *q, const struct rp_restore_filter *filter)
{
    RP_CLEANUP(rp_json_decrefp) json_t *items = json_array();
    struct foreseeing f = { .q = q, .complete = true, .arena = RP_ARENA(BATCH_ARENA_MAX), .items = items };
    struct rp_error err = { 0 };
    int r = rp_restore_each(rp_request_catalog(q)->db, filter, foresee_mark, &f, &err);
    rp_arena_done(&f.arena);
    if (r < 0)
        rp_reply_error(q, &err);
    else
        rp_reply_json(q, 200, foreseen_json(&f));
}

/* ---- the run ---- */

static void begin_run(struct rp_request *q, const struct rp_restore_filter *filter)
{
    const char *name = filter->store_id != 0 ? rp_request_store_name(q, filter->store_id) : "all";
    const struct rp_worker *worker = NULL;
    struct rp_beginning *b = rp_beginning_new(q, &rp_verb_restore_begin, &worker);
    if (b == NULL) return;
    rp_restore_command_init(&b->restore, filter, name, &b->run, worker, q->who.actor);
    rp_beginning_submit(q, b);
}

static void post_restore(struct rp_request *q)
{
    struct rp_restore_filter filter;
    struct rp_error err = { 0 };
    if (read_filter(q, &filter, &err) < 0)
        rp_reply_error(q, &err);
    else if (rp_request_bool(q->body, "dry_run"))
        dry_run(q, &filter);
    else
        begin_run(q, &filter);
}

/* ---- the table ---- */

static const struct rp_route routes[] = {
    { RP_ROUTE("POST", "/v1/restore", RP_FOR_ADMINS, RP_MAY_WRITE_MARKS, post_restore), .blocks = true,
      .body = &bulk_shape, .answer = &rp_shape_run, .status = 202,
      .also = { { .status = 200, .answer = &foreseen_shape, .help = "with dry_run: what it would do" } },
      .errors = "not_found",
      .summary =
          "Begins a run that restores everything that fits all filters and is marked by now, or with dry_run says "
          "what it would do. Nothing that it names is purged while it is under way. It goes from the newest mark to "
          "the "
          "oldest: of several uploads of one key, or several deleted files of one name, the last comes back and those "
          "before it are refused.",
      .example = "-X POST -d '{\"reason\":\"replaced\",\"since\":\"2d\",\"dry_run\":true}'" },
};
const struct rp_routes rp_routes_restore = { routes, sizeof routes / sizeof routes[0] };
