/* SPDX-License-Identifier: Apache-2.0 */
/* run_summary.c - what the runs of some days did, in sum. */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/run.h"
#include "http/api/runs.h"
#include "lib/answer.h"

#define SUMMARY_RECORDS_MAX 10000
#define SUMMARY_PAGE        500

static const char *const counted[] = { "scanned", "marked",     "purged", "already_gone",
                                       "skipped", "superseded", "failed", "bytes_freed" };
#define COUNTED (sizeof counted / sizeof counted[0])

struct summary {
    int64_t since_ms, runs, longest_ms, last_ms, last_id;
    int64_t sums[COUNTED];
    json_t *outcomes;
    bool over;
};

static int sum_record(void *ctx, const struct rp_record_row *row, struct rp_error *err)
{
    struct summary *s = ctx;
    RP_CLEANUP(rp_json_decrefp) json_t *run = NULL;
    s->last_id = row->run_id;
    if (row->started_at_ms < s->since_ms) {
        s->over = true;
        return 0;
    }
    int r = rp_record_json(row, &run, err);
    if (r < 0) return r;
    const json_t *counts = json_object_get(run, "counts");
    for (size_t i = 0; i < COUNTED; i++)
        s->sums[i] += rp_json_get_int(counts, counted[i], 0);
    s->runs++;
    if (row->finished_at_ms - row->started_at_ms > s->longest_ms)
        s->longest_ms = row->finished_at_ms - row->started_at_ms;
    if (row->finished_at_ms > s->last_ms) s->last_ms = row->finished_at_ms;
    rp_json_set(s->outcomes, row->outcome, json_integer(rp_json_get_int(s->outcomes, row->outcome, 0) + 1));
    return 0;
}

static json_t *summary_json(const struct summary *s, bool complete)
{
    json_t *o = json_object(), *counts = json_object();
    for (size_t i = 0; i < COUNTED; i++)
        rp_json_set(counts, counted[i], json_integer(s->sums[i]));
    rp_json_set(o, "since", rp_json_time(s->since_ms));
    rp_json_set(o, "runs", json_integer(s->runs));
    rp_json_set(o, "outcomes", json_incref(s->outcomes));
    rp_json_set(o, "counts", counts);
    rp_json_set(o, "longest_ms", json_integer(s->longest_ms));
    if (s->last_ms != 0) rp_json_set(o, "last_finished_at", rp_json_time(s->last_ms));
    rp_json_set(o, "complete", json_boolean(complete));
    return o;
}

void rp_http_summarise_runs(struct rp_request *q)
{
    RP_CLEANUP(rp_json_decrefp) json_t *outcomes_seen = json_object();
    struct rp_db *db = rp_request_catalog(q)->db;
    struct rp_error err = { 0 };
    int64_t days = rp_json_get_int(q->query, "days", 30), before = INT64_MAX;
    struct summary s = { .since_ms = rp_request_now_ms(q) - days * RP_DAY_MS, .outcomes = outcomes_seen };
    int r = 0;
    if (s.since_ms < 0) s.since_ms = 0;
    for (size_t n = 0; r == 0 && !s.over && n < SUMMARY_RECORDS_MAX; n += SUMMARY_PAGE) {
        s.last_id = 0;
        r = rp_record_each(db, before, SUMMARY_PAGE, sum_record, &s, &err);
        if (s.last_id == 0) s.over = true;
        before = s.last_id;
    }
    if (r < 0)
        rp_reply_error(q, &err);
    else
        rp_reply_json(q, 200, summary_json(&s, s.over));
}
