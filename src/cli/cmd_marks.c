/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_marks.c - `marks`: the list. Without --state, every mark that has not ended, in order of
 * time store by store. */
#include "base/cleanup.h"
#include "base/time.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "core/mark/list.h"
#include "core/state.h"

#include <inttypes.h>
#include <string.h>

#define PAGE           1000
#define PAGE_ARENA_MAX ((size_t)16 << 20)
#define LIMIT_DEFAULT  100

struct listing {
    struct rp_list list;
    struct rp_names names;
    struct rp_list_filter filter;
    int64_t limit; /* 0: none */
    bool cut;
};

static void show(struct listing *l, const struct rp_mark *m)
{
    char id[RP_ID_TEXT], subject[RP_SHOWN_MAX], due[RP_WHEN_TEXT], size[RP_SIZE_TEXT];
    const char *store = rp_names_of(&l->names, m->store_id);
    if (l->limit > 0 && l->list.shown == l->limit) {
        l->cut = true;
        return;
    }
    bool ended = m->ended_at_ms != 0;
    const char *cells[] = { rp_id_format(RP_ID_MARK, m->id, id),
                            rp_show_subject(store, m->key, subject),
                            rp_state_name(m->state),
                            rp_show_when(ended ? m->ended_at_ms : m->due_at_ms, l->list.now_ms, due),
                            rp_show_size(m->size_bytes, size),
                            m->reason };
    rp_list_row(&l->list, l->list.cli->json ? rp_mark_line(m, store) : NULL, cells);
}

/* One more than is shown is asked for: then it is known whether there are more. */
static size_t wanted(const struct listing *l)
{
    return l->limit == 0 || l->limit - l->list.shown >= PAGE ? PAGE : (size_t)(l->limit - l->list.shown) + 1;
}

static int walk_all(struct listing *l, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(PAGE_ARENA_MAX);
    struct rp_list_cursor cursor = { 0 };
    while (!cursor.done && !l->cut) {
        struct rp_marks page;
        rp_arena_reset(&arena);
        int r = rp_marks_init(&page, wanted(l), &arena, err);
        if (r == 0) r = rp_marks_list(l->list.cli->session.catalog->db, &l->filter, &cursor, INT64_MAX, &page, err);
        if (r < 0) return r;
        for (size_t i = 0; i < page.n && !l->cut; i++)
            show(l, &page.at[i]);
    }
    return 0;
}

static int read_options(struct rp_cli *cli, struct listing *l, struct rp_error *err)
{
    const struct rp_args *args = &cli->args;
    const char *state = rp_args_text(args, "state"), *store_name = rp_args_text(args, "store");
    struct rp_store_row row;
    if (state != NULL && !rp_state_parse(state, &l->filter.state))
        return rp_error_advise(err, RP_EINVAL, RP_STATE_NAMES_TEXT, "--state: there is no state '%.32s'", state);
    l->filter.reason = rp_args_text(args, "reason");
    int r = rp_args_number(args, "limit", &l->limit, err);
    if (r == 0) r = rp_cli_open(cli, err);
    if (r < 0) return r;
    l->filter.slack_ms = rp_list_slack_ms(&cli->session.config);
    r = rp_args_when(args, "due-before", rp_session_now_ms(&cli->session), 1, &l->filter.due_before_ms, err);
    if (r < 0 || store_name == NULL) return r;
    r = rp_store_find(cli->session.catalog->db, store_name, &row, err);
    if (r == 0) l->filter.store_id = row.id;
    if (r != RP_ENOTFOUND) return r;
    /* a store that no command has named yet has no marks; one that is not configured does not
     * exist */
    struct rp_store *store;
    r = rp_session_store(&cli->session, store_name, &store, err);
    if (r == 0) l->filter.store_id = store->id;
    return r;
}

int rp_cmd_marks(struct rp_cli *cli, struct rp_error *err)
{
    static const struct rp_column columns[] = { RP_COLUMN("MARK"), RP_TEXTS("SUBJECT"), RP_COLUMN("STATE"),
                                                RP_COLUMN("DUE"),  RP_NUMBERS("SIZE"),  RP_TEXTS("REASON") };
    static const struct rp_column ended_columns[] = { RP_COLUMN("MARK"),  RP_TEXTS("SUBJECT"), RP_COLUMN("STATE"),
                                                      RP_COLUMN("ENDED"), RP_NUMBERS("SIZE"),  RP_TEXTS("REASON") };
    RP_CLEANUP(rp_freep) struct listing *l = calloc(1, sizeof *l);
    if (l == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a list");
    *l = (struct listing){ .limit = LIMIT_DEFAULT, .filter = { .due_before_ms = -1 } };
    int r = read_options(cli, l, err);
    if (r == 0) r = rp_names_load(cli, &l->names, err);
    if (r < 0) return r;
    bool ended = l->filter.state != 0 && rp_state_final(l->filter.state);
    rp_list_init(&l->list, cli, ended ? ended_columns : columns, 6, "no marks");
    r = rp_list_end(&l->list, walk_all(l, err));
    if (r < 0) return r;
    if (l->cut && !cli->quiet) rp_warn("there are more: only %" PRId64 " are shown (--limit N, 0 for all)", l->limit);
    return 0;
}
