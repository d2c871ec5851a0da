/* SPDX-License-Identifier: Apache-2.0 */
/* Idempotency keys of handlers that change something without a command (commands: writer.h, W4).
 *
 * P1  An answer is kept in the transaction that makes the change (catalog.h, rp_keeper): there is no moment at which one is durable and
 *     the other is not.
 * P2  A refusal changes nothing; it is kept when the handler has returned, in a transaction of its own. So is a reply after several
 *     changes, of which each left a note.
 * P3  The key is looked up before the handler does anything, and again in each of these transactions: of two requests with one key, on two
 *     nodes, one makes the change and the other is answered with its answer, or told to come back if there is none yet.
 * P4  What is kept is what is sent. */
#include "http/server/inner.h"

#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/time.h"

static void reply_kept(struct rp_request *q, int status, const char *answer, size_t n)
{
    if (n == 0)
        rp_reply_empty(q, status);
    else
        rp_reply_text(q, status, status < 400 ? "application/json" : "application/problem+json", answer);
}

void rp_request_replay(struct rp_request *q, int status, const char *answer, size_t n)
{
    rp_reply_header(q, "Idempotent-Replayed", "true");
    if (q->inner->refresh != NULL && status < 400) {
        RP_CLEANUP(rp_json_decrefp) json_t *value = NULL;
        if (rp_json_parse(answer, n, &value, NULL) == 0) {
            q->inner->refresh(q, value);
            rp_reply_json(q, status, json_incref(value));
            return;
        }
    }
    reply_kept(q, status, answer, n);
}

/* ---- what stands under the key ---- */

static struct rp_saved kept_of(const struct rp_request *q)
{
    int64_t tenant_id = q->inner->keeping.tenant_id;
    return (struct rp_saved){
        .tenant_id = tenant_id, .hash = rp_key_hash(tenant_id, q->key), .key = q->key, .digest = q->digest
    };
}

static int find(struct rp_request *q, struct rp_db *db, struct rp_saved *out, struct rp_error *err)
{
    *out = kept_of(q);
    return rp_keys_find(db, out, 1, &q->arena, err);
}

/* The end of a request whose key is another's. */
static void reply_found(struct rp_request *q, const struct rp_saved *found)
{
    struct rp_error err = { 0 };
    if (found->code == 0 && found->status != RP_KEY_BEGUN) {
        rp_request_replay(q, found->status, found->answer, strlen(found->answer));
        return;
    }
    if (found->code == 0) {
        rp_error_set(&err, RP_EBUSY, "another request with this Idempotency-Key is under way");
    } else {
        rp_error_set(&err, found->code, "this Idempotency-Key was used for another request");
        rp_error_hint(&err, "use a new key for every new request");
    }
    rp_reply_error(q, &err);
}

static int read_begun(struct rp_keeping *k, const struct rp_saved *kept, struct rp_error *err)
{
    k->row = kept->id;
    int r = rp_json_parse(kept->answer, strlen(kept->answer), &k->begun, err);
    return r < 0 ? rp_error_wrap(err, RP_ECORRUPT, "what an earlier request had done") : 0;
}

bool rp_request_replayed_of(struct rp_request *q, int64_t tenant_id)
{
    struct rp_keeping *k = &q->inner->keeping;
    struct rp_error err = { 0 };
    struct rp_saved kept;
    RP_ASSERT(q->inner->on_pool && !k->on);
    if (q->key == NULL) return false;
    k->tenant_id = tenant_id;
    int r = find(q, rp_request_catalog(q)->db, &kept, &err);
    bool begun = r == 0 && kept.found && kept.code == 0 && kept.status == RP_KEY_BEGUN;
    if (begun) r = read_begun(k, &kept, &err);
    k->on = r == 0 && (begun || !kept.found);
    if (r < 0)
        rp_reply_error(q, &err);
    else if (!k->on)
        reply_found(q, &kept);
    return !k->on;
}

bool rp_request_replayed(struct rp_request *q)
{
    return rp_request_replayed_of(q, q->who.tenant_id);
}

const json_t *rp_request_begun(const struct rp_request *q)
{
    return q->inner->keeping.begun;
}

bool rp_request_overtaken(const struct rp_request *q)
{
    return q->inner->keeping.overtaken;
}

/* ---- with the change ---- */

static int look_before(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct rp_request *q = ctx;
    struct rp_keeping *k = &q->inner->keeping;
    int r = find(q, tx->db, &k->found, err);
    if (r < 0) return r;
    k->overtaken = k->found.found && (k->found.code < 0 || k->found.status != RP_KEY_BEGUN || k->found.id != k->row);
    return k->overtaken ? rp_error_set(err, RP_ERUNNING, "another request with this Idempotency-Key was faster") : 0;
}

static bool worth_keeping(const struct rp_request *q)
{
    return q->status < 500 && !rp_error_retry(q->inner->code) && q->inner->how.read == NULL;
}

/* The handler's words for what it has done so far: an answer, or a note. It reads what the transaction has written. */
static int write_draft(struct rp_tx *tx, struct rp_request *q)
{
    struct rp_request_inner *in = q->inner;
    struct rp_keeping *k = &in->keeping;
    struct rp_catalog *lent = in->catalog;
    size_t n_headers = q->n_headers;
    k->note_code = 0;
    in->catalog = tx->catalog;
    k->tell(q, k->ctx);
    in->catalog = lent;
    q->n_headers = n_headers;
    if (in->phase != RP_REPLIED) return k->note_code;
    in->phase = RP_HANDLING;
    k->status = q->status;
    return rp_buf_add(&k->draft, rp_buf_text(&q->out), q->out.len);
}

static int keep_with(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct rp_request *q = ctx;
    struct rp_keeping *k = &q->inner->keeping;
    rp_buf_clear(&k->draft);
    k->status = RP_KEY_BEGUN;
    k->draft_row = k->row;
    if (write_draft(tx, q) < 0) return rp_error_set(err, RP_ENOMEM, "no memory for an answer that is to be kept");
    if (k->status != RP_KEY_BEGUN && !worth_keeping(q)) {
        k->status = RP_KEY_BEGUN;
        return 0;
    }
    struct rp_saved kept = kept_of(q);
    kept.id = k->row;
    kept.status = k->status;
    kept.answer = rp_buf_text(&k->draft);
    int r = k->row != 0 ? rp_key_go_on(tx, &kept, err) : rp_keys_save(tx, &kept, 1, err);
    k->draft_row = kept.id;
    return r;
}

static void kept_after(void *ctx)
{
    struct rp_request *q = ctx;
    struct rp_keeping *k = &q->inner->keeping;
    k->row = k->draft_row;
    k->done = k->status != RP_KEY_BEGUN;
}

const struct rp_keeper *rp_request_keeps(struct rp_request *q, rp_tell_fn *tell, void *ctx)
{
    struct rp_keeping *k = &q->inner->keeping;
    if (!k->on) return NULL;
    k->tell = tell;
    k->ctx = ctx;
    k->draft.max = RP_ANSWER_MAX;
    k->keeper = (struct rp_keeper){ .before = look_before, .with = keep_with, .after = kept_after, .ctx = q };
    rp_request_catalog(q)->keeper = &k->keeper;
    return &k->keeper;
}

void rp_request_note(struct rp_request *q, json_t *note)
{
    struct rp_keeping *k = &q->inner->keeping;
    k->note_code = note != NULL ? rp_json_write(&k->draft, note) : RP_ENOMEM;
    json_decref(note);
}

/* ---- after the handler ---- */

static int do_nothing(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    (void)tx, (void)ctx, (void)err;
    return 0;
}

static void tell_as_it_is(struct rp_request *q, void *ctx)
{
    (void)ctx;
    q->inner->phase = RP_REPLIED; /* by the handler */
}

static void log_unkept(const struct rp_request *q, const struct rp_error *err)
{
    json_t *line = json_object();
    rp_json_set(line, "request", json_string(q->id));
    rp_json_set(line, "error", rp_json_text(err->text));
    rp_log_event(q->server->options.log, RP_LOG_WARNING, rp_clock_now_ms(q->server->options.clock),
                 "http.answer_not_kept", line);
}

/* A refusal, or the end of something long: what it says is true also if it cannot be kept. */
static void keep_reply(struct rp_request *q)
{
    struct rp_error err = { 0 };
    (void)rp_request_keeps(q, tell_as_it_is, NULL);
    int r = rp_catalog_change(rp_request_catalog(q), do_nothing, NULL, &err);
    q->inner->phase = RP_REPLIED;
    if (r < 0 && !q->inner->keeping.overtaken) log_unkept(q, &err);
}

void rp_request_keep(struct rp_request *q)
{
    struct rp_keeping *k = &q->inner->keeping;
    if (!k->on || q->inner->phase != RP_REPLIED) return;
    if (!k->done && !k->overtaken && worth_keeping(q)) keep_reply(q);
    if (!k->done && !k->overtaken) return;
    rp_reply_reset(q);
    q->inner->phase = RP_HANDLING;
    if (k->done)
        reply_kept(q, k->status, rp_buf_text(&k->draft), k->draft.len);
    else
        reply_found(q, &k->found);
}

void rp_request_keep_free(struct rp_request *q)
{
    rp_buf_done(&q->inner->keeping.draft);
    json_decref(q->inner->keeping.begun);
}
