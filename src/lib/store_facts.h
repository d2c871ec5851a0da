/* SPDX-License-Identifier: Apache-2.0 */
/* store_facts.h - what a store allows and guarantees, whose it is, and what waits there. Looks,
 * changes nothing. */
#ifndef RP_LIB_STORE_FACTS_H
#define RP_LIB_STORE_FACTS_H

#include "base/error.h"
#include "catalog/catalog.h"
#include "core/owner/raise.h"

#include <jansson.h>

struct rp_store_facts {
    const struct rp_store_config *config;
    const char *guarantee, *owner; /* "-": not looked at */
    int64_t probed_at_ms,
        changed_at_ms;           /* when the guarantee was last probed; when keys were seen to change; 0: never */
    struct rp_raise_state raise; /* of this process: a raise of the epoch that is owed */
    bool failed;
    struct rp_error error; /* failed: why */
    int64_t waiting, bytes, due;
};

/* How many marks each store has in each state; read once for all stores. */
struct rp_tallies;
int rp_tallies_read(struct rp_db *db, struct rp_tallies **out, struct rp_error *err);
void rp_tallies_freep(struct rp_tallies **tallies);

/* `store` NULL: it could not be opened, and `why` says so. Returns negative only if the catalog
 * failed. */
int rp_store_facts(struct rp_catalog *catalog, const struct rp_store_config *config, struct rp_store *store,
                   const struct rp_error *why, const struct rp_tallies *tallies, int64_t now_ms,
                   struct rp_store_facts *out, struct rp_error *err);
json_t *rp_store_facts_json(const struct rp_store_facts *facts);

#endif
