/* SPDX-License-Identifier: Apache-2.0 */
/* What happens by itself: time, clocks, other people, late requests, catalogs put back. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "catalog/mark/mark.h"
#include "sim.h"

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
    n->dead = n->catalog != NULL;
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
    sim_say(s, "a late request happens");
    bucket_settle(s->bucket, meets != SIZE_MAX ? meets : sim_index(&s->luck, bucket_late(s->bucket)));
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
    for (int try = is_claimed(s, key) ? 6 : 1; try > 0 && (!once || !is_there); try--)
        if (sim_strikes(f, FAULT_REUPLOAD)) sim_upload(s, key, false);
    if (!once && is_there && sim_strikes(f, FAULT_TWINS)) sim_upload(s, key, true);
    if (sim_strikes(f, FAULT_TAKEN_AWAY) && bucket_remove(s->bucket, sim_key(key))) {
        s->taken[key] = true;
        s->sent++; /* what stood before it may stand there again */
        sim_say(s, "somebody deletes %s", sim_key(key));
    }
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

/* The catalog knows that the bucket is its own: one that never was may become it, wherever its name leads. */
bool sim_is_known_ours(struct sim *s)
{
    struct rp_store_row row;
    struct rp_error err = { 0 };
    int r = rp_store_find(s->inner, "main", &row, &err);
    RP_ASSERT(r == 0);
    return row.owned_at != 0;
}

static void mislead(struct sim *s)
{
    size_t i = sim_index(&s->luck, SIM_NODES);
    struct sim_node *n = &s->nodes[i];
    if (n->command.verb != VERB_SWEEP && !s->misled[i]) return; /* in the middle of a sweep it hurts most */
    if (s->misled[i] && sim_chance(&s->luck, 100)) {
        s->misled[i] = false;
        if (n->backend != NULL) bucket_aim(n->backend, s->bucket);
        /* away and back within one batch: what was answered between comes from nowhere, and the owner record cannot tell */
        if (n->command.verb == VERB_SWEEP) s->lied = true;
        sim_say(s, "node %zu finds its bucket again", i);
        return;
    }
    if (s->misled[i] || !n->known_ours || !sim_strikes(&s->faults, FAULT_WRONG_BUCKET)) return;
    s->misled[i] = true;
    if (n->backend != NULL) bucket_aim(n->backend, s->elsewhere);
    sim_say(s, "node %zu reaches another bucket", i);
}

/* ---- backups ---- */

int64_t sim_catalog_epoch(const struct sim *s)
{
    struct rp_error err = { 0 };
    int64_t epoch = -1;
    int r = rp_meta_get(s->inner, "epoch", &epoch, NULL, 0, &err);
    RP_ASSERT(r == 0);
    return epoch;
}

static int64_t epoch_in(const char *record)
{
    int64_t epoch = -1;
    const char *at = strstr(record, "\"epoch\":");
    if (at != NULL) (void)sscanf(at + strlen("\"epoch\":"), "%" SCNd64, &epoch);
    return epoch;
}

/* -1: there is no record. */
static int64_t epoch_of_record(const struct bucket *bucket)
{
    struct bucket_object record;
    return bucket_look(bucket, RP_STORE_OWNER, &record) ? epoch_in(record.text) : -1;
}

int64_t sim_record_epoch(struct sim *s)
{
    int64_t epoch = epoch_of_record(s->bucket);
    if (epoch != s->record_epoch) {
        s->record_at_ms = s->now_ms;
        for (int i = 0; i < SIM_NODES; i++)
            s->record_host_ms[i] = sim_host_ms(&s->nodes[i]);
    }
    return s->record_epoch = epoch;
}

bool sim_drew(const struct sim *s, const struct sim_node *n, const char *record)
{
    static const char before[] = "\"stamp\":\"";
    struct rp_error err = { 0 };
    char name[40], word[600] = "", stamp[RP_STAMP_TEXT] = "";
    bool found = false;
    int64_t seen = 0;
    const char *at = strstr(record, before);
    if (at != NULL) (void)sscanf(at + strlen(before), "%16[0-9a-f]", stamp);
    snprintf(name, sizeof name, "stamps:%" PRId64, n->store.id);
    int r = rp_meta_find(s->inner, name, &found, &seen, word, sizeof word, &err);
    RP_ASSERT(r == 0);
    return stamp[0] == '\0' || !found || strstr(word, stamp) != NULL || epoch_in(record) < seen;
}

bool sim_owns(const struct sim *s, const struct sim_node *n)
{
    const struct bucket *bucket = s->misled[n->index] ? s->elsewhere : s->bucket;
    struct bucket_object record;
    if (!bucket_look(bucket, RP_STORE_OWNER, &record)) return bucket == s->bucket; /* nobody's yet */
    return strstr(record.text, s->catalog_id) != NULL && epoch_of_record(bucket) <= sim_catalog_epoch(s) &&
           sim_drew(s, n, record.text);
}

static void run_script(struct sim *s, const char *text)
{
    struct rp_error err = { 0 };
    int r = rp_db_script(s->inner, text, &err);
    if (r < 0) fprintf(stderr, "%s\n", err.text);
    RP_ASSERT(r == 0);
}

static void back_up(struct sim *s)
{
    if (s->faults.rate[FAULT_ROLLED_BACK] == 0 || s->backup_at_ms != 0 || !sim_chance(&s->luck, 100)) return;
    if (epoch_of_record(s->bucket) < 0) return; /* a catalog that never had a store takes any empty one for its first */
    run_script(s, "SAVEPOINT backup");
    *s->saved = *s->model;
    s->saved_files = s->n_files;
    s->saved_txns = s->n_txns;
    s->backup_at_ms = s->now_ms;
    s->backup_epoch = sim_catalog_epoch(s);
    sim_say(s, "a backup is made");
}

/* What users were told since the backup is forgotten; what went since is gone. */
static void forget(struct sim *s)
{
    for (size_t i = 0; i < s->model->n_files; i++) {
        struct model_file *old = model_file(s->saved, s->model->files[i].id);
        if (old != NULL) old->lost = s->model->files[i].lost;
    }
    *s->model = *s->saved;
    s->n_again = 0;
    for (size_t i = 0; i < s->n_files; i++)
        if (i >= s->saved_files || model_file(s->model, s->files[i].id) == NULL)
            s->files[i].begun = s->files[i].late = false, s->files[i].answer[0] = '\0';
    for (size_t i = 0; i < s->n_txns; i++)
        if (i >= s->saved_txns || model_txn(s->model, s->txns[i].id) == NULL)
            s->txns[i].begun = false, s->txns[i].answer[0] = '\0';
}

static bool all_down(const struct sim *s)
{
    for (int i = 0; i < SIM_NODES; i++)
        if (s->nodes[i].catalog != NULL) return false;
    return true;
}

/* It may have been started where the store could not be written: by its epoch alone it is not behind then. */
static void count_on(struct sim *s)
{
    char text[80];
    int64_t epoch = epoch_of_record(s->bucket) + sim_between(&s->luck, 0, 3);
    if (sim_chance(&s->luck, 5000)) return;
    snprintf(text, sizeof text, "UPDATE meta SET number = %" PRId64 " WHERE name = 'epoch'", epoch);
    run_script(s, text);
    sim_say(s, "the backup has counted on to epoch %" PRId64 " by itself", epoch);
}

/* Under any verb, as soon as the epoch was raised since. That it is, around whatever keeps
 * something alive, is judged by itself (sim_judge_kept). */
static void roll_back(struct sim *s)
{
    if (s->rolling && all_down(s)) {
        s->rolling = false;
        if (epoch_of_record(s->bucket) <= s->backup_epoch) return;
        run_script(s, "ROLLBACK TO backup; RELEASE backup");
        count_on(s);
        forget(s);
        s->backup_at_ms = 0;
        s->rolled_back = true;
        if (!sim_is_known_ours(s)) memset(s->misled, 0, sizeof s->misled);
        for (int i = 0; i < SIM_NODES; i++)
            s->nodes[i].anchored = false; /* the backup may not know this boot */
        sim_say(s, "the catalog is put back from its backup");
        return;
    }
    if (s->rolling || s->backup_at_ms == 0 || s->config.mode == RP_MODE_OBSERVE) return;
    if (epoch_of_record(s->bucket) <= s->backup_epoch || !sim_strikes(&s->faults, FAULT_ROLLED_BACK)) return;
    s->rolling = true;
    for (int i = 0; i < SIM_NODES; i++)
        s->nodes[i].dead = s->nodes[i].catalog != NULL;
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
    back_up(s);
    roll_back(s);
}

void sim_heal_weather(struct sim *s)
{
    s->faults.on = false;
    s->rolling = false;
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
}
