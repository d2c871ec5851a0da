/* SPDX-License-Identifier: Apache-2.0 */
/* Where keys live: which paths are used as they are, and the escaped form of the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/fs/key.h"

static void ordinary_paths_are_used_as_they_are(void **state)
{
    (void)state;
    const char *const plain[] = { "a",
                                  "a/b",
                                  "a b/c.txt",
                                  ".hidden",
                                  "..a",
                                  "a..",
                                  "...",
                                  "a/.b/c",
                                  ".reprieve/x",
                                  ".reprieve/owner",
                                  "x/.reprieve/keys",
                                  "\n",
                                  "a/.reprieve",
                                  ".repriev",
                                  ".reprieve2",
                                  ".reprieve/quarantine/m",
                                  ".reprieve/keysx" };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!rp_fs_key_plain(plain[i])) fail_msg("'%s' should be plain", plain[i]);
}

static void paths_that_lead_elsewhere_are_not_used(void **state)
{
    (void)state;
    const char *const other[] = { "",
                                  ".",
                                  "..",
                                  "../x",
                                  "a/../b",
                                  "a/./b",
                                  "/abs",
                                  "a//b",
                                  "a/",
                                  "//",
                                  "/",
                                  ".reprieve",
                                  ".reprieve/",
                                  ".reprieve/keys",
                                  "a/..",
                                  ".reprieve~",
                                  ".reprieve~a",
                                  "d/.reprieve~a/b",
                                  ".reprieve/keys/61",
                                  ".reprieve/tmp/lock",
                                  ".reprieve/meta" };
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (rp_fs_key_plain(other[i])) fail_msg("'%s' should not be plain", other[i]);
}

static void components_have_at_most_255_bytes(void **state)
{
    (void)state;
    char key[RP_KEY_MAX + 2];
    memset(key, 'k', sizeof key);
    key[255] = '\0';
    assert_true(rp_fs_key_plain(key));
    key[255] = 'k';
    key[256] = '\0';
    assert_false(rp_fs_key_plain(key));
    memset(key, 'k', sizeof key);
    for (size_t i = 100; i < RP_KEY_MAX; i += 100)
        key[i] = '/';
    key[RP_KEY_MAX] = '\0';
    assert_true(rp_fs_key_plain(key));
}

static void prefixes_follow_the_same_rules(void **state)
{
    (void)state;
    assert_true(rp_fs_prefix_plain("", 0));
    assert_true(rp_fs_prefix_plain("a/b/", 4));
    assert_true(rp_fs_prefix_plain(".reprieve/", 10));
    assert_false(rp_fs_prefix_plain("../", 3));
    assert_false(rp_fs_prefix_plain("a//", 3));
    assert_false(rp_fs_prefix_plain("/", 1));
    assert_false(rp_fs_prefix_plain(".reprieve/keys/", 15));
}

static void escaped_form_is_hex_in_components(void **state)
{
    (void)state;
    char path[RP_FS_PATH_MAX], key[RP_KEY_MAX + 1] = "..";
    assert_true(rp_fs_key_path(key, RP_FS_ESCAPED, path));
    assert_string_equal(path, ".reprieve/keys/2e2e");
    memset(key, 'a', 65);
    key[65] = '\0';
    rp_fs_key_escape(key, path);
    assert_int_equal(strlen(path), 132);
    assert_memory_equal(path + 126, "61+/61", 6);
}

static void every_length_comes_back(void **state)
{
    (void)state;
    char key[RP_KEY_MAX + 1], path[RP_FS_PATH_MAX], back[RP_KEY_MAX + 1];
    for (size_t n = 1; n <= RP_KEY_MAX; n++) {
        for (size_t i = 0; i < n; i++)
            key[i] = (char)(1 + (i * 7 + n) % 255);
        key[n] = '\0';
        rp_fs_key_escape(key, path);
        assert_true(rp_fs_key_unescape(path, back));
        assert_string_equal(key, back);
    }
}

static void damaged_names_are_refused(void **state)
{
    (void)state;
    char back[RP_KEY_MAX + 1], path[RP_FS_PATH_MAX], key[66];
    const char *const bad[] = { "", "6", "61+", "61+/", "61/62", "6A", "6g", "00", "6100", "/61", "61/", "+/61" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (rp_fs_key_unescape(bad[i], back)) fail_msg("'%s' should be refused", bad[i]);
    memset(key, 'a', 65);
    key[65] = '\0';
    rp_fs_key_escape(key, path);
    path[128] = '-';
    assert_false(rp_fs_key_unescape(path, back));
    path[128] = '\0';
    assert_true(rp_fs_key_unescape(path, back));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A walk meets paths in the order of their text, because '/' ends every directory's name. */
static void escaped_paths_sort_like_their_keys(void **state)
{
    (void)state;
    enum { N = 400 };
    char *keys[N];
    unsigned seed = 7;
    for (size_t k = 0; k < N; k++) {
        size_t n = 60 + k % 9;
        keys[k] = calloc(1, 200);
        memset(keys[k], 'a', n);
        for (size_t i = n; i < n + 3; i++) {
            seed = seed * 1103515245 + 12345;
            keys[k][i] = (char)(1 + (seed >> 16) % 255);
        }
    }
    qsort(keys, N, sizeof *keys, by_text);
    for (size_t k = 1; k < N; k++) {
        char a[RP_FS_PATH_MAX], b[RP_FS_PATH_MAX];
        rp_fs_key_escape(keys[k - 1], a);
        rp_fs_key_escape(keys[k], b);
        assert_true((strcmp(keys[k - 1], keys[k]) < 0) == (strcmp(a, b) < 0));
    }
    for (size_t k = 0; k < N; k++)
        free(keys[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_paths_are_used_as_they_are), cmocka_unit_test(paths_that_lead_elsewhere_are_not_used),
        cmocka_unit_test(components_have_at_most_255_bytes),   cmocka_unit_test(prefixes_follow_the_same_rules),
        cmocka_unit_test(escaped_form_is_hex_in_components),   cmocka_unit_test(every_length_comes_back),
        cmocka_unit_test(damaged_names_are_refused),           cmocka_unit_test(escaped_paths_sort_like_their_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
