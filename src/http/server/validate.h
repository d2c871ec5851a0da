/* SPDX-License-Identifier: Apache-2.0 */
/* validate.h - what a request carries, held against its route's shapes: query, body,
 * Idempotency-Key. */
#ifndef RP_HTTP_SERVER_VALIDATE_H
#define RP_HTTP_SERVER_VALIDATE_H

#include "http/server/request.h"

/* What can be said from the headers alone, before a body is read: 413, 415, 400; 503 if there is no
 * memory for it now. */
int rp_validate_headers(struct rp_request *q, struct rp_error *err);
/* Fills q->query, q->body, q->key and q->digest. */
int rp_validate(struct rp_request *q, struct rp_error *err);

#endif
