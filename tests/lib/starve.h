/* SPDX-License-Identifier: Apache-2.0 */
/* starve.h - memory that is refused: the n-th allocation that our own code asks for on this thread
 * fails, once.
 *
 * A1  What counts is what the linker wraps (`allocators` in tests/meson.build): malloc and its kin,
 *     the arenas, and jansson after starve_json(). Memory of other libraries, and of the tests' own
 *     objects, is never refused.
 * A2  A pause leaves the count as it is: for what a test does by itself between two allocations. */
#ifndef RP_TESTS_LIB_STARVE_H
#define RP_TESTS_LIB_STARVE_H

#include <stdbool.h>
#include <stdint.h>

#define STARVE_MAX 20000 /* allocations between arm and disarm */

/* The `refuse`th from now on fails; 0: none. */
void starve_arm(int refuse);
void starve_pause(void);
void starve_resume(void);
/* How many there were. */
int starve_disarm(void);
bool starve_struck(void); /* since the last starve_arm */
/* Until the next disarm: by which calls each was asked for, in sites[1] to sites[STARVE_MAX -
 * 1]. */
void starve_note(uint64_t *sites);
/* Once, before jansson is used. */
void starve_json(void);

#endif
