/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/http_trials.h"

#include <pthread.h>
#include <string.h>

#include "base/text/json.h"
#include "catalog/audit/audit.h"
#include "http/route/route.h"
#include "http/server/request.h"
#include "http/server/stream.h"

atomic_int trial_waiting, trial_received, trial_ended, trial_aborted, trial_freed, trial_prepared;
atomic_int trial_followed, trial_refused;

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_moved = PTHREAD_COND_INITIALIZER;
static bool gate_open = true;

void trial_begin(struct served *s, enum dbs_kind kind, void (*tune)(struct served *s))
{
    trial_gate(true);
    trial_received = trial_ended = trial_aborted = trial_freed = trial_prepared = trial_followed = trial_refused = 0;
    served_make(s, kind, tune);
    world_script(&s->w, "INSERT INTO meta (name, number) VALUES ('trial', 0);");
}

int trial_set_up(void **served)
{
    trial_begin(*served, DBS_SQLITE_FILE, NULL);
    return 0;
}

int trial_tear_down(void **served)
{
    trial_gate(true);
    served_drop(*served);
    return 0;
}

void trial_gate(bool open)
{
    pthread_mutex_lock(&gate_lock);
    gate_open = open;
    pthread_cond_broadcast(&gate_moved);
    pthread_mutex_unlock(&gate_lock);
}

static void pass_gate(void)
{
    trial_waiting++;
    pthread_mutex_lock(&gate_lock);
    while (!gate_open)
        pthread_cond_wait(&gate_moved, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
    trial_waiting--;
}

static void wait_at_gate(struct rp_request *q)
{
    pass_gate();
    rp_reply_json(q, 200, json_pack("{s:b}", "open", 1));
}

static void echo(struct rp_request *q)
{
    json_t *answer = json_object();
    json_object_set_new(answer, "body", q->body != NULL ? json_deep_copy(q->body) : json_null());
    json_object_set_new(answer, "query", json_deep_copy(q->query));
    json_object_set_new(answer, "arg", rp_json_text(q->args[0]));
    json_object_set_new(answer, "actor", rp_json_text(q->who.actor));
    rp_reply_json(q, 200, answer);
}

/* ---- a command: counts, or refuses ---- */

struct counting {
    struct rp_command command;
    bool refuse;
    int64_t count;
    bool finished;
};

static int raise_count(struct rp_tx *tx, int64_t *count, const char *actor, int64_t tenant_id, struct rp_error *err)
{
    struct rp_audit_entry entry = { .event = "trial.counted", .actor = actor, .tenant_id = tenant_id, .text = "{}" };
    int r = rp_meta_raise(tx->db, "trial", 0, count, err);
    return r < 0 ? r : rp_tx_audit(tx, &entry, err);
}

static int run_count(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        struct counting *c = (struct counting *)commands[i];
        if (c->refuse)
            rp_error_set(&c->command.error, RP_EQUOTA, "no more of it");
        else
            r = raise_count(tx, &c->count, c->command.actor, c->command.tenant_id, err);
    }
    return r;
}

static const struct rp_verb verb_count = { .name = "count", .run = run_count };

static void counted(struct rp_request *q)
{
    const struct counting *c = (const struct counting *)q->command;
    rp_reply_header(q, "X-Trial", "counted");
    if (c->command.error.code < 0)
        rp_reply_problem(q, &c->command.error, json_pack("{s:i}", "limit", 7));
    else
        rp_reply_json(q, 201, json_pack("{s:I}", "count", (json_int_t)c->count));
}

static int freshen(struct rp_request *q, json_t *answer, struct rp_error *err)
{
    (void)q, (void)err;
    return json_object_set_new(answer, "fresh", json_true());
}

static void follow(struct rp_request *q)
{
    trial_followed++;
    trial_refused += q->command->error.code < 0;
}

static void count(struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct counting *c = rp_arena_alloc(&q->arena, sizeof *c);
    int r = rp_request_tenant(q, &c->command.tenant_id, &err);
    if (r == RP_EBUSY) {
        rp_request_later(q);
        return;
    }
    if (r < 0) {
        rp_reply_error(q, &err);
        return;
    }
    c->command.verb = &verb_count;
    c->refuse = rp_request_bool(q->body, "refuse");
    q->after = follow;
    q->refused = counted;
    rp_request_submit(q, &c->command, counted, rp_request_bool(q->body, "freshen") ? freshen : NULL);
}

/* ---- one with steps outside the catalog ---- */

static void look(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n)
{
    (void)catalog, (void)commands;
    trial_prepared += (int)n;
    pass_gate();
}

static int run_slow(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    for (size_t i = 0; i < n; i++)
        commands[i]->unfinished = true;
    return run_count(tx, commands, n, err);
}

static void finish_slow(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n)
{
    (void)catalog;
    for (size_t i = 0; i < n; i++) {
        ((struct counting *)commands[i])->finished = true;
        commands[i]->amended = true;
    }
}

static const struct rp_verb verb_slow = { .name = "slow", .prepare = look, .run = run_slow, .finish = finish_slow };

static void reply_slow(struct rp_request *q)
{
    const struct counting *c = (const struct counting *)q->command;
    rp_reply_json(q, 200, json_pack("{s:I,s:b}", "count", (json_int_t)c->count, "finished", c->finished));
}

static void slow(struct rp_request *q)
{
    struct counting *c = rp_arena_alloc(&q->arena, sizeof *c);
    c->command.verb = &verb_slow;
    q->after = follow;
    rp_request_submit(q, &c->command, reply_slow, NULL);
}

static void break_down(struct rp_request *q)
{
    struct rp_error err = { 0 };
    rp_error_set(&err, RP_EFAILED, "SELECT secret FROM /srv/private: no");
    rp_error_hint(&err, "look into /srv/private");
    rp_reply_error(q, &err);
}

/* ---- streams ---- */

static int take(struct rp_request *q, const void *data, size_t n, struct rp_error *err)
{
    (void)q;
    trial_received += (int)n;
    if (memchr(data, '!', n) != NULL) return rp_error_set(err, RP_ECHECKSUM, "an exclamation mark");
    return 0;
}

static void end(struct rp_request *q)
{
    trial_ended++;
    rp_reply_json(q, 200, json_pack("{s:i}", "received", (int)trial_received));
}

static void give_up(struct rp_request *q)
{
    (void)q;
    trial_aborted++;
}

static void upload(struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct rp_stream *stream = rp_arena_alloc(&q->arena, sizeof *stream);
    if (strcmp(q->args[0], "no") == 0) {
        rp_error_set(&err, RP_EFORBIDDEN, "not this one");
        rp_reply_error(q, &err);
        return;
    }
    *stream = (struct rp_stream){ .bytes = take, .end = end, .abort = give_up };
    rp_request_receive(q, stream);
}

static ssize_t read_out(void *ctx, uint64_t pos, char *to, size_t max)
{
    (void)ctx;
    if (pos >= 100000) return -1;
    if (max > 100000 - pos) max = 100000 - pos;
    memset(to, 'x', max);
    return (ssize_t)max;
}

static void free_out(void *ctx)
{
    (void)ctx;
    trial_freed++;
}

static void stream(struct rp_request *q)
{
    const struct rp_stream_reply how = { .size = rp_request_bool(q->query, "known") ? 100000 : -1,
                                         .read = read_out,
                                         .free = free_out };
    rp_reply_stream(q, 200, "text/plain", &how);
}

/* ---- the table ---- */

static const char *const colours[] = { "red", "green", NULL };
static const struct rp_field inner_fields[] = {
    { .name = "grace", .kind = RP_FIELD_DURATION },
    { .name = "id", .kind = RP_FIELD_ID, .id = RP_ID_FILE },
};
static const struct rp_shape inner_shape = RP_SHAPE("TrialInner", inner_fields, NULL);
static int judge(struct rp_request *q, struct rp_error *e)
{
    return rp_json_get_int(q->query, "limit", 0) == 1 ? 0 : rp_error_set(e, RP_EFORBIDDEN, "not with this URL");
}

static const struct rp_field echo_fields[] = {
    { .name = "text", .kind = RP_FIELD_TEXT, .required = true, .least = 1, .most = 20 },
    { .name = "number", .kind = RP_FIELD_INT, .least = -5, .most = 5 },
    { .name = "size", .kind = RP_FIELD_SIZE },
    { .name = "yes", .kind = RP_FIELD_BOOL },
    { .name = "colour", .kind = RP_FIELD_CHOICE, .choices = colours },
    { .name = "items", .kind = RP_FIELD_LIST, .of = &inner_shape, .most = 10 },
    { .name = "metadata", .kind = RP_FIELD_MAP },
};
static const struct rp_shape echo_shape = RP_SHAPE("TrialEcho", echo_fields, NULL);
static const struct rp_field query_fields[] = {
    { .name = "limit", .kind = RP_FIELD_INT, .least = 1, .most = 1000 },
    { .name = "since", .kind = RP_FIELD_WHEN },
    { .name = "known", .kind = RP_FIELD_BOOL },
};
static const struct rp_shape query_shape = RP_SHAPE("TrialQuery", query_fields, NULL);
static const struct rp_field count_fields[] = {
    { .name = "refuse", .kind = RP_FIELD_BOOL },
    { .name = "freshen", .kind = RP_FIELD_BOOL },
    { .name = "tenant", .kind = RP_FIELD_TEXT },
};
static const struct rp_shape count_shape = RP_SHAPE("TrialCount", count_fields, NULL);
static const struct rp_field any_fields[] = { { .name = "any", .kind = RP_FIELD_ANY } };
static const struct rp_shape any_shape = RP_SHAPE("TrialAny", any_fields, NULL);

#define ROW(method_, path_, audience_, scope_, handler_, ...)                                                          \
    {                                                                                                                  \
        .method = (method_), .path = (path_), .audience = (audience_), .scope = (scope_), .handler = (handler_),       \
        .status = 200, .answer = &any_shape, .summary = "A trial.", .example = "", __VA_ARGS__                         \
    }
static const struct rp_route trials[] = {
    ROW("POST", "/trial/judged", RP_FOR_EVERYBODY, 0, echo, .body = &echo_shape, .query = &query_shape, .judge = judge),
    ROW("POST", "/trial/echo", RP_FOR_TENANTS, RP_MAY_WRITE_FILES, echo, .body = &echo_shape, .query = &query_shape),
    ROW("GET", "/trial/echo/{name}", RP_FOR_TENANTS, RP_MAY_READ_FILES, echo, .query = &query_shape),
    ROW("GET", "/trial/echo/literal", RP_FOR_TENANTS, RP_MAY_READ_FILES, echo, .query = &query_shape),
    ROW("POST", "/trial/count", RP_FOR_TENANTS, RP_MAY_WRITE_FILES, count, .body = &count_shape),
    ROW("POST", "/trial/slow", RP_FOR_ADMINS, RP_MAY_WRITE_MARKS, slow, .body = &count_shape),
    ROW("GET", "/trial/gate", RP_FOR_TENANTS, RP_MAY_READ_FILES, wait_at_gate, .blocks = true),
    ROW("GET", "/trial/broken", RP_FOR_TENANTS, RP_MAY_READ_FILES, break_down, .blocks = false),
    ROW("PUT", "/trial/upload/{name}", RP_FOR_EVERYBODY, 0, upload, .blocks = true, .streams = true),
    ROW("PUT", "/trial/swift/{name}", RP_FOR_EVERYBODY, 0, upload, .streams = true),
    ROW("GET", "/trial/stream", RP_FOR_EVERYBODY, 0, stream, .query = &query_shape, .media = "text/plain"),
};
static const struct rp_routes rp_routes_trials = { trials, sizeof trials / sizeof trials[0] };

/* In place of routes.c, which the linker then leaves out. */
const struct rp_routes *const rp_route_tables[] = {
    &rp_routes_files, &rp_routes_transactions, &rp_routes_content, &rp_routes_marks,      &rp_routes_restore,
    &rp_routes_runs,  &rp_routes_alerts,       &rp_routes_live,    &rp_routes_operations, &rp_routes_quotas,
    &rp_routes_audit, &rp_routes_access,       &rp_routes_health,  &rp_routes_service,    &rp_routes_trials,
};
const size_t rp_route_tables_n = sizeof rp_route_tables / sizeof rp_route_tables[0];
