/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/file/process.h"

#include "base/error.h"
#include "catalog/row.h"
#include "catalog/statements/statements.h"

#include <stdio.h>

enum { STATE_CALL = 1, STATE_TOLD = 2, STATE_DEAD = 3 };

/* ---- which jobs there are ---- */

int rp_process_sync(struct rp_tx *tx, const int64_t *file_ids, size_t n, struct rp_error *err)
{
    struct rp_value now = rp_int(tx->db_ms);
    struct rp_rows rows = rp_rows_of_ids(RP_SQL(process_make), tx->arena, file_ids, n);
    int r = rp_rows_exec(&rows, tx->db, &now, NULL, err);
    rows.sql = RP_SQL(process_drop);
    if (r == 0) r = rp_rows_exec(&rows, tx->db, NULL, NULL, err);
    rows.sql = RP_SQL(process_cancel);
    if (r == 0) r = rp_rows_exec(&rows, tx->db, &now, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "jobs of the processor") : 0;
}

static int sync_found(struct rp_tx *tx, const struct rp_sql *sql, size_t max, struct rp_error *err)
{
    struct rp_value most = rp_int((int64_t)max);
    struct rp_ids ids = { .at = rp_arena_array(tx->arena, max, sizeof(int64_t)) };
    if (ids.at == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for processor jobs");
    int r = rp_db_query(tx->db, sql, &most, rp_ids_row, &ids, err);
    return r < 0 ? r : rp_process_sync(tx, ids.at, ids.n, err);
}

int rp_process_mend(struct rp_tx *tx, size_t max, bool revive, struct rp_error *err)
{
    struct rp_value now = rp_int(tx->db_ms);
    int r = sync_found(tx, RP_SQL(process_missing), max, err);
    if (r == 0) r = sync_found(tx, RP_SQL(process_stray), max, err);
    if (r == 0 && revive) r = rp_db_exec(tx->db, RP_SQL(process_revive), &now, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "mend the jobs of the processor") : 0;
}

/* ---- calls ---- */

struct jobs {
    struct rp_process_job *at;
    size_t n;
};

static int job_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct jobs *jobs = ctx;
    struct rp_process_job *job = &jobs->at[jobs->n++];
    (void)err;
    *job = (struct rp_process_job){
        .file_id = row[0].i, .action = (enum rp_process_action)row[2].i, .attempts = row[3].i, .made_at_ms = row[4].i
    };
    snprintf(job->key, sizeof job->key, "%s", row[1].p);
    return 0;
}

int rp_process_due(struct rp_db *db, int64_t now_ms, struct rp_process_job *out, size_t max, size_t *n,
                   struct rp_error *err)
{
    struct rp_value args[] = { rp_int(now_ms), rp_int((int64_t)max) };
    struct jobs jobs = { .at = out };
    int r = rp_db_query(db, RP_SQL(process_due), args, job_row, &jobs, err);
    if (r < 0) return rp_error_wrap(err, r, "look for jobs of the processor");
    *n = jobs.n;
    return 0;
}

int rp_process_claim(struct rp_tx *tx, struct rp_process_job *job, int64_t lease_ms, bool *mine, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(job->file_id), rp_int(job->action), rp_int(job->attempts), rp_int(tx->db_ms),
                               rp_int(tx->db_ms + lease_ms) };
    int64_t changed = 0;
    int r = rp_db_exec(tx->db, RP_SQL(process_claim), args, &changed, err);
    if (r < 0) return rp_error_wrap(err, r, "claim a job of the processor");
    *mine = changed > 0;
    return 0;
}

int rp_process_finish(struct rp_tx *tx, const struct rp_process_job *job, enum rp_process_end end, int64_t again_ms,
                      long status, struct rp_error *err)
{
    static const int64_t states[] = {
        [RP_PROCESS_TOLD] = STATE_TOLD, [RP_PROCESS_AGAIN] = STATE_CALL, [RP_PROCESS_DEAD] = STATE_DEAD
    };
    bool is_over = end == RP_PROCESS_GIVEN_UP || (end == RP_PROCESS_TOLD && job->action == RP_PROCESS_CANCEL);
    struct rp_value args[] = { rp_int(job->file_id),         rp_int(job->action),
                               rp_int(job->attempts),        rp_int(is_over ? 0 : states[end]),
                               rp_int(tx->db_ms + again_ms), rp_int(status) };
    int r = rp_db_exec(tx->db, is_over ? RP_SQL(process_end) : RP_SQL(process_told), args, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "finish a job of the processor") : 0;
}

int rp_process_count_dead(struct rp_db *db, int64_t most, int64_t *out, struct rp_error *err)
{
    struct rp_value limit = rp_int(most);
    struct rp_one dead = { 0 };
    int r = rp_db_query(db, RP_SQL(process_dead), &limit, rp_one_row, &dead, err);
    if (r < 0) return rp_error_wrap(err, r, "count dead jobs of the processor");
    *out = dead.i[0];
    return 0;
}
