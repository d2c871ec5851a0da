/* SPDX-License-Identifier: Apache-2.0 */
#include "store/s3/xml/parse.h"

#include <expat.h>
#include <limits.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "store/s3/xml/plain.h"

struct parse {
    XML_Parser parser;
    const struct s3_shape *shape;
    s3_row_fn *fn;
    void *ctx;
    struct s3_texts *heads, fields;
    struct rp_error *err;
    int code; /* of the first failure */

    int depth;
    const struct s3_element *row, *text; /* inside of which we are; NULL: none */
    struct rp_buf piece;
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

static const char *local_name(const char *name)
{
    const char *colon = strrchr(name, ':');
    return colon ? colon + 1 : name;
}

static const struct s3_element *find(const struct s3_element *table, const char *name)
{
    for (const struct s3_element *e = table; e && e->name; e++)
        if (strcmp(e->name, name) == 0) return e;
    return NULL;
}

static void begin_text(struct parse *p, const struct s3_element *text)
{
    const struct s3_texts *texts = p->row ? &p->fields : p->heads;
    if (!text) return;
    if (texts->at[text->id] != 0) {
        if (p->row || !p->shape->heads_anywhere)
            fail(p, rp_error_set(p->err, RP_ECORRUPT, "<%s> stands there twice", text->name));
        return;
    }
    p->text = text;
    rp_buf_clear(&p->piece);
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
        fail(p, rp_error_set(p->err, RP_ECORRUPT, "<%s> has elements in it", p->text->name));
    } else if (p->row) {
        if (p->depth == p->shape->row_depth + 1) begin_text(p, find(p->shape->fields, name));
    } else if (p->depth == p->shape->row_depth && (p->row = find(p->shape->rows, name)) != NULL) {
        rp_buf_clear(&p->fields.bytes);
        memset(p->fields.at, 0, sizeof p->fields.at);
    } else if (p->depth == 2 || p->shape->heads_anywhere) {
        begin_text(p, find(p->shape->heads, name));
    }
}

static void XMLCALL begin_element(void *ctx, const XML_Char *full, const XML_Char **attributes)
{
    (void)attributes;
    begin_named(ctx, local_name(full));
}

static void XMLCALL take_characters(void *ctx, const XML_Char *text, int n)
{
    struct parse *p = ctx;
    if (p->code != 0 || !p->text) return;
    size_t take = (size_t)n, room = S3_TEXT_MAX - p->piece.len;
    if (take > room) {
        if (!p->text->cut) {
            fail(p, rp_error_set(p->err, RP_ECORRUPT, "<%s> is longer than %zu bytes", p->text->name, S3_TEXT_MAX));
            return;
        }
        while (room > 0 && ((unsigned char)text[room] & 0xC0) == 0x80)
            room--;
        take = room;
    }
    if (take > 0 && rp_buf_add(&p->piece, text, take) < 0) fail(p, rp_error_set(p->err, RP_ENOMEM, "no memory"));
}

static void end_text(struct parse *p)
{
    struct s3_texts *texts = p->row ? &p->fields : p->heads;
    const size_t at = texts->bytes.len;
    if (rp_buf_add(&texts->bytes, rp_buf_text(&p->piece), p->piece.len + 1) < 0) {
        fail(p, rp_error_set(p->err, RP_ENOMEM, "no memory"));
        return;
    }
    texts->at[p->text->id] = at + 1;
    p->text = NULL;
}

static void end_row(struct parse *p)
{
    const int row = p->row->id;
    p->row = NULL;
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
    else if (p->row && p->depth == p->shape->row_depth)
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

/* ---- documents as servers send them ---- */

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
    end_element(ctx, "");
    return ((struct parse *)ctx)->code != 0 ? -1 : 0;
}

static int run_plain(struct parse *p, const char *xml, size_t n)
{
    static const struct s3_plain_fns fns = { .begin = plain_begin, .text = plain_text, .end = plain_end };
    (void)rp_s3_plain_walk(xml, n, &fns, p);
    return p->code;
}

/* ---- all others ---- */

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

static int parse_by(bool plain, const char *xml, size_t n, const struct s3_shape *shape, s3_row_fn *fn, void *ctx,
                    struct s3_texts *heads, struct rp_error *err)
{
    struct parse p = { .shape = shape, .fn = fn, .ctx = ctx, .heads = heads, .err = err };
    RP_ASSERT(!shape->rows || fn);
    heads->bytes = RP_BUF(S3_TEXTS_MAX * (S3_TEXT_MAX + 1));
    p.fields.bytes = RP_BUF(S3_TEXTS_MAX * (S3_TEXT_MAX + 1));
    p.piece = RP_BUF(S3_TEXT_MAX);
    int r = plain ? run_plain(&p, xml, n) : run_expat(&p, xml, n);
    if (p.parser) XML_ParserFree(p.parser);
    rp_s3_texts_done(&p.fields);
    rp_buf_done(&p.piece);
    return r;
}

int rp_s3_parse_expat(const char *xml, size_t n, const struct s3_shape *shape, s3_row_fn *fn, void *ctx,
                      struct s3_texts *heads, struct rp_error *err)
{
    if (n > INT_MAX) return rp_error_set(err, RP_ECORRUPT, "it has %zu bytes", n);
    return parse_by(false, xml, n, shape, fn, ctx, heads, err);
}

int rp_s3_parse(const char *xml, size_t n, const struct s3_shape *shape, s3_row_fn *fn, void *ctx,
                struct s3_texts *heads, struct rp_error *err)
{
    if (n <= INT_MAX && rp_s3_is_plain(xml, n)) return parse_by(true, xml, n, shape, fn, ctx, heads, err);
    return rp_s3_parse_expat(xml, n, shape, fn, ctx, heads, err);
}
