/* SPDX-License-Identifier: Apache-2.0 */
/* The watch over room: keeps the reserves, and says when a disk is full and when it is not any
 * more.
 *
 * O1  It needs no catalog: a full disk does not keep it from looking.
 * O2  A disk that hangs holds up this thread and nobody else; what was seen last stands
 *     meanwhile. */
#include "core/room.h"
#include "base/error.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/writer/writer.h"
#include "daemon/watch/watch.h"

#include <stdio.h>
#include <string.h>

#define EVERY_MS RP_SECOND_MS

struct room_watch {
    struct rp_watch watch;
    bool said; /* that a reserve cannot be made */
};

static void name_of(const struct rp_config *config, size_t i, char out[80])
{
    if (i == RP_ROOM_CATALOG)
        snprintf(out, 80, "catalog");
    else
        snprintf(out, 80, "store %s", config->stores[i].name);
}

static void say(struct room_watch *w, size_t i, const struct rp_rooms_place *seen)
{
    char of[80];
    name_of(&w->watch.session.config, i, of);
    json_t *o = rp_json_object("node", rp_json_text(w->watch.node), "of", rp_json_text(of), NULL);
    if (seen->room.reserve_bytes > 0) {
        rp_json_set(o, "free_bytes", json_integer(seen->room.free_bytes));
        rp_json_set(o, "reserve", json_boolean(seen->room.held));
    }
    if (seen->full) rp_json_set(o, "note", json_string(RP_ROOM_FULL));
    rp_session_log(&w->watch.session, seen->full ? RP_LOG_ERROR : RP_LOG_INFO, seen->full ? "disk.full" : "disk.room",
                   o);
}

static void say_no_reserve(struct room_watch *w, const struct rp_error *why)
{
    if (!w->said)
        rp_session_log(&w->watch.session, RP_LOG_WARNING, "disk.no_reserve",
                       rp_json_object("node", rp_json_text(w->watch.node), "error", rp_json_text(why->text), NULL));
    w->said = true;
}

/* What has refused a change within the last seconds is full, whatever its disk says: a quota may
 * be. */
static bool has_refused(const struct room_watch *w)
{
    struct rp_writers_state state = { 0 };
    if (w->watch.options.writers != NULL) rp_writers_state(w->watch.options.writers, &state);
    return state.refused_full_ms != 0 && rp_time_boot_ms() - state.refused_full_ms < RP_ROOM_REFUSED_MS;
}

static struct rp_rooms_place look_at(struct room_watch *w, size_t i, const char *beside_catalog)
{
    const struct rp_config *config = &w->watch.session.config;
    struct rp_rooms_place seen = { .known = i == RP_ROOM_CATALOG };
    struct rp_error why = { 0 };
    char path[RP_RESERVE_PATH];
    if (!rp_room_reserve(config, i == RP_ROOM_CATALOG ? NULL : &config->stores[i], path)) return seen;
    bool shared = i != RP_ROOM_CATALOG && strcmp(path, beside_catalog) == 0;
    int r = shared ? rp_reserve_look(path, &seen.room, &why) : rp_reserve_keep(path, &seen.room, &why);
    if (r < 0) say_no_reserve(w, &why);
    seen.known = seen.room.total_bytes > 0;
    seen.full = seen.room.full;
    return seen;
}

static void look_and_tell(struct room_watch *w, size_t i, const char *beside_catalog)
{
    struct rp_rooms *rooms = w->watch.options.rooms;
    struct rp_rooms_place before = rp_rooms_seen(rooms, i), seen = look_at(w, i, beside_catalog);
    if (i == RP_ROOM_CATALOG) seen.full = seen.full || has_refused(w);
    rp_rooms_note(rooms, i, &seen);
    if (seen.full != before.full) say(w, i, &seen);
}

static void look(struct rp_watch *watch)
{
    struct room_watch *w = (struct room_watch *)watch;
    const struct rp_config *config = &watch->session.config;
    char beside_catalog[RP_RESERVE_PATH] = "";
    if (watch->options.rooms == NULL) return;
    if (!rp_room_reserve(config, NULL, beside_catalog)) beside_catalog[0] = 0;
    look_and_tell(w, RP_ROOM_CATALOG, beside_catalog);
    for (size_t i = 0; i < config->n_stores && !rp_watch_is_ending(watch); i++)
        look_and_tell(w, i, beside_catalog);
}

const struct rp_watch_kind rp_room_watch = { .what = "the watch over room",
                                             .every_ms = EVERY_MS,
                                             .catalog = RP_WATCH_NEVER,
                                             .bytes = sizeof(struct room_watch),
                                             .look = look };
