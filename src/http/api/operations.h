/* SPDX-License-Identifier: Apache-2.0 */
/* operations.h - what an operator looks at and decides: dead letters, holds, stores. One file each;
 * their rows are joined in operations.c. */
#ifndef RP_HTTP_API_OPERATIONS_H
#define RP_HTTP_API_OPERATIONS_H

#include "http/server/request.h"

/* dead_letters.c */
extern const struct rp_shape rp_shape_dead, rp_shape_dead_shown, rp_shape_decided, rp_shape_retry, rp_shape_retried;
rp_handler_fn rp_http_list_dead, rp_http_get_dead, rp_http_retry_dead, rp_http_keep_dead, rp_http_retry_all;
/* holds.c */
extern const struct rp_shape rp_shape_hold, rp_shape_hold_request, rp_shape_placed, rp_shape_lifted;
rp_handler_fn rp_http_list_holds, rp_http_place_hold, rp_http_lift_hold;
/* stores.c */
extern const struct rp_shape rp_shape_store;
rp_handler_fn rp_http_list_stores;

#endif
