/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/inner.h"
#include "metrics/metrics.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"

#define JSON    "application/json"
#define PROBLEM "application/problem+json"

/* The body of a stream of unknown length goes through the connection's own buffer; only a known
 * one is read ahead. */
#define STREAM_BLOCK_LIVE  1024
#define STREAM_BLOCK_BYTES ((size_t)64 << 10)

#define HEADERS_MAX (sizeof((struct rp_request *)0)->headers / sizeof((struct rp_request *)0)->headers[0])

static void begin(struct rp_request *q, int status, const char *content_type)
{
    RP_ASSERT(q->inner->phase == RP_HANDLING && status >= 100 && status <= 599);
    q->inner->phase = RP_REPLIED;
    q->inner->code = 0;
    q->status = status;
    q->content_type = content_type;
    rp_buf_clear(&q->out);
}

void rp_reply_reset(struct rp_request *q)
{
    q->n_headers = q->inner->n_headers;
    q->status = 0;
    rp_buf_clear(&q->out);
}

static void write_json(struct rp_request *q, json_t *value)
{
    int r = value == NULL ? RP_ENOMEM : rp_json_write(&q->out, value);
    json_decref(value);
    if (r == 0) return;
    rp_buf_clear(&q->out); /* an answer that does not fit is none */
    q->status = 503;
    q->content_type = PROBLEM;
    q->inner->code = RP_ENOMEM;
    rp_buf_str(&q->out, "{\"type\":\"about:blank\",\"title\":\"out of memory\",\"status\":503,\"code\":\"no_memory\"}");
}

void rp_reply_json(struct rp_request *q, int status, json_t *value)
{
    begin(q, status, JSON);
    write_json(q, value);
}

void rp_reply_list(struct rp_request *q, json_t *items, const char *cursor)
{
    json_t *page = json_object();
    rp_json_set(page, "items", items);
    rp_json_set(page, "next_cursor", rp_json_text(cursor));
    rp_reply_json(q, 200, page);
}

void rp_reply_text(struct rp_request *q, int status, const char *content_type, const char *text)
{
    begin(q, status, content_type);
    rp_buf_str(&q->out, text);
}

void rp_reply_empty(struct rp_request *q, int status)
{
    begin(q, status, NULL);
}

void rp_reply_error(struct rp_request *q, const struct rp_error *err)
{
    rp_reply_problem(q, err, NULL);
}

void rp_reply_no_memory(struct rp_request *q)
{
    struct rp_error err = { 0 };
    rp_error_set(&err, RP_ENOMEM, "no memory for this request");
    rp_reply_error(q, &err);
}

static void log_failure(const struct rp_request *q, const struct rp_error *err)
{
    struct rp_log *log = q->server->options.log;
    if (!rp_log_takes(log, RP_LOG_WARNING)) return;
    json_t *line = json_object();
    rp_json_set(line, "request", json_string(q->id));
    rp_json_set(line, "method", rp_json_text(q->inner->method));
    rp_json_set(line, "path", rp_json_text(q->inner->path));
    rp_json_set(line, "code", json_string(rp_error_slug(err->code)));
    rp_json_set(line, "error", rp_json_text(err->text));
    if (err->hint[0] != '\0') rp_json_set(line, "hint", rp_json_text(err->hint));
    rp_log_event(log, RP_LOG_WARNING, rp_clock_now_ms(q->server->options.clock), "http.failed", line);
}

void rp_reply_problem(struct rp_request *q, const struct rp_error *err, json_t *more)
{
    RP_ASSERT(err->code < 0);
    int status = rp_error_http(err->code);
    bool ours = status >= 500; /* what went wrong in here is for the log, not for callers (Q3) */
    begin(q, status, PROBLEM);
    q->inner->code = err->code;
    if (ours) log_failure(q, err);
    if (status == 401) rp_reply_header(q, "WWW-Authenticate", "Bearer realm=\"reprieve\"");
    if (status == 503 || status == 429) rp_reply_header(q, "Retry-After", "1");
    json_t *p = json_object();
    rp_json_set(p, "type", json_string("about:blank"));
    rp_json_set(p, "title", json_string(rp_error_title(err->code)));
    rp_json_set(p, "status", json_integer(status));
    rp_json_set(p, "code", json_string(rp_error_slug(err->code)));
    rp_json_set(p, "detail", rp_json_text(ours || err->text[0] == '\0' ? rp_error_title(err->code) : err->text));
    if (!ours && err->hint[0] != '\0') rp_json_set(p, "hint", rp_json_text(err->hint));
    if (ours) rp_json_set(p, "request", json_string(q->id));
    if (more != NULL) (void)json_object_update_missing(p, more); /* no memory: it says less */
    json_decref(more);
    write_json(q, p);
}

void rp_reply_header(struct rp_request *q, const char *name, const char *value)
{
    RP_ASSERT(q->n_headers < HEADERS_MAX);
    const char *copy = rp_arena_strdup(&q->arena, value);
    if (copy == NULL) return;
    q->headers[q->n_headers++] = (struct rp_pair_header){ .name = name, .value = copy };
}

void rp_reply_stream(struct rp_request *q, int status, const char *content_type, const struct rp_stream_reply *how)
{
    RP_ASSERT(how->read != NULL && how->free != NULL && how->size >= -1);
    begin(q, status, content_type);
    q->inner->how = *how;
}

/* ---- sending ---- */

static struct MHD_Response *make_streamed(struct rp_request *q)
{
    struct rp_stream_reply how = q->inner->how;
    bool known = how.size >= 0;
    struct MHD_Response *response =
        MHD_create_response_from_callback(known ? (uint64_t)how.size : MHD_SIZE_UNKNOWN,
                                          known ? STREAM_BLOCK_BYTES : STREAM_BLOCK_LIVE, how.read, how.ctx, how.free);
    if (response != NULL) q->inner->how = (struct rp_stream_reply){ 0 }; /* its `free` is the response's now */
    return response;
}

static struct MHD_Response *make_response(struct rp_request *q)
{
    if (q->inner->how.read != NULL) return make_streamed(q);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        q->out.len, q->out.data, q->out.len > 0 ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (response != NULL && q->out.len > 0) q->out = RP_BUF(RP_ANSWER_MAX); /* the bytes are the response's now */
    return response;
}

static void add_headers(const struct rp_request *q, struct MHD_Response *response)
{
    if (q->content_type != NULL) MHD_add_response_header(response, "Content-Type", q->content_type);
    MHD_add_response_header(response, "Request-Id", q->id);
    for (size_t i = 0; i < q->n_headers; i++)
        MHD_add_response_header(response, q->headers[i].name, q->headers[i].value);
    /* Where a chunked body ends, others may see otherwise (framing.h): nothing follows it. */
    if (q->inner->chunked || atomic_load_explicit(&q->server->stopping, memory_order_relaxed))
        MHD_add_response_header(response, "Connection", "close");
}

static void note(struct rp_request *q)
{
    struct rp_server *server = q->server;
    int64_t took_us = rp_monotonic_us() - q->inner->began_us;
    rp_metrics_request(server->options.metrics, q->route, q->status, took_us);
    if (!rp_log_takes(server->options.log, RP_LOG_DEBUG)) return;
    json_t *line = json_object();
    rp_json_set(line, "request", json_string(q->id));
    rp_json_set(line, "method", rp_json_text(q->inner->method));
    rp_json_set(line, "path", rp_json_text(q->inner->path));
    rp_json_set(line, "status", json_integer(q->status));
    rp_json_set(line, "took_us", json_integer(took_us));
    if (q->who.token_id != 0) rp_json_set(line, "actor", rp_json_text(q->who.actor));
    rp_log_event(server->options.log, RP_LOG_DEBUG, q->began_ms, "http.request", line);
}

void rp_reply_break_off(struct rp_request *q)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF((size_t)64 << 10);
    int fd = MHD_get_connection_info(q->connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    RP_ASSERT(q->inner->phase == RP_REPLIED);
    q->inner->phase = RP_SENT;
    note(q);
    if (q->server->tls) return;
    rp_buf_fmt(&text, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
               q->status, MHD_get_reason_phrase_for((unsigned)q->status), q->content_type, q->out.len,
               rp_buf_text(&q->out));
    if (text.failed == 0) (void)send(fd, text.data, text.len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A stream may last for an hour: what was needed to begin it is given back now. */
static void shed(struct rp_request *q)
{
    json_decref(q->query);
    q->query = NULL;
    q->n_headers = 0;
    rp_arena_done(&q->arena);
}

enum MHD_Result rp_reply_send(struct rp_request *q)
{
    bool streamed = q->inner->how.read != NULL;
    RP_ASSERT(q->inner->phase == RP_REPLIED && !q->inner->suspended);
    q->inner->phase = RP_SENT;
    struct MHD_Response *response = make_response(q);
    if (response == NULL) return MHD_NO;
    add_headers(q, response);
    note(q);
    enum MHD_Result r = MHD_queue_response(q->connection, (unsigned)q->status, response);
    MHD_destroy_response(response);
    if (streamed) shed(q);
    return r;
}
