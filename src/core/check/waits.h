/* SPDX-License-Identifier: Apache-2.0 */
/* waits.h - users' databases and servers that do not answer are left alone for a while, so that the
 * sweeps of other stores go on.
 *
 * W1  One that did not answer is left alone for 5 s, twice as long after each further time, up to
 *     5 minutes; and for ten times as long as it kept us waiting, up to an hour. So it costs
 *     whoever asks again and again no more than an eleventh of the time. An answer ends that.
 * W2  A question that is wrong, and is told so at once, costs nothing: nobody is left alone for it.
 * W3  All stores that name a database share its wait. Only sweeps heed it: a person who asks is
 *     answered by whom it is about. Any thread may call. */
#ifndef RP_CORE_WAITS_H
#define RP_CORE_WAITS_H

#include <stdint.h>

struct rp_clock;
struct rp_error;
struct rp_waits;

/* Who is asked. */
struct rp_whom {
    const char *kind; /* "database" or "webhook" */
    const char *name; /* as configured; of a webhook STORE[N], its place in the list */
};

struct rp_waits *rp_waits_new(const struct rp_clock *clock); /* NULL: no memory */
void rp_waits_free(struct rp_waits *waits);
/* For whoever tells people: they are left alone for `left_ms` from now, because of `why`; NULL: they
 * answer again. */
typedef void rp_waits_fn(void *ctx, const struct rp_whom *whom, int64_t left_ms, const struct rp_error *why);
void rp_waits_tell(struct rp_waits *waits, rp_waits_fn *fn, void *ctx);

/* All below accept a NULL `waits`: nothing is ever left alone. */

const struct rp_clock *rp_waits_clock(const struct rp_waits *waits); /* NULL: the host's */
/* How much longer they are left alone, 0: not; `why` (may be NULL) then says so. */
int64_t rp_waits_left_ms(struct rp_waits *waits, const struct rp_whom *whom, struct rp_error *why);
/* They are asked now: the moment, to be handed to one of the next two. */
int64_t rp_waits_ask(const struct rp_waits *waits);
void rp_waits_answered(struct rp_waits *waits, const struct rp_whom *whom);
void rp_waits_failed(struct rp_waits *waits, const struct rp_whom *whom, int64_t asked_ms, const struct rp_error *why);

#endif
