/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - the rows of table file, and of the quota that they use. What a move means is decided
 * above (core/file.h). */
#ifndef RP_CATALOG_FILE_H
#define RP_CATALOG_FILE_H

#include "catalog/catalog.h"

#include <stdbool.h>
#include <stdint.h>

/* The same numbers stand in the catalog and in its statements: never renumber. */
enum rp_status {
    RP_FILE_PENDING = 1,
    RP_FILE_SCANNING = 2,
    RP_FILE_LIVE = 3,
    RP_FILE_DELETED = 4,
    RP_FILE_PURGED = 5,
    RP_FILE_EXPIRED = 6,
    RP_STATUSES
};

struct rp_file {
    int64_t id, tenant_id;
    const char *name; /* of the arena it was read into, like every text here */
    bool live_name;   /* it is the tenant's living file of that name */
    int64_t store_id;
    const char *key;
    enum rp_status status, was;
    bool shown;
    int64_t size_bytes;
    const char *content_type;
    const uint8_t *checksum; /* 32 bytes, or NULL */
    const char *etag, *version;
    int64_t modified_ms;
    int64_t mark_id;                                            /* its last mark */
    int64_t parent_id, source_id, txn_id, replaces_id, with_id; /* 0: none */
    int64_t url_ends_at_ms;
    const char *process_key; /* may be NULL */
    const char *metadata;    /* JSON, may be NULL */
    int64_t created_at_ms, changed_at_ms;
    int64_t confirmed_at_ms, deleted_at_ms; /* 0: never, not now */
};

struct rp_files {
    struct rp_file *at;
    size_t n, max;
    struct rp_arena *arena;
};
int rp_files_init(struct rp_files *files, size_t max, struct rp_arena *arena, struct rp_error *err);
rp_row_fn rp_files_row; /* of statements that return FILE_COLUMNS; more than max is RP_ETOOBIG */
struct rp_file *rp_files_find(const struct rp_files *files, int64_t id);

/* ---- changes, inside a transaction ---- */

int rp_files_add(struct rp_tx *tx, const struct rp_file *files, size_t n, struct rp_error *err);
/* By id, locked; ids without a file are left out. */
int rp_files_lock(struct rp_tx *tx, const int64_t *ids, size_t n, struct rp_files *out, struct rp_error *err);
/* The living files with these names, locked: names[i] of tenants[i]. */
int rp_files_living(struct rp_tx *tx, const int64_t *tenants, const char *const *names, size_t n, struct rp_files *out,
                    struct rp_error *err);
/* What goes or comes along with these: the ids of what is below them in parent or source, however
 * deep, and is pending, lives, or was deleted along with one of them. Each once; more than `max` is
 * RP_ETOOBIG. Nothing is locked. */
int rp_files_below(struct rp_tx *tx, const int64_t *ids, size_t n, int64_t *out, size_t max, size_t *n_out,
                   struct rp_error *err);
/* The last marks of these files, locked. Marks before files, as the claim takes them: then nobody
 * waits in a ring. */
struct rp_marks;
int rp_files_marks(struct rp_tx *tx, const int64_t *ids, size_t n, struct rp_marks *out, struct rp_error *err);
/* Which of these keys of a store belong to a file that is not over (purged, expired): file_ids[i],
 * 0: none. */
int rp_files_of_keys(struct rp_db *db, struct rp_arena *arena, int64_t store_id, const char *const *keys, size_t n,
                     int64_t *file_ids, struct rp_error *err);
/* Writes back status, was, live_name, shown, identity, mark_id, with_id, metadata, checksum,
 * changed_at, confirmed_at, deleted_at of each. RP_ECONFLICT: the name of one lives already. */
int rp_files_save(struct rp_tx *tx, const struct rp_file *const *files, size_t n, struct rp_error *err);

/* ---- reading ---- */

/* What belongs to these files, was deleted along with them (or with what took them along), and does
 * not simply wait for its purge: in quarantine, claimed, dead. What others belong to comes before
 * them. */
typedef int rp_file_along_fn(void *ctx, int64_t root_id, int64_t file_id, struct rp_error *err);
int rp_files_along(struct rp_db *db, struct rp_arena *arena, const int64_t *ids, size_t n, rp_file_along_fn *fn,
                   void *ctx, struct rp_error *err);
int rp_file_get(struct rp_db *db, int64_t id, struct rp_arena *arena, struct rp_file *out, struct rp_error *err);

struct rp_files_query {
    int64_t tenant_id;     /* 0: RP_EINVAL; an admin names one */
    enum rp_status status; /* 0: what people see: live, scanning, and deleted or purged ones that stay shown */
    bool deleted;          /* without status: deleted ones as well, shown or not */
    const char *prefix;    /* of the name: living files only, in order of name; NULL: all, in order of id */
    int64_t after_id;
    const char *after_name;
};
/* A page of at most out->max. */
int rp_files_page(struct rp_db *db, const struct rp_files_query *query, struct rp_files *out, struct rp_error *err);
/* Members of a transaction. */
int rp_files_members(struct rp_db *db, int64_t txn_id, struct rp_files *out, struct rp_error *err);

/* ---- tenants and quota ---- */

struct rp_tenant {
    int64_t id;
    char name[64];
    bool has_limit;
    int64_t limit_bytes; /* if has_limit */
    int64_t used_bytes, reserved_bytes, open_uploads;
};

/* Finds the tenant, or makes it: one short transaction of its own. RP_EINVAL: 1 to 63 of a-z A-Z
 * 0-9 . _ - @ */
int rp_tenant_ensure(struct rp_tx *tx, const char *name, struct rp_tenant *out, struct rp_error *err);
int rp_tenant_make(struct rp_catalog *catalog, const char *name, struct rp_tenant *out, struct rp_error *err);
int rp_tenant_find(struct rp_db *db, const char *name, struct rp_tenant *out, struct rp_error *err); /* RP_ENOTFOUND */
int rp_tenant_by_id(struct rp_db *db, int64_t id, struct rp_tenant *out, struct rp_error *err);
typedef int rp_tenant_fn(void *ctx, const struct rp_tenant *tenant, struct rp_error *err);
int rp_tenant_each(struct rp_db *db, int64_t after_id, int64_t limit, rp_tenant_fn *fn, void *ctx,
                   struct rp_error *err);
/* Locks them in order of id (catalog.h, K8). 0 is none. A database with one writer has nothing to
 * lock. */
int rp_tenants_lock(struct rp_tx *tx, const int64_t *ids, size_t n, struct rp_error *err);
/* The same without waiting: those that somebody else has locked are in `busy`, in order of id, in
 * the transaction's arena. */
struct rp_ids;
int rp_tenants_try_lock(struct rp_tx *tx, const int64_t *ids, size_t n, struct rp_ids *busy, struct rp_error *err);
/* Reads them, each once, in order of id. `out`: room for n. */
int rp_tenants_load(struct rp_tx *tx, const int64_t *ids, size_t n, struct rp_tenant *out, size_t *found,
                    struct rp_error *err);
int rp_tenant_limit(struct rp_tx *tx, int64_t id, bool has_limit, int64_t limit_bytes, struct rp_error *err);

enum rp_ledger_kind { RP_LEDGER_RESERVE = 1, RP_LEDGER_USE = 2, RP_LEDGER_REFUND = 3 };
struct rp_ledger {
    int64_t file_id, tenant_id, bytes;
    enum rp_ledger_kind kind;
    bool was_used; /* a refund: of used bytes, not of reserved ones */
};
/* Adds the rows and moves the tenants' counters by what they say, in the same transaction
 * (QUOTA-EXACT). A row that is there already is RP_ECORRUPT: each kind happens at most once a
 * file. */
int rp_ledger_add(struct rp_tx *tx, const struct rp_ledger *ledger, size_t n, struct rp_error *err);

/* The counters as the ledger sums them up, for every tenant; `wrong` counts those that differed.
 * With `repair` they are set right. */
struct rp_quota_check {
    int64_t tenants, wrong;
};
typedef int rp_quota_fn(void *ctx, const struct rp_tenant *counted, const struct rp_tenant *summed,
                        struct rp_error *err);
int rp_quota_rebuild(struct rp_tx *tx, bool repair, rp_quota_fn *fn, void *ctx, struct rp_quota_check *out,
                     struct rp_error *err);

#endif
