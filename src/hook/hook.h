/* SPDX-License-Identifier: Apache-2.0 */
/* hook.h - calls out: one JSON message to somebody else's server. The port, its contract and its
 * callers' functions.
 *
 * G1  Bounded: time to connect, time in all, bytes of the answer that are read. What is longer is
 *     cut; the call counts by its status.
 * G2  Only the server that the URL names is called: redirects are not followed, no proxy of the
 *     environment is used, certificates are verified. A URL whose scheme no backend has is refused
 *     (RP_ECONFIG), and so is one with a user or a password in it.
 * G3  Signed as standardwebhooks.com says, if there is a secret: webhook-id is the same in every
 *     attempt of a message, webhook-timestamp (seconds) and webhook-signature are made anew for
 *     each. A signature is "v1," and the base64 of the HMAC-SHA256 of ID.SECONDS.BODY; there is one
 *     for each secret, a space between. The key is what stands in base64 behind "whsec_", or a
 *     secret without that as it is.
 * G4  0: taken. RP_EUNAVAILABLE: it may be repeated; the receiver may have seen it all the same.
 *     RP_EDENIED: it will not get better by repetition.
 * G5  Neither URL nor secret stands in an error.
 * G6  Nobody can turn a call against our own network: the very address that is connected to is
 *     judged (address.h), and only a public one, or one that `allow` names, is connected to
 *     (RP_EDENIED, naming the setting). */
#ifndef RP_HOOK_HOOK_H
#define RP_HOOK_HOOK_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_error;

#define RP_HOOK_ANSWER_MAX 1024

#define RP_HOOK_SECRETS 2
#define RP_HOOK_ID_MAX  128

struct rp_hook_call {
    const char *url;
    const char *secrets[RP_HOOK_SECRETS]; /* NULL or "": none; two while receivers change from one to the other */
    const char *id;                       /* the message's, the same in every attempt: 1 to 128 of A-Z a-z 0-9 - _ */
    const char *event;                    /* header Reprieve-Event */
    const char *body;                     /* JSON */
    size_t body_bytes;
    int64_t at_ms;                     /* now, for the signature */
    int64_t connect_ms, timeout_ms;    /* 0: 5 s, 15 s */
    const volatile sig_atomic_t *stop; /* set: given up within a second or two; may be NULL */
    const char *allow;                 /* setting outbound.allow (config.h): G6; NULL or "": none */
    struct rp_hook_line *line;         /* NULL: a connection for this call alone */
};

struct rp_hook_answer {
    long status;                       /* 0: none came */
    int64_t retry_after_ms;            /* Retry-After, at most a day; -1: it has none */
    bool cut;                          /* there was more */
    char body[RP_HOOK_ANSWER_MAX + 1]; /* the first bytes; white space is a space, other control characters dots */
};

/* What a backend guarantees, as bits. */
enum rp_hook_guarantee {
    RP_HOOK_ANSWERS = 1, /* the receiver's own answer comes back: a no can be told from a failure */
    RP_HOOK_SIGNS = 2,   /* G3 */
};

/* What is too late to fail at the first call; by any thread. */
int rp_hook_start(struct rp_error *err);
/* Blocks. Any thread. */
int rp_hook_send(const struct rp_hook_call *call, struct rp_hook_answer *out, struct rp_error *err);
/* Of the backend that takes this URL; 0: none does. */
unsigned rp_hook_guarantees(const char *url);

/* A connection that is kept open from call to call of one URL; one thread at a time. Begins as { 0 }. It is
 * hung up when `allow` has changed: G6. */
struct rp_hook_line {
    const struct rp_hook_backend *backend;
    uint64_t allow; /* what the last call allowed */
    void *state;
};
void rp_hook_line_done(struct rp_hook_line *line);

/* The value of webhook-signature; "": there is no secret. RP_ECONFIG: a secret is not as G3 says. */
#define RP_HOOK_SIGNATURE (RP_HOOK_SECRETS * 48)
int rp_hook_sign(const struct rp_hook_call *call, char out[RP_HOOK_SIGNATURE], struct rp_error *err);

/* ---- what a backend is; for hook.c and the backends ---- */

struct rp_hook_backend {
    const char *name;
    const char *const *schemes; /* of URLs, NULL at the end */
    unsigned guarantees;
    int (*start)(struct rp_error *err);
    int (*send)(const struct rp_hook_call *call, struct rp_hook_answer *out, struct rp_error *err);
    void (*hang_up)(void *state); /* of a line; NULL is none */
};
extern const struct rp_hook_backend rp_hook_webhook;

#endif
