/* SPDX-License-Identifier: Apache-2.0 */
/* Every committed change of a file, a tenant and a transaction. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backups.h"
#include "base/assert.h"
#include "catalog/file/transaction.h"
#include "journal.h"
#include "judge.h"
#include "node.h"
#include "task.h"
#include "verb.h"
#include "world.h"

#define BY SIM_BY

static const struct sim_move moves[] = {
    { 0, RP_FILE_PENDING, BY(INIT) },
    { RP_FILE_PENDING, RP_FILE_LIVE, BY(CONFIRM) | BY(COMMIT) },
    { RP_FILE_PENDING, RP_FILE_SCANNING, BY(CONFIRM) | BY(COMMIT) },
    { RP_FILE_SCANNING, RP_FILE_LIVE, BY(RESULT) },
    { RP_FILE_PENDING, RP_FILE_DELETED, BY(DELETE) | BY(CONFIRM) | BY(COMMIT) | BY(RESULT) },
    { RP_FILE_SCANNING, RP_FILE_DELETED, BY(DELETE) | BY(RESULT) | BY(CONFIRM) | BY(COMMIT) },
    { RP_FILE_LIVE, RP_FILE_DELETED, BY(DELETE) | BY(CONFIRM) | BY(COMMIT) | BY(RESULT) },
    { RP_FILE_DELETED, RP_FILE_LIVE, BY(UNDELETE) | BY(RETURN) | BY(DEAD) },
    { RP_FILE_DELETED, RP_FILE_SCANNING, BY(UNDELETE) | BY(RETURN) | BY(DEAD) },
    { RP_FILE_DELETED, RP_FILE_PENDING, BY(UNDELETE) },
    { RP_FILE_PENDING, RP_FILE_EXPIRED, BY(SWEEP) },
    { RP_FILE_DELETED, RP_FILE_PURGED, BY(SWEEP) },
};

static bool may_move(int from, int to, enum sim_verb by)
{
    return sim_may_move(moves, sizeof moves / sizeof moves[0], from, to, by);
}

static bool lives(int status)
{
    return rp_status_lives((enum rp_status)status);
}

void sim_judge_new_file(struct sim *s, struct sim_node *n, const struct journal_file *r)
{
    struct model *m = s->model;
    RP_ASSERT(m->n_files < MODEL_FILES_MAX);
    sim_say(s, "node %d: %s: file %s is %s", n->index, sim_verb_name(n->command.verb), r->name, r->key);
    if (!may_move(0, r->to, n->command.verb))
        sim_violate(s, "STATES", "a %s made a file", sim_verb_name(n->command.verb));
    if (model_file_of_key(m, r->key) != NULL) sim_violate(s, "NO-LOSS", "the key %s is used twice", r->key);
    struct model_file *f = &m->files[m->n_files++];
    *f = (struct model_file){ .id = r->id,
                              .tenant_id = r->tenant_id,
                              .mark_id = r->mark_id,
                              .parent_id = r->parent_id,
                              .source_id = r->source_id,
                              .txn_id = r->txn_id,
                              .with_id = r->with_id,
                              .made_ms = s->now_ms,
                              .size_bytes = r->size_bytes,
                              .status = r->to,
                              .was = r->was };
    snprintf(f->key, sizeof f->key, "%s", r->key);
    snprintf(f->name, sizeof f->name, "%s", r->name);
}

/* Bytes before live: and those that its user sent. */
static void judge_bytes(struct sim *s, const struct model_file *f)
{
    struct bucket_object o;
    if (sim_may_lack_bytes(s, f)) return;
    /* what a late delete took after its return is missing until its copy is looked at; in the end
     * it is there */
    if (f->lost && sim_is_owed(s, f->key) && !bucket_look(s->bucket, f->key, &o)) return;
    /* likewise what a late marker hides, also between its return and the commit of it: the version
     * is there */
    if (bucket_marker(s->bucket, f->key, &o) && o.late && bucket_below(s->bucket, f->key, &o)) return;
    if (!bucket_look(s->bucket, f->key, &o)) {
        sim_violate(s, "NO-LOSS", "file %s (%s) lives, and its bytes are not there", f->name, f->key);
        return;
    }
    if ((int64_t)strlen(o.text) != f->size_bytes) sim_violate(s, "NO-LOSS", "file %s has other bytes", f->name);
}

static void judge_living(struct sim *s, struct sim_node *n, struct model_file *f, int from)
{
    judge_bytes(s, f);
    f->lived++;
    if (from == RP_FILE_DELETED) f->returned++;
    if (n->command.verb == VERB_RETURN) sim_see(s, SIGHT_RETURNED);
    if (from == RP_FILE_PENDING && f->txn_id != 0 && n->command.verb != VERB_COMMIT)
        sim_violate(s, "TXN-ATOMIC", "file %s became visible before its transaction", f->name);
}

static bool owns(const struct model_file *of, const struct model_file *f)
{
    return f->parent_id == of->id || f->source_id == of->id;
}

/* A delete takes along what belongs to the file: who was it about? */
static bool was_meant(const struct sim *s, const struct sim_node *n, const struct model_file *f)
{
    if (n->command.verb != VERB_DELETE || n->file_id == f->id) return true;
    for (int depth = 0; f != NULL && depth < 8; depth++) {
        if (f->id == n->file_id) return true;
        f = model_file(s->model, f->parent_id != 0 ? f->parent_id : f->source_id);
    }
    return false;
}

void sim_judge_file(struct sim *s, struct sim_node *n, const struct journal_file *r)
{
    struct model_file *f = model_file(s->model, r->id);
    RP_ASSERT(f != NULL);
    int from = f->status;
    f->mark_id = r->mark_id;
    f->was = r->was;
    f->with_id = r->with_id;
    if (from == r->to) return;
    if (n->wrong_tenant) sim_violate(s, "TENANT", "file %s was changed for another tenant", f->name);
    sim_say(s, "node %d: %s: file %s (%s): %s to %s", n->index, sim_verb_name(n->command.verb), f->name, f->key,
            rp_status_name((enum rp_status)from), rp_status_name((enum rp_status)r->to));
    if (!may_move(from, r->to, n->command.verb))
        sim_violate(s, "STATES", "file %s went from %s to %s by a %s", f->name, rp_status_name((enum rp_status)from),
                    rp_status_name((enum rp_status)r->to), sim_verb_name(n->command.verb));
    f->status = r->to;
    f->over_least_ms = sim_boot_time_least_ms(s);
    if (lives(r->to)) judge_living(s, n, f, from);
    if (r->to == RP_FILE_EXPIRED) sim_see(s, SIGHT_EXPIRED);
    if (r->to != RP_FILE_DELETED) return;
    f->deleted++;
    if (n->command.verb == VERB_CONFIRM || n->command.verb == VERB_COMMIT) sim_see(s, SIGHT_REPLACED);
    if (!was_meant(s, n, f)) sim_violate(s, "NO-LOSS", "file %s was deleted with another one", f->name);
    if (n->command.verb == VERB_DELETE && n->file_id != f->id) sim_see(s, SIGHT_FAMILY);
}

void sim_judge_tenant(struct sim *s, struct sim_node *n, const struct journal_tenant *r)
{
    int64_t limit = r->limit_bytes >= 0 ? r->limit_bytes : s->uploads.quota_default_bytes;
    if (r->after_bytes > r->before_bytes && r->after_bytes > limit)
        sim_violate(s, "QUOTA-EXACT", "%s: a tenant has %" PRId64 " of %" PRId64 " bytes",
                    sim_verb_name(n->command.verb), r->after_bytes, limit);
    if (r->after_bytes < 0) sim_violate(s, "QUOTA-EXACT", "a tenant has %" PRId64 " bytes", r->after_bytes);
}

void sim_judge_txn(struct sim *s, struct sim_node *n, int64_t id, int64_t state, int is_new)
{
    struct model *m = s->model;
    RP_ASSERT(m->n_txns < MODEL_TXNS_MAX);
    struct model_txn *t = is_new ? &m->txns[m->n_txns++] : model_txn(m, id);
    RP_ASSERT(t != NULL);
    if (!is_new && t->state != RP_TXN_OPEN && t->state != state)
        sim_violate(s, "TXN-ATOMIC", "a transaction that had ended changed by a %s", sim_verb_name(n->command.verb));
    *t = (struct model_txn){ .id = id, .state = (int)state, .over_least_ms = sim_boot_time_least_ms(s) };
}

/* ---- together ---- */

static void judge_members(struct sim *s, const struct model_txn *t)
{
    int visible = 0, hidden = 0;
    for (size_t i = 0; i < s->model->n_files; i++) {
        const struct model_file *f = &s->model->files[i];
        if (f->txn_id != t->id) continue;
        visible += f->lived > 0;
        hidden += f->lived == 0;
    }
    bool whole = t->state == RP_TXN_COMMITTED ? hidden == 0 : visible == 0;
    if (!whole)
        sim_violate(s, "TXN-ATOMIC", "of a transaction in state %d %d members are visible, %d are not", t->state,
                    visible, hidden);
}

static void judge_family(struct sim *s, const struct model_file *f)
{
    if (!lives(f->status)) return;
    for (size_t i = 0; i < s->model->n_files; i++) {
        const struct model_file *owner = &s->model->files[i];
        bool over =
            owner->status == RP_FILE_DELETED || owner->status == RP_FILE_PURGED || owner->status == RP_FILE_EXPIRED;
        if (owns(owner, f) && over)
            sim_violate(s, "FAMILY", "file %s lives, and what it belongs to (%s) does not", f->name, owner->name);
    }
}

static void judge_mark_of(struct sim *s, const struct model_file *f)
{
    const struct model_mark *m = model_mark(s->model, f->mark_id);
    if (m == NULL || (m->gone && !f->gone)) {
        sim_violate(s, "STATES", "file %s has no mark", f->name);
        return;
    }
    if (lives(f->status) && m->state != RP_REPRIEVED)
        sim_violate(s, "RESTORE-WINS", "file %s lives, and its mark is %d", f->name, m->state);
    if (f->status == RP_FILE_PENDING && m->state != RP_MARKED)
        sim_violate(s, "STATES", "file %s is pending, and its mark is %d", f->name, m->state);
    if (f->status == RP_FILE_DELETED && m->state == RP_REPRIEVED)
        sim_violate(s, "EVENTUAL", "file %s is deleted, and nothing waits for it", f->name);
}

/* What was deleted along with a file comes back with it, unless its name was taken or something
 * else that it belongs to is gone. */
static void judge_return(struct sim *s, const struct model_file *root, const struct model_file *f)
{
    const struct model_mark *m = model_mark(s->model, f->mark_id);
    if (f == root || f->with_id != root->id || f->status != RP_FILE_DELETED || f->was == RP_FILE_PENDING) return;
    if (m == NULL || m->state != RP_MARKED) return;
    for (size_t i = 0; i < s->model->n_files; i++) {
        const struct model_file *other = &s->model->files[i];
        if (other != root && owns(other, f) && !lives(other->status)) return;
        if (lives(other->status) && other->tenant_id == f->tenant_id && strcmp(other->name, f->name) == 0) return;
    }
    sim_violate(s, "RESTORE-WINS", "file %s was deleted with %s, and did not come back with it", f->name, root->name);
}

void sim_judge_commit(struct sim *s, struct sim_node *n)
{
    const struct model_file *root = n->command.verb == VERB_UNDELETE ? model_file(s->model, n->file_id) : NULL;
    for (size_t i = 0; root != NULL && lives(root->status) && i < s->model->n_files; i++)
        judge_return(s, root, &s->model->files[i]);
    for (size_t i = 0; i < s->model->n_files; i++) {
        judge_mark_of(s, &s->model->files[i]);
        judge_family(s, &s->model->files[i]);
    }
    for (size_t i = 0; i < s->model->n_txns; i++)
        judge_members(s, &s->model->txns[i]);
    for (size_t i = 0; i < s->model->n_files; i++)
        for (size_t k = 0; k < i; k++) {
            const struct model_file *a = &s->model->files[i], *b = &s->model->files[k];
            if (lives(a->status) && lives(b->status) && a->tenant_id == b->tenant_id && strcmp(a->name, b->name) == 0)
                sim_violate(s, "STATES", "two files named %s live", a->name);
        }
}
