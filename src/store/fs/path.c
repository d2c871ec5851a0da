/* SPDX-License-Identifier: Apache-2.0 */
/* Directories and files beneath the root: the only place that resolves a path. */
#include <errno.h>
#include <fcntl.h>
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

/* One directory below an open one, made if it is not there; the new name is durable. */
static int child_make(int parent_fd, const char *name)
{
    int fd = rp_fs_openat2(parent_fd, name, O_RDONLY | O_DIRECTORY, 0);
    if (fd != -ENOENT) return fd;
    if (mkdirat(parent_fd, name, 0777) < 0 && errno != EEXIST) return -errno;
    if (fsync(parent_fd) < 0) return -errno;
    return rp_fs_openat2(parent_fd, name, O_RDONLY | O_DIRECTORY, 0);
}

int rp_fs_dir_make(const struct rp_fs *fs, const char *path, size_t n)
{
    int fd = rp_fs_dir_open(fs, path, n);
    if (fd != -ENOENT) return fd;
    fd = rp_fs_dir_open(fs, "", 0);
    for (size_t start = 0; fd >= 0 && start < n;) {
        const char *slash = memchr(path + start, '/', n - start);
        size_t length = slash ? (size_t)(slash - path) - start : n - start;
        char name[RP_FS_NAME_MAX + 1];
        RP_ASSERT(length > 0 && length <= RP_FS_NAME_MAX);
        memcpy(name, path + start, length);
        name[length] = '\0';
        int child = child_make(fd, name);
        close(fd);
        fd = child;
        start += length + 1;
    }
    return fd;
}

bool rp_fs_absent(int errno_value)
{
    return errno_value == ENOENT || errno_value == ENOTDIR || errno_value == ELOOP || errno_value == ENAMETOOLONG;
}

bool rp_fs_store_wide(int errno_value)
{
    switch (errno_value) {
    case EIO:
    case EROFS:
    case ESTALE:
    case ENODEV:
    case ENXIO:
    case ENOTCONN:
    case ESHUTDOWN:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ETIMEDOUT:
    case EREMOTEIO:
    case EUCLEAN:
        return true;
    default:
        return false;
    }
}

/* Some file systems have no RENAME_NOREPLACE; a link fails just as exactly when the name is taken. */
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
