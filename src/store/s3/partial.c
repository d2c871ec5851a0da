/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads in parts that nobody has ended. Pages follow each other by the last upload that was read:
 * Ceph escapes the keys of such a listing and not its markers. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/s3/s3.h"

struct walk {
    struct rp_s3 *s3;
    rp_partial_fn *fn;
    void *ctx;
    size_t n;
    bool stopped;
    char key[RP_KEY_MAX + 1], upload[S3_UPLOAD_MAX];
};

static int take(void *ctx, const struct rp_partial *partial, struct rp_error *err)
{
    struct walk *w = ctx;
    int compared = strcmp(partial->key, w->key);
    if (compared < 0 || (compared == 0 && strcmp(partial->upload, w->upload) == 0))
        return rp_error_set(err, RP_ECORRUPT,
                            "bucket '%.80s': the listing of unfinished uploads is not in order: '%.100s'",
                            w->s3->target.bucket, partial->key);
    snprintf(w->key, sizeof w->key, "%s", partial->key);
    snprintf(w->upload, sizeof w->upload, "%s", partial->upload);
    w->n++;
    int r = w->fn(w->ctx, partial, err);
    w->stopped = r > 0;
    return r;
}

static int page(struct walk *w, const char *prefix, bool *more, struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("GET", NULL);
    struct s3_page got = { 0 };
    char key[sizeof w->key], upload[sizeof w->upload];
    snprintf(key, sizeof key, "%s", w->key);
    snprintf(upload, sizeof upload, "%s", w->upload);
    rp_s3_query(&call, "uploads", "");
    rp_s3_query(&call, "max-uploads", "1000");
    rp_s3_query(&call, "encoding-type", "url");
    if (prefix[0]) rp_s3_query(&call, "prefix", prefix);
    if (key[0]) {
        rp_s3_query(&call, "key-marker", key);
        rp_s3_query(&call, "upload-id-marker", upload);
    }
    w->n = 0;
    int r = rp_s3_run(w->s3, &call, err);
    if (r == 0) r = rp_s3_read_partials(&call.answer, take, w, &got, err);
    if (r < 0) return r;
    *more = got.truncated && !w->stopped;
    if (*more && w->n == 0)
        return rp_error_set(err, RP_ECORRUPT, "bucket '%.80s': the listing of unfinished uploads does not go on",
                            w->s3->target.bucket);
    return 0;
}

int rp_s3_list_partial(struct rp_backend *backend, const char *prefix, rp_partial_fn *fn, void *ctx,
                       struct rp_error *err)
{
    struct walk w = { .s3 = rp_s3_of(backend), .fn = fn, .ctx = ctx };
    bool more = true;
    while (more) {
        int r = page(&w, prefix ? prefix : "", &more, err);
        if (r < 0) return r;
    }
    return 0;
}

int rp_s3_abort_partial(struct rp_backend *backend, const char *key, const char *upload, struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("DELETE", key);
    int r = rp_key_check(key, strlen(key), err);
    if (r < 0) return r;
    rp_s3_query(&call, "uploadId", upload);
    r = rp_s3_run(rp_s3_of(backend), &call, err);
    return r == RP_ENOTFOUND ? 0 : r;
}
