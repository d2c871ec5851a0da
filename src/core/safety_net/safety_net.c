/* SPDX-License-Identifier: Apache-2.0 */
/* safety_net.c - a safety net as a run: begun, carried batch by batch, taken over. What it looks
 * for is said by the steps. */
#include "core/safety_net/safety_net.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/crashpoint.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text/json.h"
#include "core/journal.h"
#include "core/safety_net/steps.h"
#include "core/state.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RENEW_PAGES 20 /* pages on which nothing was found, after which lock and place are kept all the same */

json_t *rp_net_finding_json(const struct rp_net_finding *finding)
{
    const struct rp_orphan *o = finding->orphan;
    char id[RP_ID_TEXT];
    enum rp_id_kind kind = finding->of_mark ? RP_ID_MARK : RP_ID_FILE;
    json_t *fields = json_object();
    rp_json_set(fields, "subject", rp_subject_json(o->store, o->key));
    rp_json_set(fields, finding->of_mark ? "mark" : "file", json_string(rp_id_format(kind, o->id, id)));
    if (o->owner_id != 0) rp_json_set(fields, "parent", json_string(rp_id_format(RP_ID_FILE, o->owner_id, id)));
    rp_json_set(fields, "what", json_string(o->what));
    if (finding->would != NULL) rp_json_set(fields, "would", json_string(finding->would));
    if (o->due_at_ms != 0) rp_json_set(fields, "due_at", rp_json_time(o->due_at_ms));
    return fields;
}

/* ---- begin ---- */

int rp_safety_net_begin(struct rp_safety_net *net, struct rp_run *out, struct rp_error *err)
{
    return rp_run_begin(net->catalog, RP_RUN_SAFETY_NET, RP_NET_NAME, net->worker, net->stale_after_ms, out, err);
}

/* ---- one batch ---- */

struct batch_command {
    struct rp_command command;
    const struct rp_net_step *step;
    const struct rp_mending *mending;
    struct rp_orphan *orphans;
    size_t n;
    struct rp_net_place place; /* G4: where the step goes on */
    struct rp_carry *carry;
    int64_t scanned, mended;
};

static int keep_place(struct rp_tx *tx, const struct batch_command *c, struct rp_error *err)
{
    char name[40], status[24];
    snprintf(name, sizeof name, "safety_net_%s", c->step->name);
    snprintf(status, sizeof status, "%d", (int)c->place.status);
    return rp_meta_set(tx->db, name, c->place.id, status, err);
}

static int run_batch(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    struct batch_command *c = (struct batch_command *)commands[0];
    struct rp_figures *figures = &c->carry->run->figures;
    RP_ASSERT(n == 1);
    rp_carry_rewind(c->carry);
    c->mended = 0;
    for (size_t i = 0; i < c->n; i++)
        c->orphans[i].done = false;
    int r = c->n > 0 ? c->step->mend(tx, c->mending, c->orphans, c->n, err) : 0;
    if (r < 0) return r;
    for (size_t i = 0; i < c->n; i++)
        c->mended += c->orphans[i].done;
    figures->repairs = true;
    rp_figures_let_go(figures, c->step->name, c->mended);
    figures->scanned += c->scanned;
    if (c->step->makes_marks) figures->marked += c->mended;
    r = keep_place(tx, c, err);
    return r < 0 ? r : rp_run_step(tx, c->carry->run, err);
}

/* G2; marks of no tenant are locked themselves. */
static int add_locks(struct rp_tx *tx, const struct rp_command *command, struct rp_locks *out, struct rp_error *err)
{
    const struct batch_command *c = (const struct batch_command *)command;
    (void)tx, (void)err;
    for (size_t i = 0; i < c->n; i++) {
        rp_locks_tenant(out, c->orphans[i].tenant_id);
        if (c->step->orphans_are_marks && c->orphans[i].tenant_id == 0) rp_locks_mark(out, c->orphans[i].id);
    }
    return 0;
}

static void write_log(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    const struct batch_command *c = (const struct batch_command *)command;
    struct rp_journal j = rp_journal_of(command, log, at_ms);
    char id[RP_ID_TEXT];
    for (size_t i = 0; i < c->n && command->error.code == 0; i++) {
        const struct rp_net_finding finding = { .of_mark = c->step->orphans_are_marks, .orphan = &c->orphans[i] };
        if (!c->orphans[i].done) continue;
        json_t *fields = rp_net_finding_json(&finding);
        rp_json_set(fields, "run", json_string(rp_id_format(RP_ID_RUN, c->carry->run->id, id)));
        rp_journal_orphan(&j, fields);
    }
}

_Static_assert(offsetof(struct batch_command, command) == 0, "a command is the first member");
static const struct rp_verb verb_batch = {
    .name = "safety net", .locks = add_locks, .run = run_batch, .log = write_log, .alone = true
};

/* ---- carry ---- */

struct carrying {
    struct rp_safety_net *net;
    struct rp_carry carry;
    struct rp_net_search search;
    struct rp_mending mending;
    int64_t scanned; /* since the last batch that was kept */
    int64_t found;   /* and were to be mended: G4 */
};

static int run_command(struct carrying *c, struct batch_command *b, struct rp_error *err)
{
    b->command = (struct rp_command){ .verb = &verb_batch, .actor = c->net->actor, .weight = b->n };
    b->carry = &c->carry;
    b->mending = &c->mending;
    b->scanned = c->scanned;
    int r = rp_carry_batch(&c->carry, &b->command, err);
    RP_CRASHPOINT("safety-net.batch");
    if (r == 0) c->scanned = 0;
    return r;
}

/* What the catalog says of any change, or the run's end, is no fault of one orphan. */
static bool is_of_one(const struct carrying *c, int r)
{
    return !c->carry.run->lost && (rp_error_fault(r) & RP_OF_CATALOG) == 0;
}

/* G5 */
static int mend_each(struct carrying *c, struct batch_command *all, struct rp_error *err)
{
    struct rp_figures *figures = &c->carry.run->figures;
    int64_t mended = 0;
    int r = 0;
    for (size_t i = 0; i < all->n && r == 0; i++) {
        struct batch_command one = { .step = all->step, .orphans = &all->orphans[i], .n = 1, .place = all->place };
        struct rp_error why = { 0 };
        r = run_command(c, &one, &why);
        mended += r == 0 ? one.mended : 0;
        if (r < 0 && is_of_one(c, r)) {
            figures->failed++;
            rp_figures_error(figures, "%s:%.80s: %s", all->orphans[i].store, all->orphans[i].key, why.text);
            r = 0;
        } else if (r < 0)
            *err = why;
    }
    all->mended = mended;
    return r;
}

static int mend(struct carrying *c, struct batch_command *b, struct rp_error *err)
{
    int r = run_command(c, b, err);
    if (r < 0 && b->n > 0 && is_of_one(c, r)) {
        rp_error_clear(err);
        r = mend_each(c, b, err);
    }
    if (r == 0 && c->net->finished != NULL) c->net->finished(c->net->ctx, c->carry.run);
    return r;
}

static int load_place(struct rp_db *db, const struct rp_net_step *step, struct rp_net_place *out, struct rp_error *err)
{
    char name[40], status[24];
    bool found = false;
    *out = step->from;
    snprintf(name, sizeof name, "safety_net_%s", step->name);
    int r = rp_meta_find(db, name, &found, &out->id, status, sizeof status, err);
    if (r < 0 || !found) *out = step->from;
    if (r == 0 && found) out->status = strtoll(status, NULL, 10);
    return r;
}

static int64_t left(const struct carrying *c)
{
    int64_t n = c->net->limit - c->found;
    return n < RP_NET_BATCH ? n : RP_NET_BATCH;
}

static int carry_step(struct carrying *c, const struct rp_net_step *step, struct rp_error *err)
{
    struct rp_net_page page = { .more = true };
    int r = load_place(c->net->catalog->db, step, &page.at, err);
    for (int pages = 1; r == 0 && page.more && pages <= RP_NET_PAGES && left(c) > 0 && !rp_carry_is_over(&c->carry);
         pages++) {
        struct rp_orphans orphans = { 0 };
        page.room = (size_t)left(c);
        r = rp_net_find_page(&c->search, step, &page, &orphans, err);
        c->scanned += r == 0 ? page.scanned : 0;
        bool kept = orphans.n > 0 || !page.more || pages % RENEW_PAGES == 0 || pages == RP_NET_PAGES;
        if (r < 0 || !kept) continue;
        struct batch_command b = { .step = step, .orphans = orphans.at, .n = orphans.n };
        b.place = page.more ? page.at : step->from;
        r = mend(c, &b, err);
        c->found += b.mended;
        if (b.mended < (int64_t)orphans.n) page.at = page.end; /* or it would be found again at once */
    }
    return r < 0 ? rp_error_wrap(err, r, "look for %s", step->name) : 0;
}

static int carry_all(struct carrying *c, struct rp_error *err)
{
    struct rp_figures *figures = &c->carry.run->figures;
    int r = rp_net_search_open(&c->search, c->net, err);
    c->mending = (struct rp_mending){
        .stores = c->search.stores, .n_stores = c->search.n_stores, .uploads = c->net->uploads, .actor = c->net->actor
    };
    if (r == 0) r = rp_carry_keep(&c->carry, NULL, err);
    for (size_t i = 0; i < figures->n_let_go; i++)
        c->found += figures->let_go[i].rows; /* before it was taken over */
    for (size_t i = 0; i < rp_net_steps_count && r == 0 && !rp_carry_is_over(&c->carry); i++)
        r = carry_step(c, &rp_net_steps[i], err);
    return r == 0 ? rp_net_count_behind(c->net, true, &figures->behind, err) : r;
}

int rp_safety_net_carry(struct rp_safety_net *net, struct rp_run *run, const char **outcome, struct rp_error *err)
{
    RP_ASSERT(run->id != 0 && strcmp(run->kind, RP_RUN_SAFETY_NET) == 0);
    *outcome = NULL;
    RP_CLEANUP(rp_freep) struct carrying *c = calloc(1, sizeof *c);
    if (c == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a safety net");
    c->net = net;
    c->carry = (struct rp_carry){
        .catalog = net->catalog, .run = run, .actor = net->actor, .cancel = net->cancel, .stop = net->stop
    };
    int r = carry_all(c, err);
    rp_net_search_close(&c->search);
    const char *through = run->figures.failed > 0 ? "partial" : "done";
    return rp_carry_end(&c->carry, r, r == 0 && !rp_carry_is_over(&c->carry) ? through : NULL, outcome, err);
}
