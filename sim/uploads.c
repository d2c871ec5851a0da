/* SPDX-License-Identifier: Apache-2.0 */
/* Users that upload. Ids come from the answer's text, as a client reads it: a replay says the same
 * as the first answer did. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "asking.h"
#include "base/cleanup.h"
#include "core/file/transaction.h"
#include "core/reprieve/reprieve.h"
#include "lib/ask.h"
#include "lib/bytes.h"
#include "node.h"
#include "task.h"
#include "uploads.h"
#include "verb.h"
#include "world.h"

#define ACTOR "user"

static int64_t id_of(const struct sim *s, size_t file)
{
    return file != SIZE_MAX && s->files[file].begun ? s->files[file].id : 0;
}

/* ---- Idempotency-Keys ---- */

/* IDEMPOTENT: `kept` is what was heard first under this key; `body` 0 was the first one. */
static void judge_key(struct sim *s, const struct rp_command *c, int body, char *kept, size_t size)
{
    const char *answer = c->answer.len > 0 ? rp_buf_text(&c->answer) : "";
    if (c->error.code == RP_EKEYREUSED) {
        sim_see(s, SIGHT_KEY_REUSED);
        if (body == 0 && kept[0] != '\0') sim_violate(s, "IDEMPOTENT", "the same request was called another one");
        return;
    }
    if (c->replayed) sim_see(s, SIGHT_REPLAY);
    if (answer[0] == '\0') return;
    if (body != 0 && kept[0] != '\0') sim_violate(s, "IDEMPOTENT", "another body got an answer under a used key");
    if (body == 0 && kept[0] != '\0' && strcmp(kept, answer) != 0)
        sim_violate(s, "IDEMPOTENT", "the same request was answered '%s', and before '%s'", answer, kept);
    if (body == 0) snprintf(kept, size, "%s", answer);
}

static void forget(struct sim *s, struct sim_forgotten *forgotten, char *answer)
{
    answer[0] = '\0';
    forgotten->at = s->steps;
    forgotten->times++;
}

void sim_forget_key(struct sim *s, const char *key)
{
    size_t i = 0;
    if (sscanf(key, "init-%zu", &i) == 1 && i < s->n_files) forget(s, &s->files[i].forgotten, s->files[i].answer);
    if (sscanf(key, "begin-%zu", &i) == 1 && i < s->n_txns) forget(s, &s->txns[i].forgotten, s->txns[i].answer);
}

/* It was answered from what was let go before the answer was heard, or after: nobody can tell. */
static bool is_forgotten(const struct sim_node *n, const struct sim_forgotten *forgotten)
{
    return sim_is_unheard(n) || (forgotten->times > 0 && forgotten->at >= n->began_at);
}

/* ---- init ---- */

static int render_init(struct rp_command *command, int *status, struct rp_buf *answer)
{
    const struct rp_init *c = (const struct rp_init *)command;
    *status = command->error.code < 0 ? 409 : 201;
    return rp_buf_fmt(answer, "%d %" PRId64 " %" PRId64 " %" PRId64 " %s", command->error.code, c->file_id, c->mark_id,
                      c->due_at_ms, command->error.code < 0 ? "-" : c->key);
}

static int hear_init(struct sim_node *n, struct sim_file *f, const struct rp_command *c)
{
    struct sim *s = n->sim;
    int code = 0;
    if (c->error.code < 0) return c->error.code;
    struct sim_file heard = *f;
    int k = sscanf(rp_buf_text(&c->answer), "%d %" SCNd64 " %*d %*d %95s", &code, &heard.id, heard.key);
    if (k != 3 || code < 0) return k != 3 ? RP_ECORRUPT : code;
    heard.begun = true;
    if (f->id != 0 && heard.id != f->id) {
        if (f->late) sim_put_arrives(s, n->command.file);
        heard.put = heard.late = false;
        sim_see(s, SIGHT_KEY_ANEW);
    }
    *f = heard;
    const struct model_file *m = model_file(s->model, f->id);
    if (m != NULL)
        f->url_ends_ms = m->made_ms + s->uploads.expire_ms / 2; /* a replay signs it anew, with the same end */
    if (m == NULL) sim_violate(s, "AUDITED", "upload %s was acknowledged, and is not there", f->name);
    return 0;
}

int sim_give_init(struct sim_node *n)
{
    struct sim *s = n->sim;
    struct sim_file *f = &s->files[n->command.file];
    char key[32], type[32];
    snprintf(key, sizeof key, "init-%zu", n->command.file);
    snprintf(type, sizeof type, "text/file-%zu.%d", n->command.file, f->forgotten.times);
    struct rp_init c = { .command = { .verb = &rp_verb_init,
                                      .tenant_id = s->tenants[f->tenant],
                                      .actor = ACTOR,
                                      .key = key,
                                      .render = render_init },
                         .rules = &s->uploads,
                         .store = &n->store,
                         .name = f->name,
                         .content_type = type,
                         .size_bytes = (int64_t)strlen(f->text) + n->command.body,
                         .parent_id = id_of(s, f->parent),
                         .source_id = id_of(s, f->source),
                         .replaces_id = id_of(s, f->replaces),
                         .txn_id = f->txn != SIZE_MAX ? s->txns[f->txn].id : 0 };
    c.command.digest[0] = (uint8_t)n->command.body;
    c.command.digest[1] = (uint8_t)n->command.file;
    int r = rp_command_run(n->catalog, &c.command);
    if (!is_forgotten(n, &f->forgotten)) {
        if (r == RP_EQUOTA) sim_see(s, SIGHT_QUOTA);
        judge_key(s, &c.command, n->command.body, f->answer, sizeof f->answer);
        if (r == 0 && n->command.body == 0) r = hear_init(n, f, &c.command);
    }
    rp_buf_done(&c.command.answer);
    return r;
}

/* ---- the bytes ---- */

void sim_put_arrives(struct sim *s, size_t file)
{
    struct sim_file *f = &s->files[file];
    struct bucket_object there;
    f->late = false;
    s->reused |= f->arrived_id == f->id;
    f->arrived_id = f->id;
    sim_say(s, "the bytes of %s (%s) arrive", f->name, f->key);
    if (!bucket_look(s->bucket, f->key, &there)) bucket_upload(s->bucket, f->key, f->text, sim_store_ms(s), NULL);
}

/* Through the daemon where the store is a directory, else by the signed URL. */
int sim_give_put(struct sim_node *n)
{
    struct sim *s = n->sim;
    struct sim_file *f = &s->files[n->command.file];
    if (s->now_ms > f->url_ends_ms) return RP_EFORBIDDEN; /* the store does not take it any more */
    f->put = true;
    f->sent_at_ms = s->now_ms;
    if (s->kind != BUCKET_EXACT) {
        f->late = sim_strikes(&s->faults, FAULT_LATE_PUT);
        if (!f->late) sim_put_arrives(s, n->command.file);
        return 0;
    }
    if (s->misled[n->index])
        return RP_EUNAVAILABLE; /* what a node stores elsewhere is there, and nobody can know better */
    const struct model_file *m = model_file(s->model, f->id);
    if (m == NULL || m->status != RP_FILE_PENDING) return RP_ENOTPENDING; /* the daemon looks, too */
    struct bytes text = { f->text, strlen(f->text) };
    struct rp_source source = { .read = bytes_read, .ctx = &text };
    struct rp_meta meta = { 0 };
    struct rp_identity identity;
    struct rp_error err = { 0 };
    return rp_backend_put(n->backend, f->key, &source, &meta, RP_PUT_NEW, &identity, &err);
}

/* ---- one file ---- */

static struct rp_file_command command(struct sim_node *n, const struct rp_verb *verb, struct rp_store **stores,
                                      struct rp_arena *arena)
{
    const struct sim_file *f = &n->sim->files[n->command.file];
    stores[0] = &n->store;
    n->wrong_tenant = sim_strikes(&n->sim->faults, FAULT_WRONG_TENANT);
    size_t tenant = n->wrong_tenant ? (f->tenant + 1) % SIM_TENANTS : f->tenant;
    return (struct rp_file_command){ .command = { .verb = verb, .tenant_id = n->sim->tenants[tenant], .actor = ACTOR },
                                     .rules = &n->sim->uploads,
                                     .stores = stores,
                                     .n_stores = 1,
                                     .arena = arena,
                                     .file_id = f->id,
                                     .grace_ms = -1,
                                     .at_ms = -1,
                                     .reason = "" };
}

int sim_give_confirm(struct sim_node *n)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 18);
    struct sim *s = n->sim;
    struct rp_store *stores[1];
    struct rp_error err = { 0 };
    struct rp_file row;
    const struct model_file *m = model_file(s->model, s->files[n->command.file].id);
    struct rp_file_command c = command(n, &rp_verb_confirm, stores, &arena);
    if (m != NULL && m->status == RP_FILE_LIVE) sim_see(s, SIGHT_DOUBLE_CONFIRM);
    if (m != NULL && m->status == RP_FILE_EXPIRED) sim_see(s, SIGHT_EXPIRED_CONFIRM);
    int r = rp_file_get(n->catalog->db, c.file_id, &arena, &row, &err);
    if (r == 0) r = rp_file_see(&row, &n->store, NULL, &c.seen, &err);
    if (r == 0) r = rp_command_run(n->catalog, &c.command);
    if (r < 0 || sim_is_unheard(n)) return r;
    if (n->wrong_tenant) sim_violate(s, "TENANT", "file %s was confirmed for another tenant", row.name);
    m = model_file(s->model, c.file_id);
    if (m == NULL || m->lived == 0)
        sim_violate(s, "AUDITED", "the confirm of %s was acknowledged, and it never lived", row.name);
    return 0;
}

static int give_back(struct sim_node *n, struct rp_arena *arena)
{
    struct rp_error err = { 0 };
    struct rp_mark mark;
    struct rp_reprieve_answer answer = { 0 };
    int r = ask_newest(n->catalog, &n->store, n->sim->files[n->command.file].key, arena, &mark, &err);
    if (r == 0) r = rp_reprieve_many(n->catalog, &n->store, &mark, 1, ACTOR, &answer, &err);
    return r == 0 && answer.what == RP_REPRIEVE_REFUSED ? answer.error.code : r;
}

static void judge_file_answer(struct sim_node *n, enum sim_verb verb, const struct model_file *m)
{
    struct sim *s = n->sim;
    bool lives = m != NULL && (rp_status_lives((enum rp_status)m->status) || m->status == RP_FILE_PENDING);
    if (m == NULL)
        sim_violate(s, "AUDITED", "a %s was acknowledged of a file that is not there", sim_verb_name(verb));
    else if (verb == VERB_DELETE && m->deleted == 0 && m->status != RP_FILE_EXPIRED)
        sim_violate(s, "AUDITED", "file %s was said to be deleted, and never was", m->name);
    else if (verb == VERB_UNDELETE && !lives && m->returned == 0 && m->deleted == n->deleted_at_begin)
        sim_violate(s, "RESTORE-WINS", "file %s was said to be restored, and never was", m->name);
}

int sim_give_file(struct sim_node *n)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 18);
    static const struct rp_verb *const verbs[] = {
        [VERB_DELETE] = &rp_verb_delete, [VERB_UNDELETE] = &rp_verb_file_restore, [VERB_RESULT] = &rp_verb_result
    };
    enum sim_verb verb = n->command.verb;
    struct rp_store *stores[1];
    if (verb == VERB_RETURN) return give_back(n, &arena);
    struct rp_file_command c = command(n, verbs[verb], stores, &arena);
    struct rp_file row;
    struct rp_error err = { 0 };
    struct rp_confirmer_list by = { 0 };
    if (verb == VERB_DELETE) {
        c.grace_ms = n->command.grace_ms;
        if (sim_named_services(n, &by, &err) < 0) return err.code;
        if (by.n > 0) c.confirmations = &by;
    }
    if (verb == VERB_RESULT) {
        int r = rp_file_get(n->catalog->db, c.file_id, &arena, &row, &err);
        if (r < 0) return r;
        c.process_key = row.process_key != NULL ? row.process_key : "";
        c.accept = n->command.flag;
    }
    int r = rp_command_run(n->catalog, &c.command);
    if (r == RP_ETOOLATE) sim_see(n->sim, SIGHT_TOO_LATE);
    if (r == 0 && !sim_is_unheard(n) && n->wrong_tenant)
        sim_violate(n->sim, "TENANT", "a %s of another tenant's file was answered", sim_verb_name(verb));
    if (r == 0 && !sim_is_unheard(n)) judge_file_answer(n, verb, model_file(n->sim->model, c.file_id));
    return r;
}

/* ---- transactions ---- */

static int render_begin(struct rp_command *c, int *status, struct rp_buf *answer)
{
    *status = c->error.code < 0 ? 409 : 201;
    return rp_buf_fmt(answer, "%d %" PRId64, c->error.code, ((const struct rp_txn_command *)c)->txn.id);
}

static int see_members(struct sim_node *n, struct rp_txn_command *c)
{
    struct rp_files members;
    struct rp_error err = { 0 };
    struct rp_seen *seen = rp_arena_array(c->arena, SIM_FILES, sizeof *seen);
    if (seen == NULL) return RP_ENOMEM;
    int r = rp_files_init(&members, SIM_FILES, c->arena, &err);
    if (r == 0) r = rp_files_members(n->catalog->db, c->txn_id, &members, &err);
    for (size_t i = 0; r == 0 && i < members.n; i++)
        r = rp_file_see(&members.at[i], &n->store, NULL, &seen[i], &err);
    c->seen = seen;
    c->n_seen = members.n;
    return r;
}

static int hear_txn(struct sim_node *n, struct rp_txn_command *c)
{
    struct sim *s = n->sim;
    struct sim_txn *t = &s->txns[n->command.txn];
    const struct model_txn *m = model_txn(s->model, c->txn_id);
    enum sim_verb verb = n->command.verb;
    if (verb == VERB_BEGIN) {
        int code = 0;
        judge_key(s, &c->command, 0, t->answer, sizeof t->answer);
        if (sscanf(rp_buf_text(&c->command.answer), "%d %" SCNd64, &code, &t->id) != 2) return RP_ECORRUPT;
        t->begun = code == 0;
        if (t->begun && model_txn(s->model, t->id) == NULL)
            sim_violate(s, "AUDITED", "a transaction that was begun is not there");
        return code;
    }
    int wanted = verb == VERB_COMMIT ? RP_TXN_COMMITTED : RP_TXN_ABORTED;
    if (m == NULL || m->state != wanted)
        sim_violate(s, "TXN-ATOMIC", "a %s was acknowledged, and the transaction is in state %d", sim_verb_name(verb),
                    m == NULL ? 0 : m->state);
    else
        sim_see(s, verb == VERB_COMMIT ? SIGHT_COMMITTED : SIGHT_ROLLED);
    return 0;
}

int sim_give_txn(struct sim_node *n)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    static const struct rp_verb *const verbs[] = {
        [VERB_BEGIN] = &rp_verb_txn_begin, [VERB_COMMIT] = &rp_verb_txn_commit, [VERB_ABORT] = &rp_verb_txn_abort
    };
    struct sim *s = n->sim;
    const struct sim_txn *t = &s->txns[n->command.txn];
    struct rp_store *stores[] = { &n->store };
    char key[32];
    struct rp_txn_command c = {
        .command = { .verb = verbs[n->command.verb], .tenant_id = s->tenants[t->tenant], .actor = ACTOR },
        .rules = &s->uploads,
        .stores = stores,
        .n_stores = 1,
        .arena = &arena,
        .txn_id = t->id,
        .timeout_ms = -1
    };
    int r = 0;
    if (n->command.verb == VERB_BEGIN) {
        snprintf(key, sizeof key, "begin-%zu", n->command.txn);
        c.command.key = key;
        c.command.render = render_begin;
    }
    if (n->command.verb == VERB_COMMIT) r = see_members(n, &c);
    if (r == 0) r = rp_command_run(n->catalog, &c.command);
    bool unheard = n->command.verb == VERB_BEGIN ? is_forgotten(n, &t->forgotten) : sim_is_unheard(n);
    if (r == 0 && !unheard) r = hear_txn(n, &c);
    rp_buf_done(&c.command.answer);
    return r;
}
