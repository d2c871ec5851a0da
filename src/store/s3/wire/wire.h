/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h - carries requests to one server: one thread with a libcurl multi handle, many requests
 * under way, connections kept.
 *
 * W1  rp_s3_wire_run returns when every call has its answer or its failure. Any number of threads
 *     may wait in it at once.
 * W2  A call ends within its patience. An attempt that was refused before anything was sent,
 *     answered 5xx (but 501), 429 or SlowDown, or broke off is made again after a pause that
 *     doubles, with full jitter, unless the call is `once` and may have been carried out: such a
 *     call fails with RP_EUNKNOWN, whatever the server said in a 5xx. Nothing is sent again after
 *     W2 has given up. Answered 429 or SlowDown below 500 a `once` call was not carried out, but is
 *     not made again either: what it was based on gets older. A pause asked for by Retry-After is
 *     kept.
 * W3  `code` 0 means: there is a complete answer, of any status below 500 but 429, or 501: no
 *     repetition gives a server what it does not have. RP_EUNAVAILABLE: not reached, or not carried
 *     out as far as one can know (a call that changes nothing; or nothing was sent). RP_EUNKNOWN:
 *     it may have been carried out. RP_ETOOBIG: the answer is larger than answer_max (of a `once`
 *     call: RP_EUNKNOWN). RP_EDENIED: no keys. RP_ECONFIG: TLS, host name: no repetition helps; a
 *     name that nobody knows is RP_EUNAVAILABLE once the server has answered. RP_ENOMEM, RP_EINVAL:
 *     the request could not be made.
 * W4  At most `limit` requests are under way; the limit grows by one after as many good answers as
 *     it is large, up to S3_LIMIT_MAX, and is halved, at most once a round trip, when the server
 *     says SlowDown, 503 or 429. requests_per_second caps new requests. Threads take turns. Streams
 *     are beside the limit, not beside the rate.
 * W5  The clock of signing is corrected by the Date of answers: RequestTimeTooSkewed is answered by
 *     one more attempt with the server's time. ExpiredToken and InvalidAccessKeyId: one more
 *     attempt with keys fetched anew.
 * W6  No Expect: 100-continue; redirects are not followed (the error names the region or endpoint
 *     that the answer asks for); answers are bounded: 64 KiB of headers, answer_max of body (from
 *     status 300 on 64 KiB at least: error documents). Secrets are in no note.
 * W7  Interrupting ends calls under way with RP_EUNAVAILABLE or RP_EUNKNOWN, and lets none begin
 *     any more; it waits for nobody. Closing does so too, and returns when all threads have left
 *     the wire.
 * W8  A dead server is told within 10 s, whatever patience a call has. If calls wait and nothing
 *     has come from the server for S3_SILENT_MS, it is asked for its bucket's head over a
 *     connection of its own (`on_silence` is told). Any answer will do. None within S3_ASK_MS: all
 *     calls that wait end as in W7, and those that come within S3_DEAD_MS from then on end at
 *     once. A server that only takes long over one call answers that question. A stream waits for
 *     its first byte no longer than that, unless the server was heard a moment ago. */
#ifndef RP_STORE_S3_WIRE_H
#define RP_STORE_S3_WIRE_H

#include "base/error.h"
#include "base/text/buf.h"
#include "store/open.h"
#include "store/s3/credentials/credentials.h"
#include "store/s3/wire/sign.h"

#include <pthread.h>

#define S3_LIMIT_FIRST 8
#define S3_LIMIT_MAX   64
#define S3_SILENT_MS   ((int64_t)3000)
#define S3_ASK_MS      ((int64_t)5000)
#define S3_DEAD_MS     ((int64_t)5000)

struct rp_clock;
struct s3_wire;

struct s3_wire_options {
    struct s3_target target; /* its strings outlive the wire, as all pointers here */
    struct s3_credentials *credentials;
    const char *ca_file; /* "" */
    int64_t timeout_ms, patience_ms, requests_per_second;
    const struct rp_clock *clock;
    struct rp_on_silence on_silence; /* W8; tell NULL: nobody */
};

struct s3_call {
    /* in */
    struct s3_message message;
    bool once;                  /* carried out twice it could do harm: W2 */
    size_t answer_max;          /* bytes of body */
    int64_t patience_ms;        /* 0: the wire's */
    const struct rp_gate *gate; /* backend.h, T11 */
    const struct rp_sink *to;   /* rp_s3_wire_stream: where the body of a 200 or 206 goes */
    /* out */
    int code, status;
    char note[120];        /* code < 0: what happened */
    struct rp_buf headers; /* "name: value\n" each, names in lower case; rp_s3_call_done frees both */
    struct rp_buf answer;
    int64_t sunk_bytes; /* what the sink was given, in the last attempt */
    bool sink_failed;   /* the code is the sink's */
    unsigned attempts;  /* how often it was sent; once at least if it was tried */
};
/* A header of the answer; NULL if it has none. Copied into `out`, cut at its end. */
const char *rp_s3_header(const struct s3_call *call, const char *name, char *out, size_t size);
/* A date in it, of whole seconds; false: there is none that can be read. */
bool rp_s3_header_date(const struct s3_call *call, const char *name, int64_t *out_ms);
void rp_s3_call_done(struct s3_call *call); /* may be used again after it */

int rp_s3_wire_open(const struct s3_wire_options *options, struct s3_wire **out, struct rp_error *err);
void rp_s3_wire_interrupt(struct s3_wire *wire); /* any thread */
void rp_s3_wire_close(struct s3_wire *wire);
/* Returns 0, or RP_ENOMEM with no call begun. */
int rp_s3_wire_run(struct s3_wire *wire, struct s3_call *calls, size_t n, struct rp_error *err);
/* One call on the caller's own thread and connection, so that a slow sink holds nobody up: repeated
 * only while the sink has got nothing. A negative code of the sink ends it and is the call's code;
 * `err` is what the sink was given. Patience is for the first byte; after it the stream lasts until
 * nothing comes for timeout_ms, the sink's own time not counted. Returns as rp_s3_wire_run. */
int rp_s3_wire_stream(struct s3_wire *wire, struct s3_call *call, struct rp_error *err);

/* A thread that signals pass by. */
bool rp_s3_thread_start(pthread_t *thread, void *(*run)(void *), void *ctx);

/* The server's clock by its last answer; false: there was none yet. */
bool rp_s3_wire_clock(struct s3_wire *wire, int64_t *now_ms);
struct s3_wire_state {
    unsigned limit, under_way;
    uint64_t requests, repeated, slowed;
};
void rp_s3_wire_state(struct s3_wire *wire, struct s3_wire_state *out);

#endif
