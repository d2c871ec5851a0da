/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - every chain is walked from its first row, or from the end of what was sealed of it. */
#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "catalog/audit/chain.h"
#include "catalog/audit/segment.h"
#include "catalog/statements/statements.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LANES_MAX (RP_LANE_MAX + 1)
#define TRIES     5 /* of a lane that is sealed further while it is walked */

struct verifier {
    struct rp_catalog *catalog;
    const char *dir; /* of the segments' files; NULL: they are not looked at */
    struct rp_audit_verdict *verdict;
    uint8_t prev[RP_DIGEST_BYTES];
    bool prev_known;
    int64_t seq;
    int64_t head_seq; /* of the lane, as it was read before its rows */
    const uint8_t *head;
    struct rp_segment sealed; /* the lane's last segment */
    /* The hash of a row before the first one that is there, from a segment's file; 0: none. */
    int64_t anchor_seq;
    uint8_t anchor[RP_DIGEST_BYTES];
    bool gap;      /* a row is missing: sealed meanwhile? */
    json_t *heads; /* the last thing that others said of each lane, by lane number; checked when all are read */
    json_t *seals; /* details of audit.sealed rows; checked when all are read */
};

static int broken(struct rp_audit_verdict *v, int64_t lane, int64_t seq, const char *why)
{
    v->broken = true;
    v->lane = lane;
    v->seq = seq;
    snprintf(v->why, sizeof v->why, "%s", why);
    return RP_ECORRUPT; /* ends the walk; the verdict says more */
}

/* ---- segments ---- */

/* A file that is not here may lie elsewhere: it is counted. One that is here and another is a
 * broken link. One that cannot be read proves nothing. */
static int check_file(struct verifier *v, const struct rp_segment *s, struct rp_error *err)
{
    char path[RP_SEGMENT_PATH], why[sizeof v->verdict->why];
    uint8_t sum[RP_DIGEST_BYTES];
    struct rp_error why_not = { 0 };
    if (v->dir == NULL) return 0;
    int r = rp_segment_path(v->dir, s->file, path, &why_not);
    if (r == 0) r = rp_segment_sum(path, sum, &why_not);
    if (r < 0 && r != RP_ENOTFOUND) {
        rp_error_copy(err, &why_not);
        return r;
    }
    if (r < 0) {
        if (v->verdict->files_missing++ == 0) snprintf(v->verdict->missing, sizeof v->verdict->missing, "%s", s->file);
        return 0;
    }
    v->verdict->files++;
    if (memcmp(sum, s->sha256, sizeof sum) == 0) return 0;
    snprintf(why, sizeof why, "%s is not the file that was sealed", s->file);
    return broken(v->verdict, s->lane, s->from_seq, why);
}

static int verify_segment(void *ctx, const struct rp_segment *s, struct rp_error *err)
{
    struct verifier *v = ctx;
    if (s->from_seq != v->sealed.to_seq + 1 || s->to_seq < s->from_seq)
        return broken(v->verdict, s->lane, v->sealed.to_seq + 1, "the segment that begins here is missing");
    if (memcmp(s->before, v->sealed.after, sizeof s->before) != 0)
        return broken(v->verdict, s->lane, s->from_seq, "its segment does not follow from the one before");
    v->sealed = *s;
    v->verdict->segments++;
    v->verdict->sealed += s->to_seq - s->from_seq + 1;
    return check_file(v, s, err);
}

struct hash_of {
    int64_t seq;
    uint8_t hash[RP_DIGEST_BYTES];
    bool found;
};

static void set_hash(struct hash_of *out, const void *hash)
{
    memcpy(out->hash, hash, sizeof out->hash);
    out->found = true;
}

static int take_hash(void *ctx, const struct rp_audit_row *row, struct rp_error *err)
{
    struct hash_of *out = ctx;
    (void)err;
    if (row->seq == out->seq) set_hash(out, row->hash);
    return 0;
}

/* The hash of row `out->seq`, or of the one before the segment of `in`, which is sealed: it stands in
 * the segment or in its file. Not found: the file is not here, or cannot be read (`unknown`), or it
 * has no such row. RP_ENOTFOUND: no segment covers row `in`. */
static int sealed_hash(struct verifier *v, int64_t lane, int64_t in, struct hash_of *out, bool *unknown,
                       struct rp_error *err)
{
    char path[RP_SEGMENT_PATH];
    struct rp_segment s;
    struct rp_segment_file file;
    struct rp_error unread = { 0 };
    int r = rp_segment_of_row(v->catalog->db, lane, in, &s, err);
    if (r < 0) return r;
    if (out->seq == s.from_seq - 1) set_hash(out, s.before);
    if (out->seq == s.to_seq) set_hash(out, s.after);
    if (out->found) return 0;
    r = v->dir != NULL ? rp_segment_path(v->dir, s.file, path, &unread) : RP_ENOTFOUND;
    if (r == 0) r = rp_segment_read(path, take_hash, out, &file, &unread);
    *unknown = r < 0;
    return 0;
}

/* Of a segment some rows are gone, and others not yet: the file says which hash the first of those
 * follows. */
static int find_anchor(struct verifier *v, int64_t lane, int64_t first_seq, struct rp_error *err)
{
    struct hash_of before = { .seq = first_seq - 1 };
    bool unknown = false;
    int r = 0;
    if (first_seq > v->sealed.to_seq)
        set_hash(&before, v->sealed.after);
    else
        r = sealed_hash(v, lane, first_seq, &before, &unknown, err);
    if (r < 0) return r;
    v->anchor_seq = unknown ? -1 : before.seq;
    memcpy(v->anchor, before.hash, sizeof v->anchor);
    return 0;
}

/* ---- rows ---- */

/* Later heads say all that earlier ones said, for the chain between them is checked as well: one a
 * lane is enough. */
static int note_heads(struct verifier *v, const struct rp_audit_row *row, struct rp_error *err)
{
    RP_CLEANUP(rp_json_decrefp) json_t *details = NULL;
    size_t i;
    json_t *head;
    if (strcmp(row->event, "audit.heads") != 0 || row->details == NULL) return 0;
    int r = rp_json_parse(row->details, strlen(row->details), &details, err);
    if (r < 0) return r;
    json_array_foreach(json_object_get(details, "heads"), i, head)
    {
        char lane[24];
        snprintf(lane, sizeof lane, "%lld", (long long)rp_json_get_int(head, "lane", -1));
        if (rp_json_get_int(json_object_get(v->heads, lane), "seq", -1) >= rp_json_get_int(head, "seq", -1)) continue;
        if (json_object_set(v->heads, lane, head) < 0) return rp_error_set(err, RP_ENOMEM, "out of memory");
    }
    return 0;
}

static int note_seal(struct verifier *v, const struct rp_audit_row *row, struct rp_error *err)
{
    json_t *details = NULL;
    if (strcmp(row->event, "audit.sealed") != 0 || row->details == NULL) return 0;
    int r = rp_json_parse(row->details, strlen(row->details), &details, err);
    if (r == 0 && rp_json_append(v->seals, details) < 0) r = rp_error_set(err, RP_ENOMEM, "out of memory");
    return r;
}

/* Whether the walk can go on with this row, and from which hash. Rows that are sealed may go while
 * they are walked. */
static bool find_link(struct verifier *v, const struct rp_audit_row *row)
{
    if (row->seq == v->seq + 1 && v->seq > 0) return true;
    if (row->seq <= v->seq || row->seq > v->sealed.to_seq + 1) return false;
    v->prev_known = row->seq - 1 == v->anchor_seq || row->seq - 1 == v->sealed.to_seq;
    memcpy(v->prev, row->seq - 1 == v->sealed.to_seq ? v->sealed.after : v->anchor, sizeof v->prev);
    return true;
}

static int verify_row(void *ctx, const struct rp_audit_row *row, struct rp_error *err)
{
    struct verifier *v = ctx;
    struct rp_digest *d = v->catalog->digest;
    v->gap = !find_link(v, row);
    if (v->gap) {
        int64_t first = v->seq > v->sealed.to_seq ? v->seq : v->sealed.to_seq;
        return broken(v->verdict, row->lane, first + 1, "the row is missing");
    }
    v->seq = row->seq;
    v->verdict->rows++;
    const char *fault = v->prev_known ? rp_audit_link_fault(d, v->prev, row) : rp_audit_details_fault(d, row);
    if (fault != NULL) return broken(v->verdict, row->lane, row->seq, fault);
    if (rp_audit_is_erased(d, row)) v->verdict->erased++;
    if (row->seq == v->head_seq && memcmp(row->hash, v->head, RP_DIGEST_BYTES) != 0)
        return broken(v->verdict, row->lane, row->seq, "the lane's head is another");
    if (row->seq == v->sealed.to_seq && memcmp(row->hash, v->sealed.after, RP_DIGEST_BYTES) != 0)
        return broken(v->verdict, row->lane, row->seq, "its segment was sealed with another hash");
    memcpy(v->prev, row->hash, sizeof v->prev);
    v->prev_known = true;
    int r = note_heads(v, row, err);
    return r < 0 ? r : note_seal(v, row, err);
}

/* ---- a lane ---- */

static int first_row(struct rp_db *db, int64_t lane, int64_t *out, struct rp_error *err)
{
    struct rp_one found = { 0 };
    struct rp_value arg = rp_int(lane);
    int r = rp_db_query(db, RP_SQL(audit_first), &arg, rp_one_row, &found, err);
    *out = found.i[0];
    return r;
}

static int walk_lane(struct verifier *v, int64_t lane, struct rp_error *err)
{
    struct rp_db *db = v->catalog->db;
    int64_t first = 0;
    v->seq = v->anchor_seq = 0;
    v->gap = false;
    v->sealed = (struct rp_segment){ .lane = lane };
    memset(v->anchor, 0, sizeof v->anchor);
    int r = rp_segment_each(db, lane, verify_segment, v, err);
    if (r == 0) r = first_row(db, lane, &first, err);
    if (r == 0 && first > 0) r = find_anchor(v, lane, first, err);
    if (r == 0) r = rp_audit_lane(db, lane, 0, verify_row, v, err);
    return r;
}

static int verify_lane(struct verifier *v, int64_t lane, int64_t head_seq, const uint8_t *head, struct rp_error *err)
{
    const struct rp_audit_verdict before = *v->verdict;
    struct rp_segment last;
    v->head_seq = head_seq;
    v->head = head;
    int r = walk_lane(v, lane, err);
    for (int try = 1; try < TRIES && v->verdict->broken && v->gap; try++) {
        struct rp_error ignored = { 0 };
        if (rp_segment_last(v->catalog->db, lane, &last, &ignored) < 0 || last.to_seq == v->sealed.to_seq) break;
        *v->verdict = before;
        rp_error_clear(err);
        r = walk_lane(v, lane, err);
    }
    if (v->verdict->broken) return 0;
    if (r < 0) return r;
    /* rows may have been added since the heads were read; fewer is a cut tail */
    int64_t end = v->seq > v->sealed.to_seq ? v->seq : v->sealed.to_seq;
    if (v->seq < head_seq) broken(v->verdict, lane, end + 1, "the chain ends before the lane's head");
    return 0;
}

/* ---- what was said of lanes and segments ---- */

static int hash_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    (void)err;
    if (row[0].n == RP_DIGEST_BYTES) set_hash(ctx, row[0].p);
    return 0;
}

static int verify_head(struct verifier *v, const json_t *head, struct rp_error *err)
{
    int64_t lane = rp_json_get_int(head, "lane", -1), seq = rp_json_get_int(head, "seq", -1);
    struct rp_value args[] = { rp_int(lane), rp_int(seq) };
    struct hash_of there = { .seq = seq };
    struct rp_error why = { 0 };
    char hex[RP_DIGEST_HEX];
    bool unknown = false;
    int r = rp_db_query(v->catalog->db, RP_SQL(audit_hash_at), args, hash_row, &there, &why);
    if (r == 0 && !there.found) r = sealed_hash(v, lane, seq, &there, &unknown, &why);
    if (r < 0 && r != RP_ENOTFOUND) return rp_error_copy(err, &why);
    rp_digest_hex(there.hash, hex);
    if (unknown || (there.found && strcmp(hex, rp_json_get_text(head, "hash", "")) == 0)) return 0;
    broken(v->verdict, lane, seq,
           there.found ? "another lane recorded another hash here" : "another lane recorded this row; it is gone");
    return 0;
}

static int verify_heads(struct verifier *v, struct rp_error *err)
{
    const char *name;
    json_t *head;
    int r = 0;
    json_object_foreach(v->heads, name, head)
    {
        if (r == 0 && !v->verdict->broken) r = verify_head(v, head, err);
    }
    return r;
}

static int verify_seal(struct verifier *v, const json_t *said, struct rp_error *err)
{
    int64_t lane = rp_json_get_int(said, "lane", -1), from = rp_json_get_int(said, "from", -1);
    int64_t to = rp_json_get_int(said, "to", -1);
    char after[RP_DIGEST_HEX], sha256[RP_DIGEST_HEX];
    struct rp_segment s;
    struct rp_error why = { 0 };
    int r = rp_segment_of_row(v->catalog->db, lane, to, &s, &why);
    if (r < 0 && r != RP_ENOTFOUND) return rp_error_copy(err, &why);
    if (r < 0) {
        broken(v->verdict, lane, from, "the audit log says that a segment was sealed here; it is gone");
        return 0;
    }
    rp_digest_hex(s.after, after);
    rp_digest_hex(s.sha256, sha256);
    bool same = s.from_seq == from && s.to_seq == to && strcmp(after, rp_json_get_text(said, "after", "")) == 0 &&
                strcmp(sha256, rp_json_get_text(said, "sha256", "")) == 0 &&
                strcmp(s.file, rp_json_get_text(said, "file", "")) == 0;
    if (!same) broken(v->verdict, lane, from, "its segment is not what the audit log says was sealed");
    return 0;
}

static int verify_seals(struct verifier *v, struct rp_error *err)
{
    size_t i;
    json_t *said;
    int r = 0;
    json_array_foreach(v->seals, i, said)
    {
        if (r == 0 && !v->verdict->broken) r = verify_seal(v, said, err);
    }
    return r;
}

/* ---- all of it ---- */

struct lane_head {
    int64_t lane, seq;
    uint8_t head[RP_DIGEST_BYTES];
};
struct lane_heads {
    struct lane_head at[LANES_MAX];
    size_t n;
};

static int collect_head(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct lane_heads *heads = ctx;
    if (heads->n == LANES_MAX || row[2].n != RP_DIGEST_BYTES)
        return rp_error_set(err, RP_ECORRUPT, "the lanes' heads cannot be read");
    struct lane_head *h = &heads->at[heads->n++];
    h->lane = row[0].i;
    h->seq = row[1].i;
    memcpy(h->head, row[2].p, RP_DIGEST_BYTES);
    return 0;
}

static bool has_head(const struct lane_heads *heads, int64_t lane)
{
    for (size_t i = 0; i < heads->n; i++)
        if (heads->at[i].lane == lane) return true;
    return false;
}

static int find_lost_lanes(struct verifier *v, const struct lane_heads *heads, struct rp_error *err)
{
    int64_t lanes[LANES_MAX];
    size_t n = 0;
    int r = rp_audit_lanes(v->catalog->db, lanes, LANES_MAX, &n, err);
    for (size_t i = 0; r == 0 && i < n && !v->verdict->broken; i++)
        if (!has_head(heads, lanes[i])) broken(v->verdict, lanes[i], 1, "the lane's head is gone");
    return r;
}

static int verify_all(struct verifier *v, struct lane_heads *heads, struct rp_error *err)
{
    int r = rp_db_query(v->catalog->db, RP_SQL(lane_list), NULL, collect_head, heads, err);
    if (r == 0) r = find_lost_lanes(v, heads, err);
    for (size_t i = 0; r == 0 && i < heads->n && !v->verdict->broken; i++)
        r = verify_lane(v, heads->at[i].lane, heads->at[i].seq, heads->at[i].head, err);
    if (r == 0 && !v->verdict->broken) r = verify_heads(v, err);
    if (r == 0 && !v->verdict->broken) r = verify_seals(v, err);
    v->verdict->lanes = heads->n;
    return r;
}

int rp_audit_verify_files(struct rp_catalog *catalog, const char *dir, struct rp_audit_verdict *out,
                          struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct lane_heads *heads = calloc(1, sizeof *heads);
    RP_CLEANUP(rp_json_decrefp) json_t *said = json_object();
    RP_CLEANUP(rp_json_decrefp) json_t *seals = json_array();
    struct rp_audit_verdict verdict = { 0 };
    struct verifier v = { .catalog = catalog, .dir = dir, .verdict = &verdict, .heads = said, .seals = seals };
    if (heads == NULL || said == NULL || seals == NULL)
        return rp_error_set(err, RP_ENOMEM, "verify the audit log: out of memory");
    int r = verify_all(&v, heads, err);
    if (r < 0) return rp_error_wrap(err, r, "verify the audit log");
    *out = verdict;
    return 0;
}

int rp_audit_verify(struct rp_catalog *catalog, struct rp_audit_verdict *out, struct rp_error *err)
{
    return rp_audit_verify_files(catalog, NULL, out, err);
}
