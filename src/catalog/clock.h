/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - the wall clock of a host, judged by its boot clock.
 *
 * The catalog keeps for each start of each host what its two clocks said together: the *anchor*.
 * From there the boot clock tells the time as well: wall time then, and what has passed since.
 * So restarts and one-shot commands within one boot judge like a daemon that never stopped.
 *
 * J1  The first change after a boot makes the anchor. Before it nothing can be proved.
 * J2  Within 5 minutes of it the wall clock is right. Beyond that the time by the boot clock is
 *     one more clock that we see: promises count from the latest of the clocks, a purge needs
 *     the earliest (catalog.h, K5). So a clock set back and forth loses nothing.
 * J3  A wall clock more than 5 minutes ahead of it has jumped. While that stands, nothing is
 *     claimed (core/purge), and the time is that of the boot clock: for promises, records,
 *     leases, and for every clock that is as far ahead, such as that of PostgreSQL on the same
 *     host. A clock that was set back has not jumped.
 * J4  The anchor follows the wall clock by a thousandth of the time that passed, at most, and
 *     only within the 5 minutes: NTP and leap seconds get through, small steps add up to a jump.
 *     So within one boot no grace is shorter than promised by more than 10 minutes and a
 *     thousandth of it.
 * J5  A jump ends when the wall clock is back within the 5 minutes, or when a person accepts the
 *     time (core/clock.h). */
#ifndef RP_CATALOG_CLOCK_H
#define RP_CATALOG_CLOCK_H

#include "base/time.h"
#include "catalog/mark/mark.h"

/* What is known of this host's clocks. */
struct rp_clock_state {
    bool known;                      /* there is an anchor */
    int64_t wall_ms, boot_ms, db_ms; /* as read */
    int64_t by_boot_ms;              /* the time by the boot clock; the wall clock's if nothing is known */
    int64_t ahead_ms;                /* of the wall clock; negative: it was set back */
};
static inline bool rp_clock_has_jumped(int64_t ahead_ms)
{
    return ahead_ms > RP_CLOCKS_APART_MS;
}
/* Reads, changes nothing. */
int rp_clock_look(struct rp_catalog *catalog, struct rp_clock_state *out, struct rp_error *err);
/* From now on this process knows when its host booted, if the catalog does. */
int rp_clock_load(struct rp_catalog *catalog, struct rp_error *err);
/* RP_ECLOCK, and what to do, if the clock has jumped. */
int rp_clock_refuse(int64_t ahead_ms, struct rp_error *err);

/* ---- for the transaction (catalog.c) ---- */

/* Before it begins: the anchor, if this host has none since its boot. */
int rp_clock_make(struct rp_catalog *catalog, struct rp_error *err);
/* tx->db_ms and anchor are as read: reads the host's clocks and sets the times of K5. Asks for the
 * anchor once more if it shows a jump, for somebody may have accepted it while we waited for the
 * lane. */
int rp_clock_judge(struct rp_tx *tx, struct rp_error *err);
/* At its end: the anchor follows, and others can read how far ahead the clock is. */
int rp_clock_note(struct rp_tx *tx, struct rp_error *err);

/* ---- all hosts ---- */

/* The host whose clock is furthest ahead, of those that were heard of within the last half hour.
 * *ahead_ms 0: none is. */
int rp_clock_worst(struct rp_db *db, int64_t now_ms, int64_t *ahead_ms, char host[64], struct rp_error *err);

/* ---- to accept the time ---- */

/* Waiting marks of a store that a jump from `from_ms` to `to_ms` makes due, and those of them
 * whose grace was counted by the time before: made before it, and not due. */
int rp_clock_count_due(struct rp_db *db, int64_t store_id, int64_t from_ms, int64_t to_ms, int64_t *due,
                       int64_t *counted_before, struct rp_error *err);
/* The latter, at most out->max. */
int rp_clock_marks(struct rp_tx *tx, int64_t store_id, int64_t from_ms, int64_t to_ms, struct rp_marks *out,
                   struct rp_error *err);
/* The wall clock is right. No other transaction is under way when this returns, nor begins
 * before this one has committed: what they promised by the time before is there to be seen. Call
 * it before looking for it. */
int rp_clock_set(struct rp_tx *tx, struct rp_error *err);

#endif
