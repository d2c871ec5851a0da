/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of what users do fails once. */
#include "fault/loop.h"

int main(int argc, char **argv)
{
    return loop_main("what users do", programs_of_users, programs_of_users_n, argc > 1 ? argv[1] : NULL);
}
