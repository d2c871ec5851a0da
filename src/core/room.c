/* SPDX-License-Identifier: Apache-2.0 */
#include "core/room.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/text/size.h"
#include "catalog/catalog.h"
#include "store/backend.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- where they are ---- */

static bool same_disk(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev;
}

bool rp_room_reserve(const struct rp_config *config, const struct rp_store_config *store, char out[RP_RESERVE_PATH])
{
    char owner[RP_RESERVE_PATH];
    bool beside_catalog = rp_catalog_reserve(config->catalog_url, out);
    if (store == NULL) return beside_catalog;
    if (rp_config_is_s3(store)) return false;
    if (beside_catalog && same_disk(config->catalog_url + strlen("sqlite:"), store->path)) return true;
    int n = snprintf(owner, sizeof owner, "%s/" RP_STORE_OWNER, store->path);
    int m = snprintf(out, RP_RESERVE_PATH, "%s/" RP_STORE_RESERVE, store->path);
    struct stat st;
    return n > 0 && (size_t)n < sizeof owner && m > 0 && m < RP_RESERVE_PATH && store->mode != RP_MODE_OBSERVE &&
           stat(owner, &st) == 0;
}

static int is_full(const struct rp_store_config *store, struct rp_error *err)
{
    if (store == NULL)
        rp_error_set(err, RP_EFULL, "no space left beside the catalog");
    else
        rp_error_set(err, RP_EFULL, "no space left in store '%s'", store->name);
    return rp_error_hint(err, "free space on that disk, or delete something: deletes and sweeps go on");
}

int rp_room_refuse(const struct rp_config *config, const struct rp_store_config *store, int64_t bytes,
                   struct rp_error *err)
{
    char path[RP_RESERVE_PATH];
    struct rp_error ignored = { 0 };
    struct rp_room room;
    if (!rp_room_reserve(config, store, path) || rp_reserve_look(path, &room, &ignored) < 0) return 0;
    bool fits = !room.full && bytes <= room.free_bytes - room.reserve_bytes / RP_RESERVE_LOW;
    return fits ? 0 : is_full(store, err);
}

/* ---- what was seen last ---- */

void rp_rooms_init(struct rp_rooms *rooms)
{
    memset(rooms, 0, sizeof *rooms);
    pthread_mutex_init(&rooms->lock, NULL);
}

void rp_rooms_done(struct rp_rooms *rooms)
{
    pthread_mutex_destroy(&rooms->lock);
}

void rp_rooms_note(struct rp_rooms *rooms, size_t i, const struct rp_rooms_place *seen)
{
    RP_ASSERT(i < RP_ROOMS);
    pthread_mutex_lock(&rooms->lock);
    rooms->at[i] = *seen;
    pthread_mutex_unlock(&rooms->lock);
}

struct rp_rooms_place rp_rooms_seen(struct rp_rooms *rooms, size_t i)
{
    RP_ASSERT(i < RP_ROOMS);
    if (rooms == NULL) return (struct rp_rooms_place){ 0 };
    pthread_mutex_lock(&rooms->lock);
    struct rp_rooms_place seen = rooms->at[i];
    pthread_mutex_unlock(&rooms->lock);
    return seen;
}

int rp_rooms_refuse(struct rp_rooms *rooms, size_t store, struct rp_error *err)
{
    if (!rp_rooms_seen(rooms, RP_ROOM_CATALOG).full && !rp_rooms_seen(rooms, store).full) return 0;
    return is_full(NULL, err);
}
