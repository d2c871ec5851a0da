/* SPDX-License-Identifier: Apache-2.0 */
/* The one list of tables: a new file of api/ is joined here. */
#include "http/route/route.h"

const struct rp_routes *const rp_route_tables[] = {
    &rp_routes_files,   &rp_routes_transactions, &rp_routes_content, &rp_routes_marks,  &rp_routes_confirmations,
    &rp_routes_restore, &rp_routes_runs,         &rp_routes_alerts,  &rp_routes_live,   &rp_routes_operations,
    &rp_routes_quotas,  &rp_routes_audit,        &rp_routes_access,  &rp_routes_health, &rp_routes_service,
};
const size_t rp_route_tables_n = sizeof rp_route_tables / sizeof rp_route_tables[0];
