/* SPDX-License-Identifier: Apache-2.0 */
/* random.h - numbers that only have to be spread (splitmix64): pauses, and the simulator's choices.
 * The state is the caller's, any seed will do. Nothing that must not be guessed is drawn here. */
#ifndef RP_BASE_RANDOM_H
#define RP_BASE_RANDOM_H

#include <stdint.h>

static inline uint64_t rp_random_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t rp_random_next(uint64_t *state)
{
    return rp_random_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

#endif
