/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/mark/confirmation.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/id.h"
#include "catalog/row.h"
#include "catalog/statements/statements.h"

#include <string.h>

static int confirmation_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct rp_confirmations *out = ctx;
    bool failed = false;
    if (out->n == out->max)
        return rp_error_set(err, RP_ECORRUPT, "a mark has more confirmations than %d", RP_CONFIRMATIONS_EACH);
    struct rp_confirmation c = {
        .id = v[0].i,
        .mark_id = v[1].i,
        .ordinal = v[2].i,
        .name = rp_row_keep(out->arena, &v[3], &failed),
        .state = (enum rp_confirmation_state)v[4].i,
        .attempts = v[5].i,
        .asked_at_ms = v[6].i,
        .until_at_ms = v[7].i,
        .answered_at_ms = v[8].i,
        .note = rp_row_keep(out->arena, &v[9], &failed),
    };
    if (failed) return rp_error_set(err, RP_ENOMEM, "no memory for a confirmation");
    if (c.state < RP_CONFIRM_PENDING || c.state >= RP_CONFIRM_STATES)
        return rp_error_set(err, RP_ECORRUPT, "a confirmation is in no state we know (%d)", (int)c.state);
    out->at[out->n++] = c;
    return 0;
}

int rp_confirmations_add(struct rp_tx *tx, const struct rp_confirmation *rows, size_t n, struct rp_error *err)
{
    struct rp_rows values = rp_rows_of(RP_SQL(confirmation_add), tx->arena, n);
    for (size_t i = 0; i < n; i++) {
        rp_rows_add(&values, RP_ROW(rp_int(rows[i].id), rp_int(rows[i].mark_id), rp_int(rows[i].ordinal),
                                    rp_text(rows[i].name)));
    }
    int r = rp_rows_exec(&values, tx->db, NULL, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "add confirmations") : 0;
}

int rp_confirmations_save(struct rp_tx *tx, const struct rp_confirmation *rows, size_t n, struct rp_error *err)
{
    struct rp_rows values = rp_rows_of(RP_SQL(confirmation_save), tx->arena, n);
    for (size_t i = 0; i < n; i++) {
        const struct rp_confirmation *c = &rows[i];
        rp_rows_add(&values, RP_ROW(rp_int(c->id), rp_int(c->state), rp_int(c->attempts),
                                    rp_int_or_null(c->asked_at_ms != 0, c->asked_at_ms),
                                    rp_int_or_null(c->until_at_ms != 0, c->until_at_ms),
                                    rp_int_or_null(c->answered_at_ms != 0, c->answered_at_ms),
                                    rp_row_words(tx->arena, c->note)));
    }
    int r = rp_rows_exec(&values, tx->db, NULL, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "save confirmations") : 0;
}

int rp_confirmations_forget(struct rp_tx *tx, int64_t store_id, struct rp_error *err)
{
    struct rp_value arg = rp_int(store_id);
    int r = rp_db_exec(tx->db, RP_SQL(confirmation_forget), &arg, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "forget what services have said") : 0;
}

int rp_confirmations_of(struct rp_db *db, const int64_t *mark_ids, size_t n, struct rp_arena *arena,
                        struct rp_confirmations *out, struct rp_error *err)
{
    size_t max = n * RP_CONFIRMATIONS_EACH + 1;
    *out = (struct rp_confirmations){ .at = rp_arena_array(arena, max, sizeof *out->at), .max = max, .arena = arena };
    if (out->at == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for confirmations");
    struct rp_rows rows = rp_rows_of_ids(RP_SQL(confirmation_of), arena, mark_ids, n);
    int r = rp_rows_query(&rows, db, NULL, confirmation_row, out, err);
    return r < 0 ? rp_error_wrap(err, r, "load confirmations") : 0;
}

int rp_confirmation_get(struct rp_db *db, int64_t id, struct rp_arena *arena, struct rp_confirmation *out,
                        struct rp_error *err)
{
    struct rp_value arg = rp_int(id);
    struct rp_confirmations one = { .at = out, .max = 1, .arena = arena };
    char text[RP_ID_TEXT];
    int r = rp_db_query(db, RP_SQL(confirmation_get), &arg, confirmation_row, &one, err);
    if (r < 0 || one.n > 0) return r;
    return rp_error_set(err, RP_ENOTFOUND, "no confirmation %s", rp_id_format(RP_ID_CONFIRMATION, id, text));
}

int rp_attempts_add(struct rp_tx *tx, const struct rp_attempt *attempts, size_t n, struct rp_error *err)
{
    const struct rp_value kept = rp_int(RP_ATTEMPTS_KEPT);
    struct rp_rows rows = rp_rows_of(RP_SQL(attempt_add), tx->arena, n);
    for (size_t i = 0; i < n; i++) {
        const struct rp_attempt *a = &attempts[i];
        rp_rows_add(&rows, RP_ROW(rp_int(a->mark_id), rp_int(a->ordinal), rp_int(a->at_ms), rp_int(a->status),
                                  rp_text(a->body), rp_text(a->error)));
    }
    int r = rp_rows_exec(&rows, tx->db, &kept, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "note attempts") : 0;
}

struct each {
    int64_t mark_id;
    rp_attempt_fn *fn;
    void *ctx;
};

static int attempt_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    const struct each *each = ctx;
    const struct rp_attempt attempt = { .mark_id = each->mark_id,
                                        .ordinal = v[0].i,
                                        .n = v[1].i,
                                        .at_ms = v[2].i,
                                        .status = v[3].i,
                                        .body = v[4].p,
                                        .error = v[5].p };
    return each->fn(each->ctx, &attempt, err);
}

int rp_attempts_each(struct rp_db *db, int64_t mark_id, rp_attempt_fn *fn, void *ctx, struct rp_error *err)
{
    struct rp_value arg = rp_int(mark_id);
    struct each each = { .mark_id = mark_id, .fn = fn, .ctx = ctx };
    int r = rp_db_query(db, RP_SQL(attempts_of), &arg, attempt_row, &each, err);
    return r < 0 ? rp_error_wrap(err, r, "load attempts") : 0;
}
