/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "confirm_steps.h"

static int service_of(struct services *s, const char *name)
{
    for (int i = 0; i < SERVICES; i++)
        if (strcmp(s->configs[i].name, name) == 0) return i;
    fail_msg("no service %s", name);
    return 0;
}

static void services_send(void *ctx, const struct rp_confirm_call *call, struct rp_confirm_answer *out)
{
    struct services *s = ctx;
    int which = service_of(s, call->to->name);
    struct service *one = &s->at[which];
    pthread_mutex_lock(&s->lock);
    one->calls++;
    if (++one->under_way > one->most_under_way) one->most_under_way = one->under_way;
    snprintf(one->id, sizeof one->id, "%s", call->id);
    snprintf(one->said, sizeof one->said, "%.*s", (int)call->body_bytes, call->body);
    out->status = one->status;
    out->retry_after_ms = one->retry_after_ms;
    snprintf(out->body, sizeof out->body, "%s", one->body != NULL ? one->body : "");
    if (one->status == 0) snprintf(out->error, sizeof out->error, "connection refused");
    pthread_mutex_unlock(&s->lock);
    if (s->during != NULL) s->during(s, which);
    pthread_mutex_lock(&s->lock);
    one->under_way--;
    pthread_mutex_unlock(&s->lock);
}

static void services_answered(void *ctx, const char *name, const char *meaning)
{
    struct services *s = ctx;
    (void)meaning;
    if (s->answered != NULL) s->answered(s, name);
}

struct rp_asker *services_asker(struct services *s, struct rp_catalog *catalog, struct rp_error *e)
{
    struct rp_asker_options options = { .by = world_sweeper(s->w, catalog, "asker").by,
                                        .config = &s->config,
                                        .url_base = "https://reprieve.example",
                                        .url_key = s->key,
                                        .send = services_send,
                                        .send_ctx = s,
                                        .answered = services_answered,
                                        .ctx = s };
    options.most = s->most;
    if (catalog == s->w->catalog) options.by.stop = &s->stop;
    options.by.enough = &s->enough;
    return rp_asker_new(&options, e);
}

void services_make(struct world *w, struct services *s)
{
    static const char *const names[SERVICES] = { "calendar", "billing", "mail" };
    memset(s, 0, sizeof *s);
    s->w = w;
    for (int i = 0; i < SERVICES; i++) {
        s->at[i] = (struct service){ .status = 200, .retry_after_ms = -1 };
        s->configs[i] = (struct rp_confirmer_config){ .name = names[i],
                                                      .url = "http://unused",
                                                      .when = i == MAIL ? RP_CONFIRM_NOW : RP_CONFIRM_DUE,
                                                      .timeout_ms = 15000,
                                                      .give_up_after_ms = 3 * RP_DAY_MS,
                                                      .gone = { .n = 1, .at = { 410 } } };
    }
    s->config = (struct rp_config){ .confirmers = s->configs, .n_confirmers = SERVICES };
    memset(s->key, 'a', RP_DIGEST_HEX - 1);
    pthread_mutex_init(&s->lock, NULL);
    s->asker = services_asker(s, w->catalog, &err);
    assert_non_null(s->asker);
}

void services_drop(struct services *s)
{
    rp_asker_free(s->asker);
    pthread_mutex_destroy(&s->lock);
}

struct rp_asker_pass ask_all(struct services *s)
{
    struct rp_asker_pass pass;
    rp_asker_configure(s->asker, &s->config); /* where nothing was found a moment ago is looked again */
    ok(rp_asker_pass(s->asker, &pass, &err));
    return pass;
}

struct rp_mark_answer mark_confirmed(struct services *s, const char *key, int64_t grace_ms, const char *first,
                                     const char *second)
{
    const char *names[] = { first, second };
    struct rp_confirmer_list by;
    struct rp_mark_answer answer;
    ok(rp_confirmers_find(&s->config, names, second != NULL ? 2 : 1, &by, &err));
    struct rp_mark_request q = {
        .key = key, .grace_ms = grace_ms, .at_ms = -1, .reason = "cancelled", .confirmations = &by
    };
    ok(rp_mark_many(s->w->catalog, &s->w->store, &q, 1, "tester", false, &answer, &err));
    return answer;
}

void put_to_confirm(struct services *s, const char *key, const char *first, const char *second)
{
    world_put(s->w, key, "x");
    assert_int_equal(mark_confirmed(s, key, 0, first, second).what, RP_MARK_CREATED);
}

enum rp_state state_of(struct services *s, const char *key)
{
    return world_newest(s->w, key).state;
}

const char *confirmed(struct services *s, const char *key)
{
    static char out[RP_CONFIRMATIONS_EACH + 1];
    struct rp_mark mark = world_newest(s->w, key);
    struct rp_confirmations all;
    ok(rp_confirmations_of(s->w->catalog->db, &mark.id, 1, &s->w->arena, &all, &err));
    for (size_t i = 0; i < all.n; i++)
        out[i] = "?PAWYRF"[all.at[i].state];
    out[all.n] = 0;
    return out;
}

int64_t confirmation_id(struct services *s, const char *key, size_t which)
{
    struct rp_mark mark = world_newest(s->w, key);
    struct rp_confirmations all;
    ok(rp_confirmations_of(s->w->catalog->db, &mark.id, 1, &s->w->arena, &all, &err));
    assert_true(which < all.n);
    return all.at[which].id;
}

int say_later(struct services *s, int64_t id, bool yes)
{
    struct rp_answer_command c = { .command = { .verb = &rp_verb_answer, .actor = "service:calendar" },
                                   .confirmation_id = id,
                                   .yes = yes,
                                   .words = yes ? "" : "it is needed",
                                   .arena = &s->w->arena };
    return rp_command_run(s->w->catalog, &c.command);
}

int64_t letter_of(struct services *s, const char *key)
{
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT MAX(id) FROM dead_letter WHERE open = 1 AND mark_id = %lld",
             (long long)world_newest(s->w, key).id);
    return world_number(s->w, sql);
}

int64_t audited(struct services *s, const char *event, const char *key)
{
    char sql[256];
    snprintf(sql, sizeof sql, "SELECT COUNT(*) FROM audit WHERE event = '%s' AND mark_id = %lld", event,
             (long long)world_newest(s->w, key).id);
    return world_number(s->w, sql);
}
