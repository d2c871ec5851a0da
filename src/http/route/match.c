/* SPDX-License-Identifier: Apache-2.0 */
#include "http/route/percent.h"
#include "http/route/route.h"

#include <pthread.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "catalog/token.h"
#include "metrics/metrics.h"

_Static_assert((unsigned)RP_MAY_ALL == RP_TOKEN_SCOPES_ALL, "every scope has its name in catalog/token.c");

const char *rp_scope_name(enum rp_scope_bit scope)
{
    unsigned bit = (unsigned)scope;
    RP_ASSERT(bit != 0 && (bit & (bit - 1)) == 0 && bit <= RP_TOKEN_SCOPES_ALL);
    return rp_token_scope_names[__builtin_ctz(bit)];
}

bool rp_scope_parse(const char *name, unsigned *bit)
{
    for (unsigned i = 0; i < RP_TOKEN_SCOPES; i++) {
        if (strcmp(rp_token_scope_names[i], name) != 0) continue;
        *bit = 1U << i;
        return true;
    }
    return false;
}

size_t rp_route_count(void)
{
    size_t n = 0;
    for (size_t i = 0; i < rp_route_tables_n; i++)
        n += rp_route_tables[i]->n;
    return n;
}

const struct rp_route *rp_route_at(size_t i)
{
    size_t table = 0;
    while (table < rp_route_tables_n && i >= rp_route_tables[table]->n)
        i -= rp_route_tables[table++]->n;
    RP_ASSERT(table < rp_route_tables_n);
    return &rp_route_tables[table]->at[i];
}

int rp_route_status(const struct rp_route *route)
{
    return route->status != 0 ? route->status : 200;
}

bool rp_route_for_metrics(size_t i, struct rp_metrics_route *out)
{
    if (i >= rp_route_count()) return false;
    const struct rp_route *route = rp_route_at(i);
    *out = (struct rp_metrics_route){ .key = route, .method = route->method, .path = route->path };
    return true;
}

struct segment {
    const char *at;
    size_t n;
};

/* Whether the path has the pattern's form; nothing is copied before that is known. */
static bool fits(const char *pattern, const char *path, struct segment args[RP_PATH_ARGS], size_t *n_args)
{
    *n_args = 0;
    while (*pattern != '\0') {
        if (*pattern != '{') {
            if (*pattern++ != *path++) return false;
            continue;
        }
        size_t n = strcspn(path, "/");
        if (n == 0) return false;
        RP_ASSERT(*n_args < RP_PATH_ARGS);
        args[(*n_args)++] = (struct segment){ .at = path, .n = n };
        path += n;
        pattern += strcspn(pattern, "}") + 1;
    }
    return *path == '\0';
}

/* False: a segment that cannot be decoded, or decodes to nothing that could be a name. */
static bool decode(struct rp_arena *arena, const struct segment *from, size_t n, const char **args)
{
    for (size_t i = 0; i < n; i++) {
        char *text = rp_arena_copy(arena, from[i].at, from[i].n);
        if (text == NULL || !rp_percent_decode(text)) return false;
        args[i] = text;
    }
    return true;
}

static bool same_method(const char *asked, const char *method)
{
    if (strcmp(asked, method) == 0) return true;
    return strcmp(asked, "HEAD") == 0 && strcmp(method, "GET") == 0; /* the server leaves the body away */
}

struct best {
    const struct rp_route *route;
    struct segment args[RP_PATH_ARGS];
    size_t n; /* of args */
};

/* Rows by the letter after /v1/, so that a request is held against a few of them; all other
 * paths are under 0. The table does not change: sorted once, for as long as the process lives. */
#define LETTERS    128
#define ROUTES_MAX 256

static pthread_once_t sorted = PTHREAD_ONCE_INIT;
static const struct rp_route *rows[ROUTES_MAX];
static size_t first_of[LETTERS + 1];

static size_t letter_of(const char *path)
{
    static const char prefix[] = "/v1/";
    if (strncmp(path, prefix, sizeof prefix - 1) != 0) return 0;
    unsigned char letter = (unsigned char)path[sizeof prefix - 1];
    return letter < LETTERS ? letter : 0;
}

static void sort_rows(void)
{
    size_t n = 0, count = rp_route_count();
    RP_ASSERT(count <= ROUTES_MAX);
    for (size_t letter = 0; letter < LETTERS; letter++) {
        first_of[letter] = n;
        for (size_t i = 0; i < count; i++)
            if (letter_of(rp_route_at(i)->path) == letter) rows[n++] = rp_route_at(i);
    }
    first_of[LETTERS] = n;
}

/* Literal segments win over {segments}: /v1/runs/summary is not the run of that name. */
static void look(const char *method, const char *path, struct best *best, bool *known)
{
    struct segment args[RP_PATH_ARGS];
    size_t n, letter = letter_of(path);
    for (size_t r = first_of[letter]; r < first_of[letter + 1]; r++) {
        if (!fits(rows[r]->path, path, args, &n)) continue;
        *known = true;
        if (!same_method(method, rows[r]->method) || (best->route != NULL && n >= best->n)) continue;
        best->route = rows[r];
        best->n = n;
        for (size_t i = 0; i < n; i++)
            best->args[i] = args[i];
    }
}

const struct rp_route *rp_route_find(const char *method, const char *path, struct rp_arena *arena,
                                     const char *args[RP_PATH_ARGS], bool *known)
{
    struct best best = { 0 };
    *known = false;
    pthread_once(&sorted, sort_rows);
    look(method, path, &best, known);
    if (best.route == NULL) return NULL;
    if (decode(arena, best.args, best.n, args)) return best.route;
    *known = false;
    return NULL;
}

const char *rp_route_allow(struct rp_arena *arena, const char *path)
{
    struct segment args[RP_PATH_ARGS];
    size_t n;
    char *list = rp_arena_copy(arena, "", 0);
    for (size_t i = 0, count = rp_route_count(); i < count && list != NULL; i++) {
        const struct rp_route *route = rp_route_at(i);
        if (!fits(route->path, path, args, &n)) continue;
        list = rp_arena_fmt(arena, "%s%s%s", list, list[0] == '\0' ? "" : ", ", route->method);
    }
    return list;
}
