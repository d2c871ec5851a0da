/* SPDX-License-Identifier: Apache-2.0 */
/* remove(): exactly the identity that was named. Look; rename; look at what is in hand; unlink
 * that. */
#include <errno.h>

#include "base/cleanup.h"
#include "store/fs/fs.h"

#define TRIES_MAX 16

static void touch(struct rp_fs_finder *finder, enum rp_fs_home home)
{
    if (finder->dirs[home].fd >= 0) finder->dirs[home].touched = true;
}

/* "Gone" is an answer to stand on: a name that somebody else removed must not come back after a
 * crash either. */
static void touch_absence(struct rp_fs_finder *finder)
{
    touch(finder, RP_FS_PLAIN);
    touch(finder, RP_FS_ESCAPED);
    if (finder->parent_missing) rp_fs_batch_sync_root(finder->batch);
}

/* 1: unlinked. 0: another one was in hand and is back in its place. -EAGAIN: another program took
 * what was in hand. */
static int unlink_in_hand(struct rp_fs_finder *finder, const struct rp_fs_object *object,
                          const struct rp_identity *expected)
{
    struct stat st;
    int r = rp_fs_removing_stat(object->dir_fd, object->name, &st);
    bool same = r == 0 && rp_fs_is(&st, expected);
    rp_fs_point(finder->fs, "remove-in-hand");
    if (same) {
        r = rp_fs_removing_finish(object->dir_fd, object->name);
        rp_fs_point(finder->fs, "remove-unlinked");
        if (r == 0) return 1;
    }
    int back = rp_fs_removing_undo(object->dir_fd, object->name);
    rp_fs_point(finder->fs, "remove-back");
    if (r == -ENOENT && back == 0) return -EAGAIN;
    return r < 0 ? r : back;
}

/* 1: deleted, 0: changed, -ENOENT: gone, -EAGAIN: it moved under our hands. */
static int remove_exactly(struct rp_fs_finder *finder, const struct rp_item *item)
{
    struct rp_fs_object object;
    int r = rp_fs_find(finder, item->key, &object);
    if (r < 0) return r;
    if (!rp_fs_is(&object.st, &item->identity))
        return object.removing ? rp_fs_removing_undo(object.dir_fd, object.name) : 0;
    rp_fs_point(finder->fs, "remove-seen");
    if (!object.removing) {
        r = rp_fs_removing_begin(object.dir_fd, object.name);
        if (r == -ENOENT) return -EAGAIN;
        if (r < 0) return r;
        rp_fs_point(finder->fs, "remove-moved");
    }
    r = unlink_in_hand(finder, &object, &item->identity);
    if (r == 1) touch(finder, object.home);
    return r;
}

static int remove_locked(struct rp_fs_finder *finder, struct rp_item *item)
{
    int r = -EAGAIN;
    for (int i = 0; i < TRIES_MAX && r == -EAGAIN; i++)
        r = remove_exactly(finder, item);
    if (r == -ENOENT) touch_absence(finder);
    if (r == 1)
        item->outcome = RP_OUT_DELETED;
    else if (r == 0)
        item->outcome = RP_OUT_CHANGED;
    else if (r == -ENOENT)
        item->outcome = RP_OUT_GONE;
    else
        rp_fs_item_fail(item, -r);
    if (r >= 0 || !rp_fs_store_wide(-r)) return 0;
    item->outcome = RP_OUT_UNKNOWN;
    return r;
}

static int remove_item(struct rp_fs_finder *finder, struct rp_item *item)
{
    RP_CLEANUP(rp_fs_unlock) struct rp_fs_key_lock key_lock = RP_FS_KEY_UNLOCKED;
    int r = rp_fs_lock(finder->fs, item->key, &key_lock);
    return r < 0 ? r : remove_locked(finder, item);
}

/* Only once the object is durably gone, or it could come back without its metadata. A copy into our
 * own keys keeps the inode, so the same identity may stand there again: then the sidecar is in
 * use. */
static int drop_sidecar(struct rp_fs_finder *finder, struct rp_item *item)
{
    RP_CLEANUP(rp_fs_unlock) struct rp_fs_key_lock key_lock = RP_FS_KEY_UNLOCKED;
    struct rp_fs_object object;
    if (item->outcome != RP_OUT_DELETED && item->outcome != RP_OUT_GONE) return 0;
    if (!rp_fs_meta_has(finder->fs, item->key, item->identity.etag)) return 0;
    if (rp_fs_lock(finder->fs, item->key, &key_lock) < 0) return 0;
    int r = rp_fs_find(finder, item->key, &object);
    if (r == -ENOENT || (r == 0 && !rp_fs_is(&object.st, &item->identity)))
        rp_fs_meta_drop(finder->fs, item->key, item->identity.etag);
    return 0;
}

int rp_fs_remove(struct rp_backend *backend, struct rp_item *items, size_t n, const struct rp_gate *gate,
                 struct rp_error *err)
{
    RP_CLEANUP(rp_fs_leave) struct rp_fs *fs = rp_fs_enter(backend);
    int r = rp_fs_root_check(fs, err);
    if (r < 0 || (r = rp_fs_begin(fs, err)) < 0) return r;
    rp_fs_meta_exists(fs); /* another process may have made it since */
    return rp_fs_batch_run(fs, items, n, gate, remove_item, drop_sidecar, err);
}
