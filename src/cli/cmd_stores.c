/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_stores.c - `stores`: what each store allows and guarantees, whose it is, and what waits
 * there; `stores rename`. */
#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "core/guarantee.h"
#include "core/owner/rename.h"
#include "lib/store_facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
    static const struct rp_column columns[] = { RP_COLUMN("STORE"),     RP_COLUMN("TYPE"),  RP_COLUMN("MODE"),
                                                RP_COLUMN("GUARANTEE"), RP_TEXTS("OWNER"),  RP_NUMBERS("WAITING"),
                                                RP_NUMBERS("DUE"),      RP_NUMBERS("BYTES") };
    RP_CLEANUP(rp_tallies_freep) struct rp_tallies *tallies = NULL;
    struct rp_list l;
    RP_LIST_INIT(&l, cli, columns, "no stores are configured");
    int r = rp_tallies_read(cli->session.catalog->db, &tallies, err);
    for (size_t i = 0; r == 0 && i < cli->session.config.n_stores; i++) {
        struct rp_store_facts f;
        r = look(cli, &cli->session.config.stores[i], tallies, &f, err);
        if (r == 0) show(&l, &f);
    }
    return rp_list_end(&l, r);
}

/* ---- rename ---- */

/* The configuration says the new name already. */
static int check_names(const struct rp_cli *cli, const char *from, const char *to, struct rp_error *err)
{
    const struct rp_config *config = &cli->session.config;
    if (strcmp(from, to) == 0) return rp_error_set(err, RP_EINVAL, "'%.64s' is the old name and the new one", from);
    if (rp_config_store(config, to) == NULL)
        return rp_error_advise(err, RP_ENOTFOUND, "first give the store its new name in the configuration",
                               "no store '%.64s' is configured", to);
    if (rp_config_store(config, from) != NULL)
        return rp_error_advise(err, RP_ECONFLICT, "first take the old name out of the configuration",
                               "store '%.64s' is still configured", from);
    return 0;
}

int rp_cmd_stores_rename(struct rp_cli *cli, struct rp_error *err)
{
    struct rp_rename_command c = { .command = { .verb = &rp_verb_store_rename },
                                   .from = cli->args.words[1],
                                   .to = cli->args.words[2],
                                   .dry_run = rp_args_has(&cli->args, "dry-run") };
    int r = check_names(cli, c.from, c.to, err);
    if (r == 0) r = rp_cli_run(cli, &c.command, err);
    if (r < 0) return r;
    rp_tell(cli, json_pack("{s:s,s:s,s:b}", "store", c.to, "was", c.from, "dry_run", c.dry_run),
            "store '%s' %s '%s', with its marks, files and holds\n", c.from, c.dry_run ? "would be" : "is now", c.to);
    if (!cli->json && !c.dry_run)
        rp_say(
            cli,
            "restart every daemon: one that has '%s' or '%s' open is not ready from now on, and purges nothing there\n",
            c.from, c.to);
    return 0;
}
