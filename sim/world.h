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
#include "uploads.h"
#include "verb.h"

#define SIM_NODES   4
#define SIM_FILES   40 /* uploads that users begin */
#define SIM_TXNS    5
#define SIM_TENANTS 2
#define SIM_PENDING 24 /* commands that somebody may give again */
#define SIM_LINE    400

#define SIM_STALE_MS (30 * RP_MINUTE_MS) /* a run's lock may be taken then */

/* Retentions: how often one is given, and the run that was begun or resumed last (retain.c). */
struct sim_retaining {
    struct rp_retention_config config;
    struct sim_random random;
    int chance;        /* in 10,000 commands, before all has healed */
    int64_t run, died; /* died: one whose node did */
    int64_t fence;
    int holder;      /* who has it: node and life; 0: not known */
    int64_t done_ms; /* true time of the last that was done; 0: none */
};

/* Safety nets (net.c). */
struct sim_netting {
    struct sim_random random;
    int chance; /* in 10,000 commands */
};

/* The owner record's epoch, and since when: in true time. */
struct sim_record {
    int64_t epoch, at_ms;
};

struct sim {
    /* ---- of the process: sim_open makes it, and a run takes back what it did to it ---- */
    struct rp_clock db;
    struct rp_db *inner;
    struct bucket *bucket, *elsewhere;
    struct model *model; /* as of now */
    int64_t store_id, tenants[SIM_TENANTS];
    char catalog_id[40];

    /* ---- of a run: nothing when it begins ---- */
    uint64_t seed;
    int64_t now_ms; /* true time: nobody in the world can read it */
    uint64_t steps, steps_max, jumps;
    struct sim_random order, luck; /* who goes on; how things are set up */
    int switching;                 /* how often, in 10,000, another node goes on */
    bool ending;                   /* nobody begins anything new */
    struct sim_faults faults;
    struct rp_buf *trace;     /* NULL: nobody looks */
    char violation[SIM_LINE]; /* the first; "": none */
    uint64_t violated_at;

    /* how it is set up */
    enum bucket_kind kind;
    struct rp_store_config config;
    struct rp_upload_rules uploads;
    struct rp_purge_rules rules;
    struct sim_retaining retaining;
    struct sim_netting netting;
    struct sim_services services;

    /* clocks, nodes, and the catalog's place */
    struct sim_clock db_clock, store_clock;
    int64_t wrong_least_ms, wrong_most_ms; /* how wrong the hosts' clocks were when it was noted what they say */
    struct sim_node nodes[SIM_NODES];
    struct sim_node *running; /* NULL: the scheduler */
    struct sim_home home;
    struct sim_past past;

    /* what users have begun, and may ask again */
    struct sim_file files[SIM_FILES];
    size_t n_files;
    struct sim_txn txns[SIM_TXNS];
    size_t n_txns;
    struct sim_command again[SIM_PENDING];
    size_t n_again;
    bool referenced[SIM_KEYS];

    /* what happened to the bucket, in truth */
    struct sim_record record;
    uint64_t sent, returns;    /* uploads of users, and copies back from quarantine, so far */
    bool by_user[SIM_UPLOADS]; /* of an upload's serial: it is a user's, not a copy of ours */
    int uploads_of[SIM_KEYS];
    bool taken[SIM_KEYS];    /* somebody took a plain object away */
    bool reused;             /* a key, for other bytes or the same; or it looks so (users.c, note_doubt) */
    bool misled[SIM_NODES];  /* whose handle leads elsewhere */
    int64_t strict_until_ms; /* nothing may be deleted until then */
    bool lied;               /* it has said something untrue: what is left behind for that is not ours */
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
