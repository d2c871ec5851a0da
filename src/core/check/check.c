/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - the list of checks, and all of them asked of a batch. */
#include "core/check/check.h"

#include "base/arena.h"
#include "core/check/references.h"

#include <stdio.h>

bool rp_store_asks(const struct rp_store *store)
{
    return store->references != NULL;
}

int64_t rp_checks_of(const struct rp_store *store, const struct rp_mark *mark)
{
    bool asked = mark->original == NULL && !rp_mark_is_unseen(mark);
    return mark->checks | (asked && rp_store_asks(store) ? RP_CHECK_REFERENCES : 0);
}

/* Q4 */
static bool is_asked(const struct rp_store *store, int64_t bit, const struct rp_mark *mark,
                     const struct rp_check_answer *answer)
{
    return (rp_checks_of(store, mark) & bit) != 0 && answer->says == RP_SAYS_YES;
}

static void refuse(struct rp_check_answer *answer, enum rp_says says, const char *why)
{
    answer->says = says;
    snprintf(answer->note, sizeof answer->note, "%.239s", why);
}

static void take_count(struct rp_check_answer *answer, const struct rp_referenced *found, int64_t wait_ms,
                       const struct rp_error *why)
{
    char note[RP_REFERENCED_TEXT + 32], text[RP_REFERENCED_TEXT];
    answer->references = found->rows;
    if (found->rows < 0) {
        answer->wait_ms = wait_ms;
        refuse(answer, RP_SAYS_UNKNOWN, why->text);
    } else if (found->rows > 0) {
        snprintf(note, sizeof note, "still referenced by %s", rp_referenced_text(found, text));
        refuse(answer, RP_SAYS_NO, note);
    }
}

static int ask_references(struct rp_store *store, const struct rp_mark *const *marks, size_t n, struct rp_arena *arena,
                          struct rp_check_answer *answers, struct rp_error *err)
{
    const char **keys = rp_arena_array(arena, n, sizeof *keys);
    struct rp_referenced *found = rp_arena_array(arena, n, sizeof *found);
    struct rp_check_answer **of = rp_arena_array(arena, n, sizeof(struct rp_check_answer *));
    size_t n_keys = 0;
    if (keys == NULL || found == NULL || of == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        if (!is_asked(store, RP_CHECK_REFERENCES, marks[i], &answers[i])) continue;
        of[n_keys] = &answers[i];
        keys[n_keys++] = marks[i]->key;
    }
    if (n_keys == 0) return 0;
    if (store->references == NULL) /* the list was taken out of the configuration */
        return rp_error_set(err, RP_ECONFIG, "store '%s' has no referenced_by any more", store->config->name);
    int64_t wait_ms = rp_references_left_alone_ms(store->references, err); /* Q3 */
    int r = wait_ms > 0 ? RP_EUNAVAILABLE : rp_references_count(store->references, keys, n_keys, found, err);
    if (wait_ms == 0) wait_ms = rp_references_left_alone_ms(store->references, NULL);
    for (size_t i = 0; i < n_keys && r < 0; i++)
        of[i]->wait_ms = wait_ms;
    for (size_t i = 0; i < n_keys && r == 0; i++)
        take_count(of[i], &found[i], wait_ms, err);
    return r;
}

const struct rp_check rp_checks[RP_CHECKS] = {
    { .name = "references", .bit = RP_CHECK_REFERENCES, .ask = ask_references },
};

const char *rp_check_name(int64_t checks)
{
    for (size_t c = 0; c < RP_CHECKS; c++)
        if ((checks & rp_checks[c].bit) != 0) return rp_checks[c].name;
    return NULL;
}

int rp_check_ask(struct rp_store *store, const struct rp_mark *const *marks, size_t n, struct rp_arena *arena,
                 struct rp_check_answer *answers, struct rp_error *err)
{
    int64_t known = RP_CHECK_AGREED;
    int failed = 0;
    for (size_t c = 0; c < RP_CHECKS; c++)
        known |= rp_checks[c].bit;
    for (size_t i = 0; i < n; i++) {
        answers[i] = (struct rp_check_answer){ .says = RP_SAYS_YES, .references = -1 };
        if ((marks[i]->checks & ~known) != 0)
            refuse(&answers[i], RP_SAYS_UNKNOWN,
                   (marks[i]->checks & RP_CHECK_CONFIRMATIONS) != 0 ? "it waits for confirmations"
                                                                    : "it has a check that this version does not know");
        else if (rp_checks_of(store, marks[i]) == 0) /* claimed by a node that has another configuration */
            refuse(&answers[i], RP_SAYS_UNKNOWN, "the store has no referenced_by any more: it is claimed anew");
    }
    for (size_t c = 0; c < RP_CHECKS; c++) {
        int r = rp_checks[c].ask(store, marks, n, arena, answers, err);
        if (r < 0) failed = r;
        for (size_t i = 0; i < n && r < 0; i++)
            if (is_asked(store, rp_checks[c].bit, marks[i], &answers[i]))
                refuse(&answers[i], RP_SAYS_UNKNOWN, err->text);
    }
    return failed;
}
