/* SPDX-License-Identifier: Apache-2.0 */
/* Sidecars: .reprieve/meta/<2 hex>/<sha256 of the key>-<etag>, one for an identity under a key. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/text/buf.h"
#include "store/fs/fs.h"
#include "store/meta.h"

struct sidecar {
    char dir[sizeof RP_FS_META + 3];
    char name[RP_FS_NAME_MAX + 1];
};

/* -EINVAL for an etag that none of our identities has: it comes from outside and becomes part of a
 * file name. */
static int sidecar_name(const char *key_hex, const char *etag, struct sidecar *out)
{
    if (*etag == '\0' || strlen(etag) >= RP_ETAG_MAX || strspn(etag, "0123456789abcdef-") != strlen(etag))
        return -EINVAL;
    snprintf(out->dir, sizeof out->dir, "%s/%.2s", RP_FS_META, key_hex);
    int n = snprintf(out->name, sizeof out->name, "%s-%s", key_hex, etag);
    RP_ASSERT(n > 0 && (size_t)n < sizeof out->name);
    return 0;
}

static int sidecar_of(const char *key, const char *etag, struct sidecar *out)
{
    char hex[RP_DIGEST_HEX];
    return rp_digest_of(key, strlen(key), hex) < 0 ? -ENOMEM : sidecar_name(hex, etag, out);
}

bool rp_fs_meta_exists(struct rp_fs *fs)
{
    if (atomic_load(&fs->has_meta)) return true;
    RP_CLEANUP(rp_fd_closep) int fd = rp_fs_dir_open(fs, RP_FS_META, strlen(RP_FS_META));
    if (fd >= 0) atomic_store(&fs->has_meta, true);
    return fd >= 0;
}

bool rp_fs_meta_has(struct rp_fs *fs, const char *key, const char *etag)
{
    char path[sizeof(struct sidecar)];
    struct sidecar sidecar;
    int r = atomic_load(&fs->has_meta) ? sidecar_of(key, etag, &sidecar) : -EINVAL;
    if (r < 0) return r == -ENOMEM;
    snprintf(path, sizeof path, "%s/%s", sidecar.dir, sidecar.name);
    return faccessat(fs->root_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

static void drop(struct rp_fs *fs, const struct sidecar *sidecar)
{
    RP_CLEANUP(rp_fd_closep) int fd = rp_fs_dir_open(fs, sidecar->dir, strlen(sidecar->dir));
    if (fd >= 0) unlinkat(fd, sidecar->name, 0);
}

void rp_fs_meta_drop_hashed(struct rp_fs *fs, const char *key_hex, const char *etag)
{
    struct sidecar sidecar;
    if (sidecar_name(key_hex, etag, &sidecar) == 0) drop(fs, &sidecar);
}

void rp_fs_meta_drop(struct rp_fs *fs, const char *key, const char *etag)
{
    struct sidecar sidecar;
    if (atomic_load(&fs->has_meta) && sidecar_of(key, etag, &sidecar) == 0) drop(fs, &sidecar);
}

static int write_temp(struct rp_fs *fs, const char *temp, const struct rp_buf *text)
{
    RP_CLEANUP(rp_fd_closep) int fd = rp_fs_openat2(fs->tmp_fd, temp, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (fd < 0) return fd;
    int r = rp_fs_write_all(fd, text->data, text->len);
    return r < 0 ? r : fsync(fd) < 0 ? -errno : 0;
}

static int show(struct rp_fs *fs, const char *temp, const struct sidecar *sidecar)
{
    RP_CLEANUP(rp_fd_closep) int dir_fd = rp_fs_dir_make(fs, sidecar->dir, strlen(sidecar->dir));
    if (dir_fd < 0) return dir_fd;
    atomic_store(&fs->has_meta, true);
    if (renameat(fs->tmp_fd, temp, dir_fd, sidecar->name) < 0) return -errno;
    return fsync(dir_fd) < 0 ? -errno : 0;
}

static int drop_durably(struct rp_fs *fs, const struct sidecar *sidecar)
{
    RP_CLEANUP(rp_fd_closep) int fd = rp_fs_dir_open(fs, sidecar->dir, strlen(sidecar->dir));
    if (fd < 0) return fd == -ENOENT ? 0 : fd;
    if (unlinkat(fd, sidecar->name, 0) < 0) return errno == ENOENT ? 0 : -errno;
    return fsync(fd) < 0 ? -errno : 0;
}

int rp_fs_meta_save(struct rp_fs *fs, const char *key, const char *etag, const struct rp_meta *meta,
                    struct rp_error *err)
{
    char temp[sizeof "meta-" + RP_FS_NAME_MAX] = "meta-";
    struct sidecar sidecar;
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(RP_META_TEXT_MAX + 8 * RP_KEY_MAX);
    int r = sidecar_of(key, etag, &sidecar);
    RP_ASSERT(r != -EINVAL);
    if (r == 0 && rp_meta_empty(meta)) {
        r = drop_durably(fs, &sidecar);
    } else if (r == 0) {
        if ((r = rp_meta_write(meta, key, &text, err)) < 0) return r;
        if ((r = rp_fs_temp_name(fs, key, temp + strlen(temp))) == 0) r = write_temp(fs, temp, &text);
        if (r == 0) r = show(fs, temp, &sidecar);
        if (r < 0) unlinkat(fs->tmp_fd, temp, 0);
    }
    return r < 0 ? rp_error_errno(err, -r, "metadata of '%s'", key) : 0;
}

/* Zero with *found unset: there is none. */
static int read_text(struct rp_fs *fs, const struct sidecar *sidecar, struct rp_buf *text, bool *found)
{
    RP_CLEANUP(rp_fd_closep) int dir_fd = rp_fs_dir_open(fs, sidecar->dir, strlen(sidecar->dir));
    if (dir_fd < 0) return dir_fd == -ENOENT ? 0 : dir_fd;
    RP_CLEANUP(rp_fd_closep) int fd = rp_fs_openat2(dir_fd, sidecar->name, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0) return fd == -ENOENT ? 0 : fd;
    *found = true;
    char chunk[4096];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 ? -errno : 0;
        if (rp_buf_add(text, chunk, (size_t)n) < 0) return 0; /* sticks; the caller looks at text->failed */
    }
}

int rp_fs_meta_load(struct rp_fs *fs, const char *key, const char *etag, struct rp_arena *arena, struct rp_meta *out,
                    bool *found, struct rp_error *err)
{
    struct sidecar sidecar;
    bool there = false;
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(RP_META_TEXT_MAX + 8 * RP_KEY_MAX);
    int r = sidecar_of(key, etag, &sidecar);
    RP_ASSERT(r != -EINVAL);
    if (r == 0) r = read_text(fs, &sidecar, &text, &there);
    if (r == 0 && text.failed == RP_ENOMEM) r = -ENOMEM;
    if (r < 0) return rp_error_errno(err, -r, "metadata of '%s'", key);
    if (text.failed) return rp_error_set(err, RP_ECORRUPT, "metadata of '%s' is larger than any that is written", key);
    struct rp_meta loaded = { 0 };
    if (there && (r = rp_meta_parse(rp_buf_text(&text), text.len, key, arena, &loaded, err)) < 0) {
        if (r == RP_ECORRUPT) rp_error_hint(err, "the file is %s/%s", sidecar.dir, sidecar.name);
        return r;
    }
    *out = loaded;
    *found = there;
    return 0;
}
