/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h - what the files of the S3 store's probe share.
 *
 * P1  Nothing outside S3_CANARY is written or deleted. A probe has a random folder of its own
 *     there, so that any number of them may run beside each other; it is emptied at the end,
 *     whatever happened, and what a crash left is emptied an hour later by the next.
 * P2  A thing holds if it was tried and seen, effect included: a 412 counts only if the object is
 *     still there. What failed, was refused or was not tried does not hold.
 * P3  The probe fails only if the store cannot be reached, listed or written to; the powers then
 *     stay as they were.
 * P4  A server that does not answer is soon given up: one question with little patience comes
 *     first, and after two requests in a row without an answer no more are sent, not even to tidy
 *     up.
 * P5  No canary's name begins with another's: a versioned container of OpenStack Swift then stands
 *     still for 30 s. */
#ifndef RP_STORE_S3_PROBE_H
#define RP_STORE_S3_PROBE_H

#include "store/s3/s3.h"

#define S3_CANARIES_MAX 32
#define S3_CANARY_KEY   96

struct s3_probe {
    struct rp_s3 *s3;
    struct s3_powers powers;
    struct rp_probed *out;
    char base[S3_CANARY_KEY]; /* S3_CANARY and a random name */
    char made[S3_CANARIES_MAX][S3_CANARY_KEY];
    size_t n_made;
    char versioning[16]; /* as the bucket says: "Enabled", "Suspended", "", or "?" */
    int unanswered;      /* requests in a row */
};

/* ---- probe.c ---- */

void rp_s3_finding(struct s3_probe *probe, const char *name, bool holds, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- steps.c: one request each; 0 with the status, or negative ---- */

/* The full key of a canary; it is emptied at the end. */
const char *rp_s3_canary(struct s3_probe *probe, const char *name);
int rp_s3_try(struct s3_probe *probe, struct s3_call *call, struct rp_error *err);
bool rp_s3_is_given_up(const struct s3_probe *probe); /* P4 */
/* With one header, if its name is not NULL. `out` may be NULL: etag and version as the answer has
 * them. */
int rp_s3_try_put(struct s3_probe *probe, const char *key, const char *text, const char *header, const char *value,
                  struct rp_identity *out, struct rp_error *err);
int rp_s3_try_delete(struct s3_probe *probe, const char *key, const char *if_match, const char *version,
                     struct rp_error *err);
/* 200 and the identity, or another status. */
int rp_s3_try_head(struct s3_probe *probe, const char *key, struct rp_identity *out);
/* Whether the object has this etag now; "": whether it is absent. A failure is false. */
bool rp_s3_canary_is(struct s3_probe *probe, const char *key, const char *etag);
/* Empties what this probe made, and what older ones left. False: something stays. */
bool rp_s3_canary_clear(struct s3_probe *probe);
/* Those of any probe that were written before this moment. */
bool rp_s3_canary_clear_before(struct s3_probe *probe, int64_t before_ms);

/* ---- writes.c ---- */

/* Whether If-None-Match keeps a key that is taken and lets one through that is free: of a PUT, or
 * of a copy of `source`. Says so as `finding`; `ignored`: what to say where it is passed over. */
bool rp_s3_keeps_taken(struct s3_probe *probe, const char *source, const char *key, const char *fresh,
                       const char *finding, const char *ignored);

/* ---- what is tried. Negative: P3 ---- */

/* deletes.c */
int rp_s3_probe_versions(struct s3_probe *probe, struct rp_error *err); /* leaves the canary "k" overwritten */
void rp_s3_probe_markers(struct s3_probe *probe);                       /* after multi */
void rp_s3_probe_lifecycle(struct s3_probe *probe);
void rp_s3_probe_if_match(struct s3_probe *probe);
void rp_s3_probe_multi(struct s3_probe *probe);
/* listing.c */
int rp_s3_probe_list(struct s3_probe *probe, struct rp_error *err);
/* writes.c */
void rp_s3_probe_puts(struct s3_probe *probe);
/* copies_tags.c */
void rp_s3_probe_copy(struct s3_probe *probe);
void rp_s3_probe_tags(struct s3_probe *probe);
/* urls.c */
void rp_s3_probe_presign(struct s3_probe *probe);
void rp_s3_probe_clock(struct s3_probe *probe);

#endif
