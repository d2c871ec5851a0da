/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/hook.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/text/base64.h"
#include "base/text/buf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct rp_hook_backend *const backends[] = { &rp_hook_webhook };
#define BACKENDS (sizeof backends / sizeof backends[0])

static bool takes(const struct rp_hook_backend *backend, const char *url)
{
    for (const char *const *scheme = backend->schemes; *scheme != NULL; scheme++)
        if (strncasecmp(url, *scheme, strlen(*scheme)) == 0) return true;
    return false;
}

/* NULL: none. */
static const struct rp_hook_backend *backend_of(const char *url)
{
    for (size_t i = 0; i < BACKENDS; i++)
        if (takes(backends[i], url)) return backends[i];
    return NULL;
}

int rp_hook_start(struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < BACKENDS; i++) {
        const struct rp_hook_backend *b = backends[i];
        RP_ASSERT(b->name != NULL && b->schemes != NULL && b->start != NULL && b->send != NULL && b->hang_up != NULL);
        r = b->start(err);
    }
    return r;
}

void rp_hook_line_done(struct rp_hook_line *line)
{
    if (line->state != NULL) line->backend->hang_up(line->state);
    *line = (struct rp_hook_line){ 0 };
}

static void use_line(const struct rp_hook_call *call, const struct rp_hook_backend *backend)
{
    uint64_t allow = rp_hash_text(0, call->allow != NULL ? call->allow : "");
    if (call->line->backend != backend || call->line->allow != allow) rp_hook_line_done(call->line);
    call->line->backend = backend;
    call->line->allow = allow;
}

static bool is_id(const char *id)
{
    static const char taken[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t n = id != NULL ? strlen(id) : 0;
    return n >= 1 && n <= RP_HOOK_ID_MAX && strspn(id, taken) == n;
}

int rp_hook_send(const struct rp_hook_call *call, struct rp_hook_answer *out, struct rp_error *err)
{
    const struct rp_hook_backend *backend = backend_of(call->url);
    *out = (struct rp_hook_answer){ .retry_after_ms = -1 };
    if (backend == NULL) return rp_error_set(err, RP_ECONFIG, "no kind of hook takes this URL");
    if (!is_id(call->id)) return rp_error_set(err, RP_EINVAL, "a message needs an id of A-Z a-z 0-9 - _");
    if (call->line != NULL) use_line(call, backend);
    return backend->send(call, out, err);
}

unsigned rp_hook_guarantees(const char *url)
{
    const struct rp_hook_backend *backend = backend_of(url);
    return backend == NULL ? 0 : backend->guarantees;
}

/* ---- the signature ---- */

#define PREFIX  "whsec_"
#define KEY_MAX 1024

/* Borrowed from the secret, or decoded into `room`. NULL: it is neither. */
static const void *key_of(const char *secret, uint8_t room[KEY_MAX], size_t *n)
{
    size_t length = strlen(secret), before = strlen(PREFIX);
    *n = length;
    if (strncmp(secret, PREFIX, before) != 0) return secret;
    int64_t bytes = length <= KEY_MAX ? rp_base64_parse(secret + before, length - before, room) : -1;
    *n = (size_t)bytes;
    return bytes > 0 ? room : NULL;
}

static int add_signature(const struct rp_buf *text, const char *secret, char *out, struct rp_error *err)
{
    uint8_t room[KEY_MAX], mac[RP_DIGEST_BYTES];
    char sum[RP_BASE64_TEXT(RP_DIGEST_BYTES)];
    size_t n = 0, used = strlen(out);
    const void *key = key_of(secret, room, &n);
    if (key == NULL) return rp_error_set(err, RP_ECONFIG, "what stands behind %s in a secret is no base64", PREFIX);
    if (rp_hmac(key, n, text->data, text->len, mac) < 0) return rp_error_set(err, RP_ENOMEM, "out of memory");
    rp_base64(mac, sizeof mac, sum);
    int made = snprintf(out + used, RP_HOOK_SIGNATURE - used, "%sv1,%s", used > 0 ? " " : "", sum);
    RP_ASSERT(made > 0 && (size_t)made < RP_HOOK_SIGNATURE - used);
    return 0;
}

int rp_hook_sign(const struct rp_hook_call *call, char out[RP_HOOK_SIGNATURE], struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(call->body_bytes + RP_HOOK_ID_MAX + 32);
    char made[RP_HOOK_SIGNATURE] = "";
    int r = 0;
    rp_buf_fmt(&text, "%s.%" PRId64 ".", call->id, call->at_ms / 1000);
    rp_buf_add(&text, call->body, call->body_bytes);
    if (text.failed < 0) return rp_error_set(err, text.failed, "no memory for a signature");
    for (size_t i = 0; i < RP_HOOK_SECRETS && r == 0; i++)
        if (call->secrets[i] != NULL && call->secrets[i][0] != 0) r = add_signature(&text, call->secrets[i], made, err);
    if (r == 0) memcpy(out, made, sizeof made);
    return r;
}
