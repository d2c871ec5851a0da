/* SPDX-License-Identifier: Apache-2.0 */
/* raise.c - counts what was kept alive in each store, and how much of it the last raise came after. */
#include "core/owner/raise.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/time.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    int64_t store_id;
    bool watched;          /* a store that is not observed */
    uint64_t kept, raised; /* how often something was kept alive; how much of that the last raise came after */
    int64_t
        begun_boot_ms; /* the last raise by R2 or R3; 0: none. Others do not begin a minute: the next answer waits */
    struct rp_raise_state state;
};

struct rp_raises {
    const struct rp_clock *clock;
    pthread_mutex_t lock;
    struct entry at[RP_STORES_MAX];
    struct rp_lane_end ends[RP_LANE_ENDS_MAX]; /* R8: one a lane; the oldest goes */
};
_Static_assert(RP_STORES_MAX <= 64, "a store is a bit of a mask");

struct rp_raises *rp_raises_new(const struct rp_clock *clock)
{
    struct rp_raises *raises = calloc(1, sizeof *raises);
    if (raises == NULL) return NULL;
    raises->clock = clock;
    pthread_mutex_init(&raises->lock, NULL);
    return raises;
}

void rp_raises_free(struct rp_raises *raises)
{
    if (raises == NULL) return;
    pthread_mutex_destroy(&raises->lock);
    free(raises);
}

static void lock(struct rp_raises *raises)
{
    pthread_mutex_lock(&raises->lock);
}

static void unlock(struct rp_raises *raises)
{
    pthread_mutex_unlock(&raises->lock);
}

/* With the lock. */
static struct entry *entry_of(struct rp_raises *raises, size_t index)
{
    RP_ASSERT(index < RP_STORES_MAX);
    return &raises->at[index];
}

void rp_raises_set(struct rp_raises *raises, size_t index, int64_t store_id, bool observed)
{
    lock(raises);
    struct entry *s = entry_of(raises, index);
    /* once: the name may be another row's since then, and what this process has open is still the
     * first */
    if (s->store_id == 0) s->store_id = store_id;
    s->watched = !observed;
    if (observed) s->state = (struct rp_raise_state){ 0 };
    unlock(raises);
}

/* ---- counting ---- */

static bool concerns(const struct entry *s, const struct rp_kept *kept)
{
    bool named = kept->everywhere;
    for (size_t i = 0; i < kept->n; i++)
        named = named || kept->stores[i] == s->store_id;
    return named && s->watched;
}

/* By the clock that is never set. */
static bool is_minute_over(const struct rp_raises *raises, const struct entry *s)
{
    return s->begun_boot_ms == 0 || rp_clock_boot_ms(raises->clock) - s->begun_boot_ms >= RP_MINUTE_MS;
}

uint64_t rp_raises_due(void *ctx, const struct rp_kept *kept)
{
    struct rp_raises *raises = ctx;
    uint64_t due = 0;
    lock(raises);
    for (size_t i = 0; i < RP_STORES_MAX; i++)
        if (concerns(&raises->at[i], kept) && is_minute_over(raises, &raises->at[i])) due |= UINT64_C(1) << i;
    unlock(raises);
    return due;
}

static void note_lane_end(struct rp_raises *raises, const struct rp_lane_end *end)
{
    struct rp_lane_end *to = &raises->ends[0];
    for (size_t i = 0; i < RP_LANE_ENDS_MAX; i++) {
        struct rp_lane_end *l = &raises->ends[i];
        if (l->known && l->lane == end->lane) {
            if (l->seq < end->seq) *l = *end;
            return;
        }
        if (l->at_ms < to->at_ms) to = l;
    }
    *to = *end;
}

void rp_raises_note(void *ctx, const struct rp_kept *kept, const struct rp_lane_end *end)
{
    struct rp_raises *raises = ctx;
    bool any = false;
    lock(raises);
    for (size_t i = 0; i < RP_STORES_MAX; i++) {
        if (!concerns(&raises->at[i], kept)) continue;
        raises->at[i].kept++;
        any = true;
    }
    if (any && end->known) note_lane_end(raises, end);
    unlock(raises);
}

size_t rp_raises_lane_ends(struct rp_raises *raises, struct rp_lane_end out[RP_LANE_ENDS_MAX])
{
    size_t n = 0;
    lock(raises);
    for (size_t i = 0; i < RP_LANE_ENDS_MAX; i++)
        if (raises->ends[i].known) out[n++] = raises->ends[i];
    unlock(raises);
    return n;
}

void rp_raises_assume(struct rp_raises *raises, size_t index)
{
    lock(raises);
    entry_of(raises, index)->kept++;
    unlock(raises);
}

static bool is_pending(const struct entry *s)
{
    return s->watched && s->kept != s->raised;
}

bool rp_raises_is_pending(struct rp_raises *raises, size_t index)
{
    lock(raises);
    bool pending = is_pending(entry_of(raises, index));
    unlock(raises);
    return pending;
}

bool rp_raises_is_time(struct rp_raises *raises, size_t index)
{
    lock(raises);
    const struct entry *s = entry_of(raises, index);
    bool time = is_pending(s) && (is_minute_over(raises, s) || s->state.owed_since_ms != 0);
    unlock(raises);
    return time;
}

void rp_raises_begin(struct rp_raises *raises, size_t index)
{
    lock(raises);
    entry_of(raises, index)->begun_boot_ms = rp_clock_boot_ms(raises->clock);
    unlock(raises);
}

void rp_raises_owe(struct rp_raises *raises, size_t index, const char *why)
{
    lock(raises);
    struct entry *s = entry_of(raises, index);
    if (is_pending(s)) {
        if (s->state.owed_since_ms == 0) s->state.owed_since_ms = rp_clock_now_ms(raises->clock);
        snprintf(s->state.why, sizeof s->state.why, "%s", why);
    }
    unlock(raises);
}

/* ---- raising ---- */

static void found(struct rp_raises *raises, size_t index, enum rp_ownership ownership)
{
    lock(raises);
    struct entry *s = entry_of(raises, index);
    s->state.known = s->watched;
    s->state.ownership = ownership;
    if (ownership == RP_OWNER_MOVED) memset(raises->ends, 0, sizeof raises->ends);
    unlock(raises);
}

static void raised(struct rp_raises *raises, size_t index, uint64_t kept)
{
    lock(raises);
    struct entry *s = entry_of(raises, index);
    s->raised = kept;
    s->state = (struct rp_raise_state){ .known = s->watched, .ownership = RP_OWNER_OURS };
    unlock(raises);
}

int rp_raises_look(struct rp_raises *raises, size_t index, struct rp_catalog *catalog, struct rp_store *store,
                   struct rp_error *err)
{
    struct rp_owner owner;
    int r = rp_owner_look(catalog, store, &owner, err);
    if (r == 0) found(raises, index, owner.ownership);
    if (r == RP_ENOTOWNER) found(raises, index, RP_OWNER_RENAMED); /* since this process has opened it (rename.h, E2) */
    return r;
}

/* Which is told by itself (R6). */
static bool is_known_lost(struct rp_raises *raises, size_t index)
{
    lock(raises);
    bool lost = rp_raise_is_lost(&entry_of(raises, index)->state);
    unlock(raises);
    return lost;
}

int rp_raise(struct rp_raises *raises, size_t index, struct rp_catalog *catalog, struct rp_store *store,
             struct rp_error *err)
{
    struct rp_error ignored = { 0 };
    lock(raises);
    const struct entry *s = entry_of(raises, index);
    bool watched = s->watched;
    uint64_t kept = s->kept;
    unlock(raises);
    if (!watched) return 0;
    int r = rp_owner_write(catalog, store, store->environment, false, err);
    if (r == 0) {
        raised(raises, index, kept);
        return 0;
    }
    if (r == RP_ENOTOWNER) (void)rp_raises_look(raises, index, catalog, store, &ignored);
    if (r != RP_ENOTOWNER || !is_known_lost(raises, index)) rp_raises_owe(raises, index, err->text);
    return r;
}

/* ---- showing ---- */

void rp_raise_state(const struct rp_store *store, struct rp_raise_state *out)
{
    struct rp_raises *raises = store->raises;
    *out = (struct rp_raise_state){ 0 };
    if (raises == NULL || store->id == 0) return;
    lock(raises);
    for (size_t i = 0; i < RP_STORES_MAX; i++)
        if (raises->at[i].store_id == store->id) *out = raises->at[i].state;
    unlock(raises);
}

bool rp_raise_is_lost(const struct rp_raise_state *state)
{
    return state->known && state->ownership != RP_OWNER_OURS && state->ownership != RP_OWNER_NONE;
}
