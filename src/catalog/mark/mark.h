/* SPDX-License-Identifier: Apache-2.0 */
/* mark.h - the rows of table mark: read, added, claimed, moved. What a move means is decided above
 * (core/state.h); here a move is a compare-and-set on (id, fence, state), and the answer says which
 * rows it changed. */
#ifndef RP_CATALOG_MARK_H
#define RP_CATALOG_MARK_H

#include "base/key.h"
#include "catalog/catalog.h"

#include <stdbool.h>
#include <stdint.h>

/* Bits of mark.checks, never reused. AGREED is no question: a service has deleted its half, and the
 * mark never goes back to `marked`, nor is it restored. */
#define RP_CHECK_REFERENCES    1
#define RP_CHECK_CONFIRMATIONS 2
#define RP_CHECK_AGREED        4

/* The same numbers stand in the catalog and in its statements: never renumber. */
enum rp_state {
    RP_MARKED = 1,
    RP_CHECKING = 2,
    RP_PURGING = 3,
    RP_PURGED = 4,
    RP_REPRIEVED = 5,
    RP_DEAD = 6,
    RP_LOST = 7,
    RP_STATES
};

/* Nothing leads out of it: core/state.c says where to from the others. */
bool rp_state_final(enum rp_state state);

/* How a mark ended, or 0. */
enum rp_end {
    RP_END_NONE = 0,
    RP_END_ERASED = 1,      /* deleted by us, bytes freed */
    RP_END_GONE = 2,        /* nothing was there any more */
    RP_END_SUPERSEDED = 3,  /* a newer upload stands under the key; left alone */
    RP_END_QUARANTINED = 4, /* moved to quarantine */
    RP_END_RESTORED = 5,    /* reprieved by a person */
    RP_END_RECOVERED = 6,   /* reprieved because the catalog was rolled back */
    RP_END_KEPT = 7,        /* a dead letter that a person gave up */
    RP_END_CONFIRMED = 8,   /* the upload was confirmed, alone or by its transaction's commit */
    RP_ENDS
};

struct rp_mark {
    int64_t id, store_id;
    const char *key; /* of the arena it was read into, like every text here */
    enum rp_state state, was;
    int64_t next_at_ms; /* 0: never */
    int64_t due_at_ms, marked_at_ms;
    int64_t fence, attempts, checks, tenant_id;
    int64_t run_id; /* 0: none */
    const char *etag, *version;
    int64_t size_bytes, modified_ms;
    bool annotated;
    enum rp_end outcome;
    int64_t ended_at_ms; /* 0: not yet */
    const char *reason, *actor;
    const char *note;     /* may be NULL */
    int64_t file_id;      /* 0: its subject is an object, not a file */
    const char *original; /* of a copy in quarantine: the key that it came from; NULL: it is no copy */
    bool in_place;        /* the `copy` is what was marked, under `original`, hidden by the store */
};

struct rp_marks {
    struct rp_mark *at;
    size_t n, max;
    struct rp_arena *arena;
};

/* Room for up to `max` marks in the arena. RP_ENOMEM when it does not fit. */
int rp_marks_init(struct rp_marks *marks, size_t max, struct rp_arena *arena, struct rp_error *err);
/* The row function of every statement that returns MARK_COLUMNS: appends to a struct rp_marks (at
 * most `max`). */
rp_row_fn rp_marks_row;

/* Whether it is of an upload that was never seen in its store: born with it, or for what may come
 * late under its key. Nobody asked for it, whatever its reason says; the statements say the same
 * (UNSEEN). */
bool rp_mark_is_unseen(const struct rp_mark *mark);
/* The mark with copies of its texts in the arena. RP_ENOMEM when it is full. */
int rp_mark_copy(const struct rp_mark *from, struct rp_arena *arena, struct rp_mark *out, struct rp_error *err);

/* It waits for a service that is asked before it is due: from then on there is no restore. */
bool rp_mark_is_asked_now(const struct rp_mark *mark);
/* Services are to say yes before its purge, or have said so: in `checking` they are asked. */
bool rp_mark_has_confirmations(const struct rp_mark *mark);
/* One has said yes, and deleted its half. */
bool rp_mark_has_agreed(const struct rp_mark *mark);
/* Nothing of it was erased and no service has said yes: a dead letter that can be restored. */
bool rp_mark_is_refused(const struct rp_mark *mark);

/* ---- changes, inside a transaction ---- */

/* All or RP_ECONFLICT: another writer has marked one of the subjects meanwhile. */
int rp_marks_add(struct rp_tx *tx, const struct rp_mark *marks, size_t n, struct rp_error *err);
/* Active marks of these subjects, locked. */
int rp_marks_active(struct rp_tx *tx, int64_t store_id, const char *const *keys, size_t n, struct rp_marks *out,
                    struct rp_error *err);
/* The newest mark of each of these subjects, ended or not; an active one is always the newest.
 * `lock`: inside a transaction, the rows are ours until it ends. */
int rp_marks_newest(struct rp_db *db, int64_t store_id, const char *const *keys, size_t n, bool lock,
                    struct rp_marks *out, struct rp_error *err);
/* Locks these rows in order of id (catalog.h, K8): sorts `ids` and drops those that stand twice.
 * `out`: as they are then; NULL: they are not looked at. */
int rp_marks_lock(struct rp_tx *tx, int64_t *ids, size_t n, struct rp_marks *out, struct rp_error *err);

struct rp_claim {
    int64_t store_id, now_ms, lease_ms, from_ms; /* from_ms: look at nothing that came due before */
    int64_t limit;
    const char *lease_by;
    bool named;  /* only objects whose keys we named: of files, and copies in quarantine */
    bool asks;   /* marks that people and rules made have a check, whatever they were made with (check.h, Q5) */
    bool unseen; /* only uploads that were never seen in their store (rp_mark_is_unseen) */
    /* Marks that wait for confirmations, also before they are due: those whose next service is one
     * of these ("|calendar|mail|"), or, with `others`, none of them, and was so a day ago: another
     * node may know it. NULL: marks with nothing to confirm. */
    const char *confirmers;
    bool others;
    bool asked; /* of these only what somebody was asked about before */
};
int rp_marks_claim(struct rp_tx *tx, const struct rp_claim *claim, struct rp_marks *out, struct rp_error *err);

/* Whatever this worker has leased until exactly then, if anything, is due again at once. */
int rp_marks_unclaim(struct rp_tx *tx, const struct rp_claim *claim, int64_t until_ms, struct rp_error *err);
/* Those whose fence is still this one are leased until then. */
int rp_marks_renew(struct rp_tx *tx, const struct rp_mark *const *marks, size_t n, int64_t until_ms, size_t *renewed,
                   struct rp_error *err);

struct rp_move {
    const struct rp_mark *mark; /* as it was read: id, fence and state must still be these */
    enum rp_state to;
    enum rp_end outcome; /* with a final state */
    int64_t next_at_ms;  /* 0: never */
    int64_t attempts;
    const char *note;          /* may be NULL */
    const char *store, *actor; /* names for the audit row; NULL: the same as of the others */
    bool refence;              /* raise the fence: whoever holds a lease on it has lost it */
    int64_t sets, clears;      /* bits of checks */
    bool done;                 /* out: the row was changed */
};
int rp_marks_move(struct rp_tx *tx, struct rp_move *moves, size_t n, struct rp_error *err);

struct rp_extend {
    const struct rp_mark *mark;
    int64_t due_at_ms;
    const char *reason; /* NULL: it keeps its own */
    const char *actor;  /* NULL: the same as of the others */
    bool done;          /* out */
};
int rp_marks_extend(struct rp_tx *tx, struct rp_extend *extends, size_t n, struct rp_error *err);
/* Marks that nobody would look at are looked at again at their next_at_ms. RP_ECONFLICT: one of them
 * is not such a mark any more. */
int rp_marks_watch(struct rp_tx *tx, const struct rp_mark *marks, size_t n, struct rp_error *err);
/* These marks may carry an annotation from now on. */
int rp_marks_annotated(struct rp_tx *tx, const int64_t *ids, size_t n, struct rp_error *err);
/* Their objects have this etag, version and time from now on; a mark that no longer waits stays as
 * it is. */
int rp_marks_identity(struct rp_tx *tx, const struct rp_mark *marks, size_t n, struct rp_error *err);

/* ---- reading ---- */

int rp_mark_get(struct rp_db *db, int64_t id, struct rp_arena *arena, struct rp_mark *out, struct rp_error *err);
/* The marks that a subject had, newest first, at most out->max. An active one is always the
 * newest. */
int rp_marks_history(struct rp_db *db, int64_t store_id, const char *key, struct rp_marks *out, struct rp_error *err);

/* What became of the subjects of these marks since they were returned from quarantine. */
struct rp_mark_since {
    int64_t id; /* of the mark that was purged into quarantine */
    const char *key;
    int64_t file_id, file_status; /* 0: it is of no file */
    bool annotated;
    int64_t ended, active; /* later marks of the same key: purged, superseded or lost; waiting or under way */
};
/* `out`, of the arena: at most n, in any order. */
int rp_marks_since(struct rp_db *db, const int64_t *ids, size_t n, struct rp_arena *arena, struct rp_mark_since **out,
                   size_t *n_out, struct rp_error *err);

/* Those of these marks whose subject may lie above another one in quarantine in place, but for what
 * was returned (`returned`: the reason of its mark). `out`: room for n. Clocks may have been set
 * back: older is what was marked before, or what the bucket says was uploaded before; where these
 * do not agree, one that is `purging` itself is not counted, so that no two wait for each other. */
int rp_marks_on_older(struct rp_db *db, const int64_t *ids, size_t n, const char *returned, struct rp_arena *arena,
                      int64_t *out, size_t *n_out, struct rp_error *err);
/* Those of these marks of what is hidden in place whose version another mark speaks of by now:
 * somebody had shown it again, and it was marked or hidden anew. */
int rp_marks_hidden_again(struct rp_db *db, const int64_t *ids, size_t n, const char *returned, struct rp_arena *arena,
                          int64_t *out, size_t *n_out, struct rp_error *err);

/* A page of marks: give the query, call until `out->n` is 0. The cursor is kept in it. */
enum rp_marks_by {
    RP_BY_DUE,
    RP_BY_DUE_UNHELD, /* and no service is to be asked about them */
    RP_BY_ENDED,
    RP_BY_DEAD,
    RP_BY_PREFIX,
    RP_BY_REASON,
    RP_BY_RUN,
    RP_BY_SINCE
};
struct rp_marks_query {
    enum rp_marks_by by;
    int64_t store_id;    /* DUE, DUE_UNHELD, PREFIX */
    int64_t before_ms;   /* DUE, DUE_UNHELD: looked at up to here; ENDED: ended before */
    enum rp_state state; /* ENDED */
    const char *text;    /* PREFIX, REASON */
    int64_t run_id;      /* RUN */
    int64_t since_ms;    /* SINCE */
    int64_t cursor_ms, cursor_id;
    char cursor_key[RP_KEY_MAX + 1];
    bool begun;
};
/* Fills `out` (cleared first) with the next page of at most out->max. */
int rp_marks_page(struct rp_db *db, struct rp_marks_query *query, struct rp_marks *out, struct rp_error *err);

struct rp_overdue {
    int64_t marks, bytes, oldest_due_ms; /* oldest 0: none */
};
int rp_marks_overdue(struct rp_db *db, int64_t store_id, int64_t now_ms, struct rp_overdue *out, struct rp_error *err);
/* Those of them whose keys others named. */
int rp_marks_overdue_plain(struct rp_db *db, int64_t store_id, int64_t now_ms, struct rp_overdue *out,
                           struct rp_error *err);
/* What waits in a store of the marks that people and rules made: not those of uploads that were
 * never seen there. Nothing is counted: tallies and an index say it. */
struct rp_waiting {
    int64_t marks, bytes;
    int64_t marked_at_s;  /* the sum over them, in seconds */
    int64_t oldest_at_ms; /* 0: none waits */
};
int rp_marks_waiting(struct rp_db *db, int64_t store_id, struct rp_waiting *out, struct rp_error *err);
/* When the sweeper must look again: 0 if nothing waits. `named`: nothing but objects whose keys we
 * named counts. */
int rp_marks_next(struct rp_db *db, int64_t store_id, bool named, int64_t *next_ms, struct rp_error *err);
/* The same of uploads that were never seen in their store. */
int rp_marks_next_unseen(struct rp_db *db, int64_t store_id, int64_t *next_ms, struct rp_error *err);
/* The same of whoever asks for confirmations. */
int rp_marks_next_to_confirm(struct rp_db *db, int64_t store_id, int64_t *next_ms, struct rp_error *err);
/* Which services would be asked about now, up to `most`. */
int rp_marks_count_to_confirm(struct rp_db *db, int64_t store_id, int64_t now_ms, bool named, int64_t most,
                              int64_t *out, struct rp_error *err);

#endif
