/* SPDX-License-Identifier: Apache-2.0 */
#include "db/dialect.h"

#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/text/hex.h"
#include "db/db.h"

#define ARGS_MAX 24

static const char rows_words[] = "VALUES @ROWS";

struct span {
    const char *p;
    size_t n;
};

struct translation {
    const struct rp_dialect *table;
    const char *sign;
    size_t n_fixed, n_rows;
    const char *row_types;
    struct rp_buf *out;
};

const char *rp_dialect_text(const struct rp_dialect *table, const char *name, size_t n)
{
    const struct rp_dialect *d = table;
    while (d->name != NULL && (strlen(d->name) != n || memcmp(d->name, name, n) != 0))
        d++;
    RP_ASSERT(d->name != NULL);
    return d->text;
}

/* Where the literal, quoted name or comment that begins at `p` ends; `p` itself if none begins
 * there. */
static const char *skip_opaque(const char *p)
{
    const char *end = NULL;
    if (*p == '\'' || *p == '"') {
        end = strchr(p + 1, *p);
        return end != NULL ? end + 1 : p + strlen(p);
    }
    if (p[0] == '-' && p[1] == '-') {
        end = strchr(p, '\n');
        return end != NULL ? end : p + strlen(p);
    }
    if (p[0] == '/' && p[1] == '*') {
        end = strstr(p + 2, "*/");
        return end != NULL ? end + 2 : p + strlen(p);
    }
    return p;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || rp_is_digit(c) || c == '_';
}

static bool is_macro(const char *text, const char *p)
{
    if (p[0] != '@' || p[1] < 'A' || p[1] > 'Z') return false;
    return p == text || (!is_word(p[-1]) && strchr("<>@~!#%^&|?*/+-=", p[-1]) == NULL);
}

static struct span trim(const char *from, const char *to)
{
    while (from < to && strchr(" \t\n", *from) != NULL)
        from++;
    while (to > from && strchr(" \t\n", to[-1]) != NULL)
        to--;
    return (struct span){ from, (size_t)(to - from) };
}

/* `p` stands at the opening bracket; the end is after the closing one. */
static const char *read_args(const char *p, struct span args[ARGS_MAX], size_t *n)
{
    RP_ASSERT(*p == '(');
    const char *close = strchr(p, ')');
    RP_ASSERT(close != NULL);
    *n = 0;
    for (const char *from = p + 1; from <= close;) {
        const char *comma = memchr(from, ',', (size_t)(close - from));
        const char *to = comma != NULL ? comma : close;
        RP_ASSERT(*n < ARGS_MAX);
        args[*n] = trim(from, to);
        RP_ASSERT(args[*n].n > 0);
        (*n)++;
        from = to + 1;
    }
    return close + 1;
}

static void add_repeated(struct rp_buf *out, struct span body, struct span arg)
{
    for (size_t i = 0; i < body.n; i++) {
        if (body.p[i] == '#')
            rp_buf_add(out, arg.p, arg.n);
        else
            rp_buf_char(out, body.p[i]);
    }
}

static void add_with_args(struct rp_buf *out, const char *text, const struct span *args, size_t n)
{
    for (const char *p = text; *p != '\0';) {
        if (*p != '{') {
            rp_buf_char(out, *p++);
            continue;
        }
        const char *close = strchr(p, '}');
        RP_ASSERT(close != NULL);
        if (p[1] == '*') {
            for (size_t i = 2; i < n; i++)
                add_repeated(out, (struct span){ p + 2, (size_t)(close - p - 2) }, args[i]);
        } else {
            size_t which = (size_t)(p[1] - '1');
            RP_ASSERT(which < n);
            rp_buf_add(out, args[which].p, args[which].n);
        }
        p = close + 1;
    }
}

/* Side by side in the list of results, not in FROM: there each array would be copied into a store
 * of its own first, which for few rows costs more than all the rest. */
static void add_arrays(const struct translation *t, size_t width)
{
    const char *unnest = rp_dialect_text(t->table, "UNNEST", strlen("UNNEST"));
    for (size_t i = 1; i <= width; i++)
        rp_buf_fmt(t->out, "%s%s(%s%zu) AS column%zu", i == 1 ? "SELECT " : ", ", unnest, t->sign, t->n_fixed + i, i);
}

static void add_rows(const struct translation *t)
{
    RP_ASSERT(t->row_types != NULL && t->row_types[0] != '\0');
    size_t number = t->n_fixed, width = strlen(t->row_types);
    if (t->n_rows == 0) {
        add_arrays(t, width);
        return;
    }
    for (size_t row = 0; row < t->n_rows; row++) {
        rp_buf_str(t->out, row == 0 ? "VALUES (" : ",(");
        for (size_t i = 0; i < width; i++)
            rp_buf_fmt(t->out, i == 0 ? "%s%zu" : ",%s%zu", t->sign, ++number);
        rp_buf_char(t->out, ')');
    }
}

static const char *add_macro(const struct translation *t, const char *p)
{
    const char *name = p + 1, *end = name;
    while (*end == '_' || (*end >= 'A' && *end <= 'Z'))
        end++;
    const char *text = rp_dialect_text(t->table, name, (size_t)(end - name));
    struct span args[ARGS_MAX];
    size_t n = 0;
    if (strchr(text, '{') != NULL) end = read_args(end, args, &n);
    add_with_args(t->out, text, args, n);
    return end;
}

int rp_dialect_translate(const struct rp_dialect *table, const char *text, size_t n_fixed, const char *row_types,
                         size_t n_rows, struct rp_buf *out, struct rp_error *err)
{
    struct translation t = { table, rp_dialect_text(table, "$", 1), n_fixed, n_rows, row_types, out };
    for (const char *p = text; *p != '\0' && out->failed == 0;) {
        const char *after = skip_opaque(p);
        if (after != p) {
            rp_buf_add(out, p, (size_t)(after - p));
            p = after;
        } else if (strncmp(p, rows_words, strlen(rows_words)) == 0) {
            add_rows(&t);
            p += strlen(rows_words);
        } else if (is_macro(text, p)) {
            p = add_macro(&t, p);
        } else if (p[0] == '$' && rp_is_digit(p[1])) {
            rp_buf_str(out, t.sign);
            p++;
        } else {
            rp_buf_char(out, *p++);
        }
    }
    if (out->failed != 0) return rp_error_set(err, out->failed, "the statement's text does not fit");
    return 0;
}

int rp_db_quote_name(struct rp_buf *out, const char *name, struct rp_error *err)
{
    size_t n = strlen(name);
    if (n == 0) return rp_error_set(err, RP_EINVAL, "a name must not be empty");
    if (n > 63) return rp_error_set(err, RP_EINVAL, "the name \"%.63s...\" is longer than 63 bytes", name);
    rp_buf_char(out, '"');
    for (const char *p = name; *p != '\0'; p++)
        rp_buf_str(out, *p == '"' ? "\"\"" : (char[]){ *p, '\0' });
    rp_buf_char(out, '"');
    if (out->failed != 0) return rp_error_set(err, out->failed, "quote the name \"%s\"", name);
    return 0;
}
