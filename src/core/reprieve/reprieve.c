/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "catalog/mark/dead.h"
#include "core/journal.h"
#include "core/reprieve/inner.h"
#include "core/state.h"
#include "core/subject/subject.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESTORE_ARENA ((size_t)64 << 20)
#define MARK_ARENA    ((size_t)256 << 10)

/* ---- run ---- */

/* V5 */
static bool is_stale(const struct rp_reprieve_subject *s)
{
    return !s->command->command.second && s->now->state != s->item->mark.state && s->now->state == RP_PURGED &&
           s->now->outcome == RP_END_QUARANTINED;
}

static int apply_one(struct rp_reprieve_round *round, struct rp_reprieve_subject *s, struct rp_error *err)
{
    struct rp_reprieve_item *item = s->item;
    struct rp_reprieve_answer *a = &item->answer;
    bool has_copy = item->copy.mark.id != 0;
    if (rp_reprieve_is_of_file(s)) return 0; /* its own verb decides: rp_reprieve_files */
    if (has_copy && item->copy.mark.state == RP_MARKED) return rp_reprieve_return(round->tx, s, err);
    a->what = rp_reprieve_decide(s->now, has_copy ? &item->copy.mark : NULL, rp_reprieve_store_name(item), &a->error);
    if (a->what != RP_REPRIEVE_DONE)
        return rp_reprieve_name_services(round->tx->db, s->now, rp_reprieve_store_name(item), round->tx->arena,
                                         &a->error, err);
    item->annotated = s->now->annotated;
    if (s->now->state == RP_DEAD) round->dead[round->n_dead++] = s;
    round->moves[round->n_moves++] = (struct rp_move){ .mark = s->now,
                                                       .to = RP_REPRIEVED,
                                                       .outcome = RP_END_RESTORED,
                                                       .attempts = s->now->attempts,
                                                       .refence = true,
                                                       .store = rp_reprieve_store_name(item),
                                                       .actor = s->command->command.actor };
    return 0;
}

static int by_mark(const void *a, const void *b)
{
    const struct rp_reprieve_subject *x = a, *y = b;
    int by_id = rp_id_order(x->item->mark.id, y->item->mark.id);
    return by_id != 0 ? by_id : (x->item > y->item) - (x->item < y->item);
}

/* All items that are not refused yet, in order of mark. */
static int collect(struct rp_reprieve_round *round, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    size_t all = 0;
    for (size_t i = 0; i < n; i++)
        all += rp_reprieve_count((struct rp_reprieve_command *)commands[i]);
    struct rp_arena *arena = round->tx->arena;
    round->subjects = rp_arena_array(arena, all + 1, sizeof *round->subjects);
    round->moves = rp_arena_array(arena, all + 1, sizeof *round->moves);
    round->dead = rp_arena_array(arena, all + 1, sizeof(struct rp_reprieve_subject *));
    if (round->subjects == NULL || round->moves == NULL || round->dead == NULL)
        return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", all);
    for (size_t i = 0; i < n; i++) {
        struct rp_reprieve_command *c = (struct rp_reprieve_command *)commands[i];
        for (size_t k = 0; k < rp_reprieve_count(c); k++) {
            struct rp_reprieve_item *item = rp_reprieve_at(c, k);
            item->answer = (struct rp_reprieve_answer){ .what = RP_REPRIEVE_REFUSED, .error = item->error };
            memcpy(item->answer.annotate_note, item->annotate_note, sizeof item->annotate_note);
            item->annotated = false;
            if (item->error.code == 0)
                round->subjects[round->n++] = (struct rp_reprieve_subject){ .command = c, .item = item };
        }
    }
    qsort(round->subjects, round->n, sizeof *round->subjects, by_mark);
    return 0;
}

static int by_id(const void *key, const void *element)
{
    return rp_id_order(*(const int64_t *)key, ((const struct rp_mark *)element)->id);
}

static int mark_order(const void *a, const void *b)
{
    return by_id(&((const struct rp_mark *)a)->id, b);
}

/* The rows are locked as loaded: on both engines nobody moves them before we do. */
static int load_again(struct rp_reprieve_round *round, struct rp_error *err)
{
    int64_t *ids = rp_arena_array(round->tx->arena, round->n + 1, sizeof *ids);
    size_t n = 0;
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", round->n);
    for (size_t i = 0; i < round->n; i++)
        if (n == 0 || ids[n - 1] != round->subjects[i].item->mark.id) ids[n++] = round->subjects[i].item->mark.id;
    int r = rp_marks_init(&round->now, n + 1, round->tx->arena, err);
    if (r == 0 && n > 0) r = rp_marks_lock(round->tx, ids, n, &round->now, err);
    if (r < 0) return r;
    qsort(round->now.at, round->now.n, sizeof *round->now.at, mark_order);
    for (size_t i = 0; i < round->n; i++) {
        struct rp_reprieve_subject *s = &round->subjects[i];
        s->now = bsearch(&s->item->mark.id, round->now.at, round->now.n, sizeof *round->now.at, by_id);
        if (s->now == NULL) return rp_error_set(err, RP_ECORRUPT, "a mark is gone from the catalog");
        if (is_stale(s)) s->command->command.stale = true;
    }
    return 0;
}

/* One subject a mark is left, of a command that goes on; the others are told at the end. */
static void drop_doubles(struct rp_reprieve_round *round)
{
    size_t left = 0;
    for (size_t i = 0; i < round->n; i++) {
        struct rp_reprieve_subject *s = &round->subjects[i];
        if (s->command->command.stale) continue;
        if (left > 0 && round->subjects[left - 1].item->mark.id == s->item->mark.id) continue;
        round->subjects[left++] = *s;
    }
    round->n = left;
}

static int by_subject(const void *key, const void *element)
{
    return rp_id_order(*(const int64_t *)key, ((const struct rp_reprieve_subject *)element)->item->mark.id);
}

static const struct rp_reprieve_subject *decided_by(const struct rp_reprieve_round *round, int64_t mark_id)
{
    return bsearch(&mark_id, round->subjects, round->n, sizeof *round->subjects, by_subject);
}

/* The file of a mark as it is now, for the answer. */
static int show_file(struct rp_tx *tx, struct rp_reprieve_command *c, struct rp_reprieve_item *item,
                     struct rp_error *err)
{
    struct rp_file file;
    struct rp_mark mark = { 0 };
    item->file = NULL;
    if (item->mark.file_id == 0 || item->answer.what == RP_REPRIEVE_REFUSED) return 0;
    struct rp_file_answer *out = rp_arena_alloc(c->arena, sizeof *out);
    if (out == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for an answer");
    int r = rp_file_get(tx->db, item->mark.file_id, c->arena, &file, err);
    if (r == 0 && file.mark_id != 0) r = rp_mark_get(tx->db, file.mark_id, c->arena, &mark, err);
    if (r < 0) return r;
    rp_file_answer_of(&file, mark.id != 0 ? &mark : NULL, out);
    item->file = out;
    return 0;
}

static int sum_up(const struct rp_reprieve_round *round, struct rp_reprieve_command *c, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < rp_reprieve_count(c) && r == 0; i++) {
        struct rp_reprieve_item *item = rp_reprieve_at(c, i);
        const struct rp_reprieve_subject *first = item->error.code == 0 ? decided_by(round, item->mark.id) : NULL;
        if (first != NULL && first->item != item) {
            item->answer = first->item->answer;
            if (first->command != c && item->answer.what != RP_REPRIEVE_REFUSED)
                item->answer.what = RP_REPRIEVE_ALREADY;
        }
        if (i < c->n) r = show_file(round->tx, c, item, err);
        if (r == 0) r = rp_reprieve_see_agreed(round->tx->db, &item->mark, c->arena, &item->answer, err);
        bool refused = item->answer.what == RP_REPRIEVE_REFUSED;
        c->command.unfinished = c->command.unfinished || (item->copy.made && refused) || item->annotated;
    }
    if (c->n == 1) c->command.error = c->items[0].answer.error;
    return r;
}

static int run(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    struct rp_reprieve_round round = { .tx = tx };
    int r = collect(&round, commands, n, err);
    if (r == 0) r = load_again(&round, err);
    if (r == 0) drop_doubles(&round);
    for (size_t i = 0; i < round.n && r == 0; i++)
        r = apply_one(&round, &round.subjects[i], err);
    if (r == 0) r = rp_reprieve_files(&round, commands, n, err);
    if (r == 0) r = rp_state_move_all(tx, &(struct rp_state_by){ 0 }, round.moves, round.n_moves, err);
    for (size_t i = 0; i < round.n_dead && r == 0; i++)
        r = rp_dead_end(tx, &round.dead[i]->now->id, 1, "kept", round.dead[i]->command->command.actor, err);
    for (size_t i = 0; i < n && r == 0; i++)
        if (!commands[i]->stale) r = sum_up(&round, (struct rp_reprieve_command *)commands[i], err);
    return r;
}

/* ---- finish ---- */

/* An object that was shown where it had been hidden is left alone once a sweep has claimed it: the
 * sweep leaves what shows itself, ends its mark with that (purge.h, S11), and no mark would be left
 * of what was hidden after that. */
static bool is_left_to_the_sweep(const struct rp_mark *copy, int found, const struct rp_mark *now)
{
    if (!copy->in_place) return false;
    return found == RP_ENOTFOUND || (copy->file_id == 0 && now->state != RP_MARKED);
}

/* A copy back whose return was refused goes again, exactly that copy; unless another restore has
 * found it meanwhile, and was decided otherwise. One that was not decided about stays: the next
 * restore finds it. */
static void take_away(struct rp_catalog *catalog, const struct rp_reprieve_command *c, struct rp_reprieve_item *item)
{
    struct rp_error ignored = { 0 };
    struct rp_mark now;
    int r = rp_quarantine_mark(catalog->db, &item->mark, c->arena, &now, &ignored);
    if (r < 0 ? r != RP_ENOTFOUND : now.state == RP_REPRIEVED) return;
    if (is_left_to_the_sweep(&item->copy.mark, r, &now)) return;
    rp_subject_of(&item->mark)->take_away(item->store, &item->copy.mark, item->mark.key, &item->copy.identity);
}

/* N1, with the mark as it is now: to annotate an object may be to make another upload of it. */
static void look_for_annotation(struct rp_catalog *catalog, struct rp_reprieve_item *item, bool *amended)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(MARK_ARENA);
    struct rp_error why = { 0 };
    struct rp_mark now;
    char note[RP_ANNOTATE_NOTE];
    if (rp_mark_get(catalog->db, item->mark.id, &arena, &now, &why) < 0)
        snprintf(note, sizeof note, "%.119s", why.text);
    else
        rp_annotation_end(catalog, item->store, &now, note);
    *amended = *amended || strcmp(note, item->answer.annotate_note) != 0;
    memcpy(item->answer.annotate_note, note, sizeof note);
}

static void finish(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct rp_reprieve_command *c = (struct rp_reprieve_command *)commands[i];
        for (size_t k = 0; k < rp_reprieve_count(c); k++) {
            struct rp_reprieve_item *item = rp_reprieve_at(c, k);
            if (item->copy.made && item->answer.what == RP_REPRIEVE_REFUSED) take_away(catalog, c, item);
            if (item->annotated) look_for_annotation(catalog, item, &c->command.amended);
        }
    }
}

static void write_log(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    const struct rp_reprieve_command *c = (const struct rp_reprieve_command *)command;
    struct rp_journal j = rp_journal_of(command, log, at_ms);
    for (size_t i = 0; i < rp_reprieve_count(c); i++) {
        struct rp_reprieve_item item = *rp_reprieve_at(c, i);
        if (command->failed) item.answer = (struct rp_reprieve_answer){ .error = command->error };
        rp_journal_restore(&j, &item);
    }
}

static int add_locks(struct rp_tx *tx, const struct rp_command *command, struct rp_locks *out, struct rp_error *err)
{
    const struct rp_reprieve_command *c = (const struct rp_reprieve_command *)command;
    (void)tx, (void)err;
    for (size_t i = 0; i < rp_reprieve_count(c); i++) {
        const struct rp_reprieve_item *item = rp_reprieve_at(c, i);
        const struct rp_mark *mark = &item->mark;
        if (item->error.code < 0 && !rp_reprieve_is_left(c, item)) continue;
        if (mark->tenant_id != 0)
            rp_locks_tenant(out, mark->tenant_id);
        else
            rp_locks_mark(out, mark->id);
    }
    return 0;
}

_Static_assert(offsetof(struct rp_reprieve_command, command) == 0, "a command is the first member");
const struct rp_verb rp_verb_reprieve = { .name = "restore",
                                          .prepare = rp_reprieve_prepare,
                                          .locks = add_locks,
                                          .run = run,
                                          .finish = finish,
                                          .log = write_log };

/* ---- commands ---- */

static enum rp_reprieve_by named_by(const struct rp_reprieve_item *item)
{
    if (item->mark.id != 0) return RP_NAMED_AS_READ;
    if (item->file_id != 0) return RP_NAMED_BY_FILE;
    if (item->mark_id != 0) return RP_NAMED_BY_MARK;
    return item->store != NULL && item->key != NULL ? RP_NAMED_BY_KEY : RP_NAMED_NOT;
}

void rp_reprieve_command_init(struct rp_reprieve_command *c, struct rp_reprieve_item *items, size_t n,
                              const char *actor, struct rp_arena *arena)
{
    *c = (struct rp_reprieve_command){
        .command = { .verb = &rp_verb_reprieve, .weight = n, .actor = actor }, .items = items, .n = n, .arena = arena
    };
    for (size_t i = 0; i < n; i++) {
        items[i].by = named_by(&items[i]);
        if (items[i].by == RP_NAMED_AS_READ) items[i].mark_id = items[i].mark.id;
    }
    if (n == 0) return;
    if (items[0].store != NULL) c->command.group = items[0].store->id;
    for (size_t i = 1; i < n; i++)
        if (items[i].store != items[0].store) c->command.group = RP_GROUP_SEVERAL;
    c->command.spread = (uint64_t)(items[0].mark_id + items[0].file_id);
    if (items[0].key != NULL) c->command.spread = rp_hash_text(0, items[0].key);
}

static int foresee_item(struct rp_catalog *catalog, struct rp_reprieve_command *c, struct rp_reprieve_item *item,
                        struct rp_error *err)
{
    if (item->by != RP_NAMED_NOT && item->by != RP_NAMED_AS_READ && item->error.code == 0)
        (void)rp_reprieve_find_mark(catalog, c, item, &item->error);
    item->answer = (struct rp_reprieve_answer){ .what = RP_REPRIEVE_REFUSED, .error = item->error };
    if (item->error.code < 0) return 0;
    return rp_reprieve_foresee(catalog->db, &item->mark, rp_reprieve_store_name(item), c->arena, &item->answer, err);
}

int rp_reprieve_dry_run(struct rp_catalog *catalog, struct rp_reprieve_command *c, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < c->n && r == 0; i++)
        r = foresee_item(catalog, c, &c->items[i], err);
    if (r == 0) r = rp_reprieve_find_family(catalog, c, err);
    for (size_t i = 0; i < c->n_family && r == 0; i++)
        r = foresee_item(catalog, c, &c->family[i], err);
    return r;
}

int rp_reprieve_many(struct rp_catalog *catalog, struct rp_store *store, const struct rp_mark *marks, size_t n,
                     const char *actor, struct rp_reprieve_answer *answers, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(RESTORE_ARENA);
    RP_CLEANUP(rp_freep) struct rp_reprieve_item *items = calloc(n, sizeof *items);
    struct rp_reprieve_command c;
    RP_ASSERT(n > 0 && n <= RP_REPRIEVE_ITEMS_MAX);
    if (items == NULL) return rp_error_set(err, RP_ENOMEM, "restore: no memory for %zu marks", n);
    for (size_t i = 0; i < n; i++)
        items[i] = (struct rp_reprieve_item){ .store = store, .mark = marks[i] };
    rp_reprieve_command_init(&c, items, n, actor, &arena);
    int r = rp_command_run(catalog, &c.command);
    if (c.command.failed) {
        *err = c.command.error;
        return r;
    }
    for (size_t i = 0; i < n; i++) {
        answers[i] = items[i].answer;
        answers[i].agreed = NULL;
    }
    return 0;
}
