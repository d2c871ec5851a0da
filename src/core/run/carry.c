/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/carry.h"

#include "base/error.h"
#include "base/time.h"
#include "core/journal.h"

#include <string.h>

#define RESUMED_MAX 64

/* ---- resume ---- */

struct resuming {
    const struct rp_worker *worker;
    int64_t stale_after_ms;
    int64_t ids[RESUMED_MAX];
    size_t n;
    struct rp_run *run;
    bool taken;
};

static int resume_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct resuming *s = ctx;
    int r = 0;
    s->taken = false;
    for (size_t i = 0; i < s->n && r == 0 && !s->taken; i++) {
        struct rp_error why = { 0 };
        r = rp_run_take_over(tx, s->ids[i], s->worker, s->stale_after_ms, s->run, &s->taken, &why);
        if (r == RP_ENOTFOUND) r = 0; /* it ended since they were listed */
        if (r < 0) *err = why;
    }
    return r;
}

int rp_run_resume(struct rp_catalog *catalog, const char *kind, const struct rp_worker *worker, int64_t stale_after_ms,
                  struct rp_run *out, struct rp_error *err)
{
    struct resuming s = { .worker = worker, .stale_after_ms = stale_after_ms, .run = out };
    int r = rp_run_list_open(catalog->db, kind, s.ids, RESUMED_MAX, &s.n, err);
    if (r == 0 && s.n > 0) r = rp_catalog_transact(catalog, resume_tx, &s, err);
    if (r < 0 && r != RP_ECHANGED) return rp_error_wrap(err, r, "resume a %s", kind);
    return r == 0 && s.taken ? 0 : rp_error_set(err, RP_ENOTFOUND, "no %s waits to be resumed", kind);
}

/* ---- on the way ---- */

static bool is_set(const volatile sig_atomic_t *flag)
{
    return flag != NULL && __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}

static bool is_cancelled(const struct rp_carry *carry)
{
    return carry->run->cancelled || is_set(carry->cancel);
}

bool rp_carry_is_over(const struct rp_carry *carry)
{
    return is_cancelled(carry) || is_set(carry->stop);
}

struct keeping {
    struct rp_run *run;
    int64_t early_ms;
};

static int keep_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct keeping *k = ctx;
    k->early_ms = tx->early_ms;
    return rp_run_step(tx, k->run, err);
}

int rp_carry_keep(const struct rp_carry *carry, int64_t *early_ms, struct rp_error *err)
{
    struct keeping k = { .run = carry->run };
    int r = rp_catalog_transact(carry->catalog, keep_tx, &k, err);
    if (r == 0 && early_ms != NULL) *early_ms = k.early_ms;
    return r;
}

void rp_carry_rewind(const struct rp_carry *carry)
{
    carry->run->figures = carry->before;
}

int rp_carry_batch(struct rp_carry *carry, struct rp_command *command, struct rp_error *err)
{
    carry->before = carry->run->figures;
    int r = rp_command_run(carry->catalog, command);
    if (r == 0) return 0;
    rp_carry_rewind(carry);
    *err = command->error;
    return r;
}

/* ---- end ---- */

/* NULL: it stays open. */
static const char *outcome_of(const struct rp_carry *carry, int r, const char *through)
{
    const struct rp_run *run = carry->run;
    if (run->lost || (rp_error_retry(r) && rp_run_is_resumed(run->kind))) return NULL;
    if (r < 0) return "failed";
    if (through != NULL) return through;
    return is_cancelled(carry) ? "cancelled" : NULL;
}

static void tell_end(const struct rp_carry *carry, const char *outcome, const struct rp_error *err)
{
    const struct rp_catalog *catalog = carry->catalog;
    struct rp_journal j = { .log = catalog->log, .at_ms = rp_clock_now_ms(catalog->clock), .actor = carry->actor };
    if (outcome == NULL || strcmp(outcome, "failed") == 0)
        rp_journal_failed(&j, carry->run->kind, carry->run, err);
    else
        rp_journal_ended(&j, carry->run, outcome, 0);
}

int rp_carry_end(const struct rp_carry *carry, int r, const char *through, const char **outcome, struct rp_error *err)
{
    struct rp_run *run = carry->run;
    struct rp_error ignored = { 0 };
    const char *how = outcome_of(carry, r, through);
    if (how != NULL && r < 0) rp_figures_error(&run->figures, "%s", err->text);
    if (how != NULL) {
        int ended = rp_run_end(carry->catalog, run, how, r < 0 ? &ignored : err);
        if (ended < 0) how = NULL;
        if (r == 0) r = ended;
    } else if (!run->lost) {
        (void)rp_run_leave(carry->catalog, run, &ignored);
    }
    if (carry->actor != NULL && (how != NULL || r < 0)) tell_end(carry, how, err);
    *outcome = how;
    return how != NULL ? 0 : r;
}
