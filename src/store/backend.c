/* SPDX-License-Identifier: Apache-2.0 */
/* What every backend shares: keys, identities, names of levels and outcomes. */
#include "store/backend.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/text/utf8.h"

const char *rp_level_name(enum rp_level level)
{
    static const char *const names[] = {
        [RP_LEVEL_WINDOW] = "window",
        [RP_LEVEL_ETAG] = "etag",
        [RP_LEVEL_VERSION] = "version",
        [RP_LEVEL_EXACT] = "exact",
    };
    RP_ASSERT((size_t)level < sizeof names / sizeof *names);
    return names[level];
}

const char *rp_outcome_name(enum rp_outcome outcome)
{
    static const char *const names[] = {
        [RP_OUT_NONE] = "none",   [RP_OUT_FOUND] = "found",     [RP_OUT_DELETED] = "deleted",
        [RP_OUT_GONE] = "gone",   [RP_OUT_CHANGED] = "changed", [RP_OUT_DENIED] = "denied",
        [RP_OUT_RETRY] = "retry", [RP_OUT_UNKNOWN] = "unknown",
    };
    RP_ASSERT((size_t)outcome < sizeof names / sizeof *names);
    return names[outcome];
}

bool rp_identity_equal(const struct rp_identity *a, const struct rp_identity *b)
{
    return a->size_bytes == b->size_bytes && a->modified_ms == b->modified_ms && strcmp(a->etag, b->etag) == 0 &&
           strcmp(a->version, b->version) == 0;
}

int rp_key_check(const char *key, size_t n, struct rp_error *err)
{
    if (n == 0) return rp_error_set(err, RP_EINVAL, "the key is empty");
    if (n > RP_KEY_MAX) return rp_error_set(err, RP_EINVAL, "the key has %zu bytes; %d are allowed", n, RP_KEY_MAX);
    if (memchr(key, '\0', n)) return rp_error_set(err, RP_EINVAL, "the key contains a NUL byte");
    if (!rp_utf8_valid(key, n)) return rp_error_set(err, RP_EINVAL, "the key is not valid UTF-8");
    return 0;
}

void rp_backend_close(struct rp_backend *backend)
{
    if (backend) backend->ops->close(backend);
}

void rp_backend_closep(struct rp_backend **backend)
{
    rp_backend_close(*backend);
}
