/* SPDX-License-Identifier: Apache-2.0 */
/* room.h - whether there is room where this process writes: beside the SQLite catalog, and in
 * directory stores on other file systems.
 *
 * M1  A reserve (base/reserve.h) stands beside the catalog's file, FILE-reserve. A directory store
 *     on another file system has its own, .reprieve/reserve, if its mode lets it be written and its
 *     owner record is there: an empty mount point gets none.
 * M2  Who may wait for a disk asks it: rp_room_refuse. All others see what was seen last, a second
 *     ago at most: struct rp_rooms.
 * M3  PostgreSQL keeps its own disk. It is full while it has refused a change for want of room
 *     within the last RP_ROOM_REFUSED_MS. */
#ifndef RP_CORE_ROOM_H
#define RP_CORE_ROOM_H

#include "base/reserve.h"
#include "config/config.h"

#include <pthread.h>
#include <stddef.h>

#define RP_ROOM_REFUSED_MS 15000
#define RP_ROOM_CATALOG    RP_STORES_MAX /* its number; a store's is that of its configuration */
#define RP_ROOMS           (RP_STORES_MAX + 1)
#define RP_ROOM_FULL       "no space left: what is new is refused, deletes go on"

struct rp_error;

/* M1: where the reserve is; false: there is none. `store` NULL: the catalog's. */
bool rp_room_reserve(const struct rp_config *config, const struct rp_store_config *store, char out[RP_RESERVE_PATH]);
/* RP_EFULL if `bytes` more do not fit there; what cannot be asked is not refused. */
int rp_room_refuse(const struct rp_config *config, const struct rp_store_config *store, int64_t bytes,
                   struct rp_error *err);

/* What was seen last. */
struct rp_rooms {
    pthread_mutex_t lock;
    struct rp_rooms_place {
        bool known, full;
        struct rp_room room; /* of a reserve; reserve_bytes 0: PostgreSQL's, of which nothing is seen */
    } at[RP_ROOMS];
};
void rp_rooms_init(struct rp_rooms *rooms);
void rp_rooms_done(struct rp_rooms *rooms);
void rp_rooms_note(struct rp_rooms *rooms, size_t i, const struct rp_rooms_place *seen);
/* NULL: nothing is known. */
struct rp_rooms_place rp_rooms_seen(struct rp_rooms *rooms, size_t i);
/* RP_EFULL if the catalog or this store (its number) was seen full. */
int rp_rooms_refuse(struct rp_rooms *rooms, size_t store, struct rp_error *err);

#endif
