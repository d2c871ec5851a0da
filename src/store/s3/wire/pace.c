/* SPDX-License-Identifier: Apache-2.0 */
#include "store/s3/wire/parts.h"

#include "base/assert.h"
#include "base/random.h"

#define SECOND_NS INT64_C(1000000000)
#define MS_NS     INT64_C(1000000)
#define BURST_NS  (100 * MS_NS) /* requests that were not made may be made up for, as far as this */

#define PAUSE_FIRST_MS 100
#define PAUSE_MAX_MS   10000

void rp_s3_pace_init(struct s3_pace *pace, int64_t requests_per_second, uint64_t seed)
{
    RP_ASSERT(requests_per_second >= 0);
    *pace = (struct s3_pace){ .limit = S3_LIMIT_FIRST, .random = seed };
    if (requests_per_second > 0) pace->interval_ns = SECOND_NS / requests_per_second;
}

int64_t rp_s3_pace_wait_ms(const struct s3_pace *pace, int64_t now_ms)
{
    if (pace->interval_ns == 0) return 0;
    int64_t early_ns = pace->next_ns - now_ms * MS_NS;
    return early_ns <= 0 ? 0 : (early_ns + MS_NS - 1) / MS_NS;
}

uint64_t rp_s3_pace_begin(struct s3_pace *pace, int64_t now_ms)
{
    int64_t oldest_ns = now_ms * MS_NS - BURST_NS;
    if (pace->next_ns < oldest_ns) pace->next_ns = oldest_ns;
    pace->next_ns += pace->interval_ns;
    return pace->begun++;
}

void rp_s3_pace_good(struct s3_pace *pace)
{
    if (++pace->good < pace->limit) return;
    pace->good = 0;
    if (pace->limit < S3_LIMIT_MAX) pace->limit++;
}

void rp_s3_pace_slow(struct s3_pace *pace, uint64_t number)
{
    RP_ASSERT(number < pace->begun);
    if (number < pace->halved_at) return;
    pace->halved_at = pace->begun;
    pace->good = 0;
    if (pace->limit > 1) pace->limit /= 2;
}

int64_t rp_s3_pace_pause_ms(struct s3_pace *pace, unsigned repetition, int64_t asked_ms)
{
    RP_ASSERT(repetition > 0 && asked_ms >= 0);
    int64_t bound_ms = PAUSE_FIRST_MS;
    for (unsigned i = 1; i < repetition && bound_ms < PAUSE_MAX_MS; i++)
        bound_ms *= 2;
    if (bound_ms > PAUSE_MAX_MS) bound_ms = PAUSE_MAX_MS;
    return asked_ms + (int64_t)(rp_random_next(&pace->random) % (uint64_t)(bound_ms + 1));
}
