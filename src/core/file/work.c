/* SPDX-License-Identifier: Apache-2.0 */
#include "core/file/work.h"

#include "base/assert.h"
#include "base/id.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/audit/audit.h"
#include "catalog/mark/dead.h"
#include "core/confirm/confirm.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

/* ---- commands ---- */

_Static_assert(offsetof(struct rp_file_command, command) == 0, "a command is the first member");

static const char *name_of(const struct rp_store *store)
{
    return store != NULL ? store->config->name : "?";
}

void rp_work_turn(struct rp_work *work, struct rp_store *const *stores, size_t n, const struct rp_file *file,
                  const char *actor)
{
    work->stores = stores;
    work->n_stores = n;
    work->store = rp_store_of_file(stores, n, file);
    work->confirmers = NULL;
    work->by = (struct rp_state_by){ .store = name_of(work->store), .actor = actor };
}

/* A sweep has no other stores than its own. */
static const char *store_name(const struct rp_work *work, const struct rp_file *file)
{
    return work->stores == NULL ? work->by.store : name_of(rp_store_of_file(work->stores, work->n_stores, file));
}

/* TENANT: who is of no tenant may do it for all. */
static bool is_foreign(const struct rp_file_command *c, const struct rp_slot *slot)
{
    return slot == NULL || (c->command.tenant_id != 0 && slot->file.tenant_id != c->command.tenant_id);
}

static int decide_one(struct rp_work *work, struct rp_file_command *c, rp_work_decide_fn *decide, struct rp_error *err)
{
    struct rp_slot *slot = rp_work_find(work, c->file_id);
    c->event = NULL;
    work->marked = NULL;
    if (is_foreign(c, slot)) {
        rp_error_set(&c->command.error, RP_ENOTFOUND, "there is no such file");
        return 0;
    }
    rp_work_turn(work, c->stores, c->n_stores, &slot->file, c->command.actor);
    if (c->store_name != NULL) work->by.store = c->store_name;
    int r = decide(work, c, slot, err);
    if (r < 0 || c->command.error.code < 0) return r;
    r = rp_work_answer(slot, c->arena, &c->answer, err);
    c->marked = rp_work_told(work, slot, c->arena); /* with the room that is left */
    return r;
}

int rp_work_each(struct rp_work *work, struct rp_command *const *commands, size_t n, rp_work_decide_fn *decide,
                 int waits, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = decide_one(work, (struct rp_file_command *)commands[i], decide, err);
    for (bool again = n > 1 && waits != 0; again && r == 0;) {
        again = false;
        for (size_t i = 0; i < n && r == 0; i++) {
            if (commands[i]->error.code != waits) continue;
            rp_error_clear(&commands[i]->error);
            r = decide_one(work, (struct rp_file_command *)commands[i], decide, err);
            again |= commands[i]->error.code == 0;
        }
    }
    return r;
}

static int copy_texts(struct rp_arena *arena, const char **const *texts, size_t n, struct rp_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (*texts[i] == NULL) continue;
        *texts[i] = rp_arena_strdup(arena, *texts[i]);
        if (*texts[i] == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a file");
    }
    return 0;
}

/* The log says what became of which promise. */
static void tell_ended(const struct rp_mark *mark, struct rp_file_answer *out)
{
    if (out->mark_id != 0) return;
    out->marked_at_ms = mark->marked_at_ms;
    out->due_at_ms = mark->due_at_ms;
    snprintf(out->mark_reason, sizeof out->mark_reason, "%s", mark->reason);
}

int rp_work_answer(const struct rp_slot *slot, struct rp_arena *arena, struct rp_file_answer *out, struct rp_error *err)
{
    struct rp_file *f = &out->file;
    const char **const texts[] = { &f->name,    &f->key,         &f->content_type, &f->etag,
                                   &f->version, &f->process_key, &f->metadata };
    rp_file_answer_of(&slot->file, slot->mark.id != 0 ? &slot->mark : NULL, out);
    if (slot->reprieved != RP_END_NONE) tell_ended(&slot->loaded_mark, out);
    int r = copy_texts(arena, texts, sizeof texts / sizeof *texts, err);
    if (r < 0 || f->checksum == NULL) return r;
    f->checksum = (const uint8_t *)rp_arena_copy(arena, (const char *)f->checksum, RP_DIGEST_BYTES);
    return f->checksum != NULL ? 0 : rp_error_set(err, RP_ENOMEM, "no memory for a file");
}

struct rp_file_marked *rp_work_told(struct rp_work *work, const struct rp_slot *own, struct rp_arena *arena)
{
    struct rp_file_marked *first = NULL;
    for (const struct rp_slot *slot = work->marked; slot != NULL; slot = slot->marked) {
        struct rp_file_marked *m = slot != own ? rp_arena_alloc(arena, sizeof *m) : NULL;
        if (m == NULL) continue;
        *m = (struct rp_file_marked){ .file_id = slot->file.id,
                                      .store_id = slot->file.store_id,
                                      .mark_id = slot->mark.id,
                                      .size_bytes = slot->mark.size_bytes,
                                      .marked_at_ms = slot->mark.marked_at_ms,
                                      .due_at_ms = slot->mark.due_at_ms,
                                      .reason = slot->mark.reason,
                                      .next = first };
        snprintf(m->key, sizeof m->key, "%s", slot->file.key);
        first = m;
    }
    work->marked = NULL;
    return first;
}

/* ---- changes ---- */

static void write_details(struct rp_buf *b, const struct rp_slot *slot, const char *store, const char *extra)
{
    const struct rp_file *f = &slot->file;
    char id[RP_ID_TEXT], due[RP_TIME_TEXT];
    rp_buf_clear(b);
    rp_buf_fmt(b, "{\"file\":\"%s\",\"name\":", rp_id_format(RP_ID_FILE, f->id, id));
    rp_json_quote(b, f->name);
    rp_buf_fmt(b, ",\"status\":\"%s\",\"store\":\"%s\",\"key\":", rp_status_name(f->status), store);
    rp_json_quote(b, f->key);
    rp_buf_fmt(b, ",\"size\":%" PRId64, f->size_bytes);
    if (slot->mark.state == RP_MARKED) {
        rp_buf_fmt(b, ",\"mark\":\"%s\",\"due_at\":\"%s\",\"reason\":", rp_id_format(RP_ID_MARK, slot->mark.id, id),
                   rp_time_format(slot->mark.due_at_ms, due));
        rp_json_quote(b, slot->mark.reason);
    }
    rp_buf_str(b, extra);
    rp_buf_char(b, '}');
}

int rp_work_audit(struct rp_work *work, const char *event, const struct rp_slot *slot, const char *extra,
                  struct rp_error *err)
{
    struct rp_buf *b = &work->text;
    write_details(b, slot, store_name(work, &slot->file), extra);
    if (b->failed < 0) return rp_error_set(err, b->failed, "audit: the details do not fit");
    struct rp_audit_entry entry = { .event = event,
                                    .actor = work->by.actor,
                                    .mark_id = slot->file.mark_id,
                                    .tenant_id = slot->file.tenant_id,
                                    .text = rp_arena_copy(work->tx->arena, b->data, b->len) };
    if (entry.text == NULL) return rp_error_set(err, RP_ENOMEM, "audit: out of memory");
    return rp_tx_audit(work->tx, &entry, err);
}

int rp_work_audit_deleted(struct rp_work *work, const struct rp_slot *slot, struct rp_error *err)
{
    char extra[RP_TIME_TEXT + 20], at[RP_TIME_TEXT];
    snprintf(extra, sizeof extra, ",\"event_time\":\"%s\"", rp_time_format(work->tx->late_ms, at));
    return rp_work_audit(work, "file.deleted", slot, extra, err);
}

void rp_work_change(struct rp_work *work, struct rp_slot *slot, enum rp_status to)
{
    struct rp_file *f = &slot->file;
    RP_ASSERT(rp_status_may_move(f->status, to));
    if (f->status == RP_FILE_PENDING && rp_status_lives(to)) f->confirmed_at_ms = work->tx->late_ms;
    if (to == RP_FILE_DELETED) f->deleted_at_ms = work->tx->late_ms;
    if (rp_status_lives(to)) f->deleted_at_ms = 0;
    f->was = f->status;
    f->status = to;
    f->live_name = rp_status_lives(to);
    f->changed_at_ms = work->tx->late_ms;
    slot->changed = true;
}

static struct rp_mark new_mark(struct rp_work *work, const struct rp_file *f)
{
    return (struct rp_mark){ .id = rp_tx_new_id(work->tx),
                             .store_id = f->store_id,
                             .key = f->key,
                             .state = RP_MARKED,
                             .marked_at_ms = work->tx->late_ms,
                             .tenant_id = f->tenant_id,
                             .file_id = f->id };
}

void rp_work_mark(struct rp_work *work, struct rp_slot *slot, int64_t due_at_ms, const char *reason)
{
    struct rp_file *f = &slot->file;
    slot->mark = new_mark(work, f);
    slot->mark.due_at_ms = due_at_ms;
    slot->mark.etag = f->etag;
    slot->mark.version = f->version;
    slot->mark.size_bytes = f->size_bytes;
    slot->mark.modified_ms = f->modified_ms;
    slot->mark.reason = reason;
    slot->mark.actor = work->by.actor;
    f->mark_id = slot->mark.id;
    slot->changed = true;
    slot->marked = work->marked;
    work->marked = slot;
    slot->confirmers = work->confirmers;
    if (work->confirmers == NULL) return;
    slot->mark.checks = RP_CHECK_CONFIRMATIONS;
    slot->mark.next_at_ms = rp_confirmers_next_at(work->confirmers, due_at_ms, work->tx->late_ms);
}

void rp_work_reprieve(struct rp_slot *slot, enum rp_end how)
{
    RP_ASSERT(slot->mark.state == RP_MARKED || (slot->mark.state == RP_DEAD && slot->mark.was == RP_CHECKING));
    RP_ASSERT(slot->mark.id == slot->loaded_mark.id);
    slot->mark.state = RP_REPRIEVED;
    slot->reprieved = how;
}

int rp_work_identity(struct rp_work *work, struct rp_slot *slot, const struct rp_identity *identity,
                     struct rp_error *err)
{
    struct rp_file *f = &slot->file;
    const char **const texts[] = { &f->etag, &f->version };
    f->etag = identity->etag;
    f->version = identity->version;
    f->modified_ms = identity->modified_ms;
    return copy_texts(work->tx->arena, texts, 2, err);
}

/* ---- save ---- */

struct changes {
    struct rp_move *moves;
    struct rp_extend *extends;
    struct rp_mark *births;
    struct rp_ledger *ledger;
    struct rp_file *born;
    const struct rp_file **nameless, **named; /* K3: the first are saved first */
    size_t n_moves, n_extends, n_births, n_ledger, n_born, n_nameless, n_named;
};

static int make_changes(struct rp_work *work, struct changes *c, struct rp_error *err)
{
    struct rp_tx *tx = work->tx;
    size_t n = work->n + 1;
    *c = (struct changes){ .moves = rp_work_room(tx, n, sizeof *c->moves, err),
                           .extends = rp_work_room(tx, n, sizeof *c->extends, err),
                           .births = rp_work_room(tx, 2 * n, sizeof *c->births, err),
                           .ledger = rp_work_room(tx, n, sizeof *c->ledger, err),
                           .born = rp_work_room(tx, n, sizeof *c->born, err),
                           .nameless = rp_work_room(tx, n, sizeof *c->nameless, err),
                           .named = rp_work_room(tx, n, sizeof *c->named, err) };
    bool failed = c->moves == NULL || c->extends == NULL || c->births == NULL || c->ledger == NULL || c->born == NULL ||
                  c->nameless == NULL || c->named == NULL;
    return failed ? RP_ENOMEM : 0;
}

static void collect_marks(struct rp_work *work, const struct rp_slot *slot, struct changes *c)
{
    const struct rp_mark *before = &slot->loaded_mark, *now = &slot->mark;
    if (slot->reprieved != RP_END_NONE)
        c->moves[c->n_moves++] = (struct rp_move){ .mark = before,
                                                   .to = RP_REPRIEVED,
                                                   .outcome = slot->reprieved,
                                                   .attempts = before->attempts,
                                                   .note = slot->note,
                                                   .refence = true };
    if (now->id != before->id)
        c->births[c->n_births++] = *now;
    else if (now->due_at_ms != before->due_at_ms)
        c->extends[c->n_extends++] =
            (struct rp_extend){ .mark = before, .due_at_ms = now->due_at_ms, .reason = now->reason };
    if (slot->late_due_at_ms == 0) return;
    struct rp_mark *late = &c->births[c->n_births++];
    *late = new_mark(work, &slot->file);
    late->due_at_ms = slot->late_due_at_ms;
    late->reason = RP_REASON_LATE;
    late->actor = slot->late_actor;
}

static void collect(struct rp_work *work, const struct rp_slot *slot, struct changes *c)
{
    const struct rp_file *f = &slot->file;
    collect_marks(work, slot, c);
    if (slot->owed != 0)
        c->ledger[c->n_ledger++] = (struct rp_ledger){ .file_id = f->id,
                                                       .tenant_id = f->tenant_id,
                                                       .bytes = f->size_bytes,
                                                       .kind = slot->owed,
                                                       .was_used = slot->was_used };
    if (slot->born)
        c->born[c->n_born++] = *f;
    else if (slot->changed && f->live_name)
        c->named[c->n_named++] = f;
    else if (slot->changed)
        c->nameless[c->n_nameless++] = f;
}

/* What hangs on marks that are born, and on dead ones that end. */
static int save_beside(struct rp_work *work, const struct changes *c, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < work->n && r == 0; i++) {
        const struct rp_slot *slot = &work->slots[i];
        if (slot->confirmers != NULL) r = rp_confirmers_add(work->tx, slot->mark.id, slot->confirmers, err);
    }
    for (size_t i = 0; i < c->n_moves && r == 0; i++)
        if (c->moves[i].mark->state == RP_DEAD)
            r = rp_dead_end(work->tx, &c->moves[i].mark->id, 1, "kept", work->by.actor, err);
    return r;
}

int rp_work_save(struct rp_work *work, struct rp_error *err)
{
    const struct rp_state_by by = { .told = true };
    struct rp_tx *tx = work->tx;
    struct changes c;
    int r = make_changes(work, &c, err);
    for (size_t i = 0; i < work->n && r == 0; i++)
        collect(work, &work->slots[i], &c);
    if (r == 0) r = rp_state_move_all(tx, &by, c.moves, c.n_moves, err);
    if (r == 0) r = rp_state_extend(tx, &by, c.extends, c.n_extends, err);
    for (size_t i = 0; i < c.n_extends && r == 0; i++)
        RP_ASSERT(c.extends[i].done); /* locked since they were loaded */
    if (r == 0) r = rp_state_birth(tx, &by, c.births, c.n_births, err);
    if (r == 0) r = save_beside(work, &c, err);
    if (r == 0) r = rp_files_add(tx, c.born, c.n_born, err);
    if (r == 0) r = rp_files_save(tx, c.nameless, c.n_nameless, err);
    if (r == 0) r = rp_files_save(tx, c.named, c.n_named, err);
    return r < 0 ? r : rp_ledger_add(tx, c.ledger, c.n_ledger, err);
}
