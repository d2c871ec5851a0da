/* SPDX-License-Identifier: Apache-2.0 */
/* segment_file.c - a segment's file is read, and proved by what stands in it alone. */
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/text/hex.h"
#include "base/text/json.h"
#include "catalog/audit/chain.h"
#include "catalog/audit/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES ((size_t)1 << 20) /* details are 64 KiB at most; as JSON text up to six times as long */

int rp_segment_path(const char *dir, const char *file, char out[RP_SEGMENT_PATH], struct rp_error *err)
{
    int n = snprintf(out, RP_SEGMENT_PATH, "%s/%s", dir, file);
    return n > 0 && n < RP_SEGMENT_PATH ? 0 : rp_error_set(err, RP_EINVAL, "%.100s...: the path is too long", dir);
}

struct reading {
    const char *path;
    FILE *in;
    char *line;
    int64_t number; /* of the line */
    struct rp_digest *whole, *one;
    struct rp_segment_file *out;
    uint8_t prev[RP_DIGEST_BYTES];
    rp_audit_fn *fn;
    void *ctx;
    bool ended;
};

static void reading_done(struct reading *r)
{
    if (r->in != NULL) fclose(r->in);
    free(r->line);
    rp_digest_free(r->whole);
    rp_digest_free(r->one);
}

static int wrong(const struct reading *r, struct rp_error *err, const char *why)
{
    return rp_error_set(err, RP_ECORRUPT, "%s: line %" PRId64 ": %s", r->path, r->number, why);
}

static int open_reading(struct reading *r, struct rp_error *err)
{
    int fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return rp_error_errno(err, errno, "read %s", r->path);
    r->in = fdopen(fd, "r");
    if (r->in == NULL) {
        close(fd);
        return rp_error_set(err, RP_ENOMEM, "read %s: out of memory", r->path);
    }
    r->line = malloc(LINE_MAX_BYTES);
    r->whole = rp_digest_new();
    r->one = rp_digest_new();
    if (r->line == NULL || r->whole == NULL || r->one == NULL)
        return rp_error_set(err, RP_ENOMEM, "read %s: out of memory", r->path);
    rp_digest_begin(r->whole);
    return 0;
}

/* ---- values ---- */

static bool get_hash(const json_t *o, const char *name, uint8_t out[RP_DIGEST_BYTES])
{
    const char *hex = rp_json_get_text(o, name, "");
    return strlen(hex) == RP_DIGEST_HEX - 1 && rp_hex_read(hex, RP_DIGEST_BYTES, out);
}

static bool get_row(const json_t *o, struct rp_audit_row *row)
{
    row->seq = rp_json_get_int(o, "seq", -1);
    row->at_ms = rp_json_get_int(o, "at", -1);
    row->event = rp_json_get_text(o, "event", NULL);
    row->actor = rp_json_get_text(o, "actor", NULL);
    row->mark_id = rp_json_get_int(o, "mark", -1);
    row->tenant_id = rp_json_get_int(o, "tenant", -1);
    row->details = rp_json_get_text(o, "details", NULL);
    bool whole = row->event != NULL && row->actor != NULL && json_object_get(o, "details") != NULL;
    return whole && get_hash(o, "digest", row->digest) && get_hash(o, "hash", row->hash);
}

/* ---- lines ---- */

static int take_first(struct reading *r, const json_t *o, struct rp_error *err)
{
    struct rp_segment *s = &r->out->segment;
    if (rp_json_get_int(o, "segment", 0) != 1) return wrong(r, err, "it is no segment that this reprieve can read");
    s->lane = rp_json_get_int(o, "lane", -1);
    s->from_seq = rp_json_get_int(o, "from", -1);
    s->to_seq = s->from_seq - 1;
    snprintf(r->out->catalog, sizeof r->out->catalog, "%s", rp_json_get_text(o, "catalog", ""));
    if (s->lane < 0 || s->from_seq < 1 || !get_hash(o, "before", s->before))
        return wrong(r, err, "it does not say where the segment begins");
    memcpy(r->prev, s->before, sizeof r->prev);
    return 0;
}

static int take_row(struct reading *r, const json_t *o, struct rp_error *err)
{
    struct rp_segment *s = &r->out->segment;
    struct rp_audit_row row = { .lane = s->lane };
    if (!get_row(o, &row)) return wrong(r, err, "it is no row of the audit log");
    if (row.seq != s->to_seq + 1) return wrong(r, err, "a row is missing before it");
    const char *fault = rp_audit_link_fault(r->one, r->prev, &row);
    if (fault != NULL)
        return rp_error_set(err, RP_ECORRUPT, "%s: line %" PRId64 ": row %" PRId64 ".%" PRId64 ": %s", r->path,
                            r->number, s->lane, row.seq, fault);
    if (s->to_seq < s->from_seq || row.at_ms < s->first_at_ms) s->first_at_ms = row.at_ms;
    if (s->to_seq < s->from_seq || row.at_ms > s->last_at_ms) s->last_at_ms = row.at_ms;
    s->to_seq = row.seq;
    s->with_details += row.details != NULL;
    r->out->erased += rp_audit_is_erased(r->one, &row);
    memcpy(r->prev, row.hash, sizeof r->prev);
    return r->fn != NULL ? r->fn(r->ctx, &row, err) : 0;
}

static int take_last(struct reading *r, const json_t *o, struct rp_error *err)
{
    struct rp_segment *s = &r->out->segment;
    bool whole = get_hash(o, "after", s->after) && rp_json_get_int(o, "to", -1) == s->to_seq &&
                 rp_json_get_int(o, "rows", -1) == s->to_seq - s->from_seq + 1 &&
                 memcmp(s->after, r->prev, sizeof r->prev) == 0;
    r->ended = true;
    return whole ? 0 : wrong(r, err, "it does not say where the rows above end");
}

static int take_line(struct reading *r, size_t n, struct rp_error *err)
{
    RP_CLEANUP(rp_json_decrefp) json_t *o = NULL;
    struct rp_error why = { 0 };
    if (r->line[n - 1] != '\n') return wrong(r, err, "it is cut off, or too long");
    if (r->ended) return wrong(r, err, "something follows the end of the segment");
    int code = rp_json_parse(r->line, n - 1, &o, &why);
    if (code == RP_ENOMEM) return rp_error_set(err, code, "read %s: out of memory", r->path);
    if (code < 0) return wrong(r, err, why.text);
    if (r->number == 1) return take_first(r, o, err);
    return json_object_get(o, "after") != NULL ? take_last(r, o, err) : take_row(r, o, err);
}

/* With its newline; NUL bytes are bytes. 0: the end. */
static size_t next_line(struct reading *r)
{
    size_t n = 0;
    for (int c; n < LINE_MAX_BYTES && (c = getc_unlocked(r->in)) != EOF;) {
        r->line[n++] = (char)c;
        if (c == '\n') break;
    }
    return n;
}

static int take_lines(struct reading *r, struct rp_error *err)
{
    int code = 0;
    for (size_t n; code == 0 && (n = next_line(r)) > 0;) {
        r->number++;
        r->out->segment.bytes += (int64_t)n;
        rp_digest_add(r->whole, r->line, n);
        code = take_line(r, n, err);
    }
    if (code == 0 && ferror(r->in)) return rp_error_errno(err, errno, "read %s", r->path);
    if (code == 0 && !r->ended) return wrong(r, err, "the file ends before the segment does");
    return code;
}

int rp_segment_read(const char *path, rp_audit_fn *fn, void *ctx, struct rp_segment_file *out, struct rp_error *err)
{
    struct rp_segment_file file = { .erased = 0 };
    RP_CLEANUP(reading_done) struct reading r = { .path = path, .fn = fn, .ctx = ctx, .out = &file };
    int code = open_reading(&r, err);
    if (code == 0) code = take_lines(&r, err);
    if (code < 0) return code;
    rp_digest_end(r.whole, file.segment.sha256);
    const char *slash = strrchr(path, '/');
    snprintf(file.segment.file, sizeof file.segment.file, "%s", slash != NULL ? slash + 1 : path);
    *out = file;
    return 0;
}

int rp_segment_sum(const char *path, uint8_t out[RP_DIGEST_BYTES], struct rp_error *err)
{
    RP_CLEANUP(reading_done) struct reading r = { .path = path };
    int code = open_reading(&r, err);
    if (code < 0) return code;
    for (size_t n; (n = fread(r.line, 1, LINE_MAX_BYTES, r.in)) > 0;)
        rp_digest_add(r.whole, r.line, n);
    if (ferror(r.in)) return rp_error_errno(err, errno, "read %s", path);
    rp_digest_end(r.whole, out);
    return 0;
}
