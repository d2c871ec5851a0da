/* SPDX-License-Identifier: Apache-2.0 */
#include "store/s3/credentials/credentials.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/text/buf.h"
#include "base/time.h"
#include "store/s3/credentials/source.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EARLY_MS       (5 * RP_MINUTE_MS) /* C1 */
#define REFUSED_MS     RP_MINUTE_MS
#define SERVED_WAIT_MS (30 * RP_SECOND_MS) /* between fetches while keys serve */
#define FAILED_WAIT_MS RP_SECOND_MS        /* between fetches while none do: who asks sooner gets the same error */

struct s3_credentials {
    const struct rp_s3_options *options;
    const struct rp_clock *clock;
    pthread_mutex_t lock;   /* of what follows */
    pthread_cond_t settled; /* a fetch has ended */
    bool fetching, tried, have, refused;
    size_t place; /* in `places`, of the keys */
    struct s3_keys keys;
    char source[64];
    int64_t tried_at_ms;
    bool tried_anew; /* because they were refused, and when */
    int64_t anew_at_ms;
    struct rp_error failure; /* of the last fetch */
};

const char *rp_s3_environment(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != 0 ? value : NULL;
}

/* "" is fine here. */
static bool is_visible(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != 0; c++)
        if (*c <= ' ' || *c >= 0x7f) return false;
    return true;
}

static int copy_part(const char *where, const char *part, const char *value, char *out, size_t size,
                     struct rp_error *err)
{
    if (value == NULL) value = "";
    if (!is_visible(value))
        return rp_error_set(err, RP_ECONFIG, "%s: the %s has a blank or a character that no key has", where, part);
    if (strlen(value) >= size) return rp_error_set(err, RP_ECONFIG, "%s: the %s is too long", where, part);
    memcpy(out, value, strlen(value) + 1);
    return 0;
}

int rp_s3_keys_make(const char *where, const char *access, const char *secret, const char *token, int64_t expires_at_ms,
                    struct s3_keys *out, struct rp_error *err)
{
    struct s3_keys keys = { .expires_at_ms = expires_at_ms };
    int r = copy_part(where, "access key", access, keys.access, sizeof keys.access, err);
    if (r == 0) r = copy_part(where, "secret key", secret, keys.secret, sizeof keys.secret, err);
    if (r == 0) r = copy_part(where, "session token", token, keys.token, sizeof keys.token, err);
    if (r == 0 && (keys.access[0] == 0 || keys.secret[0] == 0)) {
        const char *missing = keys.access[0] == 0 ? "access key" : "secret key";
        r = rp_error_set(err, RP_ECONFIG, "%s: there is no %s", where, missing);
        rp_error_hint(err, "access key and secret key belong together: set both there, or neither");
    }
    if (r == 0) *out = keys;
    explicit_bzero(&keys, sizeof keys);
    return r;
}

/* ---- the places, in order ---- */

static int look_in_configuration(const struct rp_s3_options *o, struct s3_keys *out, char source[64],
                                 struct rp_error *err)
{
    const char *access = o->access_key != NULL ? o->access_key : "",
               *secret = o->secret_key != NULL ? o->secret_key : "";
    const char *token = o->session_token != NULL ? o->session_token : "";
    if (access[0] == 0 && secret[0] == 0 && token[0] == 0)
        return rp_error_set(err, RP_ENOTFOUND, "no access_key in the configuration");
    snprintf(source, 64, "configuration");
    return rp_s3_keys_make("the store's configuration", access, secret, token, INT64_MAX, out, err);
}

static bool names_profile(const struct rp_s3_options *o)
{
    return o->profile != NULL && o->profile[0] != 0;
}

static int look_in_environment(const struct rp_s3_options *o, struct s3_keys *out, char source[64],
                               struct rp_error *err)
{
    const char *access = rp_s3_environment("AWS_ACCESS_KEY_ID"), *secret = rp_s3_environment("AWS_SECRET_ACCESS_KEY");
    if (names_profile(o)) return rp_error_set(err, RP_ENOTFOUND, "a profile is configured");
    if (access != NULL || secret != NULL) {
        snprintf(source, 64, "environment");
        return rp_s3_keys_make("the environment", access, secret, rp_s3_environment("AWS_SESSION_TOKEN"), INT64_MAX,
                               out, err);
    }
    if (rp_s3_environment("AWS_WEB_IDENTITY_TOKEN_FILE") == NULL)
        return rp_error_set(err, RP_ENOTFOUND, "no AWS_ACCESS_KEY_ID");
    /* Going on would end at the node's own role, which is somebody else. */
    return rp_error_advise(
        err, RP_ECONFIG,
        "use pod identities (AWS_CONTAINER_CREDENTIALS_FULL_URI), or set access_key and secret_key, and "
        "unset AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE is set, and web identities are not supported");
}

static int look_in_profile(const struct rp_s3_options *o, struct s3_keys *out, char source[64], struct rp_error *err)
{
    char used[64] = "";
    int r = rp_s3_keys_of_profile(names_profile(o) ? o->profile : "", out, used, err);
    if (r == 0) snprintf(source, 64, "profile %.50s", used);
    return r;
}

static int look_at_container(const struct rp_s3_options *o, struct s3_keys *out, char source[64], struct rp_error *err)
{
    (void)o;
    snprintf(source, 64, "container");
    return rp_s3_keys_of_container(out, err);
}

static int look_at_instance(const struct rp_s3_options *o, struct s3_keys *out, char source[64], struct rp_error *err)
{
    (void)o;
    snprintf(source, 64, "instance");
    return rp_s3_keys_of_instance(out, err);
}

static int (*const places[])(const struct rp_s3_options *o, struct s3_keys *out, char source[64],
                             struct rp_error *err) = {
    look_in_configuration, look_in_environment, look_in_profile, look_at_container, look_at_instance,
};
#define N_PLACES (sizeof places / sizeof places[0])

/* What one fetch brought. */
struct fetched {
    struct s3_keys keys;
    char source[64];
    size_t place;
};

static int look_everywhere(const struct rp_s3_options *options, struct fetched *out, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf looked = RP_BUF(512);
    for (size_t i = 0; i < N_PLACES; i++) {
        struct rp_error here = { 0 };
        int r = places[i](options, &out->keys, out->source, &here);
        out->place = i;
        if (r == 0) return 0;
        if (r != RP_ENOTFOUND) {
            rp_error_copy(err, &here);
            return r;
        }
        rp_buf_fmt(&looked, "%s%s", i > 0 ? "; " : "", here.text);
    }
    return rp_error_advise(
        err, RP_ECONFIG,
        "set access_key and secret_key of the store, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a "
        "profile in ~/.aws/credentials",
        "no keys for the store: %s", rp_buf_text(&looked));
}

/* Where keys were found once they are looked for again: elsewhere they may be somebody else's. */
static int look(const struct rp_s3_options *options, bool again, size_t place, struct fetched *out,
                struct rp_error *err)
{
    if (!again) return look_everywhere(options, out, err);
    out->place = place;
    int r = places[place](options, &out->keys, out->source, err);
    return r == RP_ENOTFOUND ? rp_error_wrap(err, RP_EUNAVAILABLE, "the keys are not there any more") : r;
}

/* ---- when to fetch ---- */

static bool serves(const struct s3_credentials *c, int64_t now_ms)
{
    return c->have && now_ms < c->keys.expires_at_ms;
}

/* A clock that was set back is no reason to wait for hours. */
static int64_t since(bool ever, int64_t at_ms, int64_t now_ms)
{
    return ever && now_ms >= at_ms ? now_ms - at_ms : INT64_MAX;
}

static bool is_due(const struct s3_credentials *c, int64_t now_ms)
{
    bool serving = serves(c, now_ms);
    /* Keys that were fetched a moment ago may have been changed since: the first refusal has no
     * minute to wait for. */
    if (serving && c->refused && since(c->tried_anew, c->anew_at_ms, now_ms) >= REFUSED_MS) return true;
    if (since(c->tried, c->tried_at_ms, now_ms) < (serving ? SERVED_WAIT_MS : FAILED_WAIT_MS)) return false;
    if (!serving) return true;
    return c->keys.expires_at_ms != INT64_MAX && now_ms >= c->keys.expires_at_ms - EARLY_MS;
}

static int check_end(const struct s3_keys *keys, int64_t now_ms, struct rp_error *err)
{
    char text[RP_TIME_TEXT];
    if (keys->expires_at_ms > now_ms) return 0;
    return rp_error_advise(err, RP_EUNAVAILABLE, "check the clock of this host, and what hands out the keys",
                           "the keys have ended at %s", rp_time_format(keys->expires_at_ms, text));
}

/* With the lock, which is let go meanwhile. */
static void fetch(struct s3_credentials *c, int64_t now_ms)
{
    struct fetched got = { 0 };
    struct rp_error failure = { 0 };
    bool again = c->have;
    size_t place = c->place;
    c->fetching = true;
    pthread_mutex_unlock(&c->lock);
    int r = look(c->options, again, place, &got, &failure);
    if (r == 0) r = check_end(&got.keys, now_ms, &failure);
    pthread_mutex_lock(&c->lock);
    RP_ASSERT(c->fetching);
    c->fetching = false;
    c->tried = true;
    c->tried_at_ms = now_ms;
    if (c->refused && again) {
        c->tried_anew = true;
        c->anew_at_ms = now_ms;
    }
    c->refused = false;
    c->failure = failure;
    if (r == 0) {
        c->have = true;
        c->place = got.place;
        c->keys = got.keys;
        snprintf(c->source, sizeof c->source, "%s", got.source);
    }
    explicit_bzero(&got, sizeof got);
    pthread_cond_broadcast(&c->settled);
}

int rp_s3_credentials_get(struct s3_credentials *c, struct s3_keys *out, struct rp_error *err)
{
    int r = 0;
    pthread_mutex_lock(&c->lock);
    int64_t now_ms = rp_clock_now_ms(c->clock);
    while (is_due(c, now_ms) && !(c->fetching && serves(c, now_ms))) {
        if (c->fetching)
            pthread_cond_wait(&c->settled, &c->lock);
        else
            fetch(c, now_ms);
        now_ms = rp_clock_now_ms(c->clock);
    }
    if (serves(c, now_ms)) {
        *out = c->keys;
    } else if (c->failure.code < 0) {
        r = rp_error_copy(err, &c->failure);
    } else {
        r = check_end(&c->keys, now_ms, err);
    }
    pthread_mutex_unlock(&c->lock);
    return r;
}

void rp_s3_credentials_refused(struct s3_credentials *c)
{
    pthread_mutex_lock(&c->lock);
    c->refused = true;
    pthread_mutex_unlock(&c->lock);
}

void rp_s3_credentials_source(struct s3_credentials *c, char out[64])
{
    pthread_mutex_lock(&c->lock);
    memcpy(out, c->source, sizeof c->source);
    pthread_mutex_unlock(&c->lock);
}

int rp_s3_credentials_new(const struct rp_s3_options *options, const struct rp_clock *clock,
                          struct s3_credentials **out, struct rp_error *err)
{
    struct s3_credentials *c = calloc(1, sizeof *c);
    if (c == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    c->options = options;
    c->clock = clock;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->settled, NULL);
    *out = c;
    return 0;
}

void rp_s3_credentials_free(struct s3_credentials *c)
{
    if (c == NULL) return;
    RP_ASSERT(!c->fetching);
    pthread_cond_destroy(&c->settled);
    pthread_mutex_destroy(&c->lock);
    explicit_bzero(c, sizeof *c);
    free(c);
}
