/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - each file of a round is restored by its own verb, with what belongs to it, or refused
 * for reasons of its own. */
#include "core/reprieve/inner.h"

bool rp_reprieve_is_of_file(const struct rp_reprieve_subject *s)
{
    const struct rp_mark *copy = &s->item->copy.mark;
    if (copy->id != 0) return copy->file_id != 0 && copy->state == RP_MARKED;
    bool refused = s->now->state == RP_DEAD && s->now->was == RP_CHECKING;
    bool may_return = s->now->state == RP_MARKED || s->now->state == RP_LOST || refused;
    return s->now->file_id != 0 && (may_return || s->item->by == RP_NAMED_BY_FILE);
}

struct files {
    struct rp_file_command *commands;
    struct rp_file_return *returns;
    struct rp_command **list;
    size_t n;
};

static struct rp_command *add_file(struct files *f, struct rp_arena *arena, struct rp_reprieve_command *c,
                                   struct rp_reprieve_item *item)
{
    struct rp_file_command *command = &f->commands[f->n];
    struct rp_file_return *returned = &f->returns[f->n];
    bool several = c->n_stores > 0, failed = item->error.code < 0;
    bool stands = !failed && item->copy.bytes == RP_BYTES_STAND;
    bool known = failed || item->copy.mark.id != 0 || item->copy.bytes != RP_BYTES_UNSEEN;
    *returned = (struct rp_file_return){ .as = stands ? &item->copy.identity : NULL,
                                         .why = failed ? &item->error : &item->copy.error };
    *command = (struct rp_file_command){
        .command = { .verb = &rp_verb_file_restore, .tenant_id = c->command.tenant_id, .actor = c->command.actor },
        .stores = several ? c->stores : &item->store,
        .n_stores = several ? c->n_stores : item->store != NULL,
        .arena = arena,
        .returned = known ? returned : NULL,
        .file_id = item->mark.file_id
    };
    f->list[f->n++] = &command->command;
    return &command->command;
}

bool rp_reprieve_is_left(const struct rp_reprieve_command *c, const struct rp_reprieve_item *item)
{
    const struct rp_mark *mark = &item->mark;
    bool in_quarantine = mark->state == RP_PURGED && mark->outcome == RP_END_QUARANTINED;
    return item->error.code < 0 && mark->file_id != 0 && in_quarantine && !rp_reprieve_is_foreign(c, mark);
}

/* The verb is told of those, for they may belong to what is restored. */
static void add_left(struct files *f, struct rp_arena *arena, struct rp_reprieve_command *c)
{
    for (size_t i = 0; i < rp_reprieve_count(c) && !c->command.stale; i++) {
        struct rp_reprieve_item *item = rp_reprieve_at(c, i);
        if (rp_reprieve_is_left(c, item)) (void)add_file(f, arena, c, item);
    }
}

/* What belongs to something that has come back since is asked once more. */
static size_t take_waiting(struct rp_command **list, size_t n)
{
    size_t waiting = 0;
    for (size_t i = 0; i < n; i++) {
        struct rp_command *c = list[i];
        if (c->error.code != RP_EOWNERGONE) continue;
        rp_error_clear(&c->error);
        list[i] = list[waiting];
        list[waiting++] = c;
    }
    return waiting;
}

/* The limit of a family is one of all that are loaded together. */
static int run_files(struct rp_tx *tx, struct rp_command **list, size_t n, struct rp_error *err)
{
    int r = n > 0 ? rp_verb_file_restore.run(tx, list, n, err) : 0;
    if (r != RP_ETOOBIG || n == 1) return r;
    rp_error_clear(err);
    r = run_files(tx, list, n / 2, err);
    if (r == 0) r = run_files(tx, &list[n / 2], n - n / 2, err);
    return r < 0 ? r : run_files(tx, list, take_waiting(list, n / 2), err);
}

static int answer_file(struct rp_tx *tx, struct rp_reprieve_subject *s, struct rp_error *err)
{
    const struct rp_file_command *c = (const struct rp_file_command *)s->file;
    struct rp_reprieve_answer *a = &s->item->answer;
    bool done = true;
    a->error = c->command.error;
    if (a->error.code == 0 && c->returned != NULL && !c->is_back && s->item->copy.mark.id != 0)
        rp_error_set(&a->error, RP_ENOTMARKED, "the file lives, and not with what lies in quarantine");
    a->what = a->error.code < 0 ? RP_REPRIEVE_REFUSED : RP_REPRIEVE_DONE;
    int r = c->is_back ? rp_reprieve_end_copy(tx, s, &done, err) : 0;
    return r == 0 && !done ? rp_error_set(err, RP_ECONFLICT, "another writer was faster") : r;
}

int rp_reprieve_files(struct rp_reprieve_round *round, struct rp_command *const *commands, size_t n,
                      struct rp_error *err)
{
    struct rp_arena *arena = round->tx->arena;
    size_t most = round->n + 1;
    for (size_t i = 0; i < n; i++)
        most += rp_reprieve_count((const struct rp_reprieve_command *)commands[i]);
    struct files f = { .commands = rp_arena_array(arena, most, sizeof *f.commands),
                       .returns = rp_arena_array(arena, most, sizeof *f.returns),
                       .list = rp_arena_array(arena, most, sizeof(struct rp_command *)) };
    int r = 0;
    if (f.commands == NULL || f.returns == NULL || f.list == NULL)
        return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", most);
    for (size_t i = round->n; i-- > 0 && r == 0;) { /* V9 */
        struct rp_reprieve_subject *s = &round->subjects[i];
        bool returned = false;
        if (!rp_reprieve_is_of_file(s)) continue;
        if (s->item->copy.mark.id != 0) r = rp_reprieve_is_returned(round->tx, s, &returned, err);
        if (returned) s->item->answer.what = RP_REPRIEVE_ALREADY;
        if (!returned) s->file = add_file(&f, arena, s->command, s->item);
    }
    if (f.n > 0)
        for (size_t i = 0; i < n; i++)
            add_left(&f, arena, (struct rp_reprieve_command *)commands[i]);
    if (r == 0) r = run_files(round->tx, f.list, f.n, err);
    for (size_t i = 0; i < round->n && r == 0; i++)
        if (round->subjects[i].file != NULL) r = answer_file(round->tx, &round->subjects[i], err);
    return r;
}
