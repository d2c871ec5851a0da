/* SPDX-License-Identifier: Apache-2.0 */
/* steps.h - what a step is, the table of them, and what each is made of; for the files of this
 * folder. */
#ifndef RP_CORE_SAFETY_NET_STEPS_H
#define RP_CORE_SAFETY_NET_STEPS_H

#include "core/safety_net/safety_net.h"

/* How far a step has looked: at files of this status, or marks (0), up to this id. */
struct rp_net_place {
    int64_t status, id;
};

/* One page of a step. */
struct rp_net_page {
    struct rp_net_place at;  /* in: behind what; out: where the next page begins */
    struct rp_net_place end; /* out: where it begins if not all of this one can be mended */
    size_t room;             /* findings, at most */
    int64_t scanned;         /* out: rows that were looked at */
    bool more;               /* out: it has not looked at all of them yet */
    bool cut;                /* out: the room is full: going on at `end` may pass others by */
};

struct rp_net_step {
    const char *name; /* in figures and records */
    const char *what; /* is wrong with one of them: in the log */
    const char *would;
    bool orphans_are_marks; /* not files */
    bool makes_marks;       /* when it mends */
    struct rp_net_place from;
    int (*find)(const struct rp_net_step *step, struct rp_db *db, struct rp_arena *arena, struct rp_net_page *page,
                struct rp_orphans *out, struct rp_error *err);
    /* G2: notes in each whether it was mended. May be run again from its start. */
    int (*mend)(struct rp_tx *tx, const struct rp_mending *mending, struct rp_orphan *orphans, size_t n,
                struct rp_error *err);
};
extern const struct rp_net_step rp_net_steps[];
extern const size_t rp_net_steps_count;

/* find.c */
int rp_net_find_files(const struct rp_net_step *step, struct rp_db *db, struct rp_arena *arena,
                      struct rp_net_page *page, struct rp_orphans *out, struct rp_error *err);
int rp_net_find_children(const struct rp_net_step *step, struct rp_db *db, struct rp_arena *arena,
                         struct rp_net_page *page, struct rp_orphans *out, struct rp_error *err);
int rp_net_find_marks(const struct rp_net_step *step, struct rp_db *db, struct rp_arena *arena,
                      struct rp_net_page *page, struct rp_orphans *out, struct rp_error *err);
int rp_net_find_letters(const struct rp_net_step *step, struct rp_db *db, struct rp_arena *arena,
                        struct rp_net_page *page, struct rp_orphans *out, struct rp_error *err);

/* search.c: what pages are read with, by a run and by a dry run. */
struct rp_net_search {
    struct rp_db *db;
    struct rp_arena arena, names;           /* of one page; of the stores */
    struct rp_store_rows rows;              /* all that the catalog knows */
    struct rp_store *stores[RP_STORES_MAX]; /* those that are configured */
    size_t n_stores;
};
/* To be closed also if it fails. */
int rp_net_search_open(struct rp_net_search *s, const struct rp_safety_net *net, struct rp_error *err);
void rp_net_search_close(struct rp_net_search *s);
int rp_net_find_page(struct rp_net_search *s, const struct rp_net_step *step, struct rp_net_page *page,
                     struct rp_orphans *out, struct rp_error *err);

/* mend.c */
int rp_net_mend_marks(struct rp_tx *tx, const struct rp_mending *mending, struct rp_orphan *orphans, size_t n,
                      struct rp_error *err);
int rp_net_mend_letters(struct rp_tx *tx, const struct rp_mending *mending, struct rp_orphan *orphans, size_t n,
                        struct rp_error *err);

/* readers.c, G7: how many readers are further behind than alerts.sink_lag_over; each is a line of the
 * log if `tells`. */
int rp_net_count_behind(const struct rp_safety_net *net, bool tells, int64_t *behind, struct rp_error *err);

#endif
