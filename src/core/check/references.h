/* SPDX-License-Identifier: Apache-2.0 */
/* references.h - is this object still used? Asked before a purge, and by a mark that is to be
 * made only if not.
 *
 * G1  Every entry of the store's `referenced_by` list is asked, for a whole batch of keys: a
 *     database with one statement, a server with one call a key.
 * G2  A look-up that failed, timed out or answered nonsense never counts as "unreferenced": of its
 *     keys nothing is known, but of those that another entry names. Nor does one whose rows
 *     row-level security hides (PostgreSQL). A SQLite file that was replaced since is opened anew;
 *     one that is gone is a look-up that failed.
 * G3  Nothing is written to the user's databases: connections are read-only. Any thread may ask.
 * They are elsewhere than the catalog, so a reference made after the question is not seen: a window,
 * as docs/guarantees.md says. */
#ifndef RP_CORE_CHECK_REFERENCES_H
#define RP_CORE_CHECK_REFERENCES_H

#include "config/config.h"

struct rp_error;
struct rp_references;
struct rp_waits;

/* What is known of one key. */
struct rp_referenced {
    int64_t rows;      /* that name it; -1: not known */
    const char *first; /* the first place where one does, such as "post.image_key in app"; NULL: nowhere. Lives as
                        * long as the references */
};

/* Connects nothing yet. `config` and its texts must outlive it. NULL in *out if the store has no
 * list. */
int rp_references_new(const struct rp_config *config, const struct rp_store_config *store, struct rp_references **out,
                      struct rp_error *err);
void rp_references_free(struct rp_references *refs);
/* found[i]: of keys[i]. Fails only if nothing is known of any key; if not of some, `err` says why:
 * the text is that of the first place that failed. */
int rp_references_count(struct rp_references *refs, const char *const *keys, size_t n, struct rp_referenced *found,
                        struct rp_error *err);
/* Opens every database and prepares every question, and asks every server: what `doctor` does. */
int rp_references_check(struct rp_references *refs, struct rp_error *err);
/* "1 row (post.image_key in app)" */
#define RP_REFERENCED_TEXT 256
const char *rp_referenced_text(const struct rp_referenced *found, char out[RP_REFERENCED_TEXT]);

/* From now on it is noted there who answers. `waits` outlives it. */
void rp_references_use(struct rp_references *refs, struct rp_waits *waits);
/* The setting outbound.allow changed; the text outlives it. */
void rp_references_allow(struct rp_references *refs, const char *allow);
/* For how much longer one of its places is left alone (waits.h), and `why` (may be NULL); 0: all may
 * be asked. */
int64_t rp_references_left_alone_ms(const struct rp_references *refs, struct rp_error *why);

#endif
