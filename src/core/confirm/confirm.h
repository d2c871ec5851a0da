/* SPDX-License-Identifier: Apache-2.0 */
/* confirm.h - outside services must say yes before anything of a mark is erased.
 *
 * C1  A mark that has confirmations is claimed by an asker, not by a sweep, once it is due; or at
 *     once, if one of its services is asked `now`. Its services are asked in order, one at a time,
 *     each at least once.
 * C2  That a service is asked is committed before it is called, what it said before anything else
 *     follows: after a crash it is asked again, with the same idempotency key. Whoever has lost the
 *     mark meanwhile changes nothing (FENCED).
 * C3  From the first time that one is asked there is no restore. If it refuses, or nothing comes of
 *     it, the mark is a dead letter, and can be restored from there unless another one has said yes.
 * C4  When all have said yes the mark stays `checking` and is the sweep's: when it is due its
 *     references are counted (again), then it is purged. It never goes back to `marked`.
 * C5  Where references count as well they are counted first: nobody is asked about what is still
 *     used.
 * C6  A service that fails or hangs keeps no other service waiting, and after a while nobody
 *     (breaker.h). What waits for an answer (202) or for the next attempt holds no lease.
 * C7  What is held is not asked about, nor what a store's purge would be refused for: observed,
 *     another's, with clocks apart.
 * C8  A mark whose service is not configured any more is a dead letter, and says so; but only a day
 *     after it was to be asked, for another node may know the service already, or still.
 * C9  An answer may come later, by a signed URL that is in the call: rp_verb_answer. A yes brings
 *     back a dead letter, unless a recovery has forgotten the call.
 * C10 Nobody is asked about an object that another upload has replaced since it was marked, where
 *     that upload would be all that stands there: its mark ends. What is only gone is asked about.
 * C11 Services that are asked `now` come before those that are asked when the mark is due, which
 *     nobody asks before that, by any clock.
 *
 *   marked   -> checking           rp_asker_pass (the claim)
 *   checking -> checking, dead     rp_asker_pass, rp_verb_answer
 *   checking -> marked             rp_asker_pass: still referenced, and nobody was asked
 *   checking -> reprieved          rp_asker_pass: replaced
 *   dead     -> checking           rp_verb_answer: a late yes */
#ifndef RP_CORE_CONFIRM_CONFIRM_H
#define RP_CORE_CONFIRM_CONFIRM_H

#include "base/digest.h"
#include "base/log.h"
#include "catalog/mark/confirmation.h"
#include "core/confirm/answer.h"
#include "core/sweep/sweeper.h"

/* ---- asking ---- */

struct rp_confirm_call {
    const struct rp_confirmer_config *to;
    const char *allow;                 /* setting outbound.allow */
    const volatile sig_atomic_t *stop; /* as the asker's; may be NULL */
    const char *id;                    /* the idempotency key: the same in every attempt */
    const char *body;
    size_t body_bytes;
    int64_t at_ms;
};
struct rp_confirm_answer {
    long status;            /* 0: none came */
    int64_t retry_after_ms; /* -1: it says nothing of that */
    char body[RP_ATTEMPT_BODY + 1];
    char error[160]; /* why none came; "" */
};
/* Blocks; any thread. */
typedef void rp_confirm_send_fn(void *ctx, const struct rp_confirm_call *call, struct rp_confirm_answer *out);

struct rp_asker_options {
    struct rp_sweeper by;
    const struct rp_config *config;
    int64_t most;                   /* calls of a pass; 0: as many as there are to make */
    const char *url_base, *url_key; /* of URLs for late answers; "": there are none */
    rp_confirm_send_fn *send;
    void *send_ctx;
    struct rp_log *log;
    /* Told of every answer, and whenever a breaker opens or closes. May be NULL. */
    void (*answered)(void *ctx, const char *name, const char *meaning);
    void (*broken)(void *ctx, const char *name, bool open);
    void *ctx;
};
struct rp_asker;
/* What it knows of its services (breaker.h) lasts as long as it. */
struct rp_asker *rp_asker_new(const struct rp_asker_options *options, struct rp_error *err); /* NULL: RP_ENOMEM */
void rp_asker_free(struct rp_asker *asker);
void rp_asker_freep(struct rp_asker **asker);
/* Settings changed; the services are the same ones. Nothing is put off any more. Not during a pass. */
void rp_asker_configure(struct rp_asker *asker, const struct rp_config *config);

struct rp_asker_pass {
    int64_t calls;
    int64_t yes;
    int64_t dead;
};
/* Asks whatever may be asked now, until nothing of it is left or it has enough, and waits for the last
 * call. Negative: the catalog failed. Stores that may not be purged are left out. */
int rp_asker_pass(struct rp_asker *asker, struct rp_asker_pass *out, struct rp_error *err);

/* ---- who is to be asked about a mark ---- */

/* Services, in order, as they are configured. */
struct rp_confirmer_list {
    size_t n;
    const struct rp_confirmer_config *at[RP_CONFIRMATIONS_EACH];
};
/* RP_EINVAL, naming those that there are: one of them is not configured. Each once. */
int rp_confirmers_find(const struct rp_config *config, const char *const *names, size_t n,
                       struct rp_confirmer_list *out, struct rp_error *err);
/* Those that another mark names, whatever became of it, once it is due: for a mark in its place. Also
 * those that are not configured any more (C8). In the arena. */
int rp_confirmers_of(struct rp_db *db, int64_t mark_id, struct rp_arena *arena, const struct rp_confirmer_list **out,
                     struct rp_error *err);
/* When a mark that is born now, and due then, is first looked at. */
int64_t rp_confirmers_next_at(const struct rp_confirmer_list *by, int64_t due_at_ms, int64_t now_ms);
/* Marked again: RP_EMARKED unless the mark has all of these. `has`: NULL is none. */
int rp_confirmers_within(const struct rp_confirmer_list *has, const struct rp_confirmer_list *by, struct rp_error *err);
int rp_confirmers_same(struct rp_db *db, int64_t mark_id, const struct rp_confirmer_list *by, struct rp_arena *arena,
                       struct rp_error *err);
/* Rows for a mark that is born in this transaction, with RP_CHECK_CONFIRMATIONS. */
int rp_confirmers_add(struct rp_tx *tx, int64_t mark_id, const struct rp_confirmer_list *by, struct rp_error *err);

/* ---- late answers ---- */

/* BASE/v1/confirmations/ID?expires=MS&signature=HEX; "" if it does not fit or nothing was given. */
#define RP_ANSWER_URL 2400
void rp_answer_url(const char *base, const char *key, int64_t confirmation_id, int64_t expires_at_ms,
                   char out[RP_ANSWER_URL]);
/* `signature` is text from outside. */
bool rp_answer_verify(const char *key, int64_t confirmation_id, int64_t expires_at_ms, const char *signature);

struct rp_answer_command {
    struct rp_command command;
    int64_t confirmation_id;
    bool yes;
    const char *words; /* "" */
    struct rp_arena *arena;
    /* out */
    const char *event; /* mark.confirmed, mark.dead; NULL: nothing follows from it */
    struct rp_confirmation confirmation;
    struct rp_mark mark;
    char store[RP_STORE_NAME];
};
/* RP_ENOTFOUND; RP_EANSWERED: it has said something else before; RP_EGONE: the mark has ended. */
extern const struct rp_verb rp_verb_answer;

/* ---- restores ---- */

/* A refusal to restore what services are asked about, RP_ETOOLATE, says after `before` which they are,
 * and what can be done; or that nobody was asked yet. Any other stays as it is. */
int rp_confirm_refuse(struct rp_db *db, const struct rp_mark *mark, struct rp_arena *arena, const char *before,
                      struct rp_error *refusal, struct rp_error *err);

/* ---- dead letters ---- */

/* Each that has not said yes is to be asked anew, with a deadline of its own. */
int rp_confirmations_renew(struct rp_tx *tx, int64_t mark_id, struct rp_error *err);
/* "calendar, billing": who has said yes; "": nobody. */
int rp_confirmations_agreed(struct rp_db *db, int64_t mark_id, struct rp_arena *arena, const char **out,
                            struct rp_error *err);
/* [{"name","state","attempts",...,"tries":[{"at","status","body","error"}]}] of a mark. */
int rp_confirmations_json(struct rp_db *db, int64_t mark_id, struct rp_arena *arena, json_t **out,
                          struct rp_error *err);

#endif
