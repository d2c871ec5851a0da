/* SPDX-License-Identifier: Apache-2.0 */
#include "core/mark/mark.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/crashpoint.h"
#include "catalog/file/file.h"
#include "core/confirm/confirm.h"
#include "core/guarantee.h"
#include "core/journal.h"
#include "core/mark/inner.h"
#include "core/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The newest marks of a group's subjects, and what was decided about them. */
struct decided {
    struct rp_marks newest;
    struct rp_mark **marks; /* by key: the newest one as the round stands; NULL: none */
    int64_t *files;
    struct rp_mark *adds;
    const struct rp_confirmer_list **confirmers; /* of each of adds; NULL: none */
    struct rp_extend *extends;
    struct rp_move *ends;
    int64_t *annotated; /* older marks that get an annotation now */
    size_t n_adds, n_extends, n_ends, n_annotated;
    const char *changed; /* a key under which another upload stands than its mark knew; NULL: none */
    const char *changed_by;
};

static int load(struct rp_tx *tx, const struct rp_mark_group *group, struct decided *d, struct rp_error *err)
{
    struct rp_arena *a = tx->arena;
    size_t n = group->n + 1;
    *d = (struct decided){ .marks = rp_arena_array(a, n, sizeof *d->marks),
                           .files = rp_arena_array(a, n, sizeof *d->files),
                           .adds = rp_arena_room(a, n, sizeof *d->adds),
                           .confirmers = rp_arena_room(a, n, sizeof(struct rp_confirmer_list *)),
                           .extends = rp_arena_room(a, n, sizeof *d->extends),
                           .ends = rp_arena_room(a, n, sizeof *d->ends),
                           .annotated = rp_arena_room(a, n, sizeof *d->annotated) };
    int r = rp_marks_init(&d->newest, group->n_keys, a, err);
    if (r < 0 || d->marks == NULL || d->files == NULL || d->adds == NULL || d->extends == NULL || d->ends == NULL ||
        d->annotated == NULL || d->confirmers == NULL)
        return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", group->n);
    r = rp_marks_newest(tx->db, group->store->id, group->keys, group->n_keys, true, &d->newest, err);
    if (r == 0) r = rp_files_of_keys(tx->db, a, group->store->id, group->keys, group->n_keys, d->files, err);
    for (size_t m = 0; m < d->newest.n && r == 0; m++)
        d->marks[rp_mark_group_key(group, d->newest.at[m].key)] = &d->newest.at[m];
    return r;
}

/* R8: another mark than was seen, or one that has ended since: what was seen under the key may be
 * gone with it. */
static bool has_moved_on(const struct rp_mark_facts *facts, const struct rp_mark *newest)
{
    if (newest == NULL) return facts->seen_id != 0;
    return newest->id != facts->seen_id || (newest->state != facts->seen_state && rp_state_final(newest->state));
}

static void find_stale(const struct rp_mark_group *group, const struct decided *d)
{
    for (size_t k = 0; k < group->n_keys; k++)
        for (size_t i = group->first[k]; i < group->first[k + 1]; i++) {
            struct rp_command *c = &group->entries[i].command->command;
            if (!c->second && has_moved_on(&group->entries[i].item->facts, d->marks[k])) c->stale = true;
        }
}

static int64_t marked_at_ms(const struct rp_tx *tx, const struct rp_mark_request *request)
{
    bool before = request->imported != NULL && request->marked_at_ms > 0 && request->marked_at_ms < tx->late_ms;
    return before ? request->marked_at_ms : tx->late_ms;
}

static struct rp_mark *new_mark(struct rp_tx *tx, const struct rp_mark_entry *entry, int64_t due_at_ms,
                                struct decided *d)
{
    const struct rp_mark_item *item = entry->item;
    const struct rp_identity *identity = &item->facts.identity;
    const struct rp_confirmer_list *by = item->request.confirmations;
    struct rp_mark *mark = &d->adds[d->n_adds];
    d->confirmers[d->n_adds++] = by;
    *mark = (struct rp_mark){ .id = rp_tx_new_id(tx),
                              .store_id = item->store->id,
                              .key = item->request.key,
                              .state = RP_MARKED,
                              .due_at_ms = due_at_ms,
                              .marked_at_ms = marked_at_ms(tx, &item->request),
                              .checks = item->request.if_unreferenced ? RP_CHECK_REFERENCES : 0,
                              .etag = identity->etag,
                              .version = identity->version,
                              .size_bytes = identity->size_bytes,
                              .modified_ms = identity->modified_ms,
                              .annotated = item->request.imported != NULL || rp_mark_wants_annotation(item),
                              .reason = item->request.reason,
                              .actor = entry->command->command.actor };
    if (by == NULL || by->n == 0) return mark;
    mark->checks |= RP_CHECK_CONFIRMATIONS;
    mark->next_at_ms = rp_confirmers_next_at(by, due_at_ms, tx->late_ms);
    return mark;
}

/* In this round: its rows are not written yet. */
static bool is_made_here(const struct decided *d, const struct rp_mark *mark)
{
    return mark >= d->adds && mark < d->adds + d->n_adds;
}

/* R9 */
static int refuse_new_confirmations(struct rp_tx *tx, const struct decided *d, const struct rp_mark *mark,
                                    struct rp_mark_item *item, struct rp_error *err)
{
    struct rp_mark_answer *a = &item->answer;
    if (a->what != RP_MARK_SAME && a->what != RP_MARK_EXTENDED) return 0;
    const struct rp_confirmer_list *by = item->request.confirmations;
    int r = 0;
    if (by == NULL || by->n == 0) return 0;
    RP_ASSERT(mark != NULL);
    if (is_made_here(d, mark))
        r = rp_confirmers_within(d->confirmers[mark - d->adds], by, &a->error);
    else
        r = rp_confirmers_same(tx->db, mark->id, by, tx->arena, &a->error);
    if (r == RP_EMARKED) a->what = RP_MARK_REFUSED;
    if (r == 0 || r == RP_EMARKED) return 0;
    *err = a->error;
    return r;
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

/* NULL: this round has not extended it yet. */
static struct rp_extend *find_extension(const struct decided *d, const struct rp_mark *mark)
{
    for (size_t i = 0; i < d->n_extends; i++)
        if (d->extends[i].mark->id == mark->id) return &d->extends[i];
    return NULL;
}

/* Its row is compared with the mark as it was before this round. */
static struct rp_extend *add_extension(struct rp_tx *tx, struct decided *d, const struct rp_mark *mark,
                                       const char *actor)
{
    struct rp_mark *before = rp_arena_alloc(tx->arena, sizeof *before);
    if (before == NULL) return NULL;
    *before = *mark;
    d->extends[d->n_extends] = (struct rp_extend){ .mark = before, .actor = actor };
    return &d->extends[d->n_extends++];
}

static void give_time(struct rp_mark *mark, int64_t due_at_ms, const char *reason)
{
    if (mark->next_at_ms >= mark->due_at_ms) mark->next_at_ms = due_at_ms; /* as in mark_extend */
    mark->due_at_ms = due_at_ms;
    if (reason[0] != 0) mark->reason = reason;
}

/* A mark that this round has made has no row yet: it is changed in memory alone. */
static int extend(struct rp_tx *tx, struct decided *d, struct rp_mark *mark, const struct rp_mark_entry *entry,
                  int64_t due_at_ms, struct rp_error *err)
{
    const char *reason = entry->item->request.reason;
    RP_ASSERT(mark != NULL);
    if (is_made_here(d, mark)) {
        give_time(mark, due_at_ms, reason);
        return 0;
    }
    struct rp_extend *extension = find_extension(d, mark);
    if (extension == NULL) extension = add_extension(tx, d, mark, entry->command->command.actor);
    if (extension == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a mark");
    give_time(mark, due_at_ms, reason);
    extension->due_at_ms = due_at_ms;
    extension->reason = mark->reason;
    return 0;
}

static void answer_with(struct rp_mark_answer *a, const struct rp_mark *mark)
{
    a->mark_id = mark->id;
    a->marked_at_ms = mark->marked_at_ms;
    a->due_at_ms = mark->due_at_ms;
    a->asked_now = rp_mark_is_asked_now(mark);
    a->size_bytes = mark->size_bytes;
    a->annotated = mark->annotated;
    snprintf(a->reason, sizeof a->reason, "%s", mark->reason);
}

static void note_changed(struct decided *d, const struct rp_mark_entry *entry, int64_t now_ms)
{
    struct rp_mark_facts *facts = &entry->item->facts;
    facts->changed_at_ms = 0;
    if (facts->active == NULL || facts->file_id != 0 || facts->found != RP_OUT_FOUND ||
        rp_mark_same_upload(facts->active, &facts->identity))
        return;
    if (entry->item->store->config->keys == RP_KEYS_WRITE_ONCE) facts->changed_at_ms = now_ms;
    if (d->changed != NULL) return;
    d->changed = entry->item->request.key;
    d->changed_by = entry->command->command.actor;
}

static int decide_one(struct rp_tx *tx, const struct rp_mark_entry *entry, size_t k, struct decided *d,
                      struct rp_error *err)
{
    struct rp_mark_item *item = entry->item;
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
    note_changed(d, entry, tx->late_ms);
    if (a->what != RP_MARK_REFUSED) r = refuse_new_confirmations(tx, d, newest, item, err);
    if (r < 0 || a->what == RP_MARK_REFUSED) return r;
    if (a->what == RP_MARK_REPLACED) end_old(d, newest, entry->command->command.actor);
    if (a->what == RP_MARK_CREATED || a->what == RP_MARK_REPLACED)
        d->marks[k] = newest = new_mark(tx, entry, decision.due_at_ms, d);
    if (a->what == RP_MARK_EXTENDED) r = extend(tx, d, newest, entry, decision.due_at_ms, err);
    RP_ASSERT(newest != NULL); /* what is not refused has its mark */
    answer_with(a, newest);
    if (rp_mark_wants_annotation(item) && !newest->annotated) d->annotated[d->n_annotated++] = newest->id;
    return r;
}

static bool asks_for_the_same(const struct rp_mark_request *a, const struct rp_mark_request *b)
{
    static const struct rp_confirmer_list nobody;
    const struct rp_confirmer_list *x = a->confirmations != NULL ? a->confirmations : &nobody;
    const struct rp_confirmer_list *y = b->confirmations != NULL ? b->confirmations : &nobody;
    return a->grace_ms == b->grace_ms && a->at_ms == b->at_ms && strcmp(a->reason, b->reason) == 0 &&
           a->if_unreferenced == b->if_unreferenced && a->annotate == b->annotate &&
           a->marked_at_ms == b->marked_at_ms && a->imported == b->imported && x->n == y->n &&
           memcmp(x->at, y->at, x->n * sizeof(struct rp_confirmer_config *)) == 0;
}

/* A key that stands twice in a command with the same wishes is answered alike; with others it is
 * marked again. */
static int decide_group(struct rp_tx *tx, const struct rp_mark_group *group, struct decided *d, struct rp_error *err)
{
    int r = 0;
    for (size_t k = 0; k < group->n_keys; k++)
        for (size_t i = group->first[k]; i < group->first[k + 1] && r == 0; i++) {
            const struct rp_mark_entry *entry = &group->entries[i];
            bool again = i > group->first[k] && entry[-1].command == entry->command &&
                         asks_for_the_same(&entry[-1].item->request, &entry->item->request);
            if (entry->command->command.stale) continue;
            if (again)
                entry->item->answer = entry[-1].item->answer;
            else
                r = decide_one(tx, entry, k, d, err);
        }
    return r;
}

static int apply(struct rp_tx *tx, const struct rp_mark_group *group, struct decided *d, struct rp_error *err)
{
    struct rp_state_by by = { .store = group->store->config->name };
    int r = rp_state_move_all(tx, &by, d->ends, d->n_ends, err);
    if (r == 0) r = rp_state_birth(tx, &by, d->adds, d->n_adds, err);
    for (size_t i = 0; i < d->n_adds && r == 0; i++)
        if (d->confirmers[i] != NULL) r = rp_confirmers_add(tx, d->adds[i].id, d->confirmers[i], err);
    if (r == 0) r = rp_state_extend(tx, &by, d->extends, d->n_extends, err);
    for (size_t i = 0; i < d->n_extends && r == 0; i++)
        if (!d->extends[i].done) r = rp_error_set(err, RP_ECONFLICT, "extend marks: another writer was faster");
    if (r == 0 && d->n_annotated > 0) r = rp_marks_annotated(tx, d->annotated, d->n_annotated, err);
    /* another upload under a key that a mark knew: a promise about the store's keys, if there was
     * one, is broken */
    if (r == 0 && d->changed != NULL) r = rp_guarantee_note_changed(tx, group->store, d->changed, d->changed_by, err);
    return r;
}

/* The whole command: refusals that came before, what is due first, and whether anything is left to
 * do outside. */
static void sum_up(struct rp_mark_command *c)
{
    for (size_t i = 0; i < c->n; i++) {
        struct rp_mark_item *item = &c->items[i];
        if (item->refused) item->answer.references = -1;
        if (c->command.verb == &rp_verb_mark_dry) continue;
        int64_t due = item->answer.asked_now ? item->answer.marked_at_ms : item->answer.due_at_ms;
        if (item->answer.what != RP_MARK_REFUSED && (c->command.due_at_ms == 0 || due < c->command.due_at_ms))
            c->command.due_at_ms = due;
        c->command.unfinished = c->command.unfinished || rp_mark_is_finish_due(item);
    }
    if (c->n == 1) c->command.error = c->items[0].answer.error;
}

static int run(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    struct rp_mark_groups groups;
    int r = rp_mark_groups_make(commands, n, tx->arena, &groups, err);
    struct decided *decided = r == 0 ? rp_arena_array(tx->arena, groups.n + 1, sizeof *decided) : NULL;
    if (r == 0 && decided == NULL) r = rp_error_set(err, RP_ENOMEM, "no memory for a batch of marks");
    for (size_t i = 0; r == 0 && i < groups.n; i++) {
        r = load(tx, &groups.at[i], &decided[i], err);
        if (r == 0) find_stale(&groups.at[i], &decided[i]);
    }
    for (size_t i = 0; r == 0 && i < groups.n; i++) {
        r = decide_group(tx, &groups.at[i], &decided[i], err);
        if (r == 0 && commands[0]->verb != &rp_verb_mark_dry) r = apply(tx, &groups.at[i], &decided[i], err);
    }
    for (size_t i = 0; i < n && r == 0; i++)
        if (!commands[i]->stale) sum_up((struct rp_mark_command *)commands[i]);
    RP_CRASHPOINT("mark.before-commit");
    return r;
}

static void write_log(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    const struct rp_mark_command *c = (const struct rp_mark_command *)command;
    struct rp_journal j = rp_journal_of(command, log, at_ms);
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
const struct rp_verb rp_verb_mark = { .name = "mark",
                                      .prepare = rp_mark_prepare,
                                      .locks = add_locks,
                                      .run = run,
                                      .finish = rp_mark_finish,
                                      .log = write_log };
const struct rp_verb rp_verb_mark_dry = { .name = "mark", .prepare = rp_mark_prepare, .run = run, .alone = true };

/* ---- commands ---- */

void rp_mark_item_refuse(struct rp_mark_item *item, const struct rp_error *why)
{
    RP_ASSERT(why->code < 0);
    item->answer.error = *why;
    item->refused = true;
}

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
    if (dry_run) c.command.verb = &rp_verb_mark_dry;
    int r = rp_command_run(catalog, &c.command);
    if (c.command.failed) {
        *err = c.command.error;
        return r;
    }
    for (size_t i = 0; i < n; i++)
        answers[i] = items[i].answer;
    return 0;
}
