/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of a few texts: errors, single values, tags. */
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "store/s3/xml/parse.h"
#include "store/s3/xml/xml.h"

/* ---- single texts ---- */

enum { F_CODE, F_MESSAGE, F_REGION, F_ENDPOINT };
static const struct s3_shape fault_shape = {
    .roots = { "Error" },
    .heads = { [F_CODE] = "Code", [F_MESSAGE] = "Message", [F_REGION] = "Region", [F_ENDPOINT] = "Endpoint" },
    .cut = "Message",
};

/* For people and logs: one line, cut between characters. */
static void copy_words(char *to, size_t size, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    if (n >= size)
        for (n = size - 1; n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80;)
            n--;
    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7F ? ' ' : text[i];
    to[n] = '\0';
}

/* Words that are compared or used: whole or not at all. */
static void copy_whole(char *to, size_t size, const char *text)
{
    copy_words(to, size, text && strlen(text) < size ? text : "");
}

void rp_s3_read_fault(const struct rp_buf *xml, struct s3_fault *out)
{
    RP_CLEANUP(rp_s3_texts_done) struct s3_texts heads = { 0 };
    *out = (struct s3_fault){ 0 };
    if (rp_s3_parse(xml, &fault_shape, NULL, NULL, &heads, NULL) < 0) return;
    copy_whole(out->code, sizeof out->code, rp_s3_text(&heads, F_CODE));
    copy_words(out->message, sizeof out->message, rp_s3_text(&heads, F_MESSAGE));
    copy_whole(out->region, sizeof out->region, rp_s3_text(&heads, F_REGION));
    copy_whole(out->endpoint, sizeof out->endpoint, rp_s3_text(&heads, F_ENDPOINT));
}

int rp_s3_read_text(const struct rp_buf *xml, const char *root, const char *element, char *out, size_t size,
                    struct rp_error *err)
{
    RP_CLEANUP(rp_s3_texts_done) struct s3_texts heads = { 0 };
    const struct s3_shape shape = { .roots = { root }, .heads = { element }, .heads_anywhere = true };
    struct s3_fault fault;
    int r = rp_s3_parse(xml, &shape, NULL, NULL, &heads, err);
    if (r == RP_ECORRUPT) {
        rp_s3_read_fault(xml, &fault);
        if (*fault.code != '\0')
            return rp_error_set(err, RP_EFAILED, "the server says %s: %s", fault.code, fault.message);
    }
    const char *text = rp_s3_text(&heads, 0);
    const size_t len = text ? strlen(text) : 0;
    if (r == 0 && len >= size)
        r = rp_error_set(err, RP_ECORRUPT, "<%s> has %zu bytes, more than %zu", element, len, size - 1);
    if (r < 0) return rp_error_wrap(err, r, "the server's %s", root);
    memcpy(out, text ? text : "", len + 1);
    return 0;
}

/* ---- tags ---- */

enum { T_NAME, T_VALUE };
static const struct s3_shape tags_shape = {
    .roots = { "Tagging" },
    .rows = { "Tag" },
    .row_depth = 3,
    .fields = { [T_NAME] = "Key", [T_VALUE] = "Value" },
};
struct tags {
    struct rp_arena *arena;
    struct rp_pair *pairs;
    size_t n;
};

static int keep_tag(void *ctx, int kind, const struct s3_texts *fields, struct rp_error *err)
{
    struct tags *tags = ctx;
    const char *name = rp_s3_text(fields, T_NAME), *value = rp_s3_text(fields, T_VALUE);
    (void)kind;
    if (!name) return rp_error_set(err, RP_ECORRUPT, "a <Tag> without <Key>");
    if (tags->n == RP_META_MAX_PAIRS) return rp_error_set(err, RP_ECORRUPT, "more than %d tags", RP_META_MAX_PAIRS);
    struct rp_pair *pair = &tags->pairs[tags->n++];
    pair->name = rp_arena_strdup(tags->arena, name);
    pair->value = rp_arena_strdup(tags->arena, value ? value : "");
    return pair->name && pair->value ? 0 : rp_error_set(err, RP_ENOMEM, "keep a tag");
}

int rp_s3_read_tags(const struct rp_buf *xml, struct rp_arena *arena, struct rp_pair **out, size_t *n_out,
                    struct rp_error *err)
{
    RP_CLEANUP(rp_s3_texts_done) struct s3_texts heads = { 0 };
    struct tags tags = { .arena = arena, .pairs = rp_arena_array(arena, RP_META_MAX_PAIRS, sizeof *tags.pairs) };
    if (!tags.pairs) return rp_error_set(err, RP_ENOMEM, "keep tags");
    const int r = rp_s3_parse(xml, &tags_shape, keep_tag, &tags, &heads, err);
    if (r < 0) return rp_error_wrap(err, r, "the server's answer about tags");
    *out = tags.pairs;
    *n_out = tags.n;
    return 0;
}
