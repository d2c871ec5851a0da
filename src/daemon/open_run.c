/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/open_run.h"

#include "base/text/json.h"
#include "base/time.h"
#include "catalog/alert.h"

#include <stdio.h>
#include <string.h>

#define RENEW_MS    (2 * RP_MINUTE_MS)
#define RUN_MS      RP_HOUR_MS
#define BURIED_MAX  16
#define LOCK_PREFIX "sweep:"

/* Another one has taken it over and written its record. */
static void forget_lost(struct rp_open_run *o)
{
    if (!o->run.lost) return;
    rp_sweep_report_ended(o->report, &o->run, "failed", RP_ECHANGED);
    o->run = (struct rp_run){ 0 };
}

int rp_open_run_pass(struct rp_open_run *o, struct rp_store *store, struct rp_sweep_pass *out, struct rp_error *err)
{
    bool open = o->run.id != 0;
    int r = rp_sweep_pass(&o->sweep, store, &o->run, out, err);
    int64_t boot_ms = rp_time_boot_ms();
    if (!open && o->run.id != 0) o->began_ms = o->renewed_ms = boot_ms;
    if (out->claimed > 0) o->renewed_ms = boot_ms;
    if (!o->run.lost) return r;
    forget_lost(o);
    out->claimed = 0;
    return 0;
}

int rp_open_run_close(struct rp_open_run *o, struct rp_error *err)
{
    const char *outcome;
    int r = o->run.id != 0 ? rp_sweep_close(&o->sweep, &o->run, &outcome, err) : 0;
    if (r < 0 || o->run.id == 0) return r;
    rp_sweep_report_ended(o->report, &o->run, outcome, 0);
    o->run = (struct rp_run){ 0 };
    return 0;
}

int rp_open_run_keep(struct rp_open_run *o, struct rp_error *err)
{
    int64_t boot_ms = rp_time_boot_ms(), every = o->sweep.stale_after_ms / 3;
    if (o->run.id == 0) return 0;
    if (boot_ms - o->began_ms >= RUN_MS || o->run.cancelled) return rp_open_run_close(o, err);
    if (every > RENEW_MS) every = RENEW_MS;
    if (boot_ms - o->renewed_ms < every) return 0;
    int r = rp_sweep_renew(&o->sweep, &o->run, err);
    if (r == 0) o->renewed_ms = boot_ms;
    if (!o->run.lost) return r;
    forget_lost(o);
    return 0;
}

/* ---- runs of daemons that are gone ---- */

struct others {
    const char *own;
    char names[BURIED_MAX][80];
    size_t n;
};

static int see_lock(void *ctx, const struct rp_held_lock *lock, struct rp_error *err)
{
    struct others *o = ctx;
    const char *name = lock->name + strlen(LOCK_PREFIX);
    (void)err;
    if (strncmp(lock->name, LOCK_PREFIX RP_CONTINUOUS, strlen(LOCK_PREFIX RP_CONTINUOUS)) != 0) return 0;
    if (o->n < BURIED_MAX && strcmp(name, o->own) != 0) snprintf(o->names[o->n++], sizeof o->names[0], "%s", name);
    return 0;
}

int rp_open_runs_bury(struct rp_session *session, const char *own, int64_t stale_after_ms, struct rp_error *err)
{
    struct others others = { .own = own };
    int r = rp_lock_each_held(session->catalog->db, NULL, see_lock, &others, err);
    for (size_t i = 0; i < others.n && r == 0; i++) {
        bool buried = false;
        r = rp_run_bury(session->catalog, RP_RUN_SWEEP, others.names[i], &session->worker, stale_after_ms, &buried,
                        err);
        if (!buried) continue;
        json_t *o = rp_json_object("kind", json_string(RP_RUN_SWEEP), "name", rp_json_text(others.names[i]), "error",
                                   json_string("the daemon is gone; its run was closed"), NULL);
        rp_session_log(session, RP_LOG_WARNING, "cleanup_failed", o);
    }
    return r;
}
