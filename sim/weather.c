/* SPDX-License-Identifier: Apache-2.0 */
/* What happens by itself: time, clocks, other people, late requests, catalogs put back. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backups.h"
#include "base/assert.h"
#include "catalog/mark/mark.h"
#include "judge.h"
#include "node.h"
#include "owner.h"
#include "task.h"
#include "uploads.h"
#include "users.h"
#include "verb.h"
#include "weather.h"
#include "world.h"

/* ---- clocks ---- */

static struct sim_clock *any_clock(struct sim *s)
{
    size_t i = sim_index(&s->luck, SIM_NODES + 2);
    return i == 0 ? &s->db_clock : i == 1 ? &s->store_clock : &s->nodes[i - 2].clock;
}

static void jump(struct sim *s, struct sim_clock *c, int64_t by_ms, const char *how)
{
    c->ahead_ms += by_ms;
    s->jumps++;
    sim_say(s, "a clock is set %s by %" PRId64 " s", how, by_ms / 1000);
}

/* Hosts and database have one clock, as on one machine. */
static void together(struct sim *s)
{
    int64_t by_ms = sim_between(&s->luck, -RP_DAY_MS, 6 * RP_DAY_MS);
    jump(s, &s->db_clock, by_ms, "with all others");
    for (int i = 0; i < SIM_NODES; i++)
        s->nodes[i].clock.ahead_ms += by_ms;
}

/* A host starts again, sometimes with another time: nothing can be proved of that. */
static void reboot(struct sim *s)
{
    struct sim_node *n = &s->nodes[sim_index(&s->luck, SIM_NODES)];
    if (s->running == n) return;
    n->dead = sim_node_is_up(n);
    n->boots++;
    n->booted_ms = s->now_ms;
    n->anchored = false;
    if (sim_chance(&s->luck, 2000))
        jump(s, &n->clock, sim_between(&s->luck, -3 * RP_DAY_MS, 3 * RP_DAY_MS), "while it boots");
    sim_say(s, "the host of node %d boots", n->index);
}

static void clocks(struct sim *s)
{
    struct sim_faults *f = &s->faults;
    if (sim_strikes(f, FAULT_CLOCK_FORWARD))
        jump(s, any_clock(s), sim_between(&s->luck, RP_SECOND_MS, 3 * RP_DAY_MS), "forward");
    if (sim_strikes(f, FAULT_CLOCK_BACK))
        jump(s, any_clock(s), -sim_between(&s->luck, RP_SECOND_MS, 3 * RP_DAY_MS), "back");
    if (sim_strikes(f, FAULT_CLOCK_DISAGREE))
        jump(s, any_clock(s), sim_between(&s->luck, -2 * RP_MINUTE_MS, 2 * RP_MINUTE_MS), "a little");
    if (sim_strikes(f, FAULT_CLOCK_FREEZE)) {
        struct sim_clock *c = any_clock(s);
        c->frozen_at_ms = sim_clock_read(s, c);
        s->jumps++;
        sim_say(s, "a clock stands still");
    }
    if (sim_strikes(f, FAULT_CLOCKS_TOGETHER)) together(s);
    if (sim_strikes(f, FAULT_REBOOT)) reboot(s);
    if (!sim_chance(&s->luck, 150)) return;
    struct sim_clock *c = any_clock(s); /* somebody sets it right */
    if (c->ahead_ms == 0 && c->frozen_at_ms == 0 && c->ppm == 0) return;
    *c = (struct sim_clock){ 0 };
    s->jumps++;
    sim_say(s, "a clock is set right");
}

static void late_puts(struct sim *s, int64_t until_ms)
{
    for (size_t i = 0; i < s->n_files; i++) {
        if (!s->files[i].late) continue;
        if (s->files[i].sent_at_ms + SIM_LATE_PUT_MS < until_ms || sim_chance(&s->luck, 300)) sim_put_arrives(s, i);
    }
}

static void time_passes(struct sim *s)
{
    static const int64_t most[] = { 5 * RP_MINUTE_MS, RP_HOUR_MS, 6 * RP_HOUR_MS, 2 * RP_DAY_MS };
    if (!sim_chance(&s->luck, 250)) return;
    int64_t ms = sim_between(&s->luck, RP_MINUTE_MS, most[sim_index(&s->luck, sizeof most / sizeof most[0])]);
    late_puts(s, s->now_ms + ms);
    s->now_ms += ms;
    sim_say(s, "%" PRId64 " minutes pass", ms / RP_MINUTE_MS);
}

/* ---- other people ---- */

static bool is_claimed(struct sim *s, size_t key)
{
    const struct model_mark *m = model_mark_of(s->model, sim_key(key));
    return m != NULL && (m->state == RP_PURGING || m->state == RP_CHECKING);
}

/* A request that waits for what was returned meanwhile; SIZE_MAX: none. */
static size_t late_of_returned(struct sim *s)
{
    for (size_t i = 0; i < bucket_late(s->bucket); i++)
        if (sim_is_owed(s, bucket_late_key(s->bucket, i))) return i;
    return SIZE_MAX;
}

static void late_requests(struct sim *s)
{
    bucket_forget_late(s->bucket, s->now_ms - SIM_LATE_MS);
    if (bucket_late(s->bucket) == 0) return;
    size_t meets = late_of_returned(s);
    if (!sim_chance(&s->luck, meets != SIZE_MAX ? 5000 : 400)) return;
    size_t which = meets != SIZE_MAX ? meets : sim_index(&s->luck, bucket_late(s->bucket));
    struct bucket_object there;
    char key[RP_KEY_MAX + 1];
    snprintf(key, sizeof key, "%s", bucket_late_key(s->bucket, which));
    bool stood = bucket_look(s->bucket, key, &there);
    sim_say(s, "a late request about %s happens", key);
    bucket_settle(s->bucket, which);
    bool hides = s->kind == BUCKET_VERSION && stood && !bucket_look(s->bucket, key, &there);
    if (hides && sim_is_owed(s, key)) sim_see(s, SIGHT_LATE_HIDE);
}

/* Where there are versions also an older one, or a marker. */
static bool take_away(struct sim *s, const char *key)
{
    if (s->kind != BUCKET_VERSION || sim_chance(&s->luck, 5000)) return bucket_remove(s->bucket, key);
    return bucket_remove_nth(s->bucket, key, sim_index(&s->luck, 3));
}

/* Somebody's delete marker, rather on a newer upload than the one that is about to be purged. */
static void hide(struct sim *s, size_t key)
{
    const struct model_mark *m = model_mark_of(s->model, sim_key(key));
    struct bucket_object there;
    if (s->kind != BUCKET_VERSION || !bucket_look(s->bucket, sim_key(key), &there)) return;
    bool newer = m != NULL && model_is_active(m) && strcmp(there.identity.version, m->version) > 0;
    for (int try = newer ? 40 : 1; try > 0; try--) {
        if (!sim_strikes(&s->faults, FAULT_HIDDEN)) continue;
        bucket_hide(s->bucket, sim_key(key), sim_store_ms(s));
        s->by_user[bucket_serial(s->bucket)] = s->taken[key] = true;
        s->sent++;
        sim_say(s, "somebody hides %s", sim_key(key));
        return;
    }
}

static void others(struct sim *s)
{
    struct sim_faults *f = &s->faults;
    size_t key = sim_index(&s->luck, SIM_KEYS);
    for (int try = 0; try < 3 && !is_claimed(s, key); try++) /* rather one that is about to be purged */
        key = sim_index(&s->luck, SIM_KEYS);
    bool once = s->config.keys == RP_KEYS_WRITE_ONCE;
    struct bucket_object there;
    bool is_there = bucket_look(s->bucket, sim_key(key), &there);
    bool hiding = s->kind == BUCKET_VERSION && s->config.mode == RP_MODE_QUARANTINE; /* what comes now may be hidden */
    for (int try = !is_claimed(s, key) ? 1 : hiding ? 20 : 6; try > 0 && (!once || !is_there); try--)
        if (sim_strikes(f, FAULT_REUPLOAD)) sim_upload(s, key, false);
    if (!once && is_there && sim_strikes(f, FAULT_TWINS)) sim_upload(s, key, true);
    if (sim_strikes(f, FAULT_TAKEN_AWAY) && take_away(s, sim_key(key))) {
        s->taken[key] = true;
        s->sent++; /* what stood before it may stand there again */
        sim_say(s, "somebody deletes %s", sim_key(key));
    }
    hide(s, key);
    if (sim_chance(&s->luck, 60)) s->referenced[key] = !s->referenced[key];
    late_requests(s);
    late_puts(s, s->now_ms);
}

/* ---- whose store is it ---- */

static void usurp(struct sim *s)
{
    if (s->config.mode == RP_MODE_OBSERVE || !sim_strikes(&s->faults, FAULT_FOREIGN_OWNER)) return;
    char record[120];
    snprintf(record, sizeof record, "{\"catalog\":\"cat_another\",\"epoch\":%d,\"environment\":\"test\"}",
             (int)sim_between(&s->luck, 0, 40));
    bucket_upload(s->bucket, RP_STORE_OWNER, record, sim_store_ms(s), NULL);
    sim_say(s, "another catalog takes the store over");
}

static void mislead(struct sim *s)
{
    size_t i = sim_index(&s->luck, SIM_NODES);
    struct sim_node *n = &s->nodes[i];
    if (n->command.verb != VERB_SWEEP && !s->misled[i]) return; /* in the middle of a sweep it hurts most */
    if (s->misled[i] && sim_chance(&s->luck, 100)) {
        s->misled[i] = false;
        if (n->backend != NULL) bucket_aim(n->backend, s->bucket);
        /* away and back within one batch: what was answered between comes from nowhere, and the
         * owner record cannot tell */
        if (n->command.verb == VERB_SWEEP) s->lied = true;
        sim_say(s, "node %zu finds its bucket again", i);
        return;
    }
    if (s->misled[i] || !n->known_ours || !sim_strikes(&s->faults, FAULT_WRONG_BUCKET)) return;
    s->misled[i] = true;
    if (n->backend != NULL) bucket_aim(n->backend, s->elsewhere);
    sim_say(s, "node %zu reaches another bucket", i);
}

void sim_weather(struct sim *s)
{
    (void)sim_record_epoch(s);
    if (!s->faults.on) return;
    time_passes(s);
    clocks(s);
    others(s);
    usurp(s);
    mislead(s);
    sim_back_up(s);
    sim_put_back(s);
}

void sim_heal_weather(struct sim *s)
{
    s->faults.on = false;
    s->past.rolling = false;
    s->db_clock = s->store_clock = (struct sim_clock){ 0 };
    for (int i = 0; i < SIM_NODES; i++) {
        s->nodes[i].clock = (struct sim_clock){ 0 };
        s->nodes[i].outage_ends_ms = 0;
        s->misled[i] = false;
    }
    late_puts(s, INT64_MAX);
    bucket_forget_late(s->bucket, s->now_ms - SIM_LATE_MS);
    while (bucket_late(s->bucket) > 0 && s->violation[0] == '\0')
        bucket_settle(s->bucket, 0);
    s->now_ms += 4 * RP_DAY_MS; /* past the times that clocks ahead have promised */
    memset(s->referenced, 0, sizeof s->referenced);
    sim_services_heal(s);
}
