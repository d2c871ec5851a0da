/* SPDX-License-Identifier: Apache-2.0 */
/* Writing: bytes into a file of .reprieve/tmp, then sidecar, then name. Every step is durable
 * before the next. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "store/fs/fs.h"
#include "store/meta.h"
#include "store/refuse.h"

#define META_ARENA_BYTES ((size_t)256 << 10) /* metadata is at most RP_META_MAX_BYTES and RP_META_MAX_PAIRS */
#define TRIES_MAX        16                  /* another program may take or free the name between two steps */

/* Where the new file goes, and what it replaces. */
struct target {
    int dir_fd;
    char name[RP_FS_NAME_MAX + 1];
    bool exists;   /* the key has an object, */
    bool in_place; /* and it stands at this very name */
    struct rp_fs_object old;
    const struct rp_identity *over; /* the only one that may be replaced; NULL: any */
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
    if (r == 0 && t->old.removing && (r = rp_fs_removing_undo(t->old.dir_fd, t->old.name)) == 0)
        r = rp_fs_find(finder, key, &t->old);
    if (r < 0 && r != -ENOENT) return r;
    t->exists = r == 0;
    t->in_place = t->exists && !t->old.removing;
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
    return rp_error_advise(err, RP_EINVAL, "configure the mounted directory as a store of its own",
                           "another file system is mounted there, below '%s'", fs->root);
}

/* Under the key's lock: whoever keeps to it (F6) cannot come between this and the rename. */
static int check_old(const struct target *t, const char *key, int flags, struct rp_error *err)
{
    if (t->exists && (flags & RP_PUT_NEW)) return rp_refuse_taken(key, err);
    if (!t->over) return 0;
    if (!t->exists) return rp_refuse_absent(key, err);
    return rp_fs_is(&t->old.st, t->over) ? 0 : rp_refuse_changed(key, err);
}

/* Chooses, writes the sidecar, shows the file: again if the name was taken in between. */
static int settle(struct rp_fs_finder *finder, const char *temp, const char *key, const struct rp_meta *meta, int flags,
                  const struct rp_identity *identity, struct target *t, struct rp_error *err)
{
    int r = -EEXIST;
    for (int i = 0; i < TRIES_MAX && taken_meanwhile(r); i++) {
        if ((r = target_choose(finder, key, t)) < 0) return rp_error_errno(err, -r, "find its place");
        int refused = check_old(t, key, flags, err);
        if (refused < 0) return refused;
        if (!rp_meta_empty(meta) && (r = rp_fs_meta_save(finder->fs, key, identity->etag, meta, err)) < 0) return r;
        rp_fs_point(finder->fs, "put-sidecar");
        r = show(finder->fs, temp, t);
    }
    return r < 0 ? show_failed(finder->fs, r, err) : 0;
}

/* What the new file replaces: a file that was being removed, and the old identity's sidecar. */
static void tidy(struct rp_fs *fs, const char *key, const struct target *t, const struct rp_identity *made)
{
    rp_fs_removing_finish(t->dir_fd, t->name);
    if (!t->exists) return;
    struct rp_identity old;
    rp_fs_identity(&t->old.st, &old);
    if (t->old.removing) rp_fs_removing_finish(t->old.dir_fd, t->old.name);
    if (strcmp(old.etag, made->etag) != 0) rp_fs_meta_drop(fs, key, old.etag);
}

int rp_fs_publish(struct rp_fs *fs, const char *temp, const char *key, const struct rp_meta *meta, int flags,
                  struct rp_identity *out, struct rp_error *err)
{
    RP_CLEANUP(rp_fs_unlock) struct rp_fs_key_lock key_lock = RP_FS_KEY_UNLOCKED;
    RP_CLEANUP(rp_fs_finder_done) struct rp_fs_finder finder;
    RP_CLEANUP(target_done) struct target t = { .dir_fd = -1, .over = flags & RP_PUT_OVER ? out : NULL };
    struct rp_identity made;
    struct stat st;
    rp_fs_finder_init(&finder, fs, NULL);
    if (fstatat(fs->tmp_fd, temp, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return rp_error_errno(err, errno, "its temporary file");
    rp_fs_identity(&st, &made);
    int r = rp_fs_lock(fs, key, &key_lock);
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
    struct rp_fs_fact fact;
    if (rp_fs_file_fact(t.dir_fd, t.name, &st, &fact) == 0) rp_fs_durable_add(&fs->shown, &fact);
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

/* ---- the slots ---- */

struct writer {
    struct rp_object_writer base;
    int fd, flags;
    char temp[RP_FS_NAME_MAX + 1];
    char key[RP_KEY_MAX + 1];
    struct rp_arena arena; /* of meta */
    struct rp_meta meta;
};

static struct writer *writer_of(struct rp_object_writer *writer)
{
    return (struct writer *)(void *)writer;
}

static void writer_free(struct writer *w)
{
    if (w->fd >= 0) close(w->fd);
    rp_arena_done(&w->arena);
    free(w);
}

static void writer_freep(struct writer **w)
{
    if (*w) writer_free(*w);
}

/* Spares the caller the bytes. The exact answer comes when the name is taken; an interrupted removal
 * is undone then (F5). Where there is nothing to write over, not even the folder of F7 is made. */
static int refuse_early(struct rp_fs *fs, const char *key, int flags, struct rp_error *err)
{
    RP_CLEANUP(rp_fs_finder_done) struct rp_fs_finder finder;
    struct rp_fs_object object;
    rp_fs_finder_init(&finder, fs, NULL);
    int r = rp_fs_find(&finder, key, &object);
    if (r == 0 && !object.removing && (flags & RP_PUT_NEW)) return rp_refuse_taken(key, err);
    return r == -ENOENT && (flags & RP_PUT_OVER) ? rp_refuse_absent(key, err) : 0;
}

static int writer_new(struct rp_fs *fs, const char *key, const struct rp_meta *meta, int flags, struct writer **out,
                      struct rp_error *err)
{
    RP_CLEANUP(writer_freep) struct writer *w = calloc(1, sizeof *w);
    if (!w) return rp_error_set(err, RP_ENOMEM, "no memory to write an object");
    *w = (struct writer){ .base.backend = &fs->base, .fd = -1, .flags = flags, .arena = RP_ARENA(META_ARENA_BYTES) };
    memcpy(w->key, key, strlen(key) + 1);
    int r = meta ? rp_meta_copy(&w->arena, meta, &w->meta, err) : 0;
    if (r < 0) return r;
    r = rp_fs_temp_name(fs, key, w->temp);
    w->fd = r < 0 ? r : rp_fs_openat2(fs->tmp_fd, w->temp, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (w->fd < 0) return rp_error_errno(err, -w->fd, "store '%s': write", fs->root);
    *out = w;
    w = NULL;
    return 0;
}

int rp_fs_put_open(struct rp_backend *backend, const char *key, const struct rp_meta *meta, int flags,
                   struct rp_object_writer **out, struct rp_error *err)
{
    RP_CLEANUP(rp_fs_leave) struct rp_fs *fs = rp_fs_enter(backend);
    struct writer *w = NULL;
    int r = rp_key_check(key, strlen(key), err);
    if (r < 0 || (r = rp_meta_check(meta, err)) < 0) return r;
    if ((r = rp_fs_root_check(fs, err)) < 0) return r;
    if (flags != RP_PUT_REPLACE && (r = refuse_early(fs, key, flags, err)) < 0)
        return rp_error_wrap(err, r, "put '%s'", key);
    if ((r = rp_fs_begin(fs, err)) < 0) return r;
    if ((r = writer_new(fs, key, meta, flags, &w, err)) < 0) return rp_error_wrap(err, r, "put '%s'", key);
    *out = &w->base;
    (void)rp_fs_enter(backend); /* until it is committed or aborted */
    return 0;
}

int rp_fs_put_write(struct rp_object_writer *writer, const void *bytes, size_t n, struct rp_error *err)
{
    struct writer *w = writer_of(writer);
    int r = rp_fs_write_all(w->fd, bytes, n);
    return r < 0 ? rp_error_errno(err, -r, "put '%s': store '%s': write", w->key, rp_fs_of(writer->backend)->root) : 0;
}

int rp_fs_put_commit(struct rp_object_writer *writer, struct rp_identity *out, struct rp_error *err)
{
    RP_CLEANUP(rp_fs_leave) struct rp_fs *fs = rp_fs_of(writer->backend);
    RP_CLEANUP(writer_freep) struct writer *w = writer_of(writer);
    int r = rp_fs_temp_finish(fs, w->fd, err);
    rp_fs_point(fs, "put-written");
    if (r == 0) r = rp_fs_publish(fs, w->temp, w->key, &w->meta, w->flags, out, err);
    if (r < 0) unlinkat(fs->tmp_fd, w->temp, 0);
    return r < 0 ? rp_error_wrap(err, r, "put '%s'", w->key) : 0;
}

void rp_fs_put_abort(struct rp_object_writer *writer)
{
    RP_CLEANUP(rp_fs_leave) struct rp_fs *fs = rp_fs_of(writer->backend);
    struct writer *w = writer_of(writer);
    unlinkat(fs->tmp_fd, w->temp, 0);
    writer_free(w);
}
