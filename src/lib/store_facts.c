/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/store_facts.h"

#include "base/text/json.h"
#include "catalog/mark/mark.h"
#include "core/guarantee.h"
#include "core/owner/owner.h"
#include "lib/answer.h"

#include <stdlib.h>

struct rp_tallies {
    struct rp_tally_row *rows;
    size_t n, max;
};

void rp_tallies_freep(struct rp_tallies **tallies)
{
    if (*tallies != NULL) free((*tallies)->rows);
    free(*tallies);
}

static int keep_tally(void *ctx, const struct rp_tally_row *row, struct rp_error *err)
{
    struct rp_tallies *t = ctx;
    if (t->n == t->max) {
        size_t max = t->max == 0 ? 64 : t->max * 2;
        struct rp_tally_row *rows = realloc(t->rows, max * sizeof *rows);
        if (rows == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the figures of the stores");
        t->rows = rows;
        t->max = max;
    }
    t->rows[t->n++] = *row;
    return 0;
}

int rp_tallies_read(struct rp_db *db, struct rp_tallies **out, struct rp_error *err)
{
    struct rp_tallies *tallies = calloc(1, sizeof *tallies);
    if (tallies == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the figures of the stores");
    int r = rp_tally_each(db, keep_tally, tallies, err);
    if (r < 0)
        rp_tallies_freep(&tallies);
    else
        *out = tallies;
    return r;
}

static void add_tally(const struct rp_tallies *tallies, int64_t store_id, struct rp_store_facts *f)
{
    for (size_t i = 0; i < tallies->n; i++) {
        const struct rp_tally_row *row = &tallies->rows[i];
        if (row->store_id != store_id) continue;
        if (row->state != RP_MARKED && row->state != RP_CHECKING && row->state != RP_PURGING) continue;
        f->waiting += row->marks;
        f->bytes += row->bytes;
    }
}

static int add_figures(struct rp_catalog *catalog, int64_t store_id, const struct rp_tallies *tallies, int64_t now_ms,
                       struct rp_store_facts *f, struct rp_error *err)
{
    struct rp_overdue due = { 0 };
    int r = rp_marks_overdue(catalog->db, store_id, now_ms, &due, err);
    f->due = due.marks;
    add_tally(tallies, store_id, f);
    return r;
}

int rp_store_facts(struct rp_catalog *catalog, const struct rp_store_config *config, struct rp_store *store,
                   const struct rp_error *why, const struct rp_tallies *tallies, int64_t now_ms,
                   struct rp_store_facts *out, struct rp_error *err)
{
    struct rp_store_facts f = { .config = config, .guarantee = "-", .owner = "-", .failed = store == NULL };
    struct rp_owner owner;
    int r = 0;
    if (store == NULL) {
        struct rp_store_row row;
        f.error = *why;
        r = rp_store_find(catalog->db, config->name, &row, err);
        if (r == 0) r = add_figures(catalog, row.id, tallies, now_ms, &f, err);
        if (r == RP_ENOTFOUND) { /* nothing was ever marked there */
            rp_error_clear(err);
            r = 0;
        }
    } else {
        f.guarantee = rp_level_name(rp_store_level(store));
        f.probed_at_ms = rp_guarantee_probed_at_ms(store);
        f.changed_at_ms = config->keys == RP_KEYS_WRITE_ONCE ? rp_guarantee_changed_at_ms(store) : 0;
        /* in mode observe the owner record is not even read */
        if (config->mode != RP_MODE_OBSERVE) f.failed = rp_owner_look(catalog, store, &owner, &f.error) < 0;
        if (config->mode != RP_MODE_OBSERVE && !f.failed) f.owner = rp_ownership_text(owner.ownership);
        rp_raise_state(store, &f.raise);
        r = add_figures(catalog, store->id, tallies, now_ms, &f, err);
    }
    if (r == 0) *out = f;
    return r;
}

json_t *rp_store_facts_json(const struct rp_store_facts *f)
{
    json_t *o = rp_json_object("name", json_string(f->config->name), "type", json_string(f->config->type), NULL);
    if (rp_config_is_s3(f->config)) {
        rp_json_set(o, "endpoint", rp_json_text(f->config->endpoint));
        rp_json_set(o, "bucket", rp_json_text(f->config->bucket));
    } else {
        rp_json_set(o, "path", rp_json_text(f->config->path));
    }
    rp_json_set(o, "mode", json_string(rp_mode_name(f->config->mode)));
    rp_json_set(o, "guarantee", json_string(f->guarantee));
    if (f->probed_at_ms != 0) rp_json_set(o, "probed_at", rp_json_time(f->probed_at_ms));
    if (f->changed_at_ms != 0) rp_json_set(o, "keys_changed_at", rp_json_time(f->changed_at_ms));
    rp_json_set(o, "owner", json_string(f->owner));
    if (f->raise.owed_since_ms != 0) rp_json_set(o, "raise_owed_since", rp_json_time(f->raise.owed_since_ms));
    rp_json_set(o, "waiting", json_integer(f->waiting));
    rp_json_set(o, "waiting_bytes", json_integer(f->bytes));
    rp_json_set(o, "due", json_integer(f->due));
    if (f->failed) rp_json_set(o, "error", rp_error_json(&f->error));
    return o;
}
