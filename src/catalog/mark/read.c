/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - looking at marks: one, a subject's history, pages of many. Every page has its index. */
#include "base/assert.h"
#include "base/error.h"
#include "base/id.h"
#include "base/time.h"
#include "catalog/mark/mark.h"
#include "catalog/row.h"
#include "catalog/statements/statements.h"

#include <stdio.h>
#include <string.h>

int rp_mark_get(struct rp_db *db, int64_t id, struct rp_arena *arena, struct rp_mark *out, struct rp_error *err)
{
    struct rp_mark mark;
    struct rp_marks marks = { .at = &mark, .max = 1, .arena = arena };
    struct rp_value arg = rp_int(id);
    int r = rp_db_query(db, RP_SQL(mark_get), &arg, rp_marks_row, &marks, err);
    if (r < 0) return rp_error_wrap(err, r, "load a mark");
    if (marks.n == 0) {
        char text[RP_ID_TEXT];
        return rp_error_set(err, RP_ENOTFOUND, "no mark %s", rp_id_format(RP_ID_MARK, id, text));
    }
    *out = mark;
    return 0;
}

int rp_marks_history(struct rp_db *db, int64_t store_id, const char *key, struct rp_marks *out, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(store_id), rp_text(key), rp_int((int64_t)(out->max - out->n)) };
    int r = rp_db_query(db, RP_SQL(mark_history), args, rp_marks_row, out, err);
    return r < 0 ? rp_error_wrap(err, r, "load a subject's marks") : 0;
}

static int page_by_store(struct rp_db *db, struct rp_marks_query *q, struct rp_marks *out, struct rp_error *err)
{
    int64_t limit = (int64_t)out->max;
    struct rp_value waiting[] = { rp_int(q->store_id), rp_int(q->before_ms), rp_int(q->cursor_ms), rp_int(q->cursor_id),
                                  rp_int(limit) };
    if (q->by == RP_BY_DUE) return rp_db_query(db, RP_SQL(mark_waiting), waiting, rp_marks_row, out, err);
    RP_ASSERT(q->by == RP_BY_DUE_UNHELD && out->max >= 1000);
    return rp_db_query(db, RP_SQL(mark_due_peek), waiting, rp_marks_row, out, err);
}

static int page_by_prefix(struct rp_db *db, struct rp_marks_query *q, struct rp_marks *out, struct rp_error *err)
{
    char end[RP_PREFIX_END_MAX];
    struct rp_value args[] = { rp_int(q->store_id), rp_text(q->text), rp_text(rp_key_prefix_end(q->text, end)),
                               rp_text(q->cursor_key), rp_int((int64_t)out->max) };
    return rp_db_query(db, RP_SQL(mark_by_prefix), args, rp_marks_row, out, err);
}

static int page_by_id(struct rp_db *db, struct rp_marks_query *q, struct rp_marks *out, struct rp_error *err)
{
    int64_t limit = (int64_t)out->max;
    struct rp_value cursor[] = { rp_int(q->cursor_id), rp_int(limit) };
    struct rp_value reason[] = { rp_text(q->text), cursor[0], cursor[1] };
    struct rp_value run[] = { rp_int(q->run_id), cursor[0], cursor[1] };
    switch (q->by) {
    case RP_BY_REASON:
        return rp_db_query(db, RP_SQL(mark_by_reason), reason, rp_marks_row, out, err);
    case RP_BY_RUN:
        return rp_db_query(db, RP_SQL(mark_by_run), run, rp_marks_row, out, err);
    case RP_BY_DEAD:
        return rp_db_query(db, RP_SQL(mark_dead), cursor, rp_marks_row, out, err);
    default:
        RP_ASSERT(q->by == RP_BY_SINCE);
    }
    return rp_db_query(db, RP_SQL(mark_since), cursor, rp_marks_row, out, err);
}

static void begin(struct rp_marks_query *q)
{
    if (q->begun) return;
    q->begun = true;
    q->cursor_ms = q->by == RP_BY_ENDED ? q->before_ms : -1;
    q->cursor_id = q->by == RP_BY_SINCE ? rp_id_floor(q->since_ms) - 1 : 0;
    q->cursor_key[0] = 0;
}

int rp_marks_page(struct rp_db *db, struct rp_marks_query *q, struct rp_marks *out, struct rp_error *err)
{
    int r;
    begin(q);
    out->n = 0;
    struct rp_value ended[] = { rp_int(q->state), rp_int(q->cursor_ms), rp_int(q->cursor_id),
                                rp_int((int64_t)out->max) };
    if (q->by == RP_BY_DUE || q->by == RP_BY_DUE_UNHELD)
        r = page_by_store(db, q, out, err);
    else if (q->by == RP_BY_ENDED)
        r = rp_db_query(db, RP_SQL(mark_ended), ended, rp_marks_row, out, err);
    else if (q->by == RP_BY_PREFIX)
        r = page_by_prefix(db, q, out, err);
    else
        r = page_by_id(db, q, out, err);
    if (r < 0) return rp_error_wrap(err, r, "list marks");
    if (out->n == 0) return 0;
    const struct rp_mark *last = &out->at[out->n - 1];
    q->cursor_ms = q->by == RP_BY_ENDED ? last->ended_at_ms : last->next_at_ms;
    q->cursor_id = last->id;
    snprintf(q->cursor_key, sizeof q->cursor_key, "%s", last->key);
    return 0;
}

static int read_overdue(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct rp_overdue *out = ctx;
    (void)err;
    *out = (struct rp_overdue){ .marks = row[0].i, .oldest_due_ms = row[1].i, .bytes = row[2].i };
    return 0;
}

static int count_overdue(struct rp_db *db, int64_t store_id, int64_t now_ms, bool plain, struct rp_overdue *out,
                         struct rp_error *err)
{
    struct rp_value args[] = { rp_int(store_id), rp_int(now_ms), rp_int(plain) };
    int r = rp_db_query(db, RP_SQL(mark_overdue), args, read_overdue, out, err);
    return r < 0 ? rp_error_wrap(err, r, "count overdue marks") : 0;
}

int rp_marks_overdue(struct rp_db *db, int64_t store_id, int64_t now_ms, struct rp_overdue *out, struct rp_error *err)
{
    return count_overdue(db, store_id, now_ms, false, out, err);
}

int rp_marks_overdue_plain(struct rp_db *db, int64_t store_id, int64_t now_ms, struct rp_overdue *out,
                           struct rp_error *err)
{
    return count_overdue(db, store_id, now_ms, true, out, err);
}

static int next_of(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *args, int64_t *next_ms,
                   struct rp_error *err)
{
    struct rp_one one = { 0 };
    int r = rp_db_query(db, sql, args, rp_one_row, &one, err);
    if (r < 0) return rp_error_wrap(err, r, "look for the next due mark");
    *next_ms = one.i[0];
    return 0;
}

int rp_marks_next(struct rp_db *db, int64_t store_id, bool named, int64_t *next_ms, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(store_id), rp_int(named) };
    return next_of(db, RP_SQL(mark_next), args, next_ms, err);
}

int rp_marks_next_to_confirm(struct rp_db *db, int64_t store_id, int64_t *next_ms, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(store_id) };
    return next_of(db, RP_SQL(mark_next_to_confirm), args, next_ms, err);
}

int rp_marks_count_to_confirm(struct rp_db *db, int64_t store_id, int64_t now_ms, bool named, int64_t most,
                              int64_t *out, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(store_id), rp_int(now_ms), rp_int(named), rp_int(most) };
    struct rp_one one = { 0 };
    int r = rp_db_query(db, RP_SQL(mark_count_to_confirm), args, rp_one_row, &one, err);
    if (r < 0) return rp_error_wrap(err, r, "count marks that wait for confirmations");
    *out = one.i[0];
    return 0;
}

int rp_marks_next_unseen(struct rp_db *db, int64_t store_id, int64_t *next_ms, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(store_id) };
    return next_of(db, RP_SQL(mark_next_unseen), args, next_ms, err);
}

static int read_waiting(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct rp_waiting *out = ctx;
    (void)err;
    *out = (struct rp_waiting){ .marks = row[0].i, .bytes = row[1].i, .marked_at_s = row[2].i };
    return 0;
}

int rp_marks_waiting(struct rp_db *db, int64_t store_id, struct rp_waiting *out, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(store_id) };
    struct rp_waiting waiting = { 0 };
    int r = rp_db_query(db, RP_SQL(tally_waiting), args, read_waiting, &waiting, err);
    if (r == 0) r = next_of(db, RP_SQL(mark_oldest), args, &waiting.oldest_at_ms, err);
    if (r < 0) return rp_error_wrap(err, r, "look what waits");
    *out = waiting;
    return 0;
}

bool rp_mark_is_asked_now(const struct rp_mark *mark)
{
    bool early = mark->next_at_ms != 0 && mark->next_at_ms < mark->due_at_ms;
    return early && (mark->checks & RP_CHECK_CONFIRMATIONS) != 0;
}

bool rp_mark_has_confirmations(const struct rp_mark *mark)
{
    return (mark->checks & (RP_CHECK_CONFIRMATIONS | RP_CHECK_AGREED)) != 0;
}

bool rp_mark_has_agreed(const struct rp_mark *mark)
{
    return (mark->checks & RP_CHECK_AGREED) != 0;
}

bool rp_mark_is_refused(const struct rp_mark *mark)
{
    return mark->state == RP_DEAD && mark->was == RP_CHECKING && !rp_mark_has_agreed(mark);
}

bool rp_mark_is_unseen(const struct rp_mark *mark)
{
    return mark->file_id != 0 && mark->etag[0] == '\0' && mark->version[0] == '\0' && mark->original == NULL;
}

int rp_mark_copy(const struct rp_mark *from, struct rp_arena *arena, struct rp_mark *out, struct rp_error *err)
{
    struct rp_mark m = *from;
    const char **texts[] = { &m.key, &m.etag, &m.version, &m.reason, &m.actor, &m.note, &m.original };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (*texts[i] == NULL) continue;
        *texts[i] = rp_arena_strdup(arena, *texts[i]);
        if (*texts[i] == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a batch of marks");
    }
    *out = m;
    return 0;
}

/* ---- returned from quarantine ---- */

struct since_out {
    struct rp_mark_since *at;
    size_t n;
    struct rp_arena *arena;
};

static int since_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct since_out *out = ctx;
    bool failed = false;
    out->at[out->n++] = (struct rp_mark_since){ .id = v[0].i,
                                                .key = rp_row_keep(out->arena, &v[1], &failed),
                                                .file_id = v[2].i,
                                                .file_status = v[3].i,
                                                .annotated = v[4].i != 0,
                                                .ended = v[5].i,
                                                .active = v[6].i };
    return failed ? rp_error_set(err, RP_ENOMEM, "no memory for a mark") : 0;
}

int rp_marks_since(struct rp_db *db, const int64_t *ids, size_t n, struct rp_arena *arena, struct rp_mark_since **out,
                   size_t *n_out, struct rp_error *err)
{
    struct since_out found = { .at = rp_arena_array(arena, n + 1, sizeof *found.at), .arena = arena };
    struct rp_rows rows = rp_rows_of_ids(RP_SQL(mark_since_return), arena, ids, n);
    if (found.at == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", n);
    int r = rp_rows_query(&rows, db, NULL, since_row, &found, err);
    if (r < 0) return rp_error_wrap(err, r, "look for later marks");
    *out = found.at;
    *n_out = found.n;
    return 0;
}

static int choose_ids(struct rp_db *db, const struct rp_sql *sql, const int64_t *ids, size_t n, const char *returned,
                      struct rp_arena *arena, int64_t *out, size_t *n_out, struct rp_error *err)
{
    struct rp_ids found = { .at = out };
    struct rp_value reason = rp_text(returned);
    struct rp_rows rows = rp_rows_of_ids(sql, arena, ids, n);
    int r = rp_rows_query(&rows, db, &reason, rp_ids_row, &found, err);
    *n_out = found.n;
    return r < 0 ? rp_error_wrap(err, r, "look for other versions in quarantine") : 0;
}

int rp_marks_on_older(struct rp_db *db, const int64_t *ids, size_t n, const char *returned, struct rp_arena *arena,
                      int64_t *out, size_t *n_out, struct rp_error *err)
{
    return choose_ids(db, RP_SQL(mark_on_older), ids, n, returned, arena, out, n_out, err);
}

int rp_marks_hidden_again(struct rp_db *db, const int64_t *ids, size_t n, const char *returned, struct rp_arena *arena,
                          int64_t *out, size_t *n_out, struct rp_error *err)
{
    return choose_ids(db, RP_SQL(mark_hidden_again), ids, n, returned, arena, out, n_out, err);
}
