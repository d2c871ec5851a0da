/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define EPOCH_MS     INT64_C(1577836800000) /* 2020-01-01T00:00:00Z */
#define COUNTER_BITS 13
#define LANE_BITS    8
#define TIME_SHIFT   (COUNTER_BITS + LANE_BITS)
#define COUNTER_MAX  ((INT64_C(1) << COUNTER_BITS) - 1)
#define TICK_MAX     ((INT64_C(1) << (63 - TIME_SHIFT)) - 1)
#define DIGITS       13
#define PREFIX       4

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

static const char *const prefixes[RP_ID_KINDS] = {
    [RP_ID_FILE] = "fil_", [RP_ID_MARK] = "mrk_",  [RP_ID_TRANSACTION] = "txn_",
    [RP_ID_RUN] = "run_",  [RP_ID_EVENT] = "evt_", [RP_ID_TOKEN] = "tok_",
    [RP_ID_HOLD] = "hld_", [RP_ID_DEAD] = "ded_",  [RP_ID_CONFIRMATION] = "cnf_",
};

static int64_t tick_of(int64_t ms)
{
    if (ms <= EPOCH_MS) return 0;
    return ms - EPOCH_MS < TICK_MAX ? ms - EPOCH_MS : TICK_MAX;
}

static int64_t compose(int64_t tick, int lane)
{
    return tick << TIME_SHIFT | (int64_t)lane << COUNTER_BITS;
}

int64_t rp_id_next(int64_t last, int64_t now_ms, int lane)
{
    RP_ASSERT(lane >= 0 && lane <= RP_LANE_MAX && last >= 0);
    RP_ASSERT(last == 0 || (last >> COUNTER_BITS & RP_LANE_MAX) == lane);
    int64_t fresh = compose(tick_of(now_ms), lane);
    if (fresh > last) return fresh;
    /* The clock stands or went back: count on from the last id, into milliseconds to come if need
     * be. */
    if ((last & COUNTER_MAX) < COUNTER_MAX) return last + 1;
    RP_ASSERT(last >> TIME_SHIFT < TICK_MAX);
    return compose((last >> TIME_SHIFT) + 1, lane);
}

int64_t rp_id_time_ms(int64_t id)
{
    RP_ASSERT(id >= 0);
    return EPOCH_MS + (id >> TIME_SHIFT);
}

int64_t rp_id_floor(int64_t ms)
{
    return ms > EPOCH_MS + TICK_MAX ? INT64_MAX : compose(tick_of(ms), 0);
}

const char *rp_id_format(enum rp_id_kind kind, int64_t id, char out[RP_ID_TEXT])
{
    RP_ASSERT((unsigned)kind < RP_ID_KINDS && id >= 0);
    _Static_assert(PREFIX + DIGITS < RP_ID_TEXT, "an id's text fits");
    memcpy(out, prefixes[kind], PREFIX);
    for (int i = 0; i < DIGITS; i++)
        out[PREFIX + i] = alphabet[id >> (5 * (DIGITS - 1 - i)) & 31];
    out[PREFIX + DIGITS] = '\0';
    return out;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int kind_of(const char *lowered)
{
    for (int kind = 0; kind < RP_ID_KINDS; kind++)
        if (memcmp(lowered, prefixes[kind], PREFIX) == 0) return kind;
    return -1;
}

bool rp_id_parse(const char *text, enum rp_id_kind *kind, int64_t *id)
{
    char lowered[PREFIX + DIGITS];
    if (strnlen(text, sizeof lowered + 1) != sizeof lowered) return false;
    for (size_t i = 0; i < sizeof lowered; i++)
        lowered[i] = lower(text[i]);
    int found = kind_of(lowered);
    if (found < 0 || lowered[PREFIX] > '7') return false; /* above 7: more than 63 bits */
    int64_t value = 0;
    for (size_t i = PREFIX; i < sizeof lowered; i++) {
        const char *digit = memchr(alphabet, lowered[i], sizeof alphabet - 1);
        if (digit == NULL) return false;
        value = value << 5 | (digit - alphabet);
    }
    *kind = (enum rp_id_kind)found;
    *id = value;
    return true;
}

static int by_number(const void *a, const void *b)
{
    return rp_id_order(*(const int64_t *)a, *(const int64_t *)b);
}

size_t rp_ids_sort(int64_t *ids, size_t n)
{
    size_t left = 0;
    if (n > 0) qsort(ids, n, sizeof *ids, by_number);
    for (size_t i = 0; i < n; i++)
        if (left == 0 || ids[i] != ids[left - 1]) ids[left++] = ids[i];
    return left;
}

bool rp_ids_contain(const int64_t *sorted, size_t n, int64_t id)
{
    return n > 0 && bsearch(&id, sorted, n, sizeof *sorted, by_number) != NULL;
}
