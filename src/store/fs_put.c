/* SPDX-License-Identifier: Apache-2.0 */
/* put(): bytes into a file of .reprieve/tmp, then sidecar, then name. Every step is durable before the next. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "store/fs.h"
#include "store/meta.h"

#define CHUNK_BYTES ((size_t)128 << 10)
#define TRIES_MAX   16 /* another program may take or free the name between two steps */

/* Where the new file goes, and what it replaces. */
struct target {
    int dir_fd;
    char name[RP_FS_NAME_MAX + 1];
    bool exists;   /* the key has an object, */
    bool in_place; /* and it stands at this very name */
    struct rp_fs_object old;
};

static void target_done(struct target *t)
{
    if (t->dir_fd >= 0) close(t->dir_fd);
    t->dir_fd = -1;
}

static int target_enter(struct rp_fs *fs, const char *key, enum rp_fs_home home, struct target *t)
{
    char path[RP_FS_PATH_MAX];
    target_done(t);
    if (!rp_fs_key_path(key, home, path)) return -ENOTDIR;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    RP_ASSERT(strlen(name) <= RP_FS_NAME_MAX);
    memcpy(t->name, name, strlen(name) + 1);
    t->dir_fd = rp_fs_dir_make(fs, path, slash ? (size_t)(slash - path) : 0);
    return t->dir_fd < 0 ? t->dir_fd : 0;
}

/* The plain home, unless its path is blocked by something that is no object of this key. */
static int target_enter_new(struct rp_fs *fs, const char *key, struct target *t)
{
    struct stat st;
    int r = target_enter(fs, key, RP_FS_PLAIN, t);
    if (r == 0) {
        if (fstatat(t->dir_fd, t->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            r = errno == ENOENT ? 0 : -errno;
        else
            r = -ENOTDIR;
    }
    return r < 0 && rp_fs_absent(-r) ? target_enter(fs, key, RP_FS_ESCAPED, t) : r;
}

static int target_choose(struct rp_fs_finder *finder, const char *key, struct target *t)
{
    int r = rp_fs_find(finder, key, &t->old);
    if (r == 0 && t->old.aside && (r = rp_fs_aside_put_back(t->old.dir_fd, t->old.name)) == 0)
        r = rp_fs_find(finder, key, &t->old);
    if (r < 0 && r != -ENOENT) return r;
    t->exists = r == 0;
    t->in_place = t->exists && !t->old.aside;
    return t->in_place ? target_enter(finder->fs, key, t->old.home, t) : target_enter_new(finder->fs, key, t);
}

static int show(struct rp_fs *fs, const char *temp, const struct target *t)
{
    if (!t->in_place) return rp_fs_rename_new(fs->tmp_fd, temp, t->dir_fd, t->name);
    return renameat(fs->tmp_fd, temp, t->dir_fd, t->name) < 0 ? -errno : 0;
}

static bool taken_meanwhile(int r)
{
    return r == -EEXIST || r == -EISDIR || r == -ENOTDIR || r == -ENOENT;
}

static int show_failed(const struct rp_fs *fs, int r, struct rp_error *err)
{
    if (taken_meanwhile(r)) return rp_error_set(err, RP_ECONFLICT, "another program keeps changing it");
    if (r != -EXDEV) return rp_error_errno(err, -r, "store '%s'", fs->root);
    rp_error_set(err, RP_EINVAL, "another file system is mounted there, below '%s'", fs->root);
    rp_error_hint(err, "configure the mounted directory as a store of its own");
    return RP_EINVAL;
}

/* Chooses, writes the sidecar, shows the file: again if the name was taken in between. */
static int settle(struct rp_fs_finder *finder, const char *temp, const char *key, const struct rp_meta *meta, int flags,
                  const struct rp_identity *identity, struct target *t, struct rp_error *err)
{
    int r = -EEXIST;
    for (int i = 0; i < TRIES_MAX && taken_meanwhile(r); i++) {
        if ((r = target_choose(finder, key, t)) < 0) return rp_error_errno(err, -r, "find its place");
        if (t->exists && (flags & RP_PUT_NEW)) return rp_error_set(err, RP_EEXISTS, "'%s' exists already", key);
        if (!rp_meta_empty(meta) && (r = rp_fs_meta_save(finder->fs, key, identity->etag, meta, err)) < 0) return r;
        rp_fs_point(finder->fs, "put-sidecar");
        r = show(finder->fs, temp, t);
    }
    return r < 0 ? show_failed(finder->fs, r, err) : 0;
}

/* What the new file replaces: what stood aside (it is superseded) and the old identity's sidecar. */
static void tidy(struct rp_fs *fs, const char *key, const struct target *t, const struct rp_identity *made)
{
    rp_fs_aside_unlink(t->dir_fd, t->name);
    if (!t->exists) return;
    struct rp_identity old;
    rp_fs_identity(&t->old.st, &old);
    if (t->old.aside) rp_fs_aside_unlink(t->old.dir_fd, t->old.name);
    if (strcmp(old.etag, made->etag) != 0) rp_fs_meta_drop(fs, key, old.etag);
}

int rp_fs_place(struct rp_fs *fs, const char *temp, const char *key, const struct rp_meta *meta, int flags,
                struct rp_identity *out, struct rp_error *err)
{
    RP_CLEANUP(rp_fs_unlock) struct rp_fs_guard guard = RP_FS_GUARD;
    RP_CLEANUP(rp_fs_finder_done) struct rp_fs_finder finder;
    RP_CLEANUP(target_done) struct target t = { .dir_fd = -1 };
    struct rp_identity made;
    struct stat st;
    rp_fs_finder_init(&finder, fs, NULL);
    if (fstatat(fs->tmp_fd, temp, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return rp_error_errno(err, errno, "its temporary file");
    rp_fs_identity(&st, &made);
    int r = rp_fs_lock(fs, key, &guard);
    if (r < 0) return rp_error_errno(err, -r, "lock");
    if ((r = settle(&finder, temp, key, meta, flags, &made, &t, err)) < 0) {
        /* With a second link, the object that exists may be this inode, and the sidecar its own. */
        if (st.st_nlink == 1 || r != RP_EEXISTS) rp_fs_meta_drop(fs, key, made.etag);
        return r;
    }
    rp_fs_point(fs, "put-shown");
    if (fsync(t.dir_fd) < 0)
        return rp_error_set(err, RP_EUNKNOWN, "its directory cannot be synced: %s", strerror(errno));
    rp_fs_point(fs, "put-durable");
    tidy(fs, key, &t, &made);
    if (out) *out = made;
    return 0;
}

int rp_fs_write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t written = write(fd, bytes, n);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return -errno;
        bytes += written;
        n -= (size_t)written;
    }
    return 0;
}

int rp_fs_temp_finish(struct rp_fs *fs, int fd, struct rp_error *err)
{
    int64_t ns = rp_fs_next_mtime_ns(fs);
    struct timespec at = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
    if (futimens(fd, (const struct timespec[2]){ at, at }) < 0 || fsync(fd) < 0)
        return rp_error_errno(err, errno, "store '%s': write", fs->root);
    return 0;
}

static int write_temp(struct rp_fs *fs, const char *temp, const struct rp_source *from, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) char *chunk = malloc(CHUNK_BYTES);
    if (!chunk) return rp_error_set(err, RP_ENOMEM, "no memory to write an object");
    RP_CLEANUP(rp_fd_closep) int fd = rp_fs_openat2(fs->tmp_fd, temp, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (fd < 0) return rp_error_errno(err, -fd, "store '%s': write", fs->root);
    for (;;) {
        int64_t n = from->read(from->ctx, chunk, CHUNK_BYTES, err);
        if (n < 0) return (int)n;
        if (n == 0) return rp_fs_temp_finish(fs, fd, err);
        RP_ASSERT((size_t)n <= CHUNK_BYTES);
        int r = rp_fs_write_all(fd, chunk, (size_t)n);
        if (r < 0) return rp_error_errno(err, -r, "store '%s': write", fs->root);
    }
}

int rp_fs_put(struct rp_store *store, const char *key, const struct rp_source *from, const struct rp_meta *meta,
              int flags, struct rp_identity *out, struct rp_error *err)
{
    struct rp_fs *fs = rp_fs_of(store);
    char temp[RP_FS_NAME_MAX + 1];
    int r = rp_key_check(key, strlen(key), err);
    if (r < 0 || (r = rp_meta_check(meta, err)) < 0) return r;
    if ((r = rp_fs_root_check(fs, err)) < 0 || (r = rp_fs_begin(fs, err)) < 0) return r;
    rp_fs_temp_name(fs, key, temp);
    r = write_temp(fs, temp, from, err);
    rp_fs_point(fs, "put-written");
    if (r == 0) r = rp_fs_place(fs, temp, key, meta, flags, out, err);
    if (r < 0) unlinkat(fs->tmp_fd, temp, 0);
    return r < 0 ? rp_error_wrap(err, r, "put '%s'", key) : 0;
}
