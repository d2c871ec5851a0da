/* SPDX-License-Identifier: Apache-2.0 */
/* search.c - pages of the steps, with the names of the stores in them. */
#include "base/error.h"
#include "core/safety_net/steps.h"

#define NAMES_ARENA_MAX ((size_t)1 << 20)

int rp_net_search_open(struct rp_net_search *s, const struct rp_safety_net *net, struct rp_error *err)
{
    *s = (struct rp_net_search){ .db = net->catalog->db,
                                 .arena = RP_ARENA(RP_CARRY_ARENA_MAX),
                                 .names = RP_ARENA(NAMES_ARENA_MAX) };
    int r = rp_store_list(s->db, &s->names, &s->rows, err);
    for (size_t i = 0; i < s->rows.n && r == 0; i++) {
        const struct rp_store_config *config =
            net->config != NULL ? rp_config_store(net->config, s->rows.at[i].name) : NULL;
        if (config == NULL) continue;
        struct rp_store *store = rp_arena_alloc(&s->names, sizeof *store);
        if (store == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the stores");
        *store = (struct rp_store){ .id = s->rows.at[i].id, .config = config };
        s->stores[s->n_stores++] = store;
    }
    return r;
}

void rp_net_search_close(struct rp_net_search *s)
{
    rp_arena_done(&s->arena);
    rp_arena_done(&s->names);
}

static const char *name_of(const struct rp_net_search *s, int64_t store_id)
{
    for (size_t i = 0; i < s->rows.n; i++)
        if (s->rows.at[i].id == store_id) return s->rows.at[i].name;
    return "?";
}

int rp_net_find_page(struct rp_net_search *s, const struct rp_net_step *step, struct rp_net_page *page,
                     struct rp_orphans *out, struct rp_error *err)
{
    rp_arena_reset(&s->arena);
    int r = step->find(step, s->db, &s->arena, page, out, err);
    for (size_t i = 0; i < out->n && r == 0; i++) {
        out->at[i].store = name_of(s, out->at[i].store_id);
        out->at[i].what = step->what;
    }
    return r;
}
