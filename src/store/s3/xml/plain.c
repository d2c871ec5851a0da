/* SPDX-License-Identifier: Apache-2.0 */
#include "store/s3/xml/plain.h"

#include <stdbool.h>
#include <string.h>

#define NOT_PLAIN 1

struct walk {
    const char *at, *end;
    const struct s3_plain_fns *fns;
    void *ctx;
    struct {
        const char *name;
        size_t n;
    } open[S3_PLAIN_DEPTH];
    size_t depth;
};

static bool skip(struct walk *w, const char *text)
{
    const size_t n = strlen(text);
    if ((size_t)(w->end - w->at) < n || memcmp(w->at, text, n) != 0) return false;
    w->at += n;
    return true;
}

static void skip_blanks(struct walk *w)
{
    while (w->at < w->end && (*w->at == ' ' || *w->at == '\n' || *w->at == '\t'))
        w->at++;
}

static int take_reference(struct walk *w)
{
    static const char *const names[] = { "&quot;", "&amp;", "&lt;", "&gt;", "&apos;" };
    static const char characters[] = "\"&<>'";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (skip(w, names[i])) return w->fns->text(w->ctx, &characters[i], 1);
    return NOT_PLAIN;
}

/* "]]>" may not stand in a text, and ">" need not. */
static bool is_text(char c)
{
    return (c >= ' ' && c <= '~' && c != '<' && c != '&' && c != '>' && c != ']') || c == '\n' || c == '\t';
}

/* Up to the next tag. */
static int take_text(struct walk *w)
{
    int r = 0;
    while (r == 0 && w->at < w->end && *w->at != '<') {
        const char *from = w->at;
        while (w->at < w->end && is_text(*w->at))
            w->at++;
        r = w->at > from ? w->fns->text(w->ctx, from, (size_t)(w->at - from)) : take_reference(w);
    }
    return r == 0 && w->at == w->end ? NOT_PLAIN : r;
}

static size_t name_length(const struct walk *w)
{
    const char *at = w->at;
    while (at < w->end &&
           ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9' && at > w->at)))
        at++;
    return (size_t)(at - w->at);
}

/* name="value", of the root only */
static bool skip_attribute(struct walk *w)
{
    const size_t n = name_length(w);
    w->at += n;
    if (n == 0 || !skip(w, "=\"")) return false;
    while (w->at < w->end && *w->at >= ' ' && *w->at <= '~' && !strchr("\"<&", *w->at))
        w->at++;
    return skip(w, "\"");
}

static int take_begin(struct walk *w)
{
    char name[S3_PLAIN_NAME];
    if (!skip(w, "<")) return NOT_PLAIN;
    const size_t n = name_length(w);
    if (n == 0 || n >= sizeof name || w->depth == S3_PLAIN_DEPTH) return NOT_PLAIN;
    memcpy(name, w->at, n);
    name[n] = '\0';
    w->open[w->depth].name = w->at;
    w->open[w->depth].n = n;
    w->at += n;
    if (w->depth++ == 0 && skip(w, " ") && !skip_attribute(w)) return NOT_PLAIN;
    return skip(w, ">") ? w->fns->begin(w->ctx, name) : NOT_PLAIN;
}

static int take_end(struct walk *w)
{
    const size_t n = w->open[--w->depth].n;
    if ((size_t)(w->end - w->at) <= n || memcmp(w->at, w->open[w->depth].name, n) != 0) return NOT_PLAIN;
    w->at += n;
    return skip(w, ">") ? w->fns->end(w->ctx) : NOT_PLAIN;
}

int rp_s3_plain_walk(const char *xml, size_t n, const struct s3_plain_fns *fns, void *ctx)
{
    struct walk w = { .at = xml, .end = xml + n, .fns = fns, .ctx = ctx };
    if (skip(&w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")) skip_blanks(&w);
    int r = take_begin(&w);
    while (r == 0 && w.depth > 0)
        if ((r = take_text(&w)) == 0) r = skip(&w, "</") ? take_end(&w) : take_begin(&w);
    if (r == 0) skip_blanks(&w);
    return r == 0 && w.at < w.end ? NOT_PLAIN : r;
}
