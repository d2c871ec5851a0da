/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/uploads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <inttypes.h>
#include <string.h>

static struct rp_error err;

/* ---- tenants ---- */

int64_t uploads_tenant(struct world *w, const char *name)
{
    struct rp_tenant tenant;
    ok(rp_tenant_make(w->catalog, name, &tenant, &err));
    return tenant.id;
}

struct rp_tenant uploads_quota(struct world *w, const char *name)
{
    struct rp_tenant tenant;
    ok(rp_tenant_find(w->catalog->db, name, &tenant, &err));
    return tenant;
}

struct limiting {
    int64_t id, limit_bytes;
};

static int limit_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    const struct limiting *l = ctx;
    return rp_tenant_limit(tx, l->id, true, l->limit_bytes, e);
}

void uploads_limit(struct world *w, const char *name, int64_t limit_bytes)
{
    struct limiting l = { uploads_tenant(w, name), limit_bytes };
    ok(rp_catalog_transact(w->catalog, limit_tx, &l, &err));
}

void uploads_expect_quota(struct world *w, int64_t used_bytes, int64_t reserved_bytes, int64_t open)
{
    struct rp_tenant t = uploads_quota(w, "acme");
    assert_int_equal(t.used_bytes, used_bytes);
    assert_int_equal(t.reserved_bytes, reserved_bytes);
    assert_int_equal(t.open_uploads, open);
}

/* ---- init ---- */

struct rp_init uploads_init(struct world *w, const char *name, int64_t size_bytes)
{
    return (struct rp_init){
        .command = { .verb = &rp_verb_init, .tenant_id = uploads_tenant(w, "acme"), .actor = "tester" },
        .rules = &w->uploads,
        .store = &w->store,
        .name = name,
        .content_type = "text/plain",
        .size_bytes = size_bytes,
    };
}

int64_t uploads_begin(struct world *w, const char *name, const char *text)
{
    struct rp_init c = uploads_init(w, name, (int64_t)strlen(text));
    world_ok(rp_command_run(w->catalog, &c.command), &c.command.error, __FILE__, __LINE__);
    return c.file_id;
}

void uploads_put(struct world *w, int64_t file_id, const char *text)
{
    world_put(w, uploads_file(w, file_id).key, text);
}

int64_t uploads_live(struct world *w, const char *name, const char *text)
{
    struct rp_file_command c;
    int64_t id = uploads_begin(w, name, text);
    uploads_put(w, id, text);
    world_ok(uploads_confirm(w, id, NULL, &c), &c.command.error, __FILE__, __LINE__);
    return id;
}

int64_t uploads_child(struct world *w, const char *name, int64_t parent_id, int64_t source_id)
{
    struct rp_file_command confirm;
    struct rp_init c = uploads_init(w, name, 5);
    c.parent_id = parent_id;
    c.source_id = source_id;
    world_ok(rp_command_run(w->catalog, &c.command), &c.command.error, __FILE__, __LINE__);
    uploads_put(w, c.file_id, "child");
    world_ok(uploads_confirm(w, c.file_id, NULL, &confirm), &confirm.command.error, __FILE__, __LINE__);
    return c.file_id;
}

/* ---- one file ---- */

struct rp_file_command uploads_command(struct world *w, const struct rp_verb *verb, int64_t file_id)
{
    return (struct rp_file_command){
        .command = { .verb = verb, .tenant_id = uploads_tenant(w, "acme"), .actor = "tester" },
        .rules = &w->uploads,
        .stores = w->stores,
        .n_stores = 1,
        .arena = &w->arena,
        .file_id = file_id,
        .grace_ms = -1,
        .at_ms = -1,
        .reason = "",
    };
}

int uploads_confirm(struct world *w, int64_t file_id, const uint8_t *checksum, struct rp_file_command *out)
{
    struct rp_file file = uploads_file(w, file_id);
    *out = uploads_command(w, &rp_verb_confirm, file_id);
    out->checksum = checksum;
    ok(rp_file_see(&file, &w->store, checksum, &out->seen, &err));
    return rp_command_run(w->catalog, &out->command);
}

int uploads_delete(struct world *w, int64_t file_id, int64_t grace_ms, struct rp_file_command *out)
{
    *out = uploads_command(w, &rp_verb_delete, file_id);
    out->grace_ms = grace_ms;
    return rp_command_run(w->catalog, &out->command);
}

int uploads_restore(struct world *w, int64_t file_id, struct rp_file_command *out)
{
    *out = uploads_command(w, &rp_verb_file_restore, file_id);
    return rp_command_run(w->catalog, &out->command);
}

struct rp_reprieve_command uploads_restore_as(struct world *w, struct rp_reprieve_item *item, const char *tenant)
{
    static struct rp_store *stores[1];
    struct rp_reprieve_command c;
    stores[0] = &w->store;
    rp_reprieve_command_init(&c, item, 1, "tester", &w->arena);
    c.command.tenant_id = uploads_tenant(w, tenant);
    c.stores = stores;
    c.n_stores = 1;
    return c;
}

struct rp_file uploads_file(struct world *w, int64_t file_id)
{
    struct rp_file file;
    ok(rp_file_get(w->catalog->db, file_id, &w->arena, &file, &err));
    return file;
}

struct rp_mark uploads_mark(struct world *w, int64_t file_id)
{
    struct rp_mark mark;
    ok(rp_mark_get(w->catalog->db, uploads_file(w, file_id).mark_id, &w->arena, &mark, &err));
    return mark;
}

void uploads_lose_mark(struct world *w, int64_t file_id)
{
    world_script(w, "DELETE FROM mark WHERE id = %" PRId64, uploads_mark(w, file_id).id);
    world_count_anew(w);
}

void uploads_expect(struct world *w, int64_t file_id, enum rp_status status)
{
    assert_string_equal(rp_status_name(uploads_file(w, file_id).status), rp_status_name(status));
}

void uploads_digest(struct world *w, const char *text, uint8_t out[RP_DIGEST_BYTES])
{
    rp_digest_begin(w->catalog->digest);
    rp_digest_add(w->catalog->digest, text, strlen(text));
    rp_digest_end(w->catalog->digest, out);
}

/* ---- transactions ---- */

struct rp_txn_command uploads_txn(struct world *w, const struct rp_verb *verb, int64_t txn_id)
{
    return (struct rp_txn_command){
        .command = { .verb = verb, .tenant_id = uploads_tenant(w, "acme"), .actor = "tester" },
        .rules = &w->uploads,
        .stores = w->stores,
        .n_stores = 1,
        .arena = &w->arena,
        .txn_id = txn_id,
        .timeout_ms = -1,
    };
}

int64_t uploads_txn_begin(struct world *w)
{
    struct rp_txn_command c = uploads_txn(w, &rp_verb_txn_begin, 0);
    world_ok(rp_command_run(w->catalog, &c.command), &c.command.error, __FILE__, __LINE__);
    return c.txn.id;
}

int64_t uploads_member(struct world *w, int64_t txn_id, const char *name, const char *text, int64_t replaces_id)
{
    struct rp_init c = uploads_init(w, name, (int64_t)strlen(text));
    c.txn_id = txn_id;
    c.replaces_id = replaces_id;
    world_ok(rp_command_run(w->catalog, &c.command), &c.command.error, __FILE__, __LINE__);
    uploads_put(w, c.file_id, text);
    return c.file_id;
}

void uploads_see(struct world *w, struct rp_txn_command *c)
{
    struct rp_files members;
    ok(rp_files_init(&members, RP_TXN_MEMBERS_MAX, &w->arena, &err));
    ok(rp_files_members(w->catalog->db, c->txn_id, &members, &err));
    struct rp_seen *seen = rp_arena_array(&w->arena, members.n + 1, sizeof *seen);
    for (size_t i = 0; i < members.n; i++)
        ok(rp_file_see(&members.at[i], &w->store, NULL, &seen[i], &err));
    c->seen = seen;
    c->n_seen = members.n;
}

int uploads_commit(struct world *w, int64_t txn_id, struct rp_txn_command *out)
{
    *out = uploads_txn(w, &rp_verb_txn_commit, txn_id);
    uploads_see(w, out);
    return rp_command_run(w->catalog, &out->command);
}
