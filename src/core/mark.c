/* SPDX-License-Identifier: Apache-2.0 */
#include "core/mark.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/crashpoint.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mutant.h"
#include "base/time.h"
#include "base/utf8.h"
#include "catalog/audit.h"
#include "catalog/file.h"
#include "core/annotation.h"
#include "core/check/references.h"
#include "core/guarantee.h"
#include "core/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
    if (facts->file_id == 0 || RP_MUTANT(FILE_OBJECT_MARKED)) return 0;
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
    return rp_error_set(err, RP_EREFERENCED, "%s:%s is still referenced by %" PRId64 " %s", store, request->key,
                        facts->references, facts->references == 1 ? "row" : "rows");
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
    bool same = any || same_upload(active, &facts->identity) || RP_MUTANT(SUPERSEDED_KEPT);
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
    RP_ASSERT(request->at_ms < 0 || request->grace_ms < 0);
    int64_t due =
        request->at_ms >= 0 ? request->at_ms : now_ms + (request->grace_ms >= 0 ? request->grace_ms : config->grace_ms);
    int code = refuse_absent(request, facts, config->name, err);
    if (code == 0) code = refuse_other(request, facts, config->name, err);
    if (code == 0) code = refuse_file(facts, config->name, request->key, err);
    if (code == 0 && facts->held) {
        code = rp_error_set(err, RP_EHELD, "%s:%s is held", config->name, request->key);
        rp_error_hint(err, "`reprieve hold` lists the holds, `reprieve hold rm ID` lifts one");
    }
    if (code == 0 && request->imported == NULL) code = rp_grace_check(config, due - now_ms, err);
    if (code == 0) code = refuse_references(request, facts, config->name, err);
    if (code < 0) return (struct rp_mark_decision){ .code = code };
    if (due < now_ms) due = now_ms;
    if (facts->active != NULL) return decide_again(request, facts, config->name, due, err);
    return (struct rp_mark_decision){ .what = RP_MARK_CREATED, .due_at_ms = due };
}

/* ---- load ---- */

struct batch {
    struct rp_store *store;
    const struct rp_mark_request *requests; /* of the caller */
    struct rp_mark_answer *answers;         /* of the caller */
    const char *actor;
    size_t *order; /* indices into requests, one a distinct and valid key, sorted by key */
    const char **keys;
    struct rp_mark_facts *facts;
    struct rp_item *items;
    size_t n, n_requests;
    bool foresee;          /* decide, but apply nothing */
    int64_t changed_at_ms; /* 0: no object was */
    struct rp_arena arena;
};

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
    return rp_store_is_weak(store) ? rp_store_refuse_weak(store, err) : 0;
}

static int by_key(const void *a, const void *b, void *requests)
{
    const struct rp_mark_request *q = requests;
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    int c = strcmp(q[x].key, q[y].key);
    return c != 0 ? c : (x > y) - (x < y);
}

static int batch_init(struct batch *b, size_t n, struct rp_error *err)
{
    b->n_requests = n;
    b->order = rp_arena_array(&b->arena, n, sizeof *b->order);
    b->keys = rp_arena_array(&b->arena, n, sizeof *b->keys);
    b->facts = rp_arena_array(&b->arena, n, sizeof *b->facts);
    b->items = rp_arena_array(&b->arena, n, sizeof *b->items);
    if (b->order == NULL || b->keys == NULL || b->facts == NULL || b->items == NULL)
        return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", n);
    for (size_t i = 0; i < n; i++) {
        b->answers[i] = (struct rp_mark_answer){ .what = RP_MARK_REFUSED, .references = -1 };
        if (check_request(b->store, &b->requests[i], &b->answers[i].error) == 0) b->order[b->n++] = i;
    }
    qsort_r(b->order, b->n, sizeof *b->order, by_key, (void *)(uintptr_t)b->requests);
    size_t distinct = 0;
    for (size_t i = 0; i < b->n; i++) {
        const char *key = b->requests[b->order[i]].key;
        if (distinct > 0 && strcmp(b->keys[distinct - 1], key) == 0) continue;
        b->order[distinct] = b->order[i];
        b->keys[distinct++] = key;
    }
    b->n = distinct;
    return 0;
}

static int load_objects(struct batch *b, struct rp_error *err)
{
    for (size_t i = 0; i < b->n; i++)
        b->items[i].key = b->keys[i];
    int r = b->n > 0 ? rp_backend_stat(b->store->backend, b->items, b->n, err) : 0;
    if (r < 0) return rp_error_wrap(err, r, "look at store '%s'", b->store->config->name);
    for (size_t i = 0; i < b->n; i++) {
        b->facts[i] =
            (struct rp_mark_facts){ .found = b->items[i].outcome, .identity = b->items[i].identity, .references = -1 };
        snprintf(b->facts[i].note, sizeof b->facts[i].note, "%s", b->items[i].note);
    }
    return 0;
}

/* A look-up that fails refuses the marks that asked for it, not the whole batch. */
static int load_references(struct batch *b, struct rp_error *err)
{
    struct rp_error why = { 0 };
    size_t wanted = 0;
    for (size_t i = 0; i < b->n; i++)
        wanted += b->requests[b->order[i]].if_unreferenced;
    if (wanted == 0) return 0;
    int64_t *counts = rp_arena_array(&b->arena, b->n, sizeof *counts);
    if (counts == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu counts", b->n);
    int r = rp_references_count(b->store->references, b->keys, b->n, counts, &why);
    for (size_t i = 0; i < b->n; i++) {
        b->facts[i].references = r == 0 ? counts[i] : -1;
        b->facts[i].references_code = r;
        if (r < 0) snprintf(b->facts[i].note, sizeof b->facts[i].note, "%.119s", why.text);
    }
    return 0;
}

static int find_key(const void *key, const void *element)
{
    return strcmp(key, *(const char *const *)element);
}

static void answer_duplicates(struct batch *b)
{
    for (size_t i = 0; i < b->n_requests; i++) {
        const char **at = bsearch(b->requests[i].key, b->keys, b->n, sizeof *b->keys, find_key);
        if (at != NULL) b->answers[i] = b->answers[b->order[at - b->keys]];
    }
}

static int load_marks(struct rp_tx *tx, struct batch *b, struct rp_error *err)
{
    struct rp_marks active;
    bool *held = rp_arena_array(tx->arena, b->n + 1, sizeof *held);
    int64_t *files = rp_arena_array(tx->arena, b->n + 1, sizeof *files);
    int r = rp_marks_init(&active, b->n, tx->arena, err);
    if (r < 0 || held == NULL || files == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", b->n);
    r = rp_marks_active(tx, b->store->id, b->keys, b->n, &active, err);
    if (r == 0) r = rp_marks_held(tx, b->store->id, b->keys, b->n, held, err);
    if (r == 0) r = rp_files_of_keys(tx, b->store->id, b->keys, b->n, files, err);
    if (r < 0) return r;
    for (size_t i = 0; i < b->n; i++) {
        b->facts[i].active = NULL;
        b->facts[i].held = held[i];
        b->facts[i].file_id = files[i];
    }
    for (size_t i = 0; i < active.n; i++) {
        const char **at = bsearch(active.at[i].key, b->keys, b->n, sizeof *b->keys, find_key);
        RP_ASSERT(at != NULL);
        b->facts[at - b->keys].active = &active.at[i];
    }
    return 0;
}

/* ---- apply ---- */

struct changes {
    struct rp_mark *adds;
    struct rp_extend *extends;
    struct rp_move *ends;
    int64_t *annotated; /* older marks that get an annotation now */
    size_t n_adds, n_extends, n_ends, n_annotated;
};

static bool is_wanted(const struct rp_store *store, const struct rp_mark_request *request)
{
    return request->imported == NULL && (request->annotate || store->config->annotate);
}

static bool wants_annotation(const struct batch *b, size_t i)
{
    return is_wanted(b->store, &b->requests[b->order[i]]);
}

bool rp_mark_annotates(const struct rp_store *store, const struct rp_mark_request *request,
                       const struct rp_mark_answer *answer)
{
    bool outdated = answer->what == RP_MARK_EXTENDED && answer->annotated;
    return answer->what != RP_MARK_REFUSED && (is_wanted(store, request) || outdated);
}

static struct rp_mark new_mark(struct rp_tx *tx, const struct batch *b, size_t i, int64_t due_at_ms)
{
    const struct rp_mark_request *q = &b->requests[b->order[i]];
    const struct rp_identity *identity = &b->facts[i].identity;
    return (struct rp_mark){ .id = rp_tx_new_id(tx),
                             .store_id = b->store->id,
                             .key = q->key,
                             .state = RP_MARKED,
                             .due_at_ms = due_at_ms,
                             .marked_at_ms = tx->late_ms,
                             .checks = q->if_unreferenced ? RP_CHECK_REFERENCES : 0,
                             .etag = identity->etag,
                             .version = identity->version,
                             .size_bytes = identity->size_bytes,
                             .modified_ms = identity->modified_ms,
                             .annotated = q->imported != NULL || wants_annotation(b, i),
                             .reason = q->reason,
                             .actor = b->actor };
}

static void answer_with(struct rp_mark_answer *a, const struct rp_mark *mark, int64_t due_at_ms)
{
    a->mark_id = mark->id;
    a->marked_at_ms = mark->marked_at_ms;
    a->due_at_ms = due_at_ms;
    a->size_bytes = mark->size_bytes;
    a->annotated = mark->annotated;
    snprintf(a->reason, sizeof a->reason, "%s", mark->reason);
}

static void decide_one(struct rp_tx *tx, struct batch *b, size_t i, struct changes *c)
{
    const struct rp_mark_facts *facts = &b->facts[i];
    struct rp_mark_answer *a = &b->answers[b->order[i]];
    *a = (struct rp_mark_answer){ .references = facts->references };
    struct rp_mark_decision d =
        rp_mark_decide(&b->requests[b->order[i]], facts, b->store->config, tx->late_ms, &a->error);
    a->what = d.what;
    if (d.what == RP_MARK_SAME) answer_with(a, facts->active, d.due_at_ms);
    if (d.what == RP_MARK_EXTENDED) {
        c->extends[c->n_extends++] = (struct rp_extend){ .mark = facts->active, .due_at_ms = d.due_at_ms };
        answer_with(a, facts->active, d.due_at_ms);
    }
    if ((d.what == RP_MARK_SAME || d.what == RP_MARK_EXTENDED) && wants_annotation(b, i) && !facts->active->annotated)
        c->annotated[c->n_annotated++] = facts->active->id;
    if (d.what == RP_MARK_REPLACED)
        c->ends[c->n_ends++] = (struct rp_move){ .mark = facts->active,
                                                 .to = RP_REPRIEVED,
                                                 .outcome = RP_END_SUPERSEDED,
                                                 .attempts = facts->active->attempts,
                                                 .refence = true };
    if (d.what == RP_MARK_CREATED || d.what == RP_MARK_REPLACED) {
        struct rp_mark *mark = &c->adds[c->n_adds++];
        *mark = new_mark(tx, b, i, d.due_at_ms);
        answer_with(a, mark, d.due_at_ms);
    }
}

static int apply(struct rp_tx *tx, struct batch *b, struct changes *c, struct rp_error *err)
{
    struct rp_state_by by = { .store = b->store->config->name, .actor = b->actor };
    int r = rp_state_move_all(tx, &by, c->ends, c->n_ends, err);
    if (r == 0) r = rp_state_birth(tx, &by, c->adds, c->n_adds, err);
    if (r == 0) r = rp_state_extend(tx, &by, c->extends, c->n_extends, err);
    for (size_t i = 0; i < c->n_extends && r == 0; i++)
        if (!c->extends[i].done) r = rp_error_set(err, RP_ECONFLICT, "extend marks: another writer was faster");
    return r < 0 ? r : rp_marks_annotated(tx, c->annotated, c->n_annotated, err);
}

/* Another upload under a key that a mark knew: a promise about the store's keys, if there was one, is broken. */
static int note_changed(struct rp_tx *tx, struct batch *b, struct rp_error *err)
{
    b->changed_at_ms = 0;
    for (size_t i = 0; i < b->n; i++) {
        const struct rp_mark_facts *facts = &b->facts[i];
        if (facts->active == NULL || facts->file_id != 0 || facts->found != RP_OUT_FOUND ||
            same_upload(facts->active, &facts->identity))
            continue;
        b->changed_at_ms = tx->late_ms;
        return rp_guarantee_note_changed(tx, b->store, b->keys[i], b->actor, err);
    }
    return 0;
}

static int transact(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct batch *b = ctx;
    struct changes c = { 0 };
    int r = load_marks(tx, b, err);
    if (r < 0) return r;
    c.adds = rp_arena_array(tx->arena, b->n + 1, sizeof *c.adds);
    c.extends = rp_arena_array(tx->arena, b->n + 1, sizeof *c.extends);
    c.ends = rp_arena_array(tx->arena, b->n + 1, sizeof *c.ends);
    c.annotated = rp_arena_array(tx->arena, b->n + 1, sizeof *c.annotated);
    if (c.adds == NULL || c.extends == NULL || c.ends == NULL || c.annotated == NULL)
        return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", b->n);
    for (size_t i = 0; i < b->n; i++)
        decide_one(tx, b, i, &c);
    answer_duplicates(b);
    if (b->foresee) return 0;
    r = apply(tx, b, &c, err);
    return r < 0 ? r : note_changed(tx, b, err);
}

/* Marks whose objects have another identity since they were annotated. */
struct moved {
    struct rp_mark *marks; /* id and identity */
    struct rp_identity *identities;
    size_t n;
};

static int note_identities(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    const struct moved *moved = ctx;
    return rp_marks_identity(tx, moved->marks, moved->n, err);
}

/* After the commit: a mark without its annotation is only less visible, an annotation without its mark would lie. */
static int annotate(struct rp_catalog *catalog, struct batch *b, struct rp_error *err)
{
    struct moved moved = { .marks = rp_arena_array(&b->arena, b->n + 1, sizeof *moved.marks),
                           .identities = rp_arena_array(&b->arena, b->n + 1, sizeof *moved.identities) };
    if (moved.marks == NULL || moved.identities == NULL)
        return rp_error_set(err, RP_ENOMEM, "no memory for annotations");
    for (size_t i = 0; i < b->n; i++) {
        struct rp_mark_answer *a = &b->answers[b->order[i]];
        bool older = a->what == RP_MARK_SAME || a->what == RP_MARK_EXTENDED;
        const char *reason = older ? a->reason : b->requests[b->order[i]].reason;
        struct rp_annotation note = { .marked_at_ms = a->marked_at_ms, .due_at_ms = a->due_at_ms, .reason = reason };
        struct rp_error why = { 0 };
        if (!rp_mark_annotates(b->store, &b->requests[b->order[i]], a)) continue;
        struct rp_identity *now = &moved.identities[moved.n];
        *now = b->facts[i].identity;
        int r = rp_annotation_write(catalog, b->store, b->keys[i], now, &note, &why);
        if (r < 0) snprintf(a->annotate_note, sizeof a->annotate_note, "%.119s", why.text);
        a->annotated = r == 0;
        if (r < 0 || rp_identity_equal(now, &b->facts[i].identity)) continue;
        moved.marks[moved.n++] = (struct rp_mark){
            .id = a->mark_id, .etag = now->etag, .version = now->version, .modified_ms = now->modified_ms
        };
    }
    return moved.n > 0 ? rp_catalog_transact(catalog, note_identities, &moved, err) : 0;
}

static int run_batch(struct rp_catalog *catalog, struct batch *b, size_t n, struct rp_error *err)
{
    RP_ASSERT(n > 0 && n <= RP_MARK_BATCH_MAX);
    int r = rp_guarantee_ensure(catalog, b->store, b->foresee ? RP_GUARANTEE_LOOK : RP_GUARANTEE_MARK, err);
    if (r == 0) r = batch_init(b, n, err);
    if (r == 0) r = load_objects(b, err);
    if (r == 0) r = load_references(b, err);
    if (r == 0 && b->n > 0)
        r = b->foresee ? rp_catalog_transact(catalog, transact, b, err) : rp_catalog_change(catalog, transact, b, err);
    if (!b->foresee) RP_CRASHPOINT("mark.committed");
    if (r == 0 && b->changed_at_ms != 0) rp_guarantee_revoke(b->store, b->changed_at_ms);
    if (r == 0 && !b->foresee) r = annotate(catalog, b, err);
    if (r == 0) answer_duplicates(b); /* once more: of annotations nothing was known before */
    rp_arena_done(&b->arena);
    return r < 0 ? rp_error_wrap(err, r, "mark") : 0;
}

int rp_mark_many(struct rp_catalog *catalog, struct rp_store *store, const struct rp_mark_request *requests, size_t n,
                 const char *actor, struct rp_mark_answer *answers, struct rp_error *err)
{
    struct batch b = {
        .store = store, .requests = requests, .answers = answers, .actor = actor, .arena = RP_ARENA((size_t)16 << 20)
    };
    return run_batch(catalog, &b, n, err);
}

int rp_mark_foresee(struct rp_catalog *catalog, struct rp_store *store, const struct rp_mark_request *requests,
                    size_t n, struct rp_mark_answer *answers, struct rp_error *err)
{
    struct batch b = { .store = store,
                       .requests = requests,
                       .answers = answers,
                       .actor = "",
                       .foresee = true,
                       .arena = RP_ARENA((size_t)16 << 20) };
    return run_batch(catalog, &b, n, err);
}
