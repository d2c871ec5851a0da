/* SPDX-License-Identifier: Apache-2.0 */
/* delete.c - the verb delete: a file and what belongs to it waits under marks (file.h, F4). */
#include "base/cleanup.h"
#include "base/text/utf8.h"
#include "base/time.h"
#include "core/confirm/confirm.h"
#include "core/file/log.h"
#include "core/file/work.h"

#include <string.h>

static int decide_delete(struct rp_work *work, const struct rp_file_command *c, struct rp_slot *slot, int64_t due_at_ms,
                         struct rp_error *err)
{
    if (slot->file.status == RP_FILE_EXPIRED)
        return rp_error_set(err, RP_EEXPIRED, "the upload was not confirmed in time: there is nothing to delete");
    if (work->store == NULL) return rp_error_set(err, RP_ECONFIG, "the file's store is not configured any more");
    if (strlen(c->reason) > RP_REASON_MAX || !rp_utf8_valid(c->reason, strlen(c->reason)))
        return rp_error_set(err, RP_EINVAL, "the reason is longer than %d bytes, or not valid UTF-8", RP_REASON_MAX);
    if (slot->file.status == RP_FILE_PURGED)
        return slot->mark.id != 0 ? 0
                                  : rp_error_set(err, RP_EGONE, "the file was purged; its mark is not kept any more");
    if (slot->file.status == RP_FILE_PENDING && c->confirmations != NULL)
        return rp_error_set(err, RP_EINVAL, "its upload was never confirmed: delete it without confirmations");
    int r = rp_grace_check(work->store->config, due_at_ms - work->tx->late_ms, err);
    if (r < 0 || !rp_status_may_move(slot->file.status, RP_FILE_DELETED)) return r;
    return rp_work_check_along(work, slot, err);
}

/* ---- deleted before: the same mark, or a later time for it; never an earlier one ---- */

static int refuse_earlier(int64_t due_at_ms, struct rp_error *err)
{
    char text[RP_TIME_TEXT];
    rp_error_set(err, RP_EMARKED, "the file is already deleted, its purge is due %s", rp_time_format(due_at_ms, text));
    return rp_error_hint(err, "a promise is never shortened: restore it and delete it again");
}

/* What was deleted along with it waits as long: it can only be restored together. */
static int extend_family(struct rp_work *work, int64_t root_id, int64_t due_at_ms, const char *reason,
                         struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < work->n && r == 0; i++) {
        struct rp_slot *slot = &work->slots[i];
        bool along = slot->file.with_id == root_id && slot->file.status == RP_FILE_DELETED;
        if (slot->file.id != root_id && !along) continue;
        if (slot->mark.state != RP_MARKED || slot->mark.due_at_ms >= due_at_ms) continue;
        slot->mark.due_at_ms = due_at_ms;
        if (reason != NULL && reason[0] != '\0') slot->mark.reason = reason;
        r = rp_work_audit(work, "mark.extended", slot, "", err);
    }
    return r;
}

/* Its purge was given up: nothing waits to erase it, and it takes room until it is deleted once
 * more. */
static int delete_lost(struct rp_work *work, struct rp_file_command *c, struct rp_slot *slot, int64_t due_at_ms,
                       struct rp_error *err)
{
    rp_work_mark(work, slot, due_at_ms, c->reason);
    c->event = "file.deleted";
    return rp_work_audit_deleted(work, slot, err);
}

/* Deleted again, it keeps the confirmations that it has. */
static int check_confirmers(struct rp_work *work, const struct rp_file_command *c, const struct rp_slot *slot,
                            struct rp_error *err)
{
    if (c->confirmations == NULL) return 0;
    return rp_confirmers_same(work->tx->db, slot->mark.id, c->confirmations, work->tx->arena, err);
}

static int delete_again(struct rp_work *work, struct rp_file_command *c, struct rp_slot *slot, int64_t due_at_ms,
                        struct rp_error *err)
{
    const struct rp_mark *mark = &slot->mark;
    bool explicit_time = c->at_ms >= 0 || c->grace_ms >= 0;
    if (mark->state == RP_LOST) return delete_lost(work, c, slot, due_at_ms, err);
    int r = check_confirmers(work, c, slot, &c->command.error);
    if (r == RP_EMARKED) return 0;
    if (r < 0) {
        *err = c->command.error;
        return r;
    }
    if (slot->file.status == RP_FILE_PURGED || !explicit_time) return 0;
    if (mark->state != RP_MARKED || due_at_ms == mark->due_at_ms) return 0;
    if (due_at_ms < mark->due_at_ms) {
        refuse_earlier(mark->due_at_ms, &c->command.error);
        return 0;
    }
    c->event = "mark.extended";
    return extend_family(work, slot->file.id, due_at_ms, c->reason, err);
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
    work->confirmers = c->confirmations;
    if (decide_delete(work, c, slot, due_at_ms, &c->command.error) < 0) return 0;
    if (rp_status_may_move(slot->file.status, RP_FILE_DELETED)) {
        c->event = "file.deleted";
        r = rp_work_delete(work, slot, due_at_ms, c->reason, err);
    } else
        r = delete_again(work, c, slot, due_at_ms, err);
    if (c->shown && !slot->file.shown && c->command.error.code == 0) slot->file.shown = slot->changed = true;
    return r;
}

static int64_t look_at_ms(const struct rp_file_command *c)
{
    return c->answer.asked_now ? c->answer.marked_at_ms : c->answer.due_at_ms;
}

static int run_delete(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    RP_CLEANUP(rp_work_done) struct rp_work work = { 0 };
    int r = rp_work_load_commands(&work, tx, commands, n, RP_LOAD_BELOW, err);
    if (r == 0) r = rp_work_each(&work, commands, n, delete_file, 0, err);
    for (size_t i = 0; i < n && r == 0; i++)
        if (commands[i]->error.code == 0) commands[i]->due_at_ms = look_at_ms((struct rp_file_command *)commands[i]);
    return r < 0 ? r : rp_work_save(&work, err);
}

const struct rp_verb rp_verb_delete = { .name = "delete", .run = run_delete, .log = rp_log_delete };
