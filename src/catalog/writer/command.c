/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - the steps of commands: prepare, one round, finish. Who does them on which thread is in
 * writers.c. */
#include "catalog/writer/writer.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/crashpoint.h"
#include "base/id.h"
#include "base/time.h"
#include "catalog/file/file.h"
#include "catalog/mark/mark.h"
#include "catalog/row.h"
#include "catalog/writer/idempotency.h"

#include <string.h>

#define KEYS_ARENA ((size_t)64 << 20)

/* ---- one round ---- */

struct round {
    struct rp_command **commands; /* in order of arrival, no key twice */
    size_t n;
    size_t saved; /* answers */
    bool wait;    /* for tenants that are locked */
};

static void clear_answers(struct round *round)
{
    for (size_t i = 0; i < round->n; i++) {
        struct rp_command *c = round->commands[i];
        rp_error_clear(&c->error);
        rp_buf_clear(&c->answer);
        c->answer.max = RP_ANSWER_MAX;
        c->replayed = c->inner.settled = c->stale = c->unfinished = c->failed = c->inner.busy = false;
        c->status = 0;
        c->due_at_ms = 0;
        c->raises = 0;
    }
}

/* What of the round has a key, and the command that each belongs to. */
struct keyed {
    struct rp_saved *saved;
    struct rp_command **owners;
    size_t n;
};

static int collect_keys(struct rp_arena *arena, const struct round *round, struct keyed *out, struct rp_error *err)
{
    out->saved = rp_arena_array(arena, round->n, sizeof *out->saved);
    out->owners = rp_arena_array(arena, round->n, sizeof(struct rp_command *));
    if (out->saved == NULL || out->owners == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a round");
    for (size_t i = 0; i < round->n; i++) {
        struct rp_command *c = round->commands[i];
        if (c->key == NULL) continue;
        out->owners[out->n] = c;
        out->saved[out->n++] = (struct rp_saved){
            .tenant_id = c->tenant_id, .hash = c->inner.key_hash, .key = c->key, .digest = c->digest
        };
    }
    return 0;
}

static int settle(struct rp_command *c, const struct rp_saved *saved, struct rp_error *err)
{
    c->inner.settled = true;
    if (saved->code < 0) {
        rp_error_set(&c->error, saved->code, "this Idempotency-Key was used for another request");
        rp_error_hint(&c->error, "use a new key for every new request");
        return 0;
    }
    c->replayed = true;
    c->status = saved->status;
    int r = rp_buf_str(&c->answer, saved->answer);
    return r < 0 ? rp_error_set(err, r, "repeat the answer of %s", c->verb->name) : 0;
}

static int replay_known(struct rp_tx *tx, struct keyed *keyed, struct rp_error *err)
{
    if (keyed->n == 0) return 0;
    int r = rp_keys_find(tx->db, keyed->saved, keyed->n, tx->arena, err);
    for (size_t i = 0; i < keyed->n && r == 0; i++) {
        if (keyed->saved[i].found) r = settle(keyed->owners[i], &keyed->saved[i], err);
    }
    return r;
}

/* W8. If this group kept something alive (`tx->kept`), its commands are answered after the raises
 * that are due. */
static void require_raises(struct rp_tx *tx, struct rp_command **group, size_t n)
{
    const struct rp_raise_hook *raise_hook = tx->catalog->raise_hook;
    bool kept = tx->kept.n > 0 || tx->kept.everywhere;
    uint64_t due = kept && raise_hook != NULL ? raise_hook->due(raise_hook->raises, &tx->kept) : 0;
    for (size_t i = 0; i < n && due != 0; i++) {
        if (group[i]->stale || group[i]->error.code < 0) continue;
        group[i]->unfinished = true;
        group[i]->raises = due;
    }
}

/* ---- locks (W6) ---- */

static void add_id(struct rp_locks *l, int64_t **ids, size_t *n, size_t *max, int64_t id)
{
    if (id == 0) return;
    if (*n == *max) {
        size_t more = *max == 0 ? 256 : *max * 2;
        int64_t *room = rp_arena_array(l->arena, more, sizeof *room);
        l->failed |= room == NULL;
        if (room == NULL) return;
        if (*n > 0) memcpy(room, *ids, *n * sizeof *room);
        *ids = room;
        *max = more;
    }
    (*ids)[(*n)++] = id;
}

void rp_locks_tenant(struct rp_locks *l, int64_t id)
{
    add_id(l, &l->tenants, &l->n_tenants, &l->max_tenants, id);
}

void rp_locks_mark(struct rp_locks *l, int64_t id)
{
    add_id(l, &l->marks, &l->n_marks, &l->max_marks, id);
}

/* Where the tenants of each command begin among all; behind the last one, where they end. */
static int collect_locks(struct rp_tx *tx, const struct round *round, struct rp_locks *locks, size_t *first,
                         struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < round->n && r == 0; i++) {
        const struct rp_command *c = round->commands[i];
        first[i] = locks->n_tenants;
        if (c->inner.settled || c->inner.known) continue;
        rp_locks_tenant(locks, c->tenant_id);
        if (c->verb->locks != NULL) r = c->verb->locks(tx, c, locks, err);
    }
    first[round->n] = locks->n_tenants;
    if (r == 0 && locks->failed) r = rp_error_set(err, RP_ENOMEM, "no memory for the locks of a round");
    return r;
}

static int take_locks(struct rp_tx *tx, struct round *round, struct rp_error *err)
{
    struct rp_locks locks = { .arena = tx->arena };
    struct rp_ids busy = { 0 };
    size_t *first = rp_arena_array(tx->arena, round->n + 1, sizeof *first);
    if (rp_db_has_one_writer(tx->db)) return 0;
    if (first == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a round");
    int r = collect_locks(tx, round, &locks, first, err);
    if (r < 0) return r;
    r = round->wait ? rp_tenants_lock(tx, locks.tenants, locks.n_tenants, err)
                    : rp_tenants_try_lock(tx, locks.tenants, locks.n_tenants, &busy, err);
    for (size_t i = 0; i < round->n && r == 0 && busy.n > 0; i++)
        for (size_t t = first[i]; t < first[i + 1]; t++)
            round->commands[i]->inner.busy |= rp_ids_contain(busy.at, busy.n, locks.tenants[t]);
    return r < 0 ? r : rp_marks_lock(tx, locks.marks, locks.n_marks, NULL, err);
}

/* Each verb once, over all of its commands, in the order in which the verbs first appear. */
static int run_verbs(struct rp_tx *tx, struct round *round, struct rp_error *err)
{
    struct rp_command **group = rp_arena_array(tx->arena, round->n, sizeof(struct rp_command *));
    bool *taken = rp_arena_array(tx->arena, round->n, sizeof *taken);
    if (group == NULL || taken == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a round");
    for (size_t i = 0; i < round->n; i++) {
        const struct rp_verb *verb = round->commands[i]->verb;
        size_t n = 0;
        for (size_t j = i; j < round->n; j++) {
            struct rp_command *c = round->commands[j];
            if (taken[j] || c->inner.settled || c->inner.busy || c->verb != verb) continue;
            taken[j] = true;
            c->stale = c->inner.known; /* its answer was forgotten meanwhile */
            if (c->refusal != NULL) c->error = *c->refusal;
            if (!c->stale && c->refusal == NULL) group[n++] = c;
        }
        struct rp_kept before = tx->kept;
        tx->kept = (struct rp_kept){ 0 };
        int r = n > 0 ? verb->run(tx, group, n, err) : 0;
        if (r < 0) return verb->name[0] != 0 ? rp_error_wrap(err, r, "%s", verb->name) : r;
        require_raises(tx, group, n);
        for (size_t j = 0; j < before.n; j++)
            rp_tx_keep(tx, before.stores[j]);
        if (before.everywhere) rp_tx_keep(tx, 0);
        for (size_t j = 0; j < n; j++)
            RP_ASSERT(!group[j]->stale || !group[j]->second);
    }
    return 0;
}

static int render(struct rp_command *c, struct rp_error *err)
{
    rp_buf_clear(&c->answer);
    int r = c->render(c, &c->status, &c->answer);
    return r < 0 ? rp_error_set(err, r, "write the answer of %s", c->verb->name) : 0;
}

/* Saved are answers that stand: a failure that a repetition may heal is none. */
static int save_answers(struct rp_tx *tx, struct keyed *keyed, size_t *n_saved, struct rp_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < keyed->n; i++) {
        struct rp_command *c = keyed->owners[i];
        if (c->inner.settled || c->stale || c->inner.busy) continue;
        int r = render(c, err);
        if (r < 0) return r;
        if (rp_error_retry(c->error.code)) continue;
        struct rp_saved saved = keyed->saved[i];
        saved.status = c->status;
        saved.answer = rp_buf_text(&c->answer);
        keyed->saved[n++] = saved;
    }
    *n_saved = n;
    int r = rp_keys_save(tx, keyed->saved, n, err);
    if (r == 0 && n > 0) RP_CRASHPOINT("answer.before-commit");
    return r;
}

static int round_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct round *round = ctx;
    struct keyed keyed = { 0 };
    clear_answers(round);
    int r = collect_keys(tx->arena, round, &keyed, err);
    if (r == 0) r = replay_known(tx, &keyed, err);
    if (r == 0) r = take_locks(tx, round, err);
    if (r == 0) r = run_verbs(tx, round, err);
    if (r == 0) r = save_answers(tx, &keyed, &round->saved, err);
    return r;
}

static void fail_all(struct round *round, const struct rp_error *why)
{
    clear_answers(round);
    for (size_t i = 0; i < round->n; i++) {
        round->commands[i]->error = *why;
        round->commands[i]->failed = true;
    }
}

/* The database as a whole cannot: one by one would only take longer to find out. */
static bool is_about_the_database(int code)
{
    return (rp_error_fault(code) & RP_OF_CATALOG) != 0;
}

int rp_round_run(struct rp_catalog *catalog, struct rp_command **commands, size_t n, bool wait)
{
    struct round round = { .commands = commands, .n = n, .wait = wait };
    struct rp_error why = { 0 };
    int r = rp_catalog_commit(catalog, round_tx, &round, &why);
    if (r == 0 && round.saved > 0) RP_CRASHPOINT("answer.committed");
    if (r == 0) return 0;
    if (n == 1 || is_about_the_database(r)) {
        fail_all(&round, &why);
        return is_about_the_database(r) ? r : 1;
    }
    int sum = 1;
    for (size_t i = 0; i < n; i++) {
        r = rp_round_run(catalog, &commands[i], 1, wait);
        sum = r < sum ? r : sum;
    }
    return sum;
}

/* ---- outside the catalog ---- */

/* Those whose answer is known already need no look: run repeats it. A look-up that fails leaves all
 * of them: run asks again. */
static size_t leave_out_known(struct rp_catalog *catalog, struct rp_command **commands, size_t n)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(KEYS_ARENA);
    struct round round = { .commands = commands, .n = n };
    struct keyed keyed = { 0 };
    struct rp_error ignored = { 0 };
    if (collect_keys(&arena, &round, &keyed, &ignored) < 0 || keyed.n == 0) return n;
    if (rp_keys_find(catalog->db, keyed.saved, keyed.n, &arena, &ignored) < 0) return n;
    size_t left = 0, k = 0;
    for (size_t i = 0; i < n; i++) {
        bool known = k < keyed.n && keyed.owners[k] == commands[i] && keyed.saved[k].found;
        if (k < keyed.n && keyed.owners[k] == commands[i]) k++;
        struct rp_command *c = commands[i];
        c->inner.known = known;
        if (known) continue;
        commands[i] = commands[left]; /* the known ones go to the end */
        commands[left++] = c;
    }
    return left;
}

void rp_commands_prepare(struct rp_catalog *catalog, struct rp_command **commands, size_t n)
{
    for (size_t i = 0; i < n; i++)
        commands[i]->inner.known = false;
    size_t left = leave_out_known(catalog, commands, n);
    if (left > 0) commands[0]->verb->prepare(catalog, commands, left);
}

static int amend_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct rp_command *c = ctx;
    struct rp_saved saved = {
        .tenant_id = c->tenant_id, .hash = c->inner.key_hash, .key = c->key, .digest = c->digest
    };
    int r = render(c, err);
    saved.status = c->status;
    saved.answer = rp_buf_text(&c->answer);
    if (r == 0) r = rp_key_amend(tx, &saved, err);
    RP_CRASHPOINT("answer.before-commit");
    return r;
}

void rp_commands_raise(const struct rp_raise_hook *raise_hook, struct rp_command **commands, size_t n)
{
    uint64_t raises = 0;
    for (size_t i = 0; i < n; i++)
        raises |= commands[i]->raises;
    if (raises != 0) raise_hook->raise(raise_hook->ctx, raises);
}

void rp_commands_finish(struct rp_catalog *catalog, struct rp_command **commands, size_t n)
{
    rp_commands_raise(catalog->raise_hook, commands, n);
    RP_CRASHPOINT("command.raised");
    if (commands[0]->verb->finish != NULL) commands[0]->verb->finish(catalog, commands, n);
    for (size_t i = 0; i < n; i++) {
        struct rp_command *c = commands[i];
        struct rp_error ignored = { 0 }; /* what was saved with the change is true, only less complete */
        if (!c->amended || c->key == NULL) continue;
        (void)rp_catalog_transact(catalog, amend_tx, c, &ignored);
        RP_CRASHPOINT("answer.committed");
    }
}

/* ---- a command on its caller's thread ---- */

static void run_here(struct rp_catalog *catalog, struct rp_command *c)
{
    do {
        c->second = c->stale;
        if (c->verb->prepare != NULL) rp_commands_prepare(catalog, &c, 1);
        (void)rp_round_run(catalog, &c, 1, true);
        RP_CRASHPOINT("command.committed");
    } while (c->stale);
    if (c->unfinished) rp_commands_finish(catalog, &c, 1);
}

int rp_command_run(struct rp_catalog *catalog, struct rp_command *command)
{
    RP_ASSERT(command->key == NULL || command->render != NULL);
    command->inner.key_hash = command->key != NULL ? rp_key_hash(command->tenant_id, command->key) : 0;
    command->stale = command->unfinished = command->amended = false;
    if (catalog->writers != NULL)
        rp_writers_carry(catalog->writers, command);
    else
        run_here(catalog, command);
    rp_command_log(command, catalog->log, rp_clock_now_ms(catalog->clock));
    return command->error.code;
}

void rp_command_log(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    if (command->verb->log != NULL && !command->replayed && log != NULL) command->verb->log(command, log, at_ms);
}
