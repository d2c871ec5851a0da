/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hold.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "base/text/json.h"
#include "catalog/audit/audit.h"
#include "catalog/file/file.h"
#include "core/journal.h"
#include "core/owner/refuse.h"
#include "core/state.h"

#include <stdio.h>
#include <string.h>

#define TENANT         "tenant/"
#define RESUME_PAGE    1000
#define PAGE           1000
#define PAGE_ARENA_MAX ((size_t)4 << 20)

int rp_scope_read(const char *text, struct rp_arena *arena, struct rp_scope_name *out, struct rp_error *err)
{
    size_t n = strlen(text);
    char *copy = rp_arena_copy(arena, text, n);
    if (copy == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a hold");
    *out = (struct rp_scope_name){ .scope = RP_SCOPE_EVERYTHING };
    if (strcmp(text, "everything") == 0) return 0;
    if (strncmp(text, TENANT, strlen(TENANT)) == 0) {
        *out = (struct rp_scope_name){ .scope = RP_SCOPE_TENANT, .tenant = copy + strlen(TENANT) };
        return 0;
    }
    char *colon = strchr(copy, ':');
    if (colon == NULL || colon == copy || colon[1] == 0) { /* a hold on the key "" would hold nothing */
        rp_error_set(err, RP_EINVAL, "'%.64s' is no scope", text);
        return rp_error_hint(err, "a scope is STORE:KEY, STORE:PREFIX*, tenant/NAME or everything");
    }
    bool prefix = copy[n - 1] == '*';
    *colon = 0;
    if (prefix) copy[n - 1] = 0;
    if (strchr(colon + 1, '*') != NULL) { /* meant as a pattern it would hold nothing */
        rp_error_set(err, RP_EINVAL, "'%.64s': only a * at the end stands for more", text);
        return rp_error_hint(err, "hold STORE:PREFIX*, up to where the names differ");
    }
    *out =
        (struct rp_scope_name){ .scope = prefix ? RP_SCOPE_PREFIX : RP_SCOPE_SUBJECT, .store = copy, .key = colon + 1 };
    return 0;
}

const char *rp_scope_text(const struct rp_hold *hold, const char *store, const char *tenant, char out[RP_SCOPE_TEXT])
{
    if (hold->scope == RP_SCOPE_EVERYTHING)
        snprintf(out, RP_SCOPE_TEXT, "everything");
    else if (hold->scope == RP_SCOPE_TENANT)
        snprintf(out, RP_SCOPE_TEXT, TENANT "%s", tenant);
    else
        snprintf(out, RP_SCOPE_TEXT, "%s:%s%s", store, hold->key, hold->scope == RP_SCOPE_PREFIX ? "*" : "");
    return out;
}

static json_t *hold_json(const struct rp_hold *hold, const struct rp_hold_command *c)
{
    static const char *const scopes[] = { [RP_SCOPE_SUBJECT] = "subject",
                                          [RP_SCOPE_PREFIX] = "prefix",
                                          [RP_SCOPE_TENANT] = "tenant",
                                          [RP_SCOPE_EVERYTHING] = "everything" };
    char id[RP_ID_TEXT];
    json_t *o = json_object();
    rp_json_set(o, "hold", json_string(rp_id_format(RP_ID_HOLD, hold->id, id)));
    rp_json_set(o, "scope", json_string(scopes[hold->scope]));
    if (c->store != NULL) rp_json_set(o, "subject", rp_subject_json(c->store->config->name, hold->key));
    if (hold->scope == RP_SCOPE_TENANT) rp_json_set(o, "tenant", rp_json_text(c->tenant));
    rp_json_set(o, "reason", rp_json_text(hold->reason));
    return o;
}

/* ---- add ---- */

/* Of those that are covered: as many as there is room for, and how many there are. */
static int keep_claimed(const struct rp_mark *mark, struct rp_hold_command *c, struct rp_error *err)
{
    struct rp_marks *out = &c->claimed;
    c->claimed_total++;
    return out->n < out->max ? rp_mark_copy(mark, out->arena, &out->at[out->n++], err) : 0;
}

/* Page by page: what the hold covers may be few of many that are claimed. */
static int collect_claimed(struct rp_tx *tx, const struct rp_hold *hold, int64_t store_id, struct rp_hold_command *c,
                           struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(PAGE_ARENA_MAX);
    struct rp_marks page = { .n = PAGE };
    int64_t after_id = 0;
    int r = 0;
    while (r == 0 && page.n == PAGE) {
        rp_arena_reset(&arena);
        r = rp_marks_init(&page, PAGE, &arena, err);
        if (r == 0) r = rp_hold_claimed(tx->db, store_id, after_id, &page, err);
        for (size_t i = 0; r == 0 && i < page.n; i++)
            if (rp_hold_covers(hold, &page.at[i])) r = keep_claimed(&page.at[i], c, err);
        if (r == 0 && page.n > 0) after_id = page.at[page.n - 1].id;
    }
    return r;
}

static int collect_all_claimed(struct rp_tx *tx, const struct rp_hold *hold, struct rp_hold_command *c,
                               struct rp_error *err)
{
    struct rp_store_rows stores = { 0 };
    c->claimed_total = 0;
    if (hold->store_id != 0) return collect_claimed(tx, hold, hold->store_id, c, err);
    int r = rp_store_list(tx->db, tx->arena, &stores, err);
    for (size_t i = 0; i < stores.n && r == 0; i++)
        r = collect_claimed(tx, hold, stores.at[i].id, c, err);
    return r;
}

static int find_tenant(struct rp_tx *tx, struct rp_hold_command *c, int64_t *id, struct rp_error *err)
{
    struct rp_tenant tenant = { 0 };
    *id = 0;
    if (c->scope != RP_SCOPE_TENANT) return 0;
    int r = rp_tenant_find(tx->db, c->tenant, &tenant, err);
    *id = tenant.id;
    if (r != RP_ENOTFOUND) return r;
    rp_error_set(&c->command.error, RP_ENOTFOUND, "no tenant '%.63s'", c->tenant);
    return 0;
}

static int add_one(struct rp_tx *tx, struct rp_hold_command *c, struct rp_error *err)
{
    bool named = c->scope == RP_SCOPE_SUBJECT || c->scope == RP_SCOPE_PREFIX;
    RP_ASSERT(named == (c->store != NULL) && named == (c->key != NULL));
    struct rp_hold hold = { .id = rp_tx_new_id(tx),
                            .scope = c->scope,
                            .store_id = c->store != NULL ? c->store->id : 0,
                            .key = c->key,
                            .reason = c->reason,
                            .actor = c->command.actor,
                            .placed_at_ms = tx->late_ms };
    int r = find_tenant(tx, c, &hold.tenant_id, err);
    if (r == 0 && c->store != NULL) (void)rp_owner_refuse_name(c->store, &c->command.error);
    if (r < 0 || c->command.error.code < 0) return r;
    if (c->store != NULL) r = rp_store_share(tx, c->store->id, c->store->config->name, err);
    if (r < 0) return r;
    r = rp_marks_init(&c->claimed, RP_HOLD_CLAIMED_MAX, c->arena, err);
    if (r == 0) r = rp_hold_add(tx, &hold, err);
    /* the epoch is ours now: every claim before it has committed, and shows */
    if (r == 0) r = collect_all_claimed(tx, &hold, c, err);
    if (r < 0) return r;
    c->id = hold.id;
    c->placed_at_ms = hold.placed_at_ms;
    rp_tx_keep(tx, hold.store_id); /* 0: of everything, or of a tenant */
    struct rp_audit_entry entry = { .event = "hold.placed", .actor = c->command.actor, .details = hold_json(&hold, c) };
    return rp_tx_audit(tx, &entry, err);
}

/* ---- lift ---- */

static int lift(struct rp_tx *tx, int64_t hold_id, const char *actor, struct rp_error *err)
{
    char id[RP_ID_TEXT];
    int r = rp_hold_lift(tx, hold_id, actor, err);
    if (r < 0) return r;
    struct rp_audit_entry entry = { .event = "hold.lifted",
                                    .actor = actor,
                                    .details = json_pack("{s:s}", "hold", rp_id_format(RP_ID_HOLD, hold_id, id)) };
    return rp_tx_audit(tx, &entry, err);
}

/* What it covered may be due. */
static int lift_one(struct rp_tx *tx, struct rp_hold_command *c, struct rp_error *err)
{
    struct rp_error why = { 0 };
    int r = lift(tx, c->id, c->command.actor, &why);
    if (r < 0 && r != RP_ENOTFOUND) {
        *err = why;
        return r;
    }
    c->command.error = why;
    c->command.due_at_ms = r == 0 ? tx->late_ms : 0;
    return 0;
}

/* A page of the holds on everything, those after `after_id`. */
struct everything {
    int64_t after_id, ids[RESUME_PAGE];
    size_t n;
};

static int collect_everything(void *ctx, const struct rp_hold *hold, struct rp_error *err)
{
    struct everything *all = ctx;
    (void)err;
    bool fits = all->n < RESUME_PAGE && hold->id > all->after_id;
    if (fits && hold->scope == RP_SCOPE_EVERYTHING) all->ids[all->n++] = hold->id;
    return 0;
}

static int lift_page(struct rp_tx *tx, struct rp_hold_command *c, struct everything *page, struct rp_error *err)
{
    int r = rp_hold_each(tx->db, collect_everything, page, err);
    for (size_t i = 0; i < page->n && r == 0; i++) {
        struct rp_error why = { 0 };
        r = lift(tx, page->ids[i], c->command.actor, &why);
        c->lifted += r == 0;
        if (r == RP_ENOTFOUND) r = 0; /* somebody else has resumed since the holds were listed */
        if (r < 0) *err = why;
    }
    return r;
}

static int resume_one(struct rp_tx *tx, struct rp_hold_command *c, struct rp_error *err)
{
    struct everything page = { .n = RESUME_PAGE };
    int r = 0;
    c->lifted = 0;
    while (r == 0 && page.n == RESUME_PAGE) {
        page.n = 0;
        r = lift_page(tx, c, &page, err);
        if (page.n > 0) page.after_id = page.ids[page.n - 1];
    }
    c->command.due_at_ms = c->lifted > 0 ? tx->late_ms : 0;
    return r;
}

/* ---- the verbs ---- */

typedef int one_fn(struct rp_tx *tx, struct rp_hold_command *c, struct rp_error *err);

static int run_each(struct rp_tx *tx, struct rp_command *const *commands, size_t n, one_fn *one, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = one(tx, (struct rp_hold_command *)commands[i], err);
    return r;
}

static int run_add(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    return run_each(tx, commands, n, add_one, err);
}

static int run_lift(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    return run_each(tx, commands, n, lift_one, err);
}

static int run_resume(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    return run_each(tx, commands, n, resume_one, err);
}

static void log_add(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    const struct rp_hold_command *c = (const struct rp_hold_command *)command;
    struct rp_hold hold = { .id = c->id, .scope = c->scope, .key = c->key, .reason = c->reason };
    struct rp_journal j = rp_journal_of(command, log, at_ms);
    char scope[RP_SCOPE_TEXT];
    if (command->error.code < 0) return;
    json_t *o = hold_json(&hold, c);
    rp_scope_text(&hold, c->store != NULL ? c->store->config->name : "", c->tenant, scope);
    rp_json_set(o, "scope", rp_json_text(scope));
    rp_json_set(o, "claimed", json_integer(c->claimed_total));
    rp_journal_change(&j, "hold.placed", o);
}

static void log_lift(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    const struct rp_hold_command *c = (const struct rp_hold_command *)command;
    struct rp_journal j = rp_journal_of(command, log, at_ms);
    bool one = command->verb == &rp_verb_hold_lift;
    char id[RP_ID_TEXT];
    if (command->error.code < 0 || (!one && c->lifted == 0)) return;
    json_t *o = json_object();
    rp_json_set(o, "hold", json_string(one ? rp_id_format(RP_ID_HOLD, c->id, id) : "everything"));
    if (!one) rp_json_set(o, "lifted", json_integer(c->lifted));
    rp_journal_change(&j, "hold.lifted", o);
}

_Static_assert(offsetof(struct rp_hold_command, command) == 0, "a command is the first member");
/* Alone: the hold epoch is locked before anything else (catalog.h, K8). */
const struct rp_verb rp_verb_hold_add = { .name = "hold", .run = run_add, .log = log_add, .alone = true };
const struct rp_verb rp_verb_hold_lift = { .name = "lift", .run = run_lift, .log = log_lift, .alone = true };
const struct rp_verb rp_verb_resume = { .name = "resume", .run = run_resume, .log = log_lift, .alone = true };

/* ---- list ---- */

struct page {
    int64_t after_id;
    struct rp_hold_line *at;
    size_t n, max;
    struct rp_arena *arena;
};

static int keep_line(void *ctx, const struct rp_hold *hold, struct rp_error *err)
{
    struct page *page = ctx;
    if (hold->id <= page->after_id || page->n == page->max) return 0;
    struct rp_hold copy = *hold;
    copy.reason = rp_arena_strdup(page->arena, hold->reason);
    copy.actor = rp_arena_strdup(page->arena, hold->actor);
    copy.key = hold->key != NULL ? rp_arena_strdup(page->arena, hold->key) : NULL;
    if (copy.reason == NULL || copy.actor == NULL || (hold->key != NULL && copy.key == NULL))
        return rp_error_set(err, RP_ENOMEM, "no memory for the holds");
    page->at[page->n++] = (struct rp_hold_line){ .hold = copy, .tenant = "" };
    return 0;
}

int rp_holds_list(struct rp_db *db, int64_t after_id, size_t max, struct rp_arena *arena, struct rp_hold_line **out,
                  size_t *n, struct rp_error *err)
{
    struct page page = { .after_id = after_id, .max = max, .arena = arena };
    page.at = rp_arena_array(arena, max, sizeof *page.at);
    if (page.at == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the holds");
    int r = rp_hold_each(db, keep_line, &page, err);
    for (size_t i = 0; i < page.n && r == 0; i++) {
        struct rp_tenant tenant;
        if (page.at[i].hold.scope != RP_SCOPE_TENANT) continue;
        r = rp_tenant_by_id(db, page.at[i].hold.tenant_id, &tenant, err);
        if (r == 0) page.at[i].tenant = rp_arena_strdup(arena, tenant.name);
        if (r == 0 && page.at[i].tenant == NULL) r = rp_error_set(err, RP_ENOMEM, "no memory for the holds");
    }
    if (r < 0) return r;
    *out = page.at;
    *n = page.n;
    return 0;
}
