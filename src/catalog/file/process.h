/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - what a processor is to be told of uploads: a job a file, kept until it has been told
 * (AT-LEAST-ONCE).
 *
 *   (none)  -> process   the file waits in `scanning`
 *   process -> (none)    a verdict came; or it ended before the first call
 *   process -> cancel    it was deleted, replaced, or expired after a call
 *   cancel  -> (none)    told, or given up
 *   cancel  -> process   it was restored
 *
 * P1  What the job is follows from the file's row (rp_process_sync), whatever came first, twice, or
 *     never: the events that lead there only say which files to look at.
 * P2  A call is claimed before it is made, by compare-and-set on the number of attempts, and its
 *     outcome counts only if that number is still the same.
 * P3  A process job whose attempts are used up is dead: it is called no more, and its file stays
 *     `scanning` until it is deleted or somebody posts its result. */
#ifndef RP_CATALOG_FILE_PROCESS_H
#define RP_CATALOG_FILE_PROCESS_H

#include "catalog/catalog.h"
#include "catalog/row.h"

#include <stdbool.h>
#include <stdint.h>

enum rp_process_action { RP_PROCESS = 1, RP_PROCESS_CANCEL = 2 };

#define RP_PROCESS_KEY 128

struct rp_process_job {
    int64_t file_id;
    char key[RP_PROCESS_KEY];
    enum rp_process_action action;
    int64_t attempts; /* with the one under way */
    int64_t made_at_ms;
};

/* P1 */
int rp_process_sync(struct rp_tx *tx, const int64_t *file_ids, size_t n, struct rp_error *err);
/* The net below P1, for what no event told of: scanning files without a job get one, jobs of files
 * that do not scan are synced, `max` of each at most. With `revive` dead jobs begin anew. */
int rp_process_mend(struct rp_tx *tx, size_t max, bool revive, struct rp_error *err);

/* Those that are due, the one that waits longest first. */
int rp_process_due(struct rp_db *db, int64_t now_ms, struct rp_process_job *out, size_t max, size_t *n,
                   struct rp_error *err);
/* P2: counts an attempt. *mine false: somebody else did, or the job is another one now. */
int rp_process_claim(struct rp_tx *tx, struct rp_process_job *job, int64_t lease_ms, bool *mine, struct rp_error *err);

/* How a call ended. */
enum rp_process_end { RP_PROCESS_TOLD, RP_PROCESS_AGAIN, RP_PROCESS_DEAD, RP_PROCESS_GIVEN_UP };
int rp_process_finish(struct rp_tx *tx, const struct rp_process_job *job, enum rp_process_end end, int64_t again_ms,
                      long status, struct rp_error *err);

int rp_process_count_dead(struct rp_db *db, int64_t most, int64_t *out, struct rp_error *err);

#endif
