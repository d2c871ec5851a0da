/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_stores.c - `stores`: what each store allows and guarantees, whose it is, and what waits
 * there. */
#include "base/cleanup.h"
#include "base/json.h"
#include "base/time.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "core/guarantee.h"
#include "lib/store_facts.h"

#include <inttypes.h>
#include <stdio.h>

static int look(struct rp_cli *cli, const struct rp_store_config *config, const struct rp_tallies *tallies,
                struct rp_store_facts *out, struct rp_error *err)
{
    struct rp_session *s = &cli->session;
    struct rp_store *store = NULL;
    struct rp_error why = { 0 };
    /* a bucket that nobody has probed yet is looked at; a canary is the doctor's and the sweep's */
    if (rp_session_store(s, config->name, &store, &why) == 0 &&
        rp_guarantee_ensure(s->catalog, store, RP_GUARANTEE_LOOK, &why) < 0)
        store = NULL;
    return rp_store_facts(s->catalog, config, store, &why, tallies, rp_session_now_ms(s), out, err);
}

static const char *guarantee_of(const struct rp_store_facts *f, char out[64])
{
    bool unprobed = !f->failed && rp_config_is_s3(f->config) && f->probed_at_ms == 0;
    snprintf(out, 64, "%s%s%s", f->guarantee, unprobed ? ", not probed" : "",
             f->changed_at_ms != 0 ? ", keys changed" : "");
    return out;
}

static void show(struct rp_list *l, const struct rp_store_facts *f)
{
    char waiting[24], due[24], size[RP_SIZE_TEXT], guarantee[64];
    snprintf(waiting, sizeof waiting, "%" PRId64, f->waiting);
    snprintf(due, sizeof due, "%" PRId64, f->due);
    const char *cells[] = { f->config->name,
                            f->config->type,
                            rp_mode_name(f->config->mode),
                            guarantee_of(f, guarantee),
                            f->failed ? f->error.text : f->owner,
                            waiting,
                            due,
                            rp_show_size(f->bytes, size) };
    rp_list_row(l, l->cli->json ? rp_store_facts_json(f) : NULL, cells);
}

int rp_cmd_stores(struct rp_cli *cli, struct rp_error *err)
{
    static const struct rp_column columns[] = { { "STORE", false, false }, { "TYPE", false, false },
                                                { "MODE", false, false },  { "GUARANTEE", false, false },
                                                { "OWNER", false, true },  { "WAITING", true, false },
                                                { "DUE", true, false },    { "BYTES", true, false } };
    RP_CLEANUP(rp_tallies_freep) struct rp_tallies *tallies = NULL;
    struct rp_list l;
    int r = rp_cli_open(cli, err);
    if (r < 0) return r;
    RP_LIST_INIT(&l, cli, columns, "no stores are configured");
    r = rp_tallies_read(cli->session.catalog->db, &tallies, err);
    for (size_t i = 0; r == 0 && i < cli->session.config.n_stores; i++) {
        struct rp_store_facts f;
        r = look(cli, &cli->session.config.stores[i], tallies, &f, err);
        if (r == 0) show(&l, &f);
    }
    return rp_list_end(&l, r);
}
