/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/buf.h"
#include "core/state.h"
#include "http/route/route.h"
#include "http/route/shape.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHAPES_MAX 256

#define STATE_ROW(name, means) "| `" name "` | " means " |\n"

static const char intro[] =
    "# HTTP\n"
    "\n"
    "Made from the table of routes in `src/http/api/`; a test keeps it true. `GET /openapi.json` says the same to "
    "programs.\n"
    "\n"
    "- Who calls says so with `Authorization: Bearer TOKEN` (`reprieve token create`). A token has scopes, and a "
    "tenant or is an\n"
    "  admin's. A tenant's token sees and changes what is its own; anything else is answered like something that does "
    "not exist.\n"
    "- JSON in and out. Times are RFC 3339 UTC with milliseconds; a duration is `90s`, `15m`, `12h` or `5d`; a size is "
    "a number of bytes,\n"
    "  or going in also `10MiB`. An unknown member, a wrong type and a value out of bounds are 400, and the member is "
    "named.\n"
    "- An error is `application/problem+json` with `title`, `status`, a `detail` for people, a stable `code` for "
    "programs, and often a `hint`.\n"
    "  Beside those named below, any call may answer `invalid` (400), `unauthorized` (401), `forbidden` (403), "
    "`method_not_allowed` (405),\n"
    "  `too_slow` (408), `too_big` (413), `unsupported_media` (415), `rate_limited` (429), `failed` (500), and `busy` "
    "or `unavailable` "
    "(503, "
    "with\n"
    "  `Retry-After`); one that changes something also `conflict` (409) and `full` (507).\n"
    "- Ids are texts, and a tenant is its name: no program has to keep a number of 63 bits. The command line's "
    "`--json` "
    "says the same of\n"
    "  the same thing. What happened has one name everywhere: in the audit log, in live events and in the log.\n"
    "- `Request-Id: TEXT` (at most 64 letters, digits, dots, dashes, underscores) names a request; one without it is "
    "given "
    "a name.\n"
    "  The answer carries it, and so does each line of the log about the request or what it changed.\n"
    "- A list is `{\"items\":[...],\"next_cursor\":...}`: `?limit=` (1 to 1000, 100 if not given) and `?cursor=`; "
    "`null` is the end. A page may be\n"
    "  shorter than its limit although more follow.\n"
    "- `Idempotency-Key: TEXT` on a POST: the same key and the same request give the same answer, also after a "
    "restart\n"
    "  (`Idempotent-Replayed: true`); with another request it is 422 `key_reused`.\n"
    "\n"
    "A mark is in one of seven states:\n"
    "\n"
    "| state | means |\n"
    "|---|---|\n" RP_STATE_WORDS(
        STATE_ROW) "\n"
                   "`$URL` is where the daemon listens (`http://127.0.0.1:8420`), `$UPLOAD_URL` the `upload.url` of an "
                   "answer. "
                   "The examples leave\n"
                   "out `-H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json'`.\n";

/* ---- fields ---- */

static void write_bounds(struct rp_buf *b, const struct rp_field *f, const char *of)
{
    int64_t least = 0, most = 0;
    if (!rp_shape_bounds(f, &least, &most) || most == INT64_MAX) return;
    rp_buf_fmt(b, ", %" PRId64 " to %" PRId64 "%s", least, most, of);
}

static void write_choices(struct rp_buf *b, const struct rp_field *f)
{
    for (size_t i = 0; f->choices[i] != NULL; i++)
        rp_buf_fmt(b, "%s`%s`", i > 0 ? ", " : "", f->choices[i]);
}

static void write_named(struct rp_buf *b, const char *before, const struct rp_shape *shape)
{
    rp_buf_fmt(b, "%s[%s](#", before, shape->name);
    for (const char *c = shape->name; *c != 0; c++)
        rp_buf_char(b, (char)tolower((unsigned char)*c));
    rp_buf_char(b, ')');
}

static void write_kind(struct rp_buf *b, const struct rp_field *f, bool answer)
{
    char id[RP_ID_TEXT];
    static const char *const names[] = {
        [RP_FIELD_TEXT] = "text",
        [RP_FIELD_INT] = "number",
        [RP_FIELD_SIZE] = "size",
        [RP_FIELD_BOOL] = "true/false",
        [RP_FIELD_TIME] = "time",
        [RP_FIELD_DURATION] = "duration",
        [RP_FIELD_WHEN] = "time, or how long ago",
        [RP_FIELD_SHA256] = "64 hex digits",
        [RP_FIELD_MAP] = "names and texts",
        [RP_FIELD_TEXTS] = "texts",
        [RP_FIELD_ANY] = "any JSON",
    };
    switch (f->kind) {
    case RP_FIELD_ID:
        rp_buf_fmt(b, "`%.4s...`", rp_id_format(f->id, 0, id));
        return;
    case RP_FIELD_CHOICE:
        write_choices(b, f);
        return;
    case RP_FIELD_OBJECT:
        write_named(b, "", f->of);
        return;
    case RP_FIELD_LIST:
        write_named(b, "list of ", f->of);
        break;
    default:
        rp_buf_str(b, names[f->kind]);
    }
    if (answer) return;
    if (f->kind == RP_FIELD_TEXT) write_bounds(b, f, " bytes");
    if (f->kind == RP_FIELD_INT || f->kind == RP_FIELD_LIST || f->kind == RP_FIELD_MAP || f->kind == RP_FIELD_TEXTS)
        write_bounds(b, f, "");
}

static void write_fields(struct rp_buf *b, const struct rp_shape *shape, bool answer)
{
    rp_buf_fmt(b, "\n| %s | is | |\n|---|---|---|\n", answer ? "member" : "takes");
    for (size_t i = 0; i < shape->n_fields; i++) {
        const struct rp_field *f = &shape->fields[i];
        rp_buf_fmt(b, "| `%s`%s | ", f->name, answer || f->required ? "" : " (optional)");
        write_kind(b, f, answer);
        rp_buf_fmt(b, " | %s |\n", f->help != NULL ? f->help : "");
    }
}

/* ---- calls ---- */

static const char *audience_of(const struct rp_route *route)
{
    static const char *const names[] = {
        [RP_FOR_TENANTS] = "tenants and admins", [RP_FOR_ADMINS] = "admins", [RP_FOR_EVERYBODY] = "everybody"
    };
    return names[route->audience];
}

static void write_overview(struct rp_buf *b)
{
    rp_buf_str(b, "\n| call | for | scope | |\n|---|---|---|---|\n");
    for (size_t i = 0; i < rp_route_count(); i++) {
        const struct rp_route *r = rp_route_at(i);
        rp_buf_fmt(b, "| `%s %s` | %s | %s | %s |\n", r->method, r->path, audience_of(r),
                   r->scope != 0 ? rp_scope_name((enum rp_scope_bit)r->scope) : "-", r->summary);
    }
}

static void write_answer(struct rp_buf *b, const struct rp_route *r)
{
    rp_buf_fmt(b, "\nAnswers %d", rp_route_status(r));
    if (r->media != NULL && strcmp(r->media, "*/*") == 0)
        rp_buf_str(b, " with the bytes");
    else if (r->media != NULL)
        rp_buf_fmt(b, " with `%s`", r->media);
    else if (r->answer == NULL)
        rp_buf_str(b, " without a body");
    else
        write_named(b, r->many ? " with a list of " : " with ", r->answer);
    rp_buf_str(b, ".");
    for (size_t i = 0; i < RP_ALSO_MAX && r->also[i].status != 0; i++) {
        rp_buf_fmt(b, " Or %d", r->also[i].status);
        if (r->also[i].answer != NULL) write_named(b, " with ", r->also[i].answer);
        rp_buf_fmt(b, ": %s.", r->also[i].help);
    }
    if (r->headers != NULL) rp_buf_fmt(b, " Looks at the headers `%s`.", r->headers);
    if (r->errors != NULL && r->errors[0] != 0) rp_buf_fmt(b, " Refusals: `%s`.", r->errors);
    rp_buf_str(b, "\n");
}

static void write_example(struct rp_buf *b, const struct rp_route *r)
{
    bool has = r->example != NULL && r->example[0] != 0;
    bool whole = has && strstr(r->example, "_URL\"") != NULL; /* it brings a signed URL of its own */
    rp_buf_fmt(b, "\n```\ncurl %s%s%s%s\n```\n", has ? r->example : "", has && !whole ? " " : "", whole ? "" : "$URL",
               whole ? "" : r->path);
}

static void write_call(struct rp_buf *b, const struct rp_route *r)
{
    rp_buf_fmt(b, "\n### %s %s\n\n%s\n", r->method, r->path, r->summary);
    if (r->query != NULL) {
        rp_buf_str(b, "\nIn the query:\n");
        write_fields(b, r->query, false);
    }
    if (r->body != NULL) {
        rp_buf_str(b, "\nIn the body:\n");
        write_fields(b, r->body, false);
    }
    write_answer(b, r);
    write_example(b, r);
}

/* ---- shapes, each once ---- */

struct shapes {
    const struct rp_shape *at[SHAPES_MAX];
    bool answer[SHAPES_MAX];
    size_t n;
};

static void note_inner(struct shapes *list, const struct rp_shape *shape, bool answer);

static void note_shape(struct shapes *list, const struct rp_shape *shape, bool answer)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i] == shape) return;
    if (list->n == SHAPES_MAX) return;
    list->at[list->n] = shape;
    list->answer[list->n++] = answer;
    note_inner(list, shape, answer);
}

static void note_inner(struct shapes *list, const struct rp_shape *shape, bool answer)
{
    for (size_t i = 0; i < shape->n_fields; i++)
        if (shape->fields[i].of != NULL) note_shape(list, shape->fields[i].of, answer);
}

static void write_sentence(struct rp_buf *b, const char *help)
{
    rp_buf_fmt(b, "\n%c%s.\n", toupper((unsigned char)help[0]), help + 1);
}

static void write_shapes(struct rp_buf *b)
{
    struct shapes list = { .n = 0 };
    for (size_t i = 0; i < rp_route_count(); i++) {
        const struct rp_route *r = rp_route_at(i);
        if (r->body != NULL) note_inner(&list, r->body, false); /* itself stands with its call */
        if (r->answer != NULL) note_shape(&list, r->answer, true);
        for (size_t k = 0; k < RP_ALSO_MAX; k++)
            if (r->also[k].answer != NULL) note_shape(&list, r->also[k].answer, true);
    }
    rp_buf_str(b, "\n## Shapes\n");
    for (size_t i = 0; i < list.n; i++) {
        rp_buf_fmt(b, "\n### %s\n", list.at[i]->name);
        if (list.at[i]->help != NULL) write_sentence(b, list.at[i]->help);
        write_fields(b, list.at[i], list.answer[i]);
    }
}

int rp_http_write_docs(struct rp_buf *b, struct rp_error *err)
{
    rp_buf_str(b, intro);
    write_overview(b);
    rp_buf_str(b, "\n## Calls\n");
    for (size_t i = 0; i < rp_route_count(); i++)
        write_call(b, rp_route_at(i));
    write_shapes(b);
    return b->failed == 0 ? 0 : rp_error_set(err, b->failed, "the documentation does not fit");
}
