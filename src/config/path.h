/* SPDX-License-Identifier: Apache-2.0 */
/* path.h - paths as they are written, and where they lead. Both return the arena's memory, NULL
 * without any. */
#ifndef RP_CONFIG_PATH_H
#define RP_CONFIG_PATH_H

#include <stdbool.h>

struct rp_arena;

#define RP_PATH_BYTES_MAX 4095

/* `path` seen from `dir`, slashes at its end dropped. */
const char *rp_path_join(const char *dir, const char *path, struct rp_arena *arena);
/* The directory of a file, by its name alone. */
const char *rp_path_parent(const char *file, struct rp_arena *arena);
/* Absolute, symbolic links followed as far as the path exists, without "." and "..". */
const char *rp_path_resolve(const char *path, struct rp_arena *arena);
/* Of two resolved paths: is `path` the directory `dir` or below it? */
bool rp_path_is_within(const char *path, const char *dir);

#endif
