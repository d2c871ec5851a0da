/* SPDX-License-Identifier: Apache-2.0 */
/* Finding one object, in either home, in its place or while it is being removed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "store/fs/fs.h"

void rp_fs_finder_init(struct rp_fs_finder *finder, struct rp_fs *fs, struct rp_fs_batch *batch)
{
    finder->fs = fs;
    finder->batch = batch;
    finder->parent_missing = false;
    for (int home = 0; home < RP_FS_HOMES; home++) {
        finder->dirs[home].fd = -1;
        finder->dirs[home].len = 0;
        finder->dirs[home].touched = false;
    }
}

static void dir_leave(struct rp_fs_finder *finder, struct rp_fs_dir *dir)
{
    if (dir->fd < 0) return;
    if (dir->touched && finder->batch)
        rp_fs_batch_take(finder->batch, dir->fd);
    else
        close(dir->fd);
    dir->fd = -1;
    dir->touched = false;
}

void rp_fs_finder_done(struct rp_fs_finder *finder)
{
    for (int home = 0; home < RP_FS_HOMES; home++)
        dir_leave(finder, &finder->dirs[home]);
}

static int dir_enter(struct rp_fs_finder *finder, enum rp_fs_home home, const char *path, size_t n)
{
    struct rp_fs_dir *dir = &finder->dirs[home];
    if (dir->fd >= 0 && dir->len == n && memcmp(dir->path, path, n) == 0) return dir->fd;
    dir_leave(finder, dir);
    int fd = rp_fs_dir_open(finder->fs, path, n);
    if (fd < 0) return fd;
    memcpy(dir->path, path, n);
    dir->len = n;
    dir->fd = fd;
    return fd;
}

static int look_in_place(int dir_fd, const char *name, struct stat *st)
{
    if (fstatat(dir_fd, name, st, AT_SYMLINK_NOFOLLOW) < 0) return rp_fs_absent(errno) ? -ENOENT : -errno;
    return S_ISREG(st->st_mode) ? 0 : -ENOENT;
}

/* In its place, as one that is being removed, and in its place again: it may come back between the
 * first two looks. */
int rp_fs_look(int dir_fd, const char *name, bool *removing, struct stat *st)
{
    *removing = false;
    int r = look_in_place(dir_fd, name, st);
    if (r != -ENOENT) return r;
    r = rp_fs_removing_stat(dir_fd, name, st);
    *removing = r == 0;
    return r == -ENOENT ? look_in_place(dir_fd, name, st) : r;
}

static int find_in(struct rp_fs_finder *finder, const char *key, enum rp_fs_home home, struct rp_fs_object *out)
{
    char path[RP_FS_PATH_MAX];
    if (!rp_fs_key_path(key, home, path)) return -ENOENT;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    int fd = dir_enter(finder, home, path, slash ? (size_t)(slash - path) : 0);
    if (fd < 0 && home == RP_FS_PLAIN) finder->parent_missing = true;
    if (fd < 0) return rp_fs_absent(-fd) ? -ENOENT : fd;
    RP_ASSERT(strlen(name) <= RP_FS_NAME_MAX);
    int r = rp_fs_look(fd, name, &out->removing, &out->st);
    if (r < 0) return r;
    out->home = home;
    out->dir_fd = fd;
    memcpy(out->name, name, strlen(name) + 1);
    return 0;
}

int rp_fs_find(struct rp_fs_finder *finder, const char *key, struct rp_fs_object *out)
{
    finder->parent_missing = false;
    int r = find_in(finder, key, RP_FS_PLAIN, out);
    return r == -ENOENT ? find_in(finder, key, RP_FS_ESCAPED, out) : r;
}

int rp_fs_object_open(const struct rp_fs_object *object)
{
    if (object->removing) return rp_fs_removing_open(object->dir_fd, object->name);
    return rp_fs_openat2(object->dir_fd, object->name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
}

int rp_fs_file_fact(int dir_fd, const char *name, const struct stat *st, struct rp_fs_fact *out)
{
    struct rp_fs_dir_id in;
    int r = rp_fs_dir_id_of(dir_fd, &in);
    if (r < 0) return r;
    const struct rp_fs_dir_id file = { .dev = st->st_dev,
                                       .ino = st->st_ino,
                                       .born_ns = st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec };
    *out = rp_fs_fact_of(&in, name, &file);
    return 0;
}

void rp_fs_identity(const struct stat *st, struct rp_identity *out)
{
    /* 64 bits of ns hold every time from 1677 to 2262; beyond, the value wraps and still
     * differs. */
    uint64_t mtime_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000U + (uint64_t)st->st_mtim.tv_nsec;
    memset(out, 0, sizeof *out);
    snprintf(out->etag, sizeof out->etag, "%" PRIx64 "-%" PRIx64 "-%" PRIx64, (uint64_t)st->st_ino, mtime_ns,
             (uint64_t)st->st_size);
    out->size_bytes = st->st_size;
    out->modified_ms = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

bool rp_fs_is(const struct stat *st, const struct rp_identity *expected)
{
    struct rp_identity identity;
    rp_fs_identity(st, &identity);
    return rp_identity_equal(&identity, expected);
}
