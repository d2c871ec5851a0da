/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts: conditions that hold now, and those that held last. */
#include <string.h>

#include "base/text/json.h"
#include "catalog/alert.h"
#include "core/alert.h"
#include "http/api/shapes.h"

static const char *const states[] = { "raised", "cleared", "never", NULL };
static const char *const severities[] = { "warning", "critical", NULL };

static const struct rp_field figures_fields[] = {
    { RP_FIELD("value", INT), .required = true, .help = "what was measured" },
    { RP_FIELD("limit", INT), .required = true, .help = "what is allowed" },
    { RP_FIELD("unit", TEXT), .required = true, .help = "of both" },
    { RP_FIELD("about", TEXT), .help = "which store, node or run" },
};
static const struct rp_shape figures_shape = RP_SHAPE("alert_figures", figures_fields, "why it was raised");

static const struct rp_field alert_fields[] = {
    { RP_FIELD("name", TEXT), .required = true, .help = "as in the Prometheus rules" },
    { RP_FIELD("severity", CHOICE), .choices = severities, .required = true },
    { RP_FIELD("state", CHOICE), .choices = states, .required = true },
    { RP_FIELD("summary", TEXT), .required = true },
    { RP_FIELD("description", TEXT), .required = true },
    { RP_FIELD("figures", OBJECT), .of = &figures_shape, .help = "when it was raised or cleared" },
    { RP_FIELD("raised_at", TIME) },
    { RP_FIELD("cleared_at", TIME) },
    { RP_FIELD("told_at", TIME), .help = "when the webhook took the last change; none: not yet" },
};
static const struct rp_shape alert_shape = RP_SHAPE("alert", alert_fields, "a condition that somebody should know of");

static const struct rp_field list_fields[] = {
    { RP_FIELD("state", CHOICE), .choices = states, .help = "only these; without it: all that ever held" },
};
static const struct rp_shape list_shape = RP_SHAPE("alerts_query", list_fields, "which alerts");

struct listing {
    json_t *items;
    const char *only;
    bool seen[RP_ALERTS];
};

static json_t *alert_json(const char *name, const char *severity, const char *state)
{
    json_t *o = json_object();
    rp_json_set(o, "name", json_string(name));
    rp_json_set(o, "severity", json_string(severity));
    rp_json_set(o, "state", json_string(state));
    return o;
}

static int list_row(void *ctx, const struct rp_alert_row *row, struct rp_error *err)
{
    struct listing *l = ctx;
    enum rp_alert alert = rp_alert_by_name(row->name);
    const char *state = row->cleared_at_ms == 0 ? "raised" : "cleared";
    json_t *details = NULL;
    if (alert != RP_ALERTS) l->seen[alert] = true;
    if (l->only != NULL && strcmp(l->only, state) != 0) return 0;
    int r = rp_json_parse(row->details, strlen(row->details), &details, err);
    if (r < 0) return rp_error_wrap(err, RP_ECORRUPT, "alert '%s'", row->name);
    json_t *o = alert_json(row->name, row->severity, state);
    rp_json_merge(o, details);
    json_decref(details);
    rp_json_set(o, "raised_at", rp_json_time(row->raised_at_ms));
    if (row->cleared_at_ms != 0) rp_json_set(o, "cleared_at", rp_json_time(row->cleared_at_ms));
    if (row->told_at_ms != 0) rp_json_set(o, "told_at", rp_json_time(row->told_at_ms));
    rp_json_append(l->items, o);
    return 0;
}

/* Conditions that never held, so that a console can show what is watched. */
static void add_never(struct listing *l)
{
    for (int i = 0; i < RP_ALERTS; i++) {
        const struct rp_alert_rule *rule = &rp_alert_rules[i];
        if (l->seen[i]) continue;
        json_t *o = alert_json(rule->name, rule->severity, "never");
        rp_json_set(o, "summary", json_string(rule->summary));
        rp_json_set(o, "description", json_string(rule->description));
        rp_json_append(l->items, o);
    }
}

static void list_alerts(struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct listing l = { .items = json_array(), .only = rp_json_get_text(q->query, "state", NULL) };
    int r = rp_alert_each(rp_request_catalog(q)->db, list_row, &l, &err);
    if (l.only != NULL && strcmp(l.only, "never") == 0) add_never(&l);
    rp_reply_page(q, r, &err, l.items, NULL);
}

static const struct rp_route routes[] = {
    { RP_ROUTE("GET", "/v1/alerts", RP_FOR_ADMINS, RP_MAY_READ_RUNS, list_alerts), .blocks = true, .query = &list_shape,
      .answer = &alert_shape, .many = true, .summary = "Conditions that hold now, or held last." },
};
const struct rp_routes rp_routes_alerts = { routes, sizeof routes / sizeof routes[0] };
