/* SPDX-License-Identifier: Apache-2.0 */
/* What retention let go: had it ended, is it old enough, and does nobody look at it any more? */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "catalog/file/transaction.h"
#include "core/explain.h"
#include "journal.h"
#include "judge.h"
#include "node.h"
#include "task.h"
#include "uploads.h"
#include "users.h"
#include "verb.h"
#include "world.h"

/* ---- old enough ---- */

struct age {
    const char *what, *name;
    int64_t kept_ms, ended_at_ms; /* by the row */
    int64_t least_ms;             /* when it ended, at the least */
};

/* R4 of core/retention/retention.h: by every clock, and by the time that really passed. */
static void judge_age(struct sim *s, const struct sim_node *n, const struct age *a)
{
    int64_t young_ms = a->ended_at_ms + a->kept_ms - n->early_ms;
    if (young_ms > 0)
        sim_violate(s, "NO-EARLY", "%s %s was let go %" PRId64 " ms before it was old on every clock", a->what, a->name,
                    young_ms);
    young_ms = a->least_ms + a->kept_ms - sim_boot_time_most_ms(s);
    if (young_ms > 0)
        sim_violate(s, "NO-EARLY", "%s %s was let go %" PRId64 " ms before it was old by the time that really passed",
                    a->what, a->name, young_ms);
}

/* ---- marks ---- */

/* The first mark of this key that a waiting copy was made for; 0: no copy waits. */
static int64_t first_copied(struct model *m, const char *key)
{
    int64_t first = 0;
    for (size_t i = 0; i < m->n_marks; i++) {
        const struct model_mark *copy = &m->marks[i], *of = model_original(m, copy->key);
        if (!model_is_active(copy) || of == NULL || strcmp(of->key, key) != 0) continue;
        if (first == 0 || of->id < first) first = of->id;
    }
    return first;
}

/* The key of what was copied, or its own. */
static const char *subject_of(struct model *m, const struct model_mark *mark)
{
    const struct model_mark *original = model_original(m, mark->key);
    return original != NULL ? original->key : mark->key;
}

/* Marks of files go with them. Those of a file's object may have gone before. */
static int64_t kept_ms(const struct sim *s, const struct model_mark *m)
{
    if (m->file_id != 0) return s->retaining.config.files_ms;
    if (model_file_of_key(s->model, subject_of(s->model, m)) == NULL ||
        s->retaining.config.marks_ms < s->retaining.config.files_ms)
        return s->retaining.config.marks_ms;
    return s->retaining.config.files_ms;
}

static void let_mark_go(struct sim *s, struct sim_node *n, const struct journal_gone *r)
{
    struct model_mark *m = model_mark(s->model, r->id);
    if (m == NULL || m->gone || model_is_active(m)) {
        sim_violate(s, "STATES", "a mark is gone that nobody may let go");
        return;
    }
    int64_t copied = first_copied(s->model, m->key);
    if (copied != 0 && r->id >= copied)
        sim_violate(s, "STATES", "the mark of %s was let go, and a copy of it waits in quarantine", m->key);
    judge_age(s, n, &(struct age){ "the mark of", m->key, kept_ms(s, m), r->ended_at_ms, m->over_least_ms });
    m->gone = true;
    m->since = s->steps;
    sim_say(s, "node %d: retain: the mark of %s is let go", n->index, m->key);
    sim_see(s, SIGHT_LET_GO);
    if (s->faults.on) sim_see(s, SIGHT_LET_GO_IN_TROUBLE);
}

/* By its id, as the catalog counts: after a clock was set back it may not be the last that was
 * made. `there`: of those that are there still. */
static const struct model_mark *newest_of(const struct sim *s, const char *key, bool there)
{
    const struct model_mark *newest = NULL;
    for (size_t i = 0; i < s->model->n_marks; i++) {
        const struct model_mark *m = &s->model->marks[i];
        if (strcmp(m->key, key) != 0 || (there && m->gone)) continue;
        if (newest == NULL || m->id > newest->id) newest = m;
    }
    return newest;
}

/* M3 and M5 of core/retention/marks.c: who asks for the newest mark of a subject is not told an
 * older one. */
static void judge_left(struct sim *s, const struct model_mark *m)
{
    const struct model_mark *original = model_original(s->model, m->key);
    if (original != NULL && !original->gone)
        sim_violate(s, "STATES", "the mark of %s was let go before that of %s", m->key, original->key);
    if (newest_of(s, m->key, false) == m && newest_of(s, m->key, true) != NULL)
        sim_violate(s, "STATES", "the newest mark of %s was let go, and an older one is there", m->key);
}

/* ---- files, transactions ---- */

static void let_file_go(struct sim *s, struct sim_node *n, const struct journal_gone *r)
{
    struct model_file *f = model_file(s->model, r->id);
    if (f == NULL || f->gone || (f->status != RP_FILE_PURGED && f->status != RP_FILE_EXPIRED)) {
        sim_violate(s, "STATES", "a file is gone that nobody may let go");
        return;
    }
    for (size_t i = 0; i < s->model->n_files; i++) {
        const struct model_file *below = &s->model->files[i];
        if (!below->gone && (below->parent_id == r->id || below->source_id == r->id))
            sim_violate(s, "FAMILY", "file %s was let go before what belongs to it", f->name);
    }
    judge_age(s, n, &(struct age){ "file", f->name, s->retaining.config.files_ms, r->ended_at_ms, f->over_least_ms });
    f->gone = true;
    sim_say(s, "node %d: retain: file %s (%s) is let go", n->index, f->name, f->key);
}

/* F2 and F5 of core/retention/files.c: its marks have ended, and have gone with it. */
static void judge_marks_of(struct sim *s, const struct model_file *f)
{
    for (size_t i = 0; i < s->model->n_marks; i++) {
        const struct model_mark *m = &s->model->marks[i];
        const struct model_mark *original = model_original(s->model, m->key);
        bool is_its = m->file_id == f->id || (original != NULL && original->file_id == f->id);
        if (is_its && !m->gone) sim_violate(s, "STATES", "file %s was let go, and a mark of it is there", f->name);
    }
}

static void let_txn_go(struct sim *s, struct sim_node *n, const struct journal_gone *r)
{
    struct model_txn *t = model_txn(s->model, r->id);
    if (t == NULL || t->gone) {
        sim_violate(s, "STATES", "a transaction is gone that nobody may let go");
        return;
    }
    for (size_t i = 0; i < s->model->n_files; i++)
        if (s->model->files[i].txn_id == r->id && !s->model->files[i].gone)
            sim_violate(s, "TXN-ATOMIC", "a transaction was let go before its member %s", s->model->files[i].name);
    int64_t least_ms = r->over ? t->over_least_ms : INT64_MIN / 2;
    judge_age(s, n, &(struct age){ "a", "transaction", s->retaining.config.files_ms, r->ended_at_ms, least_ms });
    t->gone = true;
}

/* ---- the others ---- */

static void let_hold_go(struct sim *s, struct sim_node *n, const struct journal_gone *r)
{
    const struct model_hold *h = NULL;
    for (size_t i = 0; i < s->model->n_holds; i++)
        if (s->model->holds[i].id == r->id) h = &s->model->holds[i];
    if (h == NULL || !h->lifted)
        sim_violate(s, "HOLD", "a hold is gone that was not lifted");
    else
        judge_age(
            s, n,
            &(struct age){ "the hold of", h->key, s->retaining.config.marks_ms, r->ended_at_ms, h->over_least_ms });
}

void sim_judge_new_key(struct sim *s, int64_t id)
{
    struct model *m = s->model;
    RP_ASSERT(m->n_keys < MODEL_KEYS_MAX);
    m->keys[m->n_keys++] = (struct model_key){ .id = id, .over_least_ms = sim_boot_time_least_ms(s) };
}

static void let_key_go(struct sim *s, struct sim_node *n, const struct journal_gone *r)
{
    struct model *m = s->model;
    size_t i = 0;
    while (i < m->n_keys && m->keys[i].id != r->id)
        i++;
    if (i == m->n_keys) {
        sim_violate(s, "IDEMPOTENT", "an answer under %s is gone that never was", r->key);
        return;
    }
    judge_age(s, n,
              &(struct age){ "the answer under", r->key, s->retaining.config.keys_ms, rp_id_time_ms(r->id),
                             m->keys[i].over_least_ms });
    m->keys[i] = m->keys[--m->n_keys];
    sim_forget_key(s, r->key);
}

static void let_run_go(struct sim *s, struct sim_node *n, const struct journal_gone *r)
{
    if (!r->over) sim_violate(s, "RUNS", "a run is gone that has no record");
    judge_age(s, n, &(struct age){ "a", "run", s->retaining.config.marks_ms, r->ended_at_ms, INT64_MIN / 2 });
}

/* ---- all ---- */

void sim_judge_let_go(struct sim *s, struct sim_node *n, const struct journal_gone *r)
{
    static void (*const judges[])(struct sim *, struct sim_node *, const struct journal_gone *) = {
        [JOURNAL_MARK_GONE] = let_mark_go, [JOURNAL_FILE_GONE] = let_file_go, [JOURNAL_TXN_GONE] = let_txn_go,
        [JOURNAL_HOLD_GONE] = let_hold_go, [JOURNAL_KEY_GONE] = let_key_go,   [JOURNAL_RUN_GONE] = let_run_go
    };
    if (n->command.verb != VERB_RETAIN)
        sim_violate(s, "STATES", "a %s let something go", sim_verb_name(n->command.verb));
    if (s->retaining.holder != 0 && s->retaining.holder != sim_holder(n) && !sim_is_stale(n)) /* fences repeat there */
        sim_violate(s, "FENCED", "something was let go by node %d, which had lost the run", n->index);
    judges[r->what](s, n, r);
}

void sim_judge_left(struct sim *s)
{
    for (size_t i = 0; i < s->model->n_marks; i++)
        if (s->model->marks[i].gone && s->model->marks[i].since == s->steps) judge_left(s, &s->model->marks[i]);
    for (size_t i = 0; i < s->model->n_files; i++)
        if (s->model->files[i].gone) judge_marks_of(s, &s->model->files[i]);
}

/* ---- in the end ---- */

/* Where no clock was wrong. */
static bool is_old(const struct sim *s, int64_t least_ms)
{
    return s->jumps == 0 && least_ms + 3 * RP_DAY_MS < s->retaining.done_ms;
}

/* All marks of this subject, and of its copies, are old. */
static bool are_marks_old(struct sim *s, const char *key)
{
    for (size_t i = 0; i < s->model->n_marks; i++) {
        const struct model_mark *m = &s->model->marks[i];
        bool young = model_is_active(m) || !is_old(s, m->over_least_ms);
        if (young && strcmp(subject_of(s->model, m), key) == 0) return false;
    }
    return true;
}

static bool has_below(const struct sim *s, const struct model_file *f)
{
    for (size_t i = 0; i < s->model->n_files; i++)
        if (s->model->files[i].parent_id == f->id || s->model->files[i].source_id == f->id) return true;
    return false;
}

static void judge_what_stayed(struct sim *s)
{
    const struct model *m = s->model;
    for (size_t i = 0; i < SIM_KEYS; i++) {
        const struct model_mark *newest = model_mark_of(s->model, sim_key(i));
        if (newest != NULL && !newest->gone && are_marks_old(s, newest->key))
            sim_violate(s, "EVENTUAL", "the mark of %s may go, and is there", newest->key);
    }
    for (size_t i = 0; i < m->n_files; i++) {
        const struct model_file *f = &m->files[i];
        bool over = f->status == RP_FILE_PURGED || f->status == RP_FILE_EXPIRED;
        if (over && !f->gone && is_old(s, f->over_least_ms) && !has_below(s, f) && are_marks_old(s, f->key))
            sim_violate(s, "EVENTUAL", "file %s may go, and is there", f->name);
    }
    for (size_t i = 0; i < m->n_txns; i++) {
        bool empty = !m->txns[i].gone && is_old(s, m->txns[i].over_least_ms);
        for (size_t k = 0; k < m->n_files; k++)
            empty = empty && (m->files[k].txn_id != m->txns[i].id || m->files[k].gone);
        if (empty) sim_violate(s, "EVENTUAL", "a transaction may go, and is there");
    }
    for (size_t i = 0; i < m->n_keys; i++)
        if (is_old(s, m->keys[i].over_least_ms)) sim_violate(s, "EVENTUAL", "an answer may go, and is there");
}

static int ignore_line(void *ctx, const struct rp_story_line *line, struct rp_error *err)
{
    (void)ctx, (void)line, (void)err;
    return 0;
}

/* "Never marked" would be a lie of what was let go. */
static void judge_story(struct sim_node *n, const char *key)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    struct rp_story_end end;
    struct rp_error err = { 0 };
    const struct model_mark *any = model_mark_of(n->sim->model, key), *newest = newest_of(n->sim, key, true);
    int r = rp_explain(n->catalog, &n->store, key, &arena, &(struct rp_story){ .fn = ignore_line, .ctx = NULL }, &end,
                       &err);
    const char *words = r == RP_ENOTFOUND ? err.text : end.unmarked;
    if (r < 0 && r != RP_ENOTFOUND)
        sim_violate(n->sim, "HONEST", "%s cannot be explained: %s", key, err.text);
    else if (newest != NULL && (r < 0 || !end.has_mark || end.mark.id != newest->id))
        sim_violate(n->sim, "HONEST", "the newest mark of %s is not told", key);
    else if (any != NULL && newest == NULL && strstr(words, "let go") == NULL)
        sim_violate(n->sim, "HONEST", "of %s, whose marks were let go, is said: %s", key, words);
}

void sim_judge_remains(struct sim_node *n)
{
    judge_what_stayed(n->sim);
    for (size_t i = 0; i < SIM_KEYS; i++)
        judge_story(n, sim_key(i));
}
