/* SPDX-License-Identifier: Apache-2.0 */
/* sim.h - one run of the simulator: a small world in one thread, in time of its own, decided by
 * a seed.
 *
 * The core and the catalog are those of the product; SQLite keeps the catalog in memory.
 * Simulated are the bucket (bucket.h), the clocks,
 * the users' databases, memory that runs out, and all that can fail.
 *
 * N1  A node is a process: a coroutine with a connection and a store handle of its own.
 *     Before every call that leaves the core it may be
 *     put aside and another one goes on - never inside a transaction, for SQLite has one writer
 *     and others would only wait for it.
 * N2  A crash makes every later call of the node fail without effect until what it was doing
 *     has unwound: seen from outside that
 *     is a process that stopped there. Then it forgets everything and starts again.
 * N3  Every change that a transaction commits is read back (journal.c) and judged before
 *     anything else happens: by which node, during
 *     which command, at what time of which clock. The judge (judge.c) keeps a model of its own
 *     of marks, files and holds, made of these changes
 *     alone, and asks of each: was it asked for, was it allowed? The bucket tells it of every
 *     byte that goes (B3).
 * N4  Users (users.c) note what they were told. An answer must be true, then and later.
 * N5  First comes trouble, then everything heals, time passes, and what must happen in the
 *     end must have happened (heal.c).
 * N6  The same seed gives the same run, whatever else the process did before. */
#ifndef RP_SIM_SIM_H
#define RP_SIM_SIM_H

#include "base/buf.h"
#include "base/error.h"
#include "base/time.h"
#include "bucket/bucket.h"
#include "catalog/catalog.h"
#include "catalog/file/file.h"
#include "core/file/file.h"
#include "core/purge/purge.h"
#include "core/run.h"
#include "core/store.h"
#include "faults.h"
#include "model.h"

#define SIM_START_MS    INT64_C(1800000000000)
#define SIM_NODES       4
#define SIM_KEYS        8  /* plain objects */
#define SIM_FILES       40 /* uploads that users begin */
#define SIM_TXNS        5
#define SIM_TENANTS     2
#define SIM_PENDING     24 /* commands that somebody may give again */
#define SIM_LINE        400
#define SIM_UPLOADS     8192
#define SIM_UNDONE      4000
#define SIM_LATE_PUT_MS (10 * RP_HOUR_MS) /* no upload is under way for longer */
#define SIM_LATE_MS     (20 * RP_HOUR_MS) /* no other request: what was returned is looked at after a day */

struct sim_clock {
    int64_t ahead_ms, frozen_at_ms; /* frozen_at 0: it goes */
    int64_t ppm;
};

enum sim_verb {
    VERB_NONE,
    VERB_START, /* a node opens its catalog and its store */
    VERB_MARK,
    VERB_RESTORE,
    VERB_SWEEP,
    VERB_HOLD,
    VERB_LIFT,
    VERB_DEAD,
    VERB_RECOVER,
    VERB_IMPORT,
    VERB_INIT,
    VERB_PUT,
    VERB_CONFIRM,
    VERB_DELETE,
    VERB_UNDELETE,
    VERB_RETURN, /* from quarantine, by its mark */
    VERB_RESULT,
    VERB_BEGIN,
    VERB_COMMIT,
    VERB_ABORT,
    VERB_QUOTA,
    VERB_CLOCK, /* somebody accepts the time of this node's host */
    VERBS
};
const char *sim_verb_name(enum sim_verb verb);

/* A command as a user gives it; given again, it is the same one. */
struct sim_command {
    enum sim_verb verb;
    size_t keys[3], n_keys; /* plain objects */
    size_t file, txn;       /* of the users' lists; SIZE_MAX: none */
    int64_t grace_ms;
    bool if_unreferenced, annotate, flag;
    int body; /* which body goes with the Idempotency-Key */
    int given;
};

/* What a user knows of an upload. */
struct sim_file {
    size_t tenant, parent, source, replaces, txn; /* SIZE_MAX: none */
    char name[16], text[48], key[RP_FILE_KEY_TEXT];
    char answer[160]; /* to its init, word for word */
    int64_t id, mark_id, due_at_ms;
    int64_t url_ends_ms, sent_at_ms; /* true times */
    bool begun, put, late;           /* late: its bytes are still under way */
};
struct sim_txn {
    size_t tenant;
    char answer[32];
    int64_t id;
    bool begun;
};

/* What the catalog lives in. */
struct sim_vessel {
    bool is_server;
    int place, timeline;
};
/* How the catalog stood when it was saved (backups.c). */
struct sim_backup {
    int64_t at_ms, epoch; /* at 0: there is none */
    int64_t seen_epoch;   /* of the record, when it was looked at last */
    size_t n_files, n_txns;
    uint64_t serial; /* of the last upload */
    struct sim_vessel noted;
    bool is_owner; /* the catalog has raised its epoch, and the record was its own */
    bool soon;     /* it will be put back right away, perhaps */
};
struct sim;
struct sim_task;

struct sim_node {
    struct sim *sim;
    int index, life; /* life: grows with every start */
    struct sim_task *task;
    bool dead;
    int64_t wakes_at_ms;
    struct sim_clock clock;
    struct rp_clock host;
    struct rp_boot boot;  /* each node has a host of its own */
    int64_t booted_ms;    /* true time */
    int64_t booted_at_ms; /* as the process knows it */
    int boots;
    bool anchored; /* the catalog knows what the clocks said in this boot */
    struct rp_catalog *catalog;
    struct rp_backend *backend;
    struct rp_store_config config;
    struct rp_store store;
    struct rp_raises *raises; /* as a session has them (lib/session.h) */
    struct rp_raise_hook raise_hook;
    struct rp_worker worker;
    struct rp_run run; /* of the continuous sweep; id 0: none */
    struct sim_command command;
    int64_t began_ms;         /* true time */
    int64_t host_at_begin_ms; /* its own clock */
    int64_t late_at_begin_ms; /* the latest of the clocks when the command began */
    int64_t early_ms;         /* the latest moment, during the command, that all clocks had passed */
    unsigned put_backs_at_begin;
    size_t late_at_begin; /* requests that waited */
    uint64_t began_at, jumps_at_begin, serial, sent_at_begin,
        returns_at_begin; /* steps, jumps, uploads (the users' too), copies back, when the command began */
    int holds_made;
    bool kept;              /* the command kept something alive */
    int64_t raised_host_ms; /* its clock, when it last raised the epoch in this life; 0: it has not */
    int64_t epoch_at_begin; /* the catalog's */
    int64_t kept_ms;        /* when the last such command of this life began; 0: there was none */
    int deleted_at_begin;   /* how often the command's file had been deleted */
    bool wrong_tenant;
    bool owned;         /* the store that it reaches was ours at some moment of the command */
    bool known_ours;    /* the catalog knew when the command began that the bucket is its own */
    int refs[SIM_KEYS]; /* what the guard said in this command; -1: nothing */
    int unresolved;     /* how often the database cannot be asked yet */
    int64_t outage_ends_ms;
    struct sim_random random; /* of its users */
};

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
    int64_t record_host_ms[SIM_NODES];  /* and by the clocks of the nodes */
    uint64_t sent, returns;             /* uploads of users, and copies back from quarantine, so far */
    bool by_user[SIM_UPLOADS];          /* of an upload's serial: it is a user's, not a copy of ours */
    bool misled[SIM_NODES];             /* whose handle leads elsewhere */
    enum bucket_kind kind;
    struct rp_store_config config;
    struct rp_upload_rules uploads;
    struct rp_purge_rules rules;
    int64_t store_id, tenants[SIM_TENANTS];
    bool referenced[SIM_KEYS];
    int uploads_of[SIM_KEYS];
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
    bool lied;                 /* the bucket has said something untrue: what is left behind for that is not ours */
    struct rp_buf *trace;      /* NULL: nobody looks */
    char violation[SIM_LINE];  /* the first; "": none */
    uint64_t violated_at;
};

/* ---- the world (world.c); one process makes many runs in it ---- */
struct sim *sim_open(void);
void sim_close(struct sim *s);
/* One whole run. False: a promise was broken, s->violation says which. */
bool sim_run(struct sim *s, uint64_t seed, uint64_t without, uint64_t steps, struct rp_buf *trace);

/* ---- time and tasks (task.c) ---- */
int64_t sim_clock_read(const struct sim *s, const struct sim_clock *clock);
int64_t sim_host_ms(const struct sim_node *n);
int64_t sim_db_ms(const struct sim *s);
int64_t sim_store_ms(const struct sim *s);
void sim_tasks_start(struct sim *s, void (*work)(struct sim_node *node));
/* Lets nodes go on until none is left. */
void sim_tasks_run(struct sim *s);
/* The running node is put aside for so long; 0: others may go first. The scheduler's own time
 * passes otherwise. */
void sim_sleep(struct sim *s, int64_t ms);
/* Before a call of the running node: counts a step, lets time pass and others run. False: the
 * node is dead. */
void sim_note_clocks(struct sim_node *n); /* what all clocks have passed by now */
/* Bounds of the time by the boot clock of any host: catalog/clock.h. */
int64_t sim_boot_time_least_ms(const struct sim *s);
int64_t sim_boot_time_most_ms(const struct sim *s);
void sim_note_wrong(struct sim_node *n); /* what its clock says may be taken for right now */
bool sim_step(struct sim_node *n, bool may_switch, const char *call);

/* ---- nodes (node.c) ---- */
void sim_node_work(struct sim_node *n);                               /* what a node does all its life */
void sim_node_begin(struct sim_node *n, const struct sim_command *c); /* what is judged counts from here */
void sim_node_close(struct sim_node *n);
int sim_node_open(struct sim_node *n, struct rp_error *err);
/* The epoch is raised now. */
void sim_raise(struct sim_node *n);
bool sim_node_is_up(const struct sim_node *n); /* or about to be */
/* Its command began in a catalog that was put back since. */
bool sim_is_stale(const struct sim_node *n);
/* Nobody hears what it answers: it is dead, or stale. */
bool sim_is_unheard(const struct sim_node *n);

/* ---- commands (users.c, uploads.c, sweeps.c) ---- */
/* The next command that somebody gives to this node. */
void sim_choose(struct sim_node *n, struct sim_command *out);
/* Gives it; notes what was heard. Returns the code of the answer. */
int sim_give(struct sim_node *n);
int sim_give_mark(struct sim_node *n);
int sim_give_restore(struct sim_node *n);
int sim_give_hold(struct sim_node *n);
int sim_give_lift(struct sim_node *n);
int sim_give_dead(struct sim_node *n);
int sim_give_recover(struct sim_node *n);
int sim_give_import(struct sim_node *n);
int sim_give_quota(struct sim_node *n);
int sim_give_clock(struct sim_node *n);
int sim_give_sweep(struct sim_node *n);
int sim_give_init(struct sim_node *n);
int sim_give_put(struct sim_node *n);
int sim_give_confirm(struct sim_node *n);
int sim_give_file(struct sim_node *n); /* delete, undelete, return, result */
int sim_give_txn(struct sim_node *n);  /* begin, commit, abort */
const char *sim_key(size_t i);
/* Somebody uploads under a plain key, beside us. */
void sim_upload(struct sim *s, size_t key, bool same_bytes);
/* Bytes of an upload arrive at last. */
void sim_put_arrives(struct sim *s, size_t file);

/* ---- what goes wrong without anybody's call (weather.c) ---- */
void sim_weather(struct sim *s);
void sim_heal_weather(struct sim *s);

/* ---- backups of the catalog, and where it lies (backups.c, U1 to U5) ---- */
void sim_vessel_choose(struct sim *s);
void sim_back_up(struct sim *s);
void sim_put_back(struct sim *s);
/* Something of this key was decided in a catalog that was put back since. */
bool sim_is_undone(const struct sim *s, const char *key);
/* After a commit of a recovery. */
void sim_note_recovered(struct sim *s);

/* ---- whose store it is (owner.c) ---- */
/* Whether the owner record that this node finds names our catalog, no later epoch than the
 * catalog's, and a stamp that it drew, and the catalog lies where it did. */
bool sim_owns(const struct sim *s, const struct sim_node *n);
/* Whether the catalog drew this record's stamp, or has seen a later record (src/core/owner/stamps.h). */
bool sim_drew(const struct sim *s, const char *record);
int64_t sim_catalog_epoch(const struct sim *s);
/* The owner record's, noted with the moment of its change; -1: there is none. */
int64_t sim_record_epoch(struct sim *s);
bool sim_is_known_ours(struct sim *s);

/* ---- judging ---- */
/* After a commit of this node: everything that it changed, in order (journal.c). */
void sim_journal_prepare(void); /* before the connection is opened */
void sim_journal_make(struct sim *s);
void sim_journal_begin(void);
bool sim_journal_is_empty(void);
void sim_journal_read(struct sim *s, struct sim_node *n);
/* Bytes went away (judge.c). */
void sim_judge_gone(struct sim *s, struct sim_node *n, const struct bucket_object *object, bool overwritten);
void sim_judge_returned(struct sim *s); /* in the end, of plain objects */
void sim_judge_hidden(struct sim *s);   /* likewise */
/* What stood under the key was returned from quarantine, and its copy there waits to be looked at. */
bool sim_is_owed(struct sim *s, const char *key);
/* A request of a sweep about this key is sent now. */
void sim_judge_sent(struct sim *s, const struct sim_node *n, const char *key);
/* A plain object may be lost there, and nobody has accepted that. `reused`: write-once keys were
 * seen
 * to change (judge.c). */
bool sim_is_weak(const struct sim *s, bool reused);
/* A node has said that something is kept alive: a catalog put back from a backup made before would be behind. */
void sim_judge_kept(struct sim_node *n);
/* It has raised what was to be raised: so would one put back that has only what came within that minute. */
void sim_judge_once_more(struct sim_node *n);
int sim_holder(const struct sim_node *n); /* node and life, in one number */
/* The questions of tests/lib/invariants.h, and those of the end (check.c). */
void sim_check(struct sim *s, bool healed);

/* The first violation counts; the run ends. */
void sim_violate(struct sim *s, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void sim_say(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_see(struct sim *s, enum sim_sight sight);

/* ---- memory that runs out (memory.c) ---- */
/* The n-th allocation of our code from now on fails; 0: none. */
void sim_memory_fail(int64_t nth);
bool sim_memory_failed(void); /* since the last call of sim_memory_fail */
void sim_pool_use(void);      /* SQLite's own memory (pool.c) */

#endif
