/* SPDX-License-Identifier: Apache-2.0 */
/* overwrite.c - who may not be written over by hand. The bytes of a file are its own until it is
 * over; and after that until its last mark has ended, which erases whatever came late. */
#include "base/cleanup.h"
#include "base/id.h"
#include "catalog/file/file.h"
#include "core/file/file.h"
#include "core/state.h"

#define LOOK_ARENA ((size_t)256 << 10)

/* The file whose last mark still waits under the key, or is at work there; 0: none. */
static int find_marked(struct rp_db *db, int64_t store_id, const char *key, struct rp_arena *arena, int64_t *file_id,
                       struct rp_error *err)
{
    struct rp_marks newest;
    int r = rp_marks_init(&newest, 1, arena, err);
    if (r == 0) r = rp_marks_newest(db, store_id, &key, 1, false, &newest, err);
    if (r == 0 && newest.n > 0 && !rp_state_final(newest.at[0].state)) *file_id = newest.at[0].file_id;
    return r;
}

static int refuse(const struct rp_store *store, const char *key, const struct rp_file *file, struct rp_error *err)
{
    char id[RP_ID_TEXT];
    bool over = file->status == RP_FILE_PURGED || file->status == RP_FILE_EXPIRED;
    rp_id_format(RP_ID_FILE, file->id, id);
    rp_error_set(err, RP_EISFILE, "%s:%s %s %s, '%s'", store->config->name, key,
                 over ? "is erased once more, for late uploads of the ended file" : "is the object of file", id,
                 file->name);
    if (over || file->status == RP_FILE_DELETED)
        return rp_error_hint(err, "put it under another key, or upload it through POST /v1/files");
    return rp_error_hint(err,
                         "upload a new one of that name through POST /v1/files; or delete this one first "
                         "(`reprieve mark %s`), and put when it is purged",
                         id);
}

int rp_overwrite_check(struct rp_db *db, const struct rp_store *store, const char *key, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(LOOK_ARENA);
    struct rp_file file;
    int64_t file_id = 0;
    int r = rp_files_of_keys(db, &arena, store->id, &key, 1, &file_id, err);
    if (r == 0 && file_id == 0) r = find_marked(db, store->id, key, &arena, &file_id, err);
    if (r < 0 || file_id == 0) return r;
    r = rp_file_get(db, file_id, &arena, &file, err);
    return r < 0 ? r : refuse(store, key, &file, err);
}
