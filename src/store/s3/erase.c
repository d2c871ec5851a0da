/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes as they are sent, and what the server says to each. Nothing is looked at here. */
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "store/s3/erase.h"

#define BODY_MAX    ((size_t)16 << 20) /* of a multi-object delete: 1,000 keys, each byte of them an entity */
#define SINGLES_MAX 250                /* calls handed to the wire at a time */

struct erasing {
    struct rp_s3 *s3;
    enum s3_by by;
    const struct rp_gate *gate;
};

static void say_all(struct rp_item **items, size_t n, enum rp_outcome outcome, const char *note)
{
    for (size_t i = 0; i < n; i++)
        rp_s3_say(items[i], outcome, note);
}

static bool is_one_of(const char *code, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(code, *list) == 0) return true;
    return false;
}

/* What an error code of one key means. Everything else may have happened all the same. */
static enum rp_outcome outcome_of(const char *code)
{
    static const char *const denied[] = { "AccessDenied",
                                          "AllAccessDisabled",
                                          "AccountProblem",
                                          "InvalidObjectState",
                                          "MethodNotAllowed",
                                          "ObjectLocked",
                                          NULL };
    static const char *const gone[] = { "NoSuchKey", "NoSuchVersion", NULL };
    static const char *const changed[] = { "PreconditionFailed", NULL };
    static const char *const refused[] = { "SlowDown", "ServiceUnavailable", "Throttling", "TooManyRequests", NULL };
    if (is_one_of(code, denied)) return RP_OUT_DENIED;
    if (is_one_of(code, gone)) return RP_OUT_GONE;
    if (is_one_of(code, changed)) return RP_OUT_CHANGED;
    return is_one_of(code, refused) ? RP_OUT_RETRY : RP_OUT_UNKNOWN;
}

/* A call that has no answer: whether it was carried out is known only if it was not sent. */
static int say_failed(struct rp_item **items, size_t n, const struct s3_call *call, struct rp_error *err)
{
    bool unknown = call->code == RP_EUNKNOWN || call->code == RP_ETOOBIG;
    say_all(items, n, unknown ? RP_OUT_UNKNOWN : RP_OUT_RETRY, call->note);
    return unknown || !rp_s3_is_store_wide(call->code) ? 0 : rp_error_set(err, call->code, "delete: %s", call->note);
}

/* Ceph hides nothing twice, and then names no marker. */
static void judge_markers(const struct erasing *e, struct rp_item **items, size_t n, bool many)
{
    bool *told = &e->s3->tells_markers[many];
    for (size_t i = 0; i < n && e->by == S3_BY_KEY; i++)
        if (items[i]->outcome == RP_OUT_DELETED && items[i]->identity.version[0])
            __atomic_store_n(told, true, __ATOMIC_RELAXED);
    for (size_t i = 0; i < n && e->by == S3_BY_KEY && __atomic_load_n(told, __ATOMIC_RELAXED); i++)
        if (items[i]->outcome == RP_OUT_DELETED && !items[i]->identity.version[0]) items[i]->outcome = RP_OUT_GONE;
}

/* ---- one by one ---- */

static void say_single(struct rp_s3 *s3, enum s3_by by, struct rp_item *item, const struct s3_call *call, int *failed,
                       struct rp_error *err)
{
    struct rp_error why = { 0 };
    bool again = call->attempts > 1; /* an earlier attempt may have done it */
    if (call->status / 100 == 2) {
        rp_s3_say(item, RP_OUT_DELETED, "");
        if (by == S3_BY_KEY) rp_s3_version_of(call, item->identity.version);
        return;
    }
    int r = rp_s3_error(s3, call, &why);
    if (r == RP_ENOTFOUND)
        rp_s3_say(item, again ? RP_OUT_UNKNOWN : RP_OUT_GONE, "");
    else if (r == RP_ECHANGED)
        rp_s3_say(item, again ? RP_OUT_UNKNOWN : RP_OUT_CHANGED, "");
    else if (r == RP_EDENIED)
        rp_s3_say(item, RP_OUT_DENIED, why.text);
    else
        rp_s3_say(item, rp_error_retry(r) && r != RP_EUNKNOWN ? RP_OUT_RETRY : RP_OUT_UNKNOWN, why.text);
    if (rp_s3_is_store_wide(r) && *failed == 0) *failed = rp_error_copy(err, &why);
}

struct single {
    char quoted[RP_ETAG_MAX + 2];
    struct rp_pair if_match;
};

static void single_begin(const struct erasing *e, const struct rp_item *item, struct single *single,
                         struct s3_call *call)
{
    *call = rp_s3_call("DELETE", item->key);
    call->once = e->by == S3_BY_KEY;
    call->gate = e->gate;
    if (e->by == S3_BY_VERSION) rp_s3_query(call, "versionId", item->identity.version);
    if (e->by != S3_BY_ETAG) return;
    snprintf(single->quoted, sizeof single->quoted, "\"%s\"", item->identity.etag);
    single->if_match = (struct rp_pair){ "if-match", single->quoted };
    rp_s3_send(call, &single->if_match, 1, NULL);
}

static int erase_singles(const struct erasing *e, struct rp_item **items, size_t n, struct rp_error *err)
{
    int failed = 0;
    RP_CLEANUP(rp_freep) struct s3_call *calls = calloc(n + 1, sizeof *calls);
    RP_CLEANUP(rp_freep) struct single *singles = calloc(n + 1, sizeof *singles);
    if (calls == NULL || singles == NULL) return rp_error_set(err, RP_ENOMEM, "delete: out of memory");
    for (size_t i = 0; i < n; i++)
        single_begin(e, items[i], &singles[i], &calls[i]);
    int r = rp_s3_wire_run(e->s3->wire, calls, n, err);
    if (r < 0) return r;
    for (size_t i = 0; i < n; i++) {
        if (calls[i].code == 0)
            say_single(e->s3, e->by, items[i], &calls[i], &failed, err);
        else if ((r = say_failed(&items[i], 1, &calls[i], failed ? NULL : err)) < 0 && failed == 0)
            failed = r;
        rp_s3_call_done(&calls[i]);
    }
    judge_markers(e, items, n, false);
    return failed;
}

static int erase_one_by_one(const struct erasing *e, struct rp_item **items, size_t n, struct rp_error *err)
{
    for (size_t at = 0; at < n; at += SINGLES_MAX) {
        int r = erase_singles(e, items + at, n - at < SINGLES_MAX ? n - at : SINGLES_MAX, err);
        if (r < 0) return r;
    }
    return 0;
}

/* ---- many in one request ---- */

void rp_s3_send_xml(struct s3_call *call, const struct rp_buf *body, struct s3_sum *sum)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    const char *name = "content-md5";
    if (EVP_Digest(rp_buf_text(body), body->len, digest, &length, EVP_md5(), NULL) != 1) {
        name = "x-amz-checksum-sha256";
        RP_ASSERT(EVP_Digest(rp_buf_text(body), body->len, digest, &length, EVP_sha256(), NULL) == 1);
    }
    EVP_EncodeBlock((unsigned char *)sum->text, digest, (int)length);
    sum->headers[0] = (struct rp_pair){ name, sum->text };
    sum->headers[1] = (struct rp_pair){ "content-type", "application/xml" };
    rp_s3_send(call, sum->headers, 2, body);
}

struct answers {
    struct rp_item **items;
    size_t n, next;
    enum s3_by by;
};

static bool names(const struct answers *a, const struct rp_item *item, const struct s3_deleted *deleted)
{
    return strcmp(item->key, deleted->key) == 0 && (a->by != S3_BY_VERSION || deleted->version[0] == '\0' ||
                                                    strcmp(item->identity.version, deleted->version) == 0);
}

/* Answers mostly come in the order of the question. */
static struct rp_item *find_named(struct answers *a, const struct s3_deleted *deleted)
{
    for (size_t tried = 0; tried < a->n; tried++) {
        struct rp_item *item = a->items[(a->next + tried) % a->n];
        if (!names(a, item, deleted)) continue;
        a->next = (a->next + tried + 1) % a->n;
        return item;
    }
    return NULL;
}

static int take_answer(void *ctx, const struct s3_deleted *deleted, struct rp_error *err)
{
    struct answers *a = ctx;
    struct rp_item *item = find_named(a, deleted);
    (void)err;
    if (item == NULL) return 0;
    if (item->outcome != RP_OUT_NONE) {
        rp_s3_say(item, RP_OUT_UNKNOWN, "the server named it twice");
    } else if (deleted->code[0] == '\0') {
        rp_s3_say(item, RP_OUT_DELETED, "");
        if (a->by == S3_BY_KEY) snprintf(item->identity.version, RP_VERSION_MAX, "%s", deleted->marker);
    } else {
        char note[sizeof item->note];
        snprintf(note, sizeof note, "%.40s%s%.70s", deleted->code, deleted->message[0] ? ": " : "", deleted->message);
        rp_s3_say(item, outcome_of(deleted->code), note);
    }
    return 0;
}

static void read_answers(const struct erasing *e, const struct s3_call *call, struct rp_item **items, size_t n)
{
    struct answers a = { items, n, 0, e->by };
    struct rp_error why = { 0 };
    say_all(items, n, RP_OUT_NONE, "");
    if (rp_s3_read_deleted(&call->answer, take_answer, &a, &why) < 0) {
        say_all(items, n, RP_OUT_UNKNOWN, why.text);
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (items[i]->outcome == RP_OUT_NONE)
            rp_s3_say(items[i], RP_OUT_UNKNOWN, "the server's answer does not name it");
    judge_markers(e, items, n, true);
}

static bool refuses_the_form(int status)
{
    return status == 400 || status == 405 || status == 411 || status == 501;
}

static int judge_multi(const struct erasing *e, const struct s3_call *call, struct rp_item **items, size_t n,
                       struct rp_error *err)
{
    struct rp_error why = { 0 };
    if (call->code < 0) return say_failed(items, n, call, err);
    if (call->status == 200) {
        read_answers(e, call, items, n);
        return 0;
    }
    if (refuses_the_form(call->status)) return erase_one_by_one(e, items, n, err);
    int r = rp_s3_error(e->s3, call, &why);
    say_all(items, n, r == RP_EDENIED ? RP_OUT_DENIED : RP_OUT_UNKNOWN, why.text);
    if (!rp_s3_is_store_wide(r) || r == RP_EDENIED) return 0;
    return rp_error_copy(err, &why);
}

static int erase_multi(const struct erasing *e, struct rp_item **items, size_t n, struct rp_error *err)
{
    struct s3_sum sum;
    RP_CLEANUP(rp_buf_done) struct rp_buf body = RP_BUF(BODY_MAX);
    int r = rp_s3_write_delete(&body, items, n, e->by == S3_BY_VERSION, e->by == S3_BY_ETAG, err);
    if (r < 0) return r;
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("POST", NULL);
    rp_s3_query(&call, "delete", "");
    rp_s3_send_xml(&call, &body, &sum);
    call.once = e->by == S3_BY_KEY;
    call.gate = e->gate;
    r = rp_s3_wire_run(e->s3->wire, &call, 1, err);
    return r < 0 ? r : judge_multi(e, &call, items, n, err);
}

/* Stricter than what XML can carry (xml/write.c): a server that read a line end otherwise than we
 * wrote it would delete another key. */
static bool is_read_alike(const char *key)
{
    for (const unsigned char *c = (const unsigned char *)key; *c; c++)
        if (*c < 0x20 || *c == 0x7f || (c[0] == 0xef && c[1] == 0xbf && c[2] >= 0xbe)) return false;
    return true;
}

static bool may_be_many(const struct s3_powers *powers, enum s3_by by)
{
    if (!powers->multi_delete) return false;
    if (by == S3_BY_ETAG) return powers->multi_etag;
    return powers->multi_versions || (by == S3_BY_KEY && !powers->versions);
}

int rp_s3_erase(struct rp_s3 *s3, struct rp_item *items, size_t n, enum s3_by by, const struct rp_gate *gate,
                struct rp_error *err)
{
    const struct erasing e = { s3, by, gate };
    const struct s3_powers powers = rp_s3_powers(s3);
    const bool many = may_be_many(&powers, by);
    size_t n_multi = 0, n_single = 0;
    RP_CLEANUP(rp_freep) struct rp_item **order = calloc(n + 1, sizeof *order);
    if (order == NULL) return rp_error_set(err, RP_ENOMEM, "delete: out of memory");
    for (size_t i = 0; i < n; i++) {
        rp_s3_say(&items[i], RP_OUT_RETRY, "not asked");
        if (many && is_read_alike(items[i].key))
            order[n_multi++] = &items[i];
        else
            order[n - ++n_single] = &items[i];
    }
    for (size_t at = 0; at < n_multi; at += S3_DELETE_MAX) {
        size_t part = n_multi - at < S3_DELETE_MAX ? n_multi - at : S3_DELETE_MAX;
        int r = erase_multi(&e, order + at, part, err);
        if (r < 0) return r;
    }
    return erase_one_by_one(&e, order + n_multi, n_single, err);
}
