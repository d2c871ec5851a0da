/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/json.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/text/utf8.h"
#include "base/time.h"

/* jansson's own limit is fixed when it is built, and far above ours: nesting is measured before
 * parsing. Text that is not JSON may be measured wrongly; the parser refuses it either way. */
static int check_depth(const char *text, size_t n, struct rp_error *err)
{
    size_t line = 1, column = 0;
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        column++;
        if (c == '\n') {
            line++;
            column = 0;
        } else if (c == '"') {
            in_string = !in_string;
        } else if (in_string) {
            if (c != '\\') continue;
            i++; /* whatever is escaped does not end the string */
            column++;
        } else if (c == '[' || c == '{') {
            if (++depth > RP_JSON_DEPTH_MAX)
                return rp_error_set(err, RP_EINVAL, "json: line %zu, column %zu: nested deeper than %d", line, column,
                                    RP_JSON_DEPTH_MAX);
        } else if (c == ']' || c == '}') {
            depth--;
        }
    }
    return 0;
}

/* ---- without memory ---- */

/* Of no type that jansson knows, so nothing that contains it can be written or copied; never
 * freed. */
static json_t lost = { .type = (json_type)(JSON_NULL + 1), .refcount = (size_t)-1 };
/* An object that lost its first member when there was no memory for `lost` either. */
static _Thread_local const json_t *bare;

static void lose(json_t *container)
{
    void *first = json_object_iter(container);
    if (json_is_array(container) && json_array_append(container, &lost) < 0) json_array_set(container, 0, &lost);
    if (!json_is_object(container) || json_object_set(container, "lost", &lost) == 0) return;
    if (first != NULL)
        json_object_iter_set(container, first, &lost);
    else
        bare = container;
}

static bool is_bare(const json_t *value)
{
    if (value == NULL || value != bare) return false;
    bare = NULL;
    return true;
}

static void check_bare(json_t *container, const json_t *value)
{
    if (is_bare(container) || is_bare(value)) lose(container);
}

static int lost_one(json_t *container)
{
    lose(container);
    return RP_ENOMEM;
}

int rp_json_set(json_t *object, const char *name, json_t *value)
{
    RP_ASSERT(object == NULL || json_is_object(object));
    bool given = object != NULL && value != NULL;
    check_bare(object, value);
    if (json_object_set_new(object, name, value) == 0) return 0;
    return given && !rp_utf8_valid(name, strlen(name)) ? RP_EINVAL : lost_one(object);
}

json_t *rp_json_object(const char *name, ...)
{
    json_t *object = json_object();
    va_list args;
    va_start(args, name);
    for (; name != NULL; name = va_arg(args, const char *))
        rp_json_set(object, name, va_arg(args, json_t *));
    va_end(args);
    return object;
}

int rp_json_append(json_t *array, json_t *value)
{
    RP_ASSERT(array == NULL || json_is_array(array));
    check_bare(array, value);
    return json_array_append_new(array, value) == 0 ? 0 : lost_one(array);
}

int rp_json_merge(json_t *object, const json_t *other)
{
    check_bare(object, other);
    return json_object_update(object, (json_t *)(uintptr_t)other) == 0 ? 0 : lost_one(object);
}

/* ---- texts ---- */

static _Thread_local bool starved;
static json_malloc_t take;
static json_free_t give;

static void *take_noting(size_t n)
{
    void *p = take(n);
    if (p == NULL) starved = true;
    return p;
}

static void watch_once(void)
{
    json_get_alloc_funcs(&take, &give);
    json_set_alloc_funcs(take_noting, give);
}

/* jansson's parser drops the characters that it has no room for, and says nothing. */
static void watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    RP_ASSERT(pthread_once(&once, watch_once) == 0);
}

int rp_json_parse(const char *text, size_t n, json_t **out, struct rp_error *err)
{
    RP_ASSERT(text != NULL);
    int r = check_depth(text, n, err);
    if (r < 0) return r;
    json_error_t e;
    watch();
    starved = false;
    json_t *value = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    if (starved) {
        json_decref(value);
        return rp_error_set(err, RP_ENOMEM, "json: no memory for %zu bytes", n);
    }
    if (value == NULL) return rp_error_set(err, RP_EINVAL, "json: line %d, column %d: %s", e.line, e.column, e.text);
    *out = value;
    return 0;
}

static int append(const char *bytes, size_t n, void *ctx)
{
    return rp_buf_add(ctx, bytes, n) < 0 ? -1 : 0;
}

int rp_json_write(struct rp_buf *b, const json_t *value)
{
    size_t before = b->len;
    if (b->failed != 0) return b->failed;
    if (value != NULL && !is_bare(value) && json_dump_callback(value, append, b, JSON_COMPACT | JSON_ENCODE_ANY) == 0)
        return 0;
    b->len = before; /* half a value is worse than none */
    if (b->data != NULL) b->data[before] = '\0';
    if (b->failed == 0) b->failed = RP_ENOMEM;
    return b->failed;
}

void rp_json_decrefp(json_t **value)
{
    json_decref(*value);
}

static json_t *repaired(const char *text)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(3 * strlen(text));
    for (const char *p = text; *p != '\0';) {
        size_t n = rp_utf8_length(p, strlen(p));
        if (n > 0) rp_buf_add(&b, p, n);
        if (n == 0) rp_buf_str(&b, "\xEF\xBF\xBD");
        p += n > 0 ? n : 1;
    }
    return b.failed == 0 ? json_stringn(rp_buf_text(&b), b.len) : NULL;
}

json_t *rp_json_text(const char *text)
{
    if (text == NULL) return json_null();
    json_t *value = json_string(text);
    return value != NULL ? value : repaired(text);
}

json_t *rp_json_time(int64_t ms)
{
    char text[RP_TIME_TEXT];
    return json_string(rp_time_format(ms, text));
}

const char *rp_json_get_text(const json_t *object, const char *name, const char *fallback)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : fallback;
}

int64_t rp_json_get_int(const json_t *object, const char *name, int64_t fallback)
{
    const json_t *value = json_object_get(object, name);
    return json_is_integer(value) ? json_integer_value(value) : fallback;
}

int rp_json_quote(struct rp_buf *b, const char *text)
{
    const char *from = text;
    rp_buf_char(b, '"');
    for (const char *at = text;; at++) {
        unsigned char c = (unsigned char)*at;
        if (c >= 0x20 && c != '"' && c != '\\') continue;
        rp_buf_add(b, from, (size_t)(at - from));
        from = at + 1;
        if (c == 0) break;
        if (c == '"' || c == '\\')
            rp_buf_fmt(b, "\\%c", c);
        else
            rp_buf_fmt(b, "\\u%04x", c);
    }
    return rp_buf_char(b, '"');
}
