/* SPDX-License-Identifier: Apache-2.0 */
/* dialect.h - what differs between the engines' SQL, as one table of macros an engine.
 *
 * L1  A macro is @NAME, or @NAME(a, b, ...) if its text asks for arguments. In the text {1}, {2}
 *     are arguments, and {* ... # ...} is repeated for every argument after the second, with #
 *     standing for it.
 * L2  Literals, quoted names and comments are never looked into; an @ after an operator is an
 *     operator (<@, @@).
 * L3  A macro that the table does not have is a bug of ours: asserted.
 * L4  The row named "$" holds the sign that the engine puts before a parameter's number.
 * L5  @ROWS stands nowhere but in VALUES @ROWS, which is replaced as a whole. The row named
 *     "UNNEST" of an engine that takes arrays holds its function that makes rows of one. */
#ifndef RP_DB_DIALECT_H
#define RP_DB_DIALECT_H

#include <stddef.h>

struct rp_buf;
struct rp_error;
struct rp_sql;

struct rp_dialect {
    const char *name, *text; /* the table ends with a NULL name */
};

#define RP_SQL_TEXT_MAX ((size_t)4 << 20)

/* The text of a macro; a name that is not in the table is asserted. */
const char *rp_dialect_text(const struct rp_dialect *table, const char *name, size_t n);
/* Append `text` in the engine's words. VALUES @ROWS becomes `n_rows` rows as wide as `row_types`,
 * numbered after the `n_fixed` parameters before them; with an `n_rows` of 0 any number of rows,
 * from one array a column. A text without @ROWS takes a NULL `row_types`. */
int rp_dialect_translate(const struct rp_dialect *table, const char *text, size_t n_fixed, const char *row_types,
                         size_t n_rows, struct rp_buf *out, struct rp_error *err);

#endif
