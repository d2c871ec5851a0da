/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - a catalog, a store and a worker to try the rules on: SQLite or PostgreSQL, objects in
 * memory or in a directory.
 *
 * W1  The store that the rules see counts every call and asks `before` and `after` (when set)
 *     around each, as rp_backend_fault_wrap does: NULL as key stands for the call as a whole.
 * W2  Time passes by moving what the catalog remembers into the past (world_pass): it works on both
 *     engines, whose clock nobody can set, and beside a store that has its own. The clocks of host
 *     and database can be put apart with ahead_ms.
 * W3  Everything here ends the test when it fails and is for the test's own thread, unless it says
 *     otherwise. */
#ifndef RP_TESTS_LIB_WORLD_H
#define RP_TESTS_LIB_WORLD_H

#include <stdatomic.h>

#include "base/error.h"
#include "base/time.h"
#include "catalog/audit/audit.h"
#include "core/file/file.h"
#include "core/mark/mark.h"
#include "core/reprieve/reprieve.h"
#include "core/sweep/sweep.h"
#include "lib/dbs.h"
#include "lib/fault_db.h"

enum world_store { WORLD_MEMORY, WORLD_FS };

enum world_call {
    WORLD_PUT,
    WORLD_GET,
    WORLD_STAT,
    WORLD_REMOVE,
    WORLD_COPY,
    WORLD_ANNOTATE,
    WORLD_OTHER,
    WORLD_CALLS
};

struct world {
    struct dbs dbs; /* dbs.db is a connection of the test's own, for looking and for tampering */
    struct rp_clock host_clock, db_clock;
    _Atomic int64_t host_ahead_ms, db_ahead_ms; /* of the real time; the second on SQLite only */
    struct rp_catalog *catalog;                 /* lane 0 */
    struct rp_backend *inner;                   /* the store itself, uncounted */
    char root[96];                              /* its directory */
    struct rp_store_config config;              /* "main", mode purge, any grace */
    struct rp_store store;
    struct rp_worker worker;
    struct rp_purge_rules rules; /* batches of 100, 3 attempts */
    _Atomic int64_t calls[WORLD_CALLS];
    struct rp_upload_rules uploads; /* 1 h, 100,000 bytes a tenant, 1,000 a file, 1 h for a transaction, no scan */
    struct rp_store *stores[1];     /* of the commands over files */
    _Atomic int64_t removed;        /* objects that the store was asked to delete */
    int (*before)(void *ctx, const char *call, const char *key, struct rp_error *err);
    int (*after)(void *ctx, const char *call, const char *key, struct rp_error *err);
    void *ctx;
    struct rp_arena arena; /* of what the functions below return */
};

void world_make(struct world *w, enum dbs_kind kind, enum world_store store);
void world_drop(struct world *w);
/* A world of its own for each test, in *state. Before, *state says which: WORLD_SQLITE or
 * WORLD_POSTGRES, | WORLD_FILES for objects in a directory. world_tear_down checks the world
 * (world_check), whatever a test did; world_leave does not, for tests that break it. */
enum world_kind { WORLD_SQLITE = 0, WORLD_POSTGRES = 1, WORLD_FILES = 2 };
int world_set_up(void **state);
int world_tear_down(void **state);
int world_leave(void **state);
/* Another connection to the catalog, with its own lane; through `fault` unless that is NULL. Close
 * it yourself. */
struct rp_catalog *world_catalog(struct world *w, int lane, const struct rp_db_fault *fault);
void world_pass(struct world *w, int64_t ms);
void world_days(struct world *w, int days); /* and a few hours; each ends with a sweep that must succeed */

/* `r` must be 0; otherwise says where, and the error's words. */
void world_ok(int r, const struct rp_error *err, const char *file, int line);
#define ok(r) world_ok((r), &err, __FILE__, __LINE__)

/* ---- objects ---- */

/* With a content type, a cache-control header and two fields of user metadata. */
void world_put(struct world *w, const char *key, const char *text);
/* n objects "many/00000", "many/00001", ... of `n_bytes` each. */
void world_put_many(struct world *w, size_t n, size_t n_bytes);
bool world_exists(struct world *w, const char *key);
/* The bytes, or NULL. */
const char *world_text(struct world *w, const char *key);
/* A header or a field of user metadata, NULL without. */
const char *world_field(struct world *w, const char *key, const char *name);
void world_remove(struct world *w, const char *key); /* behind everybody's back */
/* The object is there, as world_put left it. */
void world_expect_object(struct world *w, const char *key, const char *text);

/* ---- verbs, on w->catalog ---- */

struct rp_mark_answer world_mark(struct world *w, const char *key, int64_t grace_ms);
void world_mark_many(struct world *w, size_t n, int64_t grace_ms); /* what world_put_many put; all must be new marks */
struct rp_reprieve_answer world_restore(struct world *w, const char *key);
/* The newest mark of the subject, as it stands now. */
struct rp_mark world_newest(struct world *w, const char *key);
/* A sweep of the place as a run named "main" (or `name`), which must begin; the outcome is the
 * result's. */
struct rp_sweep_result *world_sweep(struct world *w);
struct rp_sweep_result *world_swept(struct world *w, int64_t purged); /* the same; it must succeed, and purge so many */
void world_expect_sweep(struct world *w, int64_t purged, int64_t already_gone, int64_t skipped); /* and fails none */
/* An object that a purge has moved to quarantine; and where its copy lies, until the next call. */
void world_move_to_quarantine(struct world *w, const char *key, const char *text);
const char *world_aside_key(struct world *w, const char *key);
struct rp_sweep world_sweeper(struct world *w, struct rp_catalog *catalog, const char *name);

/* One sweep step by step: begin, then rp_purge_claim, _check, _look, _quarantine, _erase, _finish
 * as the test likes, then end. */
struct world_steps {
    struct rp_run run;
    struct rp_purge_batch batch;
    int64_t from_ms;
};
void world_steps_begin(struct world *w, struct rp_catalog *catalog, const char *name, struct world_steps *s);
void world_steps_claim(struct world *w, struct rp_catalog *catalog, struct world_steps *s);
void world_steps_erase(struct world *w, struct rp_catalog *catalog,
                       struct world_steps *s); /* check, look, quarantine, erase */
void world_steps_done(struct world_steps *s);  /* memory only */

/* ---- looking ---- */

int64_t world_number(struct world *w, const char *sql); /* the integer that a query answers with; 0 for NULL */
void world_script(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* After a script that has changed marks: the tally is what it counts. */
void world_count_anew(struct world *w);
void world_unlock(struct world *w);          /* SQLite: takes away what protects tables from being edited */
void world_end_connections(struct world *w); /* PostgreSQL: ends every connection of this test but the one that asks */
int64_t world_count(struct world *w, enum rp_state state); /* marks in a state, counted */
/* What must hold whatever happened: tallies are what counting gives, final marks wait for nothing
 * and others do, a subject has one active mark, dead marks and open letters belong together, runs
 * without lock have their record, every chain verifies. And of files: QUOTA-EXACT, one living file
 * a name, statuses fit their marks and their ledger rows, transactions are all or nothing. */
void world_check(struct world *w);

#endif
