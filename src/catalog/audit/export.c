/* SPDX-License-Identifier: Apache-2.0 */
/* export.c - a segment's rows are written into its file, which is synced and read back (segment.h,
 * S2). */
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "catalog/audit/chain.h"
#include "catalog/audit/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define PAGE     1000
#define WRITE_AT ((size_t)256 << 10)

struct exporting {
    const struct rp_segment_ask *ask;
    struct rp_digest *digest;
    struct rp_segment *out;
    struct rp_buf text;
    uint8_t prev[RP_DIGEST_BYTES];
    char path[RP_SEGMENT_PATH]; /* while it is written */
    int dir_fd, fd;
    int64_t rows_max, bytes_max;
    bool ended;
};

static void exporting_done(struct exporting *e)
{
    rp_buf_done(&e->text);
    rp_digest_free(e->digest);
    if (e->fd >= 0) close(e->fd);
    if (e->dir_fd >= 0) close(e->dir_fd);
}

static int failed(const struct exporting *e, struct rp_error *err)
{
    return rp_error_errno(err, errno, "write %s", e->path);
}

/* ---- the file ---- */

static bool is_there(const struct exporting *e, const char *name)
{
    struct stat ours, named;
    return fstat(e->fd, &ours) == 0 && fstatat(e->dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

/* The directory's name is synced too, whoever made it: rows are let go because of what lies in
 * it. */
static int open_directory(struct exporting *e, struct rp_error *err)
{
    if (mkdir(e->ask->dir, 0700) < 0 && errno != EEXIST)
        return rp_error_errno(err, errno, "make the directory %s", e->ask->dir);
    e->dir_fd = open(e->ask->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (e->dir_fd < 0) return rp_error_errno(err, errno, "open the directory %s", e->ask->dir);
    int parent = openat(e->dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = parent < 0 || fsync(parent) < 0 ? errno : 0;
    if (parent >= 0) close(parent);
    return failed != 0 ? rp_error_errno(err, failed, "sync the directory above %s", e->ask->dir) : 0;
}

/* One name a lane: what a crash leaves is written over. Whoever holds its lock writes it. */
static int open_file(struct exporting *e, const char *catalog_id, struct rp_error *err)
{
    char name[RP_SEGMENT_FILE];
    int r = open_directory(e, err);
    if (r < 0) return r;
    snprintf(name, sizeof name, ".%s.%03" PRId64 ".part", catalog_id, e->ask->lane);
    r = rp_segment_path(e->ask->dir, name, e->path, err);
    if (r < 0) return r;
    e->fd = openat(e->dir_fd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (e->fd < 0) return failed(e, err);
    /* whoever had the lock before may have finished the file and named it */
    if (flock(e->fd, LOCK_EX | LOCK_NB) < 0 || !is_there(e, name))
        return rp_error_set(err, RP_EBUSY, "%s: another process is writing it", e->path);
    return ftruncate(e->fd, 0) < 0 ? failed(e, err) : 0;
}

static int write_text(struct exporting *e, struct rp_error *err)
{
    if (e->text.failed < 0) return rp_error_set(err, e->text.failed, "write %s: a row is too long", e->path);
    for (size_t done = 0; done < e->text.len;) {
        ssize_t n = write(e->fd, e->text.data + done, e->text.len - done);
        if (n < 0 && errno != EINTR) return failed(e, err);
        done += n > 0 ? (size_t)n : 0;
    }
    e->out->bytes += (int64_t)e->text.len;
    rp_buf_clear(&e->text);
    return 0;
}

/* ---- lines ---- */

static void add_first(struct exporting *e, const char *catalog_id)
{
    char before[RP_DIGEST_HEX];
    rp_digest_hex(e->out->before, before);
    rp_buf_fmt(&e->text,
               "{\"segment\":1,\"catalog\":\"%s\",\"lane\":%" PRId64 ",\"from\":%" PRId64 ",\"before\":\"%s\"}\n",
               catalog_id, e->out->lane, e->out->from_seq, before);
}

static void add_row(struct rp_buf *text, const struct rp_audit_row *row)
{
    char hex[RP_DIGEST_HEX];
    rp_buf_fmt(text, "{\"seq\":%" PRId64 ",\"at\":%" PRId64 ",\"event\":", row->seq, row->at_ms);
    rp_json_quote(text, row->event);
    rp_buf_str(text, ",\"actor\":");
    rp_json_quote(text, row->actor);
    rp_buf_fmt(text, ",\"mark\":%" PRId64 ",\"tenant\":%" PRId64 ",\"details\":", row->mark_id, row->tenant_id);
    if (row->details != NULL)
        rp_json_quote(text, row->details);
    else
        rp_buf_str(text, "null");
    rp_digest_hex(row->digest, hex);
    rp_buf_fmt(text, ",\"digest\":\"%s\"", hex);
    rp_digest_hex(row->hash, hex);
    rp_buf_fmt(text, ",\"hash\":\"%s\"}\n", hex);
}

static void add_last(struct exporting *e)
{
    char after[RP_DIGEST_HEX];
    rp_digest_hex(e->out->after, after);
    rp_buf_fmt(&e->text, "{\"to\":%" PRId64 ",\"rows\":%" PRId64 ",\"after\":\"%s\"}\n", e->out->to_seq,
               e->out->to_seq - e->out->from_seq + 1, after);
}

static void note_row(struct rp_segment *s, const struct rp_audit_row *row)
{
    bool first = row->seq == s->from_seq;
    if (first || row->at_ms < s->first_at_ms) s->first_at_ms = row->at_ms;
    if (first || row->at_ms > s->last_at_ms) s->last_at_ms = row->at_ms;
    s->with_details += row->details != NULL;
    s->to_seq = row->seq;
}

static int take_row(void *ctx, const struct rp_audit_row *row, struct rp_error *err)
{
    struct exporting *e = ctx;
    struct rp_segment *s = e->out;
    int64_t rows = s->to_seq - s->from_seq + 1, bytes = s->bytes + (int64_t)e->text.len;
    e->ended |= row->seq > e->ask->to_max || row->at_ms >= e->ask->older_than_ms || rows == e->rows_max ||
                bytes >= e->bytes_max;
    if (e->ended) return 0;
    const char *fault =
        row->seq == s->to_seq + 1 ? rp_audit_link_fault(e->digest, e->prev, row) : "a row is missing before it";
    if (fault != NULL) /* S5 */
        return rp_error_set(err, RP_ECORRUPT, "audit row %" PRId64 ".%" PRId64 ": %s", row->lane, row->seq, fault);
    add_row(&e->text, row);
    note_row(s, row);
    memcpy(e->prev, row->hash, sizeof e->prev);
    return e->text.len >= WRITE_AT || e->text.failed < 0 ? write_text(e, err) : 0;
}

static int take_rows(struct exporting *e, struct rp_db *db, struct rp_error *err)
{
    size_t n = PAGE;
    int r = 0;
    while (r == 0 && n == PAGE && !e->ended)
        r = rp_audit_tail(db, e->out->lane, e->out->to_seq, PAGE, take_row, e, &n, err);
    memcpy(e->out->after, e->prev, sizeof e->prev);
    return r;
}

/* ---- the end ---- */

/* What was read back is what is sealed. */
static int read_back(struct exporting *e, struct rp_error *err)
{
    struct rp_segment_file file;
    int r = rp_segment_read(e->path, NULL, NULL, &file, err);
    if (r < 0) return rp_error_wrap(err, r, "read back what was exported");
    const struct rp_segment *found = &file.segment, *s = e->out;
    if (found->lane != s->lane || found->from_seq != s->from_seq || found->to_seq != s->to_seq ||
        found->bytes != s->bytes || memcmp(found->after, s->after, sizeof s->after) != 0)
        return rp_error_set(err, RP_ECORRUPT, "%s: it is not what was written", e->path);
    memcpy(e->out->sha256, found->sha256, sizeof e->out->sha256);
    return 0;
}

/* The chain's hash is in the name: a catalog that was put back and went on another way does not
 * write over what it does not know. */
static int name_file(struct exporting *e, const char *catalog_id, struct rp_error *err)
{
    char after[RP_DIGEST_HEX];
    struct rp_segment *s = e->out;
    rp_digest_hex(s->after, after);
    int n = snprintf(s->file, sizeof s->file, "%s.%03" PRId64 ".%012" PRId64 "-%012" PRId64 ".%.16s.jsonl", catalog_id,
                     s->lane, s->from_seq, s->to_seq, after);
    RP_ASSERT(n > 0 && (size_t)n < sizeof s->file);
    if (renameat(e->dir_fd, strrchr(e->path, '/') + 1, e->dir_fd, s->file) < 0 || fsync(e->dir_fd) < 0)
        return rp_error_errno(err, errno, "name %s", s->file);
    return 0;
}

static int finish(struct exporting *e, const char *catalog_id, struct rp_error *err)
{
    if (e->out->to_seq < e->out->from_seq) {
        (void)unlink(e->path);
        return 0;
    }
    add_last(e);
    int r = write_text(e, err);
    if (r == 0 && fsync(e->fd) < 0) r = failed(e, err);
    if (r == 0) r = read_back(e, err);
    return r < 0 ? r : name_file(e, catalog_id, err);
}

/* `s` begins where the lane's last segment ends. */
static int begin(struct exporting *e, struct rp_db *db, char catalog_id[40], struct rp_error *err)
{
    struct rp_segment last = { .to_seq = 0 };
    int64_t unused;
    e->digest = rp_digest_new();
    if (e->digest == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    int r = rp_meta_get(db, "catalog", &unused, catalog_id, 40, err);
    if (r == 0) r = rp_segment_last(db, e->ask->lane, &last, err);
    if (r == 0) r = open_file(e, catalog_id, err);
    if (r < 0) return r;
    e->out->from_seq = last.to_seq + 1;
    e->out->to_seq = last.to_seq;
    memcpy(e->out->before, last.after, sizeof last.after);
    memcpy(e->prev, last.after, sizeof last.after);
    add_first(e, catalog_id);
    return 0;
}

int rp_segment_export(struct rp_db *db, const struct rp_segment_ask *ask, struct rp_segment *out, struct rp_error *err)
{
    char catalog_id[40];
    struct rp_segment s = { .lane = ask->lane };
    RP_CLEANUP(exporting_done)
    struct exporting e = { .ask = ask,
                           .out = &s,
                           .text = RP_BUF((size_t)4 << 20),
                           .dir_fd = -1,
                           .fd = -1,
                           .rows_max = ask->rows_max > 0 ? ask->rows_max : RP_SEGMENT_ROWS_MAX,
                           .bytes_max = ask->bytes_max > 0 ? ask->bytes_max : RP_SEGMENT_BYTES_MAX };
    int r = begin(&e, db, catalog_id, err);
    if (r == 0) r = take_rows(&e, db, err);
    if (r == 0) r = finish(&e, catalog_id, err);
    if (r < 0) return rp_error_wrap(err, r, "export the audit log");
    *out = s;
    return 0;
}
