/* SPDX-License-Identifier: Apache-2.0 */
/* dbs.h - a fresh, empty database of every kind for a test, and a way to lose a COMMIT.
 *
 * PostgreSQL's comes from RP_TEST_POSTGRES (tests/lib/with-postgres sets it) with a schema of its
 * own that is dropped at the end; its connections carry the schema's name, so that a test can end
 * its own. Without it the test process ends with a failure: a contract that was not checked is not
 * kept. */
#ifndef RP_TESTS_LIB_DBS_H
#define RP_TESTS_LIB_DBS_H

#include "db/db.h"

enum dbs_kind { DBS_SQLITE_FILE, DBS_SQLITE_MEMORY, DBS_POSTGRES, DBS_KINDS };

struct dbs {
    enum dbs_kind kind;
    char dir[64]; /* a temporary directory, for whatever the test needs */
    char schema[32];
    char url[512];
    struct rp_db *db; /* open, with the options given */
};

const char *dbs_kind_name(enum dbs_kind kind);
void dbs_make(struct dbs *t, enum dbs_kind kind, const struct rp_db_options *options);
void dbs_drop(struct dbs *t);
/* Another connection to the same database. Not for DBS_SQLITE_MEMORY. */
struct rp_db *dbs_open_again(const struct dbs *t, const struct rp_db_options *options);

/* What the engine would do for a statement: its plan, a line each. */
struct rp_buf;
int dbs_explain(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *args, struct rp_buf *out,
                struct rp_error *err);

/* Stands between a client and PostgreSQL on a unix socket of its own and passes everything on,
 * until a COMMIT comes. */
enum cut { CUT_NOTHING, CUT_BEFORE_COMMIT, CUT_AFTER_COMMIT };
struct cutter;
/* `cut` holds for the first COMMIT only. `url` takes `t`'s URL through the cutter. */
struct cutter *cutter_start(const struct dbs *t, enum cut cut, char *url, size_t size);
void cutter_stop(struct cutter *c);

#endif
