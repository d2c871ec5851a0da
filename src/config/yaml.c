/* SPDX-License-Identifier: Apache-2.0 */
#include "config/yaml.h"

#include <string.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"

struct reader {
    yaml_parser_t parser;
    yaml_event_t event;
    bool has_event;
    const char *text, *file;
    size_t len;
    struct rp_arena *arena;
    size_t n_nodes;
    struct rp_error *err;
};

static void reader_done(struct reader *r)
{
    if (r->has_event) yaml_event_delete(&r->event);
    yaml_parser_delete(&r->parser);
}

static int line_of(yaml_mark_t mark)
{
    return (int)mark.line + 1;
}

static int refuse(struct reader *r, int line, const char *what)
{
    return rp_error_set(r->err, RP_ECONFIG, "%s:%d: %s", r->file, line, what);
}

static int no_memory(struct reader *r)
{
    return rp_error_set(r->err, RP_ENOMEM, "%s: no memory to read the configuration", r->file);
}

/* The scanner marks where it stopped; the decoder below it only knows a byte offset. */
static int syntax_error(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_MEMORY_ERROR) return no_memory(r);
    const char *problem = p->problem ? p->problem : "cannot be read";
    if (p->error != YAML_READER_ERROR)
        return rp_error_set(r->err, RP_ECONFIG, "%s:%d: expected valid YAML: %s (column %d)", r->file,
                            line_of(p->problem_mark), problem, (int)p->problem_mark.column + 1);
    int line = 1;
    for (size_t i = 0; i < r->len && i < p->problem_offset; i++)
        line += r->text[i] == '\n';
    return rp_error_set(r->err, RP_ECONFIG, "%s:%d: expected text in UTF-8: %s", r->file, line, problem);
}

static int next_event(struct reader *r)
{
    if (r->has_event) yaml_event_delete(&r->event);
    r->has_event = false;
    if (!yaml_parser_parse(&r->parser, &r->event)) return syntax_error(r);
    r->has_event = true;
    return 0;
}

static int count_node(struct reader *r)
{
    if (++r->n_nodes <= RP_YAML_NODES_MAX) return 0;
    return rp_error_set(r->err, RP_ECONFIG, "%s:%d: expected at most %d values and keys, found more", r->file,
                        line_of(r->event.start_mark), RP_YAML_NODES_MAX);
}

static int new_node(struct reader *r, enum rp_yaml_kind kind, struct rp_yaml **out)
{
    int rc = count_node(r);
    if (rc < 0) return rc;
    struct rp_yaml *node = rp_arena_alloc(r->arena, sizeof(*node));
    if (!node) return no_memory(r);
    node->kind = kind;
    node->line = line_of(r->event.start_mark);
    *out = node;
    return 0;
}

static int refuse_decoration(struct reader *r, const yaml_char_t *anchor, const yaml_char_t *tag)
{
    int line = line_of(r->event.start_mark);
    if (anchor)
        return refuse(r, line, "expected a plain value, found an anchor (&); write the value where it is needed");
    if (tag) return refuse(r, line, "expected a plain value, found a tag (!); quote the value if it begins with !");
    return 0;
}

static int copy_scalar(struct reader *r, const char **out)
{
    const char *value = (const char *)r->event.data.scalar.value;
    size_t n = r->event.data.scalar.length;
    if (memchr(value, '\0', n))
        return refuse(r, line_of(r->event.start_mark), "expected text, found a NUL character in it");
    const char *copy = rp_arena_copy(r->arena, value, n);
    if (!copy) return no_memory(r);
    *out = copy;
    return 0;
}

static bool is_null(const char *text, yaml_scalar_style_t style)
{
    if (style != YAML_PLAIN_SCALAR_STYLE) return false;
    return !*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0 || strcmp(text, "Null") == 0 ||
           strcmp(text, "NULL") == 0;
}

static int read_scalar(struct reader *r, struct rp_yaml **out)
{
    int rc = refuse_decoration(r, r->event.data.scalar.anchor, r->event.data.scalar.tag);
    if (rc < 0) return rc;
    struct rp_yaml *node = NULL;
    rc = new_node(r, RP_YAML_SCALAR, &node);
    if (rc == 0) rc = copy_scalar(r, &node->text);
    if (rc < 0) return rc;
    node->null = is_null(node->text, r->event.data.scalar.style);
    *out = node;
    return 0;
}

static void append(struct rp_yaml *parent, struct rp_yaml *child)
{
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    parent->n++;
}

static int read_value(struct reader *r, int depth, struct rp_yaml **out);

static int read_list(struct reader *r, int depth, struct rp_yaml **out)
{
    int rc = refuse_decoration(r, r->event.data.sequence_start.anchor, r->event.data.sequence_start.tag);
    if (rc < 0) return rc;
    struct rp_yaml *list = NULL;
    rc = new_node(r, RP_YAML_LIST, &list);
    if (rc < 0) return rc;
    for (;;) {
        rc = next_event(r);
        if (rc < 0) return rc;
        if (r->event.type == YAML_SEQUENCE_END_EVENT) break;
        struct rp_yaml *item = NULL;
        rc = read_value(r, depth + 1, &item);
        if (rc < 0) return rc;
        append(list, item);
    }
    *out = list;
    return 0;
}

/* Takes the key that is the present event; it stands before its value, so that the value's node
 * can carry it. */
static int read_key(struct reader *r, const struct rp_yaml *map, struct rp_yaml **out)
{
    if (r->event.type == YAML_ALIAS_EVENT)
        return refuse(r, line_of(r->event.start_mark), "expected a key, found an alias (*)");
    if (r->event.type != YAML_SCALAR_EVENT)
        return refuse(r, line_of(r->event.start_mark), "expected a name as key, found a list or a section");
    struct rp_yaml *key = NULL;
    int rc = read_scalar(r, &key);
    if (rc < 0) return rc;
    const struct rp_yaml *before = rp_yaml_member(map, key->text);
    if (before)
        return rp_error_set(r->err, RP_ECONFIG, "%s:%d: %s: expected once, found again (first in line %d)", r->file,
                            key->line, rp_yaml_key_shown(key->text), before->line);
    *out = key;
    return 0;
}

static int read_map(struct reader *r, int depth, struct rp_yaml **out)
{
    int rc = refuse_decoration(r, r->event.data.mapping_start.anchor, r->event.data.mapping_start.tag);
    if (rc < 0) return rc;
    struct rp_yaml *map = NULL;
    rc = new_node(r, RP_YAML_MAP, &map);
    if (rc < 0) return rc;
    for (;;) {
        rc = next_event(r);
        if (rc < 0) return rc;
        if (r->event.type == YAML_MAPPING_END_EVENT) break;
        struct rp_yaml *key = NULL, *value = NULL;
        rc = read_key(r, map, &key);
        if (rc == 0) rc = next_event(r);
        if (rc == 0) rc = read_value(r, depth + 1, &value);
        if (rc < 0) return rc;
        RP_ASSERT(key != NULL && value != NULL);
        value->key = key->text;
        value->line = key->line;
        append(map, value);
    }
    *out = map;
    return 0;
}

/* Recursion is bounded by RP_YAML_DEPTH_MAX. */
static int read_value(struct reader *r, int depth, struct rp_yaml **out)
{
    if (depth > RP_YAML_DEPTH_MAX)
        return rp_error_set(r->err, RP_ECONFIG, "%s:%d: expected at most %d levels, found more", r->file,
                            line_of(r->event.start_mark), RP_YAML_DEPTH_MAX);
    if (r->event.type == YAML_SEQUENCE_START_EVENT) return read_list(r, depth, out);
    if (r->event.type == YAML_MAPPING_START_EVENT) return read_map(r, depth, out);
    if (r->event.type == YAML_ALIAS_EVENT)
        return refuse(r, line_of(r->event.start_mark),
                      "expected a value, found an alias (*); quote a value that begins with *");
    RP_ASSERT(r->event.type == YAML_SCALAR_EVENT);
    return read_scalar(r, out);
}

static int read_stream(struct reader *r, struct rp_yaml **out)
{
    int rc = next_event(r); /* the stream's start */
    if (rc == 0) rc = next_event(r);
    if (rc < 0) return rc;
    struct rp_yaml *root = NULL;
    if (r->event.type == YAML_STREAM_END_EVENT) {
        rc = new_node(r, RP_YAML_SCALAR, &root);
        if (rc < 0) return rc;
        root->text = "";
        root->null = true;
        *out = root;
        return 0;
    }
    rc = next_event(r); /* past the document's start */
    if (rc == 0) rc = read_value(r, 1, &root);
    if (rc == 0) rc = next_event(r); /* the document's end */
    if (rc == 0) rc = next_event(r);
    if (rc < 0) return rc;
    if (r->event.type != YAML_STREAM_END_EVENT)
        return refuse(r, line_of(r->event.start_mark), "expected one document, found a second one (---)");
    *out = root;
    return 0;
}

int rp_yaml_parse(const char *text, size_t n, const char *file, struct rp_arena *arena, struct rp_yaml **out,
                  struct rp_error *err)
{
    if (n > RP_YAML_BYTES_MAX)
        return rp_error_set(err, RP_ECONFIG, "%s:1: expected at most %zu bytes, found more", file, RP_YAML_BYTES_MAX);
    RP_CLEANUP(reader_done) struct reader r = { .text = text, .len = n, .file = file, .arena = arena, .err = err };
    if (!yaml_parser_initialize(&r.parser)) return no_memory(&r);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, n);
    return read_stream(&r, out);
}

const struct rp_yaml *rp_yaml_member(const struct rp_yaml *map, const char *key)
{
    if (!map || map->kind != RP_YAML_MAP) return NULL;
    for (const struct rp_yaml *m = map->first; m; m = m->next)
        if (strcmp(m->key, key) == 0) return m;
    return NULL;
}

const char *rp_yaml_key_shown(const char *key)
{
    static const char name_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t n = strlen(key);
    return n > 0 && n <= 63 && strspn(key, name_characters) == n ? key : "(not a name)";
}

const char *rp_yaml_kind_name(const struct rp_yaml *node)
{
    if (node->kind == RP_YAML_LIST) return "a list";
    if (node->kind == RP_YAML_MAP) return "a section";
    return node->null ? "nothing" : "a single value";
}
