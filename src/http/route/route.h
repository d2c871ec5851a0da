/* SPDX-License-Identifier: Apache-2.0 */
/* route.h - the one table of what can be asked over HTTP: method, path, who may, what goes in, what
 * comes out.
 *
 * The same row finds the handler, checks the caller, validates the request, and is printed in GET
 * /openapi.json and docs/http.md. A test walks the table: every row has shapes, an example, and its
 * permissions are tried.
 *
 * H1  A path is matched exactly; {id} takes one segment (percent-decoded, never empty). A known
 *     path with another method is 405 with Allow, an unknown one 404; neither tells more to a
 *     caller without a token than to one with.
 * H2  A body is JSON that fits its shape: an unknown member, a wrong type, a value out of bounds, a
 *     duplicate key and bad UTF-8 are 400 and name the member ("items[3].grace: expected a duration
 *     such as 5d, found 7"). The same for the query.
 * H3  A handler without `blocks` only computes and submits a command; it runs on the thread that
 *     reads the request. One with `blocks` may read the catalog and stores and runs on a thread
 *     of the pool. */
#ifndef RP_HTTP_ROUTE_ROUTE_H
#define RP_HTTP_ROUTE_ROUTE_H

#include "base/id.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_arena;
struct rp_buf;
struct rp_error;
struct rp_request;

enum rp_scope_bit {
    RP_MAY_READ_FILES = 1 << 0,  /* files.read */
    RP_MAY_WRITE_FILES = 1 << 1, /* files.write: uploads, deletes, restores, transactions */
    RP_MAY_READ_MARKS = 1 << 2,  /* marks.read */
    RP_MAY_WRITE_MARKS = 1 << 3, /* marks.write */
    RP_MAY_READ_RUNS = 1 << 4,   /* runs.read: runs, dead letters, holds, stores, alerts */
    RP_MAY_WRITE_RUNS = 1 << 5,  /* runs.write: start runs, decide dead letters, place and lift holds */
    RP_MAY_LISTEN = 1 << 6,      /* live */
    RP_MAY_MEASURE = 1 << 7,     /* metrics */
    RP_MAY_AUDIT = 1 << 8,       /* audit */
    RP_MAY_ADMINISTER = 1 << 9,  /* admin: tokens, quotas */
    RP_MAY_ALL = (1 << 10) - 1
};
const char *rp_scope_name(enum rp_scope_bit scope); /* "files.read" */
bool rp_scope_parse(const char *name, unsigned *bit);

enum rp_field_kind {
    RP_FIELD_TEXT,     /* least..most bytes of UTF-8 without NUL */
    RP_FIELD_INT,      /* least..most */
    RP_FIELD_SIZE,     /* bytes, or "10MiB"; given to the handler as an integer */
    RP_FIELD_BOOL,     /* */
    RP_FIELD_TIME,     /* RFC 3339; given as an integer, ms */
    RP_FIELD_DURATION, /* "5d"; given as an integer, ms */
    RP_FIELD_WHEN,     /* a moment, or a duration ago ("2d"): given as an integer, ms */
    RP_FIELD_ID,       /* an id of kind `id`; given as an integer */
    RP_FIELD_SHA256,   /* 64 hex digits; given as text in lower case */
    RP_FIELD_CHOICE,   /* one of `choices` */
    RP_FIELD_MAP,    /* an object whose values are texts (metadata): at most `most` members, names and values bounded */
    RP_FIELD_OBJECT, /* of shape `of` */
    RP_FIELD_LIST,   /* least..most elements of shape `of` */
    RP_FIELD_TEXTS,  /* least..most texts */
    RP_FIELD_ANY     /* answers only: any JSON */
};

struct rp_shape;

struct rp_field {
    const char *name;
    enum rp_field_kind kind;
    bool required;
    int64_t least, most; /* 0, 0: the kind's own bounds */
    const char *const *choices;
    const struct rp_shape *of;
    enum rp_id_kind id;
    const char *help;
};

/* How a row of `fields` begins: { RP_FIELD("grace", DURATION), .help = "..." }. */
#define RP_FIELD(name_, kind_) .name = (name_), .kind = RP_FIELD_##kind_

/* `many`: an answer that is a list with a cursor: {"items":[this],"next_cursor"}. */
struct rp_shape {
    const char *name; /* in openapi's components */
    const struct rp_field *fields;
    size_t n_fields;
    const char *help;
};
#define RP_SHAPE(name_, fields_, help_)                                                                                \
    {                                                                                                                  \
        .name = (name_), .fields = (fields_), .n_fields = sizeof(fields_) / sizeof((fields_)[0]), .help = (help_)      \
    }

typedef void rp_handler_fn(struct rp_request *q);
/* By path and query alone. */
typedef int rp_judge_fn(struct rp_request *q, struct rp_error *err);

enum rp_audience {
    RP_FOR_TENANTS,  /* a tenant's token sees its own, an admin token all (or the tenant it names) */
    RP_FOR_ADMINS,   /* a tenant's token is refused (403) */
    RP_FOR_EVERYBODY /* no token: health, the description, the console, signed URLs */
};

/* Another answer that is no refusal. */
struct rp_also {
    int status;                    /* 0: none */
    const struct rp_shape *answer; /* NULL: no body, or media */
    const char *media;             /* of one that is no JSON */
    const char *help;              /* when */
};
#define RP_ALSO_MAX 3

struct rp_route {
    const char *method, *path;
    enum rp_audience audience;
    unsigned scope; /* one bit; 0 with RP_FOR_EVERYBODY */
    bool blocks;
    bool streams; /* the handler takes the body as it comes (uploads): rp_request.stream */
    rp_handler_fn *handler;
    rp_judge_fn *judge;                  /* before a body is held: of a URL that stands for a token; may be NULL */
    const struct rp_shape *query, *body; /* NULL: none allowed */
    const struct rp_shape *answer;       /* NULL: no body, or media */
    const char *media;                   /* "text/html": the answer is no JSON */
    bool many;                           /* the answer is a list of them */
    int status;                          /* of success; 0: 200 */
    struct rp_also also[RP_ALSO_MAX];    /* what else it answers */
    const char *headers;                 /* that it looks at beside the usual ones: "Range If-Range"; NULL: none */
    const char *errors;                  /* slugs beside the usual ones: "quota_exceeded too_many_open"; NULL: none */
    size_t body_max;                     /* bytes; 0: 64 KiB */
    const char *summary;                 /* one sentence */
    const char *example;                 /* curl's arguments as in docs/http.md: "-X POST -d '{...}'"; NULL: none */
};
/* How a row begins: { RP_ROUTE("GET", "/v1/...", RP_FOR_ADMINS, RP_MAY_READ_RUNS, handler),
 * .blocks = true, ... }. */
#define RP_ROUTE(method_, path_, audience_, scope_, handler_)                                                          \
    .method = (method_), .path = (path_), .audience = (audience_), .scope = (scope_), .handler = (handler_)

int rp_route_status(const struct rp_route *route); /* of success */

/* Each file of api/ has its rows in a table of its own; routes.c joins them. */
struct rp_routes {
    const struct rp_route *at;
    size_t n;
};
extern const struct rp_routes *const rp_route_tables[];
extern const size_t rp_route_tables_n;
extern const struct rp_routes rp_routes_files, rp_routes_transactions, rp_routes_content, rp_routes_marks,
    rp_routes_confirmations, rp_routes_restore, rp_routes_runs, rp_routes_operations, rp_routes_quotas, rp_routes_audit,
    rp_routes_alerts, rp_routes_access, rp_routes_health, rp_routes_live, rp_routes_service;

/* The row for this call; NULL with *known set if the path exists for another method. `args` are
 * the {segments}, in order, decoded, in the arena. */
#define RP_PATH_ARGS 3
const struct rp_route *rp_route_find(const char *method, const char *path, struct rp_arena *arena,
                                     const char *args[RP_PATH_ARGS], bool *known);
/* "GET, DELETE": the methods that a known path has. NULL: no memory. */
const char *rp_route_allow(struct rp_arena *arena, const char *path);
size_t rp_route_count(void);
const struct rp_route *rp_route_at(size_t i);
/* For rp_metrics_new: requests are counted by the row's address. */
struct rp_metrics_route;
bool rp_route_for_metrics(size_t i, struct rp_metrics_route *out);

/* The table as an OpenAPI 3.1 document; `server` is the URL that paths follow. NULL: no memory. */
json_t *rp_openapi(const char *server);
/* The table for people: docs/http.md. */
int rp_http_write_docs(struct rp_buf *b, struct rp_error *err);

#endif
