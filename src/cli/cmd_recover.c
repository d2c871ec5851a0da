/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_recover.c - `recover`: a store whose owner record does not fit this catalog is taken over,
 * after a look at it. `recover --moved`: a catalog that was moved elsewhere and has lost
 * nothing. */
#include "base/text/json.h"
#include "cli/cli.h"
#include "core/owner/refuse.h"
#include "core/recover/recover.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static json_t *recovery_json(const char *store, const struct rp_recovery *rec, bool dry_run)
{
    json_t *o = json_object();
    rp_json_set(o, "store", json_string(store));
    rp_json_set(o, "was", json_string(rp_ownership_text(rec->before.ownership)));
    rp_json_set(o, "owner_before", rp_json_text(rec->before.catalog));
    rp_json_set(o, "environment_before", rp_json_text(rec->before.environment));
    rp_json_set(o, "epoch_before", json_integer(rec->before.epoch));
    rp_json_set(o, "catalog_epoch", json_integer(rec->before.catalog_epoch));
    rp_json_set(o, "waiting", json_integer(rec->waiting));
    rp_json_set(o, "present", json_integer(rec->present));
    rp_json_set(o, "changed", json_integer(rec->changed));
    rp_json_set(o, "missing", json_integer(rec->missing));
    rp_json_set(o, "not_seen", json_integer(rec->not_seen));
    rp_json_set(o, "reprieved", json_integer(rec->reprieved));
    rp_json_set(o, "dry_run", json_boolean(dry_run));
    return o;
}

/* A backup from before a rename knows this store by its old name. */
static void say_others(struct rp_cli *cli, const char *store)
{
    const struct rp_session *s = &cli->session;
    struct rp_store_rows rows = { 0 };
    struct rp_error ignored = { 0 };
    if (rp_store_list(s->catalog->db, &cli->session.arena, &rows, &ignored) < 0) return;
    for (size_t i = 0; i < rows.n; i++) {
        struct rp_store_uses uses = { .holds = 0 };
        const char *name = rows.at[i].name;
        if (rp_config_store(&s->config, name) != NULL) continue;
        if (rp_store_uses(s->catalog->db, rows.at[i].id, &uses, &ignored) < 0 || (uses.holds == 0 && !uses.files))
            continue;
        rp_say(cli,
               "  '%s' is not configured, and has holds or files that would not cover '%s': if they are one store,\n"
               "  run `reprieve stores rename %s %s` first\n",
               name, store, name, store);
    }
}

static void say_findings(struct rp_cli *cli, const char *store, const struct rp_recovery *rec)
{
    const struct rp_owner *o = &rec->before;
    char when[RP_WHEN_TEXT], shown[RP_SHOWN_MAX];
    rp_say(cli, "store '%s': %s\n", store, rp_ownership_text(o->ownership));
    if (o->catalog[0] != 0)
        rp_say(cli, "  its record names catalog %s at epoch %" PRId64 "; this catalog is at %" PRId64 "\n",
               rp_show(o->catalog, shown), o->epoch, o->catalog_epoch);
    if (o->environment[0] != 0) rp_say(cli, "  environment of the record: %s\n", rp_show(o->environment, shown));
    if (o->written_at_ms != 0)
        rp_say(cli, "  written %s\n", rp_show_when(o->written_at_ms, rp_session_now_ms(&cli->session), when));
    rp_say(cli, "  %" PRId64 " %s here: %" PRId64 " %s as marked, %" PRId64 " changed, %" PRId64 " gone\n",
           rec->waiting, rec->waiting == 1 ? "mark waits" : "marks wait", rec->present,
           rec->present == 1 ? "object" : "objects", rec->changed, rec->missing);
    if (rec->not_seen > 0) rp_say(cli, "  %" PRId64 " of them could not be looked at\n", rec->not_seen);
    say_others(cli, store);
    rp_say(
        cli,
        "recovering reprieves these marks (a restore made after the backup cannot be seen in it); deleted files and\n"
        "what lies in quarantine wait for their whole time again. It finishes purges that had begun, and writes the\n"
        "owner record anew for this catalog\n");
}

static void say_move(const struct rp_cli *cli, const char *store, enum rp_ownership was)
{
    rp_say(cli,
           "store '%s': %s\nnoting that it moved keeps all marks: say so only if this catalog has everything that was "
           "ever\nacknowledged; after a backup was put back, or a standby was promoted that may lack the last "
           "seconds,\nrun `reprieve recover %s` instead\n",
           store, rp_ownership_text(was), store);
}

/* On a terminal a person is asked; a program must say --yes. */
static int confirm(const struct rp_cli *cli, const char *store, struct rp_error *err)
{
    char answer[16] = "";
    if (rp_args_has(&cli->args, "yes")) return 0;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return rp_error_advise(err, RP_EINVAL, "say --yes to go on, or --dry-run to look first",
                               "recover '%s': nobody can be asked here", store);
    fflush(stdout);
    fprintf(stderr, "Recover store '%s' (environment %s)? Type yes: ", store, cli->session.config.environment);
    if (fgets(answer, sizeof answer, stdin) != NULL && strcmp(answer, "yes\n") == 0) return 0;
    return rp_error_set(err, RP_EFAILED, "not confirmed: nothing was changed");
}

/* What would be done, and why. */
static int look(struct rp_cli *cli, struct rp_store *store, bool moved, struct rp_recovery *rec, struct rp_error *err)
{
    struct rp_session *s = &cli->session;
    if (!moved) return rp_owner_recover(s->catalog, store, s->config.environment, s->actor, true, rec, err);
    int r = rp_owner_look(s->catalog, store, &rec->before, err);
    return r < 0 ? r : rp_owner_refuse_others(s->catalog, store, &rec->before, err);
}

static int act(struct rp_cli *cli, struct rp_store *store, bool moved, struct rp_recovery *rec, struct rp_error *err)
{
    struct rp_session *s = &cli->session;
    const char *name = store->config->name;
    int r = moved ? rp_owner_accept_move(s->catalog, store, s->config.environment, s->actor, &rec->before, err)
                  : rp_owner_recover(s->catalog, store, s->config.environment, s->actor, false, rec, err);
    if (r < 0) return r;
    json_t *o = recovery_json(name, rec, false);
    rp_json_set(o, "actor", rp_json_text(s->actor));
    rp_session_log(s, RP_LOG_WARNING, moved ? "store.moved" : "store.recovered", o);
    rp_emit(cli, recovery_json(name, rec, false));
    if (cli->json) return 0;
    if (moved)
        rp_say(cli, "noted: the store is ours again\n");
    else
        rp_say(cli, "recovered: %" PRId64 " %s reprieved; the store is ours again\n", rec->reprieved,
               rec->reprieved == 1 ? "mark" : "marks");
    return 0;
}

int rp_cmd_recover(struct rp_cli *cli, struct rp_error *err)
{
    struct rp_store *store;
    struct rp_recovery rec = { 0 };
    bool moved = rp_args_has(&cli->args, "moved"), dry_run = rp_args_has(&cli->args, "dry-run");
    int r = rp_cli_open(cli, err);
    if (r == 0) r = rp_session_store(&cli->session, cli->args.words[0], &store, err);
    if (r != 0) return r;
    const char *name = store->config->name;
    if (store->config->mode == RP_MODE_OBSERVE)
        return rp_error_set(err, RP_EOBSERVE, "store '%s' is in mode observe: it has no owner record of ours", name);
    r = look(cli, store, moved, &rec, err);
    if (r < 0) return r;
    enum rp_ownership was = rec.before.ownership;
    bool fine = was == RP_OWNER_OURS || was == RP_OWNER_NONE;
    if (!fine && moved && !rp_ownership_is_moved(was)) return act(cli, store, moved, &rec, err); /* which refuses it */
    if (fine && !cli->json)
        rp_say(cli, "nothing to recover: store '%s' is %s\n", name, rp_ownership_text(was));
    else if (!fine && moved)
        say_move(cli, name, was);
    else if (!fine)
        say_findings(cli, name, &rec);
    if (fine || dry_run) {
        rp_emit(cli, recovery_json(name, &rec, true));
        return 0;
    }
    r = confirm(cli, name, err);
    return r < 0 ? r : act(cli, store, moved, &rec, err);
}
