/* SPDX-License-Identifier: Apache-2.0 */
#include "core/file/work.h"

#include "base/assert.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mutant.h"
#include "base/time.h"
#include "catalog/audit.h"

#include <inttypes.h>
#include <stddef.h>

/* ---- commands ---- */

_Static_assert(offsetof(struct rp_file_command, command) == 0, "a command is the first member");

/* TENANT: who is of no tenant may do it for all. */
static bool is_foreign(const struct rp_file_command *c, const struct rp_file_slot *slot)
{
    if (RP_MUTANT(TENANT_IGNORED)) return slot == NULL;
    return slot == NULL || (c->command.tenant_id != 0 && slot->file.tenant_id != c->command.tenant_id);
}

static int decide_one(struct rp_file_work *work, struct rp_file_command *c, rp_file_decide_fn *decide,
                      struct rp_error *err)
{
    struct rp_file_slot *slot = rp_file_work_find(work, c->file_id);
    c->changed = false;
    if (is_foreign(c, slot)) {
        rp_error_set(&c->command.error, RP_ENOTFOUND, "there is no such file");
        return 0;
    }
    int r = decide(work, c, slot, err);
    return r < 0 || c->command.error.code < 0 ? r : rp_file_work_answer(slot, c->arena, &c->answer, err);
}

int rp_file_work_each(struct rp_file_work *work, struct rp_command *const *commands, size_t n,
                      rp_file_decide_fn *decide, int waits, struct rp_error *err)
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

int rp_file_work_answer(const struct rp_file_slot *slot, struct rp_arena *arena, struct rp_file_answer *out,
                        struct rp_error *err)
{
    struct rp_file *f = &out->file;
    const char **const texts[] = { &f->name,    &f->key,         &f->content_type, &f->etag,
                                   &f->version, &f->process_key, &f->metadata };
    rp_file_answer_of(&slot->file, slot->mark, out);
    int r = copy_texts(arena, texts, sizeof texts / sizeof *texts, err);
    if (r < 0 || f->checksum == NULL) return r;
    f->checksum = (const uint8_t *)rp_arena_copy(arena, (const char *)f->checksum, RP_DIGEST_BYTES);
    return f->checksum != NULL ? 0 : rp_error_set(err, RP_ENOMEM, "no memory for a file");
}

int rp_file_missing(int64_t file_id, struct rp_error *err)
{
    char id[RP_ID_TEXT];
    return rp_error_set(err, RP_ECORRUPT, "%s is gone from the catalog", rp_id_format(RP_ID_FILE, file_id, id));
}

/* ---- changes ---- */

static void write_details(struct rp_buf *b, const struct rp_file_slot *slot, const char *store, const char *extra)
{
    const struct rp_file *f = &slot->file;
    char id[RP_ID_TEXT], mark[RP_ID_TEXT], due[RP_TIME_TEXT];
    rp_buf_clear(b);
    rp_buf_fmt(b, "{\"file\":\"%s\",\"name\":", rp_id_format(RP_ID_FILE, f->id, id));
    rp_json_quote(b, f->name);
    rp_buf_fmt(b, ",\"status\":\"%s\",\"store\":\"%s\",\"key\":", rp_status_name(f->status), store);
    rp_json_quote(b, f->key);
    rp_buf_fmt(b, ",\"size\":%" PRId64, f->size_bytes);
    if (slot->mark != NULL && slot->mark->state == RP_MARKED) {
        rp_buf_fmt(b, ",\"mark\":\"%s\",\"due_at\":\"%s\",\"reason\":", rp_id_format(RP_ID_MARK, slot->mark->id, mark),
                   rp_time_format(slot->mark->due_at_ms, due));
        rp_json_quote(b, slot->mark->reason);
    }
    rp_buf_str(b, extra);
    rp_buf_char(b, '}');
}

int rp_file_work_audit(struct rp_file_work *work, const struct rp_state_by *by, const char *event,
                       const struct rp_file_slot *slot, const char *extra, struct rp_error *err)
{
    struct rp_buf *b = &work->text;
    write_details(b, slot, by->store, extra);
    if (b->failed < 0) return rp_error_set(err, b->failed, "audit: the details do not fit");
    struct rp_audit_entry entry = { .event = event,
                                    .actor = by->actor,
                                    .mark_id = slot->file.mark_id,
                                    .tenant_id = slot->file.tenant_id,
                                    .text = rp_arena_copy(work->tx->arena, b->data, b->len) };
    if (entry.text == NULL) return rp_error_set(err, RP_ENOMEM, "audit: out of memory");
    return rp_tx_audit(work->tx, &entry, err);
}

void rp_file_work_change(struct rp_file_work *work, struct rp_file_slot *slot, enum rp_status to)
{
    struct rp_file *f = &slot->file;
    RP_ASSERT(rp_status_may_move(f->status, to));
    f->was = f->status;
    f->status = to;
    f->live_name = rp_status_lives(to);
    f->changed_at_ms = work->tx->late_ms;
    slot->changed = true;
}

static struct rp_mark *copy_mark(struct rp_file_work *work, const struct rp_mark *mark, struct rp_error *err)
{
    struct rp_mark *copy = rp_arena_alloc(work->tx->arena, sizeof *copy);
    if (copy != NULL)
        *copy = *mark;
    else
        rp_error_set(err, RP_ENOMEM, "no memory for a mark");
    return copy;
}

int rp_file_work_reprieve(struct rp_file_work *work, struct rp_file_slot *slot, enum rp_end how, struct rp_error *err)
{
    struct rp_mark *mark = slot->mark;
    RP_ASSERT(mark != NULL && work->n_moves < work->max);
    RP_ASSERT(mark->state == RP_MARKED || RP_MUTANT(FILE_RESTORE_AFTER_CLAIM) || RP_MUTANT(CONFIRM_AFTER_CLAIM));
    const struct rp_mark *before = copy_mark(work, mark, err);
    if (before == NULL) return RP_ENOMEM;
    work->moves[work->n_moves++] = (struct rp_move){
        .mark = before, .to = RP_REPRIEVED, .outcome = how, .attempts = mark->attempts, .refence = true
    };
    mark->state = RP_REPRIEVED;
    mark->outcome = how;
    return 0;
}

int rp_file_work_extend(struct rp_file_work *work, struct rp_file_slot *slot, int64_t due_at_ms, struct rp_error *err)
{
    struct rp_mark *mark = slot->mark;
    size_t i = 0;
    RP_ASSERT(mark->state == RP_MARKED && mark->due_at_ms < due_at_ms);
    while (i < work->n_extends && work->extends[i].mark->id != mark->id)
        i++;
    if (i == work->n_extends) {
        RP_ASSERT(i < work->max);
        const struct rp_mark *before = copy_mark(work, mark, err);
        if (before == NULL) return RP_ENOMEM;
        work->extends[work->n_extends++] = (struct rp_extend){ .mark = before };
    }
    work->extends[i].due_at_ms = mark->due_at_ms = due_at_ms;
    return 0;
}

static struct rp_mark *add_birth(struct rp_file_work *work, const struct rp_file *f, int64_t due_at_ms,
                                 const char *reason, const char *actor)
{
    RP_ASSERT(work->n_births < work->max);
    struct rp_mark *mark = &work->births[work->n_births++];
    *mark = (struct rp_mark){ .id = rp_tx_new_id(work->tx),
                              .store_id = f->store_id,
                              .key = f->key,
                              .state = RP_MARKED,
                              .due_at_ms = due_at_ms,
                              .marked_at_ms = work->tx->late_ms,
                              .tenant_id = f->tenant_id,
                              .reason = reason,
                              .actor = actor,
                              .file_id = f->id };
    return mark;
}

int rp_file_work_mark(struct rp_file_work *work, struct rp_file_slot *slot, int64_t due_at_ms, const char *reason,
                      const char *actor, struct rp_error *err)
{
    struct rp_file *f = &slot->file;
    struct rp_mark *mark = add_birth(work, f, due_at_ms, reason, actor);
    mark->etag = f->etag;
    mark->version = f->version;
    mark->size_bytes = f->size_bytes;
    mark->modified_ms = f->modified_ms;
    f->mark_id = mark->id;
    slot->changed = true;
    slot->mark = copy_mark(work, mark, err); /* a later decision may give it more time */
    return slot->mark != NULL ? 0 : RP_ENOMEM;
}

void rp_file_work_mark_late(struct rp_file_work *work, const struct rp_file *file, int64_t due_at_ms, const char *actor)
{
    add_birth(work, file, due_at_ms, RP_REASON_LATE, actor);
}

void rp_file_work_ledger(struct rp_file_work *work, const struct rp_file *file, enum rp_ledger_kind kind, bool was_used)
{
    RP_ASSERT(work->n_ledger < work->max);
    work->ledger[work->n_ledger++] = (struct rp_ledger){
        .file_id = file->id, .tenant_id = file->tenant_id, .bytes = file->size_bytes, .kind = kind, .was_used = was_used
    };
}

int rp_file_take_identity(struct rp_file_work *work, struct rp_file_slot *slot, const struct rp_identity *identity,
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

static int add_born(struct rp_file_work *work, struct rp_error *err)
{
    struct rp_file *files = rp_arena_room(work->tx->arena, work->n + 1, sizeof *files);
    size_t n = 0;
    if (files == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", work->n);
    for (size_t i = 0; i < work->n; i++)
        if (work->slots[i].born) files[n++] = work->slots[i].file;
    return n > 0 ? rp_files_add(work->tx, files, n, err) : 0;
}

/* K3: without `taking`, those that give up their name; then the others. */
static int save_changed(struct rp_file_work *work, bool taking, struct rp_error *err)
{
    const struct rp_file **files = rp_arena_array(work->tx->arena, work->n + 1, sizeof(struct rp_file *));
    size_t n = 0;
    if (files == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", work->n);
    for (size_t i = 0; i < work->n; i++) {
        const struct rp_file_slot *slot = &work->slots[i];
        if (slot->changed && !slot->born && slot->file.live_name == taking) files[n++] = &slot->file;
    }
    return rp_files_save(work->tx, files, n, err);
}

int rp_file_work_save(struct rp_file_work *work, struct rp_error *err)
{
    const struct rp_state_by by = { .told = true };
    struct rp_tx *tx = work->tx;
    int r = rp_state_move_all(tx, &by, work->moves, work->n_moves, err);
    if (r == 0) r = rp_state_birth(tx, &by, work->births, work->n_births, err);
    if (r == 0) r = rp_state_extend(tx, &by, work->extends, work->n_extends, err);
    for (size_t i = 0; i < work->n_extends && r == 0; i++)
        RP_ASSERT(work->extends[i].done); /* locked since they were loaded */
    if (r == 0) r = add_born(work, err);
    if (r == 0) r = save_changed(work, false, err);
    if (r == 0) r = save_changed(work, true, err);
    return r < 0 ? r : rp_ledger_add(tx, work->ledger, work->n_ledger, err);
}
