/* SPDX-License-Identifier: Apache-2.0 */
/* api_audit.c - the audit log, newest first, and the proof that its chains are whole.
 *
 * Lanes have no common order: their ends are merged by time, each lane in its own order, and the cursor has the place in every lane,
 * so that a page follows exactly on the one before whatever was written meanwhile. */
#include "catalog/audit.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/json.h"
#include "http/api/shapes.h"
#include "lib/answer.h"

#include <stdatomic.h>

#define LANES_MAX 256
#define CHUNK     64

/* ---- shapes ---- */

static const struct rp_field query_fields[] = {
    { .name = "mark", .kind = RP_FIELD_ID, .id = RP_ID_MARK, .help = "all rows of one mark, oldest first" },
    RP_FIELD_LIMIT,
    RP_FIELD_CURSOR,
};
static const struct rp_shape query_shape = RP_SHAPE("audit_query", query_fields, "which rows");

static const struct rp_field row_fields[] = {
    { .name = "lane", .kind = RP_FIELD_INT, .most = LANES_MAX, .required = true, .help = "which chain" },
    { .name = "seq", .kind = RP_FIELD_INT, .most = INT64_MAX, .required = true, .help = "its place in it" },
    { .name = "at", .kind = RP_FIELD_TIME, .required = true, .help = "when" },
    { .name = "event", .kind = RP_FIELD_TEXT, .required = true, .help = "what" },
    { .name = "actor", .kind = RP_FIELD_TEXT, .required = true, .help = "who" },
    { .name = "mark", .kind = RP_FIELD_ID, .id = RP_ID_MARK, .help = "about which mark" },
    { .name = "tenant", .kind = RP_FIELD_INT, .most = INT64_MAX, .help = "the number of the tenant" },
    { .name = "details", .kind = RP_FIELD_ANY, .help = "null: erased, or there never were any" },
    { .name = "digest", .kind = RP_FIELD_SHA256, .required = true, .help = "of the details" },
    { .name = "hash", .kind = RP_FIELD_SHA256, .required = true, .help = "of this row and the one before" },
};
static const struct rp_shape row_shape = RP_SHAPE("audit_row", row_fields, "one acknowledged change");

static const struct rp_field broken_fields[] = {
    { .name = "lane", .kind = RP_FIELD_INT, .most = LANES_MAX, .required = true, .help = "which chain" },
    { .name = "seq", .kind = RP_FIELD_INT, .most = INT64_MAX, .required = true, .help = "the first wrong link" },
    { .name = "why", .kind = RP_FIELD_TEXT, .required = true, .help = "what is wrong with it" },
};
static const struct rp_shape broken_shape = RP_SHAPE("broken_link", broken_fields, "where a chain is broken");

static const struct rp_field verdict_fields[] = {
    { .name = "ok", .kind = RP_FIELD_BOOL, .required = true, .help = "every link holds" },
    { .name = "lanes", .kind = RP_FIELD_INT, .most = LANES_MAX, .required = true, .help = "chains that were walked" },
    { .name = "rows", .kind = RP_FIELD_INT, .most = INT64_MAX, .required = true, .help = "rows that were checked" },
    { .name = "erased",
      .kind = RP_FIELD_INT,
      .most = INT64_MAX,
      .required = true,
      .help = "whose details were erased" },
    { .name = "broken", .kind = RP_FIELD_OBJECT, .of = &broken_shape, .help = "if not ok" },
};
static const struct rp_shape verdict_shape = RP_SHAPE("audit_verdict", verdict_fields, "whether the chains are whole");

/* ---- newest first ---- */

struct lane {
    int64_t lane, upto; /* rows after this one were given before */
    json_t *rows[CHUNK];
    int64_t seqs[CHUNK], at_ms[CHUNK];
    size_t n; /* what is there to give, oldest first */
};

struct pages {
    struct rp_db *db;
    struct lane *lanes;
    size_t n;
};

static void lane_clear(struct lane *lane)
{
    while (lane->n > 0)
        json_decref(lane->rows[--lane->n]);
}

static void pages_done(struct pages *pages)
{
    for (size_t i = 0; i < pages->n; i++)
        lane_clear(&pages->lanes[i]);
    free(pages->lanes);
}

static int keep_row(void *ctx, const struct rp_audit_row *row, struct rp_error *err)
{
    struct lane *lane = ctx;
    if (row->seq > lane->upto || lane->n == CHUNK) return 0;
    lane->rows[lane->n] = rp_audit_json(row);
    if (lane->rows[lane->n] == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the audit log");
    lane->seqs[lane->n] = row->seq;
    lane->at_ms[lane->n++] = row->at_ms;
    return 0;
}

/* A lane whose rows end here has nothing older. */
static int refill(struct pages *pages, struct lane *lane, struct rp_error *err)
{
    size_t n;
    if (lane->n > 0 || lane->upto <= 0) return 0;
    int64_t after = lane->upto > CHUNK ? lane->upto - CHUNK : 0;
    int r = rp_audit_tail(pages->db, lane->lane, after, CHUNK, keep_row, lane, &n, err);
    if (r == 0 && lane->n == 0) lane->upto = 0;
    return r;
}

/* The lane whose last row is the newest; NULL: nothing is left. */
static int newest(struct pages *pages, struct lane **out, struct rp_error *err)
{
    int r = 0;
    *out = NULL;
    for (size_t i = 0; i < pages->n && r == 0; i++) {
        struct lane *lane = &pages->lanes[i];
        r = refill(pages, lane, err);
        if (r < 0 || lane->n == 0) continue;
        if (*out == NULL || lane->at_ms[lane->n - 1] > (*out)->at_ms[(*out)->n - 1]) *out = lane;
    }
    return r;
}

static int begin_pages(struct rp_request *q, struct pages *pages, struct rp_error *err)
{
    struct rp_audit_head heads[LANES_MAX];
    size_t n = 0;
    int r = rp_audit_heads(pages->db, heads, LANES_MAX, &n, err);
    (void)q;
    for (size_t i = 0; i < n && r == 0; i++)
        pages->lanes[pages->n++] = (struct lane){ .lane = heads[i].lane, .upto = heads[i].seq };
    return r;
}

static int resume_pages(struct pages *pages, const json_t *cursor, struct rp_error *err)
{
    size_t i;
    json_t *store;
    json_array_foreach(cursor, i, store)
    {
        json_int_t lane, upto;
        if (i == LANES_MAX || json_unpack_ex(store, NULL, JSON_STRICT, "[II]", &lane, &upto) < 0)
            return rp_cursor_wrong(err);
        pages->lanes[pages->n++] = (struct lane){ .lane = lane, .upto = upto };
    }
    return 0;
}

static const char *next_cursor(struct rp_request *q, const struct pages *pages)
{
    json_t *at = json_array();
    for (size_t i = 0; i < pages->n; i++) {
        const struct lane *lane = &pages->lanes[i];
        int64_t upto = lane->n > 0 ? lane->seqs[lane->n - 1] : lane->upto;
        if (upto > 0) rp_json_append(at, json_pack("[II]", (json_int_t)lane->lane, (json_int_t)upto));
    }
    if (json_array_size(at) > 0) return rp_cursor_write(q, at);
    json_decref(at);
    return NULL;
}

static int take_page(struct pages *pages, size_t limit, json_t *items, struct rp_error *err)
{
    struct lane *lane = NULL;
    int r = newest(pages, &lane, err);
    while (r == 0 && lane != NULL && json_array_size(items) < limit) {
        lane->n--;
        lane->upto = lane->seqs[lane->n] - 1;
        rp_json_append(items, lane->rows[lane->n]);
        r = newest(pages, &lane, err);
    }
    return r;
}

static int add_row(void *ctx, const struct rp_audit_row *row, struct rp_error *err)
{
    json_t *items = ctx;
    if (json_array_size(items) >= RP_LIST_LIMIT_MAX) return 0;
    return rp_json_append(items, rp_audit_json(row)) == 0 ? 0 : rp_error_set(err, RP_ENOMEM, "no memory");
}

static int list_newest(struct rp_request *q, json_t *items, const char **cursor, struct rp_error *err)
{
    RP_CLEANUP(pages_done) struct pages pages = { .db = rp_request_catalog(q)->db };
    RP_CLEANUP(rp_json_decrefp) json_t *at = rp_cursor_read(q, err);
    if (err->code < 0) return err->code;
    pages.lanes = calloc(LANES_MAX, sizeof *pages.lanes);
    if (pages.lanes == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the audit log");
    int r = at != NULL ? resume_pages(&pages, at, err) : begin_pages(q, &pages, err);
    if (r == 0) r = take_page(&pages, rp_page_limit(q), items, err);
    if (r == 0) *cursor = next_cursor(q, &pages);
    return r;
}

static void list_audit(struct rp_request *q)
{
    struct rp_error err = { 0 };
    json_t *items = json_array();
    const char *cursor = NULL;
    int64_t mark_id = rp_request_int(q->query, "mark", 0);
    int r = mark_id != 0 ? rp_audit_of_mark(rp_request_catalog(q)->db, mark_id, add_row, items, &err)
                         : list_newest(q, items, &cursor, &err);
    if (r == 0) {
        rp_reply_list(q, items, cursor);
        return;
    }
    json_decref(items);
    rp_reply_error(q, &err);
}

/* ---- verify ---- */

/* It reads everything there is: one at a time is enough. */
static void verify_audit(struct rp_request *q)
{
    static atomic_flag running = ATOMIC_FLAG_INIT;
    struct rp_audit_verdict verdict = { 0 };
    struct rp_error err = { 0 };
    if (atomic_flag_test_and_set(&running)) {
        rp_error_set(&err, RP_ERUNNING, "the audit log is being verified already");
        rp_reply_error(q, &err);
        return;
    }
    int r = rp_audit_verify(rp_request_catalog(q), &verdict, &err);
    atomic_flag_clear(&running);
    if (r < 0)
        rp_reply_error(q, &err);
    else
        rp_reply_json(q, 200, rp_audit_verdict_json(&verdict));
}

/* ---- the table ---- */

static const struct rp_route routes[] = {
    { .method = "GET",
      .path = "/v1/audit",
      .audience = RP_FOR_ADMINS,
      .scope = RP_MAY_AUDIT,
      .blocks = true,
      .handler = list_audit,
      .query = &query_shape,
      .answer = &row_shape,
      .many = true,
      .status = 200,
      .errors = "",
      .summary = "Lists the audit log, newest first; or the story of one mark.",
      .example = "-G -d limit=20" },
    { .method = "GET",
      .path = "/v1/audit/verify",
      .audience = RP_FOR_ADMINS,
      .scope = RP_MAY_AUDIT,
      .blocks = true,
      .handler = verify_audit,
      .answer = &verdict_shape,
      .status = 200,
      .errors = "already_running",
      .summary = "Walks every chain of the audit log and names the first broken link.",
      .example = "" },
};
const struct rp_routes rp_routes_audit = { routes, sizeof routes / sizeof routes[0] };
