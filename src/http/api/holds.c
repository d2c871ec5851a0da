/* SPDX-License-Identifier: Apache-2.0 */
/* holds.c - what stops purging: listed, placed and lifted. */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "core/hold.h"
#include "http/api/operations.h"
#include "http/api/shapes.h"
#include "lib/answer.h"

#include <string.h>

#define LIST_ARENA_MAX ((size_t)8 << 20)

/* ---- shapes ---- */

/* clang-format off */
#define HOLD_FIELDS                                                                                                    \
    { RP_FIELD("id", ID), .id = RP_ID_HOLD, .required = true, .help = "the hold" },                                    \
    { RP_FIELD("scope", TEXT), .required = true, .help = "what it covers" },                                           \
    { RP_FIELD("reason", TEXT), .required = true, .help = "why" },                                                     \
    { RP_FIELD("actor", TEXT), .required = true, .help = "who placed it" },                                            \
    { RP_FIELD("placed_at", TIME), .required = true, .help = "when" }
/* clang-format on */

static const struct rp_field hold_request_fields[] = {
    { RP_FIELD("scope", TEXT), .required = true, .least = 1, .most = RP_SCOPE_TEXT,
      .help = "STORE:KEY, STORE:PREFIX*, tenant/NAME or everything" },
    { RP_FIELD("reason", TEXT), .required = true, .least = 1, .most = RP_REASON_MAX,
      .help = "whoever finds it in a year will want to know" },
};
const struct rp_shape rp_shape_hold_request =
    RP_SHAPE("hold_request", hold_request_fields, "what is not to be purged, and why");

static const struct rp_field hold_fields[] = { HOLD_FIELDS };
const struct rp_shape rp_shape_hold = RP_SHAPE("hold", hold_fields, "a stop on purging");

static const struct rp_field placed_fields[] = {
    HOLD_FIELDS,
    { RP_FIELD("claimed", LIST), .of = &rp_shape_mark, .required = true,
      .help = "covered, but past the claim already: they may still be purged; the first 1000" },
    { RP_FIELD("claimed_total", INT), .most = INT64_MAX, .required = true,
      .help = "how many these are, listed or not" },
};
const struct rp_shape rp_shape_placed = RP_SHAPE("placed_hold", placed_fields, "a hold, and what it came too late for");

static const struct rp_field lifted_fields[] = {
    { RP_FIELD("id", ID), .id = RP_ID_HOLD, .required = true, .help = "the hold" },
    { RP_FIELD("lifted", BOOL), .required = true, .help = "true" },
};
const struct rp_shape rp_shape_lifted = RP_SHAPE("lifted_hold", lifted_fields, "a hold that is no more");

/* ---- handlers ---- */

void rp_http_list_holds(struct rp_request *q)
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

void rp_http_place_hold(struct rp_request *q)
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

void rp_http_lift_hold(struct rp_request *q)
{
    int64_t id;
    if (!rp_request_id(q, 0, RP_ID_HOLD, &id)) return;
    struct rp_hold_command *c = new_hold(q, &rp_verb_hold_lift);
    if (c == NULL) return;
    c->id = id;
    q->refused = not_lifted;
    rp_request_submit(q, &c->command, then_lifted, NULL);
}
