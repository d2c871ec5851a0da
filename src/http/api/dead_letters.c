/* SPDX-License-Identifier: Apache-2.0 */
/* dead_letters.c - what used up its attempts, and what a person decides about it. */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "core/dead.h"
#include "core/state.h"
#include "http/api/operations.h"
#include "http/api/shapes.h"
#include "lib/answer.h"

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
/* clang-format on */

static const struct rp_field dead_fields[] = { DEAD_FIELDS };
const struct rp_shape rp_shape_dead = RP_SHAPE("dead_letter", dead_fields, "a mark that used up its attempts");

static const struct rp_field dead_shown_fields[] = {
    DEAD_FIELDS,
    { RP_FIELD("confirmations", LIST), .of = &rp_shape_confirmation, .required = true,
      .help = "outside services that it needs a yes of" },
};
const struct rp_shape rp_shape_dead_shown =
    RP_SHAPE("dead_letter_shown", dead_shown_fields, "a dead letter with what was tried");

static const struct rp_field decided_fields[] = {
    DEAD_FIELDS,
    { RP_FIELD("state", CHOICE), .choices = rp_state_names, .required = true, .help = "what the mark is now" },
    { RP_FIELD("annotation_failed", TEXT), .help = "kept, but the object still says it is marked" },
};
const struct rp_shape rp_shape_decided = RP_SHAPE("decided_letter", decided_fields, "what a person decided");

static const struct rp_field retry_fields[] = {
    { RP_FIELD("since", TIME), .help = "only those that died since" },
    { RP_FIELD("endpoint", TEXT), .least = 1, .most = 63,
      .help = "only those that this outside service gave no yes to" },
};
const struct rp_shape rp_shape_retry = RP_SHAPE("retry_request", retry_fields, "which dead letters are tried again");

static const struct rp_field retried_fields[] = {
    { RP_FIELD("retried", INT), .most = RP_DEAD_ITEMS_MAX, .required = true, .help = "brought back" },
    { RP_FIELD("refused", INT), .most = RP_DEAD_ITEMS_MAX, .required = true, .help = "could not be" },
    { RP_FIELD("complete", BOOL), .required = true, .help = "false: there are more; call again" },
};
const struct rp_shape rp_shape_retried = RP_SHAPE("retried_letters", retried_fields, "how many are tried again");

/* ---- list and get ---- */

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

void rp_http_list_dead(struct rp_request *q)
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

void rp_http_get_dead(struct rp_request *q)
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

/* ---- decide ---- */

static struct rp_dead_command *new_decision(struct rp_request *q, const struct rp_verb *verb, size_t max)
{
    struct rp_dead_command *c = rp_command_new(q, sizeof *c, verb);
    if (c == NULL) return NULL;
    c->items = rp_arena_array(&q->arena, max, sizeof *c->items);
    c->stores = rp_request_stores(q, &c->n_stores);
    c->max = max;
    c->arena = &q->arena;
    if (c->items != NULL && c->stores != NULL) return c;
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

void rp_http_retry_dead(struct rp_request *q)
{
    decide_dead(q, &rp_verb_dead_retry);
}

void rp_http_keep_dead(struct rp_request *q)
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

void rp_http_retry_all(struct rp_request *q)
{
    struct rp_dead_command *c = new_decision(q, &rp_verb_dead_retry, RP_DEAD_ITEMS_MAX);
    if (c == NULL) return;
    c->all = true;
    c->since_ms = rp_json_get_int(q->query, "since", 0);
    c->endpoint = rp_json_get_text(q->query, "endpoint", NULL);
    c->command.weight = c->max;
    rp_request_submit(q, &c->command, then_retried, NULL);
}
