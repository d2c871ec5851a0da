/* SPDX-License-Identifier: Apache-2.0 */
/* run_start.c - a run that a call begins, or, as a dry run, what it would do. */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "core/retention/retention.h"
#include "core/safety_net/safety_net.h"
#include "core/sweep/plan.h"
#include "http/api/runs.h"
#include "http/api/shapes.h"
#include "http/server/server.h"
#include "lib/answer.h"

#include <string.h>

#define PLAN_MARKS_MAX 100000

/* ---- begin ---- */

/* No I/O here: this may be the writer's thread. */
static void then_begun(struct rp_request *q)
{
    rp_reply_json(q, 202, rp_run_json(&((const struct rp_beginning *)q->command)->run, NULL, false, 0));
}

/* Hands it over, or gives the room back. */
static void after_begun(struct rp_request *q)
{
    const struct rp_beside *beside = &rp_server_options_of(q->server)->beside;
    const struct rp_beginning *b = (const struct rp_beginning *)q->command;
    bool begun = b->command.error.code == 0 && !b->command.replayed;
    beside->start_run(beside->ctx, b->store, q->who.actor, begun ? &b->run : NULL);
}

struct rp_beginning *rp_beginning_new(struct rp_request *q, const struct rp_verb *verb, const struct rp_worker **worker)
{
    const struct rp_beside *beside = &rp_server_options_of(q->server)->beside;
    struct rp_beginning *b = rp_command_new(q, sizeof *b, verb);
    struct rp_error err = { 0 };
    if (b == NULL) return NULL;
    int r = beside->reserve_run != NULL ? beside->reserve_run(beside->ctx, worker, &err)
                                        : rp_error_set(&err, RP_EUNAVAILABLE, "no run is carried out here");
    if (r == 0) return b;
    rp_request_refuse(q, &b->command, &err, NULL);
    return NULL;
}

void rp_beginning_submit(struct rp_request *q, struct rp_beginning *b)
{
    q->after = after_begun;
    rp_request_submit(q, &b->command, then_begun, NULL);
}

static void not_begun(struct rp_request *q)
{
    const struct rp_run_command *c = (const struct rp_run_command *)q->command;
    json_t *holder = NULL;
    if (c->command.error.code == RP_ERUNNING) {
        holder = json_object();
        rp_json_set(holder, "locked_by", rp_json_text(c->locked_by));
        rp_json_set(holder, "locked_at", rp_json_time(c->locked_at_ms));
    }
    rp_reply_problem(q, &c->command.error, holder);
}

static void begin_run(struct rp_request *q, const char *kind, const char *name, const char *store)
{
    const struct rp_worker *worker = NULL;
    struct rp_beginning *b = rp_beginning_new(q, &rp_verb_run_begin, &worker);
    if (b == NULL) return;
    rp_run_command_init(&b->begin, &b->run, kind, name, worker, rp_request_config(q)->lock_stale_after_ms,
                        q->who.actor);
    b->store = store;
    q->refused = not_begun;
    rp_beginning_submit(q, b);
}

/* ---- what it would do ---- */

static void foresee_sweep(struct rp_request *q, const char *store)
{
    RP_CLEANUP(rp_plan_freep) struct rp_plan *plan = NULL;
    const struct rp_config *config = rp_request_config(q);
    const char *name = store != NULL ? store : "all";
    struct rp_error err = { 0 };
    size_t n = 1;
    struct rp_store *one = store != NULL ? rp_request_store(q, store) : NULL;
    struct rp_store *const *stores = one != NULL ? &one : rp_request_stores(q, &n);
    struct rp_sweep sweep = { .by.catalog = rp_request_catalog(q),
                              .by.stores = stores,
                              .by.n_stores = n,
                              .name = name,
                              .by.environment = config->environment,
                              .limit = config->sweep_limit < PLAN_MARKS_MAX ? config->sweep_limit : PLAN_MARKS_MAX };
    if (stores == NULL)
        rp_reply_no_memory(q);
    else if (rp_plan_make(&sweep, &plan, &err) < 0)
        rp_reply_error(q, &err);
    else
        rp_reply_json(q, 200, rp_plan_json(plan, name));
}

static void foresee_retention(struct rp_request *q, const char *store)
{
    struct rp_retention retention = { .catalog = rp_request_catalog(q), .rules = rp_request_config(q)->retention };
    struct rp_figures figures = { 0 };
    struct rp_error err = { 0 };
    bool complete;
    (void)store;
    if (rp_retention_look(&retention, &figures, &complete, &err) < 0)
        rp_reply_error(q, &err);
    else
        rp_reply_json(q, 200, rp_retention_plan_json(&figures, complete));
}

static int keep_found(void *ctx, const struct rp_net_finding *finding, struct rp_error *err)
{
    json_t *found = ctx;
    (void)err;
    if (json_array_size(found) < RP_NET_EXAMPLES) rp_json_append(found, rp_net_finding_json(finding));
    return 0;
}

static void foresee_safety_net(struct rp_request *q, const char *store)
{
    struct rp_safety_net net = { .catalog = rp_request_catalog(q), .config = rp_request_config(q) };
    struct rp_figures figures = { 0 };
    struct rp_error err = { 0 };
    json_t *found = json_array();
    bool complete;
    (void)store;
    if (rp_safety_net_dry_run(&net, keep_found, found, &figures, &complete, &err) == 0) {
        rp_reply_json(q, 200, rp_safety_net_plan_json(&figures, complete, found));
        return;
    }
    json_decref(found);
    rp_reply_error(q, &err);
}

static void foresee_import(struct rp_request *q, const char *store)
{
    struct rp_error err = { 0 };
    (void)store;
    rp_error_advise(&err, RP_EINVAL, "`reprieve import --dry-run` reads the objects and says it",
                    "dry_run: what an import would mark is not known before it has read the store");
    rp_reply_error(q, &err);
}

/* ---- the kinds that a call may begin ---- */

static const struct kind {
    const char *kind, *words;
    const char *name;  /* of all its runs; NULL: a store's */
    bool of_one_store; /* else NULL and "all" are all of them */
    void (*foresee)(struct rp_request *q, const char *store);
} kinds[] = {
    { RP_RUN_SWEEP, "sweep", .foresee = foresee_sweep },
    { RP_RUN_RETENTION, "retention", .name = RP_RETENTION_NAME, .foresee = foresee_retention },
    { RP_RUN_SAFETY_NET, "safety net", .name = RP_NET_NAME, .foresee = foresee_safety_net },
    { RP_RUN_IMPORT, "import", .of_one_store = true, .foresee = foresee_import },
};

static const struct kind *kind_of(const char *text)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].kind, text) == 0) return &kinds[i];
    return NULL;
}

/* The store that the name of the body means; NULL: all, or the kind knows no stores. */
static int read_store(struct rp_request *q, const struct kind *k, const char **out, struct rp_error *err)
{
    const char *name = rp_json_get_text(q->body, "name", NULL);
    *out = NULL;
    if (name == NULL && k->of_one_store) return rp_error_set(err, RP_EINVAL, "name: an %s is of one store", k->words);
    if (name == NULL || (!k->of_one_store && strcmp(name, "all") == 0)) return 0;
    if (k->name != NULL)
        return strcmp(name, k->name) == 0
                   ? 0
                   : rp_error_set(err, RP_EINVAL, "name: a %s is about all %s", k->words, k->name);
    if (rp_request_store(q, name) == NULL) return rp_error_set(err, RP_ENOTFOUND, "no store '%s'", name);
    *out = name;
    return 0;
}

static int refuse(const char *what, struct rp_error *err)
{
    rp_error_set(err, RP_EINVAL,
                 "%s: this version runs sweeps, retentions, safety nets and imports only, without a plan", what);
    return rp_error_hint(err, "{\"kind\":\"sweep\"} purges what is due now; add \"dry_run\":true to see it first");
}

void rp_http_start_run(struct rp_request *q)
{
    const struct kind *k = kind_of(rp_json_get_text(q->body, "kind", ""));
    const char *store = NULL;
    struct rp_error err = { 0 };
    bool may = k != NULL && !rp_request_bool(q->body, "plan");
    int r = may ? read_store(q, k, &store, &err) : refuse(k == NULL ? "kind" : "plan", &err);
    if (r < 0)
        rp_reply_error(q, &err);
    else if (rp_request_bool(q->body, "dry_run"))
        k->foresee(q, store);
    else
        begin_run(q, k->kind, k->name != NULL ? k->name : store != NULL ? store : "all", store);
}
