/* SPDX-License-Identifier: Apache-2.0 */
#include "store/whole.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"

#define CHUNK_BYTES ((size_t)128 << 10)

static int take_all(struct rp_backend *backend, struct rp_object_writer *writer, const struct rp_source *from,
                    char *chunk, struct rp_error *err)
{
    for (;;) {
        int64_t n = from->read(from->ctx, chunk, CHUNK_BYTES, err);
        if (n <= 0) return (int)n;
        RP_ASSERT((size_t)n <= CHUNK_BYTES);
        int r = backend->ops->put_write(writer, chunk, (size_t)n, err);
        if (r < 0) return r;
    }
}

int rp_backend_put_whole(struct rp_backend *backend, const char *key, const struct rp_source *from,
                         const struct rp_meta *meta, int flags, struct rp_identity *out, struct rp_error *err)
{
    struct rp_object_writer *writer = NULL;
    RP_CLEANUP(rp_freep) char *chunk = malloc(CHUNK_BYTES);
    if (!chunk) return rp_error_set(err, RP_ENOMEM, "no memory to write an object");
    int r = backend->ops->put_open(backend, key, meta, flags, &writer, err);
    if (r < 0) return r;
    if ((r = take_all(backend, writer, from, chunk, err)) == 0) return backend->ops->put_commit(writer, out, err);
    backend->ops->put_abort(writer);
    return r;
}

static int give_all(struct rp_backend *backend, struct rp_object_reader *reader, const struct rp_sink *to,
                    struct rp_error *err)
{
    RP_CLEANUP(rp_freep) char *chunk = malloc(CHUNK_BYTES);
    if (!chunk) return rp_error_set(err, RP_ENOMEM, "no memory to read an object");
    for (int64_t at = 0;;) {
        int64_t n = backend->ops->get_read(reader, at, chunk, CHUNK_BYTES, err);
        if (n <= 0) return (int)n;
        int r = to->write(to->ctx, chunk, (size_t)n, err);
        if (r < 0) return r;
        at += n;
    }
}

int rp_backend_get_whole(struct rp_backend *backend, const char *key, const struct rp_sink *to, struct rp_arena *arena,
                         struct rp_meta *meta, struct rp_identity *identity, struct rp_error *err)
{
    struct rp_object_reader *reader = NULL;
    struct rp_meta loaded = { 0 };
    struct rp_identity found;
    int r = backend->ops->get_open(backend, key, arena, meta ? &loaded : NULL, &found, &reader, err);
    if (r < 0) return r;
    if (to) r = give_all(backend, reader, to, err);
    backend->ops->get_close(reader);
    if (r < 0) return r;
    if (meta) *meta = loaded;
    if (identity) *identity = found;
    return 0;
}
