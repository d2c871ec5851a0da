/* SPDX-License-Identifier: Apache-2.0 */
/* look.c - prepare: finds the marks, and brings back what lies in quarantine, the newest first. */
#include "base/assert.h"
#include "base/crashpoint.h"
#include "base/id.h"
#include "core/mark/annotation.h"
#include "core/reprieve/inner.h"
#include "core/subject/subject.h"

#include <stdlib.h>

static struct rp_store *store_of(const struct rp_reprieve_command *c, int64_t store_id)
{
    struct rp_store *store = rp_store_by_id(c->stores, c->n_stores, store_id);
    for (size_t i = 0; i < c->n && store == NULL; i++)
        if (c->items[i].store != NULL && c->items[i].store->id == store_id) store = c->items[i].store;
    return store;
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
        return rp_error_advise(err, RP_ENOTFOUND,
                               "`reprieve marks` lists those that wait; one that ended long ago is let go",
                               "%s:%s has no mark", item->store->config->name, item->key);
    *out = newest;
    return 0;
}

/* Of a copy in quarantine, the mark that it was made for. */
static int find_by_id(struct rp_db *db, const struct rp_reprieve_item *item, struct rp_arena *arena,
                      struct rp_mark *out, struct rp_error *err)
{
    int64_t original;
    int r = rp_mark_get(db, item->mark_id, arena, out, err);
    return r == 0 && rp_quarantine_original(out->key, &original) ? rp_mark_get(db, original, arena, out, err) : r;
}

static int find(struct rp_db *db, const struct rp_reprieve_item *item, struct rp_arena *arena, struct rp_mark *out,
                struct rp_error *err)
{
    switch (item->by) {
    case RP_NAMED_BY_FILE:
        return rp_file_mark(db, item->file_id, arena, out, err);
    case RP_NAMED_BY_KEY:
        return find_newest(db, item, arena, out, err);
    default:
        return find_by_id(db, item, arena, out, err);
    }
}

bool rp_reprieve_is_foreign(const struct rp_reprieve_command *c, const struct rp_mark *mark)
{
    return c->command.tenant_id != 0 && mark->tenant_id != c->command.tenant_id;
}

/* In the words for what does not exist. */
static int refuse_foreign(const struct rp_reprieve_item *item, struct rp_error *err)
{
    char id[RP_ID_TEXT];
    bool by_file = item->by == RP_NAMED_BY_FILE;
    rp_id_format(by_file ? RP_ID_FILE : RP_ID_MARK, by_file ? item->file_id : item->mark_id, id);
    return rp_error_set(err, RP_ENOTFOUND, "no %s %s", by_file ? "file" : "mark", id);
}

int rp_reprieve_find_mark(struct rp_catalog *catalog, struct rp_reprieve_command *c, struct rp_reprieve_item *item,
                          struct rp_error *err)
{
    int r = find(catalog->db, item, c->arena, &item->mark, err);
    if (r < 0) return r;
    if (rp_reprieve_is_foreign(c, &item->mark)) return refuse_foreign(item, err);
    if (item->by == RP_NAMED_BY_MARK || item->by == RP_NAMED_BY_FILE) item->store = store_of(c, item->mark.store_id);
    if (item->store == NULL)
        return rp_error_set(err, RP_EUNAVAILABLE, "the store of this mark is not configured any more");
    return rp_store_refuse_closed(item->store, err);
}

/* Of what is to be restored, or has ended with its object still there: where that failed, the same
 * restore, given again, tries it again. */
static void remove_annotation(struct rp_catalog *catalog, struct rp_reprieve_item *item)
{
    const struct rp_mark *mark = &item->mark;
    bool ends = mark->state == RP_MARKED || rp_mark_is_refused(mark);
    item->annotate_note[0] = 0;
    if (ends || mark->state == RP_REPRIEVED || mark->state == RP_LOST)
        rp_annotation_end(catalog, item->store, mark, item->annotate_note);
}

static int copy_back(struct rp_catalog *catalog, struct rp_reprieve_item *item, struct rp_error *err)
{
    struct rp_reprieve_copy *copy = &item->copy;
    const struct rp_mark *mark = &item->mark;
    bool made = false;
    int r = rp_subject_of(mark)->bring_back(item->store, &copy->mark, mark->key, &copy->identity, &made, err);
    copy->made = copy->made || made;
    copy->bytes = RP_BYTES_AWAY;
    if (r == RP_EEXISTS) return r;
    if (r == 0 && mark->annotated) r = rp_annotation_remove(catalog, item->store, mark->key, &copy->identity, err);
    if (r == 0) copy->bytes = RP_BYTES_STAND;
    return r < 0 ? rp_error_wrap(err, r, "return %s:%s from quarantine", item->store->config->name, mark->key) : 0;
}

static int bring_back(struct rp_catalog *catalog, struct rp_reprieve_command *c, struct rp_reprieve_item *item,
                      struct rp_error *err)
{
    struct rp_reprieve_copy *copy = &item->copy;
    rp_error_clear(&copy->error);
    copy->bytes = RP_BYTES_UNSEEN;
    if (item->mark.state != RP_PURGED || item->mark.outcome != RP_END_QUARANTINED) return 0;
    int r = rp_quarantine_mark(catalog->db, &item->mark, c->arena, &copy->mark, err);
    if (r == RP_ENOTFOUND) return 0;
    if (r == 0 && copy->mark.state == RP_MARKED) (void)copy_back(catalog, item, &copy->error);
    return r;
}

static bool is_earlier(const struct rp_reprieve_command *c, size_t i)
{
    const struct rp_reprieve_item *item = rp_reprieve_at(c, i);
    for (size_t k = 0; k < i; k++) {
        const struct rp_reprieve_item *other = rp_reprieve_at(c, k);
        if (other->mark.id == item->mark.id && other->error.code == 0) return true;
    }
    return false;
}

/* Its mark is known, or it is refused. */
static void find_item(struct rp_catalog *catalog, struct rp_reprieve_command *c, struct rp_reprieve_item *item)
{
    if (item->by == RP_NAMED_NOT) return;
    RP_ASSERT(item->by != RP_NAMED_AS_READ || c->command.tenant_id == 0);
    if (item->error.code < 0 && !c->command.second) return;
    rp_error_clear(&item->error);
    if (item->by != RP_NAMED_AS_READ || c->command.second) (void)rp_reprieve_find_mark(catalog, c, item, &item->error);
}

struct place {
    int64_t mark_id;
    size_t i;
};

static int newest_first(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int by_id = rp_id_order(y->mark_id, x->mark_id);
    return by_id != 0 ? by_id : (x->i > y->i) - (x->i < y->i);
}

static void refuse_from(struct rp_reprieve_command *c, size_t from, const struct rp_error *why)
{
    for (size_t i = from; i < rp_reprieve_count(c); i++) {
        struct rp_reprieve_item *item = rp_reprieve_at(c, i);
        if (item->error.code == 0) item->error = *why;
    }
}

/* V9. Those from this one on: what was asked for, or the family. */
static void prepare_items(struct rp_catalog *catalog, struct rp_reprieve_command *c, size_t from)
{
    size_t n = 0, most = rp_reprieve_count(c) - from;
    struct place *order = rp_arena_array(c->arena, most + 1, sizeof *order);
    struct rp_error full = { 0 };
    rp_error_set(&full, RP_ENOMEM, "no memory for %zu marks", most);
    if (order == NULL) refuse_from(c, from, &full);
    for (size_t i = from; i < rp_reprieve_count(c) && order != NULL; i++) {
        struct rp_reprieve_item *item = rp_reprieve_at(c, i);
        find_item(catalog, c, item);
        if (item->by != RP_NAMED_NOT && item->error.code == 0) order[n++] = (struct place){ item->mark.id, i };
    }
    if (n > 0) qsort(order, n, sizeof *order, newest_first);
    for (size_t k = 0; k < n; k++) {
        struct rp_reprieve_item *item = rp_reprieve_at(c, order[k].i);
        if (is_earlier(c, order[k].i)) continue;
        remove_annotation(catalog, item);
        (void)bring_back(catalog, c, item, &item->error);
    }
}

static void prepare_command(struct rp_catalog *catalog, struct rp_reprieve_command *c)
{
    struct rp_error why = { 0 };
    prepare_items(catalog, c, 0);
    if (rp_reprieve_find_family(catalog, c, &why) < 0)
        for (size_t i = 0; i < c->n; i++)
            if (c->items[i].error.code == 0 && c->items[i].mark.file_id != 0) c->items[i].error = why;
    prepare_items(catalog, c, c->n);
    rp_reprieve_see_files(c);
}

void rp_reprieve_prepare(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n)
{
    for (size_t i = 0; i < n; i++)
        prepare_command(catalog, (struct rp_reprieve_command *)commands[i]);
    RP_CRASHPOINT("restore.copied");
}
