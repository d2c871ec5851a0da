/* SPDX-License-Identifier: Apache-2.0 */
/* restoring.h - a restore in bulk in a world: begun, carried, looked at. As the tester. What must
 * succeed ends the test when it does not. */
#ifndef RP_TESTS_LIB_RESTORING_H
#define RP_TESTS_LIB_RESTORING_H

#include "core/restore/restore.h"
#include "lib/world.h"

#define RESTORING_STALE RP_HOUR_MS

struct restoring {
    struct world *w;
    struct rp_catalog *catalog;
    struct rp_restorer restorer;
    struct rp_run run;
    const char *outcome;
    int batches;
    void (*between)(struct restoring *t); /* after the first batch */
    volatile sig_atomic_t stop, cancel;
    bool down;                  /* the catalog does not answer any more; the test's own */
    struct world_steps *moving; /* the test's own */
};

struct restoring *restoring_new(struct world *w, struct rp_catalog *catalog);
void restoring_free(struct restoring **t);
void restoring_begin(struct restoring *t, const struct rp_restore_filter *filter);
const char *restoring_carry(struct restoring *t);                             /* the outcome; NULL: it is still open */
void restoring_stop(struct restoring *t);                                     /* for `between`: it is left there */
void restoring_resume(struct restoring *t);                                   /* what another one left */
int64_t restoring_counted(struct world *w, int64_t run_id, const char *what); /* of its record */
void restoring_expect(struct world *w, int64_t run_id, const char *outcome);

struct rp_restore_filter restoring_prefix(struct world *w, const char *prefix);
/* Put, and marked as due at once; many of them, due in a day. */
void restoring_put_due(struct world *w, const char *key);
void restoring_mark_many(struct world *w, size_t n);

#endif
