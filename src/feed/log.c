/* SPDX-License-Identifier: Apache-2.0 */
#include "feed/feed.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/time.h"
#include "catalog/file.h"

#include <string.h>

#define TENANTS      4096 /* names kept; a power of two */
#define PAGE_BYTES   ((size_t)24 * 1024 * 1024)
#define STATEMENT_MS 5000 /* nobody waits for a page for longer */

void rp_feed_close(struct rp_feed *feed)
{
    if (feed == NULL) return;
    rp_db_close(feed->db);
    rp_arena_done(&feed->arena);
    free(feed->tenants);
    free(feed);
}

static void feed_closep(struct rp_feed **feed)
{
    rp_feed_close(*feed);
}

int rp_feed_open(const char *url, const struct rp_clock *clock, struct rp_feed **out, struct rp_error *err)
{
    struct rp_db_options options = {
        .read_only = true, .clock = clock, .statement_ms = STATEMENT_MS, .by_index = true
    };
    RP_CLEANUP(feed_closep) struct rp_feed *feed = calloc(1, sizeof *feed);
    if (feed == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    feed->arena = RP_ARENA(PAGE_BYTES);
    feed->tenants = calloc(TENANTS, sizeof *feed->tenants);
    if (feed->tenants == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    int r = rp_db_open(url, &options, &feed->db, err);
    if (r < 0) return rp_error_wrap(err, r, "read the audit log");
    *out = feed;
    feed = NULL;
    return 0;
}

int rp_feed_heads(struct rp_feed *feed, struct rp_live_cursor *out, struct rp_error *err)
{
    struct rp_audit_head heads[RP_LIVE_CURSOR_LANES];
    size_t n = 0;
    int r = rp_audit_heads(feed->db, heads, RP_LIVE_CURSOR_LANES, &n, err);
    if (r < 0) return rp_error_wrap(err, r, "look for new events");
    out->n = 0;
    for (size_t i = 0; i < n; i++)
        rp_live_cursor_set(out, heads[i].lane, heads[i].seq);
    return 0;
}

static int keep_row(void *ctx, const struct rp_audit_row *row, struct rp_error *err)
{
    struct rp_feed *feed = ctx;
    RP_ASSERT(feed->n < RP_FEED_PAGE);
    struct rp_audit_row *kept = &feed->rows[feed->n];
    *kept = *row;
    kept->event = rp_arena_strdup(&feed->arena, row->event);
    kept->actor = rp_arena_strdup(&feed->arena, row->actor);
    if (row->details != NULL) kept->details = rp_arena_strdup(&feed->arena, row->details);
    if (kept->event == NULL || kept->actor == NULL || (row->details != NULL && kept->details == NULL))
        return rp_error_set(err, RP_ENOMEM, "out of memory");
    feed->n++;
    return 0;
}

int rp_feed_read(struct rp_feed *feed, int64_t lane, int64_t after_seq, size_t max, struct rp_error *err)
{
    size_t n = 0;
    rp_arena_reset(&feed->arena);
    feed->n = 0;
    int r = rp_audit_tail(feed->db, lane, after_seq, max < RP_FEED_PAGE ? max : RP_FEED_PAGE, keep_row, feed, &n, err);
    if (r < 0) return rp_error_wrap(err, r, "read new events");
    return 0;
}

/* A tenant's name, or NULL if there is none. Names never change, so that one look is enough. */
static int tenant_name(struct rp_feed *feed, int64_t id, const char **out, struct rp_error *err)
{
    struct rp_feed_tenant *kept = &feed->tenants[(uint64_t)id % TENANTS];
    struct rp_tenant tenant;
    *out = NULL;
    if (id == 0) return 0;
    if (kept->id != id) {
        int r = rp_tenant_by_id(feed->db, id, &tenant, err);
        if (r == RP_ENOTFOUND) return 0;
        if (r < 0) return r;
        kept->id = id;
        memcpy(kept->name, tenant.name, sizeof kept->name);
    }
    *out = kept->name;
    return 0;
}

static int add_text(struct rp_buf *out, const char *text)
{
    RP_CLEANUP(rp_json_decrefp) json_t *value = rp_json_text(text);
    return value == NULL ? RP_ENOMEM : rp_json_write(out, value);
}

static const char *const our_names[] = { "\"at\":", "\"event\":", "\"actor\":", "\"mark\":", "\"tenant\":" };

/* Details as they stand in the row: already JSON, in one line, written by us. Only a member of one of our names makes it
 * necessary to take them apart. */
static int add_details(struct rp_buf *out, const char *details, struct rp_error *err)
{
    RP_CLEANUP(rp_json_decrefp) json_t *value = NULL;
    RP_CLEANUP(rp_buf_done) struct rp_buf rest = RP_BUF(RP_FEED_EVENT_MAX);
    size_t clash = 0;
    for (size_t i = 0; i < sizeof our_names / sizeof our_names[0]; i++)
        if (strstr(details, our_names[i]) != NULL) clash++;
    if (clash > 0) {
        if (rp_json_parse(details, strlen(details), &value, err) < 0) return 0; /* damaged; verify says it */
        const char *const names[] = { "at", "event", "actor", "mark", "tenant" };
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            json_object_del(value, names[i]);
        if (rp_json_write(&rest, value) < 0) return rp_error_set(err, RP_ENOMEM, "out of memory");
        details = rp_buf_text(&rest);
    }
    size_t n = strlen(details);
    if (n < 3 || details[0] != '{') return 0; /* {} adds nothing */
    rp_buf_char(out, ',');
    rp_buf_add(out, details + 1, n - 2);
    return 0;
}

static int add_data(const struct rp_audit_row *row, const char *tenant, struct rp_buf *out, struct rp_error *err)
{
    char at[RP_TIME_TEXT], id[RP_ID_TEXT];
    rp_buf_fmt(out, "data: {\"at\":\"%s\",\"event\":\"%s\",\"actor\":", rp_time_format(row->at_ms, at), row->event);
    if (add_text(out, row->actor) < 0) return rp_error_set(err, RP_ENOMEM, "out of memory");
    if (row->mark_id != 0) rp_buf_fmt(out, ",\"mark\":\"%s\"", rp_id_format(RP_ID_MARK, row->mark_id, id));
    if (tenant != NULL) {
        rp_buf_str(out, ",\"tenant\":");
        if (add_text(out, tenant) < 0) return rp_error_set(err, RP_ENOMEM, "out of memory");
    }
    int r = row->details != NULL ? add_details(out, row->details, err) : 0;
    rp_buf_str(out, "}\n\n");
    return r;
}

int rp_feed_text(struct rp_feed *feed, const struct rp_audit_row *row, const struct rp_live_cursor *after,
                 struct rp_buf *out, struct rp_error *err)
{
    char id[RP_LIVE_CURSOR_TEXT];
    const char *tenant = NULL;
    int r = tenant_name(feed, row->tenant_id, &tenant, err);
    if (r < 0) return rp_error_wrap(err, r, "tenant of event %lld.%lld", (long long)row->lane, (long long)row->seq);
    rp_live_cursor_format(after, id);
    rp_buf_fmt(out, "id: %s\nevent: %s\n", id, row->event);
    r = add_data(row, tenant, out, err);
    if (r < 0) return rp_error_wrap(err, r, "event %lld.%lld", (long long)row->lane, (long long)row->seq);
    if (out->failed < 0)
        return rp_error_set(err, out->failed, "event %lld.%lld is too long", (long long)row->lane, (long long)row->seq);
    return 0;
}
