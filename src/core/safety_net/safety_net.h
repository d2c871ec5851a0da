/* SPDX-License-Identifier: Apache-2.0 */
/* safety_net.h - finds files and marks that no sweep would reach, and brings them back: also what was
 * bad before Reprieve came, or was edited by hand. A run of kind `safety_net` with lock, figures and
 * record. It erases nothing: it makes marks, which come due, are held and restored like any.
 *
 * G1  What is looked for is said by a table of steps:
 *       deletes, uploads   a file that is deleted (pending), and no mark waits for it
 *       children           a file that lives, and what it belongs to (parent, source) is gone
 *       marks              a mark that waits, and nobody will look at it
 *       letters            a dead mark without a letter
 *     What a person has given up (`dead keep`) is no finding.
 * G2  A page is read of an index that holds nothing that lives, without locks. What is found is
 *     one command with a round of its own, which locks the tenants, asks of each again whether it
 *     is so, and mends those: while others are at work, nothing of theirs is a finding.
 * G3  A promise is never shortened: a delete has the store's grace from now on, an upload its time
 *     to be confirmed; a mark is looked at when it was due, or at once.
 * G4  A run mends `limit` at most, and looks at RP_NET_PAGES pages of a step at most. Where a step
 *     stands is kept with each batch: the next run goes on there, and begins anew at its end. So
 *     all of it is covered, however much there is.
 * G5  A batch, its figures and its audit rows are one commit; each finding is a line of the log.
 *     One that cannot be mended is counted as failed and holds up no other.
 * G6  A stop leaves the run open, to be taken over; a cancel ends it with its record.
 * G7  Readers of the feed (webhooks, the processor) that are far behind are told and counted: nothing
 *     here could mend them. */
#ifndef RP_CORE_SAFETY_NET_H
#define RP_CORE_SAFETY_NET_H

#include "catalog/orphan.h"
#include "core/file/file.h"
#include "core/run/carry.h"

#define RP_NET_BATCH 1000
#define RP_NET_PAGES 100     /* of a run, a step: 100,000 rows */
#define RP_NET_NAME  "files" /* of its runs: what they are about */

struct rp_safety_net {
    struct rp_catalog *catalog;
    const struct rp_config *config; /* the names and graces of the stores */
    const struct rp_upload_rules *uploads;
    const struct rp_worker *worker;
    const char *actor;
    int64_t limit;
    int64_t stale_after_ms;
    const volatile sig_atomic_t *cancel; /* set: the run ends between two batches, `cancelled`; may be NULL */
    const volatile sig_atomic_t *stop;   /* G6; may be NULL */
    /* After each batch, with the figures so far. May be NULL. */
    void (*finished)(void *ctx, const struct rp_run *run);
    void *ctx;
};

/* Takes an open run over that nobody works on, or begins one. RP_ERUNNING: somebody works on
 * one. */
int rp_safety_net_begin(struct rp_safety_net *net, struct rp_run *out, struct rp_error *err);
/* Carries a run that was begun or resumed to its end (core/run/carry.h). `outcome`: done, cancelled,
 * failed; NULL: it is still open. */
int rp_safety_net_carry(struct rp_safety_net *net, struct rp_run *run, const char **outcome, struct rp_error *err);

/* What a run would find now, from the beginning on, without a limit; nothing is written. `found` is
 * told of each. `complete` false: a step has more rows than are looked at, or what is gone has more
 * children than are told at once (RP_NET_BATCH). */
struct rp_net_finding {
    const struct rp_orphan *orphan; /* with what is wrong with it */
    const char *would;              /* what would be done */
    bool of_mark;                   /* the orphan is a mark, not a file */
};
/* {"subject":"store:key","what":...}, with the file, what it belonged to, the mark, as far as there
 * are. */
json_t *rp_net_finding_json(const struct rp_net_finding *finding);
typedef int rp_net_found_fn(void *ctx, const struct rp_net_finding *finding, struct rp_error *err);
int rp_safety_net_dry_run(struct rp_safety_net *net, rp_net_found_fn *found, void *ctx, struct rp_figures *figures,
                          bool *complete, struct rp_error *err);

#endif
