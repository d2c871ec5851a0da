/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that nobody heard of again, and that happen all the same: each is judged when it
 * happens. */
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "parts.h"

/* Takes the i-th out of those that wait; its place is spare, and as it was until the next one
 * waits. */
static struct bucket_request *take(struct bucket *bucket, size_t i)
{
    struct bucket_request *taken = bucket->late[i];
    RP_ASSERT(i < bucket->n_late);
    bucket->n_late--;
    memmove(&bucket->late[i], &bucket->late[i + 1], (bucket->n_late - i) * sizeof(struct bucket_request *));
    bucket->late[bucket->n_late] = taken;
    return taken;
}

void bucket_wait(struct bucket *bucket, const struct bucket_request *request)
{
    if (bucket->n_late == BUCKET_LATE_MAX) take(bucket, 0);
    struct bucket_request *waits = bucket->late[bucket->n_late++];
    *waits = *request;
    waits->sent_at_ms = request->hooks.true_ms != NULL ? request->hooks.true_ms(request->hooks.ctx) : 0;
}

const char *bucket_late_key(const struct bucket *bucket, size_t i)
{
    RP_ASSERT(i < bucket->n_late);
    return bucket->late[i]->upload.key;
}

void bucket_forget_late(struct bucket *bucket, int64_t before_ms)
{
    for (size_t i = bucket->n_late; i-- > 0;)
        if (bucket->late[i]->sent_at_ms < before_ms) take(bucket, i);
}

size_t bucket_late(const struct bucket *bucket)
{
    return bucket->n_late;
}

int bucket_copy_now(struct bucket *bucket, const struct bucket_request *request, struct rp_identity *out)
{
    const struct bucket_upload *source = bucket_newest(bucket, request->from);
    struct bucket_upload draft;
    if (source == NULL) return RP_ENOTFOUND;
    if (!rp_identity_equal(&source->identity, &request->upload.identity)) return RP_ECHANGED;
    draft = *source;
    bucket_text(draft.key, sizeof draft.key, request->upload.key);
    const struct bucket_upload *made =
        bucket_place(bucket, &request->hooks, &draft, RP_PUT_NEW, bucket_now_ms(&request->hooks));
    if (made == NULL) return RP_EEXISTS;
    *out = made->identity;
    return 0;
}

int bucket_annotate_now(struct bucket *bucket, const struct bucket_request *request)
{
    struct bucket_upload *upload = bucket_newest(bucket, request->upload.key);
    if (upload == NULL) return RP_ENOTFOUND;
    if (!rp_identity_equal(&upload->identity, &request->upload.identity)) return RP_ECHANGED;
    upload->meta_bytes = request->upload.meta_bytes;
    memcpy(upload->meta, request->upload.meta, request->upload.meta_bytes);
    return 0;
}

void bucket_settle(struct bucket *bucket, size_t i)
{
    const struct bucket_request *request = take(bucket, i);
    const struct bucket_upload *upload = &request->upload;
    struct rp_identity made;
    switch (request->later) {
    case BUCKET_LATER_PUT:
        bucket_place(bucket, &request->hooks, upload, request->flags, bucket_now_ms(&request->hooks));
        break;
    case BUCKET_LATER_ERASE:
        bucket_erase(bucket, &request->hooks, request->by, upload->key, &upload->identity, request->serial);
        if (request->by == BUCKET_BY_MARKER) bucket_top(bucket, upload->key)->late = true;
        break;
    case BUCKET_LATER_COPY:
        (void)bucket_copy_now(bucket, request, &made);
        break;
    case BUCKET_LATER_ANNOTATE:
        (void)bucket_annotate_now(bucket, request);
        break;
    }
}
