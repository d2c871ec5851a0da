/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h - an open database, as the files of this folder see it. Nobody else includes it.
 *
 * V1  A driver is handed text in its own dialect, values already checked against the declaration,
 *     and calls in an order that makes sense: no begin in a transaction, nothing but rollback after
 *     a failure inside one. */
#ifndef RP_DB_DRIVER_H
#define RP_DB_DRIVER_H

#include "db/db.h"
#include "db/dialect.h"
#include "db/statements.h"

#define RP_COLUMNS_MAX     64
#define RP_BUSY_MS_DEFAULT 10000

enum rp_db_tx { RP_TX_NONE, RP_TX_OPEN, RP_TX_FAILED };

struct rp_db {
    const struct rp_db_driver *driver;
    void *conn;
    enum rp_db_tx tx;
    bool running; /* inside a driver's run: a row callback may not come back in */
    /* Source text -> text in the engine's dialect; a wrapper uses those of what it wraps. */
    struct rp_statements *texts;
    struct rp_statements own;
};

extern const struct rp_db_driver rp_sqlite_driver;
extern const struct rp_db_driver rp_postgres_driver;

/* How many types a declaration has; it may be NULL. */
size_t rp_types_count(const char *types);

/* A database over an open connection of `driver`. On failure the connection stays the caller's. */
int rp_db_new(const struct rp_db_driver *driver, void *conn, struct rp_db **out, struct rp_error *err);

#endif
