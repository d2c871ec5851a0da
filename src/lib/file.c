/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - files for surfaces that speak of marks: the command line and the library. */
#include "core/file/file.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "core/journal.h"
#include "lib/session.h"

#include <string.h>

#define FILE_ARENA_MAX ((size_t)4 << 20)

static int store_of(struct rp_session *s, int64_t store_id, struct rp_store **out, struct rp_error *err)
{
    const char *name = rp_session_store_name(s, store_id);
    if (strcmp(name, "?") == 0) return rp_error_set(err, RP_ENOTFOUND, "the file's store is not configured any more");
    return rp_session_store(s, name, out, err);
}

static enum rp_marking what_happened(const struct rp_file *before, bool changed)
{
    if (!changed) return RP_MARK_SAME;
    return before->status == RP_FILE_DELETED ? RP_MARK_EXTENDED : RP_MARK_CREATED;
}

/* It never becomes a command, which would say so itself. */
static int refuse_options(struct rp_session *s, int64_t file_id, const char *reason, struct rp_error *err)
{
    struct rp_journal j = { .log = s->log, .at_ms = rp_session_now_ms(s), .actor = s->actor };
    char id[RP_ID_TEXT];
    rp_error_set(err, RP_EINVAL, "a file is deleted as a whole: if-unreferenced and annotate are for objects");
    rp_journal_refused(&j, "mark.refused", rp_id_format(RP_ID_FILE, file_id, id), reason, err);
    return err->code;
}

int rp_session_mark_file(struct rp_session *s, int64_t file_id, const struct rp_mark_request *request,
                         struct rp_store **store, struct rp_mark_answer *answer, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(FILE_ARENA_MAX);
    struct rp_store *stores[RP_STORES_MAX];
    struct rp_file before = { 0 };
    size_t n = 0;
    *answer = (struct rp_mark_answer){ .what = RP_MARK_REFUSED, .references = -1 };
    int r = request->if_unreferenced || request->annotate ? refuse_options(s, file_id, request->reason, err)
                                                          : rp_session_stores(s, stores, &n, err);
    if (r == 0) r = rp_file_get(s->catalog->db, file_id, &arena, &before, err);
    if (r == 0) r = store_of(s, before.store_id, store, err);
    if (r < 0) return r;
    struct rp_file_command c = { .command = { .verb = &rp_verb_delete, .actor = s->actor },
                                 .stores = stores,
                                 .n_stores = n,
                                 .arena = &arena,
                                 .file_id = file_id,
                                 .grace_ms = request->grace_ms,
                                 .at_ms = request->at_ms,
                                 .reason = request->reason,
                                 .confirmations = request->confirmations };
    r = rp_command_run(s->catalog, &c.command);
    if (r < 0) {
        *err = c.command.error;
        return r;
    }
    answer->what = what_happened(&before, c.event != NULL);
    answer->mark_id = c.answer.mark_id;
    answer->marked_at_ms = c.answer.marked_at_ms;
    answer->due_at_ms = c.answer.due_at_ms;
    answer->size_bytes = c.answer.file.size_bytes;
    answer->asked_now = c.answer.asked_now;
    memcpy(answer->reason, c.answer.mark_reason, sizeof answer->reason);
    return 0;
}
