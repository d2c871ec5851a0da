/* SPDX-License-Identifier: Apache-2.0 */
/* delete.c - the verb delete: a file and what belongs to it waits under marks (file.h, F4). */
#include "base/cleanup.h"
#include "base/time.h"
#include "base/utf8.h"
#include "core/file/log.h"
#include "core/file/work.h"

#include <string.h>

static int decide_delete(const struct rp_work *work, const struct rp_file_command *c, const struct rp_slot *slot,
                         int64_t due_at_ms, struct rp_error *err)
{
    if (slot->file.status == RP_FILE_EXPIRED)
        return rp_error_set(err, RP_EEXPIRED, "the upload was not confirmed in time: there is nothing to delete");
    if (work->store == NULL) return rp_error_set(err, RP_ECONFIG, "the file's store is not configured any more");
    if (strlen(c->reason) > RP_REASON_MAX || !rp_utf8_valid(c->reason, strlen(c->reason)))
        return rp_error_set(err, RP_EINVAL, "the reason is longer than %d bytes, or not valid UTF-8", RP_REASON_MAX);
    if (slot->file.status == RP_FILE_PURGED) return 0;
    return rp_grace_check(work->store->config, due_at_ms - work->tx->late_ms, err);
}

/* ---- deleted before: the same mark, or a later time for it; never an earlier one ---- */

static int refuse_earlier(int64_t due_at_ms, struct rp_error *err)
{
    char text[RP_TIME_TEXT];
    rp_error_set(err, RP_EMARKED, "the file is already deleted, its purge is due %s", rp_time_format(due_at_ms, text));
    return rp_error_hint(err, "a promise is never shortened: restore it and delete it again");
}

/* What was deleted along with it waits as long: it can only be restored together. */
static int extend_family(struct rp_work *work, int64_t root_id, int64_t due_at_ms, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < work->n && r == 0; i++) {
        struct rp_slot *slot = &work->slots[i];
        bool along = slot->file.with_id == root_id && slot->file.status == RP_FILE_DELETED;
        if (slot->file.id != root_id && !along) continue;
        if (slot->mark.state != RP_MARKED || slot->mark.due_at_ms >= due_at_ms) continue;
        slot->mark.due_at_ms = due_at_ms;
        r = rp_work_audit(work, "mark.extended", slot, "", err);
    }
    return r;
}

static int delete_again(struct rp_work *work, struct rp_file_command *c, const struct rp_slot *slot, int64_t due_at_ms,
                        struct rp_error *err)
{
    const struct rp_mark *mark = &slot->mark;
    bool explicit_time = c->at_ms >= 0 || c->grace_ms >= 0;
    if (!explicit_time || mark->state != RP_MARKED || due_at_ms == mark->due_at_ms) return 0;
    if (due_at_ms < mark->due_at_ms) {
        refuse_earlier(mark->due_at_ms, &c->command.error);
        return 0;
    }
    c->changed = true;
    return extend_family(work, slot->file.id, due_at_ms, err);
}

/* ---- the verb ---- */

static int delete_file(struct rp_work *work, struct rp_file_command *c, struct rp_slot *slot, struct rp_error *err)
{
    const struct rp_due due = { .by = RP_DUE_ASKED,
                                .at_ms = c->at_ms,
                                .grace_ms = c->grace_ms,
                                .config = work->store != NULL ? work->store->config : NULL };
    int64_t due_at_ms = rp_due(&due, work->tx->late_ms);
    int r;
    if (decide_delete(work, c, slot, due_at_ms, &c->command.error) < 0) return 0;
    if (rp_status_may_move(slot->file.status, RP_FILE_DELETED)) {
        c->changed = true;
        r = rp_work_delete(work, slot, due_at_ms, c->reason, err);
    } else
        r = delete_again(work, c, slot, due_at_ms, err);
    if (c->shown && !slot->file.shown && c->command.error.code == 0) slot->file.shown = slot->changed = true;
    return r;
}

static int run_delete(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    RP_CLEANUP(rp_work_done) struct rp_work work = { 0 };
    int r = rp_work_load_commands(&work, tx, commands, n, RP_LOAD_BELOW, err);
    if (r == 0) r = rp_work_each(&work, commands, n, delete_file, 0, err);
    for (size_t i = 0; i < n && r == 0; i++)
        if (commands[i]->error.code == 0)
            commands[i]->due_at_ms = ((struct rp_file_command *)commands[i])->answer.due_at_ms;
    return r < 0 ? r : rp_work_save(&work, err);
}

const struct rp_verb rp_verb_delete = { .name = "delete", .run = run_delete, .log = rp_log_delete };
