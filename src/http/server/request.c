/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a request; inner.h draws it. rp_request_run brings it as far as this thread can,
 * rp_request_settle hands it on. */
#include "http/server/inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "http/server/access.h"
#include "http/server/pool.h"
#include "http/server/validate.h"

#define ID_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

int64_t rp_monotonic_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

struct whole {
    struct rp_request q;
    struct rp_request_inner inner;
};

static bool may_be_id(const char *text)
{
    size_t n = text != NULL ? strlen(text) : 0;
    return n > 0 && n < RP_REQUEST_ID && strspn(text, ID_LETTERS) == n;
}

/* As the caller calls it, or "8aaeab0a-00000001": which run of the server, which request. */
static void name_it(struct rp_request *q, uint32_t boot, uint32_t serial)
{
    const char *own = rp_request_header(q, "Request-Id");
    if (may_be_id(own))
        (void)snprintf(q->id, sizeof q->id, "%s", own);
    else
        (void)snprintf(q->id, sizeof q->id, "%08" PRIx32 "-%08" PRIx32, boot, serial);
}

struct rp_request *rp_request_new(struct rp_server *server, struct MHD_Connection *connection, const char *method,
                                  const char *path)
{
    struct whole *whole = calloc(1, sizeof *whole);
    if (whole == NULL) return NULL;
    struct rp_request *q = &whole->q;
    q->inner = &whole->inner;
    q->server = server;
    q->connection = connection;
    q->arena = RP_ARENA(RP_ARENA_MAX);
    q->out = RP_BUF(RP_ANSWER_MAX);
    q->began_ms = rp_clock_now_ms(server->options.clock);
    q->inner->began_us = rp_monotonic_us();
    q->inner->method = method;
    q->inner->path = path;
    q->inner->length = -1;
    name_it(q, server->boot, atomic_fetch_add(&server->serial, 1));
    atomic_fetch_add(&server->open, 1);
    return q;
}

/* What a command's fate brings about: exactly once, whatever becomes of the answer. `ran` false:
 * no writer took it. */
static void conclude(struct rp_request *q, bool ran)
{
    rp_handler_fn *after = q->after;
    q->after = NULL;
    if (after != NULL) after(q);
    if (ran) rp_command_log(q->command, q->server->options.log, rp_clock_now_ms(q->server->options.clock));
}

void rp_request_free(struct rp_request *q)
{
    struct rp_request_inner *in = q->inner;
    struct rp_server *server = q->server;
    RP_ASSERT(!in->suspended);
    if (in->phase == RP_DONE) conclude(q, true); /* the client left before the answer */
    if (q->stream != NULL && !in->ended) q->stream->abort(q);
    if (in->how.free != NULL) in->how.free(in->how.ctx);
    if (q->command != NULL) rp_buf_done(&q->command->answer);
    if (in->held_bytes > 0) rp_shares_give(&server->bodies, in->holder, in->held_bytes);
    json_decref(q->query);
    json_decref(q->body);
    rp_buf_done(&in->body);
    rp_buf_done(&q->out);
    rp_arena_done(&q->arena);
    free(q);
    atomic_fetch_sub(&server->open, 1);
}

/* ---- handing over ---- */

/* First counted, then asked: a server that closes sees the count, or this sees that it closes. */
bool rp_request_suspend(struct rp_request *q)
{
    struct rp_server *server = q->server;
    if (q->inner->suspended) return true;
    atomic_fetch_add(&server->away, 1);
    if (atomic_load(&server->closing)) {
        atomic_fetch_sub(&server->away, 1);
        return false;
    }
    q->inner->suspended = true;
    MHD_suspend_connection(q->connection);
    return true;
}

void rp_request_wake(struct rp_request *q)
{
    struct rp_server *server = q->server;
    struct MHD_Connection *connection = q->connection;
    RP_ASSERT(q->inner->suspended);
    q->inner->suspended = false;
    MHD_resume_connection(connection);
    atomic_fetch_sub(&server->away, 1); /* after it: a server that stops waits until nobody is in here */
}

static bool wake_if_away(struct rp_request *q)
{
    if (!q->inner->suspended) return true;
    rp_request_wake(q);
    return false;
}

bool rp_request_give_up(struct rp_request *q, const struct rp_error *why)
{
    if (q->after != NULL) { /* its command was not taken */
        q->command->error = *why;
        conclude(q, false);
    }
    if (q->stream != NULL && !q->inner->ended) {
        q->inner->ended = true;
        q->stream->abort(q);
    }
    q->inner->phase = RP_HANDLING;
    rp_reply_error(q, why);
    return wake_if_away(q);
}

/* ---- commands ---- */

static void reply_to_command(struct rp_request *q)
{
    if (q->command->error.code == 0)
        q->then(q);
    else if (q->refused != NULL)
        q->refused(q);
    else
        rp_reply_error(q, &q->command->error);
}

static int render(struct rp_command *command, int *status, struct rp_buf *answer)
{
    struct rp_request *q = command->owner;
    struct rp_request_inner *in = q->inner;
    rp_reply_reset(q); /* it may be rendered again (W3) */
    in->saved = NULL;
    in->save_code = 0;
    in->phase = RP_HANDLING;
    reply_to_command(q);
    RP_ASSERT(in->phase == RP_REPLIED);
    in->phase = RP_WAITING;
    if (in->save_code < 0) return in->save_code; /* the reply must not be saved in its place */
    in->rendered = true;
    in->rendered_code = command->error.code;
    *status = q->status;
    return in->saved != NULL ? rp_buf_add(answer, in->saved, in->saved_n)
                             : rp_buf_add(answer, rp_buf_text(&q->out), q->out.len);
}

void rp_request_save_instead(struct rp_request *q, json_t *answer)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(RP_ANSWER_MAX);
    struct rp_request_inner *in = q->inner;
    in->save_code = rp_json_write(&text, answer);
    if (in->save_code == 0) in->saved = rp_arena_copy(&q->arena, text.data, text.len);
    if (in->save_code == 0 && in->saved == NULL) in->save_code = RP_ENOMEM;
    in->saved_n = text.len;
    json_decref(answer);
}

static void command_done(struct rp_command *command)
{
    struct rp_request *q = command->owner;
    q->inner->phase = RP_DONE;
    rp_request_wake(q);
}

void rp_request_submit(struct rp_request *q, struct rp_command *command, rp_handler_fn *then, rp_refresh_fn *refresh)
{
    RP_ASSERT(q->inner->phase == RP_HANDLING && command->verb != NULL && then != NULL);
    if (q->command != NULL) rp_buf_done(&q->command->answer);
    if (command->actor == NULL) command->actor = q->who.actor;
    command->request = q->id;
    command->key = q->key;
    memcpy(command->digest, q->digest, sizeof command->digest);
    command->render = render;
    command->done = command_done;
    command->owner = q;
    q->command = command;
    q->then = then;
    q->inner->refresh = refresh;
    q->inner->n_headers = q->n_headers;
    q->inner->phase = RP_SUBMITTED;
}

void rp_request_refuse(struct rp_request *q, struct rp_command *command, const struct rp_error *why,
                       rp_refresh_fn *refresh)
{
    struct rp_error *refusal = q->key != NULL ? rp_arena_alloc(&q->arena, sizeof *refusal) : NULL;
    if (refusal == NULL) {
        rp_reply_error(q, why);
        return;
    }
    *refusal = *why;
    command->refusal = refusal;
    rp_request_submit(q, command, rp_reply_no_memory, refresh); /* `then` does not run */
}

static void reply_saved(struct rp_request *q, int status, const char *answer, size_t n)
{
    if (n == 0)
        rp_reply_empty(q, status);
    else
        rp_reply_text(q, status, status < 400 ? "application/json" : "application/problem+json", answer);
}

static void replay(struct rp_request *q, int status, const char *answer, size_t n)
{
    rp_reply_header(q, "Idempotent-Replayed", "true");
    if (q->inner->refresh != NULL && status < 400) {
        RP_CLEANUP(rp_json_decrefp) json_t *value = NULL;
        if (rp_json_parse(answer, n, &value, NULL) == 0) {
            struct rp_error err = { 0 };
            if (q->inner->refresh(q, value, &err) < 0)
                rp_reply_error(q, &err);
            else
                rp_reply_json(q, status, json_incref(value));
            return;
        }
    }
    reply_saved(q, status, answer, n);
}

void rp_request_finish_command(struct rp_request *q)
{
    struct rp_request_inner *in = q->inner;
    struct rp_command *c = q->command;
    RP_ASSERT(in->phase == RP_DONE);
    in->phase = RP_HANDLING;
    if (c->replayed) {
        rp_reply_reset(q);
        replay(q, c->status, rp_buf_text(&c->answer), c->answer.len);
    } else if (in->rendered && in->rendered_code == c->error.code) {
        in->phase = RP_REPLIED;
    } else {
        rp_reply_reset(q); /* rendered, and then the commit failed: nothing of it is true */
        reply_to_command(q);
    }
    RP_ASSERT(in->phase == RP_REPLIED);
    conclude(q, true);
}

/* ---- running ---- */

void rp_request_later(struct rp_request *q)
{
    RP_ASSERT(q->inner->phase == RP_HANDLING && !q->inner->on_pool);
    q->inner->phase = RP_LATER;
}

bool rp_request_enter(struct rp_request *q, int64_t store_id)
{
    RP_ASSERT(q->inner->phase == RP_HANDLING && q->inner->on_pool);
    if (rp_pool_enter(q->server->pool, q, store_id)) return true;
    q->inner->phase = RP_LATER;
    return false;
}

int64_t rp_request_inside(const struct rp_request *q)
{
    return q->inner->inside ? q->inner->store : 0;
}

bool rp_request_may_block(const struct rp_request *q)
{
    return q->inner->on_pool;
}

void rp_request_receive(struct rp_request *q, struct rp_stream *stream)
{
    RP_ASSERT(q->inner->phase == RP_HANDLING && q->route->streams && q->stream == NULL);
    q->stream = stream;
    q->inner->phase = RP_RECEIVING;
}

/* Credentials first, then what was sent: whoever may not call learns nothing of what is wrong
 * with the call, and sends no body. */
static void authorize(struct rp_request *q)
{
    struct rp_request_inner *in = q->inner;
    struct rp_error err = { 0 };
    int r = rp_access_check(q, in->on_pool ? in->catalog->db : NULL, &err);
    in->authorized = r == 0;
    if (r == 0) {
        in->phase = RP_ARRIVING;
    } else if (r == RP_EUNKNOWN && !in->on_pool) {
        in->phase = RP_LATER;
    } else {
        rp_reply_error(q, &err);
    }
}

static void handle(struct rp_request *q)
{
    struct rp_request_inner *in = q->inner;
    struct rp_error err = { 0 };
    if (!in->validated && rp_validate(q, &err) < 0) {
        rp_reply_error(q, &err);
        return;
    }
    in->validated = true;
    if (!q->route->blocks || in->on_pool)
        q->route->handler(q);
    else
        in->phase = RP_LATER;
}

void rp_request_run(struct rp_request *q, struct rp_catalog *catalog)
{
    struct rp_request_inner *in = q->inner;
    in->phase = RP_HANDLING;
    in->catalog = catalog;
    in->on_pool = catalog != NULL;
    if (!in->authorized) {
        authorize(q);
    } else if (q->stream == NULL) {
        handle(q);
    } else {
        in->ended = true;
        q->stream->end(q);
    }
    in->catalog = NULL;
    in->on_pool = false;
    RP_ASSERT(in->phase != RP_HANDLING); /* Q2: a handler ends in one of its ways */
}

static bool stops(struct rp_request *q)
{
    struct rp_error err = { 0 };
    rp_error_set(&err, RP_EBUSY, "the server stops");
    return rp_request_give_up(q, &err);
}

static bool submit(struct rp_request *q)
{
    struct rp_error err = { 0 };
    if (!rp_request_suspend(q)) return stops(q);
    q->inner->phase = RP_WAITING;
    if (rp_writers_submit(q->server->options.writers, q->command, &err) == 0) return false;
    return rp_request_give_up(q, &err);
}

static bool to_the_pool(struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct rp_pool *pool = q->inner->authorized ? q->server->pool : q->server->lookups;
    if (!rp_request_suspend(q)) return stops(q);
    if (rp_pool_push(pool, q)) return false;
    rp_error_set(&err, RP_EBUSY, "too many requests wait");
    return rp_request_give_up(q, &err);
}

bool rp_request_settle(struct rp_request *q)
{
    switch (q->inner->phase) {
    case RP_SUBMITTED:
        return submit(q);
    case RP_LATER:
        return to_the_pool(q);
    case RP_ARRIVING:
    case RP_RECEIVING:
    case RP_REPLIED:
        return wake_if_away(q);
    default:
        RP_ASSERT(false); /* it neither waits nor was answered */
        return true;
    }
}

/* ---- what a handler finds around it ---- */

struct rp_catalog *rp_request_catalog(struct rp_request *q)
{
    RP_ASSERT(q->inner->catalog != NULL); /* only where the route blocks */
    return q->inner->catalog;
}

struct rp_store *rp_request_store(struct rp_request *q, const char *name)
{
    const struct rp_server_options *o = rp_server_options_of(q->server);
    for (size_t i = 0; i < o->n_stores; i++)
        if (strcmp(o->stores[i].config->name, name) == 0) return &o->stores[i];
    return NULL;
}

struct rp_store *rp_request_store_of(struct rp_request *q, int64_t store_id)
{
    const struct rp_server_options *o = rp_server_options_of(q->server);
    for (size_t i = 0; i < o->n_stores; i++)
        if (o->stores[i].id == store_id) return &o->stores[i];
    return NULL;
}

const struct rp_config *rp_request_config(const struct rp_request *q)
{
    return rp_server_options_of(q->server)->config;
}

int64_t rp_request_now_ms(const struct rp_request *q)
{
    return rp_clock_now_ms(rp_server_options_of(q->server)->clock);
}

/* As the catalog has it: of a store that is no longer configured. */
static const char *recorded_name(struct rp_request *q, int64_t store_id)
{
    struct rp_error ignored = { 0 };
    char *name = rp_arena_alloc(&q->arena, RP_STORE_NAME);
    if (name == NULL || !rp_request_may_block(q)) return "?";
    return rp_store_name(rp_request_catalog(q)->db, store_id, name, &ignored) == 0 ? name : "?";
}

const char *rp_request_store_name(struct rp_request *q, int64_t store_id)
{
    const struct rp_store *store = rp_request_store_of(q, store_id);
    return store != NULL ? store->config->name : recorded_name(q, store_id);
}

bool rp_request_id(struct rp_request *q, size_t n, enum rp_id_kind kind, int64_t *out)
{
    struct rp_error err = { 0 };
    enum rp_id_kind found;
    RP_ASSERT(n < RP_PATH_ARGS && q->args[n] != NULL);
    if (rp_id_parse(q->args[n], &found, out) && found == kind) return true;
    rp_error_set(&err, RP_ENOTFOUND, "there is no %.40s", q->args[n]);
    rp_reply_error(q, &err);
    return false;
}

bool rp_request_bool(const json_t *in, const char *name)
{
    return json_is_true(json_object_get(in, name));
}

int64_t rp_request_length(const struct rp_request *q)
{
    return q->inner->chunked ? -1 : q->inner->length;
}

bool rp_request_is_head(const struct rp_request *q)
{
    return strcmp(q->inner->method, "HEAD") == 0;
}

const char *rp_request_header(const struct rp_request *q, const char *name)
{
    return MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, name);
}
