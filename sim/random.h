/* SPDX-License-Identifier: Apache-2.0 */
/* random.h - streams of numbers that a seed decides. Each thing that chooses has a stream of its
 * own, so that taking one away changes nothing of what the others choose. */
#ifndef RP_SIM_RANDOM_H
#define RP_SIM_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"

struct sim_random {
    uint64_t at;
};

static inline struct sim_random sim_stream(uint64_t seed, uint64_t name)
{
    return (struct sim_random){ rp_random_mix(seed * UINT64_C(0xD1342543DE82EF95) + rp_random_mix(name + 1)) };
}

static inline uint64_t sim_next(struct sim_random *r)
{
    return rp_random_next(&r->at);
}

/* low .. high, both included. */
static inline int64_t sim_between(struct sim_random *r, int64_t low, int64_t high)
{
    return low + (int64_t)(sim_next(r) % (uint64_t)(high - low + 1));
}

static inline size_t sim_index(struct sim_random *r, size_t n)
{
    return (size_t)(sim_next(r) % n);
}

/* So many times in 10,000. */
static inline bool sim_chance(struct sim_random *r, int per_10000)
{
    return (int64_t)(sim_next(r) % 10000) < per_10000;
}

#endif
