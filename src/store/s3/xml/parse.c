/* SPDX-License-Identifier: Apache-2.0 */
#include "store/s3/xml/parse.h"

#include <expat.h>
#include <limits.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "store/s3/xml/plain.h"

#define NONE (-1)

struct parse {
    XML_Parser parser;
    const struct s3_shape *shape;
    s3_row_fn *fn;
    void *ctx;
    struct s3_texts *heads, fields;
    struct rp_error *err;
    int code; /* of the first failure */

    size_t n_rows, n_skipped; /* handed over; not to be handed over once more */
    int depth;
    int row;                 /* inside of which we are; NONE */
    const char *text;        /* likewise; NULL: none */
    size_t *text_at, text_n; /* where its place goes; its bytes so far */
};

const char *rp_s3_text(const struct s3_texts *texts, int id)
{
    RP_ASSERT(id >= 0 && id < S3_TEXTS_MAX);
    return texts->at[id] == 0 ? NULL : texts->bytes.data + texts->at[id] - 1;
}

void rp_s3_texts_done(struct s3_texts *texts)
{
    rp_buf_done(&texts->bytes);
}

static void fail(struct parse *p, int code)
{
    if (p->code == 0) p->code = code;
    if (p->parser) XML_StopParser(p->parser, XML_FALSE);
}

/* NONE: the table does not have it. */
static int find(const char *const table[S3_TEXTS_MAX], const char *name)
{
    for (int i = 0; i < S3_TEXTS_MAX; i++)
        if (table[i] && strcmp(table[i], name) == 0) return i;
    return NONE;
}

static struct s3_texts *texts_of(struct parse *p)
{
    return p->row == NONE ? p->heads : &p->fields;
}

static void begin_text(struct parse *p, const char *const table[S3_TEXTS_MAX], const char *name)
{
    struct s3_texts *texts = texts_of(p);
    const int id = find(table, name);
    if (id == NONE) return;
    if (texts->at[id] == 0) {
        p->text = table[id];
        p->text_at = &texts->at[id];
        p->text_n = 0;
    } else if (p->row != NONE || !p->shape->heads_anywhere) {
        fail(p, rp_error_set(p->err, RP_ECORRUPT, "<%s> stands there twice", name));
    }
}

static void begin_root(struct parse *p, const char *name)
{
    const char *const *roots = p->shape->roots;
    if (strcmp(name, roots[0]) == 0 || (roots[1] && strcmp(name, roots[1]) == 0)) return;
    fail(p, rp_error_set(p->err, RP_ECORRUPT, "<%.64s> instead of <%s>", name, roots[0]));
}

static void begin_named(struct parse *p, const char *name)
{
    if (p->code != 0) return;
    if (++p->depth > S3_DEPTH_MAX) {
        fail(p, rp_error_set(p->err, RP_ECORRUPT, "nested deeper than %d", S3_DEPTH_MAX));
    } else if (p->depth == 1) {
        begin_root(p, name);
    } else if (p->text) {
        fail(p, rp_error_set(p->err, RP_ECORRUPT, "<%s> has elements in it", p->text));
    } else if (p->row != NONE) {
        if (p->depth == p->shape->row_depth + 1) begin_text(p, p->shape->fields, name);
    } else if (p->depth == p->shape->row_depth && (p->row = find(p->shape->rows, name)) != NONE) {
        rp_buf_clear(&p->fields.bytes);
        memset(p->fields.at, 0, sizeof p->fields.at);
    } else if (p->depth == 2 || p->shape->heads_anywhere) {
        begin_text(p, p->shape->heads, name);
    }
}

static void XMLCALL begin_element(void *ctx, const XML_Char *full, const XML_Char **attributes)
{
    const char *colon = strrchr(full, ':');
    (void)attributes;
    begin_named(ctx, colon ? colon + 1 : full);
}

static void add_bytes(struct parse *p, const char *bytes, size_t n)
{
    if (rp_buf_add(&texts_of(p)->bytes, bytes, n) < 0) fail(p, rp_error_set(p->err, RP_ENOMEM, "no memory"));
    p->text_n += n;
}

static void XMLCALL take_characters(void *ctx, const XML_Char *text, int n)
{
    struct parse *p = ctx;
    if (p->code != 0 || !p->text) return;
    size_t take = (size_t)n, room = S3_TEXT_MAX - p->text_n;
    if (take > room) {
        if (!p->shape->cut || strcmp(p->shape->cut, p->text) != 0) {
            fail(p, rp_error_set(p->err, RP_ECORRUPT, "<%s> is longer than %zu bytes", p->text, S3_TEXT_MAX));
            return;
        }
        while (room > 0 && ((unsigned char)text[room] & 0xC0) == 0x80)
            room--;
        take = room;
    }
    if (take > 0) add_bytes(p, text, take);
}

static void end_text(struct parse *p)
{
    const size_t n = p->text_n;
    add_bytes(p, "", 1);
    *p->text_at = texts_of(p)->bytes.len - n;
    p->text = NULL;
}

static void end_row(struct parse *p)
{
    const int row = p->row;
    p->row = NONE;
    if (p->n_rows++ < p->n_skipped) return;
    const int r = p->fn(p->ctx, row, &p->fields, p->err);
    if (r != 0) fail(p, r);
}

static void XMLCALL end_element(void *ctx, const XML_Char *name)
{
    struct parse *p = ctx;
    (void)name;
    if (p->code != 0) return;
    if (p->text)
        end_text(p);
    else if (p->row != NONE && p->depth == p->shape->row_depth)
        end_row(p);
    p->depth--;
}

static void XMLCALL refuse_doctype(void *ctx, const XML_Char *name, const XML_Char *system, const XML_Char *public,
                                   int internal)
{
    struct parse *p = ctx;
    (void)name, (void)system, (void)public, (void)internal;
    if (p->code == 0) fail(p, rp_error_set(p->err, RP_ECORRUPT, "it has a DOCTYPE"));
}

/* ---- the short way (plain.h) ---- */

static int plain_begin(void *ctx, const char *name)
{
    begin_named(ctx, name);
    return ((struct parse *)ctx)->code != 0 ? -1 : 0;
}

static int plain_text(void *ctx, const char *text, size_t n)
{
    take_characters(ctx, text, (int)n);
    return ((struct parse *)ctx)->code != 0 ? -1 : 0;
}

static int plain_end(void *ctx)
{
    end_element(ctx, NULL);
    return ((struct parse *)ctx)->code != 0 ? -1 : 0;
}

/* 1: not plain. Then all begins anew, but for the rows that were handed over. */
static int run_plain(struct parse *p, const char *xml, size_t n)
{
    static const struct s3_plain_fns fns = { .begin = plain_begin, .text = plain_text, .end = plain_end };
    const int r = rp_s3_plain_walk(xml, n, &fns, p);
    if (r <= 0) return p->code;
    p->n_skipped = p->n_rows;
    p->n_rows = 0;
    p->depth = 0;
    p->row = NONE;
    p->text = NULL;
    rp_buf_clear(&p->heads->bytes);
    memset(p->heads->at, 0, sizeof p->heads->at);
    return r;
}

/* ---- expat ---- */

static int run_expat(struct parse *p, const char *xml, size_t n)
{
    p->parser = XML_ParserCreate(NULL);
    if (!p->parser) return rp_error_set(p->err, RP_ENOMEM, "no memory");
    XML_SetUserData(p->parser, p);
    XML_SetElementHandler(p->parser, begin_element, end_element);
    XML_SetCharacterDataHandler(p->parser, take_characters);
    XML_SetStartDoctypeDeclHandler(p->parser, refuse_doctype);
    const enum XML_Status status = XML_Parse(p->parser, xml, (int)n, XML_TRUE);
    if (p->code != 0) return p->code;
    if (status == XML_STATUS_OK) return 0;
    const enum XML_Error why = XML_GetErrorCode(p->parser);
    if (why == XML_ERROR_NO_MEMORY) return rp_error_set(p->err, RP_ENOMEM, "no memory");
    return rp_error_set(p->err, RP_ECORRUPT, "%s at byte %lld of %zu", XML_ErrorString(why),
                        (long long)XML_GetCurrentByteIndex(p->parser), n);
}

static int parse(bool plain, const struct rp_buf *xml, const struct s3_shape *shape, s3_row_fn *fn, void *ctx,
                 struct s3_texts *heads, struct rp_error *err)
{
    struct parse p = { .shape = shape, .fn = fn, .ctx = ctx, .heads = heads, .err = err, .row = NONE };
    RP_ASSERT(!shape->rows[0] || fn);
    if (xml->len > INT_MAX) return rp_error_set(err, RP_ECORRUPT, "it has %zu bytes", xml->len);
    heads->bytes = p.fields.bytes = RP_BUF(S3_TEXTS_MAX * (S3_TEXT_MAX + 1));
    int r = plain ? run_plain(&p, rp_buf_text(xml), xml->len) : 1;
    if (r == 1) r = run_expat(&p, rp_buf_text(xml), xml->len);
    if (p.parser) XML_ParserFree(p.parser);
    rp_s3_texts_done(&p.fields);
    return r;
}

int rp_s3_parse(const struct rp_buf *xml, const struct s3_shape *shape, s3_row_fn *fn, void *ctx,
                struct s3_texts *heads, struct rp_error *err)
{
    return parse(true, xml, shape, fn, ctx, heads, err);
}

int rp_s3_parse_expat(const struct rp_buf *xml, const struct s3_shape *shape, s3_row_fn *fn, void *ctx,
                      struct s3_texts *heads, struct rp_error *err)
{
    return parse(false, xml, shape, fn, ctx, heads, err);
}
