/* SPDX-License-Identifier: Apache-2.0 */
#include "core/check/check.h"

#include "base/arena.h"
#include "core/check/references.h"

#include <inttypes.h>
#include <stdio.h>

/* Q3 */
static bool is_asked(int64_t bit, const struct rp_mark *mark, const struct rp_check_answer *answer)
{
    return (mark->checks & bit) != 0 && answer->says == RP_SAYS_YES;
}

static void refuse(struct rp_check_answer *answer, enum rp_says says, const char *why)
{
    answer->says = says;
    snprintf(answer->note, sizeof answer->note, "%.119s", why);
}

static int ask_references(struct rp_store *store, const struct rp_mark *const *marks, size_t n, struct rp_arena *arena,
                          struct rp_check_answer *answers, struct rp_error *err)
{
    const char **keys = rp_arena_array(arena, n, sizeof *keys);
    int64_t *counts = rp_arena_array(arena, n, sizeof *counts);
    struct rp_check_answer **of = rp_arena_array(arena, n, sizeof(struct rp_check_answer *));
    size_t n_keys = 0;
    if (keys == NULL || counts == NULL || of == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        if (!is_asked(RP_CHECK_REFERENCES, marks[i], &answers[i])) continue;
        of[n_keys] = &answers[i];
        keys[n_keys++] = marks[i]->key;
    }
    if (n_keys == 0) return 0;
    if (store->references == NULL) /* the list was taken out of the configuration */
        return rp_error_set(err, RP_ECONFIG, "store '%s' has no referenced_by any more", store->config->name);
    int r = rp_references_count(store->references, keys, n_keys, counts, err);
    for (size_t i = 0; i < n_keys && r == 0; i++) {
        char note[80];
        snprintf(note, sizeof note, "still referenced by %" PRId64 " %s", counts[i], counts[i] == 1 ? "row" : "rows");
        of[i]->references = counts[i];
        if (counts[i] > 0) refuse(of[i], RP_SAYS_NO, note);
    }
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
    int64_t known = 0;
    int failed = 0;
    for (size_t c = 0; c < RP_CHECKS; c++)
        known |= rp_checks[c].bit;
    for (size_t i = 0; i < n; i++) {
        answers[i] = (struct rp_check_answer){ .says = RP_SAYS_YES, .references = -1 };
        if (marks[i]->checks == 0 || (marks[i]->checks & ~known) != 0)
            refuse(&answers[i], RP_SAYS_UNKNOWN, "it has a check that this version does not know");
    }
    for (size_t c = 0; c < RP_CHECKS; c++) {
        int r = rp_checks[c].ask(store, marks, n, arena, answers, err);
        if (r < 0) failed = r;
        for (size_t i = 0; i < n && r < 0; i++)
            if (is_asked(rp_checks[c].bit, marks[i], &answers[i])) refuse(&answers[i], RP_SAYS_UNKNOWN, err->text);
    }
    return failed;
}
