/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of what users do with files fails once. */
#include "fault/loop.h"

int main(int argc, char **argv)
{
    return loop_main("files", programs_of_files, programs_of_files_n, argc > 1 ? argv[1] : NULL);
}
