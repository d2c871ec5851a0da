/* SPDX-License-Identifier: Apache-2.0 */
/* result.c - the verb result: what the processor says of a file that is being scanned. */
#include "base/cleanup.h"
#include "core/file/log.h"
#include "core/file/work.h"

#include <string.h>

/* Deleted, replaced or decided meanwhile, or a key of another upload: that is no error. */
static bool is_late(const struct rp_file_command *c, const struct rp_file *file)
{
    return file->status != RP_FILE_SCANNING || file->process_key == NULL ||
           strcmp(file->process_key, c->process_key) != 0;
}

static int apply_result(struct rp_work *work, struct rp_file_command *c, struct rp_slot *slot, struct rp_error *err)
{
    if (is_late(c, &slot->file)) return 0;
    if (!c->accept && rp_work_check_along(work, slot, &c->command.error) < 0) return 0;
    c->event = c->accept ? "file.live" : "file.deleted";
    if (!c->accept) return rp_work_drop(work, slot, RP_REASON_REJECTED, err);
    rp_work_change(work, slot, RP_FILE_LIVE);
    return rp_work_audit(work, "file.live", slot, "", err);
}

static int run_result(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    RP_CLEANUP(rp_work_done) struct rp_work work = { 0 };
    int r = rp_work_load_commands(&work, tx, commands, n, RP_LOAD_BELOW, err);
    if (r == 0) r = rp_work_each(&work, commands, n, apply_result, 0, err);
    return r < 0 ? r : rp_work_save(&work, err);
}

const struct rp_verb rp_verb_result = { .name = "result", .run = run_result, .log = rp_log_result };
