/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mutant.h"

#ifdef RP_MUTANTS

#include <string.h>

enum rp_mutant rp_mutant = RP_MUTANT_NONE;

const struct rp_mutant_row rp_mutant_rows[RP_MUTANTS_N] = { [RP_MUTANT_NONE] = { "", "", "" },
#define X(id, name, breaks, what) [RP_MUTANT_##id] = { name, breaks, what },
                                                            RP_MUTANT_TABLE(X)
#undef X
};

enum rp_mutant rp_mutant_find(const char *name)
{
    for (int i = RP_MUTANT_NONE + 1; i < RP_MUTANTS_N; i++)
        if (strcmp(rp_mutant_rows[i].name, name) == 0) return (enum rp_mutant)i;
    return RP_MUTANT_NONE;
}

#endif
