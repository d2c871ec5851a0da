/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: one object with its metadata, and the identities of many. Nothing here writes. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/fs/fs.h"
#include "store/refuse.h"

#define TRIES_MAX 64 /* each one needs another upload in the middle of our reading */

static int open_current(struct rp_fs_finder *finder, const char *key, struct rp_fs_object *object, struct rp_error *err)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        int r = rp_fs_find(finder, key, object);
        if (r == -ENOENT) return rp_refuse_absent(key, err);
        if (r < 0) return rp_error_errno(err, -r, "read '%s'", key);
        RP_CLEANUP(rp_fd_closep) int fd = rp_fs_object_open(object);
        if (fd < 0 && rp_fs_absent(-fd)) continue;
        if (fd < 0 || fstat(fd, &object->st) < 0) return rp_error_errno(err, fd < 0 ? -fd : errno, "read '%s'", key);
        if (!S_ISREG(object->st.st_mode)) continue;
        return rp_fs_fd_release(&fd);
    }
    return rp_error_set(err, RP_ECONFLICT, "read '%s': it keeps changing", key);
}

static bool is_current(struct rp_fs_finder *finder, const char *key, const struct rp_identity *identity)
{
    struct rp_fs_object object;
    return rp_fs_find(finder, key, &object) == 0 && rp_fs_is(&object.st, identity);
}

/* Opens the object and loads its metadata. No sidecar may mean that a writer has just replaced the
 * object and dropped the sidecar of what we hold: then look again, for the answer would be an
 * object without its metadata. */
static int open_with_meta(struct rp_fs_finder *finder, const char *key, struct rp_arena *arena, struct rp_meta *meta,
                          struct rp_identity *identity, struct rp_error *err)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        struct rp_fs_object object;
        bool found = false;
        RP_CLEANUP(rp_fd_closep) int fd = open_current(finder, key, &object, err);
        if (fd < 0) return fd;
        rp_fs_identity(&object.st, identity);
        int r = meta ? rp_fs_meta_load(finder->fs, key, identity->etag, arena, meta, &found, err) : 0;
        if (r < 0) return r;
        if (meta && !found && !is_current(finder, key, identity)) continue;
        return rp_fs_fd_release(&fd);
    }
    return rp_error_set(err, RP_ECONFLICT, "read '%s': it keeps changing", key);
}

struct reader {
    struct rp_object_reader base;
    int fd;
    struct rp_identity identity;
    char key[RP_KEY_MAX + 1];
};

static struct reader *reader_of(struct rp_object_reader *reader)
{
    return (struct reader *)(void *)reader;
}

int rp_fs_get_open(struct rp_backend *backend, const char *key, struct rp_arena *arena, struct rp_meta *meta,
                   struct rp_identity *identity, struct rp_object_reader **out, struct rp_error *err)
{
    RP_CLEANUP(rp_fs_leave) struct rp_fs *fs = rp_fs_enter(backend);
    RP_CLEANUP(rp_fs_finder_done) struct rp_fs_finder finder;
    struct rp_meta loaded = { 0 };
    rp_fs_finder_init(&finder, fs, NULL);
    int r = rp_key_check(key, strlen(key), err);
    if (r < 0 || (r = rp_fs_root_check(fs, err)) < 0) return r;
    RP_CLEANUP(rp_freep) struct reader *reader = calloc(1, sizeof *reader);
    if (!reader) return rp_error_set(err, RP_ENOMEM, "no memory to read an object");
    *reader = (struct reader){ .base.backend = backend };
    memcpy(reader->key, key, strlen(key) + 1);
    reader->fd = open_with_meta(&finder, key, arena, meta ? &loaded : NULL, &reader->identity, err);
    if (reader->fd < 0) return reader->fd;
    if (meta) *meta = loaded;
    if (identity) *identity = reader->identity;
    *out = &reader->base;
    reader = NULL;
    return 0;
}

/* Asked after the read: what somebody changed before it cannot stay unnoticed. */
static int same_still(const struct reader *reader, struct rp_error *err)
{
    struct stat st;
    if (fstat(reader->fd, &st) < 0) return rp_error_errno(err, errno, "read '%s'", reader->key);
    if (rp_fs_is(&st, &reader->identity)) return 0;
    return rp_error_set(err, RP_ECHANGED, "'%s' was written to while it was read", reader->key);
}

int64_t rp_fs_get_read(struct rp_object_reader *reader, int64_t offset, void *to, size_t n, struct rp_error *err)
{
    struct reader *r = reader_of(reader);
    ssize_t got;
    do
        got = pread(r->fd, to, n, (off_t)offset);
    while (got < 0 && errno == EINTR);
    if (got < 0) return rp_error_errno(err, errno, "read '%s'", r->key);
    int changed = same_still(r, err);
    return changed < 0 ? changed : got;
}

void rp_fs_get_close(struct rp_object_reader *reader)
{
    close(reader_of(reader)->fd);
    free(reader);
}

/* F10: its directory is synced before the answer, unless that is not needed. */
static void see_to_it(struct rp_fs_finder *finder, const struct rp_fs_object *object)
{
    struct rp_fs_fact fact;
    int64_t shown_ms = (int64_t)object->st.st_ctim.tv_sec * 1000;
    if (rp_clock_now_ms(&rp_clock_host) - shown_ms > RP_FS_YOUNG_MS) return;
    bool told = rp_fs_file_fact(object->dir_fd, object->name, &object->st, &fact) == 0;
    if (told && rp_fs_durable_has(&finder->fs->shown, &fact)) return;
    finder->dirs[object->home].touched = true;
    if (told) rp_fs_batch_remember(finder->batch, &fact);
}

static int stat_item(struct rp_fs_finder *finder, struct rp_item *item)
{
    struct rp_fs_object object;
    int r = rp_fs_find(finder, item->key, &object);
    if (r == 0) rp_fs_identity(&object.st, &item->identity);
    if (r == 0) see_to_it(finder, &object);
    if (r == 0 || r == -ENOENT)
        item->outcome = r == 0 ? RP_OUT_FOUND : RP_OUT_GONE;
    else if (rp_fs_store_wide(-r))
        return r;
    else
        rp_fs_item_fail(item, -r);
    return 0;
}

int rp_fs_stat(struct rp_backend *backend, struct rp_item *items, size_t n, struct rp_error *err)
{
    RP_CLEANUP(rp_fs_leave) struct rp_fs *fs = rp_fs_enter(backend);
    return rp_fs_batch_run(fs, items, n, NULL, stat_item, NULL, err);
}
