/* SPDX-License-Identifier: Apache-2.0 */
/* slow_clients.h - connections that take too long to say what they want.
 *
 * The HTTP library ends a connection that is silent. One that sends a byte now and then would
 * stay for ever: this ends it when a whole request has not come within a bound. Only what is
 * read into memory is timed; uploads and answers are not. */
#ifndef RP_HTTP_SERVER_SLOW_CLIENTS_H
#define RP_HTTP_SERVER_SLOW_CLIENTS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct rp_slow_client;
struct rp_slow_clients;

int rp_slow_clients_start(int64_t patience_ms, struct rp_slow_clients **out, struct rp_error *err);
void rp_slow_clients_stop(struct rp_slow_clients *clients);
struct rp_slow_client *rp_slow_clients_add(struct rp_slow_clients *clients,
                                           int fd); /* NULL: no memory; the connection is not timed then */
void rp_slow_clients_remove(struct rp_slow_clients *clients, struct rp_slow_client *client);

/* From now on a request is waited for, or is not. Cheap; a NULL client is fine. */
void rp_slow_client_awaits(struct rp_slow_client *client, bool awaits);

#endif
