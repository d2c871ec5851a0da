/* SPDX-License-Identifier: Apache-2.0 */
#include "store/s3/wire/parts.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/time.h"

#include <stdlib.h>
#include <string.h>

#define CONNECT_MS (5 * RP_SECOND_MS)
#define ONCE_IDLE_S                                                                                                    \
    4L /* a connection that idled longer may be about to be closed, and a `once` call cannot be sent again */
#define SIGNED_LASTS_MS RP_MINUTE_MS
#define BUFFER_BYTES    (64L << 10)

struct s3_transfer *rp_s3_transfer_new(struct s3_wire *wire)
{
    struct s3_transfer *t = calloc(1, sizeof *t);
    if (t == NULL) return NULL;
    t->wire = wire;
    t->signing.arena = RP_ARENA((size_t)256 << 10);
    t->easy = curl_easy_init();
    if (t->easy != NULL) return t;
    free(t);
    return NULL;
}

void rp_s3_transfer_free(struct s3_transfer *t)
{
    if (t == NULL) return;
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    rp_arena_done(&t->signing.arena);
    free(t);
}

/* ---- the answer ---- */

static bool keep_header(struct rp_buf *to, const char *line, size_t n)
{
    const char *colon = memchr(line, ':', n);
    if (colon == NULL || colon == line || line[0] == ' ' || line[0] == '\t') return true;
    const char *value = colon + 1, *end = line + n;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' ' || end[-1] == '\t'))
        end--;
    for (const char *c = line; c < colon; c++)
        (void)rp_buf_char(to, *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c);
    (void)rp_buf_str(to, ": ");
    (void)rp_buf_add(to, value, (size_t)(end - value));
    return rp_buf_char(to, '\n') == 0;
}

static size_t take_header(char *line, size_t size, size_t count, void *ctx)
{
    struct s3_transfer *t = ctx;
    struct rp_buf *headers = &t->job->call->headers;
    size_t n = size * count;
    t->heard_boot_ms = rp_time_boot_ms();
    atomic_store(&t->wire->heard_ms, t->heard_boot_ms);
    if (n >= 5 && memcmp(line, "HTTP/", 5) == 0) { /* the answer itself, after any that only announce it */
        rp_buf_clear(headers);
        t->answered_boot_ms = t->heard_boot_ms;
        t->head_whole = false;
        return n;
    }
    if (n == 0 || line[0] == '\r' || line[0] == '\n') t->head_whole = true;
    if (keep_header(headers, line, n)) return n;
    t->no_room = headers->failed == RP_ETOOBIG;
    t->no_memory = !t->no_room;
    return 0;
}

static size_t pour(struct s3_transfer *t, const char *bytes, size_t n)
{
    const struct rp_sink *to = t->job->call->to;
    t->job->call->sunk_bytes += (int64_t)n;
    t->sink_code = to->write(to->ctx, bytes, n, t->sink_err);
    t->heard_boot_ms = rp_time_boot_ms();
    return t->sink_code < 0 ? 0 : n;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct s3_transfer *t = ctx;
    struct s3_call *call = t->job->call;
    size_t n = size * count;
    long status = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (n == 0) return 0;
    atomic_store(&t->wire->heard_ms, rp_time_boot_ms());
    if (t->streams && (status == 200 || status == 206)) return pour(t, bytes, n);
    call->answer.max = status >= 300 && call->answer_max < S3_FAULT_MAX ? S3_FAULT_MAX : call->answer_max;
    int r = rp_buf_add(&call->answer, bytes, n);
    t->no_room = r == RP_ETOOBIG;
    t->no_memory = r < 0 && !t->no_room;
    return r < 0 ? 0 : n;
}

/* libcurl sends a request again by itself if a kept connection turns out to be closed: the server
 * may have carried it out all the same. This is called each time right before the request goes out,
 * so that it also tells what was sent from what was not. */
static int before_sending(void *ctx, char *to, char *from, int to_port, int from_port)
{
    struct s3_transfer *t = ctx;
    (void)to, (void)from, (void)to_port, (void)from_port;
    if (t->sent > 0 && t->job->call->once) return CURL_PREREQFUNC_ABORT;
    t->sent++;
    return CURL_PREREQFUNC_OK;
}

/* A stream may last as long as bytes come, however slow the sink is: only silence ends it. */
static int still_wanted(void *ctx, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
    struct s3_transfer *t = ctx;
    (void)down_all, (void)down, (void)up_all, (void)up;
    int64_t now_ms = rp_time_boot_ms();
    if (atomic_load(&t->wire->closing)) return 1;
    bool silent = t->job->call->sunk_bytes == 0 && now_ms - t->heard_boot_ms >= S3_SILENT_MS;
    if (silent && !t->told) rp_s3_wire_tell_silence(t->wire);
    t->told = t->told || silent;
    if (t->job->call->sunk_bytes == 0 && now_ms >= t->job->ends_at_ms) return 1;
    return now_ms - t->heard_boot_ms >= t->wire->options.timeout_ms;
}

/* ---- the request ---- */

static bool append(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);
    if (longer != NULL) *list = longer;
    return longer != NULL;
}

static bool add_line(struct curl_slist **list, const char *name, const char *value)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf line = RP_BUF(S3_HEADER_BYTES_MAX);
    /* libcurl takes "name:" for a wish to leave it out */
    (void)rp_buf_fmt(&line, "%s%s%s", name, value[0] == '\0' ? ";" : ": ", value);
    return line.failed == 0 && append(list, rp_buf_text(&line));
}

static bool make_headers(struct s3_transfer *t)
{
    const struct s3_signed *s = &t->used->out;
    bool typed = false, ok = true;
    curl_slist_free_all(t->headers);
    t->headers = NULL;
    for (size_t i = 0; i < s->n_headers && ok; i++) {
        typed |= strcmp(s->headers[i].name, "content-type") == 0;
        ok = add_line(&t->headers, s->headers[i].name, s->headers[i].value);
    }
    if (ok && !typed) ok = append(&t->headers, "Content-Type:");
    return ok && append(&t->headers, "Expect:") && append(&t->headers, "Accept:");
}

#define SET(option, value) ok = ok && curl_easy_setopt(t->easy, option, value) == CURLE_OK

static bool set_message(struct s3_transfer *t)
{
    const struct s3_message *m = &t->job->call->message;
    bool ok = true, has_body = m->body != NULL || strcmp(m->method, "PUT") == 0 || strcmp(m->method, "POST") == 0;
    SET(CURLOPT_URL, t->used->out.url);
    SET(CURLOPT_PATH_AS_IS, 1L); /* a key may have ".." in it */
    SET(CURLOPT_HTTPHEADER, t->headers);
    if (has_body) {
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)m->body_bytes);
        SET(CURLOPT_POSTFIELDS, m->body != NULL ? m->body : "");
    }
    if (strcmp(m->method, "HEAD") == 0)
        SET(CURLOPT_NOBODY, 1L);
    else
        SET(CURLOPT_CUSTOMREQUEST, m->method);
    return ok;
}

static bool set_manners(struct s3_transfer *t)
{
    const char *ca_file = t->wire->options.ca_file;
    bool ok = true;
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TCP_NODELAY, 1L);
    SET(CURLOPT_PIPEWAIT, 0L);
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_BUFFERSIZE, BUFFER_BYTES);
    SET(CURLOPT_USERAGENT, "reprieve/" REPRIEVE_VERSION);
    if (ca_file != NULL && ca_file[0] != '\0') SET(CURLOPT_CAINFO, ca_file);
    if (t->job->call->once) SET(CURLOPT_MAXAGE_CONN, ONCE_IDLE_S);
    return ok;
}

static bool set_ends(struct s3_transfer *t, int64_t now_ms)
{
    int64_t left_ms = t->job->ends_at_ms - now_ms, timeout_ms = t->wire->options.timeout_ms;
    RP_ASSERT(left_ms > 0);
    if (timeout_ms > left_ms) timeout_ms = left_ms;
    bool ok = true;
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(timeout_ms < CONNECT_MS ? timeout_ms : CONNECT_MS));
    if (!t->streams) {
        SET(CURLOPT_TIMEOUT_MS, (long)timeout_ms);
        return ok;
    }
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, still_wanted);
    SET(CURLOPT_XFERINFODATA, t);
    return ok;
}

static bool set_ways(struct s3_transfer *t)
{
    bool ok = true;
    SET(CURLOPT_ERRORBUFFER, t->trouble);
    SET(CURLOPT_PRIVATE, t);
    SET(CURLOPT_HEADERFUNCTION, take_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_WRITEFUNCTION, take_body);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_PREREQFUNCTION, before_sending);
    SET(CURLOPT_PREREQDATA, t);
    return ok;
}

static void forget(struct s3_transfer *t, int64_t now_ms)
{
    struct s3_call *call = t->job->call;
    curl_easy_reset(t->easy);
    rp_buf_clear(&call->headers);
    rp_buf_clear(&call->answer);
    call->headers.max = S3_HEADER_BYTES_MAX;
    call->status = 0;
    t->trouble[0] = '\0';
    t->sent = 0;
    t->no_room = t->no_memory = t->head_whole = false;
    t->answered_boot_ms = 0;
    t->heard_boot_ms = now_ms;
    t->sink_code = 0;
    call->sunk_bytes = 0;
}

/* The signature of the thread that brought the call, if it is still good, for one attempt; else one
 * made now. */
static int use_signature(struct s3_transfer *t, int64_t now_ms)
{
    struct s3_job *job = t->job;
    struct rp_error err = { 0 };
    t->used = &job->ahead;
    if (job->ahead.fresh && now_ms - job->ahead.at_boot_ms < SIGNED_LASTS_MS) {
        job->ahead.fresh = false;
        return 0;
    }
    t->used = &t->signing;
    int r = rp_s3_wire_sign(t->wire, job->call, &t->signing, &err);
    if (r < 0) rp_s3_fail(job, r, "%s", err.text);
    return r;
}

int rp_s3_transfer_begin(struct s3_transfer *t, int64_t now_boot_ms)
{
    forget(t, now_boot_ms);
    int r = use_signature(t, now_boot_ms);
    if (r < 0) return r;
    if (!make_headers(t)) {
        rp_s3_fail(t->job, RP_ENOMEM, "out of memory");
    } else if (!set_message(t) || !set_manners(t) || !set_ends(t, now_boot_ms) || !set_ways(t)) {
        rp_s3_fail(t->job, RP_ECONFIG, "the endpoint's URL cannot be used");
    } else {
        return 0;
    }
    return t->job->call->code;
}
