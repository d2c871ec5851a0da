/* SPDX-License-Identifier: Apache-2.0 */
/* guarantee.h - what a store was seen to guarantee: how exactly its deletes can name what they
 * delete, and how its clock goes.
 *
 * L1  The level is what a probe saw to hold. Until this process has probed, it is what the catalog
 *     remembers of the last probe, else the weakest (HONEST). It remembers by store and
 *     whereabouts: under the same name another bucket is another store.
 * L2  `keys: write_once` makes it exact, until one object is seen changed under its key: by a
 *     sweep, or by a mark that finds another upload than the mark before. The catalog remembers
 *     that, for every process and for good.
 * L3  A probe writes a canary, and only in modes that write; a mark makes do with what was seen
 *     within a day, a sweep needs a store that this process itself has probed, for the store relies
 *     on it. Whoever needs it first probes; the others wait for that.
 * L4  Keys that we name are never used again: objects of files and copies in quarantine are deleted
 *     exactly in any store.
 * L5  Sessions of one process that share a store share its guarantee. Any thread. */
#ifndef RP_CORE_GUARANTEE_H
#define RP_CORE_GUARANTEE_H

#include "catalog/mark/mark.h"
#include "core/store.h"

struct rp_guarantee;

/* `settled`: the backend vouches for `level`; it needs no canary. */
struct rp_guarantee *rp_guarantee_new(enum rp_level level, bool settled); /* NULL: no memory */
void rp_guarantee_free(struct rp_guarantee *guarantee);

/* As of now: what deletes of objects that others name can rely on. */
enum rp_level rp_store_level(const struct rp_store *store);
/* A plain object may be lost there, and nobody has accepted that: only what L4 names is marked and
 * purged. In mode observe nobody knows yet (no canary), and nothing can be lost. */
bool rp_store_is_weak(const struct rp_store *store);
/* RP_EWEAK with what to do. */
int rp_store_refuse_weak(const struct rp_store *store, struct rp_error *err);
/* L4 */
bool rp_mark_is_named(const struct rp_mark *mark);

/* Reads what the catalog remembers of this store. When it is opened, and where another process may
 * have learned more. */
int rp_guarantee_load(struct rp_db *db, struct rp_store *store, struct rp_error *err);

/* To look (a dry run) what can be read without writing will do, where nobody has ever probed. */
enum rp_guarantee_for { RP_GUARANTEE_LOOK, RP_GUARANTEE_MARK, RP_GUARANTEE_SWEEP };
/* Probes if L3 asks for it. In mode observe only to look. */
int rp_guarantee_ensure(struct rp_catalog *catalog, struct rp_store *store, enum rp_guarantee_for purpose,
                        struct rp_error *err);
/* Probes in any case, by writing where the mode allows it. A level other than the one remembered
 * has its audit row, store.level_changed. */
int rp_guarantee_probe(struct rp_catalog *catalog, struct rp_store *store, struct rp_error *err);

/* Has this process seen the level itself, or need it not? */
bool rp_guarantee_is_known(const struct rp_store *store);
/* What the last probe of this process found; false: it made none. */
bool rp_guarantee_probed(const struct rp_store *store, struct rp_probed *out);
/* When anybody's probe last told the level, 0: none; and when keys were seen to change, 0:
 * never. */
int64_t rp_guarantee_probed_at_ms(const struct rp_store *store);
int64_t rp_guarantee_changed_at_ms(const struct rp_store *store);

/* L2, inside the transaction that saw it: remembers it, with an audit row store.keys_changed the
 * first time. A store whose keys are reused is left alone. When the transaction is committed:
 * rp_guarantee_revoke. */
int rp_guarantee_note_changed(struct rp_tx *tx, const struct rp_store *store, const char *key, const char *actor,
                              struct rp_error *err);
void rp_guarantee_revoke(const struct rp_store *store, int64_t at_ms);

/* Asks the store's clock and keeps how far it is ahead of the host's. A store without a clock of
 * its own, or that does not answer: not known. */
int rp_guarantee_ask_clock(struct rp_store *store, const struct rp_clock *host, struct rp_error *err);
#define RP_CLOCK_UNKNOWN INT64_MAX
int64_t rp_guarantee_clock_ahead_ms(const struct rp_store *store);

#endif
