/* SPDX-License-Identifier: Apache-2.0 */
/* What the probe finds out about deleting: versions, If-Match on one object, many objects in one
 * request. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/time.h"
#include "store/s3/erase.h"
#include "store/s3/probe/probe.h"
#include "store/s3/wire/vendor.h"

static void read_versioning(struct s3_probe *probe)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("GET", NULL);
    rp_s3_query(&call, "versioning", "");
    memcpy(probe->versioning, "?", 2);
    if (rp_s3_try(probe, &call, NULL) != 200) return;
    if (rp_s3_read_text(&call.answer, "VersioningConfiguration", "Status", probe->versioning, sizeof probe->versioning,
                        NULL) < 0)
        memcpy(probe->versioning, "?", 2);
}

/* Without writing there is only the bucket's word. */
static void versions_by_word(struct s3_probe *probe)
{
    bool enabled = strcmp(probe->versioning, "Enabled") == 0;
    probe->powers.versions = probe->powers.versions_go = enabled;
    if (probe->versioning[0] == '?')
        rp_s3_finding(probe, "versions", false,
                      "the key may not ask for the bucket's versioning (s3:GetBucketVersioning)");
    else
        rp_s3_finding(probe, "versions", enabled, "the bucket's versioning is %s%s",
                      probe->versioning[0] ? probe->versioning : "off",
                      enabled ? " (by its word; nothing was written)" : "");
}

#define WRITE "write a canary object"

static int refused(struct s3_probe *probe, int status, struct rp_error *err)
{
    const char *bucket = probe->s3->target.bucket;
    if (status == 403 || status == 401)
        return rp_error_advise(err, RP_EDENIED,
                               "let the store's key read, list, put and delete objects under " S3_CANARY,
                               "bucket '%s': " WRITE ": the server says %d", bucket, status);
    if (status == 404)
        return rp_error_advise(err, RP_ECONFIG, "check that the bucket exists",
                               "bucket '%s': " WRITE ": the server says 404", bucket);
    return rp_error_set(err, RP_EFAILED, "bucket '%s': " WRITE ": the server says %d", bucket, status);
}

static int put_canary(struct s3_probe *probe, const char *key, const char *text, struct rp_identity *out,
                      struct rp_error *err)
{
    int status = rp_s3_try_put(probe, key, text, NULL, NULL, out, err);
    if (status < 0) return rp_error_wrap(err, status, WRITE);
    return status / 100 == 2 ? 0 : refused(probe, status, err);
}

/* The older of two goes by its id, and the newer one stays. */
static bool older_can_go(struct s3_probe *probe, const char *key, const struct rp_identity *older,
                         const struct rp_identity *newer)
{
    return rp_s3_try_delete(probe, key, NULL, older->version, NULL) / 100 == 2 &&
           rp_s3_canary_is(probe, key, newer->etag);
}

int rp_s3_probe_versions(struct s3_probe *probe, struct rp_error *err)
{
    struct rp_identity first = { 0 }, second = { 0 };
    read_versioning(probe);
    if (probe->base[0] == '\0') {
        versions_by_word(probe);
        return 0;
    }
    const char *key = rp_s3_canary(probe, "k");
    int r = put_canary(probe, key, "one", &first, err);
    if (r == 0) r = put_canary(probe, key, "two!", &second, err);
    if (r < 0) return r;
    bool kept = first.version[0] && second.version[0] && strcmp(first.version, second.version) != 0;
    probe->powers.versions = kept;
    probe->powers.versions_go = kept && older_can_go(probe, key, &first, &second);
    if (kept && !probe->powers.versions_go)
        rp_s3_finding(probe, "versions", false, "the bucket keeps versions, but one cannot be deleted by its id");
    else if (kept)
        rp_s3_finding(probe, "versions", true, "each upload keeps its own version; one can be deleted by its id");
    else
        rp_s3_finding(probe, "versions", false, "an overwritten object is gone (versioning is %s)",
                      probe->versioning[0] == '?' ? "not told"
                      : probe->versioning[0]      ? probe->versioning
                                                  : "off");
    return 0;
}

/* Seen by a word in the rules: it is a warning, and nothing follows from it. */
void rp_s3_probe_lifecycle(struct s3_probe *probe)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("GET", NULL);
    if (!probe->powers.versions) return;
    rp_s3_query(&call, "lifecycle", "");
    int status = rp_s3_try(probe, &call, NULL);
    bool erases = status == 200 && strstr(rp_buf_text(&call.answer), "NoncurrentVersionExpiration") != NULL;
    rp_s3_finding(probe, RP_FINDING_LIFECYCLE, !erases && (status == 200 || status == 404), "%s",
                  erases                           ? "a lifecycle rule of the bucket erases them"
                  : status == 200 || status == 404 ? "no lifecycle rule of the bucket erases them"
                                                   : "whether a lifecycle rule erases them is not told");
}

/* ---- one object ---- */

#define IF_MATCH "delete by If-Match"
#define RACERS   8
#define RACES    3

static void other_etag(const char *etag, char out[RP_ETAG_MAX])
{
    snprintf(out, RP_ETAG_MAX, "%s", etag);
    out[0] = out[0] == '0' ? '1' : '0';
}

/* A newer upload beside a conditional delete of the older one. */
struct racer {
    const char *key;
    char older[RP_ETAG_MAX + 2]; /* quoted */
    struct rp_pair if_match;
    struct s3_call *put, *erase;
};

static bool racer_begin(struct s3_probe *probe, int i, struct racer *racer, struct s3_call calls[2])
{
    struct rp_identity older;
    char name[16];
    snprintf(name, sizeof name, "race%d", i);
    *racer = (struct racer){ .key = rp_s3_canary(probe, name), .put = &calls[i % 2], .erase = &calls[1 - i % 2] };
    if (rp_s3_try_put(probe, racer->key, "older", NULL, NULL, &older, NULL) / 100 != 2) return false;
    snprintf(racer->older, sizeof racer->older, "\"%s\"", older.etag);
    racer->if_match = (struct rp_pair){ "if-match", racer->older };
    *racer->put = rp_s3_call("PUT", racer->key);
    racer->put->message.body = "the newer one";
    racer->put->message.body_bytes = strlen("the newer one");
    *racer->erase = rp_s3_call("DELETE", racer->key);
    rp_s3_send(racer->erase, &racer->if_match, 1, NULL);
    racer->put->once = racer->erase->once = true;
    racer->put->patience_ms = racer->erase->patience_ms = rp_s3_patience(probe->s3, 10 * RP_SECOND_MS);
    return true;
}

/* Whichever came first: an upload that was acknowledged stands in the end. */
static bool racer_lost(struct s3_probe *probe, const struct racer *racer)
{
    char newer[RP_ETAG_MAX] = "";
    bool taken = racer->put->code == 0 && racer->put->status / 100 == 2 && rp_s3_etag_of(racer->put, newer);
    return taken && !rp_s3_canary_is(probe, racer->key, newer);
}

/* How many uploads were lost; negative: the race could not be held. `server`: what its answers call
 * themselves. */
static int hold_race(struct s3_probe *probe, char server[64])
{
    struct racer racers[RACERS];
    struct s3_call calls[2 * RACERS];
    int lost = 0, begun = 0;
    while (begun < RACERS && racer_begin(probe, begun, &racers[begun], &calls[2 * begun]))
        begun++;
    int r = begun < RACERS ? RP_EFAILED : rp_s3_wire_run(probe->s3->wire, calls, 2 * RACERS, NULL);
    for (int i = 0; i < begun; i++) {
        if (r == 0) lost += racer_lost(probe, &racers[i]);
        if (r == 0) rp_s3_header(racers[i].erase, "server", server, 64);
        rp_s3_call_done(racers[i].put);
        rp_s3_call_done(racers[i].erase);
    }
    return r < 0 ? r : lost;
}

/* A lost race refutes; a clean one proves nothing, so that somebody's word must come to it. */
static void probe_one_step(struct s3_probe *probe)
{
    char server[64] = "";
    int lost = 0;
    for (int i = 0; i < RACES && lost == 0; i++)
        lost = hold_race(probe, server);
    bool declared = probe->s3->options.one_step_deletes;
    bool known = rp_s3_deletes_in_one_step(probe->s3->target.host, server);
    probe->powers.one_step_deletes = lost == 0 && (declared || known);
    if (lost > 0)
        rp_s3_finding(probe, IF_MATCH, false,
                      "checked first and deleted after, not in one step: of %d uploads beside a delete %d were lost",
                      RACERS, lost);
    else if (lost < 0)
        rp_s3_finding(probe, IF_MATCH, false, "holds for one at a time; a race against uploads could not be held");
    else if (probe->powers.one_step_deletes)
        rp_s3_finding(probe, IF_MATCH, true, "another etag is refused with 412, in one step with the delete (%s)",
                      known ? "as its maker documents" : "as conditional_deletes says");
    else
        rp_s3_finding(probe, IF_MATCH, false,
                      "another etag is refused, but whether in one step with the delete nobody vouches "
                      "(conditional_deletes)");
}

static void right_if_match(struct s3_probe *probe, const char *key, const char *etag)
{
    int status = rp_s3_try_delete(probe, key, etag, NULL, NULL);
    if (status / 100 != 2 || !rp_s3_canary_is(probe, key, "")) {
        rp_s3_finding(probe, IF_MATCH, false, "also refuses the right etag (%d)", status);
        return;
    }
    probe->powers.single_if_match = true;
    status = rp_s3_try_delete(probe, key, etag, NULL, NULL);
    probe->powers.absent_told = status >= 400;
    probe_one_step(probe);
}

void rp_s3_probe_if_match(struct s3_probe *probe)
{
    char wrong[RP_ETAG_MAX];
    struct rp_identity now;
    const char *key = rp_s3_canary(probe, "k");
    if (probe->powers.versions) {
        rp_s3_finding(probe, IF_MATCH, false, "not tried: deletes go by version");
        return;
    }
    if (rp_s3_try_head(probe, key, &now) != 200) {
        rp_s3_finding(probe, IF_MATCH, false, "could not be tried: the canary cannot be read");
        return;
    }
    other_etag(now.etag, wrong);
    int status = rp_s3_try_delete(probe, key, wrong, NULL, NULL);
    bool there = rp_s3_canary_is(probe, key, now.etag);
    if (status == 412 && there)
        right_if_match(probe, key, now.etag);
    else if (status / 100 == 2 && !there)
        rp_s3_finding(probe, IF_MATCH, false, "ignored: a DELETE with another etag answers %d and deletes", status);
    else
        rp_s3_finding(probe, IF_MATCH, false, "a DELETE with another etag answers %d, and the object is %s", status,
                      there ? "still there" : "gone");
}

/* ---- many in one request ---- */

struct answer {
    const char *key[2];
    bool deleted[2], failed[2];
};

static int take_answer(void *ctx, const struct s3_deleted *deleted, struct rp_error *err)
{
    struct answer *a = ctx;
    (void)err;
    for (size_t i = 0; i < 2; i++)
        if (strcmp(a->key[i], deleted->key) == 0) *(deleted->code[0] ? &a->failed[i] : &a->deleted[i]) = true;
    return 0;
}

/* OpenStack Swift's deletes of many by version hide an upload that comes meanwhile; it is known by
 * this header. */
static bool is_swift(const struct s3_call *call)
{
    char id[64];
    return rp_s3_header(call, "x-openstack-request-id", id, sizeof id) != NULL;
}

static int delete_two(struct s3_probe *probe, struct rp_item items[2], bool etags, struct answer *a)
{
    struct s3_sum sum;
    RP_CLEANUP(rp_buf_done) struct rp_buf body = RP_BUF(16384);
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("POST", NULL);
    *a = (struct answer){ .key = { items[0].key, items[1].key } };
    int r = rp_s3_write_delete(&body, (struct rp_item *const[]){ &items[0], &items[1] }, 2, false, etags, NULL);
    if (r < 0) return r;
    rp_s3_query(&call, "delete", "");
    rp_s3_send_xml(&call, &body, &sum);
    r = rp_s3_try(probe, &call, NULL);
    if (r != 200) return r;
    probe->powers.multi_versions = !is_swift(&call);
    int read = rp_s3_read_deleted(&call.answer, take_answer, a, NULL);
    return read < 0 ? read : r;
}

static bool put_two(struct s3_probe *probe, struct rp_item items[2])
{
    for (size_t i = 0; i < 2; i++) {
        items[i] = (struct rp_item){ .key = rp_s3_canary(probe, i == 0 ? "m0" : "m1") };
        if (rp_s3_try_put(probe, items[i].key, "m", NULL, NULL, &items[i].identity, NULL) / 100 != 2) return false;
    }
    return true;
}

static bool multi_by_etag(struct s3_probe *probe)
{
    struct rp_item items[2];
    struct answer a;
    char right[RP_ETAG_MAX];
    if (probe->powers.versions || !put_two(probe, items)) return false;
    memcpy(right, items[0].identity.etag, sizeof right);
    other_etag(right, items[0].identity.etag);
    return delete_two(probe, items, true, &a) == 200 && a.failed[0] && !a.deleted[0] && a.deleted[1] &&
           rp_s3_canary_is(probe, items[0].key, right) && rp_s3_canary_is(probe, items[1].key, "");
}

void rp_s3_probe_multi(struct s3_probe *probe)
{
    struct rp_item items[2];
    struct answer a = { 0 };
    bool ready = put_two(probe, items);
    int status = ready ? delete_two(probe, items, false, &a) : 0;
    bool named = a.deleted[0] && a.deleted[1] && !a.failed[0] && !a.failed[1];
    bool gone = named && rp_s3_canary_is(probe, items[0].key, "") && rp_s3_canary_is(probe, items[1].key, "");
    probe->powers.multi_delete = gone;
    probe->powers.multi_etag = gone && multi_by_etag(probe);
    if (!ready || status != 200)
        rp_s3_finding(probe, "delete of many", false, "not possible in one request (%d): one request a key", status);
    else if (!gone)
        rp_s3_finding(probe, "delete of many", false, "%s",
                      named ? "says deleted, and the objects are still there" : "the answer does not name each key");
    else
        rp_s3_finding(probe, "delete of many", true, "answers for each key; %s",
                      probe->powers.versions && !probe->powers.multi_versions ? "versions go one by one: it is Swift"
                      : probe->powers.versions                                ? "versions are deleted by id"
                      : probe->powers.multi_etag                              ? "refuses another etag"
                                                                              : "pays no heed to the etag");
}

/* ---- delete markers ---- */

/* What a quarantine there relies on, in full. Not on Swift, which lists all markers after all
 * versions: nobody can see there what one lies on. */
void rp_s3_probe_markers(struct s3_probe *probe)
{
    struct rp_identity before = { 0 }, after = { 0 };
    const int64_t since_ms = INT64_MAX;
    bool made = false;
    if (!probe->powers.versions_go || !probe->powers.multi_versions || rp_s3_is_given_up(probe)) return;
    struct rp_item item = { .key = rp_s3_canary(probe, "hidden") };
    if (put_canary(probe, item.key, "hide me", &before, NULL) < 0) return;
    if (rp_s3_try_head(probe, item.key, &item.identity) != 200) return;
    bool hidden = rp_s3_hide(&probe->s3->base, &item, &since_ms, 1, NULL, NULL) == 0 && item.outcome == RP_OUT_FOUND &&
                  rp_s3_canary_is(probe, item.key, "");
    probe->powers.markers = hidden && rp_s3_show(&probe->s3->base, item.key, &item.identity, &made, NULL) == 0 &&
                            rp_s3_try_head(probe, item.key, &after) == 200 && rp_identity_equal(&after, &item.identity);
    rp_s3_finding(probe, "delete markers", probe->powers.markers, "%s",
                  probe->powers.markers ? "one hides an object, and removed it shows it as it was"
                  : hidden              ? "one hides an object, but cannot be removed"
                                        : "one is not listed above the version that it hides");
}
