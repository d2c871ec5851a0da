/* SPDX-License-Identifier: Apache-2.0 */
/* Keys from the container's and the instance's own service. Both are next door: no proxy, no
 * redirect, little patience. */
#include "store/s3/credentials/source.h"

#include "base/cleanup.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "base/time.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CONNECT_MS       1000L
#define CONTAINER_MS     5000L
#define INSTANCE_MS      2000L
#define ANSWER_BYTES_MAX ((size_t)32 << 10)
#define TOKEN_BYTES_MAX  ((size_t)16 << 10)
#define URL_MAX          2048
#define CONTAINER        "http://169.254.170.2"
#define INSTANCE         "http://169.254.169.254"
#define INSTANCE_IPV6    "http://[fd00:ec2::254]"

struct visit {
    const char *url;
    bool put;           /* else GET */
    const char *header; /* "name: value"; NULL: none */
    long timeout_ms;
    long status; /* out */
    struct rp_buf answer;
};

static size_t take(char *bytes, size_t size, size_t n, void *ctx)
{
    return rp_buf_add(ctx, bytes, size * n) < 0 ? 0 : size * n;
}

static void curl_freep(CURL **curl)
{
    curl_easy_cleanup(*curl);
}

static void headers_freep(struct curl_slist **headers)
{
    curl_slist_free_all(*headers);
}

static void visit_done(struct visit *v)
{
    if (v->answer.data != NULL) explicit_bzero(v->answer.data, v->answer.len);
    rp_buf_done(&v->answer);
}

static bool set_up(CURL *curl, struct visit *v, struct curl_slist *headers)
{
    return curl_easy_setopt(curl, CURLOPT_URL, v->url) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_PROXY, "") == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, v->timeout_ms) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_USERAGENT, "reprieve/" REPRIEVE_VERSION) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers) == CURLE_OK &&
           (!v->put || (curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, "PUT") == CURLE_OK &&
                        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "") == CURLE_OK)) &&
           curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_WRITEDATA, &v->answer) == CURLE_OK;
}

/* 0: there is an answer, of any status. RP_EUNAVAILABLE: not reached in time. */
static int visit(struct visit *v, struct rp_error *err)
{
    RP_CLEANUP(headers_freep) struct curl_slist *headers = NULL;
    RP_CLEANUP(curl_freep) CURL *curl = curl_easy_init();
    v->answer.max = ANSWER_BYTES_MAX;
    if (curl != NULL && v->header != NULL) headers = curl_slist_append(NULL, v->header);
    if (curl == NULL || (v->header != NULL && headers == NULL)) return rp_error_set(err, RP_ENOMEM, "out of memory");
    if (!set_up(curl, v, headers)) return rp_error_set(err, RP_ECONFIG, "the URL cannot be used");
    CURLcode code = curl_easy_perform(curl);
    if (v->answer.failed < 0) return rp_error_set(err, RP_EUNAVAILABLE, "the answer is too long");
    if (code != CURLE_OK) return rp_error_set(err, RP_EUNAVAILABLE, "%s", curl_easy_strerror(code));
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &v->status);
    return 0;
}

/* ---- where plain HTTP may go ---- */

static bool is_near(const char *host)
{
    static const unsigned char ours[4] = { 0xfd, 0x00, 0x0e, 0xc2 }; /* the services' own network: fd00:ec2::/32 */
    struct in_addr four;
    struct in6_addr six;
    char inner[64];
    size_t n = strlen(host);
    if (strcasecmp(host, "localhost") == 0) return true;
    if (inet_pton(AF_INET, host, &four) == 1) {
        uint32_t address = ntohl(four.s_addr);
        return address >> 24 == 127 || address >> 16 == 0xa9fe;
    }
    if (host[0] != '[' || n < 4 || n >= sizeof inner) return false;
    memcpy(inner, host + 1, n - 2);
    inner[n - 2] = '\0';
    if (inet_pton(AF_INET6, inner, &six) != 1) return false;
    return IN6_IS_ADDR_LOOPBACK(&six) || IN6_IS_ADDR_LINKLOCAL(&six) || memcmp(six.s6_addr, ours, sizeof ours) == 0;
}

/* Keys in the clear stay on this machine. */
static int check_url(const char *variable, const char *url, struct rp_error *err)
{
    CURLU *parts = curl_url();
    char *scheme = NULL, *host = NULL, *user = NULL;
    if (parts == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    bool ok = curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
              curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
              curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
              curl_url_get(parts, CURLUPART_USER, &user, 0) == CURLUE_NO_USER;
    bool https = ok && strcmp(scheme, "https") == 0, near = ok && strcmp(scheme, "http") == 0 && is_near(host);
    curl_free(scheme);
    curl_free(host);
    curl_free(user);
    curl_url_cleanup(parts);
    if (https || near) return 0;
    rp_error_set(err, RP_ECONFIG, "%s: %s", variable,
                 ok ? "plain http is for loopback and link-local addresses only" : "not a URL that can be used");
    rp_error_hint(err, "set %s to an https URL, or to http on 127.0.0.1, [::1] or 169.254.x.x", variable);
    return RP_ECONFIG;
}

/* ---- answers ---- */

static int garbled(const char *what, struct rp_error *err)
{
    return rp_error_set(err, RP_EUNAVAILABLE, "the answer %s", what);
}

static int read_keys(const struct rp_buf *answer, const char *where, struct s3_keys *out, struct rp_error *err)
{
    RP_CLEANUP(rp_json_decrefp) json_t *json = NULL;
    int64_t ends_ms = INT64_MAX;
    /* The parser's own words would quote the text. */
    if (rp_json_parse(rp_buf_text(answer), answer->len, &json, NULL) < 0 || !json_is_object(json))
        return garbled("is not a JSON object", err);
    const char *code = rp_json_get_text(json, "Code", "Success"), *ends = rp_json_get_text(json, "Expiration", NULL);
    const char *access = rp_json_get_text(json, "AccessKeyId", NULL);
    const char *secret = rp_json_get_text(json, "SecretAccessKey", NULL);
    if (strcmp(code, "Success") != 0) return garbled("says that there are no keys", err);
    if (access == NULL || secret == NULL) return garbled("has no AccessKeyId or no SecretAccessKey", err);
    if (ends != NULL && rp_time_parse(ends, &ends_ms, NULL) < 0)
        return garbled("has an Expiration that is no time", err);
    return rp_s3_keys_make(where, access, secret, rp_json_get_text(json, "Token", NULL), ends_ms, out, err);
}

static int check_status(const struct visit *v, struct rp_error *err)
{
    if (v->status == 200) return 0;
    return rp_error_set(err, RP_EUNAVAILABLE, "answered with status %ld", v->status);
}

/* ---- the container ---- */

/* A header line that must not become two. */
static bool make_header(char *out, size_t size, const char *name, const char *value, size_t n)
{
    while (n > 0 && (value[n - 1] == '\n' || value[n - 1] == '\r' || value[n - 1] == ' '))
        n--;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)value[i] < ' ' || value[i] == 0x7f) return false;
    return n > 0 && snprintf(out, size, "%s: %.*s", name, (int)n, value) < (int)size;
}

/* `out` stays "" where no token is asked for. */
static int make_authorization(char *out, size_t size, struct rp_error *err)
{
    static const char by_file[] = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                      plain[] = "AWS_CONTAINER_AUTHORIZATION_TOKEN";
    const char *path = rp_s3_environment(by_file), *token = rp_s3_environment(plain);
    RP_CLEANUP(rp_freep) char *text = NULL;
    size_t n = token != NULL ? strlen(token) : 0;
    if (path == NULL && token == NULL) return 0;
    if (path != NULL) {
        int r = rp_s3_file_read(path, TOKEN_BYTES_MAX, &text, &n, err);
        if (r < 0) return rp_error_wrap(err, r == RP_ENOTFOUND ? RP_ECONFIG : r, "%s", by_file);
        token = text;
    }
    if (n <= TOKEN_BYTES_MAX && make_header(out, size, "Authorization", token, n)) return 0;
    return rp_error_set(err, RP_ECONFIG, "%s: not a token that can be sent", path != NULL ? by_file : plain);
}

static int container_url(char *out, size_t size, struct rp_error *err)
{
    static const char by_relative[] = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                      by_full[] = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
    const char *relative = rp_s3_environment(by_relative), *full = rp_s3_environment(by_full);
    if (relative == NULL && full == NULL) return rp_error_set(err, RP_ENOTFOUND, "no container endpoint");
    if (relative != NULL && relative[0] != '/')
        return rp_error_set(err, RP_ECONFIG, "%s must begin with \"/\"", by_relative);
    const char *variable = relative != NULL ? by_relative : by_full;
    if (snprintf(out, size, "%s%s", relative != NULL ? CONTAINER : "", relative != NULL ? relative : full) >= (int)size)
        return rp_error_set(err, RP_ECONFIG, "%s is too long", variable);
    return check_url(variable, out, err);
}

int rp_s3_keys_of_container(struct s3_keys *out, struct rp_error *err)
{
    char url[URL_MAX], authorization[TOKEN_BYTES_MAX + 32] = "";
    int r = container_url(url, sizeof url, err);
    if (r == 0) r = make_authorization(authorization, sizeof authorization, err);
    if (r < 0) return r;
    RP_CLEANUP(visit_done)
    struct visit v = { .url = url, .timeout_ms = CONTAINER_MS, .header = authorization[0] != 0 ? authorization : NULL };
    r = visit(&v, err);
    if (r == 0) r = check_status(&v, err);
    if (r == 0) r = read_keys(&v.answer, "the container's endpoint", out, err);
    explicit_bzero(authorization, sizeof authorization);
    return r < 0 ? rp_error_wrap(err, r, "keys of the container's endpoint") : 0;
}

/* ---- the instance ---- */

static int instance_base(char *out, size_t size, struct rp_error *err)
{
    static const char variable[] = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
    const char *off = rp_s3_environment("AWS_EC2_METADATA_DISABLED"), *set = rp_s3_environment(variable);
    const char *mode = rp_s3_environment("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
    if (off != NULL && strcasecmp(off, "true") == 0)
        return rp_error_set(err, RP_ENOTFOUND, "instance metadata is switched off");
    if (set == NULL) set = mode != NULL && strcasecmp(mode, "ipv6") == 0 ? INSTANCE_IPV6 : INSTANCE;
    size_t n = strlen(set);
    while (n > 0 && set[n - 1] == '/')
        n--;
    if (snprintf(out, size, "%.*s", (int)(n < size ? n : size), set) >= (int)size)
        return rp_error_set(err, RP_ECONFIG, "%s is too long", variable);
    return check_url(variable, out, err);
}

static int instance_get(const char *base, const char *path, const char *token, struct visit *v, struct rp_error *err)
{
    char url[URL_MAX];
    snprintf(url, sizeof url, "%s/latest/meta-data/iam/security-credentials/%s", base, path);
    *v = (struct visit){ .url = url, .header = token, .timeout_ms = INSTANCE_MS };
    int r = visit(v, err);
    v->url = NULL;
    return r;
}

static int instance_token(const char *base, char *out, size_t size, struct rp_error *err)
{
    char url[URL_MAX];
    snprintf(url, sizeof url, "%s/latest/api/token", base);
    RP_CLEANUP(visit_done)
    struct visit v = {
        .url = url, .put = true, .timeout_ms = INSTANCE_MS, .header = "X-aws-ec2-metadata-token-ttl-seconds: 300"
    };
    int r = visit(&v, err);
    /* Nobody there: this is no instance, which is not a failure. */
    if (r == RP_EUNAVAILABLE) return rp_error_set(err, RP_ENOTFOUND, "no instance metadata");
    if (r == 0) r = check_status(&v, err);
    if (r < 0) return r;
    const char *text = rp_buf_text(&v.answer);
    return make_header(out, size, "X-aws-ec2-metadata-token", text, v.answer.len) ? 0 : garbled("is not a token", err);
}

/* The name of the role, to be put into a path as it is. */
static int instance_role(const char *base, const char *token, char *out, size_t size, struct rp_error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+=,.@_-";
    RP_CLEANUP(visit_done) struct visit v = { 0 };
    int r = instance_get(base, "", token, &v, err);
    if (r == 0 && v.status == 404) return rp_error_set(err, RP_ENOTFOUND, "the instance has no role");
    if (r == 0) r = check_status(&v, err);
    if (r < 0) return r;
    const char *name = rp_buf_text(&v.answer);
    size_t n = strspn(name, letters);
    if (n == 0 || n >= size || (name[n] != 0 && name[n] != '\n' && name[n] != '\r'))
        return garbled("is not the name of a role", err);
    memcpy(out, name, n);
    out[n] = '\0';
    return 0;
}

static int instance_keys(const char *base, const char *token, const char *role, struct s3_keys *out,
                         struct rp_error *err)
{
    RP_CLEANUP(visit_done) struct visit v = { 0 };
    int r = instance_get(base, role, token, &v, err);
    if (r == 0) r = check_status(&v, err);
    return r < 0 ? r : read_keys(&v.answer, "instance metadata", out, err);
}

int rp_s3_keys_of_instance(struct s3_keys *out, struct rp_error *err)
{
    char base[URL_MAX / 2], token[1024], role[128];
    int r = instance_base(base, sizeof base, err);
    if (r < 0) return r;
    r = instance_token(base, token, sizeof token, err);
    if (r == 0) r = instance_role(base, token, role, sizeof role, err);
    if (r == 0) r = instance_keys(base, token, role, out, err);
    explicit_bzero(token, sizeof token);
    return r == 0 || r == RP_ENOTFOUND ? r : rp_error_wrap(err, r, "keys of the instance's role");
}
