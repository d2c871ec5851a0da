/* SPDX-License-Identifier: Apache-2.0 */

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "http/route/route.h"
#include "http/route/shape.h"

/* One document under way. A failure to allocate shows as members that are missing; the sum is
 * checked once, at the end. */
struct doc {
    json_t *schemas; /* components; filled as shapes are met */
    json_t *tags;    /* by name */
    bool failed;
};

static void set(struct doc *d, json_t *object, const char *name, json_t *value)
{
    if (rp_json_set(object, name, value) < 0) d->failed = true;
}

static json_t *typed(struct doc *d, const char *type, const char *format)
{
    json_t *schema = json_object();
    set(d, schema, "type", json_string(type));
    if (format != NULL) set(d, schema, "format", json_string(format));
    return schema;
}

static json_t *reference(struct doc *d, const char *where, const char *name)
{
    char text[160];
    json_t *schema = json_object();
    (void)snprintf(text, sizeof text, "#/components/%s/%s", where, name);
    set(d, schema, "$ref", json_string(text));
    return schema;
}

/* ---- shapes ---- */

static json_t *shape_ref(struct doc *d, const struct rp_shape *shape, bool answer);

/* Only what comes in is bounded. */
static json_t *bounded(struct doc *d, const struct rp_field *f, bool answer, json_t *schema, const char *least_name,
                       const char *most_name)
{
    int64_t least = 0, most = 0;
    if (answer || !rp_shape_bounds(f, &least, &most)) return schema;
    if (least != INT64_MIN && least != 0) set(d, schema, least_name, json_integer(least));
    if (most != INT64_MAX) set(d, schema, most_name, json_integer(most));
    return schema;
}

static json_t *size_schema(struct doc *d, bool answer)
{
    if (answer) return typed(d, "integer", "int64");
    json_t *schema = json_object(), *types = json_array();
    rp_json_append(types, json_string("integer"));
    rp_json_append(types, json_string("string"));
    set(d, schema, "type", types);
    set(d, schema, "description", json_string("bytes, or a text such as 10MiB"));
    return schema;
}

static json_t *pattern_schema(struct doc *d, const char *pattern, const char *example)
{
    json_t *schema = typed(d, "string", NULL);
    set(d, schema, "pattern", json_string(pattern));
    if (example != NULL) {
        json_t *examples = json_array();
        rp_json_append(examples, json_string(example));
        set(d, schema, "examples", examples);
    }
    return schema;
}

static json_t *id_schema(struct doc *d, enum rp_id_kind kind)
{
    char id[RP_ID_TEXT], pattern[48];
    (void)snprintf(pattern, sizeof pattern, "^%.4s[0-9a-z]{13}$", rp_id_format(kind, 0, id));
    return pattern_schema(d, pattern, NULL);
}

static json_t *choice_schema(struct doc *d, const struct rp_field *f)
{
    json_t *schema = typed(d, "string", NULL), *choices = json_array();
    for (size_t i = 0; f->choices[i] != NULL; i++)
        rp_json_append(choices, json_string(f->choices[i]));
    set(d, schema, "enum", choices);
    return schema;
}

static json_t *list_schema(struct doc *d, const struct rp_field *f, bool answer)
{
    json_t *schema = typed(d, "array", NULL);
    set(d, schema, "items", f->kind == RP_FIELD_TEXTS ? typed(d, "string", NULL) : shape_ref(d, f->of, answer));
    return bounded(d, f, answer, schema, "minItems", "maxItems");
}

static json_t *map_schema(struct doc *d, const struct rp_field *f, bool answer)
{
    json_t *schema = typed(d, "object", NULL);
    set(d, schema, "additionalProperties", typed(d, "string", NULL));
    return bounded(d, f, answer, schema, "minProperties", "maxProperties");
}

static json_t *kind_schema(struct doc *d, const struct rp_field *f, bool answer)
{
    switch (f->kind) {
    case RP_FIELD_TEXT:
        return bounded(d, f, answer, typed(d, "string", NULL), "minLength", "maxLength");
    case RP_FIELD_INT:
        return bounded(d, f, answer, typed(d, "integer", "int64"), "minimum", "maximum");
    case RP_FIELD_SIZE:
        return size_schema(d, answer);
    case RP_FIELD_BOOL:
        return typed(d, "boolean", NULL);
    case RP_FIELD_TIME:
        return typed(d, "string", "date-time");
    case RP_FIELD_DURATION:
        return pattern_schema(d, "^([0-9]+(ms|s|m|h|d|w))+$", "5d");
    case RP_FIELD_WHEN:
        return answer ? typed(d, "string", "date-time") : typed(d, "string", NULL);
    case RP_FIELD_ID:
        return id_schema(d, f->id);
    case RP_FIELD_SHA256:
        return pattern_schema(d, "^[0-9a-fA-F]{64}$", NULL);
    case RP_FIELD_CHOICE:
        return choice_schema(d, f);
    case RP_FIELD_MAP:
        return map_schema(d, f, answer);
    case RP_FIELD_OBJECT:
        return shape_ref(d, f->of, answer);
    case RP_FIELD_LIST:
    case RP_FIELD_TEXTS:
        return list_schema(d, f, answer);
    case RP_FIELD_ANY:
        return json_object();
    }
    return json_object();
}

/* A member of an answer that need not be there may also be null. */
static void allow_null(struct doc *d, json_t *schema)
{
    const json_t *type = json_object_get(schema, "type");
    if (!json_is_string(type)) return;
    json_t *types = json_array();
    rp_json_append(types, json_string(json_string_value(type)));
    rp_json_append(types, json_string("null"));
    set(d, schema, "type", types);
}

static json_t *field_schema(struct doc *d, const struct rp_field *f, bool answer)
{
    json_t *schema = kind_schema(d, f, answer);
    if (!f->required && f->kind != RP_FIELD_CHOICE) allow_null(d, schema);
    if (f->help != NULL) set(d, schema, "description", json_string(f->help));
    return schema;
}

static json_t *object_schema(struct doc *d, const struct rp_shape *shape, bool answer)
{
    json_t *schema = typed(d, "object", NULL), *members = json_object(), *required = json_array();
    if (shape->help != NULL) set(d, schema, "description", json_string(shape->help));
    for (size_t i = 0; i < shape->n_fields; i++) {
        const struct rp_field *f = &shape->fields[i];
        set(d, members, f->name, field_schema(d, f, answer));
        if (f->required) rp_json_append(required, json_string(f->name));
    }
    set(d, schema, "properties", members);
    if (json_array_size(required) > 0)
        set(d, schema, "required", required);
    else
        json_decref(required);
    set(d, schema, "additionalProperties", json_false());
    return schema;
}

/* What goes in and what comes out are written differently (sizes, nulls): no shape is used for
 * both, and no two have one name (tests/unit/test_http_docs.c). */
static json_t *shape_ref(struct doc *d, const struct rp_shape *shape, bool answer)
{
    if (json_object_get(d->schemas, shape->name) == NULL) {
        set(d, d->schemas, shape->name, json_object()); /* first, for shapes that hold themselves */
        set(d, d->schemas, shape->name, object_schema(d, shape, answer));
    }
    return reference(d, "schemas", shape->name);
}

static json_t *page_schema(struct doc *d, const struct rp_shape *shape)
{
    json_t *schema = typed(d, "object", NULL), *members = json_object(), *items = typed(d, "array", NULL);
    json_t *cursor = typed(d, "string", NULL), *required = json_array();
    set(d, items, "items", shape_ref(d, shape, true));
    allow_null(d, cursor);
    set(d, cursor, "description", json_string("what `cursor` is to be for the next page; null: the end"));
    set(d, members, "items", items);
    set(d, members, "next_cursor", cursor);
    set(d, schema, "properties", members);
    rp_json_append(required, json_string("items"));
    rp_json_append(required, json_string("next_cursor"));
    set(d, schema, "required", required);
    return schema;
}

/* ---- one call ---- */

/* Lent. */
static json_t *add_parameter(struct doc *d, json_t *list, const char *in, const char *name, bool required,
                             json_t *schema, const char *help)
{
    json_t *p = json_object();
    set(d, p, "name", json_string(name));
    set(d, p, "in", json_string(in));
    set(d, p, "required", json_boolean(required));
    set(d, p, "schema", schema);
    if (help != NULL) set(d, p, "description", json_string(help));
    rp_json_append(list, p);
    return p;
}

static void add_path_parameters(struct doc *d, json_t *list, const char *path)
{
    for (const char *p = strchr(path, '{'); p != NULL; p = strchr(p + 1, '{')) {
        char name[64];
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(p + 1, "}"), p + 1);
        (void)add_parameter(d, list, "path", name, true, typed(d, "string", NULL), NULL);
    }
}

static bool takes_key(const struct rp_route *route)
{
    return strcmp(route->method, "POST") == 0 && route->audience != RP_FOR_EVERYBODY;
}

static json_t *parameters(struct doc *d, const struct rp_route *route)
{
    json_t *list = json_array();
    add_path_parameters(d, list, route->path);
    for (size_t i = 0; route->query != NULL && i < route->query->n_fields; i++) {
        const struct rp_field *f = &route->query->fields[i];
        json_t *p = add_parameter(d, list, "query", f->name, f->required, kind_schema(d, f, false), f->help);
        if (f->kind == RP_FIELD_TEXTS) set(d, p, "explode", json_false()); /* a,b,c */
    }
    for (const char *h = route->headers; h != NULL && *h != '\0'; h += strspn(h, " ")) {
        char name[40];
        size_t n = strcspn(h, " ");
        (void)snprintf(name, sizeof name, "%.*s", (int)n, h);
        (void)add_parameter(d, list, "header", name, false, typed(d, "string", NULL), NULL);
        h += n;
    }
    if (takes_key(route)) rp_json_append(list, reference(d, "parameters", "IdempotencyKey"));
    rp_json_append(list, reference(d, "parameters", "RequestId"));
    return list;
}

static json_t *json_content(struct doc *d, const char *type, json_t *schema)
{
    json_t *content = json_object(), *media = json_object();
    set(d, media, "schema", schema);
    set(d, content, type, media);
    return content;
}

static bool gives_etag(const struct rp_route *route)
{
    return route->headers != NULL && strstr(route->headers, "If-None-Match") != NULL;
}

#define REPLAYED "Idempotent-Replayed"
#define ETAG     "ETag"

static const struct {
    const char *name, *help;
    int from, to; /* statuses; to 0: the one */
} headers[] = {
    { "Request-Id", "as it was sent, or made; the log has it", 200, 599 },
    { REPLAYED, "true: this was answered before, under the same Idempotency-Key", 200, 202 },
    { "Content-Range", "which bytes, of how many", 206, 0 },
    { ETAG, "of the bytes", 200, 206 },
    { ETAG, "of the bytes", 304, 0 },
    { "Location", "where it is", 302, 303 },
    { "WWW-Authenticate", "Bearer", 401, 0 },
    { "Content-Range", "how many bytes there are", 416, 0 },
    { "Retry-After", "seconds", 429, 0 },
    { "Retry-After", "seconds", 503, 0 },
};

static json_t *new_response(struct doc *d, const struct rp_route *route, int status, const char *help)
{
    json_t *response = json_object(), *all = json_object();
    set(d, response, "description", json_string(help));
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        if (status < headers[i].from || status > (headers[i].to != 0 ? headers[i].to : headers[i].from)) continue;
        if (strcmp(headers[i].name, REPLAYED) == 0 && !takes_key(route)) continue;
        if (strcmp(headers[i].name, ETAG) == 0 && !gives_etag(route)) continue;
        json_t *header = json_object();
        set(d, header, "description", json_string(headers[i].help));
        set(d, header, "schema", typed(d, "string", NULL));
        set(d, all, headers[i].name, header);
    }
    set(d, response, "headers", all);
    return response;
}

static void add_success(struct doc *d, json_t *responses, const struct rp_route *route, const struct rp_also *also)
{
    char status[8];
    json_t *response = new_response(d, route, also->status, also->help);
    (void)snprintf(status, sizeof status, "%d", also->status);
    bool many = route->many && also->answer == route->answer;
    if (also->media != NULL)
        set(d, response, "content", json_content(d, also->media, typed(d, "string", NULL)));
    else if (also->answer != NULL)
        set(d, response, "content",
            json_content(d, "application/json",
                         many ? page_schema(d, also->answer) : shape_ref(d, also->answer, true)));
    set(d, responses, status, response);
}

static int code_of(const char *slug, size_t n)
{
#define X(code, slug_, http, exit_code, retry, fault, title)                                                           \
    if (strlen(slug_) == n && memcmp(slug_, slug, n) == 0) return code;
    RP_ERRORS(X)
#undef X
    return 0;
}

/* One response a status; its description names the codes that it comes with. */
static void add_error(struct doc *d, json_t *responses, const struct rp_route *route, const char *slug, size_t n)
{
    char status[8], text[600];
    int code = code_of(slug, n);
    if (code == 0) {
        d->failed = true;
        return;
    }
    (void)snprintf(status, sizeof status, "%d", rp_error_http(code));
    json_t *response = json_object_get(responses, status);
    if (response == NULL) {
        response = new_response(d, route, rp_error_http(code), "");
        set(d, response, "content", json_content(d, "application/problem+json", reference(d, "schemas", "problem")));
        set(d, responses, status, response);
    }
    const char *before = rp_json_get_text(response, "description", "");
    (void)snprintf(text, sizeof text, "`%.*s`: ", (int)n, slug);
    if (strstr(before, text) != NULL) return;
    (void)snprintf(text, sizeof text, "%s%s`%.*s`: %s", before, before[0] == 0 ? "" : "; ", (int)n, slug,
                   rp_error_title(code));
    set(d, response, "description", json_string(text));
}

static void add_errors(struct doc *d, json_t *responses, const struct rp_route *route, const char *slugs)
{
    for (const char *p = slugs; p != NULL && *p != '\0'; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        add_error(d, responses, route, p, n);
        p += n;
    }
}

static json_t *responses(struct doc *d, const struct rp_route *route)
{
    json_t *all = json_object();
    const struct rp_also first = { rp_route_status(route), route->answer, route->media, route->summary };
    add_success(d, all, route, &first);
    for (size_t i = 0; i < RP_ALSO_MAX && route->also[i].status != 0; i++)
        add_success(d, all, route, &route->also[i]);
    add_errors(d, all, route, "invalid");
    if (route->audience != RP_FOR_EVERYBODY) add_errors(d, all, route, "unauthorized forbidden rate_limited");
    if (strchr(route->path, '{') != NULL) add_errors(d, all, route, "not_found");
    if (route->body != NULL) add_errors(d, all, route, "unsupported_media");
    if (!route->streams) add_errors(d, all, route, "too_big too_slow");
    if (takes_key(route)) add_errors(d, all, route, "key_reused");
    if (strcmp(route->method, "GET") != 0) add_errors(d, all, route, "full conflict");
    if (json_object_get(all, "503") == NULL) add_errors(d, all, route, "busy unavailable");
    add_errors(d, all, route, "failed");
    add_errors(d, all, route, route->errors);
    return all;
}

/* post_v1_files_id_confirm */
static void operation_id(const struct rp_route *route, struct rp_buf *out)
{
    for (const char *p = route->method; *p != '\0'; p++)
        rp_buf_char(out, (char)tolower((unsigned char)*p));
    bool gap = false;
    for (const char *p = route->path; *p != '\0'; p++) {
        bool letter = isalnum((unsigned char)*p);
        if (letter && gap) rp_buf_char(out, '_');
        if (letter) rp_buf_char(out, *p);
        gap = !letter;
    }
}

static json_t *security(struct doc *d, const struct rp_route *route)
{
    json_t *list = json_array();
    if (route->audience == RP_FOR_EVERYBODY) return list;
    for (int i = 0; i < 2; i++) {
        json_t *one = json_object(), *scopes = json_array();
        if (route->scope != 0) rp_json_append(scopes, json_string(rp_scope_name((enum rp_scope_bit)route->scope)));
        set(d, one, i == 0 ? "token" : "session", scopes);
        rp_json_append(list, one);
    }
    return list;
}

/* "files" of /v1/files/{id}; "service" of what is outside of /v1/. Each tag is listed once, in
 * d->tags. */
static json_t *tags(struct doc *d, const struct rp_route *route)
{
    static const char prefix[] = "/v1/";
    char name[40] = "service";
    const char *p = route->path + sizeof prefix - 1;
    if (strncmp(route->path, prefix, sizeof prefix - 1) == 0)
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(p, "/"), p);
    if (json_object_get(d->tags, name) == NULL) set(d, d->tags, name, json_pack("{s:s}", "name", name));
    json_t *list = json_array();
    rp_json_append(list, json_string(name));
    return list;
}

/* Without one an empty object is taken. */
static bool must_have_body(const struct rp_shape *shape)
{
    bool must = false;
    for (size_t i = 0; i < shape->n_fields; i++)
        must = must || shape->fields[i].required;
    return must;
}

static json_t *operation(struct doc *d, const struct rp_route *route)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf id = RP_BUF(200);
    json_t *o = json_object();
    operation_id(route, &id);
    set(d, o, "operationId", json_string(rp_buf_text(&id)));
    if (route->summary != NULL) set(d, o, "summary", json_string(route->summary));
    if (route->audience == RP_FOR_ADMINS) set(d, o, "description", json_string("For admin tokens."));
    set(d, o, "tags", tags(d, route));
    set(d, o, "security", security(d, route));
    set(d, o, "parameters", parameters(d, route));
    if (route->body != NULL || route->streams) {
        json_t *body = json_object();
        set(d, body, "content",
            route->streams ? json_content(d, "*/*", json_object())
                           : json_content(d, "application/json", shape_ref(d, route->body, false)));
        set(d, body, "required", json_boolean(route->streams || must_have_body(route->body)));
        set(d, o, "requestBody", body);
    }
    set(d, o, "responses", responses(d, route));
    return o;
}

/* ---- the document ---- */

static json_t *paths(struct doc *d)
{
    json_t *all = json_object();
    for (size_t i = 0; i < rp_route_count(); i++) {
        const struct rp_route *route = rp_route_at(i);
        char method[16] = "";
        for (size_t k = 0; route->method[k] != '\0' && k + 1 < sizeof method; k++)
            method[k] = (char)tolower((unsigned char)route->method[k]);
        json_t *path = json_object_get(all, route->path);
        if (path == NULL) {
            path = json_object();
            set(d, all, route->path, path);
        }
        set(d, path, method, operation(d, route));
    }
    return all;
}

/* What a refusal says; some say more. */
static const struct rp_field problem_fields[] = {
    { RP_FIELD("type", TEXT), .required = true, .help = "about:blank: the code says which it is" },
    { RP_FIELD("title", TEXT), .required = true, .help = "what the code means" },
    { RP_FIELD("status", INT), .required = true, .help = "the HTTP status" },
    { RP_FIELD("code", TEXT), .required = true, .help = "stable, for programs" },
    { RP_FIELD("detail", TEXT), .help = "what happened, to what" },
    { RP_FIELD("hint", TEXT), .help = "what to do next" },
    { RP_FIELD("request", TEXT), .help = "of a failure: the Request-Id under which the log has it whole" },
    { RP_FIELD("references", INT), .help = "still_referenced: rows that name it" },
    { RP_FIELD("limit", INT), .help = "quota_exceeded: bytes" },
    { RP_FIELD("used", INT), .help = "quota_exceeded: bytes of confirmed files" },
    { RP_FIELD("reserved", INT), .help = "quota_exceeded: bytes of open uploads" },
    { RP_FIELD("files", TEXTS), .help = "of a commit: the files that it is about" },
    { RP_FIELD("locked_by", TEXT), .help = "already_running: who" },
    { RP_FIELD("locked_at", TIME), .help = "already_running: since when" },
};
static const struct rp_shape problem_shape = RP_SHAPE("problem", problem_fields, "why something was refused or failed");

static json_t *header_parameter(struct doc *d, const char *name, const char *help, json_t *schema)
{
    json_t *list = json_array(), *p = json_incref(add_parameter(d, list, "header", name, false, schema, help));
    json_decref(list);
    return p;
}

static json_t *text_up_to(struct doc *d, int most)
{
    json_t *schema = typed(d, "string", NULL);
    set(d, schema, "minLength", json_integer(1));
    set(d, schema, "maxLength", json_integer(most));
    return schema;
}

/* What does not depend on the table. */
static json_t *components(struct doc *d)
{
    json_t *parts = json_object(), *shared = json_object();
    set(d, shared, "IdempotencyKey",
        header_parameter(d, "Idempotency-Key",
                         "The same key with the same request gives the same answer, however often it is sent; with "
                         "another one it is 422.",
                         text_up_to(d, 255)));
    set(d, shared, "RequestId",
        header_parameter(d, "Request-Id",
                         "The caller's own name for this request: at most 64 letters, digits, dots, dashes and "
                         "underscores. It is answered, and stands in the log; any other is replaced.",
                         typed(d, "string", NULL)));
    set(d, parts, "parameters", shared);
    set(d, parts, "securitySchemes",
        json_pack("{s:{s:s, s:s, s:s}, s:{s:s, s:s, s:s, s:s}}", "token", "type", "http", "scheme", "bearer",
                  "description", "A token; the scopes beside each call say which it needs.", "session", "type",
                  "apiKey", "in", "cookie", "name", "reprieve_session", "description",
                  "A session of the console; changes need the header X-Reprieve-CSRF as GET /v1/session gives it."));
    json_decref(shape_ref(d, &problem_shape, true));
    set(d, parts, "schemas", json_incref(d->schemas));
    return parts;
}

static json_t *info(struct doc *d)
{
    json_t *o = json_object();
    set(d, o, "title", json_string("Reprieve"));
    set(d, o, "version", json_string(REPRIEVE_VERSION));
    set(d, o, "description",
        json_string(
            "Safe deletion for data that lives in a database and a bucket. Every call that takes GET takes HEAD "
            "as well, and answers it without a body."));
    set(d, o, "license", json_pack("{s:s, s:s}", "name", "Apache-2.0", "identifier", "Apache-2.0"));
    return o;
}

json_t *rp_openapi(const char *server)
{
    struct doc d = { .schemas = json_object(), .tags = json_object() };
    json_t *root = json_object(), *tag_list = json_array(), *tag;
    const char *name;
    set(&d, root, "openapi", json_string("3.1.0"));
    set(&d, root, "info", info(&d));
    set(&d, root, "servers", json_pack("[{s:s}]", "url", server));
    set(&d, root, "paths", paths(&d));
    json_object_foreach(d.tags, name, tag) rp_json_append(tag_list, json_incref(tag));
    set(&d, root, "tags", tag_list);
    set(&d, root, "components", components(&d));
    json_decref(d.tags);
    json_decref(d.schemas);
    if (!d.failed) return root;
    json_decref(root);
    return NULL;
}
