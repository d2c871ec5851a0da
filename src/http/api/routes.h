/* SPDX-License-Identifier: Apache-2.0 */
/* routes.h - the tables that routes.c joins, for those who walk them. */
#ifndef RP_HTTP_API_ROUTES_H
#define RP_HTTP_API_ROUTES_H

#include "http/route/route.h"

extern const struct rp_routes *const rp_route_tables[];
extern const size_t rp_route_tables_n;

/* "GET, DELETE": the methods that a known path has. NULL: no memory. */
struct rp_arena;
const char *rp_route_allow(struct rp_arena *arena, const char *path);

#endif
