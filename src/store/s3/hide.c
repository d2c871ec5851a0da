/* SPDX-License-Identifier: Apache-2.0 */
/* hide() and show() (T12 of backend.h), where the bucket keeps versions: a delete marker is made,
 * and removed.
 *
 * A DELETE without a version cannot name what it is to hide. So the versions are read before it:
 * only what shows the marked upload is sent off, and what is hidden already, by whomever, is left
 * as it is. They are read after it, too: our marker goes again if it lies on a newer upload. The
 * server's answer says which one is ours; without an answer a single marker is taken for it. We
 * make one marker at most: where several lie, somebody else wanted it hidden as well. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/crashpoint.h"
#include "base/time.h"
#include "store/refuse.h"
#include "store/s3/erase.h"
#include "store/s3/remove.h"
#include "store/s3/versions.h"

#define SHOW_PASSES 4 /* of S3_MARKERS_MAX markers each */

bool rp_s3_hides(struct rp_backend *backend)
{
    const struct s3_powers powers = rp_s3_powers(rp_s3_of(backend));
    return powers.versions && powers.markers;
}

/* ---- looking ---- */

struct place {
    struct rp_item *item;
    char made[RP_VERSION_MAX]; /* our marker, if the server has told */
    int64_t since_ms;          /* a newer upload of this moment or later may lie under another marker of ours */
    enum rp_outcome said;      /* by the server to our delete; NONE: it was not sent */
    char note[120];
};

struct look {
    struct s3_versions vs;
    struct place **places; /* vs.keys[i] is about places[i] */
};

/* A marker of ours on something newer. Times are told in whole seconds. */
static bool is_ours_on_newer(const struct s3_key_versions *key, const struct place *place)
{
    if (!key->newer || key->covers != 1) return false;
    if (place->made[0] && strcmp(key->cover, place->made) == 0) return true;
    return place->since_ms == INT64_MIN || key->newest_ms > place->since_ms - RP_SECOND_MS;
}

static void uncover(struct look *look, size_t i)
{
    struct s3_key_versions *key = &look->vs.keys[i];
    struct rp_item marker = { .key = key->item->key };
    memcpy(marker.identity.version, key->cover, sizeof key->cover);
    (void)rp_s3_erase(look->vs.s3, &marker, 1, S3_BY_VERSION, NULL, NULL);
    if (rp_s3_is_away(marker.outcome))
        key->stands = true;
    else
        rp_s3_say(key->item, marker.outcome == RP_OUT_DENIED ? RP_OUT_DENIED : RP_OUT_RETRY,
                  "a newer upload is hidden, and the marker on it could not be removed");
}

/* What shows the marked upload, or has not shown it at all, stays `none`. */
static void judge(struct look *look, size_t i)
{
    struct s3_key_versions *key = &look->vs.keys[i];
    const struct place *place = look->places[i];
    rp_s3_say(key->item, RP_OUT_NONE, "");
    if (!key->read)
        rp_s3_say(key->item, RP_OUT_RETRY, key->why);
    else if (is_ours_on_newer(key, place))
        uncover(look, i);
    if (key->item->outcome != RP_OUT_NONE || !key->found) return;
    if (key->newer)
        rp_s3_say(key->item, RP_OUT_CHANGED, "");
    else if (key->covers > 0)
        rp_s3_say(key->item, RP_OUT_FOUND, "");
}

static int look_at(struct rp_s3 *s3, struct place **places, size_t n, struct rp_error *err)
{
    struct look look = { .vs = { .s3 = s3, .n = n }, .places = places };
    RP_CLEANUP(rp_freep) struct s3_key_versions *keys = look.vs.keys = calloc(n + 1, sizeof *keys);
    RP_CLEANUP(rp_freep) struct s3_version *held = look.vs.held = calloc(S3_OLDER_MAX, sizeof *held);
    if (keys == NULL || held == NULL) return rp_error_set(err, RP_ENOMEM, "hide: out of memory");
    for (size_t i = 0; i < n; i++)
        keys[i].item = places[i]->item;
    int r = rp_s3_versions_read(&look.vs, err);
    for (size_t i = 0; i < n && r == 0; i++)
        judge(&look, i);
    return r < 0 ? r : rp_s3_confirm_absent(&look.vs, err);
}

/* ---- hide ---- */

/* Those that show what was marked; `n` of them. */
static size_t choose(struct place *places, size_t n, struct place **chosen)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        if (places[i].item->outcome == RP_OUT_NONE) chosen[found++] = &places[i];
    return found;
}

/* Where we may have made a marker and do not know which: whatever is newer has come since we
 * looked. */
static void take_said(struct place *place, const struct rp_item *asked)
{
    place->said = asked->outcome;
    if (asked->outcome == RP_OUT_DELETED) memcpy(place->made, asked->identity.version, sizeof place->made);
    if (asked->outcome == RP_OUT_UNKNOWN || (asked->outcome == RP_OUT_DELETED && !place->made[0]))
        place->since_ms = INT64_MIN;
    memcpy(place->note, asked->note, sizeof place->note);
}

static int send(struct rp_s3 *s3, struct place **places, size_t n, const struct rp_gate *gate, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct rp_item *asked = calloc(n, sizeof *asked);
    if (asked == NULL) return rp_error_set(err, RP_ENOMEM, "hide: out of memory");
    for (size_t i = 0; i < n; i++)
        asked[i].key = places[i]->item->key;
    int r = rp_s3_erase(s3, asked, n, S3_BY_KEY, gate, err);
    for (size_t i = 0; i < n; i++)
        take_said(places[i], &asked[i]);
    RP_CRASHPOINT("s3.hidden");
    return r;
}

/* What still shows itself. */
static void settle(struct place **places, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct place *p = places[i];
        if (p->item->outcome != RP_OUT_NONE) continue;
        bool refused = p->said == RP_OUT_DENIED || p->said == RP_OUT_RETRY;
        rp_s3_say(p->item, refused ? p->said : RP_OUT_UNKNOWN,
                  p->note[0] ? p->note : "the server said that it was deleted, and still shows it");
    }
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct place *)a)->item->key, ((const struct place *)b)->item->key);
}

static int hide_places(struct rp_s3 *s3, struct place *places, size_t n, const struct rp_gate *gate,
                       struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct place **chosen = calloc(n, sizeof(struct place *));
    if (chosen == NULL) return rp_error_set(err, RP_ENOMEM, "hide: out of memory");
    size_t left = choose(places, n, chosen);
    int r = look_at(s3, chosen, left, err);
    left = r < 0 ? 0 : choose(places, n, chosen);
    if (left == 0 || !rp_gate_is_open(gate)) return r;
    r = send(s3, chosen, left, gate, err);
    int looked = look_at(s3, chosen, left, r < 0 ? NULL : err);
    if (looked < 0)
        for (size_t i = 0; i < left; i++)
            rp_s3_say(chosen[i]->item, RP_OUT_UNKNOWN, "the store failed before it could be looked at again");
    settle(chosen, left);
    return r < 0 ? r : looked;
}

int rp_s3_hide(struct rp_backend *backend, struct rp_item *items, const int64_t *since_ms, size_t n,
               const struct rp_gate *gate, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct place *places = calloc(n + 1, sizeof *places);
    if (places == NULL) return rp_error_set(err, RP_ENOMEM, "hide: out of memory");
    int r = n == 0 ? 0 : rp_items_begin(items, n, err);
    if (n == 0 || r < 0) return r;
    for (size_t i = 0; i < n; i++)
        places[i] = (struct place){ .item = &items[i], .since_ms = since_ms[i] };
    qsort(places, n, sizeof *places, by_key);
    return hide_places(rp_s3_of(backend), places, n, gate, err);
}

/* ---- show ---- */

static int refuse_newer(const struct s3_key_versions *key, struct rp_error *err)
{
    if (key->covers == 0) {
        rp_error_set(err, RP_EEXISTS, "something newer stands under this key");
        return rp_error_hint(err, "move it away first; the older one stays in quarantine until its time is over");
    }
    rp_error_set(err, RP_EEXISTS, "a newer version lies above it, under a delete marker");
    return rp_error_hint(err, "restore the newer one, or delete its versions first; or copy version %s yourself",
                         key->id);
}

static int refuse_absent(struct s3_versions *vs, struct rp_error *err)
{
    const struct rp_item *item = vs->keys[0].item;
    int r = rp_s3_confirm_absent(vs, err);
    if (r < 0) return r;
    if (item->outcome == RP_OUT_GONE || item->outcome == RP_OUT_CHANGED) return rp_refuse_absent(item->key, err);
    return rp_error_set(err, item->outcome == RP_OUT_DENIED ? RP_EDENIED : RP_EUNAVAILABLE, "%s", item->note);
}

/* The markers directly on the version, as far as they are held. */
static int remove_markers(struct s3_versions *vs, bool *made, struct rp_error *err)
{
    struct rp_item markers[S3_MARKERS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < vs->n_held && n < S3_MARKERS_MAX; i++) {
        if (!vs->held[i].marker) continue;
        markers[n] = (struct rp_item){ .key = vs->keys[0].item->key };
        memcpy(markers[n++].identity.version, vs->held[i].id, RP_VERSION_MAX);
    }
    int r = rp_s3_erase(vs->s3, markers, n, S3_BY_VERSION, NULL, err);
    for (size_t i = 0; i < n; i++) {
        enum rp_outcome said = markers[i].outcome;
        *made = *made || said == RP_OUT_DELETED || said == RP_OUT_UNKNOWN;
        if (r == 0 && !rp_s3_is_away(said))
            r = rp_error_set(err, said == RP_OUT_DENIED ? RP_EDENIED : RP_EUNAVAILABLE, "remove a delete marker: %s",
                             markers[i].note);
    }
    return r;
}

int rp_s3_show(struct rp_backend *backend, const char *key, const struct rp_identity *identity, bool *made,
               struct rp_error *err)
{
    struct rp_item item = { .key = key, .identity = *identity };
    struct s3_key_versions versions = { .item = &item };
    RP_CLEANUP(rp_freep) struct s3_version *held = calloc(S3_OLDER_MAX, sizeof *held);
    struct s3_versions vs = { .s3 = rp_s3_of(backend), .keys = &versions, .n = 1, .held = held };
    if (held == NULL) return rp_error_set(err, RP_ENOMEM, "show: out of memory");
    *made = false;
    for (int passes = 0; passes < SHOW_PASSES; passes++) {
        int r = rp_s3_versions_read(&vs, err);
        if (r < 0) return r;
        if (!versions.read) return rp_error_set(err, RP_EUNAVAILABLE, "%s", versions.why);
        if (!versions.found) return refuse_absent(&vs, err);
        if (versions.newer) return refuse_newer(&versions, err);
        if (versions.covers == 0) return 0;
        if ((r = remove_markers(&vs, made, err)) < 0) return r;
    }
    return rp_error_set(err, RP_EUNAVAILABLE, "delete markers lie on '%s' again as soon as they are removed", key);
}
