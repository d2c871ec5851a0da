/* SPDX-License-Identifier: Apache-2.0 */
/* load.h - the steps between a tree of YAML and a struct rp_config; for this folder and its
 * tests. */
#ifndef RP_CONFIG_LOAD_H
#define RP_CONFIG_LOAD_H

#include <stddef.h>

struct rp_arena;
struct rp_config;
struct rp_error;
struct rp_setting;
struct rp_yaml;

struct rp_load {
    const char *file; /* for error texts */
    const char *dir;
    struct rp_arena *arena;   /* of the configuration */
    struct rp_arena *scratch; /* until the end of the call */
};

/* Give every member of the scope its default: of the top (NULL), or of one entry of a map or
 * list. */
int rp_load_defaults(const struct rp_load *load, const struct rp_setting *scope, void *base, struct rp_error *err);
/* Defaults, then the tree by the table of settings: keys, types, bounds, required keys. */
int rp_load_tree(const struct rp_load *load, const struct rp_yaml *root, struct rp_config *out, struct rp_error *err);
/* The default of retention.segments, which depends on where the catalog is. */
int rp_load_segments(const struct rp_load *load, struct rp_config *config, struct rp_error *err);
/* The names of sinks that were not given one. */
int rp_load_sinks(const struct rp_load *load, struct rp_config *config, struct rp_error *err);
/* What no single value can show: references that lead nowhere, stores that share files with
 * something else. */
int rp_load_check(const struct rp_load *load, const struct rp_yaml *root, const struct rp_config *config,
                  struct rp_error *err);
/* RP_ECONFIG: "FILE:LINE: " and the words. */
int rp_load_refuse(const struct rp_load *load, int line, struct rp_error *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* rp_config_load with another file in the place of the one under /etc. */
int rp_load_search(const char *file, const char *data, const char *system_file, struct rp_arena *arena,
                   struct rp_config *out, struct rp_error *err);

#endif
