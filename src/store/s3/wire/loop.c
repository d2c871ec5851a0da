/* SPDX-License-Identifier: Apache-2.0 */
#include "store/s3/wire/parts.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/time.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define AHEAD_BYTES ((size_t)64 << 10) /* a body from this size on is hashed by the thread that brings it */
#define POLL_MAX_MS (10 * RP_SECOND_MS)

/* The calls of one rp_s3_wire_run. Groups take turns, so that a thousand calls of one thread do not
 * hold up the one of another. */
struct s3_group {
    struct s3_jobs ready;  /* the loop's */
    struct s3_group *next; /* the loop's: in the ring of those that have any ready */
    bool in_ring;
    pthread_cond_t changed; /* with the wire's lock, of what follows */
    size_t left;
    struct s3_jobs refused; /* their keys were: for the waiting thread */
};

/* What only the thread knows. */
struct loop {
    struct s3_wire *wire;
    struct s3_group *ring, **ring_end;
    struct s3_jobs paused;
    int64_t look_at_ms; /* no job begins or ends by itself before */
    struct s3_transfer *idle, *busy[S3_LIMIT_MAX];
    size_t n_busy;
    /* W8 */
    int64_t waits_since_ms;     /* 0: no call waits */
    int64_t silent_since_ms;    /* as the question began: nothing was heard, and somebody waited */
    struct s3_transfer *asking; /* NULL: it is not asked */
    struct s3_job question;
    struct s3_call question_call;
};

/* ---- the thread ---- */

static void end_job(struct loop *l, struct s3_job *job)
{
    struct s3_group *group = job->group;
    rp_arena_done(&job->ahead.arena);
    pthread_mutex_lock(&l->wire->lock);
    RP_ASSERT(group->left > 0);
    if (--group->left == 0) pthread_cond_signal(&group->changed);
    pthread_mutex_unlock(&l->wire->lock);
}

static void hand_back(struct loop *l, struct s3_job *job)
{
    pthread_mutex_lock(&l->wire->lock);
    rp_s3_jobs_add(&job->group->refused, job);
    pthread_cond_signal(&job->group->changed);
    pthread_mutex_unlock(&l->wire->lock);
}

static void ring_add(struct loop *l, struct s3_group *group)
{
    if (l->ring == NULL) l->ring_end = &l->ring;
    group->next = NULL;
    group->in_ring = true;
    *l->ring_end = group;
    l->ring_end = &group->next;
}

static struct s3_group *ring_take(struct loop *l)
{
    struct s3_group *group = l->ring;
    if (group == NULL) return NULL;
    l->ring = group->next;
    group->in_ring = false;
    return group;
}

static void make_ready(struct loop *l, struct s3_job *job)
{
    if (job->ends_at_ms < l->look_at_ms) l->look_at_ms = job->ends_at_ms;
    rp_s3_jobs_add(&job->group->ready, job);
    if (!job->group->in_ring) ring_add(l, job->group);
}

static void make_paused(struct loop *l, struct s3_job *job)
{
    if (job->begins_at_ms < l->look_at_ms) l->look_at_ms = job->begins_at_ms;
    rp_s3_jobs_add(&l->paused, job);
}

static struct s3_job *next_ready(struct loop *l)
{
    struct s3_group *group = ring_take(l);
    if (group == NULL) return NULL;
    struct s3_job *job = rp_s3_jobs_take(&group->ready);
    RP_ASSERT(job != NULL);
    if (group->ready.first != NULL) ring_add(l, group);
    return job;
}

static void end_late(struct loop *l, struct s3_job *job)
{
    if (job->call->code == 0 && rp_gate_is_open(job->call->gate)) /* not one attempt */
        rp_s3_fail(job, RP_EUNAVAILABLE, "its turn did not come within its patience: %zu requests are under way",
                   l->n_busy);
    else if (job->call->code == 0)
        rp_s3_fail(job, RP_EUNAVAILABLE, "its turn came after the time in which it may be sent");
    end_job(l, job);
}

/* Those whose pause is over become ready, those whose patience is over end. */
static void look_at_ready(struct loop *l, int64_t now_ms)
{
    struct s3_group *groups = l->ring;
    l->ring = NULL;
    while (groups != NULL) {
        struct s3_group *group = groups;
        struct s3_jobs jobs = group->ready;
        struct s3_job *job;
        groups = group->next;
        group->in_ring = false;
        group->ready.first = NULL;
        while ((job = rp_s3_jobs_take(&jobs)) != NULL) { /* the group may be gone with its last job */
            if (job->ends_at_ms > now_ms)
                make_ready(l, job);
            else
                end_late(l, job);
        }
    }
}

static void look_at_paused(struct loop *l, int64_t now_ms)
{
    struct s3_jobs jobs = l->paused;
    struct s3_job *job;
    l->paused.first = NULL;
    while ((job = rp_s3_jobs_take(&jobs)) != NULL) {
        if (job->begins_at_ms > now_ms)
            make_paused(l, job);
        else
            make_ready(l, job);
    }
}

static void look(struct loop *l, int64_t now_ms)
{
    if (now_ms < l->look_at_ms) return;
    l->look_at_ms = INT64_MAX;
    look_at_paused(l, now_ms);
    look_at_ready(l, now_ms);
}

static void take_arrived(struct loop *l)
{
    struct s3_job *job;
    pthread_mutex_lock(&l->wire->lock);
    struct s3_jobs arrived = l->wire->arrived;
    l->wire->arrived.first = NULL;
    pthread_mutex_unlock(&l->wire->lock);
    while ((job = rp_s3_jobs_take(&arrived)) != NULL) {
        if (rp_s3_wire_is_dead(l->wire, job))
            end_job(l, job);
        else
            make_ready(l, job);
    }
}

static struct s3_transfer *take_transfer(struct loop *l)
{
    struct s3_transfer *t = l->idle;
    if (t == NULL) return rp_s3_transfer_new(l->wire);
    l->idle = t->next;
    return t;
}

static void give_transfer(struct loop *l, struct s3_transfer *t)
{
    t->job = NULL;
    t->next = l->idle;
    l->idle = t;
}

static void begin(struct loop *l, struct s3_job *job, int64_t now_ms)
{
    struct s3_transfer *t = take_transfer(l);
    if (t == NULL) {
        rp_s3_fail(job, RP_ENOMEM, "out of memory");
        end_job(l, job);
        return;
    }
    t->job = job;
    int r = rp_s3_transfer_begin(t, now_ms);
    if (r == 0 && curl_multi_add_handle(l->wire->multi, t->easy) != CURLM_OK) {
        rp_s3_fail(job, RP_ENOMEM, "out of memory");
        r = RP_ENOMEM;
    }
    if (r < 0) {
        give_transfer(l, t);
        end_job(l, job);
        return;
    }
    rp_s3_wire_begun(l->wire, t, now_ms);
    l->busy[l->n_busy++] = t;
}

/* The time that the rate makes the next one wait; -1: none is ready, or all that may be are under
 * way. */
static int64_t begin_ready(struct loop *l, int64_t now_ms)
{
    for (;;) {
        pthread_mutex_lock(&l->wire->lock);
        unsigned limit = l->wire->pace.limit;
        int64_t wait_ms = rp_s3_pace_wait_ms(&l->wire->pace, now_ms);
        pthread_mutex_unlock(&l->wire->lock);
        if (l->ring == NULL || l->n_busy >= limit) return -1;
        if (wait_ms > 0) return wait_ms;
        struct s3_job *job = next_ready(l);
        if (job->ends_at_ms > now_ms && rp_gate_is_open(job->call->gate))
            begin(l, job, now_ms);
        else
            end_late(l, job);
    }
}

static void put_down(struct loop *l, struct s3_transfer *t)
{
    size_t i = 0;
    while (i < l->n_busy && l->busy[i] != t)
        i++;
    RP_ASSERT(i < l->n_busy);
    l->busy[i] = l->busy[--l->n_busy];
    (void)curl_multi_remove_handle(l->wire->multi, t->easy);
}

static void finish(struct loop *l, struct s3_transfer *t, CURLcode result)
{
    struct s3_job *job = t->job;
    enum s3_next next = rp_s3_wire_settle(l->wire, t, result);
    put_down(l, t);
    give_transfer(l, t);
    switch (next) {
    case S3_NEXT_END:
        end_job(l, job);
        break;
    case S3_NEXT_KEYS:
        hand_back(l, job);
        break;
    case S3_NEXT_AGAIN:
        make_paused(l, job);
        break;
    case S3_NEXT_CLOCK:
        make_ready(l, job);
        break;
    }
}

/* Everything that was taken on. */
static void end_waiting(struct loop *l, const char *why_under_way, const char *why_waiting)
{
    struct s3_job *job;
    while (l->n_busy > 0) {
        struct s3_transfer *t = l->busy[l->n_busy - 1];
        job = t->job;
        (void)rp_s3_wire_settle(l->wire, t, CURLE_ABORTED_BY_CALLBACK);
        rp_s3_fail(job, RP_EUNAVAILABLE, "%s", why_under_way);
        put_down(l, t);
        give_transfer(l, t);
        end_job(l, job);
    }
    while ((job = rp_s3_jobs_take(&l->paused)) != NULL)
        make_ready(l, job);
    while ((job = next_ready(l)) != NULL) {
        rp_s3_fail(job, RP_EUNAVAILABLE, "%s", why_waiting);
        end_job(l, job);
    }
}

/* ---- a server that says nothing (W8) ---- */

static bool waits(const struct loop *l)
{
    return l->n_busy > 0 || l->paused.first != NULL || l->ring != NULL;
}

/* When it is to be asked, if nothing comes until then. */
static int64_t ask_at_ms(const struct loop *l)
{
    int64_t heard_ms = atomic_load(&l->wire->heard_ms);
    if (l->asking != NULL || !waits(l)) return INT64_MAX;
    return (heard_ms > l->waits_since_ms ? heard_ms : l->waits_since_ms) + S3_SILENT_MS;
}

static void forget_question(struct loop *l)
{
    if (l->asking == NULL) return;
    (void)curl_multi_remove_handle(l->wire->multi, l->asking->easy);
    give_transfer(l, l->asking);
    l->asking = NULL;
    rp_s3_call_done(&l->question_call);
}

static void ask(struct loop *l, int64_t now_ms)
{
    struct s3_transfer *t = take_transfer(l);
    l->waits_since_ms = t == NULL ? now_ms : l->waits_since_ms; /* no memory: a little later */
    if (t == NULL) return;
    rp_s3_wire_tell_silence(l->wire);
    l->silent_since_ms = l->waits_since_ms; /* who waited may be gone before the answer */
    l->question_call = (struct s3_call){ .message.method = "HEAD", .patience_ms = S3_ASK_MS };
    rp_s3_job_init(&l->question, l->wire, &l->question_call, NULL);
    t->job = &l->question;
    bool ok = rp_s3_transfer_begin(t, now_ms) == 0 &&
              curl_easy_setopt(t->easy, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK &&
              curl_easy_setopt(t->easy, CURLOPT_FORBID_REUSE, 1L) == CURLE_OK &&
              curl_multi_add_handle(l->wire->multi, t->easy) == CURLM_OK;
    l->asking = t;
    if (ok) return;
    forget_question(l);
    l->waits_since_ms = now_ms;
}

static void asked(struct loop *l, const struct s3_transfer *t)
{
    char why[80];
    long status = 0;
    int64_t now_ms = rp_time_boot_ms();
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    forget_question(l);
    if (status > 0 || now_ms - atomic_load(&l->wire->heard_ms) < S3_SILENT_MS) return;
    snprintf(why, sizeof why, "it has not answered for %" PRId64 " s", (now_ms - l->silent_since_ms + 500) / 1000);
    rp_s3_wire_died(l->wire, now_ms, why);
    end_waiting(l, why, why);
}

static void look_for_silence(struct loop *l, int64_t now_ms)
{
    if (!waits(l))
        l->waits_since_ms = 0;
    else if (l->waits_since_ms == 0)
        l->waits_since_ms = now_ms;
    if (now_ms >= ask_at_ms(l)) ask(l, now_ms);
}

static void finish_done(struct loop *l)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(l->wire->multi, &left)) != NULL) {
        struct s3_transfer *t = NULL;
        if (message->msg != CURLMSG_DONE) continue;
        CURLcode result = message->data.result; /* gone with the handle */
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        RP_ASSERT(t != NULL);
        if (t == l->asking)
            asked(l, t);
        else
            finish(l, t, result);
    }
}

static void end_all(struct loop *l)
{
    forget_question(l);
    take_arrived(l);
    end_waiting(l, "the store was closed while the request was under way",
                "the store was closed before the request was made");
    while (l->idle != NULL) {
        struct s3_transfer *t = l->idle;
        l->idle = t->next;
        rp_s3_transfer_free(t);
    }
}

static int poll_ms(const struct loop *l, int64_t rate_wait_ms, int64_t now_ms)
{
    int64_t wait_ms = POLL_MAX_MS;
    if (l->look_at_ms < INT64_MAX && l->look_at_ms - now_ms < wait_ms) wait_ms = l->look_at_ms - now_ms;
    if (rate_wait_ms >= 0 && rate_wait_ms < wait_ms) wait_ms = rate_wait_ms;
    if (ask_at_ms(l) - now_ms < wait_ms) wait_ms = ask_at_ms(l) - now_ms;
    return wait_ms > 0 ? (int)wait_ms : 0;
}

void *rp_s3_wire_loop(void *arg)
{
    struct loop l = { .wire = arg, .look_at_ms = INT64_MAX };
    int running;
    while (!atomic_load(&l.wire->closing)) {
        (void)curl_multi_perform(l.wire->multi, &running);
        finish_done(&l);
        int64_t now_ms = rp_time_boot_ms();
        take_arrived(&l);
        look(&l, now_ms);
        int64_t rate_wait_ms = begin_ready(&l, now_ms);
        look_for_silence(&l, now_ms);
        (void)curl_multi_poll(l.wire->multi, NULL, 0, poll_ms(&l, rate_wait_ms, now_ms), NULL);
    }
    end_all(&l);
    return NULL;
}

/* ---- the threads that wait ---- */

/* Lets the loop have them; false: there is none any more. */
static bool submit(struct s3_wire *wire, struct s3_jobs *jobs)
{
    struct s3_job *job;
    pthread_mutex_lock(&wire->lock);
    bool open = !atomic_load(&wire->closing);
    while (open && (job = rp_s3_jobs_take(jobs)) != NULL)
        rp_s3_jobs_add(&wire->arrived, job);
    pthread_mutex_unlock(&wire->lock);
    if (open) (void)curl_multi_wakeup(wire->multi);
    return open;
}

static void fail_all(struct s3_wire *wire, struct s3_group *group, struct s3_jobs *jobs, int code, const char *why)
{
    struct s3_job *job;
    size_t n = 0;
    for (; (job = rp_s3_jobs_take(jobs)) != NULL; n++) {
        rp_s3_fail(job, code, "%s", why);
        rp_arena_done(&job->ahead.arena);
    }
    pthread_mutex_lock(&wire->lock);
    RP_ASSERT(group->left >= n);
    group->left -= n;
    pthread_mutex_unlock(&wire->lock);
}

static void sign_ahead(struct s3_wire *wire, struct s3_jobs *jobs)
{
    struct rp_error err = { 0 };
    for (struct s3_job *job = jobs->first; job != NULL; job = job->next) {
        if (job->call->message.body_bytes < AHEAD_BYTES) continue;
        job->ahead.arena.max = (size_t)256 << 10;
        job->ahead.fresh = rp_s3_wire_sign(wire, job->call, &job->ahead, &err) == 0;
    }
}

static void bring(struct s3_wire *wire, struct s3_group *group, struct s3_jobs *jobs, uint64_t refused)
{
    struct rp_error err = { 0 };
    int r = rp_s3_wire_keys(wire, refused, &err);
    if (r < 0) {
        fail_all(wire, group, jobs, r, err.text);
        return;
    }
    sign_ahead(wire, jobs);
    if (!submit(wire, jobs)) fail_all(wire, group, jobs, RP_EUNAVAILABLE, "the store is closed");
}

static uint64_t newest_refused(const struct s3_jobs *jobs)
{
    uint64_t newest = 0;
    for (const struct s3_job *job = jobs->first; job != NULL; job = job->next)
        if (job->refused_keys > newest) newest = job->refused_keys;
    return newest;
}

static void wait_for(struct s3_wire *wire, struct s3_group *group)
{
    pthread_mutex_lock(&wire->lock);
    while (group->left > 0) {
        struct s3_jobs refused = group->refused;
        if (refused.first == NULL) {
            pthread_cond_wait(&group->changed, &wire->lock);
            continue;
        }
        group->refused.first = NULL;
        pthread_mutex_unlock(&wire->lock);
        bring(wire, group, &refused, newest_refused(&refused));
        pthread_mutex_lock(&wire->lock);
    }
    pthread_mutex_unlock(&wire->lock);
}

int rp_s3_wire_run(struct s3_wire *wire, struct s3_call *calls, size_t n, struct rp_error *err)
{
    if (n == 0) return 0;
    RP_CLEANUP(rp_freep) struct s3_job *jobs = calloc(n, sizeof *jobs);
    if (jobs == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu requests", n);
    struct s3_group group = { .left = n };
    struct s3_jobs all = { .first = NULL };
    RP_ASSERT(pthread_cond_init(&group.changed, NULL) == 0);
    rp_s3_wire_enter(wire);
    for (size_t i = 0; i < n; i++) {
        rp_s3_job_init(&jobs[i], wire, &calls[i], &group);
        rp_s3_jobs_add(&all, &jobs[i]);
    }
    bring(wire, &group, &all, 0);
    wait_for(wire, &group);
    rp_s3_wire_leave(wire);
    pthread_cond_destroy(&group.changed);
    return 0;
}
