/* SPDX-License-Identifier: Apache-2.0 */
/* asker.c - one thread claims marks and writes down what was said, others call. */
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/time.h"
#include "base/wait.h"
#include "core/confirm/inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS    200                 /* how often new marks are looked for while calls are under way */
#define GATHER_MS  20                  /* after the first of several answers */
#define SPARE_MS   (30 * RP_SECOND_MS) /* of a lease, beside the call */
#define YES_MS     RP_SECOND_MS
#define ROOM_LEAST (RP_BREAKER_AT_ONCE / 2) /* marks are claimed several at a time, where they are many */

struct rp_asker *rp_asker_new(const struct rp_asker_options *options, struct rp_error *err)
{
    struct rp_asker *a = calloc(1, sizeof *a);
    if (a == NULL) {
        rp_error_set(err, RP_ENOMEM, "confirmations: out of memory");
        return NULL;
    }
    a->options = *options;
    RP_ASSERT(options->send != NULL);
    int r = pthread_mutex_init(&a->lock, NULL);
    RP_ASSERT(r == 0);
    rp_wait_init(&a->changed);
    rp_asker_configure(a, options->config);
    return a;
}

void rp_asker_configure(struct rp_asker *a, const struct rp_config *config)
{
    RP_ASSERT(a->rounds == NULL && config->n_confirmers <= RP_CONFIRMERS_MAX);
    RP_ASSERT(a->n == 0 || a->n == config->n_confirmers);
    a->options.config = config;
    a->n = config->n_confirmers;
    for (size_t i = 0; i < RP_STORES_MAX; i++)
        a->at[i].may_until_ms = 0;
    snprintf(a->names, sizeof a->names, "|");
    for (size_t i = 0; i < a->n; i++) {
        struct rp_service *e = &a->services[i];
        size_t used = strlen(a->names);
        e->config = &config->confirmers[i];
        snprintf(e->name, sizeof e->name, "|%.63s|", e->config->name);
        snprintf(a->names + used, sizeof a->names - used, "%.63s|", e->config->name);
    }
    rp_asker_look_again(a);
}

void rp_asker_free(struct rp_asker *a)
{
    if (a == NULL) return;
    RP_ASSERT(a->rounds == NULL);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

void rp_asker_freep(struct rp_asker **asker)
{
    rp_asker_free(*asker);
}

static int64_t boot_ms(const struct rp_asker *a)
{
    return rp_clock_boot_ms(a->options.by.catalog->clock);
}

static void heard(struct rp_asker *a, struct rp_service *e, enum rp_meaning meaning)
{
    bool was_open = e->breaker.open;
    rp_breaker_heard(&e->breaker, meaning, boot_ms(a));
    if (was_open != e->breaker.open && a->options.broken != NULL)
        a->options.broken(a->options.ctx, e->config->name, e->breaker.open);
}

const char *rp_asker_name(const struct rp_asker *a)
{
    return a->options.by.worker->name;
}

struct rp_journal rp_asker_journal(const struct rp_asker *a)
{
    return (struct rp_journal){ .log = a->options.log,
                                .at_ms = rp_clock_now_ms(a->options.by.catalog->clock),
                                .actor = rp_asker_name(a) };
}

/* ---- rounds ---- */

static void free_round(struct rp_round *round)
{
    rp_purge_batch_done(&round->batch);
    free(round);
}

static struct rp_round *new_round(struct rp_asker *a, size_t which, struct rp_service *service, struct rp_error *err)
{
    struct rp_round *round = calloc(1, sizeof *round);
    if (round == NULL) {
        rp_error_set(err, RP_ENOMEM, "confirmations: out of memory");
        return NULL;
    }
    round->asker = a;
    round->which = which;
    round->service = service;
    rp_purge_batch_init(&round->batch);
    return round;
}

static bool is_under_way(const struct rp_round *round)
{
    for (size_t i = 0; i < round->n; i++)
        if (round->askings[i].calling) return true;
    return false;
}

/* A lease lasts longer than a call may. */
static int claim_round(struct rp_round *round, bool only_asked_before, int64_t limit, struct rp_error *err)
{
    const struct rp_service *e = round->service;
    struct rp_sweeper *s = &round->asker->options.by;
    struct rp_purge_rules rules = s->rules;
    const struct rp_confirm_claim claim = { .services = e->name, .only_asked_before = only_asked_before };
    if (rules.lease_ms < e->config->timeout_ms + SPARE_MS) rules.lease_ms = e->config->timeout_ms + SPARE_MS;
    return rp_purge_claim_to_confirm(s->catalog, s->stores[round->which], &rules, s->worker, &claim, limit,
                                     &round->batch, err);
}

/* Claims and asks. A round with calls under way stands in a->rounds then. */
static int open_round(struct rp_asker *a, size_t which, struct rp_service *e, bool only_asked_before, int64_t limit,
                      size_t *claimed, struct rp_error *err)
{
    struct rp_round *round = new_round(a, which, e, err);
    if (round == NULL) return RP_ENOMEM;
    int r = claim_round(round, only_asked_before, limit, err);
    *claimed = r == 0 ? round->batch.marks.n : 0;
    if (*claimed > 0) r = rp_round_ask(round, err);
    for (size_t i = 0; i < round->n && r == 0; i++)
        if (round->askings[i].ours && rp_purge_has_lease(&round->batch)) rp_asking_call(&round->askings[i]);
    if (!is_under_way(round)) {
        free_round(round);
        return r;
    }
    round->next = a->rounds;
    a->rounds = round;
    return r;
}

/* ---- finish ---- */

static size_t take_back(struct rp_round *round, struct rp_asking **back)
{
    size_t n = 0;
    pthread_mutex_lock(&round->asker->lock);
    for (size_t i = 0; i < round->n; i++)
        if (round->askings[i].calling && round->askings[i].back) back[n++] = &round->askings[i];
    pthread_mutex_unlock(&round->asker->lock);
    for (size_t i = 0; i < n; i++) {
        if (back[i]->threaded) pthread_join(back[i]->thread, NULL);
        back[i]->calling = false;
        back[i]->meaning = rp_meaning_of(round->service->config, back[i]->answer.status);
        round->service->under_way--;
        round->asker->under_way--;
    }
    return n;
}

static int finish_round(struct rp_round *round, struct rp_error *err)
{
    struct rp_asking *back[RP_BREAKER_AT_ONCE];
    RP_ASSERT(round->n <= RP_BREAKER_AT_ONCE);
    size_t n = take_back(round, back);
    for (size_t i = 0; i < n; i++)
        heard(round->asker, round->service, back[i]->meaning);
    return n > 0 ? rp_round_finish(round, back, n, err) : 0;
}

/* Also after a failure: what was said is written down if that can be had. Rounds that nobody waits for any
 * more go. */
static int finish_back(struct rp_asker *a, struct rp_error *err)
{
    int failed = 0;
    for (struct rp_round **at = &a->rounds; *at != NULL;) {
        struct rp_round *round = *at;
        struct rp_error why = { 0 };
        int r = finish_round(round, &why);
        if (r < 0 && failed == 0) {
            failed = r;
            *err = why;
        }
        if (is_under_way(round)) {
            at = &round->next;
            continue;
        }
        *at = round->next;
        free_round(round);
    }
    return failed;
}

static int count_back(const struct rp_asker *a)
{
    int n = 0;
    for (const struct rp_round *round = a->rounds; round != NULL; round = round->next)
        for (size_t i = 0; i < round->n; i++)
            n += round->askings[i].calling && round->askings[i].back;
    return n;
}

/* For one that is back, and a moment for those that come with it: they are written down together. */
static void wait_for_some(struct rp_asker *a)
{
    struct timespec until = rp_wait_until(LOOK_MS);
    pthread_mutex_lock(&a->lock);
    while (count_back(a) == 0 && pthread_cond_timedwait(&a->changed, &a->lock, &until) == 0)
        ;
    until = rp_wait_until(GATHER_MS);
    while (count_back(a) > 0 && count_back(a) < a->under_way &&
           pthread_cond_timedwait(&a->changed, &a->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&a->lock);
}

/* ---- claim ---- */

/* How many marks may be claimed for this one now. */
static int64_t room(struct rp_asker *a, struct rp_service *e)
{
    int64_t n = rp_breaker_room(&e->breaker, e->under_way, boot_ms(a));
    if (e->under_way > ROOM_LEAST && n < ROOM_LEAST) return 0;
    int64_t left = a->options.most - a->pass->calls;
    return a->options.most > 0 && left < n ? left : n;
}

/* Who is asked may answer late, while all services wait: that may cost a tenth of the time. */
static int64_t spare_ms(const struct rp_asker *a, int64_t began_ms)
{
    int64_t now_ms = boot_ms(a);
    return now_ms + 10 * (now_ms - began_ms);
}

/* C7. As in a sweep, which tells of it; every claim looks at the epoch. A yes is good for a moment of
 * this pass. */
static bool may_ask(struct rp_asker *a, size_t which)
{
    struct rp_asker_store *at = &a->at[which];
    struct rp_error why = { 0 };
    int64_t began_ms = boot_ms(a);
    if (began_ms < at->may_until_ms) return at->may;
    at->may = rp_sweeper_admit(&a->options.by, a->options.by.stores[which], &why) == 0;
    at->may_until_ms = at->may ? boot_ms(a) + YES_MS : spare_ms(a, began_ms);
    return at->may;
}

void rp_asker_store_failed(struct rp_asker *a, size_t which, int64_t since_ms)
{
    a->at[which].may = false;
    a->at[which].may_until_ms = spare_ms(a, since_ms);
}

/* A probe is about what was asked about before, if any of that is due: the rest can still be restored.
 * Looking for a service without due marks walks past all others' marks. */
static int ask_service(struct rp_asker *a, size_t which, struct rp_service *e, size_t *claimed, struct rp_error *err)
{
    int64_t limit = room(a, e);
    size_t n = 0;
    if (limit == 0 || boot_ms(a) < e->again_ms[which] || !may_ask(a, which)) return 0;
    int64_t began_ms = boot_ms(a);
    int r = e->breaker.open ? open_round(a, which, e, true, limit, &n, err) : 0;
    if (r == 0 && n == 0) r = open_round(a, which, e, false, limit, &n, err);
    e->again_ms[which] = r == 0 && n == 0 ? spare_ms(a, began_ms) : 0;
    *claimed += n;
    return r;
}

static int bury_strays(struct rp_asker *a, size_t which, size_t *claimed, struct rp_error *err)
{
    struct rp_asker_store *at = &a->at[which];
    size_t n = 0;
    if (boot_ms(a) < at->strays_ms || !may_ask(a, which)) return 0;
    int64_t began_ms = boot_ms(a);
    int r = rp_strays_bury(a, a->options.by.stores[which], &n, err);
    at->strays_ms = r == 0 && n == 0 ? spare_ms(a, began_ms) : 0;
    *claimed += n;
    return r;
}

void rp_asker_look_again(struct rp_asker *a)
{
    for (size_t i = 0; i < RP_STORES_MAX; i++)
        a->at[i].strays_ms = 0;
    for (size_t i = 0; i < a->n; i++)
        memset(a->services[i].again_ms, 0, sizeof a->services[i].again_ms);
}

static int claim_in(struct rp_asker *a, size_t which, size_t *claimed, struct rp_error *err)
{
    struct rp_catalog *catalog = a->options.by.catalog;
    int64_t next_ms = 0;
    int r = rp_marks_next_to_confirm(catalog->db, a->options.by.stores[which]->id, &next_ms, err);
    if (r < 0 || next_ms == 0 || next_ms > rp_clock_now_ms(catalog->clock)) return r;
    for (size_t i = 0; i < a->n && r == 0 && !rp_sweeper_is_stopped(&a->options.by); i++)
        r = ask_service(a, which, &a->services[i], claimed, err);
    if (r == 0) r = bury_strays(a, which, claimed, err);
    return r == RP_ECLOCK || r == RP_ENOTOWNER ? 0 : r; /* as in a sweep: not the catalog's trouble */
}

static bool is_called_before(const struct rp_asker *a, int64_t at_ms)
{
    for (const struct rp_round *round = a->rounds; round != NULL; round = round->next)
        for (size_t i = 0; i < round->n; i++)
            if (round->askings[i].calling && round->askings[i].called_boot_ms < at_ms) return true;
    return false;
}

/* Who waits for the end of a pass waits for the calls under way. While one of those lasts, others are
 * made beside it; then none is begun any more. */
static bool may_claim(struct rp_asker *a)
{
    const struct rp_sweeper *by = &a->options.by;
    if (!rp_sweeper_has_enough(by)) a->enough_ms = 0;
    if (!rp_sweeper_has_enough(by)) return true;
    if (a->enough_ms == 0) a->enough_ms = boot_ms(a);
    return !rp_sweeper_is_stopped(by) && is_called_before(a, a->enough_ms);
}

static int claim_more(struct rp_asker *a, size_t *claimed, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < a->options.by.n_stores && r == 0; i++) {
        struct rp_store *store = a->options.by.stores[i];
        if (store->config->mode == RP_MODE_OBSERVE || store->backend == NULL) continue;
        r = claim_in(a, i, claimed, err);
    }
    return r;
}

/* After a failure, or when it has enough, only for what is under way. */
int rp_asker_pass(struct rp_asker *a, struct rp_asker_pass *out, struct rp_error *err)
{
    size_t claimed;
    int failed = 0;
    *out = (struct rp_asker_pass){ 0 };
    a->pass = out;
    for (size_t i = 0; i < a->options.by.n_stores; i++)
        if (a->at[i].may) a->at[i].may_until_ms = 0;
    do {
        struct rp_error why = { 0 };
        int r = finish_back(a, &why);
        claimed = 0;
        if (r == 0 && failed == 0 && may_claim(a)) r = claim_more(a, &claimed, &why);
        if (r < 0 && failed == 0) {
            *err = why;
            failed = r;
        }
        if (a->under_way > 0) wait_for_some(a);
    } while (a->under_way > 0 || (claimed > 0 && failed == 0));
    RP_ASSERT(a->rounds == NULL);
    a->pass = NULL;
    return failed;
}
