/* SPDX-License-Identifier: Apache-2.0 */
/* import_page.c - a page of a store's keys, and the annotations of their objects, read by several
 * threads. */
#include "base/cleanup.h"
#include "base/error.h"
#include "core/mark/import_walk.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define READERS       16 /* a store over a network answers each object in its own time */
#define READ_AT_LEAST 8  /* objects that are worth another reader */
#define SCRATCH_BYTES ((size_t)256 << 10)

static int take_key(void *ctx, const struct rp_entry *entry, struct rp_error *err)
{
    struct rp_import_walk *w = ctx;
    struct rp_import_item *item = &w->page[w->n_page];
    *item = (struct rp_import_item){ .key = rp_arena_strdup(&w->arena, entry->key) };
    if (item->key == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a page of keys");
    return ++w->n_page == RP_IMPORT_PAGE;
}

int rp_import_list_page(struct rp_import *import, struct rp_error *err)
{
    struct rp_import_walk *w = import->walk;
    struct rp_backend *backend = import->store->backend;
    rp_arena_reset(&w->arena);
    w->n_page = w->n_taken = 0;
    int r = rp_backend_list(backend, import->prefix, w->after, take_key, w, err);
    if (r < 0) return rp_error_wrap(err, r, "list store '%s'", import->store->config->name);
    w->listed = w->n_page < RP_IMPORT_PAGE;
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

int rp_import_read_page(struct rp_import *import, struct rp_error *err)
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
