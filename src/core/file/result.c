/* SPDX-License-Identifier: Apache-2.0 */
/* result.c - the verb result: what the processor says of a file that is being scanned. */
#include "base/cleanup.h"
#include "core/file/work.h"

#include <string.h>

/* Deleted, replaced or decided meanwhile, or a key of another upload: it comes late, and that is no error. */
static bool is_late(const struct rp_file_command *c, const struct rp_file *file)
{
    return file->status != RP_FILE_SCANNING || file->process_key == NULL ||
           strcmp(file->process_key, c->process_key) != 0;
}

static int apply_result(struct rp_file_work *work, struct rp_file_command *c, struct rp_file_slot *slot,
                        struct rp_error *err)
{
    const struct rp_store *store = rp_store_of_file(c->stores, c->n_stores, &slot->file);
    const struct rp_state_by by = { .store = rp_store_name(store), .actor = c->command.actor };
    if (is_late(c, &slot->file)) return 0;
    c->changed = true;
    if (!c->accept) return rp_file_work_drop(work, slot, store, RP_REASON_REJECTED, c->command.actor, err);
    rp_file_work_change(work, slot, RP_FILE_LIVE);
    return rp_file_work_audit(work, &by, "file.live", slot, "", err);
}

static int run_result(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    RP_CLEANUP(rp_file_work_done) struct rp_file_work work = { 0 };
    int r = rp_file_work_load_commands(&work, tx, commands, n, RP_LOAD_BELOW, err);
    if (r == 0) r = rp_file_work_each(&work, commands, n, apply_result, 0, err);
    return r < 0 ? r : rp_file_work_save(&work, err);
}

const struct rp_verb rp_verb_result = { .name = "result", .run = run_result };
