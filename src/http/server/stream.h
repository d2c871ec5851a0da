/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - a body that is taken as it comes, in constant memory (uploads). The way out is
 * rp_reply_stream (request.h).
 *
 * A route with `streams` has no body shape. Its handler is called when the headers are in and
 * before a byte of the body, as `blocks` says on a thread of the pool or not, and ends in one of
 * two ways: a reply (the body is not wanted: the answer is sent and the connection closed, whatever
 * of the body was still to come), or rp_request_receive.
 *
 *   handler ─▶ reply
 *      └─▶ rp_request_receive ─▶ bytes … bytes ─▶ end ─▶ reply          the whole body came
 *                                   └──────────▶ abort                   it never will
 *
 * R1  Calls for one request never overlap, and each sees what the one before it did. After
 *     rp_request_receive exactly one of `end` and `abort` is called, once; no `abort` after `end`
 *     has begun.
 * R2  `bytes` runs on the connection's thread: it may write to a file, but not sync it, and not ask
 *     the catalog. A negative return refuses the upload: the server calls `abort`, answers with the
 *     error and closes the connection.
 * R3  `end` runs on a thread of the pool when the last byte has come (also of an empty body) and
 *     replies, as a handler does. If the pool is full: `abort`, then 503.
 * R4  `abort` runs when the client left or stalled, when the server stops, or after R2, on any
 *     thread. It gives up what was opened, waits for nothing and does not reply. The request and
 *     its arena are still there; they end after it.
 * R5  To `Expect: 100-continue` the 100 is sent after rp_request_receive, never before a refusal.
 * R6  A body is at most Content-Length bytes; a chunked one has none (rp_request_length), and no
 *     limit but what `bytes` refuses. */
#ifndef RP_HTTP_SERVER_STREAM_H
#define RP_HTTP_SERVER_STREAM_H

#include "base/error.h"
#include "http/server/request.h"

struct rp_stream {
    int (*bytes)(struct rp_request *q, const void *data, size_t n, struct rp_error *err);
    rp_handler_fn *end;
    void (*abort)(struct rp_request *q);
    void *ctx; /* the handler's own, of the request's arena */
};

/* Takes the body. `stream` is of the request's arena (q->stream from now on). Ends the handler
 * (Q2). */
void rp_request_receive(struct rp_request *q, struct rp_stream *stream);

/* Content-Length as the client sent it; -1: none, or chunked. */
int64_t rp_request_length(const struct rp_request *q);
/* The answer's body will be left away. */
bool rp_request_is_head(const struct rp_request *q);
/* A header of the request, any case; NULL: not sent. Lives as long as the request. */
const char *rp_request_header(const struct rp_request *q, const char *name);

#endif
