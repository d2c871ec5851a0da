/* SPDX-License-Identifier: Apache-2.0 */
/* inner.h - what the files of the verb mark share: items of many commands, grouped by store. */
#ifndef RP_CORE_MARK_INNER_H
#define RP_CORE_MARK_INNER_H

#include "base/arena.h"
#include "core/mark/mark.h"

struct rp_mark_entry {
    struct rp_mark_command *command;
    struct rp_mark_item *item;
    size_t order;
};

/* The items about one store, in order of key, then of arrival. */
struct rp_mark_group {
    struct rp_store *store;
    struct rp_mark_entry *entries;
    size_t n;
    const char **keys; /* distinct; of each the first entry is first[k], and first[n_keys] is n */
    size_t *first;
    size_t n_keys;
};

struct rp_mark_groups {
    struct rp_mark_group *at;
    size_t n;
};

/* All items that are not refused yet. Lives in the arena. */
int rp_mark_groups_make(struct rp_command *const *commands, size_t n, struct rp_arena *arena,
                        struct rp_mark_groups *out, struct rp_error *err);
/* Which of the group's keys it is; it must be one of them. */
size_t rp_mark_group_key(const struct rp_mark_group *group, const char *key);

/* The verb's first step: looks at the objects, and counts references where that was asked for. */
void rp_mark_prepare(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n);

/* The verb's last step, and for run: whether there is one, and what a new mark says of it. */
void rp_mark_finish(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n);
bool rp_mark_is_finish_due(const struct rp_mark_item *item);
bool rp_mark_wants_annotation(const struct rp_mark_item *item);

/* The same decisions as rp_verb_mark, without effect. */
extern const struct rp_verb rp_verb_mark_dry;

#endif
