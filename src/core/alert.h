/* SPDX-License-Identifier: Apache-2.0 */
/* alert.h - conditions that a person should know of. Judging is pure: figures and limits in,
 * conditions out. What has changed is noted in the catalog.
 *
 * One table gives name, severity, summary and description; webhooks, GET /v1/alerts and
 * packaging/prometheus/reprieve.rules.yml say the same, and a test holds the rules against it. A
 * limit of 0 turns a condition off, but for dead letters, where one is enough. */
#ifndef RP_CORE_ALERT_H
#define RP_CORE_ALERT_H

#include "catalog/catalog.h"
#include "config/config.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum rp_alert {
    RP_ALERT_MARKED,
    RP_ALERT_OVERDUE,
    RP_ALERT_RUN_LONG,
    RP_ALERT_ERROR_RATE,
    RP_ALERT_NO_RUN,
    RP_ALERT_LOCK_STALE,
    RP_ALERT_ABANDONED,
    RP_ALERT_NO_WORKER,
    RP_ALERT_SINK_BEHIND,
    RP_ALERT_DEAD_LETTERS,
    RP_ALERT_CLOCKS,
    RP_ALERT_CLOCK_JUMP,
    RP_ALERT_NOT_OURS,
    RP_ALERT_RAISE_OWED,
    RP_ALERT_DISK_FULL,
    RP_ALERTS
};

struct rp_alert_rule {
    const char *name;     /* ReprieveTooManyMarks */
    const char *severity; /* warning, critical */
    const char *summary;
    const char *description; /* what it means, and what to do */
};
extern const struct rp_alert_rule rp_alert_rules[RP_ALERTS];
/* RP_ALERTS: no such one. */
enum rp_alert rp_alert_by_name(const char *name);

/* What is known now. A figure that could not be read is -1: its condition is left as it is. */
struct rp_alert_figures {
    int64_t marked;           /* marks waiting */
    int64_t dead;             /* dead letters that wait for a person */
    int64_t oldest_due_ms;    /* 0: nothing is past due */
    int64_t longest_run_ms;   /* how long the oldest run under way has lasted; 0: none is */
    char longest_run[72];     /* its name */
    int64_t runs, run_errors; /* within the window */
    int64_t last_run_ms;      /* of the scheduled run that is the latest: when the last one ended, or the daemon began;
                          * 0: none is expected */
    int64_t interval_ms;      /* of its schedule; 0: a continuous sweep */
    char late_run[96];        /* its kind and name */
    int64_t stale_lock_ms;    /* since the oldest lock that is held was renewed; 0: none is */
    char stale_lock[128];
    int64_t abandoned;      /* within an hour, counted a little past the limit */
    int64_t worker_seen_ms; /* the newest sign of life */
    int64_t clocks_apart_ms;
    char clock[80];        /* which one is off: "database", "store NAME" */
    int64_t clock_jump_ms; /* how far the clock that is furthest ahead of its host's boot clock is */
    char clock_host[64];
    int64_t not_ours; /* stores, and the first of them: "NAME WHAT" */
    char not_ours_store[128];
    int64_t raise_owed_ms; /* since the oldest raise of an epoch that is owed; 0: none is */
    char raise_owed_store[80];
    int64_t full; /* disks, and the first of them: "catalog", "store NAME" */
    char full_of[80];
    int64_t sink_lag_ms; /* age of the oldest event that a sink was not told of, and which sink */
    char sink[80];
};

struct rp_alert_verdict {
    bool known, holds;
    int64_t value, limit; /* in the unit that `unit` says */
    const char *unit;     /* marks, s, percent, uploads, letters */
    char about[128];      /* the run or lock it is about; may be empty */
};
/* How long the run of such an interval (0: continuous) may be away; 0: for ever. */
int64_t rp_alert_no_run_limit_ms(const struct rp_alert_config *limits, int64_t interval_ms);
void rp_alert_judge(const struct rp_alert_config *limits, const struct rp_alert_figures *figures, int64_t now_ms,
                    struct rp_alert_verdict out[RP_ALERTS]);

/* {"summary","description","figures":{"value","limit","unit","about"?}} */
json_t *rp_alert_details(enum rp_alert alert, const struct rp_alert_verdict *verdict);

/* Raises the condition, or clears it, as the verdict says: with its audit row and its line in the
 * log, alert.raised or alert.cleared. Where it stands like that already nothing is changed. No
 * command: nobody waits for an answer, and a full queue must not keep it from being told. */
int rp_alert_turn(struct rp_catalog *catalog, enum rp_alert alert, const struct rp_alert_verdict *verdict,
                  const char *actor, struct rp_error *err);

#endif
