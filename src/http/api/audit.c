/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c - the audit log, newest first, and the proof that its chains are whole. */
#include "catalog/audit/audit.h"
#include "base/id.h"
#include "base/text/json.h"
#include "catalog/audit/segment.h"
#include "feed/cursor.h"
#include "http/api/shapes.h"
#include "lib/answer.h"

#include <stdatomic.h>

#define LANES_MAX 256

/* ---- shapes ---- */

static const struct rp_field query_fields[] = {
    { RP_FIELD("mark", ID), .id = RP_ID_MARK, .help = "all rows of one mark, oldest first" },
    RP_FIELD_LIMIT,
    { RP_FIELD("cursor", TEXT), .least = 1, .most = RP_FEED_CURSOR_TEXT, .help = "next_cursor of the page before" },
};
static const struct rp_shape query_shape = RP_SHAPE("audit_query", query_fields, "which rows");

static const struct rp_field row_fields[] = {
    { RP_FIELD("lane", INT), .most = LANES_MAX, .required = true, .help = "which chain" },
    { RP_FIELD("seq", INT), .most = INT64_MAX, .required = true, .help = "its number in it" },
    { RP_FIELD("at", TIME), .required = true, .help = "when" },
    { RP_FIELD("event", TEXT), .required = true, .help = "what" },
    { RP_FIELD("actor", TEXT), .required = true, .help = "who" },
    { RP_FIELD("mark", ID), .id = RP_ID_MARK, .help = "about which mark" },
    { RP_FIELD("tenant", TEXT), .help = "whose it is" },
    { RP_FIELD("tenant_id", TEXT), .help = "the tenant's number, which the hash covers" },
    { RP_FIELD("details", ANY), .help = "null: erased, or there never were any" },
    { RP_FIELD("digest", SHA256), .required = true, .help = "of the details" },
    { RP_FIELD("hash", SHA256), .required = true, .help = "of this row and the one before" },
};
static const struct rp_shape row_shape = RP_SHAPE("audit_row", row_fields, "one acknowledged change");

static const struct rp_field broken_fields[] = {
    { RP_FIELD("lane", INT), .most = LANES_MAX, .required = true, .help = "which chain" },
    { RP_FIELD("seq", INT), .most = INT64_MAX, .required = true, .help = "the first wrong link" },
    { RP_FIELD("why", TEXT), .required = true, .help = "what is wrong with it" },
};
static const struct rp_shape broken_shape = RP_SHAPE("broken_link", broken_fields, "where a chain is broken");

static const struct rp_field verdict_fields[] = {
    { RP_FIELD("ok", BOOL), .required = true, .help = "every link holds" },
    { RP_FIELD("lanes", INT), .most = LANES_MAX, .required = true, .help = "chains that were walked" },
    { RP_FIELD("rows", INT), .most = INT64_MAX, .required = true, .help = "rows that were checked" },
    { RP_FIELD("erased", INT), .most = INT64_MAX, .required = true, .help = "whose details were erased" },
    { RP_FIELD("segments", INT), .most = INT64_MAX, .required = true, .help = "sealed segments" },
    { RP_FIELD("sealed", INT), .most = INT64_MAX, .required = true, .help = "rows in them" },
    { RP_FIELD("files_missing", INT), .most = INT64_MAX, .required = true,
      .help = "segments whose file is not in retention.segments; one that is there must be what was sealed" },
    { RP_FIELD("broken", OBJECT), .of = &broken_shape, .help = "if not ok" },
};
static const struct rp_shape verdict_shape = RP_SHAPE("audit_verdict", verdict_fields, "whether the chains are whole");

static const struct rp_field segments_query_fields[] = {
    RP_FIELD_LIMIT,
    { RP_FIELD("cursor", TEXT), .least = 1, .most = 40, .help = "next_cursor of the page before" },
};
static const struct rp_shape segments_query_shape = RP_SHAPE("segments_query", segments_query_fields, "which segments");

static const struct rp_field segment_fields[] = {
    { RP_FIELD("lane", INT), .most = LANES_MAX, .required = true, .help = "which chain" },
    { RP_FIELD("from", INT), .most = INT64_MAX, .required = true, .help = "its first row" },
    { RP_FIELD("to", INT), .most = INT64_MAX, .required = true, .help = "its last row" },
    { RP_FIELD("rows", INT), .most = INT64_MAX, .required = true, .help = "how many" },
    { RP_FIELD("first_at", TIME), .required = true, .help = "the earliest of them" },
    { RP_FIELD("last_at", TIME), .required = true, .help = "the latest" },
    { RP_FIELD("file", TEXT), .required = true, .help = "its name in retention.segments" },
    { RP_FIELD("bytes", INT), .most = INT64_MAX, .required = true, .help = "the size of the file" },
    { RP_FIELD("sha256", SHA256), .required = true, .help = "of the file" },
    { RP_FIELD("before", SHA256), .required = true, .help = "the chain's hash before its first row" },
    { RP_FIELD("after", SHA256), .required = true, .help = "the hash of its last row" },
    { RP_FIELD("sealed_at", TIME), .required = true, .help = "when" },
    { RP_FIELD("run", ID), .id = RP_ID_RUN, .help = "the retention that sealed it" },
};
static const struct rp_shape segment_shape = RP_SHAPE("audit_segment", segment_fields, "a sealed part of a chain");

/* ---- newest first ---- */

static int add_row(void *ctx, const struct rp_audit_row *row, struct rp_error *err)
{
    json_t *items = ctx;
    if (json_array_size(items) >= RP_LIST_LIMIT_MAX) return 0;
    return rp_json_append(items, rp_audit_json(row)) == 0 ? 0 : rp_error_set(err, RP_ENOMEM, "no memory");
}

static int ignore_segment(void *ctx, const struct rp_segment *segment, struct rp_error *err)
{
    (void)ctx, (void)segment, (void)err;
    return 0;
}

/* The cursor says how far each lane was given, so that a page follows exactly on the one before,
 * whatever was written meanwhile. */
static int list_newest(struct rp_request *q, json_t *items, const char **cursor, struct rp_error *err)
{
    struct rp_db *db = rp_request_catalog(q)->db;
    const char *text = rp_json_get_text(q->query, "cursor", NULL);
    struct rp_feed_cursor at = { .n = 0 };
    char next[RP_FEED_CURSOR_TEXT];
    if (text != NULL && rp_feed_cursor_parse(text, &at, err) < 0) return rp_cursor_wrong(err);
    int r = text != NULL ? 0 : rp_audit_heads(db, at.at, RP_FEED_CURSOR_LANES, &at.n, err);
    if (r == 0) r = rp_audit_newest(db, at.at, at.n, rp_page_limit(q), add_row, items, err);
    if (r < 0) return r;
    struct rp_feed_cursor left;
    rp_feed_cursor_from(&left, at.at, at.n);
    rp_feed_cursor_format(&left, next);
    *cursor = left.n > 0 ? rp_arena_strdup(&q->arena, next) : NULL;
    return 0;
}

/* Behind the last page there are only segments. */
static int add_link(struct rp_request *q, struct rp_error *err)
{
    size_t n = 0;
    int r = rp_segment_page(rp_request_catalog(q)->db, -1, 0, 1, ignore_segment, NULL, &n, err);
    if (r == 0 && n > 0) rp_reply_header(q, "Link", "</v1/audit/segments>; rel=\"prev-archive\"");
    return r;
}

static void list_audit(struct rp_request *q)
{
    struct rp_error err = { 0 };
    json_t *items = json_array();
    const char *cursor = NULL;
    int64_t mark_id = rp_json_get_int(q->query, "mark", 0);
    int r = mark_id != 0 ? rp_audit_of_mark(rp_request_catalog(q)->db, mark_id, add_row, items, &err)
                         : list_newest(q, items, &cursor, &err);
    if (r == 0 && cursor == NULL) r = add_link(q, &err);
    rp_reply_page(q, r, &err, items, cursor);
}

/* ---- segments ---- */

struct segment_page {
    json_t *items;
    int64_t lane, to_seq; /* of the last one */
};

static int add_segment(void *ctx, const struct rp_segment *segment, struct rp_error *err)
{
    struct segment_page *page = ctx;
    page->lane = segment->lane;
    page->to_seq = segment->to_seq;
    return rp_json_append(page->items, rp_segment_json(segment)) == 0 ? 0 : rp_error_set(err, RP_ENOMEM, "no memory");
}

/* The cursor is the place of the last one in its lane, as the feed writes it. */
static void list_segments(struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct segment_page page = { .items = json_array(), .lane = -1 };
    struct rp_feed_cursor at = { .n = 0 };
    const char *text = rp_json_get_text(q->query, "cursor", NULL);
    char next[RP_FEED_CURSOR_TEXT];
    size_t n = 0;
    int r = text != NULL && (rp_feed_cursor_parse(text, &at, &err) < 0 || at.n != 1) ? rp_cursor_wrong(&err) : 0;
    if (at.n == 1) {
        page.lane = at.at[0].lane;
        page.to_seq = at.at[0].seq;
    }
    if (r == 0)
        r = rp_segment_page(rp_request_catalog(q)->db, page.lane, page.to_seq, rp_page_limit(q), add_segment, &page, &n,
                            &err);
    at = (struct rp_feed_cursor){ .n = 1, .at = { { .lane = page.lane, .seq = page.to_seq } } };
    rp_feed_cursor_format(&at, next);
    rp_reply_page(q, r, &err, page.items, n == rp_page_limit(q) ? rp_arena_strdup(&q->arena, next) : NULL);
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
    const char *dir = rp_request_config(q)->retention.segments;
    int r = rp_audit_verify_files(rp_request_catalog(q), dir[0] != '\0' ? dir : NULL, &verdict, &err);
    atomic_flag_clear(&running);
    if (r < 0)
        rp_reply_error(q, &err);
    else
        rp_reply_json(q, 200, rp_audit_verdict_json(&verdict));
}

/* ---- the table ---- */

static const struct rp_route routes[] = {
    { RP_ROUTE("GET", "/v1/audit", RP_FOR_ADMINS, RP_MAY_AUDIT, list_audit), .blocks = true, .query = &query_shape,
      .answer = &row_shape, .many = true,
      .summary = "Lists the audit log, newest first; or the story of one mark. Older rows that were sealed are in the "
                 "files of /v1/audit/segments, to which the last page links.",
      .example = "-G -d limit=20" },
    { RP_ROUTE("GET", "/v1/audit/segments", RP_FOR_ADMINS, RP_MAY_AUDIT, list_segments), .blocks = true,
      .query = &segments_query_shape, .answer = &segment_shape, .many = true,
      .summary = "Lists the sealed segments of the audit log: which rows stand in which file." },
    { RP_ROUTE("GET", "/v1/audit/verify", RP_FOR_ADMINS, RP_MAY_AUDIT, verify_audit), .blocks = true,
      .answer = &verdict_shape, .errors = "already_running",
      .summary = "Walks every chain of the audit log and names the first broken link." },
};
const struct rp_routes rp_routes_audit = { routes, sizeof routes / sizeof routes[0] };
