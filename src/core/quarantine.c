/* SPDX-License-Identifier: Apache-2.0 */
#include "core/quarantine.h"

#include "base/error.h"
#include "core/state.h"

#include <stdio.h>
#include <string.h>

const char *rp_quarantine_key(int64_t mark_id, char out[RP_QUARANTINE_KEY])
{
    char id[RP_ID_TEXT];
    snprintf(out, RP_QUARANTINE_KEY, RP_STORE_QUARANTINE "%s", rp_id_format(RP_ID_MARK, mark_id, id));
    return out;
}

bool rp_quarantine_is(const char *key)
{
    return strncmp(key, RP_STORE_QUARANTINE, strlen(RP_STORE_QUARANTINE)) == 0;
}

struct rp_identity rp_mark_identity(const struct rp_mark *mark)
{
    struct rp_identity identity = { .size_bytes = mark->size_bytes, .modified_ms = mark->modified_ms };
    snprintf(identity.etag, sizeof identity.etag, "%s", mark->etag);
    snprintf(identity.version, sizeof identity.version, "%s", mark->version);
    return identity;
}

int rp_quarantine_mark(struct rp_db *db, const struct rp_mark *mark, struct rp_arena *arena, struct rp_mark *out,
                       struct rp_error *err)
{
    char key[RP_QUARANTINE_KEY];
    struct rp_mark newest;
    struct rp_marks history = { .at = &newest, .max = 1, .arena = arena };
    int r = rp_marks_history(db, mark->place_id, rp_quarantine_key(mark->id, key), &history, err);
    if (r < 0) return r;
    if (history.n == 0 || rp_state_final(newest.state)) return RP_ENOTFOUND;
    *out = newest;
    return 0;
}
