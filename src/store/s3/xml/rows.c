/* SPDX-License-Identifier: Apache-2.0 */
/* What the documents mean. Rows are kept while a document is read and handed over when all of it
 * was seen to be right (X1). */
#include "store/s3/xml/xml.h"

#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/text/hex.h"
#include "base/time.h"
#include "store/s3/xml/parse.h"

/* ---- rows ---- */

enum { WORDS = 4 };
#define ROWS_BYTES(n) (16 * (n) + 4096) /* more than the rows of any document of n bytes take */
struct row {
    struct row *next;
    int64_t size_bytes, time_ms;
    bool is_latest, is_marker;
    char *word[WORDS];
};
struct rows {
    struct rp_arena arena;
    struct row *first, **end;
    struct s3_page page;
};

static void rows_done(struct rows *rows)
{
    rp_arena_done(&rows->arena);
}

static int add_row(struct rows *rows, struct row row, const char *const words[WORDS], struct rp_error *err)
{
    struct row *kept = rp_arena_alloc(&rows->arena, sizeof *kept);
    for (size_t i = 0; kept && i < WORDS; i++)
        if (!(row.word[i] = rp_arena_strdup(&rows->arena, words[i] ? words[i] : ""))) kept = NULL;
    if (!kept) return rp_error_set(err, RP_ENOMEM, "keep a row");
    *kept = row;
    *(rows->first ? rows->end : &rows->first) = kept;
    rows->end = &kept->next;
    return 0;
}

/* ---- texts ---- */

static int read_key(char *key, bool escaped, struct rp_error *err)
{
    const int64_t n = escaped ? rp_unescape(key, '%', true) : (int64_t)strlen(key);
    if (n < 0) return rp_error_set(err, RP_ECORRUPT, "a key with a broken escape: '%.100s'", key);
    const int r = rp_key_check(key, (size_t)n, err);
    return r < 0 ? rp_error_set(err, RP_ECORRUPT, "a key that is none: '%.100s'", key) : 0;
}

/* Spaces and line ends around a number or a word that is no key. */
static const char *trimmed(const char *text, char *out, size_t size)
{
    text += strspn(text, " \t\r\n");
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r\n", text[n - 1]))
        n--;
    if (n >= size) return NULL;
    memcpy(out, text, n);
    out[n] = '\0';
    return out;
}

static int read_time(const char *text, const char *name, int64_t *out, struct rp_error *err)
{
    char word[48];
    if (!text || !trimmed(text, word, sizeof word) || rp_time_parse(word, out, err) < 0)
        return rp_error_set(err, RP_ECORRUPT, "<%s> is no time: '%.40s'", name, text ? text : "");
    *out -= *out % RP_SECOND_MS;
    return 0;
}

static int read_size(const char *text, int64_t *out, struct rp_error *err)
{
    char word[24] = "";
    int64_t size = 0;
    bool good = text && trimmed(text, word, sizeof word) && *word != '\0';
    for (const char *c = word; good && *c != '\0'; c++)
        good = rp_is_digit(*c) && !__builtin_mul_overflow(size, 10, &size) &&
               !__builtin_add_overflow(size, *c - '0', &size);
    if (!good) return rp_error_set(err, RP_ECORRUPT, "<Size> is no size: '%.40s'", text ? text : "");
    *out = size;
    return 0;
}

static int read_bool(const char *text, const char *name, bool *out, struct rp_error *err)
{
    char word[8];
    if (!text || !trimmed(text, word, sizeof word) || (strcmp(word, "true") != 0 && strcmp(word, "false") != 0))
        return rp_error_set(err, RP_ECORRUPT, "<%s> is neither true nor false: '%.40s'", name, text ? text : "");
    *out = *word == 't';
    return 0;
}

/* Into a field of fixed size; RP_ECORRUPT rather than cut. */
static int copy_text(char *to, size_t size, const char *text, size_t n, const char *name, struct rp_error *err)
{
    if (n >= size)
        return rp_error_set(err, RP_ECORRUPT, "<%s> has %zu bytes, more than %zu: '%.40s'", name, n, size - 1, text);
    memcpy(to, text, n);
    to[n] = '\0';
    return 0;
}

static int copy_etag(char to[RP_ETAG_MAX], const char *text, struct rp_error *err)
{
    const size_t n = strlen(text);
    const bool quoted = n >= 2 && text[0] == '"' && text[n - 1] == '"';
    return copy_text(to, RP_ETAG_MAX, text + quoted, n - 2 * quoted, "ETag", err);
}

/* The version that an object has which was written without versions has no name with us. */
static const char *version_name(const char *text)
{
    return !text || strcmp(text, "null") == 0 ? "" : text;
}

static int missing(const char *row, const char *name, struct rp_error *err)
{
    return rp_error_set(err, RP_ECORRUPT, "a <%s> without <%s>", row, name);
}

static int wrap(int r, const char *what, struct rp_error *err)
{
    return r < 0 ? rp_error_wrap(err, r, "the server's %s", what) : r;
}

/* ---- listings ---- */

enum { KEY, MODIFIED, ETAG, SIZE, VERSION, LATEST, UPLOAD, BEGUN };
enum { TRUNCATED, ENCODING, TOKEN, NEXT, NEXT_ID };
enum { CONTENTS, VERSIONS, MARKER };

static const struct s3_shape list_shape = {
    .roots = { "ListBucketResult", "ListVersionsResult" },
    .rows = { [CONTENTS] = "Contents", [VERSIONS] = "Version", [MARKER] = "DeleteMarker" },
    .row_depth = 2,
    .fields = { [KEY] = "Key",
                [MODIFIED] = "LastModified",
                [ETAG] = "ETag",
                [SIZE] = "Size",
                [VERSION] = "VersionId",
                [LATEST] = "IsLatest" },
    .heads = { [TRUNCATED] = "IsTruncated",
               [ENCODING] = "EncodingType",
               [TOKEN] = "NextContinuationToken",
               [NEXT] = "NextKeyMarker",
               [NEXT_ID] = "NextVersionIdMarker" },
};
static const struct s3_shape partials_shape = {
    .roots = { "ListMultipartUploadsResult" },
    .rows = { "Upload" },
    .row_depth = 2,
    .fields = { [KEY] = "Key", [UPLOAD] = "UploadId", [BEGUN] = "Initiated" },
    .heads = { [TRUNCATED] = "IsTruncated", [NEXT] = "NextKeyMarker", [NEXT_ID] = "NextUploadIdMarker" },
};

static int keep_listed(void *ctx, int kind, const struct s3_texts *fields, struct rp_error *err)
{
    struct row row = { .is_marker = kind == MARKER, .is_latest = kind == CONTENTS };
    const char *key = rp_s3_text(fields, KEY), *etag = rp_s3_text(fields, ETAG);
    const char *version = rp_s3_text(fields, VERSION);
    char bare[RP_ETAG_MAX] = "", id[RP_VERSION_MAX] = "";
    if (!key) return missing(list_shape.rows[kind], "Key", err);
    if (kind != MARKER && !etag) return missing(list_shape.rows[kind], "ETag", err);
    if (kind != CONTENTS && !version) return missing(list_shape.rows[kind], "VersionId", err);
    int r = read_time(rp_s3_text(fields, MODIFIED), "LastModified", &row.time_ms, err);
    if (r == 0 && kind != MARKER) r = read_size(rp_s3_text(fields, SIZE), &row.size_bytes, err);
    if (r == 0 && kind != CONTENTS) r = read_bool(rp_s3_text(fields, LATEST), "IsLatest", &row.is_latest, err);
    if (r == 0 && kind != MARKER) r = copy_etag(bare, etag, err);
    if (r == 0 && kind != CONTENTS) {
        version = version_name(version);
        r = copy_text(id, sizeof id, version, strlen(version), "VersionId", err);
    }
    return r < 0 ? r : add_row(ctx, row, (const char *const[WORDS]){ key, bare, id }, err);
}

static int keep_partial(void *ctx, int kind, const struct s3_texts *fields, struct rp_error *err)
{
    (void)kind;
    struct row row = { 0 };
    const char *key = rp_s3_text(fields, KEY), *upload = rp_s3_text(fields, UPLOAD);
    if (!key) return missing("Upload", "Key", err);
    if (!upload || *upload == '\0') return missing("Upload", "UploadId", err);
    if (strlen(upload) >= S3_UPLOAD_MAX)
        return rp_error_set(err, RP_ECORRUPT, "<UploadId> has %zu bytes", strlen(upload));
    const int r = read_time(rp_s3_text(fields, BEGUN), "Initiated", &row.time_ms, err);
    return r < 0 ? r : add_row(ctx, row, (const char *const[WORDS]){ key, upload }, err);
}

/* Decodes and judges all keys; `last`: the last one, "" if there is none. */
static int read_keys(struct rows *rows, bool escaped, size_t *n, const char **last, struct rp_error *err)
{
    *n = 0;
    *last = "";
    for (struct row *row = rows->first; row; row = row->next, ++*n) {
        const int r = read_key(row->word[0], escaped, err);
        if (r < 0) return r;
        *last = row->word[0];
    }
    return 0;
}

/* A key marker is the last key. AWS escapes it like the keys, Ceph does not: whichever reads like
 * the last key. */
static int read_marker(const char *text, const char *last, bool escaped, char *out, size_t size, struct rp_error *err)
{
    char plain[S3_TEXT_MAX + 1];
    if (escaped && strcmp(text, last) != 0) {
        memcpy(plain, text, strlen(text) + 1);
        if (rp_unescape(plain, '%', true) >= 0) text = plain;
    }
    return copy_text(out, size, text, strlen(text), "NextKeyMarker", err);
}

static int read_page(const struct s3_texts *heads, const char *last, bool escaped, struct s3_page *page,
                     struct rp_error *err)
{
    const char *token = rp_s3_text(heads, TOKEN), *next = token ? token : rp_s3_text(heads, NEXT);
    const char *id = rp_s3_text(heads, NEXT_ID);
    int r = read_bool(rp_s3_text(heads, TRUNCATED), "IsTruncated", &page->truncated, err);
    if (r < 0 || !page->truncated) return r;
    if (!next || *next == '\0') return rp_error_set(err, RP_ECORRUPT, "a page that is not the last and names no next");
    r = read_marker(next, last, escaped && !token, page->next, sizeof page->next, err);
    if (r == 0 && id) r = copy_text(page->next_id, sizeof page->next_id, id, strlen(id), "next id marker", err);
    return r;
}

/* All rows, and for a listing its page. */
static int read_rows(const struct rp_buf *xml, const struct s3_shape *shape, s3_row_fn *keep, struct rows *rows,
                     struct rp_error *err)
{
    RP_CLEANUP(rp_s3_texts_done) struct s3_texts heads = { 0 };
    const char *last, *told;
    *rows = (struct rows){ .arena = RP_ARENA(ROWS_BYTES(xml->len)) };
    int r = rp_s3_parse(xml, shape, keep, rows, &heads, err);
    if (r < 0) return r;
    /* A server that does not say that keys are escaped was asked for it in vain: decoded they would
     * be others. Ceph escapes those of uploads and does not say so: there the question counts. */
    told = shape == &list_shape ? rp_s3_text(&heads, ENCODING) : shape == &partials_shape ? "url" : NULL;
    const bool escaped = told && strcmp(told, "url") == 0;
    r = read_keys(rows, escaped, &rows->page.n, &last, err);
    return r < 0 || !shape->heads[TRUNCATED] ? r : read_page(&heads, last, escaped, &rows->page, err);
}

static int hand_over(const struct row *row, s3_listed_fn *fn, void *ctx, struct rp_error *err)
{
    struct s3_listed listed = { .entry = { .key = row->word[0],
                                           .identity = { .size_bytes = row->size_bytes, .modified_ms = row->time_ms } },
                                .is_latest = row->is_latest,
                                .is_marker = row->is_marker };
    memcpy(listed.entry.identity.etag, row->word[1], strlen(row->word[1]) + 1);
    memcpy(listed.entry.identity.version, row->word[2], strlen(row->word[2]) + 1);
    return fn(ctx, &listed, err);
}

int rp_s3_read_list(const struct rp_buf *xml, s3_listed_fn *fn, void *ctx, struct s3_page *page, struct rp_error *err)
{
    RP_CLEANUP(rows_done) struct rows rows = { 0 };
    int r = read_rows(xml, &list_shape, keep_listed, &rows, err);
    if (r < 0) return wrap(r, "listing", err);
    for (const struct row *row = rows.first; r == 0 && row; row = row->next)
        r = hand_over(row, fn, ctx, err);
    if (r >= 0) *page = rows.page;
    return r;
}

int rp_s3_read_partials(const struct rp_buf *xml, rp_partial_fn *fn, void *ctx, struct s3_page *page,
                        struct rp_error *err)
{
    RP_CLEANUP(rows_done) struct rows rows = { 0 };
    int r = read_rows(xml, &partials_shape, keep_partial, &rows, err);
    if (r < 0) return wrap(r, "listing of uploads", err);
    for (const struct row *row = rows.first; r == 0 && row; row = row->next)
        r = fn(ctx, &(struct rp_partial){ row->word[0], row->word[1], row->time_ms }, err);
    if (r >= 0) *page = rows.page;
    return r;
}

/* ---- the answer to a multi-object delete ---- */

enum { DELETED, FAILED };
enum { D_KEY, D_VERSION, D_CODE, D_MESSAGE, D_MARKER };
static const struct s3_shape deleted_shape = {
    .roots = { "DeleteResult" },
    .rows = { [DELETED] = "Deleted", [FAILED] = "Error" },
    .row_depth = 2,
    .fields = { [D_KEY] = "Key",
                [D_VERSION] = "VersionId",
                [D_CODE] = "Code",
                [D_MESSAGE] = "Message",
                [D_MARKER] = "DeleteMarkerVersionId" },
    .cut = "Message",
};

static int keep_deleted(void *ctx, int kind, const struct s3_texts *fields, struct rp_error *err)
{
    const char *key = rp_s3_text(fields, D_KEY), *version = version_name(rp_s3_text(fields, D_VERSION));
    const char *code = kind == FAILED ? rp_s3_text(fields, D_CODE) : "", *message = rp_s3_text(fields, D_MESSAGE);
    if (!key) return missing(deleted_shape.rows[kind], "Key", err);
    if (kind == FAILED && (!code || *code == '\0')) return missing("Error", "Code", err);
    const char *marker = version_name(rp_s3_text(fields, D_MARKER));
    if (strlen(version) >= RP_VERSION_MAX)
        return rp_error_set(err, RP_ECORRUPT, "<VersionId> has %zu bytes", strlen(version));
    if (strlen(marker) >= RP_VERSION_MAX) marker = "";
    const char *const words[WORDS] = { key, version, code, kind == FAILED ? message : marker };
    return add_row(ctx, (struct row){ 0 }, words, err);
}

static struct s3_deleted deleted_of(const struct row *row)
{
    const bool failed = row->word[2][0] != '\0';
    return (struct s3_deleted){ .key = row->word[0],
                                .version = row->word[1],
                                .code = row->word[2],
                                .message = failed ? row->word[3] : "",
                                .marker = failed ? "" : row->word[3] };
}

int rp_s3_read_deleted(const struct rp_buf *xml, s3_deleted_fn *fn, void *ctx, struct rp_error *err)
{
    RP_CLEANUP(rows_done) struct rows rows = { 0 };
    int r = read_rows(xml, &deleted_shape, keep_deleted, &rows, err);
    if (r < 0) return wrap(r, "answer to a multi-object delete", err);
    for (const struct row *row = rows.first; r == 0 && row; row = row->next) {
        const struct s3_deleted deleted = deleted_of(row);
        r = fn(ctx, &deleted, err);
    }
    return r;
}
