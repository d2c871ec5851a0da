/* SPDX-License-Identifier: Apache-2.0 */
/* Users that upload: what they ask, and what they are told. Ids come from the answer's text, as a
 * client reads it: a replay says the same as the first answer did. */
#include "fault/trial.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "core/file/transaction.h"
#include "core/reprieve/reprieve.h"
#include "lib/ask.h"
#include "lib/bytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ACTOR "user"

static struct inv_file *file_of(struct trial *t, size_t i)
{
    RP_ASSERT(i < t->shared->known.n_files);
    return &t->shared->known.files[i];
}

/* What an upload was about; kept beside what is known, for a process that dies forgets it. */
static struct trial_upload wanted[INV_FILES_MAX];

size_t trial_file(struct trial *t, const struct trial_upload *upload)
{
    size_t i = t->shared->known.n_files;
    RP_ASSERT(i < INV_FILES_MAX);
    t->shared->known.n_files = i + 1;
    struct inv_file *f = file_of(t, i);
    *f = (struct inv_file){ .txn = upload->txn };
    snprintf(f->name, sizeof f->name, "%s", upload->name);
    snprintf(f->bytes, sizeof f->bytes, "bytes of file %zu", i);
    wanted[i] = *upload;
    return i;
}

static int64_t tenant(struct trial *t, struct rp_error *err)
{
    struct rp_tenant found;
    return rp_tenant_make(t->catalog, INV_TENANT, &found, err) < 0 ? err->code : found.id;
}

/* ---- init ---- */

static int render_init(struct rp_command *command, int *status, struct rp_buf *answer)
{
    const struct rp_init *c = (const struct rp_init *)command;
    *status = command->error.code < 0 ? 409 : 201;
    return rp_buf_fmt(answer, "%d %" PRId64 " %" PRId64 " %" PRId64 " %s", command->error.code, c->file_id, c->mark_id,
                      c->due_at_ms, c->key);
}

static int hear_init(struct inv_file *f, const struct rp_command *c)
{
    int code = 0;
    if (c->error.code < 0) return c->error.code;
    struct inv_file heard = *f;
    int n = sscanf(rp_buf_text(&c->answer), "%d %" SCNd64 " %" SCNd64 " %" SCNd64 " %95s", &code, &heard.id,
                   &heard.mark_id, &heard.due_at_ms, heard.key);
    if (n != 5) return RP_ECORRUPT;
    if (code == 0) heard.begun = true;
    *f = heard;
    return code;
}

static int64_t id_of(struct trial *t, size_t one_more)
{
    return one_more != 0 ? file_of(t, one_more - 1)->id : 0;
}

int trial_init(struct trial *t, size_t i)
{
    struct inv_file *f = file_of(t, i);
    struct rp_error err = { 0 };
    char key[32], type[32];
    snprintf(key, sizeof key, "init-%zu", i);
    snprintf(type, sizeof type, "text/file-%zu", i);
    struct rp_init c = { .command = { .verb = &rp_verb_init,
                                      .tenant_id = tenant(t, &err),
                                      .actor = ACTOR,
                                      .key = key,
                                      .render = render_init },
                         .rules = &t->uploads,
                         .store = &t->store,
                         .name = f->name,
                         .content_type = type,
                         .size_bytes = (int64_t)strlen(f->bytes),
                         .parent_id = id_of(t, wanted[i].parent),
                         .source_id = id_of(t, wanted[i].source),
                         .replaces_id = id_of(t, wanted[i].replaces),
                         .txn_id = f->txn != 0 ? t->shared->known.txns[f->txn - 1].id : 0 };
    if (c.command.tenant_id < 0) return err.code;
    c.command.digest[0] = (uint8_t)i;
    int r = rp_command_run(t->catalog, &c.command);
    if (r == 0) r = hear_init(f, &c.command);
    rp_buf_done(&c.command.answer);
    return r;
}

/* ---- the bytes ---- */

int trial_put(struct trial *t, size_t i)
{
    struct inv_file *f = file_of(t, i);
    struct bytes text = { f->bytes, strlen(f->bytes) };
    struct rp_source source = { .read = bytes_read, .ctx = &text };
    struct rp_meta meta = { 0 };
    struct rp_identity identity;
    struct rp_error err = { 0 };
    f->put = true;
    int r = rp_backend_put(t->store.backend, f->key, &source, &meta, RP_PUT_REPLACE, &identity, &err);
    if (r == 0) memcpy(f->etag, identity.etag, sizeof f->etag);
    return r;
}

/* ---- one file ---- */

static struct rp_file_command command(struct trial *t, const struct rp_verb *verb, size_t i, struct rp_store **stores,
                                      struct rp_arena *arena)
{
    struct rp_error err = { 0 };
    stores[0] = &t->store;
    return (struct rp_file_command){ .command = { .verb = verb, .tenant_id = tenant(t, &err), .actor = ACTOR },
                                     .rules = &t->uploads,
                                     .stores = stores,
                                     .n_stores = 1,
                                     .arena = arena,
                                     .file_id = file_of(t, i)->id,
                                     .grace_ms = -1,
                                     .at_ms = -1,
                                     .reason = "" };
}

static int run(struct trial *t, struct rp_file_command *c)
{
    if (c->command.tenant_id < 0) return (int)c->command.tenant_id;
    return rp_command_run(t->catalog, &c->command);
}

/* Others of its name are replaced, and what belongs to them: from now on nobody counts on them. */
static void ask_for_name(struct trial *t, size_t i)
{
    for (size_t k = 0; k < t->shared->known.n_files; k++) {
        struct inv_file *f = file_of(t, k);
        size_t owner = wanted[k].parent != 0 ? wanted[k].parent : wanted[k].source;
        bool named = strcmp(f->name, file_of(t, i)->name) == 0 || wanted[i].replaces == k + 1;
        bool owned = owner != 0 && file_of(t, owner - 1)->asked;
        if (k != i && (named || owned)) f->asked = true;
    }
}

int trial_confirm(struct trial *t, size_t i)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 18);
    struct rp_store *stores[1];
    struct rp_error err = { 0 };
    struct rp_file row;
    struct rp_file_command c = command(t, &rp_verb_confirm, i, stores, &arena);
    int r = rp_file_get(t->catalog->db, c.file_id, &arena, &row, &err);
    if (r == 0) r = rp_file_see(&row, &t->store, NULL, &c.seen, &err);
    if (r < 0) return r;
    ask_for_name(t, i);
    r = run(t, &c);
    if (r == 0) file_of(t, i)->confirmed = true;
    return r;
}

static void ask_family(struct trial *t, size_t i, bool deleted, bool restored)
{
    for (size_t k = 0; k < t->shared->known.n_files; k++) {
        struct inv_file *f = file_of(t, k);
        bool below = wanted[k].parent == i + 1 || wanted[k].source == i + 1;
        if (k != i && (!below || !f->confirmed)) continue;
        f->asked = true;
        f->deleted = deleted;
        f->restored = restored;
    }
}

int trial_delete(struct trial *t, size_t i, int64_t grace_ms)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 18);
    struct rp_store *stores[1];
    struct rp_file_command c = command(t, &rp_verb_delete, i, stores, &arena);
    c.grace_ms = grace_ms;
    ask_family(t, i, file_of(t, i)->deleted, false);
    int r = run(t, &c);
    if (r == 0) ask_family(t, i, true, false);
    return r;
}

int trial_undelete(struct trial *t, size_t i)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 18);
    struct rp_store *stores[1];
    struct rp_file_command c = command(t, &rp_verb_file_restore, i, stores, &arena);
    ask_family(t, i, false, false); /* heard or not, it may live again */
    int r = run(t, &c);
    if (r == 0) ask_family(t, i, false, true);
    return r;
}

int trial_return(struct trial *t, size_t i)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 18);
    struct inv_file *f = file_of(t, i);
    struct rp_error err = { 0 };
    struct rp_mark mark;
    struct rp_reprieve_answer answer;
    int r = ask_newest(t->catalog, &t->store, f->key, &arena, &mark, &err);
    f->deleted = false;
    t->shared->known.returning_id = 1;
    if (r == 0) r = rp_reprieve_many(t->catalog, &t->store, &mark, 1, ACTOR, &answer, &err);
    t->shared->known.returning_id = 0;
    if (r == 0 && answer.what == RP_REPRIEVE_REFUSED) r = answer.error.code;
    if (r == 0) f->restored = true;
    return r;
}

/* ---- transactions ---- */

static int render_begin(struct rp_command *c, int *status, struct rp_buf *answer)
{
    *status = 201;
    return rp_buf_fmt(answer, "%" PRId64, ((const struct rp_txn_command *)c)->txn.id);
}

static struct rp_txn_command txn_command(struct trial *t, const struct rp_verb *verb, struct rp_store **stores,
                                         struct rp_arena *arena)
{
    struct rp_error err = { 0 };
    stores[0] = &t->store;
    return (struct rp_txn_command){ .command = { .verb = verb, .tenant_id = tenant(t, &err), .actor = ACTOR },
                                    .rules = &t->uploads,
                                    .stores = stores,
                                    .n_stores = 1,
                                    .arena = arena,
                                    .txn_id = t->shared->known.txns[0].id,
                                    .timeout_ms = -1 };
}

int trial_txn_begin(struct trial *t)
{
    struct rp_store *stores[1];
    struct rp_txn_command c = txn_command(t, &rp_verb_txn_begin, stores, NULL);
    t->shared->known.n_txns = 1;
    if (c.command.tenant_id < 0) return (int)c.command.tenant_id;
    c.command.key = "begin";
    c.command.render = render_begin;
    int r = rp_command_run(t->catalog, &c.command);
    if (r == 0 && sscanf(rp_buf_text(&c.command.answer), "%" SCNd64, &t->shared->known.txns[0].id) != 1)
        r = RP_ECORRUPT;
    if (r == 0) t->shared->known.txns[0].begun = true;
    rp_buf_done(&c.command.answer);
    return r;
}

static int see_members(struct trial *t, struct rp_txn_command *c)
{
    struct rp_files members;
    struct rp_error err = { 0 };
    struct rp_seen *seen = rp_arena_array(c->arena, INV_FILES_MAX, sizeof *seen);
    int r = rp_files_init(&members, INV_FILES_MAX, c->arena, &err);
    if (r == 0) r = rp_files_members(t->catalog->db, c->txn_id, &members, &err);
    for (size_t i = 0; r == 0 && i < members.n; i++)
        r = rp_file_see(&members.at[i], &t->store, NULL, &seen[i], &err);
    c->seen = seen;
    c->n_seen = members.n;
    return r;
}

int trial_commit(struct trial *t)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    struct rp_store *stores[1];
    struct rp_txn_command c = txn_command(t, &rp_verb_txn_commit, stores, &arena);
    if (c.command.tenant_id < 0) return (int)c.command.tenant_id;
    int r = see_members(t, &c);
    if (r < 0) return r;
    for (size_t i = 0; i < t->shared->known.n_files; i++)
        if (file_of(t, i)->txn != 0) ask_for_name(t, i);
    r = rp_command_run(t->catalog, &c.command);
    for (size_t i = 0; i < t->shared->known.n_files && r == 0; i++)
        if (file_of(t, i)->txn != 0) file_of(t, i)->confirmed = true;
    if (r == 0) t->shared->known.txns[0].committed = true;
    return r;
}

int trial_abort(struct trial *t)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 16);
    struct rp_store *stores[1];
    struct rp_txn_command c = txn_command(t, &rp_verb_txn_abort, stores, &arena);
    if (c.command.tenant_id < 0) return (int)c.command.tenant_id;
    int r = rp_command_run(t->catalog, &c.command);
    if (r == 0) t->shared->known.txns[0].aborted = true;
    return r;
}
