/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/invariants_store.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/json.h"
#include "catalog/mark/mark.h"
#include "core/state.h"
#include "core/subject/quarantine.h"
#include "lib/bytes.h"
#include "lib/stores.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define LINE 160

/* ---- one object ---- */

static bool has_pair(const struct rp_pair *pairs, size_t n, const char *name, const char *value)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(pairs[i].name, name) == 0) return value == NULL || strcmp(pairs[i].value, value) == 0;
    return false;
}

/* Our own fields: all of them known, none on an object without a mark that says so. */
static size_t count_annotation(const struct rp_meta *meta)
{
    static const char *const fields[] = { "marked_for_deletion", "marked_for_deletion_on", "delete_after",
                                          "deletion_reason" };
    size_t n = 0;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        n += has_pair(meta->user, meta->n_user, fields[i], NULL);
    return n;
}

bool inv_stands(const struct inv_world *world, const char *key, const struct inv_subject *subject, bool annotated,
                char why[LINE])
{
    RP_CLEANUP(rp_buf_done) struct rp_buf bytes = RP_BUF(4096);
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 16);
    struct rp_sink sink = { .write = bytes_take, .ctx = &bytes };
    struct rp_meta meta = { 0 };
    struct rp_identity identity;
    struct rp_error err = { 0 };
    int r = rp_backend_get(world->backend, key, &sink, &arena, &meta, &identity, &err);
    const char *wrong = NULL;
    size_t own = count_annotation(&meta);
    if (r < 0)
        wrong = r == RP_ENOTFOUND ? "its bytes are gone" : err.text;
    else if (strcmp(rp_buf_text(&bytes), subject->bytes) != 0)
        wrong = "its bytes are others";
    else if (meta.n_headers != 1 || !has_pair(meta.headers, 1, "content-type", INV_TYPE))
        wrong = "its headers are others";
    else if (!has_pair(meta.user, meta.n_user, "owner", subject->bytes) || meta.n_user != 1 + own)
        wrong = "its metadata is other";
    else if (own > 0 && !annotated)
        wrong = "it says that it is marked, and is not";
    if (wrong != NULL) snprintf(why, LINE, "%.159s", wrong);
    return wrong == NULL;
}

void inv_upload(const struct inv_world *world, struct inv_subject *s)
{
    struct rp_error err = { 0 };
    struct rp_identity made;
    s->uploads++;
    snprintf(s->bytes, sizeof s->bytes, "%.30s, upload %d", s->key, s->uploads % 1000);
    struct bytes text = { s->bytes, strlen(s->bytes) };
    struct rp_source source = { .read = bytes_read, .ctx = &text };
    struct rp_pair type = { "content-type", INV_TYPE }, owner = { "owner", s->bytes };
    struct rp_meta meta = { .headers = &type, .n_headers = 1, .user = &owner, .n_user = 1 };
    int r = rp_backend_put(world->backend, s->key, &source, &meta, RP_PUT_REPLACE, &made, &err);
    RP_ASSERT(r == 0);
    memcpy(s->etag, made.etag, sizeof s->etag);
    s->asked = s->promised = s->restored = false;
}

/* ---- subjects ---- */

/* The newest mark of a key; state 0 without one. */
static struct rp_mark newest_mark(const struct inv_world *w, const char *key, struct rp_arena *arena)
{
    struct rp_error err = { 0 };
    struct rp_mark mark = { 0 };
    struct rp_marks history = { .at = &mark, .max = 1, .arena = arena };
    int r = rp_marks_history(w->catalog->db, w->store_id, key, &history, &err);
    RP_ASSERT(r == 0);
    return mark;
}

static bool exists(const struct inv_world *w, const char *key)
{
    struct rp_error err = { 0 };
    struct rp_item item = { .key = key };
    int r = rp_backend_stat(w->backend, &item, 1, &err);
    RP_ASSERT(r == 0);
    return item.outcome == RP_OUT_FOUND;
}

static bool came_back(const struct inv_world *w, const struct rp_mark *mark)
{
    char text[200];
    struct rp_buf lines = RP_BUF(1024);
    char key[RP_QUARANTINE_KEY];
    snprintf(text, sizeof text, "SELECT 'back' FROM mark WHERE key = '%s' AND outcome = %d",
             rp_quarantine_key(mark->id, key), RP_END_RESTORED);
    int n = inv_ask(w, "", text, &lines);
    rp_buf_done(&lines);
    return n > 0;
}

/* Under which promise the newest upload must stand, or NULL: its purge was decided. */
static const char *promise(const struct inv_world *w, const struct inv_subject *s, const struct rp_mark *mark)
{
    if (s->restored) return "RESTORE-WINS";
    if (s->uploads > 1 && !s->asked) return "NEWER-WINS";
    if (!s->asked || s->stays) return "NO-LOSS";
    switch ((int)mark->state) {
    case RP_PURGING:
    case RP_DEAD:
    case RP_LOST:
    case RP_PURGED:
        if (strcmp(mark->etag, s->etag) != 0) return s->uploads > 1 ? "NEWER-WINS" : "NO-LOSS";
        return mark->state == RP_PURGED && came_back(w, mark) ? "NO-LOSS" : NULL;
    default:
        return "NO-LOSS";
    }
}

/* Moved to quarantine and not back yet: the copy is the upload, whole; or what is hidden is. */
static bool stands_aside(const struct inv_world *w, const struct inv_subject *s, const struct rp_mark *mark,
                         struct rp_arena *arena, char why[LINE])
{
    char key[RP_QUARANTINE_KEY];
    if (mark->state != RP_PURGED || mark->outcome != RP_END_QUARANTINED) return true;
    const struct rp_mark copy = newest_mark(w, rp_quarantine_key(mark->id, key), arena);
    if (copy.state != RP_MARKED) return true;
    if (!copy.in_place) return inv_stands(w, key, s, mark->annotated, why);
    struct inv_world below = *w;
    below.backend = w->below;
    return inv_stands(&below, s->key, s, mark->annotated, why);
}

static int check_subject(const struct inv_world *w, const struct inv_subject *s, enum inv_when when, struct rp_buf *out)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 18);
    struct rp_mark mark = newest_mark(w, s->key, &arena);
    bool active = mark.state != 0 && !rp_state_final(mark.state);
    const char *name = promise(w, s, &mark);
    char why[LINE];
    int n = 0;
    if (name != NULL && !inv_stands(w, s->key, s, s->noted || (active && mark.annotated), why)) {
        n++;
        rp_buf_fmt(out, "%s: %s: %s\n", name, s->key, why);
    }
    if (s->restored && active && !s->stays) {
        n++;
        rp_buf_fmt(out, "RESTORE-WINS: %s is marked again, and nobody asked\n", s->key);
    }
    if (!stands_aside(w, s, &mark, &arena, why)) {
        n++;
        rp_buf_fmt(out, "NO-LOSS: %s in quarantine: %s\n", s->key, why);
    }
    bool given_up = mark.state == RP_DEAD || mark.state == RP_LOST;
    if (when == INV_HEALED && s->promised && !s->stays && !given_up && exists(w, s->key)) {
        n++;
        rp_buf_fmt(out, "EVENTUAL: %s is still there\n", s->key);
    }
    return n;
}

/* ---- what is ours in the store ---- */

struct listing {
    const struct inv_world *world;
    struct rp_buf *out;
    int n;
};

/* A copy in quarantine has a mark of its own, or is the half-done work of the mark it is named
 * by. */
static int check_copy(void *ctx, const struct rp_entry *entry, struct rp_error *err)
{
    struct listing *l = ctx;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 18);
    enum rp_id_kind kind;
    struct rp_mark of = { 0 };
    struct rp_mark own = newest_mark(l->world, entry->key, &arena);
    int64_t id = 0;
    if (own.state != 0 && !rp_state_final(own.state)) return 0;
    if (rp_id_parse(entry->key + strlen(RP_STORE_QUARANTINE), &kind, &id) &&
        rp_mark_get(l->world->catalog->db, id, &arena, &of, err) == 0 &&
        (of.state == RP_PURGING || of.state == RP_DEAD))
        return 0;
    l->n++;
    rp_buf_fmt(l->out, "QUARANTINE: nothing covers %s\n", entry->key);
    return 0;
}

/* The same of what is hidden: its mark's work is half done, given up, or it has a mark in
 * quarantine. */
static int check_hidden(void *ctx, const struct rp_entry *entry, struct rp_error *err)
{
    struct listing *l = ctx;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 18);
    RP_CLEANUP(rp_buf_done) struct rp_buf lines = RP_BUF(1024);
    const char *key = entry->key + strlen(HIDING_MARKERS);
    struct rp_item item = { .key = key };
    char text[400];
    int r = rp_backend_stat(l->world->below, &item, 1, err);
    RP_ASSERT(r == 0);
    struct rp_mark of = newest_mark(l->world, key, &arena);
    if (item.outcome != RP_OUT_FOUND || of.state == RP_PURGING || of.state == RP_DEAD || of.state == RP_LOST) return 0;
    snprintf(text, sizeof text, "SELECT 'covered' FROM mark WHERE original = '%.200s' AND in_place = 1 AND active = 1",
             key);
    if (inv_ask(l->world, "", text, &lines) > 0) return 0;
    l->n++;
    rp_buf_fmt(l->out, "QUARANTINE: nothing covers %s, which is hidden\n", key);
    return 0;
}

static int check_copies(const struct inv_world *w, struct rp_buf *out)
{
    struct listing l = { .world = w, .out = out };
    struct rp_error err = { 0 };
    int r = rp_backend_list(w->backend, RP_STORE_QUARANTINE, "", check_copy, &l, &err);
    if (r == 0 && w->below != NULL) r = rp_backend_list(w->below, HIDING_MARKERS, "", check_hidden, &l, &err);
    RP_ASSERT(r == 0);
    return l.n;
}

/* O1: once all is well the record names this catalog, and no epoch that the catalog has not
 * seen. */
static int check_owner(const struct inv_world *w, struct rp_buf *out)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(4096);
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 16);
    RP_CLEANUP(rp_json_decrefp) json_t *record = NULL;
    struct rp_sink sink = { .write = bytes_take, .ctx = &text };
    struct rp_identity identity;
    struct rp_meta meta;
    struct rp_error err = { 0 };
    int64_t epoch = 0;
    int r = rp_backend_get(w->backend, RP_STORE_OWNER, &sink, &arena, &meta, &identity, &err);
    if (r == 0) r = rp_json_parse(rp_buf_text(&text), text.len, &record, &err);
    if (r == 0) r = rp_meta_get(w->catalog->db, "epoch", &epoch, NULL, 0, &err);
    if (r == 0 && strcmp(rp_json_get_text(record, "catalog", ""), w->catalog->id) == 0 &&
        rp_json_get_int(record, "epoch", INT64_MAX) <= epoch)
        return 0;
    rp_buf_fmt(out, "OWNER: the record is missing, another's or ahead: %s\n", r < 0 ? err.text : rp_buf_text(&text));
    return 1;
}

static bool is_litter(const char *folder, const char *name)
{
    const char *tmp = strstr(folder, "/.reprieve/tmp");
    if (strncmp(name, ".reprieve~", 10) == 0) return true;
    return tmp != NULL && strcmp(tmp, "/.reprieve/tmp") == 0 && strcmp(name, "lock") != 0;
}

/* Files that a directory store uses for a moment: none is left when nothing is under way. */
static int check_litter(const char *folder, struct rp_buf *out)
{
    DIR *dir = opendir(folder);
    int n = 0;
    if (dir == NULL) return 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[512];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(path, sizeof path, "%.250s/%.250s", folder, entry->d_name);
        if (is_litter(folder, entry->d_name)) {
            n++;
            rp_buf_fmt(out, "LITTER: %s\n", path);
        }
        if (entry->d_type == DT_DIR) n += check_litter(path, out);
    }
    closedir(dir);
    return n;
}

int inv_check_store(const struct inv_world *w, enum inv_when when, struct rp_buf *out)
{
    int n = check_copies(w, out);
    for (size_t i = 0; i < w->known->n; i++)
        n += check_subject(w, &w->known->subjects[i], when, out);
    if (when == INV_HEALED) n += check_owner(w, out);
    if (when == INV_HEALED && w->root != NULL) n += check_litter(w->root, out);
    return n;
}
