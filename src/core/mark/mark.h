/* SPDX-License-Identifier: Apache-2.0 */
/* mark.h - the verb mark: a durable promise to purge a subject at due_at.
 *
 * R1  Marking touches the catalog only; the object's bytes, headers and metadata stay as they are
 *     (unless annotated).
 * R2  The clock starts at the mark, and due_at is stored with it: a changed setting never shortens
 *     a promise.
 * R3  Marking again gives the same mark. A later explicit time extends it, and a reason that comes
 *     with it takes the place of the old one; an earlier time is RP_EMARKED.
 * R4  A newer upload under the key ends the old mark (superseded) and is marked anew, in the same
 *     transaction.
 * R5  A request of up to RP_MARK_ITEMS_MAX subjects, of any stores, is one command and one commit:
 *     prepare looks at the objects, run decides each and applies them together. One refusal harms
 *     no other.
 * R6  A mark that is imported (import.h) was promised elsewhere: the range of grace does not bind
 *     its time, what is marked already stays as it is, and only the upload whose annotation was
 *     read is marked.
 * R7  A hold stops purging, not marking: what it covers is marked, extended and replaced as ever,
 *     and waits.
 * R8  What is marked is what prepare saw. If the subject's newest mark has moved on since, prepare
 *     looks again.
 * R9  Services that must say yes first (core/confirm) are named at the birth of a mark. Marked again,
 *     it keeps those it has; others are refused (RP_EMARKED). */
#ifndef RP_CORE_MARK_H
#define RP_CORE_MARK_H

#include "base/error.h"
#include "catalog/mark/mark.h"
#include "catalog/writer/writer.h"
#include "core/due.h"
#include "core/mark/annotation.h"
#include "core/store.h"

#define RP_MARK_ITEMS_MAX 1000

struct rp_confirmer_list;

struct rp_mark_request {
    const char *key;
    int64_t grace_ms;   /* -1: the store's */
    int64_t at_ms;      /* -1: now + grace; only one of the two may be given */
    const char *reason; /* "" is fine */
    bool if_unreferenced;
    bool annotate;
    int64_t marked_at_ms;                          /* imported: when the annotation says so, if that is past; 0: now */
    const struct rp_confirmer_list *confirmations; /* R9; NULL: none */
    const struct rp_identity *imported; /* R6: the upload that carries the annotation; NULL: this is no import */
};

enum rp_marking { RP_MARK_REFUSED, RP_MARK_SAME, RP_MARK_EXTENDED, RP_MARK_CREATED, RP_MARK_REPLACED };
const char *rp_marking_name(enum rp_marking what);

/* What is known of a subject when the decision is made. */
struct rp_mark_facts {
    enum rp_outcome found; /* of the look: FOUND, GONE, DENIED, RETRY, UNKNOWN */
    struct rp_identity identity;
    char note[240];
    int64_t seen_id; /* the newest mark when the object was looked at, 0: none; and its state */
    enum rp_state seen_state;
    const struct rp_mark *active; /* NULL: none */
    int64_t file_id;              /* 0: the object belongs to no file */
    int64_t references;           /* -1: not asked */
    const char *references_in;    /* where the first is; lives as long as the store is open */
    int references_code;          /* negative: the look-up failed */
    int64_t changed_at_ms; /* of run: another upload stands where keys were promised to be written once; 0: none */
};

struct rp_mark_decision {
    enum rp_marking what;
    int code; /* refused: why */
    int64_t due_at_ms;
};

/* Pure: what stands there is what was marked, whatever its times. */
bool rp_mark_same_upload(const struct rp_mark *mark, const struct rp_identity *identity);
/* Pure. Fills `err` (never NULL) when it refuses. */
struct rp_mark_decision rp_mark_decide(const struct rp_mark_request *request, const struct rp_mark_facts *facts,
                                       const struct rp_store_config *config, int64_t now_ms, struct rp_error *err);

struct rp_mark_answer {
    enum rp_marking what;
    struct rp_error error; /* refused: why, with its code */
    int64_t references;    /* with RP_EREFERENCED */
    int64_t mark_id, marked_at_ms, due_at_ms, size_bytes;
    bool annotated;
    bool asked_now; /* a service is asked at once: it cannot be restored from then on */
    char reason[RP_REASON_MAX + 1];
    char annotate_note[RP_ANNOTATE_NOTE]; /* the mark stands, but the annotation could not be written */
};

struct rp_mark_item {
    struct rp_store *store; /* NULL: whoever made the command has refused it */
    struct rp_mark_request request;
    bool refused;                 /* before run (rp_mark_item_refuse): `answer` says why */
    struct rp_mark_answer answer; /* out */
    struct rp_mark_facts facts;   /* of prepare and run */
};

struct rp_mark_command {
    struct rp_command command;
    struct rp_mark_item *items; /* a key may stand twice: with the same wishes it is answered alike */
    size_t n;
};
extern const struct rp_verb rp_verb_mark;

/* By whoever makes the command, or by prepare. */
void rp_mark_item_refuse(struct rp_mark_item *item, const struct rp_error *why);

/* A command over these items; the caller fills in key, digest, render and done if there is more to
 * it. */
void rp_mark_command_init(struct rp_mark_command *c, struct rp_mark_item *items, size_t n, const char *actor);

/* The same for up to RP_MARK_ITEMS_MAX objects of one store, waited for; answers[i] belongs to
 * requests[i]. With `dry_run` nothing is changed, and ids are of no mark. Returns negative only if
 * nothing was decided. */
int rp_mark_many(struct rp_catalog *catalog, struct rp_store *store, const struct rp_mark_request *requests, size_t n,
                 const char *actor, bool dry_run, struct rp_mark_answer *answers, struct rp_error *err);

#endif
