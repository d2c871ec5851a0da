/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error.h"

static const struct {
    int code;
    const char *slug;
    int http, exit_code;
    bool retry;
    unsigned fault;
} table[] = {
#define X(code, slug, http, exit_code, retry, fault, title) { code, slug, http, exit_code, retry, fault },
    RP_ERRORS(X)
#undef X
};
#define ENTRIES (sizeof table / sizeof table[0])

static void every_code_is_negative_and_finds_its_own_entry(void **state)
{
    (void)state;
    assert_int_equal(ENTRIES, RP_ERROR_COUNT);
    for (size_t i = 0; i < ENTRIES; i++) {
        assert_int_equal(table[i].code, -(int)i - 1);
        assert_string_equal(rp_error_slug(table[i].code), table[i].slug);
        assert_int_equal(rp_error_http(table[i].code), table[i].http);
        assert_int_equal(rp_error_exit(table[i].code), table[i].exit_code);
        assert_int_equal(rp_error_retry(table[i].code), table[i].retry);
        assert_int_equal(rp_error_fault(table[i].code), table[i].fault);
        assert_true(rp_error_title(table[i].code)[0] != '\0');
    }
}

static void slugs_are_unique_and_can_stand_in_a_url(void **state)
{
    (void)state;
    for (size_t i = 0; i < ENTRIES; i++) {
        assert_int_equal(strspn(table[i].slug, "abcdefghijklmnopqrstuvwxyz_"), strlen(table[i].slug));
        for (size_t k = i + 1; k < ENTRIES; k++)
            assert_string_not_equal(table[i].slug, table[k].slug);
    }
}

static void exit_codes_are_those_that_the_command_line_documents(void **state)
{
    (void)state;
    for (size_t i = 0; i < ENTRIES; i++) {
        assert_in_range(table[i].exit_code, 1, 8);
        assert_int_not_equal(table[i].exit_code, 7); /* approval needed is no error */
        assert_in_range(table[i].http, 200, 599);
    }
    assert_int_equal(rp_error_exit(RP_ETOOLATE), 5);
    assert_int_equal(rp_error_exit(RP_EPARTLY), 8);
    assert_int_equal(rp_error_exit(RP_EGRACE), 2);
}

static void faults_say_who_may_go_on(void **state)
{
    (void)state;
    assert_int_equal(rp_error_fault(RP_OK), 0);
    assert_int_equal(rp_error_fault(RP_EINVAL), 0);
    for (size_t i = 0; i < ENTRIES; i++) /* whoever fails for everybody is not one subject's fault */
        if (table[i].fault & (RP_OF_STORE | RP_OF_CATALOG)) assert_false(table[i].fault & RP_OF_ONE);
}

static void numbers_outside_the_table_read_as_failed(void **state)
{
    (void)state;
    const int numbers[] = { 1, INT32_MAX, -(int)RP_ERROR_COUNT - 1, INT32_MIN };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        assert_string_equal(rp_error_slug(numbers[i]), "failed");
        assert_int_equal(rp_error_exit(numbers[i]), 1);
        assert_false(rp_error_retry(numbers[i]));
    }
    assert_string_equal(rp_error_slug(0), "ok");
    assert_int_equal(rp_error_http(0), 200);
    assert_int_equal(rp_error_exit(0), 0);
}

static void set_replaces_the_text_and_clears_the_hint(void **state)
{
    (void)state;
    struct rp_error err = { 0 };
    assert_int_equal(rp_error_set(&err, RP_EBUSY, "first"), RP_EBUSY);
    assert_int_equal(rp_error_hint(&err, "wait %d s", 5), RP_EBUSY);
    assert_string_equal(err.hint, "wait 5 s");
    assert_int_equal(rp_error_set(&err, RP_ENOTFOUND, "no %s", "mark"), RP_ENOTFOUND);
    assert_int_equal(err.code, RP_ENOTFOUND);
    assert_string_equal(err.text, "no mark");
    assert_string_equal(err.hint, "");
}

static void wraps_read_from_the_outside_in_and_keep_the_hint(void **state)
{
    (void)state;
    struct rp_error err = { 0 };
    rp_error_set(&err, RP_EUNAVAILABLE, "connection lost");
    rp_error_hint(&err, "is the server up?");
    rp_error_wrap(&err, RP_EUNAVAILABLE, "postgres");
    assert_int_equal(rp_error_wrap(&err, RP_EUNKNOWN, "claim %d due marks", 3), RP_EUNKNOWN);
    assert_int_equal(err.code, RP_EUNKNOWN);
    assert_string_equal(err.text, "claim 3 due marks: postgres: connection lost");
    assert_string_equal(err.hint, "is the server up?");
}

static void a_wrap_without_a_text_uses_the_title(void **state)
{
    (void)state;
    struct rp_error err = { 0 };
    rp_error_wrap(&err, RP_ENOTFOUND, "load mark");
    assert_string_equal(err.text, "load mark: not found");
}

static void an_argument_may_be_the_text_that_is_replaced(void **state)
{
    (void)state;
    struct rp_error err = { 0 };
    rp_error_set(&err, RP_EINVAL, "inner");
    rp_error_set(&err, RP_ECONFIG, "line 3: %s", err.text);
    assert_string_equal(err.text, "line 3: inner");
    rp_error_wrap(&err, RP_ECONFIG, "%s", err.text);
    assert_string_equal(err.text, "line 3: inner: line 3: inner");
    rp_error_hint(&err, "see %s", err.text);
    assert_string_equal(err.hint, "see line 3: inner: line 3: inner");
}

static void long_texts_are_cut_at_the_bound(void **state)
{
    (void)state;
    struct rp_error err = { 0 };
    char filler[2000];
    memset(filler, 'x', sizeof filler - 1);
    filler[sizeof filler - 1] = '\0';
    rp_error_set(&err, RP_EINVAL, "%s", filler);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    rp_error_wrap(&err, RP_EINVAL, "outer");
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_memory_equal(err.text, "outer: xxx", 10);
    rp_error_wrap(&err, RP_EINVAL, "%s", filler);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    rp_error_hint(&err, "%s", filler);
    assert_int_equal(strlen(err.hint), sizeof err.hint - 1);
}

static void a_text_of_exactly_the_bound_stays_whole(void **state)
{
    (void)state;
    struct rp_error err = { 0 };
    rp_error_set(&err, RP_EINVAL, "%0511d", 7);
    assert_int_equal(strlen(err.text), 511);
    assert_int_equal(err.text[510], '7');
    rp_error_set(&err, RP_EINVAL, "%0508d", 7);
    rp_error_wrap(&err, RP_EINVAL, "a");
    assert_int_equal(strlen(err.text), 511);
    assert_int_equal(err.text[510], '7');
}

static void a_cut_never_splits_a_character(void **state)
{
    (void)state;
    static const char *const characters[] = { "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80" };
    for (size_t c = 0; c < 3; c++) {
        size_t n = strlen(characters[c]);
        for (int before = 500; before <= 511; before++) {
            char text[600];
            memset(text, 'x', sizeof text);
            for (size_t at = (size_t)before; at + n < sizeof text; at += n)
                memcpy(text + at, characters[c], n);
            text[599 - (599 - (size_t)before) % n] = '\0';
            struct rp_error err = { 0 };
            rp_error_set(&err, RP_EINVAL, "%s", text);
            assert_int_equal(strlen(err.text), 511 - (511 - (size_t)before) % n);
            rp_error_set(&err, RP_EINVAL, "%s", text + 10);
            rp_error_wrap(&err, RP_EINVAL, "12345678");
            assert_int_equal(strlen(err.text), 511 - (511 - (size_t)before) % n);
        }
    }
}

static void errno_values_choose_the_code(void **state)
{
    (void)state;
    static const struct {
        int errno_value, code;
    } cases[] = {
        { ENOENT, RP_ENOTFOUND },    { ENOTDIR, RP_ENOTFOUND }, { EACCES, RP_EDENIED },      { EPERM, RP_EDENIED },
        { EROFS, RP_EDENIED },       { ENOSPC, RP_EFULL },      { EDQUOT, RP_EFULL },        { EFBIG, RP_EFULL },
        { ENOMEM, RP_ENOMEM },       { EEXIST, RP_EEXISTS },    { ELOOP, RP_EINVAL },        { EINVAL, RP_EINVAL },
        { ENAMETOOLONG, RP_EINVAL }, { EIO, RP_EUNAVAILABLE },  { ESTALE, RP_EUNAVAILABLE }, { 0, RP_EUNAVAILABLE },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rp_error err = { .hint = "old" };
        assert_int_equal(rp_error_errno(&err, cases[i].errno_value, "open %s", "a/b"), cases[i].code);
        assert_int_equal(err.code, cases[i].code);
        assert_memory_equal(err.text, "open a/b: ", 10);
        assert_string_equal(err.hint, "");
    }
    struct rp_error err = { 0 };
    rp_error_errno(&err, ENOENT, "open %s", "a/b");
    assert_string_equal(err.text, "open a/b: No such file or directory");
}

static void every_function_accepts_no_error(void **state)
{
    (void)state;
    assert_int_equal(rp_error_set(NULL, RP_EBUSY, "x"), RP_EBUSY);
    assert_int_equal(rp_error_wrap(NULL, RP_EBUSY, "x"), RP_EBUSY);
    assert_int_equal(rp_error_hint(NULL, "x"), RP_EFAILED);
    assert_int_equal(rp_error_errno(NULL, EACCES, "x"), RP_EDENIED);
    rp_error_clear(NULL);
}

static void clear_makes_it_as_new(void **state)
{
    (void)state;
    struct rp_error err = { 0 };
    rp_error_set(&err, RP_EBUSY, "x");
    rp_error_hint(&err, "y");
    rp_error_clear(&err);
    assert_int_equal(err.code, 0);
    assert_string_equal(err.text, "");
    assert_string_equal(err.hint, "");
}

/* Runs `body` in a child; the signal that ended it, and what it wrote to standard error. */
static int death_of(void (*body)(void), char *said, size_t cap)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        body();
        _exit(0);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t r; n < cap - 1 && (r = read(ends[0], said + n, cap - 1 - n)) > 0;)
        n += (size_t)r;
    said[n] = '\0';
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void break_a_fact(void)
{
    RP_ASSERT(1 + 1 == 3);
}

static void keep_a_fact(void)
{
    RP_ASSERT(1 + 1 == 2);
}

static void set_without_an_error(void)
{
    struct rp_error err;
    rp_error_set(&err, 0, "nothing");
}

static void a_broken_fact_stops_the_process_with_one_line(void **state)
{
    (void)state;
    char said[1024];
    assert_int_equal(death_of(break_a_fact, said, sizeof said), SIGABRT);
    assert_non_null(strstr(said, "\"1 + 1 == 3\""));
    assert_non_null(strstr(said, "break_a_fact"));
    assert_non_null(strstr(said, "test_error.c:"));
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
}

static void a_fact_that_holds_says_nothing(void **state)
{
    (void)state;
    char said[1024];
    assert_int_equal(death_of(keep_a_fact, said, sizeof said), 0);
    assert_string_equal(said, "");
}

static void an_error_without_a_code_is_a_bug(void **state)
{
    (void)state;
    char said[1024];
    assert_int_equal(death_of(set_without_an_error, said, sizeof said), SIGABRT);
}

static void an_advice_stands_beside_the_text_and_the_code_needs_no_words(void **state)
{
    (void)state;
    struct rp_error err = { 0 };
    assert_int_equal(rp_error_advise(&err, RP_ECONFIG, "100% of it", "no %s", "bucket"), RP_ECONFIG);
    assert_string_equal(err.text, "no bucket");
    assert_string_equal(err.hint, "100% of it");
    assert_int_equal(rp_error_set(&err, RP_EINVAL, "%s again", err.text), RP_EINVAL);
    assert_string_equal(err.text, "no bucket again");
    assert_string_equal(err.hint, "");
    assert_int_equal(rp_error_advise(NULL, RP_ECONFIG, "a hint", "a text"), RP_ECONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_advice_stands_beside_the_text_and_the_code_needs_no_words),
        cmocka_unit_test(every_code_is_negative_and_finds_its_own_entry),
        cmocka_unit_test(slugs_are_unique_and_can_stand_in_a_url),
        cmocka_unit_test(exit_codes_are_those_that_the_command_line_documents),
        cmocka_unit_test(faults_say_who_may_go_on),
        cmocka_unit_test(numbers_outside_the_table_read_as_failed),
        cmocka_unit_test(set_replaces_the_text_and_clears_the_hint),
        cmocka_unit_test(wraps_read_from_the_outside_in_and_keep_the_hint),
        cmocka_unit_test(a_wrap_without_a_text_uses_the_title),
        cmocka_unit_test(an_argument_may_be_the_text_that_is_replaced),
        cmocka_unit_test(long_texts_are_cut_at_the_bound),
        cmocka_unit_test(a_text_of_exactly_the_bound_stays_whole),
        cmocka_unit_test(a_cut_never_splits_a_character),
        cmocka_unit_test(errno_values_choose_the_code),
        cmocka_unit_test(every_function_accepts_no_error),
        cmocka_unit_test(clear_makes_it_as_new),
        cmocka_unit_test(a_broken_fact_stops_the_process_with_one_line),
        cmocka_unit_test(a_fact_that_holds_says_nothing),
        cmocka_unit_test(an_error_without_a_code_is_a_bug),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
