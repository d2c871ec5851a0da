/* SPDX-License-Identifier: Apache-2.0 */
/* figures.h - what a run has done so far: counted with every batch, kept with the run, and part of
 * its record. */
#ifndef RP_CORE_RUN_FIGURES_H
#define RP_CORE_RUN_FIGURES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RP_RUN_ERRORS_MAX 10
#define RP_SUBJECT_TEXT   1200

/* What a retention let go of one kind, or a safety net repaired. */
#define RP_LET_GO_MAX 12
struct rp_let_go {
    char what[24];
    int64_t rows;
};

struct rp_figures {
    int64_t scanned, marked, purged, already_gone, skipped, failed, bytes_freed;
    int64_t superseded;                                    /* a newer upload stands there: their marks are reprieved */
    int64_t restored, already_restored, returned, refused; /* of a restore */
    int64_t aged, age_sum_s;                               /* for the average age of the marks that were looked at */
    int64_t oldest_age_s, largest_bytes;
    char oldest[RP_SUBJECT_TEXT], largest[RP_SUBJECT_TEXT];
    char errors[RP_RUN_ERRORS_MAX][256];
    int64_t n_errors; /* all of them, also those not kept */
    struct rp_let_go let_go[RP_LET_GO_MAX];
    size_t n_let_go;
    bool repairs;   /* let_go is what was repaired */
    int64_t behind; /* of a safety net: readers of the feed */
    /* of a sweep: what still waited in its stores when it ended, of what people and rules marked */
    bool has_waiting;
    int64_t waiting, waiting_bytes, waiting_age_sum_s, waiting_oldest_s;
};
/* That many more rows of this kind; 0 makes it known. */
void rp_figures_let_go(struct rp_figures *figures, const char *what, int64_t rows);
/* {"marks":N,...}: what a retention let go (a safety net repaired), or would. */
json_t *rp_let_go_json(const struct rp_figures *figures);
void rp_figures_error(struct rp_figures *figures, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* One more mark was looked at. */
void rp_figures_see(struct rp_figures *figures, const char *store, const char *key, int64_t age_ms, int64_t size_bytes);
/* As the members of a run's record; `restores`: with the counts of a restore. */
void rp_figures_to_json(const struct rp_figures *f, bool restores, json_t *o);
/* What rp_figures_to_json wrote; of more errors than are kept, those that are. */
void rp_figures_from_json(const json_t *o, struct rp_figures *f);

#endif
