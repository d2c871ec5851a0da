/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is being removed has another name in the same directory for that moment, from which
 * its own can be read: ".reprieve~NAME", or ".reprieve~/NAME" where that would be too long for a
 * name. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "store/fs/fs.h"

struct removing {
    int fd;     /* the directory that holds it */
    bool below; /* fd is the directory ".reprieve~", opened here */
    char name[RP_FS_NAME_MAX + 1];
};

static void removing_done(const struct removing *a)
{
    if (a->below && a->fd >= 0) close(a->fd);
}

static int removing_init(struct removing *a, int dir_fd, const char *name, bool make)
{
    *a = (struct removing){ .fd = dir_fd };
    if (strlen(RP_FS_REMOVING) + strlen(name) <= RP_FS_NAME_MAX) {
        int n = snprintf(a->name, sizeof a->name, "%s%s", RP_FS_REMOVING, name);
        RP_ASSERT(n > 0 && (size_t)n < sizeof a->name);
        return 0;
    }
    RP_ASSERT(strlen(name) <= RP_FS_NAME_MAX);
    memcpy(a->name, name, strlen(name) + 1);
    if (make && mkdirat(dir_fd, RP_FS_REMOVING, 0777) < 0 && errno != EEXIST) return -errno;
    a->below = true;
    a->fd = rp_fs_openat2(dir_fd, RP_FS_REMOVING, O_RDONLY | O_DIRECTORY, 0);
    return a->fd < 0 ? a->fd : 0;
}

int rp_fs_removing_stat(int dir_fd, const char *name, struct stat *st)
{
    RP_CLEANUP(removing_done) struct removing a;
    int r = removing_init(&a, dir_fd, name, false);
    if (r < 0) return rp_fs_absent(-r) ? -ENOENT : r;
    if (fstatat(a.fd, a.name, st, AT_SYMLINK_NOFOLLOW) < 0) return rp_fs_absent(errno) ? -ENOENT : -errno;
    return S_ISREG(st->st_mode) ? 0 : -ENOENT;
}

int rp_fs_removing_open(int dir_fd, const char *name)
{
    RP_CLEANUP(removing_done) struct removing a;
    int r = removing_init(&a, dir_fd, name, false);
    return r < 0 ? r : rp_fs_openat2(a.fd, a.name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
}

int rp_fs_removing_begin(int dir_fd, const char *name)
{
    RP_CLEANUP(removing_done) struct removing a;
    int r = removing_init(&a, dir_fd, name, true);
    if (r < 0) return r;
    return renameat(dir_fd, name, a.fd, a.name) < 0 ? -errno : 0;
}

/* The directory of a long name goes when it is empty. Its entry was never synced, so its loss need
 * not be either. */
static int leave(const struct removing *a, int dir_fd)
{
    if (!a->below) return 0;
    if (fsync(a->fd) < 0) return -errno;
    unlinkat(dir_fd, RP_FS_REMOVING, AT_REMOVEDIR);
    return 0;
}

int rp_fs_removing_finish(int dir_fd, const char *name)
{
    RP_CLEANUP(removing_done) struct removing a;
    int r = removing_init(&a, dir_fd, name, false);
    if (r < 0) return rp_fs_absent(-r) ? 0 : r;
    if (unlinkat(a.fd, a.name, 0) < 0) return errno == ENOENT || errno == EISDIR ? 0 : -errno;
    return leave(&a, dir_fd);
}

/* If another file has taken the name meanwhile, ours would have been overwritten by it: it is
 * dropped. If something that is no object blocks the name, ours keeps the other one and still
 * counts. */
int rp_fs_removing_undo(int dir_fd, const char *name)
{
    RP_CLEANUP(removing_done) struct removing a;
    struct stat st;
    int r = removing_init(&a, dir_fd, name, false);
    if (r < 0) return rp_fs_absent(-r) ? 0 : r;
    r = rp_fs_rename_new(a.fd, a.name, dir_fd, name);
    if (r == -ENOENT) return 0;
    if (r == 0) return leave(&a, dir_fd);
    if (r != -EEXIST) return r;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode)) return 0;
    return rp_fs_removing_finish(dir_fd, name);
}
