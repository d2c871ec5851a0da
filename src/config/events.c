/* SPDX-License-Identifier: Apache-2.0 */
#include "config/events.h"

#include <string.h>

const char *const rp_event_names[] = {
    "alert.cleared",      "alert.raised",        "audit.sealed",      "clock.accepted",        "file.cleaned",
    "file.delete_failed", "file.deleted",        "file.live",         "file.pending",          "file.purged",
    "file.restored",      "file.uploaded",       "hold.lifted",       "hold.placed",           "mark.asked",
    "mark.confirmed",     "mark.created",        "mark.dead",         "mark.extended",         "mark.lost",
    "mark.purged",        "mark.reprieved",      "mark.retried",      "object.returned",       "object.returned_again",
    "orphan.detected",    "quota.rebuilt",       "quota.set",         "retention.let_go",      "run.cancelling",
    "run.finished",       "run.resumed",         "run.started",       "store.keys_changed",    "store.level_changed",
    "store.moved",        "store.owned",         "store.recovered",   "store.renamed",         "token.created",
    "token.revoked",      "transaction.aborted", "transaction.begun", "transaction.committed", NULL,
};
_Static_assert(sizeof rp_event_names / sizeof rp_event_names[0] <= RP_EVENT_NAMES_MAX, "a list has room for all");

bool rp_event_fits(const char *pattern, size_t n, const char *name)
{
    bool begins = n >= 2 && pattern[n - 1] == '*' && pattern[n - 2] == '.';
    if (begins) return strncmp(pattern, name, n - 1) == 0;
    return strlen(name) == n && strncmp(pattern, name, n) == 0;
}

bool rp_event_pattern_is_known(const char *pattern, size_t n)
{
    for (const char *const *name = rp_event_names; *name != NULL; name++)
        if (rp_event_fits(pattern, n, *name)) return true;
    return false;
}

static bool fits_any(const char *patterns, const char *name)
{
    for (const char *p = patterns; *p != 0;) {
        size_t n = strcspn(p, " ");
        if (rp_event_fits(p, n, name)) return true;
        p += n;
        p += strspn(p, " ");
    }
    return false;
}

void rp_event_names_of(const char *patterns, const char *out[RP_EVENT_NAMES_MAX])
{
    size_t n = 0;
    for (const char *const *name = rp_event_names; *name != NULL; name++)
        if (fits_any(patterns, *name)) out[n++] = *name;
    out[n] = NULL;
}
