/* SPDX-License-Identifier: Apache-2.0 */
/* source.h - the places where credentials.c looks for keys, one function a place.
 *
 * P1  0: found. RP_ENOTFOUND: nothing is set up there, look further; the text says so in a few
 *     words. Anything else: it is set up and does not work; nobody looks further then, for the next
 *     place may speak for somebody else.
 * P2  Nothing that was read is in an error: not a value, not a line, not an answer. Neither are
 *     container URLs, which open a door of their own.
 * P3  Every wait and every answer is bounded. Any thread. */
#ifndef RP_STORE_S3_CREDENTIALS_SOURCE_H
#define RP_STORE_S3_CREDENTIALS_SOURCE_H

#include "base/error.h"
#include "store/s3/wire/sign.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A variable of the environment; NULL if it is not set or empty. */
const char *rp_s3_environment(const char *name);
/* Puts the parts of a pair of keys together; `where` is for errors. RP_ECONFIG if one is missing,
 * too long, or has anything but visible ASCII. A NULL or empty token is none. */
int rp_s3_keys_make(const char *where, const char *access, const char *secret, const char *token, int64_t expires_at_ms,
                    struct s3_keys *out, struct rp_error *err);
/* The whole file, NUL-terminated and to be freed; regular files only, at most `max` bytes.
 * RP_ENOTFOUND, RP_EDENIED, ... */
int rp_s3_file_read(const char *path, size_t max, char **out, size_t *n, struct rp_error *err);

/* ---- profile.c ---- */

/* What a file says about one profile. */
struct s3_profile {
    bool found;
    char access[256], secret[256], token[4096]; /* "": not there */
    char role[32];   /* a setting that asks for other keys than those above, whatever they are; "": none */
    char others[32]; /* a setting that asks for other keys where none are given; "": none */
};
/* `is_config`: ~/.aws/config, where sections are called "profile NAME". RP_ECONFIG names the
 * line. */
int rp_s3_profile_parse(const char *text, size_t n, const char *name, bool is_config, struct s3_profile *out,
                        struct rp_error *err);
/* `name` "": AWS_PROFILE, else default. `used` is the name that counted. */
int rp_s3_keys_of_profile(const char *name, struct s3_keys *out, char used[64], struct rp_error *err);

/* ---- endpoint.c ---- */

int rp_s3_keys_of_container(struct s3_keys *out, struct rp_error *err);
int rp_s3_keys_of_instance(struct s3_keys *out, struct rp_error *err);

#endif
