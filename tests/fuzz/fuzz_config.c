/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a configuration: an answer within bounds, and on failure exactly one error with
 * words. */
#include <stdint.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_config(const struct rp_config *config)
{
    RP_ASSERT(config->environment && config->catalog_url && config->log_file && config->log_level);
    RP_ASSERT(config->n_stores <= RP_STORES_MAX && config->n_databases <= RP_DATABASES_MAX);
    for (size_t i = 0; i < config->n_stores; i++) {
        const struct rp_store_config *store = &config->stores[i];
        RP_ASSERT(store->name && store->path && store->path[0] && store->mode <= RP_MODE_PURGE);
        RP_ASSERT(store->grace_ms >= 0 && store->line > 0);
        for (size_t j = 0; j < store->n_referenced_by; j++)
            RP_ASSERT(rp_config_database(config, store->referenced_by[j].database));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA((size_t)16 << 20);
    struct rp_config config = { 0 };
    struct rp_error err = { 0 };
    int rc = rp_config_parse((const char *)data, size, "reprieve.yaml", "/fuzz", &arena, &config, &err);
    if (rc == 0)
        check_config(&config);
    else
        RP_ASSERT(err.code == rc && err.text[0] && config.environment == NULL);
    return 0;
}
