/* SPDX-License-Identifier: Apache-2.0 */
#include "core/explain.h"

#include "base/cleanup.h"
#include "base/cron.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/audit/audit.h"
#include "catalog/audit/segment.h"
#include "catalog/mark/confirmation.h"
#include "catalog/mark/dead.h"
#include "catalog/mark/hold.h"
#include "catalog/retention.h"
#include "core/file/file.h"
#include "core/state.h"
#include "core/subject/subject.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MARKS_MAX    100
#define WORDS_MAX    2048
#define SEGMENTS_MAX 5 /* that are named */

/* ---- words ---- */

/* clang-format off */
/* %s: the field's value. A line is its opening words and then every field that is there. */
static const struct {
    const char *event, *opening;
    struct { const char *field, *words; } fields[4];
} phrases[] = {
    { "mark.created", "marked for deletion",
      { { "due_at", ", due %s" }, { "only_if", ", only if %s" }, { "reason", " (reason: %s)" } } },
    { "mark.extended", "given more time", { { "due_at", ", due %s" } } },
    { "mark.reprieved", "reprieved", { { "outcome", ": %s" }, { "note", " (%s)" } } },
    { "mark.purged", "purged", { { "outcome", ": %s" } } },
    { "mark.dead", "it became a dead letter, a person must decide", { { "note", ": %s" } } },
    { "mark.retried", "brought back to be tried again", { { NULL, NULL } } },
    { "orphan.detected", "found by the safety net and brought back", { { "what", ": %s" }, { "due_at", ", due %s" } } },
    { "mark.asked", "an outside service was asked to delete its half", { { "confirmation", ": %s" } } },
    { "mark.confirmed", "an outside service has said yes", { { "confirmation", ": %s" }, { "note", " (%s)" } } },
    { "mark.lost", "given up after a failed purge; something of it may be erased", { { NULL, NULL } } },
    { "object.returned", "returned from quarantine", { { NULL, NULL } } },
    { "object.returned_again", "found gone after its return, and returned from quarantine again", { { NULL, NULL } } },
    { "file.pending", "an upload was begun",
      { { "name", " for '%s'" }, { "due_at", "; cleaned up unless it is confirmed by %s" } } },
    { "file.uploaded", "the upload was confirmed", { { "status", ", the file is %s" } } },
    { "file.live", "its processor accepted it", { { "status", ", the file is %s" } } },
    { "file.deleted", "the file was deleted",
      { { "due_at", ", its purge is due %s" }, { "reason", " (reason: %s)" } } },
    { "file.delete_failed", "deleting the file failed", { { "error", ": %s" } } },
    { "file.restored", "the file was restored", { { NULL, NULL } } },
    { "file.cleaned", "the upload was not confirmed in time; its quota was refunded", { { "reason", " (%s)" } } },
    { "file.purged", "the file is purged; its quota was refunded", { { NULL, NULL } } },
};
/* clang-format on */

static void write_words(struct rp_buf *b, const char *event, const json_t *details)
{
    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++) {
        if (strcmp(phrases[i].event, event) != 0) continue;
        rp_buf_str(b, phrases[i].opening);
        for (size_t f = 0; f < 4 && phrases[i].fields[f].field != NULL; f++) {
            const char *value = rp_json_get_text(details, phrases[i].fields[f].field, "");
            const char *words = phrases[i].fields[f].words, *hole = strstr(words, "%s");
            if (value[0] == 0) continue;
            rp_buf_add(b, words, (size_t)(hole - words));
            rp_buf_str(b, value);
            rp_buf_str(b, hole + 2);
        }
        return;
    }
    rp_buf_str(b, event);
}

static int tell(void *ctx, const struct rp_audit_row *row, struct rp_error *err)
{
    const struct rp_story *t = ctx;
    RP_CLEANUP(rp_buf_done) struct rp_buf words = RP_BUF(WORDS_MAX);
    RP_CLEANUP(rp_json_decrefp) json_t *details = NULL;
    char id[RP_ID_TEXT];
    if (row->details != NULL && rp_json_parse(row->details, strlen(row->details), &details, err) < 0) return err->code;
    write_words(&words, row->event, details);
    if (row->details == NULL) rp_buf_str(&words, " (details erased)");
    if (words.failed == RP_ENOMEM) return rp_error_set(err, RP_ENOMEM, "no memory for the story");
    struct rp_story_line line = { .at_ms = row->at_ms,
                                  .event = row->event,
                                  .actor = row->actor,
                                  .words = rp_buf_text(&words),
                                  .mark = rp_id_format(RP_ID_MARK, row->mark_id, id) };
    return t->fn(t->ctx, &line, err);
}

/* ---- what was sealed ---- */

struct sealed {
    const struct rp_story *story;
    size_t n;
};

static int tell_segment(void *ctx, const struct rp_segment *segment, struct rp_error *err)
{
    struct sealed *s = ctx;
    char words[RP_SEGMENT_FILE + 128];
    if (s->n++ >= SEGMENTS_MAX) return 0;
    snprintf(words, sizeof words, "rows of that time were sealed: some of this story may stand in segment %s",
             segment->file);
    struct rp_story_line line = {
        .at_ms = segment->last_at_ms, .event = "audit.sealed", .actor = "reprieve", .words = words, .mark = ""
    };
    return s->story->fn(s->story->ctx, &line, err);
}

/* Rows go by age: if none of the oldest mark's time was sealed, none later was. */
static int tell_sealed(struct rp_db *db, const struct rp_marks *marks, const struct rp_story *story,
                       struct rp_error *err)
{
    struct sealed sealed = { .story = story };
    if (marks->n == 0) return 0;
    const struct rp_mark *newest = &marks->at[0], *oldest = &marks->at[marks->n - 1];
    int64_t to_ms = newest->ended_at_ms != 0 ? newest->ended_at_ms : INT64_MAX;
    return rp_segment_of_time(db, oldest->marked_at_ms, to_ms, tell_segment, &sealed, err);
}

/* ---- how things stand ---- */

struct hold_search {
    const struct rp_store *store;
    const char *key;
    int64_t tenant_id; /* 0: none */
    struct rp_story_end *end;
};

static int search_hold(void *ctx, const struct rp_hold *hold, struct rp_error *err)
{
    struct hold_search *s = ctx;
    (void)err;
    struct rp_mark subject = { .store_id = s->store->id, .key = s->key, .tenant_id = s->tenant_id };
    if (!rp_hold_covers(hold, &subject) || s->end->held) return 0;
    s->end->held = true;
    s->end->hold_id = hold->id;
    snprintf(s->end->held_by, sizeof s->end->held_by, "%s", hold->actor);
    return 0;
}

static const char *there_of(const struct rp_story_end *end)
{
    return end->object == RP_OUT_FOUND  ? "The object exists"
           : end->object == RP_OUT_GONE ? "The object does not exist"
                                        : "The object could not be looked at";
}

/* The second mark of an upload: of whatever a PUT that began in time may still bring. */
static void say_late(struct rp_story_end *end, int64_t now_ms)
{
    char due[RP_TIME_TEXT], away[RP_TIME_TEXT];
    snprintf(end->words, sizeof end->words,
             "%s; its file has ended and cannot be restored. What an upload that is still under way may bring is "
             "removed %s (%s).",
             there_of(end), rp_time_format(end->mark.due_at_ms, due),
             rp_time_distance(end->mark.due_at_ms, now_ms, away));
}

static void say_pending(struct rp_story_end *end, int64_t now_ms)
{
    char due[RP_TIME_TEXT], away[RP_TIME_TEXT];
    snprintf(
        end->words, sizeof end->words,
        "Its upload has not been confirmed. If it is not confirmed by %s (%s), what was uploaded is purged and its "
        "quota refunded%s.",
        rp_time_format(end->mark.due_at_ms, due), rp_time_distance(end->mark.due_at_ms, now_ms, away),
        end->held ? ", but not while it is held" : "");
}

/* What a check said, and when it is asked again. */
static void say_last_time(const struct rp_mark *mark, int64_t now_ms, char *out, size_t size)
{
    char next[RP_TIME_TEXT], away[RP_TIME_TEXT];
    size_t n = 0;
    if (mark->next_at_ms > now_ms)
        n = (size_t)snprintf(out, size, " Asked about again at %s (%s).", rp_time_format(mark->next_at_ms, next),
                             rp_time_distance(mark->next_at_ms, now_ms, away));
    snprintf(out + n, size - n, " Last time: %s", mark->note);
}

/* What keeps it meanwhile. One hold of several is named, the oldest. */
static size_t say_saved(const struct rp_story_end *end, char *out, size_t size)
{
    char id[RP_ID_TEXT];
    if (!end->held) return (size_t)snprintf(out, size, "`restore` keeps it until then.");
    return (size_t)snprintf(out, size,
                            "it is held (hold %s, by %s): nothing is purged until the hold is lifted; `reprieve "
                            "restore` still saves it.",
                            rp_id_format(RP_ID_HOLD, end->hold_id, id), end->held_by);
}

/* What will be done with it, and by whom, now that its time is over. */
static size_t say_overdue(const struct rp_story_end *end, const struct rp_store *store, const struct rp_story *story,
                          int64_t now_ms, char *out, size_t size)
{
    const char *what = store->config->mode == RP_MODE_QUARANTINE ? "moved to quarantine" : "purged";
    char next[RP_TIME_TEXT], away[RP_TIME_TEXT];
    struct rp_cron cron;
    int64_t next_ms;
    if (end->needs[0] != 0)
        return (size_t)snprintf(out, size,
                                "and then %s once all have said yes; a daemon asks at once, unless it leaves a service "
                                "alone that has failed again and again, and so does `reprieve sweep`; ",
                                what);
    if (end->mark.next_at_ms > now_ms) return (size_t)snprintf(out, size, "and not %s yet; ", what);
    if (story->sweep_schedule == NULL || rp_cron_parse(story->sweep_schedule, &cron, NULL) < 0 ||
        rp_cron_next(&cron, now_ms, &next_ms, NULL) < 0)
        return (size_t)snprintf(out, size, "and %s as soon as a daemon or `reprieve sweep` gets to it; ", what);
    return (size_t)snprintf(out, size,
                            "and %s by the next sweep, at %s (%s) if a daemon runs then, or later if more than %" PRId64
                            " marks (sweep.limit) are due before it; ",
                            what, rp_time_format(next_ms, next), rp_time_distance(next_ms, now_ms, away),
                            story->sweep_limit);
}

static size_t say_effect(const struct rp_story_end *end, const struct rp_store *store, const struct rp_story *story,
                         int64_t now_ms, char *out, size_t size)
{
    bool moves = store->config->mode == RP_MODE_QUARANTINE;
    if (store->config->mode == RP_MODE_OBSERVE)
        return (size_t)snprintf(out, size, "but the store is in mode observe, so it stays; ");
    if (end->mark.due_at_ms <= now_ms) return say_overdue(end, store, story, now_ms, out, size);
    return (size_t)snprintf(out, size, "and then %s; ", moves ? "moved to quarantine" : "purged");
}

static void say_waiting(struct rp_story_end *end, const struct rp_store *store, const struct rp_story *story,
                        int64_t now_ms)
{
    char due[RP_TIME_TEXT], away[RP_TIME_TEXT];
    if (end->mark.file_id != 0 && strcmp(end->mark.reason, RP_REASON_LATE) == 0) {
        say_late(end, now_ms);
        return;
    }
    if (end->mark.file_id != 0 && strcmp(end->mark.reason, RP_REASON_ABANDONED) == 0) {
        say_pending(end, now_ms);
        return;
    }
    size_t n =
        (size_t)snprintf(end->words, sizeof end->words, "It is marked, due %s (%s), ",
                         rp_time_format(end->mark.due_at_ms, due), rp_time_distance(end->mark.due_at_ms, now_ms, away));
    n += say_effect(end, store, story, now_ms, end->words + n, sizeof end->words - n);
    n += say_saved(end, end->words + n, sizeof end->words - n);
    if (end->needs[0] != 0)
        n += (size_t)snprintf(end->words + n, sizeof end->words - n, " Before, these must say yes: %s.", end->needs);
    if (end->mark.note != NULL) say_last_time(&end->mark, now_ms, end->words + n, sizeof end->words - n);
}

/* It is claimed by whoever asks outside services; nothing is erased meanwhile. */
static void say_asking(struct rp_story_end *end, int64_t now_ms)
{
    char next[RP_TIME_TEXT], away[RP_TIME_TEXT], id[RP_ID_TEXT];
    size_t n = (size_t)snprintf(end->words, sizeof end->words, "It waits for %s, ", end->needs);
    char *out = end->words + n;
    size_t size = sizeof end->words - n;
    if (end->held)
        n = (size_t)snprintf(out, size, "and is held (hold %s, by %s): nobody is asked until the hold is lifted",
                             rp_id_format(RP_ID_HOLD, end->hold_id, id), end->held_by);
    else
        n = (size_t)snprintf(out, size, "asked again at %s (%s)", rp_time_format(end->mark.next_at_ms, next),
                             rp_time_distance(end->mark.next_at_ms, now_ms, away));
    snprintf(out + n, size - n, "; nothing is erased before they say yes, and it cannot be restored any more.%s%s",
             end->mark.note != NULL ? " Last time: " : "", end->mark.note != NULL ? end->mark.note : "");
}

/* "calendar, mail", as far as there is room. */
static void add_name(char names[RP_STORY_NAMES], const char *name)
{
    size_t used = strlen(names);
    snprintf(names + used, RP_STORY_NAMES - used, "%s%s", used > 0 ? ", " : "", name);
}

/* Who has still to say yes, and who has said it. */
static int find_services(struct rp_db *db, struct rp_arena *arena, struct rp_story_end *end, struct rp_error *err)
{
    struct rp_confirmations all;
    if (!end->has_mark || !rp_mark_has_confirmations(&end->mark)) return 0;
    int r = rp_confirmations_of(db, &end->mark.id, 1, arena, &all, err);
    for (size_t i = 0; i < all.n && r == 0; i++)
        add_name(all.at[i].state == RP_CONFIRM_YES ? end->agreed : end->needs, all.at[i].name);
    return r;
}

/* Every service that had to has said yes. */
static void say_agreed(struct rp_story_end *end, int64_t now_ms)
{
    char due[RP_TIME_TEXT], away[RP_TIME_TEXT];
    snprintf(end->words, sizeof end->words, "All services have said yes; it is purged when it is due, %s (%s)%s.",
             rp_time_format(end->mark.due_at_ms, due), rp_time_distance(end->mark.due_at_ms, now_ms, away),
             end->held ? ", but not while it is held" : "");
}

/* `copy`: the mark of what its mark moved to quarantine; NULL: nothing of it is there any more. */
static void say_quarantine(struct rp_story_end *end, const struct rp_mark *copy, int64_t now_ms)
{
    const char *there = there_of(end);
    char id[RP_ID_TEXT], until[RP_TIME_TEXT], away[RP_TIME_TEXT];
    if (copy == NULL)
        snprintf(end->words, sizeof end->words, "%s; its time in quarantine is over, and it was purged.", there);
    else if (copy->state == RP_REPRIEVED)
        snprintf(end->words, sizeof end->words, "%s; it was returned from quarantine.", there);
    else if (copy->state != RP_MARKED)
        snprintf(end->words, sizeof end->words, "%s; its time in quarantine is over, and its purge has begun.", there);
    else
        snprintf(end->words, sizeof end->words,
                 "%s; what was marked is in quarantine until %s (%s)%s: `reprieve restore %s` brings it back%s.%s%s%s",
                 there, rp_time_format(copy->due_at_ms, until), rp_time_distance(copy->due_at_ms, now_ms, away),
                 end->held ? ", and longer while it is held" : "", rp_id_format(RP_ID_MARK, end->mark.id, id),
                 end->object == RP_OUT_FOUND ? " once its key is free" : "",
                 end->agreed[0] != 0 ? " Deleted already by: " : "", end->agreed, end->agreed[0] != 0 ? "." : "");
}

static void say_dead(struct rp_story_end *end)
{
    char id[RP_ID_TEXT];
    if (end->dead_id == 0)
        snprintf(end->words, sizeof end->words, "It waits for a person; `reprieve safety-net` lists it among them.");
    else
        snprintf(end->words, sizeof end->words,
                 "It waits for a person: `reprieve dead show %s` says why, `dead retry` or `dead keep` ends it.",
                 rp_id_format(RP_ID_DEAD, end->dead_id, id));
}

static void say_ended(struct rp_story_end *end)
{
    const struct rp_mark *mark = &end->mark;
    bool back = mark->state == RP_REPRIEVED && end->agreed[0] != 0;
    snprintf(end->words, sizeof end->words, "%s; its last mark ended as %s%s%s.%s%s%s", there_of(end),
             rp_state_name(mark->state), mark->outcome != RP_END_NONE ? ": " : "", rp_end_name(mark->outcome),
             back ? " Deleted already by: " : "", back ? end->agreed : "", back ? "." : "");
}

static void say_end(struct rp_story_end *end, const struct rp_store *store, const struct rp_story *story,
                    int64_t now_ms)
{
    const char *there = there_of(end);
    char next[RP_TIME_TEXT];
    if (end->file_is_deleted) {
        snprintf(end->words, sizeof end->words,
                 "%s; its file is deleted and no mark waits for it: `reprieve safety-net` brings it back.", there);
        return;
    }
    if (!end->has_mark) {
        snprintf(end->words, sizeof end->words, "%s and %s: nothing will happen to it.", there, end->unmarked);
        return;
    }
    switch (end->mark.state) {
    case RP_MARKED:
        say_waiting(end, store, story, now_ms);
        return;
    case RP_CHECKING:
        if (end->needs[0] != 0) {
            say_asking(end, now_ms);
            return;
        }
        if (rp_mark_has_agreed(&end->mark)) {
            say_agreed(end, now_ms);
            return;
        }
        /* fall through */
    case RP_PURGING:
        snprintf(end->words, sizeof end->words,
                 "Its purge has begun (%s, attempt %" PRId64 "); it is looked at again %s.%s%s",
                 rp_state_name(end->mark.state), end->mark.attempts + 1,
                 rp_time_distance(end->mark.next_at_ms, now_ms, next), end->mark.note != NULL ? " Last time: " : "",
                 end->mark.note != NULL ? end->mark.note : "");
        return;
    case RP_DEAD:
        say_dead(end);
        return;
    default:
        say_ended(end);
    }
}

static int say_now(struct rp_catalog *catalog, const struct rp_store *store, const struct rp_story *story,
                   struct rp_arena *arena, struct rp_story_end *end, struct rp_error *err)
{
    int64_t now_ms = rp_clock_now_ms(catalog->clock);
    struct rp_mark copy;
    if (!end->has_mark || end->mark.state != RP_PURGED || end->mark.outcome != RP_END_QUARANTINED) {
        say_end(end, store, story, now_ms);
        return 0;
    }
    int r = rp_quarantine_mark(catalog->db, &end->mark, arena, &copy, err);
    if (r < 0 && r != RP_ENOTFOUND) return r;
    say_quarantine(end, r == 0 ? &copy : NULL, now_ms);
    return 0;
}

static int stand(struct rp_catalog *catalog, struct rp_store *store, const char *key, int64_t tenant_id,
                 struct rp_story_end *end, struct rp_error *err)
{
    struct rp_item item = { .key = key };
    struct hold_search search = { .store = store, .key = key, .tenant_id = tenant_id, .end = end };
    int r = rp_subject_in(store)->look(store, &item, 1, err);
    if (r < 0) return r;
    end->object = item.outcome;
    end->identity = item.identity;
    return rp_hold_each(catalog->db, search_hold, &search, err);
}

/* What is known of a subject without marks: retention may have let them go. */
static int say_unmarked(struct rp_catalog *catalog, struct rp_story_end *end, struct rp_error *err)
{
    int64_t before_ms = 0;
    char text[RP_TIME_TEXT];
    int r = rp_retention_reach(catalog->db, &before_ms, err);
    if (before_ms == 0)
        snprintf(end->unmarked, sizeof end->unmarked, "was never marked");
    else
        snprintf(end->unmarked, sizeof end->unmarked, "has no mark (those that ended before %s were let go)",
                 rp_time_format(before_ms, text));
    return r;
}

static int keep_dead(void *ctx, const struct rp_dead *dead, struct rp_error *err)
{
    int64_t *id = ctx;
    (void)err;
    *id = dead->id;
    return 0;
}

/* A deleted file whose mark is not there, or was reprieved, is nobody's to purge. */
static int find_file(struct rp_catalog *catalog, const struct rp_store *store, const char *key, struct rp_arena *arena,
                     struct rp_story_end *end, struct rp_error *err)
{
    struct rp_file file;
    int64_t file_id = 0;
    if (end->has_mark && end->mark.state != RP_REPRIEVED) return 0;
    int r = rp_files_of_keys(catalog->db, arena, store->id, &key, 1, &file_id, err);
    if (r < 0 || file_id == 0) return r;
    r = rp_file_get(catalog->db, file_id, arena, &file, err);
    end->file_is_deleted = r == 0 && file.status == RP_FILE_DELETED;
    return r;
}

int rp_explain(struct rp_catalog *catalog, struct rp_store *store, const char *key, struct rp_arena *arena,
               const struct rp_story *story, struct rp_story_end *end, struct rp_error *err)
{
    struct rp_marks marks;
    struct rp_story t = *story;
    *end = (struct rp_story_end){ 0 };
    int r = rp_marks_init(&marks, MARKS_MAX, arena, err);
    if (r == 0) r = rp_marks_history(catalog->db, store->id, key, &marks, err);
    if (r == 0) r = stand(catalog, store, key, marks.n > 0 ? marks.at[0].tenant_id : 0, end, err);
    if (r < 0) return rp_error_wrap(err, r, "explain %s:%s", store->config->name, key);
    end->has_mark = marks.n > 0;
    if (end->has_mark) end->mark = marks.at[0];
    r = find_file(catalog, store, key, arena, end, err);
    if (r == 0 && marks.n == 0) r = say_unmarked(catalog, end, err);
    if (r == 0 && marks.n == 0 && end->object == RP_OUT_GONE && !end->file_is_deleted)
        return rp_error_set(err, RP_ENOTFOUND, "%s:%s does not exist and %s", store->config->name, key, end->unmarked);
    if (r == 0) r = tell_sealed(catalog->db, &marks, &t, err);
    for (size_t i = marks.n; i > 0 && r == 0; i--)
        r = rp_audit_of_mark(catalog->db, marks.at[i - 1].id, tell, &t, err);
    if (r == 0) r = find_services(catalog->db, arena, end, err);
    if (r == 0 && end->has_mark && end->mark.state == RP_DEAD)
        r = rp_dead_of_mark(catalog->db, end->mark.id, keep_dead, &end->dead_id, err);
    return r < 0 ? r : say_now(catalog, store, story, arena, end, err);
}
