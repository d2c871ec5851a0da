/* SPDX-License-Identifier: Apache-2.0 */
/* remove(): a look where the level needs one, then one delete of all that are left (T3, and the
 * outcomes of the S3 store). An item that is NONE is still to be sent; everything else about it is
 * known. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "parts.h"

static void say(struct rp_item *item, enum rp_outcome outcome, const char *note)
{
    item->outcome = outcome;
    bucket_text(item->note, sizeof item->note, note);
}

/* ---- looks ---- */

static void look_at(const struct bucket *bucket, struct rp_item *item)
{
    const struct bucket_upload *upload = bucket_newest(bucket, item->key);
    if (upload == NULL)
        item->outcome = RP_OUT_GONE;
    else if (!rp_identity_equal(&upload->identity, &item->identity))
        item->outcome = RP_OUT_CHANGED;
}

/* The version is written down: what is deleted is what was named by the look, whatever fits by
 * then. */
static void name_version(const struct bucket *bucket, struct rp_item *item)
{
    const struct bucket_upload *marked = bucket_version(bucket, item->key, &item->identity);
    if (marked == NULL)
        item->outcome = bucket_newest(bucket, item->key) != NULL ? RP_OUT_CHANGED : RP_OUT_GONE;
    else
        bucket_text(item->identity.version, sizeof item->identity.version, marked->identity.version);
}

static int look_first(struct bucket_handle *handle, struct rp_item *items, size_t n, struct rp_error *err)
{
    bool versions = handle->bucket->kind == BUCKET_VERSION;
    int r = bucket_ask_items(handle, versions ? "versions" : "head", items, n, err);
    for (size_t i = 0; i < n && r == 1; i++) {
        if (versions)
            name_version(handle->bucket, &items[i]);
        else
            look_at(handle->bucket, &items[i]);
    }
    return r < 0 ? r : 0;
}

/* ---- the delete ---- */

static enum rp_outcome erase(struct bucket_handle *handle, enum bucket_by by, const struct rp_item *item)
{
    uint64_t serial = by == BUCKET_BY_SERIAL ? bucket_serial_of(item->identity.version) : 0;
    return bucket_erase(handle->bucket, &handle->hooks, by, item->key, &item->identity, serial);
}

static void erase_later(struct bucket_handle *handle, enum bucket_by by, const struct rp_item *item)
{
    struct bucket_request request;
    request.later = BUCKET_LATER_ERASE;
    request.hooks = handle->hooks;
    request.by = by;
    request.serial = by == BUCKET_BY_SERIAL ? bucket_serial_of(item->identity.version) : 0;
    request.upload.identity = item->identity;
    bucket_text(request.upload.key, sizeof request.upload.key, item->key);
    bucket_wait(handle->bucket, &request);
}

/* Every second one is missing from the answer; of those every second one happened. Of versions the
 * others have gone as far as the order allows: all but the marked one. */
static void erase_partly(struct bucket_handle *handle, enum bucket_by by, struct rp_item *item, size_t nth)
{
    bool answered = nth % 2 == 0, happens = answered || nth % 4 == 1;
    enum rp_outcome said = RP_OUT_UNKNOWN;
    if (happens)
        said = erase(handle, by, item);
    else if (by == BUCKET_BY_SERIAL)
        bucket_erase(handle->bucket, &handle->hooks, by, item->key, NULL, bucket_serial_of(item->identity.version) - 1);
    if (answered)
        item->outcome = said;
    else
        say(item, RP_OUT_UNKNOWN, "the answer does not name it");
}

static void send_one(struct bucket_handle *handle, enum bucket_by by, struct rp_item *item, size_t nth,
                     enum bucket_fate fate)
{
    switch (fate) {
    case BUCKET_DONE:
        item->outcome = erase(handle, by, item);
        break;
    case BUCKET_REFUSED:
    case BUCKET_CUT:
        say(item, RP_OUT_RETRY, "the server says 503");
        break;
    case BUCKET_DENIED:
        say(item, RP_OUT_DENIED, "the server says 403");
        break;
    case BUCKET_LOST:
        erase(handle, by, item);
        say(item, RP_OUT_UNKNOWN, "no answer");
        break;
    case BUCKET_LATE:
        erase_later(handle, by, item);
        say(item, RP_OUT_UNKNOWN, "no answer");
        break;
    case BUCKET_PARTLY:
        erase_partly(handle, by, item, nth);
        break;
    case BUCKET_FALSE:
        item->outcome = RP_OUT_DELETED;
        break;
    }
}

/* Of two equal requests in one call the second finds nothing left, though a server says "deleted"
 * to both. */
static bool answer_repeated(struct rp_item *items, size_t i)
{
    for (size_t j = 0; j < i; j++) {
        if (strcmp(items[j].key, items[i].key) != 0) continue;
        if (!rp_identity_equal(&items[j].identity, &items[i].identity)) continue;
        say(&items[i], items[j].outcome == RP_OUT_DELETED ? RP_OUT_GONE : items[j].outcome, items[j].note);
        return true;
    }
    return false;
}

/* T4: refused as a whole, nothing happened, and nobody stands by what a look said before. */
static int refuse(struct rp_item *items, size_t n, enum bucket_fate fate, struct rp_error *err)
{
    for (size_t i = 0; i < n; i++)
        say(&items[i], RP_OUT_NONE, "");
    return bucket_fail(fate, false, "delete", NULL, err);
}

static int send_all(struct bucket_handle *handle, enum bucket_by by, struct rp_item *items, size_t n,
                    struct rp_error *err)
{
    size_t left = 0, first = 0, nth = 0;
    for (size_t i = 0; i < n; i++)
        if (items[i].outcome == RP_OUT_NONE && left++ == 0) first = i;
    if (left == 0) return 0;
    enum bucket_fate fate = bucket_ask(handle, "delete", left == 1 ? items[first].key : NULL);
    if (left > 1 && (fate == BUCKET_REFUSED || fate == BUCKET_CUT)) return refuse(items, n, fate, err);
    for (size_t i = 0; i < n; i++)
        if (items[i].outcome == RP_OUT_NONE && !answer_repeated(items, i)) send_one(handle, by, &items[i], nth++, fate);
    return 0;
}

/* ---- the slot ---- */

static enum bucket_by means_of(const struct bucket_handle *handle)
{
    switch (handle->bucket->kind) {
    case BUCKET_EXACT:
        return BUCKET_BY_IDENTITY;
    case BUCKET_VERSION:
        return BUCKET_BY_SERIAL;
    default: /* K3 */
        return handle->probed && handle->seen == RP_LEVEL_ETAG ? BUCKET_BY_ETAG : BUCKET_BY_KEY;
    }
}

int bucket_remove_slot(struct rp_backend *backend, struct rp_item *items, size_t n, const struct rp_gate *gate,
                       struct rp_error *err)
{
    struct bucket_handle *handle = bucket_handle_of(backend);
    if (n == 0) return 0;
    int r = bucket_check_keys(items, n, err);
    enum bucket_by by = means_of(handle);
    if (r == 0 && (by == BUCKET_BY_KEY || by == BUCKET_BY_SERIAL)) r = look_first(handle, items, n, err);
    if (r == 0 && !rp_gate_is_open(gate)) r = rp_error_set(err, RP_EUNAVAILABLE, "not sent: its time is over");
    if (r == 0) r = send_all(handle, by, items, n, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        RP_ASSERT(items[i].outcome != RP_OUT_NONE && items[i].outcome != RP_OUT_FOUND);
        if (items[i].outcome == RP_OUT_CHANGED) handle->seen_changed = true;
    }
    return r;
}
