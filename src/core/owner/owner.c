/* SPDX-License-Identifier: Apache-2.0 */
/* owner.c - the owner record: looked at, judged, and written over the one that was seen. */
#include "core/owner/owner.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/crashpoint.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/audit/audit.h"
#include "core/owner/facts.h"
#include "core/owner/refuse.h"
#include "core/owner/stamps.h"
#include "core/owner/vessel.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RECORD_MAX 4096
#define ROUNDS_MAX 64

/* ---- look ---- */

static int take_bytes(void *ctx, const void *from, size_t n, struct rp_error *err)
{
    int r = rp_buf_add(ctx, from, n);
    return r < 0 ? rp_error_set(err, r, "the owner record is too long") : 0;
}

/* Foreign bytes in our place are a finding, not a failure. */
static void read_record(const struct rp_buf *text, struct rp_owner *out)
{
    RP_CLEANUP(rp_json_decrefp) json_t *record = NULL;
    struct rp_error ignored = { 0 };
    if (text->failed < 0 || rp_json_parse(rp_buf_text(text), text->len, &record, &ignored) < 0 ||
        !json_is_object(record) || rp_json_get_text(record, "catalog", NULL) == NULL ||
        rp_json_get_int(record, "epoch", -1) < 0) {
        out->ownership = RP_OWNER_DAMAGED;
        return;
    }
    snprintf(out->catalog, sizeof out->catalog, "%s", rp_json_get_text(record, "catalog", ""));
    snprintf(out->environment, sizeof out->environment, "%s", rp_json_get_text(record, "environment", ""));
    out->epoch = rp_json_get_int(record, "epoch", 0);
    snprintf(out->stamp, sizeof out->stamp, "%s", rp_json_get_text(record, "stamp", ""));
    if (rp_time_parse(rp_json_get_text(record, "written_at", ""), &out->written_at_ms, &ignored) < 0)
        out->written_at_ms = 0;
}

/* A record that is too long to be read has an identity all the same, for a recovery to write
 * over. */
static int identify(struct rp_store *store, struct rp_owner *out, struct rp_error *err)
{
    struct rp_item item = { .key = RP_STORE_OWNER };
    int r = rp_backend_stat(store->backend, &item, 1, err);
    if (r < 0) return rp_error_wrap(err, r, "owner record of store '%s'", store->config->name);
    if (item.outcome != RP_OUT_FOUND || item.identity.size_bytes < RECORD_MAX)
        return rp_error_set(err, RP_EBUSY, "the owner record of store '%s' is changing", store->config->name);
    out->there = true;
    out->identity = item.identity;
    return 0;
}

/* What a readable record says about us, in the order of owner.h. */
static int judge_record(struct rp_catalog *catalog, const struct rp_store *store, struct rp_owner *owner,
                        struct rp_error *err)
{
    bool moved = false;
    enum rp_stamp stamp;
    int r = rp_stamps_judge(catalog->db, store->id, owner->stamp, owner->epoch, &stamp, &owner->other, err);
    if (r == 0 && owner->other != 0) r = rp_store_name(catalog->db, owner->other, owner->other_name, err);
    if (r == 0) r = rp_vessel_compare(catalog->db, store, &moved, err);
    if (r < 0) return r;
    if (strcmp(owner->catalog, catalog->id) != 0)
        owner->ownership = RP_OWNER_FOREIGN;
    else if (owner->epoch > owner->catalog_epoch)
        owner->ownership = RP_OWNER_AHEAD;
    else if (stamp == RP_STAMP_UNKNOWN)
        owner->ownership = RP_OWNER_FORKED;
    else if (stamp == RP_STAMP_OTHERS)
        owner->ownership = RP_OWNER_SWAPPED;
    else if (stamp == RP_STAMP_RENAMED)
        owner->ownership = RP_OWNER_RENAMED;
    else if (moved)
        owner->ownership = RP_OWNER_MOVED;
    else if (store->environment != NULL && strcmp(owner->environment, store->environment) != 0)
        owner->ownership = RP_OWNER_ELSEWHERE;
    return 0;
}

/* No record, and none that was missed: unless it was made by what the catalog has forgotten. */
static int judge_none(struct rp_catalog *catalog, const struct rp_store *store, struct rp_owner *owner,
                      struct rp_error *err)
{
    bool moved = false;
    int r = rp_vessel_compare(catalog->db, store, &moved, err);
    owner->ownership = moved ? RP_OWNER_MOVED : RP_OWNER_NONE;
    return r;
}

/* What this process has opened under that name: a rename gives a name to another row. */
static int find_row(struct rp_catalog *catalog, const struct rp_store *store, struct rp_store_row *out,
                    struct rp_error *err)
{
    int r = rp_store_find(catalog->db, store->config->name, out, err);
    return (r == 0 && out->id != store->id) || r == RP_ENOTFOUND ? rp_store_refuse_old(store->config->name, err) : r;
}

enum fetched { FETCHED, NO_RECORD, TOO_LONG };

/* Its bytes into `text`, and its identity. Negative: it could not be looked at. */
static int fetch_record(struct rp_store *store, struct rp_buf *text, struct rp_owner *out, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 16);
    struct rp_sink sink = { .write = take_bytes, .ctx = text };
    struct rp_meta meta;
    int r = rp_backend_get(store->backend, RP_STORE_OWNER, &sink, &arena, &meta, &out->identity, err);
    if (r < 0 && text->failed == RP_ETOOBIG) {
        r = identify(store, out, err);
        return r < 0 ? r : TOO_LONG;
    }
    if (r == RP_ENOTFOUND) return NO_RECORD;
    if (r < 0) return rp_error_wrap(err, r, "owner record of store '%s'", store->config->name);
    out->there = true;
    return FETCHED;
}

int rp_owner_look(struct rp_catalog *catalog, struct rp_store *store, struct rp_owner *out, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(RECORD_MAX);
    struct rp_store_row row;
    struct rp_owner owner = { .ownership = RP_OWNER_OURS };
    int r = find_row(catalog, store, &row, err);
    if (r < 0) return r;
    /* the store before the catalog: an epoch that another node raises between the two looks leaves
     * the record behind, and its stamp is known before it is seen */
    int fetched = fetch_record(store, &text, &owner, err);
    if (fetched < 0) return fetched;
    r = rp_meta_get(catalog->db, "epoch", &owner.catalog_epoch, NULL, 0, err);
    if (r < 0) return r;
    switch ((enum fetched)fetched) {
    case FETCHED:
        read_record(&text, &owner);
        break;
    case NO_RECORD:
        if (row.owned_at == 0)
            r = judge_none(catalog, store, &owner, err);
        else
            owner.ownership = RP_OWNER_GONE;
        break;
    case TOO_LONG:
        owner.ownership = RP_OWNER_DAMAGED;
        break;
    }
    if (fetched == FETCHED && owner.ownership == RP_OWNER_OURS) r = judge_record(catalog, store, &owner, err);
    if (r < 0) return r;
    catalog->looked_epoch = owner.catalog_epoch;
    *out = owner;
    return 0;
}

/* ---- write ---- */

struct reading {
    const char *text;
    size_t left;
};

static int64_t give_bytes(void *ctx, void *to, size_t n, struct rp_error *err)
{
    struct reading *from = ctx;
    (void)err;
    if (n > from->left) n = from->left;
    memcpy(to, from->text, n);
    from->text += n;
    from->left -= n;
    return (int64_t)n;
}

struct raising {
    struct rp_store *store;
    const struct rp_owner *seen; /* what was looked at */
    bool note_owned;             /* in the catalog: it never noted that the store is its own, or a person says so */
    bool told;                   /* somebody has said so: the vessel is noted whatever it was */
    int64_t at_least, epoch;
    char stamp[RP_STAMP_TEXT];
    const struct rp_audit_entry *entry; /* NULL: nobody asks who raised it */
};

/* Over the record that `before` is; where it is none, only if there still is none. */
static int write_record(struct rp_catalog *catalog, struct rp_store *store, const char *environment,
                        const struct raising *raised, const struct rp_owner *before, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(RECORD_MAX);
    /* packed, not set member by member: a record that lacks its catalog or its epoch would stop, or
     * fail to stop, every purge */
    RP_CLEANUP(rp_json_decrefp)
    json_t *record =
        json_pack("{s:s,s:I,s:s,s:o,s:o,s:s}", "catalog", catalog->id, "epoch", (json_int_t)raised->epoch, "stamp",
                  raised->stamp, "environment", rp_json_text(environment != NULL ? environment : ""), "written_at",
                  rp_json_time(rp_clock_now_ms(catalog->clock)), "note",
                  "This store is purged by Reprieve, from this catalog only. Do not remove.");
    struct rp_meta meta = { 0 }; /* none: a directory store then needs no metadata of its own, and looks for none */
    struct rp_identity identity = before->identity;
    int r = rp_json_write(&text, record);
    if (r == 0) r = rp_buf_char(&text, '\n');
    if (r < 0) return rp_error_set(err, r, "the owner record does not fit");
    struct reading from = { .text = rp_buf_text(&text), .left = text.len };
    struct rp_source source = { .read = give_bytes, .ctx = &from };
    r = rp_backend_put(store->backend, RP_STORE_OWNER, &source, &meta, before->there ? RP_PUT_OVER : RP_PUT_NEW,
                       &identity, err);
    return r < 0 ? rp_error_wrap(err, r, "write the owner record of store '%s'", store->config->name) : 0;
}

int rp_owner_check_epoch(struct rp_tx *tx, const struct rp_store *store, int64_t seen_epoch, struct rp_error *err)
{
    int64_t epoch = 0;
    int r = rp_meta_get(tx->db, "epoch", &epoch, NULL, 0, err);
    return r < 0 || epoch >= seen_epoch ? r : rp_owner_refuse_gone_back(store, seen_epoch, epoch, err);
}

static int raise_epoch(struct rp_tx *tx, struct raising *raising, struct rp_error *err)
{
    bool ours = raising->seen->ownership == RP_OWNER_OURS || rp_ownership_is_moved(raising->seen->ownership);
    int r = rp_meta_raise(tx->db, "epoch", raising->at_least, &raising->epoch, err);
    if (r < 0) return r;
    if (raising->epoch <= raising->seen->catalog_epoch) /* O6 */
        return rp_owner_refuse_gone_back(raising->store, raising->seen->catalog_epoch, raising->epoch - 1, err);
    return rp_stamps_draw(tx, raising->store->id, ours ? raising->seen->stamp : "", raising->seen->epoch,
                          raising->stamp, err);
}

static int raise_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct raising *raising = ctx;
    char name[RP_OWNER_FACT_MAX];
    rp_owner_fact(RP_OWNER_RAISED, raising->store->id, name);
    /* the store's row before the epoch's, and what changes it before what only shares it: of two
     * nodes that raise at the same moment none waits for the other in a ring */
    int r = raising->note_owned ? rp_store_owned(tx, raising->store->id, err) : 0;
    if (r == 0) r = rp_store_share(tx, raising->store->id, raising->store->config->name, err);
    if (r == 0 && !raising->told) r = rp_vessel_check(tx, raising->store, err); /* it may have moved since the look */
    if (r == 0) r = raise_epoch(tx, raising, err);
    if (r == 0) r = rp_meta_set(tx->db, name, tx->late_ms, "", err);
    if (r == 0) r = rp_vessel_note(tx, raising->store, err);
    if (r < 0 || raising->entry == NULL) return r;
    struct rp_audit_entry entry = *raising->entry;
    entry.details = json_incref(raising->entry->details); /* the transaction may be run again */
    return rp_tx_audit(tx, &entry, err);
}

int rp_owner_check(struct rp_catalog *catalog, struct rp_store *store, struct rp_error *err)
{
    struct rp_owner owner;
    int r = rp_owner_look(catalog, store, &owner, err);
    if (r < 0 || owner.ownership == RP_OWNER_OURS || owner.ownership == RP_OWNER_NONE) return r;
    return rp_owner_refuse(&owner, store, err);
}

/* The first record: made only if none is there, so that of two catalogs one wins. */
static int take_first(struct rp_catalog *catalog, struct rp_store *store, const char *environment,
                      const struct rp_owner *none, struct rp_error *err)
{
    struct raising raising = { .store = store, .seen = none };
    int r = rp_catalog_transact(catalog, raise_tx, &raising, err);
    RP_CRASHPOINT("owner.first-raised");
    if (r == 0) r = write_record(catalog, store, environment, &raising, none, err);
    if (r < 0) return r;
    RP_CRASHPOINT("owner.first-written");
    struct rp_audit_entry entry = { .event = "store.owned",
                                    .actor = "reprieve",
                                    .details = json_pack("{s:s}", "store", store->config->name) };
    raising = (struct raising){ .store = store, .seen = none, .note_owned = true, .entry = &entry };
    r = rp_catalog_transact(catalog, raise_tx, &raising, err);
    json_decref(entry.details);
    return r;
}

static bool is_overtaken(int r)
{
    return r == RP_ECHANGED || r == RP_ENOTFOUND || r == RP_EEXISTS;
}

/* The record says this epoch of ours, or a later one of ours; or what stands there now is judged.
 * Each time round another node of this catalog has written an epoch between the record's and this
 * one, so that few rounds are enough for any number of nodes. No two of them have the same epoch: a
 * record that says it nevertheless is this very one, whose answer was lost, or that of a copy of
 * the catalog. The copy is stopped by its stamp, or, if it is of a release without stamps, by a
 * later epoch. */
static int settle_record(struct rp_catalog *catalog, struct rp_store *store, const char *environment,
                         struct raising *raised, struct rp_error *err)
{
    struct rp_owner now = *raised->seen;
    bool changed = false;
    for (int i = 0; i < ROUNDS_MAX; i++) {
        struct rp_identity before = now.identity;
        int r = write_record(catalog, store, environment, raised, &now, err);
        if (!is_overtaken(r)) return r;
        if ((r = rp_owner_look(catalog, store, &now, err)) < 0) return r;
        changed = changed || !rp_identity_equal(&before, &now.identity);
        if (now.ownership != RP_OWNER_OURS) return rp_owner_refuse(&now, store, err);
        if (now.epoch > raised->epoch) return 0;
        if (now.epoch < raised->epoch) continue;
        if (strcmp(now.stamp, raised->stamp) == 0) return 0;
        struct raising again = { .store = store, .seen = &now };
        if ((r = rp_catalog_transact(catalog, raise_tx, &again, err)) < 0) return r;
        raised->epoch = again.epoch;
        memcpy(raised->stamp, again.stamp, sizeof raised->stamp);
    }
    const char *name = store->config->name;
    if (changed)
        return rp_error_set(err, RP_ECONFLICT, "other nodes keep writing the owner record of store '%s'", name);
    rp_error_set(err, RP_ECONFLICT, "store '%s' does not write over its owner record, which nobody has changed", name);
    return rp_error_hint(err, "`reprieve doctor` shows what its bucket does with If-Match, and its versioning");
}

/* Where it cannot be found out it was not. */
static bool raised_lately(struct rp_catalog *catalog, const struct rp_store *store)
{
    struct rp_error ignored = { 0 };
    int64_t at = 0;
    bool found;
    char name[RP_OWNER_FACT_MAX];
    rp_owner_fact(RP_OWNER_RAISED, store->id, name);
    if (rp_meta_find(catalog->db, name, &found, &at, NULL, 0, &ignored) < 0) return false;
    int64_t ago = rp_clock_now_ms(catalog->clock) - at;
    return ago >= 0 && ago < RP_MINUTE_MS;
}

int rp_owner_write(struct rp_catalog *catalog, struct rp_store *store, const char *environment, bool lazily,
                   struct rp_error *err)
{
    struct rp_owner owner;
    struct raising raising = { .store = store, .seen = &owner };
    RP_ASSERT(store->config->mode != RP_MODE_OBSERVE);
    int r = rp_owner_look(catalog, store, &owner, err);
    if (r < 0) return r;
    if (owner.ownership == RP_OWNER_NONE) {
        r = take_first(catalog, store, environment, &owner, err);
        if (r != RP_EEXISTS) return r;
        r = rp_owner_look(catalog, store, &owner, err); /* somebody else was first */
        if (r < 0) return r;
    }
    if (owner.ownership != RP_OWNER_OURS) return rp_owner_refuse(&owner, store, err);
    if (lazily && raised_lately(catalog, store)) return 0;
    /* a record found ours while the catalog never noted it: the note was lost in a crash; it is
     * made up for here */
    raising.note_owned = true;
    r = rp_catalog_transact(catalog, raise_tx, &raising, err);
    RP_CRASHPOINT("owner.raised");
    if (r == 0) r = settle_record(catalog, store, environment, &raising, err);
    return r;
}

int rp_owner_write_over(struct rp_catalog *catalog, struct rp_store *store, const char *environment,
                        const struct rp_owner *seen, const struct rp_audit_entry *entry, struct rp_error *err)
{
    struct raising raising = {
        .store = store, .seen = seen, .note_owned = true, .told = true, .at_least = seen->epoch + 1, .entry = entry
    };
    int r = rp_catalog_transact(catalog, raise_tx, &raising, err);
    return r < 0 ? r : settle_record(catalog, store, environment, &raising, err);
}
