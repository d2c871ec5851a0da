/* SPDX-License-Identifier: Apache-2.0 */
/* reference_source.h - one place that may still use objects, as references.c asks it: a column or a
 * query of a user's database (reference_sql.c), or a user's server (reference_webhook.c). For these
 * files alone. */
#ifndef RP_CORE_REFERENCE_SOURCE_H
#define RP_CORE_REFERENCE_SOURCE_H

#include "config/config.h"

struct rp_clock;
struct rp_db;
struct rp_error;
struct rp_referenced;

/* One question about many keys. */
struct rp_counting {
    const char *const *keys;
    size_t n;
    struct rp_referenced *found;
    const char *words;            /* the place that is asked, for people */
    const struct rp_clock *clock; /* NULL: the host's */
    const char *allow;            /* outbound.allow */
    bool silent;                  /* set: it failed as a whole, and may be left alone (waits.h) */
};
void rp_counting_add(struct rp_counting *c, size_t i, int64_t rows);
/* Nothing is known of keys[i], unless it is named elsewhere: that it is used stays known. */
void rp_counting_lose(struct rp_counting *c, size_t i);

/* Asking adds what it finds. If it fails it loses the keys that it does not know of. */

/* Of one database, shared by its places. */
struct rp_sql_connection {
    const struct rp_database_config *config;
    struct rp_db *db; /* NULL: not open yet */
};
void rp_sql_connection_close(struct rp_sql_connection *c);

struct rp_sql_source;
int rp_sql_source_new(const struct rp_reference *ref, struct rp_sql_connection *connection, struct rp_sql_source **out,
                      struct rp_error *err);
int rp_sql_source_ask(struct rp_sql_source *s, struct rp_counting *c, struct rp_error *err);
void rp_sql_source_free(struct rp_sql_source *s);

/* One call for each key that is not known to be used, on one connection, in bounded time: 5 s for a
 * call, 10 s for all. A key whose answer is not 200 and {"references": N} with a whole N of at least
 * 0 is not known of. */
int rp_webhook_source_ask(const struct rp_reference *ref, const char *store, struct rp_counting *c,
                          struct rp_error *err);

#endif
