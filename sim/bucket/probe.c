/* SPDX-License-Identifier: Apache-2.0 */
/* probe(): found out with a canary, as the S3 store does it: two uploads, a delete that must not
 * happen, one that must. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "parts.h"

#define FORGOTTEN_MS 3600000 /* what a crash left is taken away by a later probe */

struct canary {
    struct bucket_handle *handle;
    char key[BUCKET_KEY_MAX + 1];
    struct rp_identity first, second;
};

static int put(struct canary *canary, const char *text, struct rp_identity *out, struct rp_error *err)
{
    struct bucket_upload draft;
    draft.meta_bytes = 0;
    bucket_text(draft.key, sizeof draft.key, canary->key);
    bucket_text(draft.text, sizeof draft.text, text);
    return bucket_put_request(canary->handle, &draft, RP_PUT_REPLACE, out, err);
}

/* What the server says. One that was lost has happened all the same; one that is late is not waited
 * for. */
static int erase(struct canary *canary, enum bucket_by by, const struct rp_identity *identity, uint64_t serial,
                 enum rp_outcome *said, struct rp_error *err)
{
    struct bucket_handle *handle = canary->handle;
    enum bucket_fate fate = bucket_ask(handle, "delete", canary->key);
    int r = bucket_fail(fate, false, "delete", canary->key, err);
    *said = RP_OUT_DELETED;
    if (fate == BUCKET_FALSE || (r < 0 && fate != BUCKET_LOST)) return r;
    *said = bucket_erase(handle->bucket, &handle->hooks, by, canary->key, identity, serial);
    return r;
}

/* Whether this upload is what the key shows. */
static int stands(struct canary *canary, const struct rp_identity *identity, bool *out, struct rp_error *err)
{
    struct bucket_handle *handle = canary->handle;
    int r = bucket_fail(bucket_ask(handle, "head", canary->key), true, "head", canary->key, err);
    const struct bucket_upload *upload = bucket_newest(handle->bucket, canary->key);
    *out = upload != NULL && rp_identity_equal(&upload->identity, identity);
    return r;
}

static void find(struct rp_probed *out, const char *name, bool holds, const char *says)
{
    struct rp_finding *finding = &out->findings[out->n_findings++];
    finding->name = name;
    finding->holds = holds;
    snprintf(finding->says, sizeof finding->says, "%s", says);
}

static int try_versions(struct canary *canary, struct rp_probed *out, bool *holds, struct rp_error *err)
{
    enum rp_outcome said = RP_OUT_NONE;
    bool there = false;
    const struct bucket_upload *first = bucket_version(canary->handle->bucket, canary->key, &canary->first);
    bool kept = canary->first.version[0] && strcmp(canary->first.version, canary->second.version) != 0;
    *holds = false;
    if (!kept || first == NULL) {
        find(out, "versions", false, "an overwritten object is gone");
        return 0;
    }
    int r = erase(canary, BUCKET_BY_SERIAL, &canary->first, first->serial, &said, err);
    if (r == 0) r = stands(canary, &canary->second, &there, err);
    *holds = r == 0 && said == RP_OUT_DELETED && there;
    find(out, "versions", *holds, "each upload keeps its own version");
    return r;
}

static int try_if_match(struct canary *canary, struct rp_probed *out, bool *holds, struct rp_error *err)
{
    struct rp_identity wrong = canary->second;
    enum rp_outcome said = RP_OUT_NONE;
    bool there = false;
    *holds = false;
    wrong.etag[0] = wrong.etag[0] == '0' ? '1' : '0';
    int r = erase(canary, BUCKET_BY_ETAG, &wrong, 0, &said, err);
    if (r == 0) r = stands(canary, &canary->second, &there, err);
    if (r < 0 || said != RP_OUT_CHANGED || !there) {
        find(out, "delete by If-Match", false, there ? "not known" : "ignored: a DELETE with another etag deletes");
        return r;
    }
    r = erase(canary, BUCKET_BY_ETAG, &canary->second, 0, &said, err);
    if (r == 0) r = stands(canary, &canary->second, &there, err);
    *holds = r == 0 && said == RP_OUT_DELETED && !there;
    find(out, "delete by If-Match", *holds, "another etag is refused, the right one deletes");
    return r;
}

static bool is_forgotten(const struct canary *canary, const struct bucket_upload *upload, int64_t now_ms)
{
    if (strncmp(upload->key, BUCKET_CANARY, strlen(BUCKET_CANARY)) != 0) return false;
    return strcmp(upload->key, canary->key) == 0 || upload->identity.modified_ms < now_ms - FORGOTTEN_MS;
}

/* Whether all of it goes is no part of what is found. */
static void clear(struct canary *canary)
{
    struct bucket_handle *handle = canary->handle;
    enum bucket_fate fate = bucket_ask(handle, "delete", canary->key);
    struct bucket *bucket = handle->bucket;
    int64_t now_ms = bucket_now_ms(&handle->hooks);
    if (fate != BUCKET_DONE && fate != BUCKET_LOST && fate != BUCKET_PARTLY) return;
    for (size_t i = bucket_position(bucket, BUCKET_CANARY, 0); i < bucket->n;) {
        const struct bucket_upload *upload = bucket->order[i];
        if (is_forgotten(canary, upload, now_ms))
            bucket_erase(bucket, &handle->hooks, BUCKET_BY_SERIAL, upload->key, NULL, upload->serial);
        else if (strncmp(upload->key, BUCKET_CANARY, strlen(BUCKET_CANARY)) == 0)
            i++;
        else
            break;
    }
}

static int try_writing(struct bucket_handle *handle, enum rp_level *level, struct rp_probed *out, struct rp_error *err)
{
    struct canary canary = { .handle = handle };
    bool versions = false, if_match = false;
    snprintf(canary.key, sizeof canary.key, "%s%" PRIu64, BUCKET_CANARY, ++handle->bucket->canaries);
    int r = put(&canary, "one", &canary.first, err);
    if (r == 0) r = put(&canary, "two!", &canary.second, err);
    if (r == 0) r = try_versions(&canary, out, &versions, err);
    if (r == 0 && !versions) r = try_if_match(&canary, out, &if_match, err);
    clear(&canary);
    if (r < 0) return r;
    *level = versions ? RP_LEVEL_VERSION : if_match ? RP_LEVEL_ETAG : RP_LEVEL_WINDOW;
    return 0;
}

/* Without writing there is nothing to see; what an earlier probe saw by writing stays. */
int bucket_probe_slot(struct rp_backend *backend, bool may_write, struct rp_probed *out, struct rp_error *err)
{
    struct bucket_handle *handle = bucket_handle_of(backend);
    struct rp_probed found = { 0 };
    enum rp_level level = handle->probed ? handle->seen : RP_LEVEL_WINDOW;
    bool exact = handle->bucket->kind == BUCKET_EXACT, tries = may_write && !exact;
    int r = tries ? try_writing(handle, &level, &found, err)
                  : bucket_fail(bucket_ask(handle, "probe", NULL), true, "probe", NULL, err);
    if (r < 0) return rp_error_wrap(err, r, "probe the bucket");
    if (exact) level = RP_LEVEL_EXACT;
    if (tries) {
        handle->probed = true;
        handle->seen = level;
    }
    found.undeclared = level;
    found.level = handle->write_once && !handle->seen_changed ? RP_LEVEL_EXACT : level;
    *out = found;
    return 0;
}
