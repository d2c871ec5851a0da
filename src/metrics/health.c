/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics/health.h"

#include "base/error.h"
#include "base/time.h"
#include "catalog/writer/writer.h"
#include "core/owner/raise.h"
#include "core/room.h"

#include <pthread.h>
#include <stdlib.h>

#define CATALOG_KEPT_MS 1000
#define STORES_KEPT_MS  5000
#define PATIENCE_MS     5000

/* One thing that is looked at. */
struct look {
    int64_t began_ms, ended_ms; /* of the last look; 0: none yet */
    bool under_way;
};

struct rp_health {
    pthread_mutex_t lock;
    struct look catalog, stores;
    int64_t wrote_ms; /* 0: never */
    bool looked;      /* the catalog has said yes or no once */
    struct rp_health_state state;
    /* The store (its number in the catalog) whose owner record was there once. */
    int64_t found[RP_STORES_MAX];
};

struct rp_health *rp_health_new(void)
{
    struct rp_health *health = calloc(1, sizeof *health);
    if (health != NULL) pthread_mutex_init(&health->lock, NULL);
    return health;
}

void rp_health_free(struct rp_health *health)
{
    if (health == NULL) return;
    pthread_mutex_destroy(&health->lock);
    free(health);
}

/* With the lock: whether the caller is to look. */
static bool take(struct look *look, int64_t now_ms, int64_t fresh_ms)
{
    if (look->under_way || (look->ended_ms != 0 && now_ms - look->ended_ms < fresh_ms)) return false;
    look->under_way = true;
    look->began_ms = now_ms;
    return true;
}

static void give_back(struct look *look)
{
    look->under_way = false;
    look->ended_ms = rp_time_boot_ms();
}

static bool hangs(const struct look *look, int64_t now_ms)
{
    return look->under_way && now_ms - look->began_ms > PATIENCE_MS;
}

/* Every writer writes its lane's row; one that takes its time is not waited for (R2). */
static void look_at_catalog(struct rp_health *health, struct rp_writers *writers)
{
    struct rp_writers_look look;
    rp_writers_look(writers, &look);
    pthread_mutex_lock(&health->lock);
    give_back(&health->catalog);
    if (look.waits_ms > PATIENCE_MS || look.code < 0 || look.judged) {
        bool hung = look.waits_ms > PATIENCE_MS;
        health->state.catalog_ok = !hung && look.code == 0;
        health->state.catalog_why = hung ? "it does not answer" : look.code < 0 ? rp_error_title(look.code) : NULL;
        health->looked = true;
    }
    if (look.waits_ms == 0 && look.code == 0) health->wrote_ms = health->catalog.ended_ms;
    if (look.judged) health->state.clock_ahead_ms = look.ahead_ms;
    pthread_mutex_unlock(&health->lock);
}

/* A record that was there and is gone: an empty mount point looks like that. */
static struct rp_health_store look_at_store(struct rp_store *store, int64_t *found)
{
    struct rp_item item = { .key = RP_STORE_OWNER };
    struct rp_error err = { 0 };
    if (store->backend == NULL) return (struct rp_health_store){ .why = "it could not be opened" };
    int r = rp_backend_stat(store->backend, &item, 1, &err);
    if (r < 0) return (struct rp_health_store){ .why = rp_error_title(r) };
    /* it answered; in mode observe the record is nobody's concern, and a key that may only read is
     * not told that there is none */
    if (store->config->mode == RP_MODE_OBSERVE) return (struct rp_health_store){ .ok = true };
    struct rp_raise_state raise;
    rp_raise_state(store, &raise);
    if (rp_raise_is_lost(&raise)) return (struct rp_health_store){ .why = rp_ownership_text(raise.ownership) };
    if (item.outcome == RP_OUT_FOUND) *found = store->id;
    if (item.outcome == RP_OUT_FOUND || (item.outcome == RP_OUT_GONE && *found != store->id))
        return (struct rp_health_store){ .ok = true };
    return (struct rp_health_store){ .why = item.outcome == RP_OUT_GONE ? "its owner record is gone"
                                                                        : "its owner record cannot be read" };
}

static void look_at_stores(struct rp_health *health, struct rp_store *stores, size_t n)
{
    struct rp_health_store seen[RP_STORES_MAX];
    for (size_t i = 0; i < n; i++)
        seen[i] = look_at_store(&stores[i], &health->found[i]); /* `found` is who looks's alone */
    pthread_mutex_lock(&health->lock);
    give_back(&health->stores);
    for (size_t i = 0; i < n; i++)
        health->state.stores[i] = seen[i];
    health->state.n_stores = n;
    pthread_mutex_unlock(&health->lock);
}

/* With the lock. */
static void tell(const struct rp_health *health, int64_t now_ms, size_t n, struct rp_health_state *out)
{
    *out = health->state;
    out->n_stores = n;
    out->catalog_age_ms = health->wrote_ms == 0 ? -1 : now_ms - health->wrote_ms;
    if (!health->looked) out->catalog_why = "it has not answered yet";
    for (size_t i = 0; i < n; i++) {
        if (hangs(&health->stores, now_ms))
            out->stores[i] = (struct rp_health_store){ .why = "it does not answer" };
        else if (health->stores.ended_ms == 0)
            out->stores[i] = (struct rp_health_store){ .why = "it has not answered yet" };
    }
}

void rp_health_look(struct rp_health *health, struct rp_writers *writers, struct rp_store *stores, size_t n_stores,
                    struct rp_health_state *out)
{
    size_t n = n_stores < RP_STORES_MAX ? n_stores : RP_STORES_MAX;
    pthread_mutex_lock(&health->lock);
    bool look = writers != NULL && take(&health->catalog, rp_time_boot_ms(), CATALOG_KEPT_MS);
    pthread_mutex_unlock(&health->lock);
    if (look) look_at_catalog(health, writers);
    pthread_mutex_lock(&health->lock);
    look = take(&health->stores, rp_time_boot_ms(), STORES_KEPT_MS);
    pthread_mutex_unlock(&health->lock);
    if (look) look_at_stores(health, stores, n);
    pthread_mutex_lock(&health->lock);
    tell(health, rp_time_boot_ms(), n, out);
    pthread_mutex_unlock(&health->lock);
}

void rp_health_room(struct rp_health_state *state, struct rp_rooms *rooms)
{
    if (rp_rooms_seen(rooms, RP_ROOM_CATALOG).full) {
        state->catalog_ok = false;
        state->catalog_why = RP_ROOM_FULL;
    }
    for (size_t i = 0; i < state->n_stores; i++)
        if (rp_rooms_seen(rooms, i).full) state->stores[i] = (struct rp_health_store){ .why = RP_ROOM_FULL };
}
