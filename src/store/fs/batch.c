/* SPDX-License-Identifier: Apache-2.0 */
/* Many items over a few threads, and the directories that must be durable before the answer. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/fs/fs.h"
#include "store/refuse.h"
#include "store/workers.h"

#define THREADS_MAX 4
#define INLINE_MAX  63 /* fewer items than this are not worth a thread */
#define DIRS_MAX    64 /* more than that: the whole file system is synced */
#define DEVICES_MAX 8

struct touched {
    int fd;
    dev_t dev;
    ino_t ino;
};

struct rp_fs_batch {
    struct rp_fs *fs;
    struct rp_item *items;
    size_t n;
    rp_fs_item_fn *fn;
    const struct rp_gate *gate; /* T11 */
    size_t next;                /* under the lock */
    atomic_int failed;          /* the first errno that is about the whole store */
    pthread_mutex_t lock;
    struct touched dirs[DIRS_MAX];
    size_t n_dirs;
    struct touched devices[DEVICES_MAX]; /* one directory of each file system with more */
    size_t n_devices;
    struct rp_fs_fact facts[DIRS_MAX];
    size_t n_facts;
};

static void fail(struct rp_fs_batch *batch, int errno_value)
{
    int none = 0;
    atomic_compare_exchange_strong(&batch->failed, &none, errno_value);
}

static bool known(const struct touched *list, size_t n, const struct touched *t, bool device_only)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].dev == t->dev && (device_only || list[i].ino == t->ino)) return true;
    return false;
}

/* True if the descriptor was kept for the end. */
static bool keep(struct rp_fs_batch *batch, const struct touched *t)
{
    if (known(batch->dirs, batch->n_dirs, t, false)) return false;
    if (batch->n_dirs < DIRS_MAX) {
        batch->dirs[batch->n_dirs++] = *t;
        return true;
    }
    if (known(batch->devices, batch->n_devices, t, true)) return false;
    if (batch->n_devices < DEVICES_MAX) {
        batch->devices[batch->n_devices++] = *t;
        return true;
    }
    if (fsync(t->fd) < 0) fail(batch, errno);
    return false;
}

void rp_fs_batch_take(struct rp_fs_batch *batch, int dir_fd)
{
    struct stat st;
    struct touched t = { .fd = dir_fd };
    if (fstat(dir_fd, &st) < 0) {
        fail(batch, errno);
        close(dir_fd);
        return;
    }
    t.dev = st.st_dev;
    t.ino = st.st_ino;
    pthread_mutex_lock(&batch->lock);
    bool kept = keep(batch, &t);
    pthread_mutex_unlock(&batch->lock);
    if (!kept) close(dir_fd);
}

/* For what is gone together with its directory: which one lost the name is not known. */
void rp_fs_batch_sync_root(struct rp_fs_batch *batch)
{
    struct touched t = { .dev = batch->fs->dev };
    pthread_mutex_lock(&batch->lock);
    if (!known(batch->devices, batch->n_devices, &t, true)) {
        t.fd = rp_fs_dir_open(batch->fs, "", 0);
        bool full = batch->n_devices == DEVICES_MAX;
        if (t.fd < 0)
            fail(batch, -t.fd);
        else if (!full)
            batch->devices[batch->n_devices++] = t;
        else if (syncfs(t.fd) < 0)
            fail(batch, errno);
        if (t.fd >= 0 && full) close(t.fd);
    }
    pthread_mutex_unlock(&batch->lock);
}

void rp_fs_batch_remember(struct rp_fs_batch *batch, const struct rp_fs_fact *fact)
{
    pthread_mutex_lock(&batch->lock);
    if (batch->n_facts < DIRS_MAX) batch->facts[batch->n_facts++] = *fact;
    pthread_mutex_unlock(&batch->lock);
}

static void sync_all(struct rp_fs_batch *batch)
{
    for (size_t i = 0; i < batch->n_devices; i++) {
        if (syncfs(batch->devices[i].fd) < 0) fail(batch, errno);
        close(batch->devices[i].fd);
    }
    for (size_t i = 0; i < batch->n_dirs; i++) {
        if (fsync(batch->dirs[i].fd) < 0) fail(batch, errno);
        close(batch->dirs[i].fd);
    }
}

static bool same_directory(const char *a, const char *b)
{
    const char *slash_a = strrchr(a, '/'), *slash_b = strrchr(b, '/');
    size_t n = slash_a ? (size_t)(slash_a - a) : 0;
    return n == (slash_b ? (size_t)(slash_b - b) : 0) && memcmp(a, b, n) == 0;
}

/* Neighbours in one directory stay on one thread: two threads in a directory only wait for its
 * lock. */
static size_t take_run(struct rp_fs_batch *batch, size_t *start)
{
    pthread_mutex_lock(&batch->lock);
    size_t end = *start = batch->next;
    while (end < batch->n && same_directory(batch->items[*start].key, batch->items[end].key))
        end++;
    batch->next = end;
    pthread_mutex_unlock(&batch->lock);
    return end;
}

static void *work(void *ctx)
{
    struct rp_fs_batch *batch = ctx;
    RP_CLEANUP(rp_fs_finder_done) struct rp_fs_finder finder;
    rp_fs_finder_init(&finder, batch->fs, batch);
    size_t start, end;
    while (!atomic_load(&batch->failed) && (end = take_run(batch, &start)) > start) {
        for (size_t i = start; i < end && !atomic_load(&batch->failed); i++) {
            int r = rp_gate_is_open(batch->gate) ? batch->fn(&finder, &batch->items[i]) : -ETIMEDOUT;
            if (r < 0) fail(batch, -r);
        }
    }
    return NULL;
}

static void work_in_threads(struct rp_fs_batch *batch)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t wanted = cores > 1 ? THREADS_MAX : 2;
    rp_work_beside(batch->n > INLINE_MAX ? wanted : 1, work, batch);
}

static void doubt(struct rp_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (items[i].outcome == RP_OUT_DELETED || items[i].outcome == RP_OUT_GONE) items[i].outcome = RP_OUT_UNKNOWN;
}

int rp_fs_batch_run(struct rp_fs *fs, struct rp_item *items, size_t n, const struct rp_gate *gate, rp_fs_item_fn *fn,
                    rp_fs_item_fn *after, struct rp_error *err)
{
    struct rp_fs_batch batch = {
        .fs = fs, .items = items, .n = n, .fn = fn, .gate = gate, .lock = PTHREAD_MUTEX_INITIALIZER
    };
    int r = rp_fs_root_check(fs, err);
    if (r < 0 || (r = rp_items_begin(items, n, err)) < 0) return r;
    work_in_threads(&batch);
    sync_all(&batch);
    int failed = atomic_load(&batch.failed);
    for (size_t i = 0; i < batch.n_facts && !failed; i++)
        rp_fs_durable_add(&fs->shown, &batch.facts[i]);
    /* Asked again at the end: what vanished meanwhile is not gone object by object. */
    r = failed ? rp_error_errno(err, failed, "store '%s'", fs->root) : rp_fs_root_check(fs, err);
    if (r < 0) {
        doubt(items, n);
    } else if (after) {
        batch =
            (struct rp_fs_batch){ .fs = fs, .items = items, .n = n, .fn = after, .lock = PTHREAD_MUTEX_INITIALIZER };
        work_in_threads(&batch);
    }
    pthread_mutex_destroy(&batch.lock);
    return r;
}

void rp_fs_item_fail(struct rp_item *item, int errno_value)
{
    item->outcome = errno_value == EACCES || errno_value == EPERM ? RP_OUT_DENIED : RP_OUT_RETRY;
    snprintf(item->note, sizeof item->note, "%s", strerror(errno_value));
}
