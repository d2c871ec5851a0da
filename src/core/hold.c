/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hold.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "catalog/audit.h"
#include "catalog/file.h"

#include <string.h>

#define STORES_MAX     128
#define RESUME_MAX     1000
#define PAGE           1000
#define PAGE_ARENA_MAX ((size_t)4 << 20)

int rp_scope_read(const char *text, struct rp_arena *arena, struct rp_scope_name *out, struct rp_error *err)
{
    size_t n = strlen(text);
    char *copy = rp_arena_copy(arena, text, n);
    if (copy == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a hold");
    *out = (struct rp_scope_name){ .scope = RP_SCOPE_EVERYTHING };
    if (strcmp(text, "everything") == 0) return 0;
    *out = (struct rp_scope_name){ .scope = RP_SCOPE_TENANT, .tenant = copy + strlen("tenant/") };
    if (strncmp(text, "tenant/", strlen("tenant/")) == 0) return 0;
    char *colon = strchr(copy, ':');
    if (colon == NULL || colon == copy || colon[1] == 0) { /* a hold on the key "" would hold nothing */
        rp_error_set(err, RP_EINVAL, "'%.64s' is no scope", text);
        return rp_error_hint(err, "a scope is STORE:KEY, STORE:PREFIX*, tenant/NAME or everything");
    }
    bool prefix = copy[n - 1] == '*';
    *colon = 0;
    if (prefix) copy[n - 1] = 0;
    *out =
        (struct rp_scope_name){ .scope = prefix ? RP_SCOPE_PREFIX : RP_SCOPE_SUBJECT, .store = copy, .key = colon + 1 };
    return 0;
}

static json_t *hold_json(const struct rp_hold *hold, const struct rp_hold_request *request)
{
    static const char *const scopes[] = { [RP_SCOPE_SUBJECT] = "subject",
                                          [RP_SCOPE_PREFIX] = "prefix",
                                          [RP_SCOPE_TENANT] = "tenant",
                                          [RP_SCOPE_EVERYTHING] = "everything" };
    char id[RP_ID_TEXT];
    json_t *o = json_object();
    rp_json_set(o, "hold", json_string(rp_id_format(RP_ID_HOLD, hold->id, id)));
    rp_json_set(o, "scope", json_string(scopes[hold->scope]));
    if (request->store != NULL)
        rp_json_set(o, "subject", json_sprintf("%s:%s", request->store->config->name, hold->key));
    if (hold->scope == RP_SCOPE_TENANT) rp_json_set(o, "tenant", rp_json_text(request->tenant));
    rp_json_set(o, "reason", rp_json_text(hold->reason));
    return o;
}

struct placing {
    const struct rp_hold_request *request;
    struct rp_hold_answer *out;
    struct rp_arena *arena;
};

static bool covers(const struct rp_hold_request *q, const struct rp_mark *mark)
{
    if (q->scope == RP_SCOPE_SUBJECT) return strcmp(q->key, mark->key) == 0;
    if (q->scope == RP_SCOPE_PREFIX) return strncmp(q->key, mark->key, strlen(q->key)) == 0;
    return q->scope != RP_SCOPE_TENANT || mark->tenant_id == q->tenant_id;
}

/* The texts of `mark` are of a page that is read over. */
static int keep(struct rp_marks *out, const struct rp_mark *mark, struct rp_error *err)
{
    struct rp_mark copy = *mark;
    const char **texts[] = { &copy.key, &copy.etag, &copy.version, &copy.reason, &copy.actor, &copy.note };
    if (out->n == out->max) return 0;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (*texts[i] == NULL) continue;
        *texts[i] = rp_arena_strdup(out->arena, *texts[i]);
        if (*texts[i] == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the claimed marks");
    }
    out->at[out->n++] = copy;
    return 0;
}

/* Page by page: what the hold covers may be few of many that are claimed. */
static int collect_claimed(struct rp_tx *tx, struct placing *p, int64_t store_id, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(PAGE_ARENA_MAX);
    struct rp_marks page = { .n = PAGE };
    int64_t after_id = 0;
    int r = 0;
    while (r == 0 && page.n == PAGE && p->out->claimed.n < p->out->claimed.max) {
        rp_arena_reset(&arena);
        r = rp_marks_init(&page, PAGE, &arena, err);
        if (r == 0) r = rp_hold_claimed(tx->db, store_id, after_id, &page, err);
        for (size_t i = 0; r == 0 && i < page.n; i++)
            if (covers(p->request, &page.at[i])) r = keep(&p->out->claimed, &page.at[i], err);
        if (r == 0 && page.n > 0) after_id = page.at[page.n - 1].id;
    }
    return r;
}

static int collect_all_claimed(struct rp_tx *tx, struct placing *p, struct rp_error *err)
{
    struct rp_store_row stores[STORES_MAX];
    size_t n = 0;
    if (p->request->store != NULL) return collect_claimed(tx, p, p->request->store->id, err);
    int r = rp_store_list(tx->db, stores, STORES_MAX, &n, err);
    for (size_t i = 0; i < n && r == 0; i++)
        r = collect_claimed(tx, p, stores[i].id, err);
    return r;
}

static int place_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct placing *p = ctx;
    const struct rp_hold_request *q = p->request;
    struct rp_hold hold = { .id = rp_tx_new_id(tx),
                            .scope = q->scope,
                            .store_id = q->store != NULL ? q->store->id : 0,
                            .key = q->key,
                            .tenant_id = q->tenant_id,
                            .reason = q->reason,
                            .actor = q->actor,
                            .placed_at_ms = tx->late_ms };
    int r = rp_marks_init(&p->out->claimed, RP_HOLD_CLAIMED_MAX, p->arena, err);
    if (r == 0) r = rp_hold_add(tx, &hold, err);
    /* the epoch is ours now: every claim before it has committed, and shows */
    if (r == 0) r = collect_all_claimed(tx, p, err);
    if (r < 0) return r;
    p->out->id = hold.id;
    p->out->placed_at_ms = hold.placed_at_ms;
    struct rp_audit_entry entry = { .event = "hold.placed", .actor = q->actor, .details = hold_json(&hold, q) };
    return rp_tx_audit(tx, &entry, err);
}

int rp_hold_put(struct rp_catalog *catalog, const struct rp_hold_request *request, struct rp_arena *arena,
                struct rp_hold_answer *out, struct rp_error *err)
{
    struct placing p = { .request = request, .out = out, .arena = arena };
    bool named = request->scope == RP_SCOPE_SUBJECT || request->scope == RP_SCOPE_PREFIX;
    RP_ASSERT(named == (request->store != NULL) && named == (request->key != NULL));
    RP_ASSERT((request->scope == RP_SCOPE_TENANT) == (request->tenant_id != 0));
    return rp_catalog_change(catalog, place_tx, &p, err);
}

struct removing {
    int64_t id;
    const char *actor;
};

static int remove_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    const struct removing *rm = ctx;
    char id[RP_ID_TEXT];
    int r = rp_hold_lift(tx, rm->id, rm->actor, err);
    if (r < 0) return r;
    struct rp_audit_entry entry = { .event = "hold.lifted",
                                    .actor = rm->actor,
                                    .details = json_pack("{s:s}", "hold", rp_id_format(RP_ID_HOLD, rm->id, id)) };
    return rp_tx_audit(tx, &entry, err);
}

int rp_hold_remove(struct rp_catalog *catalog, int64_t id, const char *actor, struct rp_error *err)
{
    struct removing rm = { .id = id, .actor = actor };
    return rp_catalog_transact(catalog, remove_tx, &rm, err);
}

struct everything {
    int64_t ids[RESUME_MAX];
    size_t n;
};

static int collect_everything(void *ctx, const struct rp_hold *hold, struct rp_error *err)
{
    struct everything *all = ctx;
    (void)err;
    if (hold->scope == RP_SCOPE_EVERYTHING && all->n < RESUME_MAX) all->ids[all->n++] = hold->id;
    return 0;
}

int rp_hold_resume(struct rp_catalog *catalog, const char *actor, int64_t *lifted, struct rp_error *err)
{
    struct everything all = { .n = 0 };
    int64_t n = 0;
    int r = rp_hold_each(catalog->db, collect_everything, &all, err);
    for (size_t i = 0; i < all.n && r == 0; i++) {
        r = rp_hold_remove(catalog, all.ids[i], actor, err);
        n += r == 0;
        if (r == RP_ENOTFOUND) r = 0; /* somebody else resumed at the same moment */
    }
    if (r == 0) *lifted = n;
    return r;
}

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
