/* SPDX-License-Identifier: Apache-2.0 */
#include "http/content/headers.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/text/hex.h"

#define NAME_SHOWN_BYTES 255 /* of a file name: what file systems take */

/* Digits up to a character that is none; a number too big for any object is the biggest one. */
static const char *read_number(const char *p, int64_t *out, bool *any)
{
    int64_t value = 0;
    *any = false;
    for (; rp_is_digit(*p); p++) {
        int64_t d = *p - '0';
        *any = true;
        value = value > (INT64_MAX - d) / 10 ? INT64_MAX : value * 10 + d;
    }
    *out = value;
    return p;
}

static const char *skip_space(const char *p)
{
    while (*p == ' ' || *p == '\t')
        p++;
    return p;
}

static enum rp_range_kind part(int64_t from, int64_t n, int64_t *first, int64_t *length)
{
    *first = from;
    *length = n;
    return RP_RANGE_PART;
}

enum rp_range_kind rp_range_parse(const char *header, int64_t size_bytes, int64_t *first, int64_t *length)
{
    bool has_from, has_to;
    int64_t from, to;
    *first = 0;
    *length = size_bytes;
    if (header == NULL || strncasecmp(header, "bytes=", 6) != 0) return RP_RANGE_WHOLE;
    const char *p = read_number(skip_space(header + 6), &from, &has_from);
    if (*p != '-') return RP_RANGE_WHOLE;
    p = skip_space(read_number(p + 1, &to, &has_to));
    if (*p != 0 || (!has_from && !has_to) || (has_from && has_to && to < from)) return RP_RANGE_WHOLE;
    if (!has_from) {
        if (to == 0 || size_bytes == 0) return RP_RANGE_IMPOSSIBLE;
        int64_t n = to < size_bytes ? to : size_bytes;
        return part(size_bytes - n, n, first, length);
    }
    if (from >= size_bytes) return RP_RANGE_IMPOSSIBLE;
    int64_t last = has_to && to < size_bytes ? to : size_bytes - 1;
    return part(from, last - from + 1, first, length);
}

/* The quoted text at p is this etag; *end is behind it, NULL if there is none. */
static bool quoted_is(const char *p, const char *etag, const char **end)
{
    const char *close = *p == '"' ? strchr(p + 1, '"') : NULL;
    *end = close != NULL ? close + 1 : NULL;
    return close != NULL && (size_t)(close - p - 1) == strlen(etag) && memcmp(p + 1, etag, strlen(etag)) == 0;
}

bool rp_etag_listed(const char *header, const char *etag)
{
    if (header == NULL || etag[0] == 0) return false;
    const char *p = skip_space(header);
    if (*p == '*') return *skip_space(p + 1) == '\0';
    while (*p != 0) {
        if (p[0] == 'W' && p[1] == '/') p += 2;
        const char *end;
        if (quoted_is(p, etag, &end)) return true;
        if (end == NULL) return false;
        p = skip_space(end);
        if (*p == ',') p = skip_space(p + 1);
    }
    return false;
}

bool rp_etag_same(const char *header, const char *etag)
{
    const char *end;
    return header != NULL && etag[0] != 0 && quoted_is(skip_space(header), etag, &end) && *skip_space(end) == '\0';
}

static const char *last_segment(const char *name)
{
    const char *at = name;
    for (const char *p = name; *p; p++)
        if ((*p == '/' || *p == '\\') && p[1]) at = p + 1;
    return at;
}

/* attr-char of RFC 5987 */
static bool stands_for_itself(unsigned char c)
{
    return (c < 0x80 && isalnum(c)) || (c && strchr("!#$&+-.^_`|~", c));
}

/* What old clients read: ASCII, and nothing that ends the quotes. */
static bool can_be_quoted(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && !strchr("\"\\/%;", c);
}

const char *rp_disposition(const char *name, struct rp_arena *arena)
{
    static const char hex[] = "0123456789ABCDEF";
    char plain[NAME_SHOWN_BYTES + 1], encoded[3 * NAME_SHOWN_BYTES + 1];
    size_t n = 0, m = 0;
    const unsigned char *p = (const unsigned char *)last_segment(name);
    size_t left = strnlen((const char *)p, NAME_SHOWN_BYTES);
    /* Not in the middle of a character. */
    while (left > 0 && (p[left] & 0xc0) == 0x80)
        left--;
    for (size_t i = 0; i < left; i++) {
        unsigned char c = p[i];
        if ((c & 0xc0) != 0x80) plain[n++] = can_be_quoted(c) ? (char)c : '_';
        if (stands_for_itself(c)) {
            encoded[m++] = (char)c;
            continue;
        }
        encoded[m++] = '%';
        encoded[m++] = hex[c >> 4];
        encoded[m++] = hex[c & 15];
    }
    plain[n] = encoded[m] = '\0';
    if (n == 0) return rp_arena_strdup(arena, "attachment");
    return rp_arena_fmt(arena, "attachment; filename=\"%s\"; filename*=UTF-8''%s", plain, encoded);
}

const char *rp_content_type_safe(const char *type)
{
    static const char fallback[] = "application/octet-stream";
    if (type == NULL || type[0] == 0 || strchr(type, '/') == NULL) return fallback;
    for (const unsigned char *p = (const unsigned char *)type; *p; p++)
        if (*p < 0x20 || *p >= 0x7f) return fallback;
    return type;
}

static size_t trimmed(const char **text)
{
    *text = skip_space(*text);
    size_t n = strlen(*text);
    while (n > 0 && ((*text)[n - 1] == ' ' || (*text)[n - 1] == '\t'))
        n--;
    return n;
}

bool rp_content_type_fits(const char *promised, const char *sent)
{
    if (promised == NULL || promised[0] == 0) return true;
    if (sent == NULL) return false;
    size_t n = trimmed(&promised), m = trimmed(&sent);
    return n == m && strncasecmp(promised, sent, n) == 0;
}
