/* SPDX-License-Identifier: Apache-2.0 */
#include "core/alert.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/alert.h"
#include "catalog/audit/audit.h"

#include <stdio.h>
#include <string.h>

#define RAISE_OWED_MS (10 * RP_MINUTE_MS)

/* clang-format off */
const struct rp_alert_rule rp_alert_rules[RP_ALERTS] = {
    [RP_ALERT_MARKED] = { "ReprieveTooManyMarks", "warning",
        "Many marks are waiting",
        "More marks wait than alerts.marked_over allows. Somebody may be deleting too much: `reprieve marks` "
        "lists them, `reprieve restore` takes them back, `reprieve pause` stops every purge." },
    [RP_ALERT_OVERDUE] = { "ReprieveMarkOverdue", "warning",
        "A mark is long past its due time",
        "A mark was due longer ago than alerts.overdue_over allows and is still not purged. `reprieve dead`, "
        "`reprieve hold` and `reprieve doctor` say what stands in the way." },
    [RP_ALERT_RUN_LONG] = { "ReprieveRunTooLong", "warning",
        "A run takes long",
        "A run has lasted longer than alerts.run_over allows. `reprieve runs` shows how far it is; the store "
        "or the database may be slow." },
    [RP_ALERT_ERROR_RATE] = { "ReprieveRunErrors", "warning",
        "Many runs had errors",
        "More runs than alerts.error_rate_over allows failed or had errors within alerts.error_window. Stopping "
        "at a limit is none. `reprieve runs` shows them." },
    [RP_ALERT_NO_RUN] = { "ReprieveNoRun", "critical",
        "The scheduled run did not happen",
        "A run that has a schedule, or a continuous sweep while marks are due, did not end for longer than "
        "alerts.no_run_for and than its interval and an hour. `reprieve runs` and `reprieve doctor` say what is "
        "wrong." },
    [RP_ALERT_LOCK_STALE] = { "ReprieveLockStale", "warning",
        "The lock of a run is stale",
        "A lock was not renewed for longer than alerts.lock_stale_over: whoever holds it hangs or is gone. "
        "The next run takes it over once lock.stale_after has passed." },
    [RP_ALERT_ABANDONED] = { "ReprieveUploadsAbandoned", "warning",
        "Many uploads are abandoned",
        "More uploads than alerts.abandoned_per_hour_over were begun, never confirmed and cleaned up within "
        "an hour. A client may fail to upload or to confirm." },
    [RP_ALERT_NO_WORKER] = { "ReprieveNoWorker", "critical",
        "No sweeper is alive",
        "No daemon's sweeper gave a sign of life for longer than alerts.no_worker_for: nothing is purged and "
        "nothing expires. Start `reprieve serve`, or look into its log." },
    [RP_ALERT_SINK_BEHIND] = { "ReprieveSinkBehind", "warning",
        "A webhook is far behind",
        "An event that a sink of events_out wants is older than alerts.sink_lag_over and was not delivered. The "
        "log's lines feed.reader_waits and event.refused say what its server answers. Nothing is lost while it is "
        "down; the audit log is not sealed past it." },
    [RP_ALERT_DEAD_LETTERS] = { "ReprieveDeadLetters", "warning",
        "Dead letters wait for a person",
        "Purges of these marks have failed for good, and a person must decide: `reprieve dead` says why, "
        "`reprieve dead retry` tries them again, `reprieve dead keep` gives them up." },
    [RP_ALERT_CLOCKS] = { "ReprieveClocksApart", "critical",
        "Clocks disagree",
        "The clocks of host, database and store are more than 5 minutes apart. Nothing is purged there until "
        "they agree: set the clocks." },
    [RP_ALERT_CLOCK_JUMP] = { "ReprieveClockJump", "critical",
        "A clock jumped",
        "The clock of a host is more than 5 minutes ahead of the time that has passed since its boot. "
        "Nothing is purged from there, and new marks count by the boot clock. Set the clock right or, if it "
        "is right now, run `reprieve clock accept` on that host." },
    [RP_ALERT_NOT_OURS] = { "ReprieveStoreNotOurs", "critical",
        "A store is not this catalog's any more",
        "The catalog was put back from a backup, promoted or moved, or another catalog has taken the store "
        "over. Nothing of the store is purged: `reprieve doctor` says what it is, `reprieve recover` or "
        "`reprieve recover --moved` ends it." },
    [RP_ALERT_RAISE_OWED] = { "ReprieveRaiseOwed", "warning",
        "The owner record of a store cannot be written",
        "Something was kept alive, and the epoch in the store's owner record could not be raised for longer "
        "than 10 minutes. Until it is, a catalog put back from a backup may go unnoticed. `reprieve doctor` "
        "says what stands in the way." },
    [RP_ALERT_DISK_FULL] = { "ReprieveDiskFull", "critical",
        "A disk is full",
        "There is no space left beside the catalog, or in a directory store. Uploads and new files are refused "
        "with 507; deletes, restores and sweeps go on with the room of a reserve that was given up. Free space "
        "there; `reprieve doctor` says how much there is." },
};
/* clang-format on */

enum rp_alert rp_alert_by_name(const char *name)
{
    int i = 0;
    while (i < RP_ALERTS && strcmp(rp_alert_rules[i].name, name) != 0)
        i++;
    return (enum rp_alert)i;
}

static struct rp_alert_verdict judge(int64_t value, int64_t limit, const char *unit)
{
    return (struct rp_alert_verdict){ .known = value >= 0,
                                      .holds = value >= 0 && limit > 0 && value > limit,
                                      .value = value,
                                      .limit = limit,
                                      .unit = unit };
}

/* Both in ms; shown in seconds. */
static struct rp_alert_verdict judge_time(int64_t value_ms, int64_t limit_ms)
{
    struct rp_alert_verdict v = judge(value_ms, limit_ms, "s");
    v.value = value_ms >= 0 ? value_ms / 1000 : -1;
    v.limit = limit_ms / 1000;
    return v;
}

/* Since a moment: 0 is none, negative not known. */
static int64_t since(int64_t moment_ms, int64_t now_ms)
{
    if (moment_ms <= 0) return moment_ms;
    return now_ms > moment_ms ? now_ms - moment_ms : 0;
}

static struct rp_alert_verdict judge_errors(const struct rp_alert_config *limits, const struct rp_alert_figures *f)
{
    int64_t percent = f->runs > 0 ? f->run_errors * 100 / f->runs : f->runs;
    struct rp_alert_verdict v = judge(percent, limits->error_rate_over_percent, "percent");
    /* 10.5 % is more than 10 % */
    v.holds = f->runs > 0 && limits->error_rate_over_percent > 0 &&
              f->run_errors * 100 > limits->error_rate_over_percent * f->runs;
    return v;
}

int64_t rp_alert_no_run_limit_ms(const struct rp_alert_config *limits, int64_t interval_ms)
{
    int64_t by_interval = interval_ms > 0 ? interval_ms + RP_HOUR_MS : 0;
    if (limits->no_run_for_ms == 0) return 0;
    return limits->no_run_for_ms > by_interval ? limits->no_run_for_ms : by_interval;
}

void rp_alert_judge(const struct rp_alert_config *limits, const struct rp_alert_figures *f, int64_t now_ms,
                    struct rp_alert_verdict out[RP_ALERTS])
{
    out[RP_ALERT_MARKED] = judge(f->marked, limits->marked_over, "marks");
    out[RP_ALERT_OVERDUE] = judge_time(since(f->oldest_due_ms, now_ms), limits->overdue_over_ms);
    out[RP_ALERT_RUN_LONG] = judge_time(f->longest_run_ms, limits->run_over_ms);
    snprintf(out[RP_ALERT_RUN_LONG].about, sizeof out[0].about, "%s", f->longest_run);
    out[RP_ALERT_ERROR_RATE] = judge_errors(limits, f);
    out[RP_ALERT_NO_RUN] = judge_time(since(f->last_run_ms, now_ms), rp_alert_no_run_limit_ms(limits, f->interval_ms));
    snprintf(out[RP_ALERT_NO_RUN].about, sizeof out[0].about, "%s", f->late_run);
    out[RP_ALERT_LOCK_STALE] = judge_time(f->stale_lock_ms, limits->lock_stale_over_ms);
    snprintf(out[RP_ALERT_LOCK_STALE].about, sizeof out[0].about, "%s", f->stale_lock);
    out[RP_ALERT_ABANDONED] = judge(f->abandoned, limits->abandoned_per_hour_over, "uploads");
    out[RP_ALERT_NO_WORKER] = judge_time(since(f->worker_seen_ms, now_ms), limits->no_worker_for_ms);
    out[RP_ALERT_SINK_BEHIND] = judge_time(f->sink_lag_ms, limits->sink_lag_over_ms);
    snprintf(out[RP_ALERT_SINK_BEHIND].about, sizeof out[0].about, "%s", f->sink);
    out[RP_ALERT_DEAD_LETTERS] = judge(f->dead, limits->dead_letters_over, "letters");
    out[RP_ALERT_DEAD_LETTERS].holds = f->dead > limits->dead_letters_over;
    out[RP_ALERT_CLOCKS] = judge_time(f->clocks_apart_ms, RP_CLOCKS_APART_MS);
    snprintf(out[RP_ALERT_CLOCKS].about, sizeof out[0].about, "%s", f->clock);
    out[RP_ALERT_CLOCK_JUMP] = judge_time(f->clock_jump_ms, RP_CLOCKS_APART_MS);
    snprintf(out[RP_ALERT_CLOCK_JUMP].about, sizeof out[0].about, "%s", f->clock_host);
    out[RP_ALERT_NOT_OURS] = judge(f->not_ours, 0, "stores");
    out[RP_ALERT_NOT_OURS].holds = f->not_ours > 0;
    snprintf(out[RP_ALERT_NOT_OURS].about, sizeof out[0].about, "%s", f->not_ours_store);
    out[RP_ALERT_RAISE_OWED] = judge_time(f->raise_owed_ms, RAISE_OWED_MS);
    snprintf(out[RP_ALERT_RAISE_OWED].about, sizeof out[0].about, "%s", f->raise_owed_store);
    out[RP_ALERT_DISK_FULL] = judge(f->full, 0, "disks");
    out[RP_ALERT_DISK_FULL].holds = f->full > 0;
    snprintf(out[RP_ALERT_DISK_FULL].about, sizeof out[0].about, "%s", f->full_of);
}

json_t *rp_alert_details(enum rp_alert alert, const struct rp_alert_verdict *v)
{
    const struct rp_alert_rule *rule = &rp_alert_rules[alert];
    json_t *o = json_object(), *figures = json_object();
    rp_json_set(o, "summary", json_string(rule->summary));
    rp_json_set(o, "description", json_string(rule->description));
    rp_json_set(figures, "value", json_integer(v->value));
    rp_json_set(figures, "limit", json_integer(v->limit));
    rp_json_set(figures, "unit", json_string(v->unit));
    if (v->about[0] != 0) rp_json_set(figures, "about", rp_json_text(v->about));
    rp_json_set(o, "figures", figures);
    return o;
}

/* ---- raised and cleared ---- */

struct turn {
    const struct rp_alert_rule *rule;
    bool raise;
    const char *event, *actor, *text;
    json_t *details;
    bool changed;
};

static int turn_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct turn *t = ctx;
    int r = t->raise ? rp_alert_raise(tx, t->rule->name, t->rule->severity, t->text, &t->changed, err)
                     : rp_alert_clear(tx, t->rule->name, t->text, &t->changed, err);
    if (r < 0 || !t->changed) return r;
    struct rp_audit_entry entry = { .event = t->event, .actor = t->actor, .details = json_deep_copy(t->details) };
    rp_json_set(entry.details, "name", json_string(t->rule->name));
    rp_json_set(entry.details, "severity", json_string(t->rule->severity));
    return rp_tx_audit(tx, &entry, err);
}

static void log_turn(const struct rp_catalog *catalog, const struct turn *t)
{
    json_t *o = rp_json_object("name", json_string(t->rule->name), "severity", json_string(t->rule->severity), NULL);
    rp_json_merge(o, t->details);
    rp_log_event(catalog->log, t->raise ? RP_LOG_WARNING : RP_LOG_INFO, rp_clock_now_ms(catalog->clock), t->event, o);
}

int rp_alert_turn(struct rp_catalog *catalog, enum rp_alert alert, const struct rp_alert_verdict *verdict,
                  const char *actor, struct rp_error *err)
{
    RP_CLEANUP(rp_json_decrefp) json_t *details = rp_alert_details(alert, verdict);
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(RP_ALERT_DETAILS - 1);
    if (details == NULL || rp_json_write(&text, details) < 0)
        return rp_error_set(err, RP_ENOMEM, "no memory for an alert");
    struct turn t = { .rule = &rp_alert_rules[alert],
                      .raise = verdict->holds,
                      .event = verdict->holds ? "alert.raised" : "alert.cleared",
                      .actor = actor,
                      .text = rp_buf_text(&text),
                      .details = details };
    int r = rp_catalog_transact(catalog, turn_tx, &t, err);
    if (r == 0 && t.changed) log_turn(catalog, &t);
    return r;
}
