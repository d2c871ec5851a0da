/* SPDX-License-Identifier: Apache-2.0 */
/* operations.c - the rows of what an operator looks at and decides. */
#include "http/api/operations.h"
#include "http/api/shapes.h"

static const struct rp_route routes[] = {
    { RP_ROUTE("GET", "/v1/dead-letters", RP_FOR_ADMINS, RP_MAY_READ_RUNS, rp_http_list_dead), .blocks = true,
      .query = &rp_shape_page, .answer = &rp_shape_dead, .many = true,
      .summary = "Lists what used up its attempts and waits for a person." },
    { RP_ROUTE("GET", "/v1/dead-letters/{id}", RP_FOR_ADMINS, RP_MAY_READ_RUNS, rp_http_get_dead), .blocks = true,
      .answer = &rp_shape_dead_shown, .errors = "not_found",
      .summary = "Shows one dead letter, with each call to the outside services that it needs a yes of." },
    { RP_ROUTE("POST", "/v1/dead-letters/{id}/retry", RP_FOR_ADMINS, RP_MAY_WRITE_RUNS, rp_http_retry_dead),
      .answer = &rp_shape_decided, .errors = "not_found",
      .summary = "Has it tried again where it was, when it is due, with attempts counted from zero.",
      .example = "-X POST" },
    { RP_ROUTE("POST", "/v1/dead-letters/{id}/keep", RP_FOR_ADMINS, RP_MAY_WRITE_RUNS, rp_http_keep_dead),
      .answer = &rp_shape_decided, .errors = "not_found name_taken owner_deleted too_late",
      .summary = "Gives the mark up: reprieved if nothing can have been erased, and its file lives again, else lost.",
      .example = "-X POST" },
    { RP_ROUTE("POST", "/v1/dead-letters/retry-all", RP_FOR_ADMINS, RP_MAY_WRITE_RUNS, rp_http_retry_all),
      .query = &rp_shape_retry, .answer = &rp_shape_retried,
      .summary = "Has all of them tried again, at most 1,000 a call, in one step.", .example = "-X POST" },
    { RP_ROUTE("GET", "/v1/holds", RP_FOR_ADMINS, RP_MAY_READ_RUNS, rp_http_list_holds), .blocks = true,
      .query = &rp_shape_page, .answer = &rp_shape_hold, .many = true, .summary = "Lists the holds in force." },
    { RP_ROUTE("POST", "/v1/holds", RP_FOR_ADMINS, RP_MAY_WRITE_RUNS, rp_http_place_hold),
      .body = &rp_shape_hold_request, .answer = &rp_shape_placed, .status = 201, .errors = "not_found not_owner",
      .summary = "Stops the purging of a subject, a prefix, a tenant or everything, until the hold is lifted.",
      .example = "-X POST -d '{\"scope\":\"main:legal/*\",\"reason\":\"case 12\"}'" },
    { RP_ROUTE("DELETE", "/v1/holds/{id}", RP_FOR_ADMINS, RP_MAY_WRITE_RUNS, rp_http_lift_hold),
      .answer = &rp_shape_lifted, .errors = "not_found", .summary = "Lifts a hold.", .example = "-X DELETE" },
    { RP_ROUTE("GET", "/v1/stores", RP_FOR_ADMINS, RP_MAY_READ_RUNS, rp_http_list_stores), .blocks = true,
      .answer = &rp_shape_store, .many = true,
      .summary = "Lists the stores: what each allows and guarantees, whose it is, what waits there." },
};
const struct rp_routes rp_routes_operations = { routes, sizeof routes / sizeof routes[0] };
