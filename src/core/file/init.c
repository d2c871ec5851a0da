/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - the verb init: a new upload reserves its quota and is born marked (file.h, F1). */
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "core/file/log.h"
#include "core/file/transaction.h"
#include "core/file/work.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct inits {
    struct rp_work work; /* the new files */
    struct rp_init **all;
    size_t n;
    struct rp_tenant *tenants;
    size_t n_tenants;
    struct rp_txn *txns;
    size_t n_txns;
    struct rp_files related; /* parents, sources and what is replaced */
};

/* ---- load ---- */

static int load(struct inits *w, struct rp_tx *tx, struct rp_error *err)
{
    int64_t *tenants = rp_work_room(tx, w->n, sizeof *tenants, err), *txns = rp_work_room(tx, w->n, sizeof *txns, err);
    int64_t *related = rp_work_room(tx, 3 * w->n, sizeof *related, err);
    size_t n_txns = 0, n_related = 0;
    w->tenants = rp_work_room(tx, w->n, sizeof *w->tenants, err);
    w->txns = rp_work_room(tx, w->n, sizeof *w->txns, err);
    if (tenants == NULL || txns == NULL || related == NULL || w->tenants == NULL || w->txns == NULL) return RP_ENOMEM;
    for (size_t i = 0; i < w->n; i++) {
        const struct rp_init *c = w->all[i];
        const int64_t ids[] = { c->parent_id, c->source_id, c->replaces_id };
        for (size_t k = 0; k < 3; k++)
            if (ids[k] != 0) related[n_related++] = ids[k];
        if (c->txn_id != 0) txns[n_txns++] = c->txn_id;
        tenants[i] = c->command.tenant_id;
    }
    int r = rp_files_init(&w->related, n_related, tx->arena, err);
    if (r == 0 && n_related > 0) r = rp_files_lock(tx, related, n_related, &w->related, err);
    if (r == 0 && n_txns > 0) r = rp_txns_lock(tx, txns, n_txns, w->txns, &w->n_txns, err);
    if (r == 0) r = rp_tenants_load(tx, tenants, w->n, w->tenants, &w->n_tenants, err); /* the round has locked them */
    return r < 0 ? r : rp_work_begin(&w->work, tx, w->n, err);
}

static struct rp_tenant *tenant_of(struct inits *w, int64_t id)
{
    for (size_t i = 0; i < w->n_tenants; i++)
        if (w->tenants[i].id == id) return &w->tenants[i];
    return NULL;
}

static struct rp_txn *txn_of(struct inits *w, const struct rp_init *c)
{
    for (size_t i = 0; i < w->n_txns; i++)
        if (w->txns[i].id == c->txn_id && w->txns[i].tenant_id == c->command.tenant_id) return &w->txns[i];
    return NULL;
}

/* ---- decide ---- */

/* A file that another may belong to, or take the place of. */
static int check_related(struct inits *w, const struct rp_init *c, int64_t id, const char *what, struct rp_error *err)
{
    if (id == 0) return 0;
    const struct rp_file *f = rp_files_find(&w->related, id);
    if (f == NULL || f->tenant_id != c->command.tenant_id)
        return rp_error_set(err, RP_ENOTFOUND, "%s: there is no such file", what);
    if (f->status == RP_FILE_PENDING || rp_status_lives(f->status)) return 0;
    return rp_error_set(err, RP_EOWNERGONE, "%s: that file is %s", what, rp_status_name(f->status));
}

static int check_txn(const struct rp_init *c, const struct rp_txn *txn, int64_t now_ms, struct rp_error *err)
{
    if (c->txn_id == 0) return c->replaces_id == 0 ? 0 : rp_error_set(err, RP_EINVAL, "replaces needs a transaction");
    if (txn == NULL) return rp_error_set(err, RP_ENOTFOUND, "there is no such transaction");
    int r = rp_txn_check_open(txn, now_ms, err);
    if (r < 0 || txn->members < RP_TXN_MEMBERS_MAX) return r;
    rp_error_set(err, RP_ETOOBIG, "a transaction has at most %d files", RP_TXN_MEMBERS_MAX);
    return rp_error_hint(err, "commit this one and begin another for the rest");
}

static int check_quota(struct rp_init *c, const struct rp_tenant *tenant, struct rp_error *err)
{
    int64_t limit = tenant->has_limit ? tenant->limit_bytes : c->rules->quota_default_bytes;
    int64_t taken = tenant->used_bytes + tenant->reserved_bytes;
    c->tenant = *tenant;
    c->tenant.limit_bytes = limit;
    if (c->size_bytes <= limit - taken) return 0;
    rp_error_set(err, RP_EQUOTA, "%" PRId64 " bytes do not fit: %" PRId64 " of %" PRId64 " are used or reserved",
                 c->size_bytes, taken, limit);
    return rp_error_hint(err, "delete files, wait for their purge, or have the quota raised");
}

static int decide_init(struct inits *w, struct rp_init *c, const struct rp_tenant *tenant, const struct rp_txn *txn,
                       struct rp_error *err)
{
    if (tenant == NULL) return rp_error_set(err, RP_ENOTFOUND, "there is no such tenant");
    if (c->store->config->mode == RP_MODE_OBSERVE)
        return rp_error_set(err, RP_EOBSERVE, "store '%s' is in mode observe: nothing is written to it",
                            c->store->config->name);
    if (c->size_bytes < 0 || c->size_bytes > c->rules->max_size_bytes) {
        rp_error_set(err, RP_ETOOBIG, "an upload has at most %" PRId64 " bytes", c->rules->max_size_bytes);
        return rp_error_hint(err, "the setting uploads.max_size says how many");
    }
    int r = check_txn(c, txn, w->work.tx->late_ms, err);
    if (r == 0) r = check_related(w, c, c->parent_id, "parent", err);
    if (r == 0) r = check_related(w, c, c->source_id, "source", err);
    if (r == 0) r = check_related(w, c, c->replaces_id, "replaces", err);
    if (r == 0 && c->replaces_id != 0 && rp_files_find(&w->related, c->replaces_id)->txn_id == c->txn_id)
        r = rp_error_set(err, RP_EINVAL, "replaces: that file is of the same transaction");
    if (r == 0 && tenant->open_uploads >= c->rules->max_open_per_tenant)
        r = rp_error_set(err, RP_EOPEN, "%" PRId64 " uploads are open already", tenant->open_uploads);
    return r < 0 ? r : check_quota(c, tenant, err);
}

/* ---- apply ---- */

static struct rp_slot *add_file(struct rp_work *work, const struct rp_init *c)
{
    RP_ASSERT(work->n < work->max);
    struct rp_slot *slot = &work->slots[work->n++];
    *slot = (struct rp_slot){ .born = true };
    slot->file = (struct rp_file){ .id = c->file_id,
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
                                   .parent_id = c->parent_id,
                                   .source_id = c->source_id,
                                   .txn_id = c->txn_id,
                                   .replaces_id = c->replaces_id,
                                   .url_ends_at_ms = c->url_ends_at_ms,
                                   .process_key = c->rules->scan ? strchr(c->key, '/') + 1 : NULL,
                                   .metadata = c->metadata,
                                   .created_at_ms = c->created_at_ms,
                                   .changed_at_ms = c->created_at_ms };
    return slot;
}

/* When the URL ends, and when the mark that the file is born with is due. */
static void set_times(struct rp_init *c, const struct rp_txn *txn, int64_t now_ms)
{
    struct rp_due due = { .by = RP_DUE_AFTER, .from_ms = now_ms, .grace_ms = c->rules->expire_ms };
    c->created_at_ms = now_ms;
    c->url_ends_at_ms = rp_due(&due, now_ms);
    if (txn != NULL) {
        due.from_ms = txn->ends_at_ms;
        due.grace_ms = c->rules->rollback_grace_ms;
        if (txn->ends_at_ms < c->url_ends_at_ms) c->url_ends_at_ms = txn->ends_at_ms;
    }
    c->due_at_ms = rp_due(&due, now_ms);
}

static int accept_init(struct inits *w, struct rp_init *c, struct rp_tenant *tenant, struct rp_txn *txn,
                       struct rp_error *err)
{
    struct rp_work *work = &w->work;
    char id[RP_ID_TEXT];
    c->file_id = rp_tx_new_id(work->tx);
    set_times(c, txn, work->tx->late_ms);
    snprintf(c->key, sizeof c->key, "%s/%s", tenant->name, rp_id_format(RP_ID_FILE, c->file_id, id));
    work->by = (struct rp_state_by){ .store = c->store->config->name, .actor = c->command.actor };
    struct rp_slot *slot = add_file(work, c);
    rp_work_mark(work, slot, c->due_at_ms, txn != NULL ? RP_REASON_ROLLBACK : RP_REASON_ABANDONED);
    c->mark_id = slot->file.mark_id;
    slot->owed = RP_LEDGER_RESERVE;
    tenant->reserved_bytes += c->size_bytes;
    tenant->open_uploads++;
    if (txn != NULL) {
        txn->members++;
        txn->changed_at_ms = work->tx->late_ms;
    }
    return rp_work_audit(work, "file.pending", slot, "", err);
}

static int save_txns(struct inits *w, struct rp_error *err)
{
    struct rp_tx *tx = w->work.tx;
    size_t n = 0;
    for (size_t i = 0; i < w->n_txns; i++)
        if (w->txns[i].changed_at_ms == tx->late_ms) w->txns[n++] = w->txns[i];
    return n > 0 ? rp_txns_save(tx, w->txns, n, err) : 0;
}

static void inits_done(struct inits *w)
{
    rp_work_done(&w->work);
}

static int run_init(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    RP_CLEANUP(inits_done) struct inits w = { .n = n };
    w.all = (struct rp_init **)(uintptr_t)commands; /* the command is the first member of each */
    int r = load(&w, tx, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        struct rp_init *c = w.all[i];
        struct rp_tenant *tenant = tenant_of(&w, c->command.tenant_id);
        struct rp_txn *txn = txn_of(&w, c);
        if (decide_init(&w, c, tenant, txn, &c->command.error) == 0) r = accept_init(&w, c, tenant, txn, err);
    }
    if (r == 0) r = save_txns(&w, err);
    return r < 0 ? r : rp_work_save(&w.work, err);
}

_Static_assert(offsetof(struct rp_init, command) == 0, "a command is the first member");
const struct rp_verb rp_verb_init = { .name = "init", .run = run_init, .log = rp_log_init };
