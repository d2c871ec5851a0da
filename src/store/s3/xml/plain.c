/* SPDX-License-Identifier: Apache-2.0 */
#include "store/s3/xml/plain.h"

#include <string.h>

#include "base/assert.h"

static const char declaration[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";

static const struct reference {
    const char *name;
    size_t n;
    char c;
} references[] = {
    { "&quot;", 6, '"' }, { "&amp;", 5, '&' }, { "&lt;", 4, '<' }, { "&gt;", 4, '>' }, { "&apos;", 6, '\'' },
};

static const struct reference *find_reference(const char *at, const char *end)
{
    for (size_t i = 0; i < sizeof references / sizeof *references; i++) {
        const struct reference *r = &references[i];
        if ((size_t)(end - at) >= r->n && memcmp(at, r->name, r->n) == 0) return r;
    }
    return NULL;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t name_length(const char *at, const char *end)
{
    const char *from = at;
    if (at == end || !is_letter(*at)) return 0;
    while (at < end && (is_letter(*at) || (*at >= '0' && *at <= '9')))
        at++;
    return (size_t)(at - from);
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\t'))
        at++;
    return at;
}

static const char *skip_declaration(const char *at, const char *end)
{
    const size_t n = sizeof declaration - 1;
    if ((size_t)(end - at) >= n && memcmp(at, declaration, n) == 0) at = skip_blanks(at + n, end);
    return at;
}

/* ---- is it plain? ---- */

struct scan {
    const char *at, *end;
    struct {
        const char *name;
        size_t n;
    } open[S3_PLAIN_DEPTH];
    size_t depth;
};

/* "]]>" may not stand in a text, and ">" need not. */
static bool scan_text(struct scan *s)
{
    for (; s->at < s->end && *s->at != '<'; s->at++) {
        const char c = *s->at;
        if (c == '&') {
            const struct reference *r = find_reference(s->at, s->end);
            if (!r) return false;
            s->at += r->n - 1;
        } else if ((c < ' ' && c != '\n' && c != '\t') || c > '~' || c == '>' || c == ']') {
            return false;
        }
    }
    return s->at < s->end;
}

/* name="value", of the root only */
static bool scan_attribute(struct scan *s)
{
    size_t n = name_length(++s->at, s->end);
    if (n == 0 || s->end - s->at < (ptrdiff_t)n + 2 || memcmp(s->at + n, "=\"", 2) != 0) return false;
    for (s->at += n + 2; s->at < s->end && *s->at != '"'; s->at++)
        if (*s->at < ' ' || *s->at > '~' || *s->at == '<' || *s->at == '&') return false;
    return s->at++ < s->end;
}

static bool scan_begin(struct scan *s)
{
    const char *name = ++s->at;
    size_t n = name_length(name, s->end);
    if (n == 0 || n >= S3_PLAIN_NAME || s->depth == S3_PLAIN_DEPTH) return false;
    s->at += n;
    if (s->depth == 0 && s->at < s->end && *s->at == ' ' && !scan_attribute(s)) return false;
    s->open[s->depth].name = name;
    s->open[s->depth++].n = n;
    return s->at < s->end && *s->at++ == '>';
}

static bool scan_end(struct scan *s)
{
    const char *name = s->at + 2;
    RP_ASSERT(s->depth > 0);
    size_t n = s->open[--s->depth].n;
    if ((size_t)(s->end - name) <= n || memcmp(name, s->open[s->depth].name, n) != 0) return false;
    s->at = name + n;
    return *s->at++ == '>';
}

bool rp_s3_is_plain(const char *xml, size_t n)
{
    struct scan s = { .at = xml, .end = xml + n };
    s.at = skip_declaration(s.at, s.end);
    if (s.at == s.end || *s.at != '<' || !scan_begin(&s)) return false;
    while (s.depth > 0) {
        if (!scan_text(&s)) return false;
        const bool ends = s.end - s.at > 1 && s.at[1] == '/';
        if (!(ends ? scan_end(&s) : scan_begin(&s))) return false;
    }
    return skip_blanks(s.at, s.end) == s.end;
}

/* ---- what is in it ---- */

static int give_text(const char *at, const char *end, const struct s3_plain_fns *fns, void *ctx)
{
    int r = 0;
    while (r >= 0 && at < end) {
        const char *stop = memchr(at, '&', (size_t)(end - at));
        if (stop == at) {
            const struct reference *ref = find_reference(at, end);
            RP_ASSERT(ref != NULL);
            r = fns->text(ctx, &ref->c, 1);
            at += ref->n;
            continue;
        }
        if (stop == NULL) stop = end;
        r = fns->text(ctx, at, (size_t)(stop - at));
        at = stop;
    }
    return r;
}

static int give_begin(const char *at, const char *end, const struct s3_plain_fns *fns, void *ctx)
{
    char name[S3_PLAIN_NAME];
    const size_t n = name_length(at, end);
    RP_ASSERT(n > 0 && n < sizeof name);
    memcpy(name, at, n);
    name[n] = '\0';
    return fns->begin(ctx, name);
}

int rp_s3_plain_walk(const char *xml, size_t n, const struct s3_plain_fns *fns, void *ctx)
{
    const char *end = xml + n, *at = skip_declaration(xml, end);
    int r = 0;
    while (r >= 0) {
        const char *tag = memchr(at, '<', (size_t)(end - at));
        if (tag == NULL) return 0; /* blanks behind the root */
        if (tag > at && (r = give_text(at, tag, fns, ctx)) < 0) return r;
        r = tag[1] == '/' ? fns->end(ctx) : give_begin(tag + 1, end, fns, ctx);
        const char *close = memchr(tag, '>', (size_t)(end - tag));
        RP_ASSERT(close != NULL);
        at = close + 1;
    }
    return r;
}
