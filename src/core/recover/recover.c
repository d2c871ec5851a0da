/* SPDX-License-Identifier: Apache-2.0 */
/* recover.c - the marks of a store that is taken over: reprieved, or given their whole time again. */
#include "core/recover/recover.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/audit/audit.h"
#include "catalog/mark/mark.h"
#include "core/confirm/confirm.h"
#include "core/due.h"
#include "core/mark/annotation.h"
#include "core/owner/refuse.h"
#include "core/state.h"
#include "core/subject/subject.h"

#include <string.h>

#define PAGE 1000

struct recovering {
    struct rp_store *store;
    const char *actor;
    struct rp_marks *page;
    int64_t reprieved;
    int64_t due_at_ms, copies_due_at_ms; /* of what begins anew; copies: those in quarantine */
};

/* After a return a copy in quarantine is of no use. */
static bool is_waiting(const struct rp_mark *mark)
{
    return (mark->state == RP_MARKED || mark->state == RP_CHECKING) && !rp_quarantine_is_returned(mark);
}

/* A file without a mark would never be cleaned up, and neither would a copy in quarantine: their
 * time begins anew, and they can be restored meanwhile. One moment for all of them, for what was
 * given a later one is met again further on. */
static bool begins_anew(const struct rp_mark *mark)
{
    return mark->file_id != 0 || rp_quarantine_is(mark->key);
}

/* What becomes of a mark of a store that is taken over. */
enum recovery {
    REPRIEVED,  /* it is nobody's: neither a file's nor a copy */
    TO_DECIDE,  /* a service has said yes: a person decides, who may have given the delete up since */
    ASKED_ANEW, /* it was only asked about: it is when its time is over, and what was said is forgotten */
    PROLONGED
};

static enum recovery recovery_of(const struct rp_mark *m)
{
    if (!begins_anew(m)) return REPRIEVED;
    if (m->state != RP_CHECKING) return PROLONGED;
    bool agreed = rp_mark_has_agreed(m);
    return agreed ? TO_DECIDE : ASKED_ANEW;
}

/* Not of one that is prolonged. */
static struct rp_move move_of(const struct rp_mark *m, enum recovery recovery, int64_t due_at_ms)
{
    struct rp_move move = { .mark = m, .attempts = m->attempts, .refence = true };
    if (recovery == REPRIEVED) {
        move.to = RP_REPRIEVED;
        move.outcome = RP_END_RECOVERED;
    } else if (recovery == TO_DECIDE) {
        move.to = RP_DEAD;
        move.note = "the catalog was put back, and a service has said yes: decide whether it is still to go";
    } else {
        move.to = RP_MARKED;
        move.next_at_ms = due_at_ms;
    }
    return move;
}

/* With a deadline of their own. */
static int ask_anew(struct rp_tx *tx, const struct rp_move *moves, size_t n, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        if (moves[i].done && moves[i].to != RP_REPRIEVED) r = rp_confirmations_renew(tx, moves[i].mark->id, err);
    return r;
}

static void fix_times(struct recovering *rec, const struct rp_tx *tx)
{
    struct rp_due anew = { .at_ms = -1, .grace_ms = -1, .config = rec->store->config };
    if (rec->due_at_ms != 0) return;
    rec->due_at_ms = rp_due(&anew, tx->late_ms);
    anew.by = RP_DUE_QUARANTINE;
    rec->copies_due_at_ms = rp_due(&anew, tx->late_ms);
}

static int reprieve_page(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct recovering *rec = ctx;
    struct rp_move *to_move = rp_arena_array(tx->arena, rec->page->n, sizeof *to_move);
    struct rp_extend *extends = rp_arena_array(tx->arena, rec->page->n, sizeof *extends);
    struct rp_state_by by = { .store = rec->store->config->name, .actor = rec->actor };
    size_t n = 0, n_extends = 0;
    rec->reprieved = 0;
    fix_times(rec, tx);
    if (to_move == NULL || extends == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = 0; i < rec->page->n; i++) {
        const struct rp_mark *m = &rec->page->at[i];
        int64_t due_at_ms = rp_quarantine_is(m->key) ? rec->copies_due_at_ms : rec->due_at_ms;
        if (!is_waiting(m)) continue;
        enum recovery recovery = recovery_of(m);
        if (recovery != PROLONGED)
            to_move[n++] = move_of(m, recovery, due_at_ms);
        else if (due_at_ms > m->due_at_ms)
            extends[n_extends++] = (struct rp_extend){ .mark = m, .due_at_ms = due_at_ms };
    }
    int r = rp_state_lock_tenants(tx, rec->page->at, rec->page->n, err);
    if (r == 0) r = rp_state_move(tx, &by, to_move, n, err);
    if (r == 0) r = ask_anew(tx, to_move, n, err);
    if (r == 0) r = rp_state_extend(tx, &by, extends, n_extends, err);
    for (size_t i = 0; i < n; i++)
        rec->reprieved += to_move[i].done && to_move[i].to == RP_REPRIEVED;
    return r;
}

/* What was given a later time by this recovery is met once more. */
static bool was_met(const struct recovering *rec, const struct rp_mark *m)
{
    const int64_t given[] = { rec->due_at_ms, rec->copies_due_at_ms };
    for (size_t i = 0; rec->due_at_ms != 0 && i < sizeof given / sizeof *given; i++)
        if (m->due_at_ms == given[i] || m->next_at_ms == given[i]) return true;
    return false;
}

static int compare_page(const struct recovering *rec, struct rp_store *store, struct rp_marks *page,
                        struct rp_recovery *out, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct rp_item *items = calloc(page->n, sizeof *items);
    if (items == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = 0; i < page->n; i++)
        items[i].key = rp_subject_where(&page->at[i]);
    int r = rp_subject_in(store)->look(store, items, page->n, err);
    if (r < 0) return r;
    for (size_t i = 0; i < page->n; i++) {
        if (!is_waiting(&page->at[i]) || was_met(rec, &page->at[i])) continue;
        out->waiting++;
        if (items[i].outcome == RP_OUT_GONE)
            out->missing++;
        else if (items[i].outcome != RP_OUT_FOUND)
            out->not_seen++;
        else if (strcmp(items[i].identity.etag, page->at[i].etag) == 0)
            out->present++;
        else
            out->changed++;
    }
    return 0;
}

/* Before their marks end (annotation.h, N1). What changed or went carries none of ours. */
static int remove_annotations(struct rp_catalog *catalog, struct rp_store *store, const struct rp_marks *page,
                              struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < page->n && r == 0; i++) {
        const struct rp_mark *m = &page->at[i];
        struct rp_identity identity = rp_subject_identity(m);
        struct rp_error why = { 0 };
        if (!m->annotated || !is_waiting(m)) continue;
        r = rp_annotation_remove(catalog, store, m->key, &identity, &why);
        if (r == RP_ENOTFOUND || r == RP_ECHANGED) r = 0;
        if (r < 0) *err = why;
    }
    return r;
}

/* A late answer to a call from before would erase what a person may have kept since. Before all else, and
 * once more in the end, for marks that died meanwhile. */
static int forget_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    const struct rp_store *store = ctx;
    return rp_confirmations_forget(tx, store->id, err);
}

static int recover_marks(struct rp_catalog *catalog, struct rp_store *store, const char *actor, bool dry_run,
                         struct rp_recovery *out, struct rp_error *err)
{
    struct rp_marks_query query = { .by = RP_BY_DUE, .store_id = store->id, .before_ms = RP_TIME_MAX_MS };
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA((size_t)8 << 20);
    struct recovering rec = { .store = store, .actor = actor };
    int forgotten = dry_run ? 0 : rp_catalog_transact(catalog, forget_tx, store, err);
    if (forgotten < 0) return forgotten;
    for (;;) {
        struct rp_marks page;
        rp_arena_reset(&arena);
        int r = rp_marks_init(&page, PAGE, &arena, err);
        if (r == 0) r = rp_marks_page(catalog->db, &query, &page, err);
        if (r == 0 && page.n == 0 && !dry_run) r = rp_catalog_transact(catalog, forget_tx, store, err);
        if (r < 0 || page.n == 0) return r;
        r = compare_page(&rec, store, &page, out, err);
        if (r < 0) return r;
        if (dry_run) continue;
        rec.page = &page;
        r = remove_annotations(catalog, store, &page, err);
        if (r == 0) r = rp_catalog_transact(catalog, reprieve_page, &rec, err);
        if (r < 0) return r;
        out->reprieved += rec.reprieved;
    }
}

int rp_owner_recover(struct rp_catalog *catalog, struct rp_store *store, const char *environment, const char *actor,
                     bool dry_run, struct rp_recovery *out, struct rp_error *err)
{
    struct rp_recovery rec = { 0 };
    RP_ASSERT(store->config->mode != RP_MODE_OBSERVE);
    int r = rp_owner_look(catalog, store, &rec.before, err);
    if (r == 0) r = rp_owner_refuse_others(catalog, store, &rec.before, err);
    if (r == 0) r = recover_marks(catalog, store, actor, dry_run, &rec, err);
    if (r == 0 && !dry_run) {
        struct rp_audit_entry entry = { .event = "store.recovered", .actor = actor };
        entry.details =
            json_pack("{s:s,s:s,s:s,s:I}", "store", store->config->name, "was", rp_ownership_text(rec.before.ownership),
                      "owner_before", rec.before.catalog, "reprieved", (json_int_t)rec.reprieved);
        r = rp_owner_write_over(catalog, store, environment, &rec.before, &entry, err);
        json_decref(entry.details);
    }
    if (r < 0) return rp_error_wrap(err, r, "recover store '%s'", store->config->name);
    *out = rec;
    return 0;
}

int rp_owner_accept_move(struct rp_catalog *catalog, struct rp_store *store, const char *environment, const char *actor,
                         struct rp_owner *before, struct rp_error *err)
{
    struct rp_audit_entry entry = { .event = "store.moved", .actor = actor };
    RP_ASSERT(store->config->mode != RP_MODE_OBSERVE);
    int r = rp_owner_look(catalog, store, before, err);
    if (r < 0 || before->ownership == RP_OWNER_OURS || before->ownership == RP_OWNER_NONE) return r;
    if (!rp_ownership_is_moved(before->ownership)) return rp_owner_refuse(before, store, err);
    if ((r = rp_owner_refuse_others(catalog, store, before, err)) < 0) return r;
    entry.details = json_pack("{s:s}", "store", store->config->name);
    r = rp_owner_write_over(catalog, store, environment, before, &entry, err);
    json_decref(entry.details);
    return r < 0 ? rp_error_wrap(err, r, "recover store '%s'", store->config->name) : 0;
}
