/* SPDX-License-Identifier: Apache-2.0 */
/* import.h - marks made of the annotations (annotation.h) that objects carry, whoever wrote them.
 *
 * I1  An object is annotated if its field marked_for_deletion says yes ("true" or "1", in any
 *     case). "false", "0" and "" say no; anything else is unclear: told, and not marked.
 * I2  The due time is delete_after; without that field, marked_for_deletion_on and the store's
 *     grace. A time that cannot be read, or none at all, gives the store's grace from the import
 *     on. A time that is past is due at once.
 * I3  A time is milliseconds (13 digits), seconds (10 digits), each with or without a fraction, or
 *     RFC 3339; before September 2001 it is taken for unreadable, as a zero or a day number would
 *     be.
 *     The mark's own time is marked_for_deletion_on, where that can be read and is past: its age is
 *     that of the annotation.
 * I4  The mark is of the upload whose annotation was read, and no other; what is marked already
 *     stays as it is (mark.h, R6). Files and a guarantee that is too weak refuse an object as
 *     they refuse any mark; a hold refuses none: the mark waits.
 * I5  The walk is in byte order, a page of keys at a time: memory does not grow with the store.
 *     Nothing is written to the store. What was imported before a failure stays, and the next
 *     import goes past it. */
#ifndef RP_CORE_IMPORT_H
#define RP_CORE_IMPORT_H

#include "base/arena.h"
#include "core/mark/mark.h"

enum rp_import_flag { RP_IMPORT_NO, RP_IMPORT_YES, RP_IMPORT_UNCLEAR };
enum rp_import_time { RP_IMPORT_DELETE_AFTER, RP_IMPORT_MARKED_ON, RP_IMPORT_ABSENT, RP_IMPORT_UNREADABLE };
/* "delete_after", "marked_for_deletion_on", "no time", "unreadable time" */
const char *rp_import_time_name(enum rp_import_time time);

/* What an annotation says. */
struct rp_import_note {
    enum rp_import_flag flag;
    enum rp_import_time time;
    int64_t at_ms;                  /* -1: the grace from the import on */
    int64_t marked_at_ms;           /* marked_for_deletion_on; 0: none that can be read */
    char reason[RP_REASON_MAX + 1]; /* "imported" if it gives none; cut where it is too long */
};
/* Pure. */
void rp_import_read(const struct rp_meta *meta, int64_t grace_ms, struct rp_import_note *out);

struct rp_import_item {
    const char *key;
    struct rp_identity identity;
    struct rp_import_note note;
    struct rp_mark_answer answer; /* of one that is unclear or unread: refused, with the reason */
    bool gone, unread;            /* since it was listed; it could not be looked at */
};

struct rp_import_counts {
    int64_t looked_at, annotated, marked, already_marked, unreadable, unclear, refused;
};

struct rp_import {
    struct rp_store *store;
    const char *prefix; /* "": all */
    const char *actor;
    int64_t limit; /* marks made at most; 0: any number */
    bool dry_run;
    /* out, one batch: annotated objects and those that could not be read, in byte order */
    struct rp_import_item **batch;
    size_t n_batch;
    struct rp_import_counts counts; /* so far */
    bool limited;                   /* it ended at the limit: there may be more */
    struct rp_import_walk *walk;    /* the rest is its own */
};

/* store, prefix, actor, limit and dry_run are set. */
int rp_import_begin(struct rp_import *import, struct rp_error *err);
/* The next batch, marked: 1, with n_batch items (also none: only to show how far it is), 0 at the
 * end. */
int rp_import_next(struct rp_import *import, struct rp_catalog *catalog, struct rp_error *err);
void rp_import_end(struct rp_import *import); /* harmless on a zeroed one; also the RP_CLEANUP function */

#endif
