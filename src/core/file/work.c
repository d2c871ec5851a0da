/* SPDX-License-Identifier: Apache-2.0 */
#include "core/file/work.h"

#include "base/assert.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mutant.h"
#include "base/time.h"
#include "catalog/audit.h"
#include "core/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DETAILS_MAX 16384

/* ---- load ---- */

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static size_t sort_distinct(int64_t *ids, size_t n)
{
    size_t distinct = 0;
    qsort(ids, n, sizeof *ids, by_number);
    for (size_t i = 0; i < n; i++)
        if (distinct == 0 || ids[distinct - 1] != ids[i]) ids[distinct++] = ids[i];
    return distinct;
}

static int by_id(const void *a, const void *b)
{
    return by_number(&((const struct rp_file_slot *)a)->file.id, &((const struct rp_file_slot *)b)->file.id);
}

/* A mark that is not its file's any more: somebody was faster. */
static int join_marks(struct rp_file_work *work, size_t first_mark, size_t first_slot, struct rp_error *err)
{
    for (size_t m = first_mark; m < work->marks.n; m++) {
        struct rp_mark *mark = &work->marks.at[m];
        struct rp_file_slot key = { .file = { .id = mark->file_id } };
        struct rp_file_slot *slot = bsearch(&key, &work->slots[first_slot], work->n - first_slot, sizeof key, by_id);
        if (slot == NULL || slot->file.mark_id != mark->id)
            return rp_error_set(err, RP_ECONFLICT, "another writer was faster");
        slot->mark = mark;
    }
    return 0;
}

static int lock_files(struct rp_file_work *work, const int64_t *ids, size_t n, struct rp_error *err)
{
    struct rp_files files;
    int r = rp_files_init(&files, n, work->tx->arena, err);
    if (r == 0) r = rp_files_lock(work->tx, ids, n, &files, err);
    if (r < 0) return r;
    for (size_t i = 0; i < files.n; i++) {
        struct rp_file_slot *slot = &work->slots[work->n++];
        RP_ASSERT(work->n <= work->max);
        *slot = (struct rp_file_slot){ .file = files.at[i] };
        work->families |= slot->file.parent_id != 0 || slot->file.source_id != 0;
    }
    qsort(&work->slots[work->n - files.n], files.n, sizeof *work->slots, by_id);
    return 0;
}

static bool may_wait(const struct rp_file *file)
{
    return file->status == RP_FILE_PENDING || file->status == RP_FILE_DELETED;
}

/* Others may add to a family until its root is locked. */
static int check_below(struct rp_file_work *work, const int64_t *roots, size_t n, struct rp_error *err)
{
    size_t n_below = 0;
    int64_t *ids = rp_arena_array(work->tx->arena, RP_FILE_FAMILY_MAX + 1, sizeof *ids);
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a family");
    int r = rp_files_below(work->tx, roots, n, ids, RP_FILE_FAMILY_MAX, &n_below, err);
    for (size_t i = 0; i < n_below && r == 0; i++)
        if (rp_file_work_find(work, ids[i]) == NULL)
            return rp_error_set(err, RP_ECONFLICT, "another writer was faster");
    return r;
}

/* Locks the files with these ids and adds them to the slots, with their marks. */
static int add_files(struct rp_file_work *work, const int64_t *ids, size_t n, bool all_marks, struct rp_error *err)
{
    size_t first_mark = work->marks.n, first_slot = work->n, n_waiting = 0;
    int64_t *waiting = rp_arena_array(work->tx->arena, n + 1, sizeof *waiting);
    if (waiting == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", n);
    int r = all_marks ? rp_files_marks(work->tx, ids, n, &work->marks, err) : 0;
    if (r == 0) r = lock_files(work, ids, n, err);
    for (size_t i = first_slot; i < work->n && r == 0 && !all_marks; i++)
        if (may_wait(&work->slots[i].file)) waiting[n_waiting++] = work->slots[i].file.id;
    if (r == 0 && n_waiting > 0) r = rp_files_marks(work->tx, waiting, n_waiting, &work->marks, err);
    return r < 0 ? r : join_marks(work, first_mark, first_slot, err);
}

static int make_room(struct rp_file_work *work, size_t max, struct rp_error *err)
{
    struct rp_arena *arena = work->tx->arena;
    work->max = max;
    work->slots = rp_arena_room(arena, max + 1, sizeof *work->slots);
    work->moves = rp_arena_room(arena, 2 * max + 1, sizeof *work->moves);
    work->adds = rp_arena_room(arena, 2 * max + 1, sizeof *work->adds);
    work->ledger = rp_arena_room(arena, 2 * max + 1, sizeof *work->ledger);
    if (work->slots == NULL || work->moves == NULL || work->adds == NULL || work->ledger == NULL)
        return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", max);
    return rp_marks_init(&work->marks, max + 1, arena, err);
}

int rp_file_work_load(struct rp_file_work *work, struct rp_tx *tx, const int64_t *ids, size_t n, int what, size_t more,
                      struct rp_error *err)
{
    bool below = (what & RP_LOAD_BELOW) != 0;
    size_t n_below = 0, room = below ? RP_FILE_FAMILY_MAX : 0;
    int64_t *all = rp_arena_array(tx->arena, n + room + 1, sizeof *all);
    *work = (struct rp_file_work){ .tx = tx, .text = RP_BUF(DETAILS_MAX) };
    if (all == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", n);
    if (n > 0) memcpy(all, ids, n * sizeof *ids);
    size_t distinct = sort_distinct(all, n);
    int r = below ? rp_files_below(tx, all, distinct, &all[distinct], room, &n_below, err) : 0;
    if (r == 0) r = make_room(work, distinct + n_below + more, err);
    if (r == 0) r = add_files(work, all, sort_distinct(all, distinct + n_below), (what & RP_LOAD_MARKS) != 0, err);
    work->n_sorted = work->n;
    return r == 0 && below && !rp_db_has_one_writer(tx->db) ? check_below(work, ids, n, err) : r;
}

void rp_file_work_done(struct rp_file_work *work)
{
    rp_buf_done(&work->text);
}

struct rp_file_slot *rp_file_work_find(struct rp_file_work *work, int64_t id)
{
    struct rp_file_slot key = { .file = { .id = id } };
    struct rp_file_slot *slot = bsearch(&key, work->slots, work->n_sorted, sizeof key, by_id);
    for (size_t i = work->n_sorted; i < work->n && slot == NULL; i++)
        if (work->slots[i].file.id == id) slot = &work->slots[i];
    return slot;
}

int rp_file_work_add(struct rp_file_work *work, int64_t *ids, size_t n, struct rp_error *err)
{
    return add_files(work, ids, sort_distinct(ids, n), true, err);
}

int rp_file_work_living(struct rp_file_work *work, const int64_t *tenants, const char *const *names, size_t n,
                        struct rp_error *err)
{
    struct rp_files living;
    size_t fresh = 0, n_below = 0;
    int64_t *ids = rp_arena_array(work->tx->arena, n + RP_FILE_FAMILY_MAX + 1, sizeof *ids);
    int r = rp_files_init(&living, n, work->tx->arena, err);
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu names", n);
    if (r == 0) r = rp_files_living(work->tx, tenants, names, n, &living, err);
    for (size_t i = 0; i < living.n && r == 0; i++)
        if (rp_file_work_find(work, living.at[i].id) == NULL) ids[fresh++] = living.at[i].id;
    if (r < 0 || fresh == 0) return r;
    fresh = sort_distinct(ids, fresh);
    r = rp_files_below(work->tx, ids, fresh, &ids[fresh], RP_FILE_FAMILY_MAX, &n_below, err);
    size_t all = r == 0 ? sort_distinct(ids, fresh + n_below) : 0, wanted = 0;
    for (size_t i = 0; i < all; i++)
        if (rp_file_work_find(work, ids[i]) == NULL) ids[wanted++] = ids[i];
    return r < 0 ? r : add_files(work, ids, wanted, false, err);
}

int rp_file_work_owners(struct rp_file_work *work, enum rp_status of, struct rp_error *err)
{
    int64_t *ids = rp_arena_array(work->tx->arena, 2 * work->n + 1, sizeof *ids);
    size_t n = 0;
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", work->n);
    for (size_t i = 0; i < work->n && work->families; i++) {
        const struct rp_file *f = &work->slots[i].file;
        const int64_t owners[] = { f->parent_id, f->source_id };
        for (size_t k = 0; k < 2 && f->status == of; k++)
            if (owners[k] != 0 && rp_file_work_find(work, owners[k]) == NULL) ids[n++] = owners[k];
    }
    return n > 0 ? rp_file_work_add(work, ids, n, err) : 0;
}

int rp_file_check_owners(struct rp_file_work *work, const struct rp_file *file, struct rp_error *err)
{
    const int64_t owners[] = { file->parent_id, file->source_id };
    char id[RP_ID_TEXT];
    for (size_t k = 0; k < 2; k++) {
        const struct rp_file_slot *owner = owners[k] != 0 ? rp_file_work_find(work, owners[k]) : NULL;
        if (owner == NULL || owner->file.status == RP_FILE_LIVE || owner->file.status == RP_FILE_SCANNING) continue;
        bool pending = owner->file.status == RP_FILE_PENDING;
        if (pending && file->txn_id != 0 && owner->file.txn_id == file->txn_id) continue; /* both at once */
        rp_error_set(err, pending ? RP_ENOTLIVE : RP_EOWNERGONE, "'%s' belongs to %s, which is %s", file->name,
                     rp_id_format(RP_ID_FILE, owner->file.id, id), rp_status_name(owner->file.status));
        return rp_error_hint(err, pending ? "confirm that file first"
                                          : "restore that file first; or upload this one for itself");
    }
    return 0;
}

struct rp_file_slot *rp_file_work_holder(struct rp_file_work *work, int64_t tenant_id, const char *name)
{
    for (size_t i = 0; i < work->n; i++) {
        const struct rp_file *f = &work->slots[i].file;
        if (f->live_name && f->tenant_id == tenant_id && strcmp(f->name, name) == 0) return &work->slots[i];
    }
    return NULL;
}

/* ---- change ---- */

int rp_file_work_audit(struct rp_file_work *work, const char *event, const char *actor, const char *store,
                       const struct rp_file_slot *slot, const char *extra, struct rp_error *err)
{
    const struct rp_file *f = &slot->file;
    char id[RP_ID_TEXT], mark[RP_ID_TEXT], due[RP_TIME_TEXT];
    struct rp_buf *b = &work->text;
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
    int r = rp_buf_char(b, '}');
    if (r < 0) return rp_error_set(err, r, "audit: the details do not fit");
    struct rp_audit_entry entry = { .event = event,
                                    .actor = actor,
                                    .mark_id = f->mark_id,
                                    .tenant_id = f->tenant_id,
                                    .text = rp_arena_copy(work->tx->arena, b->data, b->len) };
    if (entry.text == NULL) return rp_error_set(err, RP_ENOMEM, "audit: out of memory");
    return rp_tx_audit(work->tx, &entry, err);
}

void rp_file_work_change(struct rp_file_work *work, struct rp_file_slot *slot, enum rp_status to)
{
    struct rp_file *f = &slot->file;
    RP_ASSERT(rp_status_may_move(f->status, to));
    bool lives = to == RP_FILE_LIVE || to == RP_FILE_SCANNING;
    f->was = f->status;
    f->status = to;
    f->live_name = lives;
    f->changed_at_ms = work->tx->late_ms;
    slot->changed = true;
}

int rp_file_work_reprieve(struct rp_file_work *work, struct rp_file_slot *slot, enum rp_end how, struct rp_error *err)
{
    struct rp_mark *mark = slot->mark;
    RP_ASSERT(mark != NULL &&
              (mark->state == RP_MARKED || RP_MUTANT(FILE_RESTORE_AFTER_CLAIM) || RP_MUTANT(CONFIRM_AFTER_CLAIM)));
    struct rp_mark *before = rp_arena_alloc(work->tx->arena, sizeof *before);
    if (before == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a mark");
    *before = *mark;
    work->moves[work->n_moves++] = (struct rp_move){
        .mark = before, .to = RP_REPRIEVED, .outcome = how, .attempts = mark->attempts, .refence = true
    };
    mark->state = RP_REPRIEVED;
    mark->outcome = how;
    return 0;
}

int rp_file_work_mark(struct rp_file_work *work, struct rp_file_slot *slot, const struct rp_mark_make *make,
                      struct rp_error *err)
{
    struct rp_file *f = &slot->file;
    struct rp_mark *mark = rp_arena_alloc(work->tx->arena, sizeof *mark);
    if (mark == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a mark");
    *mark = (struct rp_mark){ .id = rp_tx_new_id(work->tx),
                              .store_id = f->store_id,
                              .key = f->key,
                              .state = RP_MARKED,
                              .due_at_ms = make->due_at_ms,
                              .marked_at_ms = work->tx->late_ms,
                              .tenant_id = f->tenant_id,
                              .etag = f->etag,
                              .version = f->version,
                              .size_bytes = f->size_bytes,
                              .modified_ms = f->modified_ms,
                              .reason = make->reason,
                              .actor = make->actor,
                              .file_id = f->id };
    work->adds[work->n_adds++] = *mark;
    slot->mark = mark;
    slot->changed = true;
    f->mark_id = mark->id;
    return 0;
}

void rp_file_work_ledger(struct rp_file_work *work, const struct rp_file *file, enum rp_ledger_kind kind, bool was_used)
{
    work->ledger[work->n_ledger++] = (struct rp_ledger){
        .file_id = file->id, .tenant_id = file->tenant_id, .bytes = file->size_bytes, .kind = kind, .was_used = was_used
    };
}

static bool is_under(struct rp_file_work *work, int64_t id, int64_t root_id)
{
    if (id == 0) return false;
    const struct rp_file_slot *up = id == root_id ? NULL : rp_file_work_find(work, id);
    return id == root_id || (up != NULL && up->under == root_id);
}

/* Tags whatever belongs to the root, however deep: pass by pass, until a pass finds nothing new. */
void rp_file_work_tag(struct rp_file_work *work, int64_t root_id)
{
    bool found = work->families;
    while (found) {
        found = false;
        for (size_t i = 0; i < work->n; i++) {
            struct rp_file_slot *slot = &work->slots[i];
            if (slot->under == root_id || slot->file.id == root_id) continue;
            if (!is_under(work, slot->file.parent_id, root_id) && !is_under(work, slot->file.source_id, root_id))
                continue;
            slot->under = root_id;
            found = true;
        }
    }
}

static int delete_one(struct rp_file_work *work, struct rp_file_slot *slot, int64_t root_id, const char *store,
                      const struct rp_mark_make *make, struct rp_error *err)
{
    bool has_mark = slot->file.status == RP_FILE_PENDING; /* born marked: that mark goes on */
    if (RP_MUTANT(REPLACED_NOT_MARKED) && strcmp(make->reason, RP_REASON_REPLACED) == 0) has_mark = true;
    rp_file_work_change(work, slot, RP_FILE_DELETED);
    slot->file.with_id = root_id;
    int r = has_mark ? 0 : rp_file_work_mark(work, slot, make, err);
    return r < 0 ? r : rp_file_work_audit(work, "file.deleted", make->actor, store, slot, "", err);
}

int rp_file_work_delete(struct rp_file_work *work, struct rp_file_slot *root, const char *store,
                        const struct rp_mark_make *make, struct rp_error *err)
{
    int r = delete_one(work, root, root->file.id, store, make, err);
    if (r < 0 || !work->families || RP_MUTANT(DELETE_FORGETS_CHILDREN)) return r;
    rp_file_work_tag(work, root->file.id);
    for (size_t i = 0; i < work->n && r == 0; i++) {
        struct rp_file_slot *slot = &work->slots[i];
        if (slot->under != root->file.id || !rp_status_may_move(slot->file.status, RP_FILE_DELETED)) continue;
        r = delete_one(work, slot, root->file.id, store, make, err);
    }
    return r;
}

/* ---- save ---- */

/* Without `taking`, those that give up their name; then the others. */
static int save_slots(struct rp_file_work *work, bool taking, struct rp_error *err)
{
    const struct rp_file **files = rp_arena_array(work->tx->arena, work->n + 1, sizeof(struct rp_file *));
    size_t n = 0;
    if (files == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", work->n);
    for (size_t i = 0; i < work->n; i++)
        if (work->slots[i].changed && work->slots[i].file.live_name == taking) files[n++] = &work->slots[i].file;
    return rp_files_save(work->tx, files, n, err);
}

int rp_file_work_save(struct rp_file_work *work, struct rp_error *err)
{
    struct rp_tx *tx = work->tx;
    int r = rp_state_move(tx, &(struct rp_state_by){ .told = true }, work->moves, work->n_moves, err);
    for (size_t i = 0; i < work->n_moves && r == 0; i++)
        if (!work->moves[i].done) return rp_error_set(err, RP_ECONFLICT, "another writer was faster");
    if (r == 0) r = rp_marks_add(tx, work->adds, work->n_adds, err);
    for (size_t i = 0; i < work->n_adds && r == 0; i++)
        rp_tx_tally(tx, work->adds[i].store_id, RP_MARKED, 1, work->adds[i].size_bytes);
    if (r == 0) r = save_slots(work, false, err);
    if (r == 0) r = save_slots(work, true, err);
    return r < 0 ? r : rp_ledger_add(tx, work->ledger, work->n_ledger, err);
}

const struct rp_store *rp_store_of_file(struct rp_store *const *stores, size_t n, const struct rp_file *file)
{
    for (size_t i = 0; i < n; i++)
        if (stores[i]->id == file->store_id) return stores[i];
    return NULL;
}

static const char *copy(struct rp_arena *arena, const char *text, bool *failed)
{
    const char *to = text != NULL ? rp_arena_strdup(arena, text) : NULL;
    if (text != NULL && to == NULL) *failed = true;
    return to;
}

int rp_file_work_answer(const struct rp_file_slot *slot, struct rp_arena *arena, struct rp_file_answer *out,
                        struct rp_error *err)
{
    bool failed = false;
    rp_file_answer_of(&slot->file, slot->mark, out);
    struct rp_file *f = &out->file;
    f->name = copy(arena, f->name, &failed);
    f->key = copy(arena, f->key, &failed);
    f->content_type = copy(arena, f->content_type, &failed);
    f->etag = copy(arena, f->etag, &failed);
    f->version = copy(arena, f->version, &failed);
    f->process_key = copy(arena, f->process_key, &failed);
    f->metadata = copy(arena, f->metadata, &failed);
    if (f->checksum != NULL) {
        f->checksum = (const uint8_t *)rp_arena_copy(arena, (const char *)f->checksum, RP_DIGEST_BYTES);
        failed |= f->checksum == NULL;
    }
    return failed ? rp_error_set(err, RP_ENOMEM, "no memory for an answer") : 0;
}
