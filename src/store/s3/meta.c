/* SPDX-License-Identifier: Apache-2.0 */
#include "store/s3/meta.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/text/hex.h"
#include "base/text/utf8.h"
#include "store/meta.h"
#include "store/s3/wire/sign.h"

#define ENCODED       "UTF-8''"
#define NAMES_FIELD   "reprieve-names"
#define NO_TYPE       "binary/octet-stream"
#define VALUE_MAX     ((size_t)64 << 10)
#define ANSWER_FIELDS ((size_t)1024) /* an answer's headers are bounded in bytes; this bounds the fields among them */

static int no_memory(struct rp_error *err)
{
    return rp_error_set(err, RP_ENOMEM, "no memory for an object's metadata");
}

/* ---- values ---- */

static bool is_printable(char c)
{
    return c >= ' ' && c <= '~';
}

static bool is_plain(const char *value)
{
    size_t n = strlen(value);
    if (n == 0 || value[0] == ' ' || value[n - 1] == ' ' || strncasecmp(value, ENCODED, strlen(ENCODED)) == 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_printable(value[i]) || (value[i] == ' ' && value[i + 1] == ' ')) return false;
    return true;
}

static bool is_kept(char c, const char *but)
{
    return is_printable(c) && !strchr(but, c);
}

/* The text with every byte that is not printable, or one of `but`, as `with` and two hex digits. */
static char *escape(struct rp_arena *arena, const char *start, const char *text, char with, const char *but)
{
    size_t room = strlen(start) + 3 * strlen(text) + 1;
    char *out = rp_arena_alloc(arena, room), *at = out;
    if (!out) return NULL;
    at += sprintf(at, "%s", start);
    for (; *text; text++) {
        if (is_kept(*text, but))
            *at++ = *text;
        else
            at += sprintf(at, "%c%02X", with, (unsigned)(unsigned char)*text);
    }
    *at = '\0';
    return out;
}

/* NULL: this is no such encoding, or not of UTF-8 without NUL. */
static char *unescape(struct rp_arena *arena, const char *text, size_t n, char with)
{
    char *out = rp_arena_copy(arena, text, n);
    const int64_t length = out ? rp_unescape(out, with, false) : -1;
    if (length < 0 || memchr(out, '\0', (size_t)length)) return NULL;
    return rp_utf8_valid(out, (size_t)length) ? out : NULL;
}

static char *from_latin(struct rp_arena *arena, const char *value, size_t n)
{
    char *out = rp_arena_alloc(arena, 2 * n + 1), *at = out;
    if (!out) return NULL;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)value[i];
        if (c < 0x80) {
            *at++ = (char)c;
        } else {
            *at++ = (char)(0xc0 | c >> 6);
            *at++ = (char)(0x80 | (c & 0x3f));
        }
    }
    *at = '\0';
    return out;
}

/* M1 and M3 backwards; NULL: no memory. */
static const char *value_read(struct rp_arena *arena, const char *value, size_t n)
{
    size_t start = strlen(ENCODED);
    if (n >= start && strncasecmp(value, ENCODED, start) == 0) {
        const char *decoded = unescape(arena, value + start, n - start, '%');
        if (decoded) return decoded;
    }
    return rp_utf8_valid(value, n) ? rp_arena_copy(arena, value, n) : from_latin(arena, value, n);
}

/* ---- names ---- */

static const char *const annotations[] = { "marked_for_deletion", "marked_for_deletion_on", "delete_after",
                                           "deletion_reason" };

static bool is_simple(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

/* What a server may make of it: what two names must not share. */
static char folded(char c)
{
    return is_simple(c) ? c : '-';
}

static bool same_folded(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (folded(*a) != folded(*b)) return false;
    return *a == *b;
}

const char *rp_s3_annotation(const char *name)
{
    for (size_t i = 0; i < sizeof annotations / sizeof *annotations; i++)
        if (same_folded(name, annotations[i])) return annotations[i];
    return NULL;
}

static bool is_annotation(const char *name)
{
    const char *found = rp_s3_annotation(name);
    return found && strcmp(found, name) == 0;
}

static bool is_simple_name(const char *name)
{
    while (is_simple(*name))
        name++;
    return *name == '\0';
}

static const char *header_name(struct rp_arena *arena, const char *name)
{
    char *header = rp_arena_fmt(arena, S3_META_PREFIX "%s", name);
    for (char *at = header; at && *at; at++)
        if (!is_simple(*at) && *at != '_' && *at != '.') *at = '-';
    return header;
}

/* ---- to a request ---- */

int rp_s3_headers_add(struct s3_headers *headers, const char *name, const char *value, struct rp_error *err)
{
    if (headers->n == S3_HEADERS_MAX)
        return rp_error_set(err, RP_ETOOBIG, "an object has more than %d headers", S3_HEADERS_MAX);
    headers->pairs[headers->n++] = (struct rp_pair){ name, value };
    return 0;
}

static int check_names(const struct rp_meta *meta, struct rp_error *err)
{
    for (size_t i = 0; i < meta->n_user; i++) {
        bool clash = same_folded(meta->user[i].name, NAMES_FIELD);
        for (size_t j = 0; j < i && !clash; j++)
            clash = same_folded(meta->user[i].name, meta->user[j].name);
        if (!clash) continue;
        return rp_error_advise(err, RP_EINVAL, "use names that differ in more than punctuation",
                               "metadata '%.64s' looks like another field in the headers of S3", meta->user[i].name);
    }
    return 0;
}

static int add_user(struct s3_headers *headers, const struct rp_pair *field, struct rp_arena *arena,
                    struct rp_error *err)
{
    const char *name = header_name(arena, field->name);
    const char *value = is_plain(field->value) ? field->value : escape(arena, ENCODED, field->value, '%', "% ");
    return name && value ? rp_s3_headers_add(headers, name, value, err) : no_memory(err);
}

static int add_names(struct s3_headers *headers, const struct rp_meta *meta, struct rp_arena *arena,
                     struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf names = RP_BUF(VALUE_MAX);
    for (size_t i = 0; i < meta->n_user; i++) {
        const char *name = meta->user[i].name;
        if (is_simple_name(name) || is_annotation(name)) continue;
        const char *spelled = escape(arena, names.len ? "," : "", name, '%', "% ,");
        if (!spelled || rp_buf_str(&names, spelled) < 0) return no_memory(err);
    }
    if (names.len == 0) return 0;
    const char *value = rp_arena_strdup(arena, rp_buf_text(&names));
    return value ? rp_s3_headers_add(headers, S3_META_PREFIX NAMES_FIELD, value, err) : no_memory(err);
}

static int add_header(struct s3_headers *headers, const struct rp_pair *header, struct rp_error *err)
{
    if (rp_s3_has_control(header->value))
        return rp_error_set(err, RP_EINVAL, "header '%s' has a control character", header->name);
    return header->value[0] ? rp_s3_headers_add(headers, header->name, header->value, err) : 0;
}

int rp_s3_headers_meta(struct s3_headers *headers, const struct rp_meta *meta, struct rp_arena *arena,
                       struct rp_error *err)
{
    int r = meta ? check_names(meta, err) : 0;
    for (size_t i = 0; r == 0 && meta && i < meta->n_headers; i++)
        r = add_header(headers, &meta->headers[i], err);
    for (size_t i = 0; r == 0 && meta && i < meta->n_user; i++)
        r = add_user(headers, &meta->user[i], arena, err);
    return r < 0 || !meta ? r : add_names(headers, meta, arena, err);
}

/* ---- from an answer ---- */

struct field {
    const char *name, *value;
    size_t name_n, value_n;
};

/* The next header of an answer; false at the end. */
static bool next_field(const char **at, struct field *out)
{
    const char *end = strchr(*at, '\n'), *colon = end ? memchr(*at, ':', (size_t)(end - *at)) : NULL;
    if (!end) return false;
    if (!colon) colon = end;
    const char *value = colon < end ? colon + 1 : end;
    while (value < end && *value == ' ')
        value++;
    *out = (struct field){ *at, value, (size_t)(colon - *at), (size_t)(end - value) };
    *at = end + 1;
    return true;
}

static bool field_is(const struct field *field, const char *name)
{
    return field->name_n == strlen(name) && memcmp(field->name, name, field->name_n) == 0;
}

static bool is_object_header(const struct field *field)
{
    return field->value_n > 0 && rp_meta_is_header(field->name, field->name_n);
}

static bool is_no_type(const struct field *field)
{
    return field_is(field, "content-type") && field->value_n == strlen(NO_TYPE) &&
           memcmp(field->value, NO_TYPE, field->value_n) == 0;
}

static bool is_user_field(const struct field *field)
{
    size_t n = strlen(S3_META_PREFIX);
    return field->name_n > n && memcmp(field->name, S3_META_PREFIX, n) == 0;
}

/* M2 backwards: the name as it was given, if the list of names or the annotations have it. */
static const char *name_read(struct rp_arena *arena, const struct field *field, const char *names)
{
    size_t prefix = strlen(S3_META_PREFIX);
    const char *name = rp_arena_copy(arena, field->name + prefix, field->name_n - prefix);
    if (name && rp_s3_annotation(name)) return rp_s3_annotation(name);
    for (const char *at = names; name && *at;) {
        size_t n = strcspn(at, ",");
        const char *spelled = unescape(arena, at, n, '%');
        if (spelled && same_folded(name, spelled)) return spelled;
        at += n + (at[n] == ',');
    }
    return name;
}

static const char *names_of(const struct rp_buf *answer, struct rp_arena *arena)
{
    struct field field;
    for (const char *at = rp_buf_text(answer); next_field(&at, &field);)
        if (field_is(&field, S3_META_PREFIX NAMES_FIELD)) return rp_arena_copy(arena, field.value, field.value_n);
    return "";
}

static size_t count_fields(const struct rp_buf *answer)
{
    struct field field;
    size_t n = 0;
    for (const char *at = rp_buf_text(answer); next_field(&at, &field);)
        n += is_object_header(&field) || is_user_field(&field);
    return n;
}

int rp_s3_meta_read(const struct rp_buf *answer, struct rp_arena *arena, struct rp_meta *out, struct rp_error *err)
{
    size_t n = count_fields(answer), n_headers = 0, n_user = 0;
    if (n > ANSWER_FIELDS) return rp_error_set(err, RP_ETOOBIG, "the object has %zu metadata fields", n);
    const char *names = names_of(answer, arena);
    struct rp_pair *headers = rp_arena_array(arena, n + 1, sizeof *headers);
    struct rp_pair *user = rp_arena_array(arena, n + 1, sizeof *user);
    if (!names || !headers || !user) return no_memory(err);
    struct field field;
    for (const char *at = rp_buf_text(answer); next_field(&at, &field);) {
        struct rp_pair *pair;
        if (is_object_header(&field) && !is_no_type(&field)) {
            pair = &headers[n_headers++];
            pair->name = rp_arena_copy(arena, field.name, field.name_n);
            pair->value = rp_utf8_valid(field.value, field.value_n) ? rp_arena_copy(arena, field.value, field.value_n)
                                                                    : from_latin(arena, field.value, field.value_n);
        } else if (is_user_field(&field) && !field_is(&field, S3_META_PREFIX NAMES_FIELD)) {
            pair = &user[n_user++];
            pair->name = name_read(arena, &field, names);
            pair->value = value_read(arena, field.value, field.value_n);
        } else {
            continue;
        }
        if (!pair->name || !pair->value) return no_memory(err);
    }
    *out = (struct rp_meta){ headers, n_headers, user, n_user };
    return 0;
}

int rp_s3_headers_again(struct s3_headers *headers, const struct rp_buf *answer,
                        bool (*skip)(void *ctx, const char *name), void *ctx, struct rp_arena *arena,
                        struct rp_error *err)
{
    struct field field;
    for (const char *at = rp_buf_text(answer); next_field(&at, &field);) {
        bool user = is_user_field(&field);
        if (!user && !is_object_header(&field)) continue;
        const char *read = user ? name_read(arena, &field, "") : "";
        const char *name = rp_arena_copy(arena, field.name, field.name_n);
        const char *value = rp_arena_copy(arena, field.value, field.value_n);
        if (!read || !name || !value) return no_memory(err);
        if (user && skip && skip(ctx, read)) continue;
        int r = rp_s3_headers_add(headers, name, value, err);
        if (r < 0) return r;
    }
    return 0;
}

/* ---- tags ---- */

#define TAG_ENCODED   "=utf-8="
#define TAG_VALUE_MAX 256

static bool is_tag_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr(" +-._:/@", c));
}

static const char *tag_write(struct rp_arena *arena, const char *value)
{
    const char *c = value;
    while (is_tag_byte(*c))
        c++;
    if (*c == '\0') return value;
    return escape(arena, TAG_ENCODED, value, '=', "!\"#$%&'()*,;<=>?[\\]^`{|}~");
}

static const char *tag_read(struct rp_arena *arena, const char *value)
{
    size_t start = strlen(TAG_ENCODED);
    if (strncmp(value, TAG_ENCODED, start) != 0) return value;
    const char *decoded = unescape(arena, value + start, strlen(value + start), '=');
    return decoded ? decoded : value;
}

/* The tag that a change leaves: none (NULL name) if the field is to be away and is nowhere else
 * either. */
static int changed_tag(const struct rp_pair *change, const struct rp_meta *stored, struct rp_arena *arena,
                       struct rp_pair *out, struct rp_error *err)
{
    *out = (struct rp_pair){ 0 };
    if (!change->value) {
        if (rp_pair_find(stored->user, stored->n_user, change->name)) *out = (struct rp_pair){ change->name, "" };
        return 0;
    }
    /* An empty value would say that the field is not there. */
    const char *value = change->value[0] ? tag_write(arena, change->value) : TAG_ENCODED;
    if (!value) return no_memory(err);
    if (strlen(value) > TAG_VALUE_MAX)
        return rp_error_set(err, RP_ETOOBIG, "annotation '%s' is longer than the %d characters of a tag", change->name,
                            TAG_VALUE_MAX);
    *out = (struct rp_pair){ change->name, value };
    return 0;
}

static int push_tag(struct rp_pair out[S3_TAGS_MAX], size_t *n_out, const struct rp_pair *tag, struct rp_error *err)
{
    if (*n_out == S3_TAGS_MAX)
        return rp_error_advise(err, RP_ETOOBIG, "remove some of its tags, or turn annotations off for this store",
                               "the object has too many tags for an annotation; S3 allows %d", S3_TAGS_MAX);
    out[(*n_out)++] = *tag;
    return 0;
}

int rp_s3_tags_change(const struct rp_pair *tags, size_t n_tags, const struct rp_meta *stored,
                      const struct rp_pair *changes, size_t n_changes, struct rp_arena *arena,
                      struct rp_pair out[S3_TAGS_MAX], size_t *n_out, struct rp_error *err)
{
    int r = 0;
    *n_out = 0;
    for (size_t i = 0; r == 0 && i < n_tags; i++)
        if (!rp_pair_find(changes, n_changes, tags[i].name)) r = push_tag(out, n_out, &tags[i], err);
    for (size_t i = 0; r == 0 && i < n_changes; i++) {
        struct rp_pair tag;
        RP_ASSERT(is_annotation(changes[i].name));
        if (rp_pair_find(changes, n_changes, changes[i].name) != &changes[i]) continue;
        r = changed_tag(&changes[i], stored, arena, &tag, err);
        if (r == 0 && tag.name) r = push_tag(out, n_out, &tag, err);
    }
    return r;
}

/* `user` has room for one more of each annotation. */
static void merge_one(struct rp_pair *user, size_t *n, const char *name, const char *value)
{
    size_t i = 0;
    while (i < *n && strcmp(user[i].name, name) != 0)
        i++;
    if (value) {
        user[i] = (struct rp_pair){ name, value };
        if (i == *n) (*n)++;
    } else if (i < *n) {
        user[i] = user[--*n];
    }
}

int rp_s3_tags_merge(struct rp_meta *meta, const struct rp_pair *tags, size_t n_tags, struct rp_arena *arena,
                     struct rp_error *err)
{
    size_t n = meta->n_user;
    struct rp_pair *user = rp_arena_array(arena, n + sizeof annotations / sizeof *annotations, sizeof *user);
    if (!user) return no_memory(err);
    if (n > 0) memcpy(user, meta->user, n * sizeof *user);
    for (size_t i = 0; i < n_tags; i++) {
        if (!is_annotation(tags[i].name)) continue;
        const char *value = tags[i].value[0] ? tag_read(arena, tags[i].value) : NULL;
        merge_one(user, &n, tags[i].name, value);
    }
    meta->user = user;
    meta->n_user = n;
    return 0;
}
