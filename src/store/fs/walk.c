/* SPDX-License-Identifier: Apache-2.0 */
#include "store/fs/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"

#define WINDOW_NAMES     16384
#define WINDOW_NAMES_MIN 16 /* at any depth, whatever the levels above use */
#define NAME_COST        48 /* bytes of bookkeeping for a name: pointer and allocation */

struct name {
    bool dir, removing;
    char text[]; /* a directory's ends in '/' */
};

struct rp_fs_level {
    size_t path_len;     /* of walk->path, up to this directory's trailing slash */
    const char *prefix;  /* what names must begin with, or NULL */
    const char *after;   /* what names must be above, or NULL */
    struct name **names; /* a heap with the largest on top while it is filled, then in order */
    size_t n, cap, next, bytes, bytes_max;
    struct name *last; /* the one most recently taken */
    bool more;         /* names above the window were left out */
};

static int order(const struct name *a, const struct name *b)
{
    int r = strcmp(a->text, b->text);
    return r != 0 ? r : (int)a->removing - (int)b->removing;
}

static void swap(struct name **names, size_t a, size_t b)
{
    struct name *kept = names[a];
    names[a] = names[b];
    names[b] = kept;
}

static void sift_down(struct name **names, size_t n, size_t at)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= n) return;
        if (child + 1 < n && order(names[child], names[child + 1]) < 0) child++;
        if (order(names[at], names[child]) >= 0) return;
        swap(names, at, child);
        at = child;
    }
}

static void sift_up(struct name **names, size_t at)
{
    for (; at > 0 && order(names[(at - 1) / 2], names[at]) < 0; at = (at - 1) / 2)
        swap(names, at, (at - 1) / 2);
}

static void sort_heap(struct name **names, size_t n)
{
    for (; n > 1; n--) {
        swap(names, 0, n - 1);
        sift_down(names, n - 1, 0);
    }
}

static size_t cost(const struct name *name)
{
    return strlen(name->text) + NAME_COST;
}

static void account(struct rp_fs_walk *walk, struct rp_fs_level *level, const struct name *name, bool added)
{
    size_t bytes = cost(name);
    level->bytes = added ? level->bytes + bytes : level->bytes - bytes;
    walk->bytes = added ? walk->bytes + bytes : walk->bytes - bytes;
}

static void drop_largest(struct rp_fs_walk *walk, struct rp_fs_level *level)
{
    struct name *largest = level->names[0];
    account(walk, level, largest, false);
    level->names[0] = level->names[--level->n];
    sift_down(level->names, level->n, 0);
    free(largest);
    level->more = true;
}

static bool full(const struct rp_fs_level *level)
{
    return level->n >= WINDOW_NAMES || (level->n >= WINDOW_NAMES_MIN && level->bytes >= level->bytes_max);
}

static int add(struct rp_fs_walk *walk, struct rp_fs_level *level, struct name *name)
{
    if (level->n == level->cap) {
        size_t cap = level->cap ? 2 * level->cap : WINDOW_NAMES_MIN;
        struct name **grown = reallocarray(level->names, cap, sizeof(struct name *));
        if (!grown) return -ENOMEM;
        level->names = grown;
        level->cap = cap;
    }
    level->names[level->n++] = name;
    sift_up(level->names, level->n - 1);
    account(walk, level, name, true);
    while (level->n > WINDOW_NAMES || (level->n > WINDOW_NAMES_MIN && level->bytes > level->bytes_max))
        drop_largest(walk, level);
    return 0;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Is the name, or for a directory anything below it, in the part of the listing that was asked
 * for? */
static bool wanted(const struct rp_fs_level *level, const char *text, bool dir)
{
    if (level->prefix && !begins(text, level->prefix) && !(dir && begins(level->prefix, text))) return false;
    if (level->after && strcmp(text, level->after) <= 0 && !(dir && begins(level->after, text))) return false;
    return true;
}

static int consider(struct rp_fs_walk *walk, struct rp_fs_level *level, const char *text, bool dir, bool removing)
{
    char sort[RP_FS_NAME_MAX + 2];
    size_t n = strlen(text);
    RP_ASSERT(n <= RP_FS_NAME_MAX);
    memcpy(sort, text, n + 1);
    if (dir) memcpy(sort + n++, "/", 2);
    if (!wanted(level, sort, dir)) return 0;
    if (level->last && strcmp(sort, level->last->text) <= 0) return 0;
    if (full(level) && strcmp(sort, level->names[0]->text) >= 0) {
        level->more = true;
        return 0;
    }
    struct name *name = malloc(sizeof *name + n + 1);
    if (!name) return -ENOMEM;
    name->dir = dir;
    name->removing = removing;
    memcpy(name->text, sort, n + 1);
    int r = add(walk, level, name);
    if (r < 0) free(name);
    return r;
}

static int unaddressable(struct rp_fs_walk *walk, const char *name, const char *why, struct rp_error *err)
{
    char path[RP_FS_PATH_MAX + RP_FS_NAME_MAX + 2], text[320];
    snprintf(path, sizeof path, "%.*s%s", (int)walk->path_len, walk->path, name);
    return rp_error_advise(err, RP_EINVAL, "rename or move the file, or list a prefix without it",
                           "store '%s': '%s' %s", walk->fs->root, rp_fs_printable(path, text, sizeof text), why);
}

static int unreadable(struct rp_fs_walk *walk, int errno_value, struct rp_error *err)
{
    char path[RP_FS_PATH_MAX], text[320];
    snprintf(path, sizeof path, "%.*s", (int)walk->path_len, walk->path);
    return rp_error_errno(err, errno_value, "store '%s': directory '%s' cannot be listed", walk->fs->root,
                          rp_fs_printable(path, text, sizeof text));
}

static unsigned char type_of(int dir_fd, const struct dirent *entry)
{
    struct stat st;
    if (entry->d_type != DT_UNKNOWN) return entry->d_type;
    if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) return DT_UNKNOWN;
    return S_ISREG(st.st_mode) ? DT_REG : S_ISDIR(st.st_mode) ? DT_DIR : DT_UNKNOWN;
}

typedef int entry_fn(struct rp_fs_walk *walk, struct rp_fs_level *level, const char *name, unsigned char type,
                     struct rp_error *err);

/* Every entry of the directory; the descriptor stays the caller's. */
static int scan(struct rp_fs_walk *walk, struct rp_fs_level *level, int dir_fd, entry_fn *fn, struct rp_error *err)
{
    int fd = rp_fs_openat2(dir_fd, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        int failed = fd < 0 ? -fd : errno;
        if (fd >= 0) close(fd);
        return unreadable(walk, failed, err);
    }
    int r = 0;
    while (r == 0) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry && errno != 0) r = unreadable(walk, errno, err);
        if (!entry) break;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = fn(walk, level, entry->d_name, type_of(fd, entry), err);
    }
    closedir(dir);
    return r;
}

static int consider_removing(struct rp_fs_walk *walk, struct rp_fs_level *level, const char *name, unsigned char type,
                             struct rp_error *err)
{
    if (type != DT_REG) return 0;
    if (consider(walk, level, name, false, true) < 0) return rp_error_set(err, RP_ENOMEM, "no memory to list");
    return 0;
}

/* A name that begins with ".reprieve~". */
static int take_reserved(struct rp_fs_walk *walk, struct rp_fs_level *level, const char *name, unsigned char type,
                         struct rp_error *err)
{
    const char *own = name + strlen(RP_FS_REMOVING);
    if (type == DT_REG && *own) return consider_removing(walk, level, own, type, err);
    if (type == DT_DIR && !*own) {
        RP_CLEANUP(rp_fd_closep) int fd = rp_fs_openat2(walk->dir_fd, name, O_RDONLY | O_DIRECTORY, 0);
        if (fd < 0) return rp_fs_absent(-fd) ? 0 : unreadable(walk, -fd, err);
        return scan(walk, level, fd, consider_removing, err);
    }
    if (type != DT_REG && type != DT_DIR) return 0;
    return wanted(level, name, type == DT_DIR) ? unaddressable(walk, name, "has a reserved name", err) : 0;
}

/* The store's own directories hold objects only where a listing of ".reprieve/" begins. */
static bool skipped(const struct rp_fs_walk *walk, const char *name, unsigned char type)
{
    if (type != DT_DIR || walk->base_len > 0) return false;
    if (walk->path_len == 0) return strcmp(name, RP_FS_OWN) == 0;
    return strncmp(walk->path, RP_STORE_OWN, walk->path_len) == 0 && walk->path_len == strlen(RP_STORE_OWN) &&
           rp_fs_name_internal(name, strlen(name));
}

static int take(struct rp_fs_walk *walk, struct rp_fs_level *level, const char *name, unsigned char type,
                struct rp_error *err)
{
    if (skipped(walk, name, type)) return 0;
    if (begins(name, RP_FS_REMOVING)) return take_reserved(walk, level, name, type, err);
    if (type != DT_REG && type != DT_DIR) return 0;
    if (consider(walk, level, name, type == DT_DIR, false) < 0)
        return rp_error_set(err, RP_ENOMEM, "no memory to list");
    return 0;
}

/* Makes dir_fd the directory of the deepest level. */
static int enter(struct rp_fs_walk *walk)
{
    if (walk->dir_fd >= 0 && walk->dir_depth == walk->depth) return 0;
    if (walk->dir_fd >= 0) close(walk->dir_fd);
    walk->dir_fd = rp_fs_dir_open(walk->fs, walk->path, walk->path_len);
    walk->dir_depth = walk->depth;
    return walk->dir_fd < 0 ? walk->dir_fd : 0;
}

static int fill(struct rp_fs_walk *walk, struct rp_fs_level *level, struct rp_error *err)
{
    level->n = level->next = 0;
    level->more = false;
    int r = enter(walk);
    if (r < 0) return rp_fs_absent(-r) ? 0 : unreadable(walk, -r, err);
    if ((r = scan(walk, level, walk->dir_fd, take, err)) < 0) return r;
    sort_heap(level->names, level->n);
    return 0;
}

static const char *rest(const char *text, const char *path, size_t n)
{
    if (!text || strncmp(text, path, n) != 0 || text[n] == '\0') return NULL;
    return text + n;
}

/* Opens a level for walk->path[0..path_len). */
static int push(struct rp_fs_walk *walk, struct rp_error *err)
{
    if (walk->depth == walk->cap) {
        size_t cap = walk->cap ? 2 * walk->cap : 16;
        struct rp_fs_level *grown = reallocarray(walk->levels, cap, sizeof *grown);
        if (!grown) return rp_error_set(err, RP_ENOMEM, "no memory to list");
        walk->levels = grown;
        walk->cap = cap;
    }
    const char *below = walk->path + walk->base_len;
    size_t n = walk->path_len - walk->base_len;
    struct rp_fs_level *level = &walk->levels[walk->depth++];
    *level = (struct rp_fs_level){
        .path_len = walk->path_len,
        .prefix = rest(walk->prefix, below, n),
        .after = rest(walk->after, below, n),
        .bytes_max = walk->bytes < RP_FS_WALK_BYTES ? (RP_FS_WALK_BYTES - walk->bytes) / 2 : 0,
    };
    return fill(walk, level, err);
}

static void pop(struct rp_fs_walk *walk)
{
    /* The next directory at this depth is another one. */
    if (walk->dir_fd >= 0 && walk->dir_depth == walk->depth) {
        close(walk->dir_fd);
        walk->dir_fd = -1;
    }
    struct rp_fs_level *level = &walk->levels[--walk->depth];
    for (size_t i = level->next; i < level->n; i++) {
        account(walk, level, level->names[i], false);
        free(level->names[i]);
    }
    free(level->last);
    free(level->names);
    if (walk->depth > 0) walk->path_len = walk->levels[walk->depth - 1].path_len;
}

int rp_fs_walk_begin(struct rp_fs_walk *walk, struct rp_fs *fs, const char *base, size_t below_max, const char *prefix,
                     const char *after, struct rp_error *err)
{
    const char *slash = strrchr(prefix, '/');
    size_t n = slash ? (size_t)(slash - prefix) + 1 : 0, base_len = strlen(base);
    *walk = (struct rp_fs_walk){ .fs = fs, .prefix = prefix, .after = after, .base_len = base_len, .dir_fd = -1 };
    walk->below_max = below_max;
    RP_ASSERT(base_len + n < RP_FS_PATH_MAX);
    memcpy(walk->path, base, base_len);
    memcpy(walk->path + base_len, prefix, n);
    walk->path_len = base_len + n;
    /* Past everything below this directory: nothing to walk. */
    if (after && strncmp(after, prefix, n) > 0) return 0;
    return push(walk, err);
}

void rp_fs_walk_end(struct rp_fs_walk *walk)
{
    while (walk->depth > 0)
        pop(walk);
    free(walk->levels);
    walk->levels = NULL;
    if (walk->dir_fd >= 0) close(walk->dir_fd);
    walk->dir_fd = -1;
}

/* The next name of the level, or NULL. One that stands in its place and is being removed as well is
 * given once. */
static int next_name(struct rp_fs_walk *walk, struct rp_fs_level *level, const struct name **out, struct rp_error *err)
{
    for (;;) {
        if (level->next == level->n) {
            *out = NULL;
            if (!level->more) return 0;
            int r = fill(walk, level, err);
            if (r < 0) return r;
            if (level->n == 0) return 0;
        }
        struct name *name = level->names[level->next++];
        account(walk, level, name, false);
        bool again = level->last && strcmp(level->last->text, name->text) == 0;
        free(level->last);
        level->last = name;
        *out = name;
        if (!again) return 0;
    }
}

static int descend(struct rp_fs_walk *walk, const char *name, struct rp_error *err)
{
    size_t n = strlen(name);
    if (walk->path_len - walk->base_len + n >= walk->below_max)
        return unaddressable(walk, name, "is too long a path for a key", err);
    memcpy(walk->path + walk->path_len, name, n + 1);
    walk->path_len += n;
    return push(walk, err);
}

/* 1: shown, 0: it is gone. */
static int show(struct rp_fs_walk *walk, const char *name, struct stat *st, struct rp_error *err)
{
    bool removing;
    int r = enter(walk);
    if (r == 0) r = rp_fs_look(walk->dir_fd, name, &removing, st);
    if (r < 0) return rp_fs_absent(-r) ? 0 : unreadable(walk, -r, err);
    size_t n = strlen(name);
    if (walk->path_len - walk->base_len + n > walk->below_max)
        return unaddressable(walk, name, "is too long a path for a key", err);
    memcpy(walk->path + walk->path_len, name, n + 1);
    if (walk->base_len > 0) return 1;
    if (rp_key_check(walk->path, walk->path_len + n, NULL) < 0)
        return unaddressable(walk, name, "is not valid UTF-8 and cannot be a key", err);
    return rp_fs_key_plain(walk->path) ? 1 : unaddressable(walk, name, "has a reserved name", err);
}

int rp_fs_walk_next(struct rp_fs_walk *walk, struct stat *st, struct rp_error *err)
{
    while (walk->depth > 0) {
        const struct name *name;
        int r = next_name(walk, &walk->levels[walk->depth - 1], &name, err);
        if (r < 0) return r;
        if (!name) {
            pop(walk);
            continue;
        }
        r = name->dir ? descend(walk, name->text, err) : show(walk, name->text, st, err);
        if (r != 0) return r;
    }
    return 0;
}
