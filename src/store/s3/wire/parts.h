/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - the wire from the inside: what its files share. From outside it is wire.h.
 *
 *   file         what
 *   wire.c       open, close; what calls have in common: keys, clock, what an answer teaches
 *   loop.c       begin, wait: calls in groups, the queue, the thread that owns the multi handle
 *   stream.c     stream: one call on the caller's own thread
 *   transfer.c   one attempt: curl set up, the answer taken in
 *   judge.c      what follows from an attempt
 *   pace.c       limit, rate, pauses. Pure
 *
 * A call that was handed in is a job. It is in one place at a time: arrived (under the lock),
 * ready, paused or under way (the loop's own), or with the thread that waits for it, which fetches
 * new keys. Whoever has it may write to it and to its call. */
#ifndef RP_STORE_S3_WIRE_PARTS_H
#define RP_STORE_S3_WIRE_PARTS_H

#include "base/arena.h"
#include "store/s3/wire/wire.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>

#define S3_HEADER_BYTES_MAX ((size_t)64 << 10)
#define S3_FAULT_MAX        ((size_t)64 << 10) /* an error document may be so long, whatever answer_max says */

/* ---- pace.c ---- */

struct s3_pace {
    unsigned limit, good;         /* answers since the limit changed */
    uint64_t begun, halved_at;    /* numbers of attempts: those before halved_at were begun under the larger limit */
    int64_t interval_ns, next_ns; /* interval 0: no cap */
    uint64_t random;
};
void rp_s3_pace_init(struct s3_pace *pace, int64_t requests_per_second, uint64_t seed);
/* How long the rate makes a new request wait. */
int64_t rp_s3_pace_wait_ms(const struct s3_pace *pace, int64_t now_ms);
/* A request begins; returns its number. */
uint64_t rp_s3_pace_begin(struct s3_pace *pace, int64_t now_ms);
void rp_s3_pace_good(struct s3_pace *pace);
/* The server wants less. Halves the limit unless this request was begun before it was halved last:
 * that is one round trip. */
void rp_s3_pace_slow(struct s3_pace *pace, uint64_t number);
/* Before the nth repetition (from 1): anything up to a bound that doubles, after what the server
 * asked for. */
int64_t rp_s3_pace_pause_ms(struct s3_pace *pace, unsigned repetition, int64_t asked_ms);

/* ---- jobs ---- */

/* A message made ready to go. */
struct s3_signing {
    struct rp_arena arena;
    struct s3_signed out;
    int64_t at_ms, at_boot_ms; /* the moment in the signature; when it was made */
    uint64_t keys;             /* the generation of them */
    bool fresh, has_token;
};

struct s3_group;
struct s3_job {
    struct s3_call *call;
    struct s3_group *group; /* NULL: a stream */
    struct s3_job *next;
    struct s3_signing ahead;                         /* a large body is hashed by the thread that brings it */
    int64_t brought_at_ms, begins_at_ms, ends_at_ms; /* of the boot clock */
    unsigned repetitions;
    uint64_t refused_keys;
    bool maybe_done;              /* an attempt was sent and not answered below 500 */
    bool clock_tried, keys_tried; /* W5: once each */
};

struct s3_jobs {
    struct s3_job *first, **end;
};
void rp_s3_jobs_add(struct s3_jobs *jobs, struct s3_job *job);
struct s3_job *rp_s3_jobs_take(struct s3_jobs *jobs); /* the first; NULL */

/* ---- transfer.c ---- */

struct s3_transfer {
    CURL *easy;
    struct curl_slist *headers;
    struct s3_signing signing;
    char trouble[CURL_ERROR_SIZE];
    struct s3_wire *wire;
    struct s3_transfer *next; /* in a pool */
    /* of this attempt */
    struct s3_job *job;
    const struct s3_signing *used;
    uint64_t number;
    unsigned sent;           /* how often the request was about to go out */
    bool no_room, no_memory; /* the answer is too large; could not be kept */
    bool head_whole;         /* libcurl takes headers that break off for all of them */
    int64_t answered_boot_ms;
    /* of a stream */
    bool streams;
    struct rp_error *sink_err;
    int sink_code;
    int64_t heard_boot_ms; /* the last byte, or when the sink had taken it */
    bool told;             /* that nothing comes */
};
struct s3_transfer *rp_s3_transfer_new(struct s3_wire *wire); /* NULL: no memory */
void rp_s3_transfer_free(struct s3_transfer *t);
/* Everything for one attempt of t->job. Negative: it is the call's code, with a note. */
int rp_s3_transfer_begin(struct s3_transfer *t, int64_t now_boot_ms);

/* ---- judge.c ---- */

enum s3_next {
    S3_NEXT_END,   /* code and note stand */
    S3_NEXT_AGAIN, /* after a pause; code and note stand if there is no time for it */
    S3_NEXT_CLOCK, /* at once, by the server's clock */
    S3_NEXT_KEYS   /* with keys fetched anew */
};
struct s3_verdict {
    enum s3_next next;
    bool good, slow;  /* an answer; one that asks for less */
    int64_t date_ms;  /* of the answer; -1: none */
    int64_t asked_ms; /* to wait; 0: nothing said */
};
/* Writes status, code and note of the call. `reached`: this server has answered before. */
struct s3_verdict rp_s3_judge(struct s3_transfer *t, CURLcode result, bool reached);
void rp_s3_fail(struct s3_job *job, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- wire.c ---- */

struct s3_wire {
    struct s3_wire_options options;
    CURLM *multi;
    pthread_t thread;
    bool running;
    atomic_bool closing;
    /* W8, on the boot clock: the last byte of any answer; until when the server counts as dead */
    atomic_int_fast64_t heard_ms, dead_until_ms;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t idle;  /* nobody is inside any more; or streams shall look at `closing` */
    size_t inside;
    struct s3_pace pace;
    struct s3_jobs arrived;
    struct s3_keys keys;
    uint64_t keys_generation;
    int64_t skew_ms;
    bool has_date;
    int64_t date_ms, date_boot_ms;
    bool reached;
    char dead_note[120]; /* W8: what ended the calls that waited */
    unsigned under_way;
    uint64_t requests, repeated, slowed;
    struct s3_transfer *streams; /* idle ones */
    size_t n_streams;
};

/* The call as it was before its first run, and a job for it. */
void rp_s3_job_init(struct s3_job *job, struct s3_wire *wire, struct s3_call *call, struct s3_group *group);
/* Sees to it that there are keys, other ones than of the generation `refused` if that can be. May
 * take long. */
int rp_s3_wire_keys(struct s3_wire *wire, uint64_t refused, struct rp_error *err);
int rp_s3_wire_sign(struct s3_wire *wire, const struct s3_call *call, struct s3_signing *signing, struct rp_error *err);
/* Counts an attempt that begins now. */
void rp_s3_wire_begun(struct s3_wire *wire, struct s3_transfer *t, int64_t now_ms);
/* Judges the attempt, learns from it, and says what follows; for S3_NEXT_AGAIN job->begins_at_ms is
 * set. */
enum s3_next rp_s3_wire_settle(struct s3_wire *wire, struct s3_transfer *t, CURLcode result);
/* W8: somebody is told; it is dead, and why; a call that comes while it is ends at once: true. */
void rp_s3_wire_tell_silence(const struct s3_wire *wire);
void rp_s3_wire_died(struct s3_wire *wire, int64_t now_ms, const char *note);
bool rp_s3_wire_is_dead(struct s3_wire *wire, struct s3_job *job);
void rp_s3_wire_enter(struct s3_wire *wire);
void rp_s3_wire_leave(struct s3_wire *wire);

/* ---- loop.c ---- */

void *rp_s3_wire_loop(void *arg); /* the thread; a wire */

#endif
