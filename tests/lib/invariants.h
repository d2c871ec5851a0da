/* SPDX-License-Identifier: Apache-2.0 */
/* invariants.h - the promises of DESIGN section 4, put as questions to a catalog and a store.
 *
 * Q1  The questions are asked from outside: over a connection of their own and through the bare
 *     store. What users were told (struct inv_known) is kept by the test, never read from the
 *     program under test.
 * Q2  A violation is one line, "NAME: what is wrong"; no lines, no violation. test_invariants.c
 *     breaks each promise on purpose and reads its name.
 * Q3  INTENT-FIRST and NO-EARLY can only be seen at the moment of a delete: inv_watch_wrap looks at
 *     every one.
 *
 * SQLite and a store of one place; nothing here sleeps or reads a real clock. */
#ifndef RP_TESTS_LIB_INVARIANTS_H
#define RP_TESTS_LIB_INVARIANTS_H

#include "base/digest.h"
#include "base/text/buf.h"
#include "catalog/catalog.h"
#include "store/backend.h"

#define INV_SUBJECTS_MAX 32
#define INV_FILES_MAX    8
#define INV_TXNS_MAX     2
#define INV_TEXT         48
#define INV_KEY          96
#define INV_TENANT       "acme"
#define INV_TYPE         "text/x-upload"

/* One subject as its user knows it. */
struct inv_subject {
    char key[INV_TEXT];
    char bytes[INV_TEXT]; /* of the newest upload; its owner metadata says the same */
    char etag[RP_ETAG_MAX];
    int uploads;
    bool asked;    /* somebody asked to delete the newest upload, heard or not */
    bool promised; /* and was told yes: mark and due hold what the answer said */
    bool restored; /* a restore was acknowledged, and nothing was asked since */
    bool noted;    /* ... but told that its annotation could not be removed */
    bool stays;    /* held, still referenced, or in a store that is not ours: deleting it now is wrong */
    int64_t mark_id, due_at_ms;
};

/* One upload as its user knows it. Its name may be another's as well. */
struct inv_file {
    char name[INV_TEXT], bytes[INV_TEXT], key[INV_KEY], etag[RP_ETAG_MAX];
    bool begun;     /* the init was acknowledged: id, key, mark and due hold what the answer said */
    bool put;       /* the bytes were sent, heard or not */
    bool confirmed; /* acknowledged, alone or by its transaction's commit */
    bool asked;     /* somebody asked to delete or replace it, heard or not, or began to */
    bool deleted;   /* acknowledged */
    bool restored;  /* acknowledged, and nothing was asked since */
    int64_t id, mark_id, due_at_ms;
    size_t txn; /* 1 + its transaction; 0: none */
};
struct inv_txn {
    int64_t id;
    bool begun, committed, aborted; /* acknowledged */
};

/* Plain memory without pointers, so that it can be shared with a process that dies. */
struct inv_known {
    int64_t host_ms, db_ms, store_ms; /* the three clocks */
    size_t n;
    struct inv_subject subjects[INV_SUBJECTS_MAX];
    size_t n_files, n_txns;
    struct inv_file files[INV_FILES_MAX];
    struct inv_txn txns[INV_TXNS_MAX];
    int64_t removes; /* items that any store delete named */
    int64_t max_attempts;
    int64_t returning_id; /* a restore from quarantine is under way: it may take its own copy away again */
    char seen[400];       /* the first violation that the watch saw, or "" */
};

struct inv_world {
    struct rp_catalog *catalog; /* a connection of its own */
    struct rp_backend *backend; /* the bare one */
    struct rp_backend *below;   /* what it hides stands in this one; NULL: it hides nothing */
    const char *root;           /* of a directory store, else NULL */
    int64_t store_id;
    struct inv_known *known;
    bool unrecorded_calls; /* services were called, and the audit rows of that are known to be gone */
};

/* What retention let go is counted by its audit rows. SQL of SQLite. */
#define INV_LET_GO(what)                                                                                               \
    "(SELECT COALESCE(SUM(json_extract(details, '$.rows')), 0) FROM audit WHERE event = 'retention.let_go' "           \
    "AND json_extract(details, '$.what') = '" what "')"
/* `a` is `b`, or more than that because retention let something go. */
#define INV_DIFFERS(a, b)                                                                                              \
    "(" a " < " b " OR (" a " > " b " AND NOT EXISTS (SELECT 1 FROM audit WHERE event = 'retention.let_go')))"

/* A file's mark `m` that is of a copy, or waits for late uploads; that one a person may have given
 * more time by its key, and another reason. */
#define INV_SECOND                                                                                                     \
    "(m.reason IN ('quarantine', 'late upload') OR (m.etag = '' AND m.version = '' "                                   \
    "AND EXISTS (SELECT 1 FROM audit e WHERE e.mark_id = m.id AND e.event = 'mark.extended') "                         \
    "AND NOT EXISTS (SELECT 1 FROM audit e WHERE e.mark_id = m.id AND e.event IN ('file.pending', 'file.deleted'))))"

enum inv_when {
    INV_ALWAYS, /* what holds at every moment, also in the middle of trouble */
    INV_HEALED  /* and what holds once faults have stopped, every due time has passed and a sweep finds nothing to do */
};

/* Appends a line a violation; returns how many. */
int inv_check(const struct inv_world *world, enum inv_when when, struct rp_buf *out);

/* Only those that the catalog alone can answer. */
int inv_check_catalog(const struct inv_world *world, enum inv_when when, struct rp_buf *out);

/* The questions about files, quota and transactions (invariants_files.c). */
int inv_check_files(const struct inv_world *world, enum inv_when when, struct rp_buf *out);

/* FENCED: take the digest of everything that is known of marks before a worker without lease tries
 * to finish, and ask afterwards whether it is still the same. */
void inv_marks_digest(const struct inv_world *world, char out[RP_DIGEST_HEX]);
int inv_check_fenced(const struct inv_world *world, const char before[RP_DIGEST_HEX], struct rp_buf *out);

/* `inner` with a look at the catalog before every delete, and with the known clock as the store's
 * own. Refuses (RP_OUT_DENIED) to delete the key `*deny` while that is not empty. Does not take
 * `inner` over. */
int inv_watch_wrap(const struct inv_world *world, struct rp_backend *inner, const char *deny, struct rp_backend **out);

/* Whether the newest upload stands under `key`, byte for byte, with its headers and metadata.
 * `annotated`: our own fields may stand beside them. `why` says what is wrong. */
bool inv_stands(const struct inv_world *world, const char *key, const struct inv_subject *subject, bool annotated,
                char why[160]);
/* Uploads as a user of the store would, beside us: the subject's next bytes. */
void inv_upload(const struct inv_world *world, struct inv_subject *subject);
/* All rows of a statement's only column, a text, as lines of `prefix`. */
int inv_ask(const struct inv_world *world, const char *prefix, const char *text, struct rp_buf *out);
/* The same for a statement that keeps its place in memory: the connection prepares it once. Its
 * name is the prefix. */
int inv_ask_again(const struct inv_world *world, const struct rp_sql *sql, struct rp_buf *out);

#endif
