/* SPDX-License-Identifier: Apache-2.0 */
/* copy() and annotate(). A copy into our own keys (quarantine) is a hard link: no bytes move, and
 * the name there is never used twice. Any other copy gets an inode of its own, so that an identity
 * which left a key never comes back to it: a late remove() of what was restored since must find it
 * changed. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "store/fs/fs.h"
#include "store/meta.h"
#include "store/refuse.h"

#define CHUNK_BYTES ((size_t)128 << 10)
#define ARENA_BYTES ((size_t)256 << 10) /* metadata is at most RP_META_MAX_BYTES and RP_META_MAX_PAIRS */

static int open_expected(struct rp_fs_finder *finder, const char *key, const struct rp_identity *expected,
                         struct rp_error *err)
{
    struct rp_fs_object object;
    int r = rp_fs_find(finder, key, &object);
    if (r == -ENOENT) return rp_refuse_absent(key, err);
    if (r < 0) return rp_error_errno(err, -r, "'%s'", key);
    RP_CLEANUP(rp_fd_closep) int fd = rp_fs_object_open(&object);
    if (fd < 0 && rp_fs_absent(-fd)) return rp_refuse_changed(key, err);
    if (fd < 0 || fstat(fd, &object.st) < 0) return rp_error_errno(err, fd < 0 ? -fd : errno, "'%s'", key);
    if (!S_ISREG(object.st.st_mode) || !rp_fs_is(&object.st, expected)) return rp_refuse_changed(key, err);
    return rp_fs_fd_release(&fd);
}

static int link_temp(struct rp_fs *fs, int from_fd, const char *temp)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", from_fd);
    return linkat(AT_FDCWD, path, fs->tmp_fd, temp, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* Digest of what a descriptor reads; the bytes go to `to_fd` as well unless that is -1. */
static int pump(int from_fd, int to_fd, uint8_t digest[RP_DIGEST_BYTES])
{
    RP_CLEANUP(rp_freep) char *chunk = malloc(CHUNK_BYTES);
    RP_CLEANUP(rp_digest_freep) struct rp_digest *d = rp_digest_new();
    if (!chunk || !d) return -ENOMEM;
    rp_digest_begin(d);
    for (off_t at = 0;;) {
        ssize_t n = pread(from_fd, chunk, CHUNK_BYTES, at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -errno;
        if (n == 0) break;
        int r = to_fd < 0 ? 0 : rp_fs_write_all(to_fd, chunk, (size_t)n);
        if (r < 0) return r;
        rp_digest_add(d, chunk, (size_t)n);
        at += n;
    }
    rp_digest_end(d, digest);
    return 0;
}

static int copy_bytes(int from_fd, int to_fd)
{
    uint8_t read_digest[RP_DIGEST_BYTES], written_digest[RP_DIGEST_BYTES];
    struct stat from, to;
    int r = pump(from_fd, to_fd, read_digest);
    if (r < 0 || (r = pump(to_fd, -1, written_digest)) < 0) return r;
    if (fstat(from_fd, &from) < 0 || fstat(to_fd, &to) < 0) return -errno;
    return from.st_size == to.st_size && memcmp(read_digest, written_digest, RP_DIGEST_BYTES) == 0 ? 0 : -EIO;
}

/* What comes back from quarantine is readable for whom it was. The owner only root can give. */
static int keep_mode(int from_fd, int to_fd)
{
    struct stat st;
    if (fstat(from_fd, &st) < 0) return -errno;
    if (fchown(to_fd, st.st_uid, st.st_gid) < 0 && errno != EPERM) return -errno;
    return fchmod(to_fd, st.st_mode & 0777) < 0 ? -errno : 0;
}

static int copy_temp(struct rp_fs *fs, int from_fd, const char *temp, struct rp_error *err)
{
    RP_CLEANUP(rp_fd_closep) int fd = rp_fs_openat2(fs->tmp_fd, temp, O_RDWR | O_CREAT | O_EXCL, 0666);
    if (fd < 0) return rp_error_errno(err, -fd, "store '%s': write", fs->root);
    int r = ioctl(fd, FICLONE, from_fd) == 0 ? 0 : copy_bytes(from_fd, fd);
    if (r == 0) r = keep_mode(from_fd, fd);
    if (r < 0) return rp_error_errno(err, -r, "store '%s': copy", fs->root);
    return rp_fs_temp_finish(fs, fd, err);
}

/* The source's bytes under a temporary name; the source is asked once more whether it is still what
 * it was. What lies in a file system that is mounted below the root is not copied aside: it could
 * not be brought back (put.c refuses such keys). */
static int fill_temp(struct rp_fs *fs, int from_fd, const struct rp_identity *expected, const char *to,
                     const char *temp, struct rp_error *err)
{
    int r = rp_key_is_own(to) ? link_temp(fs, from_fd, temp) : -ENOTSUP;
    struct stat st;
    if (r == -EXDEV)
        return rp_error_set(err, RP_EDENIED, "another file system is mounted there, from which nothing is moved aside");
    if (r < 0) r = copy_temp(fs, from_fd, temp, err);
    if (r < 0) return r;
    if (fstat(from_fd, &st) < 0) return rp_error_errno(err, errno, "copy");
    return rp_fs_is(&st, expected) ? 0 : rp_error_set(err, RP_ECHANGED, "it was written to meanwhile");
}

/* The metadata belongs to the descriptor's identity. If there is none, make sure that it was not
 * dropped with the object. */
static int load_meta(struct rp_fs_finder *finder, const char *key, const struct rp_identity *expected,
                     struct rp_arena *arena, struct rp_meta *out, struct rp_error *err)
{
    bool found;
    int r = rp_fs_meta_load(finder->fs, key, expected->etag, arena, out, &found, err);
    if (r < 0 || found) return r;
    RP_CLEANUP(rp_fd_closep) int fd = open_expected(finder, key, expected, err);
    return fd < 0 ? fd : 0;
}

static int copy(struct rp_fs_finder *finder, int fd, const char *from, const struct rp_identity *expected,
                const char *to, struct rp_identity *out, struct rp_error *err)
{
    struct rp_fs *fs = finder->fs;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(ARENA_BYTES);
    struct rp_meta meta;
    char temp[RP_FS_NAME_MAX + 1];
    int r = load_meta(finder, from, expected, &arena, &meta, err);
    if (r < 0) return r;
    if ((r = rp_fs_temp_name(fs, to, temp)) < 0) return rp_error_errno(err, -r, "store '%s'", fs->root);
    r = fill_temp(fs, fd, expected, to, temp, err);
    if (r == 0) r = rp_fs_publish(fs, temp, to, &meta, RP_PUT_NEW, out, err);
    if (r < 0) unlinkat(fs->tmp_fd, temp, 0);
    return r;
}

static int begin(struct rp_fs *fs, const char *key, struct rp_error *err)
{
    int r = rp_key_check(key, strlen(key), err);
    if (r < 0 || (r = rp_fs_root_check(fs, err)) < 0) return r;
    return rp_fs_begin(fs, err);
}

static bool target_taken(struct rp_fs_finder *finder, const char *to)
{
    struct rp_fs_object object;
    return rp_fs_find(finder, to, &object) == 0;
}

int rp_fs_copy(struct rp_backend *backend, const char *from, const struct rp_identity *expected, const char *to,
               struct rp_identity *out, struct rp_error *err)
{
    RP_CLEANUP(rp_fs_leave) struct rp_fs *fs = rp_fs_enter(backend);
    RP_CLEANUP(rp_fs_finder_done) struct rp_fs_finder finder;
    rp_fs_finder_init(&finder, fs, NULL);
    int r = rp_key_check(to, strlen(to), err);
    if (r < 0 || (r = begin(fs, from, err)) < 0) return r;
    RP_CLEANUP(rp_fd_closep) int fd = open_expected(&finder, from, expected, err);
    if (fd < 0) return fd;
    /* A cheap refusal before any byte is copied; the exact one is made when the name is taken. */
    if (target_taken(&finder, to)) return rp_error_set(err, RP_EEXISTS, "copy '%s': '%s' exists already", from, to);
    r = copy(&finder, fd, from, expected, to, out, err);
    return r < 0 ? rp_error_wrap(err, r, "copy '%s' to '%s'", from, to) : 0;
}

int rp_fs_annotate(struct rp_backend *backend, const char *key, struct rp_identity *identity,
                   const struct rp_pair *changes, size_t n, struct rp_error *err)
{
    RP_CLEANUP(rp_fs_leave) struct rp_fs *fs = rp_fs_enter(backend);
    RP_CLEANUP(rp_fs_finder_done) struct rp_fs_finder finder;
    RP_CLEANUP(rp_fs_unlock) struct rp_fs_key_lock key_lock = RP_FS_KEY_UNLOCKED;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(2 * ARENA_BYTES);
    struct rp_meta meta, changed;
    bool found;
    rp_fs_finder_init(&finder, fs, NULL);
    int r = begin(fs, key, err);
    if (r < 0) return r;
    if ((r = rp_fs_lock(fs, key, &key_lock)) < 0) return rp_error_errno(err, -r, "annotate '%s': lock", key);
    RP_CLEANUP(rp_fd_closep) int fd = open_expected(&finder, key, identity, err);
    if (fd < 0) return fd;
    if ((r = rp_fs_meta_load(fs, key, identity->etag, &arena, &meta, &found, err)) < 0) return r;
    if ((r = rp_meta_change(&arena, &meta, changes, n, &changed, err)) < 0) return r;
    return rp_fs_meta_save(fs, key, identity->etag, &changed, err);
}
