/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "core/mark/inner.h"

#include <stdlib.h>
#include <string.h>

static int by_text(const void *key, const void *element)
{
    return strcmp(key, *(const char *const *)element);
}

static int by_store_and_key(const void *a, const void *b)
{
    const struct rp_mark_entry *x = a, *y = b;
    int64_t left = x->item->store->id, right = y->item->store->id;
    if (left != right) return left < right ? -1 : 1;
    int c = strcmp(x->item->request.key, y->item->request.key);
    return c != 0 ? c : (x->order > y->order) - (x->order < y->order);
}

size_t rp_mark_group_key(const struct rp_mark_group *group, const char *key)
{
    const char **at = bsearch(key, group->keys, group->n_keys, sizeof *group->keys, by_text);
    RP_ASSERT(at != NULL);
    return (size_t)(at - group->keys);
}

static size_t collect(struct rp_command *const *commands, size_t n, struct rp_mark_entry *entries)
{
    size_t all = 0;
    for (size_t i = 0; i < n; i++) {
        struct rp_mark_command *c = (struct rp_mark_command *)commands[i];
        for (size_t k = 0; k < c->n; k++) {
            if (c->items[k].refused) continue;
            entries[all] = (struct rp_mark_entry){ .command = c, .item = &c->items[k], .order = all };
            all++;
        }
    }
    return all;
}

/* Appends an entry, the next in order, to a group; `n_first` counts what of the shared `first` is
 * in use. */
static void append(struct rp_mark_group *group, const char *key, size_t *n_first)
{
    if (group->n_keys == 0 || strcmp(group->keys[group->n_keys - 1], key) != 0) {
        group->first[group->n_keys] = group->n;
        group->keys[group->n_keys++] = key;
        *n_first += 2;
    }
    group->first[group->n_keys] = ++group->n;
}

int rp_mark_groups_make(struct rp_command *const *commands, size_t n, struct rp_arena *arena,
                        struct rp_mark_groups *out, struct rp_error *err)
{
    size_t max = 1, n_first = 0;
    for (size_t i = 0; i < n; i++)
        max += ((struct rp_mark_command *)commands[i])->n;
    struct rp_mark_entry *entries = rp_arena_array(arena, max, sizeof *entries);
    const char **keys = rp_arena_array(arena, max, sizeof *keys);
    size_t *first = rp_arena_array(arena, 2 * max, sizeof *first);
    *out = (struct rp_mark_groups){ .at = rp_arena_array(arena, max, sizeof *out->at) };
    if (entries == NULL || keys == NULL || first == NULL || out->at == NULL)
        return rp_error_set(err, RP_ENOMEM, "no memory for a batch of marks");
    size_t n_entries = collect(commands, n, entries);
    qsort(entries, n_entries, sizeof *entries, by_store_and_key);
    for (size_t i = 0; i < n_entries; i++) {
        struct rp_store *store = entries[i].item->store;
        if (out->n == 0 || out->at[out->n - 1].store->id != store->id)
            out->at[out->n++] = (struct rp_mark_group){
                .store = store, .entries = &entries[i], .keys = &keys[i], .first = &first[n_first]
            };
        append(&out->at[out->n - 1], entries[i].item->request.key, &n_first);
    }
    return 0;
}
