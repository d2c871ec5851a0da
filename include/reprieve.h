/* SPDX-License-Identifier: Apache-2.0 */
/* reprieve.h - safe deletion for data that lives in two places at once, as a C library.
 *
 * A mark is a durable promise: this object will be purged at its due time, unless it is restored
 * first. Every call works on the same catalog as the `reprieve` command and may run beside it.
 *
 *     struct reprieve *r = NULL;
 *     struct reprieve_mark_request q = { .subject = "main:avatars/7.png", .reason = "replaced" };
 *     struct reprieve_mark m;
 *
 *     if (reprieve_open(NULL, &r) < 0 || reprieve_mark(r, &q, &m) < 0)
 *         fprintf(stderr, "%s\n", reprieve_error(r));
 *     reprieve_close(r);
 *
 * Functions return 0 or a negative number; reprieve_error_code() then gives the stable name of what
 * went wrong ("not_found", "too_late", "held", ...). A handle belongs to one thread at a time. */
#ifndef REPRIEVE_H
#define REPRIEVE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct reprieve;

struct reprieve_options {
    const char *config_file; /* NULL: looked for as the command does */
    const char *data;        /* NULL: ./reprieve-data; only without a configuration file */
    const char *actor;       /* who is asking, for the audit log; NULL: the user's name */
};

/* `options` may be NULL. On failure *out is a handle that only knows its error, or NULL without
 * memory; close it too. */
int reprieve_open(const struct reprieve_options *options, struct reprieve **out);
void reprieve_close(struct reprieve *r);

const char *reprieve_error(const struct reprieve *r);      /* of the last call, in words */
const char *reprieve_error_code(const struct reprieve *r); /* its stable name; "" if it succeeded */
const char *reprieve_version(void);

struct reprieve_mark_request {
    const char *subject; /* STORE:KEY */
    const char *reason;  /* may be NULL */
    int64_t grace_ms;    /* 0: the store's own */
    int64_t at_ms;       /* 0: now + grace; milliseconds since 1970 UTC */
    int if_unreferenced;
};

struct reprieve_mark {
    char id[24]; /* mrk_... */
    int64_t marked_at_ms, due_at_ms;
    int existed; /* it was marked before; this is the same mark */
};

int reprieve_mark(struct reprieve *r, const struct reprieve_mark_request *request, struct reprieve_mark *out);
/* `subject`: STORE:KEY or a mark's id. Restoring what is restored already succeeds. A file comes
 * back with what was deleted along with it; what of that cannot come back stays deleted. */
int reprieve_restore(struct reprieve *r, const char *subject);

struct reprieve_sweep {
    char run[24]; /* run_... */
    int64_t purged, already_gone, skipped, failed, bytes_freed;
};
/* Purges what is due now, in every store that may be purged, at most `limit` marks (0: the
 * configured limit). Outside services are asked first about the marks that need their yes: what all
 * of them agree to is purged in the same call, which lasts until the last one has answered or its
 * time is over. */
int reprieve_sweep(struct reprieve *r, int64_t limit, struct reprieve_sweep *out);

#ifdef __cplusplus
}
#endif

#endif
