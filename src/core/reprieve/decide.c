/* SPDX-License-Identifier: Apache-2.0 */
/* decide.c - what a restore of a mark means, by what the catalog knows alone. */
#include "core/confirm/confirm.h"
#include "core/reprieve/inner.h"
#include "core/subject/subject.h"

#include <stdio.h>

const char *rp_reprieving_name(enum rp_reprieving what)
{
    static const char *const names[] = { [RP_REPRIEVE_REFUSED] = "refused",
                                         [RP_REPRIEVE_DONE] = "restored",
                                         [RP_REPRIEVE_ALREADY] = "already restored",
                                         [RP_REPRIEVE_RETURNED] = "returned from quarantine" };
    return names[what];
}

enum rp_reprieving rp_reprieve_too_late(const struct rp_mark *mark, const char *store, const char *why,
                                        struct rp_error *err)
{
    rp_error_set(err, RP_ETOOLATE, "%s:%s: too late, %s", store, mark->key, why);
    if (mark->state == RP_DEAD) rp_error_hint(err, "see `reprieve dead`: something of it may already be erased");
    return RP_REPRIEVE_REFUSED;
}

enum rp_reprieving rp_reprieve_decide(const struct rp_mark *mark, const struct rp_mark *copy, const char *store,
                                      struct rp_error *err)
{
    if (rp_quarantine_is(mark->key)) {
        /* reprieved by itself it would be a copy that nobody returns and nobody erases */
        rp_error_set(err, RP_EINVAL, "%s:%s is a copy in quarantine", store, mark->key);
        rp_error_hint(err, "restore the mark that its name ends with: it is returned under its own key");
        return RP_REPRIEVE_REFUSED;
    }
    switch (mark->state) {
    case RP_MARKED:
        return RP_REPRIEVE_DONE;
    case RP_REPRIEVED:
        return RP_REPRIEVE_ALREADY;
    case RP_CHECKING:
        if (rp_mark_has_confirmations(mark))
            return rp_reprieve_too_late(mark, store, "an outside service is asked to delete its half", err);
        return rp_reprieve_too_late(mark, store, "its purge has begun (checking)", err);
    case RP_PURGING:
        return rp_reprieve_too_late(mark, store, "its purge has begun", err);
    case RP_DEAD:
        if (rp_mark_is_refused(mark)) return RP_REPRIEVE_DONE;
        if (mark->was == RP_CHECKING)
            return rp_reprieve_too_late(mark, store, "an outside service has deleted its half", err);
        return rp_reprieve_too_late(mark, store, "its purge has begun and failed", err);
    case RP_PURGED:
        if (copy != NULL && copy->state == RP_MARKED) return RP_REPRIEVE_RETURNED;
        if (copy != NULL && copy->state == RP_REPRIEVED) return RP_REPRIEVE_ALREADY;
        return rp_reprieve_too_late(mark, store, "it was purged", err);
    default:
        break;
    }
    return rp_reprieve_too_late(mark, store, "it was given up after a failed purge", err);
}

int rp_reprieve_see_agreed(struct rp_db *db, const struct rp_mark *mark, struct rp_arena *arena,
                           struct rp_reprieve_answer *answer, struct rp_error *err)
{
    const char *names;
    answer->agreed = NULL;
    if (answer->what != RP_REPRIEVE_RETURNED || !rp_mark_has_agreed(mark)) return 0;
    int r = rp_confirmations_agreed(db, mark->id, arena, &names, err);
    if (r == 0 && names[0] != 0) answer->agreed = names;
    return r;
}

int rp_reprieve_name_services(struct rp_db *db, const struct rp_mark *mark, const char *store, struct rp_arena *arena,
                              struct rp_error *refusal, struct rp_error *err)
{
    char before[RP_KEY_MAX + 100];
    snprintf(before, sizeof before, "%.64s:%.*s: too late,", store, RP_KEY_MAX, mark->key);
    return rp_confirm_refuse(db, mark, arena, before, refusal, err);
}

int rp_reprieve_foresee(struct rp_db *db, const struct rp_mark *mark, const char *store, struct rp_arena *arena,
                        struct rp_reprieve_answer *out, struct rp_error *err)
{
    struct rp_mark copy;
    int r = mark->state != RP_PURGED ? RP_ENOTFOUND : rp_quarantine_mark(db, mark, arena, &copy, err);
    if (r < 0 && r != RP_ENOTFOUND) return r;
    *out = (struct rp_reprieve_answer){ .what = RP_REPRIEVE_REFUSED };
    out->what = rp_reprieve_decide(mark, r == 0 ? &copy : NULL, store, &out->error);
    r = rp_reprieve_name_services(db, mark, store, arena, &out->error, err);
    return r < 0 ? r : rp_reprieve_see_agreed(db, mark, arena, out, err);
}
