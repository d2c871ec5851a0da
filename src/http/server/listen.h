/* SPDX-License-Identifier: Apache-2.0 */
/* listen.h - the socket that the server listens on (N4). */
#ifndef RP_HTTP_SERVER_LISTEN_H
#define RP_HTTP_SERVER_LISTEN_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* "127.0.0.1:8420", "[::1]:8420", "localhost:0". A public address is refused unless `public_ok`.
 * `address` is where it really listens. */
int rp_listen(const char *where, bool public_ok, int *fd, char *address, size_t size, struct rp_error *err);

#endif
