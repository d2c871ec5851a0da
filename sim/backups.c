/* SPDX-License-Identifier: Apache-2.0 */
/* Backups of the catalog, put back at any moment; catalogs that move; and how either shows itself.
 *
 * The backup is a savepoint of SQLite: what a node commits is a savepoint within it. It is made
 * anew now and then, sometimes right after the epoch was raised and right before it is put back:
 * then the catalog has lost its last seconds.
 *
 * U1  The catalog lies in a vessel (src/db/db.h, D8), a file or a server's. A backup that is put
 *     back in its place (`.restore`, `cp` over the file, a snapshot of the disk) keeps it; a new
 *     file, a dump that is read into another database, a point-in-time recovery and a promoted
 *     standby have another one. A standby may also lose nothing.
 * U2  The nodes are stopped for it, or go on: those of a server by connecting again, those of a
 *     file only where it is restored in place. A command that was under way goes on in the catalog
 *     as it is now, and nobody hears its answer.
 * U3  A catalog that shows that it was put back claims nothing until somebody recovers it
 *     (judge.c). It shows it by its vessel, or by the owner record: that has a later epoch, or a
 *     stamp that the catalog never drew.
 * U4  What is left: it was put back in its vessel, and the record was not written since the backup.
 *     Then nothing shows it. By DESIGN section 5 only what was kept alive since the last raise is
 *     lost, which is a minute's, or what a raise is owed for (sim_judge_kept, sim_judge_once_more).
 *     So is whatever else was committed since: no catalog can know that.
 * U5  Nobody puts a backup back while somebody recovers: people do one thing at a time. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backups.h"
#include "base/assert.h"
#include "catalog/mark/mark.h"
#include "judge.h"
#include "node.h"
#include "owner.h"
#include "verb.h"
#include "world.h"

/* ---- the vessel ---- */

int __real_rp_db_vessel(struct rp_db *db, const char *table, char out[RP_VESSEL_TEXT], struct rp_error *err);
int __wrap_rp_db_vessel(struct rp_db *db, const char *table, char out[RP_VESSEL_TEXT], struct rp_error *err);

static const struct sim *world; /* the database port carries no context */

int __wrap_rp_db_vessel(struct rp_db *db, const char *table, char out[RP_VESSEL_TEXT], struct rp_error *err)
{
    char none[RP_VESSEL_TEXT];
    int r = __real_rp_db_vessel(db, table, none, err);
    if (r < 0) return r;
    const struct sim_vessel *v = &world->home.vessel;
    if (v->is_server)
        snprintf(out, RP_VESSEL_TEXT, "server/7301%04d/%d/%d/%08X", v->place, v->place + 16384, v->place + 16400,
                 (unsigned)v->timeline);
    else
        snprintf(out, RP_VESSEL_TEXT, "file/%d/17000000%02d.000000000", v->place + 500, v->place % 100);
    return 0;
}

void sim_vessel_choose(struct sim *s)
{
    world = s;
    s->home.vessel = (struct sim_vessel){ .is_server = sim_chance(&s->luck, 5000), .place = 1, .timeline = 1 };
    s->home.fails_over = s->home.vessel.is_server && sim_chance(&s->luck, 5000);
}

/* A catalog that never raised its epoch noted no vessel, and is in no other. */
static void learn(struct sim *s)
{
    struct rp_error err = { 0 };
    char name[40], text[RP_VESSEL_TEXT];
    bool found = false;
    int64_t unused;
    snprintf(name, sizeof name, "vessel:%" PRId64, s->store_id);
    int r = rp_meta_find(s->inner, name, &found, &unused, text, sizeof text, &err);
    RP_ASSERT(r == 0);
    found = found || (sim_record_epoch(s) >= 0 && sim_owns(s, &s->nodes[0]));
    if (s->home.noted.place == 0 && found) s->home.noted = s->home.vessel;
}

void sim_note_recovered(struct sim *s)
{
    struct rp_error err = { 0 };
    char name[40], noted[RP_VESSEL_TEXT] = "", now[RP_VESSEL_TEXT];
    bool found = false;
    int64_t unused;
    snprintf(name, sizeof name, "vessel:%" PRId64, s->store_id);
    int r = rp_meta_find(s->inner, name, &found, &unused, noted, sizeof noted, &err);
    if (r == 0) r = rp_db_vessel(s->inner, "meta", now, &err);
    RP_ASSERT(r == 0);
    if (!found || strcmp(noted, now) != 0) return;
    s->home.noted = s->home.vessel;
    s->home.moved = s->home.lossless = false;
}

/* ---- backups ---- */

static void run_script(struct sim *s, const char *text)
{
    struct rp_error err = { 0 };
    int r = rp_db_script(s->inner, text, &err);
    if (r < 0) fprintf(stderr, "%s\n", err.text);
    RP_ASSERT(r == 0);
}

static bool is_raised_since(struct sim *s, int64_t *seen)
{
    int64_t epoch = sim_record_epoch(s), before = *seen;
    *seen = epoch;
    return epoch != before;
}

void sim_back_up(struct sim *s)
{
    struct sim_backup *b = &s->past.backup;
    if (s->faults.rate[FAULT_ROLLED_BACK] == 0) return;
    bool raised = is_raised_since(s, &b->seen_epoch);
    if (!sim_chance(&s->luck, raised ? 1500 : 100)) return;
    learn(s);
    run_script(s, b->at_ms != 0 ? "RELEASE backup; SAVEPOINT backup" : "SAVEPOINT backup");
    model_copy(s->past.saved, s->model);
    b->n_files = s->n_files;
    b->n_txns = s->n_txns;
    b->at_ms = s->now_ms;
    b->epoch = sim_catalog_epoch(s);
    b->noted = s->home.noted;
    b->is_owner = sim_record_epoch(s) >= 0 && sim_owns(s, &s->nodes[0]);
    b->serial = bucket_serial(s->bucket);
    b->soon = sim_chance(&s->luck, 1500);
    sim_say(s, "a backup is made");
}

/* ---- what is forgotten ---- */

/* What was decided since the backup is gone, or will be: the delete may be on its way. */
static void keep_undone(struct sim *s)
{
    for (size_t i = 0; i < s->model->n_marks; i++) {
        const struct model_mark *m = &s->model->marks[i], *old = model_mark(s->past.saved, m->id);
        if (!model_is_decided(m) || (old != NULL && model_is_decided(old))) continue;
        RP_ASSERT(s->past.n_undone < SIM_UNDONE);
        s->past.undone[s->past.n_undone++] = *m;
    }
}

bool sim_is_undone(const struct sim *s, const char *key)
{
    for (size_t i = 0; i < s->past.n_undone; i++)
        if (strcmp(s->past.undone[i].key, key) == 0) return true;
    return false;
}

bool sim_may_lack_bytes(const struct sim *s, const struct model_file *f)
{
    return s->past.rolled_back && (f->lost || sim_is_undone(s, f->key));
}

static void note_brought_back(struct sim *s)
{
    for (size_t i = 0; i < s->past.saved->n_marks; i++) {
        const struct model_mark *now = model_mark(s->model, s->past.saved->marks[i].id);
        if (!s->past.saved->marks[i].gone && now != NULL && now->gone) sim_see(s, SIGHT_LET_GO_PUT_BACK);
    }
}

/* A lease that was committed since the backup and is forgotten now: whoever has it goes on, and
 * stops when it is over by its own clock (purge.h, S7). */
static void keep_leases(struct sim *s)
{
    for (size_t i = 0; i < s->past.saved->n_marks; i++) {
        struct model_mark *old = &s->past.saved->marks[i];
        const struct model_mark *now = model_mark(s->model, old->id);
        if (now == NULL || old->leased_at_ms == 0 || old->holder != now->holder) continue;
        if (now->leased_at_ms > old->leased_at_ms) old->leased_at_ms = now->leased_at_ms;
    }
}

/* What users were told since the backup is forgotten; what went since is gone, what was let go is
 * there again. */
static void forget(struct sim *s)
{
    keep_undone(s);
    keep_leases(s);
    note_brought_back(s);
    for (size_t i = 0; i < s->model->n_files; i++) {
        struct model_file *old = model_file(s->past.saved, s->model->files[i].id);
        if (old != NULL) old->lost = s->model->files[i].lost;
    }
    for (uint64_t i = s->past.backup.serial + 1; i <= bucket_serial(s->bucket); i++)
        s->past.unknown[i] = true;
    model_copy(s->model, s->past.saved);
    s->n_again = 0;
    for (size_t i = 0; i < s->n_files; i++)
        if (i >= s->past.backup.n_files || model_file(s->model, s->files[i].id) == NULL)
            s->files[i].begun = s->files[i].late = false, s->files[i].answer[0] = '\0';
        else if (s->files[i].forgotten.times > 0)
            s->files[i].answer[0] = '\0'; /* an older one may be there again */
    for (size_t i = 0; i < s->n_txns; i++)
        if (i >= s->past.backup.n_txns || model_txn(s->model, s->txns[i].id) == NULL)
            s->txns[i].begun = false, s->txns[i].answer[0] = '\0';
        else if (s->txns[i].forgotten.times > 0)
            s->txns[i].answer[0] = '\0';
}

/* ---- putting back ---- */

static bool all_down(const struct sim *s)
{
    for (int i = 0; i < SIM_NODES; i++)
        if (sim_node_is_up(&s->nodes[i])) return false;
    return true;
}

static bool is_busy(const struct sim *s)
{
    for (int i = 0; i < SIM_NODES; i++) {
        const struct sim_node *n = &s->nodes[i];
        if (n->command.verb == VERB_RECOVER) return true; /* U5 */
        RP_ASSERT(n->catalog == NULL || !rp_db_in_transaction(n->catalog->db));
    }
    return false;
}

/* It may have been started where the store could not be written: by its epoch alone it is not
 * behind then. */
static void count_on(struct sim *s)
{
    char text[80];
    int64_t record = sim_record_epoch(s), epoch = record + sim_between(&s->luck, 0, 3);
    if (!s->past.backup.is_owner || record <= s->past.backup.epoch || sim_chance(&s->luck, 5000)) return;
    snprintf(text, sizeof text, "UPDATE meta SET number = %" PRId64 " WHERE name = 'epoch'", epoch);
    run_script(s, text);
    sim_say(s, "the backup has counted on to epoch %" PRId64 " by itself", epoch);
}

/* U1 */
static void move(struct sim *s, bool later)
{
    if (later)
        s->home.vessel.timeline++;
    else
        s->home.vessel.place++;
    sim_say(s, "the catalog lies in another place now");
}

static void compare(struct sim *s)
{
    const struct sim_vessel *noted = &s->home.noted, *now = &s->home.vessel;
    bool same_place = noted->place == now->place && (noted->timeline == now->timeline || s->home.fails_over);
    s->home.moved = noted->place != 0 && !same_place;
}

static void start_again(struct sim *s)
{
    s->past.put_backs++;
    for (int i = 0; i < SIM_NODES; i++) {
        struct sim_node *n = &s->nodes[i];
        n->anchored = false; /* the backup may not know this boot */
        n->kept_ms = 0;
        if (sim_claims(n->command.verb)) n->owned = false; /* what was seen before says nothing of it */
    }
    s->retaining.holder = 0;
    s->retaining.fence = 0;
}

static void put_back_now(struct sim *s)
{
    learn(s);
    run_script(s, "ROLLBACK TO backup; RELEASE backup");
    sim_say(s, "the catalog is put back from its backup, %s", s->past.put_back_moves ? "elsewhere" : "in its place");
    if (all_down(s)) count_on(s);
    forget(s);
    if (s->past.put_back_moves) move(s, s->home.vessel.is_server && sim_chance(&s->luck, 5000));
    s->home.noted = s->past.backup.noted;
    compare(s);
    s->past.backup.at_ms = 0;
    s->past.rolled_back = true;
    s->home.lossless = false;
    start_again(s);
    if (!sim_is_known_ours(s)) memset(s->misled, 0, sizeof s->misled);
    if (!s->home.moved && sim_owns(s, &s->nodes[0])) sim_see(s, SIGHT_UNNOTICED);
}

static bool is_sweeping(const struct sim *s)
{
    for (int i = 0; i < SIM_NODES; i++)
        if (sim_is_by_itself(s->nodes[i].command.verb) && !s->nodes[i].dead) return true;
    return false;
}

/* U2 */
static void strike(struct sim *s)
{
    bool under = is_sweeping(s); /* there it hurts most */
    s->past.put_back_moves = sim_chance(&s->luck, under ? 3000 : 6000);
    bool goes_on = sim_chance(&s->luck, under ? 9000 : 5000) && (s->home.vessel.is_server || !s->past.put_back_moves);
    if (goes_on) {
        sim_see(s, SIGHT_PUT_BACK_UNDER);
        put_back_now(s);
        return;
    }
    s->past.rolling = true;
    for (int i = 0; i < SIM_NODES; i++)
        s->nodes[i].dead = sim_node_is_up(&s->nodes[i]);
}

/* A standby takes over that has everything; or somebody moves the file. */
static void move_whole(struct sim *s)
{
    if ((!s->home.vessel.is_server && !all_down(s)) || !sim_strikes(&s->faults, FAULT_MOVED)) return;
    learn(s);
    s->home.lossless = s->home.lossless || !s->home.moved;
    move(s, s->home.vessel.is_server);
    compare(s);
}

void sim_put_back(struct sim *s)
{
    if (s->past.rolling && all_down(s)) {
        s->past.rolling = false;
        put_back_now(s);
        return;
    }
    if (s->past.rolling || s->config.mode == RP_MODE_OBSERVE || is_busy(s)) return;
    move_whole(s);
    if (s->past.backup.at_ms == 0) return;
    bool now = s->past.backup.soon && sim_chance(&s->luck, is_sweeping(s) ? 1500 : 500);
    if (!now && !sim_strikes(&s->faults, FAULT_ROLLED_BACK)) return;
    if (now) s->faults.met[FAULT_ROLLED_BACK]++;
    strike(s);
}
