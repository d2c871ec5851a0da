/* SPDX-License-Identifier: Apache-2.0 */
/* subject.h - what a mark is about: an object, or a file (later also a row of a user's table). A
 * port: each kind is a const table. Nobody above this folder calls a store to quarantine, to return
 * or to erase; to look or to read, only what asks about more than the subject: whose store it is,
 * what lies there, what a file's bytes are.
 *
 * J1  The store's half is about one store, may run beside the catalog, and is all that touches
 *     the store. A negative return is about the store as a whole (store/backend.h, T4); all else
 *     is the outcome of one subject.
 * J2  Kinds that live in one store share the store's half, so that a batch is one request: a
 *     file's bytes are an object.
 * J3  The catalog's half runs in the transaction that claims or ends marks. It is given all of
 *     them and picks its own.
 * J4  Where a subject goes in quarantine, or that it stays in place, and how one sees that it is
 *     there already, is decided here alone. */
#ifndef RP_CORE_SUBJECT_H
#define RP_CORE_SUBJECT_H

#include "base/id.h"
#include "core/store.h"
#include "core/subject/quarantine.h"

/* One subject that is moved to quarantine. */
struct rp_copy {
    const struct rp_mark *mark;
    struct rp_identity identity; /* in: of the subject; out: of the copy */
    bool in_place;               /* out: it is no copy: hidden where it was */
    /* FOUND: the copy stands, made now or by an earlier attempt. GONE, CHANGED: nothing to copy.
     * NONE: not begun */
    enum rp_outcome outcome;
    char note[240];
};
#define RP_COPIES_MAX 64 /* of one call */

struct rp_subject_kind {
    const char *name;
    enum rp_id_kind id; /* by which a person finds its rows */

    /* The clock that it lives by; INT64_MAX: none of its own. */
    int (*clock)(struct rp_store *store, int64_t *out_ms, struct rp_error *err);
    /* What stands under the keys now: FOUND with its identity, GONE, or why it cannot be seen. */
    int (*look)(struct rp_store *store, struct rp_item *items, size_t n, struct rp_error *err);
    /* Hidden in place where the store can, else verified copies, with headers and metadata; begun
     * in order while the gate is open. Repeated it finds them. */
    int (*quarantine)(struct rp_store *store, struct rp_copy *copies, size_t n, const struct rp_gate *gate,
                      struct rp_error *err);
    /* The copy back under its key, never over something newer (RP_EEXISTS). *made: by this call,
     * not by an earlier. */
    int (*bring_back)(struct rp_store *store, const struct rp_mark *copy, const char *key, struct rp_identity *out,
                      bool *made, struct rp_error *err);
    /* What bring_back made, and is not wanted: in quarantine as it was. Best effort. */
    void (*take_away)(struct rp_store *store, const struct rp_mark *copy, const char *key,
                      const struct rp_identity *made);
    /* Exactly these identities, while the gate is open. */
    int (*erase)(struct rp_store *store, struct rp_item *items, size_t n, const struct rp_gate *gate,
                 struct rp_error *err);
    /* Whether it was really this store that answered, so that "gone" can be believed. */
    int (*confirm)(struct rp_store *store, struct rp_error *err);

    /* May be NULL, each: nothing follows from it. */
    int (*claimed)(struct rp_tx *tx, const char *store, const struct rp_marks *marks, const char *actor,
                   struct rp_error *err);
    int (*ended)(struct rp_tx *tx, const char *store, const struct rp_move *moves, size_t n, const char *actor,
                 struct rp_error *err);
    /* marks[i], of a copy in quarantine, stands from now on for the mark from[i]. */
    int (*copied)(struct rp_tx *tx, const struct rp_mark *marks, const int64_t *from, size_t n, struct rp_error *err);
};

extern const struct rp_subject_kind rp_subject_object, rp_subject_file;

const struct rp_subject_kind *rp_subject_of(const struct rp_mark *mark);
/* The kind that speaks for all that live in this store (J2). */
const struct rp_subject_kind *rp_subject_in(const struct rp_store *store);
/* The identity that a mark is about. */
struct rp_identity rp_subject_identity(const struct rp_mark *mark);
/* The id of its rows, as people see it. */
const char *rp_subject_id(const struct rp_mark *mark, char out[RP_ID_TEXT]);
/* A purge of it in this store moves it to quarantine first. */
bool rp_subject_is_quarantined(const struct rp_store *store, const struct rp_mark *mark);

/* The quarantine of it is in place: what was not seen when it was marked is copied, for nobody
 * could find it again. */
bool rp_subject_stays_in_place(const struct rp_store *store, const struct rp_mark *mark);
/* It was seen that this store can hide an object and show it again. */
bool rp_subject_can_hide(const struct rp_store *store);
/* An erase in this store may take older versions along, which may be in quarantine there. */
bool rp_subject_may_have_older(const struct rp_store *store);
/* The key under which its bytes stand. */
const char *rp_subject_where(const struct rp_mark *mark);

/* The catalog's halves of all kinds. */
int rp_subjects_claimed(struct rp_tx *tx, const char *store, const struct rp_marks *marks, const char *actor,
                        struct rp_error *err);
int rp_subjects_ended(struct rp_tx *tx, const char *store, const struct rp_move *moves, size_t n, const char *actor,
                      struct rp_error *err);
int rp_subjects_copied(struct rp_tx *tx, const struct rp_mark *marks, const int64_t *from, size_t n,
                       struct rp_error *err);

#endif
