/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - one call of the command line: what was asked, the session it opens, and how it talks.
 *
 * L1  People's text goes to standard output; with --json it goes to standard error, and standard
 *     output carries JSON alone, one document a line. --quiet leaves out what is neither asked for
 *     nor wrong.
 * L2  Texts from outside (keys, reasons, errors) are shown with control characters escaped: a key
 *     never writes to the terminal. JSON carries them whole.
 * L3  A time is shown as RFC 3339 UTC and how far away it is. */
#ifndef RP_CLI_CLI_H
#define RP_CLI_CLI_H

#include "base/error.h"
#include "base/id.h"
#include "catalog/mark/mark.h"
#include "catalog/writer/writer.h"
#include "cli/options.h"
#include "core/state.h"
#include "lib/session.h"

#include <jansson.h>
#include <signal.h>

struct rp_cli {
    struct rp_args args;
    bool json, quiet;
    bool patient; /* what it asks of the catalog may take minutes */
    struct rp_session session;
};

/* The session by --config and --data. Closed by main. */
struct rp_session_options rp_cli_options(const struct rp_cli *cli);
int rp_cli_open(struct rp_cli *cli, struct rp_error *err);

/* ---- talking ---- */

#define RP_SHOWN_MAX 4200 /* bytes for any shown text: each byte of a key may become four */
#define RP_WHEN_TEXT 80
#define RP_SIZE_TEXT 32

void rp_say(const struct rp_cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Beside what was asked for, which another program may be reading: there on a terminal, else on
 * standard error. */
void rp_say_beside(const struct rp_cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void rp_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* "reprieve: ..." on standard error */
/* One line of JSON on standard output; steals the value. Does nothing without --json. */
void rp_emit(const struct rp_cli *cli, json_t *value);
/* The one or the other: the value, which is stolen, with --json; else the words. */
void rp_tell(const struct rp_cli *cli, json_t *value, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* An error as L1 wants it. Returns the exit code. */
int rp_report(const struct rp_cli *cli, const struct rp_error *err);

/* Each writes into `out` and returns it. */
const char *rp_show(const char *text, char out[RP_SHOWN_MAX]);
const char *rp_show_subject(const char *store, const char *key, char out[RP_SHOWN_MAX]);
const char *rp_show_when(int64_t ms, int64_t now_ms, char out[RP_WHEN_TEXT]);
const char *rp_show_size(int64_t bytes, char out[RP_SIZE_TEXT]);

/* ---- subjects and stores ---- */

/* Names of stores by their id, also of stores that are no longer configured. */
struct rp_names {
    struct rp_store_rows stores;
};
int rp_names_load(struct rp_cli *cli, struct rp_names *out, struct rp_error *err);
const char *rp_names_of(const struct rp_names *names, int64_t store_id);

/* Opens the store that a mark is of. */
int rp_cli_store_of(struct rp_cli *cli, int64_t store_id, struct rp_store **out, struct rp_error *err);
/* STORE:KEY, or the id of a mark or a file: then store and key are that one's, the key in the
 * arena, and its id stays set. */
int rp_cli_subject(struct rp_cli *cli, const char *text, struct rp_arena *arena, struct rp_subject *out,
                   struct rp_error *err);
/* STORE:PREFIX, where the prefix may be empty. */
int rp_cli_prefix(struct rp_cli *cli, const char *text, struct rp_subject *out, struct rp_error *err);
/* Refuses keys under .reprieve/ */
int rp_cli_foreign_key(const struct rp_subject *subject, struct rp_error *err);
/* The number of an id of one kind: run_..., hld_..., ded_... */
int rp_cli_id(const char *text, enum rp_id_kind kind, int64_t *out, struct rp_error *err);
/* Runs a command in the name of whoever calls. Its error is `err`. */
int rp_cli_run(struct rp_cli *cli, struct rp_command *command, struct rp_error *err);

/* SIGINT and SIGTERM set the flag, once: a second one ends the process. `flags`: of sigaction,
 * beside SA_RESETHAND. */
extern volatile sig_atomic_t rp_stop_asked;
void rp_catch_signals(int flags);

/* Runs the command of the line, or the verb of it that its first word names, once the line is what
 * its row allows. */
int rp_cli_dispatch(struct rp_cli *cli, struct rp_error *err);

#endif
