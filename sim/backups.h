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

struct sim;
struct model_file;

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
