/* SPDX-License-Identifier: Apache-2.0 */
/* The watch over alerts: looks at the figures every ten seconds, raises and clears conditions
 * (core/alert.h), and tells the webhook.
 *
 * V1  Over all daemons a condition is raised once and cleared once (rp_alert_turn).
 * V2  The webhook is told once of each; a call that failed is repeated, later each time up to an
 *     hour, by whichever daemon is there. A condition that was over before anybody could be told is
 *     told once, as cleared.
 * V3  A figure that cannot be read changes nothing.
 * V4  That a disk is full is told although the catalog cannot record it: once, by each daemon, and
 *     so is its end. */
#include "base/cleanup.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "base/time.h"
#include "base/trouble.h"
#include "catalog/alert.h"
#include "core/alert.h"
#include "daemon/watch/figures.h"
#include "daemon/watch/watch.h"
#include "hook/hook.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVERY_MS      (10 * RP_SECOND_MS)
#define TELL_FIRST_MS (15 * RP_SECOND_MS) /* longer than a call: another daemon does not begin before it ended */
#define TELL_MOST_MS  RP_HOUR_MS
#define HOOK_MS       (10 * RP_SECOND_MS)
#define ROWS_MAX      (2 * RP_ALERTS) /* rows of conditions that this version does not know are left alone */

/* A row whose last change nobody was told of, and since when it looks like that. */
struct untold {
    int64_t raised_at_ms, cleared_at_ms, tries;
    int64_t since_boot_ms;
};

struct alert_watch {
    struct rp_watch watch;
    struct rp_alert_row rows[ROWS_MAX];
    size_t n_rows;
    struct untold untold[RP_ALERTS];
    int64_t began_ms;
    bool said;                      /* that figures cannot be read */
    struct rp_alert_row unrecorded; /* V4: what was told; no name: nothing was */
};

/* ---- the rows ---- */

static int keep_row(void *ctx, const struct rp_alert_row *row, struct rp_error *err)
{
    struct alert_watch *w = ctx;
    (void)err;
    if (w->n_rows < ROWS_MAX) w->rows[w->n_rows++] = *row;
    return 0;
}

static int read_rows(struct alert_watch *w, struct rp_error *err)
{
    w->n_rows = 0;
    return rp_alert_each(w->watch.session.catalog->db, keep_row, w, err);
}

static struct rp_alert_row *row_of(struct alert_watch *w, enum rp_alert alert)
{
    for (size_t i = 0; i < w->n_rows; i++)
        if (strcmp(w->rows[i].name, rp_alert_rules[alert].name) == 0) return &w->rows[i];
    return NULL;
}

/* ---- telling ---- */

/* The first try is made at once; the next ones when the row looked the same for long enough. */
static bool is_time(struct untold *u, const struct rp_alert_row *row)
{
    int64_t boot_ms = rp_time_boot_ms();
    bool same =
        u->raised_at_ms == row->raised_at_ms && u->cleared_at_ms == row->cleared_at_ms && u->tries == row->tries;
    if (!same)
        *u = (struct untold){ .raised_at_ms = row->raised_at_ms,
                              .cleared_at_ms = row->cleared_at_ms,
                              .tries = row->tries,
                              .since_boot_ms = boot_ms };
    return row->tries == 0 ||
           boot_ms - u->since_boot_ms >= rp_trouble_backoff_ms(row->tries, TELL_FIRST_MS, TELL_MOST_MS);
}

struct telling {
    const struct rp_alert_row *row;
    bool mine;
};

static int try_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct telling *t = ctx;
    return rp_alert_try(tx, t->row, &t->mine, err);
}

static int told_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct telling *t = ctx;
    return rp_alert_told(tx, t->row, err);
}

static int make_body(const struct alert_watch *w, const struct rp_alert_row *row, struct rp_buf *out)
{
    RP_CLEANUP(rp_json_decrefp) json_t *o = json_object();
    json_t *details = NULL;
    struct rp_error ignored = { 0 };
    rp_json_set(o, "event", json_string(row->cleared_at_ms == 0 ? "alert.raised" : "alert.cleared"));
    rp_json_set(o, "name", json_string(row->name));
    rp_json_set(o, "severity", json_string(row->severity));
    if (rp_json_parse(row->details, strlen(row->details), &details, &ignored) == 0) rp_json_merge(o, details);
    json_decref(details);
    rp_json_set(o, "raised_at", rp_json_time(row->raised_at_ms));
    rp_json_set(o, "cleared_at", row->cleared_at_ms != 0 ? rp_json_time(row->cleared_at_ms) : json_null());
    rp_json_set(o, "node", rp_json_text(w->watch.node));
    rp_json_set(o, "environment", rp_json_text(w->watch.session.config.environment));
    return rp_json_write(out, o);
}

/* The same whoever tells of this change, and however often. */
static void name_message(const struct rp_alert_row *row, char id[RP_HOOK_ID_MAX + 1])
{
    snprintf(id, RP_HOOK_ID_MAX + 1, "alert_%s_%" PRId64 "_%" PRId64, row->name, row->raised_at_ms, row->cleared_at_ms);
}

static int send_row(struct alert_watch *w, const struct rp_alert_row *row, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf body = RP_BUF((size_t)16 << 10);
    const struct rp_alert_config *config = &w->watch.session.config.alerts;
    struct rp_hook_answer answer;
    char id[RP_HOOK_ID_MAX + 1];
    if (make_body(w, row, &body) < 0) return rp_error_set(err, RP_ENOMEM, "no memory for an alert");
    name_message(row, id);
    struct rp_hook_call call = { .url = config->webhook,
                                 .secrets = { config->webhook_secret, config->webhook_secret_old },
                                 .id = id,
                                 .event = row->cleared_at_ms == 0 ? "alert.raised" : "alert.cleared",
                                 .body = rp_buf_text(&body),
                                 .body_bytes = body.len,
                                 .at_ms = rp_session_now_ms(&w->watch.session),
                                 .timeout_ms = HOOK_MS,
                                 .allow = w->watch.session.config.outbound_allow };
    return rp_hook_send(&call, &answer, err);
}

static void log_untold(struct alert_watch *w, const struct rp_alert_row *row, const struct rp_error *why)
{
    rp_metrics_failure(w->watch.options.metrics, "webhook");
    json_t *o = rp_json_object("name", json_string(row->name), "tries", json_integer(row->tries + 1), "error",
                               rp_json_text(why->text), NULL);
    rp_session_log(&w->watch.session, RP_LOG_ERROR, "alert.not_told", o);
}

static void tell(struct alert_watch *w, const struct rp_alert_row *row)
{
    struct telling t = { .row = row };
    struct rp_error why = { 0 };
    bool somebody = w->watch.session.config.alerts.webhook[0] != 0;
    bool before = row->cleared_at_ms == 0 && strcmp(row->name, w->unrecorded.name) == 0; /* V4 */
    if (before) w->unrecorded.name[0] = 0;
    if (somebody && !before) {
        if (rp_catalog_transact(w->watch.session.catalog, try_tx, &t, &why) < 0 || !t.mine) return;
        if (send_row(w, row, &why) < 0) {
            log_untold(w, row, &why);
            return;
        }
    }
    (void)rp_catalog_transact(w->watch.session.catalog, told_tx, &t, &why);
}

static int tell_all(struct alert_watch *w, struct rp_error *err)
{
    int r = read_rows(w, err);
    for (size_t i = 0; i < w->n_rows && r == 0 && !rp_watch_is_ending(&w->watch); i++) {
        enum rp_alert alert = rp_alert_by_name(w->rows[i].name);
        if (alert == RP_ALERTS || w->rows[i].told_at_ms != 0) continue;
        if (is_time(&w->untold[alert], &w->rows[i])) tell(w, &w->rows[i]);
    }
    return r;
}

/* V4. In front of the rows, which are told of when they can be written. */
static void tell_unrecorded(struct alert_watch *w, const struct rp_alert_verdict *verdict, bool recorded, bool refused)
{
    struct rp_alert_row *row = &w->unrecorded;
    struct rp_error why = { 0 };
    int64_t now = rp_session_now_ms(&w->watch.session);
    bool told = row->name[0] != 0;
    if (told == verdict->holds || (verdict->holds && !refused) || recorded) return;
    RP_CLEANUP(rp_json_decrefp) json_t *details = rp_alert_details(RP_ALERT_DISK_FULL, verdict);
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(RP_ALERT_DETAILS - 1);
    if (details == NULL || rp_json_write(&text, details) < 0) return;
    snprintf(row->name, sizeof row->name, "%s", rp_alert_rules[RP_ALERT_DISK_FULL].name);
    snprintf(row->severity, sizeof row->severity, "%s", rp_alert_rules[RP_ALERT_DISK_FULL].severity);
    snprintf(row->details, sizeof row->details, "%s", rp_buf_text(&text));
    row->raised_at_ms = told ? row->raised_at_ms : now;
    row->cleared_at_ms = told ? now : 0;
    bool sent = w->watch.session.config.alerts.webhook[0] == 0 || send_row(w, row, &why) == 0;
    if (!sent) log_untold(w, row, &why);
    if (sent == told) row->name[0] = 0; /* of a raise that was not sent, or of an end that was: begin anew */
}

static int judge_all(struct alert_watch *w, struct rp_error *err)
{
    struct rp_alert_verdict verdicts[RP_ALERTS];
    struct rp_alert_figures figures;
    int64_t now = rp_session_now_ms(&w->watch.session);
    struct rp_catalog *catalog = w->watch.session.catalog;
    int r = rp_figures_read(catalog, &w->watch.session.config, w->watch.options.session->stores, now, w->began_ms,
                            &figures, err);
    if (r == 0) r = read_rows(w, err);
    if (r < 0) return r;
    rp_figures_room(w->watch.options.rooms, &w->watch.session.config, &figures);
    rp_alert_judge(&w->watch.session.config.alerts, &figures, now, verdicts);
    for (int i = 0; i < RP_ALERTS && (r == 0 || r == RP_EFULL); i++) {
        const struct rp_alert_row *row = row_of(w, (enum rp_alert)i);
        bool held = row != NULL && row->cleared_at_ms == 0;
        if (!verdicts[i].known) continue;
        int failed = verdicts[i].holds != held
                         ? rp_alert_turn(catalog, (enum rp_alert)i, &verdicts[i], w->watch.session.actor, err)
                         : 0;
        if (i == RP_ALERT_DISK_FULL) tell_unrecorded(w, &verdicts[i], held, failed == RP_EFULL);
        if (failed < 0) r = failed;
    }
    return r;
}

/* ---- the thread ---- */

static void look(struct rp_watch *watch)
{
    struct alert_watch *w = (struct alert_watch *)watch;
    struct rp_error why = { 0 };
    if (w->began_ms == 0) w->began_ms = rp_session_now_ms(&w->watch.session);
    int r = judge_all(w, &why);
    if (r == 0) r = tell_all(w, &why);
    if (r < 0 && !w->said)
        rp_session_log(&w->watch.session, RP_LOG_ERROR, "alerts.wait",
                       rp_json_object("error", rp_json_text(why.text), NULL));
    w->said = r < 0;
}

const struct rp_watch_kind rp_alert_watch = {
    .what = "the watch over alerts", .every_ms = EVERY_MS, .bytes = sizeof(struct alert_watch), .look = look
};
