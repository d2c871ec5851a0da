/* SPDX-License-Identifier: Apache-2.0 */
/* Users of plain objects, and those who run the place: what they ask, and whether the answer was
 * true. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "asking.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "core/clock.h"
#include "core/dead.h"
#include "core/hold.h"
#include "core/mark/import.h"
#include "core/mark/mark.h"
#include "core/owner/raise.h"
#include "core/quota.h"
#include "core/recover/recover.h"
#include "core/reprieve/reprieve.h"
#include "core/subject/quarantine.h"
#include "lib/ask.h"
#include "node.h"
#include "task.h"
#include "users.h"
#include "verb.h"
#include "world.h"

#define ACTOR "user"

const char *sim_key(size_t i)
{
    static const char *const keys[SIM_KEYS] = { "a/0", "a/1", "a/2", "a/3", "b/4", "b/5", "b/6", "b/7" };
    return keys[i];
}

void sim_upload(struct sim *s, size_t key, bool same_bytes)
{
    char text[48];
    struct bucket_object now;
    s->reused |= s->uploads_of[key] > 0;
    if (!same_bytes || s->uploads_of[key] == 0) s->uploads_of[key]++;
    s->sent++;
    snprintf(text, sizeof text, "%s, upload %d", sim_key(key), s->uploads_of[key]);
    bucket_upload(s->bucket, sim_key(key), text, sim_store_ms(s), &now);
    RP_ASSERT(now.serial < SIM_UPLOADS);
    s->by_user[now.serial] = true;
    sim_say(s, "somebody uploads %s (upload %" PRIu64 ")", sim_key(key), now.serial);
}

/* ---- mark and restore ---- */

static void judge_mark_answer(struct sim_node *n, const struct rp_mark_request *q, const struct rp_mark_answer *a)
{
    struct sim *s = n->sim;
    struct bucket_object now;
    const struct model_mark *m = model_mark(s->model, a->mark_id);
    if (a->what == RP_MARK_REFUSED) {
        if (a->error.code == RP_EREFERENCED) sim_see(s, SIGHT_REFERENCED);
        if (a->error.code == RP_EWEAK) sim_see(s, SIGHT_WEAK);
        return;
    }
    if (model_is_held(s->model, q->key, 0)) sim_see(s, SIGHT_MARKED_WHILE_HELD);
    if (m == NULL || strcmp(m->key, q->key) != 0)
        sim_violate(s, "AUDITED", "the mark of %s that was acknowledged is not there", q->key);
    else if (m->due_at_ms < a->due_at_ms)
        sim_violate(s, "NO-EARLY", "the mark of %s is due before it was promised", q->key);
    else if (n->sent_at_begin == s->sent && n->returns_at_begin == s->returns && !s->misled[n->index] &&
             model_is_active(m) && m->state == RP_MARKED && m->file_id == 0 && bucket_look(s->bucket, q->key, &now) &&
             strcmp(now.identity.etag, m->etag) != 0)
        sim_violate(s, "NEWER-WINS", "the mark of %s is of an older upload", q->key);
}

/* Bytes stand under the key of an upload that is marked by it, and the upload's own mark need not
 * know them: the product takes that for another upload (core/mark/mark.c, note_changed), and no
 * longer believes that keys are written once. */
static void note_doubt(struct sim_node *n)
{
    struct sim *s = n->sim;
    struct bucket_object there;
    size_t file = n->command.file;
    if (file != SIZE_MAX && bucket_look(s->bucket, s->files[file].key, &there)) s->reused = true;
}

int sim_give_mark(struct sim_node *n)
{
    static struct rp_mark_answer answers[SIM_NODES][3];
    struct sim_command *c = &n->command;
    struct rp_mark_request q[3];
    struct rp_error err = { 0 };
    struct rp_confirmer_list by = { 0 };
    if (sim_named_services(n, &by, &err) < 0) return err.code;
    for (size_t i = 0; i < c->n_keys; i++)
        q[i] = (struct rp_mark_request){ .key = c->file != SIZE_MAX ? n->sim->files[c->file].key : sim_key(c->keys[i]),
                                         .grace_ms = c->grace_ms,
                                         .at_ms = -1,
                                         .reason = "unused",
                                         .if_unreferenced = c->if_unreferenced,
                                         .annotate = c->annotate,
                                         .confirmations = by.n > 0 ? &by : NULL };
    struct rp_mark_answer *a = answers[n->index];
    memset(a, 0, sizeof answers[0]);
    note_doubt(n);
    int r = rp_mark_many(n->catalog, &n->store, q, c->n_keys, ACTOR, false, a, &err);
    note_doubt(n);
    if (r < 0 || sim_is_unheard(n)) return r;
    for (size_t i = 0; i < c->n_keys; i++)
        judge_mark_answer(n, &q[i], &a[i]);
    return a[0].what == RP_MARK_REFUSED ? a[0].error.code : 0;
}

/* Marked anew since it came back, and claimed before its return was answered. */
static bool goes_again(const struct sim_node *n, const struct model_mark *m)
{
    const struct model_mark *newest = model_mark_of(n->sim->model, m->key);
    return newest->id != m->id && newest->since >= n->began_at && model_is_decided(newest);
}

/* What came back is what was marked, if nobody has uploaded anything meanwhile. */
static void judge_returned(struct sim_node *n, const struct model_mark *m)
{
    struct bucket_object now, copy;
    char key[RP_QUARANTINE_KEY];
    struct sim *s = n->sim;
    sim_see(s, SIGHT_RETURNED);
    if (n->sent_at_begin != n->sim->sent || n->sim->misled[n->index] || m == NULL) return;
    if (s->kind == BUCKET_VERSION && bucket_has_version(s->bucket, m->key, m->version)) {
        bool shows = bucket_look(s->bucket, m->key, &now) && strcmp(now.identity.version, m->version) == 0;
        sim_see(s, SIGHT_SHOWN);
        if (!shows && n->waiting_at_begin == bucket_late(s->bucket) && !goes_again(n, m))
            sim_violate(s, "RESTORE-WINS", "%s was returned, and does not show itself", m->key);
    }
    if (!bucket_look(n->sim->bucket, rp_quarantine_key(m->id, key), &copy) ||
        !bucket_look(n->sim->bucket, m->key, &now))
        return;
    char text[64];
    snprintf(text, sizeof text, "%s", copy.text);
    bucket_look(n->sim->bucket, m->key, &now);
    if (strcmp(text, now.text) != 0)
        sim_violate(n->sim, "RESTORE-WINS", "%s was returned, and something else stands there", m->key);
}

static void judge_restore_answer(struct sim_node *n, int64_t mark_id, const struct rp_reprieve_answer *a)
{
    struct sim *s = n->sim;
    const struct model_mark *m = model_mark(s->model, mark_id);
    if (a->what == RP_REPRIEVE_REFUSED) {
        if (a->error.code == RP_ETOOLATE) sim_see(s, SIGHT_TOO_LATE);
        return;
    }
    if (a->what == RP_REPRIEVE_RETURNED) judge_returned(n, m);
    bool ended = m != NULL && (m->state == RP_REPRIEVED || (m->state == RP_PURGED && m->outcome == RP_END_QUARANTINED));
    if (!ended)
        sim_violate(s, "RESTORE-WINS", "a restore of %s was acknowledged, and its mark goes on",
                    m != NULL ? m->key : "?");
}

/* The arena is the node's own as long as the command lasts. */
static int restore(struct sim_node *n, struct rp_arena *arena)
{
    static struct rp_reprieve_answer answers[SIM_NODES][3];
    struct sim_command *c = &n->command;
    struct rp_mark marks[3];
    struct rp_error err = { 0 };
    struct rp_reprieve_answer *a = answers[n->index];
    memset(a, 0, sizeof answers[0]);
    for (size_t i = 0; i < c->n_keys; i++) {
        int r = ask_newest(n->catalog, &n->store, sim_key(c->keys[i]), arena, &marks[i], &err);
        if (r < 0) return r;
    }
    int r = rp_reprieve_many(n->catalog, &n->store, marks, c->n_keys, ACTOR, a, &err);
    if (r < 0 || sim_is_unheard(n)) return r;
    for (size_t i = 0; i < c->n_keys; i++)
        judge_restore_answer(n, marks[i].id, &a[i]);
    return a[0].what == RP_REPRIEVE_REFUSED ? a[0].error.code : 0;
}

int sim_give_restore(struct sim_node *n)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 18);
    return restore(n, &arena);
}

/* ---- holds ---- */

int sim_give_hold(struct sim_node *n)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    struct sim_command *c = &n->command;
    struct rp_error err = { 0 };
    struct rp_hold_command q = { .scope = RP_SCOPE_SUBJECT,
                                 .store = &n->store,
                                 .key = sim_key(c->keys[0]),
                                 .reason = "audit",
                                 .command.actor = ACTOR };
    if (c->body == 1)
        q = (struct rp_hold_command){ .scope = RP_SCOPE_EVERYTHING, .reason = "audit", .command.actor = ACTOR };
    if (c->body == 2) q.scope = RP_SCOPE_PREFIX, q.key = "a/";
    if (c->body == 3)
        q = (struct rp_hold_command){
            .scope = RP_SCOPE_TENANT, .tenant = "t0", .reason = "audit", .command.actor = ACTOR
        };
    int r = ask_hold(n->catalog, &q, &arena, &err);
    if (r < 0 || sim_is_unheard(n)) return r;
    bool there = false;
    for (size_t i = 0; i < n->sim->model->n_holds; i++)
        there = there || n->sim->model->holds[i].id == q.id;
    if (!there) sim_violate(n->sim, "AUDITED", "a hold that was acknowledged is not there");
    return 0;
}

int sim_give_lift(struct sim_node *n)
{
    struct rp_error err = { 0 };
    struct model *m = n->sim->model;
    int r = 0;
    for (size_t i = 0; i < m->n_holds && r == 0; i++)
        if (!m->holds[i].lifted) r = ask_lift(n->catalog, m->holds[i].id, ACTOR, &err);
    return r;
}

/* ---- those who run the place ---- */

struct letters {
    int64_t ids[16];
    size_t n;
};

static int keep_letter(void *ctx, const struct rp_dead *dead, struct rp_error *err)
{
    struct letters *letters = ctx;
    (void)err;
    if (letters->n < 16) letters->ids[letters->n++] = dead->id;
    return 0;
}

/* The first that can be decided: one whose copy in quarantine is being erased has to wait for that. */
int sim_give_dead(struct sim_node *n)
{
    struct letters letters = { .n = 0 };
    enum rp_state as;
    struct rp_error err = { 0 };
    int r = rp_dead_each(n->catalog->db, 0, 16, keep_letter, &letters, &err);
    if (r < 0 || letters.n == 0) return r;
    r = RP_EERASING;
    for (size_t i = 0; i < letters.n && r == RP_EERASING; i++)
        r = n->command.flag ? ask_retry(n->catalog, letters.ids[i], ACTOR, &err)
                            : ask_keep(n->catalog, letters.ids[i], ACTOR, &as, &err);
    return r;
}

int sim_give_recover(struct sim_node *n)
{
    struct rp_recovery recovery;
    struct rp_owner before;
    struct rp_error err = { 0 };
    if (n->sim->home.lossless && n->command.flag)
        return rp_owner_accept_move(n->catalog, &n->store, "test", ACTOR, &before, &err);
    int r = rp_owner_recover(n->catalog, &n->store, "test", ACTOR, false, &recovery, &err);
    if (r < 0 || sim_is_unheard(n)) return r;
    for (size_t i = 0; i < n->sim->model->n_marks; i++) {
        const struct model_mark *m = &n->sim->model->marks[i];
        /* whoever marks something right after it means it; so does a file's own mark */
        if (m->state == RP_MARKED && m->since < n->began_at && m->file_id == 0 && !rp_quarantine_is(m->key))
            sim_violate(n->sim, "RESTORE-WINS", "%s still waits for its purge after a recovery", m->key);
    }
    return 0;
}

int sim_give_import(struct sim_node *n)
{
    RP_CLEANUP(rp_import_end) struct rp_import import = { .store = &n->store, .prefix = "", .actor = ACTOR };
    struct rp_error err = { 0 };
    int r = rp_import_begin(&import, &err);
    if (r < 0) return r;
    do
        r = rp_import_next(&import, n->catalog, &err);
    while (r == 1);
    return r;
}

/* A person believes the clock, right or wrong. */
int sim_give_clock(struct sim_node *n)
{
    struct rp_error err = { 0 };
    struct rp_clock_accept accept = { .actor = ACTOR, .as_is = n->command.flag };
    int r = rp_clock_accept(n->catalog, &accept, &err);
    if (r == 0 && accept.stands) sim_see(n->sim, SIGHT_CLOCK_ACCEPTED);
    if (rp_raises_is_pending(n->raises, 0)) sim_raise(n); /* its session ends with it (lib/session.c) */
    return r;
}

int sim_give_quota(struct sim_node *n)
{
    struct rp_error err = { 0 };
    int64_t limit = n->command.flag ? n->command.grace_ms : -1;
    return ask_quota(n->catalog, n->command.body == 0 ? "t0" : "t1", limit, ACTOR, &err);
}
