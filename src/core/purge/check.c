/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - marks in `checking` are asked about, and pass the point of no return or wait again. */
#include "base/crashpoint.h"
#include "core/purge/batch.h"
#include "core/state.h"

struct checking {
    struct rp_purge_batch *batch;
    struct rp_purge_rules *rules;
    const char *actor;
    const struct rp_mark **marks;
    struct rp_check_answer *answers;
    size_t n;
};

static int collect(struct checking *c, struct rp_error *err)
{
    struct rp_purge_batch *b = c->batch;
    c->marks = rp_arena_array(&b->arena, b->marks.n + 1, sizeof(struct rp_mark *));
    c->answers = rp_arena_array(&b->arena, b->marks.n + 1, sizeof *c->answers);
    if (c->marks == NULL || c->answers == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = 0; i < b->marks.n; i++)
        if (b->marks.at[i].state == RP_CHECKING) c->marks[c->n++] = &b->marks.at[i];
    return 0;
}

static int check_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct checking *c = ctx;
    struct rp_state_by by = { .store = c->batch->store->config->name, .actor = c->actor };
    struct rp_move *moves = rp_arena_array(tx->arena, c->n, sizeof *moves);
    if (moves == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    int r = rp_purge_take_tenants(tx, c->batch, 0, c->batch->marks.n, err);
    if (r < 0) return r;
    for (size_t i = 0; i < c->n; i++)
        moves[i] = rp_purge_decide_check(c->marks[i], &c->answers[i], c->rules, tx->late_ms, rp_purge_random(c->rules));
    r = rp_state_move(tx, &by, moves, c->n, err);
    for (size_t i = 0; i < c->n && r == 0; i++)
        rp_purge_item_of(c->batch, moves[i].mark)->move = moves[i];
    return r;
}

/* What was decided, and is committed. A move that was not made is another worker's business. */
static void take_answer(struct rp_purge_item *item, const struct rp_check_answer *answer)
{
    item->references = answer->references;
    if (item->move.done && item->move.to == RP_PURGING) {
        item->mark->state = RP_PURGING;
        return;
    }
    rp_purge_set_status(item, RP_ITEM_KEPT, "%s", answer->note);
}

int rp_purge_check(struct rp_catalog *catalog, struct rp_purge_rules *rules, const char *actor,
                   struct rp_purge_batch *batch, struct rp_error *err)
{
    struct checking c = { .batch = batch, .rules = rules, .actor = actor };
    int r = collect(&c, err);
    if (r < 0 || c.n == 0) return r;
    r = rp_check_ask(batch->store, c.marks, c.n, &batch->arena, c.answers, &batch->check_error);
    if (r == 0) rp_error_clear(&batch->check_error);
    r = rp_catalog_transact(catalog, check_tx, &c, err);
    if (r < 0) return rp_error_wrap(err, r, "check marks of store '%s'", batch->store->config->name);
    RP_CRASHPOINT("sweep.checked");
    for (size_t i = 0; i < c.n; i++)
        take_answer(rp_purge_item_of(batch, c.marks[i]), &c.answers[i]);
    return 0;
}
