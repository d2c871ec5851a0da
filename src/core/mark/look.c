/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "base/key.h"
#include "base/text/utf8.h"
#include "core/check/references.h"
#include "core/guarantee.h"
#include "core/mark/inner.h"
#include "core/owner/refuse.h"
#include "core/subject/subject.h"
#include "store/refuse.h"

#include <stdio.h>
#include <string.h>

#define PREPARE_ARENA ((size_t)64 << 20)

static int check_request(const struct rp_store *store, const struct rp_mark_request *q, struct rp_error *err)
{
    int r = rp_key_check(q->key, strlen(q->key), err);
    if (r < 0) return r;
    if (rp_key_is_own(q->key)) return rp_refuse_own(store->config->name, q->key, err);
    if (strlen(q->reason) > RP_REASON_MAX || !rp_utf8_valid(q->reason, strlen(q->reason)))
        return rp_error_set(err, RP_EINVAL, "the reason is longer than %d bytes, or not valid UTF-8", RP_REASON_MAX);
    if (q->if_unreferenced && store->references == NULL) {
        rp_error_set(err, RP_EREFERENCESUNKNOWN,
                     "store '%s' has no referenced_by list: nothing says what is referenced", store->config->name);
        return rp_error_hint(
            err,
            "nothing was marked: name the columns that hold its keys under stores.%s.referenced_by, or mark without "
            "if_unreferenced (--if-unreferenced)",
            store->config->name);
    }
    return 0;
}

/* Before anything is looked at, or again after an earlier look: what was refused then may be found
 * now. What whoever made the command has refused stays so. */
static void begin_anew(struct rp_mark_item *item)
{
    if (item->store == NULL) return;
    item->answer = (struct rp_mark_answer){ .what = RP_MARK_REFUSED, .references = -1 };
    item->facts = (struct rp_mark_facts){ .found = RP_OUT_UNKNOWN, .references = -1 };
    item->refused = check_request(item->store, &item->request, &item->answer.error) < 0;
}

/* Before the objects are looked at: whatever happens to a mark from here on, run notices (R8). */
static int note_newest(struct rp_catalog *catalog, struct rp_mark_group *group, struct rp_arena *arena,
                       struct rp_error *err)
{
    struct rp_marks newest;
    int r = rp_marks_init(&newest, group->n_keys, arena, err);
    if (r == 0) r = rp_marks_newest(catalog->db, group->store->id, group->keys, group->n_keys, false, &newest, err);
    for (size_t m = 0; m < newest.n && r == 0; m++) {
        size_t k = rp_mark_group_key(group, newest.at[m].key);
        for (size_t i = group->first[k]; i < group->first[k + 1]; i++) {
            group->entries[i].item->facts.seen_id = newest.at[m].id;
            group->entries[i].item->facts.seen_state = newest.at[m].state;
        }
    }
    return r;
}

static int look(struct rp_mark_group *group, struct rp_arena *arena, struct rp_error *err)
{
    struct rp_item *items = rp_arena_array(arena, group->n_keys, sizeof *items);
    if (items == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu objects", group->n_keys);
    for (size_t k = 0; k < group->n_keys; k++)
        items[k].key = group->keys[k];
    int r = rp_subject_in(group->store)->look(group->store, items, group->n_keys, err);
    if (r < 0) return rp_error_wrap(err, r, "look at store '%s'", group->store->config->name);
    for (size_t k = 0; k < group->n_keys; k++)
        for (size_t i = group->first[k]; i < group->first[k + 1]; i++) {
            struct rp_mark_facts *facts = &group->entries[i].item->facts;
            facts->found = items[k].outcome;
            facts->identity = items[k].identity;
            snprintf(facts->note, sizeof facts->note, "%s", items[k].note);
        }
    return 0;
}

/* A look-up that fails refuses the marks that asked for it, not the others. */
static int count_references(struct rp_mark_group *group, struct rp_arena *arena, struct rp_error *err)
{
    struct rp_referenced *found = rp_arena_array(arena, group->n_keys, sizeof *found);
    struct rp_error why = { 0 };
    bool asked = false;
    if (found == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu counts", group->n_keys);
    for (size_t i = 0; i < group->n; i++)
        asked = asked || group->entries[i].item->request.if_unreferenced;
    if (!asked) return 0;
    int r = rp_references_count(group->store->references, group->keys, group->n_keys, found, &why);
    for (size_t i = 0; i < group->n; i++) {
        struct rp_mark_item *item = group->entries[i].item;
        struct rp_mark_facts *facts = &item->facts;
        if (!item->request.if_unreferenced) continue;
        const struct rp_referenced *of = &found[rp_mark_group_key(group, item->request.key)];
        facts->references = r == 0 ? of->rows : -1;
        facts->references_in = r == 0 ? of->first : NULL;
        facts->references_code = facts->references < 0 ? RP_EUNAVAILABLE : 0;
        if (facts->references < 0) snprintf(facts->note, sizeof facts->note, "%.239s", why.text);
    }
    return 0;
}

static int ensure_store(struct rp_catalog *catalog, const struct rp_mark_group *group, struct rp_error *err)
{
    int r = rp_store_refuse_closed(group->store, err);
    if (r < 0) return r;
    bool dry_run = group->entries[0].command->command.verb == &rp_verb_mark_dry;
    enum rp_guarantee_for purpose = dry_run ? RP_GUARANTEE_LOOK : RP_GUARANTEE_MARK;
    return rp_guarantee_ensure(catalog, group->store, purpose, err);
}

static void prepare_group(struct rp_catalog *catalog, struct rp_mark_group *group, struct rp_arena *arena)
{
    struct rp_error why = { 0 };
    int r = rp_owner_refuse_name(group->store, &why);
    if (r == 0) r = ensure_store(catalog, group, &why);
    if (r == 0 && rp_store_is_weak(group->store)) r = rp_store_refuse_weak(group->store, &why);
    if (r == 0) r = note_newest(catalog, group, arena, &why);
    if (r == 0) r = look(group, arena, &why);
    if (r == 0) r = count_references(group, arena, &why);
    for (size_t i = 0; i < group->n && r < 0; i++)
        rp_mark_item_refuse(group->entries[i].item, &why);
}

static void refuse_all(struct rp_command *const *commands, size_t n, const struct rp_error *why)
{
    for (size_t i = 0; i < n; i++) {
        struct rp_mark_command *c = (struct rp_mark_command *)commands[i];
        for (size_t k = 0; k < c->n; k++)
            if (!c->items[k].refused) rp_mark_item_refuse(&c->items[k], why);
    }
}

void rp_mark_prepare(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(PREPARE_ARENA);
    struct rp_mark_groups groups;
    struct rp_error why = { 0 };
    for (size_t i = 0; i < n; i++) {
        struct rp_mark_command *c = (struct rp_mark_command *)commands[i];
        for (size_t k = 0; k < c->n; k++)
            begin_anew(&c->items[k]);
    }
    if (rp_mark_groups_make(commands, n, &arena, &groups, &why) < 0) refuse_all(commands, n, &why);
    for (size_t i = 0; i < groups.n; i++)
        prepare_group(catalog, &groups.at[i], &arena);
}
