/* SPDX-License-Identifier: Apache-2.0 */
/* finish.c - after the commit of marks: their objects are annotated (annotation.h), and what was
 * found out about a store's keys is made known. */
#include "base/assert.h"
#include "base/cleanup.h"
#include "core/guarantee.h"
#include "core/mark/annotation.h"
#include "core/mark/inner.h"
#include "core/state.h"

#include <stdio.h>
#include <string.h>

#define MARK_ARENA ((size_t)256 << 10)

bool rp_mark_wants_annotation(const struct rp_mark_item *item)
{
    RP_ASSERT(item->store != NULL);
    return item->request.imported == NULL && (item->request.annotate || item->store->config->annotate);
}

static bool is_annotated_later(const struct rp_mark_item *item)
{
    const struct rp_mark_answer *a = &item->answer;
    bool outdated = a->what == RP_MARK_EXTENDED && a->annotated;
    return a->what != RP_MARK_REFUSED && (rp_mark_wants_annotation(item) || outdated);
}

bool rp_mark_is_finish_due(const struct rp_mark_item *item)
{
    if (item->facts.changed_at_ms != 0) return true;
    return item->answer.what != RP_MARK_REFUSED && is_annotated_later(item);
}

static int note_identity(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    return rp_marks_identity(tx, ctx, 1, err);
}

/* N1: somebody may have restored it since it was committed, and looked for the annotation too early.
 * Where nobody can say, it goes too: a mark without it is only less visible. */
static int look_after(struct rp_catalog *catalog, const struct rp_mark_item *item, const struct rp_identity *now,
                      struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(MARK_ARENA);
    struct rp_error ignored = { 0 };
    struct rp_mark mark;
    int r = rp_mark_get(catalog->db, item->answer.mark_id, &arena, &mark, err);
    if (r == 0 && !rp_state_final(mark.state)) return 0;
    if (r == 0) r = rp_error_set(err, RP_ECHANGED, "the mark has ended meanwhile: it is %s", rp_state_name(mark.state));
    (void)rp_annotation_remove(catalog, item->store, item->request.key, now, &ignored);
    return r;
}

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
    if (r == 0) r = look_after(catalog, item, &now, &why);
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

/* A key that stands twice is annotated once, as the last of them says. */
static bool finish_alike(struct rp_mark_command *c, size_t k)
{
    struct rp_mark_answer *a = &c->items[k].answer;
    for (size_t i = c->n - 1; i > k && is_annotated_later(&c->items[k]); i--) {
        const struct rp_mark_answer *last = &c->items[i].answer;
        if (last->mark_id != a->mark_id || !is_annotated_later(&c->items[i])) continue;
        a->annotated = last->annotated;
        memcpy(a->annotate_note, last->annotate_note, sizeof a->annotate_note);
        return true;
    }
    return false;
}

void rp_mark_finish(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct rp_mark_command *c = (struct rp_mark_command *)commands[i];
        for (size_t k = c->n; k-- > 0;)
            if (!finish_alike(c, k)) finish_item(catalog, &c->items[k], &c->command.amended);
    }
}
