/* SPDX-License-Identifier: Apache-2.0 */
/* dead.h - what a person can do with a dead letter: have it tried again where it was, or give it up. */
#ifndef RP_CORE_DEAD_H
#define RP_CORE_DEAD_H

#include "catalog/dead.h"

/* Tries again at once, attempts counted from zero. RP_EHELD: its copy in quarantine is being erased at this moment. `store` is the store's name. RP_ENOTFOUND: no open letter. */
int rp_dead_retry(struct rp_catalog *catalog, int64_t dead_id, const char *store, const char *actor,
                  struct rp_error *err);
/* Gives the mark up: reprieved if nothing can have been erased, else lost. `as` says which. */
int rp_dead_keep(struct rp_catalog *catalog, int64_t dead_id, const char *store, const char *actor, enum rp_state *as,
                 struct rp_error *err);

#endif
