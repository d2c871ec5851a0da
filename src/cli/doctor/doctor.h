/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.h - what `doctor` looks at, and how it says what it finds: a line each, with what to do
 * about it. cmd_doctor.c says in which order.
 *
 * D1  Nothing that needs no doctor is written: a store is probed by writing only in modes that
 *     write anyway.
 * D2  Urls and secrets are never shown. */
#ifndef RP_CLI_DOCTOR_DOCTOR_H
#define RP_CLI_DOCTOR_DOCTOR_H

#include "cli/cli.h"

#define RP_DOCTOR_LISTED_MAX 1000 /* of what is counted */

enum rp_verdict { RP_FINE, RP_DOUBTFUL, RP_WRONG };

struct rp_doctor {
    struct rp_cli *cli;
    char check[112]; /* what is looked at now: its name in the line */
    int warned, failed;
    bool over;    /* without this nothing else can be looked at */
    json_t *more; /* for programs, with the next line; NULL: nothing */
};

void rp_judge(struct rp_doctor *d, enum rp_verdict verdict, const char *remedy, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* It could not be found out. */
void rp_judge_error(struct rp_doctor *d, const struct rp_error *why, const char *remedy);

/* A check; the file that it stands in says more. */
typedef void rp_doctor_fn(struct rp_doctor *d);
rp_doctor_fn rp_doctor_config, rp_doctor_catalog, rp_doctor_vessel, rp_doctor_sessions, rp_doctor_clock;
rp_doctor_fn rp_doctor_files;
rp_doctor_fn rp_doctor_disk, rp_doctor_segments;
rp_doctor_fn rp_doctor_stores, rp_doctor_left_stores;
rp_doctor_fn rp_doctor_endpoints, rp_doctor_sinks, rp_doctor_processor;
rp_doctor_fn rp_doctor_dead, rp_doctor_pause, rp_doctor_runs;

void rp_doctor_room(struct rp_doctor *d, const struct rp_store_config *store); /* NULL: of the catalog's disk */
bool rp_doctor_probe(struct rp_doctor *d, struct rp_store *store);             /* false: it does not answer */

#endif
