/* SPDX-License-Identifier: Apache-2.0 */
/* No answer is half an answer. Every question that can be asked of the catalog, and every change
 * that is not in tests/fault, is asked again and again; each time another call of the database, of
 * the store, or another allocation fails. Whoever asks gets the whole answer or an error with
 * words, never something in between; and a change that failed has changed nothing. The memory of
 * jansson is left alone: its parser takes missing memory for bad text, or loses a character without
 * a word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract/failed_calls.h"
#include "core/hold.h"
#include "core/run/run.h"
#include "lib/ask.h"
#include "lib/fault_db.h"
#include "lib/starve.h"

#define CALLS_MAX 3000
#define ANSWER    ((size_t)1 << 18)

static const char *const port_names[PORTS] = { "call of the database", "call of the store", "allocation" };
static struct rp_error err;

/* ---- faults ---- */

static int strike(struct asking *a, enum port port, struct rp_error *e)
{
    if (!a->armed || a->port != port || ++a->n != a->at) return 0;
    a->struck = true;
    return rp_error_set(e, RP_EFAILED, "injected");
}

int half_before_db(void *ctx, const char *call, struct rp_error *e)
{
    (void)call;
    return strike(ctx, DATABASE, e);
}

static int before_store(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)call, (void)key;
    return strike(ctx, STORE, e);
}

static void arm(struct asking *a, enum port port, int at)
{
    a->port = port;
    a->n = 0;
    a->at = at;
    a->struck = false;
    a->armed = true;
    if (port == MEMORY) starve_arm(at);
}

static void disarm(struct asking *a)
{
    a->armed = false;
    if (a->port != MEMORY) return;
    starve_disarm();
    a->struck = starve_struck();
}

int say(void *to, const char *fmt, ...)
{
    struct asking *a = to;
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return rp_buf_str(&a->answer, text);
}

/* ---- the loop ---- */

static int64_t version(struct asking *a)
{
    return world_number(&a->w, "PRAGMA data_version");
}

static int ask_once(struct asking *a, const struct question *q, enum port port, int at, struct rp_error *e)
{
    a->number++;
    rp_arena_reset(&a->w.arena);
    snprintf(a->name, sizeof a->name, "new-%d", a->number);
    ok(rp_token_secret(RP_TOKEN_LINK, a->link, &err));
    ok(rp_token_secret(RP_TOKEN_SESSION, a->secret, &err));
    if (q->prepare != NULL) q->prepare(a);
    a->before = version(a);
    rp_buf_clear(&a->answer);
    rp_arena_done(&a->arena);
    *e = (struct rp_error){ 0 };
    arm(a, port, at);
    int r = q->ask(a, e);
    disarm(a);
    return r;
}

static const char *judge(struct asking *a, const struct question *q, int r, const struct rp_error *e, const char *whole)
{
    int injected = a->port == MEMORY ? RP_ENOMEM : RP_EFAILED;
    bool told = r == injected || r == q->says || r == q->or_says || (a->port == MEMORY && r == RP_ETOOBIG);
    if (r < 0 && !told) return "another error";
    if (r < 0 && e->text[0] == '\0') return "no words";
    if (r < 0 && !q->steps && version(a) != a->before) return "failed, and changed something";
    return r == 0 && strcmp(rp_buf_text(&a->answer), whole) != 0 ? "half an answer" : NULL;
}

/* The sanitizers see every fifth call, another fifth for each question; the shipped build lets all
 * of them fail. */
#ifdef __SANITIZE_ADDRESS__
#define SLICE 5
#else
#define SLICE 1
#endif

/* Until there is no such call any more. Returns how many there were, roughly if only a slice of
 * them is tried. */
static int fail_each(struct asking *a, const struct question *q, enum port port, const char *whole)
{
    struct rp_error e;
    static int turn;
    for (int at = 1 + turn++ % SLICE;; at += SLICE) {
        assert_in_range(at, 1, CALLS_MAX);
        int r = ask_once(a, q, port, at, &e);
        if (!a->struck && r < 0) fail_msg("%s, without fault: %s", q->name, e.text);
        if (!a->struck) return at - 1;
        const char *wrong = judge(a, q, r, &e, whole);
        if (wrong == NULL) continue;
        a->wrong++;
        print_error("%s, %s %d: %s: %s (%s)\n%s\ninstead of\n%s\n", q->name, port_names[port], at, wrong,
                    rp_error_slug(r), e.text, rp_buf_text(&a->answer), whole);
    }
}

static void ask_all(struct asking *a, const struct question *questions, size_t n_questions)
{
    struct rp_error e;
    for (size_t i = 0; i < n_questions; i++) {
        const struct question *q = &questions[i];
        int n[PORTS];
        int r = ask_once(a, q, STORE, 0, &e);
        if (r < 0) fail_msg("%s: %s (%s)", q->name, e.text, rp_error_slug(r));
        char *whole = strdup(rp_buf_text(&a->answer));
        for (enum port port = DATABASE; port < PORTS; port++)
            n[port] = fail_each(a, q, port, whole);
        free(whole);
        print_message("%s: %d calls of the database, %d of the store, %d allocations\n", q->name, n[DATABASE], n[STORE],
                      n[MEMORY]);
    }
    world_check(&a->w);
    assert_int_equal(a->wrong, 0);
}

static void no_answer_is_half_an_answer(void **state)
{
    ask_all(*state, failed_questions, failed_questions_n);
}

static void no_change_is_half_a_change(void **state)
{
    ask_all(*state, failed_changes, failed_changes_n);
}

/* ---- the world that is asked about ---- */

static void refuse_dead(struct asking *a)
{
    world_script(&a->w, "UPDATE mark SET attempts = 2 WHERE key = 'dies'");
}

static int deny(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx;
    bool it = strcmp(call, "remove") == 0 && key != NULL && strcmp(key, "dies") == 0;
    return it ? rp_error_set(e, RP_EDENIED, "refused") : 0;
}

static void make_marks(struct asking *a)
{
    struct world *w = &a->w;
    static const char *const keys[] = { "held/a", "held/b", "plain", "gone", "dies" };
    for (size_t i = 0; i < 5; i++) {
        world_put(w, keys[i], "bytes");
        a->mark_id = world_mark(w, keys[i], RP_DAY_MS).mark_id;
    }
    world_pass(w, 2 * RP_DAY_MS);
    refuse_dead(a);
}

static void hold(struct asking *a, struct rp_hold_command request)
{
    request.reason = "audit";
    request.command.actor = "tester";
    ok(ask_hold(a->w.catalog, &request, &a->w.arena, &err));
}

static void make_holds(struct asking *a)
{
    hold(a, (struct rp_hold_command){ .scope = RP_SCOPE_PREFIX, .store = &a->w.store, .key = "held/" });
    hold(a, (struct rp_hold_command){ .scope = RP_SCOPE_SUBJECT, .store = &a->w.store, .key = "plain" });
    (void)uploads_tenant(&a->w, "other");
    hold(a, (struct rp_hold_command){ .scope = RP_SCOPE_TENANT, .tenant = "other" });
}

/* "gone" lies in quarantine afterwards, "dies" is a dead letter. */
static void sweep(struct asking *a)
{
    struct world *w = &a->w;
    w->config.mode = RP_MODE_QUARANTINE;
    w->before = deny;
    for (int i = 0; i < 3; i++) {
        (void)world_sweep(w);
        world_pass(w, RP_HOUR_MS);
    }
    w->before = before_store;
    w->ctx = a;
    w->config.mode = RP_MODE_PURGE;
    a->aside_id = world_newest(w, "gone").id;
    a->run_id = world_number(w, "SELECT max(run_id) FROM run_record");
    a->dead_id = world_number(w, "SELECT id FROM dead_letter");
}

static int token_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct asking *a = ctx;
    struct rp_token token = { .kind = RP_TOKEN_BEARER, .name = "first", .scopes = 1 };
    int r = rp_token_create(tx, &token, a->secret, "tester", e);
    a->token_id = token.id;
    rp_token_hash(a->secret, a->hash);
    return r;
}

static void make_rest(struct asking *a)
{
    struct world *w = &a->w;
    struct rp_run open;
    struct rp_file_command deleted;
    a->file_id = uploads_live(w, "photo", "bytes of a photo");
    assert_int_equal(uploads_delete(w, uploads_live(w, "old", "old bytes"), RP_DAY_MS, &deleted), 0);
    a->txn_id = uploads_txn_begin(w);
    (void)uploads_member(w, a->txn_id, "member", "bytes", 0);
    ok(rp_token_secret(RP_TOKEN_BEARER, a->secret, &err));
    ok(rp_catalog_transact(w->catalog, token_tx, a, &err));
    snprintf(a->name, sizeof a->name, "kept");
    ok(rp_catalog_transact(w->catalog, half_keys_tx, a, &err));
    ok(rp_catalog_transact(w->catalog, half_alert_tx, a, &err));
    ok(rp_catalog_transact(w->catalog, half_node_tx, a, &err));
    ok(rp_run_begin(w->catalog, "sweep", "open", &w->worker, RP_HOUR_MS, &open, &err));
}

static void make_guard(struct asking *a)
{
    struct rp_db *db = NULL;
    static char url[200];
    snprintf(url, sizeof url, "sqlite:%s/app.db", a->w.dbs.dir);
    ok(rp_db_open(url, &(struct rp_db_options){ 0 }, &db, &err));
    ok(rp_db_script(db, "CREATE TABLE used (key TEXT); INSERT INTO used VALUES ('held/a')", &err));
    rp_db_close(db);
    a->database = (struct rp_database_config){ .name = "app", .url = url, .read_url = "" };
    a->references[0] = (struct rp_reference){ .database = "app", .table = "used", .column = "key" };
    a->references[1] = (struct rp_reference){ .database = "app", .sql = "SELECT key FROM used" };
    a->whole = (struct rp_config){ .environment = "test", .databases = &a->database, .n_databases = 1 };
    a->w.config.referenced_by = a->references;
    a->w.config.n_referenced_by = 2;
}

static int set_up(void **state)
{
    struct asking *a = calloc(1, sizeof *a);
    struct rp_db_fault fault = { .before = half_before_db, .ctx = a };
    if (a == NULL) return -1;
    world_make(&a->w, DBS_SQLITE_FILE, WORLD_MEMORY);
    a->catalog = world_catalog(&a->w, 1, &fault);
    a->arena = RP_ARENA((size_t)16 << 20);
    a->answer = RP_BUF(ANSWER);
    static char room[ANSWER];
    assert_int_equal(rp_buf_add(&a->answer, room, ANSWER), 0); /* what is said costs no memory later */
    a->tenant_id = uploads_tenant(&a->w, "acme");
    make_marks(a);
    make_rest(a);
    make_holds(a);
    sweep(a);
    make_guard(a);
    half_pause(a);
    *state = a;
    int64_t lifted = 0;
    ok(ask_resume(a->catalog, "tester", &lifted, &err)); /* and the lane is there */
    return 0;
}

static int tear_down(void **state)
{
    struct asking *a = *state;
    rp_catalog_close(a->catalog);
    rp_arena_done(&a->arena);
    rp_buf_done(&a->answer);
    world_drop(&a->w);
    free(a);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(no_answer_is_half_an_answer, set_up, tear_down),
                                        cmocka_unit_test_setup_teardown(no_change_is_half_a_change, set_up,
                                                                        tear_down) };
    return cmocka_run_group_tests_name("half answers", tests, NULL, NULL);
}
