/* SPDX-License-Identifier: Apache-2.0 */
/* rename.c - a store's row in the catalog is given another name. */
#include "core/owner/rename.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/text/json.h"
#include "catalog/audit/audit.h"
#include "core/journal.h"
#include "core/owner/stamps.h"

#include <stddef.h>

static json_t *names_json(const struct rp_rename_command *c)
{
    return rp_json_object("store", rp_json_text(c->to), "was", rp_json_text(c->from), NULL);
}

/* Both in order of their numbers, like all locks; b 0: there is none. */
static int lock_rows(struct rp_tx *tx, int64_t a, int64_t b, struct rp_error *err)
{
    bool swapped = b != 0 && b < a;
    int64_t first = swapped ? b : a, second = swapped ? a : b;
    int r = rp_store_lock(tx, first, err);
    return r < 0 || second == 0 ? r : rp_store_lock(tx, second, err);
}

static int refuse_used(const struct rp_rename_command *c, struct rp_error *err)
{
    rp_error_set(err, RP_ECONFLICT, "store '%s' is in the catalog already, with holds, marks, files or an owner record",
                 c->to);
    return rp_error_hint(err, "two stores are not made one: give '%s' its old name back, or choose another new one",
                         c->from);
}

/* E1. With both rows locked. */
static int remove_empty(struct rp_tx *tx, const struct rp_rename_command *c, const struct rp_store_row *row,
                        struct rp_error *err)
{
    struct rp_store_uses uses;
    bool stamped = false;
    int r = rp_store_uses(tx->db, row->id, &uses, err);
    if (r == 0) r = rp_stamps_any(tx->db, row->id, &stamped, err);
    if (r < 0) return r;
    if (stamped || row->owned_at != 0 || uses.holds > 0 || uses.files || uses.marks || row->kind != RP_STORE_STORE)
        return refuse_used(c, err);
    return c->dry_run ? 0 : rp_store_remove(tx, row->id, err);
}

static int apply(struct rp_tx *tx, const struct rp_rename_command *c, int64_t id, struct rp_error *err)
{
    int r = rp_store_rename(tx, id, c->to, err);
    if (r < 0) return r;
    rp_tx_keep(tx, id); /* its holds hold again */
    struct rp_audit_entry entry = { .event = "store.renamed", .actor = c->command.actor, .details = names_json(c) };
    return rp_tx_audit(tx, &entry, err);
}

/* to->id 0: nothing has the new name. */
static int find_rows(struct rp_tx *tx, const struct rp_rename_command *c, struct rp_store_row *from,
                     struct rp_store_row *to, struct rp_error *err)
{
    int r = rp_store_find(tx->db, c->from, from, err);
    if (r == 0 && from->kind != RP_STORE_STORE) r = rp_error_set(err, RP_ENOTFOUND, "'%s' is no store", c->from);
    if (r < 0) return r;
    r = rp_store_find(tx->db, c->to, to, err);
    if (r != RP_ENOTFOUND) return r;
    *to = (struct rp_store_row){ .id = 0 };
    rp_error_clear(err);
    return 0;
}

/* Names and owners are those of the rows once they are locked: another node may rename or own one of
 * them while this one waits. */
static int rename_store(struct rp_tx *tx, const struct rp_rename_command *c, struct rp_error *err)
{
    struct rp_store_row seen_from = { 0 }, seen_to = { 0 }, from = { 0 }, to = { 0 };
    int r = find_rows(tx, c, &seen_from, &seen_to, err);
    if (r == 0) r = lock_rows(tx, seen_from.id, seen_to.id, err);
    if (r == 0) r = find_rows(tx, c, &from, &to, err);
    if (r < 0) return r;
    if (from.id != seen_from.id || to.id != seen_to.id)
        return rp_error_set(err, RP_ECONFLICT, "'%s' or '%s' was renamed at the same moment", c->from, c->to);
    if (to.id != 0) r = remove_empty(tx, c, &to, err);
    return r < 0 || c->dry_run ? r : apply(tx, c, from.id, err);
}

static int run_rename(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    struct rp_rename_command *c = (struct rp_rename_command *)commands[0];
    struct rp_error why = { 0 };
    RP_ASSERT(n == 1);
    int r = rename_store(tx, c, &why);
    bool refused = r == RP_ENOTFOUND || r == RP_ECONFLICT;
    *(refused ? &c->command.error : err) = why;
    return refused ? 0 : r;
}

static void log_rename(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    const struct rp_rename_command *c = (const struct rp_rename_command *)command;
    if (command->error.code < 0 || c->dry_run) return;
    struct rp_journal j = rp_journal_of(command, log, at_ms);
    rp_journal_change(&j, "store.renamed", names_json(c));
}

_Static_assert(offsetof(struct rp_rename_command, command) == 0, "a command is the first member");
const struct rp_verb rp_verb_store_rename = {
    .name = "rename a store", .run = run_rename, .log = log_rename, .alone = true
};
