/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - the story of one subject, in order, in words: why it is here, why it went, who
 * decided. */
#ifndef RP_CORE_EXPLAIN_H
#define RP_CORE_EXPLAIN_H

#include "catalog/mark/mark.h"
#include "core/store.h"

struct rp_story_line {
    int64_t at_ms;
    const char *event; /* "mark.created" */
    const char *actor;
    const char *words; /* "marked for deletion, due 2026-11-20T... (reason: avatar replaced)" */
    const char *mark;  /* "mrk_..." */
};
typedef int rp_story_fn(void *ctx, const struct rp_story_line *line, struct rp_error *err);

/* Who is told, and what decides when the next sweep is. */
struct rp_story {
    rp_story_fn *fn;
    void *ctx;
    const char *sweep_schedule; /* NULL: not known */
    int64_t sweep_limit;
};

#define RP_STORY_NAMES 200
struct rp_story_end {
    enum rp_outcome object;      /* FOUND, GONE, or what kept us from looking */
    struct rp_identity identity; /* FOUND */
    bool has_mark;
    struct rp_mark mark;  /* the newest, of the arena */
    int64_t dead_id;      /* its open dead letter; 0: none */
    bool file_is_deleted; /* and no mark of it waits: the safety net's to mend */
    bool held;
    int64_t hold_id; /* held: by this one, or by this one first */
    char held_by[RP_ACTOR_MAX];
    char agreed[RP_STORY_NAMES]; /* those that have deleted their half */
    char needs[RP_STORY_NAMES];  /* outside services that have not said yes yet: "calendar, mail" */
    char words[800];             /* what will happen next */
    char unmarked[120];          /* without a mark: what is known of earlier ones */
};

/* Tells every line of every mark of the subject (the last 100 marks), oldest first, then how things
 * stand. A subject that neither exists nor was ever marked is RP_ENOTFOUND. */
int rp_explain(struct rp_catalog *catalog, struct rp_store *store, const char *key, struct rp_arena *arena,
               const struct rp_story *story, struct rp_story_end *end, struct rp_error *err);

#endif
