/* SPDX-License-Identifier: Apache-2.0 */
/* Removal where the bucket keeps versions: the marked one and all older ones, each by its id, so
 * that nothing else can be hit.
 *
 * Newest last: as long as the marked version stands, or what covers it, no older one comes to
 * light, wherever the work is interrupted. A multi-object delete has no order of its own, hence
 * three rounds: the older ones; the marked one, if all older ones are gone; the delete markers that
 * lay directly on it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/s3/erase.h"
#include "store/s3/remove.h"
#include "store/s3/versions.h"

#define PASSES_MAX 64 /* of S3_OLDER_MAX versions each */

/* ---- rounds ---- */

struct round {
    struct rp_item *items; /* S3_OLDER_MAX places */
    size_t *key;
    size_t n;
};

static void add_version(struct round *round, const struct s3_key_versions *key, size_t index, const char *id)
{
    struct rp_item *item = &round->items[round->n];
    *item = (struct rp_item){ .key = key->item->key };
    snprintf(item->identity.version, sizeof item->identity.version, "%s", id);
    round->key[round->n++] = index;
}

static bool is_open(const struct s3_versions *vs, const struct s3_version *held)
{
    return !held->marker && vs->keys[held->key].item->outcome == RP_OUT_NONE;
}

/* The first failure among a key's older versions is the answer for the marked one, which stays. */
static int erase_older(struct s3_versions *vs, struct round *round, struct rp_error *err)
{
    round->n = 0;
    for (size_t i = 0; i < vs->n_held; i++)
        if (is_open(vs, &vs->held[i])) add_version(round, &vs->keys[vs->held[i].key], vs->held[i].key, vs->held[i].id);
    if (round->n == 0) return 0;
    for (size_t i = 0; i < vs->n; i++)
        vs->keys[i].older_sent = !vs->keys[i].more;
    int r = rp_s3_erase(vs->s3, round->items, round->n, S3_BY_VERSION, vs->gate, err);
    for (size_t i = 0; i < round->n; i++) {
        struct rp_item *item = vs->keys[round->key[i]].item;
        if (!rp_s3_is_away(round->items[i].outcome) && item->outcome == RP_OUT_NONE)
            rp_s3_say(item, round->items[i].outcome, round->items[i].note);
    }
    return r;
}

/* Reads, erases what is older, and reads again, until nothing older is there: only then may the
 * marked one go. */
static int clear_older(struct s3_versions *vs, struct round *round, struct rp_error *err)
{
    for (size_t passes = 0; passes < PASSES_MAX; passes++) {
        int r = rp_s3_versions_read(vs, err);
        if (r < 0) return r;
        for (size_t i = 0; i < vs->n_held; i++)
            if (is_open(vs, &vs->held[i]) && vs->keys[vs->held[i].key].older_sent)
                rp_s3_say(vs->keys[vs->held[i].key].item, RP_OUT_UNKNOWN,
                          "the server said that an older version was deleted, and still has it");
        r = erase_older(vs, round, err);
        if (r < 0 || round->n == 0) return r;
    }
    return 0;
}

static int erase_marked(struct s3_versions *vs, struct round *round, struct rp_error *err)
{
    round->n = 0;
    for (size_t i = 0; i < vs->n; i++) {
        const struct s3_key_versions *key = &vs->keys[i];
        if (key->found && key->item->outcome == RP_OUT_NONE) add_version(round, key, i, key->id);
    }
    if (round->n == 0) return 0;
    int r = rp_s3_erase(vs->s3, round->items, round->n, S3_BY_VERSION, vs->gate, err);
    for (size_t i = 0; i < round->n; i++)
        rp_s3_say(vs->keys[round->key[i]].item, round->items[i].outcome, round->items[i].note);
    return r;
}

/* A marker that stays hides nothing any more: whether they go is no part of the answer. */
static void erase_markers(struct s3_versions *vs, struct round *round)
{
    round->n = 0;
    for (size_t i = 0; i < vs->n_held; i++) {
        const struct s3_key_versions *key = &vs->keys[vs->held[i].key];
        if (vs->held[i].marker && rp_s3_is_away(key->item->outcome))
            add_version(round, key, vs->held[i].key, vs->held[i].id);
    }
    if (round->n > 0) (void)rp_s3_erase(vs->s3, round->items, round->n, S3_BY_VERSION, vs->gate, NULL);
}

/* ---- what a listing does not show ---- */

static void judge_absent(struct rp_s3 *s3, struct s3_key_versions *key, const struct s3_call *call)
{
    struct rp_identity seen = { 0 };
    struct rp_error why = { 0 };
    struct rp_item *item = key->item;
    bool by_id = item->identity.version[0];
    int status = call->code == 0 ? call->status : 0;
    int r = status == 200 ? rp_s3_identity(call, &seen, &why) : rp_s3_error(s3, call, &why);
    bool same = r == 0 && rp_identity_equal(&seen, &item->identity);
    if (r == 0 && (by_id || same))
        rp_s3_say(item, same ? RP_OUT_RETRY : RP_OUT_CHANGED,
                  "the listing of versions does not show it, and it is there");
    else if (r == 0 || status == 404 || status == 405)
        rp_s3_say(item, key->stands ? RP_OUT_CHANGED : RP_OUT_GONE, "");
    else if (status == 400 || status == 200) /* 400: also where a session token has ended */
        rp_s3_say(item, RP_OUT_UNKNOWN, why.text);
    else
        rp_s3_say(item, r == RP_EDENIED ? RP_OUT_DENIED : RP_OUT_RETRY, call->code < 0 ? call->note : why.text);
}

/* Asked by HEAD: an empty listing makes nothing gone. */
int rp_s3_confirm_absent(struct s3_versions *vs, struct rp_error *err)
{
    size_t n = 0;
    RP_CLEANUP(rp_freep) struct s3_call *calls = calloc(vs->n + 1, sizeof *calls);
    RP_CLEANUP(rp_freep) size_t *key = calloc(vs->n + 1, sizeof *key);
    if (calls == NULL || key == NULL) return rp_error_set(err, RP_ENOMEM, "delete: out of memory");
    for (size_t i = 0; i < vs->n; i++) {
        const struct rp_item *item = vs->keys[i].item;
        if (!vs->keys[i].read || vs->keys[i].found || item->outcome != RP_OUT_NONE) continue;
        calls[n] = rp_s3_call("HEAD", item->key);
        if (item->identity.version[0]) rp_s3_query(&calls[n], "versionId", item->identity.version);
        key[n++] = i;
    }
    int r = n == 0 ? 0 : rp_s3_wire_run(vs->s3->wire, calls, n, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        judge_absent(vs->s3, &vs->keys[key[i]], &calls[i]);
        rp_s3_call_done(&calls[i]);
    }
    return r;
}

/* ---- afterwards ---- */

static void settle(const struct s3_key_versions *seen, enum rp_outcome said, const char *note)
{
    struct rp_item *item = seen->item;
    if (!seen->read)
        rp_s3_say(item, said == RP_OUT_RETRY ? RP_OUT_RETRY : RP_OUT_UNKNOWN, note[0] ? note : seen->why);
    else if (seen->found)
        rp_s3_say(item, said == RP_OUT_DENIED || said == RP_OUT_RETRY ? said : RP_OUT_UNKNOWN,
                  note[0] ? note : "the server said that it was deleted, and still has it");
    else if (said == RP_OUT_DELETED)
        rp_s3_say(item, RP_OUT_DELETED, "");
    else
        rp_s3_say(item, RP_OUT_NONE, "");
}

/* Those that were sent are read once more; what is not shown now, and was not said to be deleted,
 * is asked for. */
static int look_again(struct s3_versions *vs, const struct round *sent, struct rp_error *err)
{
    struct s3_versions again = { .s3 = vs->s3, .n = sent->n };
    RP_CLEANUP(rp_freep) struct s3_key_versions *keys = again.keys = calloc(sent->n + 1, sizeof *keys);
    RP_CLEANUP(rp_freep) struct s3_version *held = again.held = calloc(S3_OLDER_MAX, sizeof *held);
    if (keys == NULL || held == NULL) return rp_error_set(err, RP_ENOMEM, "delete: out of memory");
    for (size_t i = 0; i < sent->n; i++)
        keys[i].item = vs->keys[sent->key[i]].item;
    int r = rp_s3_versions_read(&again, err);
    for (size_t i = 0; i < sent->n; i++)
        settle(&keys[i], sent->items[i].outcome, sent->items[i].note);
    if (r == 0) r = rp_s3_confirm_absent(&again, err);
    for (size_t i = 0; i < sent->n; i++) {
        enum rp_outcome said = sent->items[i].outcome, now = keys[i].item->outcome;
        if (now == RP_OUT_NONE)
            rp_s3_say(keys[i].item, RP_OUT_UNKNOWN, sent->items[i].note);
        else if (said == RP_OUT_UNKNOWN && (now == RP_OUT_GONE || now == RP_OUT_CHANGED))
            rp_s3_say(keys[i].item, RP_OUT_DELETED, "");
    }
    return r;
}

/* ---- passes ---- */

static bool has_older(const struct s3_versions *vs, size_t key)
{
    for (size_t i = 0; i < vs->n_held; i++)
        if (vs->held[i].key == key && !vs->held[i].marker) return true;
    return vs->keys[key].more;
}

static int remove_pass(struct s3_versions *vs, struct round *round, struct rp_error *err)
{
    int r = clear_older(vs, round, err);
    if (r < 0) return r;
    for (size_t i = 0; i < vs->n; i++) {
        struct rp_item *item = vs->keys[i].item;
        if (item->outcome != RP_OUT_NONE) continue;
        if (!vs->keys[i].read)
            rp_s3_say(item, RP_OUT_RETRY, vs->keys[i].why);
        else if (has_older(vs, i))
            rp_s3_say(item, RP_OUT_RETRY, "it has many older versions; the rest of them goes next time");
    }
    r = rp_s3_confirm_absent(vs, err);
    if (r < 0) return r;
    r = erase_marked(vs, round, err);
    if (r == 0 && round->n > 0) r = look_again(vs, round, err);
    if (r == 0) erase_markers(vs, round);
    return r;
}

/* The first of each key: an item that names another version of the same key waits for the next
 * turn. */
static size_t choose(struct rp_item **items, size_t n, struct s3_key_versions *keys)
{
    size_t chosen = 0;
    for (size_t i = 0; i < n; i++) {
        if (items[i]->outcome != RP_OUT_NONE) continue;
        if (chosen > 0 && strcmp(keys[chosen - 1].item->key, items[i]->key) == 0) continue;
        keys[chosen++] = (struct s3_key_versions){ .item = items[i] };
    }
    return chosen;
}

static void doubt(const struct s3_versions *vs)
{
    for (size_t i = 0; i < vs->n; i++)
        if (vs->keys[i].item->outcome == RP_OUT_NONE || vs->keys[i].item->outcome == RP_OUT_DELETED)
            rp_s3_say(vs->keys[i].item, RP_OUT_UNKNOWN, "the store failed while it was being removed");
}

int rp_s3_remove_versions(struct rp_s3 *s3, struct rp_item **items, size_t n, const struct rp_gate *gate,
                          struct rp_error *err)
{
    int r = 0;
    size_t places = n > S3_OLDER_MAX ? n : S3_OLDER_MAX;
    struct s3_versions vs = { .s3 = s3, .gate = gate };
    RP_CLEANUP(rp_freep) struct s3_key_versions *keys = calloc(n + 1, sizeof *keys);
    RP_CLEANUP(rp_freep) struct s3_version *held = calloc(S3_OLDER_MAX, sizeof *held);
    RP_CLEANUP(rp_freep) struct rp_item *sent = calloc(places, sizeof *sent);
    RP_CLEANUP(rp_freep) size_t *key = calloc(places, sizeof *key);
    if (!keys || !held || !sent || !key) return rp_error_set(err, RP_ENOMEM, "delete: out of memory");
    struct round round = { .items = sent, .key = key };
    vs.keys = keys;
    vs.held = held;
    while (r == 0 && (vs.n = choose(items, n, keys)) > 0) {
        r = remove_pass(&vs, &round, err);
        if (r < 0) doubt(&vs);
    }
    return r;
}
