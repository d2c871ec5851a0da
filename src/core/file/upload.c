/* SPDX-License-Identifier: Apache-2.0 */
/* upload.c - the verbs init and confirm. */
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/crashpoint.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mutant.h"
#include "base/time.h"
#include "catalog/audit.h"
#include "catalog/transaction.h"
#include "core/file/transaction.h"
#include "core/file/work.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- init ---- */

struct inits {
    struct rp_tx *tx;
    struct rp_init **all;
    size_t n;
    struct rp_tenant *tenants;
    size_t n_tenants;
    struct rp_txn *txns;
    bool *txn_changed;
    size_t n_txns;
    struct rp_files related; /* parents, sources and what is replaced */
    struct rp_mark *marks;
    struct rp_file *files;
    struct rp_ledger *ledger;
    size_t accepted;
    struct rp_buf text;
};

static int load_related(struct inits *w, struct rp_error *err)
{
    int64_t *ids = rp_arena_array(w->tx->arena, 3 * w->n + 1, sizeof *ids);
    int64_t *txns = rp_arena_array(w->tx->arena, w->n + 1, sizeof *txns);
    size_t n = 0, n_txns = 0;
    if (ids == NULL || txns == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu uploads", w->n);
    for (size_t i = 0; i < w->n; i++) {
        const struct rp_init *c = w->all[i];
        const int64_t related[] = { c->parent_id, c->source_id, c->replaces_id };
        for (size_t k = 0; k < 3; k++)
            if (related[k] != 0) ids[n++] = related[k];
        if (c->txn_id != 0) txns[n_txns++] = c->txn_id;
    }
    int r = rp_files_init(&w->related, n, w->tx->arena, err);
    if (r == 0 && n > 0) r = rp_files_lock(w->tx, ids, n, &w->related, err);
    if (r == 0 && n_txns > 0) r = rp_txns_lock(w->tx, txns, n_txns, w->txns, &w->n_txns, err);
    return r;
}

static int load_tenants(struct inits *w, struct rp_error *err)
{
    int64_t *ids = rp_arena_array(w->tx->arena, w->n + 1, sizeof *ids);
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu uploads", w->n);
    for (size_t i = 0; i < w->n; i++)
        ids[i] = w->all[i]->command.tenant_id;
    return rp_tenants_lock(w->tx, ids, w->n, w->tenants, &w->n_tenants, err);
}

static struct rp_tenant *tenant_of(struct inits *w, int64_t id)
{
    for (size_t i = 0; i < w->n_tenants; i++)
        if (w->tenants[i].id == id) return &w->tenants[i];
    return NULL;
}

/* A file that another may belong to, or take the place of. */
static int check_related(struct inits *w, const struct rp_init *c, int64_t id, const char *what, struct rp_error *err)
{
    if (id == 0) return 0;
    const struct rp_file *f = rp_files_find(&w->related, id);
    if (f == NULL || f->tenant_id != c->command.tenant_id)
        return rp_error_set(err, RP_ENOTFOUND, "%s: there is no such file", what);
    if (f->status == RP_FILE_PENDING || f->status == RP_FILE_SCANNING || f->status == RP_FILE_LIVE) return 0;
    return rp_error_set(err, RP_EOWNERGONE, "%s: that file is %s", what, rp_status_name(f->status));
}

static int check_txn(struct inits *w, const struct rp_init *c, struct rp_txn **out, struct rp_error *err)
{
    struct rp_txn *txn = NULL;
    if (c->txn_id == 0) return c->replaces_id == 0 ? 0 : rp_error_set(err, RP_EINVAL, "replaces needs a transaction");
    for (size_t i = 0; i < w->n_txns; i++)
        if (w->txns[i].id == c->txn_id && w->txns[i].tenant_id == c->command.tenant_id) txn = &w->txns[i];
    if (txn == NULL) return rp_error_set(err, RP_ENOTFOUND, "there is no such transaction");
    if (txn->state != RP_TXN_OPEN)
        return rp_error_set(err, RP_ENOTOPEN, "the transaction is %s",
                            txn->state == RP_TXN_COMMITTED ? "committed" : "aborted");
    if (txn->ends_at_ms <= w->tx->late_ms) return rp_error_set(err, RP_EEXPIRED, "the transaction's time is over");
    if (txn->members >= RP_TXN_MEMBERS_MAX)
        return rp_error_set(err, RP_ETOOBIG, "a transaction has at most %d files", RP_TXN_MEMBERS_MAX);
    *out = txn;
    return 0;
}

static int check_quota(struct rp_init *c, const struct rp_tenant *tenant, struct rp_error *err)
{
    int64_t limit = tenant->has_limit ? tenant->limit_bytes : c->rules->quota_default_bytes;
    int64_t taken = tenant->used_bytes + (RP_MUTANT(RESERVED_NOT_COUNTED) ? 0 : tenant->reserved_bytes);
    c->tenant = *tenant;
    c->tenant.limit_bytes = limit;
    if (c->size_bytes <= limit - taken) return 0;
    rp_error_set(err, RP_EQUOTA, "%" PRId64 " bytes do not fit: %" PRId64 " of %" PRId64 " are used or reserved",
                 c->size_bytes, taken, limit);
    return rp_error_hint(err, "delete files, wait for their purge, or have the quota raised");
}

static int decide_init(struct inits *w, struct rp_init *c, struct rp_tenant *tenant, struct rp_txn **txn,
                       struct rp_error *err)
{
    if (tenant == NULL) return rp_error_set(err, RP_ENOTFOUND, "there is no such tenant");
    if (c->store->config->mode == RP_MODE_OBSERVE)
        return rp_error_set(err, RP_EOBSERVE, "store '%s' is in mode observe: nothing is written to it",
                            c->store->config->name);
    if (c->size_bytes < 0 || c->size_bytes > c->rules->max_size_bytes)
        return rp_error_set(err, RP_ETOOBIG, "an upload has at most %" PRId64 " bytes", c->rules->max_size_bytes);
    int r = check_txn(w, c, txn, err);
    if (r == 0) r = check_related(w, c, c->parent_id, "parent", err);
    if (r == 0) r = check_related(w, c, c->source_id, "source", err);
    if (r == 0) r = check_related(w, c, c->replaces_id, "replaces", err);
    if (r == 0 && c->replaces_id != 0 && rp_files_find(&w->related, c->replaces_id)->txn_id == c->txn_id)
        r = rp_error_set(err, RP_EINVAL, "replaces: that file is of the same transaction");
    if (r == 0 && tenant->open_uploads >= c->rules->max_open_per_tenant)
        r = rp_error_set(err, RP_EOPEN, "%" PRId64 " uploads are open already", tenant->open_uploads);
    return r < 0 ? r : check_quota(c, tenant, err);
}

static struct rp_mark birth_mark(const struct inits *w, const struct rp_init *c)
{
    return (struct rp_mark){ .id = c->mark_id,
                             .store_id = c->store->id,
                             .key = c->key,
                             .state = RP_MARKED,
                             .due_at_ms = c->due_at_ms,
                             .marked_at_ms = w->tx->late_ms,
                             .tenant_id = c->command.tenant_id,
                             .etag = "",
                             .version = "",
                             .size_bytes = c->size_bytes,
                             .reason = c->txn_id != 0 ? RP_REASON_ROLLBACK : RP_REASON_ABANDONED,
                             .actor = c->command.actor,
                             .file_id = c->file_id };
}

static struct rp_file birth_file(const struct inits *w, const struct rp_init *c, const char *process_key)
{
    return (struct rp_file){ .id = c->file_id,
                             .tenant_id = c->command.tenant_id,
                             .name = c->name,
                             .store_id = c->store->id,
                             .key = c->key,
                             .status = RP_FILE_PENDING,
                             .was = RP_FILE_PENDING,
                             .size_bytes = c->size_bytes,
                             .content_type = c->content_type,
                             .checksum = c->checksum,
                             .etag = "",
                             .version = "",
                             .mark_id = c->mark_id,
                             .parent_id = c->parent_id,
                             .source_id = c->source_id,
                             .txn_id = c->txn_id,
                             .replaces_id = c->replaces_id,
                             .url_ends_at_ms = c->url_ends_at_ms,
                             .process_key = process_key,
                             .metadata = c->metadata,
                             .created_at_ms = w->tx->late_ms,
                             .changed_at_ms = w->tx->late_ms };
}

static int audit_init(struct inits *w, const struct rp_init *c, struct rp_error *err)
{
    char file[RP_ID_TEXT], mark[RP_ID_TEXT], due[RP_TIME_TEXT];
    struct rp_buf *b = &w->text;
    rp_buf_clear(b);
    rp_buf_fmt(b, "{\"file\":\"%s\",\"name\":", rp_id_format(RP_ID_FILE, c->file_id, file));
    rp_json_quote(b, c->name);
    rp_buf_fmt(b, ",\"status\":\"pending\",\"store\":\"%s\",\"key\":", c->store->config->name);
    rp_json_quote(b, c->key);
    rp_buf_fmt(b, ",\"size\":%" PRId64 ",\"mark\":\"%s\",\"due_at\":\"%s\",\"reason\":\"%s\"}", c->size_bytes,
               rp_id_format(RP_ID_MARK, c->mark_id, mark), rp_time_format(c->due_at_ms, due),
               c->txn_id != 0 ? RP_REASON_ROLLBACK : RP_REASON_ABANDONED);
    struct rp_audit_entry entry = { .event = "file.pending",
                                    .actor = c->command.actor,
                                    .mark_id = c->mark_id,
                                    .tenant_id = c->command.tenant_id,
                                    .text = rp_arena_copy(w->tx->arena, b->data, b->len) };
    if (b->failed < 0 || entry.text == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for an upload");
    return rp_tx_audit(w->tx, &entry, err);
}

static int accept_init(struct inits *w, struct rp_init *c, struct rp_tenant *tenant, struct rp_txn *txn,
                       struct rp_error *err)
{
    char id[RP_ID_TEXT];
    const char *process_key = NULL;
    int64_t now = w->tx->late_ms;
    c->file_id = rp_tx_new_id(w->tx);
    c->mark_id = rp_tx_new_id(w->tx);
    c->created_at_ms = now;
    c->url_ends_at_ms = now + c->rules->expire_ms;
    c->due_at_ms = c->url_ends_at_ms;
    if (txn != NULL) {
        if (txn->ends_at_ms < c->url_ends_at_ms) c->url_ends_at_ms = txn->ends_at_ms;
        c->due_at_ms = txn->ends_at_ms + c->rules->rollback_grace_ms;
        txn->members++;
        w->txn_changed[txn - w->txns] = true;
    }
    snprintf(c->key, sizeof c->key, "%s/%s", tenant->name, rp_id_format(RP_ID_FILE, c->file_id, id));
    if (c->rules->scan) process_key = strchr(c->key, '/') + 1;
    w->marks[w->accepted] = birth_mark(w, c);
    w->files[w->accepted] = birth_file(w, c, process_key);
    w->ledger[w->accepted++] = (struct rp_ledger){
        .file_id = c->file_id, .tenant_id = tenant->id, .bytes = c->size_bytes, .kind = RP_LEDGER_RESERVE
    };
    tenant->reserved_bytes += c->size_bytes;
    tenant->open_uploads++;
    rp_tx_tally(w->tx, c->store->id, RP_MARKED, 1, c->size_bytes);
    return audit_init(w, c, err);
}

static int save_txns(struct inits *w, struct rp_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_txns; i++) {
        if (!w->txn_changed[i]) continue;
        w->txns[i].changed_at_ms = w->tx->late_ms;
        w->txns[n++] = w->txns[i];
    }
    return n > 0 ? rp_txns_save(w->tx, w->txns, n, err) : 0;
}

static int apply_inits(struct inits *w, struct rp_error *err)
{
    int r = rp_marks_add(w->tx, w->marks, w->accepted, err);
    if (r == 0) r = rp_files_add(w->tx, w->files, w->accepted, err);
    if (r == 0) r = save_txns(w, err);
    return r < 0 ? r : rp_ledger_add(w->tx, w->ledger, w->accepted, err);
}

static void inits_done(struct inits *w)
{
    rp_buf_done(&w->text);
}

static int run_init(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    struct rp_arena *a = tx->arena;
    RP_CLEANUP(inits_done) struct inits w = { .tx = tx, .n = n, .text = RP_BUF(16384) };
    w.all = (struct rp_init **)(uintptr_t)commands; /* the command is the first member of each */
    w.tenants = rp_arena_array(a, n, sizeof *w.tenants);
    w.txns = rp_arena_array(a, n, sizeof *w.txns);
    w.txn_changed = rp_arena_array(a, n, sizeof *w.txn_changed);
    w.marks = rp_arena_array(a, n, sizeof *w.marks);
    w.files = rp_arena_array(a, n, sizeof *w.files);
    w.ledger = rp_arena_array(a, n, sizeof *w.ledger);
    if (w.tenants == NULL || w.txns == NULL || w.txn_changed == NULL || w.marks == NULL || w.files == NULL ||
        w.ledger == NULL)
        return rp_error_set(err, RP_ENOMEM, "no memory for %zu uploads", n);
    int r = load_related(&w, err);
    if (r == 0) r = load_tenants(&w, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        struct rp_init *c = w.all[i];
        struct rp_tenant *tenant = tenant_of(&w, c->command.tenant_id);
        struct rp_txn *txn = NULL;
        if (decide_init(&w, c, tenant, &txn, &c->command.error) == 0) r = accept_init(&w, c, tenant, txn, err);
    }
    return r < 0 ? r : apply_inits(&w, err);
}

_Static_assert(offsetof(struct rp_init, command) == 0, "a command is the first member");
const struct rp_verb rp_verb_init = { .name = "init", .run = run_init };

/* ---- confirm ---- */

/* What was seen of the object is what was promised? */
int rp_seen_check(const struct rp_seen *seen, const struct rp_file *file, struct rp_error *err)
{
    if (seen->outcome == RP_OUT_GONE) {
        rp_error_set(err, RP_ENOTUPLOADED, "'%s' was not uploaded yet", file->name);
        return rp_error_hint(err, "PUT the bytes to upload.url first, then confirm");
    }
    if (seen->outcome != RP_OUT_FOUND)
        return rp_error_set(err, RP_EUNAVAILABLE, "the store could not be asked: %s", seen->note);
    if (seen->identity.size_bytes != file->size_bytes)
        return rp_error_set(err, RP_ESIZE, "%" PRId64 " bytes were promised, the store has %" PRId64, file->size_bytes,
                            seen->identity.size_bytes);
    if (file->checksum != NULL && !seen->checked)
        return rp_error_set(err, RP_EUNAVAILABLE, "the bytes of '%s' were not read, so nothing says what they are",
                            file->name);
    if (seen->checked && !seen->checksum_fits)
        return rp_error_set(err, RP_ECHECKSUM, "the bytes of '%s' have another SHA-256 than promised", file->name);
    return 0;
}

static int decide_confirm(const struct rp_file_command *c, const struct rp_file_slot *slot, struct rp_error *err)
{
    const struct rp_file *f = slot != NULL ? &slot->file : NULL;
    if (f == NULL || (c->command.tenant_id != 0 && f->tenant_id != c->command.tenant_id))
        return rp_error_set(err, RP_ENOTFOUND, "there is no such file");
    if (f->status == RP_FILE_LIVE || f->status == RP_FILE_SCANNING) return 0; /* confirmed before */
    if (f->status == RP_FILE_EXPIRED) return rp_error_set(err, RP_EEXPIRED, "the upload was not confirmed in time");
    if (f->status != RP_FILE_PENDING)
        return rp_error_set(err, RP_ENOTPENDING, "the file is %s", rp_status_name(f->status));
    if (f->txn_id != 0) {
        rp_error_set(err, RP_EINTXN, "the file belongs to a transaction");
        return rp_error_hint(err, "commit the transaction: it confirms all of its files at once");
    }
    if (slot->mark == NULL || (slot->mark->state != RP_MARKED && !RP_MUTANT(CONFIRM_AFTER_CLAIM)))
        return rp_error_set(err, RP_EEXPIRED, "the upload was not confirmed in time");
    struct rp_file promised = *f;
    if (c->checksum != NULL) promised.checksum = c->checksum;
    return RP_MUTANT(CONFIRM_UNSEEN) ? 0 : rp_seen_check(&c->seen, &promised, err);
}

int rp_file_take_seen(struct rp_file_work *work, struct rp_file_slot *slot, const struct rp_seen *seen,
                      struct rp_error *err)
{
    struct rp_file *f = &slot->file;
    const char *etag = rp_arena_strdup(work->tx->arena, seen->identity.etag);
    const char *version = rp_arena_strdup(work->tx->arena, seen->identity.version);
    if (etag == NULL || version == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a file");
    f->etag = etag;
    f->version = version;
    f->modified_ms = seen->identity.modified_ms;
    return 0;
}

int rp_file_check_holder(struct rp_file_work *work, const struct rp_file_slot *slot, struct rp_error *err)
{
    const struct rp_file_slot *holder = rp_file_work_holder(work, slot->file.tenant_id, slot->file.name);
    if (holder == NULL) return 0;
    rp_file_work_tag(work, holder->file.id);
    if (slot->under != holder->file.id) return 0;
    return rp_error_set(err, RP_ENAMETAKEN, "'%s' is the name of a file that it belongs to: it cannot replace it",
                        slot->file.name);
}

/* The file under the same name goes, in the same transaction (F3). */
int rp_file_replace_holder(struct rp_file_work *work, const struct rp_file_slot *slot, const struct rp_store *store,
                           const char *actor, struct rp_error *err)
{
    struct rp_file_slot *holder = rp_file_work_holder(work, slot->file.tenant_id, slot->file.name);
    if (holder == NULL) return 0;
    RP_ASSERT(holder != slot); /* a pending file holds no name */
    struct rp_mark_make make = { .due_at_ms = work->tx->late_ms + store->config->grace_ms,
                                 .reason = RP_REASON_REPLACED,
                                 .actor = actor };
    return rp_file_work_delete(work, holder, store->config->name, &make, err);
}

int rp_file_go_live(struct rp_file_work *work, struct rp_file_slot *slot, const struct rp_store *store,
                    const struct rp_upload_rules *rules, const char *actor, struct rp_error *err)
{
    int r = rp_file_replace_holder(work, slot, store, actor, err);
    if (r < 0) return r;
    bool scan = rules->scan && slot->file.process_key != NULL;
    r = rp_file_work_reprieve(work, slot, RP_END_CONFIRMED, err);
    if (r < 0) return r;
    rp_file_work_change(work, slot, scan ? RP_FILE_SCANNING : RP_FILE_LIVE);
    rp_file_work_ledger(work, &slot->file, RP_LEDGER_USE, false);
    return rp_file_work_audit(work, "file.uploaded", actor, store->config->name, slot, "", err);
}

static int confirm_one(struct rp_file_work *work, struct rp_file_command *c, struct rp_error *err)
{
    struct rp_file_slot *slot = rp_file_work_find(work, c->file_id);
    int r = 0;
    c->changed = false;
    if (decide_confirm(c, slot, &c->command.error) < 0) return 0;
    if (slot->file.status == RP_FILE_PENDING) {
        const struct rp_store *store = rp_store_of_file(c->stores, c->n_stores, &slot->file);
        if (store == NULL) {
            rp_error_set(&c->command.error, RP_ECONFIG, "the file's store is not configured any more");
            return 0;
        }
        if (rp_file_check_owners(work, &slot->file, &c->command.error) < 0) return 0;
        if (rp_file_check_holder(work, slot, &c->command.error) < 0) return 0;
        c->changed = true;
        r = rp_file_take_seen(work, slot, &c->seen, err);
        if (c->checksum != NULL) slot->file.checksum = c->checksum;
        if (r == 0) r = rp_file_go_live(work, slot, store, c->rules, c->command.actor, err);
    }
    return r < 0 ? r : rp_file_work_answer(slot, c->arena, &c->answer, err);
}

static int load_holders(struct rp_file_work *work, struct rp_error *err)
{
    int64_t *tenants = rp_arena_array(work->tx->arena, work->n + 1, sizeof *tenants);
    const char **names = rp_arena_array(work->tx->arena, work->n + 1, sizeof *names);
    size_t n = 0;
    if (tenants == NULL || names == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", work->n);
    for (size_t i = 0; i < work->n; i++) {
        if (work->slots[i].file.status != RP_FILE_PENDING) continue;
        tenants[n] = work->slots[i].file.tenant_id;
        names[n++] = work->slots[i].file.name;
    }
    return n > 0 ? rp_file_work_living(work, tenants, names, n, err) : 0;
}

/* Those that were refused because what they belong to came later in the same round. */
static int confirm_rest(struct rp_file_work *work, struct rp_command *const *commands, size_t n, bool *again,
                        struct rp_error *err)
{
    int r = 0;
    *again = false;
    for (size_t i = 0; i < n && r == 0; i++) {
        if (commands[i]->error.code != RP_ENOTLIVE) continue;
        rp_error_clear(&commands[i]->error);
        r = confirm_one(work, (struct rp_file_command *)commands[i], err);
        *again |= commands[i]->error.code == 0;
    }
    return r;
}

static int run_confirm(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    RP_CLEANUP(rp_file_work_done) struct rp_file_work work = { 0 };
    int64_t *ids = rp_arena_array(tx->arena, n, sizeof *ids);
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu confirms", n);
    for (size_t i = 0; i < n; i++)
        ids[i] = ((struct rp_file_command *)commands[i])->file_id;
    int r = rp_file_work_load(&work, tx, ids, n, RP_LOAD_MARKS, 3 * n + RP_FILE_FAMILY_MAX, err);
    if (r == 0) r = rp_file_work_owners(&work, RP_FILE_PENDING, err);
    if (r == 0) r = load_holders(&work, err);
    for (size_t i = 0; i < n && r == 0; i++)
        r = confirm_one(&work, (struct rp_file_command *)commands[i], err);
    for (bool again = n > 1; again && r == 0;)
        r = confirm_rest(&work, commands, n, &again, err);
    return r < 0 ? r : rp_file_work_save(&work, err);
}

_Static_assert(offsetof(struct rp_file_command, command) == 0, "a command is the first member");
const struct rp_verb rp_verb_confirm = { .name = "confirm", .run = run_confirm };
