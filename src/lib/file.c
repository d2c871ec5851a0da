/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - files for surfaces that speak of marks: the command line and the library. */
#include "core/file/file.h"
#include "base/cleanup.h"
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

int rp_session_mark_file(struct rp_session *s, int64_t file_id, const struct rp_mark_request *request,
                         struct rp_store **store, struct rp_mark_answer *answer, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(FILE_ARENA_MAX);
    struct rp_store *stores[RP_STORES_MAX];
    struct rp_file before = { 0 };
    size_t n = 0;
    *answer = (struct rp_mark_answer){ .what = RP_MARK_REFUSED, .references = -1 };
    if (request->if_unreferenced || request->annotate)
        return rp_error_set(err, RP_EINVAL,
                            "a file is deleted as a whole: --if-unreferenced and --annotate are for objects");
    int r = rp_session_stores(s, stores, &n, err);
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
                                 .reason = request->reason };
    r = rp_command_run(s->catalog, &c.command);
    if (r < 0) {
        *err = c.command.error;
        return r;
    }
    answer->what = what_happened(&before, c.changed);
    answer->mark_id = c.answer.mark_id;
    answer->marked_at_ms = c.answer.marked_at_ms;
    answer->due_at_ms = c.answer.due_at_ms;
    answer->size_bytes = c.answer.file.size_bytes;
    return 0;
}
