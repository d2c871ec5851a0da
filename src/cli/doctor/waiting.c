/* SPDX-License-Identifier: Apache-2.0 */
/* What waits for a person. */
#include "cli/doctor/doctor.h"

#include "catalog/mark/dead.h"
#include "catalog/run.h"
#include "core/hold.h"

#include <inttypes.h>

static int count_dead(void *ctx, const struct rp_dead *dead, struct rp_error *err)
{
    (void)dead, (void)err;
    ++*(int64_t *)ctx;
    return 0;
}

static int count_pauses(void *ctx, const struct rp_hold *hold, struct rp_error *err)
{
    (void)err;
    *(int64_t *)ctx += hold->scope == RP_SCOPE_EVERYTHING;
    return 0;
}

static int count_interrupted(void *ctx, const struct rp_run_row *row, struct rp_error *err)
{
    (void)err;
    *(int64_t *)ctx += rp_worker_is_dead(row->locked_by);
    return 0;
}

static void judge_count(struct rp_doctor *d, int code, const struct rp_error *why, int64_t n, const char *remedy,
                        const char *one, const char *many)
{
    if (code < 0)
        rp_judge_error(d, why, "");
    else
        rp_judge(d, n > 0 ? RP_DOUBTFUL : RP_FINE, remedy, "%" PRId64 "%s %s", n,
                 n == RP_DOCTOR_LISTED_MAX ? " or more" : "", n == 1 ? one : many);
}

void rp_doctor_dead(struct rp_doctor *d)
{
    struct rp_error why = { 0 };
    int64_t n = 0;
    int r = rp_dead_each(d->cli->session.catalog->db, 0, RP_DOCTOR_LISTED_MAX, count_dead, &n, &why);
    judge_count(d, r, &why, n, "`reprieve dead` lists them: retry or keep each", "waits for a person",
                "wait for a person");
}

void rp_doctor_pause(struct rp_doctor *d)
{
    struct rp_error why = { 0 };
    int64_t n = 0;
    int r = rp_hold_each(d->cli->session.catalog->db, count_pauses, &n, &why);
    judge_count(d, r, &why, n, "`reprieve resume` lets purging go on", "hold on everything", "holds on everything");
}

void rp_doctor_runs(struct rp_doctor *d)
{
    struct rp_error why = { 0 };
    int64_t n = 0;
    int r = rp_run_each_open(d->cli->session.catalog->db, NULL, count_interrupted, &n, &why);
    judge_count(d, r, &why, n,
                "the next sweep writes the record of a sweep; a restore, a retention or a safety net is carried on by "
                "`reprieve serve`, and by the next `reprieve restore`, `retention` or `safety-net`; `reprieve cancel "
                "run_...` ends it",
                "run was left by a process that is gone", "runs were left by a process that is gone");
}
