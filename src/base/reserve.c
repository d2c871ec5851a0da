/* SPDX-License-Identifier: Apache-2.0 */
#include "base/reserve.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SMALLEST 16 /* V1 */

/* The file system of the file's directory: the file itself may not be there. */
static int look_at_disk(const char *path, struct statvfs *out, struct rp_error *err)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int n =
        slash != NULL ? snprintf(dir, sizeof dir, "%.*s/", (int)(slash - path), path) : snprintf(dir, sizeof dir, ".");
    if (n < 0 || (size_t)n >= sizeof dir) return rp_error_set(err, RP_EINVAL, "a path that is too long");
    return statvfs(dir, out) < 0 ? rp_error_errno(err, errno, "how much room there is in '%s'", dir) : 0;
}

int rp_reserve_look(const char *path, struct rp_room *out, struct rp_error *err)
{
    struct statvfs disk;
    struct stat st;
    int r = look_at_disk(path, &disk, err);
    if (r < 0) return r;
    int64_t block = (int64_t)disk.f_frsize;
    bool no_names = disk.f_files > 0 && disk.f_favail == 0; /* not a file more, whatever its size */
    struct rp_room room = { .free_bytes = no_names ? 0 : (int64_t)disk.f_bavail * block,
                            .total_bytes = (int64_t)disk.f_blocks * block,
                            .held = stat(path, &st) == 0 && st.st_size > 0 };
    int64_t part = room.total_bytes / SMALLEST;
    room.reserve_bytes = part < RP_RESERVE_BYTES ? part : RP_RESERVE_BYTES;
    room.full = room.free_bytes < (room.held ? room.reserve_bytes / RP_RESERVE_LOW : 2 * room.reserve_bytes);
    *out = room;
    return 0;
}

bool rp_reserve_give_up(const char *path)
{
    return unlink(path) == 0;
}

static int make(const char *path, int64_t bytes, struct rp_error *err)
{
    RP_CLEANUP(rp_fd_closep) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return rp_error_errno(err, errno, "make the reserve '%s'", path);
    int failure = posix_fallocate(fd, 0, bytes);
    if (failure == 0) return 0;
    (void)unlink(path);
    return rp_error_errno(err, failure, "make the reserve '%s'", path);
}

int rp_reserve_keep(const char *path, struct rp_room *out, struct rp_error *err)
{
    int r = rp_reserve_look(path, out, err);
    if (r < 0) return r;
    if (out->held && out->full)
        (void)rp_reserve_give_up(path);
    else if (!out->held && !out->full && out->reserve_bytes > 0)
        r = make(path, out->reserve_bytes, err);
    else
        return 0;
    return r < 0 ? r : rp_reserve_look(path, out, err);
}
