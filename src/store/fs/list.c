/* SPDX-License-Identifier: Apache-2.0 */
/* list(): the walk of the plain home and that of the escaped one, merged. */
#include <string.h>

#include "base/cleanup.h"
#include "store/fs/walk.h"
#include "store/refuse.h"

struct stream {
    struct rp_fs_walk walk;
    bool escaped, there; /* there: key and st hold an entry that was not given yet */
    bool own;            /* show the keys that are ours */
    char prefix[RP_FS_PATH_MAX], after[RP_FS_PATH_MAX];
    char key[RP_KEY_MAX + 1];
    struct stat st;
};

static void stream_freep(struct stream **s)
{
    if (*s) rp_fs_walk_end(&(*s)->walk);
    free(*s);
}

static int damaged(const struct stream *s, struct rp_error *err)
{
    char text[320];
    return rp_error_set(err, RP_ECORRUPT, "store '%s': '%s' is no name that is written there", s->walk.fs->root,
                        rp_fs_printable(s->walk.path, text, sizeof text));
}

static int take_key(struct stream *s, struct rp_error *err)
{
    const char *path = s->walk.path + s->walk.base_len;
    if (!s->escaped) {
        memcpy(s->key, path, strlen(path) + 1);
        return 0;
    }
    if (!rp_fs_key_unescape(path, s->key) || rp_key_check(s->key, strlen(s->key), NULL) < 0) return damaged(s, err);
    return 0;
}

static int advance(struct stream *s, struct rp_error *err)
{
    s->there = false;
    for (;;) {
        int r = rp_fs_walk_next(&s->walk, &s->st, err);
        if (r <= 0) return r;
        if ((r = take_key(s, err)) < 0) return r;
        if (s->own || !rp_key_is_own(s->key)) break;
    }
    s->there = true;
    return 0;
}

static int stream_begin(struct stream *s, struct rp_fs *fs, const char *prefix, const char *after, struct rp_error *err)
{
    size_t below_max = RP_KEY_MAX;
    s->walk.dir_fd = -1;
    s->own = rp_key_is_own(prefix);
    if (s->escaped) {
        rp_fs_key_escape(prefix, s->prefix);
        rp_fs_key_escape(after, s->after);
        below_max = RP_FS_PATH_MAX - sizeof RP_FS_KEYS;
    } else {
        const char *slash = strrchr(prefix, '/');
        if (!rp_fs_prefix_plain(prefix, slash ? (size_t)(slash - prefix) + 1 : 0)) return 0;
        memcpy(s->prefix, prefix, strlen(prefix) + 1);
        memcpy(s->after, after, strlen(after) + 1);
    }
    int r = rp_fs_walk_begin(&s->walk, fs, s->escaped ? RP_FS_KEYS : "", below_max, s->prefix,
                             s->after[0] ? s->after : NULL, err);
    return r < 0 ? r : advance(s, err);
}

/* The smaller key; of two equal ones the plain home's, and the other is passed over (fs.h, F2). */
static int merge(struct stream *plain, struct stream *escaped, rp_entry_fn *fn, void *ctx, struct rp_error *err)
{
    while (plain->there || escaped->there) {
        int order = !plain->there ? 1 : !escaped->there ? -1 : strcmp(plain->key, escaped->key);
        struct stream *s = order <= 0 ? plain : escaped;
        struct rp_entry entry = { .key = s->key };
        rp_fs_identity(&s->st, &entry.identity);
        int r = fn(ctx, &entry, err);
        if (r != 0) return r < 0 ? r : 1;
        if ((r = advance(s, err)) < 0) return r;
        if (order == 0 && (r = advance(escaped, err)) < 0) return r;
    }
    return 0;
}

int rp_fs_list(struct rp_backend *backend, const char *prefix, const char *after, rp_entry_fn *fn, void *ctx,
               struct rp_error *err)
{
    RP_CLEANUP(rp_fs_leave) struct rp_fs *fs = rp_fs_enter(backend);
    if (!prefix) prefix = "";
    if (!after) after = "";
    int r = rp_list_check(prefix, after, err);
    if (r < 0 || (r = rp_fs_root_check(fs, err)) < 0) return r;
    RP_CLEANUP(stream_freep) struct stream *plain = calloc(1, sizeof *plain);
    RP_CLEANUP(stream_freep) struct stream *escaped = calloc(1, sizeof *escaped);
    if (plain) plain->walk.dir_fd = -1;
    if (escaped) escaped->walk.dir_fd = -1;
    if (!plain || !escaped) return rp_error_set(err, RP_ENOMEM, "no memory to list");
    escaped->escaped = true;
    if ((r = stream_begin(plain, fs, prefix, after, err)) < 0) return r;
    if ((r = stream_begin(escaped, fs, prefix, after, err)) < 0) return r;
    r = merge(plain, escaped, fn, ctx, err);
    if (r != 0) return r < 0 ? r : 0;
    return rp_fs_root_check(fs, err); /* a root that vanished meanwhile made the listing short */
}
