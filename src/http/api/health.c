/* SPDX-License-Identifier: Apache-2.0 */
/* GET /healthz, /readyz, /metrics */
#include "metrics/health.h"
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/clock.h"
#include "http/live/live.h"
#include "http/server/request.h"
#include "http/server/server.h"
#include "metrics/metrics.h"

#define SWEEPER_IDLE_MS (60 * RP_SECOND_MS)
#define METRICS_BYTES   ((size_t)8 * 1024 * 1024)

static void get_healthz(struct rp_request *q)
{
    rp_reply_json(q, 200, json_pack("{s:s}", "status", "ok"));
}

/* ---- ready ---- */

static json_t *judged(bool ok, const char *why)
{
    json_t *o = json_object();
    rp_json_set(o, "ok", json_boolean(ok));
    if (!ok && why != NULL) rp_json_set(o, "why", json_string(why));
    return o;
}

static json_t *catalog_shown(const struct rp_health_state *state)
{
    json_t *o = judged(state->catalog_ok, state->catalog_why);
    if (state->catalog_age_ms >= 0) rp_json_set(o, "wrote_ms_ago", json_integer(state->catalog_age_ms));
    return o;
}

/* Numbers only: what the stores are called is for those who may ask /v1/stores. */
static json_t *stores_shown(const struct rp_health_state *state, bool *ok)
{
    size_t reachable = 0;
    const char *why = NULL;
    for (size_t i = 0; i < state->n_stores; i++) {
        if (state->stores[i].ok)
            reachable++;
        else
            why = state->stores[i].why;
    }
    *ok = reachable == state->n_stores;
    json_t *o = judged(*ok, why);
    rp_json_set(o, "reachable", json_integer((json_int_t)reachable));
    rp_json_set(o, "configured", json_integer((json_int_t)state->n_stores));
    return o;
}

static json_t *sweeper_shown(const struct rp_beside *beside, bool *ok)
{
    int64_t idle_ms = beside->sweeper_idle_ms != NULL ? beside->sweeper_idle_ms(beside->ctx) : 0;
    *ok = idle_ms < SWEEPER_IDLE_MS;
    json_t *o = judged(*ok, "no sign of life");
    rp_json_set(o, "idle_ms", json_integer(idle_ms));
    return o;
}

/* Purging waits; everything else works, so the daemon is ready all the same. */
static json_t *clock_shown(const struct rp_health_state *state)
{
    json_t *o = judged(!rp_clock_has_jumped(state->clock_ahead_ms), "it jumped: nothing is purged");
    rp_json_set(o, "ahead_ms", json_integer(state->clock_ahead_ms));
    return o;
}

/* Everybody may ask: nothing here counts what tenants do (figures are in /metrics). */
static void get_readyz(struct rp_request *q)
{
    const struct rp_server_options *o = rp_server_options_of(q->server);
    struct rp_health *own = NULL, *health = rp_metrics_health(o->metrics);
    struct rp_error err = { 0 };
    struct rp_health_state state;
    bool stores_ok, sweeper_ok;
    if (health == NULL) health = own = rp_health_new();
    if (health == NULL) {
        rp_error_set(&err, RP_ENOMEM, "out of memory");
        rp_reply_error(q, &err);
        return;
    }
    rp_health_look(health, o->writers, o->stores, o->n_stores, &state);
    rp_health_room(&state, o->rooms);
    rp_health_free(own);
    json_t *answer = json_object();
    json_t *stores = stores_shown(&state, &stores_ok), *sweeper = sweeper_shown(&o->beside, &sweeper_ok);
    bool ready = state.catalog_ok && stores_ok && sweeper_ok;
    rp_json_set(answer, "status", json_string(ready ? "ready" : "not ready"));
    rp_json_set(answer, "catalog", catalog_shown(&state));
    rp_json_set(answer, "stores", stores);
    rp_json_set(answer, "sweeper", sweeper);
    rp_json_set(answer, "clock", clock_shown(&state));
    rp_reply_header(q, "Cache-Control", "no-store");
    rp_reply_json(q, ready ? 200 : 503, answer);
}

/* ---- metrics ---- */

static int write_metrics(struct rp_request *q, struct rp_buf *out, struct rp_error *err)
{
    const struct rp_server_options *o = rp_server_options_of(q->server);
    const struct rp_catalog *catalog = rp_request_catalog(q);
    struct rp_writers_state writers = { 0 };
    struct rp_store **stores = rp_arena_array(&q->arena, o->n_stores + 1, sizeof(struct rp_store *));
    if (stores == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    if (o->metrics == NULL) return rp_error_set(err, RP_EUNAVAILABLE, "nothing is measured here");
    for (size_t i = 0; i < o->n_stores; i++)
        stores[i] = &o->stores[i];
    if (o->writers != NULL) rp_writers_state(o->writers, &writers);
    rp_metric_gauge(out, "reprieve_live_clients", "Clients that listen to live events.",
                    (double)rp_live_clients(o->live));
    rp_metric_gauge(out, "reprieve_http_body_bytes", "Bytes of request bodies in memory, or promised by headers.",
                    (double)rp_server_body_bytes(q->server));
    rp_metric_gauge(out, "reprieve_writer_queue", "Commands that wait for a commit.", (double)writers.waiting);
    rp_metrics_room(o->rooms, stores, o->n_stores, out);
    rp_metrics_scheduled(o->metrics, catalog != NULL ? catalog->db : NULL, rp_request_config(q),
                         rp_clock_now_ms(o->clock), out);
    return rp_metrics_write(o->metrics, catalog != NULL ? catalog->db : NULL, stores, o->n_stores,
                            rp_clock_now_ms(o->clock), out, err);
}

static void get_metrics(struct rp_request *q)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf out = RP_BUF(METRICS_BYTES);
    struct rp_error err = { 0 };
    if (write_metrics(q, &out, &err) < 0)
        rp_reply_error(q, &err);
    else
        rp_reply_text(q, 200, "text/plain; version=0.0.4; charset=utf-8", rp_buf_text(&out));
}

/* ---- the table ---- */

static const struct rp_field health_fields[] = {
    { RP_FIELD("status", TEXT), .required = true, .help = "ok" },
};
static const struct rp_shape health_shape = RP_SHAPE("health", health_fields, "the process answers");

#define OK_FIELD                                                                                                       \
    {                                                                                                                  \
        RP_FIELD("ok", BOOL), .required = true, .help = "whether it can do its work"                                   \
    }
#define WHY_FIELD                                                                                                      \
    {                                                                                                                  \
        RP_FIELD("why", TEXT), .help = "if it cannot"                                                                  \
    }

static const struct rp_field catalog_fields[] = {
    OK_FIELD,
    WHY_FIELD,
    { RP_FIELD("wrote_ms_ago", INT), .help = "since it last took a write" },
};
static const struct rp_shape catalog_shape =
    RP_SHAPE("ready_catalog", catalog_fields, "tried with a write, at most once a second");

static const struct rp_field stores_fields[] = {
    OK_FIELD,
    WHY_FIELD,
    { RP_FIELD("reachable", INT), .required = true, .help = "stores that answer" },
    { RP_FIELD("configured", INT), .required = true, .help = "of so many" },
};
static const struct rp_shape stores_shape = RP_SHAPE("ready_stores", stores_fields, "asked at most every 5 seconds");

static const struct rp_field sweeper_fields[] = {
    OK_FIELD,
    WHY_FIELD,
    { RP_FIELD("idle_ms", INT), .required = true, .help = "since its last sign of life" },
};
static const struct rp_shape sweeper_shape = RP_SHAPE("ready_sweeper", sweeper_fields, "purges what is due");

static const struct rp_field clock_fields[] = {
    OK_FIELD,
    WHY_FIELD,
    { RP_FIELD("ahead_ms", INT), .required = true,
      .help = "how far the host's clock is ahead of the time since its boot; negative: it was set back" },
};
static const struct rp_shape clock_shape =
    RP_SHAPE("ready_clock", clock_fields,
             "the host's clock, judged by the boot clock: more than 5 minutes ahead, and purging waits");

static const struct rp_field ready_fields[] = {
    { RP_FIELD("status", TEXT), .required = true, .help = "ready, or not ready" },
    { RP_FIELD("catalog", OBJECT), .required = true, .of = &catalog_shape, .help = "takes writes?" },
    { RP_FIELD("stores", OBJECT), .required = true, .of = &stores_shape, .help = "all reachable?" },
    { RP_FIELD("sweeper", OBJECT), .required = true, .of = &sweeper_shape, .help = "alive?" },
    { RP_FIELD("clock", OBJECT), .required = true, .of = &clock_shape, .help = "has it jumped?" },
};
static const struct rp_shape ready_shape =
    RP_SHAPE("ready", ready_fields, "with status 503 if catalog, stores or sweeper are not ok");

static const struct rp_route routes[] = {
    { RP_ROUTE("GET", "/healthz", RP_FOR_EVERYBODY, 0, get_healthz), .answer = &health_shape,
      .summary = "200 while the process answers at all." },
    { RP_ROUTE("GET", "/readyz", RP_FOR_EVERYBODY, 0, get_readyz), .blocks = true, .answer = &ready_shape,
      .also = { { .status = 503, .answer = &ready_shape, .help = "it is not ready, and which part is why" } },
      .summary = "200 if the catalog takes writes, every store answers, no disk is full and the sweeper lives; else "
                 "503 with the same "
                 "answer." },
    { RP_ROUTE("GET", "/metrics", RP_FOR_ADMINS, RP_MAY_MEASURE, get_metrics), .blocks = true, .media = "text/plain",
      .summary = "Figures for Prometheus." },
};
const struct rp_routes rp_routes_health = { routes, sizeof routes / sizeof routes[0] };
