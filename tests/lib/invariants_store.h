/* SPDX-License-Identifier: Apache-2.0 */
/* invariants_store.h - the questions that need the store: NO-LOSS, NEWER-WINS, RESTORE-WINS,
 * EVENTUAL, and what we left there. */
#ifndef RP_TESTS_LIB_INVARIANTS_STORE_H
#define RP_TESTS_LIB_INVARIANTS_STORE_H

#include "lib/invariants.h"

int inv_check_store(const struct inv_world *world, enum inv_when when, struct rp_buf *out);

#endif
