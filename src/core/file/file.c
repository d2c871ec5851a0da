/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - statuses, looking at a file's object, and how a file looks. */
#include "core/file/file.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/json.h"
#include "base/time.h"
#include "core/owner/refuse.h"
#include "core/state.h"
#include "core/subject/quarantine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TO(status) (1U << (status))

const char *const rp_status_names[RP_STATUSES] = { [RP_FILE_PENDING - 1] = "pending",
                                                   [RP_FILE_SCANNING - 1] = "scanning",
                                                   [RP_FILE_LIVE - 1] = "live",
                                                   [RP_FILE_DELETED - 1] = "deleted",
                                                   [RP_FILE_PURGED - 1] = "purged",
                                                   [RP_FILE_EXPIRED - 1] = "expired",
                                                   NULL };

static const unsigned moves[RP_STATUSES] = {
    [RP_FILE_PENDING] = TO(RP_FILE_SCANNING) | TO(RP_FILE_LIVE) | TO(RP_FILE_DELETED) | TO(RP_FILE_EXPIRED),
    [RP_FILE_SCANNING] = TO(RP_FILE_LIVE) | TO(RP_FILE_DELETED) | TO(RP_FILE_PURGED),
    [RP_FILE_LIVE] = TO(RP_FILE_DELETED) | TO(RP_FILE_PURGED),
    [RP_FILE_DELETED] = TO(RP_FILE_LIVE) | TO(RP_FILE_SCANNING) | TO(RP_FILE_PURGED),
};

const char *rp_status_name(enum rp_status status)
{
    RP_ASSERT(status >= RP_FILE_PENDING && status < RP_STATUSES);
    return rp_status_names[status - 1];
}

bool rp_status_parse(const char *name, enum rp_status *out)
{
    for (int s = RP_FILE_PENDING; s < RP_STATUSES; s++) {
        if (strcmp(rp_status_names[s - 1], name) != 0) continue;
        *out = (enum rp_status)s;
        return true;
    }
    return false;
}

bool rp_status_may_move(enum rp_status from, enum rp_status to)
{
    return (moves[from] & TO(to)) != 0;
}

bool rp_status_lives(enum rp_status status)
{
    return status == RP_FILE_LIVE || status == RP_FILE_SCANNING;
}

const struct rp_store *rp_store_of_file(struct rp_store *const *stores, size_t n, const struct rp_file *file)
{
    for (size_t i = 0; i < n; i++)
        if (stores[i]->id == file->store_id) return stores[i];
    return NULL;
}

/* ---- looking at the object ---- */

static int hash_bytes(void *ctx, const void *from, size_t n, struct rp_error *err)
{
    (void)err;
    rp_digest_add(ctx, from, n);
    return 0;
}

/* The checksum is never taken on trust: the bytes are read. */
static int check_bytes(const struct rp_file *file, const struct rp_store *store, const uint8_t *wanted,
                       struct rp_seen *out, struct rp_error *err)
{
    RP_CLEANUP(rp_digest_freep) struct rp_digest *digest = rp_digest_new();
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA((size_t)64 << 10);
    uint8_t found[RP_DIGEST_BYTES];
    struct rp_meta meta;
    struct rp_identity read;
    if (digest == NULL) return rp_error_set(err, RP_ENOMEM, "no memory to read an object");
    struct rp_sink sink = { .write = hash_bytes, .ctx = digest };
    rp_digest_begin(digest);
    int r = rp_backend_get(store->backend, file->key, &sink, &arena, &meta, &read, err);
    if (r == RP_ENOTFOUND || (r == 0 && !rp_identity_equal(&read, &out->identity))) {
        out->outcome = RP_OUT_UNKNOWN;
        snprintf(out->note, sizeof out->note, "the object changed while it was read");
        return 0;
    }
    if (r < 0) return r;
    rp_digest_end(digest, found);
    out->checked = true;
    out->checksum_fits = memcmp(found, wanted, sizeof found) == 0;
    return 0;
}

/* What the store said of the object; with a checksum that was promised, here or at init, the bytes
 * are read. */
static int see_item(const struct rp_file *file, const struct rp_store *store, const struct rp_item *item,
                    const uint8_t *checksum, struct rp_seen *out, struct rp_error *err)
{
    out->outcome = item->outcome;
    out->identity = item->identity;
    snprintf(out->note, sizeof out->note, "%s", item->note);
    const uint8_t *wanted = checksum != NULL ? checksum : file->checksum;
    if (item->outcome != RP_OUT_FOUND || wanted == NULL || item->identity.size_bytes != file->size_bytes) return 0;
    if (checksum != NULL && file->checksum != NULL && memcmp(checksum, file->checksum, RP_DIGEST_BYTES) != 0) {
        out->checked = true; /* two promises that cannot both hold */
        return 0;
    }
    int r = check_bytes(file, store, wanted, out, err);
    return r < 0 ? rp_error_wrap(err, r, "read '%s' of store '%s'", file->key, store->config->name) : 0;
}

/* With room for one more: whose store it is that answers is asked together with them (raise.h,
 * R7). */
static int stat_items(const struct rp_store *store, struct rp_item *items, size_t n, struct rp_error *err)
{
    if (store == NULL) return rp_error_set(err, RP_EUNAVAILABLE, "its store is not configured any more");
    if (store->backend == NULL) {
        *err = store->closed;
        return store->closed.code;
    }
    int r = rp_owner_refuse_bytes(store, err);
    if (r < 0) return r;
    items[n] = (struct rp_item){ .key = RP_STORE_OWNER };
    r = rp_backend_stat(store->backend, items, store->raises != NULL ? n + 1 : n, err);
    if (r < 0) return rp_error_wrap(err, r, "look at store '%s'", store->config->name);
    return rp_owner_refuse_gone(store, items[n].outcome, err);
}

int rp_file_see(const struct rp_file *file, const struct rp_store *store, const uint8_t *checksum, struct rp_seen *out,
                struct rp_error *err)
{
    struct rp_item items[2] = { { .key = file->key } };
    *out = (struct rp_seen){ .file_id = file->id };
    int r = stat_items(store, items, 1, err);
    return r < 0 ? r : see_item(file, store, &items[0], checksum, out, err);
}

static void note_failure(const struct rp_file *file, const struct rp_error *why, struct rp_seen *out)
{
    *out = (struct rp_seen){ .file_id = file->id, .outcome = RP_OUT_RETRY };
    snprintf(out->note, sizeof out->note, "%.*s", (int)sizeof out->note - 1, why->text);
}

void rp_file_see_or_note(const struct rp_file *file, const struct rp_store *store, const uint8_t *checksum,
                         struct rp_seen *out)
{
    struct rp_error why = { 0 };
    if (rp_file_see(file, store, checksum, out, &why) < 0) note_failure(file, &why, out);
}

/* All of one store. */
static void see_together(const struct rp_file *const *files, size_t n, const struct rp_store *store,
                         struct rp_item *items, struct rp_seen *out)
{
    struct rp_error why = { 0 };
    for (size_t i = 0; i < n; i++)
        items[i] = (struct rp_item){ .key = files[i]->key };
    int all = stat_items(store, items, n, &why);
    for (size_t i = 0; i < n; i++) {
        out[i] = (struct rp_seen){ .file_id = files[i]->id };
        int r = all < 0 ? all : see_item(files[i], store, &items[i], NULL, &out[i], &why);
        if (r < 0) note_failure(files[i], &why, &out[i]);
    }
}

int rp_files_see(const struct rp_files *files, struct rp_store *const *stores, size_t n_stores, struct rp_seen *out,
                 size_t *n, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct rp_item *items = calloc(files->n + 1, sizeof *items);
    RP_CLEANUP(rp_freep) const struct rp_file **these = calloc(files->n + 1, sizeof *these);
    RP_CLEANUP(rp_freep) bool *taken = calloc(files->n + 1, sizeof *taken);
    *n = 0;
    if (items == NULL || these == NULL || taken == NULL)
        return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", files->n);
    for (size_t i = 0; i < files->n; i++) {
        size_t together = 0;
        for (size_t k = i; k < files->n; k++) {
            const struct rp_file *file = &files->at[k];
            if (taken[k] || file->status != RP_FILE_PENDING || file->store_id != files->at[i].store_id) continue;
            taken[k] = true;
            these[together++] = file;
        }
        if (together == 0) continue;
        see_together(these, together, rp_store_of_file(stores, n_stores, these[0]), items, out + *n);
        *n += together;
    }
    return 0;
}

int rp_file_mark(struct rp_db *db, int64_t file_id, struct rp_arena *arena, struct rp_mark *out, struct rp_error *err)
{
    struct rp_file file;
    enum rp_id_kind kind;
    int64_t id;
    int r = rp_file_get(db, file_id, arena, &file, err);
    if (r == 0) r = rp_mark_get(db, file.mark_id, arena, out, err);
    if (r == 0 && rp_quarantine_is(out->key) && rp_id_parse(out->key + strlen(RP_STORE_QUARANTINE), &kind, &id))
        r = rp_mark_get(db, id, arena, out, err);
    return r;
}

/* ---- how a file looks ---- */

void rp_file_answer_of(const struct rp_file *file, const struct rp_mark *mark, struct rp_file_answer *out)
{
    *out = (struct rp_file_answer){ .file = *file };
    if (mark == NULL || mark->state == RP_REPRIEVED) return;
    out->mark_id = mark->id;
    out->due_at_ms = mark->due_at_ms;
    out->marked_at_ms = mark->marked_at_ms;
    out->asked_now = mark->state == RP_MARKED && rp_mark_is_asked_now(mark);
    snprintf(out->mark_reason, sizeof out->mark_reason, "%s", mark->reason);
}

static void set_id(json_t *o, const char *name, enum rp_id_kind kind, int64_t id)
{
    char text[RP_ID_TEXT];
    if (id != 0) rp_json_set(o, name, json_string(rp_id_format(kind, id, text)));
}

static json_t *mark_of(const struct rp_file_answer *a)
{
    json_t *o = json_object();
    set_id(o, "id", RP_ID_MARK, a->mark_id);
    rp_json_set(o, "reason", rp_json_text(a->mark_reason));
    rp_json_set(o, "marked_at", rp_json_time(a->marked_at_ms));
    rp_json_set(o, "due_at", rp_json_time(a->due_at_ms));
    if (a->asked_now) rp_json_set(o, "restorable", json_false());
    return o;
}

/* Somebody may have edited it into something else: shown as it stands, then. */
static json_t *metadata_json(const char *text)
{
    json_t *value = NULL;
    int r = rp_json_parse(text, strlen(text), &value, NULL);
    return r == 0 || r == RP_ENOMEM ? value : rp_json_text(text);
}

json_t *rp_file_json(const struct rp_file_answer *a, const char *store)
{
    const struct rp_file *f = &a->file;
    char hex[RP_DIGEST_HEX];
    json_t *o = json_object();
    set_id(o, "id", RP_ID_FILE, f->id);
    rp_json_set(o, "status", json_string(rp_status_name(f->status)));
    rp_json_set(o, "name", rp_json_text(f->name));
    rp_json_set(o, "store", rp_json_text(store));
    rp_json_set(o, "key", rp_json_text(f->key));
    rp_json_set(o, "size", json_integer(f->size_bytes));
    rp_json_set(o, "content_type", rp_json_text(f->content_type));
    if (f->checksum != NULL) {
        rp_digest_hex(f->checksum, hex);
        rp_json_set(o, "checksum_sha256", json_string(hex));
    }
    if (f->etag[0] != 0) rp_json_set(o, "etag", rp_json_text(f->etag));
    set_id(o, "parent", RP_ID_FILE, f->parent_id);
    set_id(o, "source", RP_ID_FILE, f->source_id);
    set_id(o, "transaction", RP_ID_TRANSACTION, f->txn_id);
    set_id(o, "replaces", RP_ID_FILE, f->replaces_id);
    if (f->status == RP_FILE_SCANNING && f->process_key != NULL)
        rp_json_set(o, "processing", json_pack("{s:s}", "idempotency_key", f->process_key));
    if (f->metadata != NULL) rp_json_set(o, "metadata", metadata_json(f->metadata));
    rp_json_set(o, "created_at", rp_json_time(f->created_at_ms));
    rp_json_set(o, "changed_at", rp_json_time(f->changed_at_ms));
    if (f->confirmed_at_ms != 0) rp_json_set(o, "confirmed_at", rp_json_time(f->confirmed_at_ms));
    if (f->deleted_at_ms != 0) rp_json_set(o, "deleted_at", rp_json_time(f->deleted_at_ms));
    if (f->status == RP_FILE_PURGED || f->status == RP_FILE_EXPIRED)
        rp_json_set(o, "ended_at", rp_json_time(f->changed_at_ms));
    if (a->mark_id != 0) rp_json_set(o, "mark", mark_of(a));
    return o;
}
