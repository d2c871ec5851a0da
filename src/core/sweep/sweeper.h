/* SPDX-License-Identifier: Apache-2.0 */
/* sweeper.h - whoever purges what is due in stores, and whoever asks outside services before that
 * (core/confirm): in whose name, where, by which rules, until when. */
#ifndef RP_CORE_SWEEP_SWEEPER_H
#define RP_CORE_SWEEP_SWEEPER_H

#include "core/purge/purge.h"

#include <signal.h>

struct rp_sweeper {
    struct rp_catalog *catalog;
    struct rp_store *const *stores;
    size_t n_stores;
    const char *environment;
    const struct rp_worker *worker;
    struct rp_purge_rules rules;
    const volatile sig_atomic_t *stop;   /* set: end after what is under way; may be NULL */
    const volatile sig_atomic_t *enough; /* set: claim no more; may be NULL */
    bool lazily;                         /* the epoch is raised only if that was not done within the last minute */
};

bool rp_sweeper_is_stopped(const struct rp_sweeper *sweeper);
bool rp_sweeper_has_enough(const struct rp_sweeper *sweeper); /* also when it is stopped */

/* Why a store is not purged now, or 0: it could not be opened or probed, observe mode, not the
 * owner. Changes nothing. */
int rp_sweeper_may_purge(const struct rp_sweeper *sweeper, struct rp_store *store, struct rp_error *err);
/* The same right before claims: also raises the epoch and writes the owner record. */
int rp_sweeper_admit(const struct rp_sweeper *sweeper, struct rp_store *store, struct rp_error *err);

#endif
