/* SPDX-License-Identifier: Apache-2.0 */
#include "store/s3/wire/parts.h"

#include "base/assert.h"
#include "base/time.h"
#include "store/s3/xml/xml.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SKEW_MS      (5 * RP_MINUTE_MS) /* servers refuse from 15 minutes on */
#define ASKED_MAX_MS (30 * RP_SECOND_MS)

static bool changes_something(const struct s3_call *call)
{
    return call->once || (strcmp(call->message.method, "GET") != 0 && strcmp(call->message.method, "HEAD") != 0);
}

/* Whatever went wrong: what may have been carried out is unknown. */
void rp_s3_fail(struct s3_job *job, int code, const char *fmt, ...)
{
    struct s3_call *call = job->call;
    va_list args;
    RP_ASSERT(code < 0);
    call->code = job->maybe_done && changes_something(call) ? RP_EUNKNOWN : code;
    va_start(args, fmt);
    (void)vsnprintf(call->note, sizeof call->note, fmt, args);
    va_end(args);
}

/* libcurl only says that we stopped it. */
static const char *why_stopped(const struct s3_transfer *t)
{
    if (atomic_load(&t->wire->closing)) return "the store was closed";
    return t->streams ? "nothing came for too long" : "the connection was closed before an answer came";
}

static const char *words(const struct s3_transfer *t, CURLcode result)
{
    if (result == CURLE_ABORTED_BY_CALLBACK) return why_stopped(t);
    if (result == CURLE_OK) return "the headers of the answer broke off";
    return t->trouble[0] != '\0' ? t->trouble : curl_easy_strerror(result);
}

static bool is_tls(CURLcode result)
{
    static const CURLcode codes[] = {
        CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
        CURLE_SSL_CERTPROBLEM,          CURLE_SSL_CIPHER,
        CURLE_SSL_ISSUER_ERROR,         CURLE_SSL_PINNEDPUBKEYNOTMATCH,
        CURLE_SSL_INVALIDCERTSTATUS,    CURLE_SSL_ENGINE_NOTFOUND,
        CURLE_SSL_ENGINE_SETFAILED,
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] == result) return true;
    return false;
}

/* A name that nobody knows, or a peer that speaks no TLS, is a mistake in the configuration unless
 * this server has answered before. */
static bool is_misconfigured(CURLcode result, bool reached)
{
    if (result == CURLE_URL_MALFORMAT || result == CURLE_UNSUPPORTED_PROTOCOL) return true;
    return !reached && (result == CURLE_COULDNT_RESOLVE_HOST || result == CURLE_COULDNT_RESOLVE_PROXY ||
                        result == CURLE_SSL_CONNECT_ERROR);
}

/* Retry-After in seconds; a date in it is not worth its trouble. */
static int64_t asked_of(const struct s3_call *call)
{
    char text[32], *end;
    if (rp_s3_header(call, "retry-after", text, sizeof text) == NULL || text[0] < '0' || text[0] > '9') return 0;
    long seconds = strtol(text, &end, 10);
    if (*end != '\0' || seconds < 0) return 0;
    return seconds > ASKED_MAX_MS / 1000 ? ASKED_MAX_MS : seconds * 1000;
}

static bool is_code(const struct s3_fault *fault, const char *code)
{
    return strcmp(fault->code, code) == 0;
}

/* The answer to a HEAD has no error document: the Date and the status must do. */
static bool is_skewed(const struct s3_transfer *t, const struct s3_fault *fault, int64_t date_ms)
{
    const struct s3_call *call = t->job->call;
    if (date_ms < 0 || t->job->clock_tried) return false;
    if (is_code(fault, "RequestTimeTooSkewed")) return true;
    return call->status == 403 && strcmp(call->message.method, "HEAD") == 0 &&
           llabs((long long)(date_ms - t->used->at_ms)) > SKEW_MS;
}

static bool are_keys_refused(const struct s3_transfer *t, const struct s3_fault *fault)
{
    const struct s3_call *call = t->job->call;
    if (t->job->keys_tried) return false;
    if (is_code(fault, "ExpiredToken") || is_code(fault, "InvalidAccessKeyId")) return true;
    return call->status == 400 && strcmp(call->message.method, "HEAD") == 0 && t->used->has_token;
}

/* Not now: 5xx, 429 or SlowDown. */
static void judge_refusal(struct s3_transfer *t, const struct s3_fault *fault, struct s3_verdict *v)
{
    struct s3_job *job = t->job;
    int status = job->call->status;
    v->slow = status == 503 || status == 429 || is_code(fault, "SlowDown");
    v->asked_ms = asked_of(job->call);
    if (status >= 500) job->maybe_done = true;
    rp_s3_fail(job, RP_EUNAVAILABLE, "answered %d%s%s%s%s", status, fault->code[0] != '\0' ? " " : "", fault->code,
               fault->message[0] != '\0' ? ": " : "", fault->message);
    v->next = job->call->once ? S3_NEXT_END : S3_NEXT_AGAIN;
}

static void judge_answer(struct s3_transfer *t, const struct s3_fault *fault, struct s3_verdict *v)
{
    struct s3_call *call = t->job->call;
    v->good = true;
    v->next = S3_NEXT_END;
    call->code = 0;
    call->note[0] = '\0';
    if (is_skewed(t, fault, v->date_ms))
        v->next = S3_NEXT_CLOCK;
    else if (are_keys_refused(t, fault))
        v->next = S3_NEXT_KEYS;
}

static void judge_too_large(struct s3_transfer *t, struct s3_verdict *v)
{
    struct s3_job *job = t->job;
    if (job->call->once || t->no_memory) job->maybe_done = true;
    v->next = S3_NEXT_END;
    if (t->no_memory)
        rp_s3_fail(job, RP_ENOMEM, "no memory for the answer");
    else
        rp_s3_fail(job, RP_ETOOBIG, "the answer (status %d) is larger than it may be", job->call->status);
}

static void judge_stream_cut(struct s3_transfer *t, CURLcode result, struct s3_verdict *v)
{
    v->next = S3_NEXT_END;
    if (t->sink_code < 0) {
        rp_s3_fail(t->job, t->sink_code, "%s", t->sink_err != NULL ? t->sink_err->text : rp_error_title(t->sink_code));
        t->job->call->code = t->sink_code;
        t->job->call->sink_failed = true;
        return;
    }
    rp_s3_fail(t->job, RP_EUNAVAILABLE, "broke off after %" PRId64 " bytes: %s", t->job->call->sunk_bytes,
               words(t, result));
}

static void judge_break(struct s3_transfer *t, CURLcode result, bool reached, struct s3_verdict *v)
{
    struct s3_job *job = t->job;
    if (t->sent > 0) job->maybe_done = true;
    v->next = S3_NEXT_END;
    if (is_tls(result) || (result == CURLE_SSL_CONNECT_ERROR && !reached)) {
        rp_s3_fail(job, RP_ECONFIG, "TLS: %s", words(t, result));
    } else if (t->sent == 0 && is_misconfigured(result, reached)) {
        rp_s3_fail(job, RP_ECONFIG, "%s", words(t, result));
    } else if (result == CURLE_OUT_OF_MEMORY) {
        rp_s3_fail(job, RP_ENOMEM, "out of memory");
    } else {
        v->next = job->call->once && job->maybe_done ? S3_NEXT_END : S3_NEXT_AGAIN;
        rp_s3_fail(job, RP_EUNAVAILABLE, "%s", words(t, result));
    }
}

struct s3_verdict rp_s3_judge(struct s3_transfer *t, CURLcode result, bool reached)
{
    struct s3_call *call = t->job->call;
    struct s3_fault fault = { .code = "" };
    struct s3_verdict v = { .date_ms = -1 };
    long status = 0;
    /* On a kept connection that breaks libcurl sends once more by itself. */
    if (t->sent > 1) call->attempts += t->sent - 1;
    if (t->answered_boot_ms > 0) (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    call->status = (int)status;
    if (status > 0) (void)rp_s3_header_date(call, "date", &v.date_ms);
    if (status >= 400 && call->answer.len > 0) rp_s3_read_fault(&call->answer, &fault);
    if (call->sunk_bytes > 0 && result != CURLE_OK)
        judge_stream_cut(t, result, &v);
    else if ((status >= 500 && status != 501) || status == 429 || is_code(&fault, "SlowDown"))
        judge_refusal(t, &fault, &v);
    else if (t->no_room || t->no_memory)
        judge_too_large(t, &v);
    else if (result == CURLE_OK && status >= 200 && t->head_whole)
        judge_answer(t, &fault, &v);
    else
        judge_break(t, result, reached, &v);
    return v;
}
