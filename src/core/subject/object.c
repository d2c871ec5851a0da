/* SPDX-License-Identifier: Apache-2.0 */
/* object.c - bytes under a key in a store: an object, of which the catalog has nothing but its
 * marks, or a file's, of which it has rows. The only code that purges, copies and returns in a
 * store. */
#include "base/assert.h"
#include "core/file/file.h"
#include "core/subject/subject.h"

#include <stdio.h>

static int clock_of(struct rp_store *store, int64_t *out_ms, struct rp_error *err)
{
    *out_ms = INT64_MAX;
    return rp_backend_has_clock(store->backend) ? rp_backend_now_ms(store->backend, out_ms, err) : 0;
}

static int look(struct rp_store *store, struct rp_item *items, size_t n, struct rp_error *err)
{
    for (size_t i = 0; i < n; i++) /* whatever was expected: only what is seen counts */
        items[i].identity = (struct rp_identity){ 0 };
    return rp_backend_stat(store->backend, items, n, err);
}

static int erase(struct rp_store *store, struct rp_item *items, size_t n, const struct rp_gate *gate,
                 struct rp_error *err)
{
    return rp_backend_remove(store->backend, items, n, gate, err);
}

/* An unmounted disk leaves an empty directory, where everything is "already gone"; a bucket
 * deletes versions that it never had. The owner record tells our store from those. */
static int confirm(struct rp_store *store, struct rp_error *err)
{
    struct rp_item owner = { .key = RP_STORE_OWNER };
    int r = rp_backend_stat(store->backend, &owner, 1, err);
    if (r < 0 || owner.outcome == RP_OUT_FOUND) return r;
    return rp_error_set(err, RP_EUNAVAILABLE, "store '%s': objects and the owner record are gone; is it mounted?",
                        store->config->name);
}

static void say(struct rp_copy *copy, enum rp_outcome outcome, const char *note)
{
    copy->outcome = outcome;
    snprintf(copy->note, sizeof copy->note, "%.200s", note);
}

/* No copy could be made. An earlier attempt that was interrupted may have made one: only a store
 * that says there is none is believed, for that copy may be all that is left. */
static void take_found(const struct rp_item *there, int copy_code, struct rp_copy *out)
{
    if (there->outcome == RP_OUT_FOUND) {
        out->outcome = RP_OUT_FOUND;
        out->identity = there->identity;
    } else if (there->outcome != RP_OUT_GONE)
        say(out, RP_OUT_RETRY, there->note);
    else if (copy_code == RP_ENOTFOUND)
        out->outcome = RP_OUT_GONE;
    else
        out->outcome = copy_code == RP_ECHANGED ? RP_OUT_CHANGED : RP_OUT_UNKNOWN;
}

static bool may_be_there(int copy_code)
{
    return copy_code == RP_EEXISTS || copy_code == RP_ENOTFOUND || copy_code == RP_ECHANGED;
}

static void find_copies(struct rp_backend *backend, const struct rp_copying *asked, struct rp_copy **copies, size_t n)
{
    struct rp_item items[RP_COPIES_MAX];
    struct rp_error why = { 0 };
    size_t about[RP_COPIES_MAX], found = 0;
    for (size_t i = 0; i < n; i++) {
        if (!may_be_there(asked[i].code)) continue;
        items[found] = (struct rp_item){ .key = asked[i].to };
        about[found++] = i;
    }
    int r = found > 0 ? rp_backend_stat(backend, items, found, &why) : 0;
    for (size_t i = 0; i < found; i++) {
        if (r < 0)
            say(copies[about[i]], RP_OUT_RETRY, why.text);
        else
            take_found(&items[i], asked[about[i]].code, copies[about[i]]);
    }
}

static void take_copy(struct rp_copy *copy, const struct rp_copying *made)
{
    if (made->code == RP_COPY_NONE)
        copy->outcome = RP_OUT_NONE;
    else if (made->code == 0) {
        copy->outcome = RP_OUT_FOUND;
        copy->identity = made->identity;
    } else
        say(copy, made->code == RP_EDENIED ? RP_OUT_DENIED : RP_OUT_RETRY, made->note);
}

/* ---- into quarantine ---- */

static int copy_all(struct rp_store *store, struct rp_copy **copies, size_t n, const struct rp_gate *gate,
                    struct rp_error *err)
{
    char keys[RP_COPIES_MAX][RP_QUARANTINE_KEY];
    struct rp_copying asked[RP_COPIES_MAX];
    for (size_t i = 0; i < n; i++)
        asked[i] = (struct rp_copying){ .from = copies[i]->mark->key,
                                        .to = rp_quarantine_key(copies[i]->mark->id, keys[i]),
                                        .identity = copies[i]->identity };
    int r = rp_backend_copies(store->backend, asked, n, gate, err);
    for (size_t i = 0; i < n; i++)
        take_copy(copies[i], &asked[i]);
    find_copies(store->backend, asked, copies, n);
    return r;
}

/* Nothing was sent before the claim that made it `purging`, and no claim is made before it is due
 * on the store's own clock. */
static int64_t sent_since_ms(const struct rp_mark *mark)
{
    return mark->was == RP_PURGING ? mark->due_at_ms : INT64_MAX;
}

static int hide_all(struct rp_store *store, struct rp_copy **copies, size_t n, const struct rp_gate *gate,
                    struct rp_error *err)
{
    struct rp_item items[RP_COPIES_MAX];
    int64_t since_ms[RP_COPIES_MAX] = { 0 };
    for (size_t i = 0; i < n; i++) {
        items[i] = (struct rp_item){ .key = copies[i]->mark->key, .identity = copies[i]->identity };
        since_ms[i] = sent_since_ms(copies[i]->mark);
    }
    int r = rp_backend_hide(store->backend, items, since_ms, n, gate, err);
    for (size_t i = 0; i < n; i++) {
        say(copies[i], items[i].outcome, items[i].note);
        copies[i]->in_place = items[i].outcome == RP_OUT_FOUND;
    }
    return r;
}

/* An earlier attempt may have been made by a process that had not seen the store hide: what it has
 * copied stays copied, for nothing else knows of the copy. found[i]: the copy of copies[i]. */
static int find_copied(struct rp_store *store, const struct rp_copy *copies, size_t n, struct rp_item *found,
                       struct rp_error *err)
{
    char keys[RP_COPIES_MAX][RP_QUARANTINE_KEY];
    struct rp_item asked[RP_COPIES_MAX];
    size_t about[RP_COPIES_MAX], n_asked = 0;
    for (size_t i = 0; i < n; i++) {
        found[i] = (struct rp_item){ .outcome = RP_OUT_GONE };
        if (copies[i].mark->was != RP_PURGING || !rp_subject_stays_in_place(store, copies[i].mark)) continue;
        asked[n_asked] = (struct rp_item){ .key = rp_quarantine_key(copies[i].mark->id, keys[n_asked]) };
        about[n_asked++] = i;
    }
    int r = n_asked == 0 ? 0 : rp_backend_stat(store->backend, asked, n_asked, err);
    for (size_t i = 0; i < n_asked && r == 0; i++)
        found[about[i]] = asked[i];
    return r;
}

static int quarantine(struct rp_store *store, struct rp_copy *copies, size_t n, const struct rp_gate *gate,
                      struct rp_error *err)
{
    struct rp_copy *hidden[RP_COPIES_MAX], *copied[RP_COPIES_MAX];
    struct rp_item earlier[RP_COPIES_MAX];
    size_t n_hidden = 0, n_copied = 0;
    RP_ASSERT(n <= RP_COPIES_MAX);
    int r = find_copied(store, copies, n, earlier, err);
    if (r < 0) return r;
    for (size_t i = 0; i < n; i++) {
        if (earlier[i].outcome != RP_OUT_GONE && earlier[i].outcome != RP_OUT_FOUND)
            say(&copies[i], earlier[i].outcome, earlier[i].note);
        else if (earlier[i].outcome == RP_OUT_GONE && rp_subject_stays_in_place(store, copies[i].mark))
            hidden[n_hidden++] = &copies[i];
        else
            copied[n_copied++] = &copies[i];
    }
    r = n_hidden > 0 ? hide_all(store, hidden, n_hidden, gate, err) : 0;
    return r < 0 || n_copied == 0 ? r : copy_all(store, copied, n_copied, gate, err);
}

/* ---- and back ---- */

static int show(struct rp_store *store, const struct rp_mark *copy, const char *key, struct rp_identity *out,
                bool *made, struct rp_error *err)
{
    *out = rp_subject_identity(copy);
    if (!rp_backend_has_hiding(store->backend))
        return rp_error_set(err, RP_ENOTFOUND, "%s:%s was hidden in another store than this one", store->config->name,
                            key);
    int r = rp_backend_show(store->backend, key, out, made, err);
    return r < 0 ? rp_error_wrap(err, r, "%s:%s", store->config->name, key) : 0;
}

static int bring_back(struct rp_store *store, const struct rp_mark *copy, const char *key, struct rp_identity *out,
                      bool *made, struct rp_error *err)
{
    if (copy->in_place) return show(store, copy, key, out, made, err);
    struct rp_identity expected = rp_subject_identity(copy);
    int r = rp_backend_copy(store->backend, copy->key, &expected, key, out, err);
    *made = r == 0;
    if (r != RP_EEXISTS) return r;
    if (rp_quarantine_stands(store->backend, copy, key, out)) {
        rp_error_clear(err);
        return 0;
    }
    rp_error_set(err, RP_EEXISTS, "%s:%s: something newer stands under this key", store->config->name, key);
    return rp_error_hint(err, "move it away first; the older one stays in quarantine until its time is over");
}

static void take_away(struct rp_store *store, const struct rp_mark *copy, const char *key,
                      const struct rp_identity *made)
{
    struct rp_item item = { .key = key, .identity = *made };
    const int64_t since_ms = INT64_MAX;
    struct rp_error ignored = { 0 };
    if (!copy->in_place)
        (void)erase(store, &item, 1, NULL, &ignored);
    else if (rp_backend_has_hiding(store->backend))
        (void)rp_backend_hide(store->backend, &item, &since_ms, 1, NULL, &ignored);
}

/* J2 */
#define BYTES                                                                                                          \
    .clock = clock_of, .look = look, .quarantine = quarantine, .bring_back = bring_back, .take_away = take_away,       \
    .erase = erase, .confirm = confirm

const struct rp_subject_kind rp_subject_object = { .name = "object", .id = RP_ID_MARK, BYTES };

const struct rp_subject_kind rp_subject_file = {
    .name = "file",
    .id = RP_ID_FILE,
    BYTES,
    .claimed = rp_files_claimed,
    .ended = rp_files_purged,
    .copied = rp_files_take_over,
};
