/* SPDX-License-Identifier: Apache-2.0 */
/* reference_webhook.c - a user's server that counts references: one call a key, on a connection that
 * is kept for the batch. */
#include "core/check/reference_source.h"

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "base/time.h"
#include "core/check/references.h"
#include "hook/hook.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CALL_MS      (5 * RP_SECOND_MS)
#define BATCH_MS     (10 * RP_SECOND_MS)
#define FAILURES_MAX 3 /* one after the other: then it is asked no more in this batch */

/* A batch of calls. */
struct calling {
    const struct rp_reference *reference;
    const char *store;
    const struct rp_counting *counting;
    struct rp_hook_line line;
    int64_t ends_boot_ms;
    int failures;
};

static int write_body(const struct calling *c, const char *key, struct rp_buf *out, struct rp_error *err)
{
    if (!rp_utf8_valid(key, strlen(key))) return rp_error_set(err, RP_EFAILED, "the key is not valid UTF-8");
    RP_CLEANUP(rp_json_decrefp)
    json_t *o = rp_json_object("store", rp_json_text(c->store), "key", rp_json_text(key), NULL);
    return rp_json_write(out, o) == 0 ? 0 : rp_error_set(err, RP_ENOMEM, "out of memory");
}

/* Every question is a message of its own, also of the same key: what was true then need not be now. */
static int name_question(const struct rp_buf *body, int64_t at_ms, char id[RP_HOOK_ID_MAX + 1], struct rp_error *err)
{
    char digest[RP_DIGEST_HEX];
    if (rp_digest_of(body->data, body->len, digest) < 0) return rp_error_set(err, RP_ENOMEM, "out of memory");
    snprintf(id, RP_HOOK_ID_MAX + 1, "references_%.32s_%" PRId64, digest, at_ms);
    return 0;
}

/* Only this is an answer: 200 and {"references": N}. */
static int read_answer(const struct rp_hook_answer *answer, int64_t *rows, struct rp_error *err)
{
    RP_CLEANUP(rp_json_decrefp) json_t *o = NULL;
    struct rp_error why = { 0 };
    if (answer->status != 200) return rp_error_set(err, RP_EFAILED, "it answered with status %ld", answer->status);
    if (answer->cut) return rp_error_set(err, RP_EFAILED, "its answer is too long");
    int r = rp_json_parse(answer->body, strlen(answer->body), &o, &why);
    const json_t *n = r == 0 ? json_object_get(o, "references") : NULL;
    if (!json_is_integer(n) || json_integer_value(n) < 0)
        return rp_error_set(err, RP_EFAILED, "its answer is not {\"references\": N}, N being 0 or more");
    *rows = json_integer_value(n);
    return 0;
}

static int ask(struct calling *c, const char *key, int64_t left_ms, int64_t *rows, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf body = RP_BUF((size_t)16 << 10);
    struct rp_hook_answer answer = { 0 };
    char id[RP_HOOK_ID_MAX + 1];
    int64_t at_ms = rp_clock_now_ms(c->counting->clock);
    int r = write_body(c, key, &body, err);
    if (r == 0) r = name_question(&body, at_ms, id, err);
    if (r < 0) return r;
    struct rp_hook_call call = { .url = c->reference->webhook,
                                 .secrets = { c->reference->secret, c->reference->secret_old },
                                 .id = id,
                                 .event = "references",
                                 .body = rp_buf_text(&body),
                                 .body_bytes = body.len,
                                 .at_ms = at_ms,
                                 .connect_ms = left_ms,
                                 .timeout_ms = left_ms,
                                 .allow = c->counting->allow,
                                 .line = &c->line };
    r = rp_hook_send(&call, &answer, err);
    if (r == 0) r = read_answer(&answer, rows, err);
    if (r < 0 && answer.status == 0)
        c->failures = FAILURES_MAX; /* it did not answer at all */
    else
        c->failures = r < 0 ? c->failures + 1 : 0;
    return r;
}

static int ask_in_time(struct calling *c, const char *key, int64_t *rows, struct rp_error *err)
{
    int64_t left_ms = c->ends_boot_ms - rp_clock_boot_ms(c->counting->clock);
    if (c->failures >= FAILURES_MAX) return rp_error_set(err, RP_EUNAVAILABLE, "it was asked no more after failures");
    if (left_ms <= 0) return rp_error_set(err, RP_EUNAVAILABLE, "there was no time to ask about all keys");
    return ask(c, key, left_ms < CALL_MS ? left_ms : CALL_MS, rows, err);
}

/* One that fails for a key now and then is asked about the others; one that is slow, or that fails
 * one time after the other, keeps other stores waiting. */
static bool is_silent(const struct calling *c, size_t answered, int64_t took_ms)
{
    return c->failures >= FAILURES_MAX || (took_ms >= BATCH_MS && (int64_t)answered < BATCH_MS / RP_SECOND_MS);
}

int rp_webhook_source_ask(const struct rp_reference *ref, const char *store, struct rp_counting *c,
                          struct rp_error *err)
{
    int64_t began_ms = rp_clock_boot_ms(c->clock);
    struct calling calling = { .reference = ref, .store = store, .counting = c, .ends_boot_ms = began_ms + BATCH_MS };
    size_t answered = 0;
    int failed = 0;
    for (size_t i = 0; i < c->n; i++) {
        struct rp_error why = { 0 };
        int64_t rows = 0;
        if (c->found[i].rows != 0) continue; /* it is used, or will not be known in any case */
        int r = ask_in_time(&calling, c->keys[i], &rows, &why);
        if (r == 0) {
            rp_counting_add(c, i, rows);
            answered++;
            continue;
        }
        rp_counting_lose(c, i);
        if (failed == 0) *err = why;
        if (failed == 0) failed = r;
    }
    rp_hook_line_done(&calling.line);
    c->silent = failed < 0 && is_silent(&calling, answered, rp_clock_boot_ms(c->clock) - began_ms);
    return failed;
}
