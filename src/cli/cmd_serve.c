/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_serve.c - `serve`: the daemon, and what it says when it is up. */
#include "base/text/json.h"
#include "cli/cli.h"
#include "daemon/daemon.h"

#include <stdio.h>

static void emit_ready(const struct rp_cli *cli, const struct rp_daemon_ready *ready)
{
    json_t *o = rp_json_object("url", rp_json_text(ready->url), "node", rp_json_text(ready->node), NULL);
    if (ready->token_file != NULL) rp_json_set(o, "token_file", rp_json_text(ready->token_file));
    if (ready->sign_in != NULL) rp_json_set(o, "sign_in", rp_json_text(ready->sign_in));
    rp_emit(cli, o);
}

static void say_first(const struct rp_cli *cli, const struct rp_daemon_ready *ready)
{
    rp_say(cli,
           "\nSign in with a browser, once, within 15 minutes (it shows a plain page; the web console comes later):\n"
           "  %s\n\n"
           "The admin token is kept in %s. Try it:\n"
           "  TOKEN=$(cat %s)\n"
           "  curl -H \"Authorization: Bearer $TOKEN\" %s/v1/stores\n"
           "  curl -H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json' \\\n"
           "       -d '{\"name\":\"hello.txt\",\"size\":6}' %s/v1/files\n\n"
           "Everything that can be asked: %s/openapi.json\n",
           ready->sign_in, ready->token_file, ready->token_file, ready->url, ready->url, ready->url);
}

static void say_ready(void *ctx, const struct rp_daemon_ready *ready)
{
    const struct rp_cli *cli = ctx;
    emit_ready(cli, ready);
    rp_say(cli, "Reprieve serves %s\n", ready->url);
    if (ready->sign_in != NULL)
        say_first(cli, ready);
    else if (ready->token_file != NULL)
        rp_say(cli, "The admin token is in %s; `reprieve token link` gives a new link to sign in with.\n",
               ready->token_file);
    else if (ready->no_token)
        rp_say(cli, "Nobody has a token yet: `reprieve token create NAME` makes one.\n");
    if (ready->log_file[0] == 0)
        rp_say(cli, "No log is written: log.file in the configuration names one.\n");
    else if (ready->log_file[0] != '-')
        rp_say(cli, "The log is %s\n", ready->log_file);
    rp_say(cli, "Ctrl-C stops it.\n");
    fflush(stdout);
}

int rp_cmd_serve(struct rp_cli *cli, struct rp_error *err)
{
    struct rp_daemon_options options = { .config_file = rp_args_text(&cli->args, "config"),
                                         .data = rp_args_text(&cli->args, "data"),
                                         .ready = say_ready,
                                         .ctx = cli };
    int r = rp_daemon_serve(&options, err);
    if (r == 0 && !cli->json) rp_say(cli, "stopped\n");
    return r;
}
