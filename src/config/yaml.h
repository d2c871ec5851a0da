/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.h - a YAML file as a small tree of nodes that know their place in it.
 *
 * Y1  Only plain structure is taken: aliases, anchors, tags, duplicate keys, keys that are not
 *     scalars and a second document are errors. So a tree is never larger than its text, and a key
 *     has one meaning.
 * Y2  Text, nodes and depth are bounded; a bound that is passed ends the reading at once.
 * Y3  An error names file and line and quotes no value: the text may hold secrets. */
#ifndef RP_CONFIG_YAML_H
#define RP_CONFIG_YAML_H

#include <stdbool.h>
#include <stddef.h>

struct rp_arena;
struct rp_error;

#define RP_YAML_BYTES_MAX ((size_t)1 << 20)
#define RP_YAML_NODES_MAX 10000 /* keys count as nodes */
#define RP_YAML_DEPTH_MAX 16

enum rp_yaml_kind { RP_YAML_SCALAR, RP_YAML_LIST, RP_YAML_MAP };

struct rp_yaml {
    enum rp_yaml_kind kind;
    int line;             /* from 1; of the key for a member of a map */
    const char *key;      /* NULL unless a member of a map */
    const char *text;     /* of a scalar; without NUL inside */
    bool null;            /* a scalar that is empty, ~ or null, unquoted */
    struct rp_yaml *next; /* sibling, in the order of the file */
    struct rp_yaml *first, *last;
    size_t n; /* members or items */
};

/* An empty text gives a null scalar. RP_ECONFIG for everything that the text does wrong. */
int rp_yaml_parse(const char *text, size_t n, const char *file, struct rp_arena *arena, struct rp_yaml **out,
                  struct rp_error *err);
/* A member of a map; NULL if absent or `map` is something else. */
const struct rp_yaml *rp_yaml_member(const struct rp_yaml *map, const char *key);
/* The key if it looks like a name, else words in its place: `url:postgres://...` without its
 * blank is a key too. */
const char *rp_yaml_key_shown(const char *key);
const char *rp_yaml_kind_name(const struct rp_yaml *node); /* "a list", ...; for error texts */

#endif
