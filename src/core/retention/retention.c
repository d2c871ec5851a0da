/* SPDX-License-Identifier: Apache-2.0 */
/* retention.c - a retention as a run: begun, carried batch by batch, taken over. What goes is said
 * by the steps. */
#include "core/retention/retention.h"

#include "base/assert.h"
#include "base/crashpoint.h"
#include "base/error.h"
#include "base/text/json.h"
#include "catalog/audit/audit.h"
#include "core/retention/steps.h"

#include <stddef.h>
#include <string.h>

#define RENEW_LOOKS 50 /* looks that found nothing, after which the lock is renewed all the same */

/* ---- begin ---- */

int rp_retention_begin(struct rp_retention *retention, struct rp_run *out, struct rp_error *err)
{
    return rp_run_begin(retention->catalog, RP_RUN_RETENTION, RP_RETENTION_NAME, retention->worker,
                        retention->stale_after_ms, out, err);
}

/* ---- one batch ---- */

struct batch_command {
    struct rp_command command;
    const struct rp_retention_step *step;
    struct rp_retention_batch batch, before; /* as it is; as the look left it */
    struct rp_ids ids;
    struct rp_carry *carry;
};

/* R3: one row a batch, whatever its size. */
static int audit_batch(struct rp_tx *tx, const struct batch_command *c, struct rp_error *err)
{
    struct rp_audit_entry entry = { .event = "retention.let_go", .actor = c->command.actor };
    if (c->batch.gone == 0) return 0;
    entry.details = json_object();
    rp_json_set(entry.details, "what", json_string(c->step->name));
    rp_json_set(entry.details, "rows", json_integer(c->batch.gone));
    if (c->batch.along > 0) rp_json_set(entry.details, "marks", json_integer(c->batch.along));
    rp_json_set(entry.details, "ended_before", rp_json_time(c->batch.before_ms));
    return rp_tx_audit(tx, &entry, err);
}

static int run_batch(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    struct batch_command *c = (struct batch_command *)commands[0];
    struct rp_run *run = c->carry->run;
    RP_ASSERT(n == 1);
    rp_carry_rewind(c->carry);
    c->batch = c->before;
    int r = c->step->let_go(c->step, tx, &c->batch, &c->ids, err);
    if (r < 0) return r;
    rp_figures_let_go(&run->figures, c->step->name, c->batch.gone);
    run->figures.scanned += (int64_t)c->ids.n;
    if (c->step->of_marks && c->batch.gone + c->batch.along > 0) r = rp_retention_reached(tx, c->batch.before_ms, err);
    if (r < 0) return r;
    r = audit_batch(tx, c, err);
    return r < 0 ? r : rp_run_step(tx, run, err);
}

_Static_assert(offsetof(struct batch_command, command) == 0, "a command is the first member");
static const struct rp_verb verb_batch = { .name = "retention", .run = run_batch, .alone = true };

/* ---- carry ---- */

struct carrying {
    struct rp_retention *retention;
    struct rp_carry carry;
    struct rp_arena arena; /* of the batch */
    int64_t now_ms;        /* R4 */
    int empty;             /* looks in a row that found nothing */
};

static int carry_batch(struct carrying *c, const struct rp_retention_step *step, struct rp_retention_batch *batch,
                       struct rp_error *err)
{
    struct rp_retention *retention = c->retention;
    struct batch_command b = { .command = { .verb = &verb_batch, .actor = retention->actor },
                               .step = step,
                               .carry = &c->carry };
    int r = rp_retention_find(step, retention->catalog->db, &c->arena, batch, &b.ids, err);
    if (r < 0) return r;
    c->empty = b.ids.n > 0 ? 0 : c->empty + 1;
    if (b.ids.n == 0 && batch->more && c->empty % RENEW_LOOKS != 0) return 0;
    b.batch = b.before = *batch;
    r = rp_carry_batch(&c->carry, &b.command, err);
    RP_CRASHPOINT("retention.batch");
    if (r < 0) return r;
    *batch = b.batch;
    if (retention->finished != NULL) retention->finished(retention->ctx, c->carry.run);
    return 0;
}

static int carry_step(struct carrying *c, const struct rp_retention_step *step, struct rp_error *err)
{
    struct rp_retention_batch batch = rp_retention_first_batch(c->retention, step, c->carry.run->id, c->now_ms);
    int r = 0;
    rp_figures_let_go(&c->carry.run->figures, step->name, 0);
    while (r == 0 && batch.more && !rp_carry_is_over(&c->carry))
        r = carry_batch(c, step, &batch, err);
    return r < 0 ? rp_error_wrap(err, r, "let %s go", step->name) : 0;
}

int rp_retention_carry(struct rp_retention *retention, struct rp_run *run, const char **outcome, struct rp_error *err)
{
    struct carrying c = { .retention = retention,
                          .carry = { .catalog = retention->catalog,
                                     .run = run,
                                     .actor = retention->actor,
                                     .cancel = retention->cancel,
                                     .stop = retention->stop },
                          .arena = RP_ARENA(RP_CARRY_ARENA_MAX) };
    RP_ASSERT(run->id != 0 && strcmp(run->kind, RP_RUN_RETENTION) == 0);
    *outcome = NULL;
    int r = rp_carry_keep(&c.carry, &c.now_ms, err);
    for (size_t i = 0; i < rp_retention_steps_count && r == 0 && !rp_carry_is_over(&c.carry); i++)
        r = carry_step(&c, &rp_retention_steps[i], err);
    rp_arena_done(&c.arena);
    return rp_carry_end(&c.carry, r, r == 0 && !rp_carry_is_over(&c.carry) ? "done" : NULL, outcome, err);
}
