/* SPDX-License-Identifier: Apache-2.0 */
/* reprieve.h - the verb restore (alias unmark): a mark that no purge has claimed yet ends as
 * reprieved.
 *
 * V1  Restore and claim are compare-and-sets on the same row: exactly one wins (RESTORE-WINS).
 *     After the claim a restore is RP_ETOOLATE, definitely.
 * V2  Restoring again, or the same mark twice in a command, gives the same answer.
 * V3  What was moved to quarantine comes back under its key with headers and metadata, unless
 *     something newer stands there. Prepare makes the copy back, run decides after it; if run says
 *     "too late", finish takes the copy away again. The copy in quarantine is then marked, due a
 *     day later.
 * V4  A request of up to RP_REPRIEVE_ITEMS_MAX marks, of any stores, is one command and one commit.
 * V5  A mark that was moved to quarantine after prepare has looked is prepared once more.
 * V6  To a tenant, marks of others do not exist: prepare refuses them before anything is touched.
 * V7  With a file comes back what was deleted along with it, also from quarantine: prepare adds
 *     that to the command as its `family`, each with an answer of its own. One that cannot come
 *     back keeps nobody else away; the same restore, given again, tries it again.
 * V8  Prepare looks whether a file's object is there: after a roll-back it may be gone, while its
 *     mark waits again, or is a dead letter that nothing was erased of. A store that gives no answer
 *     keeps no restore back. A file whose purge was given up (`lost`) comes back if its object is seen
 *     as it was; hidden, it is shown.
 * V9  The newest mark is looked at and decided about first, in whatever order they are given: of
 *     several uploads of one key, or several deleted files of one name, in one command the last
 *     that can come back does, and those before it are refused. */
#ifndef RP_CORE_REPRIEVE_H
#define RP_CORE_REPRIEVE_H

#include "base/error.h"
#include "catalog/mark/mark.h"
#include "catalog/writer/writer.h"
#include "core/file/file.h"
#include "core/mark/annotation.h"
#include "core/store.h"

#define RP_REPRIEVE_ITEMS_MAX  1000
#define RP_REPRIEVE_FAMILY_MAX (2 * RP_FILE_FAMILY_MAX) /* V7: of all items of a command */

enum rp_reprieving { RP_REPRIEVE_REFUSED, RP_REPRIEVE_DONE, RP_REPRIEVE_ALREADY, RP_REPRIEVE_RETURNED };
const char *rp_reprieving_name(enum rp_reprieving what);

struct rp_reprieve_answer {
    enum rp_reprieving what;
    struct rp_error error;                /* refused: why */
    char annotate_note[RP_ANNOTATE_NOTE]; /* restored, but its annotation stands: the same restore tries that again */
    /* returned, but these services have deleted their half: "calendar, billing", in the command's arena; NULL: none */
    const char *agreed;
};

/* Pure: what a restore of this mark means. `copy`: the mark of its copy in quarantine, as
 * rp_quarantine_mark gives it, NULL if there is none. */
enum rp_reprieving rp_reprieve_decide(const struct rp_mark *mark, const struct rp_mark *copy, const char *store,
                                      struct rp_error *err);

/* What a restore of this mark would say now; nothing is changed. */
int rp_reprieve_foresee(struct rp_db *db, const struct rp_mark *mark, const char *store, struct rp_arena *arena,
                        struct rp_reprieve_answer *out, struct rp_error *err);

/* What prepare knows of the bytes. */
enum rp_reprieve_bytes {
    RP_BYTES_UNSEEN, /* nothing that speaks against a restore */
    RP_BYTES_STAND,  /* under the key: copied back now, or by a restore that ended after its copy; or V8: the object of
                        a file that was given up was seen as it was */
    RP_BYTES_AWAY,   /* `error` says why */
};

struct rp_reprieve_copy {
    struct rp_mark mark; /* of the copy in quarantine; id 0: there is none */
    bool made;           /* copied back just now: taken away again if that is refused */
    enum rp_reprieve_bytes bytes;
    struct rp_identity identity; /* of what stands */
    struct rp_error error;
};

/* What an item names its mark by; set by rp_reprieve_command_init. */
enum rp_reprieve_by {
    RP_NAMED_NOT,     /* it was refused by whoever made the command */
    RP_NAMED_BY_MARK, /* `mark_id` */
    RP_NAMED_BY_FILE, /* `file_id`: the file's */
    RP_NAMED_BY_KEY,  /* `store` and `key`: the newest of this subject */
    RP_NAMED_AS_READ, /* `mark` as it was read, with its store */
};

struct rp_reprieve_item {
    enum rp_reprieve_by by;
    int64_t mark_id, file_id;
    struct rp_store *store;
    const char *key;
    struct rp_mark mark;              /* found by prepare if it was not given; texts in the command's arena */
    struct rp_error error;            /* refused before run: by whoever made the command, or by prepare */
    struct rp_reprieve_answer answer; /* out */
    struct rp_file_answer *file; /* out: of a file's mark, the file as it is now; NULL: it is of none, or of `family` */
    struct rp_reprieve_copy copy;
    char annotate_note[RP_ANNOTATE_NOTE]; /* of prepare: as the answer's */
    bool annotated;                       /* of run: it was restored, and its mark may carry an annotation */
};

struct rp_reprieve_command {
    struct rp_command command; /* with a tenant, marks of others are not found */
    struct rp_reprieve_item *items;
    size_t n;
    struct rp_store *const *stores; /* to find a mark's store by its id; may be NULL where each item has its own */
    size_t n_stores;
    struct rp_arena *arena; /* the caller's: what is found is kept there */
    /* out: V7, but for what simply waits and comes back with its root */
    struct rp_reprieve_item *family;
    size_t n_family;
};
extern const struct rp_verb rp_verb_reprieve;

void rp_reprieve_command_init(struct rp_reprieve_command *c, struct rp_reprieve_item *items, size_t n,
                              const char *actor, struct rp_arena *arena);

/* What was asked for, then its family. */
size_t rp_reprieve_count(const struct rp_reprieve_command *c);
struct rp_reprieve_item *rp_reprieve_at(const struct rp_reprieve_command *c, size_t i);
/* For prepare: adds to the family, named by file and not looked at yet. */
int rp_reprieve_find_family(struct rp_catalog *catalog, struct rp_reprieve_command *c, struct rp_error *err);
/* For prepare, at its end: V8. */
void rp_reprieve_see_files(struct rp_reprieve_command *c);

/* What the command would answer now: finds the marks and fills in the answers, changes nothing. */
int rp_reprieve_dry_run(struct rp_catalog *catalog, struct rp_reprieve_command *c, struct rp_error *err);

/* The same for up to RP_REPRIEVE_ITEMS_MAX marks of one store, as they were read, waited for; who
 * has agreed is not told. Returns negative only if nothing was decided. */
int rp_reprieve_many(struct rp_catalog *catalog, struct rp_store *store, const struct rp_mark *marks, size_t n,
                     const char *actor, struct rp_reprieve_answer *answers, struct rp_error *err);

#endif
