/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

_Noreturn void rp_assert_failed(const char *fact, const char *file, int line, const char *function)
{
    /* Straight to the descriptor: the state behind stdio may be what is broken. */
    (void)dprintf(STDERR_FILENO, "reprieve: bug: \"%s\" does not hold in %s (%s:%d); stopping\n", fact, function, file,
                  line);
    abort();
}
