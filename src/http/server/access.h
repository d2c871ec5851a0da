/* SPDX-License-Identifier: Apache-2.0 */
/* access.h - whether a request may do what it asks: who it is, and what its route wants.
 *
 * C1  Nothing is told apart that a guesser could use: an unknown, an expired and a revoked token
 *     give the same 401.
 * C2  A change that is authorised by a cookie needs the CSRF header (session.h); a bearer token
 *     needs none.
 * C3  The audience and the scope are checked before anything of the request is looked at: 403. */
#ifndef RP_HTTP_SERVER_ACCESS_H
#define RP_HTTP_SERVER_ACCESS_H

#include "http/server/request.h"

/* 0: it may, and q->who says who. RP_EUNKNOWN: the catalog must be asked, `db` was NULL. */
int rp_access_check(struct rp_request *q, struct rp_db *db, struct rp_error *err);
/* The session's secret, if the request came with one. */
const char *rp_access_session(const struct rp_request *q);
/* A secret was looked up and is none: 401, with the words that are in `err`, or 429 if its address
 * has failed too often lately. Only who fails is told so: a valid one is never refused for what
 * others try. */
int rp_access_failed(const struct rp_request *q, struct rp_error *err);

#endif
