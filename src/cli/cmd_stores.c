/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_stores.c - `stores`: what each store allows and guarantees, whose it is, and what waits there. */
#include "base/cleanup.h"
#include "base/json.h"
#include "base/time.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "core/owner.h"

#include <inttypes.h>
#include <stdio.h>

#define TALLY_MAX (RP_PLACES_MAX * RP_STATES)

struct facts {
    const struct rp_store_config *config;
    const char *guarantee, *owner; /* "-": not looked at */
    bool failed;
    struct rp_error error; /* failed: why */
    int64_t waiting, bytes, due;
};

struct tally {
    struct rp_tally_row rows[TALLY_MAX];
    size_t n;
};

static void add_tally(const struct tally *tally, int64_t place_id, struct facts *f)
{
    for (size_t i = 0; i < tally->n; i++) {
        const struct rp_tally_row *row = &tally->rows[i];
        if (row->place_id != place_id) continue;
        if (row->state != RP_MARKED && row->state != RP_CHECKING && row->state != RP_PURGING) continue;
        f->waiting += row->marks;
        f->bytes += row->bytes;
    }
}

static int look(struct rp_cli *cli, const struct tally *tally, struct facts *f, struct rp_error *err)
{
    struct rp_session *s = &cli->session;
    struct rp_place *place;
    struct rp_owner owner;
    struct rp_overdue due = { 0 };
    f->guarantee = f->owner = "-";
    f->failed = rp_session_place(s, f->config->name, &place, &f->error) < 0;
    if (f->failed) return 0;
    f->guarantee = rp_level_name(place->level);
    /* in mode observe the owner record is not even read */
    if (f->config->mode != RP_MODE_OBSERVE) f->failed = rp_owner_look(s->catalog, place, &owner, &f->error) < 0;
    if (f->config->mode != RP_MODE_OBSERVE && !f->failed) f->owner = rp_ownership_text(owner.ownership);
    int r = rp_marks_overdue(s->catalog->db, place->id, rp_session_now_ms(s), &due, err);
    f->due = due.marks;
    add_tally(tally, place->id, f);
    return r;
}

static json_t *facts_json(const struct facts *f)
{
    json_t *o = json_object();
    rp_json_set(o, "name", json_string(f->config->name));
    rp_json_set(o, "type", json_string(f->config->type));
    rp_json_set(o, "path", rp_json_text(f->config->path));
    rp_json_set(o, "mode", json_string(rp_mode_name(f->config->mode)));
    rp_json_set(o, "guarantee", json_string(f->guarantee));
    rp_json_set(o, "owner", json_string(f->owner));
    rp_json_set(o, "waiting", json_integer(f->waiting));
    rp_json_set(o, "waiting_bytes", json_integer(f->bytes));
    rp_json_set(o, "due", json_integer(f->due));
    if (f->failed) rp_json_set(o, "error", rp_error_json(&f->error));
    return o;
}

static void show(struct rp_cli *cli, const struct facts *f, struct rp_table *table)
{
    char waiting[24], due[24], size[RP_SIZE_TEXT];
    if (cli->json) {
        rp_emit(cli, facts_json(f));
        return;
    }
    snprintf(waiting, sizeof waiting, "%" PRId64, f->waiting);
    snprintf(due, sizeof due, "%" PRId64, f->due);
    const char *cells[] = { f->config->name,
                            f->config->type,
                            rp_mode_name(f->config->mode),
                            f->guarantee,
                            f->failed ? f->error.text : f->owner,
                            waiting,
                            due,
                            rp_show_size(f->bytes, size) };
    rp_table_row(table, cells);
}

int rp_cmd_stores(struct rp_cli *cli, struct rp_error *err)
{
    static const struct rp_column columns[] = { { "STORE", false, false }, { "TYPE", false, false },
                                                { "MODE", false, false },  { "GUARANTEE", false, false },
                                                { "OWNER", false, true },  { "WAITING", true, false },
                                                { "DUE", true, false },    { "BYTES", true, false } };
    RP_CLEANUP(rp_freep) struct tally *tally = calloc(1, sizeof *tally);
    RP_CLEANUP(rp_table_done) struct rp_table table;
    rp_table_init(&table, stdout, columns, 8);
    if (tally == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a list");
    int r = rp_cli_open(cli, err);
    if (r == 0) r = rp_tally_read(cli->session.catalog->db, tally->rows, TALLY_MAX, &tally->n, err);
    for (size_t i = 0; r == 0 && i < cli->session.config.n_stores; i++) {
        struct facts f = { .config = &cli->session.config.stores[i] };
        r = look(cli, tally, &f, err);
        if (r == 0) show(cli, &f, &table);
    }
    rp_table_end(&table);
    if (r == 0 && cli->session.config.n_stores == 0) rp_say(cli, "no stores are configured\n");
    return r;
}
