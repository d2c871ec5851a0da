/* SPDX-License-Identifier: Apache-2.0 */
/* family.c - what was deleted along with the files of a restore, and does not simply wait
 * (reprieve.h, V7). */
#include "core/reprieve/reprieve.h"

#include <string.h>

size_t rp_reprieve_count(const struct rp_reprieve_command *c)
{
    return c->n + c->n_family;
}

struct rp_reprieve_item *rp_reprieve_at(const struct rp_reprieve_command *c, size_t i)
{
    return i < c->n ? &c->items[i] : &c->family[i - c->n];
}

struct relatives {
    struct rp_reprieve_command *command;
    int64_t ids[RP_REPRIEVE_FAMILY_MAX];
    size_t n;
};

static bool is_known(const struct relatives *rel, int64_t file_id)
{
    const struct rp_reprieve_command *c = rel->command;
    for (size_t i = 0; i < rp_reprieve_count(c); i++) {
        const struct rp_reprieve_item *item = rp_reprieve_at(c, i);
        if (item->mark.file_id == file_id || item->file_id == file_id) return true;
    }
    for (size_t i = 0; i < rel->n; i++)
        if (rel->ids[i] == file_id) return true;
    return false;
}

static void refuse_root(struct rp_reprieve_command *c, int64_t file_id)
{
    for (size_t i = 0; i < c->n; i++) {
        struct rp_reprieve_item *item = &c->items[i];
        if (item->mark.file_id != file_id || item->error.code < 0) continue;
        rp_error_set(&item->error, RP_ETOOBIG, "too many files were deleted along with those of this request");
        rp_error_hint(&item->error, "restore fewer at once");
    }
}

static int add_relative(void *ctx, int64_t root_id, int64_t file_id, struct rp_error *err)
{
    struct relatives *rel = ctx;
    (void)err;
    if (is_known(rel, file_id)) return 0;
    if (rel->command->n_family + rel->n == RP_REPRIEVE_FAMILY_MAX)
        refuse_root(rel->command, root_id);
    else
        rel->ids[rel->n++] = file_id;
    return 0;
}

/* Those that are new: a command that is prepared once more keeps what it has. */
int rp_reprieve_find_family(struct rp_catalog *catalog, struct rp_reprieve_command *c, struct rp_error *err)
{
    int64_t *roots = rp_arena_array(c->arena, c->n + 1, sizeof *roots);
    size_t n = 0;
    for (size_t i = 0; i < c->n && roots != NULL; i++)
        if (c->items[i].error.code == 0 && c->items[i].mark.file_id != 0) roots[n++] = c->items[i].mark.file_id;
    if (n == 0 && roots != NULL) return 0;
    struct relatives *rel = rp_arena_alloc(c->arena, sizeof *rel);
    if (rel == NULL || roots == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a family");
    rel->command = c;
    int r = rp_files_along(catalog->db, c->arena, roots, n, add_relative, rel, err);
    if (r < 0 || rel->n == 0) return r;
    struct rp_reprieve_item *all = rp_arena_array(c->arena, c->n_family + rel->n, sizeof *all);
    if (all == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a family of %zu", rel->n);
    if (c->n_family > 0) memcpy(all, c->family, c->n_family * sizeof *all);
    for (size_t i = 0; i < rel->n; i++)
        all[c->n_family++] = (struct rp_reprieve_item){ .by = RP_NAMED_BY_FILE, .file_id = rel->ids[i] };
    c->family = all;
    return 0;
}
