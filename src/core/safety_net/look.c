/* SPDX-License-Identifier: Apache-2.0 */
/* look.c - one look of a step, with the names of the stores in it. */
#include "base/error.h"
#include "core/safety_net/inner.h"

#define NAMES_ARENA_MAX ((size_t)1 << 20)

int rp_net_looker_open(struct rp_net_looker *k, const struct rp_safety_net *net, struct rp_error *err)
{
    *k = (struct rp_net_looker){ .db = net->catalog->db,
                                 .arena = RP_ARENA(RP_CARRY_ARENA_MAX),
                                 .names = RP_ARENA(NAMES_ARENA_MAX) };
    int r = rp_store_list(k->db, &k->names, &k->rows, err);
    for (size_t i = 0; i < k->rows.n && r == 0; i++) {
        const struct rp_store_config *config =
            net->config != NULL ? rp_config_store(net->config, k->rows.at[i].name) : NULL;
        if (config == NULL) continue;
        struct rp_store *store = rp_arena_alloc(&k->names, sizeof *store);
        if (store == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the stores");
        *store = (struct rp_store){ .id = k->rows.at[i].id, .config = config };
        k->stores[k->n_stores++] = store;
    }
    return r;
}

void rp_net_looker_close(struct rp_net_looker *k)
{
    rp_arena_done(&k->arena);
    rp_arena_done(&k->names);
}

static const char *name_of(const struct rp_net_looker *k, int64_t store_id)
{
    for (size_t i = 0; i < k->rows.n; i++)
        if (k->rows.at[i].id == store_id) return k->rows.at[i].name;
    return "?";
}

int rp_net_look(struct rp_net_looker *k, const struct rp_net_step *step, struct rp_net_look *look,
                struct rp_orphans *out, struct rp_error *err)
{
    rp_arena_reset(&k->arena);
    int r = step->find(step, k->db, &k->arena, look, out, err);
    for (size_t i = 0; i < out->n && r == 0; i++) {
        out->at[i].store = name_of(k, out->at[i].store_id);
        out->at[i].what = step->what;
    }
    return r;
}
