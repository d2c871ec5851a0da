/* SPDX-License-Identifier: Apache-2.0 */
/* confirmations.c - outside services are asked about what is due (core/confirm). Where none is
 * configured, it looks once in a while for marks that still name one: they are dead letters. */
#include "base/text/json.h"
#include "base/time.h"
#include "base/trouble.h"
#include "daemon/watch/watch.h"
#include "lib/confirming.h"

#define LOOK_MS (4 * RP_SECOND_MS / 5) /* the longest sleep: what others mark is asked about within a second */

struct confirming {
    struct rp_watch watch;
    struct rp_asker *asker; /* NULL: not made yet */
    struct rp_store *stores[RP_STORES_MAX];
    struct rp_trouble catalog;
};

static void answered(void *ctx, const char *name, const char *meaning)
{
    const struct confirming *c = ctx;
    rp_metrics_confirmation(c->watch.options.metrics, name, meaning);
}

static void broken(void *ctx, const char *name, bool open)
{
    const struct confirming *c = ctx;
    json_t *o = rp_json_object("confirmation", rp_json_text(name), "open", json_boolean(open), NULL);
    rp_metrics_breaker(c->watch.options.metrics, name, open);
    rp_session_log(&c->watch.session, open ? RP_LOG_WARNING : RP_LOG_INFO, "confirmation.breaker", o);
}

static int make(struct confirming *c, struct rp_error *err)
{
    struct rp_asker_options options = { 0 };
    size_t n = 0;
    if (c->asker != NULL) return 0;
    int r = rp_session_stores(&c->watch.session, c->stores, &n, err);
    if (r == 0) r = rp_confirming_options(&c->watch.session, &c->watch.session.arena, &options, err);
    if (r < 0) return r;
    options.by.stores = c->stores;
    options.by.n_stores = n;
    options.by.lazily = true; /* raiser.h has raised the epoch at the start */
    options.by.stop = &c->watch.stop;
    options.by.enough = &c->watch.enough;
    options.answered = answered;
    options.broken = broken;
    options.ctx = c;
    c->asker = rp_asker_new(&options, err);
    return c->asker != NULL ? 0 : RP_ENOMEM;
}

static void look(struct rp_watch *watch)
{
    struct confirming *c = (struct confirming *)watch;
    struct rp_error why = { 0 };
    struct rp_asker_pass pass = { 0 };
    if (rp_time_boot_ms() < c->catalog.until_ms) return;
    int r = make(c, &why);
    if (r == 0) r = rp_asker_pass(c->asker, &pass, &why);
    rp_log_flush(watch->session.log);
    if (r < 0)
        rp_watch_catalog_failed(watch, &c->catalog, "confirmations.wait", &why);
    else
        rp_trouble_over(&c->catalog);
}

static void use_settings(struct rp_watch *watch)
{
    struct confirming *c = (struct confirming *)watch;
    for (size_t i = 0; c->asker != NULL && i < watch->session.config.n_stores; i++)
        c->stores[i]->config = &watch->session.config.stores[i];
    if (c->asker != NULL) rp_asker_configure(c->asker, &watch->session.config);
}

static void end(struct rp_watch *watch)
{
    rp_asker_free(((struct confirming *)watch)->asker);
}

/* Its session is another one at the next look. */
static void look_briefly(struct rp_watch *watch)
{
    struct confirming *c = (struct confirming *)watch;
    look(watch);
    rp_asker_free(c->asker);
    c->asker = NULL;
}

const struct rp_watch_kind rp_confirmation_watch = { .what = "the watch over confirmations",
                                                     .every_ms = LOOK_MS,
                                                     .bytes = sizeof(struct confirming),
                                                     .look = look,
                                                     .settings = use_settings,
                                                     .end = end };
const struct rp_watch_kind rp_unconfirmed_watch = { .what = "the watch over marks without their service",
                                                    .every_ms = RP_MINUTE_MS,
                                                    .catalog = RP_WATCH_BRIEFLY,
                                                    .bytes = sizeof(struct confirming),
                                                    .look = look_briefly };
