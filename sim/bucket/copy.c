/* SPDX-License-Identifier: Apache-2.0 */
/* Copying and annotating: one request each, with the conditions of the port. */
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "parts.h"

static int not_found(const char *key, struct rp_error *err)
{
    return rp_error_set(err, RP_ENOTFOUND, "no object '%s'", key);
}

static int changed(const char *key, struct rp_error *err)
{
    return rp_error_set(err, RP_ECHANGED, "'%s' has changed", key);
}

/* ---- copy ---- */

static int explain(int code, const char *from, const char *to, struct rp_error *err)
{
    if (code == RP_ENOTFOUND) return not_found(from, err);
    if (code == RP_ECHANGED) return changed(from, err);
    return rp_error_set(err, code, "'%s' exists already", to);
}

int bucket_copy_slot(struct rp_backend *backend, const char *from, const struct rp_identity *expected, const char *to,
                     struct rp_identity *out, struct rp_error *err)
{
    struct bucket_handle *handle = bucket_handle_of(backend);
    struct bucket_request request = { .later = BUCKET_LATER_COPY, .hooks = handle->hooks };
    struct rp_identity made;
    int r = rp_key_check(from, strlen(from), err);
    if (r == 0) r = rp_key_check(to, strlen(to), err);
    if (r < 0) return r;
    request.upload.identity = *expected;
    bucket_text(request.upload.key, sizeof request.upload.key, to);
    bucket_text(request.from, sizeof request.from, from);
    enum bucket_fate fate = bucket_ask(handle, "copy", to);
    r = bucket_fail(fate, false, "copy", to, err);
    if (fate == BUCKET_LATE) bucket_wait(handle->bucket, &request);
    if (r < 0 && fate != BUCKET_LOST) return r;
    int done = bucket_copy_now(handle->bucket, &request, &made);
    if (r < 0) return r;
    if (done < 0) return explain(done, from, to, err);
    if (out != NULL) *out = made;
    return 0;
}

/* ---- annotate ---- */

static bool is_annotation(const char *name)
{
    static const char *const names[] = { "marked_for_deletion", "marked_for_deletion_on", "delete_after",
                                         "deletion_reason" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* A field that is away already needs no change. */
static int refuse_others(const struct bucket_upload *upload, const struct rp_pair *changes, size_t n,
                         struct rp_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!is_annotation(changes[i].name) && (changes[i].value != NULL || bucket_meta_has(upload, changes[i].name)))
            return rp_error_set(err, RP_EINVAL, "'%.64s' is no annotation: tags cannot change metadata",
                                changes[i].name);
    return 0;
}

/* Reads the metadata that stands there, and writes all of it, late or now. */
static int annotate(struct bucket_handle *handle, struct bucket_request *request, const struct rp_pair *changes,
                    size_t n, bool late, struct rp_error *err)
{
    const char *key = request->upload.key;
    const struct bucket_upload *upload = bucket_newest(handle->bucket, key);
    if (upload == NULL) return not_found(key, err);
    if (!rp_identity_equal(&upload->identity, &request->upload.identity)) return changed(key, err);
    int r = handle->bucket->kind != BUCKET_EXACT ? refuse_others(upload, changes, n, err) : 0;
    if (r == 0) r = bucket_meta_change(&request->upload, upload, changes, n, err);
    if (r == 0 && late) bucket_wait(handle->bucket, request);
    if (r == 0 && !late) r = bucket_annotate_now(handle->bucket, request);
    return r;
}

/* Tags lie beside the object, a directory's metadata too: the identity stays. */
int bucket_annotate_slot(struct rp_backend *backend, const char *key, struct rp_identity *identity,
                         const struct rp_pair *changes, size_t n, struct rp_error *err)
{
    struct bucket_handle *handle = bucket_handle_of(backend);
    struct bucket_request request = { .later = BUCKET_LATER_ANNOTATE, .hooks = handle->hooks };
    int r = rp_key_check(key, strlen(key), err);
    if (r < 0) return r;
    request.upload.identity = *identity;
    bucket_text(request.upload.key, sizeof request.upload.key, key);
    enum bucket_fate fate = bucket_ask(handle, "annotate", key);
    r = bucket_fail(fate, false, "annotate", key, err);
    if (r < 0 && fate != BUCKET_LOST && fate != BUCKET_LATE) return r;
    int done = annotate(handle, &request, changes, n, fate == BUCKET_LATE, r < 0 ? NULL : err);
    return r < 0 ? r : done;
}
