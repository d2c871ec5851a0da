/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - marks, files, holds and tenants as the judge knows them: made of what was committed,
 * and nothing else. Plain memory, so that it can be kept and put back with a catalog. */
#ifndef RP_SIM_MODEL_H
#define RP_SIM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_MARKS_MAX         1500
#define MODEL_FILES_MAX         96
#define MODEL_HOLDS_MAX         128
#define MODEL_TXNS_MAX          24
#define MODEL_KEYS_MAX          160
#define MODEL_CONFIRMATIONS_MAX 1500
#define MODEL_KEY               100
#define MODEL_ETAG              72

struct model_mark {
    int64_t id, due_at_ms, next_at_ms, file_id, tenant_id, fence;
    char key[MODEL_KEY], etag[MODEL_ETAG], version[MODEL_ETAG];
    int state, was, outcome;
    int holder;            /* who claimed it: node and life; 0: nobody */
    bool in_place;         /* of what is hidden in quarantine, where it was: there is no copy */
    bool returned;         /* of a copy in quarantine whose object was returned */
    bool asks;             /* it has a guard */
    bool weakly;           /* claimed by a node that knew of no better way than to look and delete */
    uint64_t since;        /* step of the last change */
    int64_t leased_at_ms;  /* true time of its claim, or of the last renewal; 0: nobody has a lease */
    int64_t over_least_ms; /* when it last changed, by the least that the boot clocks said (task.h); so below */
    bool gone;             /* retention let it go */
};

struct model_file {
    int64_t id, tenant_id, mark_id, parent_id, source_id, txn_id, with_id, size_bytes;
    int64_t made_ms; /* true time */
    char name[20], key[MODEL_KEY];
    int status, was;
    int lived, deleted, returned; /* how often it became live, deleted, live again */
    bool lost;                    /* its bytes went with everybody's consent */
    int64_t over_least_ms;
    bool gone; /* retention let it go */
};

struct model_hold {
    int64_t id, tenant_id;
    int scope;
    char key[MODEL_KEY];
    bool lifted;
    int64_t over_least_ms;
};

struct model_txn {
    int64_t id;
    int state;
    int64_t over_least_ms;
    bool gone;
};

/* An answer saved under an Idempotency-Key. */
struct model_key {
    int64_t id, over_least_ms;
};

/* One service that is to say yes about a mark, as it was committed. */
struct model_confirmation {
    int64_t id, mark_id, attempts;
    int ordinal, service, state;
    bool asked; /* at some time */
};

struct model {
    struct model_mark marks[MODEL_MARKS_MAX];
    size_t n_marks;
    struct model_file files[MODEL_FILES_MAX];
    size_t n_files;
    struct model_hold holds[MODEL_HOLDS_MAX];
    size_t n_holds;
    struct model_txn txns[MODEL_TXNS_MAX];
    size_t n_txns;
    struct model_key keys[MODEL_KEYS_MAX];
    size_t n_keys;
    struct model_confirmation confirmations[MODEL_CONFIRMATIONS_MAX];
    size_t n_confirmations;
};

void model_clear(struct model *m);
void model_copy(struct model *to, const struct model *from);
struct model_mark *model_mark(struct model *m, int64_t id);
struct model_file *model_file(struct model *m, int64_t id);
struct model_txn *model_txn(struct model *m, int64_t id);
struct model_confirmation *model_confirmation(struct model *m, int64_t id);
/* The newest mark of a key; NULL: none. */
struct model_mark *model_mark_of(struct model *m, const char *key);
/* The mark of what this copy in quarantine was made of; NULL: it is none, or nobody knows. */
struct model_mark *model_original(struct model *m, const char *key);
bool model_is_active(const struct model_mark *mark);
/* Its purge was decided: there is no way back. */
bool model_is_decided(const struct model_mark *mark);
/* A copy in quarantine is held with what it was made of, too. */
bool model_is_held(struct model *m, const char *key, int64_t tenant_id);
struct model_file *model_file_of_key(struct model *m, const char *key);

#endif
