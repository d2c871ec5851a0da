/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_version.c - `version` and `migrate`: which program, which schema. */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "cli/cli.h"
#include "reprieve.h"

#include <libpq-fe.h>
#include <openssl/crypto.h>
#include <sqlite3.h>
#include <yaml.h>

int rp_cmd_version(struct rp_cli *cli, struct rp_error *err)
{
    int pq = PQlibVersion();
    (void)err;
    if (!cli->json) {
        rp_say(cli, "reprieve %s, catalog schema %d\n", reprieve_version(), rp_catalog_schema_known());
        rp_say(cli, "sqlite %s, libpq %d.%d, jansson %s, libyaml %s, %s\n", sqlite3_libversion(), pq / 10000,
               pq % 10000, jansson_version_str(), yaml_get_version_string(), OpenSSL_version(OPENSSL_VERSION));
    }
    json_t *o = json_object();
    rp_json_set(o, "version", json_string(reprieve_version()));
    rp_json_set(o, "schema", json_integer(rp_catalog_schema_known()));
    rp_json_set(o, "sqlite", json_string(sqlite3_libversion()));
    rp_json_set(o, "libpq", json_sprintf("%d.%d", pq / 10000, pq % 10000));
    rp_json_set(o, "jansson", json_string(jansson_version_str()));
    rp_json_set(o, "libyaml", json_string(yaml_get_version_string()));
    rp_json_set(o, "openssl", json_string(OpenSSL_version(OPENSSL_VERSION_STRING)));
    rp_emit(cli, o);
    return 0;
}

/* The schema as it stands, by a connection that cannot change anything. */
static int schema_now(struct rp_cli *cli, int *out, struct rp_error *err)
{
    struct rp_session_options options = rp_cli_options(cli);
    struct rp_db_options read_only = { .read_only = true };
    RP_CLEANUP(rp_db_closep) struct rp_db *db = NULL;
    options.no_catalog = true;
    int r = rp_session_open(&cli->session, &options, err);
    if (r == 0) r = rp_db_open(cli->session.config.catalog_url, &read_only, &db, err);
    if (r == RP_ENOTFOUND) {
        *out = 0; /* there is none yet: the first use makes it */
        return 0;
    }
    if (r == 0) r = rp_catalog_schema_of(db, out, err);
    return r < 0 ? rp_error_wrap(err, r, "open catalog") : 0;
}

int rp_cmd_migrate(struct rp_cli *cli, struct rp_error *err)
{
    int from = 0, to = rp_catalog_schema_known();
    bool dry_run = rp_args_has(&cli->args, "dry-run");
    int r = schema_now(cli, &from, err);
    rp_session_close(&cli->session);
    if (r < 0) return r;
    if (from > to)
        return rp_error_advise(err, RP_ESCHEMA,
                               "a newer reprieve has changed it: upgrade this one; nothing was touched",
                               "the catalog is at schema %d, this reprieve knows %d", from, to);
    if (!dry_run) {
        struct rp_session_options options = rp_cli_options(cli);
        options.migrate = true;
        r = rp_session_open(&cli->session, &options, err);
        if (r < 0) return r;
    }
    rp_emit(cli, json_pack("{s:i,s:i,s:b}", "from", from, "to", to, "dry_run", dry_run));
    if (cli->json) return 0;
    if (from == to)
        rp_say(cli, "the catalog is at schema %d already\n", to);
    else
        rp_say(cli, dry_run ? "the catalog would go from schema %d to %d\n" : "the catalog went from schema %d to %d\n",
               from, to);
    return 0;
}
