/* SPDX-License-Identifier: Apache-2.0 */
/* who.c - which services are to be asked about a mark, from its birth on; and anew, when a dead
 * letter is retried. */
#include "base/cleanup.h"
#include "base/text/buf.h"
#include "core/confirm/confirm.h"

#include <string.h>

static int refuse_unknown(const struct rp_config *config, const char *name, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf known = RP_BUF(2048);
    for (size_t i = 0; config != NULL && i < config->n_confirmers; i++)
        rp_buf_fmt(&known, "%s%s", i > 0 ? ", " : "", config->confirmers[i].name);
    rp_error_set(err, RP_EINVAL, "confirmations: no service '%.63s' is configured", name);
    if (known.len == 0)
        return rp_error_hint(err, "nothing was marked; name it under confirmations in the configuration");
    return rp_error_hint(err, "nothing was marked; there are: %.200s; a daemon learns of a new one when it starts",
                         rp_buf_text(&known));
}

static bool is_named(const struct rp_confirmer_list *by, const char *name)
{
    for (size_t i = 0; by != NULL && i < by->n; i++)
        if (strcmp(by->at[i]->name, name) == 0) return true;
    return false;
}

/* C11 */
static void add_those(const struct rp_confirmer_list *from, enum rp_confirm_when when, struct rp_confirmer_list *out)
{
    for (size_t i = 0; i < from->n; i++)
        if (from->at[i]->when == when) out->at[out->n++] = from->at[i];
}

int rp_confirmers_find(const struct rp_config *config, const char *const *names, size_t n,
                       struct rp_confirmer_list *out, struct rp_error *err)
{
    struct rp_confirmer_list by = { 0 };
    for (size_t i = 0; i < n; i++) {
        const struct rp_confirmer_config *one = config != NULL ? rp_config_confirmer(config, names[i]) : NULL;
        if (one == NULL) return refuse_unknown(config, names[i], err);
        if (is_named(&by, one->name)) continue;
        if (by.n == RP_CONFIRMATIONS_EACH)
            return rp_error_set(err, RP_EINVAL, "confirmations: more than %d", RP_CONFIRMATIONS_EACH);
        by.at[by.n++] = one;
    }
    *out = (struct rp_confirmer_list){ 0 };
    add_those(&by, RP_CONFIRM_NOW, out);
    add_those(&by, RP_CONFIRM_DUE, out);
    return 0;
}

int rp_confirmers_of(struct rp_db *db, int64_t mark_id, struct rp_arena *arena, const struct rp_confirmer_list **out,
                     struct rp_error *err)
{
    struct rp_confirmations all;
    int r = rp_confirmations_of(db, &mark_id, 1, arena, &all, err);
    if (r < 0) return r;
    *out = NULL;
    if (all.n == 0) return 0;
    struct rp_confirmer_list *by = rp_arena_alloc(arena, sizeof *by);
    struct rp_confirmer_config *each = rp_arena_array(arena, all.n, sizeof *each);
    if (by == NULL || each == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    *by = (struct rp_confirmer_list){ 0 };
    for (size_t i = 0; i < all.n && by->n < RP_CONFIRMATIONS_EACH; i++) {
        each[i] = (struct rp_confirmer_config){ .name = all.at[i].name, .when = RP_CONFIRM_DUE };
        by->at[by->n++] = &each[i];
    }
    *out = by;
    return 0;
}

int64_t rp_confirmers_next_at(const struct rp_confirmer_list *by, int64_t due_at_ms, int64_t now_ms)
{
    for (size_t i = 0; i < by->n; i++)
        if (by->at[i]->when == RP_CONFIRM_NOW) return now_ms;
    return due_at_ms;
}

int rp_confirmers_within(const struct rp_confirmer_list *has, const struct rp_confirmer_list *by, struct rp_error *err)
{
    for (size_t i = 0; i < by->n; i++) {
        const char *name = by->at[i]->name;
        if (is_named(has, name)) continue;
        rp_error_set(err, RP_EMARKED, "it is already marked, without the confirmation '%s'", name);
        return rp_error_hint(err, "restore it and mark it again");
    }
    return 0;
}

int rp_confirmers_same(struct rp_db *db, int64_t mark_id, const struct rp_confirmer_list *by, struct rp_arena *arena,
                       struct rp_error *err)
{
    const struct rp_confirmer_list *has = NULL;
    int r = by->n > 0 ? rp_confirmers_of(db, mark_id, arena, &has, err) : 0;
    return r < 0 ? r : rp_confirmers_within(has, by, err);
}

int rp_confirmers_add(struct rp_tx *tx, int64_t mark_id, const struct rp_confirmer_list *by, struct rp_error *err)
{
    struct rp_confirmation rows[RP_CONFIRMATIONS_EACH];
    for (size_t i = 0; i < by->n; i++)
        rows[i] = (struct rp_confirmation){
            .id = rp_tx_new_id(tx), .mark_id = mark_id, .ordinal = (int64_t)i, .name = by->at[i]->name
        };
    return rp_confirmations_add(tx, rows, by->n, err);
}

int rp_confirmations_renew(struct rp_tx *tx, int64_t mark_id, struct rp_error *err)
{
    struct rp_confirmations all;
    int r = rp_confirmations_of(tx->db, &mark_id, 1, tx->arena, &all, err);
    size_t n = 0;
    for (size_t i = 0; i < all.n && r == 0; i++) {
        if (all.at[i].state == RP_CONFIRM_YES) continue;
        all.at[n] = all.at[i];
        all.at[n].state = RP_CONFIRM_PENDING;
        all.at[n].attempts = all.at[n].until_at_ms = 0;
        n++;
    }
    return r < 0 ? r : rp_confirmations_save(tx, all.at, n, err);
}
