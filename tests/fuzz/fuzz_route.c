/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as "METHOD path": a row or none, and what is taken from the path is never empty and
 * always UTF-8. */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/text/utf8.h"
#include "http/route/percent.h"
#include "http/route/route.h"
#include "http/server/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct rp_route rows[] = {
    { .method = "GET", .path = "/" },
    { .method = "GET", .path = "/v1/files" },
    { .method = "POST", .path = "/v1/files" },
    { .method = "GET", .path = "/v1/files/{id}" },
    { .method = "POST", .path = "/v1/files/{id}/confirm" },
    { .method = "GET", .path = "/v1/runs/{id}" },
    { .method = "GET", .path = "/v1/runs/summary" },
    { .method = "GET", .path = "/a/{x}/b/{y}/c/{z}" },
};
static const struct rp_routes table = { rows, sizeof rows / sizeof rows[0] };
const struct rp_routes *const rp_route_tables[] = { &table };
const size_t rp_route_tables_n = 1;

static size_t placeholders(const char *path)
{
    size_t n = 0;
    for (; *path != '\0'; path++)
        n += *path == '{';
    return n;
}

static void check_found(const struct rp_route *route, const struct rp_request *q)
{
    size_t n = placeholders(route->path);
    for (size_t i = 0; i < n; i++) {
        RP_ASSERT(q->args[i] != NULL && q->args[i][0] != '\0');
        RP_ASSERT(rp_utf8_valid(q->args[i], strlen(q->args[i])));
    }
    for (size_t i = n; i < RP_PATH_ARGS; i++)
        RP_ASSERT(q->args[i] == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_request q = { .arena = RP_ARENA((size_t)4 << 20) };
    bool known;
    char *text = rp_arena_copy(&q.arena, (const char *)data, size);
    char *space = text == NULL ? NULL : strchr(text, ' ');
    if (space != NULL) {
        *space = '\0';
        const struct rp_route *route = rp_route_find(text, space + 1, &q.arena, q.args, &known);
        RP_ASSERT(route == NULL || known);
        if (route != NULL) check_found(route, &q);
        RP_ASSERT(rp_route_allow(&q.arena, space + 1) != NULL);
    }
    rp_arena_done(&q.arena);
    return 0;
}
