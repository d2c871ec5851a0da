/* SPDX-License-Identifier: Apache-2.0 */
/* refuse.c - every refusal that has to do with a store's owner, in words. */
#include "core/owner/refuse.h"

#include "base/assert.h"
#include "base/error.h"
#include "core/owner/raise.h"

#include <inttypes.h>

/* ---- why, and what to do ---- */

static int advise_recover(const char *store, struct rp_error *err)
{
    return rp_error_hint(err, "nothing of it is purged; look at it, then run `reprieve recover %s`", store);
}

static int refuse_plainly(const struct rp_owner *owner, const char *store, struct rp_error *err)
{
    rp_error_set(err, RP_ENOTOWNER, "store '%s': %s", store, rp_ownership_text(owner->ownership));
    return advise_recover(store, err);
}

static int refuse_foreign(const struct rp_owner *owner, const char *store, struct rp_error *err)
{
    rp_error_set(err, RP_ENOTOWNER, "store '%s' belongs to catalog %s (environment '%s')", store, owner->catalog,
                 owner->environment);
    return advise_recover(store, err);
}

static int refuse_elsewhere(const struct rp_owner *owner, const char *store, struct rp_error *err)
{
    rp_error_set(err, RP_ENOTOWNER, "store '%s' belongs to environment '%s'; is this catalog a copy?", store,
                 owner->environment);
    return advise_recover(store, err);
}

static int refuse_ahead(const struct rp_owner *owner, const char *store, struct rp_error *err)
{
    rp_error_set(err, RP_ENOTOWNER,
                 "store '%s' has seen epoch %" PRId64 ", this catalog is at %" PRId64 ": it was restored from a backup",
                 store, owner->epoch, owner->catalog_epoch);
    return advise_recover(store, err);
}

static int refuse_forked(const struct rp_owner *owner, const char *store, struct rp_error *err)
{
    rp_error_set(err, RP_ENOTOWNER,
                 "store '%s' belongs to another copy of this catalog: what that wrote there at epoch "
                 "%" PRId64 " was never written here",
                 store, owner->epoch);
    return advise_recover(store, err);
}

static int set_known_as(const struct rp_owner *owner, const char *store, struct rp_error *err)
{
    return rp_error_set(err, RP_ENOTOWNER,
                        "store '%s': the catalog knows it as '%s', and so do its holds, marks and files", store,
                        owner->other_name);
}

static int refuse_renamed(const struct rp_owner *owner, const char *store, struct rp_error *err)
{
    set_known_as(owner, store, err);
    return rp_error_hint(err,
                         "nothing of it is purged; give it the name '%s' back in the configuration, or run "
                         "`reprieve stores rename %s %s`",
                         owner->other_name, owner->other_name, store);
}

static int refuse_swapped(const struct rp_owner *owner, const char *store, struct rp_error *err)
{
    set_known_as(owner, store, err);
    return rp_error_hint(err,
                         "nothing of it is purged: were two stores swapped in the configuration, or has one two "
                         "names? If no hold and no file hangs on '%s': `reprieve recover --moved %s`",
                         owner->other_name, store);
}

static int refuse_moved(const struct rp_owner *owner, const char *store, struct rp_error *err)
{
    (void)owner;
    rp_error_set(err, RP_ENOTOWNER, "store '%s': the catalog is in another place: it was put back, promoted or moved",
                 store);
    return rp_error_hint(err,
                         "nothing of it is purged; if nothing was lost: `reprieve recover --moved %s`, if anything "
                         "may be: `reprieve recover %s`",
                         store, store);
}

/* ---- the table ---- */

static const struct {
    const char *text;
    bool moved, others;
    int (*refuse)(const struct rp_owner *owner, const char *store, struct rp_error *err); /* NULL: never */
} words[] = {
    [RP_OWNER_NONE] = { .text = "not owned yet" },
    [RP_OWNER_OURS] = { .text = "ours" },
    [RP_OWNER_GONE] = { .text = "its owner record is gone", .refuse = refuse_plainly },
    [RP_OWNER_FOREIGN] = { .text = "belongs to another catalog", .refuse = refuse_foreign },
    [RP_OWNER_AHEAD] = { .text = "is ahead of this catalog, which was rolled back", .refuse = refuse_ahead },
    [RP_OWNER_MOVED] = { .text = "belongs to this catalog in another place", .moved = true, .refuse = refuse_moved },
    [RP_OWNER_FORKED] = { .text = "belongs to another copy of this catalog", .refuse = refuse_forked },
    [RP_OWNER_SWAPPED] = { .text = "is another store of this catalog",
                           .moved = true,
                           .others = true,
                           .refuse = refuse_swapped },
    [RP_OWNER_RENAMED] = { .text = "has another name in this catalog", .others = true, .refuse = refuse_renamed },
    [RP_OWNER_ELSEWHERE] = { .text = "belongs to another environment", .refuse = refuse_elsewhere },
    [RP_OWNER_DAMAGED] = { .text = "its owner record is damaged", .refuse = refuse_plainly },
};

const char *rp_ownership_text(enum rp_ownership ownership)
{
    return words[ownership].text;
}

bool rp_ownership_is_moved(enum rp_ownership ownership)
{
    return words[ownership].moved;
}

bool rp_ownership_is_others(enum rp_ownership ownership)
{
    return words[ownership].others;
}

/* ---- refuse ---- */

int rp_owner_refuse(const struct rp_owner *owner, const struct rp_store *at, struct rp_error *err)
{
    RP_ASSERT(words[owner->ownership].refuse != NULL);
    return words[owner->ownership].refuse(owner, at->config->name, err);
}

int rp_owner_refuse_vessel(const struct rp_store *at, struct rp_error *err)
{
    return refuse_moved(NULL, at->config->name, err);
}

int rp_owner_refuse_gone_back(const struct rp_store *at, int64_t seen_epoch, int64_t epoch, struct rp_error *err)
{
    rp_error_set(err, RP_ENOTOWNER,
                 "store '%s': the catalog went back from epoch %" PRId64 " to %" PRId64
                 " while it was used: a backup was put back",
                 at->config->name, seen_epoch, epoch);
    return advise_recover(at->config->name, err);
}

int rp_owner_refuse_others(struct rp_catalog *catalog, const struct rp_store *store, const struct rp_owner *owner,
                           struct rp_error *err)
{
    struct rp_store_uses uses = { .holds = 0 };
    if (!rp_ownership_is_others(owner->ownership)) return 0;
    int r = rp_store_uses(catalog->db, owner->other, &uses, err);
    bool lost = owner->ownership == RP_OWNER_RENAMED || uses.holds > 0 || uses.files;
    return r < 0 || !lost ? r : rp_owner_refuse(owner, store, err);
}

/* ---- of what is known to this process (raise.h) ---- */

static int refuse_bytes(const struct rp_store *store, enum rp_ownership ownership, struct rp_error *err)
{
    const char *name = store->config->name, *text = rp_ownership_text(ownership);
    if (ownership == RP_OWNER_RENAMED)
        return rp_error_set(err, RP_EUNAVAILABLE, "store '%s' %s: give it that one back, or `reprieve stores rename`",
                            name, text);
    return rp_error_set(err, RP_EUNAVAILABLE, "store '%s' %s; mount or name the right one, or `reprieve recover %s`",
                        name, text, name);
}

int rp_owner_refuse_name(const struct rp_store *store, struct rp_error *err)
{
    struct rp_raise_state state;
    const char *name = store->config->name;
    rp_raise_state(store, &state);
    if (!state.known || !rp_ownership_is_others(state.ownership)) return 0;
    rp_error_set(err, RP_ENOTOWNER, "store '%s' %s: what is made under this one would not be about what lies there",
                 name, rp_ownership_text(state.ownership));
    return rp_error_hint(err, "give it its name back in the configuration, or run `reprieve stores rename`; "
                              "`reprieve doctor` says which");
}

int rp_owner_refuse_bytes(const struct rp_store *store, struct rp_error *err)
{
    struct rp_raise_state state;
    rp_raise_state(store, &state);
    bool elsewhere = state.ownership == RP_OWNER_GONE || state.ownership == RP_OWNER_FOREIGN ||
                     rp_ownership_is_others(state.ownership) || state.ownership == RP_OWNER_ELSEWHERE;
    return state.known && elsewhere ? refuse_bytes(store, state.ownership, err) : 0;
}

int rp_owner_refuse_gone(const struct rp_store *store, enum rp_outcome record, struct rp_error *err)
{
    struct rp_raise_state state;
    rp_raise_state(store, &state);
    bool ours = state.known && state.ownership == RP_OWNER_OURS;
    return ours && record == RP_OUT_GONE ? refuse_bytes(store, RP_OWNER_GONE, err) : 0;
}
