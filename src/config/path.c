/* SPDX-License-Identifier: Apache-2.0 */
#include "config/path.h"

#include <limits.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/text/buf.h"

static size_t length_without_slashes(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return n;
}

const char *rp_path_join(const char *dir, const char *path, struct rp_arena *arena)
{
    int n = (int)length_without_slashes(path);
    if (path[0] == '/' || !*dir || strcmp(dir, ".") == 0) return rp_arena_copy(arena, path, (size_t)n);
    while (n > 2 && strncmp(path, "./", 2) == 0) {
        path += 2;
        n -= 2;
    }
    int m = (int)length_without_slashes(dir);
    return rp_arena_fmt(arena, "%.*s%s%.*s", m, dir, strcmp(dir, "/") == 0 ? "" : "/", n, path);
}

/* Adds the parts of `rest` to an absolute path, taking "." and ".." as words. */
static void add_parts(struct rp_buf *to, const char *rest)
{
    while (*rest) {
        size_t n = strcspn(rest, "/");
        if (n == 2 && strncmp(rest, "..", 2) == 0) {
            while (to->len > 0 && to->data[--to->len] != '/')
                continue;
            if (to->data) to->data[to->len] = '\0';
        } else if (n > 0 && !(n == 1 && *rest == '.')) {
            rp_buf_char(to, '/');
            rp_buf_add(to, rest, n);
        }
        rest += n + (rest[n] == '/');
    }
}

/* The store's directory need not exist yet: its nearest ancestor that does decides where it will
 * be. */
const char *rp_path_resolve(const char *path, struct rp_arena *arena)
{
    char *head = rp_arena_fmt(arena, "%s%s", path[0] == '/' ? "" : "./", path);
    if (!head) return NULL;
    RP_CLEANUP(rp_freep) char *real = realpath(head, NULL);
    size_t cut = strlen(head);
    while (!real && cut > 0) {
        while (cut > 0 && head[cut - 1] != '/')
            cut--;
        while (cut > 0 && head[cut - 1] == '/')
            cut--;
        char after = head[cut];
        head[cut] = '\0';
        real = realpath(cut > 0 ? head : "/", NULL);
        head[cut] = after;
    }
    RP_CLEANUP(rp_buf_done) struct rp_buf whole = RP_BUF(4 * PATH_MAX);
    if (real) add_parts(&whole, real);
    add_parts(&whole, head + cut);
    if (whole.failed) return NULL;
    return rp_arena_copy(arena, whole.len > 0 ? rp_buf_text(&whole) : "/", whole.len > 0 ? whole.len : 1);
}

const char *rp_path_parent(const char *file, struct rp_arena *arena)
{
    const char *slash = strrchr(file, '/');
    if (!slash) return rp_arena_copy(arena, ".", 1);
    return rp_arena_copy(arena, file, slash == file ? 1 : (size_t)(slash - file));
}

bool rp_path_is_within(const char *path, const char *dir)
{
    if (strcmp(dir, "/") == 0) return true;
    size_t n = strlen(dir);
    return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}
