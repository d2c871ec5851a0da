/* SPDX-License-Identifier: Apache-2.0 */
#include "core/reprieve/reprieve.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/crashpoint.h"
#include "base/digest.h"
#include "base/id.h"
#include "base/json.h"
#include "base/time.h"
#include "catalog/audit/audit.h"
#include "catalog/mark/dead.h"
#include "core/due.h"
#include "core/file/file.h"
#include "core/journal.h"
#include "core/mark/annotation.h"
#include "core/state.h"
#include "core/subject/subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESTORE_ARENA ((size_t)64 << 20)

const char *rp_reprieving_name(enum rp_reprieving what)
{
    static const char *const names[] = { [RP_REPRIEVE_REFUSED] = "refused",
                                         [RP_REPRIEVE_DONE] = "restored",
                                         [RP_REPRIEVE_ALREADY] = "already restored",
                                         [RP_REPRIEVE_RETURNED] = "returned from quarantine" };
    return names[what];
}

/* ---- decide ---- */

static struct rp_reprieve_decision too_late(const struct rp_mark *mark, const char *store, const char *why,
                                            struct rp_error *err)
{
    rp_error_set(err, RP_ETOOLATE, "%s:%s: too late, %s", store, mark->key, why);
    if (mark->state == RP_DEAD) rp_error_hint(err, "see `reprieve dead`: something of it may already be erased");
    return (struct rp_reprieve_decision){ .code = RP_ETOOLATE };
}

struct rp_reprieve_decision rp_reprieve_decide(const struct rp_mark *mark, const struct rp_mark *copy,
                                               const char *store, struct rp_error *err)
{
    if (rp_quarantine_is(mark->key)) {
        /* reprieved by itself it would be a copy that nobody returns and nobody erases */
        rp_error_set(err, RP_EINVAL, "%s:%s is a copy in quarantine", store, mark->key);
        rp_error_hint(err, "restore the mark that its name ends with: it is returned under its own key");
        return (struct rp_reprieve_decision){ .code = RP_EINVAL };
    }
    switch (mark->state) {
    case RP_MARKED:
        return (struct rp_reprieve_decision){ .what = RP_REPRIEVE_DONE };
    case RP_REPRIEVED:
        return (struct rp_reprieve_decision){ .what = RP_REPRIEVE_ALREADY };
    case RP_CHECKING:
        return too_late(mark, store, "its purge has begun (checking)", err);
    case RP_PURGING:
        return too_late(mark, store, "its purge has begun", err);
    case RP_DEAD:
        if (mark->was == RP_CHECKING) return (struct rp_reprieve_decision){ .what = RP_REPRIEVE_DONE };
        return too_late(mark, store, "its purge has begun and failed", err);
    case RP_PURGED:
        if (copy != NULL && copy->state == RP_MARKED)
            return (struct rp_reprieve_decision){ .what = RP_REPRIEVE_RETURNED };
        if (copy != NULL && copy->state == RP_REPRIEVED)
            return (struct rp_reprieve_decision){ .what = RP_REPRIEVE_ALREADY };
        return too_late(mark, store, "it was purged", err);
    default:
        break;
    }
    return too_late(mark, store, "it was given up after a failed purge", err);
}

int rp_reprieve_foresee(struct rp_db *db, const struct rp_mark *mark, const char *store, struct rp_arena *arena,
                        struct rp_reprieve_answer *out, struct rp_error *err)
{
    struct rp_mark copy;
    int r = mark->state != RP_PURGED ? RP_ENOTFOUND : rp_quarantine_mark(db, mark, arena, &copy, err);
    if (r < 0 && r != RP_ENOTFOUND) return r;
    *out = (struct rp_reprieve_answer){ .what = RP_REPRIEVE_REFUSED };
    out->what = rp_reprieve_decide(mark, r == 0 ? &copy : NULL, store, &out->error).what;
    return 0;
}

/* ---- prepare ---- */

static struct rp_store *store_of(const struct rp_reprieve_command *c, int64_t store_id)
{
    for (size_t i = 0; i < c->n_stores; i++)
        if (c->stores[i]->id == store_id) return c->stores[i];
    for (size_t i = 0; i < c->n; i++)
        if (c->items[i].store != NULL && c->items[i].store->id == store_id) return c->items[i].store;
    return NULL;
}

/* The newest mark of a subject: the active one, else the last. */
static int find_newest(struct rp_db *db, const struct rp_reprieve_item *item, struct rp_arena *arena,
                       struct rp_mark *out, struct rp_error *err)
{
    struct rp_mark newest;
    struct rp_marks history = { .at = &newest, .max = 1, .arena = arena };
    int r = rp_marks_history(db, item->store->id, item->key, &history, err);
    if (r < 0) return r;
    if (history.n == 0)
        return rp_error_set(err, RP_ENOTFOUND, "%s:%s has no mark", item->store->config->name, item->key);
    *out = newest;
    return 0;
}

static int find_by_id(struct rp_db *db, const struct rp_reprieve_item *item, struct rp_arena *arena,
                      struct rp_mark *out, struct rp_error *err)
{
    if (item->file_id != 0) return rp_file_mark(db, item->file_id, arena, out, err);
    int r = rp_mark_get(db, item->mark_id, arena, out, err);
    int64_t original;
    return r == 0 && rp_quarantine_original(out->key, &original) ? rp_mark_get(db, original, arena, out, err) : r;
}

/* V6 */
static bool is_foreign(const struct rp_reprieve_command *c, const struct rp_mark *mark)
{
    return c->command.tenant_id != 0 && mark->tenant_id != c->command.tenant_id;
}

/* In the words for what does not exist. */
static int refuse_foreign(const struct rp_reprieve_item *item, struct rp_error *err)
{
    char id[RP_ID_TEXT];
    bool by_file = item->file_id != 0;
    rp_id_format(by_file ? RP_ID_FILE : RP_ID_MARK, by_file ? item->file_id : item->mark_id, id);
    return rp_error_set(err, RP_ENOTFOUND, "no %s %s", by_file ? "file" : "mark", id);
}

static int find_mark(struct rp_catalog *catalog, struct rp_reprieve_command *c, struct rp_reprieve_item *item,
                     struct rp_error *err)
{
    bool by_id = item->mark_id != 0 || item->file_id != 0;
    int r = by_id ? find_by_id(catalog->db, item, c->arena, &item->mark, err)
                  : find_newest(catalog->db, item, c->arena, &item->mark, err);
    if (r < 0) return r;
    if (is_foreign(c, &item->mark)) return refuse_foreign(item, err);
    if (by_id && !item->given) item->store = store_of(c, item->mark.store_id);
    if (item->store == NULL)
        return rp_error_set(err, RP_EUNAVAILABLE, "the store of this mark is not configured any more");
    if (item->store->backend != NULL) return 0;
    *err = item->store->closed;
    return err->code;
}

/* An object that changed or went carries no annotation of ours. A store that fails must not stop a rescue: that is
 * noted, and the same restore, given again, tries it again. */
static void remove_annotation(struct rp_catalog *catalog, struct rp_reprieve_item *item)
{
    const struct rp_mark *mark = &item->mark;
    struct rp_identity identity = rp_subject_identity(mark);
    struct rp_error why = { 0 };
    if (!mark->annotated || (mark->state != RP_MARKED && mark->state != RP_REPRIEVED)) return;
    int r = rp_annotation_remove(catalog, item->store, mark->key, &identity, &why);
    if (r < 0 && r != RP_ENOTFOUND && r != RP_ECHANGED)
        snprintf(item->answer.annotate_note, sizeof item->answer.annotate_note, "%.119s", why.text);
}

static int copy_back(struct rp_catalog *catalog, struct rp_reprieve_item *item, struct rp_error *err)
{
    struct rp_reprieve_copy *copy = &item->copy;
    const struct rp_mark *mark = &item->mark;
    bool made = false;
    int r = rp_subject_of(mark)->bring_back(item->store, &copy->mark, mark->key, &copy->identity, &made, err);
    copy->made = copy->made || made;
    if (r == RP_EEXISTS) return r;
    if (r == 0 && mark->annotated) r = rp_annotation_remove(catalog, item->store, mark->key, &copy->identity, err);
    copy->stands = r == 0;
    return r < 0 ? rp_error_wrap(err, r, "return %s:%s from quarantine", item->store->config->name, mark->key) : 0;
}

static int bring_back(struct rp_catalog *catalog, struct rp_reprieve_command *c, struct rp_reprieve_item *item,
                      struct rp_error *err)
{
    struct rp_reprieve_copy *copy = &item->copy;
    rp_error_clear(&copy->error);
    copy->stands = false;
    if (item->mark.state != RP_PURGED || item->mark.outcome != RP_END_QUARANTINED) return 0;
    int r = rp_quarantine_mark(catalog->db, &item->mark, c->arena, &copy->mark, err);
    if (r == RP_ENOTFOUND) return 0;
    if (r == 0 && copy->mark.state == RP_MARKED) (void)copy_back(catalog, item, &copy->error);
    return r;
}

static bool is_earlier(const struct rp_reprieve_command *c, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (rp_reprieve_at(c, k)->mark.id == rp_reprieve_at(c, i)->mark.id && rp_reprieve_at(c, k)->error.code == 0)
            return true;
    return false;
}

/* One that is not was refused by whoever made the command. */
static bool is_named(const struct rp_reprieve_item *item)
{
    return item->given || item->mark_id != 0 || item->file_id != 0 || (item->store != NULL && item->key != NULL);
}

static void prepare_item(struct rp_catalog *catalog, struct rp_reprieve_command *c, size_t i)
{
    struct rp_reprieve_item *item = rp_reprieve_at(c, i);
    if (!is_named(item)) return;
    RP_ASSERT(!item->given || c->command.tenant_id == 0);
    if (item->error.code < 0 && !c->command.second) return;
    rp_error_clear(&item->error);
    int r = item->given && !c->command.second ? 0 : find_mark(catalog, c, item, &item->error);
    if (r < 0 || is_earlier(c, i)) return;
    remove_annotation(catalog, item);
    (void)bring_back(catalog, c, item, &item->error);
}

static void prepare_command(struct rp_catalog *catalog, struct rp_reprieve_command *c)
{
    struct rp_error why = { 0 };
    for (size_t i = 0; i < c->n; i++)
        prepare_item(catalog, c, i);
    if (rp_reprieve_find_family(catalog, c, &why) < 0)
        for (size_t i = 0; i < c->n; i++)
            if (c->items[i].error.code == 0 && c->items[i].mark.file_id != 0) c->items[i].error = why;
    for (size_t i = c->n; i < rp_reprieve_count(c); i++)
        prepare_item(catalog, c, i);
}

static void prepare(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n)
{
    for (size_t i = 0; i < n; i++)
        prepare_command(catalog, (struct rp_reprieve_command *)commands[i]);
    RP_CRASHPOINT("restore.copied");
}

/* ---- run ---- */

/* One mark of the round: the first item that is about it decides, the others are told what came of it. */
struct subject {
    struct rp_reprieve_command *command;
    struct rp_reprieve_item *item;
    const struct rp_mark *now;
    struct rp_command *file; /* the file's own command, if its file is restored; NULL: it is not */
};

struct round {
    struct rp_tx *tx;
    struct subject *subjects;
    size_t n;
    struct rp_marks now;
    struct rp_move *moves;
    const struct subject **dead;
    size_t n_moves, n_dead;
};

static const char *name_of(const struct rp_reprieve_item *item)
{
    return item->store->config->name;
}

static int audit_return(struct rp_tx *tx, const struct subject *s, struct rp_error *err)
{
    struct rp_audit_entry entry = { .event = "object.returned",
                                    .actor = s->command->command.actor,
                                    .mark_id = s->item->mark.id,
                                    .tenant_id = s->item->mark.tenant_id,
                                    .details = rp_mark_json(&s->item->mark, name_of(s->item)) };
    return rp_tx_audit(tx, &entry, err);
}

/* The copy in quarantine has done its work, and gets a mark of its own. It stays for a day: a
 * delete that was sent before the object was moved may still arrive, and where a store cannot tell
 * identical bytes apart it would take what was returned; then it comes back once more
 * (core/purge/returns.c). It is of no file: that one lives again, the copy is nobody's. */
static int mark_leftover(struct rp_tx *tx, const struct subject *s, struct rp_error *err)
{
    const struct rp_mark *copy = &s->item->copy.mark;
    struct rp_state_by by = { .store = name_of(s->item), .told = true };
    struct rp_mark leftover = { .store_id = copy->store_id,
                                .key = copy->key,
                                .original = s->item->mark.key,
                                .in_place = copy->in_place,
                                .due_at_ms = rp_due(&(struct rp_due){ .by = RP_DUE_RETURNED }, tx->late_ms),
                                .tenant_id = copy->tenant_id,
                                .etag = copy->etag,
                                .version = copy->version,
                                .size_bytes = copy->size_bytes,
                                .modified_ms = copy->modified_ms,
                                .reason = RP_REASON_RETURNED,
                                .actor = s->command->command.actor };
    return rp_state_birth(tx, &by, &leftover, 1, err);
}

/* Whether somebody has returned it since it was looked at: the original's row is locked, nobody does so from now on. */
static int is_returned(struct rp_tx *tx, const struct subject *s, bool *out, struct rp_error *err)
{
    struct rp_mark copy = { .state = RP_MARKED };
    int r = rp_quarantine_mark(tx->db, &s->item->mark, tx->arena, &copy, err);
    *out = copy.state == RP_REPRIEVED;
    if (r == 0 && copy.state == RP_MARKED) s->item->copy.mark.fence = copy.fence;
    return r == RP_ENOTFOUND ? 0 : r;
}

/* The copy is the object's again: its mark ends. */
static int end_copy(struct rp_tx *tx, const struct subject *s, bool *done, struct rp_error *err)
{
    struct rp_reprieve_item *item = s->item;
    struct rp_state_by by = { .store = name_of(item), .actor = s->command->command.actor };
    struct rp_move move = { .mark = &item->copy.mark,
                            .to = RP_REPRIEVED,
                            .outcome = RP_END_RESTORED,
                            .attempts = item->copy.mark.attempts,
                            .refence = true };
    int r = rp_state_move(tx, &by, &move, 1, err);
    *done = move.done;
    if (r < 0 || !move.done) return r;
    r = mark_leftover(tx, s, err);
    if (r == 0) r = audit_return(tx, s, err);
    if (r == 0) item->answer.what = RP_REPRIEVE_RETURNED;
    return r;
}

static int apply_return(struct rp_tx *tx, const struct subject *s, struct rp_error *err)
{
    struct rp_reprieve_item *item = s->item;
    struct rp_reprieve_answer *a = &item->answer;
    bool returned = false, done = false;
    int r = is_returned(tx, s, &returned, err);
    if (r < 0) return r;
    a->what = returned ? RP_REPRIEVE_ALREADY : RP_REPRIEVE_REFUSED;
    if (!returned && !item->copy.stands) a->error = item->copy.error;
    if (returned || !item->copy.stands) return 0;
    r = end_copy(tx, s, &done, err);
    if (r == 0 && !done) too_late(&item->mark, name_of(item), "its time in quarantine is over", &a->error);
    return r;
}

/* The file's own verb decides while its mark waits, of what was returned from quarantine, and where
 * the file is what was asked for. */
static bool is_file_restore(const struct subject *s)
{
    const struct rp_mark *copy = &s->item->copy.mark;
    if (copy->id != 0) return copy->file_id != 0 && copy->state == RP_MARKED;
    return s->now->file_id != 0 && (s->now->state == RP_MARKED || s->item->file_id != 0);
}

/* V5 */
static bool is_stale(const struct subject *s)
{
    return !s->command->command.second && s->now->state != s->item->mark.state && s->now->state == RP_PURGED &&
           s->now->outcome == RP_END_QUARANTINED;
}

static int apply_one(struct round *round, struct subject *s, struct rp_error *err)
{
    struct rp_reprieve_item *item = s->item;
    struct rp_reprieve_answer *a = &item->answer;
    bool has_copy = item->copy.mark.id != 0;
    if (is_file_restore(s)) return 0; /* restore_files */
    if (has_copy && item->copy.mark.state == RP_MARKED) return apply_return(round->tx, s, err);
    a->what = rp_reprieve_decide(s->now, has_copy ? &item->copy.mark : NULL, name_of(item), &a->error).what;
    if (a->what != RP_REPRIEVE_DONE) return 0;
    if (s->now->state == RP_DEAD) round->dead[round->n_dead++] = s;
    round->moves[round->n_moves++] = (struct rp_move){ .mark = s->now,
                                                       .to = RP_REPRIEVED,
                                                       .outcome = RP_END_RESTORED,
                                                       .attempts = s->now->attempts,
                                                       .refence = true,
                                                       .store = name_of(item),
                                                       .actor = s->command->command.actor };
    return 0;
}

/* ---- files: each is restored, with what belongs to it, or refused for reasons of its own ---- */

struct files {
    struct rp_file_command *commands;
    struct rp_file_return *returns;
    struct rp_command **list;
    size_t n;
};

static struct rp_command *add_file(struct files *f, struct rp_arena *arena, struct rp_reprieve_command *c,
                                   struct rp_reprieve_item *item)
{
    struct rp_file_command *command = &f->commands[f->n];
    struct rp_file_return *returned = &f->returns[f->n];
    bool several = c->n_stores > 0, failed = item->error.code < 0;
    *returned = (struct rp_file_return){ .as = !failed && item->copy.stands ? &item->copy.identity : NULL,
                                         .why = failed ? &item->error : &item->copy.error };
    *command = (struct rp_file_command){
        .command = { .verb = &rp_verb_restore, .tenant_id = c->command.tenant_id, .actor = c->command.actor },
        .stores = several ? c->stores : &item->store,
        .n_stores = several ? c->n_stores : item->store != NULL,
        .arena = arena,
        .returned = failed || item->copy.mark.id != 0 ? returned : NULL,
        .file_id = item->mark.file_id
    };
    f->list[f->n++] = &command->command;
    return &command->command;
}

/* A file in quarantine that prepare could not look at. */
static bool is_left(const struct rp_reprieve_command *c, const struct rp_reprieve_item *item)
{
    const struct rp_mark *mark = &item->mark;
    bool in_quarantine = mark->state == RP_PURGED && mark->outcome == RP_END_QUARANTINED;
    return item->error.code < 0 && mark->file_id != 0 && in_quarantine && !is_foreign(c, mark);
}

/* The verb is told of those, for they may belong to what is restored. */
static void add_left(struct files *f, struct rp_arena *arena, struct rp_reprieve_command *c)
{
    for (size_t i = 0; i < rp_reprieve_count(c) && !c->command.stale; i++)
        if (is_left(c, rp_reprieve_at(c, i))) (void)add_file(f, arena, c, rp_reprieve_at(c, i));
}

/* The limit of a family is one of all that are loaded together. */
static int run_files(struct rp_tx *tx, struct rp_command *const *list, size_t n, struct rp_error *err)
{
    int r = n > 0 ? rp_verb_restore.run(tx, list, n, err) : 0;
    if (r != RP_ETOOBIG || n == 1) return r;
    rp_error_clear(err);
    r = run_files(tx, list, n / 2, err);
    return r < 0 ? r : run_files(tx, &list[n / 2], n - n / 2, err);
}

static int answer_file(struct rp_tx *tx, struct subject *s, struct rp_error *err)
{
    const struct rp_file_command *c = (const struct rp_file_command *)s->file;
    struct rp_reprieve_answer *a = &s->item->answer;
    bool done = true;
    a->error = c->command.error;
    if (a->error.code == 0 && c->returned != NULL && !c->is_back)
        rp_error_set(&a->error, RP_ENOTMARKED, "the file lives, and not with what lies in quarantine");
    a->what = a->error.code < 0 ? RP_REPRIEVE_REFUSED : RP_REPRIEVE_DONE;
    int r = c->is_back ? end_copy(tx, s, &done, err) : 0;
    return r == 0 && !done ? rp_error_set(err, RP_ECONFLICT, "another writer was faster") : r;
}

static int restore_files(struct round *round, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    struct rp_arena *arena = round->tx->arena;
    size_t most = round->n + 1;
    for (size_t i = 0; i < n; i++)
        most += rp_reprieve_count((const struct rp_reprieve_command *)commands[i]);
    struct files f = { .commands = rp_arena_array(arena, most, sizeof *f.commands),
                       .returns = rp_arena_array(arena, most, sizeof *f.returns),
                       .list = rp_arena_array(arena, most, sizeof(struct rp_command *)) };
    int r = 0;
    if (f.commands == NULL || f.returns == NULL || f.list == NULL)
        return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", most);
    for (size_t i = 0; i < round->n && r == 0; i++) {
        struct subject *s = &round->subjects[i];
        bool returned = false;
        if (!is_file_restore(s)) continue;
        if (s->item->copy.mark.id != 0) r = is_returned(round->tx, s, &returned, err);
        if (returned) s->item->answer.what = RP_REPRIEVE_ALREADY;
        if (!returned) s->file = add_file(&f, arena, s->command, s->item);
    }
    if (f.n > 0)
        for (size_t i = 0; i < n; i++)
            add_left(&f, arena, (struct rp_reprieve_command *)commands[i]);
    if (r == 0) r = run_files(round->tx, f.list, f.n, err);
    for (size_t i = 0; i < round->n && r == 0; i++)
        if (round->subjects[i].file != NULL) r = answer_file(round->tx, &round->subjects[i], err);
    return r;
}

static int by_mark(const void *a, const void *b)
{
    const struct subject *x = a, *y = b;
    int64_t left = x->item->mark.id, right = y->item->mark.id;
    if (left != right) return left < right ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

/* All items that are not refused yet, in order of mark. */
static int collect(struct round *round, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    size_t all = 0;
    for (size_t i = 0; i < n; i++)
        all += rp_reprieve_count((struct rp_reprieve_command *)commands[i]);
    struct rp_arena *arena = round->tx->arena;
    round->subjects = rp_arena_array(arena, all + 1, sizeof *round->subjects);
    round->moves = rp_arena_array(arena, all + 1, sizeof *round->moves);
    round->dead = rp_arena_array(arena, all + 1, sizeof(struct subject *));
    if (round->subjects == NULL || round->moves == NULL || round->dead == NULL)
        return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", all);
    for (size_t i = 0; i < n; i++) {
        struct rp_reprieve_command *c = (struct rp_reprieve_command *)commands[i];
        for (size_t k = 0; k < rp_reprieve_count(c); k++) {
            struct rp_reprieve_item *item = rp_reprieve_at(c, k);
            char note[sizeof item->answer.annotate_note];
            memcpy(note, item->answer.annotate_note, sizeof note); /* prepare's */
            item->answer = (struct rp_reprieve_answer){ .what = RP_REPRIEVE_REFUSED, .error = item->error };
            memcpy(item->answer.annotate_note, note, sizeof note);
            if (item->error.code == 0) round->subjects[round->n++] = (struct subject){ .command = c, .item = item };
        }
    }
    qsort(round->subjects, round->n, sizeof *round->subjects, by_mark);
    return 0;
}

static int by_id(const void *key, const void *element)
{
    return rp_id_order(*(const int64_t *)key, ((const struct rp_mark *)element)->id);
}

static int mark_order(const void *a, const void *b)
{
    return by_id(&((const struct rp_mark *)a)->id, b);
}

/* The rows are locked as loaded: on both engines nobody moves them before we do. */
static int load_again(struct round *round, struct rp_error *err)
{
    int64_t *ids = rp_arena_array(round->tx->arena, round->n + 1, sizeof *ids);
    size_t n = 0;
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", round->n);
    for (size_t i = 0; i < round->n; i++)
        if (n == 0 || ids[n - 1] != round->subjects[i].item->mark.id) ids[n++] = round->subjects[i].item->mark.id;
    int r = rp_marks_init(&round->now, n + 1, round->tx->arena, err);
    if (r == 0 && n > 0) r = rp_marks_lock(round->tx, ids, n, &round->now, err);
    if (r < 0) return r;
    qsort(round->now.at, round->now.n, sizeof *round->now.at, mark_order);
    for (size_t i = 0; i < round->n; i++) {
        struct subject *s = &round->subjects[i];
        s->now = bsearch(&s->item->mark.id, round->now.at, round->now.n, sizeof *round->now.at, by_id);
        if (s->now == NULL) return rp_error_set(err, RP_ECORRUPT, "a mark is gone from the catalog");
        if (is_stale(s)) s->command->command.stale = true;
    }
    return 0;
}

/* One subject a mark is left, of a command that goes on; the others are told at the end. */
static void drop_doubles(struct round *round)
{
    size_t left = 0;
    for (size_t i = 0; i < round->n; i++) {
        struct subject *s = &round->subjects[i];
        if (s->command->command.stale) continue;
        if (left > 0 && round->subjects[left - 1].item->mark.id == s->item->mark.id) continue;
        round->subjects[left++] = *s;
    }
    round->n = left;
}

static const struct subject *decided_by(const struct round *round, int64_t mark_id)
{
    for (size_t low = 0, high = round->n; low < high;) {
        size_t middle = low + (high - low) / 2;
        int64_t id = round->subjects[middle].item->mark.id;
        if (id == mark_id) return &round->subjects[middle];
        if (id < mark_id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* The file of a mark as it is now, for the answer. */
static int show_file(struct rp_tx *tx, struct rp_reprieve_command *c, struct rp_reprieve_item *item,
                     struct rp_error *err)
{
    struct rp_file file;
    struct rp_mark mark = { 0 };
    item->file = NULL;
    if (item->mark.file_id == 0 || item->answer.what == RP_REPRIEVE_REFUSED) return 0;
    struct rp_file_answer *out = rp_arena_alloc(c->arena, sizeof *out);
    if (out == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for an answer");
    int r = rp_file_get(tx->db, item->mark.file_id, c->arena, &file, err);
    if (r == 0 && file.mark_id != 0) r = rp_mark_get(tx->db, file.mark_id, c->arena, &mark, err);
    if (r < 0) return r;
    rp_file_answer_of(&file, mark.id != 0 ? &mark : NULL, out);
    item->file = out;
    return 0;
}

static int sum_up(const struct round *round, struct rp_reprieve_command *c, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < rp_reprieve_count(c) && r == 0; i++) {
        struct rp_reprieve_item *item = rp_reprieve_at(c, i);
        const struct subject *first = item->error.code == 0 ? decided_by(round, item->mark.id) : NULL;
        if (first != NULL && first->item != item) {
            item->answer = first->item->answer;
            if (first->command != c && item->answer.what != RP_REPRIEVE_REFUSED)
                item->answer.what = RP_REPRIEVE_ALREADY;
        }
        if (i < c->n) r = show_file(round->tx, c, item, err);
        bool refused = item->answer.what == RP_REPRIEVE_REFUSED;
        c->command.unfinished = c->command.unfinished || (item->copy.made && refused);
    }
    if (c->n == 1) c->command.error = c->items[0].answer.error;
    return r;
}

static int run(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    struct round round = { .tx = tx };
    int r = collect(&round, commands, n, err);
    if (r == 0) r = load_again(&round, err);
    if (r == 0) drop_doubles(&round);
    for (size_t i = 0; i < round.n && r == 0; i++)
        r = apply_one(&round, &round.subjects[i], err);
    if (r == 0) r = restore_files(&round, commands, n, err);
    if (r == 0) r = rp_state_move_all(tx, &(struct rp_state_by){ 0 }, round.moves, round.n_moves, err);
    for (size_t i = 0; i < round.n_dead && r == 0; i++)
        r = rp_dead_end(tx, &round.dead[i]->now->id, 1, "kept", round.dead[i]->command->command.actor, err);
    for (size_t i = 0; i < n && r == 0; i++)
        if (!commands[i]->stale) r = sum_up(&round, (struct rp_reprieve_command *)commands[i], err);
    return r;
}

/* ---- finish ---- */

/* A copy back whose return was refused goes again, exactly that copy; unless another restore has
 * found it meanwhile, and was decided otherwise. One that was not decided about stays: the next
 * restore finds it. */
static void take_away(struct rp_catalog *catalog, const struct rp_reprieve_command *c, struct rp_reprieve_item *item)
{
    struct rp_error ignored = { 0 };
    struct rp_mark now;
    int r = rp_quarantine_mark(catalog->db, &item->mark, c->arena, &now, &ignored);
    if (r < 0 ? r != RP_ENOTFOUND : now.state == RP_REPRIEVED) return;
    rp_subject_of(&item->mark)->take_away(item->store, &item->copy.mark, item->mark.key, &item->copy.identity);
}

static void finish(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n)
{
    (void)catalog;
    for (size_t i = 0; i < n; i++) {
        struct rp_reprieve_command *c = (struct rp_reprieve_command *)commands[i];
        for (size_t k = 0; k < rp_reprieve_count(c); k++) {
            struct rp_reprieve_item *item = rp_reprieve_at(c, k);
            if (item->copy.made && item->answer.what == RP_REPRIEVE_REFUSED) take_away(catalog, c, item);
        }
    }
}

static void write_log(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    const struct rp_reprieve_command *c = (const struct rp_reprieve_command *)command;
    struct rp_journal j = { .log = log, .at_ms = at_ms, .actor = command->actor };
    for (size_t i = 0; i < rp_reprieve_count(c); i++) {
        struct rp_reprieve_item item = *rp_reprieve_at(c, i);
        if (command->failed) item.answer = (struct rp_reprieve_answer){ .error = command->error };
        rp_journal_restore(&j, &item);
    }
}

static int add_locks(struct rp_tx *tx, const struct rp_command *command, struct rp_locks *out, struct rp_error *err)
{
    const struct rp_reprieve_command *c = (const struct rp_reprieve_command *)command;
    (void)tx, (void)err;
    for (size_t i = 0; i < rp_reprieve_count(c); i++) {
        const struct rp_mark *mark = &rp_reprieve_at(c, i)->mark;
        if (rp_reprieve_at(c, i)->error.code < 0 && !is_left(c, rp_reprieve_at(c, i))) continue;
        if (mark->tenant_id != 0)
            rp_locks_tenant(out, mark->tenant_id);
        else
            rp_locks_mark(out, mark->id);
    }
    return 0;
}

_Static_assert(offsetof(struct rp_reprieve_command, command) == 0, "a command is the first member");
const struct rp_verb rp_verb_reprieve = {
    .name = "restore", .prepare = prepare, .locks = add_locks, .run = run, .finish = finish, .log = write_log
};

/* ---- commands ---- */

void rp_reprieve_command_init(struct rp_reprieve_command *c, struct rp_reprieve_item *items, size_t n,
                              const char *actor, struct rp_arena *arena)
{
    *c = (struct rp_reprieve_command){
        .command = { .verb = &rp_verb_reprieve, .weight = n, .actor = actor }, .items = items, .n = n, .arena = arena
    };
    for (size_t i = 0; i < n; i++) {
        items[i].given = items[i].mark.id != 0;
        if (items[i].given) items[i].mark_id = items[i].mark.id;
    }
    if (n == 0) return;
    if (items[0].store != NULL) c->command.group = items[0].store->id;
    for (size_t i = 1; i < n; i++)
        if (items[i].store != items[0].store) c->command.group = RP_GROUP_SEVERAL;
    c->command.spread = (uint64_t)(items[0].mark_id + items[0].file_id);
    if (items[0].key != NULL) c->command.spread = rp_hash_text(0, items[0].key);
}

static int foresee_item(struct rp_catalog *catalog, struct rp_reprieve_command *c, struct rp_reprieve_item *item,
                        struct rp_error *err)
{
    if (is_named(item) && !item->given && item->error.code == 0) (void)find_mark(catalog, c, item, &item->error);
    item->answer = (struct rp_reprieve_answer){ .what = RP_REPRIEVE_REFUSED, .error = item->error };
    if (item->error.code < 0) return 0;
    return rp_reprieve_foresee(catalog->db, &item->mark, name_of(item), c->arena, &item->answer, err);
}

int rp_reprieve_dry_run(struct rp_catalog *catalog, struct rp_reprieve_command *c, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < c->n && r == 0; i++)
        r = foresee_item(catalog, c, &c->items[i], err);
    if (r == 0) r = rp_reprieve_find_family(catalog, c, err);
    for (size_t i = 0; i < c->n_family && r == 0; i++)
        r = foresee_item(catalog, c, &c->family[i], err);
    return r;
}

int rp_reprieve_many(struct rp_catalog *catalog, struct rp_store *store, const struct rp_mark *marks, size_t n,
                     const char *actor, struct rp_reprieve_answer *answers, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(RESTORE_ARENA);
    RP_CLEANUP(rp_freep) struct rp_reprieve_item *items = calloc(n, sizeof *items);
    struct rp_reprieve_command c;
    RP_ASSERT(n > 0 && n <= RP_REPRIEVE_ITEMS_MAX);
    if (items == NULL) return rp_error_set(err, RP_ENOMEM, "restore: no memory for %zu marks", n);
    for (size_t i = 0; i < n; i++)
        items[i] = (struct rp_reprieve_item){ .store = store, .mark = marks[i] };
    rp_reprieve_command_init(&c, items, n, actor, &arena);
    int r = rp_command_run(catalog, &c.command);
    if (c.command.failed) {
        *err = c.command.error;
        return r;
    }
    for (size_t i = 0; i < n; i++)
        answers[i] = items[i].answer;
    return 0;
}
