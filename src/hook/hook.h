/* SPDX-License-Identifier: Apache-2.0 */
/* hook.h - calls out: one JSON message to somebody else's server. The port, its contract and its
 * callers' functions.
 *
 * G1  Bounded: time to connect, time in all, bytes of the answer that are read. What is longer is
 *     cut; the call counts by its status.
 * G2  Only the server that the URL names is called: redirects are not followed, certificates are
 *     verified. A URL whose scheme no backend has is refused (RP_ECONFIG).
 * G3  Signed, if there is a secret: Reprieve-Signature: t=SECONDS,v1=HEX, where HEX is the
 *     HMAC-SHA256 of SECONDS, a dot and the body. The receiver recomputes it and refuses old ones.
 * G4  0: taken. RP_EUNAVAILABLE: it may be repeated; the receiver may have seen it all the same.
 *     RP_EDENIED: it will not get better by repetition.
 * G5  Neither URL nor secret stands in an error. */
#ifndef RP_HOOK_HOOK_H
#define RP_HOOK_HOOK_H

#include <stddef.h>
#include <stdint.h>

struct rp_error;

#define RP_HOOK_ANSWER_MAX 1024

struct rp_hook_call {
    const char *url, *secret; /* secret NULL or "": unsigned */
    const char *event;        /* header Reprieve-Event */
    const char *body;         /* JSON */
    size_t body_bytes;
    int64_t at_ms;                  /* now, for the signature */
    int64_t connect_ms, timeout_ms; /* 0: 5 s, 15 s */
};

struct rp_hook_answer {
    long status;                       /* 0: none came */
    char body[RP_HOOK_ANSWER_MAX + 1]; /* the first bytes; control characters are dots */
};

/* What a backend guarantees, as bits. */
enum rp_hook_guarantee {
    RP_HOOK_ANSWERS = 1, /* the receiver's own answer comes back: a no can be told from a failure */
    RP_HOOK_SIGNS = 2,   /* G3 */
};

/* Once, before there are threads. */
int rp_hook_start(struct rp_error *err);
/* Blocks. Any thread. */
int rp_hook_send(const struct rp_hook_call *call, struct rp_hook_answer *out, struct rp_error *err);
/* Of the backend that takes this URL; 0: none does. */
unsigned rp_hook_guarantees(const char *url);

/* The value of Reprieve-Signature. */
#define RP_HOOK_SIGNATURE 96
void rp_hook_sign(const char *secret, int64_t at_ms, const char *body, size_t n, char out[RP_HOOK_SIGNATURE]);

/* ---- what a backend is; for hook.c and the backends ---- */

struct rp_hook_backend {
    const char *name;
    const char *const *schemes; /* of URLs, NULL at the end */
    unsigned guarantees;
    int (*start)(struct rp_error *err);
    int (*send)(const struct rp_hook_call *call, struct rp_hook_answer *out, struct rp_error *err);
};
extern const struct rp_hook_backend rp_hook_webhook;

#endif
