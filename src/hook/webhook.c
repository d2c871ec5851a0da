/* SPDX-License-Identifier: Apache-2.0 */
/* webhook.c - a POST by libcurl. 2xx: taken. 408, 429, 5xx, or no whole answer: may be repeated. */
#include "hook/hook.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/time.h"
#include "hook/address.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define CONNECT_MS (5 * RP_SECOND_MS)
#define TIMEOUT_MS (15 * RP_SECOND_MS)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode ready;

static void make_ready(void)
{
    ready = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static int webhook_start(struct rp_error *err)
{
    pthread_once(&once, make_ready);
    return ready == CURLE_OK ? 0 : rp_error_set(err, RP_EFAILED, "libcurl cannot be initialised");
}

/* One call under way. */
struct calling {
    const struct rp_hook_call *call;
    struct rp_hook_answer *answer;
    size_t n;                              /* bytes of the answer's body */
    const struct rp_address_rule *refused; /* by G6; NULL: no address was */
    bool allowed;                          /* another address is: whether it can be reached may change */
    bool headed;                           /* the answer's headers are whole: their empty line was seen */
};

static char shown(char c)
{
    if (c == ' ' || (c >= '\t' && c <= '\r')) return ' ';
    return (unsigned char)c > ' ' && c != 0x7f ? c : '.';
}

static size_t take(char *bytes, size_t size, size_t n, void *ctx)
{
    struct calling *c = ctx;
    size_t got = size * n, room = RP_HOOK_ANSWER_MAX - c->n, kept = got < room ? got : room;
    for (size_t i = 0; i < kept; i++)
        c->answer->body[c->n++] = shown(bytes[i]);
    c->answer->cut = kept < got;
    return c->answer->cut ? 0 : got; /* 0 ends the call: the status is known by now */
}

/* Line by line. An interim answer (1xx) has an empty line as well, and another answer after it. */
static size_t take_header(char *line, size_t size, size_t n, void *ctx)
{
    struct calling *c = ctx;
    size_t got = size * n;
    if (got >= 5 && memcmp(line, "HTTP/", 5) == 0) c->headed = false;
    if (got > 0 && got <= 2 && line[got - 1] == '\n' && (got == 1 || line[0] == '\r')) c->headed = true;
    return got;
}

static void curl_freep(CURL **curl)
{
    curl_easy_cleanup(*curl);
}

static void url_freep(CURLU **url)
{
    curl_url_cleanup(*url);
}

static void headers_freep(struct curl_slist **headers)
{
    curl_slist_free_all(*headers);
}

/* ---- what is sent ---- */

static bool add_header(struct curl_slist **headers, const char *name, const char *value)
{
    char line[256];
    snprintf(line, sizeof line, "%s: %s", name, value);
    struct curl_slist *longer = curl_slist_append(*headers, line);
    if (longer != NULL) *headers = longer;
    return longer != NULL;
}

static int make_headers(const struct rp_hook_call *call, struct curl_slist **headers, struct rp_error *err)
{
    char signature[RP_HOOK_SIGNATURE], seconds[RP_TIME_TEXT];
    int r = rp_hook_sign(call, signature, err);
    if (r < 0) return r;
    snprintf(seconds, sizeof seconds, "%" PRId64, call->at_ms / 1000);
    bool ok = add_header(headers, "Content-Type", "application/json") &&
              add_header(headers, "User-Agent", "reprieve/" REPRIEVE_VERSION) && add_header(headers, "Expect", "") &&
              add_header(headers, "webhook-id", call->id) && add_header(headers, "webhook-timestamp", seconds);
    if (ok && call->event != NULL) ok = add_header(headers, "Reprieve-Event", call->event);
    if (ok && signature[0] != 0) ok = add_header(headers, "webhook-signature", signature);
    return ok ? 0 : rp_error_set(err, RP_ENOMEM, "webhook: out of memory");
}

/* G6: at the last moment, so that no name, no form of writing and no second answer of a name server
 * can lead elsewhere. An address that is refused is passed over: libcurl goes on with the next. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct calling *c = ctx;
    const struct rp_address_rule *why;
    (void)purpose;
    if (!rp_address_may_be_called(&to->addr, c->call->allow, &why)) {
        c->refused = why;
        return CURL_SOCKET_BAD;
    }
    c->allowed = true;
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* About once a second, and whenever something happens. */
static int is_stopped(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct calling *calling = ctx;
    const volatile sig_atomic_t *stop = calling->call->stop;
    (void)a, (void)b, (void)c, (void)d;
    return stop != NULL && __atomic_load_n(stop, __ATOMIC_RELAXED) != 0;
}

/* What libcurl will call is what was read here: it is handed over as its parts. */
static int read_url(const struct rp_hook_call *call, CURLU **out, struct rp_error *err)
{
    RP_CLEANUP(url_freep) CURLU *url = curl_url();
    if (url == NULL) return rp_error_set(err, RP_ENOMEM, "webhook: out of memory");
    CURLUcode code = curl_url_set(url, CURLUPART_URL, call->url, CURLU_DISALLOW_USER);
    if (code == CURLUE_USER_NOT_ALLOWED) return rp_error_set(err, RP_ECONFIG, "webhook: there is a user in the URL");
    if (code != CURLUE_OK) return rp_error_set(err, RP_ECONFIG, "webhook: the URL cannot be used");
    *out = url;
    url = NULL;
    return 0;
}

static bool set_peer(CURL *curl, const struct rp_hook_call *call, CURLU *url)
{
    long connect_ms = (long)(call->connect_ms > 0 ? call->connect_ms : CONNECT_MS);
    long timeout_ms = (long)(call->timeout_ms > 0 ? call->timeout_ms : TIMEOUT_MS);
    return curl_easy_setopt(curl, CURLOPT_CURLU, url) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_PROXY, "") == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, connect_ms) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms) == CURLE_OK;
}

static bool set_message(CURL *curl, struct calling *calling, struct curl_slist *headers)
{
    const struct rp_hook_call *call = calling->call;
    return curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call->body) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_bytes) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_WRITEDATA, calling) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_HEADERDATA, calling) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, calling) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, is_stopped) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_XFERINFODATA, calling) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L) == CURLE_OK;
}

/* ---- what came back ---- */

static const char *header(CURL *curl, const char *name)
{
    struct curl_header *found;
    return curl_easy_header(curl, name, 0, CURLH_HEADER, -1, &found) == CURLHE_OK ? found->value : NULL;
}

/* Seconds, or a moment by the peer's own clock, which its Date tells. */
static int64_t retry_after_ms(CURL *curl, int64_t now_ms)
{
    const char *text = header(curl, "Retry-After");
    if (text == NULL) return -1;
    size_t digits = strspn(text, "0123456789");
    if (digits > 0 && text[digits] == 0) {
        long long seconds = strtoll(text, NULL, 10); /* LLONG_MAX if there are too many */
        return seconds < RP_DAY_MS / RP_SECOND_MS ? seconds * RP_SECOND_MS : RP_DAY_MS;
    }
    const char *date = header(curl, "Date");
    int64_t at = (int64_t)curl_getdate(text, NULL), from = date != NULL ? (int64_t)curl_getdate(date, NULL) : -1;
    if (at < 0) return -1;
    if (from < 0) from = now_ms / 1000;
    if (at <= from) return 0;
    return at - from < RP_DAY_MS / 1000 ? (at - from) * RP_SECOND_MS : RP_DAY_MS;
}

static void hint_at(const struct rp_address_rule *why, struct rp_error *err)
{
    if (why->network == NULL) return;
    rp_error_hint(err, "if that is meant, the configuration says so: outbound: { allow: [\"%s\"] }", why->network);
}

static int judge_failure(CURLcode code, const struct calling *calling, struct rp_error *err)
{
    const struct rp_address_rule *why = calling->refused;
    if (code == CURLE_URL_MALFORMAT) return rp_error_set(err, RP_ECONFIG, "webhook: the URL cannot be used");
    if (why == NULL) return rp_error_set(err, RP_EUNAVAILABLE, "webhook: %s", curl_easy_strerror(code));
    if (calling->allowed)
        rp_error_set(err, RP_EUNAVAILABLE, "webhook: %s; another address, not connected to, is %s",
                     curl_easy_strerror(code), why->what);
    else
        rp_error_set(err, RP_EDENIED, "webhook: not connected: the address is %s", why->what);
    hint_at(why, err);
    return calling->allowed ? RP_EUNAVAILABLE : RP_EDENIED;
}

static int judge(CURLcode code, const struct calling *calling, struct rp_error *err)
{
    long status = calling->answer->status;
    if (code == CURLE_OK && !calling->headed)
        code = CURLE_GOT_NOTHING; /* libcurl takes an end inside the headers for theirs */
    if (code != CURLE_OK && !(code == CURLE_WRITE_ERROR && calling->answer->cut)) {
        calling->answer->status = 0; /* G4: what broke off is no answer, whatever its first line says */
        return judge_failure(code, calling, err);
    }
    if (status >= 200 && status < 300) return 0;
    bool again = status == 408 || status == 429 || status >= 500;
    return rp_error_set(err, again ? RP_EUNAVAILABLE : RP_EDENIED, "webhook: answered with status %ld", status);
}

static int perform(CURL *curl, const struct rp_hook_call *call, struct rp_hook_answer *out, struct rp_error *err)
{
    RP_CLEANUP(headers_freep) struct curl_slist *headers = NULL;
    RP_CLEANUP(url_freep) CURLU *url = NULL;
    struct calling calling = { .call = call, .answer = out };
    int r = read_url(call, &url, err);
    if (r == 0) r = make_headers(call, &headers, err);
    if (r < 0) return r;
    if (!set_peer(curl, call, url) || !set_message(curl, &calling, headers))
        return rp_error_set(err, RP_EFAILED, "webhook: libcurl does not take what it is told");
    CURLcode code = curl_easy_perform(curl);
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &out->status);
    out->retry_after_ms = retry_after_ms(curl, call->at_ms);
    return judge(code, &calling, err);
}

static int webhook_send(const struct rp_hook_call *call, struct rp_hook_answer *out, struct rp_error *err)
{
    RP_CLEANUP(curl_freep) CURL *own = NULL;
    CURL *curl = call->line != NULL ? call->line->state : NULL;
    int r = webhook_start(err);
    if (r < 0) return r;
    if (curl == NULL) curl = curl_easy_init();
    if (curl == NULL) return rp_error_set(err, RP_ENOMEM, "webhook: out of memory");
    if (call->line != NULL)
        call->line->state = curl;
    else
        own = curl;
    curl_easy_reset(curl); /* what was set for the last call; its connection stays */
    return perform(curl, call, out, err);
}

static void webhook_hang_up(void *state)
{
    curl_easy_cleanup(state);
}

const struct rp_hook_backend rp_hook_webhook = {
    .name = "webhook",
    .schemes = (const char *const[]){ "https://", "http://", NULL },
    .guarantees = RP_HOOK_ANSWERS | RP_HOOK_SIGNS,
    .start = webhook_start,
    .send = webhook_send,
    .hang_up = webhook_hang_up,
};
