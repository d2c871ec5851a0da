/* SPDX-License-Identifier: Apache-2.0 */
#include "fault/programs.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/time.h"

#include <stdio.h>
#include <string.h>

/* ---- what all programs share ---- */

void program_must(int r)
{
    RP_ASSERT(r == 0);
}

void program_quarantining(struct trial *t)
{
    t->config.mode = RP_MODE_QUARANTINE;
}

void program_in_place(struct trial *t)
{
    program_quarantining(t);
    t->hides = true;
}

int program_sweep_partly(struct trial *t)
{
    int r = trial_sweep(t);
    return r == RP_EPARTLY ? 0 : r;
}

static void mark(struct trial *t, size_t first, size_t n)
{
    program_must(trial_mark(t, &(struct trial_marking){ .first = first, .n = n }));
}

static void due(struct trial *t)
{
    trial_advance(t, 6 * RP_DAY_MS);
}

/* ---- worlds ---- */

static void guarded(struct trial *t)
{
    t->config.referenced_by = &t->reference;
    t->config.n_referenced_by = 1;
}

static void two_uploads(struct trial *t)
{
    trial_subjects(t, 2);
}

static void many_uploads(struct trial *t)
{
    trial_subjects(t, 21);
}

static void first_marked(struct trial *t)
{
    trial_subjects(t, 2);
    mark(t, 0, 1);
}

static void first_annotated(struct trial *t)
{
    trial_subjects(t, 2);
    program_must(trial_mark(t, &(struct trial_marking){ .n = 1, .annotate = true }));
}

static void first_replaced(struct trial *t)
{
    first_marked(t);
    inv_upload(&t->world, &t->shared->known.subjects[0]);
}

static void six_marked(struct trial *t)
{
    trial_subjects(t, 7);
    mark(t, 0, 6);
}

static void three_due(struct trial *t)
{
    trial_subjects(t, 4);
    mark(t, 0, 3);
    due(t);
}

static void eight_due(struct trial *t)
{
    trial_subjects(t, 9);
    mark(t, 0, 8);
    due(t);
}

static void first_due_and_replaced(struct trial *t)
{
    three_due(t);
    inv_upload(&t->world, &t->shared->known.subjects[0]);
}

static void unreferenced(struct trial *t)
{
    trial_subjects(t, 2);
    trial_refer(t, 1, true);
}

static void first_referenced_and_due(struct trial *t)
{
    trial_subjects(t, 3);
    trial_refer(t, 2, false);
    program_must(trial_mark(t, &(struct trial_marking){ .n = 2, .if_unreferenced = true }));
    trial_refer(t, 0, true);
    due(t);
}

static void two_in_quarantine(struct trial *t)
{
    trial_subjects(t, 3);
    mark(t, 0, 2);
    due(t);
    program_must(trial_sweep(t));
}

static void annotated_in_quarantine(struct trial *t)
{
    first_annotated(t);
    due(t);
    program_must(trial_sweep(t));
}

static void half_swept(struct trial *t)
{
    three_due(t);
    program_must(trial_half_done(t));
}

/* By a worker whose probe was disturbed. */
static void half_copied(struct trial *t)
{
    t->blind = true;
    half_swept(t);
    t->blind = false;
}

static void quarantine_over(struct trial *t)
{
    two_in_quarantine(t);
    trial_advance(t, 8 * RP_DAY_MS);
}

/* Somebody has removed the delete marker of the first. */
static void quarantine_over_and_one_shown(struct trial *t)
{
    struct inv_subject *s = &t->shared->known.subjects[0];
    struct rp_item item = { .key = s->key };
    struct rp_error err = { 0 };
    bool made = false;
    quarantine_over(t);
    program_must(rp_backend_stat(t->bare, &item, 1, &err));
    snprintf(item.identity.version, sizeof item.identity.version, "%s", item.identity.etag);
    program_must(rp_backend_show(t->hiding, s->key, &item.identity, &made, &err));
    RP_ASSERT(made);
    s->stays = true;
}

/* Two attempts at the second object have failed; the third is its last. */
static void one_failing(struct trial *t)
{
    three_due(t);
    trial_deny(t, 1);
    for (int i = 0; i < 2; i++) {
        (void)trial_sweep(t);
        trial_advance(t, 2 * RP_HOUR_MS);
    }
}

static void one_dead(struct trial *t)
{
    one_failing(t);
    (void)trial_sweep(t);
    trial_deny(t, SIZE_MAX);
}

/* The host and the store think that it is due, the database does not. */
static void almost_due(struct trial *t)
{
    trial_subjects(t, 2);
    mark(t, 0, 1);
    trial_advance(t, 5 * RP_DAY_MS + 30 * RP_SECOND_MS);
}

static void usurped(struct trial *t)
{
    trial_subjects(t, 4);
    program_must(trial_mark(t, &(struct trial_marking){ .n = 1, .annotate = true }));
    mark(t, 1, 2);
    due(t);
    trial_usurp(t);
}

/* A restore was acknowledged after the backup; the catalog is the backup now. */
static void rolled_back(struct trial *t)
{
    trial_subjects(t, 3);
    mark(t, 0, 2);
    trial_save_catalog(t);
    trial_advance(t, RP_HOUR_MS);
    program_must(trial_restore(t, 0, 1));
    trial_roll_back_catalog(t);
    due(t);
    t->shared->known.subjects[0].stays = t->shared->known.subjects[1].stays = true;
}

/* ---- steps ---- */

static int mark_one(struct trial *t)
{
    return trial_mark(t, &(struct trial_marking){ .n = 1 });
}

static int mark_twenty(struct trial *t)
{
    return trial_mark(t, &(struct trial_marking){ .n = 20 });
}

static int mark_later(struct trial *t)
{
    return trial_mark(t, &(struct trial_marking){ .n = 1, .grace_ms = 20 * RP_DAY_MS });
}

static int mark_unreferenced(struct trial *t)
{
    return trial_mark(t, &(struct trial_marking){ .n = 1, .if_unreferenced = true });
}

static int mark_annotated(struct trial *t)
{
    return trial_mark(t, &(struct trial_marking){ .n = 1, .annotate = true });
}

static int restore_one(struct trial *t)
{
    return trial_restore(t, 0, 1);
}

/* Too late is an answer. Whoever hears "restored" instead counts on it. */
static int restore_claimed(struct trial *t)
{
    int r = trial_restore(t, 0, 1);
    return r == RP_ETOOLATE ? 0 : r;
}

static int restore_six(struct trial *t)
{
    return trial_restore(t, 0, 6);
}

/* A run that ends partly is a run: its failures are tried again by the next. */
static int sweep_almost_due(struct trial *t)
{
    const struct inv_known *k = &t->shared->known;
    struct inv_subject *s = &t->shared->known.subjects[0];
    char why[160];
    s->stays = k->db_ms < s->due_at_ms;
    int r = trial_sweep(t);
    if (s->stays && !inv_stands(&t->world, s->key, s, false, why))
        snprintf(t->shared->trouble, sizeof t->shared->trouble, "NO-EARLY: %s: %s\n", s->key, why);
    s->stays = false;
    return r;
}

static int unrefer(struct trial *t)
{
    trial_refer(t, 0, false);
    return 0;
}

static int later(struct trial *t)
{
    trial_advance(t, RP_HOUR_MS);
    return 0;
}

static int hold_first(struct trial *t)
{
    return trial_hold(t, 0);
}

static int hold_everything(struct trial *t)
{
    return trial_hold(t, SIZE_MAX);
}

static int allow(struct trial *t)
{
    trial_deny(t, SIZE_MAX);
    return 0;
}

static int dead_retry(struct trial *t)
{
    return trial_dead(t, true);
}

static int dead_keep(struct trial *t)
{
    return trial_dead(t, false);
}

/* clang-format off */
const struct program programs_of_users[] = {
    { "mark one object",                             NULL, two_uploads, { mark_one } },
    { "mark twenty at once",                         NULL, many_uploads, { mark_twenty } },
    { "mark an object that is marked",               NULL, first_marked, { mark_one } },
    { "extend a mark",                               NULL, first_marked, { mark_later } },
    { "mark a newer upload of a marked object",      NULL, first_replaced, { mark_one } },
    { "mark if unreferenced",                        guarded, unreferenced, { mark_unreferenced } },
    { "mark and annotate",                           NULL, two_uploads, { mark_annotated } },
    { "restore one",                                 NULL, first_marked, { restore_one, restore_one } },
    { "restore six at once",                         NULL, six_marked, { restore_six } },
    { "restore an annotated one",                    NULL, first_annotated, { restore_one } },
    { "restore from quarantine",                     program_quarantining, two_in_quarantine, { restore_one, restore_one } },
    { "restore an annotated one from quarantine",    program_quarantining, annotated_in_quarantine, { restore_one } },
    { "restore what is hidden in place",             program_in_place, two_in_quarantine, { restore_one, restore_one } },
    { "restore an annotated one hidden in place",    program_in_place, annotated_in_quarantine, { restore_one } },
    { "hold one and sweep",                          NULL, three_due, { hold_first, trial_sweep, trial_lift } },
    { "hold everything and sweep",                   NULL, three_due, { hold_everything, trial_sweep, trial_lift } },
    { "claim a store for the first time",            NULL, two_uploads, { trial_sweep, later, trial_sweep } },
    { "recover a store from another catalog",        NULL, usurped, { program_sweep_partly, trial_recover } },
    { "recover after the catalog was rolled back",   NULL, rolled_back, { program_sweep_partly, trial_recover } },
    { "retry a dead letter",                         NULL, one_dead, { dead_retry } },
    { "retry a dead letter in quarantine",           program_quarantining, one_dead, { dead_retry, trial_sweep } },
    { "retry a dead letter where objects are hidden", program_in_place, one_dead, { dead_retry, trial_sweep } },
    { "give a dead letter up",                       NULL, one_dead, { dead_keep } },
    { "give a dead letter up in quarantine",         program_quarantining, one_dead, { dead_keep } },
    { "give a dead letter up where they are hidden", program_in_place, one_dead, { dead_keep } },
};
const struct program programs_of_sweeps[] = {
    { "sweep",                                       NULL, three_due, { trial_sweep } },
    { "sweep two batches",                           NULL, eight_due, { trial_sweep } },
    { "sweep what is replaced by a newer upload",    NULL, first_due_and_replaced, { trial_sweep } },
    { "sweep with a guard",                          guarded, first_referenced_and_due, { trial_sweep, unrefer } },
    { "sweep into quarantine",                       program_quarantining, three_due, { trial_sweep } },
    { "sweep out of quarantine",                     program_quarantining, quarantine_over, { trial_sweep } },
    { "sweep and hide in place",                     program_in_place, three_due, { trial_sweep } },
    { "sweep what was hidden in place",              program_in_place, quarantine_over, { trial_sweep } },
    { "sweep what a dead worker left",               NULL, half_swept, { trial_sweep } },
    { "sweep what a dead worker left in quarantine", program_quarantining, half_swept, { trial_sweep } },
    { "sweep what was hidden and somebody has shown", program_in_place, quarantine_over_and_one_shown, { trial_sweep } },
    { "sweep what a dead worker left hidden",        program_in_place, half_swept, { trial_sweep } },
    { "sweep what was copied before hiding was seen", program_in_place, half_copied, { trial_sweep } },
    { "restore what a worker has claimed",           NULL, half_swept, { restore_claimed, trial_sweep } },
    { "sweep with an object that cannot be deleted", NULL, one_failing, { program_sweep_partly, allow } },
    { "restore and sweep",                           NULL, six_marked, { restore_one, later, trial_sweep } },
    { "sweep what is due on some clocks only",       NULL, almost_due, { sweep_almost_due } },
    { "a worker that lost its lease",                NULL, three_due, { trial_stalled } },
};
/* clang-format on */
const size_t programs_of_users_n = sizeof programs_of_users / sizeof programs_of_users[0];
const size_t programs_of_sweeps_n = sizeof programs_of_sweeps / sizeof programs_of_sweeps[0];

void program_begin(const struct program *p, struct trial *t)
{
    if (t->kept_shared != NULL) {
        trial_bring_back(t);
        return;
    }
    trial_begin(t);
    if (p->configure != NULL) p->configure(t);
    trial_open(t);
    p->prepare(t);
    t->shared->step = 0;
    if (!t->memory) trial_keep(t);
    trial_close(t);
}

int program_run(const struct program *p, struct trial *t)
{
    int r = 0;
    while (r == 0 && t->shared->step < PROGRAM_STEPS_MAX && p->steps[t->shared->step] != NULL) {
        r = p->steps[t->shared->step](t);
        if (r == 0) t->shared->step++;
    }
    return r;
}
