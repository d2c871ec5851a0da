/* SPDX-License-Identifier: Apache-2.0 */
#include "core/mark/import.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/text/utf8.h"
#include "base/time.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PAGE          RP_MARK_ITEMS_MAX
#define PAGE_BYTES    ((size_t)4 << 20)
#define READERS       16 /* a store over a network answers each object in its own time */
#define READ_AT_LEAST 8  /* objects that are worth another reader */
#define SCRATCH_BYTES ((size_t)256 << 10)
#define EARLIEST_MS   INT64_C(1000000000000) /* I3 */

/* ---- what an annotation says ---- */

const char *rp_import_time_name(enum rp_import_time time)
{
    static const char *const names[] = { [RP_IMPORT_DELETE_AFTER] = "delete_after",
                                         [RP_IMPORT_MARKED_ON] = "marked_for_deletion_on",
                                         [RP_IMPORT_ABSENT] = "no time",
                                         [RP_IMPORT_UNREADABLE] = "unreadable time" };
    return names[time];
}

static const char *field(const struct rp_meta *meta, const char *name)
{
    for (size_t i = 0; i < meta->n_user; i++)
        if (strcmp(meta->user[i].name, name) == 0) return meta->user[i].value;
    return NULL;
}

static enum rp_import_flag read_flag(const char *text)
{
    if (text == NULL || text[0] == 0 || strcasecmp(text, "false") == 0 || strcmp(text, "0") == 0) return RP_IMPORT_NO;
    return strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0 ? RP_IMPORT_YES : RP_IMPORT_UNCLEAR;
}

/* Digits and perhaps a fraction, which is dropped: how many digits, 0 if it is no such number. */
static size_t count_digits(const char *text)
{
    size_t n = strspn(text, "0123456789");
    const char *rest = text + n;
    if (*rest == '.') rest += 1 + strspn(rest + 1, "0123456789");
    return *rest == 0 ? n : 0;
}

static bool read_time(const char *text, int64_t *out_ms)
{
    size_t digits = count_digits(text);
    int64_t ms = 0;
    if (digits == 13)
        ms = strtoll(text, NULL, 10);
    else if (digits == 10)
        ms = strtoll(text, NULL, 10) * 1000;
    else if (digits > 0 || rp_time_parse(text, &ms, NULL) < 0)
        return false;
    if (ms < EARLIEST_MS) return false;
    *out_ms = ms;
    return true;
}

/* Cut at a character; bytes that are none end it. */
static void read_reason(const char *text, char out[RP_REASON_MAX + 1])
{
    size_t n = 0, left = text != NULL ? strlen(text) : 0;
    for (size_t length; n < left && (length = rp_utf8_length(text + n, left - n)) > 0; n += length)
        if (n + length > RP_REASON_MAX) break;
    if (n == 0)
        snprintf(out, RP_REASON_MAX + 1, "imported");
    else
        snprintf(out, RP_REASON_MAX + 1, "%.*s", (int)n, text);
}

void rp_import_read(const struct rp_meta *meta, int64_t grace_ms, struct rp_import_note *out)
{
    const char *delete_after = field(meta, "delete_after"), *marked_on = field(meta, "marked_for_deletion_on");
    int64_t at_ms;
    *out = (struct rp_import_note){ .flag = read_flag(field(meta, "marked_for_deletion")), .at_ms = -1 };
    if (out->flag == RP_IMPORT_NO) return;
    read_reason(field(meta, "deletion_reason"), out->reason);
    if (marked_on != NULL && read_time(marked_on, &at_ms)) out->marked_at_ms = at_ms;
    const char *text = delete_after != NULL ? delete_after : marked_on;
    out->time = text == NULL ? RP_IMPORT_ABSENT : RP_IMPORT_UNREADABLE;
    if (text == NULL || !read_time(text, &at_ms)) return;
    out->time = delete_after != NULL ? RP_IMPORT_DELETE_AFTER : RP_IMPORT_MARKED_ON;
    struct rp_due due = { .by = RP_DUE_AFTER, .from_ms = at_ms, .grace_ms = delete_after != NULL ? 0 : grace_ms };
    out->at_ms = rp_due(&due, 0); /* one that is past is due at once: the mark sees to it */
}

/* ---- one page ---- */

struct rp_import_walk {
    struct rp_arena arena; /* of the page's keys */
    struct rp_import_item *page;
    size_t n_page, n_taken; /* taken: handed out in batches */
    struct rp_import_item **batch;
    struct rp_mark_request *requests;
    struct rp_mark_answer *answers;
    struct rp_import_item **asked; /* which item each request is of */
    char after[RP_KEY_MAX + 1];
    bool listed; /* to the end */
};

static int take_key(void *ctx, const struct rp_entry *entry, struct rp_error *err)
{
    struct rp_import_walk *w = ctx;
    struct rp_import_item *item = &w->page[w->n_page];
    *item = (struct rp_import_item){ .key = rp_arena_strdup(&w->arena, entry->key) };
    if (item->key == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a page of keys");
    return ++w->n_page == PAGE;
}

static int list_page(struct rp_import *import, struct rp_error *err)
{
    struct rp_import_walk *w = import->walk;
    struct rp_backend *backend = import->store->backend;
    rp_arena_reset(&w->arena);
    w->n_page = w->n_taken = 0;
    int r = rp_backend_list(backend, import->prefix, w->after, take_key, w, err);
    if (r < 0) return rp_error_wrap(err, r, "list store '%s'", import->store->config->name);
    w->listed = w->n_page < PAGE;
    if (w->n_page > 0) snprintf(w->after, sizeof w->after, "%s", w->page[w->n_page - 1].key);
    return 0;
}

/* Several readers take items from one page, each the next. */
struct reading {
    const struct rp_store *store;
    struct rp_import_walk *walk;
    atomic_size_t next;
    pthread_mutex_t lock; /* of `failed` */
    struct rp_error failed;
};

static int read_one(const struct rp_store *store, struct rp_arena *scratch, struct rp_import_item *item,
                    struct rp_error *err)
{
    struct rp_meta meta = { 0 };
    struct rp_error why = { 0 };
    rp_arena_reset(scratch);
    int r = rp_backend_get(store->backend, item->key, NULL, scratch, &meta, &item->identity, &why);
    item->gone = r == RP_ENOTFOUND;
    if (r == 0) rp_import_read(&meta, store->config->grace_ms, &item->note);
    if (r == 0 || item->gone) return 0;
    rp_error_wrap(&why, r, "read %s:%s", store->config->name, item->key);
    if ((rp_error_fault(r) & RP_OF_STORE) != 0) {
        *err = why;
        return r;
    }
    item->unread = true;
    item->answer.error = why;
    return 0;
}

static void *read_items(void *arg)
{
    struct reading *reading = arg;
    struct rp_import_walk *w = reading->walk;
    RP_CLEANUP(rp_arena_done) struct rp_arena scratch = RP_ARENA(SCRATCH_BYTES);
    for (size_t i; (i = atomic_fetch_add(&reading->next, 1)) < w->n_page;) {
        struct rp_error why = { 0 };
        if (read_one(reading->store, &scratch, &w->page[i], &why) == 0) continue;
        atomic_store(&reading->next, w->n_page); /* nobody begins another */
        pthread_mutex_lock(&reading->lock);
        if (reading->failed.code == 0) reading->failed = why;
        pthread_mutex_unlock(&reading->lock);
    }
    return NULL;
}

static int read_page(struct rp_import *import, struct rp_error *err)
{
    struct reading reading = { .store = import->store, .walk = import->walk, .lock = PTHREAD_MUTEX_INITIALIZER };
    pthread_t threads[READERS - 1];
    size_t n = import->walk->n_page / READ_AT_LEAST, begun = 0;
    while (begun < n && begun < READERS - 1 && pthread_create(&threads[begun], NULL, read_items, &reading) == 0)
        begun++;
    read_items(&reading);
    while (begun > 0)
        pthread_join(threads[--begun], NULL);
    pthread_mutex_destroy(&reading.lock);
    if (reading.failed.code == 0) return 0;
    *err = reading.failed;
    return reading.failed.code;
}

/* ---- one batch ---- */

static bool is_told(const struct rp_import_item *item)
{
    return !item->gone && (item->unread || item->note.flag != RP_IMPORT_NO);
}

static void note_unmarked(struct rp_import *import, struct rp_import_item *item)
{
    import->counts.unclear += !item->unread;
    import->counts.refused += item->unread;
    if (item->unread) return;
    rp_error_set(&item->answer.error, RP_EINVAL, "%s:%s: marked_for_deletion says neither true nor false",
                 import->store->config->name, item->key);
    rp_error_hint(&item->answer.error, "mark it by hand if it shall go");
}

/* Of the page, what is told next: as many requests as the limit leaves. */
static size_t take_batch(struct rp_import *import)
{
    struct rp_import_walk *w = import->walk;
    int64_t left = import->limit > 0 ? import->limit - import->counts.marked : PAGE;
    size_t n = 0;
    import->n_batch = 0;
    while (w->n_taken < w->n_page && (int64_t)n < left) {
        struct rp_import_item *item = &w->page[w->n_taken++];
        import->counts.looked_at++;
        if (!is_told(item)) continue;
        import->batch[import->n_batch++] = item;
        if (item->note.flag != RP_IMPORT_YES) {
            note_unmarked(import, item);
            continue;
        }
        import->counts.annotated++;
        import->counts.unreadable += item->note.time == RP_IMPORT_UNREADABLE;
        w->requests[n] = (struct rp_mark_request){ .key = item->key,
                                                   .grace_ms = -1,
                                                   .at_ms = item->note.at_ms,
                                                   .reason = item->note.reason,
                                                   .marked_at_ms = item->note.marked_at_ms,
                                                   .imported = &item->identity };
        w->asked[n++] = item;
    }
    return n;
}

static void count(struct rp_import *import, const struct rp_mark_answer *answer)
{
    import->counts.marked += answer->what == RP_MARK_CREATED || answer->what == RP_MARK_REPLACED;
    import->counts.already_marked += answer->what == RP_MARK_SAME;
    import->counts.refused += answer->what == RP_MARK_REFUSED;
}

static int mark_batch(struct rp_import *import, struct rp_catalog *catalog, struct rp_error *err)
{
    struct rp_import_walk *w = import->walk;
    size_t n = take_batch(import);
    if (n == 0) return 0;
    int r = rp_mark_many(catalog, import->store, w->requests, n, import->actor, import->dry_run, w->answers, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        w->asked[i]->answer = w->answers[i];
        count(import, &w->answers[i]);
    }
    return r;
}

/* ---- the walk ---- */

int rp_import_begin(struct rp_import *import, struct rp_error *err)
{
    RP_ASSERT(import->walk == NULL && import->prefix != NULL);
    struct rp_import_walk *w = import->walk = calloc(1, sizeof *w);
    if (w == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for an import");
    w->arena = RP_ARENA(PAGE_BYTES);
    w->page = malloc(PAGE * sizeof *w->page);
    w->requests = malloc(PAGE * sizeof *w->requests);
    w->answers = malloc(PAGE * sizeof *w->answers);
    w->asked = malloc(PAGE * sizeof *w->asked);
    w->batch = import->batch = malloc(PAGE * sizeof *import->batch);
    if (w->page != NULL && w->requests != NULL && w->answers != NULL && w->asked != NULL && w->batch != NULL) return 0;
    rp_import_end(import);
    return rp_error_set(err, RP_ENOMEM, "no memory for an import");
}

int rp_import_next(struct rp_import *import, struct rp_catalog *catalog, struct rp_error *err)
{
    struct rp_import_walk *w = import->walk;
    bool full = import->limit > 0 && import->counts.marked >= import->limit;
    bool more = w->n_taken < w->n_page || !w->listed;
    import->limited = full && more;
    if (full || !more) return 0;
    int r = 0;
    if (w->n_taken == w->n_page) {
        r = list_page(import, err);
        if (r == 0) r = read_page(import, err);
    }
    if (r == 0) r = mark_batch(import, catalog, err);
    return r < 0 ? rp_error_wrap(err, r, "import") : 1;
}

void rp_import_end(struct rp_import *import)
{
    struct rp_import_walk *w = import->walk;
    import->walk = NULL;
    if (w == NULL) return;
    rp_arena_done(&w->arena);
    free(w->page);
    free(w->requests);
    free(w->answers);
    free(w->asked);
    free(w->batch);
    free(w);
}
