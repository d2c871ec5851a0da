/* SPDX-License-Identifier: Apache-2.0 */
/* What every writer needs first: .reprieve/tmp, the lock of a key, names and times that were never
 * used. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/time.h"
#include "store/fs/fs.h"

#define LOCK_NAME "lock"
#define HEX_CHARS (RP_DIGEST_HEX - 1)

int rp_fs_temp_name(struct rp_fs *fs, const char *key, char out[RP_FS_NAME_MAX + 1])
{
    char hex[RP_DIGEST_HEX];
    if (rp_digest_of(key, strlen(key), hex) < 0) return -ENOMEM;
    unsigned serial = atomic_fetch_add(&fs->serial, 1);
    int n = snprintf(out, RP_FS_NAME_MAX + 1, "%s-%ld-%u-%" PRIx64, hex, (long)getpid(), serial,
                     (uint64_t)rp_fs_next_mtime_ns(fs));
    RP_ASSERT(n > 0 && n <= RP_FS_NAME_MAX);
    return 0;
}

int64_t rp_fs_next_mtime_ns(struct rp_fs *fs)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t wanted = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    int64_t last = atomic_load(&fs->last_mtime_ns), next;
    do
        next = wanted > last ? wanted : last + 1;
    while (!atomic_compare_exchange_weak(&fs->last_mtime_ns, &last, next));
    return next;
}

/* A put that died may have left a sidecar for a file that was never shown. Its name follows from
 * the temporary one; with a second link the same inode may be a live object, and the sidecar that
 * object's. */
static void drop_stale(struct rp_fs *fs, const char *name, const struct stat *st)
{
    char hex[HEX_CHARS + 1];
    if (strlen(name) > HEX_CHARS && name[HEX_CHARS] == '-' && st->st_nlink == 1) {
        struct rp_identity identity;
        memcpy(hex, name, HEX_CHARS);
        hex[HEX_CHARS] = '\0';
        rp_fs_identity(st, &identity);
        if (strspn(hex, "0123456789abcdef") == HEX_CHARS) rp_fs_meta_drop_hashed(fs, hex, identity.etag);
    }
    unlinkat(fs->tmp_fd, name, 0);
}

/* Age by change time: a linked file has the modification time of its source. */
static void drop_all_stale(struct rp_fs *fs)
{
    int fd = rp_fs_dir_open(fs, RP_FS_TMP, strlen(RP_FS_TMP));
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0) close(fd);
        return;
    }
    int64_t now_ms = rp_clock_now_ms(&rp_clock_host);
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat st;
        if (strcmp(entry->d_name, LOCK_NAME) == 0) continue;
        if (fstatat(fs->tmp_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode)) continue;
        if (now_ms - (int64_t)st.st_ctim.tv_sec * 1000 > fs->stale_ms) drop_stale(fs, entry->d_name, &st);
    }
    closedir(dir);
}

static int begin_locked(struct rp_fs *fs, struct rp_error *err)
{
    if (atomic_load(&fs->writing)) return 0;
    int r = rp_fs_above_sync(fs);
    if (r < 0) return rp_error_errno(err, -r, "store '%s': sync the directories above it", fs->root);
    RP_CLEANUP(rp_fd_closep) int tmp_fd = rp_fs_dir_make(fs, RP_FS_TMP, strlen(RP_FS_TMP));
    if (tmp_fd < 0) return rp_error_errno(err, -tmp_fd, "store '%s': cannot use %s", fs->root, RP_FS_TMP);
    int lock_fd = rp_fs_openat2(tmp_fd, LOCK_NAME, O_RDWR | O_CREAT, 0666);
    if (lock_fd < 0)
        return rp_error_errno(err, -lock_fd, "store '%s': cannot use %s/%s", fs->root, RP_FS_TMP, LOCK_NAME);
    fs->tmp_fd = rp_fs_fd_release(&tmp_fd);
    fs->lock_fd = lock_fd;
    drop_all_stale(fs);
    atomic_store(&fs->writing, true);
    return 0;
}

int rp_fs_begin(struct rp_fs *fs, struct rp_error *err)
{
    if (atomic_load(&fs->writing)) return 0;
    pthread_mutex_lock(&fs->begin_lock);
    int r = begin_locked(fs, err);
    pthread_mutex_unlock(&fs->begin_lock);
    return r;
}

/* The byte belongs to the open file, which all threads share: the mutex stands before it. */
static int lock_byte(const struct rp_fs *fs, int stripe, short type)
{
    struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = stripe, .l_len = 1 };
    while (fcntl(fs->lock_fd, F_OFD_SETLKW, &lock) < 0)
        if (errno != EINTR) return -errno;
    return 0;
}

int rp_fs_lock_stripe(struct rp_fs *fs, int stripe, struct rp_fs_key_lock *out)
{
    RP_ASSERT(atomic_load(&fs->writing) && stripe >= 0 && stripe <= RP_FS_STRIPES);
    pthread_mutex_lock(&fs->locks[stripe]);
    int r = lock_byte(fs, stripe, F_WRLCK);
    if (r < 0) {
        pthread_mutex_unlock(&fs->locks[stripe]);
        return r;
    }
    *out = (struct rp_fs_key_lock){ fs, stripe };
    return 0;
}

int rp_fs_lock(struct rp_fs *fs, const char *key, struct rp_fs_key_lock *out)
{
    uint64_t hash = rp_hash_text(0, key);
    return rp_fs_lock_stripe(fs, (int)((hash ^ hash >> 32) % RP_FS_STRIPES), out);
}

void rp_fs_unlock(struct rp_fs_key_lock *key_lock)
{
    if (key_lock->stripe < 0) return;
    int r = lock_byte(key_lock->fs, key_lock->stripe, F_UNLCK);
    RP_ASSERT(r == 0);
    pthread_mutex_unlock(&key_lock->fs->locks[key_lock->stripe]);
    key_lock->stripe = -1;
}
