/* SPDX-License-Identifier: Apache-2.0 */
/* uploads.h - users that upload: what they know of their files and transactions, and what they
 * ask. */
#ifndef RP_SIM_UPLOADS_H
#define RP_SIM_UPLOADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/file/file.h"

struct sim;
struct sim_node;

/* The answer under an Idempotency-Key was let go: given again, it is a new one. */
struct sim_forgotten {
    uint64_t at; /* step; 0: never */
    int times;
};

/* What a user knows of an upload. */
struct sim_file {
    size_t tenant, parent, source, replaces, txn; /* SIZE_MAX: none */
    char name[16], text[48], key[RP_FILE_KEY_TEXT];
    char answer[160]; /* to its init, word for word */
    int64_t id;
    int64_t url_ends_ms, sent_at_ms; /* true times */
    int64_t arrived_id;              /* of the file whose bytes arrived last */
    bool begun, put, late;           /* late: its bytes are still under way */
    struct sim_forgotten forgotten;
};
struct sim_txn {
    size_t tenant;
    char answer[32];
    int64_t id;
    bool begun;
    struct sim_forgotten forgotten;
};

int sim_give_init(struct sim_node *n);
int sim_give_put(struct sim_node *n);
int sim_give_confirm(struct sim_node *n);
int sim_give_file(struct sim_node *n); /* delete, undelete, return, result */
int sim_give_txn(struct sim_node *n);  /* begin, commit, abort */
/* Bytes of an upload arrive at last. */
void sim_put_arrives(struct sim *s, size_t file);
/* The answer under this key was let go. */
void sim_forget_key(struct sim *s, const char *key);

#endif
