/* SPDX-License-Identifier: Apache-2.0 */
#include "mutant.h"

enum rp_mutant rp_mutant = RP_MUTANT_NONE;

const struct rp_mutant_row rp_mutant_rows[RP_MUTANTS_N] = { [RP_MUTANT_NONE] = { "", "", "" },
#define X(id, name, breaks, what) [RP_MUTANT_##id] = { name, breaks, what },
                                                            RP_MUTANT_TABLE(X)
#undef X
};
