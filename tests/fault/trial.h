/* SPDX-License-Identifier: Apache-2.0 */
/* trial.h - a small world that can be run a thousand times: a catalog file, a store, users, three
 * clocks, and one fault at a chosen point.
 *
 * T1  Every hook of both fault wrappers is a point, counted from 1: one before and one after each
 *     call of the database or the store, and for a delete around each item. A run without fault
 *     tells how many there are, and of which kind.
 * T2  A fault happens at one point (an outage from there on). What users were told lives in memory
 *     that a dying process shares.
 * T3  Nothing waits: the pauses between tries are taken out, and threads are refused, so that the
 *     points come in the same order every time. Code that wants a thread must do without one.
 * T4  A verb below is a command as a user gives it: 0 if it answered that all is well, negative if
 *     a user would give it again. Given again after it was done, it is 0 as well. */
#ifndef RP_TESTS_FAULT_TRIAL_H
#define RP_TESTS_FAULT_TRIAL_H

#include "base/text/buf.h"
#include "base/time.h"
#include "core/file/file.h"
#include "core/owner/raise.h"
#include "core/purge/purge.h"
#include "core/run/run.h"
#include "core/store.h"
#include "lib/invariants.h"

#define TRIAL_POINTS_MAX 2000
#define TRIAL_START_MS   INT64_C(1800000000000)
#define TRIAL_BATCH      5
#define TRIAL_ATTEMPTS   3

enum trial_fault {
    FAULT_NONE,
    FAULT_BEFORE,     /* the call fails and does nothing */
    FAULT_OUTAGE,     /* and so does every call after it, until the faults stop */
    FAULT_AFTER,      /* the call does its work, then says that it failed; a commit is asked about at once */
    FAULT_RESOLVE,    /* a commit's answer is lost, and the first three times the database cannot be asked */
    FAULT_UNRESOLVED, /* ... it can never be asked */
    FAULT_DEATH       /* the process ends here */
};

struct trial_plan {
    enum trial_fault fault;
    int code; /* what a failing call returns */
    int at;   /* the point; 0: none */
};

/* What a statement does inside a transaction is undone with it: nothing of it is there to be lost
 * after it, and to die in the middle is to die before the commit. Begin and commit themselves are
 * not inside. */
enum trial_kind {
    POINT_DB,
    POINT_DB_DONE,
    POINT_INSIDE,
    POINT_INSIDE_DONE,
    POINT_COMMITTED,
    POINT_STORE,
    POINT_STORE_DONE
};
struct trial_point {
    enum trial_kind kind;
    char call[24];
};

/* Shared with the process that dies. */
struct trial_shared {
    struct inv_known known;
    int step;   /* where the program is */
    int points; /* passed so far */
    bool fired;
    struct trial_point point[TRIAL_POINTS_MAX];
    char trouble[1024];  /* violations that a step saw itself */
    char deny[INV_TEXT]; /* the key that the store refuses to delete */
};

struct trial {
    struct trial_shared *shared;
    char dir[64], url[96], root[96], saved[96], app[96], kept[96];
    struct trial_shared *kept_shared; /* NULL: nothing is kept */
    bool memory;                      /* the store is the one in memory, which outlives every reopening */
    bool hides;                       /* the store hides in place; a program says so before it is opened */
    bool blind;                       /* ... and was not seen to do so yet */
    struct trial_plan plan;
    bool armed;
    int resolves_left;
    struct rp_store_config config; /* of the store; a program changes it before it is opened */
    struct rp_clock host_clock, db_clock;
    struct rp_catalog *catalog;
    struct rp_backend *bare, *hiding, *watched, *faulty; /* hiding: NULL, or on top of the bare one */
    struct rp_raises *raises;
    struct rp_raise_hook raise_hook;
    struct rp_store store;
    struct rp_worker worker;
    struct inv_world world;
    struct rp_upload_rules uploads;
    struct rp_reference reference;
    struct rp_database_config database;
    struct rp_config whole;
};

struct trial *trial_new(bool memory);
void trial_free(struct trial *t);
/* An empty catalog and store, clocks at the start. Opens it. */
void trial_begin(struct trial *t);
void trial_open(struct trial *t);
/* Only what the invariants and the fingerprint look through. */
void trial_open_ours(struct trial *t);
void trial_close(struct trial *t);
/* As a new process would: everything but the connection of the invariants. Works from any state,
 * and disarms. */
void trial_reopen(struct trial *t);
/* Keeps the world as it is now, and brings it back. Both leave it closed. Only with a directory
 * store: objects are linked, not copied, so that they keep their identity. */
void trial_keep(struct trial *t);
void trial_bring_back(struct trial *t);
void trial_arm(struct trial *t, const struct trial_plan *plan);
void trial_disarm(struct trial *t);
void trial_advance(struct trial *t, int64_t ms);
/* Another file for the catalog: kept, and put back. Both close and open it. */
void trial_save_catalog(struct trial *t);
void trial_roll_back_catalog(struct trial *t);

/* ---- users ---- */
struct trial_marking {
    size_t first, n; /* subjects */
    int64_t grace_ms;
    bool if_unreferenced, annotate;
};
void trial_subjects(struct trial *t, size_t n); /* uploads s00, s01, ... */
int trial_mark(struct trial *t, const struct trial_marking *marking);
int trial_restore(struct trial *t, size_t first, size_t n);
int trial_sweep(struct trial *t);
int trial_hold(struct trial *t, size_t subject); /* SIZE_MAX: everything */
int trial_lift(struct trial *t);
int trial_recover(struct trial *t);
int trial_dead(struct trial *t, bool retry);
/* The store refuses to delete subject `i` from now on; SIZE_MAX: nothing. */
void trial_deny(struct trial *t, size_t i);
/* Another system's rows, which name keys: subject `i` is referenced, or no longer. */
void trial_refer(struct trial *t, size_t i, bool referenced);
/* Somebody else's owner record. */
void trial_usurp(struct trial *t);
/* A run of a worker whose lease ends while it works, and of another one that takes over. */
int trial_stalled(struct trial *t);
/* A run whose worker is gone: everything is erased, nothing is finished, its lease and its lock are
 * over. */
int trial_half_done(struct trial *t);

/* ---- uploads; files are numbered as they are told of ---- */

struct trial_upload {
    const char *name;
    size_t parent, source, replaces; /* 1 + the file; 0: none */
    size_t txn;                      /* 1 + the transaction; 0: none */
};
/* The next file, which its user is about to begin. */
size_t trial_file(struct trial *t, const struct trial_upload *upload);
int trial_init(struct trial *t, size_t i); /* with an Idempotency-Key of its own */
int trial_put(struct trial *t, size_t i);
int trial_confirm(struct trial *t, size_t i);
int trial_delete(struct trial *t, size_t i, int64_t grace_ms);
int trial_undelete(struct trial *t, size_t i);
/* By the mark that it was deleted with: for what lies in quarantine. */
int trial_return(struct trial *t, size_t i);
int trial_txn_begin(struct trial *t); /* the first, with an Idempotency-Key of its own */
int trial_commit(struct trial *t);
int trial_abort(struct trial *t);

/* Time passes, sweeps run, until nothing is due. Negative: they did not get there. */
int trial_heal(struct trial *t);
/* All that decides what happens from here on: the catalog's rows, the store's objects, what users
 * know. Two worlds with the same fingerprint heal alike. */
void trial_fingerprint(struct trial *t, char out[RP_DIGEST_HEX]);
/* The invariants, and what the steps saw. Returns the number of lines. */
int trial_check(struct trial *t, enum inv_when when, struct rp_buf *out);

#endif
