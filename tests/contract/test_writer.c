/* SPDX-License-Identifier: Apache-2.0 */
/* Group commit (catalog/writer/writer.h) with many threads at once, and inits against the quota.
 * Needs PostgreSQL: run under tests/lib/with-postgres. Threads note what they saw; the test's own
 * thread judges it. */
#include "writer_steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "catalog/retention.h"
#include "catalog/writer/idempotency.h"

#define HOUR    RP_HOUR_MS
#define THREADS 16
#define INITS   1000
#define FIT     600

/* ---- inits against the quota ---- */

struct initing {
    struct daemon *d;
    struct rp_init *inits;
    size_t n;
    int refused; /* by submit */
};

static void *init_all(void *arg)
{
    struct initing *t = arg;
    for (size_t i = 0; i < t->n; i++)
        t->refused += submit(t->d, &t->inits[i].command) < 0;
    return NULL;
}

struct watching {
    struct rp_catalog *catalog;
    int64_t most;
    int failed;
    atomic_bool over;
};

static void *watch_quota(void *arg)
{
    struct watching *t = arg;
    while (!atomic_load(&t->over)) {
        struct rp_tenant tenant;
        struct rp_error why = { 0 };
        if (rp_tenant_find(t->catalog->db, "acme", &tenant, &why) < 0) t->failed++;
        int64_t taken = tenant.used_bytes + tenant.reserved_bytes;
        if (taken > t->most) t->most = taken;
    }
    return NULL;
}

static struct rp_init *make_inits(struct daemon *d, size_t n, int64_t size_bytes, const char *tenant)
{
    struct rp_init *inits = rp_arena_array(&d->w->arena, n, sizeof *inits);
    int64_t tenant_id = uploads_tenant(d->w, tenant);
    for (size_t i = 0; i < n; i++) {
        inits[i] = uploads_init(d->w, rp_arena_fmt(&d->w->arena, "n%05zu", i), size_bytes);
        inits[i].command.tenant_id = tenant_id;
    }
    return inits;
}

static void init_from_threads(struct daemon *d, struct rp_init *inits, size_t n)
{
    struct initing work[THREADS];
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        size_t first = n * i / THREADS, last = n * (i + 1) / THREADS;
        work[i] = (struct initing){ .d = d, .inits = inits + first, .n = last - first };
        start(&threads[i], init_all, &work[i]);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(work[i].refused, 0);
    }
}

static void test_QUOTA_EXACT_of_a_thousand_inits_at_once_exactly_those_that_fit_succeed(void **state)
{
    struct daemon *d = *state;
    struct watching watch = { .catalog = world_catalog(d->w, 9, NULL) };
    pthread_t watcher;
    size_t fitted = 0, refused = 0;
    uploads_limit(d->w, "acme", 10 * FIT);
    struct rp_init *inits = make_inits(d, INITS, 10, "acme"), *others = make_inits(d, INITS, 10, "other");
    start_writers(d, 4 * INITS);
    start(&watcher, watch_quota, &watch);
    init_from_threads(d, inits, INITS);
    init_from_threads(d, others, INITS);
    wait_for_answers(d, 2 * INITS);
    atomic_store(&watch.over, true);
    pthread_join(watcher, NULL);
    rp_catalog_close(watch.catalog);
    for (size_t i = 0; i < INITS; i++) {
        fitted += inits[i].command.error.code == 0;
        refused += inits[i].command.error.code == RP_EQUOTA;
        assert_int_equal(others[i].command.error.code, 0);
    }
    assert_int_equal(fitted, FIT);
    assert_int_equal(refused, INITS - FIT);
    assert_int_equal(watch.failed, 0);
    assert_in_range(watch.most, 0, 10 * FIT);
    uploads_expect_quota(d->w, 0, 10 * FIT, FIT);
    struct rp_writers_state s;
    rp_writers_state(d->writers, &s);
    assert_int_equal(s.waiting, 0);
    assert_int_equal(s.commands, 2 * INITS);
    assert_int_equal(d->committed, 2 * INITS);
    assert_true(s.rounds < 2 * INITS); /* a commit carries many */
    assert_int_equal(s.last_code, 0);
}

/* W1: whoever is answered finds what was done, over any other connection. */
struct reading_own {
    struct daemon *d;
    struct rp_catalog *catalog;
    struct rp_init *inits;
    size_t n, missing, failed;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool done;
};

static void wake(struct rp_command *command)
{
    struct reading_own *t = command->owner;
    pthread_mutex_lock(&t->lock);
    t->done = true;
    pthread_cond_signal(&t->woken);
    pthread_mutex_unlock(&t->lock);
}

static void *init_and_read(void *arg)
{
    struct reading_own *t = arg;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    for (size_t i = 0; i < t->n; i++) {
        struct rp_command *c = &t->inits[i].command;
        struct rp_file file;
        struct rp_error why = { 0 };
        c->owner = t;
        c->done = wake;
        t->done = false;
        if (rp_writers_submit(t->d->writers, c, &why) < 0) t->failed++;
        pthread_mutex_lock(&t->lock);
        while (!t->done)
            pthread_cond_wait(&t->woken, &t->lock);
        pthread_mutex_unlock(&t->lock);
        t->failed += c->error.code != 0;
        t->missing += rp_file_get(t->catalog->db, t->inits[i].file_id, &arena, &file, &why) < 0;
    }
    return NULL;
}

static void test_W1_an_answer_comes_after_the_commit(void **state)
{
    struct daemon *d = *state;
    struct reading_own work[4];
    pthread_t threads[4];
    start_writers(d, 100);
    for (size_t i = 0; i < 4; i++) {
        char tenant[16];
        snprintf(tenant, sizeof tenant, "t%zu", i);
        work[i] = (struct reading_own){
            .d = d, .catalog = world_catalog(d->w, 9, NULL), .inits = make_inits(d, 100, 1, tenant), .n = 100
        };
        pthread_mutex_init(&work[i].lock, NULL);
        pthread_cond_init(&work[i].woken, NULL);
    }
    for (size_t i = 0; i < 4; i++)
        start(&threads[i], init_and_read, &work[i]);
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(work[i].failed, 0);
        assert_int_equal(work[i].missing, 0);
        rp_catalog_close(work[i].catalog);
        pthread_cond_destroy(&work[i].woken);
        pthread_mutex_destroy(&work[i].lock);
    }
}

/* ---- idempotency keys ---- */

static int render_init(struct rp_command *command, int *status, struct rp_buf *answer)
{
    const struct rp_init *c = (const struct rp_init *)command;
    *status = command->error.code < 0 ? rp_error_http(command->error.code) : 201;
    return rp_buf_fmt(answer, "{\"id\":%" PRId64 ",\"error\":\"%s\"}", c->file_id, command->error.text);
}

static struct rp_init keyed(struct daemon *d, const char *key, const char *name, uint8_t digest)
{
    struct rp_init c = uploads_init(d->w, name, 10);
    c.command.key = key;
    c.command.render = render_init;
    memset(c.command.digest, digest, sizeof c.command.digest);
    return c;
}

static void run_all(struct daemon *d, struct rp_init *inits, size_t n)
{
    size_t before = d->answered;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(submit(d, &inits[i].command), 0);
    wait_for_answers(d, before + n);
}

static void free_answers(struct rp_init *inits, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rp_buf_done(&inits[i].command.answer);
}

static void test_IDEMPOTENT_one_key_from_many_threads_has_one_effect_and_one_answer(void **state)
{
    struct daemon *d = *state;
    size_t n = 20 * THREADS, fresh = 0;
    struct rp_init *inits = make_inits(d, n, 10, "acme");
    start_writers(d, 1000);
    for (size_t i = 0; i < n; i++)
        inits[i] = keyed(d, i % 2 == 0 ? "even" : "odd", "a", (uint8_t)(i % 2));
    init_from_threads(d, inits, n);
    wait_for_answers(d, n);
    for (size_t i = 0; i < n; i++) {
        const struct rp_command *c = &inits[i].command;
        assert_int_equal(c->error.code, 0);
        assert_int_equal(c->status, 201);
        assert_string_equal(rp_buf_text(&c->answer), rp_buf_text(&inits[i % 2].command.answer));
        fresh += !c->replayed;
    }
    assert_int_equal(fresh, 2);
    assert_int_equal(world_number(d->w, "SELECT count(*) FROM file"), 2);
    uploads_expect_quota(d->w, 0, 20, 2);
    free_answers(inits, n);
}

static void test_IDEMPOTENT_also_after_a_restart_and_another_body_is_refused(void **state)
{
    struct daemon *d = *state;
    struct rp_init first = keyed(d, "k", "a", 1), again = keyed(d, "k", "a", 1), other = keyed(d, "k", "b", 2);
    struct rp_init theirs = keyed(d, "k", "a", 3);
    theirs.command.tenant_id = uploads_tenant(d->w, "other");
    start_writers(d, 1000);
    run_all(d, &first, 1);
    run_all(d, &other, 1);
    assert_int_equal(other.command.error.code, RP_EKEYREUSED);
    assert_false(other.command.replayed);
    rp_writers_stop(d->writers);
    start_writers(d, 1000);
    run_all(d, &again, 1);
    assert_true(again.command.replayed);
    assert_int_equal(again.command.status, 201);
    assert_string_equal(rp_buf_text(&again.command.answer), rp_buf_text(&first.command.answer));
    run_all(d, &theirs, 1); /* another tenant's key is another key */
    assert_int_equal(theirs.command.error.code, 0);
    assert_false(theirs.command.replayed);
    world_script(d->w, "UPDATE idempotency SET key = 'same hash' WHERE key = 'k'"); /* of another text */
    struct rp_init collides = keyed(d, "k", "a", 1);
    run_all(d, &collides, 1);
    assert_int_equal(collides.command.error.code, RP_EKEYREUSED);
    assert_int_equal(world_number(d->w, "SELECT count(*) FROM file"), 2);
    free_answers(&first, 1);
    free_answers(&again, 1);
    free_answers(&other, 1);
    free_answers(&theirs, 1);
    free_answers(&collides, 1);
}

/* A commit like the one that a repetition may heal. */
static int heal_later(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *e)
{
    (void)tx, (void)e;
    for (size_t i = 0; i < n; i++)
        rp_error_set(&commands[i]->error, RP_EUNAVAILABLE, "the store could not be asked");
    return 0;
}

static const struct rp_verb verb_heal_later = { .name = "heal later", .run = heal_later };

static void test_W4_a_refusal_is_kept_and_a_passing_failure_is_not(void **state)
{
    struct daemon *d = *state;
    uploads_limit(d->w, "acme", 5);
    struct rp_init refused = keyed(d, "refused", "a", 1), again = keyed(d, "refused", "a", 1);
    struct rp_init failed = keyed(d, "failed", "a", 1), healed = keyed(d, "failed", "a", 1);
    failed.command.verb = &verb_heal_later;
    start_writers(d, 1000);
    run_all(d, &refused, 1);
    assert_int_equal(refused.command.error.code, RP_EQUOTA);
    assert_int_equal(refused.command.status, 409);
    run_all(d, &failed, 1);
    assert_int_equal(failed.command.error.code, RP_EUNAVAILABLE);
    rp_writers_attach(d->writers, d->w->catalog);
    uploads_limit(d->w, "acme", 1000);
    run_all(d, &again, 1);
    assert_true(again.command.replayed); /* the decision stands, byte for byte */
    assert_int_equal(again.command.status, 409);
    assert_string_equal(rp_buf_text(&again.command.answer), rp_buf_text(&refused.command.answer));
    run_all(d, &healed, 1);
    assert_int_equal(healed.command.error.code, 0);
    assert_false(healed.command.replayed);
    uploads_expect_quota(d->w, 0, 10, 1);
    free_answers(&refused, 1);
    free_answers(&again, 1);
    free_answers(&failed, 1);
    free_answers(&healed, 1);
}

static int forget_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct rp_old_query old = { .kind = RP_OLD_KEYS, .before_ms = tx->late_ms - 24 * HOUR, .limit = 1 };
    int64_t id;
    struct rp_ids ids = { .at = &id };
    int r = rp_old_find(tx->db, &old, &ids, e);
    return r < 0 ? r : rp_old_remove(tx, &old, &ids, ctx, e);
}

static void test_X10_keys_are_forgotten_after_a_day(void **state)
{
    struct daemon *d = *state;
    struct rp_init first = keyed(d, "old", "a", 1), second = keyed(d, "new", "b", 1), again = keyed(d, "old", "a", 1);
    int64_t forgotten = 0;
    assert_int_equal(rp_command_run(d->w->catalog, &first.command), 0);
    world_script(d->w, "UPDATE idempotency SET id = id - CAST(90000000 AS BIGINT) * 2097152");
    assert_int_equal(rp_command_run(d->w->catalog, &second.command), 0);
    ok(rp_catalog_transact(d->w->catalog, forget_tx, &forgotten, &err));
    assert_int_equal(forgotten, 1);
    ok(rp_catalog_transact(d->w->catalog, forget_tx, &forgotten, &err));
    assert_int_equal(forgotten, 0);
    assert_int_equal(rp_command_run(d->w->catalog, &again.command), 0);
    assert_false(again.command.replayed);
    free_answers(&first, 1);
    free_answers(&second, 1);
    free_answers(&again, 1);
}

/* ---- one that cannot be done harms no other ---- */

static atomic_int poison;

static int fail_round(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *e)
{
    (void)tx, (void)commands, (void)n;
    return rp_error_set(e, atomic_load(&poison), "this one cannot be done");
}

static const struct rp_verb verb_poison = { .name = "poison", .run = fail_round };

static void test_W2_one_that_cannot_be_done_harms_no_other(void **state)
{
    static const int codes[] = { RP_EFAILED, RP_ECORRUPT, RP_ETOOBIG, RP_ENOMEM };
    struct daemon *d = *state;
    int64_t tenant = uploads_tenant(d->w, "acme");
    struct rp_init *inits = make_inits(d, 400, 1, "acme");
    start_writers(d, 1000);
    for (size_t k = 0; k < 4; k++) {
        struct rp_command bad = { .verb = &verb_poison, .tenant_id = tenant, .actor = "tester" }, gate;
        size_t before = d->answered;
        atomic_store(&poison, codes[k]);
        close_gate(d, &gate, tenant);
        for (size_t i = 0; i < 50; i++)
            assert_int_equal(submit(d, &inits[k * 100 + i].command), 0);
        assert_int_equal(submit(d, &bad), 0);
        for (size_t i = 50; i < 100; i++)
            assert_int_equal(submit(d, &inits[k * 100 + i].command), 0);
        open_gate(d);
        wait_for_answers(d, before + 102);
        assert_int_equal(bad.error.code, codes[k]);
        assert_string_equal(bad.error.text, "poison: this one cannot be done");
        for (size_t i = 0; i < 100; i++)
            assert_int_equal(inits[k * 100 + i].command.error.code, 0);
    }
    assert_int_equal(world_number(d->w, "SELECT count(*) FROM file"), 400);
}

static _Atomic unsigned lanes_used;

static int note_lane(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *e)
{
    (void)commands, (void)n, (void)e;
    atomic_fetch_or(&lanes_used, 1U << (tx->catalog->lane - LANE));
    return 0;
}

static const struct rp_verb verb_lane = { .name = "note lane", .run = note_lane };

/* Tenants that were made in different milliseconds have ids whose last bits are all the same. */
static void test_W6_tenants_are_spread_over_the_writers(void **state)
{
    struct daemon *d = *state;
    struct rp_command commands[32];
    start_writers(d, 1000);
    atomic_store(&lanes_used, 0);
    for (size_t i = 0; i < 32; i++) {
        commands[i] = (struct rp_command){ .verb = &verb_lane, .tenant_id = (int64_t)(i + 1) << 21 };
        assert_int_equal(submit(d, &commands[i]), 0);
    }
    wait_for_answers(d, 32);
    assert_int_equal(atomic_load(&lanes_used), 15); /* all four of them */
}

/* ---- bounds and the end ---- */

static void test_W5_a_full_queue_says_busy_at_once(void **state)
{
    struct daemon *d = *state;
    int64_t tenant = uploads_tenant(d->w, "acme");
    struct rp_init *inits = make_inits(d, 12, 1, "acme");
    struct rp_writers_state s;
    struct rp_command gate;
    start_writers(d, 10);
    close_gate(d, &gate, tenant);
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(submit(d, &inits[i].command), 0);
    assert_int_equal(submit(d, &inits[9].command), RP_EBUSY);
    inits[10].command.tenant_id = tenant + 1; /* of all writers together */
    assert_int_equal(submit(d, &inits[10].command), RP_EBUSY);
    rp_writers_state(d->writers, &s);
    assert_int_equal(s.waiting, 10);
    assert_int_equal(s.refused, 2);
    open_gate(d);
    wait_for_answers(d, 10);
    assert_int_equal(submit(d, &inits[11].command), 0);
    wait_for_answers(d, 11);
    assert_int_equal(d->answered, 11);
    assert_int_equal(world_number(d->w, "SELECT count(*) FROM file"), 10);
}

static void *stop(void *arg)
{
    struct daemon *d = arg;
    rp_writers_stop(d->writers);
    return NULL;
}

static void test_stopping_answers_everything(void **state)
{
    struct daemon *d = *state;
    struct rp_init *inits = make_inits(d, 1200, 1, "acme"); /* more than two rounds */
    struct rp_command gate;
    pthread_t stopper;
    start_writers(d, 2000);
    close_gate(d, &gate, uploads_tenant(d->w, "acme"));
    for (size_t i = 0; i < 1200; i++)
        assert_int_equal(submit(d, &inits[i].command), 0);
    start(&stopper, stop, d);
    open_gate(d);
    pthread_join(stopper, NULL);
    d->writers = NULL;
    assert_int_equal(d->answered, 1201);
    for (size_t i = 0; i < 1200; i++)
        assert_int_equal(inits[i].command.error.code, 0);
    assert_int_equal(world_number(d->w, "SELECT count(*) FROM file"), 1200);
}

/* ---- calls beside the rounds ---- */

struct calling {
    struct daemon *d;
    struct rp_catalog *catalog; /* attached; NULL: straight to the writers */
    int failed;
};

static int raise_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    int64_t number;
    (void)ctx;
    return rp_meta_raise(tx->db, "raised", 0, &number, e);
}

static int refuse_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    int64_t number;
    int r = rp_meta_raise(tx->db, "raised", 0, &number, e);
    (void)ctx;
    return r < 0 ? r : rp_error_set(e, RP_ENOTFOUND, "nothing of it stays");
}

static void *call_each(void *arg)
{
    struct calling *t = arg;
    for (int i = 0; i < 50; i++) {
        struct rp_error why = { 0 };
        int r = t->catalog != NULL ? rp_catalog_transact(t->catalog, raise_tx, NULL, &why)
                                   : rp_writers_call(t->d->writers, raise_tx, NULL, &why);
        t->failed += r != 0;
        r = rp_writers_call(t->d->writers, refuse_tx, NULL, &why);
        t->failed += r != RP_ENOTFOUND || strcmp(why.text, "nothing of it stays") != 0;
    }
    return NULL;
}

static void test_calls_run_in_turn_with_the_rounds(void **state)
{
    struct daemon *d = *state;
    struct calling work[4];
    pthread_t threads[4];
    struct rp_init *inits = make_inits(d, INITS, 1, "acme");
    ok(rp_meta_set(d->w->dbs.db, "raised", 0, "", &err));
    start_writers(d, 2 * INITS);
    for (size_t i = 0; i < 4; i++) {
        work[i] = (struct calling){ .d = d, .catalog = i % 2 == 0 ? world_catalog(d->w, 9 + (int)i, NULL) : NULL };
        if (work[i].catalog != NULL) rp_writers_attach(d->writers, work[i].catalog);
        start(&threads[i], call_each, &work[i]);
    }
    init_from_threads(d, inits, INITS);
    wait_for_answers(d, INITS);
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(work[i].failed, 0);
        rp_catalog_close(work[i].catalog);
    }
    assert_int_equal(world_number(d->w, "SELECT number FROM meta WHERE name = 'raised'"), 200);
    for (size_t i = 0; i < INITS; i++)
        assert_int_equal(inits[i].command.error.code, 0);
}

/* ---- lost connections ---- */

static void test_W1_connections_that_are_killed_lose_and_invent_nothing(void **state)
{
    struct daemon *d = *state;
    size_t n = 3000, done = 0, unknown = 0;
    struct rp_init *inits = make_inits(d, n, 1, "acme");
    start_writers(d, 2 * n);
    init_from_threads(d, inits, n / 2);
    for (size_t k = 0; k < 30; k++) {
        size_t first = n / 2 + k * (n / 60);
        for (size_t i = first; i < first + n / 60; i++)
            assert_int_equal(submit(d, &inits[i].command), 0);
        world_end_connections(d->w);
    }
    wait_for_answers(d, n);
    for (size_t i = 0; i < n; i++) {
        const struct rp_command *c = &inits[i].command;
        char sql[80];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM file WHERE name = 'n%05zu'", i);
        int64_t rows = world_number(d->w, sql);
        done += c->error.code == 0;
        unknown += c->error.code == RP_EUNKNOWN;
        if (c->error.code == 0) assert_int_equal(rows, 1);
        if (c->error.code < 0 && c->error.code != RP_EUNKNOWN) assert_int_equal(rows, 0);
    }
    print_message("%zu of %zu done, %zu unknown\n", done, n, unknown);
    assert_true(done >= n / 2);
    struct rp_init after = uploads_init(d->w, "after", 1);
    run_all(d, &after, 1);
    assert_int_equal(after.command.error.code, 0);
}

/* clang-format off */
int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_QUOTA_EXACT_of_a_thousand_inits_at_once_exactly_those_that_fit_succeed),
        BOTH(test_W1_an_answer_comes_after_the_commit),
        BOTH(test_IDEMPOTENT_one_key_from_many_threads_has_one_effect_and_one_answer),
        BOTH(test_IDEMPOTENT_also_after_a_restart_and_another_body_is_refused),
        BOTH(test_W4_a_refusal_is_kept_and_a_passing_failure_is_not),
        BOTH(test_X10_keys_are_forgotten_after_a_day),
        BOTH(test_W2_one_that_cannot_be_done_harms_no_other),
        BOTH(test_W5_a_full_queue_says_busy_at_once),
        BOTH(test_stopping_answers_everything),
        BOTH(test_calls_run_in_turn_with_the_rounds),
        ON(DBS_POSTGRES, "postgres", test_W6_tenants_are_spread_over_the_writers),
        ON(DBS_POSTGRES, "postgres", test_W1_connections_that_are_killed_lose_and_invent_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
