/* SPDX-License-Identifier: Apache-2.0 */
/* shape.h - JSON held against a shape of route.h.
 *
 * S1  What a caller sent is checked member by member and given the types that route.h promises to
 *     handlers, in place. An error names the member: "items[3].grace: expected a duration such as
 *     5d, found 7".
 * S2  A member that is null counts as not there.
 * S3  Answers are checked the other way round: what is said of them in openapi.json is what they
 *     have. Tests do that. */
#ifndef RP_HTTP_ROUTE_SHAPE_H
#define RP_HTTP_ROUTE_SHAPE_H

#include "base/error.h"
#include "http/route/route.h"

#include <jansson.h>

/* `now_ms` is the moment that durations ago are counted from. */
int rp_shape_take(const struct rp_shape *shape, json_t *object, int64_t now_ms, struct rp_error *err);
/* The members of a query: every one is a text. */
int rp_shape_take_query(const struct rp_shape *shape, json_t *texts, int64_t now_ms, struct rp_error *err);

int rp_shape_check(const struct rp_shape *shape, const json_t *answer, struct rp_error *err);
/* The whole answer of a route: a list with its cursor where it is one. */
int rp_shape_check_answer(const struct rp_route *route, const json_t *answer, struct rp_error *err);

/* The bounds that hold for a field whose own are 0, 0; false: the kind has none. */
bool rp_shape_bounds(const struct rp_field *field, int64_t *least, int64_t *most);

#define RP_SHAPE_MAP_NAME_MAX  128  /* bytes */
#define RP_SHAPE_MAP_VALUE_MAX 2048 /* bytes */

#endif
