/* SPDX-License-Identifier: Apache-2.0 */
/* A POST by libcurl. 2xx: taken. 408, 429, 5xx, or no whole answer: may be repeated. */
#include "hook/hook.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/time.h"

#include <curl/curl.h>
#include <stdio.h>

#define CONNECT_MS (5 * RP_SECOND_MS)
#define TIMEOUT_MS (15 * RP_SECOND_MS)

static int webhook_start(struct rp_error *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) return 0;
    return rp_error_set(err, RP_EFAILED, "libcurl cannot be initialised");
}

struct taking {
    struct rp_hook_answer *answer;
    size_t n;
    bool full;
};

static size_t take(char *bytes, size_t size, size_t n, void *ctx)
{
    struct taking *t = ctx;
    size_t got = size * n, room = RP_HOOK_ANSWER_MAX - t->n, kept = got < room ? got : room;
    for (size_t i = 0; i < kept; i++)
        t->answer->body[t->n++] = (unsigned char)bytes[i] >= ' ' && bytes[i] != 0x7f ? bytes[i] : '.';
    t->full = kept < got;
    return t->full ? 0 : got; /* 0 ends the call: the status is known by now */
}

static void curl_freep(CURL **curl)
{
    curl_easy_cleanup(*curl);
}

static void headers_freep(struct curl_slist **headers)
{
    curl_slist_free_all(*headers);
}

static bool add_header(struct curl_slist **headers, const char *name, const char *value)
{
    char line[256];
    snprintf(line, sizeof line, "%s: %s", name, value);
    struct curl_slist *longer = curl_slist_append(*headers, line);
    if (longer != NULL) *headers = longer;
    return longer != NULL;
}

static bool make_headers(const struct rp_hook_call *call, struct curl_slist **headers)
{
    char signature[RP_HOOK_SIGNATURE];
    bool ok = add_header(headers, "Content-Type", "application/json") &&
              add_header(headers, "User-Agent", "reprieve/" REPRIEVE_VERSION) && add_header(headers, "Expect", "");
    if (ok && call->event != NULL) ok = add_header(headers, "Reprieve-Event", call->event);
    if (!ok || call->secret == NULL || call->secret[0] == 0) return ok;
    rp_hook_sign(call->secret, call->at_ms, call->body, call->body_bytes, signature);
    return add_header(headers, "Reprieve-Signature", signature);
}

static bool set_up(CURL *curl, const struct rp_hook_call *call, struct curl_slist *headers, struct taking *taking)
{
    long connect_ms = (long)(call->connect_ms > 0 ? call->connect_ms : CONNECT_MS);
    long timeout_ms = (long)(call->timeout_ms > 0 ? call->timeout_ms : TIMEOUT_MS);
    return curl_easy_setopt(curl, CURLOPT_URL, call->url) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, connect_ms) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call->body) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_bytes) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_WRITEDATA, taking) == CURLE_OK;
}

static int judge(CURLcode code, const struct taking *taking, struct rp_error *err)
{
    long status = taking->answer->status;
    if (code != CURLE_OK && !(code == CURLE_WRITE_ERROR && taking->full))
        return rp_error_set(err, RP_EUNAVAILABLE, "webhook: %s", curl_easy_strerror(code));
    if (status >= 200 && status < 300) return 0;
    bool again = status == 408 || status == 429 || status >= 500;
    return rp_error_set(err, again ? RP_EUNAVAILABLE : RP_EDENIED, "webhook: answered with status %ld", status);
}

static int webhook_send(const struct rp_hook_call *call, struct rp_hook_answer *out, struct rp_error *err)
{
    RP_CLEANUP(headers_freep) struct curl_slist *headers = NULL;
    RP_CLEANUP(curl_freep) CURL *curl = curl_easy_init();
    struct taking taking = { .answer = out };
    if (curl == NULL || !make_headers(call, &headers)) return rp_error_set(err, RP_ENOMEM, "webhook: out of memory");
    if (!set_up(curl, call, headers, &taking)) return rp_error_set(err, RP_ECONFIG, "webhook: the URL cannot be used");
    CURLcode code = curl_easy_perform(curl);
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &out->status);
    return judge(code, &taking, err);
}

const struct rp_hook_backend rp_hook_webhook = {
    .name = "webhook",
    .schemes = (const char *const[]){ "https://", "http://", NULL },
    .guarantees = RP_HOOK_ANSWERS | RP_HOOK_SIGNS,
    .start = webhook_start,
    .send = webhook_send,
};
