/* SPDX-License-Identifier: Apache-2.0 */
/* A node: its connection and its store handle, with everything that can go wrong on the way. */
#include "node.h"
#include "backups.h"
#include "journal.h"
#include "judge.h"
#include "memory.h"
#include "owner.h"
#include "task.h"
#include "weather.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "choose.h"
#include "core/check/references.h"
#include "core/guarantee.h"
#include "core/owner/raise.h"
#include "core/subject/quarantine.h"
#include "lib/fault_db.h"
#include "users.h"
#include "verb.h"

#define ENVIRONMENT "test"

/* ---- calls: what each does; 0: it looks ---- */

enum { BEGINS = 1, COMMITS = 2, DELETES = 4, COPIES = 8, HIDES = 16, SHOWS = 32, PUTS = 64, LISTS = 128 };

static unsigned what_it_does(const char *call)
{
    static const struct {
        const char *call;
        unsigned does;
    } calls[] = { { "begin", BEGINS }, { "commit", COMMITS }, { "delete", DELETES }, { "copy", COPIES },
                  { "hide", HIDES },   { "show", SHOWS },     { "put", PUTS },       { "list", LISTS } };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (strcmp(call, calls[i].call) == 0) return calls[i].does;
    return 0;
}

/* ---- the database ---- */

static bool inside(const struct sim_node *n)
{
    return n->catalog != NULL && rp_db_in_transaction(n->catalog->db);
}

static int unreachable(struct rp_error *err)
{
    return rp_error_set(err, RP_EUNAVAILABLE, "injected: the connection is lost");
}

static void forget_for_a_while(struct sim_node *n)
{
    n->unresolved = sim_strikes(&n->sim->faults, FAULT_COMMIT_UNRESOLVED) ? (int)sim_between(&n->random, 1, 14) : 0;
}

static int before_commit(struct sim_node *n, struct rp_error *err)
{
    if (!sim_strikes(&n->sim->faults, FAULT_COMMIT_UNDONE)) return 0;
    forget_for_a_while(n);
    return rp_error_set(err, RP_EUNKNOWN, "injected: the connection broke at COMMIT");
}

static int db_before(void *ctx, const char *call, struct rp_error *err)
{
    struct sim_node *n = ctx;
    struct sim_faults *f = &n->sim->faults;
    const unsigned does = what_it_does(call);
    if (does == BEGINS && n->unresolved > 0) { /* after a lost commit: nobody can be asked */
        n->unresolved--;
        return unreachable(err);
    }
    if (!sim_step(n, !inside(n), call)) return unreachable(err);
    if (sim_strikes(f, FAULT_DB_BUSY)) return rp_error_set(err, RP_EBUSY, "injected: busy");
    if (!inside(n)) sim_journal_begin();
    if (does == COMMITS) return before_commit(n, err);
    if (sim_strikes(f, FAULT_DB_UNAVAILABLE)) return unreachable(err);
    if (inside(n) && sim_strikes(f, FAULT_DB_FULL)) return rp_error_set(err, RP_EFULL, "injected: full");
    return 0;
}

static int count_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    (void)err;
    *(int64_t *)ctx = row[0].i;
    return 0;
}

/* A catalog that was put back may not know this boot: the product sees that in a transaction, and
 * notes its clocks before the next one. */
static bool is_anchored(const struct sim_node *n)
{
    static const struct rp_sql sql = {
        .name = "anchor", .text = "SELECT COUNT(*) FROM host_clock WHERE boot_id = $1", .params = "s", .columns = "i"
    };
    struct rp_error err = { 0 };
    struct rp_value id = rp_text(n->boot.id);
    int64_t rows = 0;
    int r = rp_db_query(n->sim->inner, &sql, &id, count_row, &rows, &err);
    RP_ASSERT(r == 0);
    return rows > 0;
}

static int db_after(void *ctx, const char *call, struct rp_error *err)
{
    struct sim_node *n = ctx;
    const unsigned does = what_it_does(call);
    /* nothing but a transaction changes anything */
    RP_ASSERT(does == COMMITS || does == BEGINS || inside(n) || sim_journal_is_empty());
    if (does != COMMITS) return 0;
    sim_journal_read(n->sim, n);
    if (n->command.verb == VERB_RECOVER) sim_note_recovered(n->sim);
    n->anchored = n->anchored || is_anchored(n);
    if (!n->dead && sim_strikes(&n->sim->faults, FAULT_CRASH)) {
        sim_say(n->sim, "node %d crashes after its commit", n->index);
        n->dead = true;
    }
    if (!n->dead && !sim_strikes(&n->sim->faults, FAULT_COMMIT_LOST)) return 0;
    forget_for_a_while(n);
    return rp_error_set(err, RP_EUNKNOWN, "injected: the answer was lost");
}

/* ---- the store ---- */

static bool in_outage(struct sim_node *n)
{
    struct sim *s = n->sim;
    if (sim_strikes(&s->faults, FAULT_STORE_OUTAGE))
        n->outage_ends_ms = s->now_ms + sim_between(&n->random, 1000, RP_HOUR_MS);
    return s->faults.on && s->now_ms < n->outage_ends_ms;
}

static enum bucket_fate fate_of_delete(struct sim_node *n)
{
    struct sim *s = n->sim;
    struct sim_faults *f = &s->faults;
    if (sim_strikes(f, FAULT_STORE_STRICT)) s->strict_until_ms = s->now_ms + 10 * RP_DAY_MS;
    if (f->on && s->now_ms < s->strict_until_ms) return BUCKET_DENIED;
    if (sim_strikes(f, FAULT_STORE_PARTLY)) return BUCKET_PARTLY;
    if (!sim_strikes(f, FAULT_STORE_FALSE)) return BUCKET_DONE;
    s->lied = true;
    return BUCKET_FALSE;
}

/* It does not reach the store, or the store does not take it. */
static enum bucket_fate refusal(struct sim_node *n, const char *call)
{
    struct sim *s = n->sim;
    struct sim_faults *f = &s->faults;
    if (!sim_step(n, true, call) || in_outage(n)) return BUCKET_REFUSED;
    if (sim_strikes(f, FAULT_STORE_SLOW)) sim_sleep(s, sim_between(&n->random, RP_SECOND_MS, 6 * RP_MINUTE_MS));
    if (n->dead || sim_strikes(f, FAULT_STORE_REFUSES)) return BUCKET_REFUSED;
    bool slow_put = n->command.verb == VERB_PUT && s->now_ms > s->files[n->command.file].sent_at_ms + SIM_LATE_PUT_MS;
    if (slow_put) return BUCKET_REFUSED; /* the daemon has given it up */
    return sim_strikes(f, FAULT_STORE_DENIES) ? BUCKET_DENIED : BUCKET_DONE;
}

static enum bucket_fate fate_of(struct sim_node *n, unsigned does)
{
    struct sim_faults *f = &n->sim->faults;
    const bool removes = (does & (DELETES | HIDES | SHOWS)) != 0;
    if (does == LISTS) return sim_strikes(f, FAULT_STORE_CUT) ? BUCKET_CUT : BUCKET_DONE;
    if (does == 0) return BUCKET_DONE;
    if (sim_strikes(f, FAULT_STORE_LOST)) return BUCKET_LOST;
    if (removes && sim_strikes(f, FAULT_STORE_LATE)) return BUCKET_LATE;
    return removes ? fate_of_delete(n) : BUCKET_DONE;
}

static enum bucket_fate request(void *ctx, const char *call, const char *key)
{
    struct sim_node *n = ctx;
    struct sim *s = n->sim;
    const unsigned does = what_it_does(call);
    const bool sweeps = n->command.verb == VERB_SWEEP;
    const bool brings_back = does == SHOWS || (does == COPIES && !rp_quarantine_is(key));
    /* before time passes: a delete after a look is sent whenever that was answered */
    bool at_once = s->kind == BUCKET_EXACT && does == DELETES;
    if (sweeps && key != NULL && !n->dead && (at_once || (does & (COPIES | HIDES)) != 0)) sim_judge_sent(s, n, key);
    enum bucket_fate fate = refusal(n, call);
    if (fate != BUCKET_DONE) return fate;
    n->hid = n->hid || does == HIDES;
    if ((does & (COPIES | PUTS | HIDES)) != 0 && sim_is_stale(n)) s->past.unknown[bucket_serial(s->bucket) + 1] = true;
    s->returns += brings_back;
    if (sweeps && brings_back) sim_see(s, SIGHT_RETURNED_AGAIN);
    return fate_of(n, does);
}

static void gone(void *ctx, const struct bucket_object *object, bool overwritten)
{
    struct sim_node *n = ctx;
    sim_judge_gone(n->sim, n->sim->running == n ? n : NULL, object, overwritten);
}

static int64_t store_now(void *ctx)
{
    struct sim_node *n = ctx;
    sim_note_clocks(n); /* it may have waited for the answer */
    return sim_store_ms(n->sim);
}

static int64_t true_now(void *ctx)
{
    return ((struct sim_node *)ctx)->sim->now_ms;
}

/* ---- the users' database, where references are counted ---- */

int __wrap_rp_references_count(struct rp_references *refs, const char *const *keys, size_t n,
                               struct rp_referenced *found, struct rp_error *err);
int __wrap_rp_references_count(struct rp_references *refs, const char *const *keys, size_t n,
                               struct rp_referenced *found, struct rp_error *err)
{
    struct sim_node *node = (struct sim_node *)(void *)refs;
    if (!sim_step(node, true, "guard") || sim_strikes(&node->sim->faults, FAULT_GUARD_FAILS))
        return rp_error_set(err, RP_EUNAVAILABLE, "injected: the users' database does not answer");
    for (size_t i = 0; i < n; i++) {
        found[i] = (struct rp_referenced){ 0 };
        for (size_t k = 0; k < SIM_KEYS; k++) {
            if (strcmp(sim_key(k), keys[i]) != 0) continue;
            found[i].rows = node->sim->referenced[k];
            if (found[i].rows > 0) found[i].first = "the users' database";
            node->refs[k] = (int)found[i].rows;
        }
    }
    return 0;
}

int64_t __wrap_rp_references_left_alone_ms(const struct rp_references *refs, struct rp_error *why);
int64_t __wrap_rp_references_left_alone_ms(const struct rp_references *refs, struct rp_error *why)
{
    (void)refs, (void)why;
    return 0;
}

/* ---- the epoch: as a session does it on its own thread (lib/session.c) ---- */

void sim_raise(struct sim_node *n)
{
    struct rp_error ignored = { 0 };
    rp_raises_begin(n->raises, 0);
    (void)rp_raise(n->raises, 0, n->catalog, &n->store, &ignored);
}

static void raise_here(void *ctx, uint64_t which)
{
    if (which != 0) sim_raise(ctx);
}

static int open_raises(struct sim_node *n, struct rp_error *err)
{
    n->raises = rp_raises_new(&n->host);
    if (n->raises == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the raises of epochs");
    rp_raises_set(n->raises, 0, n->store.id, n->config.mode == RP_MODE_OBSERVE);
    n->raise_hook = (struct rp_raise_hook){
        .due = rp_raises_due, .note = rp_raises_note, .raise = raise_here, .raises = n->raises, .ctx = n
    };
    n->catalog->raise_hook = &n->raise_hook;
    n->store.raises = n->raises;
    return 0;
}

/* What the daemon's thread does between commands (daemon/raiser.h). */
static void raise_once_more(struct sim_node *n)
{
    if (rp_raises_is_time(n->raises, 0)) sim_raise(n);
    if (!n->dead) sim_judge_once_more(n);
}

/* ---- opening and closing ---- */

static int64_t host_now(void *ctx)
{
    return sim_host_ms(ctx);
}

static int64_t host_boot_ms(void *ctx)
{
    const struct sim_node *n = ctx;
    return n->sim->now_ms - n->booted_ms;
}

static const struct rp_boot *host_boot(void *ctx)
{
    struct sim_node *n = ctx;
    snprintf(n->boot.host, sizeof n->boot.host, "host%d", n->index);
    snprintf(n->boot.id, sizeof n->boot.id, "host%d-%d", n->index, n->boots);
    return &n->boot;
}

static int open_catalog(struct sim_node *n, struct rp_error *err)
{
    struct rp_db_fault fault = { .before = db_before, .after = db_after, .ctx = n, .nested = true };
    struct rp_catalog_options as = { .clock = &n->host, .lane = n->index };
    struct rp_db *db = NULL;
    n->booted_at_ms = 0;
    n->host = (struct rp_clock){
        .now_ms = host_now, .boot_ms = host_boot_ms, .boot = host_boot, .ctx = n, .booted_at_ms = &n->booted_at_ms
    };
    int r = rp_db_fault_wrap(n->sim->inner, &fault, &db, err);
    return r < 0 ? r : rp_catalog_adopt(db, &as, &n->catalog, err);
}

int sim_node_open(struct sim_node *n, struct rp_error *err)
{
    struct sim *s = n->sim;
    struct bucket_hooks hooks = {
        .request = request, .gone = gone, .now_ms = store_now, .true_ms = true_now, .ctx = n
    };
    bool once = s->config.keys == RP_KEYS_WRITE_ONCE;
    n->life++;
    n->config = s->config;
    n->run = (struct rp_run){ 0 };
    snprintf(n->worker.name, sizeof n->worker.name, "node%d:%d", n->index, n->life);
    int r = open_catalog(n, err);
    if (r == 0) r = bucket_handle(s->bucket, &hooks, once, &n->backend, err);
    if (r < 0) return r;
    struct rp_guarantee *guarantee =
        rp_guarantee_new(s->kind == BUCKET_EXACT ? RP_LEVEL_EXACT : RP_LEVEL_WINDOW, s->kind == BUCKET_EXACT);
    if (guarantee == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a store's guarantee");
    n->store = (struct rp_store){ .id = s->store_id,
                                  .config = &n->config,
                                  .backend = n->backend,
                                  .guarantee = guarantee,
                                  .environment = ENVIRONMENT,
                                  .fails_over = s->home.fails_over,
                                  .references = (struct rp_references *)(void *)n };
    if (s->misled[n->index]) bucket_aim(n->backend, s->elsewhere);
    n->kept_ms = 0;
    r = open_raises(n, err);
    return r < 0 ? r : rp_guarantee_load(n->catalog->db, &n->store, err);
}

void sim_node_close(struct sim_node *n)
{
    rp_asker_free(n->asker);
    n->asker = NULL;
    rp_guarantee_free(n->store.guarantee);
    rp_raises_free(n->raises);
    rp_backend_close(n->backend);
    rp_catalog_close(n->catalog);
    n->store = (struct rp_store){ 0 };
    n->backend = NULL;
    n->catalog = NULL;
    n->raises = NULL;
}

/* ---- its life ---- */

bool sim_node_is_up(const struct sim_node *n)
{
    return n->catalog != NULL || n->command.verb == VERB_START;
}

bool sim_is_stale(const struct sim_node *n)
{
    return n->put_backs_at_begin != n->sim->past.put_backs;
}

bool sim_is_unheard(const struct sim_node *n)
{
    return n->dead || sim_is_stale(n);
}

void sim_node_begin(struct sim_node *n, const struct sim_command *c)
{
    struct sim *s = n->sim;
    int64_t host = sim_host_ms(n), db = sim_db_ms(s);
    n->command = *c;
    n->latest_at_begin_ms = host > db ? host : db;
    /* it may have jumped: then promises count by the boot clock */
    int64_t by_boot_ms = sim_boot_time_least_ms(s);
    if (host > by_boot_ms + RP_CLOCKS_APART_MS && n->latest_at_begin_ms > by_boot_ms)
        n->latest_at_begin_ms = by_boot_ms;
    n->early_ms = 0;
    n->began_at = s->steps;
    n->began_ms = s->now_ms;
    n->owned = !sim_claims(c->verb) || sim_owns(s, n);
    n->known_ours = c->verb == VERB_SWEEP && sim_is_known_ours(s);
    n->jumps_at_begin = s->jumps;
    n->put_backs_at_begin = s->past.put_backs;
    n->waiting_at_begin = bucket_late(s->bucket);
    n->epoch_at_begin = sim_catalog_epoch(s);
    n->serial = bucket_serial(s->bucket);
    n->sent_at_begin = s->sent;
    n->returns_at_begin = s->returns;
    n->file_id = c->file != SIZE_MAX ? s->files[c->file].id : 0;
    const struct model_file *f = model_file(s->model, n->file_id);
    n->deleted_at_begin = f != NULL ? f->deleted : 0;
    n->holds_made = 0;
    n->kept = false;
    n->wrong_tenant = n->hid = false;
    for (size_t i = 0; i < SIM_KEYS; i++)
        n->refs[i] = -1;
}

static void start(struct sim_node *n)
{
    struct rp_error err = { 0 };
    struct sim_command c = sim_command_of(VERB_START);
    sim_node_begin(n, &c);
    int r = sim_node_open(n, &err);
    if (r < 0)
        sim_node_close(n);
    else {
        rp_raises_assume(n->raises, 0);
        (void)rp_raise(n->raises, 0, n->catalog, &n->store, &err);
    }
}

/* What stops with the process: memory, connections, everything it had under way. */
static void stop(struct sim_node *n)
{
    sim_memory_fail(0);
    sim_node_close(n);
    n->dead = false;
    n->command.verb = VERB_NONE;
}

static void work_once(struct sim_node *n)
{
    struct sim *s = n->sim;
    struct sim_command c;
    sim_choose(n, &c);
    sim_node_begin(n, &c);
    if (sim_strikes(&s->faults, FAULT_NO_MEMORY)) sim_memory_fail(sim_between(&n->random, 1, 60));
    int code = sim_give(n);
    sim_memory_fail(0);
    if (code == 0 && n->kept && !sim_is_unheard(n)) sim_judge_kept(n);
    sim_say(s, "node %d: %s answered %d%s", n->index, sim_verb_name(c.verb), code,
            sim_is_unheard(n) ? ", and nobody heard" : "");
    n->command.verb = VERB_NONE;
}

/* Mostly at once; sometimes nobody asks for a long time. */
static int64_t pause_ms(struct sim_node *n)
{
    static const int64_t most[] = { 50, 500, 5 * RP_SECOND_MS, RP_MINUTE_MS, 10 * RP_MINUTE_MS };
    return sim_between(&n->random, 0, most[sim_index(&n->random, sizeof most / sizeof most[0])]);
}

void sim_node_work(struct sim_node *n)
{
    struct sim *s = n->sim;
    while (!s->ending) {
        if (s->past.rolling && n->catalog != NULL) stop(n);
        if (!s->past.rolling && n->catalog == NULL) start(n);
        if (n->catalog != NULL && !n->dead) work_once(n);
        if (n->catalog != NULL && !n->dead) raise_once_more(n);
        if (n->dead || n->catalog == NULL) stop(n);
        sim_sleep(s, pause_ms(n));
    }
    stop(n);
}
