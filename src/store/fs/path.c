/* SPDX-License-Identifier: Apache-2.0 */
/* Directories and files beneath the root: the only place that resolves a path. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "store/fs/fs.h"

#define AGAIN_MAX 128 /* the kernel asks for another try when a rename crossed its way */

int rp_fs_openat2(int dir_fd, const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .mode = (flags & O_CREAT) ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    for (int i = 0; i < AGAIN_MAX; i++) {
        long fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
        if (fd >= 0) return (int)fd;
        if (errno != EAGAIN && errno != EINTR) return -errno;
    }
    return -EAGAIN;
}

int rp_fs_dir_open(const struct rp_fs *fs, const char *path, size_t n)
{
    char text[RP_FS_PATH_MAX] = ".";
    RP_ASSERT(n < sizeof text);
    if (n > 0) {
        memcpy(text, path, n);
        text[n] = '\0';
    }
    return rp_fs_openat2(fs->root_fd, text, O_RDONLY | O_DIRECTORY, 0);
}

/* A directory on the way from the root. */
struct level {
    int fd;
    struct rp_fs_dir_id id;
};

static void level_leave(const struct rp_fs *fs, const struct level *at)
{
    if (at->fd >= 0 && at->fd != fs->root_fd) close(at->fd);
}

/* The names in a directory; of one that may be passed but not read, with all of its file system. */
static int names_sync(const struct rp_fs *fs, int dir_fd)
{
    RP_CLEANUP(rp_fd_closep) int fd = rp_fs_openat2(dir_fd, ".", O_RDONLY | O_DIRECTORY, 0);
    if (fd == -EACCES) return syncfs(fs->root_fd) < 0 ? -errno : 0;
    if (fd < 0) return fd;
    return fsync(fd) < 0 ? -errno : 0;
}

/* One level down, made if it is not there. One that is there may have been made by somebody who
 * died before it was synced, or who is about to sync it: its name is durable if we have seen to
 * that ourselves. */
static int level_enter(struct rp_fs *fs, const struct level *in, const char *name, int flags, struct level *out)
{
    RP_CLEANUP(rp_fd_closep) int fd = rp_fs_openat2(in->fd, name, flags | O_DIRECTORY, 0);
    if (fd == -ENOENT) {
        if (mkdirat(in->fd, name, 0777) < 0 && errno != EEXIST) return -errno;
        fd = rp_fs_openat2(in->fd, name, flags | O_DIRECTORY, 0);
    }
    if (fd < 0) return fd;
    int r = rp_fs_dir_id_of(fd, &out->id);
    if (r < 0) return r;
    const struct rp_fs_fact fact = rp_fs_fact_of(&in->id, name, &out->id);
    if (!rp_fs_durable_has(&fs->durable, &fact)) {
        if ((r = names_sync(fs, in->fd)) < 0) return r;
        rp_fs_durable_add(&fs->durable, &fact);
    }
    out->fd = rp_fs_fd_release(&fd);
    return 0;
}

int rp_fs_dir_make(struct rp_fs *fs, const char *path, size_t n)
{
    struct level at = { .fd = fs->root_fd, .id = fs->root_id };
    if (n == 0) return rp_fs_dir_open(fs, path, n);
    for (size_t start = 0; start < n;) {
        const char *slash = memchr(path + start, '/', n - start);
        size_t length = slash ? (size_t)(slash - path) - start : n - start;
        char name[RP_FS_NAME_MAX + 1];
        struct level below = { .fd = -1 };
        RP_ASSERT(length > 0 && length <= RP_FS_NAME_MAX);
        memcpy(name, path + start, length);
        name[length] = '\0';
        start += length + 1;
        int r = level_enter(fs, &at, name, start < n ? O_PATH : O_RDONLY, &below);
        level_leave(fs, &at);
        if (r < 0) return r;
        at = below;
    }
    return at.fd;
}

/* On the root's own file system only: what holds a mount point does not hold what is mounted
 * there. */
int rp_fs_above_sync(const struct rp_fs *fs)
{
    char path[PATH_MAX] = "..";
    ino_t below = fs->ino;
    for (size_t n = 2; n + 4 < sizeof path; n += 3) {
        struct stat st;
        RP_CLEANUP(rp_fd_closep) int fd = openat(fs->root_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 && errno == EACCES) return syncfs(fs->root_fd) < 0 ? -errno : 0;
        if (fd < 0 || fstat(fd, &st) < 0) return -errno;
        if (st.st_dev != fs->dev || st.st_ino == below) return 0;
        int r = names_sync(fs, fd);
        if (r < 0) return r;
        below = st.st_ino;
        memcpy(path + n, "/..", 4);
    }
    return 0;
}

bool rp_fs_absent(int errno_value)
{
    return errno_value == ENOENT || errno_value == ENOTDIR || errno_value == ELOOP || errno_value == ENAMETOOLONG;
}

bool rp_fs_store_wide(int errno_value)
{
    static const int codes[] = { EIO,       EROFS,     ESTALE,       ENODEV,    ENXIO,     ENOTCONN,
                                 ESHUTDOWN, EHOSTDOWN, EHOSTUNREACH, ETIMEDOUT, EREMOTEIO, EUCLEAN };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] == errno_value) return true;
    return false;
}

/* Some file systems have no RENAME_NOREPLACE; a link fails just as exactly when the name is
 * taken. */
int rp_fs_rename_new(int old_dir, const char *old_name, int new_dir, const char *new_name)
{
    if (renameat2(old_dir, old_name, new_dir, new_name, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return -errno;
    if (linkat(old_dir, old_name, new_dir, new_name, 0) < 0) return -errno;
    return unlinkat(old_dir, old_name, 0) < 0 ? -errno : 0;
}

const char *rp_fs_printable(const char *path, char *out, size_t size)
{
    size_t used = 0;
    for (const unsigned char *p = (const unsigned char *)path; *p && used + 5 < size; p++) {
        if (*p >= 0x20 && *p < 0x7f)
            out[used++] = (char)*p;
        else
            used += (size_t)snprintf(out + used, size - used, "\\x%02x", *p);
    }
    out[used] = '\0';
    return out;
}
