/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of files over HTTP (http/content.h) when something is in their way: stores that fail, files
 * that change while their bytes are under way, clients and servers that stop in the middle. What
 * goes well is in scenario/bytes_in_and_out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/id.h"
#include "base/text/json.h"
#include "http/content/signed_url.h"
#include "lib/http.h"

#define BODY_BYTES  100000
#define CONNECTIONS 32
#define SLOTS       (CONNECTIONS / 4)
#define SHARE       (SLOTS / 2) /* of one tenant */

static struct served s;
static char body[BODY_BYTES];

/* The one call of the store that fails, and how. */
static struct {
    const char *_Atomic call;
    atomic_int before, after;
    atomic_bool tear; /* it does not fail, but another program writes into the object before it */
} fault;

static void write_into(const char *key)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", s.w.root, key);
    FILE *file = fopen(path, "r+");
    if (file == NULL) return;
    (void)fputs("changed", file);
    (void)fclose(file);
}

static int fault_before(void *ctx, const char *call, const char *key, struct rp_error *err)
{
    const char *failing = atomic_load(&fault.call);
    (void)ctx;
    if (!failing || strcmp(call, failing) != 0) return 0;
    if (fault.tear) write_into(key);
    return fault.before ? rp_error_set(err, fault.before, "as planned") : 0;
}

static int fault_after(void *ctx, const char *call, const char *key, struct rp_error *err)
{
    const char *failing = atomic_load(&fault.call);
    (void)ctx, (void)key;
    return failing && fault.after && strcmp(call, failing) == 0 ? rp_error_set(err, fault.after, "as planned") : 0;
}

static void few_connections(struct served *served)
{
    served->config.http_connections_max = CONNECTIONS;
}

static int set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (char)('a' + i * 7 % 23);
    atomic_store(&fault.call, NULL);
    fault.tear = false;
    served_make(&s, DBS_SQLITE_FILE, few_connections);
    s.w.before = fault_before;
    s.w.after = fault_after;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    served_drop(&s);
    return 0;
}

#define until(condition)                                                                                               \
    do {                                                                                                               \
        const struct timespec moment_ = { .tv_nsec = 1000000 };                                                        \
        while (!(condition))                                                                                           \
            nanosleep(&moment_, NULL);                                                                                 \
    } while (0)

/* ---- one file ---- */

struct begun {
    char id[RP_ID_TEXT];
    char key[128];
    char put[512];                          /* path and query of its upload */
    char content[64], confirm[64], one[64]; /* paths */
};

static struct begun begin_upload(const char *name)
{
    struct begun b;
    char request[256];
    (void)snprintf(request, sizeof request, "{\"name\":\"%s\",\"size\":%d}", name, BODY_BYTES);
    struct answer a = http_call(&s, &(struct call){ "POST", "/v1/files", .token = s.admin, .body = request });
    assert_int_equal(a.status, 201);
    (void)snprintf(b.id, sizeof b.id, "%s", rp_json_get_text(a.json, "id", ""));
    (void)snprintf(b.key, sizeof b.key, "%s", rp_json_get_text(a.json, "key", ""));
    const char *url = rp_json_get_text(json_object_get(a.json, "upload"), "url", "");
    const char *path = strstr(url, "/v1/uploads/");
    assert_non_null(path);
    (void)snprintf(b.put, sizeof b.put, "%s", path);
    (void)snprintf(b.content, sizeof b.content, "/v1/files/%s/content", b.id);
    (void)snprintf(b.confirm, sizeof b.confirm, "/v1/files/%s/confirm", b.id);
    (void)snprintf(b.one, sizeof b.one, "/v1/files/%s", b.id);
    answer_done(&a);
    return b;
}

/* An upload by a client that sends its body when it is asked to, as an answer before the body may
 * be lost otherwise. */
static long put(const struct begun *b, char answer[2048])
{
    char head[768];
    int fd = http_connect(&s);
    int n = snprintf(
        head, sizeof head,
        "PUT %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", b->put,
        BODY_BYTES);
    http_write(fd, head, (size_t)n);
    size_t got = http_read(fd, answer, 2048, strlen("HTTP/1.1 100 Continue\r\n\r\n"));
    if (strncmp(answer, "HTTP/1.1 100", 12) == 0) {
        http_write(fd, body, sizeof body);
        got = 0;
    }
    http_read(fd, answer + got, 2048 - got, 2048);
    close(fd);
    return strtol(answer + strlen("HTTP/1.1 "), NULL, 10);
}

static void expect_put_at(const struct begun *b, long status, const char *code, int line)
{
    char answer[2048], want[64];
    long found = put(b, answer);
    (void)snprintf(want, sizeof want, "\"code\":\"%s\"", code);
    if (found == status && (code[0] == '\0' || strstr(answer, want))) return;
    print_error("line %d: expected %ld %s, found %ld: %s\n", line, status, code, found, answer);
    fail();
}
#define expect_put(b, status, code) expect_put_at(b, status, code, __LINE__)

static struct call download(const struct begun *b)
{
    return (struct call){ "GET", b->content, .token = s.admin };
}

static struct begun live_file(const char *name)
{
    struct begun b = begin_upload(name);
    expect_put(&b, 200, "");
    expect(&s, (&(struct call){ "POST", b.confirm, .token = s.admin }), 200, NULL);
    return b;
}

static void expect_whole(const struct call *call)
{
    struct answer a = http_call(&s, call);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.n, sizeof body);
    assert_memory_equal(a.body, body, sizeof body);
    answer_done(&a);
}

static size_t left_over(void)
{
    char path[160];
    size_t n = 0;
    (void)snprintf(path, sizeof path, "%s/.reprieve/tmp", s.w.root);
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir && (e = readdir(dir));)
        n += e->d_name[0] != '.' && strcmp(e->d_name, "lock") != 0;
    if (dir) closedir(dir);
    return n;
}

static void nothing_stored(const struct begun *b)
{
    assert_false(world_exists(&s.w, b->key));
    assert_int_equal(left_over(), 0);
}

/* Headers and the first half of an upload, by hand. */
static int half_upload(const struct begun *b)
{
    char head[768];
    int fd = http_connect(&s);
    int n = snprintf(head, sizeof head, "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", b->put, BODY_BYTES);
    http_write(fd, head, (size_t)n);
    http_write(fd, body, BODY_BYTES / 2);
    return fd;
}

/* ---- stores that fail ---- */

/* More often than there are places for uploads: each must have been given back. */
static void a_store_that_fails_in_an_upload_is_said_and_leaves_nothing(void **state)
{
    static const char *const calls[] = { "put_open", "put_write", "put_commit" };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct begun b = begin_upload(calls[i]);
        fault.before = RP_EFULL;
        fault.after = 0;
        atomic_store(&fault.call, calls[i]);
        for (int round = 0; round < 2 * SLOTS; round++) {
            expect_put(&b, 507, "full");
            nothing_stored(&b);
        }
        atomic_store(&fault.call, NULL);
        expect_put(&b, 200, "");
        assert_int_equal(left_over(), 0);
    }
}

static void an_upload_whose_end_is_unknown_can_be_confirmed(void **state)
{
    struct begun b = begin_upload("unknown");
    struct call get = download(&b);
    (void)state;
    fault.before = 0;
    fault.after = RP_EUNKNOWN;
    atomic_store(&fault.call, "put_commit");
    expect_put(&b, 503, "unknown");
    atomic_store(&fault.call, NULL);
    expect_put(&b, 409, "exists");
    expect(&s, (&(struct call){ "POST", b.confirm, .token = s.admin }), 200, NULL);
    expect_whole(&get);
}

static void a_store_that_fails_in_a_download_is_said_or_breaks_it_off(void **state)
{
    struct begun b = live_file("f");
    struct call get = download(&b);
    (void)state;
    fault.before = RP_EUNAVAILABLE;
    fault.after = 0;
    atomic_store(&fault.call, "get_open");
    for (int round = 0; round < 2 * SLOTS; round++)
        expect(&s, &get, 503, "unavailable");
    atomic_store(&fault.call, "get_read");
    for (int round = 0; round < 2 * SLOTS; round++) {
        struct answer a = http_call(&s, &get);
        assert_int_equal(a.status, 0); /* curl: the transfer ended before its length */
        assert_true(a.n < sizeof body);
        answer_done(&a);
    }
    atomic_store(&fault.call, NULL);
    expect_whole(&get);
}

static void a_store_that_is_closed_or_cannot_stream_says_so(void **state)
{
    struct begun b = begin_upload("closed"), live = live_file("live");
    struct call get = download(&live);
    struct rp_backend *backend = s.w.store.backend;
    struct rp_backend_ops bare = *backend->ops;
    struct rp_backend without = { .ops = &bare };
    (void)state;
    bare.put_open = NULL;
    s.w.store.backend = NULL;
    rp_error_set(&s.w.store.closed, RP_EUNAVAILABLE, "not mounted");
    expect_put(&b, 503, "unavailable");
    expect(&s, &get, 503, "unavailable");
    s.w.store.backend = &without;
    expect_put(&b, 503, "unavailable");
    expect(&s, &get, 503, "unavailable");
    s.w.store.backend = backend;
    expect_put(&b, 200, "");
    expect_whole(&get);
}

static void a_live_file_without_its_object_is_damage(void **state)
{
    struct begun b = live_file("lost");
    struct call get = download(&b);
    (void)state;
    world_remove(&s.w, b.key);
    struct answer a = http_call(&s, &get);
    assert_int_equal(a.status, 500);
    assert_string_equal(rp_json_get_text(a.json, "code", ""), "corrupt");
    assert_null(strstr(a.body, b.key));
    answer_done(&a);
}

static void an_object_that_is_written_into_is_not_given_out_half_and_half(void **state)
{
    struct begun b = live_file("torn");
    struct call get = download(&b);
    (void)state;
    fault.before = fault.after = 0;
    fault.tear = true;
    atomic_store(&fault.call, "get_read");
    struct answer a = http_call(&s, &get);
    assert_int_equal(a.status, 0);
    assert_int_equal(a.n, 0);
    answer_done(&a);
}

/* ---- files that change meanwhile ---- */

static void an_upload_that_expires_under_way_stores_nothing(void **state)
{
    char answer[1024];
    struct begun b = begin_upload("late");
    (void)state;
    int fd = half_upload(&b);
    until(left_over() == 1);
    world_script(&s.w, "UPDATE file SET status = %d WHERE name = 'late'", RP_FILE_EXPIRED);
    http_write(fd, body + BODY_BYTES / 2, BODY_BYTES / 2);
    http_read(fd, answer, sizeof answer, 12);
    assert_memory_equal(answer, "HTTP/1.1 410", 12);
    close(fd);
    nothing_stored(&b);
}

static void only_a_live_file_is_given_out(void **state)
{
    static const struct {
        enum rp_status status;
        long http;
        const char *code;
    } wanted[] = {
        { RP_FILE_PENDING, 409, "not_live" },  { RP_FILE_SCANNING, 409, "not_live" }, { RP_FILE_LIVE, 200, "" },
        { RP_FILE_DELETED, 404, "not_found" }, { RP_FILE_PURGED, 410, "gone" },       { RP_FILE_EXPIRED, 410, "gone" },
    };
    struct begun b = live_file("f");
    struct call get = download(&b);
    (void)state;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        world_script(&s.w, "UPDATE file SET status = %d", wanted[i].status);
        expect(&s, &get, wanted[i].http, wanted[i].code);
    }
}

static void what_is_being_read_is_read_to_its_end(void **state)
{
    struct begun b = live_file("read");
    char head[256], *got = malloc(2 * BODY_BYTES);
    (void)state;
    int fd = http_connect(&s);
    int n = snprintf(head, sizeof head,
                     "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n", b.content,
                     s.admin);
    http_write(fd, head, (size_t)n);
    size_t first = http_read(fd, got, 2 * BODY_BYTES, 100);
    world_remove(&s.w, b.key);
    size_t all = first + http_read(fd, got + first, 2 * BODY_BYTES - first, 2 * BODY_BYTES);
    close(fd);
    assert_true(all > BODY_BYTES);
    assert_memory_equal(got + all - BODY_BYTES, body, BODY_BYTES);
    free(got);
}

struct rival {
    const struct begun *b;
    long status;
};

static void *put_it(void *ctx)
{
    struct rival *r = ctx;
    char answer[2048];
    r->status = put(r->b, answer);
    return NULL;
}

static void of_several_uploads_of_one_file_exactly_one_wins(void **state)
{
    (void)state;
    for (int round = 0; round < 10; round++) {
        char name[16];
        (void)snprintf(name, sizeof name, "r%d", round);
        struct begun b = begin_upload(name);
        struct rival rivals[SHARE];
        pthread_t threads[SHARE];
        int won = 0;
        for (size_t i = 0; i < SHARE; i++) {
            rivals[i] = (struct rival){ .b = &b };
            assert_int_equal(pthread_create(&threads[i], NULL, put_it, &rivals[i]), 0);
        }
        for (size_t i = 0; i < SHARE; i++) {
            pthread_join(threads[i], NULL);
            won += rivals[i].status == 200;
            if (rivals[i].status != 200) assert_int_equal(rivals[i].status, 409);
        }
        assert_int_equal(won, 1);
        assert_int_equal(left_over(), 0);
    }
}

/* ---- clients and servers that stop ---- */

static void clients_that_leave_give_their_store_back(void **state)
{
    struct begun b = begin_upload("left");
    (void)state;
    for (int round = 0; round < 3 * SLOTS; round++) {
        int fd = half_upload(&b);
        until(left_over() == 1);
        close(fd);
        until(left_over() == 0);
    }
    nothing_stored(&b);
    expect_put(&b, 200, "");
}

static void uploads_are_bounded_and_others_are_served(void **state)
{
    struct begun b = begin_upload("many"), live = live_file("live");
    struct call get = download(&live);
    int fds[SHARE];
    (void)state;
    for (size_t i = 0; i < SHARE; i++)
        fds[i] = half_upload(&b);
    until(left_over() == SHARE);
    expect_put(&b, 503, "busy");
    expect_whole(&get);
    for (size_t i = 0; i < SHARE; i++)
        close(fds[i]);
    until(left_over() == 0);
    expect_put(&b, 200, "");
}

static void a_server_that_stops_gives_up_what_is_not_whole(void **state)
{
    struct begun b = begin_upload("stopped");
    (void)state;
    int fd = half_upload(&b);
    until(left_over() == 1);
    served_stop(&s, 10);
    nothing_stored(&b);
    close(fd);
}

/* ---- signed URLs ---- */

static const char *const url_keys[] = { "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
                                        "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff" };

/* Path and query of a signed URL for this file as it stands in the catalog. */
static const char *signed_path(const struct begun *b, const char *method, const char *key, int64_t lasts_ms)
{
    struct rp_error err = { 0 };
    struct rp_file file;
    enum rp_id_kind kind;
    int64_t id;
    const char *url;
    assert_true(rp_id_parse(b->id, &kind, &id));
    ok(rp_file_get(s.w.catalog->db, id, &s.w.arena, &file, &err));
    struct rp_grant grant = rp_grant_of(method, &file, "main", rp_clock_now_ms(NULL) + lasts_ms);
    ok(rp_signed_url(&grant, "", key, &s.w.arena, &url, &err));
    return url;
}

static struct call bare(const char *method, const char *path)
{
    return (struct call){ .method = method, .path = path };
}

static void refused(const char *path, long status, const char *code)
{
    struct call get = bare("GET", path);
    expect(&s, &get, status, code);
}

static void a_signed_url_gives_the_bytes_without_a_token(void **state)
{
    struct begun b = live_file("shared"), other = live_file("other");
    char moved[512];
    (void)state;
    const char *path = signed_path(&b, "GET", url_keys[0], 60000);
    struct call get = bare("GET", path), head = bare("HEAD", path);
    expect_whole(&get);
    get.header = "Range: bytes=10-19";
    struct answer a = http_call(&s, &get);
    assert_int_equal(a.status, 206);
    assert_int_equal(a.n, 10);
    assert_memory_equal(a.body, body + 10, 10);
    answer_done(&a);
    expect(&s, &head, 200, NULL);
    (void)snprintf(moved, sizeof moved, "/v1/content/%s%s", other.id, strchr(path, '?'));
    refused(moved, 403, "forbidden");
    refused(signed_path(&b, "GET", url_keys[1], 60000), 403, "forbidden");
    refused(signed_path(&b, "GET", url_keys[0], -1), 410, "expired");
    (void)snprintf(moved, sizeof moved, "/v1/content/%s%s", b.id,
                   strchr(signed_path(&b, "PUT", url_keys[0], 60000), '?'));
    refused(moved, 403, "forbidden");
    expect(&s, (&(struct call){ "DELETE", b.one, .token = s.admin }), 202, NULL);
    refused(path, 404, "not_found");
}

static void a_file_that_is_not_there_is_answered_like_a_wrong_signature(void **state)
{
    struct begun b = live_file("there");
    char none[512], wrong[512];
    (void)state;
    const char *path = signed_path(&b, "GET", url_keys[1], 60000);
    (void)snprintf(wrong, sizeof wrong, "%s", path);
    (void)snprintf(none, sizeof none, "/v1/content/fil_0000000000001%s", strchr(path, '?'));
    struct call first = bare("GET", wrong), second = bare("GET", none);
    struct answer a = http_call(&s, &first), b2 = http_call(&s, &second);
    assert_int_equal(a.status, 403);
    assert_int_equal(b2.status, 403);
    assert_string_equal(a.body, b2.body);
    answer_done(&a);
    answer_done(&b2);
}

/* ---- a store that gives out URLs of its own ---- */

/* What it was asked to sign last; the URL says it, and which one it is. */
static struct {
    struct rp_backend_ops ops;
    const struct rp_backend_ops *plain;
    int signed_urls, fails;
    struct rp_presign last;
    bool had_checksum;
    char type[64], disposition[128];
} direct;

static int sign_direct(struct rp_backend *backend, const struct rp_presign *what, struct rp_arena *arena,
                       struct rp_presigned *out, struct rp_error *err)
{
    (void)backend;
    if (direct.fails) return rp_error_set(err, direct.fails, "no key to sign with");
    direct.last = *what;
    direct.had_checksum = what->checksum != NULL;
    (void)snprintf(direct.type, sizeof direct.type, "%s", what->content_type);
    (void)snprintf(direct.disposition, sizeof direct.disposition, "%s", what->disposition ? what->disposition : "");
    *out = (struct rp_presigned){ .url = rp_arena_fmt(arena, "http://store.test/%s?%s&n=%d", what->key, what->method,
                                                      ++direct.signed_urls),
                                  .headers = { { "if-none-match", "*" }, { "x-odd", "a \"b\"" } },
                                  .n_headers = 2 };
    return 0;
}

static void go_direct(void)
{
    direct.plain = s.w.store.backend->ops;
    direct.ops = *direct.plain;
    direct.ops.presign = sign_direct;
    direct.signed_urls = direct.fails = 0;
    s.w.store.backend->ops = &direct.ops;
}

static const char direct_request[] = "{\"name\":\"d\",\"size\":7,\"content_type\":\"image/png\",\"checksum_sha256\":"
                                     "\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"}";

static struct answer begin_direct(const char *key)
{
    struct answer a =
        http_call(&s, &(struct call){ "POST", "/v1/files", .token = s.admin, .body = direct_request, .key = key });
    assert_int_equal(a.status, 201);
    return a;
}

static const char *target(const struct answer *a, const char *name)
{
    return rp_json_get_text(json_object_get(a->json, "upload"), name, "");
}

static void an_upload_to_a_store_that_signs_goes_to_that_store(void **state)
{
    char want[256], time[RP_TIME_TEXT];
    (void)state;
    go_direct();
    struct answer a = begin_direct(NULL);
    (void)snprintf(want, sizeof want, "http://store.test/%s?PUT&n=2", rp_json_get_text(a.json, "key", ""));
    assert_string_equal(target(&a, "url"), want);
    assert_string_equal(target(&a, "method"), "PUT");
    const json_t *headers = json_object_get(json_object_get(a.json, "upload"), "headers");
    assert_int_equal(json_object_size(headers), 2);
    assert_string_equal(rp_json_get_text(headers, "If-None-Match", ""), "*");
    assert_string_equal(rp_json_get_text(headers, "x-odd", ""), "a \"b\"");
    assert_string_equal(target(&a, "expires_at"), rp_time_format(direct.last.ends_at_ms, time));
    assert_true(direct.last.ends_at_ms > direct.last.now_ms);
    assert_int_equal(direct.last.size_bytes, 7);
    assert_string_equal(direct.type, "image/png");
    assert_true(direct.had_checksum);
    answer_done(&a);
}

static void a_replayed_answer_is_signed_anew_and_keeps_its_end(void **state)
{
    char id[RP_ID_TEXT];
    (void)state;
    go_direct();
    struct answer a = begin_direct("again"), b = begin_direct("again");
    assert_string_equal(rp_json_get_text(a.json, "id", ""), rp_json_get_text(b.json, "id", "?"));
    assert_string_not_equal(target(&a, "url"), target(&b, "url"));
    assert_string_equal(target(&a, "expires_at"), target(&b, "expires_at"));
    assert_int_equal(direct.last.size_bytes, 7);
    (void)snprintf(id, sizeof id, "%s", rp_json_get_text(a.json, "id", ""));
    answer_done(&a);
    answer_done(&b);
    direct.fails = RP_EUNAVAILABLE; /* nobody can sign: a repetition heals it */
    expect(&s, (&(struct call){ "POST", "/v1/files", .token = s.admin, .body = direct_request, .key = "again" }), 503,
           "unavailable");
    direct.fails = 0;
    struct answer c = begin_direct("again");
    assert_string_equal(rp_json_get_text(c.json, "id", ""), id);
    answer_done(&c);
}

static void what_cannot_be_signed_reserves_nothing(void **state)
{
    static const char request[] = "{\"name\":\"d\",\"size\":7}";
    struct call post = { "POST", "/v1/files", .token = s.admin, .body = request };
    (void)state;
    go_direct();
    direct.fails = RP_ETOOBIG;
    expect(&s, &post, 413, "too_big");
    assert_int_equal(world_number(&s.w, "SELECT count(*) FROM file"), 0);
    assert_int_equal(world_number(&s.w, "SELECT sum(reserved_bytes) FROM tenant"), 0);
    direct.fails = 0;
    expect(&s, &post, 201, NULL);
}

static void bytes_that_come_to_the_daemon_all_the_same_are_told_where_they_belong(void **state)
{
    struct begun b = begin_upload("moved");
    char answer[2048], want[256];
    (void)state;
    go_direct();
    assert_int_equal(put(&b, answer), 409);
    assert_non_null(strstr(answer, "\"code\":\"elsewhere\""));
    (void)snprintf(want, sizeof want, "\"url\":\"http://store.test/%s?PUT&n=1\"", b.key);
    assert_non_null(strstr(answer, want));
    nothing_stored(&b);
    (void)snprintf(strrchr(b.put, '=') + 1, 65, "%064d", 0);
    expect_put(&b, 403, "forbidden"); /* who has no right is told nothing */
}

static void expect_redirect(const struct call *call, const char *key, const char *method)
{
    char found[256], want[256];
    struct answer a = http_call(&s, call);
    assert_int_equal(a.status, 302);
    (void)snprintf(want, sizeof want, "http://store.test/%s?%s&n=%d", key, method, direct.signed_urls);
    assert_string_equal(answer_header(&a, "Location", found), want);
    assert_string_equal(answer_header(&a, "Cache-Control", found), "no-store");
    assert_int_equal(a.n, 0);
    assert_int_equal(direct.last.ends_at_ms - direct.last.now_ms, 5 * RP_MINUTE_MS);
    answer_done(&a);
}

static void content_of_a_store_that_signs_is_a_redirect(void **state)
{
    struct begun b = live_file("photos/cat \xc3\xa9.png"), pending = begin_upload("pending");
    struct call get = download(&b), head = get, early = download(&pending);
    (void)state;
    const char *path = signed_path(&b, "GET", url_keys[0], 60000);
    struct call shared = bare("GET", path);
    head.method = "HEAD";
    go_direct();
    expect_redirect(&get, b.key, "GET");
    assert_string_equal(direct.type, "application/octet-stream");
    assert_non_null(strstr(direct.disposition, "attachment; filename="));
    expect_redirect(&head, b.key, "HEAD");
    expect_redirect(&shared, b.key, "GET");
    expect(&s, &early, 409, "not_live");
    direct.fails = RP_EUNAVAILABLE;
    expect(&s, &get, 503, "unavailable");
    direct.fails = 0;
    expect(&s, (&(struct call){ "DELETE", b.one, .token = s.admin }), 202, NULL);
    expect(&s, &get, 404, "not_found");
    expect(&s, &shared, 404, "not_found");
    assert_int_equal(direct.signed_urls, 3);
}

#define SERVED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(a_store_that_fails_in_an_upload_is_said_and_leaves_nothing),
        SERVED(an_upload_whose_end_is_unknown_can_be_confirmed),
        SERVED(a_store_that_fails_in_a_download_is_said_or_breaks_it_off),
        SERVED(a_store_that_is_closed_or_cannot_stream_says_so),
        SERVED(a_live_file_without_its_object_is_damage),
        SERVED(an_object_that_is_written_into_is_not_given_out_half_and_half),
        SERVED(an_upload_that_expires_under_way_stores_nothing),
        SERVED(only_a_live_file_is_given_out),
        SERVED(what_is_being_read_is_read_to_its_end),
        SERVED(of_several_uploads_of_one_file_exactly_one_wins),
        SERVED(clients_that_leave_give_their_store_back),
        SERVED(uploads_are_bounded_and_others_are_served),
        SERVED(a_server_that_stops_gives_up_what_is_not_whole),
        SERVED(a_signed_url_gives_the_bytes_without_a_token),
        SERVED(a_file_that_is_not_there_is_answered_like_a_wrong_signature),
        SERVED(an_upload_to_a_store_that_signs_goes_to_that_store),
        SERVED(a_replayed_answer_is_signed_anew_and_keeps_its_end),
        SERVED(what_cannot_be_signed_reserves_nothing),
        SERVED(bytes_that_come_to_the_daemon_all_the_same_are_told_where_they_belong),
        SERVED(content_of_a_store_that_signs_is_a_redirect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
