/* SPDX-License-Identifier: Apache-2.0 */
#include "core/subject/quarantine.h"

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/digest.h"
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

bool rp_quarantine_original(const char *key, int64_t *mark_id)
{
    enum rp_id_kind kind;
    return rp_quarantine_is(key) && rp_id_parse(key + strlen(RP_STORE_QUARANTINE), &kind, mark_id) &&
           kind == RP_ID_MARK;
}

bool rp_quarantine_is_returned(const struct rp_mark *mark)
{
    return rp_quarantine_is(mark->key) && strcmp(mark->reason, RP_REASON_RETURNED) == 0;
}

int rp_quarantine_mark(struct rp_db *db, const struct rp_mark *mark, struct rp_arena *arena, struct rp_mark *out,
                       struct rp_error *err)
{
    char key[RP_QUARANTINE_KEY];
    struct rp_mark newest[2];
    struct rp_marks history = { .at = newest, .max = 2, .arena = arena };
    int r = rp_marks_history(db, mark->store_id, rp_quarantine_key(mark->id, key), &history, err);
    if (r < 0) return r;
    /* a return ends the copy's first mark and makes its second, which only waits to erase it */
    bool returned = history.n == 2 && newest[1].outcome == RP_END_RESTORED;
    if (history.n == 0 || (rp_state_final(newest[0].state) && !returned)) return RP_ENOTFOUND;
    *out = newest[returned ? 1 : 0];
    return 0;
}

static int add_to_digest(void *ctx, const void *from, size_t n, struct rp_error *err)
{
    (void)err;
    rp_digest_add(ctx, from, n);
    return 0;
}

static int digest_object(struct rp_backend *backend, const char *key, uint8_t out[RP_DIGEST_BYTES])
{
    RP_CLEANUP(rp_digest_freep) struct rp_digest *digest = rp_digest_new();
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    struct rp_sink sink = { .write = add_to_digest, .ctx = digest };
    struct rp_identity identity;
    struct rp_meta meta;
    struct rp_error why = { 0 };
    if (digest == NULL) return RP_ENOMEM;
    rp_digest_begin(digest);
    int r = rp_backend_get(backend, key, &sink, &arena, &meta, &identity, &why);
    if (r == 0) rp_digest_end(digest, out);
    return r;
}

bool rp_quarantine_stands(struct rp_backend *backend, const struct rp_mark *copy, const char *key,
                          struct rp_identity *as)
{
    uint8_t ours[RP_DIGEST_BYTES], theirs[RP_DIGEST_BYTES];
    struct rp_item item = { .key = key };
    struct rp_error why = { 0 };
    if (rp_backend_stat(backend, &item, 1, &why) < 0 || item.outcome != RP_OUT_FOUND) return false;
    if (item.identity.size_bytes != copy->size_bytes) return false;
    *as = item.identity;
    return digest_object(backend, copy->key, ours) == 0 && digest_object(backend, key, theirs) == 0 &&
           memcmp(ours, theirs, RP_DIGEST_BYTES) == 0;
}
