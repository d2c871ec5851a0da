/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: one object with its metadata, and the identities of many. Nothing here writes. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/fs.h"

#define CHUNK_BYTES ((size_t)128 << 10)
#define TRIES_MAX   64 /* each one needs another upload in the middle of our reading */

static int open_current(struct rp_fs_finder *finder, const char *key, struct rp_fs_object *object, struct rp_error *err)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        int r = rp_fs_find(finder, key, object);
        if (r == -ENOENT) return rp_error_set(err, RP_ENOTFOUND, "no object '%s'", key);
        if (r < 0) return rp_error_errno(err, -r, "read '%s'", key);
        RP_CLEANUP(rp_fd_closep) int fd = rp_fs_object_open(object);
        if (fd < 0 && rp_fs_absent(-fd)) continue;
        if (fd < 0 || fstat(fd, &object->st) < 0) return rp_error_errno(err, fd < 0 ? -fd : errno, "read '%s'", key);
        if (!S_ISREG(object->st.st_mode)) continue;
        int given = fd;
        fd = -1;
        return given;
    }
    return rp_error_set(err, RP_ECONFLICT, "read '%s': it keeps changing", key);
}

static bool is_current(struct rp_fs_finder *finder, const char *key, const struct rp_identity *identity)
{
    struct rp_fs_object object;
    struct rp_identity now;
    if (rp_fs_find(finder, key, &object) < 0) return false;
    rp_fs_identity(&object.st, &now);
    return rp_identity_equal(&now, identity);
}

/* Opens the object and loads its metadata. No sidecar may mean that a writer has just replaced the object and dropped
 * the sidecar of what we hold: then look again, for the answer would be an object without its metadata. */
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
        int given = fd;
        fd = -1;
        return given;
    }
    return rp_error_set(err, RP_ECONFLICT, "read '%s': it keeps changing", key);
}

static int send(int fd, const char *key, const struct rp_identity *identity, const struct rp_sink *to,
                struct rp_error *err)
{
    RP_CLEANUP(rp_freep) char *chunk = malloc(CHUNK_BYTES);
    if (!chunk) return rp_error_set(err, RP_ENOMEM, "no memory to read an object");
    for (;;) {
        ssize_t n = read(fd, chunk, CHUNK_BYTES);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return rp_error_errno(err, errno, "read '%s'", key);
        if (n == 0) break;
        int r = to->write(to->ctx, chunk, (size_t)n, err);
        if (r < 0) return r;
    }
    struct stat st;
    struct rp_identity now;
    if (fstat(fd, &st) < 0) return rp_error_errno(err, errno, "read '%s'", key);
    rp_fs_identity(&st, &now);
    if (!rp_identity_equal(&now, identity))
        return rp_error_set(err, RP_ECHANGED, "'%s' was written to while it was read", key);
    return 0;
}

int rp_fs_get(struct rp_store *store, const char *key, const struct rp_sink *to, struct rp_arena *arena,
              struct rp_meta *meta, struct rp_identity *identity, struct rp_error *err)
{
    struct rp_fs *fs = rp_fs_of(store);
    RP_CLEANUP(rp_fs_finder_done) struct rp_fs_finder finder;
    struct rp_identity found;
    struct rp_meta loaded = { 0 };
    rp_fs_finder_init(&finder, fs, NULL);
    int r = rp_key_check(key, strlen(key), err);
    if (r < 0 || (r = rp_fs_root_check(fs, err)) < 0) return r;
    RP_CLEANUP(rp_fd_closep) int fd = open_with_meta(&finder, key, arena, meta ? &loaded : NULL, &found, err);
    if (fd < 0) return fd;
    if (to && (r = send(fd, key, &found, to, err)) < 0) return r;
    if (meta) *meta = loaded;
    if (identity) *identity = found;
    return 0;
}

static int stat_item(struct rp_fs_finder *finder, struct rp_item *item)
{
    struct rp_fs_object object;
    int r = rp_fs_find(finder, item->key, &object);
    if (r == 0) rp_fs_identity(&object.st, &item->identity);
    if (r == 0 || r == -ENOENT)
        item->outcome = r == 0 ? RP_OUT_FOUND : RP_OUT_GONE;
    else if (rp_fs_store_wide(-r))
        return r;
    else
        rp_fs_item_fail(item, -r);
    return 0;
}

int rp_fs_stat(struct rp_store *store, struct rp_item *items, size_t n, struct rp_error *err)
{
    return rp_fs_batch_run(rp_fs_of(store), items, n, stat_item, NULL, err);
}
