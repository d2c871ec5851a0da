/* SPDX-License-Identifier: Apache-2.0 */
#include "store/s3/pages.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"

#define PAGE_KEYS_TEXT "1000"

struct fetched {
    int code;
    struct rp_error error;
    struct rp_buf answer;
    bool guessed;
    struct s3_from next; /* by guess */
};

struct s3_pages {
    struct rp_s3 *s3;
    const char *prefix;
    bool versions;
    pthread_t thread;
    bool running;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    bool stop, more;
    bool asked, done; /* a page is wanted from `from`; it is in `page`, and nobody has taken it */
    struct s3_from from;
    struct fetched page;
    bool waiting, handed; /* somebody waits for it; it is in `given` */
    struct fetched given;
};

/* ---- one page ---- */

static struct s3_call page_call(const struct s3_pages *p, const struct s3_from *from)
{
    struct s3_call call = rp_s3_call("GET", NULL);
    if (p->versions) {
        rp_s3_query(&call, "versions", "");
        if (from->key[0]) rp_s3_query(&call, "key-marker", from->key);
        if (from->key[0] && from->version[0]) rp_s3_query(&call, "version-id-marker", from->version);
    } else {
        rp_s3_query(&call, "list-type", "2");
        if (from->token[0])
            rp_s3_query(&call, "continuation-token", from->token);
        else if (from->key[0])
            rp_s3_query(&call, "start-after", from->key);
    }
    rp_s3_query(&call, "max-keys", PAGE_KEYS_TEXT);
    rp_s3_query(&call, "encoding-type", "url");
    if (p->prefix[0]) rp_s3_query(&call, "prefix", p->prefix);
    return call;
}

static int keep(void *ctx, const void *bytes, size_t n, struct rp_error *err)
{
    const int r = rp_buf_add(ctx, bytes, n);
    return r < 0 ? rp_error_set(err, r, "keep a page of a listing") : 0;
}

/* G4 */
static int fetch_page(const struct s3_pages *p, const struct s3_from *from, struct rp_buf *answer, struct rp_error *err)
{
    struct rp_error ignored = { 0 };
    const struct rp_sink sink = { .write = keep, .ctx = answer };
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = page_call(p, from);
    *answer = RP_BUF(S3_ANSWER_MAX);
    call.to = &sink;
    int r = rp_s3_wire_stream(p->s3->wire, &call, &ignored);
    if (r == 0 && call.code == 0) return call.status == 200 ? 0 : rp_s3_error(p->s3, &call, err);
    rp_buf_done(answer);
    rp_s3_call_done(&call);
    call.to = NULL;
    r = rp_s3_run(p->s3, &call, err);
    *answer = call.answer;
    call.answer = (struct rp_buf){ 0 };
    return r;
}

static void fetch(const struct s3_pages *p, const struct s3_from *from, struct fetched *out)
{
    rp_error_clear(&out->error);
    out->code = fetch_page(p, from, &out->answer, &out->error);
    out->next.version[0] = out->next.token[0] = '\0';
    out->guessed = out->code == 0 && !p->versions &&
                   rp_s3_guess_last_key(rp_buf_text(&out->answer), out->answer.len, out->next.key);
}

/* ---- the thread ---- */

/* Under the lock. What follows from a page is asked for when somebody has it (G2). */
static void hand_over(struct s3_pages *p)
{
    RP_ASSERT(p->done && !p->handed);
    p->given = p->page;
    p->page.answer = (struct rp_buf){ 0 };
    p->handed = true;
    p->done = p->waiting = false;
    p->asked = p->more && p->given.guessed;
    if (p->asked) p->from = p->given.next;
}

static void *run(void *ctx)
{
    struct s3_pages *p = ctx;
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        if (!p->asked || p->done) {
            pthread_cond_wait(&p->changed, &p->lock);
            continue;
        }
        pthread_mutex_unlock(&p->lock);
        fetch(p, &p->from, &p->page); /* nobody changes either of them while it is asked for and not done */
        pthread_mutex_lock(&p->lock);
        p->done = true;
        if (p->waiting) hand_over(p);
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Signals are for the threads that wait for them. */
static bool start(struct s3_pages *p)
{
    sigset_t all, before;
    if (p->running) return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    p->running = pthread_create(&p->thread, NULL, run, p) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return p->running;
}

/* ---- the reader ---- */

static bool is_same(const struct s3_from *a, const struct s3_from *b)
{
    return strcmp(a->key, b->key) == 0 && strcmp(a->version, b->version) == 0 && strcmp(a->token, b->token) == 0;
}

/* Under the lock. */
static void drop_other(struct s3_pages *p, const struct s3_from *from)
{
    if (!p->asked || is_same(&p->from, from)) return;
    while (!p->done)
        pthread_cond_wait(&p->changed, &p->lock);
    rp_buf_done(&p->page.answer);
    p->page.answer = (struct rp_buf){ 0 };
    p->asked = p->done = false;
}

/* Under the lock. False: without a thread. */
static bool ask(struct s3_pages *p, const struct s3_from *from)
{
    if (p->asked) return true;
    if (!start(p)) return false;
    p->from = *from;
    p->asked = true;
    pthread_cond_broadcast(&p->changed);
    return true;
}

static void await(struct s3_pages *p)
{
    p->waiting = true;
    if (p->done) hand_over(p);
    pthread_cond_broadcast(&p->changed);
    while (!p->handed)
        pthread_cond_wait(&p->changed, &p->lock);
    p->handed = false;
}

int rp_s3_pages_take(struct s3_pages *p, const struct s3_from *from, bool more, struct rp_buf *answer,
                     struct rp_error *err)
{
    pthread_mutex_lock(&p->lock);
    drop_other(p, from);
    p->more = more;
    bool fetched = p->asked || (more && ask(p, from));
    if (fetched) await(p);
    pthread_mutex_unlock(&p->lock);
    if (!fetched) fetch(p, from, &p->given);
    *answer = p->given.answer;
    p->given.answer = (struct rp_buf){ 0 };
    if (p->given.code < 0 && err != NULL) *err = p->given.error;
    return p->given.code;
}

void rp_s3_pages_ahead(struct s3_pages *p, const struct s3_from *from)
{
    pthread_mutex_lock(&p->lock);
    drop_other(p, from);
    (void)ask(p, from);
    pthread_mutex_unlock(&p->lock);
}

int rp_s3_pages_open(struct rp_s3 *s3, const char *prefix, bool versions, struct s3_pages **out, struct rp_error *err)
{
    struct s3_pages *p = calloc(1, sizeof *p);
    if (p == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a listing");
    p->s3 = s3;
    p->prefix = prefix;
    p->versions = versions;
    RP_ASSERT(pthread_mutex_init(&p->lock, NULL) == 0 && pthread_cond_init(&p->changed, NULL) == 0);
    *out = p;
    return 0;
}

void rp_s3_pages_closep(struct s3_pages **pages)
{
    struct s3_pages *p = *pages;
    if (p == NULL) return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (p->running) pthread_join(p->thread, NULL);
    rp_buf_done(&p->page.answer);
    rp_buf_done(&p->given.answer);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
