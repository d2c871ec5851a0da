/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - columns for people. As wide as the terminal at most: the one column that may shrink
 * is cut then; piped, nothing is cut. Rows wait until 500 are there, so that the widths fit and
 * the memory stays the same. */
#ifndef RP_CLI_TABLE_H
#define RP_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#define RP_TABLE_COLUMNS_MAX 12
#define RP_TABLE_ROWS        500

struct rp_column {
    const char *title;
    bool right, shrinks;
};
#define RP_COLUMN(title)                                                                                               \
    {                                                                                                                  \
        title, false, false                                                                                            \
    }
#define RP_NUMBERS(title)                                                                                              \
    {                                                                                                                  \
        title, true, false                                                                                             \
    } /* to the right */
#define RP_TEXTS(title)                                                                                                \
    {                                                                                                                  \
        title, false, true                                                                                             \
    } /* cut where the terminal is too narrow */

struct rp_table {
    FILE *to;
    const struct rp_column *columns;
    size_t n_columns;
    char **cells; /* n_rows * n_columns, owned */
    size_t n_rows;
    int width;      /* 0: nothing is cut */
    bool bold;      /* the titles */
    bool titled;    /* they have been printed */
    bool no_memory; /* a row was lost for want of it; said at the end */
};

/* `to` decides about width and colour (none if NO_COLOR is set). */
void rp_table_init(struct rp_table *table, FILE *to, const struct rp_column *columns, size_t n);
/* One text a column; copied, control characters escaped. */
void rp_table_row(struct rp_table *table, const char *const *cells);
/* Prints what waits. Titles only if there was a row. */
void rp_table_end(struct rp_table *table);
void rp_table_done(struct rp_table *table); /* also the RP_CLEANUP function */

/* ---- a list of things: a table for people, a line of JSON each for a program ---- */

struct rp_cli;
struct rp_list {
    struct rp_cli *cli;
    struct rp_table table;
    const char *none; /* what is said if there was nothing */
    int64_t now_ms, shown;
    int64_t last_id; /* the caller's own: where its next page begins */
};
void rp_list_init(struct rp_list *list, struct rp_cli *cli, const struct rp_column *columns, size_t n,
                  const char *none);
#define RP_LIST_INIT(list, cli, columns, none)                                                                         \
    rp_list_init(list, cli, columns, sizeof(columns) / sizeof((columns)[0]), none)
/* One more: with --json the value, which is stolen, else the cells. `value` may be NULL without
 * --json. */
void rp_list_row(struct rp_list *list, json_t *value, const char *const *cells);
/* Prints what waits, gives everything back, and returns `r`. */
int rp_list_end(struct rp_list *list, int r);

/* Columns that a text takes on a terminal: characters, not bytes. */
size_t rp_text_columns(const char *text);

#endif
