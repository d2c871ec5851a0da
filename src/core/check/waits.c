/* SPDX-License-Identifier: Apache-2.0 */
/* waits.c - who did not answer, and until when they are left alone: one entry for each that was ever
 * asked. */
#include "core/check/waits.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/time.h"
#include "base/trouble.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_MS   (5 * RP_SECOND_MS)
#define MOST_MS    (5 * RP_MINUTE_MS)
#define SHARE      10 /* times as long as it kept us waiting */
#define LONGEST_MS RP_HOUR_MS
#define PROMPT_MS  RP_SECOND_MS /* W2 */

struct wait {
    struct wait *next;
    const char *kind;
    char name[80];
    struct rp_trouble trouble;
    char why[256];
};

struct rp_waits {
    pthread_mutex_t lock; /* of all that follows but the clock */
    const struct rp_clock *clock;
    struct wait *first; /* one of each in the configuration that was ever asked */
    rp_waits_fn *fn;
    void *ctx;
};

struct rp_waits *rp_waits_new(const struct rp_clock *clock)
{
    struct rp_waits *w = calloc(1, sizeof *w);
    if (w == NULL) return NULL;
    pthread_mutex_init(&w->lock, NULL);
    w->clock = clock;
    return w;
}

void rp_waits_free(struct rp_waits *w)
{
    if (w == NULL) return;
    while (w->first != NULL) {
        struct wait *wait = w->first;
        w->first = wait->next;
        free(wait);
    }
    pthread_mutex_destroy(&w->lock);
    free(w);
}

void rp_waits_tell(struct rp_waits *w, rp_waits_fn *fn, void *ctx)
{
    pthread_mutex_lock(&w->lock);
    w->fn = fn;
    w->ctx = ctx;
    pthread_mutex_unlock(&w->lock);
}

/* With the lock. NULL: no memory; then they are not left alone. */
static struct wait *find_or_add(struct rp_waits *w, const struct rp_whom *whom)
{
    for (struct wait *at = w->first; at != NULL; at = at->next)
        if (strcmp(at->kind, whom->kind) == 0 && strcmp(at->name, whom->name) == 0) return at;
    struct wait *new = calloc(1, sizeof *new);
    if (new == NULL) return NULL;
    *new = (struct wait){ .next = w->first, .kind = whom->kind };
    int n = snprintf(new->name, sizeof new->name, "%s", whom->name);
    RP_ASSERT(n > 0 && (size_t)n < sizeof new->name);
    return w->first = new;
}

const struct rp_clock *rp_waits_clock(const struct rp_waits *w)
{
    return w != NULL ? w->clock : NULL;
}

int64_t rp_waits_left_ms(struct rp_waits *w, const struct rp_whom *whom, struct rp_error *why)
{
    if (w == NULL) return 0;
    pthread_mutex_lock(&w->lock);
    const struct wait *wait = find_or_add(w, whom);
    bool troubled = wait != NULL && wait->trouble.failures > 0;
    int64_t left_ms = troubled ? wait->trouble.until_ms - rp_clock_boot_ms(w->clock) : 0;
    if (left_ms > 0)
        rp_error_set(why, RP_EUNAVAILABLE, "%s '%s' is left alone for now: %s", whom->kind, whom->name, wait->why);
    pthread_mutex_unlock(&w->lock);
    return left_ms > 0 ? left_ms : 0;
}

int64_t rp_waits_ask(const struct rp_waits *w)
{
    return w != NULL ? rp_clock_boot_ms(w->clock) : 0;
}

void rp_waits_answered(struct rp_waits *w, const struct rp_whom *whom)
{
    if (w == NULL) return;
    pthread_mutex_lock(&w->lock);
    struct wait *wait = find_or_add(w, whom);
    bool again = wait != NULL && wait->trouble.failures > 0;
    if (again) rp_trouble_over(&wait->trouble);
    if (again && w->fn != NULL) w->fn(w->ctx, whom, 0, NULL);
    pthread_mutex_unlock(&w->lock);
}

static int64_t share_of(int64_t took_ms)
{
    return took_ms < LONGEST_MS / SHARE ? SHARE * took_ms : LONGEST_MS;
}

void rp_waits_failed(struct rp_waits *w, const struct rp_whom *whom, int64_t asked_ms, const struct rp_error *why)
{
    if (w == NULL) return;
    int64_t now_ms = rp_clock_boot_ms(w->clock), took_ms = now_ms - asked_ms;
    if (!rp_error_retry(why->code) && took_ms < PROMPT_MS) return;
    pthread_mutex_lock(&w->lock);
    struct wait *wait = find_or_add(w, whom);
    if (wait != NULL) {
        (void)rp_trouble_again(&wait->trouble, why->code, now_ms, FIRST_MS, MOST_MS);
        if (wait->trouble.until_ms < now_ms + share_of(took_ms)) wait->trouble.until_ms = now_ms + share_of(took_ms);
        snprintf(wait->why, sizeof wait->why, "%.*s", (int)sizeof wait->why - 1, why->text);
        if (w->fn != NULL) w->fn(w->ctx, whom, wait->trouble.until_ms - now_ms, why);
    }
    pthread_mutex_unlock(&w->lock);
}
