/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - the files of a round, loaded and locked (work.h, K1 and K5). */
#include "base/assert.h"
#include "base/id.h"
#include "core/file/work.h"

#include <stdlib.h>
#include <string.h>

#define DETAILS_MAX 16384

void *rp_work_room(struct rp_tx *tx, size_t n, size_t size, struct rp_error *err)
{
    void *room = rp_arena_room(tx->arena, n, size);
    if (room == NULL) rp_error_set(err, RP_ENOMEM, "no memory for %zu files", n);
    return room;
}

static int too_slow(struct rp_error *err)
{
    return rp_error_set(err, RP_ECONFLICT, "another writer was faster");
}

static int by_id(const void *a, const void *b)
{
    return rp_id_order(((const struct rp_slot *)a)->file.id, ((const struct rp_slot *)b)->file.id);
}

struct rp_slot *rp_work_find(struct rp_work *work, int64_t id)
{
    struct rp_slot key = { .file = { .id = id } };
    return work->n > 0 ? bsearch(&key, work->slots, work->n, sizeof key, by_id) : NULL;
}

int rp_work_missing(int64_t file_id, struct rp_error *err)
{
    char id[RP_ID_TEXT];
    return rp_error_set(err, RP_ECORRUPT, "%s is gone from the catalog", rp_id_format(RP_ID_FILE, file_id, id));
}

struct rp_slot *rp_work_holder(struct rp_work *work, const struct rp_file *file)
{
    for (size_t i = 0; i < work->n; i++) {
        const struct rp_file *f = &work->slots[i].file;
        if (f->live_name && f->tenant_id == file->tenant_id && strcmp(f->name, file->name) == 0) return &work->slots[i];
    }
    return NULL;
}

static int make_room(struct rp_work *work, size_t more, struct rp_error *err)
{
    struct rp_slot *slots = rp_work_room(work->tx, work->n + more + 1, sizeof *slots, err);
    if (slots == NULL) return RP_ENOMEM;
    if (work->n > 0) memcpy(slots, work->slots, work->n * sizeof *slots);
    work->slots = slots;
    work->max = work->n + more;
    return 0;
}

int rp_work_begin(struct rp_work *work, struct rp_tx *tx, size_t n, struct rp_error *err)
{
    *work = (struct rp_work){ .tx = tx, .text = RP_BUF(DETAILS_MAX) };
    return make_room(work, n, err);
}

void rp_work_done(struct rp_work *work)
{
    rp_buf_done(&work->text);
}

/* ---- by id ---- */

/* Those that are not loaded yet, sorted, each once. */
static size_t keep_new(struct rp_work *work, int64_t *ids, size_t n)
{
    size_t kept = 0;
    n = rp_ids_sort(ids, n);
    for (size_t i = 0; i < n; i++)
        if (rp_work_find(work, ids[i]) == NULL) ids[kept++] = ids[i];
    return kept;
}

static int lock_files(struct rp_work *work, const int64_t *ids, size_t n, struct rp_error *err)
{
    struct rp_files files;
    int r = rp_files_init(&files, n, work->tx->arena, err);
    if (r == 0) r = rp_files_lock(work->tx, ids, n, &files, err);
    if (r < 0) return r;
    RP_ASSERT(work->n + files.n <= work->max);
    for (size_t i = 0; i < files.n; i++) {
        work->slots[work->n++] = (struct rp_slot){ .file = files.at[i] };
        work->families |= files.at[i].parent_id != 0 || files.at[i].source_id != 0;
    }
    if (work->n > 1) qsort(work->slots, work->n, sizeof *work->slots, by_id);
    rp_work_link(work);
    return 0;
}

/* Those whose mark says when they go, or went. */
static size_t keep_waiting(struct rp_work *work, int64_t *ids, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const struct rp_slot *slot = rp_work_find(work, ids[i]);
        enum rp_status status = slot != NULL ? slot->file.status : RP_FILE_LIVE;
        if (status == RP_FILE_PENDING || status == RP_FILE_DELETED || status == RP_FILE_PURGED) ids[kept++] = ids[i];
    }
    return kept;
}

/* A mark that is not its file's any more: somebody was faster. */
static int join_marks(struct rp_work *work, const struct rp_marks *marks, struct rp_error *err)
{
    for (size_t i = 0; i < marks->n; i++) {
        struct rp_slot *slot = rp_work_find(work, marks->at[i].file_id);
        if (slot == NULL || slot->file.mark_id != marks->at[i].id) return too_slow(err);
        slot->mark = slot->loaded_mark = marks->at[i];
    }
    return 0;
}

/* Locks these files and adds them to the slots, with their marks. */
static int add_files(struct rp_work *work, int64_t *ids, size_t n, bool all_marks, struct rp_error *err)
{
    struct rp_marks marks;
    n = keep_new(work, ids, n);
    if (n == 0) return 0;
    int r = make_room(work, n, err);
    if (r == 0) r = rp_marks_init(&marks, n, work->tx->arena, err);
    if (r == 0 && all_marks) r = rp_files_marks(work->tx, ids, n, &marks, err);
    if (r == 0) r = lock_files(work, ids, n, err);
    size_t waiting = r == 0 && !all_marks ? keep_waiting(work, ids, n) : 0;
    if (r == 0 && waiting > 0) r = rp_files_marks(work->tx, ids, waiting, &marks, err);
    return r < 0 ? r : join_marks(work, &marks, err);
}

/* Others may add to a family until its root is locked. */
static int check_below(struct rp_work *work, const int64_t *roots, size_t n, struct rp_error *err)
{
    size_t n_below = 0;
    int64_t *ids = rp_work_room(work->tx, RP_FILE_FAMILIES_MAX, sizeof *ids, err);
    if (ids == NULL) return RP_ENOMEM;
    int r = rp_files_below(work->tx, roots, n, ids, RP_FILE_FAMILIES_MAX, &n_below, err);
    for (size_t i = 0; i < n_below && r == 0; i++)
        if (rp_work_find(work, ids[i]) == NULL) r = too_slow(err);
    return r;
}

int rp_work_load(struct rp_work *work, struct rp_tx *tx, const int64_t *ids, size_t n, int what, struct rp_error *err)
{
    bool below = (what & RP_LOAD_BELOW) != 0;
    size_t n_below = 0, room = below ? RP_FILE_FAMILIES_MAX : 0;
    int r = rp_work_begin(work, tx, 0, err);
    int64_t *all = rp_work_room(tx, n + room + 1, sizeof *all, err);
    if (r < 0 || all == NULL) return RP_ENOMEM;
    if (n > 0) memcpy(all, ids, n * sizeof *ids);
    size_t distinct = keep_new(work, all, n);
    if (below) r = rp_files_below(tx, all, distinct, &all[distinct], room, &n_below, err);
    if (r == 0) r = add_files(work, all, distinct + n_below, (what & RP_LOAD_MARKS) != 0, err);
    return r == 0 && below && !rp_db_has_one_writer(tx->db) ? check_below(work, ids, n, err) : r;
}

int rp_work_load_commands(struct rp_work *work, struct rp_tx *tx, struct rp_command *const *commands, size_t n,
                          int what, struct rp_error *err)
{
    int64_t *ids = rp_work_room(tx, n, sizeof *ids, err);
    if (ids == NULL) return RP_ENOMEM;
    for (size_t i = 0; i < n; i++)
        ids[i] = ((struct rp_file_command *)commands[i])->file_id;
    return rp_work_load(work, tx, ids, n, what, err);
}

/* ---- by what the loaded ones have to do with ---- */

int rp_work_owners(struct rp_work *work, enum rp_status status, struct rp_error *err)
{
    int64_t *ids = rp_work_room(work->tx, 3 * work->n + 1, sizeof *ids, err);
    size_t n = 0;
    if (ids == NULL) return RP_ENOMEM;
    for (size_t i = 0; i < work->n && work->families; i++) {
        const struct rp_file *f = &work->slots[i].file;
        const int64_t owners[] = { f->with_id, f->parent_id, f->source_id };
        for (size_t k = 0; k < 3 && f->status == status; k++)
            if (owners[k] != 0) ids[n++] = owners[k];
    }
    return add_files(work, ids, n, true, err);
}

static int find_living(struct rp_work *work, enum rp_status status, int64_t txn_id, struct rp_files *out,
                       struct rp_error *err)
{
    int64_t *tenants = rp_work_room(work->tx, work->n + 1, sizeof *tenants, err);
    const char **names = rp_work_room(work->tx, work->n + 1, sizeof *names, err);
    size_t n = 0;
    int r = rp_files_init(out, work->n, work->tx->arena, err);
    if (r < 0 || tenants == NULL || names == NULL) return RP_ENOMEM;
    for (size_t i = 0; i < work->n; i++) {
        const struct rp_file *f = &work->slots[i].file;
        if (f->status != status || (txn_id != 0 && f->txn_id != txn_id)) continue;
        tenants[n] = f->tenant_id;
        names[n++] = f->name;
    }
    return n > 0 ? rp_files_living(work->tx, tenants, names, n, out, err) : 0;
}

int rp_work_holders(struct rp_work *work, enum rp_status status, int64_t txn_id, struct rp_error *err)
{
    struct rp_files living;
    bool replaced = status == RP_FILE_PENDING; /* what is restored takes nobody's place */
    size_t n_below = 0;
    int r = find_living(work, status, txn_id, &living, err);
    if (r < 0 || living.n == 0) return r;
    int64_t *ids = rp_work_room(work->tx, living.n + RP_FILE_FAMILIES_MAX, sizeof *ids, err);
    if (ids == NULL) return RP_ENOMEM;
    for (size_t i = 0; i < living.n; i++)
        ids[i] = living.at[i].id;
    /* also of one that is loaded already: as what another one belongs to, without what is below it */
    if (replaced) r = rp_files_below(work->tx, ids, living.n, &ids[living.n], RP_FILE_FAMILIES_MAX, &n_below, err);
    return r < 0 ? r : add_files(work, ids, living.n + n_below, false, err);
}
