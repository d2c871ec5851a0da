/* SPDX-License-Identifier: Apache-2.0 */
/* field.h - one value on its way from text into its field.
 *
 * F1  ${NAME} is replaced here, after the file was parsed, so a value of the environment is never
 *     read as YAML.
 * F2  An error shows what stands in the file, never what the environment or a secret's file
 *     holds, and of a secret setting nothing at all. */
#ifndef RP_CONFIG_FIELD_H
#define RP_CONFIG_FIELD_H

#include <stddef.h>

struct rp_arena;
struct rp_buf;
struct rp_error;
struct rp_setting;

#define RP_FIELD_BYTES_MAX ((size_t)64 << 10)

/* Where a value comes from and what its conversion needs. */
struct rp_field_source {
    const char *file; /* for error texts */
    int line;
    const char *key; /* "stores.media.mode" */
    const char *raw; /* as it stands in the file */
    const char *dir; /* relative paths begin here */
    struct rp_arena *arena;
};

/* "file:line: key: expected ..., found ...", from the setting. Returns RP_ECONFIG. */
int rp_field_mismatch(const struct rp_setting *s, const struct rp_field_source *from, struct rp_error *err);
/* Puts the environment in. */
int rp_field_expand(const struct rp_field_source *from, const char **out, struct rp_error *err);
/* The first bytes of a regular file, one newline at the end dropped. */
int rp_field_read_secret(const struct rp_field_source *from, const char *path, const char **out, struct rp_error *err);
/* Convert and store in base + offset. Bounds that another key may lift are left to
 * rp_field_check_lifted. */
int rp_field_set(const struct rp_setting *s, const char *text, const struct rp_field_source *from, void *base,
                 struct rp_error *err);
int rp_field_check_lifted(const struct rp_setting *s, const struct rp_field_source *from, const void *base,
                          struct rp_error *err);

#endif
