/* SPDX-License-Identifier: Apache-2.0 */
/* confirm.c - the verb confirm: an upload that is in the store becomes live (file.h, F2 and F3). */
#include "base/assert.h"
#include "base/cleanup.h"
#include "core/file/log.h"
#include "core/file/work.h"

#include <inttypes.h>
#include <string.h>

int rp_seen_check(const struct rp_seen *seen, const struct rp_file *file, struct rp_error *err)
{
    if (seen->outcome == RP_OUT_GONE) {
        rp_error_set(err, RP_ENOTUPLOADED, "'%s' was not uploaded yet", file->name);
        return rp_error_hint(err, "PUT the bytes to upload.url first, then %s",
                             file->txn_id != 0 ? "commit the transaction" : "confirm");
    }
    if (seen->outcome != RP_OUT_FOUND)
        return rp_error_set(err, RP_EUNAVAILABLE, "the store could not be asked: %s", seen->note);
    if (seen->identity.size_bytes != file->size_bytes)
        return rp_error_set(err, RP_ESIZE, "%" PRId64 " bytes were promised, the store has %" PRId64, file->size_bytes,
                            seen->identity.size_bytes);
    if (file->checksum != NULL && !seen->checked)
        return rp_error_set(err, RP_EUNAVAILABLE, "the bytes of '%s' were not read, so nothing says what they are",
                            file->name);
    if (seen->checked && !seen->checksum_fits)
        return rp_error_set(err, RP_ECHECKSUM, "the bytes of '%s' have another SHA-256 than promised", file->name);
    return 0;
}

int rp_work_go_live(struct rp_work *work, struct rp_slot *slot, const struct rp_seen *seen,
                    const struct rp_upload_rules *rules, struct rp_error *err)
{
    bool scan = rules->scan && slot->file.process_key != NULL;
    struct rp_slot *holder = rp_work_holder(work, &slot->file);
    RP_ASSERT(holder != slot); /* a pending file holds no name */
    int r = rp_work_identity(work, slot, &seen->identity, err);
    if (r == 0 && holder != NULL) r = rp_work_drop(work, holder, RP_REASON_REPLACED, err);
    if (r < 0) return r;
    rp_work_reprieve(slot, RP_END_CONFIRMED);
    rp_work_change(work, slot, scan ? RP_FILE_SCANNING : RP_FILE_LIVE);
    slot->owed = RP_LEDGER_USE;
    return rp_work_audit(work, "file.uploaded", slot, "", err);
}

/* What a file belongs to cannot be replaced by it; nor what has too large a family. */
static int check_holder(struct rp_work *work, const struct rp_slot *slot, struct rp_error *err)
{
    struct rp_slot *holder = rp_work_holder(work, &slot->file);
    if (holder == NULL) return 0;
    rp_work_tag(work, holder, NULL);
    if (slot->under != holder->file.id) return rp_work_check_along(work, holder, err);
    rp_error_set(err, RP_ENAMETAKEN, "'%s' is the name of a file that it belongs to: it cannot replace it",
                 slot->file.name);
    return rp_error_hint(err, "upload it under another name");
}

static int check_pending(const struct rp_slot *slot, struct rp_error *err)
{
    const struct rp_file *f = &slot->file;
    bool pending = f->status == RP_FILE_PENDING;
    bool claimed = slot->mark.state != RP_MARKED;
    if (!pending && f->status != RP_FILE_EXPIRED)
        return rp_error_set(err, RP_ENOTPENDING, "the file is %s", rp_status_name(f->status));
    if (pending && f->txn_id != 0) {
        rp_error_set(err, RP_EINTXN, "the file belongs to a transaction");
        return rp_error_hint(err, "its commit confirms all of its files at once; after an abort, begin a new upload");
    }
    return pending && !claimed ? 0 : rp_error_set(err, RP_EEXPIRED, "the upload was not confirmed in time");
}

static int decide_confirm(struct rp_work *work, const struct rp_file_command *c, const struct rp_slot *slot,
                          struct rp_error *err)
{
    struct rp_file promised = slot->file;
    if (c->checksum != NULL) promised.checksum = c->checksum;
    int r = check_pending(slot, err);
    if (r == 0) r = rp_seen_check(&c->seen, &promised, err);
    if (r == 0 && work->store == NULL) r = rp_error_set(err, RP_ECONFIG, "the file's store is not configured any more");
    if (r == 0) r = rp_work_check_owners(work, &slot->file, err);
    return r < 0 ? r : check_holder(work, slot, err);
}

/* Confirmed before: the same answer, unless the caller means other bytes. What was never hashed is
 * not read for it: the answer would come too late to keep anything out. */
static int check_again(const struct rp_file_command *c, const struct rp_file *f, struct rp_error *err)
{
    if (c->checksum == NULL || (f->checksum != NULL && memcmp(c->checksum, f->checksum, RP_DIGEST_BYTES) == 0))
        return 0;
    if (f->checksum != NULL)
        return rp_error_set(err, RP_ECHECKSUM, "'%s' is %s, and its bytes have another SHA-256", f->name,
                            rp_status_name(f->status));
    rp_error_set(err, RP_ENOTPENDING, "'%s' is %s already, and its SHA-256 is not known: nothing was compared", f->name,
                 rp_status_name(f->status));
    return rp_error_hint(err, "give the checksum when the upload begins or is first confirmed; or read the bytes");
}

static int confirm(struct rp_work *work, struct rp_file_command *c, struct rp_slot *slot, struct rp_error *err)
{
    if (rp_status_lives(slot->file.status)) {
        (void)check_again(c, &slot->file, &c->command.error);
        return 0;
    }
    if (decide_confirm(work, c, slot, &c->command.error) < 0) return 0;
    c->event = "file.uploaded";
    if (c->checksum != NULL) slot->file.checksum = c->checksum;
    return rp_work_go_live(work, slot, &c->seen, c->rules, err);
}

static int run_confirm(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    RP_CLEANUP(rp_work_done) struct rp_work work = { 0 };
    int r = rp_work_load_commands(&work, tx, commands, n, RP_LOAD_MARKS, err);
    if (r == 0) r = rp_work_owners(&work, RP_FILE_PENDING, err);
    if (r == 0) r = rp_work_holders(&work, RP_FILE_PENDING, 0, err);
    if (r == 0) r = rp_work_each(&work, commands, n, confirm, RP_ENOTLIVE, err);
    return r < 0 ? r : rp_work_save(&work, err);
}

const struct rp_verb rp_verb_confirm = { .name = "confirm", .run = run_confirm, .log = rp_log_confirm };
