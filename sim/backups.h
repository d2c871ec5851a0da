/* SPDX-License-Identifier: Apache-2.0 */
/* backups.h - backups of the catalog, put back at any moment, and where it lies (U1 to U5 of
 * backups.c). */
#ifndef RP_SIM_BACKUPS_H
#define RP_SIM_BACKUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Where the catalog lies. */
struct sim_home {
    struct sim_vessel vessel, noted; /* noted: where it says that it does; place 0: nowhere */
    bool fails_over;                 /* catalog.failover: synchronous */
    bool moved;                      /* it lies in another vessel than it noted, and nobody has recovered it since */
    bool lossless;                   /* ... and has lost nothing */
};

#define SIM_UPLOADS 8192
#define SIM_UNDONE  4000

/* The last backup, and what was forgotten whenever one was put back. */
struct sim_past {
    struct sim_backup backup;
    struct model *saved; /* as of the backup */
    unsigned put_backs;
    bool rolled_back;          /* one was put back */
    bool rolling;              /* one is about to be, as soon as all nodes are down */
    bool put_back_moves;       /* ... to another place */
    struct model_mark *undone; /* decided in a catalog that was put back since; SIM_UNDONE of them */
    size_t n_undone;
    bool unknown[SIM_UPLOADS]; /* of an upload's serial: made for a catalog that was put back since */
    bool unasked;              /* it took an answer to a call that it does not know of */
};

struct sim;
struct model;
struct model_file;
struct model_mark;

void sim_vessel_choose(struct sim *s);
void sim_back_up(struct sim *s);
void sim_put_back(struct sim *s);
/* Something of this key was decided in a catalog that was put back since. */
bool sim_is_undone(const struct sim *s, const char *key);
/* An old catalog does not know that it was purged or hidden, and a restore of it does not look. */
bool sim_may_lack_bytes(const struct sim *s, const struct model_file *f);
/* After a commit of a recovery. */
void sim_note_recovered(struct sim *s);

#endif
