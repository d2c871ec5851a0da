/* SPDX-License-Identifier: Apache-2.0 */
/* headers.h - the headers around a file's bytes: which part is asked for, under which
 * name and type they are given out. Pure; every text may come from outside. */
#ifndef RP_HTTP_CONTENT_HEADERS_H
#define RP_HTTP_CONTENT_HEADERS_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

enum rp_range_kind {
    RP_RANGE_WHOLE,     /* none asked for, or one that may be ignored: malformed, several, another unit */
    RP_RANGE_PART,      /* 206 */
    RP_RANGE_IMPOSSIBLE /* 416 */
};
/* "bytes=0-99", "bytes=100-", "bytes=-100" of an object of this size; NULL: no header. first and
 * length are set in any case. */
enum rp_range_kind rp_range_parse(const char *header, int64_t size_bytes, int64_t *first, int64_t *length);

/* Whether a list of etags as in If-None-Match ("a", W/"b", or *) names this one (without
 * quotes). */
bool rp_etag_listed(const char *header, const char *etag);
/* If-Range: this etag, strongly. A date never fits. */
bool rp_etag_same(const char *header, const char *etag);

/* `attachment; filename="..."; filename*=UTF-8''...` for a name with any bytes: the last segment
 * of it, never a path, never a header of its own. NULL: no memory. */
const char *rp_disposition(const char *name, struct rp_arena *arena);
/* The type as it was promised if a header can carry it, else application/octet-stream. */
const char *rp_content_type_safe(const char *type);
/* Whether what a client sent is what was promised: bytes alike but for case and the space
 * around. */
bool rp_content_type_fits(const char *promised, const char *sent);

#endif
