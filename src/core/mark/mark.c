/* SPDX-License-Identifier: Apache-2.0 */
#include "core/mark/mark.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/crashpoint.h"
#include "base/id.h"
#include "base/json.h"
#include "base/time.h"
#include "base/utf8.h"
#include "catalog/audit/audit.h"
#include "catalog/file/file.h"
#include "core/check/references.h"
#include "core/guarantee.h"
#include "core/journal.h"
#include "core/mark/annotation.h"
#include "core/state.h"
#include "core/subject/subject.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREPARE_ARENA ((size_t)64 << 20)

const char *rp_marking_name(enum rp_marking what)
{
    static const char *const names[] = { [RP_MARK_REFUSED] = "refused",
                                         [RP_MARK_SAME] = "already marked",
                                         [RP_MARK_EXTENDED] = "extended",
                                         [RP_MARK_CREATED] = "marked",
                                         [RP_MARK_REPLACED] = "marked" };
    return names[what];
}

/* ---- decide ---- */

static int refuse_absent(const struct rp_mark_request *request, const struct rp_mark_facts *facts, const char *store,
                         struct rp_error *err)
{
    switch (facts->found) {
    case RP_OUT_FOUND:
        return 0;
    case RP_OUT_GONE:
        return rp_error_set(err, RP_ENOTFOUND, "%s:%s does not exist", store, request->key);
    case RP_OUT_DENIED:
        return rp_error_set(err, RP_EDENIED, "%s:%s: %s", store, request->key, facts->note);
    default:
        return rp_error_set(err, RP_EUNAVAILABLE, "%s:%s: %s", store, request->key, facts->note);
    }
}

static int refuse_other(const struct rp_mark_request *request, const struct rp_mark_facts *facts, const char *store,
                        struct rp_error *err)
{
    if (request->imported == NULL || rp_identity_equal(request->imported, &facts->identity)) return 0;
    rp_error_set(err, RP_ECHANGED, "%s:%s was uploaded anew since its annotation was read", store, request->key);
    return rp_error_hint(err, "import it again");
}

/* The object of a file goes with its file, or the file would point at nothing. */
static int refuse_file(const struct rp_mark_facts *facts, const char *store, const char *key, struct rp_error *err)
{
    char id[RP_ID_TEXT];
    if (facts->file_id == 0) return 0;
    rp_id_format(RP_ID_FILE, facts->file_id, id);
    rp_error_set(err, RP_EISFILE, "%s:%s is the object of file %s", store, key, id);
    return rp_error_hint(err, "delete the file: `reprieve mark %s`", id);
}

static int refuse_references(const struct rp_mark_request *request, const struct rp_mark_facts *facts,
                             const char *store, struct rp_error *err)
{
    if (!request->if_unreferenced) return 0;
    if (facts->references_code < 0)
        return rp_error_set(err, facts->references_code, "%s:%s: its references could not be counted: %s", store,
                            request->key, facts->note);
    if (facts->references == 0) return 0;
    rp_error_set(err, RP_EREFERENCED, "%s:%s is still referenced by %" PRId64 " %s", store, request->key,
                 facts->references, facts->references == 1 ? "row" : "rows");
    return rp_error_hint(err,
                         "nothing was marked: delete what names it and mark again, or mark without if_unreferenced");
}

static bool same_upload(const struct rp_mark *mark, const struct rp_identity *identity)
{
    return strcmp(mark->etag, identity->etag) == 0 && strcmp(mark->version, identity->version) == 0 &&
           mark->size_bytes == identity->size_bytes;
}

/* An active mark: the same, a later one, or - for a newer upload - a new one. */
static struct rp_mark_decision decide_again(const struct rp_mark_request *request, const struct rp_mark_facts *facts,
                                            const char *store, int64_t due_at_ms, struct rp_error *err)
{
    const struct rp_mark *active = facts->active;
    bool explicit_time = request->imported == NULL && (request->at_ms >= 0 || request->grace_ms >= 0);
    char text[RP_TIME_TEXT];
    /* a file's mark without an identity waits for whatever comes to stand there */
    bool any = active->file_id != 0 && active->etag[0] == '\0' && active->version[0] == '\0';
    bool same = any || same_upload(active, &facts->identity);
    if (active->state == RP_MARKED && !same)
        return (struct rp_mark_decision){ .what = RP_MARK_REPLACED, .due_at_ms = due_at_ms };
    if (!same) {
        rp_error_set(err, RP_EMARKED, "%s:%s: an older upload is being purged under this key right now", store,
                     request->key);
        rp_error_hint(err, active->state == RP_DEAD
                               ? "its purge has failed: decide with `reprieve dead`, then mark again"
                               : "the newer one stays; mark it again in a moment");
        return (struct rp_mark_decision){ .code = RP_EMARKED };
    }
    if (!explicit_time || active->state != RP_MARKED || due_at_ms == active->due_at_ms)
        return (struct rp_mark_decision){ .what = RP_MARK_SAME, .due_at_ms = active->due_at_ms };
    if (due_at_ms > active->due_at_ms)
        return (struct rp_mark_decision){ .what = RP_MARK_EXTENDED, .due_at_ms = due_at_ms };
    rp_error_set(err, RP_EMARKED, "%s:%s is already marked, due %s", store, request->key,
                 rp_time_format(active->due_at_ms, text));
    rp_error_hint(err, "a promise is never shortened: restore it and mark it again");
    return (struct rp_mark_decision){ .code = RP_EMARKED };
}

struct rp_mark_decision rp_mark_decide(const struct rp_mark_request *request, const struct rp_mark_facts *facts,
                                       const struct rp_store_config *config, int64_t now_ms, struct rp_error *err)
{
    struct rp_due asked = { .at_ms = request->at_ms, .grace_ms = request->grace_ms, .config = config };
    int64_t due = rp_due(&asked, now_ms);
    int64_t span = request->at_ms >= 0 ? request->at_ms - now_ms : due - now_ms;
    int code = refuse_absent(request, facts, config->name, err);
    if (code == 0) code = refuse_other(request, facts, config->name, err);
    if (code == 0) code = refuse_file(facts, config->name, request->key, err);
    if (code == 0 && request->imported == NULL) code = rp_grace_check(config, span, err);
    if (code == 0) code = refuse_references(request, facts, config->name, err);
    if (code < 0) return (struct rp_mark_decision){ .code = code };
    if (facts->active != NULL) return decide_again(request, facts, config->name, due, err);
    return (struct rp_mark_decision){ .what = RP_MARK_CREATED, .due_at_ms = due };
}

static const struct rp_verb verb_dry;

/* ---- prepare ---- */

static int by_text(const void *key, const void *element)
{
    return strcmp(key, *(const char *const *)element);
}

/* Items of several commands that are about one store, in order of key, then of arrival. */
struct ref {
    struct rp_mark_command *command;
    struct rp_mark_item *item;
    size_t order;
};

struct share {
    struct rp_store *store;
    struct ref *refs;
    size_t n;
    const char **keys; /* distinct; of each the first ref is first[k], and first[n_keys] is n */
    size_t *first;
    size_t n_keys;
};

static int by_store_and_key(const void *a, const void *b)
{
    const struct ref *x = a, *y = b;
    int64_t left = x->item->store->id, right = y->item->store->id;
    if (left != right) return left < right ? -1 : 1;
    int c = strcmp(x->item->request.key, y->item->request.key);
    return c != 0 ? c : (x->order > y->order) - (x->order < y->order);
}

/* Which of the share's keys it is. */
static size_t key_of(const struct share *s, const char *key)
{
    const char **at = bsearch(key, s->keys, s->n_keys, sizeof *s->keys, by_text);
    RP_ASSERT(at != NULL);
    return (size_t)(at - s->keys);
}

static int share_out(struct ref *refs, size_t n, struct rp_arena *arena, struct share **out, size_t *n_shares,
                     struct rp_error *err)
{
    struct share *shares = rp_arena_array(arena, n + 1, sizeof *shares);
    const char **keys = rp_arena_array(arena, n + 1, sizeof *keys);
    size_t *first = rp_arena_array(arena, 2 * n + 1, sizeof *first), n_first = 0;
    if (shares == NULL || keys == NULL || first == NULL)
        return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", n);
    qsort(refs, n, sizeof *refs, by_store_and_key);
    *n_shares = 0;
    for (size_t i = 0; i < n; i++) {
        struct share *s = *n_shares > 0 ? &shares[*n_shares - 1] : NULL;
        const char *key = refs[i].item->request.key;
        if (s == NULL || s->store->id != refs[i].item->store->id) {
            s = &shares[(*n_shares)++];
            *s = (struct share){
                .store = refs[i].item->store, .refs = &refs[i], .keys = &keys[i], .first = &first[n_first]
            };
        }
        if (s->n_keys == 0 || strcmp(s->keys[s->n_keys - 1], key) != 0) {
            s->first[s->n_keys] = s->n;
            s->keys[s->n_keys++] = key;
            n_first += 2;
        }
        s->first[s->n_keys] = ++s->n;
    }
    *out = shares;
    return 0;
}

/* Refs of every item that is not refused yet. */
static struct ref *collect(struct rp_command *const *commands, size_t n, struct rp_arena *arena, size_t *n_refs)
{
    size_t all = 0;
    for (size_t i = 0; i < n; i++)
        all += ((struct rp_mark_command *)commands[i])->n;
    struct ref *refs = rp_arena_array(arena, all + 1, sizeof *refs);
    *n_refs = 0;
    for (size_t i = 0; i < n && refs != NULL; i++) {
        struct rp_mark_command *c = (struct rp_mark_command *)commands[i];
        for (size_t k = 0; k < c->n; k++)
            if (c->items[k].store != NULL && !c->items[k].refused) {
                refs[*n_refs] = (struct ref){ .command = c, .item = &c->items[k], .order = *n_refs };
                (*n_refs)++;
            }
    }
    return refs;
}

static int check_request(const struct rp_store *store, const struct rp_mark_request *q, struct rp_error *err)
{
    int r = rp_key_check(q->key, strlen(q->key), err);
    if (r < 0) return r;
    if (strncmp(q->key, RP_STORE_OWN, strlen(RP_STORE_OWN)) == 0)
        return rp_error_set(err, RP_EINVAL, "%s:%s: keys under " RP_STORE_OWN " are Reprieve's own",
                            store->config->name, q->key);
    if (strlen(q->reason) > RP_REASON_MAX || !rp_utf8_valid(q->reason, strlen(q->reason)))
        return rp_error_set(err, RP_EINVAL, "the reason is longer than %d bytes, or not valid UTF-8", RP_REASON_MAX);
    if (q->if_unreferenced && store->references == NULL) {
        rp_error_set(err, RP_ECONFIG, "store '%s' has no referenced_by list: nothing says what is referenced",
                     store->config->name);
        return rp_error_hint(err, "name the columns that hold its keys under stores.%s.referenced_by",
                             store->config->name);
    }
    return 0;
}

static void refuse(struct rp_mark_item *item, const struct rp_error *why)
{
    item->answer.error = *why;
    item->refused = true;
}

/* Before anything is looked at, or again after an earlier look. */
static void begin_anew(struct rp_mark_item *item)
{
    if (item->store == NULL) return;
    item->answer = (struct rp_mark_answer){ .what = RP_MARK_REFUSED, .references = -1 };
    item->facts = (struct rp_mark_facts){ .found = RP_OUT_UNKNOWN, .references = -1 };
    item->refused = check_request(item->store, &item->request, &item->answer.error) < 0;
}

/* Before the objects are looked at: whatever happens to a mark from here on, run notices (R8). */
static int note_newest(struct rp_catalog *catalog, struct share *s, struct rp_arena *arena, struct rp_error *err)
{
    struct rp_marks newest;
    int r = rp_marks_init(&newest, s->n_keys, arena, err);
    if (r == 0) r = rp_marks_newest(catalog->db, s->store->id, s->keys, s->n_keys, false, &newest, err);
    for (size_t m = 0; m < newest.n && r == 0; m++) {
        size_t k = key_of(s, newest.at[m].key);
        for (size_t i = s->first[k]; i < s->first[k + 1]; i++) {
            s->refs[i].item->facts.seen_id = newest.at[m].id;
            s->refs[i].item->facts.seen_state = newest.at[m].state;
        }
    }
    return r;
}

static int look(struct share *s, struct rp_arena *arena, struct rp_error *err)
{
    struct rp_item *items = rp_arena_array(arena, s->n_keys, sizeof *items);
    if (items == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu objects", s->n_keys);
    for (size_t k = 0; k < s->n_keys; k++)
        items[k].key = s->keys[k];
    int r = rp_subject_in(s->store)->look(s->store, items, s->n_keys, err);
    if (r < 0) return rp_error_wrap(err, r, "look at store '%s'", s->store->config->name);
    for (size_t k = 0; k < s->n_keys; k++)
        for (size_t i = s->first[k]; i < s->first[k + 1]; i++) {
            struct rp_mark_facts *facts = &s->refs[i].item->facts;
            facts->found = items[k].outcome;
            facts->identity = items[k].identity;
            memcpy(facts->note, items[k].note, sizeof facts->note);
        }
    return 0;
}

/* A look-up that fails refuses the marks that asked for it, not the others. */
static int count_references(struct share *s, struct rp_arena *arena, struct rp_error *err)
{
    int64_t *counts = rp_arena_array(arena, s->n_keys, sizeof *counts);
    struct rp_error why = { 0 };
    bool asked = false;
    if (counts == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu counts", s->n_keys);
    for (size_t i = 0; i < s->n; i++)
        asked = asked || s->refs[i].item->request.if_unreferenced;
    if (!asked) return 0;
    int r = rp_references_count(s->store->references, s->keys, s->n_keys, counts, &why);
    for (size_t i = 0; i < s->n; i++) {
        struct rp_mark_item *item = s->refs[i].item;
        struct rp_mark_facts *facts = &item->facts;
        if (!item->request.if_unreferenced) continue;
        facts->references = r == 0 ? counts[key_of(s, item->request.key)] : -1;
        facts->references_code = r;
        if (r < 0) snprintf(facts->note, sizeof facts->note, "%.119s", why.text);
    }
    return 0;
}

static int ensure_store(struct rp_catalog *catalog, const struct share *s, struct rp_error *err)
{
    if (s->store->backend == NULL) {
        *err = s->store->closed;
        return s->store->closed.code;
    }
    bool dry_run = s->refs[0].command->command.verb == &verb_dry;
    enum rp_guarantee_for purpose = dry_run ? RP_GUARANTEE_LOOK : RP_GUARANTEE_MARK;
    return rp_guarantee_ensure(catalog, s->store, purpose, err);
}

static void prepare_share(struct rp_catalog *catalog, struct share *s, struct rp_arena *arena)
{
    struct rp_error why = { 0 };
    int r = ensure_store(catalog, s, &why);
    if (r == 0 && rp_store_is_weak(s->store)) r = rp_store_refuse_weak(s->store, &why);
    if (r == 0) r = note_newest(catalog, s, arena, &why);
    if (r == 0) r = look(s, arena, &why);
    if (r == 0) r = count_references(s, arena, &why);
    for (size_t i = 0; i < s->n && r < 0; i++)
        refuse(s->refs[i].item, &why);
}

static void refuse_all(struct rp_command *const *commands, size_t n, const struct rp_error *why)
{
    for (size_t i = 0; i < n; i++) {
        struct rp_mark_command *c = (struct rp_mark_command *)commands[i];
        for (size_t k = 0; k < c->n; k++)
            if (c->items[k].store != NULL && !c->items[k].refused) refuse(&c->items[k], why);
    }
}

static void prepare(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(PREPARE_ARENA);
    struct rp_error why = { 0 };
    struct share *shares = NULL;
    size_t n_refs = 0, n_shares = 0;
    for (size_t i = 0; i < n; i++) {
        struct rp_mark_command *c = (struct rp_mark_command *)commands[i];
        for (size_t k = 0; k < c->n; k++)
            begin_anew(&c->items[k]);
    }
    struct ref *refs = collect(commands, n, &arena, &n_refs);
    int r = refs != NULL ? share_out(refs, n_refs, &arena, &shares, &n_shares, &why)
                         : rp_error_set(&why, RP_ENOMEM, "no memory for a batch of marks");
    if (r < 0) refuse_all(commands, n, &why);
    for (size_t i = 0; i < n_shares; i++)
        prepare_share(catalog, &shares[i], &arena);
}

/* ---- run ---- */

/* The newest marks of a share's subjects, and what was decided about them. */
struct decided {
    struct rp_marks newest;
    struct rp_mark **marks; /* by key: the newest one as the round stands; NULL: none */
    int64_t *files;
    struct rp_mark *adds;
    struct rp_extend *extends;
    struct rp_move *ends;
    int64_t *annotated; /* older marks that get an annotation now */
    size_t n_adds, n_extends, n_ends, n_annotated;
    const char *changed; /* a key under which another upload stands than its mark knew; NULL: none */
    const char *changed_by;
};

static int load(struct rp_tx *tx, const struct share *s, struct decided *d, struct rp_error *err)
{
    struct rp_arena *a = tx->arena;
    size_t n = s->n + 1;
    *d = (struct decided){ .marks = rp_arena_array(a, n, sizeof *d->marks),
                           .files = rp_arena_array(a, n, sizeof *d->files),
                           .adds = rp_arena_room(a, n, sizeof *d->adds),
                           .extends = rp_arena_room(a, n, sizeof *d->extends),
                           .ends = rp_arena_room(a, n, sizeof *d->ends),
                           .annotated = rp_arena_room(a, n, sizeof *d->annotated) };
    int r = rp_marks_init(&d->newest, s->n_keys, a, err);
    if (r < 0 || d->marks == NULL || d->files == NULL || d->adds == NULL || d->extends == NULL || d->ends == NULL ||
        d->annotated == NULL)
        return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", s->n);
    r = rp_marks_newest(tx->db, s->store->id, s->keys, s->n_keys, true, &d->newest, err);
    if (r == 0) r = rp_files_of_keys(tx, s->store->id, s->keys, s->n_keys, d->files, err);
    for (size_t m = 0; m < d->newest.n && r == 0; m++)
        d->marks[key_of(s, d->newest.at[m].key)] = &d->newest.at[m];
    return r;
}

/* R8: another mark than was seen, or one that has ended since: what was seen under the key may be gone with it. */
static bool has_moved_on(const struct rp_mark_facts *facts, const struct rp_mark *newest)
{
    if (newest == NULL) return facts->seen_id != 0;
    return newest->id != facts->seen_id || (newest->state != facts->seen_state && rp_state_final(newest->state));
}

static void find_stale(const struct share *s, const struct decided *d)
{
    for (size_t k = 0; k < s->n_keys; k++)
        for (size_t i = s->first[k]; i < s->first[k + 1]; i++) {
            struct rp_command *c = &s->refs[i].command->command;
            if (!c->second && has_moved_on(&s->refs[i].item->facts, d->marks[k])) c->stale = true;
        }
}

static bool wants_annotation(const struct rp_mark_item *item)
{
    RP_ASSERT(item->store != NULL);
    return item->request.imported == NULL && (item->request.annotate || item->store->config->annotate);
}

static bool is_annotated_later(const struct rp_mark_item *item)
{
    const struct rp_mark_answer *a = &item->answer;
    bool outdated = a->what == RP_MARK_EXTENDED && a->annotated;
    return a->what != RP_MARK_REFUSED && (wants_annotation(item) || outdated);
}

static struct rp_mark *new_mark(struct rp_tx *tx, const struct ref *ref, int64_t due_at_ms, struct decided *d)
{
    const struct rp_mark_item *item = ref->item;
    const struct rp_identity *identity = &item->facts.identity;
    struct rp_mark *mark = &d->adds[d->n_adds++];
    *mark = (struct rp_mark){ .id = rp_tx_new_id(tx),
                              .store_id = item->store->id,
                              .key = item->request.key,
                              .state = RP_MARKED,
                              .due_at_ms = due_at_ms,
                              .marked_at_ms = tx->late_ms,
                              .checks = item->request.if_unreferenced ? RP_CHECK_REFERENCES : 0,
                              .etag = identity->etag,
                              .version = identity->version,
                              .size_bytes = identity->size_bytes,
                              .modified_ms = identity->modified_ms,
                              .annotated = item->request.imported != NULL || wants_annotation(item),
                              .reason = item->request.reason,
                              .actor = ref->command->command.actor };
    return mark;
}

static void end_old(struct decided *d, const struct rp_mark *old, const char *actor)
{
    RP_ASSERT(old != NULL);
    d->ends[d->n_ends++] = (struct rp_move){ .mark = old,
                                             .to = RP_REPRIEVED,
                                             .outcome = RP_END_SUPERSEDED,
                                             .attempts = old->attempts,
                                             .refence = true,
                                             .actor = actor };
}

/* A mark that this round has just made is only changed in memory; so is one that it extends a second time. */
static int extend(struct rp_tx *tx, struct decided *d, struct rp_mark *mark, int64_t due_at_ms, const char *actor,
                  struct rp_error *err)
{
    RP_ASSERT(mark != NULL);
    bool made_here = mark >= d->adds && mark < d->adds + d->n_adds;
    size_t i = 0;
    while (i < d->n_extends && d->extends[i].mark->id != mark->id)
        i++;
    if (!made_here && i == d->n_extends) {
        struct rp_mark *before = rp_arena_alloc(tx->arena, sizeof *before);
        if (before == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a mark");
        *before = *mark;
        d->extends[d->n_extends++] = (struct rp_extend){ .mark = before, .actor = actor };
    }
    if (!made_here) d->extends[i].due_at_ms = due_at_ms;
    mark->due_at_ms = due_at_ms;
    return 0;
}

static void answer_with(struct rp_mark_answer *a, const struct rp_mark *mark)
{
    a->mark_id = mark->id;
    a->marked_at_ms = mark->marked_at_ms;
    a->due_at_ms = mark->due_at_ms;
    a->size_bytes = mark->size_bytes;
    a->annotated = mark->annotated;
    snprintf(a->reason, sizeof a->reason, "%s", mark->reason);
}

static void note_changed(struct decided *d, const struct ref *ref, int64_t now_ms)
{
    struct rp_mark_facts *facts = &ref->item->facts;
    facts->changed_at_ms = 0;
    if (facts->active == NULL || facts->file_id != 0 || facts->found != RP_OUT_FOUND ||
        same_upload(facts->active, &facts->identity))
        return;
    if (ref->item->store->config->keys == RP_KEYS_WRITE_ONCE) facts->changed_at_ms = now_ms;
    if (d->changed != NULL) return;
    d->changed = ref->item->request.key;
    d->changed_by = ref->command->command.actor;
}

static int decide_one(struct rp_tx *tx, const struct ref *ref, size_t k, struct decided *d, struct rp_error *err)
{
    struct rp_mark_item *item = ref->item;
    struct rp_mark_facts *facts = &item->facts;
    struct rp_mark_answer *a = &item->answer;
    struct rp_mark *newest = d->marks[k];
    facts->active = newest != NULL && !rp_state_final(newest->state) ? newest : NULL;
    facts->file_id = d->files[k];
    *a = (struct rp_mark_answer){ .references = facts->references };
    struct rp_mark_decision decision =
        rp_mark_decide(&item->request, facts, item->store->config, tx->late_ms, &a->error);
    int r = 0;
    a->what = decision.what;
    note_changed(d, ref, tx->late_ms);
    if (a->what == RP_MARK_REFUSED) return 0;
    if (a->what == RP_MARK_REPLACED) end_old(d, newest, ref->command->command.actor);
    if (a->what == RP_MARK_CREATED || a->what == RP_MARK_REPLACED)
        d->marks[k] = newest = new_mark(tx, ref, decision.due_at_ms, d);
    if (a->what == RP_MARK_EXTENDED) r = extend(tx, d, newest, decision.due_at_ms, ref->command->command.actor, err);
    RP_ASSERT(newest != NULL); /* what is not refused has its mark */
    answer_with(a, newest);
    if (wants_annotation(item) && !newest->annotated) d->annotated[d->n_annotated++] = newest->id;
    return r;
}

/* A key that stands twice in a command is answered alike. */
static int decide_share(struct rp_tx *tx, const struct share *s, struct decided *d, struct rp_error *err)
{
    int r = 0;
    for (size_t k = 0; k < s->n_keys; k++)
        for (size_t i = s->first[k]; i < s->first[k + 1] && r == 0; i++) {
            const struct ref *ref = &s->refs[i];
            bool again = i > s->first[k] && ref[-1].command == ref->command;
            if (ref->command->command.stale) continue;
            if (again)
                ref->item->answer = ref[-1].item->answer;
            else
                r = decide_one(tx, ref, k, d, err);
        }
    return r;
}

static int apply(struct rp_tx *tx, const struct share *s, struct decided *d, struct rp_error *err)
{
    struct rp_state_by by = { .store = s->store->config->name };
    int r = rp_state_move_all(tx, &by, d->ends, d->n_ends, err);
    if (r == 0) r = rp_state_birth(tx, &by, d->adds, d->n_adds, err);
    if (r == 0) r = rp_state_extend(tx, &by, d->extends, d->n_extends, err);
    for (size_t i = 0; i < d->n_extends && r == 0; i++)
        if (!d->extends[i].done) r = rp_error_set(err, RP_ECONFLICT, "extend marks: another writer was faster");
    if (r == 0 && d->n_annotated > 0) r = rp_marks_annotated(tx, d->annotated, d->n_annotated, err);
    /* another upload under a key that a mark knew: a promise about the store's keys, if there was one, is broken */
    if (r == 0 && d->changed != NULL) r = rp_guarantee_note_changed(tx, s->store, d->changed, d->changed_by, err);
    return r;
}

static bool is_finish_due(const struct rp_mark_item *item)
{
    if (item->facts.changed_at_ms != 0) return true;
    return item->answer.what != RP_MARK_REFUSED && is_annotated_later(item);
}

/* The whole command: refusals that came before, what is due first, and whether anything is left to do outside. */
static void sum_up(struct rp_mark_command *c)
{
    for (size_t i = 0; i < c->n; i++) {
        struct rp_mark_item *item = &c->items[i];
        if (item->store == NULL || item->refused) item->answer.references = -1;
        if (c->command.verb == &verb_dry) continue;
        int64_t due = item->answer.due_at_ms;
        if (item->answer.what != RP_MARK_REFUSED && (c->command.due_at_ms == 0 || due < c->command.due_at_ms))
            c->command.due_at_ms = due;
        c->command.unfinished = c->command.unfinished || is_finish_due(item);
    }
    if (c->n == 1) c->command.error = c->items[0].answer.error;
}

static int run(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    struct share *shares = NULL;
    size_t n_refs = 0, n_shares = 0;
    struct ref *refs = collect(commands, n, tx->arena, &n_refs);
    int r = refs != NULL ? share_out(refs, n_refs, tx->arena, &shares, &n_shares, err)
                         : rp_error_set(err, RP_ENOMEM, "no memory for a batch of marks");
    struct decided *decided = r == 0 ? rp_arena_array(tx->arena, n_shares + 1, sizeof *decided) : NULL;
    if (r == 0 && decided == NULL) r = rp_error_set(err, RP_ENOMEM, "no memory for a batch of marks");
    for (size_t i = 0; i < n_shares && r == 0; i++) {
        r = load(tx, &shares[i], &decided[i], err);
        if (r == 0) find_stale(&shares[i], &decided[i]);
    }
    for (size_t i = 0; i < n_shares && r == 0; i++) {
        r = decide_share(tx, &shares[i], &decided[i], err);
        if (r == 0 && commands[0]->verb != &verb_dry) r = apply(tx, &shares[i], &decided[i], err);
    }
    for (size_t i = 0; i < n && r == 0; i++)
        if (!commands[i]->stale) sum_up((struct rp_mark_command *)commands[i]);
    RP_CRASHPOINT("mark.before-commit");
    return r;
}

/* ---- finish ---- */

static int note_identity(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    return rp_marks_identity(tx, ctx, 1, err);
}

/* After the commit: a mark without its annotation is only less visible, an annotation without its mark would lie. */
static void annotate(struct rp_catalog *catalog, struct rp_mark_item *item)
{
    struct rp_mark_answer *a = &item->answer;
    struct rp_annotation note = { .marked_at_ms = a->marked_at_ms, .due_at_ms = a->due_at_ms, .reason = a->reason };
    struct rp_identity now = item->facts.identity;
    struct rp_error why = { 0 };
    int r = rp_annotation_write(catalog, item->store, item->request.key, &now, &note, &why);
    if (r == 0 && !rp_identity_equal(&now, &item->facts.identity)) {
        struct rp_mark mark = {
            .id = a->mark_id, .etag = now.etag, .version = now.version, .modified_ms = now.modified_ms
        };
        r = rp_catalog_transact(catalog, note_identity, &mark, &why);
    }
    if (r < 0) snprintf(a->annotate_note, sizeof a->annotate_note, "%.119s", why.text);
    a->annotated = r == 0;
}

static void finish_item(struct rp_catalog *catalog, struct rp_mark_item *item, bool *amended)
{
    if (item->facts.changed_at_ms != 0) rp_guarantee_revoke(item->store, item->facts.changed_at_ms);
    if (item->answer.what == RP_MARK_REFUSED || !is_annotated_later(item)) return;
    annotate(catalog, item);
    *amended = true;
}

/* A key that stands twice is annotated once. */
static bool finish_alike(struct rp_mark_command *c, size_t k)
{
    struct rp_mark_answer *a = &c->items[k].answer;
    for (size_t i = 0; i < k && is_annotated_later(&c->items[k]); i++) {
        const struct rp_mark_answer *first = &c->items[i].answer;
        if (first->mark_id != a->mark_id || !is_annotated_later(&c->items[i])) continue;
        a->annotated = first->annotated;
        memcpy(a->annotate_note, first->annotate_note, sizeof a->annotate_note);
        return true;
    }
    return false;
}

static void finish(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct rp_mark_command *c = (struct rp_mark_command *)commands[i];
        for (size_t k = 0; k < c->n; k++)
            if (!finish_alike(c, k)) finish_item(catalog, &c->items[k], &c->command.amended);
    }
}

static void write_log(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    const struct rp_mark_command *c = (const struct rp_mark_command *)command;
    struct rp_journal j = { .log = log, .at_ms = at_ms, .actor = command->actor };
    for (size_t i = 0; i < c->n; i++) {
        struct rp_mark_item item = c->items[i];
        if (command->failed) item.answer = (struct rp_mark_answer){ .references = -1, .error = command->error };
        bool old_news = item.request.imported != NULL && item.answer.what == RP_MARK_SAME;
        if (!old_news) rp_journal_mark(&j, &item);
    }
}

static int add_locks(struct rp_tx *tx, const struct rp_command *command, struct rp_locks *out, struct rp_error *err)
{
    const struct rp_mark_command *c = (const struct rp_mark_command *)command;
    (void)tx, (void)err;
    for (size_t i = 0; i < c->n; i++)
        if (!c->items[i].refused) rp_locks_mark(out, c->items[i].facts.seen_id);
    return 0;
}

_Static_assert(offsetof(struct rp_mark_command, command) == 0, "a command is the first member");
const struct rp_verb rp_verb_mark = {
    .name = "mark", .prepare = prepare, .locks = add_locks, .run = run, .finish = finish, .log = write_log
};
/* The same decisions, without effect. */
static const struct rp_verb verb_dry = { .name = "mark", .prepare = prepare, .run = run, .alone = true };

/* ---- commands ---- */

void rp_mark_command_init(struct rp_mark_command *c, struct rp_mark_item *items, size_t n, const char *actor)
{
    *c = (struct rp_mark_command){ .command = { .verb = &rp_verb_mark, .weight = n, .actor = actor },
                                   .items = items,
                                   .n = n };
    if (n == 0 || items[0].store == NULL) return;
    c->command.group = items[0].store->id;
    for (size_t i = 1; i < n; i++)
        if (items[i].store != items[0].store) c->command.group = RP_GROUP_SEVERAL;
    c->command.spread = rp_hash_text(0, items[0].request.key);
}

int rp_mark_many(struct rp_catalog *catalog, struct rp_store *store, const struct rp_mark_request *requests, size_t n,
                 const char *actor, bool dry_run, struct rp_mark_answer *answers, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct rp_mark_item *items = calloc(n, sizeof *items);
    struct rp_mark_command c;
    RP_ASSERT(n > 0 && n <= RP_MARK_ITEMS_MAX);
    if (items == NULL) return rp_error_set(err, RP_ENOMEM, "mark: no memory for %zu marks", n);
    for (size_t i = 0; i < n; i++)
        items[i] = (struct rp_mark_item){ .store = store, .request = requests[i] };
    rp_mark_command_init(&c, items, n, actor);
    if (dry_run) c.command.verb = &verb_dry;
    int r = rp_command_run(catalog, &c.command);
    if (c.command.failed) {
        *err = c.command.error;
        return r;
    }
    for (size_t i = 0; i < n; i++)
        answers[i] = items[i].answer;
    return 0;
}
