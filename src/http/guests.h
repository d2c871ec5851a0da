/* SPDX-License-Identifier: Apache-2.0 */
/* guests.h - connections that take too long to say what they want.
 *
 * The HTTP library ends a connection that is silent. One that sends a byte now and then would stay for ever: this ends it when
 * a whole request has not come within a bound. Only what is read into memory is timed; uploads and answers are not. */
#ifndef RP_HTTP_GUESTS_H
#define RP_HTTP_GUESTS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct rp_guest;
struct rp_guests;

int rp_guests_start(int64_t patience_ms, struct rp_guests **out, struct rp_error *err);
void rp_guests_stop(struct rp_guests *guests);
struct rp_guest *rp_guests_come(struct rp_guests *guests,
                                int fd); /* NULL: no memory; the connection is not timed then */
void rp_guests_go(struct rp_guests *guests, struct rp_guest *guest);

/* From now on a request is waited for, or is not. Cheap; a NULL guest is fine. */
void rp_guest_awaits(struct rp_guest *guest, bool awaits);

#endif
