/* SPDX-License-Identifier: Apache-2.0 */
/* mutant.h - mistakes made on purpose, to see that the simulator's checkers notice each of them.
 *
 * MU1 The product has none of them: each is a patch of this folder. Only the copy of the rules that
 *     sim_mutants is built from has them, all at once (apply); every file of it includes this one.
 * MU2 One mistake at a time: `rp_mutant` is set before the first thread starts, by the simulator
 *     alone.
 * MU3 A mistake is one line where the rule is kept, and such as a colleague could make. Our own
 *     assertions stay satisfied as far as possible: whoever looks from outside has to find it.
 *
 * mutant_table.h is made from the patches. Its columns: the name in code; the name that is typed;
 * the names, with blanks between them, of which the violation must have one; what is wrong. */
#ifndef RP_SIM_MUTANT_H
#define RP_SIM_MUTANT_H

#include "mutant_table.h"

#define RP_MUTANT_ID(id, name, breaks, what) RP_MUTANT_##id,
enum rp_mutant { RP_MUTANT_NONE, RP_MUTANT_TABLE(RP_MUTANT_ID) RP_MUTANTS_N };
#undef RP_MUTANT_ID

extern enum rp_mutant rp_mutant; /* RP_MUTANT_NONE at the start */
#define RP_MUTANT(id) (rp_mutant == RP_MUTANT_##id)

struct rp_mutant_row {
    const char *name, *breaks, *what;
};
extern const struct rp_mutant_row rp_mutant_rows[RP_MUTANTS_N]; /* [RP_MUTANT_NONE] is empty */

#endif
