/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/s3_bucket.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "store/s3/s3.h"

static _Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "s3_bucket: %s: %s\n", what, why);
    exit(1);
}

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    if (!value || !value[0]) give_up(name, "not set; run this under tests/lib/with-ceph");
    return value;
}

/* The store's own parts, without the slots. */
static struct rp_s3 *reach(const struct s3_bucket *b, struct rp_backend **backend)
{
    struct rp_error error = { 0 };
    if (rp_s3_open(&b->options, backend, &error) < 0) give_up(b->name, error.text);
    return rp_s3_of(*backend);
}

int s3_bucket_request(const struct s3_bucket *b, const char *method, const char *key, const struct rp_pair *query,
                      size_t n_query, const struct rp_pair *headers, size_t n_headers, const char *body, char *answer,
                      size_t size)
{
    RP_CLEANUP(rp_backend_closep) struct rp_backend *backend = NULL;
    struct rp_s3 *s3 = reach(b, &backend);
    struct rp_error error = { 0 };
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call(method, key);
    for (size_t i = 0; i < n_query; i++)
        rp_s3_query(&call, query[i].name, query[i].value);
    call.message.headers = headers;
    call.message.n_headers = n_headers;
    call.message.body = body;
    call.message.body_bytes = body ? strlen(body) : 0;
    if (rp_s3_wire_run(s3->wire, &call, 1, &error) < 0) give_up(method, error.text);
    if (call.code < 0) give_up(method, call.note);
    if (answer) snprintf(answer, size, "%s", rp_buf_text(&call.answer));
    return call.status;
}

void s3_bucket_versioning(const struct s3_bucket *b, const char *status)
{
    char body[200];
    snprintf(body, sizeof body,
             "<VersioningConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Status>%s</Status>"
             "</VersioningConfiguration>",
             status);
    const struct rp_pair versioning = { "versioning", "" };
    if (s3_bucket_request(b, "PUT", NULL, &versioning, 1, NULL, 0, body, NULL, 0) != 200)
        give_up(b->name, "versioning");
}

void s3_bucket_make(struct s3_bucket *b, enum s3_bucket_kind kind)
{
    static atomic_uint serial;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *b = (struct s3_bucket){ .options = { .endpoint = setting("RP_TEST_S3"),
                                          .region = "",
                                          .style = "path",
                                          .access_key = setting("RP_TEST_S3_ACCESS"),
                                          .secret_key = setting("RP_TEST_S3_SECRET") } };
    snprintf(b->name, sizeof b->name, "t%d-%u-%lx%lx", (int)getpid(), atomic_fetch_add(&serial, 1),
             (unsigned long)now.tv_sec, (unsigned long)now.tv_nsec);
    b->options.bucket = b->name;
    if (s3_bucket_request(b, "PUT", NULL, NULL, 0, NULL, 0, "", NULL, 0) != 200) give_up(b->name, "cannot be made");
    if (kind == S3_BUCKET_VERSIONED) s3_bucket_versioning(b, "Enabled");
}

void s3_bucket_fill(const struct s3_bucket *b, const char *prefix, size_t n)
{
    RP_CLEANUP(rp_backend_closep) struct rp_backend *backend = NULL;
    struct rp_s3 *s3 = reach(b, &backend);
    struct rp_error error = { 0 };
    struct s3_call *calls = calloc(n, sizeof *calls);
    char(*keys)[64] = calloc(n, sizeof *keys);
    if (!calls || !keys) give_up("fill the bucket", "no memory");
    for (size_t i = 0; i < n; i++) {
        if (prefix)
            snprintf(keys[i], sizeof keys[i], "%s%05zu", prefix, i);
        else
            snprintf(keys[i], sizeof keys[i], "k");
        calls[i] = rp_s3_call("PUT", keys[i]);
        calls[i].message.body = "x";
        calls[i].message.body_bytes = 1;
    }
    if (rp_s3_wire_run(s3->wire, calls, n, &error) < 0) give_up("fill the bucket", error.text);
    for (size_t i = 0; i < n; i++) {
        if (calls[i].code < 0 || calls[i].status != 200) give_up(keys[i], calls[i].note);
        rp_s3_call_done(&calls[i]);
    }
    free(calls);
    free(keys);
}

/* ---- the end ---- */

#define ROUND 1000
struct doomed {
    struct {
        char key[RP_KEY_MAX + 1], version[RP_VERSION_MAX];
    } items[ROUND];
    size_t n;
};

static int doom(void *ctx, const struct s3_listed *listed, struct rp_error *err)
{
    struct doomed *d = ctx;
    const char *version = listed->entry.identity.version;
    (void)err;
    if (d->n == ROUND) give_up("listing", "too long a page");
    snprintf(d->items[d->n].key, sizeof d->items[d->n].key, "%s", listed->entry.key);
    snprintf(d->items[d->n].version, sizeof d->items[d->n].version, "%s", version[0] ? version : "null");
    d->n++;
    return 0;
}

static void find_doomed(struct rp_s3 *s3, struct doomed *d)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("GET", NULL);
    struct rp_error error = { 0 };
    struct s3_page page;
    d->n = 0;
    rp_s3_query(&call, "versions", "");
    rp_s3_query(&call, "encoding-type", "url");
    if (rp_s3_run(s3, &call, &error) < 0 || rp_s3_read_list(&call.answer, doom, d, &page, &error) < 0)
        give_up("empty the bucket", error.text);
}

static void erase_doomed(struct rp_s3 *s3, struct doomed *d)
{
    struct rp_error error = { 0 };
    struct s3_call *calls = calloc(d->n, sizeof *calls);
    if (!calls) give_up("empty the bucket", "no memory");
    for (size_t i = 0; i < d->n; i++) {
        calls[i] = rp_s3_call("DELETE", d->items[i].key);
        rp_s3_query(&calls[i], "versionId", d->items[i].version);
    }
    if (rp_s3_wire_run(s3->wire, calls, d->n, &error) < 0) give_up("empty the bucket", error.text);
    for (size_t i = 0; i < d->n; i++) {
        if (calls[i].code < 0 || (calls[i].status != 204 && calls[i].status != 404))
            give_up(d->items[i].key, calls[i].note);
        rp_s3_call_done(&calls[i]);
    }
    free(calls);
}

static int abort_each(void *ctx, const struct rp_partial *partial, struct rp_error *err)
{
    return rp_s3_abort_partial(ctx, partial->key, partial->upload, err);
}

void s3_bucket_empty(const struct s3_bucket *b)
{
    struct rp_backend *backend = NULL;
    struct rp_s3 *s3 = reach(b, &backend);
    struct rp_error error = { 0 };
    struct doomed *d = calloc(1, sizeof *d);
    if (!d) give_up("empty the bucket", "no memory");
    for (find_doomed(s3, d); d->n > 0; find_doomed(s3, d))
        erase_doomed(s3, d);
    free(d);
    if (rp_s3_list_partial(backend, "", abort_each, backend, &error) < 0) give_up("empty the bucket", error.text);
    rp_backend_close(backend);
}

void s3_bucket_drop(struct s3_bucket *b)
{
    s3_bucket_empty(b);
    int status = s3_bucket_request(b, "DELETE", NULL, NULL, 0, NULL, 0, NULL, NULL, 0);
    if (status != 204 && status != 404) give_up(b->name, "the bucket cannot be deleted");
}
