/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.c - prepare looks whether the objects of files are there (reprieve.h, V8). */
#include "base/cleanup.h"
#include "core/reprieve/reprieve.h"
#include "core/subject/subject.h"

#include <stdlib.h>
#include <string.h>

static bool is_to_be_seen(const struct rp_reprieve_item *item)
{
    const struct rp_mark *m = &item->mark;
    bool waits = m->state == RP_MARKED || m->state == RP_LOST || rp_mark_is_refused(m);
    return item->error.code == 0 && m->file_id != 0 && waits && !rp_quarantine_is(m->key) && m->etag[0] != 0;
}

/* Hidden by the purge that was given up. */
static bool show_hidden(struct rp_reprieve_item *item)
{
    struct rp_error ignored = { 0 };
    struct rp_mark hidden = item->mark;
    bool made = false;
    hidden.in_place = true;
    if (hidden.version[0] == 0 || !rp_backend_has_hiding(item->store->backend)) return false;
    return rp_subject_of(&hidden)->bring_back(item->store, &hidden, hidden.key, &item->copy.identity, &made,
                                              &ignored) == 0;
}

static bool stands(struct rp_reprieve_item *item, const struct rp_item *seen)
{
    if (seen->outcome == RP_OUT_FOUND) return strcmp(seen->identity.etag, item->mark.etag) == 0;
    return seen->outcome == RP_OUT_GONE && show_hidden(item);
}

/* What was given up comes back only if it is seen as it was; the others unless they are seen to be
 * gone. */
static void take_seen(struct rp_reprieve_item *item, const struct rp_item *seen)
{
    const bool lost = item->mark.state == RP_LOST;
    struct rp_reprieve_copy *copy = &item->copy;
    copy->identity = seen->identity;
    if (!lost && seen->outcome != RP_OUT_GONE) return;
    copy->bytes = lost && stands(item, seen) ? RP_BYTES_STAND : RP_BYTES_AWAY;
    if (copy->bytes == RP_BYTES_STAND) return;
    rp_error_set(&copy->error, RP_ETOOLATE, "%s:%s: too late, its object is not there any more",
                 item->store->config->name, item->mark.key);
}

/* Of one store. */
static void see_files(struct rp_reprieve_command *c, struct rp_store *store)
{
    size_t n = 0, most = rp_reprieve_count(c);
    struct rp_error ignored = { 0 };
    RP_CLEANUP(rp_freep) struct rp_item *items = calloc(most, sizeof *items);
    RP_CLEANUP(rp_freep) struct rp_reprieve_item **about = calloc(most, sizeof(struct rp_reprieve_item *));
    if (items == NULL || about == NULL) return;
    for (size_t i = 0; i < most; i++) {
        struct rp_reprieve_item *item = rp_reprieve_at(c, i);
        if (item->store != store || !is_to_be_seen(item)) continue;
        items[n].key = item->mark.key;
        about[n++] = item;
    }
    if (n == 0 || rp_subject_in(store)->look(store, items, n, &ignored) < 0) return;
    for (size_t i = 0; i < n; i++)
        take_seen(about[i], &items[i]);
}

void rp_reprieve_see_files(struct rp_reprieve_command *c)
{
    struct rp_store *last = NULL;
    for (size_t i = 0; i < rp_reprieve_count(c); i++) {
        struct rp_store *store = rp_reprieve_at(c, i)->store;
        bool earlier = store == last;
        for (size_t k = 0; k < i && !earlier; k++)
            earlier = rp_reprieve_at(c, k)->store == store;
        if (!earlier && store != NULL && store->backend != NULL) see_files(c, store);
        last = store;
    }
}
