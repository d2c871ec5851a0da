/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - uploads and files: born marked, confirmed by reprieve, deleted by a mark, restored while
 * the mark waits.
 *
 * F1  init reserves quota, makes the file `pending` and its mark `abandoned` in one transaction;
 *     nothing else has to clean up.
 * F2  confirm ends the mark and makes the file `live` (or `scanning`), only if the mark was not
 *     claimed: against the expiry exactly one wins (QUOTA-EXACT).
 * F3  One live file a tenant and name: confirming a second marks the first `replaced` in the same
 *     transaction.
 * F4  A child (parent) and a derivative (source) are deleted and restored together with what they
 *     belong to. So below a file that ended (purged, expired) nothing lives, and nothing comes back:
 *     what lives has owners that live (work.h, K4), a delete takes along what lives or is pending,
 *     and an upload that is still pending below one that expired can only expire as well. Whoever
 *     looks for a family does not look below what ended.
 * F5  A file's object is purged by the sweep alone; then the file is `purged` (or `expired`) and
 *     its bytes are refunded, exactly once.
 *
 *   (nothing) -> pending                    rp_verb_init
 *   pending  -> live, scanning              rp_verb_confirm, rp_verb_txn_commit (transaction.h)
 *   pending, scanning, live -> deleted      rp_verb_delete, rp_verb_result (rejected), replaced
 *   scanning -> live                        rp_verb_result
 *   deleted  -> live, scanning              rp_verb_file_restore
 *   pending  -> expired                     rp_files_claimed   (the sweep's claim)
 *   deleted  -> purged                      rp_files_purged    (the sweep's finish) */
#ifndef RP_CORE_FILE_FILE_H
#define RP_CORE_FILE_FILE_H

#include "catalog/file/file.h"
#include "catalog/mark/mark.h"
#include "catalog/writer/writer.h"
#include "core/due.h"
#include "core/store.h"

#include <jansson.h>

#define RP_FILE_NAME_MAX   1024
#define RP_FILE_TYPE_MAX   200
#define RP_FILE_KEY_TEXT   96
#define RP_METADATA_MAX    8192
#define RP_FILE_FAMILY_MAX 1000 /* files that go along with one that is deleted or replaced */
/* Files that the families of one round have together: that, and the arena of a transaction, bounds
 * its memory. A round above it is run one by one, a commit above it is refused. */
#define RP_FILE_FAMILIES_MAX 10000

const char *rp_status_name(enum rp_status status);
extern const char *const rp_status_names[]; /* all of them, then NULL */
bool rp_status_parse(const char *name, enum rp_status *out);
bool rp_status_may_move(enum rp_status from, enum rp_status to);
bool rp_status_lives(enum rp_status status); /* live or scanning: confirmed, and not deleted */

/* What the configuration says about uploads. */
struct rp_upload_rules {
    int64_t expire_ms, max_size_bytes, max_open_per_tenant, quota_default_bytes;
    int64_t txn_timeout_ms, rollback_grace_ms;
    bool scan; /* a confirmed file waits in `scanning` for its processor's result */
};

/* What an answer shows of a file; texts are the command's own copies. */
struct rp_confirmer_list;
struct rp_file_answer {
    struct rp_file file;
    int64_t mark_id;                 /* its mark, if one waits; 0: none */
    int64_t marked_at_ms, due_at_ms; /* of that, or of the mark that was ended just now; 0: none */
    bool asked_now;                  /* a service is asked at once: it cannot be restored from then on */
    char mark_reason[RP_REASON_MAX + 1];
};

struct rp_init {
    struct rp_command command;
    const struct rp_upload_rules *rules;
    const struct rp_store *store;
    const char *name, *content_type, *metadata; /* metadata: JSON text or NULL */
    int64_t size_bytes;
    const uint8_t *checksum;                           /* 32 bytes or NULL */
    int64_t parent_id, source_id, txn_id, replaces_id; /* 0: none */
    /* out */
    int64_t file_id, mark_id, created_at_ms, due_at_ms, url_ends_at_ms;
    char key[RP_FILE_KEY_TEXT];
    struct rp_tenant tenant; /* with RP_EQUOTA: limit (the one in force), used, reserved */
};

/* What was seen in the store before a confirm or a commit. */
struct rp_seen {
    int64_t file_id;
    enum rp_outcome outcome; /* FOUND, GONE, or why it could not be asked */
    struct rp_identity identity;
    bool checked, checksum_fits; /* the bytes were read and hashed */
    char note[240];
};
/* Looks at the file's object; with a checksum (promised at init, or `checksum`) it reads the bytes.
 * `store` may be NULL: it is not configured any more. For a thread that may block. */
int rp_file_see(const struct rp_file *file, const struct rp_store *store, const uint8_t *checksum, struct rp_seen *out,
                struct rp_error *err);
/* The same; what went wrong is noted in `out`, for the verb to decide. */
void rp_file_see_or_note(const struct rp_file *file, const struct rp_store *store, const uint8_t *checksum,
                         struct rp_seen *out);
/* The same for those of the files that are pending, with one question to each store; `out` has room
 * for all. */
int rp_files_see(const struct rp_files *files, struct rp_store *const *stores, size_t n_stores, struct rp_seen *out,
                 size_t *n, struct rp_error *err);

/* Of a file in quarantine that is to be restored: what came of bringing its bytes back. */
struct rp_file_return {
    const struct rp_identity *as; /* they stand under its key again; NULL: they do not, */
    const struct rp_error *why;   /* and it stays behind */
};

/* What the log tells of a mark that a command made beside the one it is about: on a file that was
 * replaced, or went along. */
struct rp_file_marked {
    int64_t file_id, store_id, mark_id, size_bytes, marked_at_ms, due_at_ms;
    char key[RP_FILE_KEY_TEXT];
    const char *reason;
    struct rp_file_marked *next; /* NULL: no more */
};

/* The commands on one file share their shape. `arena` is the caller's: texts of the answer are
 * copied there. */
struct rp_file_command {
    struct rp_command command;
    const struct rp_upload_rules *rules;
    struct rp_store *const *stores; /* to find the file's store: by its id */
    size_t n_stores;
    struct rp_arena *arena;
    int64_t file_id;
    /* confirm */
    struct rp_seen seen;
    const uint8_t *checksum; /* as the confirm gives it, or NULL */
    /* delete */
    int64_t grace_ms, at_ms; /* -1: not given */
    const char *reason;
    bool shown;
    const struct rp_confirmer_list *confirmations; /* core/confirm; of it and of all that goes along; NULL: none */
    /* restore */
    bool kept;                             /* of a dead letter that is given up: also after a service has said yes */
    const char *note;                      /* kept: for its mark */
    const char *store_name;                /* kept: without stores */
    const struct rp_file_return *returned; /* NULL: nobody tried */
    /* result */
    const char *process_key;
    bool accept;
    /* out */
    struct rp_file_answer answer;
    const char *event;             /* what was done, as the audit log calls it; NULL: it was so before, or came late */
    struct rp_file_marked *marked; /* beside the file itself, in the arena; NULL: none */
    bool is_back; /* restore: it lives with what was `returned`; the mark of the copy is the caller's to end */
};

extern const struct rp_verb rp_verb_init, rp_verb_confirm, rp_verb_delete, rp_verb_file_restore, rp_verb_result;

/* Reasons that the marks of files are born with. */
#define RP_REASON_ABANDONED "abandoned"
#define RP_REASON_ROLLBACK  "rollback"
#define RP_REASON_REPLACED  "replaced"
#define RP_REASON_REJECTED  "rejected"
#define RP_REASON_LATE      "late upload" /* the second mark of an upload */

/* ---- for the sweep and the other verbs over marks ---- */

/* Marks that a claim has just taken: pending files expire and give back their quota, before
 * anything is erased. */
int rp_files_claimed(struct rp_tx *tx, const char *store, const struct rp_marks *marks, const char *actor,
                     struct rp_error *err);
/* Marks that ended as purged: their files are purged, and what they used is refunded. Where
 * something may still come to stand under the key (a late PUT, for one), it gets a second mark, due
 * when none can arrive any more. */
int rp_files_purged(struct rp_tx *tx, const char *store, const struct rp_move *moves, size_t n, const char *actor,
                    struct rp_error *err);
/* What a purge moved to quarantine stays `deleted` under the mark of the copy, and is live again
 * when that copy is returned: marks[i] takes over the file from the mark from[i], if that is the
 * file's. */
int rp_files_take_over(struct rp_tx *tx, const struct rp_mark *marks, const int64_t *from, size_t n,
                       struct rp_error *err);

/* ---- for the safety net: what nothing would find any more, asked again under its tenants' locks ---- */

struct rp_orphan;
struct rp_mending {
    struct rp_store *const *stores; /* names and graces; none of them need be open */
    size_t n_stores;
    const struct rp_upload_rules *uploads;
    const char *actor;
};
/* Files that wait for a mark while none waits for them (rp_orphan.lost) get one: as long as a
 * delete, or an upload, has from now on. */
int rp_files_mark_again(struct rp_tx *tx, const struct rp_mending *mending, struct rp_orphan *orphans, size_t n,
                        struct rp_error *err);
/* F4: what lives and belongs to something that is gone is deleted as if it had gone along: each by
 * itself, and what belongs to that in turn when it is found. */
int rp_files_follow_owners(struct rp_tx *tx, const struct rp_mending *mending, struct rp_orphan *orphans, size_t n,
                           struct rp_error *err);

/* Its object was brought back from quarantine once more, and has this identity now. */
int rp_file_came_back(struct rp_tx *tx, int64_t file_id, const struct rp_identity *identity, struct rp_error *err);

/* The mark that a restore of this file is about: its last one; of a file in quarantine, the one
 * that was purged into it. */
int rp_file_mark(struct rp_db *db, int64_t file_id, struct rp_arena *arena, struct rp_mark *out, struct rp_error *err);

/* The file's store among these; NULL: it is not configured any more. */
const struct rp_store *rp_store_of_file(struct rp_store *const *stores, size_t n, const struct rp_file *file);

/* {"id","status","name","store","key",...} as the API shows a file, with its mark if one waits. */
json_t *rp_file_json(const struct rp_file_answer *answer, const char *store);
/* The same for a file as it was read; `mark` may be NULL. */
void rp_file_answer_of(const struct rp_file *file, const struct rp_mark *mark, struct rp_file_answer *out);

/* Whether an object may be put under this key by hand. RP_EISFILE: it is a file's. A key of a file
 * is used by that file alone, so what is allowed once stays allowed. */
int rp_overwrite_check(struct rp_db *db, const struct rp_store *store, const char *key, struct rp_error *err);

#endif
