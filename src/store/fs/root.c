/* SPDX-License-Identifier: Apache-2.0 */
/* The root: opened, seen to be still the same, and opened anew (F8). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/key.h"
#include "store/fs/fs.h"

static int open_failed(const char *root, int errno_value, struct rp_error *err)
{
    if (errno_value == ENOTDIR) return rp_error_set(err, RP_EINVAL, "store '%s' is not a directory", root);
    if (errno_value != ENOENT) return rp_error_errno(err, errno_value, "store '%s'", root);
    return rp_error_advise(err, RP_EUNAVAILABLE, "create or mount it, or correct the store's path",
                           "store '%s': no such directory", root);
}

static int open_path(const char *root)
{
    return open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Takes the descriptor over, unless it fails: then nothing has changed. */
static int take(struct rp_fs *fs, int *fd)
{
    struct stat st;
    struct rp_fs_dir_id id;
    if (fstat(*fd, &st) < 0) return -errno;
    int r = rp_fs_dir_id_of(*fd, &id);
    if (r < 0) return r;
    fs->root_fd = rp_fs_fd_release(fd);
    fs->dev = st.st_dev;
    fs->ino = st.st_ino;
    fs->root_id = id;
    return 0;
}

int rp_fs_root_open(struct rp_fs *fs, struct rp_error *err)
{
    RP_CLEANUP(rp_fd_closep) int root_fd = open_path(fs->root);
    int r = root_fd < 0 ? -errno : take(fs, &root_fd);
    if (r < 0) return open_failed(fs->root, -r, err);
    RP_CLEANUP(rp_fd_closep) int fd = rp_fs_dir_open(fs, "", 0);
    if (fd >= 0) return 0;
    if (fd != -ENOSYS && fd != -EPERM) return rp_error_errno(err, -fd, "store '%s'", fs->root);
    return rp_error_advise(err, RP_EFAILED,
                           "use Linux 5.6 or newer; in a container, allow openat2 in its seccomp profile",
                           "store '%s': this system has no openat2(), which keeps paths inside the root", fs->root);
}

int rp_fs_root_check(struct rp_fs *fs, struct rp_error *err)
{
    RP_CLEANUP(rp_fd_closep) int fd = open_path(fs->root);
    struct stat st;
    if (fd < 0 && (errno == EACCES || errno == EPERM)) return rp_error_errno(err, errno, "store '%s'", fs->root);
    if (fd < 0 || fstat(fd, &st) < 0)
        return rp_error_advise(err, RP_EUNAVAILABLE, "mount or restore the directory; nothing was taken for deleted",
                               "store '%s': %s", fs->root, strerror(errno));
    if (st.st_dev == fs->dev && st.st_ino == fs->ino) return 0;
    atomic_store(&fs->root_left, true);
    return rp_error_advise(
        err, RP_EUNAVAILABLE,
        "check whether it was unmounted or replaced; once an owner record stands there it is used again",
        "store '%s' is no longer the directory that was opened", fs->root);
}

/* The old root is no longer held open, so its inode may be used again (durable.c). */
static void forget(struct rp_fs_durable *durable)
{
    rp_fs_durable_done(durable);
    memset(durable, 0, sizeof *durable);
    rp_fs_durable_init(durable);
}

/* Nobody is in the store. */
static void open_anew(struct rp_fs *fs)
{
    RP_CLEANUP(rp_fd_closep) int fd = open_path(fs->root);
    RP_CLEANUP(rp_fd_closep) int before = fs->root_fd;
    if (fd < 0 || faccessat(fd, RP_STORE_OWNER, F_OK, AT_SYMLINK_NOFOLLOW) < 0 || take(fs, &fd) < 0) {
        before = -1;
        return;
    }
    if (fs->tmp_fd >= 0) close(fs->tmp_fd);
    if (fs->lock_fd >= 0) close(fs->lock_fd);
    fs->tmp_fd = fs->lock_fd = -1;
    forget(&fs->durable);
    forget(&fs->shown);
    atomic_store(&fs->writing, false);
    atomic_store(&fs->root_left, false);
    rp_fs_meta_exists(fs);
}

struct rp_fs *rp_fs_enter(struct rp_backend *backend)
{
    struct rp_fs *fs = rp_fs_of(backend);
    pthread_mutex_lock(&fs->enter_lock);
    if (fs->entered == 0 && atomic_load(&fs->root_left)) open_anew(fs);
    fs->entered++;
    pthread_mutex_unlock(&fs->enter_lock);
    return fs;
}

void rp_fs_leave(struct rp_fs *const *fs)
{
    pthread_mutex_lock(&(*fs)->enter_lock);
    RP_ASSERT((*fs)->entered > 0);
    (*fs)->entered--;
    pthread_mutex_unlock(&(*fs)->enter_lock);
}
