/* SPDX-License-Identifier: Apache-2.0 */
#include "store/s3/wire/parts.h"

#include "base/assert.h"
#include "base/time.h"
#include "base/wait.h"

#define KEPT_MAX 8 /* idle handles, each with its connection */

static struct s3_transfer *take_transfer(struct s3_wire *wire)
{
    pthread_mutex_lock(&wire->lock);
    struct s3_transfer *t = wire->streams;
    if (t != NULL) {
        wire->streams = t->next;
        wire->n_streams--;
    }
    pthread_mutex_unlock(&wire->lock);
    return t != NULL ? t : rp_s3_transfer_new(wire);
}

static void give_transfer(struct s3_wire *wire, struct s3_transfer *t)
{
    t->job = NULL;
    t->sink_err = NULL;
    pthread_mutex_lock(&wire->lock);
    bool kept = wire->n_streams < KEPT_MAX;
    if (kept) {
        t->next = wire->streams;
        wire->streams = t;
        wire->n_streams++;
    }
    pthread_mutex_unlock(&wire->lock);
    if (!kept) rp_s3_transfer_free(t);
}

/* Until its pause is over and the rate lets it. False: the call has failed. */
static bool wait_for_turn(struct s3_wire *wire, struct s3_transfer *t)
{
    struct s3_job *job = t->job;
    bool closed;
    int64_t now_ms;
    pthread_mutex_lock(&wire->lock);
    for (;;) {
        now_ms = rp_time_boot_ms();
        closed = atomic_load(&wire->closing);
        bool silent = now_ms - job->brought_at_ms >= S3_SILENT_MS && atomic_load(&wire->heard_ms) < job->brought_at_ms;
        if (silent && !t->told) rp_s3_wire_tell_silence(wire);
        t->told = t->told || silent;
        int64_t pause_ms = job->begins_at_ms - now_ms, rate_ms = rp_s3_pace_wait_ms(&wire->pace, now_ms);
        if (pause_ms < rate_ms) pause_ms = rate_ms;
        if (closed || now_ms >= job->ends_at_ms || pause_ms <= 0) break;
        if (pause_ms > job->ends_at_ms - now_ms) pause_ms = job->ends_at_ms - now_ms;
        const struct timespec until = rp_wait_until(pause_ms);
        (void)pthread_cond_timedwait(&wire->idle, &wire->lock, &until);
    }
    pthread_mutex_unlock(&wire->lock);
    if (closed)
        rp_s3_fail(job, RP_EUNAVAILABLE, "the store was closed before the request was made");
    else if (now_ms >= job->ends_at_ms && job->call->code == 0)
        rp_s3_fail(job, RP_EUNAVAILABLE, "its turn did not come within its patience");
    return !closed && now_ms < job->ends_at_ms;
}

static enum s3_next attempt(struct s3_wire *wire, struct s3_transfer *t)
{
    int64_t now_ms = rp_time_boot_ms();
    if (now_ms >= t->job->ends_at_ms) now_ms = t->job->ends_at_ms - 1;
    if (rp_s3_transfer_begin(t, now_ms) < 0) return S3_NEXT_END;
    rp_s3_wire_begun(wire, t, now_ms);
    return rp_s3_wire_settle(wire, t, curl_easy_perform(t->easy));
}

static bool have_keys(struct s3_wire *wire, struct s3_job *job, uint64_t refused)
{
    struct rp_error err = { 0 };
    int r = rp_s3_wire_keys(wire, refused, &err);
    if (r < 0) rp_s3_fail(job, r, "%s", err.text);
    return r == 0;
}

static void run(struct s3_wire *wire, struct s3_transfer *t)
{
    enum s3_next next = S3_NEXT_KEYS;
    while (next != S3_NEXT_END) {
        if (next == S3_NEXT_KEYS && !have_keys(wire, t->job, t->job->refused_keys)) return;
        if (!wait_for_turn(wire, t)) return;
        next = attempt(wire, t);
    }
}

/* W8. The question is left out: if the server was not heard before, the first byte is the
 * answer. */
static void run_unless_dead(struct s3_wire *wire, struct s3_transfer *t)
{
    const int64_t dead_ms = S3_SILENT_MS + S3_ASK_MS;
    struct s3_job *job = t->job;
    int64_t began_ms = job->brought_at_ms;
    if (rp_s3_wire_is_dead(wire, job)) return;
    bool heard = began_ms - atomic_load(&wire->heard_ms) < dead_ms;
    if (!heard && job->ends_at_ms > began_ms + dead_ms) job->ends_at_ms = began_ms + dead_ms;
    run(wire, t);
    int64_t now_ms = rp_time_boot_ms();
    bool silent = now_ms - began_ms >= S3_SILENT_MS && atomic_load(&wire->heard_ms) < began_ms;
    if (job->call->code < 0 && silent) rp_s3_wire_died(wire, now_ms, job->call->note);
}

int rp_s3_wire_stream(struct s3_wire *wire, struct s3_call *call, struct rp_error *err)
{
    RP_ASSERT(call->to != NULL);
    struct s3_job job;
    rp_s3_wire_enter(wire);
    struct s3_transfer *t = take_transfer(wire);
    if (t == NULL) {
        rp_s3_wire_leave(wire);
        return rp_error_set(err, RP_ENOMEM, "no memory for a request");
    }
    rp_s3_job_init(&job, wire, call, NULL);
    t->job = &job;
    t->streams = true;
    t->told = false;
    t->sink_err = err;
    run_unless_dead(wire, t);
    give_transfer(wire, t);
    rp_s3_wire_leave(wire);
    return 0;
}
