/* SPDX-License-Identifier: Apache-2.0 */
#include "core/subject/subject.h"

#include "base/assert.h"

#include <stdio.h>

static const struct rp_subject_kind *const kinds[] = { &rp_subject_object, &rp_subject_file };
#define KINDS (sizeof kinds / sizeof kinds[0])

const struct rp_subject_kind *rp_subject_of(const struct rp_mark *mark)
{
    return mark->file_id != 0 ? &rp_subject_file : &rp_subject_object;
}

const struct rp_subject_kind *rp_subject_in(const struct rp_store *store)
{
    RP_ASSERT(store->backend != NULL);
    return &rp_subject_object;
}

struct rp_identity rp_subject_identity(const struct rp_mark *mark)
{
    struct rp_identity identity = { .size_bytes = mark->size_bytes, .modified_ms = mark->modified_ms };
    snprintf(identity.etag, sizeof identity.etag, "%s", mark->etag);
    snprintf(identity.version, sizeof identity.version, "%s", mark->version);
    return identity;
}

const char *rp_subject_id(const struct rp_mark *mark, char out[RP_ID_TEXT])
{
    const struct rp_subject_kind *kind = rp_subject_of(mark);
    return rp_id_format(kind->id, kind == &rp_subject_file ? mark->file_id : mark->id, out);
}

bool rp_subject_is_quarantined(const struct rp_store *store, const struct rp_mark *mark)
{
    return store->config->mode == RP_MODE_QUARANTINE && !rp_quarantine_is(mark->key);
}

bool rp_subject_stays_in_place(const struct rp_store *store, const struct rp_mark *mark)
{
    return rp_subject_is_quarantined(store, mark) && mark->version[0] != 0 && rp_subject_can_hide(store);
}

bool rp_subject_can_hide(const struct rp_store *store)
{
    return store->backend != NULL && rp_backend_hides(store->backend);
}

/* Whatever was probed of hiding: an erase takes older versions along all the same. */
bool rp_subject_may_have_older(const struct rp_store *store)
{
    return rp_backend_has_hiding(store->backend);
}

const char *rp_subject_where(const struct rp_mark *mark)
{
    return mark->in_place ? mark->original : mark->key;
}

int rp_subjects_claimed(struct rp_tx *tx, const char *store, const struct rp_marks *marks, const char *actor,
                        struct rp_error *err)
{
    int r = 0;
    for (size_t k = 0; k < KINDS && r == 0; k++)
        if (kinds[k]->claimed != NULL) r = kinds[k]->claimed(tx, store, marks, actor, err);
    return r;
}

int rp_subjects_ended(struct rp_tx *tx, const char *store, const struct rp_move *moves, size_t n, const char *actor,
                      struct rp_error *err)
{
    int r = 0;
    for (size_t k = 0; k < KINDS && r == 0; k++)
        if (kinds[k]->ended != NULL) r = kinds[k]->ended(tx, store, moves, n, actor, err);
    return r;
}

int rp_subjects_copied(struct rp_tx *tx, const struct rp_mark *marks, const int64_t *from, size_t n,
                       struct rp_error *err)
{
    int r = 0;
    for (size_t k = 0; k < KINDS && r == 0; k++)
        if (kinds[k]->copied != NULL) r = kinds[k]->copied(tx, marks, from, n, err);
    return r;
}
