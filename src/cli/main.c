/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - from the command line to the command and its exit code. */
#include "cli/cli.h"
#include "cli/help.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int run_command(struct rp_cli *cli)
{
    struct rp_error err = { 0 };
    int r = rp_cli_dispatch(cli, &err);
    if (r >= 0) return r;
    err.code = r; /* the code that was returned is the one that counts */
    return rp_report(cli, &err);
}

/* An answer that nobody could read was not given. */
static int end_output(const struct rp_cli *cli, int code)
{
    struct rp_error err = { 0 };
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    rp_error_errno(&err, errno, "standard output");
    (void)rp_report(cli, &err);
    return code != 0 ? code : 1;
}

static void end_log(struct rp_cli *cli)
{
    rp_log_flush(cli->session.log);
    uint64_t lost = cli->session.log != NULL ? rp_log_lost(cli->session.log) : 0;
    if (lost > 0)
        rp_warn("%" PRIu64 " lines of the log could not be written to %s", lost, cli->session.config.log_file);
    rp_session_close(&cli->session);
}

static int run(struct rp_cli *cli, int argc, char **argv)
{
    struct rp_error err = { 0 };
    /* whoever asked for JSON is told of a wrong line in JSON, too */
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        cli->json = cli->json || strcmp(argv[i], "--json") == 0;
    int r = rp_args_parse(argc, argv, &cli->args, &err);
    if (r < 0) return rp_report(cli, &err);
    cli->json = rp_args_has(&cli->args, "json");
    cli->quiet = rp_args_has(&cli->args, "quiet");
    if (rp_args_has(&cli->args, "help")) return rp_help_print(cli->args.command, stdout);
    if (rp_args_has(&cli->args, "version")) return rp_cmd_version(cli, &err);
    if (cli->args.command != NULL) return run_command(cli);
    rp_help_print(NULL, stderr);
    return rp_error_exit(RP_EINVAL);
}

int main(int argc, char **argv)
{
    static struct rp_cli cli; /* too large for a comfortable stack */
    int code = run(&cli, argc, argv);
    code = end_output(&cli, code);
    end_log(&cli);
    rp_args_done(&cli.args);
    return code;
}
