/* SPDX-License-Identifier: Apache-2.0 */
/* hook.h - calls out: one POST of a JSON body to somebody else's server.
 *
 * G1  Bounded: time to connect, time in all, bytes of the answer that are read (the rest ends the call, which counts by its status).
 * G2  http and https only; redirects are not followed: whoever is named in the configuration is told, and nobody else. Certificates are
 *     verified.
 * G3  Signed, if there is a secret: Reprieve-Signature: t=SECONDS,v1=HEX, where HEX is the HMAC-SHA256 of SECONDS, a dot and the body.
 *     The receiver recomputes it and refuses old ones.
 * G4  2xx is success; 408, 429, 5xx and every failure of the connection may be repeated (RP_EUNAVAILABLE); anything else will not get better
 *     by repetition (RP_EDENIED). Neither URL nor secret stands in an error. */
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

/* Blocks. Any thread, once rp_hook_start was called. */
int rp_hook_send(const struct rp_hook_call *call, struct rp_hook_answer *out, struct rp_error *err);
/* Once, before there are threads. */
int rp_hook_start(struct rp_error *err);

/* The value of Reprieve-Signature. */
#define RP_HOOK_SIGNATURE 96
void rp_hook_sign(const char *secret, int64_t at_ms, const char *body, size_t n, char out[RP_HOOK_SIGNATURE]);

#endif
