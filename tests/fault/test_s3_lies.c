/* SPDX-License-Identifier: Apache-2.0 */
/* The S3 store against a server that lies (tests/lib/s3_liar.py): whatever it says, nothing is
 * lost.
 *
 * A removal has objects that are to be removed, some of them overwritten since, and others beside
 * them. They are removed while the server lies, then, healed, until every answer is final. The
 * liar's own log then tells what was really done:
 *   L1  what was reported deleted is not there any more;
 *   L2  nothing but what was to be removed was deleted; nothing newer either, at the levels that
 *       promise it;
 *   L3  at no moment an older version came to light;
 *   L4  in the end everything that was to go is gone, and everything else is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <curl/curl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/time.h"
#include "store/s3/s3.h"

/* ---- the liar ---- */

static struct liar {
    pid_t pid;
    int in;
    char url[64];
    CURL *curl;
} liar;

static int liar_start(void **state)
{
    int in[2], out[2];
    char script[4096], port[16] = "";
    const char *tree = getenv("REPRIEVE_TREE"), *seed = getenv("RP_TEST_SEED");
    (void)state;
    snprintf(script, sizeof script, "%s/tests/lib/s3_liar.py", tree ? tree : ".");
    if (pipe(in) < 0 || pipe(out) < 0) return -1;
    liar.pid = fork();
    if (liar.pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[1]);
        execlp("python3", "python3", script, seed ? seed : "1", (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    liar.in = in[1];
    ssize_t n = read(out[0], port, sizeof port - 1);
    close(out[0]);
    if (n <= 0) return -1;
    snprintf(liar.url, sizeof liar.url, "http://127.0.0.1:%d", atoi(port));
    liar.curl = curl_easy_init();
    print_message("seed %s\n", seed ? seed : "1");
    return 0;
}

static int liar_stop(void **state)
{
    (void)state;
    curl_easy_cleanup(liar.curl);
    close(liar.in);
    return waitpid(liar.pid, NULL, 0) == liar.pid ? 0 : -1;
}

static size_t take_bytes(char *bytes, size_t size, size_t n, void *ctx)
{
    return rp_buf_add(ctx, bytes, size * n) < 0 ? 0 : size * n;
}

static json_t *ask_liar(const char *method, const char *path, const char *body)
{
    char url[256];
    long status = 0;
    RP_CLEANUP(rp_buf_done) struct rp_buf answer = RP_BUF((size_t)64 << 20);
    snprintf(url, sizeof url, "%s/%s", liar.url, path);
    curl_easy_reset(liar.curl);
    curl_easy_setopt(liar.curl, CURLOPT_URL, url);
    curl_easy_setopt(liar.curl, CURLOPT_CUSTOMREQUEST, method);
    if (body) curl_easy_setopt(liar.curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(liar.curl, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(liar.curl, CURLOPT_WRITEDATA, &answer);
    curl_easy_setopt(liar.curl, CURLOPT_TIMEOUT, 20L);
    assert_int_equal(curl_easy_perform(liar.curl), CURLE_OK);
    curl_easy_getinfo(liar.curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) fail_msg("%s %s: %ld %s", method, path, status, rp_buf_text(&answer));
    return json_loads(rp_buf_text(&answer), 0, NULL);
}

static json_t *ask_log(const char *bucket)
{
    char path[64];
    snprintf(path, sizeof path, "_liar?bucket=%s", bucket);
    return ask_liar("GET", path, NULL);
}

static void tell(const char *lies)
{
    json_decref(ask_liar("PUT", "_liar", lies));
}

/* ---- a removal ---- */

enum level { WINDOW, ETAG, VERSION, LEVELS };
static const char *const level_names[] = { "window", "etag", "version" };

#define DOOMED      40
#define OVERWRITTEN 8 /* of them */
#define BESIDE      12
#define KEY         48

struct removal {
    enum level level;
    char bucket[32];
    struct rp_backend *backend;
    struct rp_item items[DOOMED];
    char keys[DOOMED + BESIDE][KEY];
    enum rp_outcome ends[DOOMED];
    size_t first[8], last[8];
    int rounds;
    size_t newer_lost, raced, uncovered;
    int lies_told;
};

static struct rp_error error;
static int64_t timeout_ms = 1000;

static int64_t read_text(void *ctx, void *to, size_t n, struct rp_error *err)
{
    const char **text = ctx;
    size_t part = strlen(*text) < n ? strlen(*text) : n;
    (void)err;
    memcpy(to, *text, part);
    *text += part;
    return (int64_t)part;
}

static struct rp_identity put(struct removal *t, const char *key, const char *what)
{
    char text[128];
    const char *at = text;
    struct rp_identity id;
    const struct rp_source from = { read_text, &at };
    snprintf(text, sizeof text, "%s of %s", what, key);
    int r = rp_backend_put(t->backend, key, &from, NULL, RP_PUT_REPLACE, &id, &error);
    if (r < 0) fail_msg("put: %s", error.text);
    return id;
}

/* Probed once a level: the server is the same. */
static void take_powers(struct removal *t)
{
    static struct s3_powers known[LEVELS];
    static const enum rp_level expected[] = { RP_LEVEL_WINDOW, RP_LEVEL_ETAG, RP_LEVEL_VERSION };
    struct rp_s3 *s3 = rp_s3_of(t->backend);
    struct rp_probed probed;
    if (known[t->level].probed) {
        s3->powers = known[t->level];
        return;
    }
    if (t->level == WINDOW) tell("{\"ignore_if_match\":1}");
    if (rp_backend_probe(t->backend, true, &probed, &error) < 0) fail_msg("%s", error.text);
    tell("{}");
    for (size_t i = 0; i < probed.n_findings; i++)
        print_message("  %-18s %-4s %s\n", probed.findings[i].name, probed.findings[i].holds ? "yes" : "no",
                      probed.findings[i].says);
    assert_int_equal(probed.level, expected[t->level]);
    known[t->level] = s3->powers;
}

static void open_removal(struct removal *t, enum level level)
{
    static int serial;
    *t = (struct removal){ .level = level };
    snprintf(t->bucket, sizeof t->bucket, "removal%d", serial++);
    tell("{}");
    json_decref(ask_liar("PUT", t->bucket, ""));
    if (level == VERSION) {
        char path[64];
        snprintf(path, sizeof path, "%s?versioning", t->bucket);
        json_decref(
            ask_liar("PUT", path, "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"));
    }
    const struct rp_s3_options options = { .endpoint = liar.url,
                                           .region = "",
                                           .bucket = t->bucket,
                                           .style = "path",
                                           .one_step_deletes = true,
                                           .access_key = "a",
                                           .secret_key = "s",
                                           .timeout_ms = timeout_ms,
                                           .patience_ms = 3 * timeout_ms };
    if (rp_s3_open(&options, &t->backend, &error) < 0) fail_msg("%s", error.text);
    take_powers(t);
}

static void fill(struct removal *t)
{
    for (size_t i = 0; i < DOOMED + BESIDE; i++) {
        snprintf(t->keys[i], KEY, i < DOOMED ? "d%03zu-doomed" : "d%03zu-beside", i * 17 % (DOOMED + BESIDE));
        if (t->level == VERSION) put(t, t->keys[i], "older");
        struct rp_identity id = put(t, t->keys[i], "marked");
        if (i < DOOMED) t->items[i] = (struct rp_item){ .key = t->keys[i], .identity = id };
        if (i < OVERWRITTEN) put(t, t->keys[i], "newer");
    }
}

static bool is_final(enum rp_outcome outcome)
{
    return outcome == RP_OUT_DELETED || outcome == RP_OUT_GONE || outcome == RP_OUT_CHANGED;
}

/* Asks for those that have no final answer yet, as the sweeper does. True: all have one. */
static bool remove_round(struct removal *t)
{
    struct rp_item asked[DOOMED];
    size_t from[DOOMED], n = 0, open = 0;
    for (size_t i = 0; i < DOOMED; i++)
        if (!is_final(t->ends[i])) {
            from[n] = i;
            asked[n++] = (struct rp_item){ .key = t->items[i].key, .identity = t->items[i].identity };
        }
    if (n == 0) return true;
    t->rounds++;
    int r = rp_backend_remove(t->backend, asked, n, NULL, &error);
    for (size_t i = 0; i < n; i++) {
        bool counts = r == 0 || asked[i].outcome == RP_OUT_DELETED;
        t->ends[from[i]] = counts ? asked[i].outcome : RP_OUT_UNKNOWN;
        if (!is_final(t->ends[from[i]])) open++;
    }
    return open == 0;
}

static void tally(const struct removal *t, size_t counts[8])
{
    memset(counts, 0, 8 * sizeof *counts);
    for (size_t i = 0; i < DOOMED; i++)
        counts[t->ends[i]]++;
}

/* ---- judging ---- */

static const char *text_of(const json_t *row, const char *name)
{
    return json_string_value(json_object_get(row, name));
}

static const struct rp_item *marked_as(const struct removal *t, const json_t *row, size_t *index)
{
    for (size_t i = 0; i < DOOMED; i++)
        if (strcmp(t->items[i].key, text_of(row, "key")) == 0 &&
            strcmp(t->items[i].identity.etag, text_of(row, "etag")) == 0) {
            *index = i;
            return &t->items[i];
        }
    return NULL;
}

static bool concerns(const struct removal *t, const json_t *row)
{
    return strcmp(text_of(row, "bucket"), t->bucket) == 0 && strncmp(text_of(row, "key"), RP_STORE_OWN, 10) != 0;
}

/* L1 */
static void expect_honest(const struct removal *t, const json_t *now)
{
    size_t i, at;
    json_t *row;
    json_array_foreach(json_object_get(now, "there"), i, row)
    {
        if (!concerns(t, row) || !marked_as(t, row, &at)) continue;
        if (t->ends[at] == RP_OUT_DELETED) fail_msg("'%s' is reported deleted, and is there", t->items[at].key);
    }
}

/* An upload that was overwritten is older than the marked one only where it was the first of its
 * key. */
static bool is_older(const struct removal *t, const json_t *row, const json_t *log)
{
    size_t i, at;
    json_t *put_row;
    json_array_foreach(log, i, put_row)
    {
        if (strcmp(text_of(put_row, "op"), "put") != 0 || !concerns(t, put_row)) continue;
        if (strcmp(text_of(put_row, "key"), text_of(row, "key")) != 0 || !marked_as(t, put_row, &at)) continue;
        return json_integer_value(json_object_get(row, "serial")) <
               json_integer_value(json_object_get(put_row, "serial"));
    }
    return false;
}

/* L2, L3 */
static void judge_deletions(struct removal *t, const json_t *now)
{
    size_t i, at;
    json_t *row, *log = json_object_get(now, "log");
    json_array_foreach(log, i, row)
    {
        if (!concerns(t, row)) continue;
        if (strcmp(text_of(row, "why"), "race") == 0) t->raced++;
        if (strcmp(text_of(row, "op"), "uncovered") == 0) t->uncovered++;
        if (strcmp(text_of(row, "op"), "delete") != 0 || marked_as(t, row, &at) || is_older(t, row, log)) continue;
        if (strstr(text_of(row, "key"), "beside")) fail_msg("'%s' was never to be removed", text_of(row, "key"));
        t->newer_lost++;
    }
}

static size_t count_there(const struct removal *t, const json_t *now, const char *part)
{
    size_t i, n = 0;
    json_t *row;
    json_array_foreach(json_object_get(now, "there"), i, row) if (concerns(t, row) && strstr(text_of(row, "key"), part))
        n++;
    return n;
}

/* L4 */
static void expect_finished(const struct removal *t, const json_t *now)
{
    size_t i, at;
    json_t *row;
    json_array_foreach(json_object_get(now, "there"), i, row) if (concerns(t, row) && marked_as(t, row, &at))
        fail_msg("'%s' is still there, and was reported %s", t->items[at].key, rp_outcome_name(t->ends[at]));
    assert_true(count_there(t, now, "beside") >= (t->level == VERSION ? 2 * BESIDE : BESIDE));
}

/* ---- lies ---- */

struct lie {
    const char *name, *json;
    bool newer_may_go; /* no level can promise against it, or the level's own limit is what is shown */
    bool blinds;       /* what is there is said to be absent, by the only witness there is */
    bool uncovers;     /* an older version that a complete-looking listing leaves out is not known to be there */
};

static void wait_for_late(const char *bucket)
{
    for (bool pending = true; pending;) {
        json_t *now = ask_log(bucket);
        pending = json_integer_value(json_object_get(now, "pending")) > 0;
        json_decref(now);
        const struct timespec pause = { 0, 50000000 };
        if (pending) nanosleep(&pause, NULL);
    }
}

static void told_so_far(struct removal *t, const json_t *now)
{
    const char *name;
    json_t *n;
    json_object_foreach(json_object_get(now, "told"), name, n) t->lies_told += (int)json_integer_value(n);
}

static void say_counts(const size_t counts[8])
{
    for (size_t i = 0; i < 8; i++)
        if (counts[i]) print_message(" %zu %s", counts[i], rp_outcome_name((enum rp_outcome)i));
}

static void report(const struct removal *t, const struct lie *lie, int64_t took_ms)
{
    print_message("  %-22s %-8s told %-4d first:", lie->name, level_names[t->level], t->lies_told);
    say_counts(t->first);
    print_message("; end:");
    say_counts(t->last);
    print_message(" in %d rounds", t->rounds);
    if (t->raced) print_message("; %zu newer uploads in between", t->raced);
    if (t->uncovered) print_message("; %zu older ones came to light", t->uncovered);
    if (t->newer_lost) print_message(", %zu of them lost", t->newer_lost);
    print_message(" (%lld ms)\n", (long long)took_ms);
}

static int try_lie(enum level level, const struct lie *lie)
{
    struct removal t;
    int64_t begun_ms = rp_time_boot_ms();
    open_removal(&t, level);
    fill(&t);
    tell(lie->json);
    remove_round(&t);
    json_t *lied = ask_log(t.bucket);
    told_so_far(&t, lied);
    expect_honest(&t, lied);
    json_decref(lied);
    tally(&t, t.first);
    tell("{}");
    wait_for_late(t.bucket);
    for (int i = 0; i < 8 && !remove_round(&t); i++)
        ;
    tally(&t, t.last);
    json_t *now = ask_log(t.bucket);
    judge_deletions(&t, now);
    report(&t, lie, rp_time_boot_ms() - begun_ms);
    for (size_t i = 0; i < DOOMED; i++)
        assert_true(is_final(t.ends[i]));
    expect_honest(&t, now);
    if (!lie->blinds) expect_finished(&t, now);
    if (level != WINDOW || !lie->newer_may_go) assert_int_equal(t.newer_lost, 0);
    if (!lie->uncovers) assert_int_equal(t.uncovered, 0);
    json_decref(now);
    rp_backend_close(t.backend);
    return t.lies_told;
}

/* A lie that nobody heard shows nothing. */
static void try_levels(const struct lie *lies, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int told = 0;
        for (enum level level = WINDOW; level < LEVELS; level++)
            told += try_lie(level, &lies[i]);
        assert_true(told > 0 || strcmp(lies[i].name, "none") == 0);
    }
}

static const struct lie about_deletes[] = {
    { .name = "none", .json = "{}" },
    { .name = "drop_keys", .json = "{\"drop_keys\":0.3}" },
    { .name = "drop_keys_undone", .json = "{\"drop_keys_undone\":0.3}" },
    { .name = "false_deleted", .json = "{\"false_deleted\":0.3}" },
    { .name = "false_deleted always", .json = "{\"false_deleted\":1}" },
    { .name = "key_errors", .json = "{\"key_errors\":0.4}" },
    { .name = "late", .json = "{\"late\":1,\"seconds\":0.4}" },
};
static const struct lie about_answers[] = {
    { .name = "slowdown_before", .json = "{\"slowdown_before\":0.6}" },
    { .name = "slowdown_after", .json = "{\"slowdown_after\":0.6}" },
    { .name = "error_before", .json = "{\"error_before\":0.6}" },
    { .name = "error_after deletes", .json = "{\"error_after\":1,\"on\":[\"delete\",\"multi\"]}" },
    { .name = "error_after", .json = "{\"error_after\":0.6}" },
    { .name = "slow", .json = "{\"slow\":0.8,\"seconds\":0.2}" },
    { .name = "half", .json = "{\"half\":0.5}" },
    { .name = "half of deletes", .json = "{\"half\":1,\"on\":[\"delete\",\"multi\"]}" },
    { .name = "garbage", .json = "{\"garbage\":0.6}" },
    { .name = "garbage deletes", .json = "{\"garbage\":1,\"on\":[\"multi\",\"list\",\"versions\"]}" },
    { .name = "hang", .json = "{\"hang\":1,\"seconds\":1.5,\"on\":[\"delete\",\"multi\"]}" },
};
static const struct lie about_looks[] = {
    { .name = "empty_list", .json = "{\"empty_list\":1}" },
    { .name = "cut_list", .json = "{\"cut_list\":1}" },
    { .name = "cut_list_silently", .json = "{\"cut_list_silently\":1}", .uncovers = true },
    { .name = "unordered_list", .json = "{\"unordered_list\":1}" },
    { .name = "stale_list", .json = "{\"stale_list\":1}", .newer_may_go = true },
    { .name = "stale_head", .json = "{\"stale_head\":1,\"empty_list\":1}", .newer_may_go = true },
    { .name = "absent_head", .json = "{\"absent_head\":1,\"empty_list\":1}", .blinds = true },
};
static const struct lie races[] = {
    { .name = "race", .json = "{\"race\":0.3}", .newer_may_go = true },
    { .name = "race and errors", .json = "{\"race\":0.2,\"error_after\":0.3,\"drop_keys\":0.2}", .newer_may_go = true },
};
/* Two lies that bear each other out (deleted, says the answer; absent, says the listing) cannot be
 * seen through: in two mixtures. */
#define FAILURES                                                                                                       \
    "\"drop_keys\":0.05,\"drop_keys_undone\":0.05,\"key_errors\":0.05,\"slowdown_before\":0.05,\"slowdown_after\":0."  \
    "05,"                                                                                                              \
    "\"error_before\":0.05,\"error_after\":0.05,\"slow\":0.05,\"half\":0.05,\"garbage\":0.05,\"late\":0.05,"           \
    "\"seconds\":0.2,"
static const struct lie everything[] = {
    { .name = "5 % and false deletes",
      .json = "{" FAILURES "\"false_deleted\":0.05,\"cut_list\":0.05,\"unordered_list\":0.05}" },
    { .name = "5 % and false lists",
      .json = "{" FAILURES "\"empty_list\":0.05,\"cut_list\":0.05,\"cut_list_silently\":0.05,\"unordered_list\":0.05}",
      .uncovers = true },
};

#define TRY_ALL(lies) try_levels(lies, sizeof lies / sizeof *lies)

static void what_is_said_about_a_delete_is_checked(void **state)
{
    (void)state;
    TRY_ALL(about_deletes);
}

static void answers_that_fail_after_the_deed_are_asked_about(void **state)
{
    (void)state;
    TRY_ALL(about_answers);
}

static void a_listing_that_leaves_out_makes_nothing_gone(void **state)
{
    (void)state;
    TRY_ALL(about_looks);
}

static void a_newer_upload_wins_where_that_is_promised(void **state)
{
    (void)state;
    TRY_ALL(races);
}

static void a_little_of_everything_ends_well(void **state)
{
    (void)state;
    for (int times = 0; times < 2; times++)
        TRY_ALL(everything);
}

/* ---- versions ---- */

static void more_versions_than_are_held_at_a_time_go_in_several_passes(void **state)
{
    struct removal t;
    char path[96];
    (void)state;
    timeout_ms = 20000; /* so much at once takes the liar a while */
    open_removal(&t, VERSION);
    timeout_ms = 1000;
    snprintf(path, sizeof path, "_make?bucket=%s&key=k&n=5000", t.bucket);
    json_decref(ask_liar("PUT", path, ""));
    struct rp_item item = { .key = "k", .identity = put(&t, "k", "marked") };
    put(&t, "k", "newer");
    if (rp_backend_remove(t.backend, &item, 1, NULL, &error) < 0) fail_msg("%s", error.text);
    if (item.outcome != RP_OUT_DELETED) fail_msg("%s: %s", rp_outcome_name(item.outcome), item.note);
    json_t *now = ask_log(t.bucket);
    assert_int_equal(count_there(&t, now, "k"), 1);
    json_decref(now);
    rp_backend_close(t.backend);
}

/* ---- conditions that hold ---- */

/* What a look at the target would have seen a moment too early. */
static void a_copy_keeps_an_upload_that_took_its_target(void **state)
{
    struct removal t;
    char etag[RP_ETAG_MAX];
    (void)state;
    open_removal(&t, ETAG);
    assert_true(rp_s3_powers(rp_s3_of(t.backend)).copy_new);
    struct rp_identity from = put(&t, "from", "kept"), taken = put(&t, "taken", "an upload");
    assert_int_equal(rp_s3_copy_bytes(rp_s3_of(t.backend), "from", &from, "taken", NULL, etag, &error), RP_EEXISTS);
    struct rp_item item = { .key = "taken" };
    if (rp_backend_stat(t.backend, &item, 1, &error) < 0) fail_msg("%s", error.text);
    assert_true(rp_identity_equal(&item.identity, &taken));
    if (rp_s3_copy_bytes(rp_s3_of(t.backend), "from", &from, "free", NULL, etag, &error) < 0)
        fail_msg("%s", error.text);
    from.etag[0] = from.etag[0] == '0' ? '1' : '0'; /* the other 412 */
    assert_int_equal(rp_s3_copy_bytes(rp_s3_of(t.backend), "from", &from, "free too", NULL, etag, &error), RP_ECHANGED);
    rp_backend_close(t.backend);
}

static int put_over(struct removal *t, const char *key, const char *text, struct rp_identity *over)
{
    const struct rp_source from = { read_text, &text };
    return rp_backend_put(t->backend, key, &from, NULL, RP_PUT_OVER, over, &error);
}

/* Where the probe saw no condition hold: a look before, and a request that is not repeated. */
static void a_put_over_without_a_condition_looks_first(void **state)
{
    struct removal t;
    (void)state;
    open_removal(&t, WINDOW);
    assert_false(rp_s3_powers(rp_s3_of(t.backend)).put_if_match);
    struct rp_identity first = put(&t, "k", "first"), over = first;
    tell("{\"ignore_if_match\":1}");
    if (put_over(&t, "k", "second", &over) < 0) fail_msg("%s", error.text);
    assert_int_equal(put_over(&t, "k", "third", &first), RP_ECHANGED);
    assert_int_equal(put_over(&t, "none", "third", &first), RP_ENOTFOUND);
    struct rp_item item = { .key = "k" };
    if (rp_backend_stat(t.backend, &item, 1, &error) < 0) fail_msg("%s", error.text);
    assert_true(rp_identity_equal(&item.identity, &over));
    tell("{}");
    rp_backend_close(t.backend);
}

/* The answer to the first attempt is lost, the second is told 412: what stands there tells whose it
 * is. */
static void a_put_over_whose_answer_was_lost_is_found(void **state)
{
    struct removal t;
    char text[32];
    (void)state;
    open_removal(&t, ETAG);
    struct rp_identity over = put(&t, "k", "first");
    int unknown = 0;
    for (int i = 0; i < 20; i++) {
        snprintf(text, sizeof text, "round %d", i);
        tell("{\"error_after\":0.5}");
        int r = put_over(&t, "k", text, &over);
        tell("{}");
        if (r < 0 && r != RP_EUNKNOWN) fail_msg("round %d: %s", i, error.text);
        struct rp_item item = { .key = "k" };
        if (rp_backend_stat(t.backend, &item, 1, &error) < 0) fail_msg("%s", error.text);
        if (r == 0) assert_true(rp_identity_equal(&item.identity, &over));
        unknown += r < 0; /* every look at it failed as well */
        over = item.identity;
    }
    assert_in_range(unknown, 0, 5);
    rp_backend_close(t.backend);
}

/* ---- the probe ---- */

struct found_out {
    const char *json;
    enum rp_level level;
    bool multi_delete, multi_etag, list_order, list_current;
};

static void a_probe_finds_the_lie_out(void **state)
{
    static const struct found_out cases[] = {
        { "{}", RP_LEVEL_ETAG, true, true, true, true },
        { "{\"ignore_if_match\":1}", RP_LEVEL_WINDOW, true, false, true, true },
        { "{\"say_412_and_delete\":1}", RP_LEVEL_WINDOW, true, true, true, false },
        { "{\"refuse_and_delete\":1}", RP_LEVEL_WINDOW, true, true, true, true },
        { "{\"refuse_silently\":1}", RP_LEVEL_WINDOW, true, true, true, true },
        { "{\"drop_keys\":1}", RP_LEVEL_ETAG, false, false, true, true },
        { "{\"unordered_list\":1}", RP_LEVEL_ETAG, true, true, false, true },
        { "{\"stale_list\":1}", RP_LEVEL_ETAG, true, true, true, false },
        { "{\"empty_list\":1}", RP_LEVEL_ETAG, true, true, false, false },
        { "{\"cut_list_silently\":1}", RP_LEVEL_ETAG, true, true, false, false },
        { "{\"false_deleted\":1}", RP_LEVEL_WINDOW, false, false, true, false },
        { "{\"two_steps\":1}", RP_LEVEL_WINDOW, true, true, true, true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct removal t;
        struct rp_probed probed;
        open_removal(&t, ETAG);
        tell(cases[i].json);
        if (rp_backend_probe(t.backend, true, &probed, &error) < 0) fail_msg("%s: %s", cases[i].json, error.text);
        const struct s3_powers powers = rp_s3_powers(rp_s3_of(t.backend));
        print_message("  %-24s %-7s multi %d, by etag %d, order %d, current %d\n", cases[i].json,
                      rp_level_name(probed.level), powers.multi_delete, powers.multi_etag, powers.list_order,
                      powers.list_current);
        assert_int_equal(probed.level, cases[i].level);
        assert_int_equal(powers.multi_delete, cases[i].multi_delete);
        assert_int_equal(powers.multi_etag, cases[i].multi_etag);
        assert_int_equal(powers.list_order, cases[i].list_order);
        assert_int_equal(powers.list_current, cases[i].list_current);
        rp_backend_close(t.backend);
    }
}

/* Versions are kept, but none can be deleted by its id: what is found is what is answered. */
static void versions_that_cannot_go_are_no_level(void **state)
{
    struct removal t;
    struct rp_probed probed;
    (void)state;
    open_removal(&t, VERSION);
    tell("{\"say_412_and_delete\":1}");
    if (rp_backend_probe(t.backend, true, &probed, &error) < 0) fail_msg("%s", error.text);
    assert_int_equal(probed.level, RP_LEVEL_WINDOW);
    assert_string_equal(probed.findings[0].name, "versions");
    assert_false(probed.findings[0].holds);
    rp_backend_close(t.backend);
}

/* The liar looks at no signature and at no end: `doctor` shows what is found out about that. */
static void a_probe_says_that_urls_that_have_ended_are_served(void **state)
{
    struct removal t;
    struct rp_probed probed;
    size_t i = 0;
    (void)state;
    open_removal(&t, ETAG);
    if (rp_backend_probe(t.backend, true, &probed, &error) < 0) fail_msg("%s", error.text);
    while (i < probed.n_findings && strcmp(probed.findings[i].name, RP_FINDING_SIGNED_URLS) != 0)
        i++;
    assert_in_range(i, 0, probed.n_findings - 1);
    assert_false(probed.findings[i].holds);
    assert_non_null(strstr(probed.findings[i].says, "one that has ended is served (200)"));
    assert_false(rp_s3_powers(rp_s3_of(t.backend)).presign_ends);
    rp_backend_close(t.backend);
}

/* One after the other it looks right, and so it does in a race: nobody knows the server. */
static void a_server_that_nobody_vouches_for_is_a_window(void **state)
{
    struct removal t;
    struct rp_probed probed;
    (void)state;
    open_removal(&t, ETAG);
    rp_s3_of(t.backend)->options.one_step_deletes = false;
    if (rp_backend_probe(t.backend, true, &probed, &error) < 0) fail_msg("%s", error.text);
    assert_int_equal(probed.level, RP_LEVEL_WINDOW);
    assert_true(rp_s3_powers(rp_s3_of(t.backend)).single_if_match); /* and is used all the same */
    rp_backend_close(t.backend);
}

/* Nothing follows from the order there: what the probe made goes. */
static void canaries_go_where_markers_are_listed_after_versions(void **state)
{
    struct removal t;
    struct rp_probed probed;
    (void)state;
    open_removal(&t, VERSION);
    tell("{\"markers_last\":1}");
    if (rp_backend_probe(t.backend, true, &probed, &error) < 0) fail_msg("%s", error.text);
    json_t *told = ask_log(t.bucket);
    assert_int_equal(json_array_size(json_object_get(told, "there")), 0);
    json_decref(told);
    tell("{}");
    rp_backend_close(t.backend);
}

/* Whatever fails half-way: no level is made up, and what was made goes with the next probe that is
 * let. */
static void a_probe_among_failures_claims_no_more_than_it_saw(void **state)
{
    (void)state;
    for (int times = 0; times < 6; times++) {
        struct removal t;
        struct rp_probed probed = { 0 };
        open_removal(&t, ETAG);
        tell("{\"ignore_if_match\":1,\"error_before\":0.1,\"error_after\":0.1,\"half\":0.1,\"garbage\":0.1}");
        int r = rp_backend_probe(t.backend, true, &probed, &error);
        print_message("  %s\n", r < 0 ? error.text : rp_level_name(probed.level));
        if (r == 0) assert_int_equal(probed.level, RP_LEVEL_WINDOW);
        rp_backend_close(t.backend);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_about_a_delete_is_checked),
        cmocka_unit_test(answers_that_fail_after_the_deed_are_asked_about),
        cmocka_unit_test(a_listing_that_leaves_out_makes_nothing_gone),
        cmocka_unit_test(a_newer_upload_wins_where_that_is_promised),
        cmocka_unit_test(a_little_of_everything_ends_well),
        cmocka_unit_test(more_versions_than_are_held_at_a_time_go_in_several_passes),
        cmocka_unit_test(a_copy_keeps_an_upload_that_took_its_target),
        cmocka_unit_test(a_put_over_without_a_condition_looks_first),
        cmocka_unit_test(a_put_over_whose_answer_was_lost_is_found),
        cmocka_unit_test(a_probe_finds_the_lie_out),
        cmocka_unit_test(versions_that_cannot_go_are_no_level),
        cmocka_unit_test(a_probe_says_that_urls_that_have_ended_are_served),
        cmocka_unit_test(a_server_that_nobody_vouches_for_is_a_window),
        cmocka_unit_test(canaries_go_where_markers_are_listed_after_versions),
        cmocka_unit_test(a_probe_among_failures_claims_no_more_than_it_saw),
    };
    curl_global_init(CURL_GLOBAL_DEFAULT);
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, liar_start, liar_stop);
}
