/* SPDX-License-Identifier: Apache-2.0 */
/* A request begun, an answer judged. What a person reads about a failure is written here, once for
 * all slots. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/text/hex.h"
#include "store/refuse.h"
#include "store/s3/s3.h"

struct s3_call rp_s3_call(const char *method, const char *key)
{
    return (struct s3_call){ .message = { .method = method, .key = key }, .answer_max = S3_ANSWER_MAX };
}

void rp_s3_query(struct s3_call *call, const char *name, const char *value)
{
    RP_ASSERT(call->message.n_query < S3_QUERY_MAX);
    call->message.query[call->message.n_query++] = (struct rp_pair){ name, value };
}

void rp_s3_send(struct s3_call *call, const struct rp_pair *headers, size_t n, const struct rp_buf *body)
{
    call->message.headers = headers;
    call->message.n_headers = n;
    if (!body) return;
    call->message.body = rp_buf_text(body);
    call->message.body_bytes = body->len;
}

void rp_s3_query_version(struct s3_call *call, const struct rp_identity *identity, bool versions)
{
    if (identity->version[0])
        rp_s3_query(call, "versionId", identity->version);
    else if (versions)
        rp_s3_query(call, "versionId", "null");
}

/* ---- what was tried, in words ---- */

static bool asks_for(const struct s3_call *call, const char *name)
{
    for (size_t i = 0; i < call->message.n_query; i++)
        if (strcmp(call->message.query[i].name, name) == 0) return true;
    return false;
}

static bool is_copy(const struct s3_call *call)
{
    for (size_t i = 0; i < call->message.n_headers; i++)
        if (strcmp(call->message.headers[i].name, "x-amz-copy-source") == 0) return true;
    return false;
}

static const char *attempt(const struct s3_call *call)
{
    static const struct {
        const char *method, *query, *words;
    } words[] = {
        { "GET", "list-type", "list" },
        { "GET", "versions", "list versions" },
        { "GET", "uploads", "list unfinished uploads" },
        { "GET", "versioning", "ask for versioning" },
        { "GET", "tagging", "read the tags of" },
        { "PUT", "tagging", "write the tags of" },
        { "DELETE", "tagging", "delete the tags of" },
        { "POST", "delete", "delete several objects" },
        { "POST", "uploads", "begin an upload in parts of" },
        { "POST", "uploadId", "end an upload in parts of" },
        { "PUT", "partNumber", "upload a part of" },
        { "DELETE", "uploadId", "abort an upload in parts of" },
        { "GET", NULL, "read" },
        { "HEAD", NULL, "look at" },
        { "PUT", NULL, "put" },
        { "DELETE", NULL, "delete" },
    };
    if (is_copy(call)) return "copy to";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(call->message.method, words[i].method) == 0 && (!words[i].query || asks_for(call, words[i].query)))
            return words[i].words;
    return call->message.method;
}

/* "bucket 'media': read 'a/b'" */
static void describe(const struct rp_s3 *s3, const struct s3_call *call, char out[300])
{
    const char *key = call->message.key;
    int n = snprintf(out, 300, "bucket '%.80s': %s", s3->target.bucket, attempt(call));
    if (key && n > 0 && n < 300) snprintf(out + n, 300 - (size_t)n, " '%.128s'%s", key, strlen(key) > 128 ? "..." : "");
}

/* ---- answers ---- */

struct verdict {
    const char *code; /* of the error document; NULL: by the status alone */
    int status;       /* 0: any */
    int result;
    const char *hint;
};

#define HINT_BUCKET "check stores.NAME.bucket (and endpoint): no such bucket is there"
#define HINT_RIGHTS "check what the store's access key may do with this bucket, and stores.NAME.access_key itself"
#define HINT_REGION "check stores.NAME.region and stores.NAME.endpoint"
#define HOST_CHARS  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]"
#define HINT_AGAIN  "try again; if it stays, something between here and the store changes bytes"

static const struct verdict verdicts[] = {
    { "NoSuchBucket", 0, RP_ECONFIG, HINT_BUCKET },
    { "InvalidBucketName", 0, RP_ECONFIG, HINT_BUCKET },
    { "NoSuchKey", 0, RP_ENOTFOUND, "" },
    { "NoSuchVersion", 0, RP_ENOTFOUND, "" },
    { "NoSuchUpload", 0, RP_ENOTFOUND, "" },
    { "AccessDenied", 0, RP_EDENIED, HINT_RIGHTS },
    { "SignatureDoesNotMatch", 0, RP_EDENIED, "check stores.NAME.secret_key: it does not fit the access key" },
    { "InvalidAccessKeyId", 0, RP_EDENIED, "check stores.NAME.access_key: the server does not know it" },
    { "ExpiredToken", 0, RP_EDENIED, "the session token has ended: give the store new keys" },
    { "InvalidToken", 0, RP_EDENIED, "check stores.NAME.session_token" },
    { "PermanentRedirect", 0, RP_ECONFIG, HINT_REGION },
    { "TemporaryRedirect", 0, RP_ECONFIG, HINT_REGION },
    { "AuthorizationHeaderMalformed", 0, RP_ECONFIG, HINT_REGION },
    { "RequestTimeTooSkewed", 0, RP_ECLOCK, "set this machine's clock (NTP): the server's differs by minutes" },
    { "PreconditionFailed", 0, RP_ECHANGED, "" },
    { "ConditionalRequestConflict", 0, RP_ECONFLICT, "another request for the same key was under way: try again" },
    { "OperationAborted", 0, RP_ECONFLICT, "another request for the same bucket was under way: try again" },
    { "BadDigest", 0, RP_ECORRUPT, HINT_AGAIN },
    { "InvalidDigest", 0, RP_ECORRUPT, HINT_AGAIN },
    { "XAmzContentSHA256Mismatch", 0, RP_ECORRUPT, HINT_AGAIN },
    { "EntityTooLarge", 0, RP_ETOOBIG, "" },
    { "MetadataTooLarge", 0, RP_ETOOBIG, "AWS keeps 2 KB of user metadata; shorten it" },
    { "KeyTooLongError", 0, RP_ETOOBIG, "" },
    { "QuotaExceeded", 0, RP_EFULL, "raise the bucket's or the user's quota at the server, or free room" },
    { "XMinioStorageFull", 0, RP_EFULL, "free room at the server" },
    { "InvalidRange", 0, RP_ERANGE, "" },
    { "InvalidTag", 0, RP_EINVAL, "" },
    { NULL, 401, RP_EDENIED, HINT_RIGHTS },
    { NULL, 403, RP_EDENIED, HINT_RIGHTS },
    { NULL, 404, RP_ENOTFOUND, "" },
    { NULL, 409, RP_ECONFLICT, "" },
    { NULL, 412, RP_ECHANGED, "" },
    { NULL, 413, RP_ETOOBIG, "" },
    { NULL, 416, RP_ERANGE, "" },
    { NULL, 429, RP_EUNAVAILABLE, "" },
    { NULL, 501, RP_EFAILED, "this server does not have that part of S3" },
};

static struct verdict judge(int status, const char *code)
{
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++)
        if (verdicts[i].code ? strcmp(verdicts[i].code, code) == 0 : verdicts[i].status == status) return verdicts[i];
    if (status >= 300 && status < 400) return (struct verdict){ NULL, status, RP_ECONFIG, HINT_REGION };
    return (struct verdict){ NULL, status, status >= 500 ? RP_EUNAVAILABLE : RP_EFAILED, "" };
}

/* Host and port of the Location header, without whoever is named before them and without what is
 * asked of them there, which may be a secret. False: it names none, or none that can be shown. */
static bool location_host(const struct s3_call *call, char out[256])
{
    char text[1024];
    const char *at = rp_s3_header(call, "location", text, sizeof text) ? strstr(text, "://") : NULL;
    if (!at) return false;
    size_t n = strcspn(at += 3, "/?#");
    const char *user = memrchr(at, '@', n);
    if (user) {
        n -= (size_t)(user + 1 - at);
        at = user + 1;
    }
    if (n == 0 || n > 255 || strspn(at, HOST_CHARS) < n) return false;
    memcpy(out, at, n);
    out[n] = '\0';
    return true;
}

static void hint_place(const struct s3_call *call, const struct s3_fault *fault, struct rp_error *err)
{
    char region[64] = "", host[256];
    rp_s3_header(call, "x-amz-bucket-region", region, sizeof region);
    if (fault->region[0] || region[0])
        rp_error_hint(err, "set stores.NAME.region to '%s': the bucket is there",
                      fault->region[0] ? fault->region : region);
    else if (fault->endpoint[0])
        rp_error_hint(err, "set stores.NAME.endpoint: the server names '%s'", fault->endpoint);
    else if (location_host(call, host))
        rp_error_hint(err, "set stores.NAME.endpoint: the server sends its clients to '%s'", host);
    else
        rp_error_hint(err, HINT_REGION);
}

static void hint(const struct s3_call *call, const struct verdict *verdict, const struct s3_fault *fault,
                 struct rp_error *err)
{
    if (verdict->result == RP_ECONFIG && strcmp(verdict->hint, HINT_REGION) == 0)
        hint_place(call, fault, err);
    else if (verdict->hint[0])
        rp_error_hint(err, "%s", verdict->hint);
}

static int no_answer(const struct rp_s3 *s3, const struct s3_call *call, const char *what, struct rp_error *err)
{
    rp_error_set(err, call->code, "%s: %s://%.100s: %s", what, s3->target.scheme, s3->target.host,
                 call->note[0] ? call->note : rp_error_title(call->code));
    if (call->code == RP_EUNAVAILABLE)
        rp_error_hint(err, "check that stores.NAME.endpoint is right and that the server runs and can be reached");
    if (call->code == RP_EUNKNOWN)
        rp_error_hint(err, "whether it was done is not known: look at it before trying again");
    if (call->code == RP_EDENIED)
        rp_error_hint(err, "set stores.NAME.access_key and secret_key, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
    return call->code;
}

int rp_s3_error(struct rp_s3 *s3, const struct s3_call *call, struct rp_error *err)
{
    char what[300];
    struct s3_fault fault = { 0 };
    describe(s3, call, what);
    if (call->code < 0) return no_answer(s3, call, what, err);
    if (call->answer.len > 0) rp_s3_read_fault(&call->answer, &fault);
    struct verdict verdict = judge(call->status, fault.code);
    rp_error_set(err, verdict.result, "%s: the server says %d%s%s%s%s", what, call->status, fault.code[0] ? " " : "",
                 fault.code, fault.message[0] ? ": " : "", fault.message);
    hint(call, &verdict, &fault, err);
    return verdict.result;
}

int rp_s3_run(struct rp_s3 *s3, struct s3_call *call, struct rp_error *err)
{
    int r = rp_s3_wire_run(s3->wire, call, 1, err);
    if (r < 0) return r;
    return call->code == 0 && call->status >= 200 && call->status <= 299 ? 0 : rp_s3_error(s3, call, err);
}

bool rp_s3_is_store_wide(int code)
{
    return (rp_error_fault(code) & RP_OF_STORE) != 0;
}

int rp_s3_bucket_check(struct rp_s3 *s3, struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("HEAD", NULL);
    int r = rp_s3_run(s3, &call, err);
    if (r != RP_ENOTFOUND) return r;
    return rp_error_advise(err, RP_ECONFIG, HINT_BUCKET, "bucket '%.80s' does not exist", s3->target.bucket);
}

int rp_s3_head(struct rp_s3 *s3, struct s3_call *call, struct rp_identity *out, struct rp_error *err)
{
    int r = rp_s3_run(s3, call, err);
    if (r == RP_ENOTFOUND) {
        int bucket = rp_s3_bucket_check(s3, err);
        return bucket < 0 ? bucket : rp_refuse_absent(call->message.key, err);
    }
    if (r < 0) return r;
    struct rp_identity found;
    if ((r = rp_s3_identity(call, &found, err)) < 0) return r;
    *out = found;
    return 0;
}

int rp_s3_identify(struct rp_s3 *s3, const char *key, const char *version, struct rp_identity *out,
                   struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("HEAD", key);
    if (version[0]) rp_s3_query(&call, "versionId", version);
    return rp_s3_head(s3, &call, out, err);
}

int rp_s3_expect_free(struct rp_s3 *s3, const char *key, struct rp_error *err)
{
    struct rp_identity there;
    int r = rp_s3_identify(s3, key, "", &there, err);
    if (r == 0) return rp_error_wrap(err, rp_refuse_taken(key, err), "bucket '%.80s'", s3->target.bucket);
    return r == RP_ENOTFOUND ? 0 : r;
}

/* ---- identities ---- */

void rp_s3_etag_bare(const char *etag, char out[RP_ETAG_MAX])
{
    if (strncmp(etag, "W/", 2) == 0) etag += 2;
    size_t n = strlen(etag);
    if (n >= 2 && etag[0] == '"' && etag[n - 1] == '"') {
        etag++;
        n -= 2;
    }
    snprintf(out, RP_ETAG_MAX, "%.*s", (int)(n < RP_ETAG_MAX ? n : RP_ETAG_MAX - 1), etag);
}

bool rp_s3_etag_of(const struct s3_call *call, char out[RP_ETAG_MAX])
{
    char etag[RP_ETAG_MAX + 4];
    if (!rp_s3_header(call, "etag", etag, sizeof etag) || !etag[0]) return false;
    rp_s3_etag_bare(etag, out);
    return true;
}

int rp_s3_told_etag(const struct s3_call *call, const char *root, char out[RP_ETAG_MAX], struct rp_error *err)
{
    char etag[RP_ETAG_MAX + 4];
    int r = rp_s3_read_text(&call->answer, root, "ETag", etag, sizeof etag, err);
    if (r == 0 && etag[0]) rp_s3_etag_bare(etag, out);
    return r;
}

void rp_s3_version_of(const struct s3_call *call, char out[RP_VERSION_MAX])
{
    char version[RP_VERSION_MAX] = "";
    rp_s3_header(call, "x-amz-version-id", version, sizeof version);
    snprintf(out, RP_VERSION_MAX, "%s", strcmp(version, "null") == 0 ? "" : version);
}

int rp_s3_identity(const struct s3_call *call, struct rp_identity *out, struct rp_error *err)
{
    struct rp_identity found = { 0 };
    const char *key = call->message.key ? call->message.key : "";
    char size[32], *end = NULL;
    if (!rp_s3_etag_of(call, found.etag))
        return rp_error_set(err, RP_ECORRUPT, "the answer about '%s' has no etag", key);
    rp_s3_version_of(call, found.version);
    if (!rp_s3_header_date(call, "last-modified", &found.modified_ms))
        return rp_error_set(err, RP_ECORRUPT, "the answer about '%s' has no date that can be read", key);
    bool sized = rp_s3_header(call, "content-length", size, sizeof size) && rp_is_digit(size[0]);
    errno = 0;
    found.size_bytes = sized ? strtoll(size, &end, 10) : -1;
    if (!sized || errno || *end != '\0')
        return rp_error_set(err, RP_ECORRUPT, "the answer about '%s' has no length", key);
    *out = found;
    return 0;
}
