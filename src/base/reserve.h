/* SPDX-License-Identifier: Apache-2.0 */
/* reserve.h - a file that keeps room free on its file system, to be given up when there is none
 * left. What frees space (a delete, a sweep) needs a little of it first.
 *
 * V1  It takes real blocks: RP_RESERVE_BYTES, or a 16th of a file system that is smaller than 16 of
 *     them. That is more than the log that SQLite keeps beside its file may grow to.
 * V2  Whoever finds the disk full gives it up: any process, without asking. That it is gone tells
 *     the others.
 * V3  It is made again only where it fits twice. Until then the file system is full: what is new is
 *     refused, so that it does not take the room that was given up.
 * V4  It is also given up before the last blocks are gone (RP_RESERVE_LOW of it). */
#ifndef RP_BASE_RESERVE_H
#define RP_BASE_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

#define RP_RESERVE_BYTES ((int64_t)32 << 20)
#define RP_RESERVE_LOW   8 /* an eighth of it is left */
#define RP_RESERVE_PATH  4096

struct rp_error;

struct rp_room {
    int64_t free_bytes, total_bytes; /* of the file system, as an ordinary user has them */
    int64_t reserve_bytes;           /* how big the reserve is, or would be */
    bool held;                       /* the reserve is there */
    bool full;                       /* V3, V4 */
};

/* `path`: of the reserve, whose directory is there. */
int rp_reserve_look(const char *path, struct rp_room *out, struct rp_error *err);
/* The same, and does what V3 and V4 say. */
int rp_reserve_keep(const char *path, struct rp_room *out, struct rp_error *err);
/* V2. False: there was none. */
bool rp_reserve_give_up(const char *path);

#endif
