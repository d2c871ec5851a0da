/* SPDX-License-Identifier: Apache-2.0 */
/* statements.h - every statement over our tables, with the types that go in and come out. There is
 * no other SQL over them (schema steps apart). Both engines run this text; src/db/db.h explains the
 * macros.
 *
 * Types: i integer, s text, b bytes. Columns of @ROWS are column1, column2, ... on both engines. */
#ifndef RP_CATALOG_STATEMENTS_H
#define RP_CATALOG_STATEMENTS_H

#include "catalog/statements/alert.h"
#include "catalog/statements/audit.h"
#include "catalog/statements/clock.h"
#include "catalog/statements/confirmation.h"
#include "catalog/statements/dead.h"
#include "catalog/statements/feed.h"
#include "catalog/statements/file.h"
#include "catalog/statements/hold.h"
#include "catalog/statements/lane.h"
#include "catalog/statements/mark.h"
#include "catalog/statements/meta.h"
#include "catalog/statements/metrics.h"
#include "catalog/statements/names.h"
#include "catalog/statements/orphan.h"
#include "catalog/statements/process.h"
#include "catalog/statements/restore.h"
#include "catalog/statements/retention.h"
#include "catalog/statements/run.h"
#include "catalog/statements/segment.h"
#include "catalog/statements/store.h"
#include "catalog/statements/tally.h"
#include "catalog/statements/token.h"
#include "db/db.h"

/* A family: X(name, types of the parameters, of @ROWS, of the columns that come out, text). */
#define RP_STATEMENTS(X)                                                                                               \
    RP_STATEMENTS_ALERT(X)                                                                                             \
    RP_STATEMENTS_AUDIT(X)                                                                                             \
    RP_STATEMENTS_CLOCK(X)                                                                                             \
    RP_STATEMENTS_CONFIRMATION(X)                                                                                      \
    RP_STATEMENTS_DEAD(X)                                                                                              \
    RP_STATEMENTS_FEED(X)                                                                                              \
    RP_STATEMENTS_FILE(X)                                                                                              \
    RP_STATEMENTS_HOLD(X)                                                                                              \
    RP_STATEMENTS_LANE(X)                                                                                              \
    RP_STATEMENTS_MARK(X)                                                                                              \
    RP_STATEMENTS_META(X)                                                                                              \
    RP_STATEMENTS_METRICS(X)                                                                                           \
    RP_STATEMENTS_ORPHAN(X)                                                                                            \
    RP_STATEMENTS_PROCESS(X)                                                                                           \
    RP_STATEMENTS_RESTORE(X)                                                                                           \
    RP_STATEMENTS_RETENTION(X)                                                                                         \
    RP_STATEMENTS_RUN(X)                                                                                               \
    RP_STATEMENTS_SEGMENT(X)                                                                                           \
    RP_STATEMENTS_STORE(X)                                                                                             \
    RP_STATEMENTS_TALLY(X)                                                                                             \
    RP_STATEMENTS_TOKEN(X)

enum rp_statement {
#define X(name, params, rows, columns, text) RP_SQL_##name,
    RP_STATEMENTS(X)
#undef X
        RP_SQL_COUNT
};

extern const struct rp_sql rp_statements[RP_SQL_COUNT];

#define RP_SQL(name) (&rp_statements[RP_SQL_##name])

#endif
