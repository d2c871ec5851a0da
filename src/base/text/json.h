/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - the little we add to jansson: bounded parsing, output into buffers, cleanup.
 * J1  Duplicate keys, invalid UTF-8, depth over RP_JSON_DEPTH_MAX and texts over the caller's bound
 *     are errors that say where (line, column).
 * J2  Output is compact, in the order the members were added.
 * J3  Nobody need look at what rp_json_set, rp_json_append and rp_json_merge answer: a value that
 *     lost something for want of memory, and whatever contains it, cannot be written. Likewise a
 *     text that jansson had no memory for is never half read. */
#ifndef RP_BASE_TEXT_JSON_H
#define RP_BASE_TEXT_JSON_H

#include <jansson.h>
#include <stdint.h>

struct rp_buf;
struct rp_error;

#define RP_JSON_DEPTH_MAX 64

/* Any JSON value, not only an object or array; nothing may follow it. The caller bounds n before it
 * reads the text. */
int rp_json_parse(const char *text, size_t n, json_t **out, struct rp_error *err);
/* Compact, no newline; whole or not at all. RP_ENOMEM for NULL and for what lost something (J3). */
int rp_json_write(struct rp_buf *b, const json_t *value);
void rp_json_decrefp(json_t **value); /* RP_CLEANUP function */
/* A string that is made valid UTF-8 first (each bad byte becomes U+FFFD), never NULL but for no
 * memory. No text (NULL) is JSON's null. */
json_t *rp_json_text(const char *text);
json_t *rp_json_time(int64_t ms); /* RFC 3339 with ms */
/* obj[name] = value, stealing it, also on failure; RP_ENOMEM if either is NULL, RP_EINVAL for a
 * name that is not UTF-8. */
int rp_json_set(json_t *object, const char *name, json_t *value);
int rp_json_append(json_t *array, json_t *value); /* likewise */
/* An object of these members, in this order: name, value, ..., NULL. Each as rp_json_set. */
json_t *rp_json_object(const char *name, ...) __attribute__((sentinel));
int rp_json_merge(json_t *object, const json_t *other); /* every member of the other; RP_ENOMEM if either is NULL */
/* A text as a JSON string, quotes included, straight into a buffer: for answers that are written by
 * the thousand. The text must be valid UTF-8. */
int rp_json_quote(struct rp_buf *b, const char *text);
/* Typed members; `fallback` when absent, of another type, or null. */
const char *rp_json_get_text(const json_t *object, const char *name, const char *fallback);
int64_t rp_json_get_int(const json_t *object, const char *name, int64_t fallback);

#endif
