/* SPDX-License-Identifier: Apache-2.0 */
#include "store/meta.h"

#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "base/text/utf8.h"

static const char *const header_names[] = { "content-type",     "cache-control",    "content-disposition",
                                            "content-encoding", "content-language", "expires" };

bool rp_meta_is_header(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof header_names / sizeof *header_names; i++)
        if (strlen(header_names[i]) == n && memcmp(name, header_names[i], n) == 0) return true;
    return false;
}

const struct rp_pair *rp_pair_find(const struct rp_pair *pairs, size_t n, const char *name)
{
    const struct rp_pair *last = NULL;
    for (size_t i = 0; i < n; i++)
        if (strcmp(pairs[i].name, name) == 0) last = &pairs[i];
    return last;
}

static bool is_user_name(const char *name)
{
    for (const char *p = name; *p; p++)
        if (*p >= 'A' && *p <= 'Z') return false;
    return *name != '\0';
}

static int check_pair(const struct rp_pair *pair, bool header, struct rp_error *err)
{
    if (header && !rp_meta_is_header(pair->name, strlen(pair->name)))
        return rp_error_advise(err, RP_EINVAL,
                               "use user metadata for it, or one of: content-type, cache-control, "
                               "content-disposition, content-encoding, content-language, expires",
                               "header '%.64s' is not kept", pair->name);
    if (!header && !is_user_name(pair->name))
        return rp_error_set(err, RP_EINVAL, "metadata name '%.64s' must be lower case and not empty", pair->name);
    if (!rp_utf8_valid(pair->name, strlen(pair->name)) || !rp_utf8_valid(pair->value, strlen(pair->value)))
        return rp_error_set(err, RP_EINVAL, "metadata '%.64s' is not valid UTF-8", pair->name);
    return 0;
}

static int check_pairs(const struct rp_pair *pairs, size_t n, bool header, size_t *bytes, struct rp_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (check_pair(&pairs[i], header, err) < 0) return RP_EINVAL;
        *bytes += strlen(pairs[i].name) + strlen(pairs[i].value);
        for (size_t j = 0; j < i; j++)
            if (strcmp(pairs[i].name, pairs[j].name) == 0)
                return rp_error_set(err, RP_EINVAL, "metadata '%.64s' is given twice", pairs[i].name);
    }
    return 0;
}

bool rp_meta_empty(const struct rp_meta *meta)
{
    return !meta || (meta->n_headers == 0 && meta->n_user == 0);
}

int rp_meta_check(const struct rp_meta *meta, struct rp_error *err)
{
    if (rp_meta_empty(meta)) return 0;
    if (meta->n_headers > RP_META_MAX_PAIRS || meta->n_user > RP_META_MAX_PAIRS - meta->n_headers)
        return rp_error_set(err, RP_ETOOBIG, "more than %d headers and metadata fields", RP_META_MAX_PAIRS);
    size_t bytes = 0;
    if (check_pairs(meta->headers, meta->n_headers, true, &bytes, err) < 0) return RP_EINVAL;
    if (check_pairs(meta->user, meta->n_user, false, &bytes, err) < 0) return RP_EINVAL;
    if (bytes > RP_META_MAX_BYTES)
        return rp_error_set(err, RP_ETOOBIG, "headers and metadata have %zu bytes; %d are allowed", bytes,
                            RP_META_MAX_BYTES);
    return 0;
}

static int no_memory(struct rp_error *err)
{
    return rp_error_set(err, RP_ENOMEM, "no memory for an object's metadata");
}

static int copy_pairs(struct rp_arena *arena, const struct rp_pair *from, size_t n, const struct rp_pair **out)
{
    *out = NULL;
    if (n == 0) return 0;
    struct rp_pair *pairs = rp_arena_array(arena, n, sizeof *pairs);
    if (!pairs) return RP_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        pairs[i].name = rp_arena_strdup(arena, from[i].name);
        pairs[i].value = rp_arena_strdup(arena, from[i].value);
        if (!pairs[i].name || !pairs[i].value) return RP_ENOMEM;
    }
    *out = pairs;
    return 0;
}

int rp_meta_copy(struct rp_arena *arena, const struct rp_meta *from, struct rp_meta *out, struct rp_error *err)
{
    struct rp_meta copy = { 0 };
    if (!rp_meta_empty(from)) {
        copy.n_headers = from->n_headers;
        copy.n_user = from->n_user;
        if (copy_pairs(arena, from->headers, from->n_headers, &copy.headers) < 0) return no_memory(err);
        if (copy_pairs(arena, from->user, from->n_user, &copy.user) < 0) return no_memory(err);
    }
    *out = copy;
    return 0;
}

int rp_meta_change(struct rp_arena *arena, const struct rp_meta *from, const struct rp_pair *changes, size_t n,
                   struct rp_meta *out, struct rp_error *err)
{
    if (n > RP_META_MAX_PAIRS) return rp_error_set(err, RP_ETOOBIG, "more than %d changes", RP_META_MAX_PAIRS);
    struct rp_pair pairs[2 * RP_META_MAX_PAIRS];
    size_t used = 0;
    RP_ASSERT(from->n_user <= RP_META_MAX_PAIRS);
    for (size_t i = 0; i < from->n_user; i++) {
        const struct rp_pair *change = rp_pair_find(changes, n, from->user[i].name);
        if (change && !change->value) continue;
        pairs[used++] = change ? *change : from->user[i];
    }
    for (size_t i = 0; i < n; i++) {
        const struct rp_pair *change = rp_pair_find(changes, n, changes[i].name);
        if (change->value && !rp_pair_find(pairs, used, change->name)) pairs[used++] = *change;
    }
    struct rp_meta changed = { from->headers, from->n_headers, pairs, used };
    int r = rp_meta_check(&changed, err);
    if (r < 0) return r;
    return rp_meta_copy(arena, &changed, out, err);
}

static json_t *pairs_json(const struct rp_pair *pairs, size_t n)
{
    RP_CLEANUP(rp_json_decrefp) json_t *object = json_object();
    for (size_t i = 0; i < n; i++)
        if (!object || rp_json_set(object, pairs[i].name, json_string(pairs[i].value)) < 0) return NULL;
    return json_incref(object);
}

static int digest_of(const json_t *value, char out[RP_DIGEST_HEX], struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(RP_META_TEXT_MAX);
    if (rp_json_write(&text, value) < 0 || rp_digest_of(rp_buf_text(&text), text.len, out) < 0) return no_memory(err);
    return 0;
}

int rp_meta_write(const struct rp_meta *meta, const char *key, struct rp_buf *out, struct rp_error *err)
{
    RP_CLEANUP(rp_json_decrefp) json_t *body = json_object();
    RP_CLEANUP(rp_json_decrefp) json_t *file = json_object();
    if (!body || !file || rp_json_set(body, "key", json_string(key)) < 0 ||
        rp_json_set(body, "headers", pairs_json(meta->headers, meta->n_headers)) < 0 ||
        rp_json_set(body, "user", pairs_json(meta->user, meta->n_user)) < 0)
        return no_memory(err);
    char hex[RP_DIGEST_HEX];
    if (digest_of(body, hex, err) < 0) return RP_ENOMEM;
    if (rp_json_set(file, "sha256", json_string(hex)) < 0 || rp_json_set(file, "object", json_incref(body)) < 0 ||
        rp_json_write(out, file) < 0)
        return no_memory(err);
    return 0;
}

static int parse_pairs(const json_t *object, struct rp_arena *arena, const struct rp_pair **out, size_t *n)
{
    *n = json_object_size(object);
    *out = NULL;
    if (*n == 0) return 0;
    struct rp_pair *pairs = rp_arena_array(arena, *n, sizeof *pairs);
    if (!pairs) return RP_ENOMEM;
    size_t i = 0;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        if (!json_is_string(value)) return RP_ECORRUPT;
        pairs[i].name = rp_arena_strdup(arena, name);
        pairs[i].value = rp_arena_strdup(arena, json_string_value(value));
        if (!pairs[i].name || !pairs[i].value) return RP_ENOMEM;
        i++;
    }
    *out = pairs;
    return 0;
}

static int parse_body(const json_t *body, struct rp_arena *arena, struct rp_meta *out)
{
    const json_t *headers = json_object_get(body, "headers"), *user = json_object_get(body, "user");
    if (!json_is_object(headers) || !json_is_object(user)) return RP_ECORRUPT;
    int r = parse_pairs(headers, arena, &out->headers, &out->n_headers);
    return r < 0 ? r : parse_pairs(user, arena, &out->user, &out->n_user);
}

int rp_meta_parse(const char *text, size_t n, const char *key, struct rp_arena *arena, struct rp_meta *out,
                  struct rp_error *err)
{
    RP_CLEANUP(rp_json_decrefp) json_t *file = NULL;
    int r = rp_json_parse(text, n, &file, err);
    if (r < 0) return rp_error_wrap(err, r == RP_ENOMEM ? r : RP_ECORRUPT, "metadata of '%s'", key);
    const json_t *body = json_object_get(file, "object");
    char hex[RP_DIGEST_HEX];
    struct rp_meta parsed = { 0 };
    if (!body) return rp_error_set(err, RP_ECORRUPT, "metadata of '%s' has no body", key);
    if (digest_of(body, hex, err) < 0) return RP_ENOMEM;
    if (strcmp(hex, rp_json_get_text(file, "sha256", "")) != 0 || strcmp(key, rp_json_get_text(body, "key", "")) != 0)
        return rp_error_set(err, RP_ECORRUPT, "metadata of '%s' does not match its digest", key);
    r = parse_body(body, arena, &parsed);
    if (r == RP_ENOMEM) return no_memory(err);
    if (r < 0 || rp_meta_check(&parsed, NULL) < 0)
        return rp_error_set(err, RP_ECORRUPT, "metadata of '%s' is not of the form that is written here", key);
    *out = parsed;
    return 0;
}
