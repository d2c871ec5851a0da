/* SPDX-License-Identifier: Apache-2.0 */
/* The users of a trial: what they ask, and what they are told. */
#include "fault/trial.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/time.h"
#include "core/check/references.h"
#include "core/dead.h"
#include "core/hold.h"
#include "core/mark/mark.h"
#include "core/recover/recover.h"
#include "core/reprieve/reprieve.h"
#include "core/sweep/sweep.h"
#include "lib/ask.h"
#include "lib/bytes.h"

#include <stdio.h>
#include <string.h>

#define ACTOR    "user"
#define STALE_MS (30 * RP_MINUTE_MS)

static const struct rp_purge_rules rules = { .batch = TRIAL_BATCH,
                                             .lease_ms = 2 * RP_MINUTE_MS,
                                             .max_attempts = TRIAL_ATTEMPTS,
                                             .retry_first_ms = 10 * RP_SECOND_MS,
                                             .retry_most_ms = RP_HOUR_MS,
                                             .random = 7 };

static struct inv_subject *subject(struct trial *t, size_t i)
{
    RP_ASSERT(i < t->shared->known.n);
    return &t->shared->known.subjects[i];
}

void trial_subjects(struct trial *t, size_t n)
{
    for (size_t i = t->shared->known.n; i < n; i++) {
        struct inv_subject *s = &t->shared->known.subjects[t->shared->known.n++];
        *s = (struct inv_subject){ 0 };
        snprintf(s->key, sizeof s->key, "folder/s%02zu", i);
        inv_upload(&t->world, s);
    }
}

void trial_deny(struct trial *t, size_t i)
{
    memset(t->shared->deny, 0, sizeof t->shared->deny);
    if (i != SIZE_MAX) memcpy(t->shared->deny, subject(t, i)->key, sizeof t->shared->deny);
}

/* ---- mark ---- */

static void ask(struct inv_subject *s)
{
    s->asked = true;
    s->restored = false;
}

static int hear_mark(struct inv_subject *s, const struct rp_mark_answer *a)
{
    if (a->what == RP_MARK_REFUSED) return a->error.code;
    s->promised = true;
    s->mark_id = a->mark_id;
    s->due_at_ms = a->due_at_ms;
    return 0;
}

int trial_mark(struct trial *t, const struct trial_marking *m)
{
    struct rp_mark_request requests[INV_SUBJECTS_MAX];
    RP_CLEANUP(rp_freep) struct rp_mark_answer *answers = calloc(INV_SUBJECTS_MAX, sizeof *answers);
    struct rp_error err = { 0 };
    RP_ASSERT(answers != NULL && m->n <= INV_SUBJECTS_MAX);
    for (size_t i = 0; i < m->n; i++) {
        struct inv_subject *s = subject(t, m->first + i);
        ask(s);
        requests[i] = (struct rp_mark_request){ .key = s->key,
                                                .grace_ms = m->grace_ms > 0 ? m->grace_ms : -1,
                                                .at_ms = -1,
                                                .reason = "no longer needed",
                                                .if_unreferenced = m->if_unreferenced,
                                                .annotate = m->annotate };
    }
    int r = rp_mark_many(t->catalog, &t->store, requests, m->n, ACTOR, false, answers, &err);
    if (r < 0) return r;
    for (size_t i = 0; i < m->n; i++) {
        int code = hear_mark(subject(t, m->first + i), &answers[i]);
        if (r == 0) r = code;
    }
    return r;
}

/* ---- restore ---- */

static int restore(struct trial *t, size_t first, size_t n, struct rp_arena *arena)
{
    struct rp_mark marks[INV_SUBJECTS_MAX];
    RP_CLEANUP(rp_freep) struct rp_reprieve_answer *answers = calloc(INV_SUBJECTS_MAX, sizeof *answers);
    struct rp_error err = { 0 };
    int r = 0, noted = 0;
    RP_ASSERT(answers != NULL);
    for (size_t i = 0; i < n && r == 0; i++)
        r = ask_newest(t->catalog, &t->store, subject(t, first + i)->key, arena, &marks[i], &err);
    t->shared->known.returning_id = 1;
    if (r == 0) r = rp_reprieve_many(t->catalog, &t->store, marks, n, ACTOR, answers, &err);
    t->shared->known.returning_id = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        if (answers[i].what == RP_REPRIEVE_REFUSED) return answers[i].error.code;
        struct inv_subject *s = subject(t, first + i);
        s->promised = false;
        s->restored = true;
        s->noted = answers[i].annotate_note[0] != '\0';
        noted += s->noted;
    }
    return r == 0 && noted > 0 ? RP_EPARTLY : r;
}

int trial_restore(struct trial *t, size_t first, size_t n)
{
    struct rp_arena arena = RP_ARENA(1 << 20);
    int r = restore(t, first, n, &arena);
    rp_arena_done(&arena);
    return r;
}

/* ---- sweep ---- */

int trial_sweep(struct trial *t)
{
    struct rp_store *stores[] = { &t->store };
    RP_CLEANUP(rp_freep) struct rp_sweep_result *result = calloc(1, sizeof *result);
    struct rp_error err = { 0 };
    RP_ASSERT(result != NULL);
    struct rp_sweep sweeper = { .by.catalog = t->catalog,
                                .by.stores = stores,
                                .by.n_stores = 1,
                                .name = "main",
                                .by.environment = "test",
                                .by.worker = &t->worker,
                                .by.rules = rules,
                                .limit = 1000,
                                .stale_after_ms = STALE_MS };
    int r = rp_sweep_run(&sweeper, result, &err);
    if (r < 0) return r;
    return strcmp(result->outcome, "done") == 0 ? 0 : RP_EPARTLY;
}

/* A's lease counts until somebody else has claimed its marks. */
static bool taken_over(struct trial *t, const struct rp_purge_batch *batch)
{
    struct rp_arena arena = RP_ARENA(1 << 18);
    struct rp_error err = { 0 };
    bool all = batch->marks.n > 0;
    for (size_t i = 0; i < batch->marks.n; i++) {
        struct rp_mark now;
        int r = rp_mark_get(t->world.catalog->db, batch->marks.at[i].id, &arena, &now, &err);
        all = all && r == 0 && now.fence > batch->marks.at[i].fence;
    }
    rp_arena_done(&arena);
    return all;
}

/* A claims and stalls; B takes over and fails; A wakes up, erases, and tries to finish. */
static int stalled(struct trial *t, struct rp_run *run, struct rp_purge_batch *batch)
{
    struct rp_error err = { 0 };
    struct rp_purge_rules a = rules;
    char before[RP_DIGEST_HEX];
    struct rp_buf lines = RP_BUF(1000);
    int64_t from = 0;
    int r = rp_run_begin(t->catalog, "sweep", "stalled", &t->worker, STALE_MS, run, &err);
    if (r == 0) r = rp_purge_claim(t->catalog, &t->store, &a, &t->worker, TRIAL_BATCH, &from, batch, &err);
    if (r < 0) return r;
    trial_deny(t, 0);
    trial_advance(t, 10 * RP_MINUTE_MS);
    (void)trial_sweep(t);
    trial_deny(t, SIZE_MAX);
    rp_purge_look(batch);
    rp_purge_quarantine(batch);
    rp_purge_return(batch);
    rp_purge_erase(batch);
    bool lost = taken_over(t, batch);
    inv_marks_digest(&t->world, before);
    r = rp_purge_finish(t->catalog, &a, batch, run, &err);
    if (lost) inv_check_fenced(&t->world, before, &lines);
    snprintf(t->shared->trouble, sizeof t->shared->trouble, "%.1000s", rp_buf_text(&lines));
    rp_buf_done(&lines);
    return r < 0 ? r : rp_run_end(t->catalog, run, "partial", &err);
}

/* What a worker leaves that dies after it has erased and before it could say so. */
static int half_done(struct trial *t, struct rp_run *run, struct rp_purge_batch *batch)
{
    struct rp_error err = { 0 };
    int64_t from = 0;
    int r = rp_run_begin(t->catalog, "sweep", "main", &t->worker, STALE_MS, run, &err);
    if (r == 0) r = rp_purge_claim(t->catalog, &t->store, &rules, &t->worker, TRIAL_BATCH, &from, batch, &err);
    if (r < 0) return r;
    rp_purge_look(batch);
    rp_purge_quarantine(batch);
    rp_purge_return(batch);
    rp_purge_erase(batch);
    trial_advance(t, RP_HOUR_MS);
    return 0;
}

static int with_batch(struct trial *t, int (*work)(struct trial *, struct rp_run *, struct rp_purge_batch *))
{
    RP_CLEANUP(rp_freep) struct rp_run *run = calloc(1, sizeof *run);
    struct rp_purge_batch batch;
    RP_ASSERT(run != NULL);
    rp_purge_batch_init(&batch);
    int r = work(t, run, &batch);
    rp_purge_batch_done(&batch);
    return r;
}

int trial_stalled(struct trial *t)
{
    return with_batch(t, stalled);
}

int trial_half_done(struct trial *t)
{
    return with_batch(t, half_done);
}

/* ---- hold ---- */

struct holds {
    int64_t ids[8];
    size_t n;
};

static int keep_hold(void *ctx, const struct rp_hold *hold, struct rp_error *err)
{
    struct holds *holds = ctx;
    (void)err;
    if (holds->n < 8) holds->ids[holds->n++] = hold->id;
    return 0;
}

static int place_hold(struct trial *t, size_t i, struct rp_arena *arena)
{
    struct holds holds = { .n = 0 };
    struct rp_error err = { 0 };
    struct rp_hold_command q = { .scope = RP_SCOPE_EVERYTHING, .reason = "audit", .command.actor = ACTOR };
    if (i != SIZE_MAX)
        q = (struct rp_hold_command){ .scope = RP_SCOPE_SUBJECT,
                                      .store = &t->store,
                                      .key = subject(t, i)->key,
                                      .reason = "audit",
                                      .command.actor = ACTOR };
    int r = rp_hold_each(t->catalog->db, keep_hold, &holds, &err);
    if (r == 0 && holds.n == 0) r = ask_hold(t->catalog, &q, arena, &err);
    if (r < 0) return r;
    for (size_t k = 0; k < t->shared->known.n; k++)
        if (i == SIZE_MAX || k == i) subject(t, k)->stays = true;
    return 0;
}

int trial_hold(struct trial *t, size_t i)
{
    struct rp_arena arena = RP_ARENA(1 << 20);
    int r = place_hold(t, i, &arena);
    rp_arena_done(&arena);
    return r;
}

int trial_lift(struct trial *t)
{
    struct holds holds = { .n = 0 };
    struct rp_error err = { 0 };
    int r = rp_hold_each(t->catalog->db, keep_hold, &holds, &err);
    for (size_t i = 0; i < t->shared->known.n; i++)
        subject(t, i)->stays = false; /* whether or not that is heard */
    for (size_t i = 0; i < holds.n && r == 0; i++)
        r = ask_lift(t->catalog, holds.ids[i], ACTOR, &err);
    return r;
}

/* ---- owner, dead letters, other systems ---- */

void trial_usurp(struct trial *t)
{
    static const char record[] = "{\"catalog\":\"cat_another\",\"epoch\":40,\"environment\":\"prod\"}";
    struct bytes text = { record, strlen(record) };
    struct rp_source source = { .read = bytes_read, .ctx = &text };
    struct rp_identity identity;
    struct rp_meta meta = { 0 };
    struct rp_error err = { 0 };
    int r = rp_backend_put(t->bare, RP_STORE_OWNER, &source, &meta, RP_PUT_REPLACE, &identity, &err);
    RP_ASSERT(r == 0);
    for (size_t i = 0; i < t->shared->known.n; i++)
        subject(t, i)->stays = true;
}

int trial_recover(struct trial *t)
{
    struct rp_recovery recovery;
    struct rp_error err = { 0 };
    int r = rp_owner_recover(t->catalog, &t->store, "test", ACTOR, false, &recovery, &err);
    if (r < 0) return r;
    /* every mark that waited is reprieved */
    for (size_t i = 0; i < t->shared->known.n; i++) {
        subject(t, i)->stays = subject(t, i)->promised = false;
        subject(t, i)->restored = true;
    }
    return 0;
}

static int keep_letter(void *ctx, const struct rp_dead *dead, struct rp_error *err)
{
    (void)err;
    *(int64_t *)ctx = dead->id;
    return 0;
}

int trial_dead(struct trial *t, bool retry)
{
    int64_t id = 0;
    enum rp_state as;
    struct rp_error err = { 0 };
    int r = rp_dead_each(t->catalog->db, 0, 1, keep_letter, &id, &err);
    if (r < 0 || id == 0) return r; /* no letter left: it was heard the first time */
    return retry ? ask_retry(t->catalog, id, ACTOR, &err) : ask_keep(t->catalog, id, ACTOR, &as, &err);
}

void trial_refer(struct trial *t, size_t i, bool referenced)
{
    static const struct rp_sql add = { .name = "add", .text = "INSERT INTO used VALUES ($1)", .params = "s" };
    static const struct rp_sql drop = { .name = "drop", .text = "DELETE FROM used WHERE key = $1", .params = "s" };
    struct rp_db_options options = { 0 };
    struct rp_db *db = NULL;
    struct rp_error err = { 0 };
    struct rp_value key = rp_text(subject(t, i)->key);
    /* as the last connection it leaves one whole file, which can be copied */
    rp_references_free(t->store.references);
    t->store.references = NULL;
    int r = rp_db_open(t->database.url, &options, &db, &err);
    if (r == 0) r = rp_db_script(db, "CREATE TABLE IF NOT EXISTS used (key TEXT)", &err);
    if (r == 0) r = rp_db_exec(db, &drop, &key, NULL, &err);
    if (r == 0 && referenced) r = rp_db_exec(db, &add, &key, NULL, &err);
    rp_db_close(db);
    if (r == 0) r = rp_references_new(&t->whole, &t->config, &t->store.references, &err);
    RP_ASSERT(r == 0);
    subject(t, i)->stays = referenced;
}

/* ---- the end ---- */

static int64_t waiting(const struct trial *t)
{
    struct rp_buf lines = RP_BUF(1 << 16);
    int n = inv_ask(&t->world, "", "SELECT key FROM mark WHERE next_at IS NOT NULL", &lines);
    rp_buf_done(&lines);
    return n;
}

int trial_heal(struct trial *t)
{
    for (int sweep = 0; sweep < 20; sweep++) {
        trial_advance(t, sweep == 0 ? 40 * RP_DAY_MS : 8 * RP_DAY_MS);
        int r = trial_sweep(t);
        if (r == 0 && waiting(t) == 0) return 0;
    }
    return RP_EFAILED;
}

int trial_check(struct trial *t, enum inv_when when, struct rp_buf *out)
{
    int n = inv_check(&t->world, when, out);
    if (t->shared->trouble[0] == '\0') return n;
    rp_buf_str(out, t->shared->trouble);
    return n + 1;
}
