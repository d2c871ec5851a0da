/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/crashpoint.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/audit/audit.h"
#include "core/journal.h"
#include "core/run/inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_MAX 65536

/* ---- kinds ---- */

static const struct kind {
    const char *name;
    bool has_own_lock; /* named by the run, and forgotten with it */
    bool is_resumed;   /* U3: whoever takes it over carries it on; else it is closed */
} kinds[] = { { .name = RP_RUN_SWEEP },
              { .name = RP_RUN_IMPORT },
              { .name = RP_RUN_RETENTION, .is_resumed = true },
              { .name = RP_RUN_SAFETY_NET, .is_resumed = true },
              { .name = RP_RUN_RESTORE, .has_own_lock = true, .is_resumed = true } };

static const struct kind *kind_of(const char *name)
{
    static const struct kind unknown = { .name = "?" }; /* of a later release, or damaged */
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return &unknown;
}

bool rp_run_is_resumed(const char *kind)
{
    return kind_of(kind)->is_resumed;
}

/* ---- begin ---- */

static int audit_run(struct rp_tx *tx, const char *event, const char *actor, json_t *details, struct rp_error *err)
{
    struct rp_audit_entry entry = { .event = event, .actor = actor, .details = details };
    return rp_tx_audit(tx, &entry, err);
}

/* C11: a run that failed, or has something in `errors`. */
static int64_t count_errors(const char *outcome, const json_t *body)
{
    int64_t n = (int64_t)json_array_size(json_object_get(body, "errors"));
    return n == 0 && strcmp(outcome, "failed") == 0 ? 1 : n;
}

static int write_record(struct rp_tx *tx, const struct rp_run_row *run, const char *outcome, json_t *body,
                        const char *actor, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(BODY_MAX);
    int r = rp_json_write(&text, body);
    struct rp_record_row record = { .run_id = run->id,
                                    .kind = run->kind,
                                    .name = run->name,
                                    .outcome = outcome,
                                    .started_at_ms = run->started_at_ms,
                                    .finished_at_ms = tx->late_ms,
                                    .body = rp_buf_text(&text),
                                    .errors = count_errors(outcome, body) };
    if (r < 0) return rp_error_set(err, r, "the run's record does not fit");
    r = rp_run_record(tx, &record, err);
    if (r < 0) return r;
    return audit_run(tx, "run.finished", actor, json_incref(body), err);
}

static int keep_run_row(struct rp_arena *arena, const struct rp_run_row *row, struct rp_run_row *out,
                        struct rp_error *err)
{
    struct rp_run_row copy = *row;
    copy.kind = rp_arena_strdup(arena, row->kind);
    copy.name = rp_arena_strdup(arena, row->name);
    copy.locked_by = rp_arena_strdup(arena, row->locked_by);
    copy.figures = rp_arena_strdup(arena, row->figures);
    if (copy.kind == NULL || copy.name == NULL || copy.locked_by == NULL || copy.figures == NULL)
        return rp_error_set(err, RP_ENOMEM, "out of memory");
    *out = copy;
    return 0;
}

static bool is_figures(const json_t *o)
{
    return json_is_object(o) && json_is_array(json_object_get(o, "errors"));
}

/* A damaged row must not stop every later run. */
static int parse_figures(const struct rp_run_row *row, json_t **out, struct rp_error *err)
{
    int r = rp_json_parse(row->figures, strlen(row->figures), out, err);
    if (r < 0 ? r != RP_EINVAL : is_figures(*out)) return r;
    rp_error_clear(err);
    json_decref(*out);
    *out = json_pack("{s:[s]}", "errors", "its figures cannot be read");
    return *out != NULL ? 0 : rp_error_set(err, RP_ENOMEM, "out of memory");
}

/* The record of a run that nobody works on any more. */
static int close_row(struct rp_tx *tx, const struct rp_run_row *row, const char *outcome, const char *why,
                     const char *actor, struct rp_error *err)
{
    RP_CLEANUP(rp_json_decrefp) json_t *figures = NULL;
    int r = parse_figures(row, &figures, err);
    if (r < 0) return r;
    json_object_del(figures, "progress");
    rp_json_append(json_object_get(figures, "errors"), json_string(why));
    RP_CLEANUP(rp_json_decrefp) json_t *body = rp_run_record_json(row, outcome, false, tx->late_ms, figures);
    return write_record(tx, row, outcome, body, actor, err);
}

/* Runs of a kind under a name, whose process ended without a record. */
struct abandoned {
    const char *kind;
    struct rp_arena *arena;
    struct rp_run_row at[16];
    size_t n;
};

static int keep_abandoned(void *ctx, const struct rp_run_row *row, struct rp_error *err)
{
    struct abandoned *b = ctx;
    if (strcmp(row->kind, b->kind) != 0 || b->n == sizeof b->at / sizeof b->at[0])
        return 0; /* the rest at the next begin */
    return keep_run_row(b->arena, row, &b->at[b->n++], err);
}

static int close_abandoned(struct rp_tx *tx, const struct rp_run *run, size_t *closed, struct rp_error *err)
{
    struct abandoned found = { .kind = run->kind, .arena = tx->arena }, *b = &found;
    RP_ASSERT(!rp_run_is_resumed(run->kind));
    int r = rp_run_each_open(tx->db, run->name, keep_abandoned, b, err);
    *closed = b->n;
    for (size_t i = 0; i < b->n && r == 0; i++)
        r = close_row(tx, &b->at[i], "failed",
                      "the process ended before the run did; figures are those of its last batch", run->worker->name,
                      err);
    return r;
}

static int refuse_running(const struct rp_lock_row *lock, const char *name, int64_t now_ms, int64_t stale_after_ms,
                          struct rp_error *err)
{
    char at[RP_TIME_TEXT], ago[RP_TIME_TEXT], stale[RP_TIME_TEXT];
    rp_error_set(err, RP_ERUNNING, "%s is already running: locked_by %s, locked_at %s (%s)", name, lock->locked_by,
                 rp_time_format(lock->locked_at_ms, at), rp_time_distance(lock->locked_at_ms, now_ms, ago));
    return rp_error_hint(err, "wait for it; if its host is gone, the lock can be taken %s after locked_at",
                         rp_duration_format(stale_after_ms, stale));
}

static bool is_stale(const struct rp_tx *tx, const struct rp_worker *worker, int64_t stale_after_ms,
                     const struct rp_lock_row *lock)
{
    return tx->db_ms - lock->locked_at_ms >= stale_after_ms ||
           (worker->is_dead != NULL && worker->is_dead(lock->locked_by));
}

static int add_run(struct rp_tx *tx, struct rp_run *run, const char *actor, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(BODY_MAX);
    RP_CLEANUP(rp_json_decrefp) json_t *figures = rp_run_figures_json(run, 0);
    struct rp_run_row row = rp_run_row_of(run);
    if (rp_json_write(&text, figures) < 0) return rp_error_set(err, RP_ENOMEM, "out of memory");
    row.figures = rp_buf_text(&text);
    int r = rp_run_add(tx, &row, err);
    if (r < 0) return r;
    json_t *details = rp_run_record_json(&row, NULL, false, 0, NULL);
    if (run->filter != NULL) rp_json_set(details, "filter", json_incref((json_t *)(uintptr_t)run->filter));
    return audit_run(tx, "run.started", actor, details, err);
}

/* Under a lock that is free, or was judged to be. */
static int enter(struct rp_tx *tx, struct rp_run *run, const struct rp_lock_row *lock, const char *actor,
                 struct rp_error *err)
{
    run->fence = lock->fence + 1;
    run->started_at_ms = run->paced_at_ms = tx->late_ms;
    int r = rp_lock_take(tx, run->lock, lock, run->worker->name, run->id, err);
    return r < 0 ? r : add_run(tx, run, actor, err);
}

/* The lock is free: one that was left is carried on, if it is of a kind that is. */
static int resume_left(struct rp_tx *tx, struct rp_run_command *c, bool *taken, struct rp_error *err)
{
    struct abandoned found = { .kind = c->run->kind, .arena = tx->arena }, *left = &found;
    int r = rp_run_each_open(tx->db, c->run->name, keep_abandoned, left, err);
    *taken = false;
    for (size_t i = 0; i < left->n && r == 0 && !*taken; i++)
        r = rp_run_take_over(tx, left->at[i].id, c->worker, c->stale_after_ms, c->run, taken, err);
    return r;
}

static int begin_one(struct rp_tx *tx, struct rp_run_command *c, struct rp_error *err)
{
    struct rp_run *run = c->run;
    struct rp_lock_row lock;
    size_t closed;
    bool taken = false;
    int r = rp_lock_get(tx, run->lock, &lock, err);
    if (r < 0) return r;
    if (lock.run_id != 0 && !is_stale(tx, c->worker, c->stale_after_ms, &lock)) {
        snprintf(c->locked_by, sizeof c->locked_by, "%s", lock.locked_by);
        c->locked_at_ms = lock.locked_at_ms;
        (void)refuse_running(&lock, run->lock, tx->db_ms, c->stale_after_ms, &c->command.error);
        return 0;
    }
    r = rp_run_is_resumed(run->kind) ? resume_left(tx, c, &taken, err) : close_abandoned(tx, run, &closed, err);
    if (r < 0 || taken) return r;
    run->id = rp_tx_new_id(tx);
    run->figures = (struct rp_figures){ 0 }; /* of one that was taken over before this transaction was repeated */
    return enter(tx, run, &lock, run->worker->name, err);
}

static int run_begin(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = begin_one(tx, (struct rp_run_command *)commands[i], err);
    return r;
}

static void write_log(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    const struct rp_run_command *c = (const struct rp_run_command *)command;
    struct rp_journal j = rp_journal_of(command, log, at_ms);
    if (command->error.code == RP_ERUNNING)
        rp_journal_skipped(&j, c->run->kind, c->run->name, c->locked_by, c->locked_at_ms);
}

_Static_assert(offsetof(struct rp_run_command, command) == 0, "a command is the first member");
const struct rp_verb rp_verb_run_begin = { .name = "begin", .run = run_begin, .log = write_log, .alone = true };

static void name_lock(struct rp_run *run)
{
    char id[RP_ID_TEXT];
    const char *name = kind_of(run->kind)->has_own_lock ? rp_id_format(RP_ID_RUN, run->id, id) : run->name;
    snprintf(run->lock, sizeof run->lock, "%s:%s", run->kind, name);
}

void rp_run_name(struct rp_run *run, const char *kind, const char *name, const struct rp_worker *worker)
{
    *run = (struct rp_run){ .worker = worker };
    snprintf(run->kind, sizeof run->kind, "%s", kind);
    snprintf(run->name, sizeof run->name, "%s", name);
    name_lock(run);
}

int rp_run_start(struct rp_tx *tx, struct rp_run *run, const char *actor, struct rp_error *err)
{
    struct rp_lock_row lock;
    RP_ASSERT(kind_of(run->kind)->has_own_lock);
    run->id = rp_tx_new_id(tx);
    name_lock(run);
    int r = rp_lock_get(tx, run->lock, &lock, err);
    return r < 0 ? r : enter(tx, run, &lock, actor, err);
}

void rp_run_command_init(struct rp_run_command *c, struct rp_run *run, const char *kind, const char *name,
                         const struct rp_worker *worker, int64_t stale_after_ms, const char *actor)
{
    rp_run_name(run, kind, name, worker);
    *c = (struct rp_run_command){ .command = { .verb = &rp_verb_run_begin, .actor = actor },
                                  .run = run,
                                  .worker = worker,
                                  .stale_after_ms = stale_after_ms };
}

int rp_run_begin(struct rp_catalog *catalog, const char *kind, const char *name, const struct rp_worker *worker,
                 int64_t stale_after_ms, struct rp_run *out, struct rp_error *err)
{
    struct rp_run_command c;
    rp_run_command_init(&c, out, kind, name, worker, stale_after_ms, worker->name);
    int r = rp_command_run(catalog, &c.command);
    RP_CRASHPOINT("run.begun");
    if (r == 0) return 0;
    out->id = 0;
    *err = c.command.error;
    return r == RP_ERUNNING ? rp_error_wrap(err, r, "begin %s", kind) : r;
}

struct burying {
    struct rp_run run;
    int64_t stale_after_ms;
    size_t buried;
};

static int bury_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct burying *b = ctx;
    struct rp_lock_row lock;
    b->buried = 0;
    int r = rp_lock_get(tx, b->run.lock, &lock, err);
    if (r < 0 || lock.run_id == 0 || !is_stale(tx, b->run.worker, b->stale_after_ms, &lock)) return r;
    r = close_abandoned(tx, &b->run, &b->buried, err);
    return r < 0 ? r : rp_lock_release(tx, b->run.lock, lock.fence, err);
}

int rp_run_bury(struct rp_catalog *catalog, const char *kind, const char *name, const struct rp_worker *worker,
                int64_t stale_after_ms, bool *buried, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct burying *b = calloc(1, sizeof *b);
    if (b == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    b->stale_after_ms = stale_after_ms;
    rp_run_name(&b->run, kind, name, worker);
    int r = rp_catalog_transact(catalog, bury_tx, b, err);
    *buried = r == 0 && b->buried > 0;
    return r < 0 ? rp_error_wrap(err, r, "bury %s %s", kind, name) : 0;
}

/* ---- taken over, cancelled ---- */

/* A run without a record, and its lock, which is ours until the transaction ends. */
struct open_run {
    struct rp_arena *arena;
    struct rp_run_row row;
    struct rp_lock_row lock;
    struct rp_run run; /* as this worker would have it */
    bool is_free;      /* nobody works on it */
};

static int keep_open(void *ctx, const struct rp_run_row *row, struct rp_error *err)
{
    struct open_run *open = ctx;
    return keep_run_row(open->arena, row, &open->row, err);
}

static int lock_open(struct rp_tx *tx, int64_t run_id, const struct rp_worker *worker, int64_t stale_after_ms,
                     struct open_run *open, struct rp_error *err)
{
    int r = rp_run_get_open(tx->db, run_id, keep_open, open, err);
    if (r < 0) return r;
    rp_run_name(&open->run, open->row.kind, open->row.name, worker);
    open->run.id = run_id;
    open->run.started_at_ms = open->row.started_at_ms;
    name_lock(&open->run);
    r = rp_lock_get(tx, open->run.lock, &open->lock, err);
    open->is_free = open->lock.run_id != run_id || is_stale(tx, worker, stale_after_ms, &open->lock);
    return r;
}

int rp_run_take_over(struct rp_tx *tx, int64_t run_id, const struct rp_worker *worker, int64_t stale_after_ms,
                     struct rp_run *out, bool *taken, struct rp_error *err)
{
    struct open_run *open = rp_arena_alloc(tx->arena, sizeof *open);
    RP_CLEANUP(rp_json_decrefp) json_t *figures = NULL;
    if (open == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    *open = (struct open_run){ .arena = tx->arena };
    *taken = false;
    int r = lock_open(tx, run_id, worker, stale_after_ms, open, err);
    if (r < 0 || !open->is_free) return r;
    r = parse_figures(&open->row, &figures, err);
    if (r < 0) return r;
    struct rp_run *run = &open->run;
    rp_figures_from_json(figures, &run->figures);
    run->fence = open->lock.fence + 1;
    run->paced_at_ms = tx->late_ms;
    run->paced_done = run->figures.scanned;
    struct rp_run_row row = rp_run_row_of(run);
    r = rp_lock_take(tx, run->lock, &open->lock, worker->name, run_id, err);
    if (r == 0) r = rp_run_taken(tx, &row, err);
    if (r == 0) r = audit_run(tx, "run.resumed", worker->name, rp_run_record_json(&row, NULL, false, 0, NULL), err);
    if (r < 0) return r;
    *out = *run;
    *taken = true;
    return 0;
}

static int release(struct rp_tx *tx, const struct rp_run *run, struct rp_error *err)
{
    if (kind_of(run->kind)->has_own_lock) return rp_lock_forget(tx, run->lock, run->fence, err);
    return rp_lock_release(tx, run->lock, run->fence, err);
}

/* It ends between two of its batches, by whoever works on it; or here, if nobody does. */
static int cancel_one(struct rp_tx *tx, struct rp_cancel_command *c, struct rp_error *err)
{
    struct open_run *open = rp_arena_alloc(tx->arena, sizeof *open);
    if (open == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    *open = (struct open_run){ .arena = c->arena };
    c->over = false;
    int r = lock_open(tx, c->run_id, c->worker, c->stale_after_ms, open, &c->command.error);
    if (r == 0) r = rp_run_cancel(tx, c->run_id, &c->command.error);
    if (r == RP_ENOTFOUND) return 0;
    if (r < 0) *err = c->command.error;
    if (r < 0) return r;
    c->run = open->row;
    c->over = open->is_free;
    open->run.fence = open->lock.fence;
    if (!c->over)
        return audit_run(tx, "run.cancelling", c->command.actor, rp_run_record_json(&c->run, NULL, false, 0, NULL),
                         err);
    r = close_row(tx, &c->run, "cancelled", "cancelled after the process that worked on it had ended", c->command.actor,
                  err);
    c->command.due_at_ms = tx->late_ms; /* what it kept from being claimed may be due */
    return r < 0 ? r : release(tx, &open->run, err);
}

static int run_cancel(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = cancel_one(tx, (struct rp_cancel_command *)commands[i], err);
    return r;
}

static void log_cancel(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    const struct rp_cancel_command *c = (const struct rp_cancel_command *)command;
    char id[RP_ID_TEXT];
    if (command->error.code < 0) return;
    struct rp_journal j = rp_journal_of(command, log, at_ms);
    rp_journal_change(&j, c->over ? "run.cancelled" : "run.cancelling",
                      rp_json_object("run", json_string(rp_id_format(RP_ID_RUN, c->run_id, id)), "kind",
                                     rp_json_text(c->run.kind), "name", rp_json_text(c->run.name), NULL));
}

_Static_assert(offsetof(struct rp_cancel_command, command) == 0, "a command is the first member");
const struct rp_verb rp_verb_cancel = { .name = "cancel", .run = run_cancel, .log = log_cancel, .alone = true };

/* ---- step and end ---- */

/* U2: the one place that says whether a run is lost. */
static int note_lost(struct rp_run *run, int r)
{
    run->lost = r == RP_ECHANGED;
    return r;
}

int rp_run_step(struct rp_tx *tx, struct rp_run *run, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(BODY_MAX);
    RP_CLEANUP(rp_json_decrefp) json_t *figures = rp_run_figures_json(run, tx->late_ms);
    RP_ASSERT(run->id != 0);
    int r = rp_json_write(&text, figures);
    if (r < 0) return rp_error_set(err, r, "the run's figures do not fit");
    r = rp_lock_renew(tx, run->lock, run->fence, err);
    if (r == 0) r = rp_run_progress(tx, run->id, rp_buf_text(&text), &run->cancelled, err);
    return note_lost(run, r);
}

static int leave_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    const struct rp_run *run = ctx;
    return rp_lock_release(tx, run->lock, run->fence, err);
}

int rp_run_leave(struct rp_catalog *catalog, struct rp_run *run, struct rp_error *err)
{
    return rp_catalog_transact(catalog, leave_tx, run, err);
}

struct end {
    struct rp_run *run;
    const char *outcome;
};

static int end_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct end *end = ctx;
    struct rp_run_row row = rp_run_row_of(end->run);
    RP_CLEANUP(rp_json_decrefp) json_t *body = rp_run_json(end->run, end->outcome, false, tx->late_ms);
    /* one that was taken over goes on: it is not ours to end */
    int r = rp_run_is_resumed(end->run->kind)
                ? note_lost(end->run, rp_lock_renew(tx, end->run->lock, end->run->fence, err))
                : 0;
    if (r == 0) r = write_record(tx, &row, end->outcome, body, end->run->worker->name, err);
    return r < 0 ? r : release(tx, end->run, err);
}

int rp_run_end(struct rp_catalog *catalog, struct rp_run *run, const char *outcome, struct rp_error *err)
{
    struct end end = { .run = run, .outcome = outcome };
    RP_CRASHPOINT("run.before-end");
    int r = rp_catalog_transact(catalog, end_tx, &end, err);
    RP_CRASHPOINT("run.ended");
    /* whoever took the lock over has written our record */
    if (r == RP_EEXISTS) return 0;
    return r < 0 ? rp_error_wrap(err, r, "end %s", run->kind) : 0;
}

int rp_outcome_code(const char *outcome, int code)
{
    if (strcmp(outcome, "done") == 0) return 0;
    if (strcmp(outcome, "failed") != 0) return RP_EPARTLY;
    return code < 0 ? code : RP_EFAILED;
}
