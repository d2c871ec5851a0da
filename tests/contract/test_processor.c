/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads and their processor (daemon/processor/processor.h): who is told, when they are to stop,
 * and what becomes of a call that fails. The processor is a function of the test. On both engines,
 * objects in a directory. Needs PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/json.h"
#include "base/wait.h"
#include "catalog/file/process.h"
#include "catalog/writer/writer.h"
#include "daemon/processor/processor.h"
#include "lib/session.h"
#include "lib/uploads.h"

#define PATIENCE_MS 20000
#define CALLS_MAX   1000
#define NODES       2

static struct rp_error err;
static struct rp_file_command done;

/* ---- the processor ---- */

struct call {
    char action[16], file[RP_ID_TEXT], key[64], url[512], id[RP_PROCESS_KEY];
};

static struct call calls[CALLS_MAX];
static size_t n_calls;
static char refused[RP_ID_TEXT]; /* calls about this file are answered with 500; "*": all */
static char held[RP_ID_TEXT];    /* the call about this file hangs, for ten seconds at most */
static bool hangs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;

/* With the lock. */
static void hang(void)
{
    struct timespec until = rp_wait_until(PATIENCE_MS / 2);
    hangs = true;
    while (held[0] != 0 && pthread_cond_timedwait(&changed, &lock, &until) == 0)
        continue;
    hangs = false;
}

/* "": none any more. True: one does. */
static bool hold(const char *file)
{
    pthread_mutex_lock(&lock);
    bool does = hangs;
    snprintf(held, sizeof held, "%s", file);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return does;
}

static int process(const struct rp_hook_call *call, struct rp_hook_answer *out, struct rp_error *why)
{
    RP_CLEANUP(rp_json_decrefp) json_t *o = NULL;
    assert_int_equal(rp_json_parse(call->body, call->body_bytes, &o, why), 0);
    pthread_mutex_lock(&lock);
    struct call *c = &calls[n_calls < CALLS_MAX ? n_calls++ : CALLS_MAX - 1];
    snprintf(c->action, sizeof c->action, "%s", rp_json_get_text(o, "action", ""));
    snprintf(c->file, sizeof c->file, "%s", rp_json_get_text(o, "file", ""));
    snprintf(c->key, sizeof c->key, "%s", rp_json_get_text(o, "idempotency_key", ""));
    snprintf(c->url, sizeof c->url, "%s", rp_json_get_text(o, "url", ""));
    snprintf(c->id, sizeof c->id, "%s", call->id);
    bool no = strcmp(refused, "*") == 0 || strcmp(refused, c->file) == 0;
    *out = (struct rp_hook_answer){ .status = no ? 500 : 202, .retry_after_ms = -1 };
    pthread_cond_broadcast(&changed);
    if (strcmp(held, c->file) == 0) hang();
    pthread_mutex_unlock(&lock);
    return no ? rp_error_set(why, RP_EUNAVAILABLE, "not now") : 0;
}

static void refuse(const char *file)
{
    pthread_mutex_lock(&lock);
    snprintf(refused, sizeof refused, "%s", file);
    pthread_mutex_unlock(&lock);
}

/* With the lock. NULL: none. */
static const struct call *find(const char *action, const char *file)
{
    const struct call *found = NULL;
    for (size_t i = 0; i < n_calls; i++)
        if (strcmp(calls[i].action, action) == 0 && strcmp(calls[i].file, file) == 0) found = &calls[i];
    return found;
}

static struct call wait_for(const char *action, int64_t file_id)
{
    char file[RP_ID_TEXT];
    struct timespec until = rp_wait_until(PATIENCE_MS);
    const struct call *found;
    rp_id_format(RP_ID_FILE, file_id, file);
    pthread_mutex_lock(&lock);
    while ((found = find(action, file)) == NULL && pthread_cond_timedwait(&changed, &lock, &until) == 0)
        continue;
    struct call c = found != NULL ? *found : (struct call){ 0 };
    pthread_mutex_unlock(&lock);
    if (found == NULL) fail_msg("no %s of %s", action, file);
    return c;
}

static size_t count_calls(const char *action, int64_t file_id)
{
    char file[RP_ID_TEXT];
    size_t n = 0;
    rp_id_format(RP_ID_FILE, file_id, file);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_calls; i++)
        n += strcmp(calls[i].action, action) == 0 && strcmp(calls[i].file, file) == 0;
    pthread_mutex_unlock(&lock);
    return n;
}

/* ---- the daemon's part of it ---- */

struct node {
    struct rp_writers *writers;
    struct rp_feed *feed;
    struct rp_processor *processor;
};

struct stage {
    struct world w;
    char config[160];
    struct rp_session session;
    struct node nodes[NODES];
};

static void open_session(struct stage *s)
{
    struct rp_session_options options = { .config_file = s->config, .actor = "test" };
    snprintf(s->config, sizeof s->config, "%s/reprieve.yaml", s->w.dbs.dir);
    FILE *f = fopen(s->config, "we");
    assert_non_null(f);
    fprintf(f,
            "catalog: { url: \"%s\" }\nlog: { file: \"%s/log\" }\n"
            "stores: { main: { path: \"%s\", mode: purge, allow_any_grace: true } }\n"
            "processor: { url: \"http://p.example/scan\", secret: hush }\n",
            s->w.dbs.url, s->w.dbs.dir, s->w.root);
    fclose(f);
    ok(rp_session_open(&s->session, &options, &err));
}

static int set_up(void **state)
{
    struct stage *s = calloc(1, sizeof *s);
    world_make(&s->w, *state != NULL ? DBS_POSTGRES : DBS_SQLITE_FILE, WORLD_FS);
    s->w.uploads.scan = true;
    n_calls = 0;
    refuse("");
    hold("");
    open_session(s);
    *state = s;
    return 0;
}

static void start_node(struct stage *s, int i)
{
    static const char *const names[NODES] = { "one", "two" };
    static const char key[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    struct node *n = &s->nodes[i];
    const struct rp_writers_options writers = { .url = s->w.dbs.url, .n = 1, .first_lane = 100 + i, .queue_max = 16 };
    const struct rp_feed_options feed = { .catalog_url = s->w.dbs.url };
    ok(rp_writers_start(&writers, &n->writers, &err));
    ok(rp_feed_start(&feed, &n->feed, &err));
    const struct rp_processor_options options = { .session = &s->session,
                                                  .feed = n->feed,
                                                  .writers = n->writers,
                                                  .node = names[i],
                                                  .address = "127.0.0.1:1",
                                                  .url_key = key,
                                                  .send = process,
                                                  .every_ms = 50 };
    ok(rp_processor_start(&options, &n->processor, &err));
}

static void stop_node(struct stage *s, int i)
{
    struct node *n = &s->nodes[i];
    rp_processor_stop(n->processor);
    if (n->feed != NULL) rp_feed_stop(n->feed);
    if (n->writers != NULL) rp_writers_stop(n->writers);
    *n = (struct node){ 0 };
}

static int tear_down(void **state)
{
    struct stage *s = *state;
    for (int i = 0; i < NODES; i++)
        stop_node(s, i);
    rp_session_close(&s->session);
    world_check(&s->w);
    world_drop(&s->w);
    free(s);
    return 0;
}

static int64_t upload(struct stage *s, const char *name)
{
    int64_t id = uploads_begin(&s->w, name, "bytes");
    uploads_put(&s->w, id, "bytes");
    ok(uploads_confirm(&s->w, id, NULL, &done));
    uploads_expect(&s->w, id, RP_FILE_SCANNING);
    return id;
}

static void give_verdict(struct stage *s, int64_t id, const char *key, bool accept)
{
    struct rp_file_command c = uploads_command(&s->w, &rp_verb_result, id);
    c.process_key = key;
    c.accept = accept;
    ok(rp_command_run(s->w.catalog, &c.command));
}

static int64_t job(struct stage *s, const char *column, int64_t file_id)
{
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT MAX(%s) FROM processor_job WHERE file_id = %lld", column, (long long)file_id);
    return world_number(&s->w, sql);
}

static void wait_for_job(struct stage *s, const char *column, int64_t file_id, int64_t wanted)
{
    const struct timespec moment = { .tv_nsec = 10000000 };
    int64_t end_ms = rp_time_boot_ms() + PATIENCE_MS, got;
    while ((got = job(s, column, file_id)) != wanted && rp_time_boot_ms() < end_ms)
        nanosleep(&moment, NULL);
    if (got != wanted) fail_msg("%s is %lld, not %lld", column, (long long)got, (long long)wanted);
}

/* ---- told ---- */

static void E6_a_confirmed_upload_is_told_of(void **state)
{
    struct stage *s = *state;
    start_node(s, 0);
    int64_t id = upload(s, "a");
    struct rp_file file = uploads_file(&s->w, id);
    struct call c = wait_for("process", id);
    assert_string_equal(c.key, file.process_key);
    assert_non_null(strstr(c.url, "http://127.0.0.1:1/v1/content/fil_"));
    assert_non_null(strstr(c.url, "&signature="));
    wait_for_job(s, "state", id, 2);
    assert_int_equal(count_calls("process", id), 1);
    give_verdict(s, id, c.key, true);
    uploads_expect(&s->w, id, RP_FILE_LIVE);
    wait_for_job(s, "file_id", id, 0);
    assert_int_equal(count_calls("cancel", id), 0);
}

static void E6_one_that_fails_holds_up_none_behind_it(void **state)
{
    struct stage *s = *state;
    char file[RP_ID_TEXT];
    int64_t bad = upload(s, "bad"); /* before there is a processor: found at its start */
    refuse(rp_id_format(RP_ID_FILE, bad, file));
    start_node(s, 0);
    wait_for("process", bad);
    int64_t good[5];
    for (int i = 0; i < 5; i++) {
        char name[8];
        snprintf(name, sizeof name, "g%d", i);
        good[i] = upload(s, name);
    }
    for (int i = 0; i < 5; i++)
        wait_for("process", good[i]);
    wait_for_job(s, "state", bad, 1);
    assert_true(job(s, "next_at", bad) > 0);
    refuse("");
    world_script(&s->w, "UPDATE processor_job SET next_at = 1 WHERE file_id = %lld", (long long)bad);
    wait_for_job(s, "state", bad, 2);
}

static void E6_one_that_hangs_holds_up_none_beside_it(void **state)
{
    struct stage *s = *state;
    char file[RP_ID_TEXT];
    int64_t slow = upload(s, "slow"), good = upload(s, "good"); /* both are due at the start */
    hold(rp_id_format(RP_ID_FILE, slow, file));
    start_node(s, 0);
    wait_for("process", slow);
    wait_for("process", good);
    assert_true(hold("")); /* it hung all the time */
    wait_for_job(s, "state", slow, 2);
    wait_for_job(s, "state", good, 2);
}

/* ---- no longer wanted ---- */

static void E6_a_delete_says_stop_and_waits_for_nobody(void **state)
{
    struct stage *s = *state;
    start_node(s, 0);
    int64_t id = upload(s, "a");
    struct call told = wait_for("process", id);
    wait_for_job(s, "state", id, 2);
    refuse("*");
    ok(uploads_delete(&s->w, id, -1, &done));
    uploads_expect(&s->w, id, RP_FILE_DELETED);
    struct call c = wait_for("cancel", id);
    assert_string_equal(c.key, told.key);
    assert_true(strcmp(c.id, told.id) != 0);
    give_verdict(s, id, told.key, true); /* too late */
    uploads_expect(&s->w, id, RP_FILE_DELETED);
    refuse("");
    world_script(&s->w, "UPDATE processor_job SET next_at = 1 WHERE file_id = %lld", (long long)id);
    wait_for_job(s, "file_id", id, 0);
}

static void E6_a_second_upload_stops_the_first(void **state)
{
    struct stage *s = *state;
    start_node(s, 0);
    int64_t first = upload(s, "a");
    wait_for("process", first);
    int64_t second = upload(s, "a");
    wait_for("cancel", first);
    wait_for("process", second);
    uploads_expect(&s->w, second, RP_FILE_SCANNING);
    assert_int_equal(count_calls("cancel", second), 0);
}

static void nobody_is_told_to_stop_what_they_never_heard_of(void **state)
{
    struct stage *s = *state;
    start_node(s, 0); /* its reader begins here */
    stop_node(s, 0);
    int64_t never = upload(s, "a"), rejected = upload(s, "b");
    ok(uploads_delete(&s->w, never, -1, &done));
    start_node(s, 0);
    struct call c = wait_for("process", rejected);
    give_verdict(s, rejected, c.key, false); /* its own word */
    uploads_expect(&s->w, rejected, RP_FILE_DELETED);
    wait_for_job(s, "file_id", rejected, 0);
    assert_int_equal(count_calls("process", never) + count_calls("cancel", never), 0);
    assert_int_equal(count_calls("cancel", rejected), 0);
}

static int sync_tx(struct rp_tx *tx, void *ctx, struct rp_error *why)
{
    return rp_process_sync(tx, ctx, 1, why);
}

/* P1: what the job is follows from the file, however often it is looked at. */
static void a_job_that_nobody_was_called_for_goes_without_a_word(void **state)
{
    struct stage *s = *state;
    int64_t id = upload(s, "a"), made_at_ms;
    for (int i = 0; i < 2; i++)
        ok(rp_catalog_transact(s->w.catalog, sync_tx, &id, &err));
    assert_int_equal(job(s, "action", id), RP_PROCESS);
    made_at_ms = job(s, "made_at", id);
    ok(rp_catalog_transact(s->w.catalog, sync_tx, &id, &err));
    assert_int_equal(job(s, "made_at", id), made_at_ms); /* the same one */
    ok(uploads_delete(&s->w, id, -1, &done));
    for (int i = 0; i < 2; i++)
        ok(rp_catalog_transact(s->w.catalog, sync_tx, &id, &err));
    assert_int_equal(job(s, "file_id", id), 0);
}

static void what_is_restored_is_told_of_again(void **state)
{
    struct stage *s = *state;
    start_node(s, 0);
    int64_t id = upload(s, "a");
    struct call told = wait_for("process", id);
    wait_for_job(s, "state", id, 2);
    ok(uploads_delete(&s->w, id, -1, &done));
    wait_for("cancel", id);
    ok(uploads_restore(&s->w, id, &done));
    uploads_expect(&s->w, id, RP_FILE_SCANNING);
    wait_for_job(s, "state", id, 2);
    struct call again = wait_for("process", id);
    assert_int_equal(count_calls("process", id), 2);
    assert_string_equal(again.key, told.key);
    give_verdict(s, id, again.key, true);
    uploads_expect(&s->w, id, RP_FILE_LIVE);
}

/* ---- bounded, and by one node ---- */

static void a_call_whose_attempts_are_used_up_is_dead_until_a_restart(void **state)
{
    struct stage *s = *state;
    int64_t dead = 0;
    refuse("*");
    start_node(s, 0);
    int64_t id = upload(s, "a");
    wait_for("process", id);
    wait_for_job(s, "attempts", id, 1);
    world_script(&s->w, "UPDATE processor_job SET attempts = 79, next_at = 1 WHERE file_id = %lld", (long long)id);
    wait_for_job(s, "state", id, 3);
    assert_int_equal(job(s, "next_at", id), 0);
    uploads_expect(&s->w, id, RP_FILE_SCANNING);
    ok(rp_process_count_dead(s->w.catalog->db, 10, &dead, &err));
    assert_int_equal(dead, 1);
    stop_node(s, 0);
    refuse("");
    start_node(s, 0);
    wait_for_job(s, "state", id, 2);
}

static void two_nodes_share_the_calls(void **state)
{
    struct stage *s = *state;
    int64_t ids[40];
    start_node(s, 0);
    start_node(s, 1);
    for (int i = 0; i < 40; i++) {
        char name[8];
        snprintf(name, sizeof name, "f%d", i);
        ids[i] = upload(s, name);
    }
    for (int i = 0; i < 40; i++) {
        wait_for_job(s, "state", ids[i], 2);
        assert_int_equal(count_calls("process", ids[i]), 1);
    }
}

#define ON_BOTH(test)                                                                                                  \
    { .name = #test " (sqlite)", .test_func = (test), .setup_func = set_up, .teardown_func = tear_down },              \
    {                                                                                                                  \
        .name = #test " (postgres)", .test_func = (test), .setup_func = set_up, .teardown_func = tear_down,            \
        .initial_state = (void *)(uintptr_t)1                                                                          \
    }

int main(void)
{
    rp_wait_init(&changed);
    const struct CMUnitTest tests[] = {
        ON_BOTH(E6_a_confirmed_upload_is_told_of),
        ON_BOTH(E6_one_that_fails_holds_up_none_behind_it),
        ON_BOTH(E6_one_that_hangs_holds_up_none_beside_it),
        ON_BOTH(E6_a_delete_says_stop_and_waits_for_nobody),
        ON_BOTH(E6_a_second_upload_stops_the_first),
        ON_BOTH(nobody_is_told_to_stop_what_they_never_heard_of),
        ON_BOTH(a_job_that_nobody_was_called_for_goes_without_a_word),
        ON_BOTH(what_is_restored_is_told_of_again),
        ON_BOTH(a_call_whose_attempts_are_used_up_is_dead_until_a_restart),
        ON_BOTH(two_nodes_share_the_calls),
    };
    return cmocka_run_group_tests_name("processor", tests, NULL, NULL);
}
