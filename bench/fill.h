/* SPDX-License-Identifier: Apache-2.0 */
/* fill.h - a catalog that holds many marks, put there through the library: rows, tallies and audit
 * chain as `mark` leaves them, but for objects that need not exist. */
#ifndef RP_BENCH_FILL_H
#define RP_BENCH_FILL_H

#include <stdbool.h>
#include <stddef.h>

struct bench_fill {
    size_t waiting_n; /* due in 20 days, of objects that are not there */
    size_t due_n;     /* due now, of objects made in `objects_dir` */
    const char *objects_dir;
    bool scattered; /* the due ones lie among the waiting ones, by key and by age; else together */
};

/* Fills the catalog of a configuration with one store, `main`. In a process of its own: what is
 * measured afterwards does not inherit its memory. */
void bench_fill(const char *config_file, const struct bench_fill *fill);

#endif
