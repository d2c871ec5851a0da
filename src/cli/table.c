/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include "base/assert.h"
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define GAP        2
#define SHRUNK_MIN 12

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

size_t rp_text_columns(const char *text)
{
    size_t n = 0;
    for (; *text != 0; text++)
        n += !is_continuation(*text);
    return n;
}

void rp_table_init(struct rp_table *t, FILE *to, const struct rp_column *columns, size_t n)
{
    struct winsize size = { 0 };
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    RP_ASSERT(n > 0 && n <= RP_TABLE_COLUMNS_MAX);
    *t = (struct rp_table){ .to = to, .columns = columns, .n_columns = n };
    if (!isatty(fileno(to))) return;
    t->width = ioctl(fileno(to), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    t->bold = (no_color == NULL || no_color[0] == 0) && term != NULL && strcmp(term, "dumb") != 0;
}

static void forget_rows(struct rp_table *t)
{
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++)
        free(t->cells[i]);
    t->n_rows = 0;
}

/* ---- printing ---- */

static void measure(const struct rp_table *t, size_t widths[RP_TABLE_COLUMNS_MAX])
{
    for (size_t c = 0; c < t->n_columns; c++) {
        widths[c] = strlen(t->columns[c].title);
        for (size_t r = 0; r < t->n_rows; r++) {
            size_t n = rp_text_columns(t->cells[r * t->n_columns + c]);
            if (n > widths[c]) widths[c] = n;
        }
    }
}

static void fit(const struct rp_table *t, size_t widths[RP_TABLE_COLUMNS_MAX])
{
    size_t total = 0;
    for (size_t c = 0; c < t->n_columns; c++)
        total += widths[c] + (c > 0 ? GAP : 0);
    if (t->width == 0 || total <= (size_t)t->width) return;
    size_t over = total - (size_t)t->width;
    for (size_t c = 0; c < t->n_columns && over > 0; c++) {
        if (!t->columns[c].shrinks || widths[c] <= SHRUNK_MIN) continue;
        size_t less = widths[c] - SHRUNK_MIN < over ? widths[c] - SHRUNK_MIN : over;
        widths[c] -= less;
        over -= less;
    }
}

/* The first `columns` characters; a cut one ends in "...". */
static void print_text(FILE *to, const char *text, size_t columns)
{
    if (rp_text_columns(text) <= columns) {
        fputs(text, to);
        return;
    }
    size_t bytes = 0;
    for (size_t n = 0; text[bytes] != 0; bytes++) {
        if (is_continuation(text[bytes])) continue;
        if (n++ == columns - 3) break;
    }
    fprintf(to, "%.*s...", (int)bytes, text);
}

static void print_row(const struct rp_table *t, const char *const *cells, const size_t *widths)
{
    for (size_t c = 0; c < t->n_columns; c++) {
        size_t n = rp_text_columns(cells[c]);
        int pad = n < widths[c] ? (int)(widths[c] - n) : 0;
        bool last = c + 1 == t->n_columns;
        if (t->columns[c].right) fprintf(t->to, "%*s", pad, "");
        print_text(t->to, cells[c], widths[c]);
        if (!t->columns[c].right && !last) fprintf(t->to, "%*s", pad, "");
        if (!last) fprintf(t->to, "%*s", GAP, "");
    }
    fputc('\n', t->to);
}

static void print_titles(struct rp_table *t, const size_t *widths)
{
    const char *titles[RP_TABLE_COLUMNS_MAX];
    if (t->titled) return;
    t->titled = true;
    for (size_t c = 0; c < t->n_columns; c++)
        titles[c] = t->columns[c].title;
    if (t->bold) fputs("\033[1m", t->to);
    print_row(t, titles, widths);
    if (t->bold) fputs("\033[0m", t->to);
}

static void print_waiting(struct rp_table *t)
{
    size_t widths[RP_TABLE_COLUMNS_MAX];
    if (t->n_rows == 0) return;
    measure(t, widths);
    fit(t, widths);
    print_titles(t, widths);
    for (size_t r = 0; r < t->n_rows; r++)
        print_row(t, (const char *const *)&t->cells[r * t->n_columns], widths);
    forget_rows(t);
}

/* ---- rows ---- */

void rp_table_row(struct rp_table *t, const char *const *cells)
{
    char shown[RP_SHOWN_MAX];
    if (t->cells == NULL) t->cells = calloc(RP_TABLE_ROWS * t->n_columns, sizeof(char *));
    if (t->cells == NULL) {
        t->no_memory = true;
        return;
    }
    char **row = &t->cells[t->n_rows * t->n_columns];
    bool whole = true;
    for (size_t c = 0; c < t->n_columns; c++) {
        row[c] = strdup(rp_show(cells[c], shown));
        whole = whole && row[c] != NULL;
    }
    if (!whole) {
        t->no_memory = true;
        for (size_t c = 0; c < t->n_columns; c++)
            free(row[c]);
        return;
    }
    if (++t->n_rows == RP_TABLE_ROWS) print_waiting(t);
}

void rp_table_end(struct rp_table *t)
{
    print_waiting(t);
    if (t->no_memory) rp_warn("the table is not complete: out of memory");
}

void rp_table_done(struct rp_table *t)
{
    forget_rows(t);
    free(t->cells);
    t->cells = NULL;
}

/* ---- lists ---- */

void rp_list_init(struct rp_list *list, struct rp_cli *cli, const struct rp_column *columns, size_t n, const char *none)
{
    *list = (struct rp_list){ .cli = cli, .none = none, .now_ms = rp_session_now_ms(&cli->session) };
    rp_table_init(&list->table, stdout, columns, n);
}

void rp_list_row(struct rp_list *list, json_t *value, const char *const *cells)
{
    list->shown++;
    rp_emit(list->cli, value);
    if (!list->cli->json) rp_table_row(&list->table, cells);
}

int rp_list_end(struct rp_list *list, int r)
{
    rp_table_end(&list->table);
    rp_table_done(&list->table);
    if (r == 0 && list->shown == 0) rp_say(list->cli, "%s\n", list->none);
    return r;
}
