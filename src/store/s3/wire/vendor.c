/* SPDX-License-Identifier: Apache-2.0 */
#include "store/s3/wire/vendor.h"

#include "base/assert.h"
#include "base/cleanup.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define HOST_MAX   255
#define REGION_MAX 64
#define BUCKET_MIN 3
#define BUCKET_MAX 255 /* 63 of a new one; old ones of AWS, and of other servers, may be longer */
#define LABELS_MAX 63  /* of a bucket that is part of a host name */

/* The last one is what is left: servers on hosts of their own (Ceph, MinIO, Garage).
 *
 * AWS checks and deletes in one step: "if a DELETE or PUT request to an object succeeds before a
 * conditional delete operation on that object is complete" the answer is 409, else 412
 * (docs.aws.amazon.com, S3 user guide, "How to perform conditional deletes"). */
/* clang-format off */
static const struct s3_vendor vendors[] = {
    { .name = "aws", .host_ends = ".amazonaws.com", .one_step_server = "AmazonS3" },
    { .name = "aws", .host_ends = ".amazonaws.com.cn", .one_step_server = "AmazonS3" },
    { .name = "r2", .host_ends = ".r2.cloudflarestorage.com", .region = "auto", .path_style = true },
    { .name = "gcs", .host_ends = "storage.googleapis.com", .region = "auto", .path_style = true },
    { .name = "b2", .host_ends = ".backblazeb2.com" },
    { .name = "wasabi", .host_ends = ".wasabisys.com", .region = "us-east-1" },
    { .name = "other", .region = "us-east-1", .path_style = true },
};
/* clang-format on */
#define N_VENDORS (sizeof vendors / sizeof vendors[0])
static const struct s3_vendor *const other = &vendors[N_VENDORS - 1];

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcasecmp(text + n - m, end) == 0;
}

const struct s3_vendor *rp_s3_vendor_of_host(const char *host)
{
    char name[HOST_MAX + 1]; /* without the port */
    size_t n = strcspn(host, ":");
    if (host[0] == '[' || n >= sizeof name) return other;
    memcpy(name, host, n);
    name[n] = '\0';
    for (size_t i = 0; i < N_VENDORS; i++)
        if (vendors[i].host_ends != NULL && ends_with(name, vendors[i].host_ends)) return &vendors[i];
    return other;
}

bool rp_s3_deletes_in_one_step(const char *host, const char *server)
{
    const char *known = rp_s3_vendor_of_host(host)->one_step_server;
    return known != NULL && strcmp(known, server) == 0;
}

/* ---- endpoint ---- */

/* What an endpoint is made of. */
struct endpoint {
    const char *scheme;
    char name[HOST_MAX + 1]; /* lower case, without port; an IPv6 address in brackets */
    char host[HOST_MAX + 8]; /* with the port, unless it is the scheme's own */
    bool is_address;
};

static int refuse(const char *endpoint, const char *why, const char *hint, struct rp_error *err)
{
    return rp_error_advise(err, RP_ECONFIG, hint, "endpoint \"%s\": %s", endpoint, why);
}

#define SHAPE "write https://HOST or https://HOST:PORT and nothing else; the bucket has its own setting"

static bool is_address(const char *name)
{
    unsigned char bytes[16];
    char inner[HOST_MAX + 1];
    size_t n = strlen(name);
    if (name[0] != '[') return inet_pton(AF_INET, name, bytes) == 1;
    if (n < 3) return false;
    memcpy(inner, name + 1, n - 2);
    inner[n - 2] = '\0';
    return inet_pton(AF_INET6, inner, bytes) == 1;
}

/* Labels of letters, digits, "-" and "_" (container networks have such names), none empty. */
static bool is_host_name(const char *name)
{
    size_t n = strlen(name);
    if (n == 0 || name[0] == '.' || name[0] == '-' || strstr(name, "..") != NULL) return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == n && name[n - 1] != '.';
}

static int split_port(const char *endpoint, const char *text, struct endpoint *out, struct rp_error *err)
{
    long port = 0;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 5 || text[digits] != 0) return refuse(endpoint, "the port is not a number", SHAPE, err);
    for (size_t i = 0; i < digits; i++)
        port = port * 10 + (text[i] - '0');
    if (port < 1 || port > 65535) return refuse(endpoint, "there is no such port", SHAPE, err);
    if (port == (strcmp(out->scheme, "https") == 0 ? 443 : 80)) return 0;
    size_t n = strlen(out->host);
    snprintf(out->host + n, sizeof out->host - n, ":%ld", port);
    return 0;
}

static int split_host(const char *endpoint, const char *rest, size_t n, struct endpoint *out, struct rp_error *err)
{
    const char *bracket = rest[0] == '[' ? memchr(rest, ']', n) : NULL;
    size_t name_n = bracket != NULL ? (size_t)(bracket - rest) + 1 : strcspn(rest, ":/");
    char port[HOST_MAX + 1];
    if (n > HOST_MAX || name_n > n) return refuse(endpoint, "the host name is too long", SHAPE, err);
    for (size_t i = 0; i < name_n; i++)
        out->name[i] = (char)tolower((unsigned char)rest[i]);
    out->name[name_n] = '\0';
    snprintf(out->host, sizeof out->host, "%s", out->name);
    out->is_address = is_address(out->name);
    if (!out->is_address && !is_host_name(out->name)) return refuse(endpoint, "this is not a host name", SHAPE, err);
    if (name_n == n) return 0;
    if (rest[name_n] != ':') return refuse(endpoint, "this is not a host name", SHAPE, err);
    memcpy(port, rest + name_n + 1, n - name_n - 1);
    port[n - name_n - 1] = '\0';
    return split_port(endpoint, port, out, err);
}

static int split_endpoint(const char *endpoint, struct endpoint *out, struct rp_error *err)
{
    const char *after = strstr(endpoint, "://");
    if (strncasecmp(endpoint, "https://", 8) == 0) {
        out->scheme = "https";
    } else if (strncasecmp(endpoint, "http://", 7) == 0) {
        out->scheme = "http";
    } else {
        return refuse(endpoint, after == NULL ? "no scheme" : "the scheme must be https or http", SHAPE, err);
    }
    const char *rest = after + 3;
    /* What stands before an "@" may be a secret: it is not repeated. */
    if (strchr(rest, '@') != NULL)
        return refuse("(hidden)", "it has a user name or password",
                      "take it out; keys are set with access_key and secret_key, or as AWS tools have them", err);
    if (strpbrk(rest, "?#") != NULL) return refuse(endpoint, "it has a query", SHAPE, err);
    size_t n = strcspn(rest, "/");
    if (rest[n] == '/' && rest[n + 1] != 0) return refuse(endpoint, "it has a path", SHAPE, err);
    if (n == 0) return refuse(endpoint, "no host", SHAPE, err);
    return split_host(endpoint, rest, n, out, err);
}

/* ---- region ---- */

/* "s3.REGION" or "s3.dualstack.REGION" before what the vendor's hosts end with; false if there is
 * none. */
static bool region_of_host(const struct s3_vendor *vendor, const char *name, char out[REGION_MAX + 1])
{
    size_t n = strlen(name) - strlen(vendor->host_ends);
    const char *label = name, *end = name + n;
    if (strncmp(label, "s3.", 3) != 0) return false;
    label += 3;
    if (strncmp(label, "dualstack.", 10) == 0) label += 10;
    if (label >= end || memchr(label, '.', (size_t)(end - label)) != NULL || end - label > REGION_MAX) return false;
    memcpy(out, label, (size_t)(end - label));
    out[end - label] = '\0';
    return true;
}

static int find_region(const char *region, const struct s3_vendor *vendor, const char *name, char out[REGION_MAX + 1],
                       struct rp_error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    if (region[0] != 0) {
        if (strlen(region) > REGION_MAX || region[strspn(region, letters)] != 0)
            return rp_error_set(err, RP_ECONFIG, "region \"%s\": this cannot be the name of a region", region);
        snprintf(out, REGION_MAX + 1, "%s", region);
        return 0;
    }
    if (vendor->host_ends != NULL && region_of_host(vendor, name, out)) return 0;
    /* The one host of AWS without a region in it has always been that of the first. */
    const char *fallback = strcmp(name, "s3.amazonaws.com") == 0 ? "us-east-1" : vendor->region;
    if (fallback == NULL)
        return rp_error_advise(err, RP_ECONFIG, "set the store's region, such as eu-central-1",
                               "no region, and endpoint %s does not tell it", name);
    snprintf(out, REGION_MAX + 1, "%s", fallback);
    return 0;
}

/* AWS's own endpoint of the region. */
static int own_endpoint(const char *region, char *out, size_t size, struct rp_error *err)
{
    if (region[0] == 0)
        return rp_error_advise(err, RP_ECONFIG,
                               "for AWS set the region, such as eu-central-1; for any other server its endpoint",
                               "neither endpoint nor region is set");
    snprintf(out, size, "https://s3.%.*s.amazonaws.com%s", REGION_MAX, region,
             strncmp(region, "cn-", 3) == 0 ? ".cn" : "");
    return 0;
}

/* ---- bucket and style ---- */

static int check_bucket(const char *bucket, struct rp_error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t n = strlen(bucket);
    if (n == 0) return rp_error_advise(err, RP_ECONFIG, "set the store's bucket", "no bucket");
    if (n >= BUCKET_MIN && n <= BUCKET_MAX && strspn(bucket, letters) == n && isalnum((unsigned char)bucket[0]))
        return 0;
    rp_error_set(err, RP_ECONFIG, "bucket \"%.80s\": this cannot be the name of a bucket", bucket);
    rp_error_hint(err,
                  "a name has %d to %d letters, digits, \"-\", \"_\" and \".\", begins with a letter or digit, and "
                  "comes without s3:// and without a prefix",
                  BUCKET_MIN, BUCKET_MAX);
    return RP_ECONFIG;
}

static bool fits_in_host(const char *bucket)
{
    RP_ASSERT(bucket != NULL);
    size_t n = strlen(bucket);
    unsigned char bytes[4];
    return n <= LABELS_MAX && strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-.") == n &&
           isalnum((unsigned char)bucket[n - 1]) && strstr(bucket, "..") == NULL && strstr(bucket, ".-") == NULL &&
           strstr(bucket, "-.") == NULL && inet_pton(AF_INET, bucket, bytes) != 1;
}

static int choose_style(const struct rp_s3_options *options, const struct endpoint *at, const struct s3_vendor *vendor,
                        bool *path_style, struct rp_error *err)
{
    const char *style = options->style != NULL && options->style[0] != 0 ? options->style : "auto";
    bool fits = fits_in_host(options->bucket) && !at->is_address;
    if (strcmp(style, "path") == 0) {
        *path_style = true;
    } else if (strcmp(style, "auto") == 0) {
        /* A certificate for *.HOST does not cover a bucket with a dot. */
        bool covered = strcmp(at->scheme, "http") == 0 || strchr(options->bucket, '.') == NULL;
        *path_style = vendor->path_style || !fits || !covered;
    } else if (strcmp(style, "host") != 0) {
        return rp_error_set(err, RP_ECONFIG, "style \"%.40s\": must be auto, path or host", style);
    } else if (!fits) {
        return rp_error_advise(err, RP_ECONFIG, "set style to path or auto",
                               "style host: \"%.80s.%s\" is not a host name", options->bucket, at->host);
    } else {
        *path_style = false;
    }
    return 0;
}

/* "https://BUCKET.s3..." would be asked for a bucket in the bucket. */
static int check_apart(const char *endpoint, const char *bucket, const struct endpoint *at, struct rp_error *err)
{
    RP_ASSERT(bucket != NULL);
    size_t n = strlen(bucket);
    if (strncasecmp(at->name, bucket, n) != 0 || strncmp(at->name + n, ".s3", 3) != 0) return 0;
    return refuse(endpoint, "it has the bucket in it", "leave the bucket out of the endpoint: https://s3...", err);
}

int rp_s3_target_of(const struct rp_s3_options *options, struct rp_arena *arena, struct s3_target *out,
                    struct rp_error *err)
{
    char own[HOST_MAX + 1], found[REGION_MAX + 1];
    struct endpoint at = { 0 };
    struct s3_target target = { 0 };
    const char *endpoint = options->endpoint != NULL ? options->endpoint : "";
    const char *region = options->region != NULL ? options->region : "";
    int r = check_bucket(options->bucket != NULL ? options->bucket : "", err);
    if (r == 0 && endpoint[0] == 0) {
        r = own_endpoint(region, own, sizeof own, err);
        endpoint = own;
    }
    if (r == 0) r = split_endpoint(endpoint, &at, err);
    if (r == 0) r = check_apart(endpoint, options->bucket, &at, err);
    if (r < 0) return r;
    const struct s3_vendor *who = rp_s3_vendor_of_host(at.name);
    r = find_region(region, who, at.name, found, err);
    if (r == 0) r = choose_style(options, &at, who, &target.path_style, err);
    if (r < 0) return r;
    target.scheme = at.scheme;
    target.host = rp_arena_strdup(arena, at.host);
    target.bucket = rp_arena_strdup(arena, options->bucket);
    target.region = rp_arena_strdup(arena, found);
    if (target.host == NULL || target.bucket == NULL || target.region == NULL)
        return rp_error_set(err, RP_ENOMEM, "out of memory");
    *out = target;
    return 0;
}
