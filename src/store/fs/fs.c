/* SPDX-License-Identifier: Apache-2.0 */
/* The directory store as a backend: opening, closing, probing. */
#include "store/fs/fs.h"
#include "store/open.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/time.h"
#include "store/whole.h"

#define CANARY ".reprieve/canary"

static void fs_close(struct rp_backend *backend)
{
    struct rp_fs *fs = rp_fs_of(backend);
    if (fs->root_fd >= 0) close(fs->root_fd);
    if (fs->tmp_fd >= 0) close(fs->tmp_fd);
    if (fs->lock_fd >= 0) close(fs->lock_fd);
    for (int i = 0; i <= RP_FS_STRIPES; i++)
        pthread_mutex_destroy(&fs->locks[i]);
    pthread_mutex_destroy(&fs->begin_lock);
    pthread_mutex_destroy(&fs->enter_lock);
    rp_fs_durable_done(&fs->durable);
    rp_fs_durable_done(&fs->shown);
    free(fs->root);
    free(fs);
}

static int64_t no_bytes(void *ctx, void *to, size_t n, struct rp_error *err)
{
    (void)ctx, (void)to, (void)n, (void)err;
    return 0;
}

static int canary_remove(struct rp_backend *backend, const struct rp_identity *identity, enum rp_outcome *out,
                         struct rp_error *err)
{
    struct rp_item item = { .key = CANARY, .identity = *identity };
    int r = rp_fs_remove(backend, &item, 1, NULL, err);
    *out = item.outcome;
    return r;
}

/* The directory has to refuse a wrong identity, and to delete the right one: only what was seen is
 * reported. */
static int canary(struct rp_backend *backend, enum rp_level *level, struct rp_error *err)
{
    const struct rp_source nothing = { .read = no_bytes };
    struct rp_identity right, wrong;
    enum rp_outcome refused, deleted;
    int r = rp_backend_put_whole(backend, CANARY, &nothing, NULL, RP_PUT_REPLACE, &right, err);
    if (r < 0) return r;
    wrong = right;
    wrong.etag[0] = wrong.etag[0] == '0' ? '1' : '0';
    if ((r = canary_remove(backend, &wrong, &refused, err)) < 0) return r;
    if ((r = canary_remove(backend, &right, &deleted, err)) < 0) return r;
    *level = refused == RP_OUT_CHANGED && deleted == RP_OUT_DELETED ? RP_LEVEL_ETAG : RP_LEVEL_WINDOW;
    return 0;
}

static int fs_probe(struct rp_backend *backend, bool may_write, struct rp_probed *out, struct rp_error *err)
{
    RP_CLEANUP(rp_fs_leave) struct rp_fs *fs = rp_fs_enter(backend);
    RP_CLEANUP(rp_fs_unlock) struct rp_fs_key_lock key_lock = RP_FS_KEY_UNLOCKED;
    int r = rp_fs_root_check(fs, err);
    if (r < 0) return r;
    *out = (struct rp_probed){ .level = RP_LEVEL_ETAG };
    if (!may_write) return 0;
    if ((r = rp_fs_begin(fs, err)) < 0) return r;
    /* Two probes at once would take each other's canary for a newer upload. */
    if ((r = rp_fs_lock_stripe(fs, RP_FS_PROBE_LOCK, &key_lock)) < 0)
        return rp_error_errno(err, -r, "store '%s': lock", fs->root);
    r = canary(backend, &out->level, err);
    return r < 0 ? rp_error_wrap(err, r, "probe store '%s'", fs->root) : 0;
}

static const struct rp_backend_ops fs_ops = {
    .type = "fs",
    .close = fs_close,
    .probe = fs_probe,
    .put = rp_backend_put_whole,
    .get = rp_backend_get_whole,
    .stat = rp_fs_stat,
    .list = rp_fs_list,
    .remove = rp_fs_remove,
    .copy = rp_fs_copy,
    .copies_at_once = 4,
    .annotate = rp_fs_annotate,
    .put_open = rp_fs_put_open,
    .put_write = rp_fs_put_write,
    .put_commit = rp_fs_put_commit,
    .put_abort = rp_fs_put_abort,
    .get_open = rp_fs_get_open,
    .get_read = rp_fs_get_read,
    .get_close = rp_fs_get_close,
};

static struct rp_fs *fs_new(void)
{
    struct rp_fs *fs = calloc(1, sizeof *fs);
    if (!fs) return NULL;
    fs->base.ops = &fs_ops;
    fs->stale_ms = RP_DAY_MS;
    fs->root_fd = fs->tmp_fd = fs->lock_fd = -1;
    int r = pthread_mutex_init(&fs->begin_lock, NULL);
    if (r == 0) r = pthread_mutex_init(&fs->enter_lock, NULL);
    for (int i = 0; i <= RP_FS_STRIPES && r == 0; i++)
        r = pthread_mutex_init(&fs->locks[i], NULL);
    RP_ASSERT(r == 0);
    rp_fs_durable_init(&fs->durable);
    rp_fs_durable_init(&fs->shown);
    return fs;
}

/* Not resolved: a link that is pointed elsewhere later has to be noticed. */
static char *absolute(const char *root)
{
    char *text = NULL;
    if (root[0] == '/') return strdup(root);
    RP_CLEANUP(rp_freep) char *here = getcwd(NULL, 0);
    return here && asprintf(&text, "%s/%s", here, root) >= 0 ? text : NULL;
}

static int make_root(const char *root)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s", root);
    if (n < 0 || (size_t)n >= sizeof path) return -ENAMETOOLONG;
    for (char *p = path + 1; *p; p++) {
        if (*p != '/') continue;
        *p = '\0';
        if (mkdir(path, 0777) < 0 && errno != EEXIST) return -errno;
        *p = '/';
    }
    return mkdir(path, 0777) < 0 && errno != EEXIST ? -errno : 0;
}

int rp_fs_open(const char *root, bool create, struct rp_backend **out, struct rp_error *err)
{
    if (!root || root[0] == '\0') return rp_error_set(err, RP_EINVAL, "a directory store needs a path");
    struct rp_fs *fs = fs_new();
    if (!fs) return rp_error_set(err, RP_ENOMEM, "no memory for a store");
    RP_CLEANUP(rp_backend_closep) struct rp_backend *backend = &fs->base;
    fs->root = absolute(root);
    if (!fs->root) return rp_error_set(err, RP_ENOMEM, "no memory for a store");
    int r = create ? make_root(fs->root) : 0;
    if (r < 0) return rp_error_errno(err, -r, "create store '%s'", root);
    if ((r = rp_fs_root_open(fs, err)) < 0) return r;
    rp_fs_meta_exists(fs);
    *out = backend;
    backend = NULL;
    return 0;
}
