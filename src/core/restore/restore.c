/* SPDX-License-Identifier: Apache-2.0 */
/* restore.c - a restore in bulk as a run: begun, carried batch by batch, resumed. What it finds is
 * find.c's. */
#include "core/restore/restore.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/crashpoint.h"
#include "base/id.h"
#include "base/text/json.h"
#include "base/time.h"
#include "core/journal.h"
#include "core/state.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BATCH           RP_REPRIEVE_ITEMS_MAX
#define BATCH_ARENA_MAX ((size_t)64 << 20)
#define KEPT_ARENA_MAX  ((size_t)1 << 20)

/* ---- how it is shown ---- */

json_t *rp_restore_filter_json(struct rp_db *db, const struct rp_restore_filter *f)
{
    char id[RP_ID_TEXT], store[RP_STORE_NAME] = "?";
    struct rp_error ignored = { 0 };
    json_t *o = json_object();
    if (f->run_id != 0) rp_json_set(o, "run", json_string(rp_id_format(RP_ID_RUN, f->run_id, id)));
    if (f->store_id != 0) {
        (void)rp_store_name(db, f->store_id, store, &ignored);
        rp_json_set(o, "prefix", rp_subject_json(store, f->prefix));
    }
    if (f->reason != NULL) rp_json_set(o, "reason", rp_json_text(f->reason));
    if (f->actor != NULL) rp_json_set(o, "actor", rp_json_text(f->actor));
    if (f->since_ms >= 0) rp_json_set(o, "since", rp_json_time(f->since_ms));
    if (f->until_ms >= 0) rp_json_set(o, "until", rp_json_time(f->until_ms));
    return o;
}

/* ---- begin ---- */

static int begin_one(struct rp_tx *tx, struct rp_restore_command *c, struct rp_error *err)
{
    RP_CLEANUP(rp_json_decrefp) json_t *filter = rp_restore_filter_json(tx->db, &c->filter);
    int r = rp_marks_last_id(tx->db, &c->filter.upto_id, err);
    c->run->filter = filter;
    if (r == 0) r = rp_run_start(tx, c->run, c->command.actor, err);
    c->run->filter = NULL;
    struct rp_restore_row row = { .run_id = c->run->id, .filter = c->filter, .asked_by = c->command.actor };
    if (r == 0) r = rp_restore_add(tx, &row, err);
    if (r == 0) rp_tx_keep(tx, c->filter.store_id); /* nothing that it will restore is claimed from now on */
    return r;
}

static int run_begin(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = begin_one(tx, (struct rp_restore_command *)commands[i], err);
    return r;
}

static void log_begin(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    struct rp_journal j = rp_journal_of(command, log, at_ms);
    if (command->error.code == 0) rp_journal_started(&j, ((const struct rp_restore_command *)command)->run);
}

_Static_assert(offsetof(struct rp_restore_command, command) == 0, "a command is the first member");
const struct rp_verb rp_verb_restore_begin = {
    .name = "begin a restore", .run = run_begin, .log = log_begin, .alone = true
};

void rp_restore_command_init(struct rp_restore_command *c, const struct rp_restore_filter *filter, const char *name,
                             struct rp_run *run, const struct rp_worker *worker, const char *actor)
{
    rp_run_name(run, RP_RUN_RESTORE, name, worker);
    *c = (struct rp_restore_command){ .command = { .verb = &rp_verb_restore_begin, .actor = actor },
                                      .filter = *filter,
                                      .run = run };
}

int rp_restore_begin(struct rp_catalog *catalog, const struct rp_restore_filter *filter, const char *name,
                     const struct rp_worker *worker, const char *actor, struct rp_run *out, struct rp_error *err)
{
    struct rp_restore_command c;
    rp_restore_command_init(&c, filter, name, out, worker, actor);
    int r = rp_command_run(catalog, &c.command);
    if (r < 0) *err = c.command.error;
    return r;
}

/* ---- one batch ---- */

/* A restore of marks whose transaction also moves the run on (N6). */
struct step {
    struct rp_reprieve_command reprieve;
    const struct rp_carry *carry;
    struct rp_restore_cursor cursor; /* behind this batch */
};

static void count_item(struct rp_figures *f, const struct rp_reprieve_item *item, int64_t now_ms)
{
    const char *store = item->store != NULL ? item->store->config->name : "?";
    rp_figures_see(f, store, item->mark.key, now_ms - item->mark.marked_at_ms, item->mark.size_bytes);
    f->restored += item->answer.what == RP_REPRIEVE_DONE;
    f->already_restored += item->answer.what == RP_REPRIEVE_ALREADY;
    f->returned += item->answer.what == RP_REPRIEVE_RETURNED;
    if (item->answer.what != RP_REPRIEVE_REFUSED) return;
    f->refused++;
    rp_figures_error(f, "%s", item->answer.error.text);
}

static void prepare_step(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n)
{
    rp_verb_reprieve.prepare(catalog, commands, n);
}

static int add_step_locks(struct rp_tx *tx, const struct rp_command *command, struct rp_locks *out,
                          struct rp_error *err)
{
    return rp_verb_reprieve.locks(tx, command, out, err);
}

static int run_step(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    struct step *s = (struct step *)commands[0];
    struct rp_run *run = s->carry->run;
    RP_ASSERT(n == 1);
    rp_carry_rewind(s->carry);
    int r = s->reprieve.n > 0 ? rp_verb_reprieve.run(tx, commands, 1, err) : 0;
    if (r < 0 || commands[0]->stale) return r;
    rp_error_clear(&commands[0]->error); /* of a batch of one that was refused: its item says so */
    for (size_t i = 0; i < s->reprieve.n; i++)
        count_item(&run->figures, &s->reprieve.items[i], tx->late_ms);
    for (size_t i = 0; i < s->reprieve.n_family; i++) { /* they were not asked for: only what went wrong is told */
        const struct rp_reprieve_answer *a = &s->reprieve.family[i].answer;
        if (a->what == RP_REPRIEVE_REFUSED) rp_figures_error(&run->figures, "%s", a->error.text);
    }
    r = rp_run_step(tx, run, err);
    return r < 0 ? r : rp_restore_step(tx, run->id, &s->cursor, err);
}

static void finish_step(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n)
{
    rp_verb_reprieve.finish(catalog, commands, n);
}

static void log_step(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    if (command->error.code == 0) rp_verb_reprieve.log(command, log, at_ms);
}

_Static_assert(offsetof(struct step, reprieve) == 0, "a command is the first member");
static const struct rp_verb verb_step = { .name = "restore",
                                          .prepare = prepare_step,
                                          .locks = add_step_locks,
                                          .run = run_step,
                                          .finish = finish_step,
                                          .log = log_step,
                                          .alone = true };

/* ---- carry ---- */

struct carrying {
    struct rp_restorer *restorer;
    struct rp_run *run;
    struct rp_carry carry;
    struct rp_restore_row row;
    struct rp_restore_walk walk;
    struct rp_arena kept, arena; /* of the filter; of the batch */
    json_t *filter;
    struct step step;
    struct rp_reprieve_item items[BATCH];
};

/* No batch is begun any more. */
static bool is_over(const struct carrying *c)
{
    return rp_restore_is_over(&c->walk.cursor) || rp_carry_is_over(&c->carry);
}

/* A look may take long: the run's lock is renewed, and a cancel is heard. */
static int pause_look(void *ctx, struct rp_error *err)
{
    struct carrying *c = ctx;
    int r = is_over(c) ? 1 : rp_carry_keep(&c->carry, NULL, err);
    return r == 0 && is_over(c) ? 1 : r;
}

static int counted_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct carrying *c = ctx;
    int r = rp_run_step(tx, c->run, err);
    return r < 0 || c->row.total < 0 ? r : rp_restore_counted(tx, c->run->id, c->row.total, err);
}

static int load(struct carrying *c, struct rp_error *err)
{
    struct rp_db *db = c->restorer->catalog->db;
    int r = rp_restore_get(db, c->run->id, &c->kept, &c->row, err);
    if (r < 0) return r;
    rp_restore_walk_init(&c->walk, db, &c->row.filter, &c->row.cursor);
    c->walk.pause = pause_look;
    c->walk.ctx = c;
    c->run->filter = c->filter = rp_restore_filter_json(db, &c->row.filter);
    return c->filter != NULL ? 0 : rp_error_set(err, RP_ENOMEM, "no memory for a restore");
}

/* How many there are, for whoever wants to know how long it takes. */
static int count_all(struct carrying *c, struct rp_error *err)
{
    int r = c->row.total < 0 && !is_over(c) ? rp_restore_look(&c->walk, err) : 0;
    if (r == 0 && c->walk.looked) c->row.total = c->walk.found;
    c->run->total = c->row.total >= 0 ? c->row.total : 0;
    if (r == 0 && !is_over(c)) r = rp_catalog_transact(c->restorer->catalog, counted_tx, c, err);
    return r < 0 ? rp_error_wrap(err, r, "count what is to be restored") : 0;
}

static void name_store(struct carrying *c, struct rp_reprieve_item *item)
{
    const struct rp_restorer *restorer = c->restorer;
    char name[RP_STORE_NAME];
    struct rp_error ignored = { 0 };
    item->store = rp_store_by_id(restorer->stores, restorer->n_stores, item->mark.store_id);
    if (item->store != NULL && item->store->backend != NULL) return;
    (void)rp_store_name(restorer->catalog->db, item->mark.store_id, name, &ignored);
    rp_error_set(&item->error, RP_EUNAVAILABLE, "%s:%s: the store is not open", name, item->mark.key);
}

static int read_batch(struct carrying *c, size_t *n, struct rp_error *err)
{
    struct rp_marks page;
    rp_arena_reset(&c->arena);
    int r = rp_marks_init(&page, BATCH, &c->arena, err);
    if (r == 0) r = rp_restore_next(&c->walk, &page, err);
    for (size_t i = 0; i < page.n && r == 0; i++) {
        c->items[i] = (struct rp_reprieve_item){ .mark_id = page.at[i].id, .mark = page.at[i] };
        name_store(c, &c->items[i]);
    }
    *n = page.n;
    return r < 0 ? r : 0;
}

static int carry_batch(struct carrying *c, struct rp_error *err)
{
    struct rp_restorer *restorer = c->restorer;
    struct step *s = &c->step;
    size_t n = 0;
    int r = rp_run_is_cancelled(restorer->catalog->db, c->run->id, &c->run->cancelled, err);
    if (r < 0 || c->run->cancelled) return r; /* a batch may take long: it is not even prepared */
    r = read_batch(c, &n, err);
    if (r < 0) return r;
    *s = (struct step){ .carry = &c->carry, .cursor = c->walk.cursor };
    rp_reprieve_command_init(&s->reprieve, c->items, n, c->row.asked_by, &c->arena);
    s->reprieve.command.verb = &verb_step;
    s->reprieve.stores = restorer->stores;
    s->reprieve.n_stores = restorer->n_stores;
    r = rp_carry_batch(&c->carry, &s->reprieve.command, err);
    RP_CRASHPOINT("restore.batch");
    if (r < 0) return r;
    if (restorer->finished != NULL) restorer->finished(restorer->ctx, c->run, c->items, n);
    return 0;
}

/* NULL: something is left to do. */
static const char *through(const struct carrying *c)
{
    if (!rp_restore_is_over(&c->walk.cursor)) return NULL;
    return c->run->figures.refused > 0 ? "partial" : "done";
}

static void free_carrying(struct carrying **c)
{
    if (*c == NULL) return;
    (*c)->run->filter = NULL;
    json_decref((*c)->filter);
    rp_restore_walk_done(&(*c)->walk);
    rp_arena_done(&(*c)->arena);
    rp_arena_done(&(*c)->kept);
    free(*c);
}

int rp_restore_carry(struct rp_restorer *restorer, struct rp_run *run, const char **outcome, struct rp_error *err)
{
    RP_CLEANUP(free_carrying) struct carrying *c = calloc(1, sizeof *c);
    RP_ASSERT(run->id != 0 && strcmp(run->kind, RP_RUN_RESTORE) == 0);
    *outcome = NULL;
    if (c == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a restore");
    c->restorer = restorer;
    c->run = run;
    c->kept = RP_ARENA(KEPT_ARENA_MAX);
    c->arena = RP_ARENA(BATCH_ARENA_MAX);
    int r = load(c, err);
    c->carry = (struct rp_carry){ .catalog = restorer->catalog,
                                  .run = run,
                                  .actor = c->row.asked_by,
                                  .cancel = restorer->cancel,
                                  .stop = restorer->stop };
    if (r == 0) r = count_all(c, err);
    while (r == 0 && !is_over(c))
        r = carry_batch(c, err);
    return rp_carry_end(&c->carry, r, through(c), outcome, err);
}
