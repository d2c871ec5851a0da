/* SPDX-License-Identifier: Apache-2.0 */
/* walk.h - the files below one directory in byte order of their paths, in bounded memory.
 *
 * W1  At each level the smallest names after the last one are held (a window); when they are used
 *     up the directory is read again for the next ones. Directories are compared as "name/", which
 *     gives the order of whole paths.
 * W2  The names of all levels share RP_FS_WALK_BYTES; a level may use half of what those above it
 *     leave.
 * W3  No descriptor is held but that of the directory at hand.
 * W4  What cannot be shown whole is an error: a directory that cannot be read, a file whose path is
 *     no key. What appears or vanishes during the walk may or may not be shown.
 * W5  A file that is being removed (removing.c) is shown under its own name. */
#ifndef RP_STORE_FS_WALK_H
#define RP_STORE_FS_WALK_H

#include "store/fs/fs.h"

#define RP_FS_WALK_BYTES ((size_t)8 << 20)

struct rp_fs_level;

struct rp_fs_walk {
    struct rp_fs *fs;
    const char *prefix, *after; /* of paths below the base; the caller's, kept until the end */
    size_t base_len;            /* `path` begins with the base, "" or "dir/" */
    size_t path_len;
    char path[RP_FS_PATH_MAX + RP_FS_NAME_MAX + 2]; /* the directory at hand; of a shown file while it is shown */
    size_t below_max;                               /* bytes that a path below the base may have */
    struct rp_fs_level *levels;
    size_t depth, cap;
    size_t bytes; /* of all windows */
    int dir_fd;   /* of the level `dir_depth`, or -1 */
    size_t dir_depth;
};

int rp_fs_walk_begin(struct rp_fs_walk *walk, struct rp_fs *fs, const char *base, size_t below_max, const char *prefix,
                     const char *after, struct rp_error *err);
void rp_fs_walk_end(struct rp_fs_walk *walk); /* also the RP_CLEANUP function */
/* 1: `walk->path + walk->base_len` and `st` are the next file; 0: no more. */
int rp_fs_walk_next(struct rp_fs_walk *walk, struct stat *st, struct rp_error *err);

#endif
