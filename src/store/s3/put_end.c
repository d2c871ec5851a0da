/* SPDX-License-Identifier: Apache-2.0 */
/* What came of a put: what stands there, whoever answered, and who gives way to whom. */
#include "store/s3/put.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/refuse.h"
#include "store/s3/span.h"

#define OURS_MAX 16

static int in_bucket(const struct s3_put *p, int why, struct rp_error *err)
{
    return rp_error_wrap(err, why, "bucket '%.80s'", p->s3->target.bucket);
}

static int taken(const struct s3_put *p, struct rp_error *err)
{
    return in_bucket(p, rp_refuse_taken(p->key, err), err);
}

/* What stands there is not what may be replaced. */
static int moved_on(const struct s3_put *p, bool there, struct rp_error *err)
{
    return in_bucket(p, there ? rp_refuse_changed(p->key, err) : rp_refuse_absent(p->key, err), err);
}

int rp_s3_put_expect_over(const struct s3_put *p, bool refused, struct rp_error *err)
{
    struct rp_identity there;
    int r = rp_s3_identify(p->s3, p->key, "", &there, err);
    if (r < 0 && r != RP_ENOTFOUND) return r;
    return r == 0 && !refused && rp_identity_equal(&there, &p->over) ? 0 : moved_on(p, r == 0, err);
}

/* The answer to a PUT has no Last-Modified, hence one more look. Who finds another upload there has
 * been overtaken: this one was whole, and is history; its time is then that of the answer. */
static int identify(const struct s3_put *p, const struct s3_call *call, const char *etag, struct rp_identity *out,
                    struct rp_error *err)
{
    struct rp_identity made = { .size_bytes = p->size_bytes }, found;
    if (!out) return 0;
    rp_s3_version_of(call, made.version);
    snprintf(made.etag, sizeof made.etag, "%s", etag);
    rp_s3_header_date(call, "date", &made.modified_ms);
    int r = rp_s3_identify(p->s3, p->key, made.version, &found, err);
    if (r == 0 && (!etag[0] || strcmp(found.etag, etag) == 0) && found.size_bytes == p->size_bytes)
        made = found;
    else if (r < 0 && r != RP_ENOTFOUND)
        return rp_error_wrap(err, RP_EUNKNOWN, "'%s' was put, but what it is now cannot be seen", p->key);
    *out = made;
    return 0;
}

/* ---- answers that were lost ---- */

/* By its bytes, and not from before this put: an older object of the same bytes may have other
 * headers. */
static bool is_ours(const struct s3_put *p, const char *etag, const struct rp_identity *there)
{
    return etag[0] && strcmp(there->etag, etag) == 0 && there->size_bytes == p->size_bytes &&
           there->modified_ms >= p->begun_ms;
}

/* Whether what was put stands there, though no answer said so. `why` is what is known without
 * that. */
static int find_ours(const struct s3_put *p, const char *etag, int why, struct rp_identity *out, struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("HEAD", p->key);
    struct rp_error unseen = { 0 };
    struct rp_identity there;
    call.patience_ms = rp_s3_patience(p->s3, S3_REACH_MS); /* the call before has used up its own */
    int r = rp_s3_head(p->s3, &call, &there, &unseen);
    bool over = p->flags & RP_PUT_OVER;
    bool known = p->begun_ms > 0 || (p->flags & RP_PUT_NEW) || (over && strcmp(etag, p->over.etag) != 0);
    if (r == 0 && known && is_ours(p, etag, &there)) {
        rp_error_clear(err);
        *out = there;
        return 0;
    }
    if (why == RP_EUNKNOWN) return why;
    if (r == 0 && (p->flags & RP_PUT_NEW)) return taken(p, err);
    if (over && (r == 0 || r == RP_ENOTFOUND)) return moved_on(p, r == 0, err);
    return rp_error_wrap(err, RP_EUNKNOWN, "whether '%s' was put cannot be seen", p->key);
}

/* ---- the first of several ---- */

/* A request that was repeated may have left a version each time. */
struct older {
    const struct s3_put *p;
    const struct rp_identity *made;
    char ours[OURS_MAX][RP_VERSION_MAX]; /* the one that counts first */
    size_t n, n_max;
    bool found; /* an upload of somebody */
    bool over;  /* and it is what was to be replaced */
};

/* What stands right below our version: nothing or a delete marker means that the key was free. */
static int see_older(void *ctx, const struct s3_listed *listed, struct rp_error *err)
{
    struct older *o = ctx;
    const struct rp_identity *below = &listed->entry.identity;
    (void)err;
    if (strcmp(listed->entry.key, o->p->key) != 0) return 1;
    if (strcmp(below->version, o->ours[0]) == 0) return 0;
    if (!listed->is_marker && o->n < o->n_max && is_ours(o->p, o->made->etag, below)) {
        memcpy(o->ours[o->n++], below->version, RP_VERSION_MAX);
        return 0;
    }
    o->found = !listed->is_marker;
    o->over = o->found && strcmp(below->version, o->p->over.version) == 0;
    return 1;
}

static int delete_version(struct rp_s3 *s3, const char *key, const char *version, struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("DELETE", key);
    rp_s3_query(&call, "versionId", version);
    int r = rp_s3_run(s3, &call, err);
    return r == RP_ENOTFOUND ? 0 : r;
}

static int list_older(struct older *o, struct rp_error *err)
{
    char limit[S3_NUMBER];
    struct s3_page page = { 0 };
    rp_s3_span_keys(o->n_max + 1, limit);
    const struct s3_span span = { .versions = true,
                                  .prefix = o->p->key,
                                  .after = o->p->key,
                                  .after_version = o->ours[0],
                                  .keys = limit,
                                  .fn = see_older,
                                  .ctx = o };
    return rp_s3_span(o->p->s3, &span, &page, err);
}

/* Oldest first, so that none of them comes to light. */
static int give_way(const struct s3_put *p, const struct rp_identity *made, unsigned attempts, struct rp_error *err)
{
    struct older older = { .p = p, .made = made, .n = 1, .n_max = attempts < OURS_MAX ? attempts : OURS_MAX };
    bool over = p->flags & RP_PUT_OVER;
    if (!(p->flags & (RP_PUT_NEW | RP_PUT_OVER)) || !made->version[0]) return 0;
    memcpy(older.ours[0], made->version, RP_VERSION_MAX);
    int r = list_older(&older, err);
    if (r >= 0 && (over ? older.over : !older.found)) return 0;
    while (r >= 0 && older.n > 0)
        r = delete_version(p->s3, p->key, older.ours[--older.n], err);
    if (r < 0) return rp_error_wrap(err, RP_EUNKNOWN, "'%s' was put, perhaps over another", p->key);
    return over ? moved_on(p, older.found, err) : taken(p, err);
}

/* ---- the end of it ---- */

int rp_s3_put_conclude(const struct s3_put *p, const struct s3_call *call, int r, const char *etag,
                       struct rp_identity *out, struct rp_error *err)
{
    struct rp_identity made = { 0 };
    bool only_new = p->flags & RP_PUT_NEW, over = p->flags & RP_PUT_OVER, repeated = call->attempts > 1;
    bool refused = (r == RP_ECHANGED && (only_new || over)) || (r == RP_ECONFLICT && over);
    if (refused && !repeated) return only_new ? taken(p, err) : rp_s3_put_expect_over(p, true, err);
    bool lost = r == RP_EUNKNOWN || (repeated && (r == RP_ENOTFOUND || refused));
    if (r < 0 && !lost) return r;
    if (lost && (r = find_ours(p, etag, r, &made, err)) < 0) return r;
    if (!lost) {
        snprintf(made.etag, sizeof made.etag, "%s", etag);
        made.size_bytes = p->size_bytes;
        rp_s3_version_of(call, made.version);
    }
    if ((r = give_way(p, &made, call->attempts, err)) < 0) return r;
    if (!lost) return identify(p, call, made.etag, out, err);
    if (out) *out = made;
    return 0;
}
