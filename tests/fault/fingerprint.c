/* SPDX-License-Identifier: Apache-2.0 */
#include "fault/trial.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "lib/bytes.h"
#include "lib/stores.h"

#include <string.h>

/* What is left out is random (the catalog's id) or said twice (the audit rows: the lane's head is
 * their digest). */
static const char rows[] =
    "SELECT 'mark ' || id || ' ' || key || ' ' || COALESCE(active, '-') || ' ' || state || ' ' || was || ' ' || "
    "COALESCE(next_at, '-') || ' ' || due_at || ' ' || fence || ' ' || attempts || ' ' || checks || ' ' || "
    "CASE WHEN file_id IS NULL THEN etag ELSE etag = '' END || ' ' || COALESCE(file_id, '-') || ' ' || "
    "annotated || ' ' || outcome || ' ' || COALESCE(lease_by, '-') || ' ' || COALESCE(note, '-') FROM mark UNION ALL "
    "SELECT 'lane ' || lane || ' ' || seq || ' ' || last_id || ' ' || heads_at FROM lane UNION ALL "
    "SELECT 'audit ' || seq || ' ' || at || ' ' || event || ' ' || COALESCE(mark_id, '-') FROM audit UNION ALL "
    "SELECT 'tally ' || store_id || ' ' || state || ' ' || marks || ' ' || bytes FROM tally UNION ALL "
    "SELECT 'hold ' || id || ' ' || COALESCE(key, '-') || ' ' || COALESCE(lifted_at, '-') FROM hold UNION ALL "
    "SELECT 'lock ' || name || ' ' || locked_at || ' ' || fence || ' ' || COALESCE(run_id, '-') FROM run_lock UNION "
    "ALL "
    "SELECT 'run ' || id || ' ' || fence || ' ' || figures || ' ' || COALESCE(open, '-') FROM run UNION ALL "
    "SELECT 'record ' || run_id || ' ' || outcome || ' ' || body FROM run_record UNION ALL "
    "SELECT 'letter ' || id || ' ' || mark_id || ' ' || COALESCE(open, '-') || COALESCE(ended_as, '-') FROM "
    "dead_letter "
    "UNION ALL SELECT 'meta ' || name || ' ' || number FROM meta UNION ALL "
    "SELECT 'file ' || id || ' ' || name || ' ' || status || ' ' || was || ' ' || COALESCE(live_name, '-') || ' ' || "
    "mark_id || ' ' || (etag = '') || ' ' || COALESCE(deleted_with, '-') || ' ' || url_ends_at FROM file UNION ALL "
    "SELECT 'ledger ' || file_id || ' ' || kind || ' ' || bytes FROM ledger UNION ALL "
    "SELECT 'tenant ' || id || ' ' || used_bytes || ' ' || reserved_bytes || ' ' || open_uploads FROM tenant UNION ALL "
    "SELECT 'txn ' || id || ' ' || state || ' ' || members || ' ' || ends_at FROM txn UNION ALL "
    "SELECT 'kept ' || key || ' ' || status || ' ' || answer FROM idempotency UNION ALL "
    "SELECT 'store ' || id || ' ' || COALESCE(owned_at, '-') FROM store";

struct objects {
    struct trial *t;
    struct rp_buf *out;
};

/* An identity counts only as "that of the upload" or "another one". */
static bool is_upload(const struct trial *t, const struct rp_identity *identity)
{
    for (size_t i = 0; i < t->shared->known.n; i++)
        if (strcmp(t->shared->known.subjects[i].etag, identity->etag) == 0) return true;
    for (size_t i = 0; i < t->shared->known.n_files; i++)
        if (strcmp(t->shared->known.files[i].etag, identity->etag) == 0) return true;
    return false;
}

static void forget(char *text, const char *word)
{
    char *at = strstr(text, word);
    if (at != NULL) memset(at, '?', strlen(word));
}

/* Drawn anew at every raise of the epoch. */
static void forget_stamp(char *text)
{
    static const char before[] = "\"stamp\":\"";
    char *at = strstr(text, before);
    if (at == NULL) return;
    for (at += strlen(before); *at != '\0' && *at != '"'; at++)
        *at = '?';
}

static void add_object(struct objects *o, const char *key)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf bytes = RP_BUF(1 << 16);
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 16);
    struct rp_sink sink = { .write = bytes_take, .ctx = &bytes };
    struct rp_meta meta = { 0 };
    struct rp_identity identity;
    struct rp_error err = { 0 };
    int r = rp_backend_get(o->t->bare, key, &sink, &arena, &meta, &identity, &err);
    if (r == RP_ENOTFOUND) return;
    RP_ASSERT(r == 0);
    if (strncmp(key, HIDING_MARKERS, strlen(HIDING_MARKERS)) == 0) rp_buf_clear(&bytes); /* an etag */
    if (bytes.len > 0) forget(bytes.data, o->t->world.catalog->id);
    if (bytes.len > 0 && strcmp(key, RP_STORE_OWNER) == 0) forget_stamp(bytes.data);
    rp_buf_fmt(o->out, "object %s %d %s", key, is_upload(o->t, &identity), rp_buf_text(&bytes));
    for (size_t i = 0; i < meta.n_user; i++)
        rp_buf_fmt(o->out, " %s=%s", meta.user[i].name, meta.user[i].value);
    rp_buf_char(o->out, '\n');
}

static int add_entry(void *ctx, const struct rp_entry *entry, struct rp_error *err)
{
    (void)err;
    add_object(ctx, entry->key);
    return 0;
}

void trial_fingerprint(struct trial *t, char out[RP_DIGEST_HEX])
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(1 << 20);
    struct inv_known known = t->shared->known;
    struct objects o = { .t = t, .out = &text };
    struct rp_error err = { 0 };
    uint8_t digest[RP_DIGEST_BYTES];
    inv_ask(&t->world, "", rows, &text);
    int r = rp_backend_list(t->bare, "", "", add_entry, &o, &err);
    if (r == 0) r = rp_backend_list(t->bare, RP_STORE_QUARANTINE, "", add_entry, &o, &err);
    if (r == 0) r = rp_backend_list(t->bare, HIDING_MARKERS, "", add_entry, &o, &err);
    RP_ASSERT(r == 0);
    add_object(&o, RP_STORE_OWNER);
    rp_buf_fmt(&text, "step %d %s %s", t->shared->step, t->shared->trouble, t->shared->deny);
    known.removes = 0;
    for (size_t i = 0; i < known.n_files; i++)
        memset(known.files[i].etag, 0, sizeof known.files[i].etag); /* of a PUT: another one every time */
    rp_buf_add(&text, &known, sizeof known);
    RP_ASSERT(text.failed == 0);
    rp_digest_begin(t->world.catalog->digest);
    rp_digest_add(t->world.catalog->digest, text.data, text.len);
    rp_digest_end(t->world.catalog->digest, digest);
    rp_digest_hex(digest, out);
}
