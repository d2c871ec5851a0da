/* SPDX-License-Identifier: Apache-2.0 */
/* What users do with files and transactions, and what becomes of what they leave. */
#include "fault/programs.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/time.h"

enum { FIRST, SECOND, THIRD, FOURTH };

static size_t pending(struct trial *t, const struct trial_upload *upload)
{
    size_t i = trial_file(t, upload);
    program_must(trial_init(t, i));
    program_must(trial_put(t, i));
    return i;
}

static size_t live(struct trial *t, const struct trial_upload *upload)
{
    size_t i = pending(t, upload);
    program_must(trial_confirm(t, i));
    return i;
}

/* ---- worlds ---- */

static void nothing(struct trial *t)
{
    (void)trial_file(t, &(struct trial_upload){ .name = "a" });
}

static void one_begun(struct trial *t)
{
    (void)pending(t, &(struct trial_upload){ .name = "a" });
}

/* A living file with a thumbnail, and another upload of the same name. */
static void one_named_alike(struct trial *t)
{
    (void)live(t, &(struct trial_upload){ .name = "a" });
    (void)live(t, &(struct trial_upload){ .name = "thumbnail", .source = FIRST + 1 });
    (void)pending(t, &(struct trial_upload){ .name = "a" });
}

/* A file, a child, a pending child, and a stranger. */
static void a_family(struct trial *t)
{
    (void)live(t, &(struct trial_upload){ .name = "a" });
    (void)live(t, &(struct trial_upload){ .name = "b", .parent = FIRST + 1 });
    (void)pending(t, &(struct trial_upload){ .name = "c", .parent = FIRST + 1 });
    (void)live(t, &(struct trial_upload){ .name = "d" });
}

static void a_deleted_family(struct trial *t)
{
    a_family(t);
    program_must(trial_delete(t, FIRST, -1));
}

static void a_family_due(struct trial *t)
{
    a_deleted_family(t);
    trial_advance(t, 6 * RP_DAY_MS);
}

static void one_in_quarantine(struct trial *t)
{
    (void)live(t, &(struct trial_upload){ .name = "a" });
    program_must(trial_delete(t, FIRST, -1));
    trial_advance(t, 6 * RP_DAY_MS);
    program_must(trial_sweep(t));
}

static void two_abandoned(struct trial *t)
{
    (void)pending(t, &(struct trial_upload){ .name = "a" });
    size_t never_put = trial_file(t, &(struct trial_upload){ .name = "b" });
    program_must(trial_init(t, never_put));
    trial_advance(t, 2 * RP_HOUR_MS);
}

/* The first is erased, and its bytes come late. */
static void one_late(struct trial *t)
{
    (void)pending(t, &(struct trial_upload){ .name = "a" });
    trial_advance(t, 2 * RP_HOUR_MS);
    program_must(trial_sweep(t));
    program_must(trial_put(t, FIRST));
    trial_advance(t, 26 * RP_HOUR_MS);
}

static void abandoned_half_swept(struct trial *t)
{
    two_abandoned(t);
    program_must(trial_half_done(t));
}

/* One file is replaced by its id, one by its name. */
static void a_transaction(struct trial *t)
{
    (void)live(t, &(struct trial_upload){ .name = "a" });
    (void)live(t, &(struct trial_upload){ .name = "old" });
    program_must(trial_txn_begin(t));
    (void)pending(t, &(struct trial_upload){ .name = "a", .txn = 1 });
    (void)pending(t, &(struct trial_upload){ .name = "new", .txn = 1, .replaces = SECOND + 1 });
}

static void a_transaction_to_be(struct trial *t)
{
    (void)live(t, &(struct trial_upload){ .name = "a" });
    (void)trial_file(t, &(struct trial_upload){ .name = "a", .txn = 1 });
    (void)trial_file(t, &(struct trial_upload){ .name = "b", .txn = 1, .parent = SECOND + 1 });
}

/* ---- steps ---- */

static int init_first(struct trial *t)
{
    return trial_init(t, FIRST);
}

static int put_first(struct trial *t)
{
    return trial_put(t, FIRST);
}

static int confirm_first(struct trial *t)
{
    return trial_confirm(t, FIRST);
}

static int confirm_third(struct trial *t)
{
    return trial_confirm(t, THIRD);
}

static int delete_first(struct trial *t)
{
    return trial_delete(t, FIRST, -1);
}

static int delete_for_longer(struct trial *t)
{
    return trial_delete(t, FIRST, 20 * RP_DAY_MS);
}

static int restore_first(struct trial *t)
{
    return trial_undelete(t, FIRST);
}

static int return_first(struct trial *t)
{
    return trial_return(t, FIRST);
}

/* "expired" is an answer. Whoever hears "confirmed" instead counts on it. */
static int confirm_too_late(struct trial *t)
{
    int r = trial_confirm(t, FIRST);
    return r == RP_EEXPIRED ? 0 : r;
}

static int later(struct trial *t)
{
    trial_advance(t, 2 * RP_HOUR_MS);
    return 0;
}

static int add_members(struct trial *t)
{
    int r = trial_init(t, SECOND);
    if (r == 0) r = trial_init(t, THIRD);
    if (r == 0) r = trial_put(t, SECOND);
    return r < 0 ? r : trial_put(t, THIRD);
}

/* clang-format off */
const struct program programs_of_files[] = {
    { "begin an upload",                             NULL, nothing, { init_first, init_first } },
    { "upload and delete",                           NULL, nothing, { init_first, put_first, confirm_first, delete_first } },
    { "confirm an upload",                           NULL, one_begun, { confirm_first, confirm_first } },
    { "confirm an upload of a name that lives",      NULL, one_named_alike, { confirm_third } },
    { "delete a family",                             NULL, a_family, { delete_first, delete_first } },
    { "give a deleted family more time",             NULL, a_deleted_family, { delete_for_longer } },
    { "restore a family",                            NULL, a_deleted_family, { restore_first, restore_first } },
    { "delete a pending upload and sweep",           NULL, one_begun, { delete_first, later, trial_sweep } },
    { "recover a store with files",                  NULL, a_deleted_family, { trial_recover } },
    { "sweep a deleted family",                      NULL, a_family_due, { trial_sweep } },
    { "sweep a deleted family into quarantine",      program_quarantining, a_family_due, { trial_sweep } },
    { "restore a file from quarantine",              program_quarantining, one_in_quarantine, { return_first, return_first } },
    { "sweep a deleted family and hide it in place", program_in_place, a_family_due, { trial_sweep } },
    { "restore a file that is hidden in place",      program_in_place, one_in_quarantine, { return_first, return_first } },
    { "sweep abandoned uploads",                     NULL, two_abandoned, { trial_sweep } },
    { "sweep abandoned uploads into quarantine",     program_quarantining, two_abandoned, { trial_sweep } },
    { "sweep an upload that came late",              NULL, one_late, { trial_sweep } },
    { "sweep what a dead worker left of uploads",    NULL, abandoned_half_swept, { trial_sweep } },
    { "sweep what a dead worker left in quarantine", program_quarantining, abandoned_half_swept, { trial_sweep } },
    { "sweep and confirm",                           NULL, two_abandoned, { program_sweep_partly, confirm_too_late } },
    { "confirm late and sweep",                      NULL, two_abandoned, { confirm_too_late, trial_sweep } },
    { "commit a transaction",                        NULL, a_transaction, { trial_commit, trial_commit } },
    { "a transaction from its begin",                NULL, a_transaction_to_be, { trial_txn_begin, add_members, trial_commit } },
    { "abort a transaction",                         NULL, a_transaction, { trial_abort, trial_abort } },
};
/* clang-format on */
const size_t programs_of_files_n = sizeof programs_of_files / sizeof programs_of_files[0];
