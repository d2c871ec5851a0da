/* SPDX-License-Identifier: Apache-2.0 */
/* tenants.h - tenants that admins named lately: name to number. A tenant never goes, so what was
 * seen once stays true; the number of entries is bounded and the one in the way is replaced. */
#ifndef RP_HTTP_SERVER_TENANTS_H
#define RP_HTTP_SERVER_TENANTS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct rp_tenants;

int rp_tenants_new(struct rp_tenants **out, struct rp_error *err);
void rp_tenants_free(struct rp_tenants *tenants);
bool rp_tenants_find(struct rp_tenants *tenants, const char *name, int64_t *id);
void rp_tenants_put(struct rp_tenants *tenants, const char *name, int64_t id);

#endif
