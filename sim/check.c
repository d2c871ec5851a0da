/* SPDX-License-Identifier: Apache-2.0 */
/* The questions of tests/lib/invariants.h, put to the catalog from outside; and what the bucket
 * holds in the end. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backups.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "core/subject/quarantine.h"
#include "judge.h"
#include "lib/fault_db.h"
#include "lib/invariants.h"
#include "node.h"
#include "users.h"
#include "world.h"

static void ask_catalog(struct sim *s)
{
    static struct inv_known nobody;
    RP_CLEANUP(rp_buf_done) struct rp_buf lines = RP_BUF(1 << 16);
    RP_CLEANUP(rp_catalog_closep) struct rp_catalog *catalog = NULL;
    struct rp_db_fault none = { .nested = true };
    struct rp_catalog_options as = { .clock = &s->db, .lane = RP_LANE_MAX };
    struct rp_error err = { 0 };
    struct rp_db *db = NULL;
    int r = rp_db_fault_wrap(s->inner, &none, &db, &err);
    if (r == 0) r = rp_catalog_adopt(db, &as, &catalog, &err);
    if (r < 0) fprintf(stderr, "%s\n", err.text);
    RP_ASSERT(r == 0);
    nobody.max_attempts = s->rules.max_attempts;
    struct inv_world world = {
        .catalog = catalog, .store_id = s->store_id, .known = &nobody, .unrecorded_calls = s->past.unasked
    };
    if (inv_check_catalog(&world, INV_ALWAYS, &lines) == 0) return;
    char *end = strchr(rp_buf_text(&lines), '\n');
    sim_violate(s, "CATALOG", "%.*s", end != NULL ? (int)(end - rp_buf_text(&lines)) : 300, rp_buf_text(&lines));
}

/* ---- the bucket, once all is well ---- */

/* It has a mark of its own, or is the half-done work of the mark that it is named by. */
static bool is_copy_explained(struct sim *s, const char *key)
{
    const struct model_mark *own = model_mark_of(s->model, key), *of = model_original(s->model, key);
    return (own != NULL && (model_is_active(own) || own->state == RP_LOST)) || (of != NULL && model_is_active(of));
}

static bool is_explained(struct sim *s, const struct bucket_object *o)
{
    const struct model_file *f = model_file_of_key(s->model, o->key);
    const struct model_mark *m = model_mark_of(s->model, o->key);
    if (strcmp(o->key, RP_STORE_OWNER) == 0) return true;
    if (rp_quarantine_is(o->key)) return is_copy_explained(s, o->key);
    if (rp_key_is_own(o->key)) return true; /* a canary */
    if (f != NULL && rp_status_lives((enum rp_status)f->status)) return true;
    if (f != NULL && m != NULL && (m->state == RP_LOST || model_is_active(m))) return true;
    if (f != NULL && m != NULL && m->file_id == 0 && m->state == RP_REPRIEVED)
        return true; /* marked by its key, and restored */
    for (size_t i = 0; i < SIM_KEYS; i++)
        if (strcmp(o->key, sim_key(i)) == 0) return true; /* judge_plain asks more */
    return false;
}

static bool judge_object(void *ctx, const struct bucket_object *o)
{
    struct sim *s = ctx;
    if (s->past.unknown[o->serial]) return true; /* what happened since its backup an old catalog does not know */
    if (!is_explained(s, o)) sim_violate(s, "EVENTUAL", "%s (upload %" PRIu64 ") was left behind", o->key, o->serial);
    return s->violation[0] == '\0';
}

/* By a late request: its version is there. */
static bool is_hidden_late(const struct sim *s, const struct model_file *f)
{
    struct bucket_object marker, o;
    return bucket_marker(s->bucket, f->key, &marker) && marker.late && bucket_below(s->bucket, f->key, &o) &&
           (int64_t)strlen(o.text) == f->size_bytes;
}

static void judge_files(struct sim *s, bool healed)
{
    struct bucket_object o;
    for (size_t i = 0; i < s->model->n_files; i++) {
        const struct model_file *f = &s->model->files[i];
        bool lives = rp_status_lives((enum rp_status)f->status);
        if (lives && !sim_may_lack_bytes(s, f) && !bucket_look(s->bucket, f->key, &o) && !is_hidden_late(s, f) &&
            (healed || !sim_is_owed(s, f->key)))
            sim_violate(s, "NO-LOSS", "file %s lives, and its bytes are gone", f->name);
    }
}

/* Where a bucket knows no conditions our record can land in another one: what is asked there from
 * then on is answered from nowhere. */
static void judge_elsewhere(struct sim *s)
{
    struct bucket_object record;
    if (!bucket_look(s->elsewhere, RP_STORE_OWNER, &record)) return;
    s->lied = true;
    if (bucket_has_condition(s->kind)) sim_violate(s, "OWNER", "a bucket that never was ours has our record");
}

void sim_check(struct sim *s, bool healed)
{
    if (s->violation[0] == '\0') ask_catalog(s);
    judge_elsewhere(s);
    judge_files(s, healed);
    if (healed && !s->lied) sim_judge_returned(s);
    if (healed && !s->lied) sim_judge_hidden(s);
    if (healed && !s->lied && s->config.mode != RP_MODE_OBSERVE) bucket_each(s->bucket, judge_object, s);
}
