/* SPDX-License-Identifier: Apache-2.0 */
/* id.h - identifiers: 63 bits, ordered by time, with a prefix that says of what.
 *
 *   bits 62..21  milliseconds since 2020-01-01 UTC
 *   bits 20..13  lane (0..255), so that two writers never make the same id
 *   bits 12..0   counter within the millisecond
 *
 * I1  Ids of one lane only grow: the lane's row keeps the last one, read and written in the same
 *     transaction as whatever carries the id. A clock that goes back does not repeat an id.
 * I2  The text form (`mrk_` and 13 characters of Crockford's base 32, lower case) sorts like the
 *     number. */
#ifndef RP_BASE_ID_H
#define RP_BASE_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RP_ID_TEXT  20 /* bytes of any id's text, NUL included */
#define RP_LANE_MAX 255

enum rp_id_kind {
    RP_ID_FILE,
    RP_ID_MARK,
    RP_ID_TRANSACTION,
    RP_ID_RUN,
    RP_ID_EVENT,
    RP_ID_TOKEN,
    RP_ID_HOLD,
    RP_ID_DEAD,
    RP_ID_CONFIRMATION,
    RP_ID_KINDS
};

/* The id that follows `last` (of the same lane; 0: none yet) at this moment in this lane. Never
 * 0. */
int64_t rp_id_next(int64_t last, int64_t now_ms, int lane);
int64_t rp_id_time_ms(int64_t id);
/* The smallest id that any lane could have made at this moment: for "since T" as a range of ids. */
int64_t rp_id_floor(int64_t ms);
const char *rp_id_format(enum rp_id_kind kind, int64_t id, char out[RP_ID_TEXT]);
/* False if the text is no id of any kind (a store's key, a name, ...). Input is taken in either
 * case; only the exact length and alphabet count. */
bool rp_id_parse(const char *text, enum rp_id_kind *kind, int64_t *id);

/* As qsort and bsearch want it: negative, 0, positive. */
static inline int rp_id_order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}
/* Sorts them and leaves each once: returns how many are left. */
size_t rp_ids_sort(int64_t *ids, size_t n);
bool rp_ids_contain(const int64_t *sorted, size_t n, int64_t id);

#endif
