/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_marks.c - `marks`: the list. Without --state, every mark that has not ended, in order of time store by store. */
#include "base/cleanup.h"
#include "base/time.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "core/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAGE           1000
#define PAGE_ARENA_MAX ((size_t)16 << 20)
#define LIMIT_DEFAULT  100

struct listing {
    struct rp_cli *cli;
    struct rp_names names;
    struct rp_table table;
    int64_t place_id; /* 0: all */
    const char *reason;
    bool has_state;
    enum rp_state state;
    int64_t due_before_ms; /* -1: none */
    int64_t limit, shown;  /* limit 0: none */
    int64_t now_ms;
    bool cut;
};

static bool fits(const struct listing *l, const struct rp_mark *m)
{
    if (l->place_id != 0 && m->place_id != l->place_id) return false;
    if (l->reason != NULL && strcmp(m->reason, l->reason) != 0) return false;
    if (l->has_state && m->state != l->state) return false;
    return l->due_before_ms < 0 || m->due_at_ms < l->due_before_ms;
}

static void show(struct listing *l, const struct rp_mark *m)
{
    char id[RP_ID_TEXT], subject[RP_SHOWN_MAX], due[RP_WHEN_TEXT], size[RP_SIZE_TEXT];
    const char *store = rp_names_of(&l->names, m->place_id);
    if (l->limit > 0 && l->shown == l->limit) {
        l->cut = true;
        return;
    }
    l->shown++;
    if (l->cli->json) {
        rp_emit(l->cli, rp_mark_line(m, store));
        return;
    }
    bool ended = m->ended_at_ms != 0;
    const char *cells[] = { rp_id_format(RP_ID_MARK, m->id, id),
                            rp_show_subject(store, m->key, subject),
                            rp_state_name(m->state),
                            rp_show_when(ended ? m->ended_at_ms : m->due_at_ms, l->now_ms, due),
                            rp_show_size(m->size_bytes, size),
                            m->reason };
    rp_table_row(&l->table, cells);
}

static int walk(struct listing *l, struct rp_marks_query *query, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(PAGE_ARENA_MAX);
    while (!l->cut) {
        struct rp_marks page;
        rp_arena_reset(&arena);
        int r = rp_marks_init(&page, PAGE, &arena, err);
        if (r == 0) r = rp_marks_page(l->cli->session.catalog->db, query, &page, err);
        if (r < 0 || page.n == 0) return r;
        for (size_t i = 0; i < page.n && !l->cut; i++)
            if (fits(l, &page.at[i])) show(l, &page.at[i]);
    }
    return 0;
}

/* The index is on the time of the next look, which lies after due_at by a lease, a back-off or a recheck. */
static int64_t look_before(const struct listing *l)
{
    const struct rp_config *config = &l->cli->session.config;
    int64_t slack_ms = 2 * RP_HOUR_MS + 2 * config->sweep_retry_most_ms + 2 * config->sweep_lease_ms;
    if (l->due_before_ms < 0 || l->due_before_ms > RP_TIME_MAX_MS - slack_ms) return RP_TIME_MAX_MS;
    return l->due_before_ms + slack_ms;
}

static int walk_waiting(struct listing *l, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < l->names.n && r == 0 && !l->cut; i++) {
        struct rp_marks_query query = { .by = RP_BY_DUE, .place_id = l->names.rows[i].id, .before_ms = look_before(l) };
        if (l->place_id == 0 || l->place_id == query.place_id) r = walk(l, &query, err);
    }
    return r;
}

static int walk_all(struct listing *l, struct rp_error *err)
{
    struct rp_marks_query ended = { .by = RP_BY_ENDED, .state = l->state, .before_ms = RP_TIME_MAX_MS };
    struct rp_marks_query dead = { .by = RP_BY_DEAD };
    struct rp_marks_query reason = { .by = RP_BY_REASON, .text = l->reason };
    if (l->has_state && rp_state_final(l->state)) return walk(l, &ended, err);
    if (l->has_state && l->state == RP_DEAD) return walk(l, &dead, err);
    if (l->reason != NULL) return walk(l, &reason, err);
    return walk_waiting(l, err);
}

static int read_options(struct rp_cli *cli, struct listing *l, struct rp_error *err)
{
    const struct rp_args *args = &cli->args;
    const char *state = rp_args_text(args, "state"), *store = rp_args_text(args, "store");
    struct rp_place_row row;
    l->has_state = state != NULL;
    if (state != NULL && !rp_state_parse(state, &l->state)) {
        rp_error_set(err, RP_EINVAL, "--state: there is no state '%.32s'", state);
        return rp_error_hint(err, "marked, checking, purging, purged, reprieved, dead or lost");
    }
    l->reason = rp_args_text(args, "reason");
    int r = rp_args_number(args, "limit", &l->limit, err);
    if (r == 0) r = rp_cli_open(cli, err);
    if (r < 0) return r;
    l->now_ms = rp_session_now_ms(&cli->session);
    r = rp_args_when(args, "due-before", l->now_ms, 1, &l->due_before_ms, err);
    if (r < 0 || store == NULL) return r;
    r = rp_place_find(cli->session.catalog->db, store, &row, err);
    if (r == 0) l->place_id = row.id;
    if (r != RP_ENOTFOUND) return r;
    /* a store that no command has named yet has no marks; one that is not configured does not exist */
    struct rp_place *place;
    r = rp_session_place(&cli->session, store, &place, err);
    if (r == 0) l->place_id = place->id;
    return r;
}

int rp_cmd_marks(struct rp_cli *cli, struct rp_error *err)
{
    static const struct rp_column columns[] = { { "MARK", false, false },  { "SUBJECT", false, true },
                                                { "STATE", false, false }, { "DUE", false, false },
                                                { "SIZE", true, false },   { "REASON", false, true } };
    static const struct rp_column ended_columns[] = { { "MARK", false, false },  { "SUBJECT", false, true },
                                                      { "STATE", false, false }, { "ENDED", false, false },
                                                      { "SIZE", true, false },   { "REASON", false, true } };
    RP_CLEANUP(rp_freep) struct listing *l = calloc(1, sizeof *l);
    if (l == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a list");
    *l = (struct listing){ .cli = cli, .limit = LIMIT_DEFAULT, .due_before_ms = -1 };
    int r = read_options(cli, l, err);
    if (r == 0) r = rp_names_load(cli, &l->names, err);
    if (r < 0) return r;
    rp_table_init(&l->table, stdout, l->has_state && rp_state_final(l->state) ? ended_columns : columns, 6);
    r = walk_all(l, err);
    rp_table_end(&l->table);
    rp_table_done(&l->table);
    if (r < 0) return r;
    if (l->shown == 0) rp_say(cli, "no marks\n");
    if (l->cut && !cli->quiet) rp_warn("there are more: only %" PRId64 " are shown (--limit N, 0 for all)", l->limit);
    return 0;
}
