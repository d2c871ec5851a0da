/* SPDX-License-Identifier: Apache-2.0 */
/* Idempotency keys of handlers that change something without a command: the answer is looked up before, and kept after.
 *
 * Between the two the key is taken: a second request with it waits for nobody but is told to come back. On several nodes two
 * such requests can still run at once; each verb that is reached this way is idempotent by itself. */
#include "http/inner.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/time.h"
#include "catalog/idempotency.h"

static bool same_key(const struct rp_request *a, const struct rp_request *b)
{
    return a->who.tenant_id == b->who.tenant_id && strcmp(a->key, b->key) == 0;
}

static bool take_key(struct rp_request *q)
{
    struct rp_server *server = q->server;
    bool taken = false;
    pthread_mutex_lock(&server->keys_lock);
    for (struct rp_request *other = server->keys; other != NULL; other = other->inner->next_key)
        taken = taken || same_key(other, q);
    if (!taken) {
        q->inner->next_key = server->keys;
        server->keys = q;
        q->inner->key_taken = true;
    }
    pthread_mutex_unlock(&server->keys_lock);
    return !taken;
}

void rp_request_release_key(struct rp_request *q)
{
    struct rp_server *server = q->server;
    if (!q->inner->key_taken) return;
    pthread_mutex_lock(&server->keys_lock);
    struct rp_request **link = &server->keys;
    while (*link != q)
        link = &(*link)->inner->next_key;
    *link = q->inner->next_key;
    pthread_mutex_unlock(&server->keys_lock);
    q->inner->key_taken = false;
}

void rp_request_replay(struct rp_request *q, int status, const char *answer, size_t n)
{
    bool refreshed = false;
    rp_reply_header(q, "Idempotent-Replayed", "true");
    if (q->inner->refresh != NULL && status < 400) {
        RP_CLEANUP(rp_json_decrefp) json_t *value = NULL;
        if (rp_json_parse(answer, n, &value, NULL) == 0) {
            q->inner->refresh(q, value);
            rp_reply_json(q, status, json_incref(value));
            refreshed = true;
        }
    }
    if (refreshed) return;
    if (n == 0)
        rp_reply_empty(q, status);
    else
        rp_reply_text(q, status, status < 400 ? "application/json" : "application/problem+json", answer);
}

bool rp_request_replayed(struct rp_request *q)
{
    struct rp_error err = { 0 };
    RP_ASSERT(q->inner->on_pool && !q->inner->keep);
    if (q->key == NULL) return false;
    struct rp_kept kept = {
        .tenant_id = q->who.tenant_id, .hash = rp_key_hash(q->who.tenant_id, q->key), .key = q->key, .digest = q->digest
    };
    int r = 0;
    if (!take_key(q)) r = rp_error_set(&err, RP_EBUSY, "a request with this Idempotency-Key is under way");
    if (r == 0) r = rp_keys_find(rp_request_catalog(q)->db, &kept, 1, &q->arena, &err);
    if (r == 0 && kept.found && kept.code < 0) {
        r = rp_error_set(&err, kept.code, "this Idempotency-Key was used for another request");
        rp_error_hint(&err, "use a new key for every new request");
    }
    if (r < 0)
        rp_reply_error(q, &err);
    else if (kept.found)
        rp_request_replay(q, kept.status, kept.answer, strlen(kept.answer));
    q->inner->keep = r == 0 && !kept.found;
    return !q->inner->keep;
}

/* ---- keeping ---- */

static int do_nothing(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    (void)tx, (void)commands, (void)n, (void)err;
    return 0;
}

static const struct rp_verb verb_keep = { .name = "keep an answer", .run = do_nothing };

static int render_reply(struct rp_command *command, int *status, struct rp_buf *answer)
{
    const struct rp_request *q = command->owner;
    *status = q->status;
    return rp_buf_add(answer, rp_buf_text(&q->out), q->out.len);
}

static void log_unkept(const struct rp_request *q, const struct rp_error *err)
{
    json_t *line = json_object();
    rp_json_set(line, "request", json_string(q->id));
    rp_json_set(line, "error", rp_json_text(err->text));
    rp_log_event(q->server->options.log, RP_LOG_WARNING, rp_clock_now_ms(q->server->options.clock),
                 "http.answer_not_kept", line);
}

/* The change itself is durable: an answer that could not be kept is still the answer. */
static void kept(struct rp_command *command)
{
    struct rp_request *q = command->owner;
    if (command->error.code < 0) log_unkept(q, &command->error);
    rp_request_release_key(q);
    rp_request_wake(q);
}

static bool worth_keeping(const struct rp_request *q)
{
    return q->status < 500 && !rp_error_retry(q->inner->code) && q->inner->how.read == NULL;
}

bool rp_request_keep(struct rp_request *q)
{
    struct rp_error err = { 0 };
    if (!q->inner->keep || !worth_keeping(q)) return false;
    q->inner->keep = false;
    struct rp_command *c = rp_arena_alloc(&q->arena, sizeof *c);
    if (c == NULL) return false;
    q->inner->keeper = c;
    *c = (struct rp_command){ .verb = &verb_keep,
                              .tenant_id = q->who.tenant_id,
                              .actor = q->who.actor,
                              .key = q->key,
                              .render = render_reply,
                              .done = kept,
                              .owner = q };
    memcpy(c->digest, q->digest, sizeof c->digest);
    if (rp_writers_submit(q->server->options.writers, c, &err) == 0) return true;
    log_unkept(q, &err);
    return false;
}
