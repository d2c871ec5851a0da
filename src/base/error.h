/* SPDX-License-Identifier: Apache-2.0 */
/* error.h - the one table of everything that can go wrong.
 *
 * A function returns 0 or a negative code of this table and fills a `struct rp_error` with words:
 * what happened, to what. Callers wrap it with what they were doing, so that a person reads "claim
 * due marks: postgres: connection lost". The hint says what to do next. HTTP status, exit code, the
 * retry rule and whose fault it is stand beside the code so that they cannot drift apart.
 *
 * The words count only together with a negative return: on success they may be those of something
 * that was tried first and failed. An error that is kept and judged by its code (a command's, an
 * item's) is filled on failure alone, or cleared. Every function here, and the parsers of base/,
 * accept a NULL error; all others are given one. */
#ifndef RP_BASE_ERROR_H
#define RP_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Whose fault an error is, and so who else may go on. 0: it is about the request alone. */
enum rp_fault {
    RP_OF_ONE = 1,   /* out of a transaction: it may lie in one subject's rows; the others may go on without that one */
    RP_OF_STORE = 2, /* out of a store: it would say the same of every object */
    RP_OF_CATALOG = 4, /* out of a database: it would say the same of every change */
    RP_OF_RUN = 8      /* out of the catalog: a run ends here */
};

/* clang-format off */
/*    code                slug                  http exit retry  fault          title */
#define RP_ERRORS(X)                                                                                                   \
    X(RP_EFAILED,         "failed",             500,  1, false, RP_OF_ONE,    "failed")                                \
    X(RP_ENOMEM,          "no_memory",          503,  1, true,  RP_OF_STORE,  "out of memory")                         \
    X(RP_EINVAL,          "invalid",            400,  2, false, 0,            "not valid")                             \
    X(RP_ETOOBIG,         "too_big",            413,  2, false, 0,            "too big")                               \
    X(RP_EGRACE,          "grace_out_of_range", 400,  2, false, 0,            "grace out of range")                    \
    X(RP_ECONFIG,         "configuration",      500,  3, false, RP_OF_STORE,  "configuration not valid")               \
    X(RP_ESCHEMA,         "schema",             500,  3, false, 0,            "catalog schema does not fit")           \
    X(RP_ENOTFOUND,       "not_found",          404,  4, false, 0,            "not found")                             \
    X(RP_ETOOLATE,        "too_late",           409,  5, false, 0,            "too late to restore")                   \
    X(RP_EHELD,           "held",               409,  5, false, 0,            "held")                                  \
    X(RP_EERASING,        "being_erased",       409,  5, false, 0,            "being erased")                          \
    X(RP_EREFERENCED,     "still_referenced",   409,  5, false, 0,            "still referenced")                      \
    X(RP_EMARKED,         "already_marked",     409,  5, false, 0,            "already marked for a later time")       \
    X(RP_ERUNNING,        "already_running",    409,  5, false, 0,            "already running")                       \
    X(RP_ENOTMARKED,      "not_marked",         409,  5, false, 0,            "not marked")                            \
    X(RP_EEXISTS,         "exists",             409,  5, false, 0,            "exists already")                        \
    X(RP_ECHANGED,        "changed",            409,  5, false, RP_OF_RUN,    "changed meanwhile")                     \
    X(RP_EWEAK,           "guarantee_too_weak", 409,  5, false, 0,            "the store's guarantee is too weak")     \
    X(RP_EOBSERVE,        "observe_only",       409,  5, false, 0,            "the store is in mode observe")          \
    X(RP_ENOTOWNER,       "not_owner",          409,  5, false, 0,            "the store belongs to another catalog")  \
    X(RP_EQUOTA,          "quota_exceeded",     409,  5, false, 0,            "quota exceeded")                        \
    X(RP_EOPEN,           "too_many_open",      429,  5, false, 0,            "too many open uploads")                 \
    X(RP_ENOTPENDING,     "not_pending",        409,  5, false, 0,            "not pending")                           \
    X(RP_ENOTUPLOADED,    "not_uploaded",       409,  5, false, 0,            "not uploaded yet")                      \
    X(RP_ENOTLIVE,        "not_live",           409,  5, false, 0,            "not live yet")                          \
    X(RP_EANSWERED,       "answered",           409,  5, false, 0,            "answered otherwise before")             \
    X(RP_EGONE,           "gone",               410,  5, false, 0,            "gone for good")                         \
    X(RP_EEXPIRED,        "expired",            410,  5, false, 0,            "expired")                               \
    X(RP_ESIZE,           "size_mismatch",      422,  5, false, 0,            "the size is not the promised one")      \
    X(RP_ECHECKSUM,       "checksum_mismatch",  422,  5, false, 0,            "the checksum is not the promised one")  \
    X(RP_ENAMETAKEN,      "name_taken",         409,  5, false, 0,            "the name is taken")                     \
    X(RP_EISFILE,         "is_file",            409,  5, false, 0,            "belongs to a file")                     \
    X(RP_EOWNERGONE,      "owner_deleted",      409,  5, false, 0,            "what it belongs to is deleted")         \
    X(RP_EELSEWHERE,      "elsewhere",          409,  5, false, 0,            "the bytes go to the store itself")      \
    X(RP_EINTXN,          "in_transaction",     409,  5, false, 0,            "part of a transaction")                 \
    X(RP_ENOTOPEN,        "not_open",           409,  5, false, 0,            "the transaction is not open")           \
    X(RP_EREFERENCESUNKNOWN, "references_unknown", 422, 3, false, 0,          "nothing says what is referenced")     \
    X(RP_EKEYREUSED,      "key_reused",         422,  2, false, 0,            "Idempotency-Key used for another request")\
    X(RP_EUNAUTHORIZED,   "unauthorized",       401,  6, false, 0,            "not signed in")                         \
    X(RP_EFORBIDDEN,      "forbidden",          403,  6, false, 0,            "not allowed")                           \
    X(RP_EMETHOD,         "method_not_allowed", 405,  2, false, 0,            "method not allowed")                    \
    X(RP_ERATE,           "rate_limited",       429,  6, true,  0,            "too many requests")                     \
    X(RP_EMEDIA,          "unsupported_media",  415,  2, false, 0,            "unsupported media type")                \
    X(RP_ERANGE,          "range",              416,  2, false, 0,            "range not satisfiable")                 \
    X(RP_ESLOW,           "too_slow",           408,  6, true,  0,            "too slow")                              \
    X(RP_ELENGTH,         "length_required",    411,  2, false, 0,            "length required")                       \
    X(RP_EUNAVAILABLE,    "unavailable",        503,  6, true,  RP_OF_STORE | RP_OF_CATALOG | RP_OF_RUN, "backend unavailable")\
    X(RP_EDENIED,         "denied",             503,  6, false, RP_OF_CATALOG, "access denied by the backend")         \
    X(RP_EFULL,           "full",               507,  6, true,  RP_OF_STORE | RP_OF_CATALOG, "no space left")          \
    X(RP_ECORRUPT,        "corrupt",            500,  6, false, RP_OF_ONE | RP_OF_RUN, "damaged data")                 \
    X(RP_EBUSY,           "busy",               503,  6, true,  RP_OF_CATALOG, "busy; try again")                      \
    X(RP_ECONFLICT,       "conflict",           409,  5, true,  RP_OF_ONE,    "another writer was faster")             \
    X(RP_EUNKNOWN,        "unknown",            503,  6, true,  RP_OF_CATALOG | RP_OF_RUN, "outcome unknown")          \
    X(RP_ECLOCK,          "clock",              503,  6, false, RP_OF_STORE,  "clocks disagree")                       \
    X(RP_EPARTLY,         "partly",             207,  8, false, 0,            "partly done")

enum rp_error_index {
#define X(code, slug, http, exit_code, retry, fault, title) IDX_##code,
    RP_ERRORS(X)
#undef X
    RP_ERROR_COUNT
};
/* clang-format on */

enum rp_error_code {
    RP_OK = 0,
#define X(code, slug, http, exit_code, retry, fault, title) code = -(int)IDX_##code - 1,
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
/* A set of enum rp_fault: `if (rp_error_fault(r) & RP_OF_STORE)`. */
unsigned rp_error_fault(int code);

/* Replace the text (and clear the hint). Returns `code`, so that `return rp_error_set(...)` reads
 * well. */
int rp_error_set(struct rp_error *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same with what to do about it. */
int rp_error_advise(struct rp_error *err, int code, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Put "what: " before the present text (the code's title while there is none); the hint stays.
 * Returns `code`. */
int rp_error_wrap(struct rp_error *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Say what to do next. Returns err->code (or RP_EFAILED for a NULL err). */
int rp_error_hint(struct rp_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Set the text from an errno value: "what: No such file or directory"; the code is chosen from
 * errno: ENOENT/ENOTDIR not found, EACCES/EPERM/EROFS denied, ENOSPC/EDQUOT/EFBIG full, ENOMEM no
 * memory, EEXIST exists, ELOOP/EINVAL/ENAMETOOLONG invalid, else unavailable. */
int rp_error_errno(struct rp_error *err, int errno_value, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* What went wrong there is what went wrong here. Returns its code. */
int rp_error_copy(struct rp_error *err, const struct rp_error *why);
void rp_error_clear(struct rp_error *err);

#endif
