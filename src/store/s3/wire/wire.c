/* SPDX-License-Identifier: Apache-2.0 */
#include "store/s3/wire/parts.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/time.h"
#include "base/wait.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define WORTHWHILE_MS 50 /* with less left an attempt would only hide why the one before failed */

/* ---- calls ---- */

const char *rp_s3_header(const struct s3_call *call, const char *name, char *out, size_t size)
{
    RP_ASSERT(size > 0);
    size_t name_n = strlen(name);
    for (const char *line = rp_buf_text(&call->headers); *line != '\0';) {
        size_t n = strcspn(line, "\n");
        if (n >= name_n + 2 && memcmp(line, name, name_n) == 0 && memcmp(line + name_n, ": ", 2) == 0) {
            size_t value_n = n - name_n - 2;
            if (value_n > size - 1) value_n = size - 1;
            memcpy(out, line + name_n + 2, value_n);
            out[value_n] = '\0';
            return out;
        }
        line += n + (line[n] == '\n');
    }
    return NULL;
}

bool rp_s3_header_date(const struct s3_call *call, const char *name, int64_t *out)
{
    char text[64];
    if (!rp_s3_header(call, name, text, sizeof text)) return false;
    const int64_t seconds = (int64_t)curl_getdate(text, NULL);
    if (seconds < 0 || seconds > RP_TIME_MAX_MS / 1000) return false;
    *out = seconds * 1000;
    return true;
}

static void forget_outcome(struct s3_call *call)
{
    call->code = call->status = 0;
    call->note[0] = '\0';
    call->sunk_bytes = 0;
    call->sink_failed = false;
    call->attempts = 0;
}

void rp_s3_call_done(struct s3_call *call)
{
    rp_buf_done(&call->headers);
    rp_buf_done(&call->answer);
    forget_outcome(call);
}

void rp_s3_jobs_add(struct s3_jobs *jobs, struct s3_job *job)
{
    if (jobs->first == NULL) jobs->end = &jobs->first;
    job->next = NULL;
    *jobs->end = job;
    jobs->end = &job->next;
}

struct s3_job *rp_s3_jobs_take(struct s3_jobs *jobs)
{
    struct s3_job *job = jobs->first;
    if (job != NULL) jobs->first = job->next;
    return job;
}

void rp_s3_job_init(struct s3_job *job, struct s3_wire *wire, struct s3_call *call, struct s3_group *group)
{
    int64_t patience_ms = call->patience_ms > 0 ? call->patience_ms : wire->options.patience_ms;
    int64_t now_ms = rp_time_boot_ms();
    *job = (struct s3_job){ .call = call, .group = group, .brought_at_ms = now_ms, .ends_at_ms = now_ms + patience_ms };
    forget_outcome(call);
    rp_buf_clear(&call->headers);
    rp_buf_clear(&call->answer);
}

/* ---- what calls have in common ---- */

static bool are_same(const struct s3_keys *a, const struct s3_keys *b)
{
    return strcmp(a->access, b->access) == 0 && strcmp(a->secret, b->secret) == 0 && strcmp(a->token, b->token) == 0;
}

int rp_s3_wire_keys(struct s3_wire *wire, uint64_t refused, struct rp_error *err)
{
    struct s3_keys keys;
    pthread_mutex_lock(&wire->lock);
    bool newest = refused > 0 && wire->keys_generation == refused;
    pthread_mutex_unlock(&wire->lock);
    if (newest) rp_s3_credentials_refused(wire->options.credentials);
    int r = rp_s3_credentials_get(wire->options.credentials, &keys, err);
    if (r < 0) return r == RP_EUNAVAILABLE || r == RP_ENOMEM ? r : RP_EDENIED;
    pthread_mutex_lock(&wire->lock);
    if (wire->keys_generation == 0 || !are_same(&wire->keys, &keys)) {
        wire->keys = keys;
        wire->keys_generation++;
    }
    pthread_mutex_unlock(&wire->lock);
    explicit_bzero(&keys, sizeof keys);
    return 0;
}

int rp_s3_wire_sign(struct s3_wire *wire, const struct s3_call *call, struct s3_signing *signing, struct rp_error *err)
{
    struct s3_keys keys;
    pthread_mutex_lock(&wire->lock);
    RP_ASSERT(wire->keys_generation > 0);
    keys = wire->keys;
    signing->keys = wire->keys_generation;
    signing->at_ms = rp_clock_now_ms(wire->options.clock) + wire->skew_ms;
    pthread_mutex_unlock(&wire->lock);
    rp_arena_reset(&signing->arena);
    signing->has_token = keys.token[0] != '\0';
    signing->at_boot_ms = rp_time_boot_ms();
    int r =
        rp_s3_sign(&wire->options.target, &keys, &call->message, signing->at_ms, &signing->arena, &signing->out, err);
    explicit_bzero(&keys, sizeof keys);
    return r;
}

void rp_s3_wire_begun(struct s3_wire *wire, struct s3_transfer *t, int64_t now_ms)
{
    pthread_mutex_lock(&wire->lock);
    t->number = rp_s3_pace_begin(&wire->pace, now_ms);
    wire->under_way += !t->streams;
    wire->requests++;
    if (t->job->call->attempts++ > 0) wire->repeated++;
    pthread_mutex_unlock(&wire->lock);
}

static void learn(struct s3_wire *wire, const struct s3_transfer *t, const struct s3_verdict *v)
{
    if (t->job->call->status > 0) wire->reached = true;
    if (v->date_ms >= 0) {
        wire->has_date = true;
        wire->date_ms = v->date_ms;
        wire->date_boot_ms = t->answered_boot_ms;
    }
    if (v->next == S3_NEXT_CLOCK) wire->skew_ms = v->date_ms - rp_clock_now_ms(wire->options.clock);
    if (v->good) rp_s3_pace_good(&wire->pace);
    if (!v->slow) return;
    rp_s3_pace_slow(&wire->pace, t->number);
    wire->slowed++;
}

enum s3_next rp_s3_wire_settle(struct s3_wire *wire, struct s3_transfer *t, CURLcode result)
{
    struct s3_job *job = t->job;
    pthread_mutex_lock(&wire->lock);
    bool reached = wire->reached;
    pthread_mutex_unlock(&wire->lock);
    struct s3_verdict v = rp_s3_judge(t, result, reached);
    int64_t now_ms = rp_time_boot_ms();
    job->clock_tried |= v.next == S3_NEXT_CLOCK;
    job->keys_tried |= v.next == S3_NEXT_KEYS;
    job->refused_keys = t->used->keys;
    job->begins_at_ms = now_ms;
    pthread_mutex_lock(&wire->lock);
    learn(wire, t, &v);
    wire->under_way -= !t->streams;
    if (v.next == S3_NEXT_AGAIN) job->begins_at_ms += rp_s3_pace_pause_ms(&wire->pace, ++job->repetitions, v.asked_ms);
    pthread_mutex_unlock(&wire->lock);
    bool in_time = job->begins_at_ms + WORTHWHILE_MS <= job->ends_at_ms;
    return v.next == S3_NEXT_END || in_time ? v.next : S3_NEXT_END;
}

void rp_s3_wire_tell_silence(const struct s3_wire *wire)
{
    const struct rp_on_silence *to = &wire->options.on_silence;
    const struct s3_target *target = &wire->options.target;
    char endpoint[300];
    if (to->tell == NULL) return;
    snprintf(endpoint, sizeof endpoint, "%s://%s", target->scheme, target->host);
    to->tell(to->ctx, endpoint, S3_SILENT_MS);
}

void rp_s3_wire_died(struct s3_wire *wire, int64_t now_ms, const char *note)
{
    pthread_mutex_lock(&wire->lock);
    snprintf(wire->dead_note, sizeof wire->dead_note, "%s", note);
    pthread_mutex_unlock(&wire->lock);
    atomic_store(&wire->dead_until_ms, now_ms + S3_DEAD_MS);
}

bool rp_s3_wire_is_dead(struct s3_wire *wire, struct s3_job *job)
{
    if (rp_time_boot_ms() >= atomic_load(&wire->dead_until_ms)) return false;
    pthread_mutex_lock(&wire->lock);
    rp_s3_fail(job, RP_EUNAVAILABLE, "%s", wire->dead_note);
    pthread_mutex_unlock(&wire->lock);
    return true;
}

void rp_s3_wire_enter(struct s3_wire *wire)
{
    pthread_mutex_lock(&wire->lock);
    wire->inside++;
    pthread_mutex_unlock(&wire->lock);
}

void rp_s3_wire_leave(struct s3_wire *wire)
{
    pthread_mutex_lock(&wire->lock);
    RP_ASSERT(wire->inside > 0);
    if (--wire->inside == 0) pthread_cond_broadcast(&wire->idle);
    pthread_mutex_unlock(&wire->lock);
}

/* ---- what others may know ---- */

bool rp_s3_wire_clock(struct s3_wire *wire, int64_t *now_ms)
{
    pthread_mutex_lock(&wire->lock);
    bool known = wire->has_date;
    if (known) *now_ms = wire->date_ms + (rp_time_boot_ms() - wire->date_boot_ms);
    pthread_mutex_unlock(&wire->lock);
    return known;
}

void rp_s3_wire_state(struct s3_wire *wire, struct s3_wire_state *out)
{
    pthread_mutex_lock(&wire->lock);
    *out = (struct s3_wire_state){ .limit = wire->pace.limit,
                                   .under_way = wire->under_way,
                                   .requests = wire->requests,
                                   .repeated = wire->repeated,
                                   .slowed = wire->slowed };
    pthread_mutex_unlock(&wire->lock);
}

/* ---- open and close ---- */

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_ready; /* written once, read after it */

static void start_curl(void)
{
    curl_ready = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static int check_options(const struct s3_wire_options *o, struct rp_error *err)
{
    RP_ASSERT(o->credentials != NULL && o->timeout_ms > 0 && o->patience_ms > 0 && o->requests_per_second >= 0);
    if (o->ca_file == NULL || o->ca_file[0] == '\0' || access(o->ca_file, R_OK) == 0) return 0;
    int errno_value = errno;
    (void)rp_error_errno(err, errno_value, "read the certificates in %s", o->ca_file);
    if (err != NULL) err->code = RP_ECONFIG;
    (void)rp_error_hint(err, "ca_file must name a PEM file that this user may read");
    return RP_ECONFIG;
}

static uint64_t make_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) seed = (uint64_t)rp_time_boot_ms();
    return seed;
}

/* Signals are for the threads that wait for them. */
bool rp_s3_thread_start(pthread_t *thread, void *(*run)(void *), void *ctx)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int r = pthread_create(thread, NULL, run, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r == 0;
}

int rp_s3_wire_open(const struct s3_wire_options *options, struct s3_wire **out, struct rp_error *err)
{
    int r = check_options(options, err);
    if (r < 0) return r;
    (void)pthread_once(&curl_once, start_curl);
    if (curl_ready != CURLE_OK) return rp_error_set(err, RP_EFAILED, "libcurl cannot be initialised");
    struct s3_wire *wire = calloc(1, sizeof *wire);
    if (wire == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for connections to the store");
    wire->options = *options;
    RP_ASSERT(pthread_mutex_init(&wire->lock, NULL) == 0);
    rp_wait_init(&wire->idle);
    rp_s3_pace_init(&wire->pace, options->requests_per_second, make_seed());
    wire->multi = curl_multi_init();
    bool ok = wire->multi != NULL &&
              curl_multi_setopt(wire->multi, CURLMOPT_MAXCONNECTS, (long)S3_LIMIT_MAX) == CURLM_OK &&
              curl_multi_setopt(wire->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) == CURLM_OK;
    wire->running = ok && rp_s3_thread_start(&wire->thread, rp_s3_wire_loop, wire);
    if (!wire->running) {
        rp_s3_wire_close(wire);
        return rp_error_set(err, RP_ENOMEM, "no thread for connections to the store");
    }
    *out = wire;
    return 0;
}

static void wait_until_left(struct s3_wire *wire)
{
    pthread_mutex_lock(&wire->lock);
    while (wire->inside > 0)
        pthread_cond_wait(&wire->idle, &wire->lock);
    pthread_mutex_unlock(&wire->lock);
}

void rp_s3_wire_interrupt(struct s3_wire *wire)
{
    pthread_mutex_lock(&wire->lock);
    atomic_store(&wire->closing, true);
    pthread_cond_broadcast(&wire->idle);
    pthread_mutex_unlock(&wire->lock);
    if (wire->running) (void)curl_multi_wakeup(wire->multi);
}

void rp_s3_wire_close(struct s3_wire *wire)
{
    if (wire == NULL) return;
    rp_s3_wire_interrupt(wire);
    if (wire->running) pthread_join(wire->thread, NULL);
    wait_until_left(wire);
    while (wire->streams != NULL) {
        struct s3_transfer *t = wire->streams;
        wire->streams = t->next;
        rp_s3_transfer_free(t);
    }
    curl_multi_cleanup(wire->multi);
    pthread_cond_destroy(&wire->idle);
    pthread_mutex_destroy(&wire->lock);
    explicit_bzero(&wire->keys, sizeof wire->keys);
    free(wire);
}
