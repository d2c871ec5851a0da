/* SPDX-License-Identifier: Apache-2.0 */
/* durable.h - directories whose names are known to be on the disk, so that uploads into them need
 * not sync those again.
 *
 * B1  A fact says: this directory (device, inode, time of birth) stands under this name in that
 *     one. It is taken in after a sync of the latter that began while it was so.
 * B2  A directory that was removed and made again, or moved here from elsewhere, is another fact,
 *     whoever did it. Not told apart: one that was moved away and back, and one that was made again
 *     with the same inode within a tick of the file system's clock (milliseconds).
 * B3  There are RP_FS_DURABLE_MAX facts at most. Of a full row the one that was asked for longest
 *     ago is forgotten: that costs a sync.
 * B4  A directory whose time of birth the file system does not tell is never known.
 * B5  Files may be told of as well: their own modification time, which no two uploads share, is
 *     their time of birth.
 * B6  Any thread. */
#ifndef RP_STORE_FS_DURABLE_H
#define RP_STORE_FS_DURABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define RP_FS_DURABLE_ROWS 512
#define RP_FS_DURABLE_WAYS 8
#define RP_FS_DURABLE_MAX  (RP_FS_DURABLE_ROWS * RP_FS_DURABLE_WAYS)

struct rp_fs_dir_id {
    uint64_t dev, ino;
    int64_t born_ns; /* 0: not told */
};
int rp_fs_dir_id_of(int fd, struct rp_fs_dir_id *out); /* 0 or a negative errno */

struct rp_fs_fact {
    struct rp_fs_dir_id dir, in;
    uint64_t name; /* a hash of it */
};
struct rp_fs_fact rp_fs_fact_of(const struct rp_fs_dir_id *in, const char *name, const struct rp_fs_dir_id *dir);

struct rp_fs_durable {
    pthread_mutex_t lock;
    struct rp_fs_fact rows[RP_FS_DURABLE_ROWS]
                          [RP_FS_DURABLE_WAYS]; /* of a row the last one asked for first; inode 0: none */
};
void rp_fs_durable_init(struct rp_fs_durable *durable); /* over zeros */
void rp_fs_durable_done(struct rp_fs_durable *durable);
bool rp_fs_durable_has(struct rp_fs_durable *durable, const struct rp_fs_fact *fact);
void rp_fs_durable_add(struct rp_fs_durable *durable, const struct rp_fs_fact *fact);

#endif
