/* SPDX-License-Identifier: Apache-2.0 */
/* remove(): portions over a few threads, each looked at, erased and looked at again, as the store's
 * powers allow (S1 of s3.h). */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "store/refuse.h"
#include "store/s3/erase.h"
#include "store/s3/look.h"
#include "store/s3/remove.h"
#include "store/workers.h"

#define WORKERS_MAX    4
#define WORKERS_WINDOW 2 /* by key: more of them wait for each other at the server, and the window grows */

/* A portion under way: `items` in order of key, and as many places to ask with. */
struct portion {
    struct rp_s3 *s3;
    const struct rp_gate *gate;
    struct rp_item **items;
    size_t n;
    struct rp_item *asked; /* n places */
    size_t *from;          /* asked[i] is about items[from[i]] */
    size_t n_asked;
    struct s3_density density;
};

static void ask_about(struct portion *p, size_t i, bool with_identity)
{
    struct rp_item *asked = &p->asked[p->n_asked];
    *asked = (struct rp_item){ .key = p->items[i]->key };
    if (with_identity) asked->identity = p->items[i]->identity;
    p->from[p->n_asked++] = i;
}

/* ---- before ---- */

static void judge_look(struct rp_item *item, const struct rp_item *seen)
{
    if (seen->outcome == RP_OUT_GONE)
        rp_s3_say(item, RP_OUT_GONE, "");
    else if (seen->outcome == RP_OUT_FOUND)
        rp_s3_say(item, rp_identity_equal(&seen->identity, &item->identity) ? RP_OUT_NONE : RP_OUT_CHANGED, "");
    else /* nothing was sent that could have changed it */
        rp_s3_say(item, seen->outcome == RP_OUT_DENIED ? RP_OUT_DENIED : RP_OUT_RETRY, seen->note);
}

/* Those that stay `none` are there as they were marked. */
static int look_first(struct portion *p, struct rp_error *err)
{
    p->n_asked = 0;
    for (size_t i = 0; i < p->n; i++)
        ask_about(p, i, false);
    int r = rp_s3_look(p->s3, p->asked, p->n_asked, false, &p->density, err);
    if (r < 0) return r;
    for (size_t i = 0; i < p->n_asked; i++)
        judge_look(p->items[p->from[i]], &p->asked[i]);
    return 0;
}

/* ---- the act ---- */

static bool same_as_before(const struct portion *p, size_t i)
{
    return i > 0 && strcmp(p->items[i]->key, p->items[i - 1]->key) == 0 &&
           rp_identity_equal(&p->items[i]->identity, &p->items[i - 1]->identity);
}

static int erase(struct portion *p, enum s3_by by, struct rp_error *err)
{
    p->n_asked = 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->items[i]->outcome == RP_OUT_NONE && !same_as_before(p, i)) ask_about(p, i, true);
    if (p->n_asked == 0) return 0;
    int r = rp_s3_erase(p->s3, p->asked, p->n_asked, by, p->gate, err);
    for (size_t i = 0; i < p->n_asked; i++)
        rp_s3_say(p->items[p->from[i]], p->asked[i].outcome, p->asked[i].note);
    return r;
}

/* ---- after ---- */

/* Two witnesses: what the server said to the delete, and what is seen now. */
static void settle(struct rp_item *item, const struct rp_item *seen)
{
    enum rp_outcome said = item->outcome;
    bool there = seen->outcome == RP_OUT_FOUND;
    if (seen->outcome == RP_OUT_GONE)
        rp_s3_say(item, said == RP_OUT_DELETED || said == RP_OUT_UNKNOWN ? RP_OUT_DELETED : RP_OUT_GONE, "");
    else if (there && !rp_identity_equal(&seen->identity, &item->identity))
        rp_s3_say(item, said == RP_OUT_DELETED ? RP_OUT_DELETED : RP_OUT_CHANGED, "");
    else if (there && said == RP_OUT_DELETED)
        rp_s3_say(item, RP_OUT_UNKNOWN, "the server said that it was deleted, and still has it");
    else if (there && said == RP_OUT_GONE)
        rp_s3_say(item, RP_OUT_UNKNOWN, "the server said that it does not exist, and has it");
    else if (there && said == RP_OUT_CHANGED)
        rp_s3_say(item, RP_OUT_RETRY, "the server said that it has changed, and it has not");
    else if (!there && said != RP_OUT_RETRY)
        rp_s3_say(item, RP_OUT_UNKNOWN, seen->note);
}

static int look_after(struct portion *p, bool deleted, struct rp_error *err)
{
    p->n_asked = 0;
    for (size_t i = 0; i < p->n; i++) {
        enum rp_outcome said = p->items[i]->outcome;
        if (said != RP_OUT_NONE && said != RP_OUT_DENIED && (said == RP_OUT_DELETED) == deleted) ask_about(p, i, false);
    }
    if (p->n_asked == 0) return 0;
    int r = rp_s3_look(p->s3, p->asked, p->n_asked, deleted, &p->density, err);
    for (size_t i = 0; i < p->n_asked; i++)
        settle(p->items[p->from[i]], &p->asked[i]);
    return r;
}

/* Of two equal requests in one call the second finds nothing left. */
static void answer_repeated(struct portion *p)
{
    for (size_t i = 1; i < p->n; i++) {
        const struct rp_item *first = p->items[i - 1];
        if (p->items[i]->outcome == RP_OUT_NONE && same_as_before(p, i))
            rp_s3_say(p->items[i], first->outcome == RP_OUT_DELETED ? RP_OUT_GONE : first->outcome, first->note);
    }
}

/* What nobody has looked at since. */
static void doubt(struct portion *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->items[i]->outcome != RP_OUT_NONE && p->items[i]->outcome != RP_OUT_RETRY)
            rp_s3_say(p->items[i], RP_OUT_UNKNOWN, "the store failed before it could be looked at again");
}

/* Those that the look has settled keep their answer: only what was sent is asked about again. */
static int act(struct portion *p, enum s3_by by, struct rp_error *err)
{
    struct portion sent = *p;
    size_t n = 0;
    RP_CLEANUP(rp_freep) struct rp_item **items = calloc(p->n, sizeof(struct rp_item *));
    if (items == NULL) return rp_error_set(err, RP_ENOMEM, "delete: out of memory");
    for (size_t i = 0; i < p->n; i++)
        if (p->items[i]->outcome == RP_OUT_NONE) items[n++] = p->items[i];
    sent.items = items;
    sent.n = n;
    int r = erase(&sent, by, err);
    if (r == 0) r = look_after(&sent, true, err);
    if (r == 0) r = look_after(&sent, false, err);
    if (r < 0) doubt(&sent);
    answer_repeated(&sent);
    return r;
}

/* ---- portions ---- */

static int remove_looking(struct portion *p, enum s3_by by, struct rp_error *err)
{
    int r = look_first(p, err);
    return r < 0 ? r : act(p, by, err);
}

struct removal {
    struct rp_s3 *s3;
    struct s3_powers powers;
    const struct rp_gate *gate;
    struct rp_item **order;
    size_t n, portion;
    size_t next; /* under the lock, as what follows */
    int failed;
    struct rp_error error;
    pthread_mutex_t lock;
};

static int remove_plain(const struct removal *removal, struct rp_item **items, size_t n, struct rp_error *err)
{
    const struct s3_powers *powers = &removal->powers;
    RP_CLEANUP(rp_freep) struct rp_item *asked = calloc(n + 1, sizeof *asked);
    RP_CLEANUP(rp_freep) size_t *from = calloc(n + 1, sizeof *from);
    if (n == 0) return 0;
    if (asked == NULL || from == NULL) return rp_error_set(err, RP_ENOMEM, "delete: out of memory");
    struct portion p = {
        .s3 = removal->s3, .gate = removal->gate, .items = items, .n = n, .asked = asked, .from = from
    };
    if (!powers->single_if_match) return remove_looking(&p, S3_BY_KEY, err);
    /* An answer that tells deleted from gone saves the look; many in one request are never told
     * apart. */
    bool told = powers->absent_told && !(powers->multi_delete && powers->multi_etag);
    return told ? act(&p, S3_BY_ETAG, err) : remove_looking(&p, S3_BY_ETAG, err);
}

/* An identity with a version is removed by it whatever the bucket does now: nothing else can be
 * hit. */
static int remove_portion(const struct removal *removal, struct rp_item **items, size_t n, struct rp_error *err)
{
    size_t n_versions = 0, n_plain = 0;
    RP_CLEANUP(rp_freep) struct rp_item **split = calloc(2 * n, sizeof(struct rp_item *));
    if (split == NULL) return rp_error_set(err, RP_ENOMEM, "delete: out of memory");
    for (size_t i = 0; i < n; i++)
        if (removal->powers.versions || items[i]->identity.version[0])
            split[n_versions++] = items[i];
        else
            split[n + n_plain++] = items[i];
    int r = n_versions > 0 ? rp_s3_remove_versions(removal->s3, split, n_versions, removal->gate, err) : 0;
    return r < 0 ? r : remove_plain(removal, split + n, n_plain, err);
}

/* Equal keys stay together. */
static size_t take_portion(struct removal *removal, size_t *from)
{
    pthread_mutex_lock(&removal->lock);
    size_t end = *from = removal->failed ? removal->n : removal->next;
    end = removal->n - end > removal->portion ? end + removal->portion : removal->n;
    while (end > *from && end < removal->n && strcmp(removal->order[end]->key, removal->order[end - 1]->key) == 0)
        end++;
    removal->next = end;
    pthread_mutex_unlock(&removal->lock);
    return end;
}

static void *work(void *ctx)
{
    struct removal *removal = ctx;
    size_t from, end;
    while ((end = take_portion(removal, &from)) > from) {
        struct rp_error why = { 0 };
        int r = remove_portion(removal, removal->order + from, end - from, &why);
        pthread_mutex_lock(&removal->lock);
        if (r < 0 && removal->failed == 0) {
            removal->failed = r;
            removal->error = why;
        }
        pthread_mutex_unlock(&removal->lock);
    }
    return NULL;
}

static void work_in_threads(struct removal *removal)
{
    const struct s3_powers *powers = &removal->powers;
    bool exact = powers->versions || powers->single_if_match;
    bool lists = powers->list_order && powers->list_current;
    bool once = removal->s3->options.write_once && !powers->seen_changed && !powers->versions;
    removal->portion = once && lists ? S3_PORTION_EXACT : exact || lists ? S3_PORTION : S3_PORTION_HEADS;
    size_t portions = (removal->n + removal->portion - 1) / removal->portion;
    size_t most = exact ? WORKERS_MAX : WORKERS_WINDOW;
    rp_work_beside(most < portions ? most : portions, work, removal);
}

static int by_key_and_place(const void *a, const void *b)
{
    const struct rp_item *x = *(struct rp_item *const *)a, *y = *(struct rp_item *const *)b;
    int compared = strcmp(x->key, y->key);
    return compared != 0 ? compared : (x > y) - (x < y);
}

/* S4: a key that was declared never to change, and did. */
static void note_changed(struct rp_s3 *s3, const struct rp_item *items, size_t n)
{
    bool changed = false;
    for (size_t i = 0; i < n && !changed; i++)
        changed = items[i].outcome == RP_OUT_CHANGED;
    if (!changed) return;
    pthread_mutex_lock(&s3->lock);
    s3->powers.seen_changed = true;
    pthread_mutex_unlock(&s3->lock);
}

int rp_s3_remove(struct rp_backend *backend, struct rp_item *items, size_t n, const struct rp_gate *gate,
                 struct rp_error *err)
{
    struct rp_s3 *s3 = rp_s3_of(backend);
    if (n == 0) return 0;
    RP_CLEANUP(rp_freep) struct rp_item **order = calloc(n, sizeof(struct rp_item *));
    if (order == NULL) return rp_error_set(err, RP_ENOMEM, "delete: out of memory");
    int r = rp_items_begin(items, n, err);
    if (r < 0) return r;
    for (size_t i = 0; i < n; i++)
        order[i] = &items[i];
    qsort(order, n, sizeof *order, by_key_and_place);
    struct removal removal = {
        .s3 = s3, .powers = rp_s3_powers(s3), .gate = gate, .order = order, .n = n, .lock = PTHREAD_MUTEX_INITIALIZER
    };
    work_in_threads(&removal);
    pthread_mutex_destroy(&removal.lock);
    note_changed(s3, items, n);
    if (removal.failed < 0) {
        rp_error_copy(err, &removal.error);
        return removal.failed;
    }
    for (size_t i = 0; i < n; i++)
        RP_ASSERT(items[i].outcome != RP_OUT_NONE && items[i].outcome != RP_OUT_FOUND);
    return 0;
}
