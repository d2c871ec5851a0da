/* SPDX-License-Identifier: Apache-2.0 */
#include "http/route/shape.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "base/text/size.h"
#include "base/text/utf8.h"
#include "base/time.h"

enum side { BODY, QUERY, ANSWER };

/* Where we are, from the inside out; made into text only when something is wrong. */
struct where {
    const struct where *up;
    const char *name; /* NULL: an element */
    size_t index;
};

/* A value that is held against its field. */
struct taking {
    enum side side;
    int64_t now_ms;
    struct rp_error *err;
    const struct rp_field *field;
    json_t *value;
    const struct where *at;
};

static int take_object(const struct taking *t, const struct rp_shape *shape, json_t *object, const struct where *at);

/* ---- words ---- */

static void write_where(struct rp_buf *b, const struct where *at)
{
    if (at == NULL) return;
    write_where(b, at->up);
    if (at->name == NULL)
        rp_buf_fmt(b, "[%zu]", at->index);
    else
        rp_buf_fmt(b, "%s%.*s", b->len > 0 ? "." : "", rp_utf8_cut(at->name, 64), at->name);
}

static void write_found(struct rp_buf *b, const json_t *value)
{
    if (json_is_object(value) || json_is_array(value)) {
        rp_buf_str(b, json_is_object(value) ? "an object" : "a list");
        return;
    }
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF((size_t)1 << 20);
    if (rp_json_write(&text, value) < 0) return;
    size_t n = text.len;
    if (n > 40) { /* cut between characters */
        n = 40;
        while (n > 0 && ((unsigned char)text.data[n] & 0xC0) == 0x80)
            n--;
    }
    rp_buf_add(b, text.data, n);
    if (n < text.len) rp_buf_str(b, "…");
}

static int wrong_at(const struct taking *t, const struct where *at, const json_t *found, const char *expected)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(512);
    write_where(&b, at);
    if (b.len == 0) rp_buf_str(&b, t->side == BODY ? "the body" : t->side == QUERY ? "the query" : "the answer");
    rp_buf_fmt(&b, ": expected %s, found ", expected);
    if (found == NULL)
        rp_buf_str(&b, "nothing");
    else
        write_found(&b, found);
    return rp_error_set(t->err, RP_EINVAL, "%s", rp_buf_text(&b));
}

static int wrong(const struct taking *t, const char *expected)
{
    return wrong_at(t, t->at, t->value, expected);
}

static int out_of_memory(const struct taking *t)
{
    return rp_error_set(t->err, RP_ENOMEM, "out of memory");
}

/* ---- bounds ---- */

bool rp_shape_bounds(const struct rp_field *f, int64_t *least, int64_t *most)
{
    static const struct {
        int64_t least, most;
    } own[] = {
        [RP_FIELD_TEXT] = { 0, 1024 },      [RP_FIELD_INT] = { INT64_MIN, INT64_MAX },
        [RP_FIELD_SIZE] = { 0, INT64_MAX }, [RP_FIELD_DURATION] = { 0, RP_TIME_MAX_MS },
        [RP_FIELD_MAP] = { 0, 64 },         [RP_FIELD_LIST] = { 0, 1000 },
        [RP_FIELD_TEXTS] = { 0, 100 },
    };
    bool given = f->least != 0 || f->most != 0;
    if ((size_t)f->kind >= sizeof own / sizeof own[0]) return false;
    *least = given ? f->least : own[f->kind].least;
    *most = given ? f->most : own[f->kind].most;
    return *least != 0 || *most != 0;
}

/* Answers are as long as they are; only what comes in is bounded. */
static bool within(const struct taking *t, int64_t n)
{
    int64_t least = 0, most = 0;
    return t->side == ANSWER || !rp_shape_bounds(t->field, &least, &most) || (n >= least && n <= most);
}

static int out_of_bounds(const struct taking *t, const char *of)
{
    char text[120];
    int64_t least = 0, most = 0;
    rp_shape_bounds(t->field, &least, &most);
    if (most == INT64_MAX)
        (void)snprintf(text, sizeof text, "%s from %" PRId64 " on", of, least);
    else
        (void)snprintf(text, sizeof text, "%s from %" PRId64 " to %" PRId64, of, least, most);
    return wrong(t, text);
}

/* ---- one function a kind: 0 and the value that takes the old one's place in *out, or *out
 * untouched ---- */

typedef int take_fn(const struct taking *t, json_t **out);

static int take_text(const struct taking *t, json_t **out)
{
    (void)out;
    if (!json_is_string(t->value)) return wrong(t, "a text");
    if (within(t, (int64_t)json_string_length(t->value))) return 0;
    return out_of_bounds(t, "a text with a number of bytes");
}

static int given_int(const struct taking *t, int64_t n, const char *of, json_t **out)
{
    if (!within(t, n)) return out_of_bounds(t, of);
    *out = json_integer(n);
    return *out == NULL ? out_of_memory(t) : 0;
}

static bool text_is_int(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    if (!isdigit((unsigned char)text[text[0] == '-'])) return false;
    *out = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0';
}

static int take_int(const struct taking *t, json_t **out)
{
    int64_t n = json_integer_value(t->value);
    if (t->side == QUERY ? !text_is_int(json_string_value(t->value), &n) : !json_is_integer(t->value))
        return wrong(t, "a whole number");
    return given_int(t, n, "a number", out);
}

static int take_size(const struct taking *t, json_t **out)
{
    int64_t n = json_integer_value(t->value);
    bool fits = json_is_integer(t->value) && n >= 0;
    if (json_is_string(t->value) && t->side != ANSWER) fits = rp_size_parse(json_string_value(t->value), &n, NULL) == 0;
    if (!fits) return wrong(t, "bytes: a number, or a text such as \"10MiB\"");
    return given_int(t, n, "bytes", out);
}

static int take_bool(const struct taking *t, json_t **out)
{
    if (t->side != QUERY) return json_is_boolean(t->value) ? 0 : wrong(t, "true or false");
    const char *text = json_string_value(t->value);
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0) return wrong(t, "true or false");
    *out = json_boolean(text[0] == 't');
    return 0;
}

static int take_time(const struct taking *t, json_t **out)
{
    int64_t ms;
    if (!json_is_string(t->value) || rp_time_parse(json_string_value(t->value), &ms, NULL) < 0)
        return wrong(t, "a moment such as 2026-11-15T05:02:54Z");
    return given_int(t, ms, "a moment", out);
}

static int take_duration(const struct taking *t, json_t **out)
{
    int64_t ms;
    if (!json_is_string(t->value) || rp_duration_parse(json_string_value(t->value), &ms, NULL) < 0)
        return wrong(t, "a duration such as 5d");
    return given_int(t, ms, "a duration in milliseconds", out);
}

static int take_when(const struct taking *t, json_t **out)
{
    int64_t ms;
    if (t->side == ANSWER) return take_time(t, out);
    if (!json_is_string(t->value) || rp_time_parse_when(json_string_value(t->value), t->now_ms, -1, &ms, NULL) < 0)
        return wrong(t, "a moment such as 2026-11-15T05:02:54Z, or how long ago, such as 2d");
    return given_int(t, ms, "a moment", out);
}

static const char *id_example(enum rp_id_kind kind, char out[40])
{
    char id[RP_ID_TEXT];
    (void)snprintf(out, 40, "an id such as %.4s…", rp_id_format(kind, 0, id));
    return out;
}

static int take_id(const struct taking *t, json_t **out)
{
    enum rp_id_kind kind;
    int64_t id;
    char example[40];
    if (!json_is_string(t->value) || !rp_id_parse(json_string_value(t->value), &kind, &id) || kind != t->field->id)
        return wrong(t, id_example(t->field->id, example));
    *out = json_integer(id);
    return *out == NULL ? out_of_memory(t) : 0;
}

static int take_sha256(const struct taking *t, json_t **out)
{
    char lower[65];
    const char *text = json_string_value(t->value);
    if (text == NULL || json_string_length(t->value) != 64 || strspn(text, "0123456789abcdefABCDEF") != 64)
        return wrong(t, "a SHA-256 in 64 hex digits");
    for (size_t i = 0; i < sizeof lower; i++)
        lower[i] = (char)tolower((unsigned char)text[i]);
    *out = json_string(lower);
    return *out == NULL ? out_of_memory(t) : 0;
}

static int take_choice(const struct taking *t, json_t **out)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf list = RP_BUF(400);
    const char *text = json_string_value(t->value);
    (void)out;
    for (size_t i = 0; t->field->choices[i] != NULL; i++) {
        if (text != NULL && strcmp(text, t->field->choices[i]) == 0) return 0;
    }
    for (size_t i = 0; t->field->choices[i] != NULL; i++)
        rp_buf_fmt(&list, "%s%s", i == 0 ? "" : t->field->choices[i + 1] == NULL ? " or " : ", ", t->field->choices[i]);
    return wrong(t, rp_buf_text(&list));
}

static int take_map(const struct taking *t, json_t **out)
{
    const char *name;
    json_t *member;
    (void)out;
    if (!json_is_object(t->value)) return wrong(t, "an object whose values are texts");
    if (!within(t, (int64_t)json_object_size(t->value))) return out_of_bounds(t, "a number of members");
    json_object_foreach(t->value, name, member)
    {
        struct where here = { .up = t->at, .name = name };
        if (strlen(name) == 0 || strlen(name) > RP_SHAPE_MAP_NAME_MAX)
            return wrong_at(t, &here, member, "a name of 1 to 128 bytes");
        if (!json_is_string(member)) return wrong_at(t, &here, member, "a text");
        if (t->side != ANSWER && json_string_length(member) > RP_SHAPE_MAP_VALUE_MAX)
            return wrong_at(t, &here, member, "a text of at most 2048 bytes");
    }
    return 0;
}

static int take_inner(const struct taking *t, json_t **out)
{
    (void)out;
    return take_object(t, t->field->of, t->value, t->at);
}

static int take_list(const struct taking *t, json_t **out)
{
    size_t i;
    json_t *element;
    int r = 0;
    (void)out;
    if (!json_is_array(t->value)) return wrong(t, "a list");
    if (!within(t, (int64_t)json_array_size(t->value))) return out_of_bounds(t, "a number of elements");
    json_array_foreach(t->value, i, element)
    {
        struct where here = { .up = t->at, .index = i };
        r = take_object(t, t->field->of, element, &here);
        if (r < 0) break;
    }
    return r;
}

static json_t *split(const char *text)
{
    json_t *list = json_array();
    for (const char *p = text; *p != '\0'; p += *p == ',') {
        size_t n = strcspn(p, ",");
        if (n > 0) rp_json_append(list, json_stringn(p, n));
        p += n;
    }
    return list;
}

static int take_texts(const struct taking *t, json_t **out)
{
    size_t i;
    json_t *element, *list = t->value;
    if (t->side == QUERY) list = *out = split(json_string_value(t->value)); /* a,b,c */
    if (!json_is_array(list)) return wrong(t, "a list of texts");
    if (!within(t, (int64_t)json_array_size(list))) return out_of_bounds(t, "a number of texts");
    json_array_foreach(list, i, element)
    {
        struct where here = { .up = t->at, .index = i };
        if (!json_is_string(element)) return wrong_at(t, &here, element, "a text");
        if (t->side != ANSWER && json_string_length(element) > 1024)
            return wrong_at(t, &here, element, "a text of at most 1024 bytes");
    }
    return 0;
}

static int take_any(const struct taking *t, json_t **out)
{
    (void)out;
    RP_ASSERT(t->side == ANSWER);
    return 0;
}

static take_fn *const takers[] = {
    [RP_FIELD_TEXT] = take_text,     [RP_FIELD_INT] = take_int,     [RP_FIELD_SIZE] = take_size,
    [RP_FIELD_BOOL] = take_bool,     [RP_FIELD_TIME] = take_time,   [RP_FIELD_DURATION] = take_duration,
    [RP_FIELD_WHEN] = take_when,     [RP_FIELD_ID] = take_id,       [RP_FIELD_SHA256] = take_sha256,
    [RP_FIELD_CHOICE] = take_choice, [RP_FIELD_MAP] = take_map,     [RP_FIELD_OBJECT] = take_inner,
    [RP_FIELD_LIST] = take_list,     [RP_FIELD_TEXTS] = take_texts, [RP_FIELD_ANY] = take_any,
};

/* ---- objects ---- */

static const struct rp_field *field_of(const struct rp_shape *shape, const char *name)
{
    for (size_t i = 0; i < shape->n_fields; i++)
        if (strcmp(shape->fields[i].name, name) == 0) return &shape->fields[i];
    return NULL;
}

static int take_member(const struct taking *t, const struct rp_field *f, json_t *object, json_t *value,
                       const struct where *at)
{
    struct taking member = *t;
    json_t *instead = NULL;
    member.field = f;
    member.value = value;
    member.at = at;
    int r = takers[f->kind](&member, &instead);
    if (r == 0 && instead != NULL && t->side != ANSWER) {
        if (json_object_set(object, f->name, instead) < 0) r = out_of_memory(t);
    }
    json_decref(instead);
    return r;
}

static int unknown(const struct taking *t, const struct rp_shape *shape, const struct where *at)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf path = RP_BUF(512), known = RP_BUF(240);
    write_where(&path, at);
    rp_error_set(t->err, RP_EINVAL, "%s: no such member", rp_buf_text(&path));
    for (size_t i = 0; i < shape->n_fields; i++)
        rp_buf_fmt(&known, "%s%s", i == 0 ? "there are: " : ", ", shape->fields[i].name);
    return rp_error_hint(t->err, "%s", shape->n_fields == 0 ? "it takes none" : rp_buf_text(&known));
}

static int check_required(const struct taking *t, const struct rp_shape *shape, const json_t *object,
                          const struct where *at)
{
    for (size_t i = 0; i < shape->n_fields; i++) {
        const struct rp_field *f = &shape->fields[i];
        struct where here = { .up = at, .name = f->name };
        if (!f->required || json_object_get(object, f->name) != NULL) continue;
        RP_CLEANUP(rp_buf_done) struct rp_buf path = RP_BUF(512);
        write_where(&path, &here);
        return rp_error_set(t->err, RP_EINVAL, "%s: is missing", rp_buf_text(&path));
    }
    return 0;
}

static int take_object(const struct taking *t, const struct rp_shape *shape, json_t *object, const struct where *at)
{
    const char *name;
    json_t *value;
    void *next;
    if (!json_is_object(object)) return wrong_at(t, at, object, "an object");
    json_object_foreach_safe(object, next, name, value)
    {
        const struct rp_field *f = field_of(shape, name);
        struct where here = { .up = at, .name = name };
        if (f == NULL) return unknown(t, shape, &here);
        bool must_be = t->side == ANSWER && f->required && f->kind != RP_FIELD_ANY;
        if (json_is_null(value) && !must_be) { /* S2 */
            if (t->side != ANSWER) json_object_del(object, f->name);
            continue;
        }
        int r = take_member(t, f, object, value, &here);
        if (r < 0) return r;
    }
    return check_required(t, shape, object, at);
}

int rp_shape_take(const struct rp_shape *shape, json_t *object, int64_t now_ms, struct rp_error *err)
{
    struct taking t = { .side = BODY, .now_ms = now_ms, .err = err };
    return take_object(&t, shape, object, NULL);
}

int rp_shape_take_query(const struct rp_shape *shape, json_t *texts, int64_t now_ms, struct rp_error *err)
{
    struct taking t = { .side = QUERY, .now_ms = now_ms, .err = err };
    return take_object(&t, shape, texts, NULL);
}

int rp_shape_check(const struct rp_shape *shape, const json_t *answer, struct rp_error *err)
{
    struct taking t = { .side = ANSWER, .err = err };
    return take_object(&t, shape, (json_t *)answer, NULL); /* which changes nothing on this side */
}

int rp_shape_check_answer(const struct rp_route *route, const json_t *answer, struct rp_error *err)
{
    if (!route->many) return rp_shape_check(route->answer, answer, err);
    const struct rp_field list[] = {
        { .name = "items", .kind = RP_FIELD_LIST, .required = true, .of = route->answer },
        { .name = "next_cursor", .kind = RP_FIELD_TEXT },
    };
    const struct rp_shape page = { .name = "page", .fields = list, .n_fields = 2 };
    return rp_shape_check(&page, answer, err);
}
