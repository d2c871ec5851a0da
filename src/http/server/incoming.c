/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP library's calls: headers, pieces of the body, and "ready", which comes when the body
 * is whole and again after every resume. A request that was suspended at its headers is resumed
 * there: its body still waits. */
#include "http/server/incoming.h"

#include <string.h>

#include "http/route/route.h"
#include "http/server/framing.h"
#include "http/server/slow_clients.h"
#include "http/server/validate.h"

static int find_route(struct rp_request *q, struct rp_error *err)
{
    struct rp_request_inner *in = q->inner;
    bool known = false;
    q->route = rp_route_find(in->method, in->path, &q->arena, q->args, &known);
    if (q->route != NULL) return 0;
    if (!known) return rp_error_set(err, RP_ENOTFOUND, "there is nothing at %.200s", in->path);
    const char *allow = rp_route_allow(&q->arena, in->path);
    if (allow != NULL) rp_reply_header(q, "Allow", allow);
    return rp_error_set(err, RP_EMETHOD, "%.16s is not a method of %.200s", in->method, in->path);
}

static enum MHD_Result run_here(struct rp_request *q)
{
    rp_request_run(q, NULL);
    if (!rp_request_settle(q)) return MHD_YES;
    return q->inner->phase == RP_REPLIED ? rp_reply_send(q) : MHD_YES;
}

static bool has_body(const struct rp_request *q)
{
    const char *length = rp_request_header(q, "Content-Length");
    return rp_request_header(q, "Transfer-Encoding") != NULL || (length != NULL && strcmp(length, "0") != 0);
}

static void refuse(struct rp_request *q, const struct rp_error *why)
{
    q->inner->phase = RP_HANDLING;
    rp_reply_error(q, why);
}

/* Who asks, then whether the body is wanted, then, of a stream, the handler. False: it waits for
 * one of them, and this is called again before the body. */
static bool is_settled(struct rp_request *q)
{
    struct rp_request_inner *in = q->inner;
    struct rp_error err = { 0 };
    if (in->phase == RP_ARRIVING && !in->authorized) {
        rp_request_run(q, NULL);
        if (!rp_request_settle(q)) return false;
    }
    if (in->phase != RP_ARRIVING) return true;
    if (rp_validate_headers(q, &err) < 0) {
        refuse(q, &err);
    } else if (q->route->streams) {
        rp_request_run(q, NULL);
        return rp_request_settle(q);
    }
    return true;
}

/* Without a body the answer is given when the request is whole: an answer before that ends the
 * connection. */
static enum MHD_Result before_body(struct rp_request *q)
{
    struct rp_request_inner *in = q->inner;
    in->early = true;
    rp_slow_client_awaits(in->client, false);
    if (!is_settled(q)) return MHD_YES;
    in->early = false;
    rp_slow_client_awaits(in->client, in->phase == RP_ARRIVING);
    return in->phase == RP_REPLIED && has_body(q) ? rp_reply_send(q) : MHD_YES;
}

static enum MHD_Result on_headers(struct rp_request *q, const char *version, bool cut)
{
    struct rp_error err = { 0 };
    if (cut) rp_error_set(&err, RP_EINVAL, "the request line has a NUL");
    if (cut || rp_framing_check(q, version, &err) < 0) {
        refuse(q, &err);
        rp_reply_header(q, "Connection", "close");
        return rp_reply_send(q);
    }
    if (find_route(q, &err) < 0) refuse(q, &err);
    return before_body(q);
}

static void refuse_rest(struct rp_request *q, const struct rp_error *why)
{
    q->inner->refused = true;
    (void)rp_request_give_up(q, why);
    rp_reply_header(q, "Connection", "close");
}

static void take_bytes(struct rp_request *q, const char *bytes, size_t n)
{
    struct rp_request_inner *in = q->inner;
    struct rp_error err = { 0 };
    int r = 0;
    if (in->phase == RP_RECEIVING) {
        r = q->stream->bytes(q, bytes, n, &err);
    } else if (rp_buf_add(&in->body, bytes, n) < 0) {
        r = rp_error_set(&err, in->body.failed, "the body has more than %zu bytes", in->body.max);
    }
    if (r < 0) refuse_rest(q, &err);
    if (r == RP_ESLOW) rp_reply_break_off(q); /* its end is not to be waited for */
}

/* A body that is not wanted is read a little longer, as nothing can be answered before it has
 * ended; then the connection is closed. */
static enum MHD_Result on_body(struct rp_request *q, const char *bytes, size_t n)
{
    struct rp_request_inner *in = q->inner;
    if (in->phase == RP_ARRIVING || in->phase == RP_RECEIVING) {
        take_bytes(q, bytes, n);
        return in->phase == RP_SENT ? MHD_NO : MHD_YES;
    }
    in->swallowed += (int64_t)n;
    return in->refused && in->swallowed <= RP_SWALLOW_MAX ? MHD_YES : MHD_NO;
}

static enum MHD_Result end_of_stream(struct rp_request *q)
{
    q->inner->phase = RP_LATER;
    if (!rp_request_settle(q)) return MHD_YES;
    return rp_reply_send(q);
}

static enum MHD_Result on_ready(struct rp_request *q)
{
    if (q->inner->early) return before_body(q);
    rp_slow_client_awaits(q->inner->client, false);
    switch (q->inner->phase) {
    case RP_ARRIVING:
        return run_here(q);
    case RP_RECEIVING:
        return end_of_stream(q);
    case RP_DONE:
        rp_request_finish_command(q);
        return rp_reply_send(q);
    case RP_REPLIED:
        return rp_reply_send(q);
    default:
        return MHD_NO;
    }
}

enum MHD_Result rp_incoming_call(void *cls, struct MHD_Connection *connection, const char *path, const char *method,
                                 const char *version, const char *bytes, size_t *n, void **context)
{
    bool cut = rp_framing_is_cut(*context);
    struct rp_request *q = cut ? NULL : *context;
    if (q == NULL) {
        *context = q = rp_request_new(cls, connection, method, path);
        if (q == NULL) return MHD_NO;
        q->inner->client = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
        return on_headers(q, version, cut);
    }
    if (*n == 0) return on_ready(q);
    enum MHD_Result r = on_body(q, bytes, *n);
    *n = 0;
    return r;
}

void rp_incoming_completed(void *cls, struct MHD_Connection *connection, void **context,
                           enum MHD_RequestTerminationCode how)
{
    struct rp_request *q = *context;
    (void)cls, (void)connection, (void)how;
    if (q == NULL || rp_framing_is_cut(q)) return;
    rp_slow_client_awaits(q->inner->client, true);
    rp_request_free(q);
    *context = NULL;
}

void rp_incoming_connection(void *cls, struct MHD_Connection *connection, void **context,
                            enum MHD_ConnectionNotificationCode what)
{
    struct rp_server *server = cls;
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        *context = rp_slow_clients_add(
            server->slow_clients, MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
    else
        rp_slow_clients_remove(server->slow_clients, *context);
}

size_t rp_incoming_unescape(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls, (void)connection;
    return strlen(text);
}
