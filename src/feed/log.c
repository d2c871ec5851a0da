/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - the audit log in pages over one connection, and a row as an event. */
#include "feed/inner.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/json.h"
#include "base/time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES   ((size_t)24 * 1024 * 1024)
#define STATEMENT_MS 5000 /* nobody waits for a page for longer */

void rp_feed_log_close(struct rp_feed_log *log)
{
    if (log == NULL) return;
    rp_db_close(log->db);
    rp_arena_done(&log->arena);
    rp_buf_done(&log->json);
    free(log);
}

static void log_closep(struct rp_feed_log **log)
{
    rp_feed_log_close(*log);
}

int rp_feed_log_open(struct rp_feed *feed, struct rp_feed_log **out, struct rp_error *err)
{
    struct rp_db_options options = {
        .read_only = true, .clock = feed->options.clock, .statement_ms = STATEMENT_MS, .by_index = true
    };
    RP_CLEANUP(log_closep) struct rp_feed_log *log = calloc(1, sizeof *log);
    if (log == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    log->arena = RP_ARENA(PAGE_BYTES);
    log->json = RP_BUF(RP_FEED_JSON_MAX);
    log->catch_up_rows = RP_FEED_PAGE;
    int r = rp_db_open(feed->url, &options, &log->db, err);
    if (r < 0) return rp_error_wrap(err, r, "read the audit log");
    *out = log;
    log = NULL;
    return 0;
}

int rp_feed_log_heads(struct rp_feed_log *log, struct rp_feed_cursor *out, struct rp_error *err)
{
    struct rp_audit_head heads[RP_FEED_CURSOR_LANES];
    size_t n = 0;
    int r = rp_audit_heads(log->db, heads, RP_FEED_CURSOR_LANES, &n, err);
    if (r < 0) return rp_error_wrap(err, r, "look for new events");
    rp_feed_cursor_from(out, heads, n);
    return 0;
}

static int keep_row(void *ctx, const struct rp_audit_row *row, struct rp_error *err)
{
    struct rp_feed_log *log = ctx;
    RP_ASSERT(log->n < RP_FEED_PAGE);
    int r = rp_audit_row_keep(row, &log->arena, &log->rows[log->n], err);
    log->n += r == 0;
    return r;
}

int rp_feed_log_read(struct rp_feed_log *log, int64_t lane, int64_t after_seq, size_t max, struct rp_error *err)
{
    size_t n = 0;
    rp_arena_reset(&log->arena);
    log->n = 0;
    int r = rp_audit_tail(log->db, lane, after_seq, max < RP_FEED_PAGE ? max : RP_FEED_PAGE, keep_row, log, &n, err);
    return r < 0 ? rp_error_wrap(err, r, "read new events") : 0;
}

bool rp_feed_wants(const struct rp_feed_want *want, int64_t tenant_id, const char *name)
{
    if (want->tenant_id != 0 && want->tenant_id != tenant_id) return false;
    bool wanted = want->names == NULL;
    for (size_t i = 0; !wanted && want->names[i] != NULL; i++)
        wanted = strcmp(want->names[i], name) == 0;
    return wanted;
}

/* ---- a row as an event ---- */

static int add_text(struct rp_buf *out, const char *text)
{
    RP_CLEANUP(rp_json_decrefp) json_t *value = rp_json_text(text);
    return value == NULL ? RP_ENOMEM : rp_json_write(out, value);
}

/* Members of an event that do not come from the row's details. */
static const char *const our_names[] = { "at", "event", "actor", "mark", "tenant" };
#define OUR_NAMES (sizeof our_names / sizeof our_names[0])

static bool has_our_name(const char *details)
{
    char quoted[16];
    for (size_t i = 0; i < OUR_NAMES; i++) {
        snprintf(quoted, sizeof quoted, "\"%s\":", our_names[i]);
        if (strstr(details, quoted) != NULL) return true;
    }
    return false;
}

/* Details as they stand in the row: already JSON, in one line, written by us. They are taken apart
 * only if one of our names may be among their members. */
static int add_details(struct rp_buf *out, const char *details, struct rp_error *err)
{
    RP_CLEANUP(rp_json_decrefp) json_t *value = NULL;
    RP_CLEANUP(rp_buf_done) struct rp_buf rest = RP_BUF(RP_FEED_JSON_MAX);
    if (has_our_name(details)) {
        int r = rp_json_parse(details, strlen(details), &value, err);
        if (r < 0) return r == RP_ENOMEM ? r : 0; /* damaged: verify says it */
        for (size_t i = 0; i < OUR_NAMES; i++)
            json_object_del(value, our_names[i]);
        if (rp_json_write(&rest, value) < 0) return rp_error_set(err, RP_ENOMEM, "out of memory");
        details = rp_buf_text(&rest);
    }
    size_t n = strlen(details);
    if (n < 3 || details[0] != '{') return 0; /* {} adds nothing */
    rp_buf_char(out, ',');
    rp_buf_add(out, details + 1, n - 2);
    return 0;
}

static int add_row(struct rp_buf *out, const struct rp_audit_row *row, struct rp_error *err)
{
    char at[RP_TIME_TEXT], id[RP_ID_TEXT];
    rp_buf_fmt(out, "{\"at\":\"%s\",\"event\":\"%s\",\"actor\":", rp_time_format(row->at_ms, at), row->event);
    if (add_text(out, row->actor) < 0) return rp_error_set(err, RP_ENOMEM, "out of memory");
    if (row->mark_id != 0) rp_buf_fmt(out, ",\"mark\":\"%s\"", rp_id_format(RP_ID_MARK, row->mark_id, id));
    if (row->tenant != NULL) {
        rp_buf_str(out, ",\"tenant\":");
        if (add_text(out, row->tenant) < 0) return rp_error_set(err, RP_ENOMEM, "out of memory");
    }
    int r = row->details != NULL ? add_details(out, row->details, err) : 0;
    rp_buf_char(out, '}');
    return r < 0 || out->failed == 0 ? r : rp_error_set(err, out->failed, "it is too long");
}

/* One block: the event and its texts, as large as they are. */
static struct rp_feed_event *new_event(const struct rp_audit_row *row, const struct rp_feed_cursor *after,
                                       const struct rp_buf *json)
{
    char id[RP_FEED_CURSOR_TEXT];
    size_t id_bytes = rp_feed_cursor_format(after, id) + 1, name_bytes = strlen(row->event) + 1;
    struct rp_feed_event *event = malloc(sizeof *event + id_bytes + name_bytes + json->len + 1);
    if (event == NULL) return NULL;
    char *text = (char *)(event + 1);
    memcpy(text, id, id_bytes);
    memcpy(text + id_bytes, row->event, name_bytes);
    memcpy(text + id_bytes + name_bytes, json->data, json->len + 1);
    *event = (struct rp_feed_event){ .lane = row->lane,
                                     .seq = row->seq,
                                     .at_ms = row->at_ms,
                                     .tenant_id = row->tenant_id,
                                     .number = rp_feed_cursor_sum(after),
                                     .id = text,
                                     .name = text + id_bytes,
                                     .json = text + id_bytes + name_bytes,
                                     .json_bytes = json->len,
                                     .refs = 1 };
    return event;
}

int rp_feed_log_event(struct rp_feed_log *log, const struct rp_audit_row *row, const struct rp_feed_cursor *after,
                      struct rp_feed_event **out, struct rp_error *err)
{
    rp_buf_clear(&log->json);
    int r = add_row(&log->json, row, err);
    struct rp_feed_event *event = r == 0 ? new_event(row, after, &log->json) : NULL;
    if (r == 0 && event == NULL) r = rp_error_set(err, RP_ENOMEM, "out of memory");
    if (r < 0) return rp_error_wrap(err, r, "event %lld.%lld", (long long)row->lane, (long long)row->seq);
    *out = event;
    return 0;
}

void rp_feed_event_hold(struct rp_feed_event *event)
{
    atomic_fetch_add_explicit(&event->refs, 1, memory_order_relaxed);
}

void rp_feed_event_drop(struct rp_feed_event *event)
{
    if (atomic_fetch_sub_explicit(&event->refs, 1, memory_order_acq_rel) == 1) free(event);
}
