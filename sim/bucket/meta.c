/* SPDX-License-Identifier: Apache-2.0 */
/* Headers and user metadata of a simulated upload: packed into its place, so that an upload owns no
 * memory. */
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/error.h"
#include "parts.h"
#include "store/meta.h"

/* The pairs point into the packed text. */
struct unpacked {
    struct rp_pair headers[BUCKET_PAIRS_MAX], user[BUCKET_PAIRS_MAX];
    size_t n_headers, n_user;
};

static int too_much(struct rp_error *err)
{
    return rp_error_set(err, RP_ETOOBIG, "a simulated bucket keeps %d bytes of metadata in %d fields", BUCKET_META_MAX,
                        BUCKET_PAIRS_MAX);
}

static bool pack(struct bucket_upload *to, char kind, const struct rp_pair *pair)
{
    size_t name = strlen(pair->name) + 1, value = strlen(pair->value) + 1;
    if (1 + name + value > sizeof to->meta - to->meta_bytes) return false;
    char *at = to->meta + to->meta_bytes;
    *at = kind;
    memcpy(at + 1, pair->name, name);
    memcpy(at + 1 + name, pair->value, value);
    to->meta_bytes += 1 + name + value;
    return true;
}

static int pack_all(struct bucket_upload *to, const struct rp_meta *meta, struct rp_error *err)
{
    to->meta_bytes = 0;
    if (meta->n_headers > BUCKET_PAIRS_MAX || meta->n_user > BUCKET_PAIRS_MAX) return too_much(err);
    for (size_t i = 0; i < meta->n_headers; i++)
        if (!pack(to, 'h', &meta->headers[i])) return too_much(err);
    for (size_t i = 0; i < meta->n_user; i++)
        if (!pack(to, 'u', &meta->user[i])) return too_much(err);
    return 0;
}

int bucket_meta_pack(struct bucket_upload *upload, const struct rp_meta *meta, struct rp_error *err)
{
    upload->meta_bytes = 0;
    if (rp_meta_empty(meta)) return 0;
    int r = rp_meta_check(meta, err);
    return r < 0 ? r : pack_all(upload, meta, err);
}

static void unpack(const char *meta, size_t bytes, struct unpacked *out)
{
    out->n_headers = out->n_user = 0;
    for (size_t at = 0; at < bytes;) {
        char kind = meta[at++];
        struct rp_pair pair = { .name = meta + at };
        at += strlen(meta + at) + 1;
        pair.value = meta + at;
        at += strlen(meta + at) + 1;
        RP_ASSERT(at <= bytes && out->n_headers < BUCKET_PAIRS_MAX && out->n_user < BUCKET_PAIRS_MAX);
        if (kind == 'h')
            out->headers[out->n_headers++] = pair;
        else
            out->user[out->n_user++] = pair;
    }
}

int bucket_meta_unpack(const struct bucket_upload *upload, struct rp_arena *arena, struct rp_meta *out,
                       struct rp_error *err)
{
    struct unpacked all;
    *out = (struct rp_meta){ 0 };
    if (upload->meta_bytes == 0) return 0;
    unpack(upload->meta, upload->meta_bytes, &all);
    const struct rp_meta meta = { all.headers, all.n_headers, all.user, all.n_user };
    return rp_meta_copy(arena, &meta, out, err);
}

static const struct rp_pair *find(const struct rp_pair *pairs, size_t n, const char *name)
{
    for (size_t i = n; i-- > 0;)
        if (strcmp(pairs[i].name, name) == 0) return &pairs[i];
    return NULL;
}

bool bucket_meta_has(const struct bucket_upload *upload, const char *name)
{
    struct unpacked all;
    unpack(upload->meta, upload->meta_bytes, &all);
    return find(all.user, all.n_user, name) != NULL;
}

int bucket_meta_change(struct bucket_upload *to, const struct bucket_upload *from, const struct rp_pair *changes,
                       size_t n, struct rp_error *err)
{
    char before[BUCKET_META_MAX];
    struct unpacked all;
    struct rp_pair user[2 * BUCKET_PAIRS_MAX];
    size_t used = 0;
    if (n > BUCKET_PAIRS_MAX) return too_much(err);
    memcpy(before, from->meta, from->meta_bytes);
    unpack(before, from->meta_bytes, &all);
    for (size_t i = 0; i < all.n_user; i++)
        if (find(changes, n, all.user[i].name) == NULL) user[used++] = all.user[i];
    for (size_t i = 0; i < n; i++)
        if (find(changes, n, changes[i].name) == &changes[i] && changes[i].value != NULL) user[used++] = changes[i];
    const struct rp_meta meta = { all.headers, all.n_headers, user, used };
    int r = rp_meta_check(&meta, err);
    return r < 0 ? r : pack_all(to, &meta, err);
}
