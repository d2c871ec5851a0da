/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/token.h"
#include "http/route/percent.h"
#include "http/route/route.h"
#include "http/server/request.h"

static const struct rp_route rows[] = {
    { .method = "GET", .path = "/" },
    { .method = "GET", .path = "/v1/files" },
    { .method = "POST", .path = "/v1/files" },
    { .method = "GET", .path = "/v1/runs/{id}" },
    { .method = "GET", .path = "/v1/runs/summary" },
    { .method = "DELETE", .path = "/v1/runs/{id}" },
    { .method = "POST", .path = "/v1/files/{id}/parts/{n}" },
};
static const struct rp_routes table = { rows, sizeof rows / sizeof rows[0] };

/* In place of routes.c, which the linker then leaves out. */
const struct rp_routes *const rp_route_tables[] = { &table };
const size_t rp_route_tables_n = 1;

static struct rp_request q;

static const struct rp_route *find(const char *method, const char *path, bool *known)
{
    rp_arena_done(&q.arena);
    q = (struct rp_request){ .arena = RP_ARENA((size_t)1 << 20) };
    return rp_route_find(method, path, &q.arena, q.args, known);
}

static void expect_row(const char *method, const char *path, size_t row)
{
    bool known;
    assert_ptr_equal(find(method, path, &known), &rows[row]);
    assert_true(known);
}

static void expect_none(const char *method, const char *path, bool path_known)
{
    bool known;
    assert_null(find(method, path, &known));
    assert_int_equal(known, path_known);
}

static void test_a_path_is_matched_exactly(void **state)
{
    (void)state;
    expect_row("GET", "/", 0);
    expect_row("GET", "/v1/files", 1);
    expect_row("POST", "/v1/files", 2);
    expect_row("HEAD", "/v1/files", 1);
    expect_none("GET", "", false);
    expect_none("GET", "//", false);
    expect_none("GET", "/v1/files/", false);
    expect_none("GET", "/v1/file", false);
    expect_none("GET", "/v1/filesx", false);
    expect_none("GET", "/V1/files", false);
    expect_none("GET", "/v1%2Ffiles", false);
    expect_none("DELETE", "/v1/files", true);
    expect_none("get", "/v1/files", true);
}

static void test_segments(void **state)
{
    (void)state;
    expect_row("GET", "/v1/runs/run_1", 3);
    assert_string_equal(q.args[0], "run_1");
    expect_row("GET", "/v1/runs/summary", 4);
    assert_null(q.args[0]);
    expect_row("DELETE", "/v1/runs/summary", 5);
    assert_string_equal(q.args[0], "summary");
    expect_row("POST", "/v1/files/a%2Fb/parts/%C3%A4", 6);
    assert_string_equal(q.args[0], "a/b");
    assert_string_equal(q.args[1], "ä");
    expect_row("GET", "/v1/runs/%2525", 3);
    assert_string_equal(q.args[0], "%25");
    expect_none("GET", "/v1/runs/", false);
    expect_none("POST", "/v1/files//parts/1", false);
    expect_none("POST", "/v1/files/1/parts/", false);
    expect_none("GET", "/v1/runs/a/b", false);
    expect_none("GET", "/v1/runs/%", false);
    expect_none("GET", "/v1/runs/%4", false);
    expect_none("GET", "/v1/runs/%zz", false);
    expect_none("GET", "/v1/runs/%00", false);
    expect_none("GET", "/v1/runs/%ff", false);
    expect_none("PUT", "/v1/runs/a", true);
}

static void test_allow_names_the_methods(void **state)
{
    bool known;
    (void)state;
    find("PATCH", "/v1/files", &known);
    assert_string_equal(rp_route_allow(&q.arena, "/v1/files"), "GET, POST");
    assert_string_equal(rp_route_allow(&q.arena, "/v1/runs/x"), "GET, DELETE");
    assert_string_equal(rp_route_allow(&q.arena, "/nothing"), "");
    rp_arena_done(&q.arena);
}

static void test_the_table_is_counted_and_walked(void **state)
{
    (void)state;
    assert_int_equal(rp_route_count(), table.n);
    for (size_t i = 0; i < table.n; i++)
        assert_ptr_equal(rp_route_at(i), &rows[i]);
}

static void test_every_scope_has_its_name(void **state)
{
    static const struct {
        enum rp_scope_bit bit;
        const char *name;
    } scopes[] = {
        { RP_MAY_READ_FILES, "files.read" }, { RP_MAY_WRITE_FILES, "files.write" },
        { RP_MAY_READ_MARKS, "marks.read" }, { RP_MAY_WRITE_MARKS, "marks.write" },
        { RP_MAY_READ_RUNS, "runs.read" },   { RP_MAY_WRITE_RUNS, "runs.write" },
        { RP_MAY_LISTEN, "live" },           { RP_MAY_MEASURE, "metrics" },
        { RP_MAY_AUDIT, "audit" },           { RP_MAY_ADMINISTER, "admin" },
    };
    unsigned all = 0, bit = 0;
    (void)state;
    for (size_t i = 0; i < sizeof scopes / sizeof scopes[0]; i++) {
        assert_string_equal(rp_scope_name(scopes[i].bit), scopes[i].name);
        assert_true(rp_scope_parse(scopes[i].name, &bit));
        assert_int_equal(bit, scopes[i].bit);
        all |= bit;
    }
    assert_int_equal(all, RP_MAY_ALL);
    assert_false(rp_scope_parse("everything", &bit));
    assert_int_equal(rp_token_scopes_parse("live,files.read", &bit, NULL), 0);
    assert_int_equal(bit, RP_MAY_LISTEN | RP_MAY_READ_FILES);
    assert_int_equal(rp_token_scopes_parse("all", &bit, NULL), 0);
    assert_int_equal(bit, RP_MAY_ALL);
    assert_int_equal(rp_token_scopes_parse("live,", &bit, NULL), RP_EINVAL);
    char each[256] = "";
    for (size_t i = 0; i < sizeof scopes / sizeof scopes[0]; i++)
        snprintf(each + strlen(each), sizeof each - strlen(each), "%s%s", i > 0 ? "," : "", scopes[i].name);
    assert_int_equal(rp_token_scopes_parse(each, &bit, NULL), 0);
    assert_int_equal(bit, RP_MAY_ALL);
    snprintf(each + strlen(each), sizeof each - strlen(each), ",typo");
    assert_int_equal(rp_token_scopes_parse(each, &bit, NULL), RP_EINVAL);
    assert_int_equal(rp_token_scopes_parse("", &bit, NULL), RP_EINVAL);
}

static void test_secrets(void **state)
{
    char a[RP_TOKEN_SECRET], b[RP_TOKEN_SECRET];
    uint8_t hash[RP_DIGEST_BYTES], other[RP_DIGEST_BYTES];
    (void)state;
    for (int kind = RP_TOKEN_BEARER; kind <= RP_TOKEN_SESSION; kind++) {
        assert_int_equal(rp_token_secret((enum rp_token_kind)kind, a, NULL), 0);
        assert_int_equal(rp_token_secret((enum rp_token_kind)kind, b, NULL), 0);
        assert_string_not_equal(a, b);
        for (int of = RP_TOKEN_BEARER; of <= RP_TOKEN_SESSION; of++)
            assert_int_equal(rp_token_secret_like((enum rp_token_kind)of, a), of == kind);
        rp_token_hash(a, hash);
        rp_token_hash(b, other);
        assert_memory_not_equal(hash, other, sizeof hash);
    }
    a[RP_TOKEN_SECRET - 2] = '\0';
    assert_false(rp_token_secret_like(RP_TOKEN_SESSION, a));
    b[10] = '+';
    assert_false(rp_token_secret_like(RP_TOKEN_SESSION, b));
    assert_false(rp_token_secret_like(RP_TOKEN_BEARER, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_path_is_matched_exactly), cmocka_unit_test(test_segments),
        cmocka_unit_test(test_allow_names_the_methods),   cmocka_unit_test(test_the_table_is_counted_and_walked),
        cmocka_unit_test(test_every_scope_has_its_name),  cmocka_unit_test(test_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
