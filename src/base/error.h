/* SPDX-License-Identifier: Apache-2.0 */
/* error.h - the one table of everything that can go wrong.
 *
 * A function returns 0 or a negative code of this table and fills a `struct rp_error` with words:
 * what happened, to what. Callers wrap it with what they were doing, so that a person reads
 * "claim due marks: postgres: connection lost". The hint says what to do next.
 * HTTP status, exit code and the retry rule stand beside the code so that they cannot drift apart.
 * Every function here accepts a NULL error. */
#ifndef RP_BASE_ERROR_H
#define RP_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* clang-format off */
/*    code                slug                  http exit retry  title */
#define RP_ERRORS(X)                                                                                  \
    X(RP_EFAILED,         "failed",             500,  1, false, "failed")                             \
    X(RP_ENOMEM,          "no_memory",          503,  1, true,  "out of memory")                      \
    X(RP_EINVAL,          "invalid",            400,  2, false, "not valid")                          \
    X(RP_ETOOBIG,         "too_big",            413,  2, false, "too big")                            \
    X(RP_EGRACE,          "grace_out_of_range", 400,  2, false, "grace out of range")                 \
    X(RP_ECONFIG,         "configuration",      500,  3, false, "configuration not valid")            \
    X(RP_ESCHEMA,         "schema",             500,  3, false, "catalog schema does not fit")        \
    X(RP_ENOTFOUND,       "not_found",          404,  4, false, "not found")                          \
    X(RP_ETOOLATE,        "too_late",           409,  5, false, "too late to restore")                \
    X(RP_EHELD,           "held",               409,  5, false, "held")                               \
    X(RP_EREFERENCED,     "still_referenced",   409,  5, false, "still referenced")                   \
    X(RP_EMARKED,         "already_marked",     409,  5, false, "already marked for a later time")    \
    X(RP_ERUNNING,        "already_running",    409,  5, false, "already running")                    \
    X(RP_ENOTMARKED,      "not_marked",         409,  5, false, "not marked")                         \
    X(RP_EEXISTS,         "exists",             409,  5, false, "exists already")                     \
    X(RP_ECHANGED,        "changed",            409,  5, false, "changed meanwhile")                  \
    X(RP_EWEAK,           "guarantee_too_weak", 409,  5, false, "the store's guarantee is too weak")  \
    X(RP_EOBSERVE,        "observe_only",       409,  5, false, "the store is in mode observe")       \
    X(RP_ENOTOWNER,       "not_owner",          409,  5, false, "the store belongs to another catalog")\
    X(RP_EQUOTA,          "quota_exceeded",     409,  5, false, "quota exceeded")                     \
    X(RP_EOPEN,           "too_many_open",      429,  5, false, "too many open uploads")              \
    X(RP_ENOTPENDING,     "not_pending",        409,  5, false, "not pending")                        \
    X(RP_ENOTUPLOADED,    "not_uploaded",       409,  5, false, "not uploaded yet")                   \
    X(RP_ENOTLIVE,        "not_live",           409,  5, false, "not live yet")                       \
    X(RP_EGONE,           "gone",               410,  5, false, "gone for good")                      \
    X(RP_EEXPIRED,        "expired",            410,  5, false, "expired")                            \
    X(RP_ESIZE,           "size_mismatch",      422,  5, false, "the size is not the promised one")   \
    X(RP_ECHECKSUM,       "checksum_mismatch",  422,  5, false, "the checksum is not the promised one")\
    X(RP_ENAMETAKEN,      "name_taken",         409,  5, false, "the name is taken")                  \
    X(RP_EISFILE,         "is_file",            409,  5, false, "belongs to a file")                  \
    X(RP_EOWNERGONE,      "owner_deleted",      409,  5, false, "what it belongs to is deleted")      \
    X(RP_EELSEWHERE,      "elsewhere",          409,  5, false, "the bytes go to the store itself")   \
    X(RP_EINTXN,          "in_transaction",     409,  5, false, "part of a transaction")              \
    X(RP_ENOTOPEN,        "not_open",           409,  5, false, "the transaction is not open")        \
    X(RP_EKEYREUSED,      "key_reused",         422,  2, false, "Idempotency-Key used for another request") \
    X(RP_EUNAUTHORIZED,   "unauthorized",       401,  6, false, "not signed in")                      \
    X(RP_EFORBIDDEN,      "forbidden",          403,  6, false, "not allowed")                        \
    X(RP_EMETHOD,         "method_not_allowed", 405,  2, false, "method not allowed")                 \
    X(RP_ERATE,           "rate_limited",       429,  6, true,  "too many requests")                  \
    X(RP_EMEDIA,          "unsupported_media",  415,  2, false, "unsupported media type")             \
    X(RP_ERANGE,          "range",              416,  2, false, "range not satisfiable")              \
    X(RP_ELENGTH,         "length_required",    411,  2, false, "length required")                    \
    X(RP_EUNAVAILABLE,    "unavailable",        503,  6, true,  "backend unavailable")                \
    X(RP_EDENIED,         "denied",             503,  6, false, "access denied by the backend")       \
    X(RP_EFULL,           "full",               507,  6, true,  "no space left")                      \
    X(RP_ECORRUPT,        "corrupt",            500,  6, false, "damaged data")                       \
    X(RP_EBUSY,           "busy",               503,  6, true,  "busy; try again")                    \
    X(RP_ECONFLICT,       "conflict",           409,  5, true,  "another writer was faster")          \
    X(RP_EUNKNOWN,        "unknown",            503,  6, true,  "outcome unknown")                    \
    X(RP_ECLOCK,          "clock",              503,  6, false, "clocks disagree")                    \
    X(RP_EPARTLY,         "partly",             207,  8, false, "partly done")

enum rp_error_index {
#define X(code, slug, http, exit_code, retry, title) IDX_##code,
    RP_ERRORS(X)
#undef X
    RP_ERROR_COUNT
};
/* clang-format on */

enum rp_error_code {
    RP_OK = 0,
#define X(code, slug, http, exit_code, retry, title) code = -(int)IDX_##code - 1,
    RP_ERRORS(X)
#undef X
};

struct rp_error {
    int code;       /* 0 while nothing went wrong */
    char text[512]; /* what happened, to what; cut, never overrun */
    char hint[256]; /* what to do next; may be empty */
};

/* 0 is "ok", 200, 0; a number outside the table reads as RP_EFAILED. */
const char *rp_error_slug(int code);
const char *rp_error_title(int code);
int rp_error_http(int code);
int rp_error_exit(int code);
bool rp_error_retry(int code);

/* Replace the text (and clear the hint). Returns `code`, so that `return rp_error_set(...)` reads well. */
int rp_error_set(struct rp_error *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Put "what: " before the present text (the code's title while there is none); the hint stays. Returns `code`. */
int rp_error_wrap(struct rp_error *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Say what to do next. Returns err->code (or RP_EFAILED for a NULL err). */
int rp_error_hint(struct rp_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Set the text from an errno value: "what: No such file or directory"; the code is chosen from errno:
 * ENOENT/ENOTDIR not found, EACCES/EPERM/EROFS denied, ENOSPC/EDQUOT full, ENOMEM no memory, EEXIST exists,
 * ELOOP/EINVAL/ENAMETOOLONG invalid, else unavailable. */
int rp_error_errno(struct rp_error *err, int errno_value, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void rp_error_clear(struct rp_error *err);

#endif
