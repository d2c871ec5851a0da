/* SPDX-License-Identifier: Apache-2.0 */
#include "store/fs/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/digest.h"

int rp_fs_dir_id_of(int fd, struct rp_fs_dir_id *out)
{
    struct statx st;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &st) < 0) return -errno;
    *out = (struct rp_fs_dir_id){ .dev = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor, .ino = st.stx_ino };
    if (st.stx_mask & STATX_BTIME) out->born_ns = st.stx_btime.tv_sec * 1000000000 + st.stx_btime.tv_nsec;
    return 0;
}

struct rp_fs_fact rp_fs_fact_of(const struct rp_fs_dir_id *in, const char *name, const struct rp_fs_dir_id *dir)
{
    return (struct rp_fs_fact){ .dir = *dir, .in = *in, .name = rp_hash_text(0, name) };
}

/* One whose birth is not told may be another one with the same inode. What it stands in has a fact
 * of its own, or is the root, which is held open: that inode is not used again. */
static bool can_be_known(const struct rp_fs_fact *fact)
{
    RP_ASSERT(fact->dir.ino != 0);
    return fact->dir.born_ns != 0;
}

static struct rp_fs_fact *row_of(struct rp_fs_durable *durable, const struct rp_fs_fact *fact)
{
    uint64_t hash = rp_hash_bytes(fact->name, &fact->dir.ino, sizeof fact->dir.ino);
    return durable->rows[(hash ^ hash >> 32) % RP_FS_DURABLE_ROWS];
}

static bool are_equal(const struct rp_fs_fact *a, const struct rp_fs_fact *b)
{
    _Static_assert(sizeof *a == 7 * sizeof(uint64_t), "no padding, or memcmp would compare it");
    return memcmp(a, b, sizeof *a) == 0;
}

/* Its place in the row; RP_FS_DURABLE_WAYS if it has none. */
static size_t find(const struct rp_fs_fact *row, const struct rp_fs_fact *fact)
{
    size_t i = 0;
    while (i < RP_FS_DURABLE_WAYS && !are_equal(&row[i], fact))
        i++;
    return i;
}

static void put_first(struct rp_fs_fact *row, const struct rp_fs_fact *fact, size_t over)
{
    RP_ASSERT(over < RP_FS_DURABLE_WAYS);
    memmove(&row[1], &row[0], over * sizeof *row);
    row[0] = *fact;
}

void rp_fs_durable_init(struct rp_fs_durable *durable)
{
    int r = pthread_mutex_init(&durable->lock, NULL);
    RP_ASSERT(r == 0);
}

void rp_fs_durable_done(struct rp_fs_durable *durable)
{
    pthread_mutex_destroy(&durable->lock);
}

bool rp_fs_durable_has(struct rp_fs_durable *durable, const struct rp_fs_fact *fact)
{
    if (!can_be_known(fact)) return false;
    pthread_mutex_lock(&durable->lock);
    struct rp_fs_fact *row = row_of(durable, fact);
    size_t i = find(row, fact);
    if (i < RP_FS_DURABLE_WAYS) put_first(row, fact, i);
    pthread_mutex_unlock(&durable->lock);
    return i < RP_FS_DURABLE_WAYS;
}

void rp_fs_durable_add(struct rp_fs_durable *durable, const struct rp_fs_fact *fact)
{
    if (!can_be_known(fact)) return;
    pthread_mutex_lock(&durable->lock);
    struct rp_fs_fact *row = row_of(durable, fact);
    size_t i = find(row, fact);
    put_first(row, fact, i < RP_FS_DURABLE_WAYS ? i : RP_FS_DURABLE_WAYS - 1);
    pthread_mutex_unlock(&durable->lock);
}
