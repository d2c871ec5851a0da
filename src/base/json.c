/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/time.h"
#include "base/utf8.h"

/* jansson's own limit is fixed when it is built, and far above ours: nesting is measured before parsing. Text that is
 * not JSON may be measured wrongly; the parser refuses it either way. */
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

int rp_json_parse(const char *text, size_t n, json_t **out, struct rp_error *err)
{
    RP_ASSERT(text != NULL);
    int r = check_depth(text, n, err);
    if (r < 0) return r;
    json_error_t e;
    json_t *value = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    if (value == NULL) {
        /* without memory jansson often says nothing at all */
        bool starved = json_error_code(&e) == json_error_out_of_memory || e.text[0] == '\0';
        if (starved) return rp_error_set(err, RP_ENOMEM, "json: no memory for %zu bytes", n);
        return rp_error_set(err, RP_EINVAL, "json: line %d, column %d: %s", e.line, e.column, e.text);
    }
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
    if (value != NULL && json_dump_callback(value, append, b, JSON_COMPACT | JSON_ENCODE_ANY) == 0) return 0;
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

int rp_json_set(json_t *object, const char *name, json_t *value)
{
    RP_ASSERT(object == NULL || json_is_object(object));
    bool given = object != NULL && value != NULL;
    if (json_object_set_new(object, name, value) == 0) return 0;
    return given && !rp_utf8_valid(name, strlen(name)) ? RP_EINVAL : RP_ENOMEM;
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
