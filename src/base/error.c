/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

struct entry {
    const char *slug;
    int http, exit_code;
    bool retry;
    unsigned fault;
    const char *title;
};

static const struct entry entries[RP_ERROR_COUNT] = {
#define X(code, slug, http, exit_code, retry, fault, title)                                                            \
    [IDX_##code] = { slug, http, exit_code, retry, fault, title },
    RP_ERRORS(X)
#undef X
};

static const struct entry success = { "ok", 200, 0, false, 0, "done" };

/* A number that is no code of ours can only have come from outside the table: it reads as
 * "failed". */
static const struct entry *entry_of(int code)
{
    if (code == RP_OK) return &success;
    if (code > 0 || code < -(int)RP_ERROR_COUNT) return &entries[IDX_RP_EFAILED];
    return &entries[-(code + 1)];
}

const char *rp_error_slug(int code)
{
    return entry_of(code)->slug;
}

const char *rp_error_title(int code)
{
    return entry_of(code)->title;
}

int rp_error_http(int code)
{
    return entry_of(code)->http;
}

int rp_error_exit(int code)
{
    return entry_of(code)->exit_code;
}

bool rp_error_retry(int code)
{
    return entry_of(code)->retry;
}

unsigned rp_error_fault(int code)
{
    return entry_of(code)->fault;
}

/* After a cut: drop a character that lost its last bytes, so that a text that was valid UTF-8 stays
 * so. */
static size_t drop_partial(char *text, size_t len)
{
    size_t lead = len;
    while (lead > 0 && ((unsigned char)text[lead - 1] & 0xC0) == 0x80)
        lead--;
    if (lead == 0) return len;
    unsigned char c = (unsigned char)text[lead - 1];
    size_t whole = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
    if (c >= 0xC0 && len - (lead - 1) < whole) len = lead - 1;
    text[len] = '\0';
    return len;
}

static size_t append(char *to, size_t cap, size_t at, const char *text)
{
    size_t n = strlen(text), room = cap - 1 - at, take = n < room ? n : room;
    memcpy(to + at, text, take);
    to[at + take] = '\0';
    return take == n ? at + n : drop_partial(to, at + take);
}

static size_t format(char *to, size_t cap, const char *fmt, va_list args)
{
    int n = vsnprintf(to, cap, fmt, args);
    if (n < 0) return append(to, cap, 0, "(a text that cannot be formatted)");
    return (size_t)n < cap ? (size_t)n : drop_partial(to, cap - 1);
}

/* Everything is formatted aside first: an argument may be the very text that is being replaced. */
static int set(struct rp_error *err, int code, const char *hint, const char *fmt, va_list args)
{
    RP_ASSERT(code < 0);
    if (err == NULL) return code;
    char text[sizeof err->text], hint_text[sizeof err->hint];
    format(text, sizeof text, fmt, args);
    append(hint_text, sizeof hint_text, 0, hint);
    err->code = code;
    memcpy(err->text, text, sizeof text);
    memcpy(err->hint, hint_text, sizeof hint_text);
    return code;
}

int rp_error_set(struct rp_error *err, int code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    set(err, code, "", fmt, args);
    va_end(args);
    return code;
}

int rp_error_advise(struct rp_error *err, int code, const char *hint, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    set(err, code, hint, fmt, args);
    va_end(args);
    return code;
}

int rp_error_wrap(struct rp_error *err, int code, const char *fmt, ...)
{
    RP_ASSERT(code < 0);
    if (err == NULL) return code;
    char text[sizeof err->text];
    va_list args;
    va_start(args, fmt);
    size_t len = format(text, sizeof text, fmt, args);
    va_end(args);
    len = append(text, sizeof text, len, ": ");
    append(text, sizeof text, len, err->text[0] != '\0' ? err->text : rp_error_title(code));
    err->code = code;
    memcpy(err->text, text, sizeof text);
    return code;
}

int rp_error_hint(struct rp_error *err, const char *fmt, ...)
{
    if (err == NULL) return RP_EFAILED;
    char hint[sizeof err->hint];
    va_list args;
    va_start(args, fmt);
    format(hint, sizeof hint, fmt, args);
    va_end(args);
    memcpy(err->hint, hint, sizeof hint);
    return err->code;
}

static int code_of_errno(int errno_value)
{
    switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
        return RP_ENOTFOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return RP_EDENIED;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return RP_EFULL;
    case ENOMEM:
        return RP_ENOMEM;
    case EEXIST:
        return RP_EEXISTS;
    case ELOOP:
    case EINVAL:
    case ENAMETOOLONG:
        return RP_EINVAL;
    default:
        return RP_EUNAVAILABLE;
    }
}

int rp_error_errno(struct rp_error *err, int errno_value, const char *fmt, ...)
{
    int code = code_of_errno(errno_value);
    if (err == NULL) return code;
    char text[sizeof err->text], words[128];
    va_list args;
    va_start(args, fmt);
    size_t len = format(text, sizeof text, fmt, args);
    va_end(args);
    len = append(text, sizeof text, len, ": ");
    append(text, sizeof text, len, strerror_r(errno_value, words, sizeof words));
    err->code = code;
    memcpy(err->text, text, sizeof text);
    err->hint[0] = '\0';
    return code;
}

int rp_error_copy(struct rp_error *err, const struct rp_error *why)
{
    if (err != NULL) *err = *why;
    return why->code;
}

void rp_error_clear(struct rp_error *err)
{
    if (err == NULL) return;
    err->code = RP_OK;
    err->text[0] = '\0';
    err->hint[0] = '\0';
}
