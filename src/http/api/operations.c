/* SPDX-License-Identifier: Apache-2.0 */
/* operations.c - what an operator looks at and decides: dead letters, holds, stores. */
#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/json.h"
#include "core/dead.h"
#include "core/hold.h"
#include "core/state.h"
#include "http/api/shapes.h"
#include "lib/answer.h"
#include "lib/store_facts.h"

#include <string.h>

#define LIST_ARENA_MAX ((size_t)8 << 20)

/* ---- shapes ---- */

/* clang-format off */
#define DEAD_FIELDS                                                                                                    \
    { RP_FIELD("id", ID), .id = RP_ID_DEAD, .required = true, .help = "the dead letter" },                             \
    { RP_FIELD("died_at", TIME), .required = true, .help = "since when it waits for a person" },                       \
    { RP_FIELD("from", CHOICE), .choices = rp_state_names, .required = true, .help = "where a retry goes" },           \
    { RP_FIELD("attempts", INT), .most = INT64_MAX, .required = true, .help = "tries used up" },                       \
    { RP_FIELD("error", TEXT), .required = true, .help = "why the last one failed" },                                  \
    { RP_FIELD("mark", OBJECT), .of = &rp_shape_mark, .required = true, .help = "what it is about" }

#define HOLD_FIELDS                                                                                                    \
    { RP_FIELD("id", ID), .id = RP_ID_HOLD, .required = true, .help = "the hold" },                                    \
    { RP_FIELD("scope", TEXT), .required = true, .help = "what it covers" },                                           \
    { RP_FIELD("reason", TEXT), .required = true, .help = "why" },                                                     \
    { RP_FIELD("actor", TEXT), .required = true, .help = "who placed it" },                                            \
    { RP_FIELD("placed_at", TIME), .required = true, .help = "when" }
/* clang-format on */

static const struct rp_field dead_fields[] = { DEAD_FIELDS };
static const struct rp_shape dead_shape = RP_SHAPE("dead_letter", dead_fields, "a mark that used up its attempts");

static const char *const confirmation_states[] = { "pending", "asked", "waiting", "yes", "refused", "failed", NULL };

static const struct rp_field try_fields[] = {
    { RP_FIELD("at", TIME), .required = true, .help = "when" },
    { RP_FIELD("status", INT), .most = 999, .required = true, .help = "of HTTP; 0: no answer came" },
    { RP_FIELD("body", TEXT), .help = "the first 1 KiB of the answer" },
    { RP_FIELD("error", TEXT), .help = "why none came" },
};
static const struct rp_shape try_shape = RP_SHAPE("confirmation_try", try_fields, "one call to an outside service");

static const struct rp_field confirmation_fields[] = {
    { RP_FIELD("id", ID), .id = RP_ID_CONFIRMATION, .required = true, .help = "the idempotency key of its calls" },
    { RP_FIELD("name", TEXT), .required = true, .help = "as configured" },
    { RP_FIELD("state", CHOICE), .choices = confirmation_states, .required = true, .help = "what it has said" },
    { RP_FIELD("attempts", INT), .most = INT64_MAX, .required = true, .help = "calls, since it was last retried" },
    { RP_FIELD("asked_at", TIME), .help = "first" },
    { RP_FIELD("until", TIME), .help = "when it is given up" },
    { RP_FIELD("answered_at", TIME), .help = "last" },
    { RP_FIELD("note", TEXT), .help = "its last answer" },
    { RP_FIELD("tries", LIST), .of = &try_shape, .required = true, .help = "the last 100 calls" },
};
static const struct rp_shape confirmation_shape =
    RP_SHAPE("asked_confirmation", confirmation_fields, "what an outside service was asked, and said");

static const struct rp_field dead_shown_fields[] = {
    DEAD_FIELDS,
    { RP_FIELD("confirmations", LIST), .of = &confirmation_shape, .required = true,
      .help = "outside services that it needs a yes of" },
};
static const struct rp_shape dead_shown_shape =
    RP_SHAPE("dead_letter_shown", dead_shown_fields, "a dead letter with what was tried");

static const struct rp_field decided_fields[] = {
    DEAD_FIELDS,
    { RP_FIELD("state", CHOICE), .choices = rp_state_names, .required = true, .help = "what the mark is now" },
};
static const struct rp_shape decided_shape = RP_SHAPE("decided_letter", decided_fields, "what a person decided");

static const struct rp_field retry_fields[] = {
    { RP_FIELD("since", TIME), .help = "only those that died since" },
    { RP_FIELD("endpoint", TEXT), .least = 1, .most = 63,
      .help = "only those that this outside service gave no yes to" },
};
static const struct rp_shape retry_shape = RP_SHAPE("retry_all", retry_fields, "which dead letters are tried again");

static const struct rp_field retried_fields[] = {
    { RP_FIELD("retried", INT), .most = RP_DEAD_ITEMS_MAX, .required = true, .help = "brought back" },
    { RP_FIELD("refused", INT), .most = RP_DEAD_ITEMS_MAX, .required = true, .help = "could not be" },
    { RP_FIELD("complete", BOOL), .required = true, .help = "false: there are more; call again" },
};
static const struct rp_shape retried_shape = RP_SHAPE("retried_letters", retried_fields, "how many are tried again");

static const struct rp_field hold_request_fields[] = {
    { RP_FIELD("scope", TEXT), .required = true, .least = 1, .most = RP_SCOPE_TEXT,
      .help = "STORE:KEY, STORE:PREFIX*, tenant/NAME or everything" },
    { RP_FIELD("reason", TEXT), .required = true, .least = 1, .most = RP_REASON_MAX,
      .help = "whoever finds it in a year will want to know" },
};
static const struct rp_shape hold_request_shape =
    RP_SHAPE("hold_request", hold_request_fields, "what is not to be purged, and why");

static const struct rp_field hold_fields[] = { HOLD_FIELDS };
static const struct rp_shape hold_shape = RP_SHAPE("hold", hold_fields, "a stop on purging");

static const struct rp_field placed_fields[] = {
    HOLD_FIELDS,
    { RP_FIELD("claimed", LIST), .of = &rp_shape_mark, .required = true,
      .help = "covered, but past the claim already: they may still be purged; the first 1000" },
    { RP_FIELD("claimed_total", INT), .most = INT64_MAX, .required = true,
      .help = "how many these are, listed or not" },
};
static const struct rp_shape placed_shape =
    RP_SHAPE("placed_hold", placed_fields, "a hold, and what it came too late for");

static const struct rp_field lifted_fields[] = {
    { RP_FIELD("id", ID), .id = RP_ID_HOLD, .required = true, .help = "the hold" },
    { RP_FIELD("lifted", BOOL), .required = true, .help = "true" },
};
static const struct rp_shape lifted_shape = RP_SHAPE("lifted_hold", lifted_fields, "a hold that is no more");

static const struct rp_field store_fields[] = {
    { RP_FIELD("name", TEXT), .required = true, .help = "as configured" },
    { RP_FIELD("type", TEXT), .required = true, .help = "fs or s3" },
    { RP_FIELD("path", TEXT), .help = "where a directory is" },
    { RP_FIELD("endpoint", TEXT), .help = "where a bucket's server is; empty: AWS" },
    { RP_FIELD("bucket", TEXT), .help = "its name" },
    { RP_FIELD("mode", TEXT), .required = true, .help = "observe, quarantine or purge" },
    { RP_FIELD("guarantee", TEXT), .required = true, .help = "how exactly it deletes, as probed" },
    { RP_FIELD("raise_owed_since", TIME),
      .help = "since when this daemon owes a raise of the epoch in the owner record; none: it does not" },
    { RP_FIELD("probed_at", TIME), .help = "when that was last found out; none: never by a canary" },
    { RP_FIELD("keys_changed_at", TIME),
      .help = "when an object was seen changed though keys are declared write_once: the guarantee is the probed one" },
    { RP_FIELD("owner", TEXT), .required = true, .help = "whose it is; - in mode observe" },
    { RP_FIELD("waiting", INT), .most = INT64_MAX, .required = true, .help = "marks that wait" },
    { RP_FIELD("waiting_bytes", INT), .most = INT64_MAX, .required = true, .help = "their bytes" },
    { RP_FIELD("due", INT), .most = INT64_MAX, .required = true, .help = "marks that are due" },
    { RP_FIELD("error", OBJECT), .of = &rp_shape_why, .help = "why it cannot be used" },
};
static const struct rp_shape store_shape = RP_SHAPE("store", store_fields, "what a store allows and guarantees");

/* ---- dead letters ---- */

struct letters {
    struct rp_dead *at;
    size_t n, max;
    struct rp_arena *arena;
};

static int keep_letter(void *ctx, const struct rp_dead *dead, struct rp_error *err)
{
    struct letters *l = ctx;
    if (l->n == l->max) return 0;
    l->at[l->n] = *dead;
    l->at[l->n].error = rp_arena_strdup(l->arena, dead->error);
    if (l->at[l->n++].error == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the dead letters");
    return 0;
}

static int letters_init(struct letters *l, size_t max, struct rp_arena *arena, struct rp_error *err)
{
    *l = (struct letters){ .max = max, .arena = arena };
    l->at = rp_arena_array(arena, max, sizeof *l->at);
    return l->at != NULL ? 0 : rp_error_set(err, RP_ENOMEM, "no memory for the dead letters");
}

static int add_letter(struct rp_request *q, const struct rp_dead *dead, struct rp_arena *arena, json_t *items,
                      struct rp_error *err)
{
    struct rp_mark mark;
    int r = rp_mark_get(rp_request_catalog(q)->db, dead->mark_id, arena, &mark, err);
    if (r == 0) rp_json_append(items, rp_dead_json(dead, &mark, rp_request_store_name(q, mark.store_id)));
    return r;
}

static void list_dead(struct rp_request *q)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(LIST_ARENA_MAX);
    json_t *items = json_array();
    struct rp_error err = { 0 };
    struct letters l = { 0 };
    size_t limit = rp_page_limit(q);
    int64_t after;
    int r = rp_cursor_read_id(q, &after, &err);
    if (r == 0) r = letters_init(&l, limit + 1, &arena, &err);
    if (r == 0) r = rp_dead_each(rp_request_catalog(q)->db, after, (int64_t)limit + 1, keep_letter, &l, &err);
    for (size_t i = 0; r == 0 && i < l.n && i < limit; i++)
        r = add_letter(q, &l.at[i], &arena, items, &err);
    rp_reply_page(q, r, &err, items, l.n > limit ? rp_cursor_write_id(q, l.at[limit - 1].id) : NULL);
}

/* The letter of the path, and its mark. False: answered. */
static bool load_letter(struct rp_request *q, struct rp_dead *dead, struct rp_mark *mark)
{
    struct letters l = { .at = dead, .max = 1, .arena = &q->arena };
    struct rp_error err = { 0 };
    int64_t id;
    if (!rp_request_id(q, 0, RP_ID_DEAD, &id)) return false;
    int r = rp_dead_get(rp_request_catalog(q)->db, id, keep_letter, &l, &err);
    if (r == 0) r = rp_mark_get(rp_request_catalog(q)->db, dead->mark_id, &q->arena, mark, &err);
    if (r == RP_ENOTFOUND)
        rp_reply_not_found(q, "open dead letter", RP_ID_DEAD, id);
    else if (r < 0)
        rp_reply_error(q, &err);
    return r == 0;
}

static void get_dead(struct rp_request *q)
{
    struct rp_dead dead;
    struct rp_mark mark;
    json_t *confirmations = NULL;
    struct rp_error err = { 0 };
    if (!load_letter(q, &dead, &mark)) return;
    if (rp_confirmations_json(rp_request_catalog(q)->db, mark.id, &q->arena, &confirmations, &err) < 0) {
        rp_reply_error(q, &err);
        return;
    }
    json_t *o = rp_dead_json(&dead, &mark, rp_request_store_name(q, mark.store_id));
    rp_json_set(o, "confirmations", confirmations);
    rp_reply_json(q, 200, o);
}

static struct rp_dead_command *new_decision(struct rp_request *q, const struct rp_verb *verb, size_t max)
{
    struct rp_dead_command *c = rp_command_new(q, sizeof *c, verb);
    if (c == NULL) return NULL;
    c->items = rp_arena_array(&q->arena, max, sizeof *c->items);
    c->max = max;
    c->arena = &q->arena;
    if (c->items != NULL) return c;
    rp_reply_no_memory(q);
    return NULL;
}

static void then_decided(struct rp_request *q)
{
    const struct rp_dead_item *item = ((struct rp_dead_command *)q->command)->items;
    rp_reply_json(q, 200, rp_decided_json(item, rp_request_store_name(q, item->mark.store_id)));
}

static void decide_dead(struct rp_request *q, const struct rp_verb *verb)
{
    int64_t id;
    if (!rp_request_id(q, 0, RP_ID_DEAD, &id)) return;
    struct rp_dead_command *c = new_decision(q, verb, 1);
    if (c == NULL) return;
    c->items[c->n++].id = id;
    rp_request_submit(q, &c->command, then_decided, NULL);
}

static void retry_dead(struct rp_request *q)
{
    decide_dead(q, &rp_verb_dead_retry);
}

static void keep_dead(struct rp_request *q)
{
    decide_dead(q, &rp_verb_dead_keep);
}

static void then_retried(struct rp_request *q)
{
    const struct rp_dead_command *c = (const struct rp_dead_command *)q->command;
    int64_t refused = 0;
    for (size_t i = 0; i < c->n; i++)
        refused += c->items[i].error.code < 0;
    json_t *o = json_object();
    rp_json_set(o, "retried", json_integer((json_int_t)c->n - refused));
    rp_json_set(o, "refused", json_integer(refused));
    rp_json_set(o, "complete", json_boolean(c->complete));
    rp_reply_json(q, 200, o);
}

static void retry_all(struct rp_request *q)
{
    struct rp_dead_command *c = new_decision(q, &rp_verb_dead_retry, RP_DEAD_ITEMS_MAX);
    if (c == NULL) return;
    c->all = true;
    c->since_ms = rp_json_get_int(q->query, "since", 0);
    c->endpoint = rp_json_get_text(q->query, "endpoint", NULL);
    c->command.weight = c->max;
    rp_request_submit(q, &c->command, then_retried, NULL);
}

/* ---- holds ---- */

static void list_holds(struct rp_request *q)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(LIST_ARENA_MAX);
    struct rp_error err = { 0 };
    struct rp_hold_line *lines = NULL;
    size_t n = 0, limit = rp_page_limit(q);
    int64_t after;
    int r = rp_cursor_read_id(q, &after, &err);
    if (r == 0) r = rp_holds_list(rp_request_catalog(q)->db, after, limit + 1, &arena, &lines, &n, &err);
    json_t *items = json_array();
    for (size_t i = 0; i < n && i < limit; i++) {
        char scope[RP_SCOPE_TEXT];
        const struct rp_hold *hold = &lines[i].hold;
        const char *store = hold->store_id != 0 ? rp_request_store_name(q, hold->store_id) : "";
        rp_json_append(items, rp_hold_json(hold, rp_scope_text(hold, store, lines[i].tenant, scope)));
    }
    rp_reply_page(q, r, &err, items, n > limit ? rp_cursor_write_id(q, lines[limit - 1].hold.id) : NULL);
}

static int read_scope(struct rp_request *q, struct rp_hold_command *out, struct rp_error *err)
{
    struct rp_scope_name name;
    int r = rp_scope_read(rp_json_get_text(q->body, "scope", ""), &q->arena, &name, err);
    if (r < 0) return r;
    out->scope = name.scope;
    out->tenant = name.tenant;
    if (name.scope == RP_SCOPE_EVERYTHING || name.scope == RP_SCOPE_TENANT) return 0;
    out->store = rp_request_store(q, name.store);
    out->key = name.key;
    if (out->store == NULL) return rp_error_set(err, RP_ENOTFOUND, "no store '%.63s'", name.store);
    return name.scope == RP_SCOPE_SUBJECT ? rp_key_check(name.key, strlen(name.key), err) : 0;
}

static const char *name_of(void *ctx, int64_t store_id)
{
    return rp_request_store_name(ctx, store_id);
}

static void then_held(struct rp_request *q)
{
    const struct rp_hold_command *c = (const struct rp_hold_command *)q->command;
    rp_reply_json(q, 201, rp_placed_json(c, rp_json_get_text(q->body, "scope", ""), name_of, q));
}

static struct rp_hold_command *new_hold(struct rp_request *q, const struct rp_verb *verb)
{
    struct rp_hold_command *c = rp_command_new(q, sizeof *c, verb);
    if (c != NULL) c->arena = &q->arena;
    return c;
}

static void place_hold(struct rp_request *q)
{
    struct rp_hold_command *c = new_hold(q, &rp_verb_hold_add);
    struct rp_error err = { 0 };
    if (c == NULL) return;
    c->reason = rp_json_get_text(q->body, "reason", "");
    if (read_scope(q, c, &err) < 0)
        rp_request_refuse(q, &c->command, &err, NULL);
    else
        rp_request_submit(q, &c->command, then_held, NULL);
}

static void not_lifted(struct rp_request *q)
{
    if (q->command->error.code == RP_ENOTFOUND)
        rp_reply_not_found(q, "hold", RP_ID_HOLD, ((const struct rp_hold_command *)q->command)->id);
    else
        rp_reply_error(q, &q->command->error);
}

static void then_lifted(struct rp_request *q)
{
    rp_reply_json(q, 200, rp_lifted_json(((const struct rp_hold_command *)q->command)->id));
}

static void lift_hold(struct rp_request *q)
{
    int64_t id;
    if (!rp_request_id(q, 0, RP_ID_HOLD, &id)) return;
    struct rp_hold_command *c = new_hold(q, &rp_verb_hold_lift);
    if (c == NULL) return;
    c->id = id;
    q->refused = not_lifted;
    rp_request_submit(q, &c->command, then_lifted, NULL);
}

/* ---- stores ---- */

static void list_stores(struct rp_request *q)
{
    RP_CLEANUP(rp_tallies_freep) struct rp_tallies *tallies = NULL;
    json_t *items = json_array();
    struct rp_catalog *catalog = rp_request_catalog(q);
    struct rp_error err = { 0 };
    size_t n = 0;
    struct rp_store *const *stores = rp_request_stores(q, &n);
    int r = stores != NULL ? 0 : rp_error_set(&err, RP_ENOMEM, "no memory for a list");
    if (r == 0) r = rp_tallies_read(catalog->db, &tallies, &err);
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct rp_store *store = stores[i];
        struct rp_store_facts facts;
        r = rp_store_facts(catalog, store->config, store->backend != NULL ? store : NULL, &store->closed, tallies,
                           rp_request_now_ms(q), &facts, &err);
        if (r == 0) rp_json_append(items, rp_store_facts_json(&facts));
    }
    rp_reply_page(q, r, &err, items, NULL);
}

/* ---- the table ---- */

static const struct rp_route routes[] = {
    { RP_ROUTE("GET", "/v1/dead-letters", RP_FOR_ADMINS, RP_MAY_READ_RUNS, list_dead), .blocks = true,
      .query = &rp_shape_page, .answer = &dead_shape, .many = true,
      .summary = "Lists what used up its attempts and waits for a person." },
    { RP_ROUTE("GET", "/v1/dead-letters/{id}", RP_FOR_ADMINS, RP_MAY_READ_RUNS, get_dead), .blocks = true,
      .answer = &dead_shown_shape, .errors = "not_found",
      .summary = "Shows one dead letter, with each call to the outside services that it needs a yes of." },
    { RP_ROUTE("POST", "/v1/dead-letters/{id}/retry", RP_FOR_ADMINS, RP_MAY_WRITE_RUNS, retry_dead),
      .answer = &decided_shape, .errors = "not_found",
      .summary = "Has it tried again at once, where it was, with attempts counted from zero.", .example = "-X POST" },
    { RP_ROUTE("POST", "/v1/dead-letters/{id}/keep", RP_FOR_ADMINS, RP_MAY_WRITE_RUNS, keep_dead),
      .answer = &decided_shape, .errors = "not_found name_taken owner_deleted too_late",
      .summary = "Gives the mark up: reprieved if nothing can have been erased, and its file lives again, else lost.",
      .example = "-X POST" },
    { RP_ROUTE("POST", "/v1/dead-letters/retry-all", RP_FOR_ADMINS, RP_MAY_WRITE_RUNS, retry_all),
      .query = &retry_shape, .answer = &retried_shape,
      .summary = "Has all of them tried again, at most 1,000 a call, in one step.", .example = "-X POST" },
    { RP_ROUTE("GET", "/v1/holds", RP_FOR_ADMINS, RP_MAY_READ_RUNS, list_holds), .blocks = true,
      .query = &rp_shape_page, .answer = &hold_shape, .many = true, .summary = "Lists the holds in force." },
    { RP_ROUTE("POST", "/v1/holds", RP_FOR_ADMINS, RP_MAY_WRITE_RUNS, place_hold), .body = &hold_request_shape,
      .answer = &placed_shape, .status = 201, .errors = "not_found not_owner",
      .summary = "Stops the purging of a subject, a prefix, a tenant or everything, until the hold is lifted.",
      .example = "-X POST -d '{\"scope\":\"main:legal/*\",\"reason\":\"case 12\"}'" },
    { RP_ROUTE("DELETE", "/v1/holds/{id}", RP_FOR_ADMINS, RP_MAY_WRITE_RUNS, lift_hold), .answer = &lifted_shape,
      .errors = "not_found", .summary = "Lifts a hold.", .example = "-X DELETE" },
    { RP_ROUTE("GET", "/v1/stores", RP_FOR_ADMINS, RP_MAY_READ_RUNS, list_stores), .blocks = true,
      .answer = &store_shape, .many = true,
      .summary = "Lists the stores: what each allows and guarantees, whose it is, what waits there." },
};
const struct rp_routes rp_routes_operations = { routes, sizeof routes / sizeof routes[0] };
