/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/nearest.h"

#include <stdint.h>
#include <string.h>

/* Distances are not counted further than this; texts that differ more are not alike. */
#define NEAR_MOST      3
#define NEAR_BYTES_MAX 63

static size_t least(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Levenshtein's distance, one row at a time. */
static size_t distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b), row[NEAR_BYTES_MAX + 1];
    if (na > NEAR_BYTES_MAX || nb > NEAR_BYTES_MAX) return SIZE_MAX;
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t above = row[j];
            row[j] = least(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[nb];
}

const char *rp_text_nearest(const char *text, const char *const *candidates, size_t n)
{
    const char *best = NULL;
    size_t best_distance = NEAR_MOST + 1;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(text, candidates[i]);
        /* Half of a short word changed is another word. */
        if (d >= best_distance || d * 2 > strlen(candidates[i])) continue;
        best = candidates[i];
        best_distance = d;
    }
    return best;
}
