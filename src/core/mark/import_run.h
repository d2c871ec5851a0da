/* SPDX-License-Identifier: Apache-2.0 */
/* import_run.h - an import (import.h) as a run of kind `import`, named like its store: one at a
 * time, with figures, cancel, and one record.
 *
 * I6  What is looked at is `scanned`, new marks are `marked`; what is marked already, says neither
 *     yes nor no or is refused like any mark is `skipped`. An object that could not be read is
 *     `failed` and an error. Ages are those of the annotations.
 * I7  A run that died is not carried on: the next one goes past what it has marked. */
#ifndef RP_CORE_IMPORT_RUN_H
#define RP_CORE_IMPORT_RUN_H

#include "core/mark/import.h"
#include "core/run/carry.h"

#include <signal.h>

struct rp_importer {
    struct rp_catalog *catalog;
    struct rp_import import;           /* store, prefix, actor, limit are set */
    const volatile sig_atomic_t *stop; /* set: it ends between two batches, partial; may be NULL */
    /* After every batch; may be NULL. */
    void (*finished)(void *ctx, const struct rp_import *import, const struct rp_run *run);
    void *ctx;
};

/* To its end, with its record, once it was begun (rp_run_begin). `outcome`: done, partial, failed,
 * cancelled. Negative: why it failed, or has no record. */
int rp_import_carry(struct rp_importer *importer, struct rp_run *run, const char **outcome, struct rp_error *err);

#endif
