/* SPDX-License-Identifier: Apache-2.0 */
/* lint.h - what `make tidy` tells the analyzer of functions it cannot look into: those that report
 * an error return the code they were given. Without it the analyzer goes on after every `if (rc <
 * 0) return rc;` with outputs never set. */
#ifndef RP_TOOLS_LINT_H
#define RP_TOOLS_LINT_H

#include "base/error.h"

void rp_lint_words(const char *fmt, ...);

static inline int rp_lint_code(struct rp_error *err, int code)
{
    if (err) err->code = code;
    return code;
}

#define rp_error_set(err, code, ...)    (rp_lint_words(__VA_ARGS__), rp_lint_code(err, code))
#define rp_error_wrap(err, code, ...)   (rp_lint_words(__VA_ARGS__), rp_lint_code(err, code))
#define rp_error_hint(err, ...)         (rp_lint_words(__VA_ARGS__), rp_lint_code(err, RP_EFAILED))
#define rp_error_errno(err, value, ...) ((void)(value), rp_lint_words(__VA_ARGS__), rp_lint_code(err, RP_EFAILED))

#endif
