/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/writer/lane.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/id.h"
#include "base/time.h"
#include "catalog/statements/statements.h"

#include <string.h>

static int make_row(struct rp_catalog *catalog, int64_t lane, int64_t *made, struct rp_error *err)
{
    uint8_t zero[RP_DIGEST_BYTES] = { 0 };
    struct rp_value args[] = { rp_int(lane), rp_bytes(zero, sizeof zero) };
    int r = rp_db_exec(catalog->db, RP_SQL(lane_make), args, made, err);
    return r < 0 ? rp_error_wrap(err, r, "lane %lld", (long long)lane) : 0;
}

/* A lane beside those that there are. Two may want the same: it is whoever's row was made. */
static int add_lane(struct rp_catalog *catalog, int64_t *lane, struct rp_error *err)
{
    struct rp_one next = { 0 };
    int64_t made = 0;
    int r = rp_db_query(catalog->db, RP_SQL(lane_next), NULL, rp_one_row, &next, err);
    if (r < 0) return r;
    if (next.i[0] > RP_LANE_MAX) {
        rp_error_set(err, RP_EBUSY, "all %d lanes of the catalog are leased", RP_LANE_MAX);
        return rp_error_hint(err, "stop a daemon, or wait %d s if one has just ended",
                             (int)(RP_LANE_LEASE_MS / RP_SECOND_MS));
    }
    *lane = next.i[0];
    r = make_row(catalog, *lane, &made, err);
    return r < 0 || made == 1 ? r : rp_error_set(err, RP_EBUSY, "another node made lane %lld", (long long)*lane);
}

static int lease(struct rp_catalog *catalog, int64_t *lane, int64_t *fence, struct rp_error *err)
{
    struct rp_value holder = rp_text(catalog->holder);
    struct rp_one free = { 0 }, leased = { 0 };
    int r = rp_db_query(catalog->db, RP_SQL(lane_free), &holder, rp_one_row, &free, err);
    *lane = free.i[0];
    if (r == 0 && !free.found) r = add_lane(catalog, lane, err);
    if (r < 0) return r;
    struct rp_value args[] = { rp_int(*lane), holder, rp_int(RP_LANE_LEASE_MS) };
    r = rp_db_query(catalog->db, RP_SQL(lane_lease), args, rp_one_row, &leased, err);
    *fence = leased.i[0];
    RP_ASSERT(r < 0 || leased.found);
    return r;
}

static int lease_one(struct rp_catalog *catalog, struct rp_error *err)
{
    int64_t lane = 0, fence = 0;
    int r = rp_db_begin(catalog->db, true, err);
    if (r < 0) return r;
    r = lease(catalog, &lane, &fence, err);
    if (r == 0) r = rp_db_commit(catalog->db, err);
    if (r == RP_EUNKNOWN) r = err->code = RP_EBUSY; /* ours or not, another one is taken */
    if (r < 0) {
        rp_db_rollback(catalog->db);
        return rp_error_wrap(err, r, "lease a lane");
    }
    catalog->lane = (int)lane;
    catalog->lane_fence = fence;
    return 0;
}

int rp_lane_ensure(struct rp_catalog *catalog, struct rp_error *err)
{
    if (catalog->lane_known) return 0;
    int r = catalog->leases ? lease_one(catalog, err) : make_row(catalog, catalog->lane, NULL, err);
    catalog->lane_known = r == 0;
    return r;
}

int rp_lane_check(struct rp_catalog *catalog, int64_t fence, struct rp_error *err)
{
    if (!catalog->leases || fence == catalog->lane_fence) return 0;
    catalog->lane_known = false;
    return rp_error_set(err, RP_EBUSY, "another node has leased lane %d", catalog->lane);
}

/* ---- put back? ---- */

void rp_lane_compare(struct rp_catalog *catalog, int64_t stamp)
{
    const struct rp_lane_end *end = &catalog->end;
    if (end->known && (end->lane != catalog->lane || end->stamp != stamp)) catalog->doubted = true;
}

int rp_lane_is_unchanged(struct rp_db *db, const struct rp_lane_end *end, bool *out, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(end->lane), rp_int(end->seq), rp_bytes(end->head, sizeof end->head) };
    struct rp_one last = { 0 };
    *out = true;
    if (!end->known || rp_time_boot_ms() - end->at_ms > RP_LANE_END_MS) return 0;
    int r = rp_db_query(db, RP_SQL(lane_last), args, rp_one_row, &last, err);
    *out = last.found;
    return r < 0 ? rp_error_wrap(err, r, "whether the catalog was put back") : 0;
}

int rp_lane_missing(struct rp_catalog *catalog, struct rp_error *err)
{
    bool unchanged = true;
    int r = rp_lane_is_unchanged(catalog->db, &catalog->end, &unchanged, err);
    if (r < 0) return r;
    if (unchanged) return rp_error_set(err, RP_ECORRUPT, "lane %d: its row is gone", catalog->lane);
    catalog->lane_known = false;
    catalog->doubted = true;
    return rp_error_set(err, RP_EBUSY, "lane %d: its row is gone; was the catalog put back?", catalog->lane);
}

int rp_lane_settle_doubt(struct rp_tx *tx, struct rp_error *err)
{
    bool unchanged = true;
    int r = tx->catalog->doubted ? rp_lane_is_unchanged(tx->db, &tx->catalog->end, &unchanged, err) : 0;
    return r < 0 || unchanged ? r : rp_db_exec(tx->db, RP_SQL(vessel_forget), NULL, NULL, err);
}

void rp_lane_doubt(struct rp_catalog *catalog, const struct rp_lane_end *end)
{
    catalog->end = *end;
    catalog->doubted = true;
}

void rp_lane_note_end(const struct rp_tx *tx)
{
    struct rp_catalog *catalog = tx->catalog;
    catalog->doubted = false;
    catalog->end = (struct rp_lane_end){
        .known = tx->seq > 0, .lane = catalog->lane, .stamp = tx->stamp, .seq = tx->seq, .at_ms = rp_time_boot_ms()
    };
    memcpy(catalog->end.head, tx->head, sizeof tx->head);
}

void rp_lane_release(struct rp_catalog *catalog)
{
    struct rp_value args[] = { rp_int(catalog->lane), rp_int(catalog->lane_fence) };
    struct rp_error ignored = { 0 };
    if (!catalog->leases || !catalog->lane_known) return;
    catalog->lane_known = false;
    (void)rp_db_exec(catalog->db, RP_SQL(lane_release), args, NULL, &ignored);
}
