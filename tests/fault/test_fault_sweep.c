/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of the sweeps fails once. */
#include "fault/loop.h"

int main(int argc, char **argv)
{
    return loop_main("the sweeps", programs_of_sweeps, programs_of_sweeps_n, argc > 1 ? argv[1] : NULL);
}
