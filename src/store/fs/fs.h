/* SPDX-License-Identifier: Apache-2.0 */
/* fs.h - the directory store, inside. A plain regular file under the root is an object, its
 * relative path the key.
 *
 * F1  Nothing is opened but beneath the root and through no symlink (openat2). Only regular files
 *     are objects; what else stands at a key's plain path blocks it, and the key lives in the
 *     escaped home (key.h).
 * F2  A key lives where it already lives; else plain if it can; else escaped. Should someone fill
 *     both homes by hand, the plain one counts and the other shows again once that is gone.
 * F3  Identity is inode, modification time in ns, and size. put() sets a time of its own that only
 *     grows, so that an inode number used again is no identity used again. The same bytes under the
 *     same key after a copy back are a new identity too.
 * F4  Headers and metadata stand in a sidecar named by key and identity: durable before the data is
 *     shown, removed after it is gone. So the object always has its own and never those of another.
 * F5  remove() renames the file within its directory, looks at what it has in hand, and unlinks
 *     only that. A renamed file still counts as the object: readers find it, writers undo the
 *     renaming. A crash in between loses nothing.
 * F6  Writers of one key take turns: threads by a mutex, processes by a lock on one byte of
 *     .reprieve/tmp/lock. Other programs take no lock; F5 is for them.
 * F7  A store that is only read is never written to: .reprieve/ is made by the first write.
 * F8  A root that is no longer what was opened fails the whole call, so that a lost mount never
 *     looks empty. The next call, when no other is under way, opens it anew if an owner record
 *     stands there: an empty mount point has none. Whose it is, is judged above.
 * F9  What put() and copy() answer for is durable with every directory above it, whoever made them
 *     and whether or not they were synced then: the first upload into a directory syncs the names
 *     on the way to it, those above the root with the first write (durable.h).
 * F10 What stat() finds is durable too: whoever showed it may have died before the sync that put()
 *     ends with, and what follows from it being there (a confirmed upload, a copy for which the
 *     original goes) would outlive it. A name that we have not synced ourselves is synced, unless
 *     it has been there for RP_FS_YOUNG_MS: the system has written it by itself then.
 *
 * Functions that return int here give 0 (or a descriptor) or a negative errno, unless they take a
 * struct rp_error. */
#ifndef RP_STORE_FS_H
#define RP_STORE_FS_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/crashpoint.h"
#include "base/error.h"
#include "base/time.h"
#include "store/backend.h"
#include "store/fs/durable.h"
#include "store/fs/key.h"

#define RP_FS_STRIPES    1024
#define RP_FS_PROBE_LOCK RP_FS_STRIPES      /* the byte that serialises probes */
#define RP_FS_YOUNG_MS   (5 * RP_MINUTE_MS) /* F10 */

struct rp_fs {
    struct rp_backend base;
    char *root; /* as opened, absolute: looked up again to see whether it is still the same */
    int root_fd;
    dev_t dev;
    ino_t ino;
    struct rp_fs_dir_id root_id;
    atomic_bool root_left; /* its name was seen to lead elsewhere */
    pthread_mutex_t enter_lock;
    int64_t entered;              /* calls under way, and writers that are open */
    struct rp_fs_durable durable; /* directories: F9 */
    struct rp_fs_durable shown;   /* files: F10 */
    pthread_mutex_t begin_lock;
    atomic_bool writing; /* tmp_fd and lock_fd are open */
    int tmp_fd, lock_fd;
    pthread_mutex_t locks[RP_FS_STRIPES + 1];
    atomic_bool has_meta;
    _Atomic int64_t last_mtime_ns;
    atomic_uint serial;
    int64_t stale_ms; /* age at which a file in .reprieve/tmp was left by a crash */
    /* Tests stop the process or change the directory at named points. NULL otherwise. */
    void (*hook)(void *ctx, const char *point);
    void *hook_ctx;
};

static inline struct rp_fs *rp_fs_of(struct rp_backend *backend)
{
    return (struct rp_fs *)(void *)backend;
}

static inline void rp_fs_point(const struct rp_fs *fs, const char *point)
{
    RP_CRASHPOINT(point);
    if (fs->hook) fs->hook(fs->hook_ctx, point);
}

/* Takes a descriptor out of its RP_CLEANUP. */
static inline int rp_fs_fd_release(int *fd)
{
    int kept = *fd;
    *fd = -1;
    return kept;
}

/* root.c: F8. Whatever uses the root has entered. */
struct rp_fs *rp_fs_enter(struct rp_backend *backend);
void rp_fs_leave(struct rp_fs *const *fs); /* the RP_CLEANUP function */
int rp_fs_root_open(struct rp_fs *fs, struct rp_error *err);
int rp_fs_root_check(struct rp_fs *fs, struct rp_error *err);

/* path.c: directories and files beneath the root */
int rp_fs_openat2(int dir_fd, const char *path, int flags, mode_t mode);
int rp_fs_dir_open(const struct rp_fs *fs, const char *path, size_t n); /* "" is the root; a trailing slash is fine */
int rp_fs_dir_make(struct rp_fs *fs, const char *path, size_t n);       /* with its parents, durable: F9 */
int rp_fs_above_sync(const struct rp_fs *fs);                           /* the root's own name, and those above */
bool rp_fs_absent(int errno_value);     /* nothing can stand there: missing, or blocked by something else */
bool rp_fs_store_wide(int errno_value); /* not about one object */
int rp_fs_rename_new(int old_dir, const char *old_name, int new_dir, const char *new_name);
const char *rp_fs_printable(const char *path, char *out, size_t size);

/* removing.c: F5. begin: renamed; undo: back in its place; finish: unlinked. */
int rp_fs_removing_stat(int dir_fd, const char *name, struct stat *st);
int rp_fs_removing_open(int dir_fd, const char *name);
int rp_fs_removing_begin(int dir_fd, const char *name);
int rp_fs_removing_undo(int dir_fd, const char *name);
int rp_fs_removing_finish(int dir_fd, const char *name);

/* find.c: one object. A finder keeps the directory of each home open from one key to the next. */
struct rp_fs_dir {
    int fd;
    bool touched; /* something in it was removed, or seen to be gone */
    size_t len;
    char path[RP_FS_PATH_MAX];
};
struct rp_fs_batch;
struct rp_fs_finder {
    struct rp_fs *fs;
    struct rp_fs_batch *batch; /* where touched directories go; may be NULL */
    struct rp_fs_dir dirs[RP_FS_HOMES];
    bool parent_missing; /* of the plain home, at the last search */
};
struct rp_fs_object {
    enum rp_fs_home home;
    bool removing;
    int dir_fd; /* the finder's */
    char name[RP_FS_NAME_MAX + 1];
    struct stat st;
};
void rp_fs_finder_init(struct rp_fs_finder *finder, struct rp_fs *fs, struct rp_fs_batch *batch);
void rp_fs_finder_done(struct rp_fs_finder *finder); /* also the RP_CLEANUP function */
int rp_fs_look(int dir_fd, const char *name, bool *removing, struct stat *st);
int rp_fs_find(struct rp_fs_finder *finder, const char *key, struct rp_fs_object *out);
int rp_fs_object_open(const struct rp_fs_object *object);
void rp_fs_identity(const struct stat *st, struct rp_identity *out);
bool rp_fs_is(const struct stat *st, const struct rp_identity *expected);
/* That this file stands in that directory under that name (F10). */
int rp_fs_file_fact(int dir_fd, const char *name, const struct stat *st, struct rp_fs_fact *out);

/* write.c: F6 and F7 */
struct rp_fs_key_lock {
    struct rp_fs *fs;
    int stripe; /* -1: nothing held */
};
#define RP_FS_KEY_UNLOCKED ((struct rp_fs_key_lock){ .stripe = -1 })
int rp_fs_begin(struct rp_fs *fs, struct rp_error *err);
int rp_fs_lock(struct rp_fs *fs, const char *key, struct rp_fs_key_lock *out);
int rp_fs_lock_stripe(struct rp_fs *fs, int stripe, struct rp_fs_key_lock *out);
void rp_fs_unlock(struct rp_fs_key_lock *key_lock); /* also the RP_CLEANUP function */
int rp_fs_temp_name(struct rp_fs *fs, const char *key, char out[RP_FS_NAME_MAX + 1]);
int64_t rp_fs_next_mtime_ns(struct rp_fs *fs);

/* meta.c: F4. `etag` names the identity. */
int rp_fs_meta_save(struct rp_fs *fs, const char *key, const char *etag, const struct rp_meta *meta,
                    struct rp_error *err);
int rp_fs_meta_load(struct rp_fs *fs, const char *key, const char *etag, struct rp_arena *arena, struct rp_meta *out,
                    bool *found, struct rp_error *err);
/* A cheap look without a lock: false only if there is surely none. An identity that has left its
 * key gets no new one. */
bool rp_fs_meta_has(struct rp_fs *fs, const char *key, const char *etag);
void rp_fs_meta_drop(struct rp_fs *fs, const char *key, const char *etag);
void rp_fs_meta_drop_hashed(struct rp_fs *fs, const char *key_hex, const char *etag);
bool rp_fs_meta_exists(struct rp_fs *fs); /* asks the disk again */

/* put.c: from a file in .reprieve/tmp to the key's home */
int rp_fs_publish(struct rp_fs *fs, const char *temp, const char *key, const struct rp_meta *meta, int flags,
                  struct rp_identity *out, struct rp_error *err);
int rp_fs_temp_finish(struct rp_fs *fs, int fd, struct rp_error *err);
int rp_fs_write_all(int fd, const char *bytes, size_t n);

/* batch.c: many items over a few threads */
typedef int rp_fs_item_fn(struct rp_fs_finder *finder, struct rp_item *item); /* negative: the whole store failed */
/* `fn` for every item; sync what was touched; then, if all that went well, `after` (may be NULL)
 * for every item. */
int rp_fs_batch_run(struct rp_fs *fs, struct rp_item *items, size_t n, const struct rp_gate *gate, rp_fs_item_fn *fn,
                    rp_fs_item_fn *after, struct rp_error *err);
void rp_fs_batch_take(struct rp_fs_batch *batch, int dir_fd);
void rp_fs_batch_sync_root(struct rp_fs_batch *batch);
/* True once the directories taken so far are synced: of a file (F10). A bounded number of them. */
void rp_fs_batch_remember(struct rp_fs_batch *batch, const struct rp_fs_fact *fact);
void rp_fs_item_fail(struct rp_item *item, int errno_value); /* denied or retry, with the reason */

/* The slots. */
int rp_fs_put_open(struct rp_backend *backend, const char *key, const struct rp_meta *meta, int flags,
                   struct rp_object_writer **out, struct rp_error *err);
int rp_fs_put_write(struct rp_object_writer *writer, const void *bytes, size_t n, struct rp_error *err);
int rp_fs_put_commit(struct rp_object_writer *writer, struct rp_identity *out, struct rp_error *err);
void rp_fs_put_abort(struct rp_object_writer *writer);
int rp_fs_get_open(struct rp_backend *backend, const char *key, struct rp_arena *arena, struct rp_meta *meta,
                   struct rp_identity *identity, struct rp_object_reader **out, struct rp_error *err);
int64_t rp_fs_get_read(struct rp_object_reader *reader, int64_t offset, void *to, size_t n, struct rp_error *err);
void rp_fs_get_close(struct rp_object_reader *reader);
int rp_fs_stat(struct rp_backend *backend, struct rp_item *items, size_t n, struct rp_error *err);
int rp_fs_list(struct rp_backend *backend, const char *prefix, const char *after, rp_entry_fn *fn, void *ctx,
               struct rp_error *err);
int rp_fs_remove(struct rp_backend *backend, struct rp_item *items, size_t n, const struct rp_gate *gate,
                 struct rp_error *err);
int rp_fs_copy(struct rp_backend *backend, const char *from, const struct rp_identity *expected, const char *to,
               struct rp_identity *out, struct rp_error *err);
int rp_fs_annotate(struct rp_backend *backend, const char *key, struct rp_identity *identity,
                   const struct rp_pair *changes, size_t n, struct rp_error *err);

#endif
