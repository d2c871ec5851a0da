/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - one run of the simulator: a small world in one thread, in time of its own, decided by a
 * seed.
 *
 * The core and the catalog are those of the product; SQLite keeps the catalog in memory. Simulated
 * are the bucket (bucket.h), the clocks, the users' databases, memory that runs out, and all that
 * can fail.
 *
 * N1  A node is a process: a coroutine with a connection and a store handle of its own. Before
 *     every call that leaves the core it may be put aside and another one goes on - never inside a
 *     transaction, for SQLite has one writer and others would only wait for it.
 * N2  A crash makes every later call of the node fail without effect until what it was doing has
 *     unwound: seen from outside that is a process that stopped there. Then it forgets everything
 *     and starts again.
 * N3  Every change that a transaction commits is read back (journal.c) and judged before anything
 *     else happens: by which node, during which command, at what time of which clock. The judge
 *     (judge.c) keeps a model of its own of marks, files and holds, made of these changes alone,
 *     and asks of each: was it asked for, was it allowed? The bucket tells it of every byte that
 *     goes (B3).
 * N4  Users (users.c) note what they were told. An answer must be true, then and later.
 * N5  First comes trouble, then everything heals, time passes, and what must happen in the end must
 *     have happened (heal.c).
 * N6  The same seed gives the same run, whatever else the process did before. */
#ifndef RP_SIM_WORLD_H
#define RP_SIM_WORLD_H

#include "backups.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "bucket/bucket.h"
#include "config/config.h"
#include "core/file/file.h"
#include "core/purge/purge.h"
#include "faults.h"
#include "model.h"
#include "node.h"
#include "services.h"
#include "task.h"
#include "users.h"

#define SIM_NODES   4
#define SIM_FILES   40 /* uploads that users begin */
#define SIM_TXNS    5
#define SIM_TENANTS 2
#define SIM_PENDING 24 /* commands that somebody may give again */
#define SIM_LINE    400
#define SIM_UPLOADS 8192
#define SIM_UNDONE  4000

#define SIM_STALE_MS (30 * RP_MINUTE_MS) /* a run's lock may be taken then */

struct sim {
    uint64_t seed;
    int64_t now_ms; /* true time: nobody in the world can read it */
    uint64_t steps, steps_max, jumps;
    struct sim_faults faults;
    struct sim_random order, luck; /* who goes on; how things are set up */
    int switching;                 /* how often, in 10,000, another node goes on */
    bool ending;                   /* nobody begins anything new */
    struct sim_clock db_clock, store_clock;
    int64_t wrong_least_ms, wrong_most_ms; /* how wrong the hosts' clocks were when it was noted what they say */
    struct rp_clock db;
    struct rp_db *inner;
    struct bucket *bucket, *elsewhere;
    int64_t strict_until_ms;            /* nothing may be deleted until then */
    int64_t record_epoch, record_at_ms; /* the owner record's epoch, and since when: in true time */
    uint64_t sent, returns;             /* uploads of users, and copies back from quarantine, so far */
    bool by_user[SIM_UPLOADS];          /* of an upload's serial: it is a user's, not a copy of ours */
    bool misled[SIM_NODES];             /* whose handle leads elsewhere */
    enum bucket_kind kind;
    struct rp_store_config config;
    struct rp_upload_rules uploads;
    struct rp_purge_rules rules;
    struct rp_retention_config retention;
    struct sim_random letting_go;
    int retains;                       /* how often, in 10,000 commands, before all has healed */
    int64_t retaining, retaining_died; /* the run that was begun or resumed last; one whose node died */
    int64_t retaining_fence;
    int retainer;        /* who has it: node and life; 0: not known */
    int64_t retained_ms; /* true time of the last that was done; 0: none */
    struct sim_random netting;
    int nets; /* how often, in 10,000 commands, somebody begins a safety net */
    struct sim_services services;
    int64_t store_id, tenants[SIM_TENANTS];
    bool referenced[SIM_KEYS];
    int uploads_of[SIM_KEYS];
    bool reused; /* a key, for other bytes or the same */
    struct sim_node nodes[SIM_NODES];
    struct sim_node *running; /* NULL: the scheduler */
    struct sim_file files[SIM_FILES];
    size_t n_files;
    struct sim_txn txns[SIM_TXNS];
    size_t n_txns;
    struct sim_command again[SIM_PENDING];
    size_t n_again;
    struct sim_backup backup;
    struct model *model, *saved;     /* as of now; as of the backup */
    struct sim_vessel vessel, noted; /* where the catalog lies; where it noted that it does (place 0: nowhere) */
    bool fails_over;                 /* catalog.failover: synchronous */
    bool moved;    /* the catalog lies in another vessel than it noted, and nobody has recovered it since */
    bool lossless; /* ... and has lost nothing */
    unsigned put_backs;
    bool put_back_moves;
    struct model_mark undone[SIM_UNDONE]; /* decided in a catalog that was put back since */
    size_t n_undone;
    bool unknown[SIM_UPLOADS]; /* of an upload's serial: made for a catalog that was put back since */
    char catalog_id[40];
    bool rolled_back, rolling; /* the catalog was put back; it is about to be, as soon as all nodes are down */
    bool taken[SIM_KEYS];      /* somebody took a plain object away */
    bool unasked;              /* a catalog that was put back took an answer to a call that it does not know of */
    bool lied;                 /* the bucket has said something untrue: what is left behind for that is not ours */
    struct rp_buf *trace;      /* NULL: nobody looks */
    char violation[SIM_LINE];  /* the first; "": none */
    uint64_t violated_at;
};

/* One process makes many runs in it. */
struct sim *sim_open(void);
void sim_close(struct sim *s);
/* One whole run. False: a promise was broken, s->violation says which. */
bool sim_run(struct sim *s, uint64_t seed, uint64_t without, uint64_t steps, struct rp_buf *trace);

/* The first violation counts; the run ends. */
void sim_violate(struct sim *s, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void sim_say(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_see(struct sim *s, enum sim_sight sight);

#endif
