/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_audit.c - `audit`: the newest rows, the proof that the chain is whole, and all of it as
 * JSON lines; what of it was sealed. */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/audit/audit.h"
#include "catalog/audit/segment.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "lib/answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define NEWEST 20

/* ---- the newest ---- */

struct newest {
    json_t *rows[NEWEST]; /* newest first */
    int64_t at_ms[NEWEST];
    size_t n;
};

static void newest_done(struct newest *newest)
{
    for (size_t i = 0; i < newest->n; i++)
        json_decref(newest->rows[i]);
}

static int take_row(void *ctx, const struct rp_audit_row *row, struct rp_error *err)
{
    struct newest *newest = ctx;
    (void)err;
    newest->at_ms[newest->n] = row->at_ms;
    newest->rows[newest->n++] = rp_audit_json(row);
    return 0;
}

/* Rows are about a mark's subject, a store, a hold or a run. */
static const char *subject_of(const json_t *details)
{
    static const char *const names[] = { "subject", "store", "hold", "id" };
    const char *text = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && text == NULL; i++)
        text = rp_json_get_text(details, names[i], NULL);
    return text != NULL ? text : "";
}

static void show_newest(struct rp_cli *cli, const struct newest *newest)
{
    static const struct rp_column columns[] = { { "AT", false, false },
                                                { "EVENT", false, false },
                                                { "SUBJECT", false, true },
                                                { "BY", false, true },
                                                { "MARK", false, false } };
    struct rp_list l;
    char when[RP_WHEN_TEXT];
    RP_LIST_INIT(&l, cli, columns, "the audit log is empty");
    for (size_t i = newest->n; i-- > 0;) {
        const json_t *o = newest->rows[i];
        const char *cells[] = { rp_show_when(newest->at_ms[i], l.now_ms, when), rp_json_get_text(o, "event", ""),
                                subject_of(json_object_get(o, "details")), rp_json_get_text(o, "actor", ""),
                                rp_json_get_text(o, "mark", "") };
        rp_list_row(&l, json_incref(newest->rows[i]), cells);
    }
    (void)rp_list_end(&l, 0);
}

int rp_cmd_audit(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(newest_done) struct newest newest = { .n = 0 };
    struct rp_audit_head heads[RP_LANE_MAX + 1];
    size_t n = 0;
    struct rp_db *db = cli->session.catalog->db;
    int r = rp_audit_heads(db, heads, RP_LANE_MAX + 1, &n, err);
    if (r == 0) r = rp_audit_newest(db, heads, n, NEWEST, take_row, &newest, err);
    if (r == 0) show_newest(cli, &newest);
    return r;
}

/* ---- verify ---- */

static int verify_audit(struct rp_cli *cli, struct rp_error *err)
{
    struct rp_audit_verdict v = { 0 };
    const char *dir = cli->session.config.retention.segments;
    int r = rp_audit_verify_files(cli->session.catalog, dir[0] != '\0' ? dir : NULL, &v, err);
    if (r < 0) return r;
    if (v.broken) {
        rp_emit(cli, rp_audit_verdict_json(&v));
        rp_error_set(err, RP_EFAILED, "the audit log is broken at lane %" PRId64 ", row %" PRId64 ": %s", v.lane, v.seq,
                     v.why);
        return rp_error_hint(err,
                             "someone changed the catalog or the segment's file by hand, or it was damaged; a backup "
                             "tells which");
    }
    rp_tell(cli, rp_audit_verdict_json(&v),
            "ok: %zu %s, %" PRId64 " %s, %" PRId64 " with erased details; every link holds\n", v.lanes,
            v.lanes == 1 ? "lane" : "lanes", v.rows, v.rows == 1 ? "row" : "rows", v.erased);
    if (v.segments > 0)
        rp_say(cli, "%" PRId64 " older %s in %zu sealed %s; files checked: %zu\n", v.sealed,
               v.sealed == 1 ? "row is" : "rows are", v.segments, v.segments == 1 ? "segment" : "segments", v.files);
    if (v.files_missing > 0)
        rp_warn("%zu %s not in %s, the first is %s; `reprieve audit verify --file` proves one where it is",
                v.files_missing, v.files_missing == 1 ? "segment's file is" : "segments' files are", dir, v.missing);
    return 0;
}

/* Needs no catalog. */
static int verify_file(struct rp_cli *cli, struct rp_error *err)
{
    struct rp_segment_file file;
    char sha256[RP_DIGEST_HEX], path[RP_SHOWN_MAX];
    const char *name = rp_args_text(&cli->args, "file");
    int r = rp_segment_read(name, NULL, NULL, &file, err);
    if (r == RP_ECORRUPT) {
        err->code = r = RP_EFAILED;
        rp_error_hint(
            err, "it is not what was sealed, or cut: compare its SHA-256 with `reprieve audit segments`, and fetch "
                 "another copy");
    }
    if (r < 0) return r;
    const struct rp_segment *s = &file.segment;
    json_t *o = rp_segment_json(s);
    rp_json_set(o, "catalog", rp_json_text(file.catalog));
    rp_json_set(o, "erased", json_integer(file.erased));
    rp_digest_hex(s->sha256, sha256);
    rp_tell(cli, o,
            "ok: %s: rows %" PRId64 " to %" PRId64 " of lane %" PRId64 ", %" PRId64
            " with erased details; every link holds\nsha256 %s: compare it with `reprieve audit segments`\n",
            rp_show(name, path), s->from_seq, s->to_seq, s->lane, file.erased, sha256);
    return 0;
}

int rp_cmd_audit_verify(struct rp_cli *cli, struct rp_error *err)
{
    if (rp_args_has(&cli->args, "file")) return verify_file(cli, err);
    int r = rp_cli_open(cli, err);
    return r < 0 ? r : verify_audit(cli, err);
}

/* ---- segments ---- */

static int show_segment(void *ctx, const struct rp_segment *s, struct rp_error *err)
{
    struct rp_list *l = ctx;
    char lane[24], rows[48], until[RP_WHEN_TEXT], size[RP_SIZE_TEXT];
    (void)err;
    snprintf(lane, sizeof lane, "%" PRId64, s->lane);
    snprintf(rows, sizeof rows, "%" PRId64 "-%" PRId64, s->from_seq, s->to_seq);
    const char *cells[] = { lane, rows, rp_show_when(s->last_at_ms, l->now_ms, until), rp_show_size(s->bytes, size),
                            s->file };
    rp_list_row(l, rp_segment_json(s), cells);
    return 0;
}

/* Why rows that are old enough stay. */
static int show_held_back(struct rp_cli *cli, struct rp_error *err)
{
    struct rp_segment_lane lanes[RP_LANE_MAX + 1];
    struct rp_segment_reader reader;
    struct rp_db *db = cli->session.catalog->db;
    int64_t kept_ms = cli->session.config.retention.audit_ms, now_ms = rp_clock_now_ms(&cli->session.clock);
    size_t n = 0;
    if (kept_ms == RP_FOREVER_MS) return 0;
    int r = rp_segment_lanes(db, lanes, RP_LANE_MAX + 1, &n, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        r = rp_segment_reader(db, lanes[i].lane, &reader, err);
        if (r < 0 || lanes[i].first_seq == 0 || lanes[i].first_at_ms >= now_ms - kept_ms) continue;
        if (reader.seq < lanes[i].first_seq)
            rp_say(cli, "lane %" PRId64 ": reader '%s' has read up to row %" PRId64 "; later rows stay\n",
                   lanes[i].lane, reader.name, reader.seq);
    }
    return r;
}

int rp_cmd_audit_segments(struct rp_cli *cli, struct rp_error *err)
{
    static const struct rp_column columns[] = { { "LANE", true, false },
                                                { "ROWS", false, false },
                                                { "UNTIL", false, false },
                                                { "SIZE", true, false },
                                                { "FILE", false, false } };
    struct rp_list l;
    RP_LIST_INIT(&l, cli, columns, "nothing of the audit log was sealed");
    int r = rp_segment_each(cli->session.catalog->db, -1, show_segment, &l, err);
    r = rp_list_end(&l, r);
    return r < 0 ? r : show_held_back(cli, err);
}

/* ---- export ---- */

static int export_row(void *ctx, const struct rp_audit_row *row, struct rp_error *err)
{
    (void)ctx;
    RP_CLEANUP(rp_json_decrefp) json_t *o = rp_audit_json(row);
    if (json_dumpf(o, stdout, JSON_COMPACT | (isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0)) < 0 ||
        fputc('\n', stdout) == EOF)
        return rp_error_set(err, RP_EFAILED, "the export could not be written");
    return 0;
}

static int note_segment(void *ctx, const struct rp_segment *segment, struct rp_error *err)
{
    (void)segment, (void)err;
    *(bool *)ctx = true;
    return 0;
}

static int say_sealed(struct rp_db *db, struct rp_error *err)
{
    bool sealed = false;
    size_t n = 0;
    int r = rp_segment_page(db, -1, 0, 1, note_segment, &sealed, &n, err);
    if (sealed) rp_warn("older rows are in sealed segments: `reprieve audit segments` lists their files");
    return r;
}

int rp_cmd_audit_export(struct rp_cli *cli, struct rp_error *err)
{
    int64_t lanes[RP_LANE_MAX + 1], only = -1;
    size_t n = 0;
    struct rp_db *db = cli->session.catalog->db;
    int r = rp_args_number(&cli->args, "lane", &only, err);
    if (r == 0) r = rp_audit_lanes(db, lanes, RP_LANE_MAX + 1, &n, err);
    for (size_t i = 0; i < n && r == 0; i++)
        if (only < 0 || only == lanes[i]) r = rp_audit_lane(db, lanes[i], 0, export_row, NULL, err);
    return r < 0 ? r : say_sealed(db, err);
}
