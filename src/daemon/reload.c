/* SPDX-License-Identifier: Apache-2.0 */
/* reload.c - SIGHUP: the configuration is read again, what can change is handed to every part, what
 * cannot is named. */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "core/check/references.h"
#include "daemon/inner.h"

#include <stdlib.h>
#include <string.h>

#define SETUP_ARENA_MAX ((size_t)8 << 20)
#define NAMES_MAX       4096

const struct rp_config *rp_daemon_config(const struct rp_daemon *d)
{
    return d->setups != NULL ? &d->setups->config : &d->session.config;
}

static const struct rp_store *stores_of(const struct rp_daemon *d)
{
    return d->setups != NULL ? d->setups->stores : d->session.stores;
}

static void free_setup(struct rp_setup *setup)
{
    rp_arena_done(&setup->arena);
    free(setup);
}

void rp_daemon_forget_setups(struct rp_daemon *d)
{
    while (d->setups != NULL) {
        struct rp_setup *setup = d->setups;
        d->setups = setup->before;
        free_setup(setup);
    }
}

static int load_setup(struct rp_daemon *d, struct rp_config_change *change, struct rp_setup **out, struct rp_error *err)
{
    struct rp_setup *setup = calloc(1, sizeof *setup);
    if (setup == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the configuration");
    setup->arena = RP_ARENA(SETUP_ARENA_MAX);
    int r = rp_config_load(d->options->config_file, d->options->data, &setup->arena, &setup->config, err);
    if (r < 0) {
        free_setup(setup);
        return r;
    }
    rp_config_reload(&setup->config, rp_daemon_config(d), change);
    /* the open stores are the same; only what is said about them is new */
    memcpy(setup->stores, stores_of(d), setup->config.n_stores * sizeof setup->stores[0]);
    for (size_t i = 0; i < setup->config.n_stores; i++) {
        setup->stores[i].config = &setup->config.stores[i];
        setup->stores[i].environment = setup->config.environment;
        rp_references_allow(setup->stores[i].references, setup->config.outbound_allow);
    }
    *out = setup;
    return 0;
}

static void reopen_log(struct rp_daemon *d, const struct rp_config *config)
{
    enum rp_log_level level;
    struct rp_error why = { 0 };
    int r = rp_log_level_parse(config->log_level, &level, &why);
    if (r == 0 && d->session.log != NULL) r = rp_log_reopen(d->session.log, config->log_file, level, &why);
    if (r == 0) return;
    rp_daemon_log(d, RP_LOG_ERROR, "daemon.log_not_reopened", rp_json_object("error", rp_json_text(why.text), NULL));
}

static void hand_out(struct rp_daemon *d, struct rp_setup *setup)
{
    setup->before = d->setups;
    d->setups = setup;
    rp_server_configure(d->server, &setup->config, setup->stores);
    rp_watch_configure(d->sweeper, &setup->config);
    rp_watch_configure(d->asker, &setup->config);
    rp_runs_configure(d->runs, &setup->config);
    for (size_t i = 0; i < RP_WATCHES; i++)
        rp_watch_configure(d->watches[i], &setup->config);
    rp_raiser_configure(d->raiser, &setup->config);
    rp_sinks_configure(d->sinks, &setup->config);
    rp_processor_configure(d->processor, &setup->config);
}

static void tell(struct rp_daemon *d, struct rp_config_change *change)
{
    rp_daemon_log(d, RP_LOG_INFO, "daemon.reloaded",
                  rp_json_object("changed", rp_json_text(rp_buf_text(&change->taken)), NULL));
    if (change->needs_restart.len == 0) return;
    rp_daemon_log(d, RP_LOG_WARNING, "daemon.needs_restart",
                  rp_json_object("settings", rp_json_text(rp_buf_text(&change->needs_restart)), "note",
                                 json_string("changed in the file; needs a restart"), NULL));
}

void rp_daemon_reload(struct rp_daemon *d)
{
    struct rp_config_change change = { .taken = RP_BUF(NAMES_MAX), .needs_restart = RP_BUF(NAMES_MAX) };
    struct rp_setup *setup = NULL;
    struct rp_error why = { 0 };
    int r = load_setup(d, &change, &setup, &why);
    reopen_log(d, r == 0 ? &setup->config : rp_daemon_config(d));
    if (r < 0) {
        rp_daemon_log(d, RP_LOG_ERROR, "daemon.reload_failed",
                      rp_json_object("error", rp_json_text(why.text), "note",
                                     json_string("the configuration in force stays as it was"), NULL));
    } else {
        hand_out(d, setup);
        tell(d, &change);
    }
    rp_buf_done(&change.taken);
    rp_buf_done(&change.needs_restart);
}
