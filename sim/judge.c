/* SPDX-License-Identifier: Apache-2.0 */
/* Every committed change of a mark, and every byte that goes: was it asked for, was it allowed, was
 * it time? */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backups.h"
#include "base/assert.h"
#include "base/id.h"
#include "core/guarantee.h"
#include "core/state.h"
#include "core/subject/quarantine.h"
#include "journal.h"
#include "judge.h"
#include "node.h"
#include "owner.h"
#include "task.h"
#include "users.h"
#include "verb.h"
#include "world.h"

#define BY    SIM_BY
#define FILES (BY(CONFIRM) | BY(DELETE) | BY(UNDELETE) | BY(RESULT) | BY(COMMIT) | BY(INIT))

static const struct sim_move moves[] = {
    { 0, RP_MARKED, BY(MARK) | BY(IMPORT) | BY(RESTORE) | BY(RETURN) | BY(SWEEP) | FILES },
    { RP_MARKED, RP_MARKED, BY(MARK) | BY(SWEEP) | BY(DELETE) | BY(RECOVER) | BY(CLOCK) },
    { RP_MARKED, RP_CHECKING, BY(SWEEP) | BY(ASK) },
    { RP_MARKED, RP_PURGING, BY(SWEEP) },
    { RP_MARKED, RP_REPRIEVED, BY(RESTORE) | BY(RETURN) | BY(MARK) | BY(IMPORT) | BY(RECOVER) | BY(DEAD) | FILES },
    { RP_CHECKING, RP_CHECKING, BY(SWEEP) | BY(ASK) | BY(ANSWER) },
    { RP_CHECKING, RP_PURGING, BY(SWEEP) },
    { RP_CHECKING, RP_MARKED, BY(SWEEP) | BY(ASK) | BY(RECOVER) },
    { RP_CHECKING, RP_DEAD, BY(SWEEP) | BY(ASK) | BY(ANSWER) | BY(RECOVER) },
    { RP_CHECKING, RP_REPRIEVED, BY(RECOVER) | BY(ASK) },
    { RP_PURGING, RP_PURGING, BY(SWEEP) },
    { RP_PURGING, RP_PURGED, BY(SWEEP) },
    { RP_PURGING, RP_DEAD, BY(SWEEP) },
    { RP_PURGING, RP_REPRIEVED, BY(SWEEP) },
    { RP_DEAD, RP_CHECKING, BY(DEAD) | BY(ANSWER) },
    { RP_DEAD, RP_PURGING, BY(DEAD) },
    { RP_DEAD, RP_REPRIEVED, BY(DEAD) | BY(RESTORE) | BY(RETURN) | BY(UNDELETE) },
    { RP_DEAD, RP_LOST, BY(DEAD) },
};

static bool may_move(int from, int to, enum sim_verb by)
{
    return sim_may_move(moves, sizeof moves / sizeof moves[0], from, to, by);
}

static const char *name_of(int state)
{
    return state == 0 ? "nothing" : rp_state_name((enum rp_state)state);
}

int sim_holder(const struct sim_node *n)
{
    return n->life * 16 + n->index + 1;
}

static size_t plain_index(const char *key)
{
    for (size_t i = 0; i < SIM_KEYS; i++)
        if (strcmp(sim_key(i), key) == 0) return i;
    return SIZE_MAX;
}

static void fill(struct model_mark *m, const struct journal_mark *r)
{
    m->due_at_ms = r->due_at_ms;
    m->next_at_ms = r->next_at_ms;
    m->fence = r->fence;
    m->state = r->to;
    m->was = r->was;
    m->outcome = r->outcome;
    snprintf(m->etag, sizeof m->etag, "%s", r->etag);
    snprintf(m->version, sizeof m->version, "%s", r->version);
}

/* ---- new marks ---- */

static bool asked_for(const struct sim_node *n, const char *key)
{
    const struct sim_command *c = &n->command;
    size_t i = plain_index(key);
    const struct model_file *f = model_file_of_key(n->sim->model, key);
    if (f != NULL)
        return f->status == RP_FILE_PURGED || f->status == RP_FILE_EXPIRED; /* the file's own marks are others */
    if (c->verb == VERB_IMPORT) return i != SIZE_MAX;
    for (size_t k = 0; k < c->n_keys; k++)
        if (c->keys[k] == i) return true;
    return false;
}

static void judge_promise(struct sim *s, const struct sim_node *n, const struct journal_mark *r)
{
    const struct sim_command *c = &n->command;
    if (c->verb != VERB_MARK || n->jumps_at_begin != s->jumps) return;
    int64_t grace_ms = c->grace_ms >= 0 ? c->grace_ms : s->config.grace_ms;
    if (r->due_at_ms < n->latest_at_begin_ms + grace_ms)
        sim_violate(s, "NO-EARLY", "%s is due %" PRId64 " ms before its grace is over by the latest clock", r->key,
                    n->latest_at_begin_ms + grace_ms - r->due_at_ms);
}

/* Of marks that people made the references are counted, whatever they were made with (core/check,
 * Q5). */
static bool is_asked(const struct journal_mark *r)
{
    bool unseen = r->file_id != 0 && r->etag[0] == 0 && r->version[0] == 0;
    return !unseen && !rp_quarantine_is(r->key);
}

void sim_judge_new_mark(struct sim *s, struct sim_node *n, const struct journal_mark *r)
{
    struct model *m = s->model;
    const struct model_mark *before = model_mark_of(m, r->key);
    RP_ASSERT(m->n_marks < MODEL_MARKS_MAX);
    char id[RP_ID_TEXT];
    sim_say(s, "node %d: %s: mark of %s made (%s), due %" PRId64, n->index, sim_verb_name(n->command.verb), r->key,
            rp_id_format(RP_ID_MARK, r->id, id), r->due_at_ms - SIM_START_MS);
    if (!may_move(0, r->to, n->command.verb))
        sim_violate(s, "STATES", "%s was marked by a %s", r->key, sim_verb_name(n->command.verb));
    if (before != NULL && model_is_active(before)) sim_violate(s, "ONE-ACTIVE", "%s is marked twice", r->key);
    if (r->file_id == 0 && !rp_quarantine_is(r->key)) {
        if (!asked_for(n, r->key)) sim_violate(s, "NO-LOSS", "%s was marked, and nobody asked for that", r->key);
        judge_promise(s, n, r);
    }
    struct model_mark *mark = &m->marks[m->n_marks++];
    *mark = (struct model_mark){ .id = r->id,
                                 .file_id = r->file_id,
                                 .tenant_id = r->tenant_id,
                                 .in_place = r->in_place,
                                 .returned = rp_quarantine_is(r->key) && n->command.verb != VERB_SWEEP,
                                 .asks = r->checks != 0 || is_asked(r),
                                 .since = s->steps };
    snprintf(mark->key, sizeof mark->key, "%s", r->key);
    fill(mark, r);
}

/* ---- claims ---- */

bool sim_is_weak(const struct sim *s, bool reused)
{
    return !bucket_has_condition(s->kind) && (reused || s->config.keys != RP_KEYS_WRITE_ONCE) &&
           !s->config.allow_window_deletes;
}

/* It had looked at the record when the catalog was put back in its place, and the epoch that it
 * knew is no later than the backup's: only others have raised it since (src/core/owner/owner.h,
 * O6). */
static bool has_looked_before(const struct sim_node *n)
{
    return sim_is_stale(n) && n->epoch_at_begin <= sim_catalog_epoch(n->sim);
}

static void judge_claim(struct sim *s, struct sim_node *n, struct model_mark *m, const struct journal_mark *r)
{
    if (r->fence != m->fence + 1) sim_violate(s, "FENCED", "%s was claimed without a new fence", m->key);
    /* nothing is erased by a claim of an asker, and some services are asked at once */
    bool early = n->command.verb == VERB_ASK && sim_is_asked_now(s, m->id);
    if (!early && m->due_at_ms > n->early_ms)
        sim_violate(s, "NO-EARLY", "%s was claimed %" PRId64 " ms before it was due on every clock", m->key,
                    m->due_at_ms - n->early_ms);
    if (!early && m->due_at_ms > sim_boot_time_most_ms(s))
        sim_violate(s, "NO-EARLY", "%s was claimed %" PRId64 " ms before it was due by the time that really passed",
                    m->key, m->due_at_ms - sim_boot_time_most_ms(s));
    if (r->next_at_ms < n->early_ms + s->rules.lease_ms - RP_SECOND_MS && n->jumps_at_begin == s->jumps)
        sim_violate(s, "FENCED", "%s was claimed for %" PRId64 " ms only", m->key, r->next_at_ms - n->early_ms);
    if (r->old_next_ms > n->early_ms)
        sim_violate(s, "FENCED", "%s was claimed while another's lease was good for %" PRId64 " ms", m->key,
                    r->old_next_ms - n->early_ms);
    if (model_is_held(s->model, m->key, m->tenant_id))
        sim_violate(s, "HOLD", "%s was claimed in spite of a hold", m->key);
    if (sim_is_weak(s, false) && m->file_id == 0 && !rp_quarantine_is(m->key))
        sim_violate(s, "HONEST", "%s was claimed, and the store cannot delete exactly that", m->key);
    if (s->home.moved) sim_violate(s, "OWNER", "%s was claimed by a catalog that lies in another place", m->key);
    if (!n->owned && !sim_owns(s, n) && !has_looked_before(n))
        sim_violate(s, "OWNER", "%s was claimed in a store that is not ours", m->key);
    if (m->asks && m->state == RP_MARKED && r->to == RP_PURGING)
        sim_violate(s, "GUARD", "%s was claimed past its guard", m->key);
    if (m->state != RP_MARKED && m->holder != 0) {
        sim_see(s, SIGHT_TAKEOVER);
        const struct sim_node *old = &s->nodes[(m->holder - 1) % 16];
        if (!old->dead && sim_holder(old) == m->holder && sim_claims(old->command.verb)) sim_see(s, SIGHT_STALE_HOLDER);
    }
    m->weakly |= rp_store_level(&n->store) == RP_LEVEL_WINDOW;
    m->holder = sim_holder(n);
}

/* ---- the end of a mark ---- */

/* Whether the upload that a mark is about is still in the bucket. */
static bool still_held(const struct sim *s, const struct model_mark *m)
{
    struct bucket_object o;
    if (!bucket_look(s->bucket, m->key, &o)) return false;
    if (m->etag[0] == '\0' && m->file_id != 0) return true;
    return strcmp(o.identity.etag, m->etag) == 0 && strcmp(o.identity.version, m->version) == 0;
}

static void judge_purged(struct sim *s, const struct model_mark *m)
{
    char copy[RP_QUARANTINE_KEY];
    struct bucket_object o;
    bool gone = m->outcome == RP_END_ERASED || m->outcome == RP_END_GONE || m->outcome == RP_END_QUARANTINED;
    if (m->outcome == RP_END_SUPERSEDED) sim_see(s, SIGHT_SUPERSEDED);
    if (m->outcome == RP_END_QUARANTINED) {
        sim_see(s, SIGHT_QUARANTINED);
        bool hidden = s->kind == BUCKET_VERSION && bucket_has_version(s->bucket, m->key, m->version);
        if (hidden) sim_see(s, SIGHT_HIDDEN);
        size_t i = plain_index(m->key);
        if (!hidden && !bucket_look(s->bucket, rp_quarantine_key(m->id, copy), &o) && (i == SIZE_MAX || !s->taken[i]))
            sim_violate(s, "NO-LOSS", "%s was moved to quarantine, and is not there", m->key);
    }
    /* identical bytes uploaded meanwhile cannot be told apart where the etag is all there is */
    bool twins = s->kind == BUCKET_ETAG || !bucket_has_condition(s->kind);
    /* somebody may have removed our delete marker before we said so */
    size_t plain = plain_index(m->key);
    bool shown = m->outcome == RP_END_QUARANTINED && s->kind == BUCKET_VERSION && plain != SIZE_MAX && s->taken[plain];
    /* a PUT may end at any moment: there is a second mark for that */
    bool unborn = m->etag[0] == '\0' && m->file_id != 0;
    if (gone && !s->lied && !twins && !shown && !unborn && still_held(s, m))
        sim_violate(s, "EVENTUAL", "%s is called purged, and is still there", m->key);
}

static void judge_end(struct sim *s, struct sim_node *n, struct model_mark *m, int from)
{
    if (from == RP_PURGING && (m->state == RP_PURGED || m->state == RP_REPRIEVED)) judge_purged(s, m);
    if (from == RP_PURGING && m->state == RP_REPRIEVED && (m->outcome != RP_END_SUPERSEDED || m->file_id != 0))
        sim_violate(s, "RESTORE-WINS", "%s was reprieved past the point of no return", m->key);
    if (m->state == RP_DEAD && from == RP_PURGING) sim_see(s, SIGHT_USED_UP);
    if (m->state == RP_REPRIEVED && n->command.verb == VERB_MARK && m->outcome != RP_END_SUPERSEDED)
        sim_violate(s, "STATES", "%s: a mark ended another one", m->key);
    if (m->state == RP_REPRIEVED && n->command.verb == VERB_RESTORE && m->file_id == 0 && !rp_quarantine_is(m->key) &&
        !asked_for(n, m->key))
        sim_violate(s, "STATES", "%s was reprieved, and nobody asked for that", m->key);
    if (from == RP_CHECKING && m->state == RP_PURGING) {
        size_t i = plain_index(m->key);
        if (m->asks && i != SIZE_MAX && n->refs[i] != 0)
            sim_violate(s, "GUARD", "%s passed its guard, which had said %d", m->key, n->refs[i]);
    }
    if (from == RP_CHECKING && m->state == RP_MARKED) sim_see(s, SIGHT_REFERENCED);
}

/* By the boot clock, which is true. */
static bool is_lease_over(const struct sim *s, const struct model_mark *m)
{
    return m->leased_at_ms != 0 && s->now_ms > m->leased_at_ms + s->rules.lease_ms;
}

static void note_lease(struct sim *s, struct model_mark *m, const struct journal_mark *r, bool claimed)
{
    bool again = r->to == RP_PURGING && m->state == RP_PURGING && !claimed;
    if (again && r->leased) sim_see(s, SIGHT_LEASE_RENEWED);
    if (again && !r->leased && r->next_at_ms == r->due_at_ms && is_lease_over(s, m)) sim_see(s, SIGHT_LEASE_OVER);
    m->leased_at_ms = r->leased ? s->now_ms : 0;
}

/* A request of a sweep that copies, or deletes one object without another look, is sent now. */
void sim_judge_sent(struct sim *s, const struct sim_node *n, const char *key)
{
    const struct model_mark *original = model_original(s->model, key);
    bool of_copy = original != NULL && model_is_active(original);
    const struct model_mark *m = of_copy ? original : model_mark_of(s->model, key);
    if (m != NULL && m->holder == sim_holder(n) && is_lease_over(s, m))
        sim_violate(s, "FENCED", "a request about %s was sent after its lease was over", m->key);
}

void sim_judge_mark(struct sim *s, struct sim_node *n, const struct journal_mark *r)
{
    struct model_mark *m = model_mark(s->model, r->id);
    RP_ASSERT(m != NULL);
    int from = m->state;
    if (from == r->to && r->fence == m->fence && r->next_at_ms == m->next_at_ms && r->due_at_ms == m->due_at_ms) {
        fill(m, r); /* an annotation, a new identity */
        return;
    }
    sim_say(s, "node %d: %s: mark of %s: %s to %s, fence %" PRId64, n->index, sim_verb_name(n->command.verb), r->key,
            name_of(from), name_of(r->to), r->fence);
    sim_judge_asked_mark(s, n, m, r);
    if (r->from != from) sim_violate(s, "STATES", "%s moved from a state that the model does not know", r->key);
    if (!may_move(from, r->to, n->command.verb))
        sim_violate(s, from == RP_PURGING && r->to == RP_REPRIEVED ? "RESTORE-WINS" : "STATES",
                    "%s went from %s to %s by a %s", r->key, name_of(from), name_of(r->to),
                    sim_verb_name(n->command.verb));
    if (r->due_at_ms < m->due_at_ms) sim_violate(s, "NO-EARLY", "the promise about %s was shortened", r->key);
    bool claimed = sim_claims(n->command.verb) && r->fence != m->fence;
    if (claimed)
        judge_claim(s, n, m, r);
    else if ((from == RP_CHECKING || from == RP_PURGING) && sim_claims(n->command.verb) && m->holder != sim_holder(n) &&
             !sim_is_stale(n)) /* fences repeat in a catalog that was put back under it */
        sim_violate(s, "FENCED", "%s was moved by node %d, which had lost its lease", r->key, n->index);
    if ((r->to == RP_REPRIEVED && from != RP_PURGING) ||
        (r->to == RP_MARKED && from == RP_MARKED && r->due_at_ms > m->due_at_ms))
        n->kept = true;
    if (r->to != RP_CHECKING && r->to != RP_PURGING) m->holder = 0;
    bool waits = n->command.verb == VERB_ANSWER || (n->command.verb == VERB_ASK && !r->leased);
    if (waits) m->holder = 0; /* for an answer, for the next attempt, or for the sweep */
    note_lease(s, m, r, claimed);
    fill(m, r);
    m->since = s->steps;
    m->over_least_ms = sim_boot_time_least_ms(s);
    judge_end(s, n, m, from);
}

/* ---- bytes ---- */

static bool is_about(const struct sim *s, const struct model_mark *m, const struct bucket_object *o)
{
    if (strcmp(m->key, o->key) != 0) return false;
    bool named = m->file_id != 0 || rp_quarantine_is(m->key);
    if (m->etag[0] == '\0' && m->version[0] == '\0' && named) return true;              /* before its object was */
    if (s->kind == BUCKET_VERSION) return strcmp(m->version, o->identity.version) >= 0; /* and all older ones */
    return strcmp(m->etag, o->identity.etag) == 0;
}

/* The mark of the copy that was made for this mark, once its object was returned; NULL: it was not. */
static const struct model_mark *returned_copy(struct sim *s, const struct model_mark *m)
{
    char copy[RP_QUARANTINE_KEY];
    if (m->outcome != RP_END_QUARANTINED) return NULL;
    const struct model_mark *aside = model_mark_of(s->model, rp_quarantine_key(m->id, copy));
    return aside != NULL && aside->returned ? aside : NULL;
}

bool sim_is_owed(struct sim *s, const char *key)
{
    struct bucket_object o;
    for (size_t i = s->model->n_marks; i-- > 0;) {
        const struct model_mark *m = &s->model->marks[i];
        const struct model_mark *aside = strcmp(m->key, key) == 0 ? returned_copy(s, m) : NULL;
        if (aside == NULL || !model_is_active(aside)) continue;
        if (aside->in_place ? bucket_has_version(s->bucket, key, aside->version)
                            : bucket_look(s->bucket, aside->key, &o))
            return true;
    }
    return false;
}

/* Nobody has decided about the object again since it was returned, or about its copy, also in a
 * catalog that was put back since. */
static bool is_settled(struct sim *s, const struct model_mark *of)
{
    char copy[RP_QUARANTINE_KEY];
    if (sim_is_undone(s, of->key) || sim_is_undone(s, rp_quarantine_key(of->id, copy))) return false;
    for (size_t i = 0; i < s->model->n_marks; i++) {
        const struct model_mark *m = &s->model->marks[i];
        if (m->id > of->id && strcmp(m->key, of->key) == 0 && model_is_decided(m)) return false;
    }
    return true;
}

/* A late delete took what was returned: its copy must be there still. */
static void judge_late(struct sim *s, const struct model_mark *m)
{
    sim_see(s, SIGHT_ZOMBIE_DELETE);
    if (returned_copy(s, m) == NULL || !is_settled(s, m)) return;
    sim_see(s, SIGHT_RETURN_MET);
    if (!sim_is_owed(s, m->key))
        sim_violate(s, "RESTORE-WINS", "%s was returned, and a late delete took it after its copy", m->key);
}

void sim_judge_returned(struct sim *s)
{
    struct bucket_object o;
    for (size_t i = 0; i < s->model->n_marks; i++) {
        const struct model_mark *m = &s->model->marks[i];
        size_t key = plain_index(m->key);
        if (key == SIZE_MAX || s->taken[key] || returned_copy(s, m) == NULL || !is_settled(s, m)) continue;
        if (!bucket_look(s->bucket, m->key, &o))
            sim_violate(s, "RESTORE-WINS", "%s was returned from quarantine, and is gone", m->key);
    }
}

/* What was hidden goes when the mark that it has in quarantine says so, and for no other reason.
 * NULL: it was not. */
static const struct model_mark *hidden_of(struct sim *s, const struct model_mark *m)
{
    char copy[RP_QUARANTINE_KEY];
    if (s->kind != BUCKET_VERSION || m->outcome != RP_END_QUARANTINED) return NULL;
    rp_quarantine_key(m->id, copy);
    for (size_t i = 0; i < s->model->n_marks; i++) {
        const struct model_mark *aside = &s->model->marks[i];
        if (aside->in_place && !aside->returned && strcmp(aside->key, copy) == 0) return aside;
    }
    return NULL;
}

/* In quarantine, and its time is not over. */
static bool is_hidden(struct sim *s, const struct bucket_object *o)
{
    for (size_t i = 0; i < s->model->n_marks; i++) {
        const struct model_mark *m = &s->model->marks[i];
        if (strcmp(m->key, o->key) != 0 || strcmp(m->version, o->identity.version) != 0) continue;
        const struct model_mark *aside = hidden_of(s, m);
        if (aside != NULL && model_is_active(aside) && !model_is_decided(aside)) return true;
    }
    return false;
}

static bool allows(struct sim *s, const struct model_mark *m, const struct bucket_object *o)
{
    const struct model_mark *aside = hidden_of(s, m);
    return is_about(s, m, o) && (aside == NULL || model_is_decided(aside));
}

/* In the end no upload is hidden by a marker of ours that nobody asked for. What a late request did
 * after the last look at it stays: a DELETE without a version names nothing (src/store/s3/hide.c). */
void sim_judge_hidden(struct sim *s)
{
    struct bucket_object marker, o;
    for (size_t key = 0; key < SIM_KEYS && s->kind == BUCKET_VERSION; key++) {
        if (!bucket_marker(s->bucket, sim_key(key), &marker) || marker.late || s->by_user[marker.serial]) continue;
        if (!bucket_below(s->bucket, sim_key(key), &o) || !s->by_user[o.serial] || s->taken[key]) continue;
        bool asked = s->past.unknown[marker.serial] || s->past.unknown[o.serial];
        for (size_t i = 0; i < s->model->n_marks && !asked; i++)
            asked = model_is_decided(&s->model->marks[i]) && is_about(s, &s->model->marks[i], &o);
        if (!asked) sim_violate(s, "NEWER-WINS", "%s, upload %" PRIu64 ", was hidden", o.key, o.serial);
    }
}

static const char *broken_by(struct sim *s, const struct bucket_object *o, bool decided_other)
{
    const struct model_mark *m = model_mark_of(s->model, o->key);
    if (decided_other) return "NEWER-WINS";
    if (m == NULL) return "NO-LOSS";
    if (m->state == RP_REPRIEVED) return "RESTORE-WINS";
    return m->state == RP_MARKED || m->state == RP_CHECKING || m->state == RP_DEAD ? "INTENT-FIRST" : "NO-LOSS";
}

/* A restore that was refused takes back the copy that it made itself - at once, or when the store
 * gets to it - as long as nobody was told that it had come back. */
static bool is_take_back(struct sim *s, const struct sim_node *n, const struct bucket_object *o,
                         const struct model_file *f)
{
    bool returning = n != NULL && (n->command.verb == VERB_RESTORE || n->command.verb == VERB_RETURN ||
                                   (n->command.verb == VERB_SWEEP && !s->by_user[o->serial]));
    char copy[RP_QUARANTINE_KEY];
    if (returning && o->serial > n->serial) return true;
    if (n != NULL || (f == NULL && s->by_user[o->serial])) return false;
    if (f != NULL) return f->status == RP_FILE_DELETED;
    for (size_t i = s->model->n_marks; i-- > 0;) {
        const struct model_mark *m = &s->model->marks[i];
        if (strcmp(m->key, o->key) != 0 || m->outcome != RP_END_QUARANTINED) continue;
        const struct model_mark *aside = model_mark_of(s->model, rp_quarantine_key(m->id, copy));
        return aside != NULL && aside->state != RP_REPRIEVED && !aside->returned;
    }
    return false;
}

/* Decided in a catalog that was put back since, by a request that was sent before, or by a node
 * that went on with what it had begun: nothing brings that back. */
static bool was_undone(const struct sim *s, const struct sim_node *n, const struct bucket_object *o)
{
    if (n != NULL && !sim_is_stale(n)) return false;
    for (size_t i = 0; i < s->past.n_undone; i++)
        if (is_about(s, &s->past.undone[i], o) ||
            (s->past.undone[i].in_place && strcmp(s->past.undone[i].version, o->identity.version) == 0))
            return true;
    return false;
}

/* Somebody else's delete marker stays, but for a return of what lies right below it. Once a hide
 * was sent, by this attempt or by one before, a single one on a newer upload may be taken for ours:
 * a marker does not say whose it is. */
static void judge_marker(struct sim *s, const struct sim_node *n, const struct bucket_object *o)
{
    const struct model_mark *m = model_mark_of(s->model, o->key);
    sim_say(s, "a marker of %s (%" PRIu64 ") goes", o->key, o->serial);
    if (!s->by_user[o->serial] || n == NULL || n->command.verb != VERB_SWEEP || sim_is_owed(s, o->key)) return;
    if (m == NULL || (m->fence < 2 && !n->hid))
        sim_violate(s, "NEWER-WINS", "somebody's delete marker on %s was removed by a sweep", o->key);
}

/* What was decided about this key, newest first, up to the mark that allows it. */
struct decision {
    const struct model_mark *by; /* NULL: no mark allows it */
    bool other;                  /* something was decided of another upload under the key */
    bool weakly;                 /* ... by a node that knew of no better way than to look and delete */
};

static struct decision decision_about(struct sim *s, const struct bucket_object *o)
{
    struct decision d = { 0 };
    for (size_t i = s->model->n_marks; i-- > 0 && d.by == NULL;) {
        const struct model_mark *m = &s->model->marks[i];
        if (strcmp(m->key, o->key) != 0) continue;
        /* it was seen to be replaced, while an earlier holder's request was still under way */
        d.other |= m->state == RP_REPRIEVED && m->outcome == RP_END_SUPERSEDED && m->fence > 1;
        if (!model_is_decided(m)) continue;
        d.other = true;
        d.weakly |= m->weakly;
        if (allows(s, m, o)) d.by = m;
    }
    return d;
}

/* The known remainder of level window: also where a probe was disturbed, and found less than there
 * is. */
static bool is_window_loss(const struct sim *s, const struct decision *d)
{
    bool window = !bucket_has_condition(s->kind) || (s->config.allow_window_deletes && d->weakly);
    return window && d->other && !sim_is_weak(s, false);
}

static void judge_deleted(struct sim *s, struct sim_node *n, const struct bucket_object *o)
{
    struct model_file *f = model_file_of_key(s->model, o->key);
    bool undone = was_undone(s, n, o);
    if (is_hidden(s, o) && !undone) {
        sim_violate(s, "NO-LOSS", "%s, upload %" PRIu64 ", went while it was in quarantine", o->key, o->serial);
        return;
    }
    struct decision d = decision_about(s, o);
    if (d.by != NULL) sim_judge_agreed(s, d.by, "is erased");
    if (d.by != NULL && n == NULL) judge_late(s, d.by);
    if (d.by != NULL || undone) {
        if (f != NULL) f->lost = true;
    } else if (is_take_back(s, n, o, f)) {
        return;
    } else if (f == NULL && is_window_loss(s, &d)) {
        sim_see(s, SIGHT_WINDOW_LOSS);
    } else {
        sim_violate(s, broken_by(s, o, d.other), "%s, upload %" PRIu64 ", was deleted by %s", o->key, o->serial,
                    n == NULL ? "a late request" : sim_verb_name(n->command.verb));
    }
}

static void judge_overwritten(struct sim *s, const struct sim_node *n, const struct bucket_object *o)
{
    if (n != NULL && n->command.verb == VERB_PUT) return; /* its user sends the same bytes again */
    sim_violate(s, "NEWER-WINS", "%s was overwritten by a %s", o->key,
                n == NULL ? "late request" : sim_verb_name(n->command.verb));
}

void sim_judge_gone(struct sim *s, struct sim_node *n, const struct bucket_object *o, bool overwritten)
{
    if (o->marker) {
        judge_marker(s, n, o);
        return;
    }
    if (rp_key_is_own(o->key) && !rp_quarantine_is(o->key)) {
        sim_judge_record(s, n, o, overwritten);
        return;
    }
    sim_say(s, "bytes of %s (upload %" PRIu64 ") %s", o->key, o->serial, overwritten ? "are overwritten" : "go");
    if (overwritten)
        judge_overwritten(s, n, o);
    else
        judge_deleted(s, n, o);
}
