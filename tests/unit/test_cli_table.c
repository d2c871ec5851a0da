/* SPDX-License-Identifier: Apache-2.0 */
/* The command line without its commands: the table of commands keeps its own rules, lines are taken
 * apart by it, the manual page is the committed one, and columns, lists of subjects and answers are
 * what their headers say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text/buf.h"
#include "base/time.h"
#include "cli/answers.h"
#include "cli/cli.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/lines.h"
#include "cli/options.h"
#include "cli/table.h"

#include <stdio.h>
#include <string.h>

#define MAN_MAX ((size_t)256 << 10)

/* ---- the table of commands ---- */

static void assert_options_in_order(const struct rp_option *options, bool global)
{
    for (const struct rp_option *o = options; o->name != NULL; o++) {
        assert_true(strlen(o->help) > 0);
        for (const struct rp_option *other = o + 1; other->name != NULL; other++) {
            assert_string_not_equal(o->name, other->name);
            assert_true(o->letter == 0 || o->letter != other->letter);
        }
        if (global) continue;
        assert_null(rp_option_find(rp_global_options, o->name, strlen(o->name)));
        if (o->letter != 0) assert_null(rp_option_find_letter(rp_global_options, o->letter));
    }
}

static void test_every_command_can_be_found_and_explained(void **state)
{
    (void)state;
    assert_options_in_order(rp_global_options, true);
    for (size_t i = 0; i < rp_commands_count; i++) {
        const struct rp_cli_command *c = &rp_commands[i];
        assert_ptr_equal(rp_command_find(c->name), c);
        if (c->alias != NULL) assert_ptr_equal(rp_command_find(c->alias), c);
        assert_true((c->run != NULL) != (c->verbs != NULL));
        assert_true(strlen(c->summary) > 0 && strlen(c->summary) < 70);
        assert_true(c->summary[strlen(c->summary) - 1] != '.');
        assert_non_null(strstr(c->help, "  reprieve ")); /* an example */
        assert_true(c->words_least <= c->words_most);
        assert_options_in_order(c->options, false);
    }
}

static bool is_named(const struct rp_cli_verb *verb, const char *option)
{
    char list[256], word[64];
    snprintf(list, sizeof list, " %s ", verb->options != NULL ? verb->options : "");
    snprintf(word, sizeof word, " %s ", option);
    return strstr(list, word) != NULL;
}

static void assert_verbs_in_order(const struct rp_cli_command *c)
{
    char list[256], line[RP_SYNOPSIS_MAX];
    size_t n = 0;
    for (const struct rp_cli_verb *verb = c->verbs; verb->name != NULL; verb++, n++) {
        assert_non_null(verb->run);
        assert_true(verb->words_least <= verb->words_most);
        assert_true(rp_synopsis(c, n, line));
        assert_memory_equal(line, verb->name, strlen(verb->name));
        snprintf(list, sizeof list, "%s", verb->options != NULL ? verb->options : "");
        char *save = NULL;
        for (char *o = strtok_r(list, " ", &save); o != NULL; o = strtok_r(NULL, " ", &save))
            assert_non_null(rp_option_find(c->options, o, strlen(o)));
    }
    assert_false(rp_synopsis(c, n, line));
    for (const struct rp_option *o = c->options; o->name != NULL; o++) {
        bool named = false;
        for (const struct rp_cli_verb *verb = c->verbs; verb->name != NULL; verb++)
            named = named || is_named(verb, o->name);
        assert_true(named);
    }
}

static void test_verbs_name_the_options_that_they_take(void **state)
{
    (void)state;
    for (size_t i = 0; i < rp_commands_count; i++)
        if (rp_commands[i].verbs != NULL) assert_verbs_in_order(&rp_commands[i]);
}

static void test_every_visible_option_is_in_the_help_and_no_hidden_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < rp_commands_count; i++) {
        RP_CLEANUP(rp_buf_done) struct rp_buf help = RP_BUF(MAN_MAX);
        rp_help_command(&help, &rp_commands[i]);
        assert_int_equal(help.failed, 0);
        for (const struct rp_option *o = rp_commands[i].options; o->name != NULL; o++) {
            char text[64];
            snprintf(text, sizeof text, "--%s", o->name);
            assert_int_equal(strstr(rp_buf_text(&help), text) != NULL, !o->hidden);
        }
    }
}

static void test_the_overview_names_every_command(void **state)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf overview = RP_BUF(MAN_MAX);
    (void)state;
    rp_help_overview(&overview);
    for (size_t i = 0; i < rp_commands_count; i++)
        assert_non_null(strstr(rp_buf_text(&overview), rp_commands[i].summary));
}

static void test_the_committed_manual_page_is_the_one_the_table_makes(void **state)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf made = RP_BUF(MAN_MAX);
    RP_CLEANUP(rp_freep) char *committed = calloc(1, MAN_MAX);
    char path[4096];
    (void)state;
    const char *tree = getenv("REPRIEVE_TREE");
    snprintf(path, sizeof path, "%s/man/reprieve.1", tree != NULL ? tree : ".");
    FILE *f = fopen(path, "re");
    assert_non_null(committed);
    assert_non_null(f);
    size_t n = fread(committed, 1, MAN_MAX - 1, f);
    fclose(f);
    rp_help_man(&made);
    assert_int_equal(made.failed, 0);
    assert_int_equal(n, made.len);
    assert_string_equal(committed, rp_buf_text(&made));
}

/* ---- a line taken apart ---- */

struct line {
    struct rp_args args;
    struct rp_error err;
    int code;
};

static void parse(struct line *line, const char *words)
{
    static char text[512];
    char *argv[64];
    char program[] = "reprieve";
    int argc = 0;
    char *save = NULL;
    argv[argc++] = program;
    snprintf(text, sizeof text, "%s", words);
    for (char *word = strtok_r(text, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    memset(line, 0, sizeof *line);
    line->code = rp_args_parse(argc, argv, &line->args, &line->err);
}

static void test_options_stand_before_and_after_the_command(void **state)
{
    static const char *const lines[] = {
        "--json --config c.yaml mark main:a --grace 2d",
        "mark main:a --grace=2d --json --config=c.yaml",
        "mark --config c.yaml --grace 2d main:a --json",
    };
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct line l;
        parse(&l, lines[i]);
        assert_int_equal(l.code, 0);
        assert_string_equal(l.args.command->name, "mark");
        assert_true(rp_args_has(&l.args, "json"));
        assert_string_equal(rp_args_text(&l.args, "config"), "c.yaml");
        assert_string_equal(rp_args_text(&l.args, "grace"), "2d");
        assert_int_equal(l.args.n_words, 1);
        assert_string_equal(l.args.words[0], "main:a");
        rp_args_done(&l.args);
    }
}

static void test_letters_joined_values_repeats_and_the_end_of_options(void **state)
{
    struct line l;
    size_t at = 0;
    (void)state;
    parse(&l, "mark -q0 --stdin");
    assert_true(rp_args_has(&l.args, "quiet") && rp_args_has(&l.args, "null") && rp_args_has(&l.args, "stdin"));
    rp_args_done(&l.args);
    parse(&l, "put main:a - --meta a=1 --meta b=2");
    assert_string_equal(rp_args_next(&l.args, "meta", &at), "a=1");
    assert_string_equal(rp_args_next(&l.args, "meta", &at), "b=2");
    assert_null(rp_args_next(&l.args, "meta", &at));
    assert_string_equal(l.args.words[1], "-");
    rp_args_done(&l.args);
    parse(&l, "unmark -- --json");
    assert_string_equal(l.args.command->name, "restore");
    assert_false(rp_args_has(&l.args, "json"));
    assert_string_equal(l.args.words[0], "--json");
    rp_args_done(&l.args);
    parse(&l, "marks --limit 5 --limit 7");
    int64_t limit = 0;
    assert_int_equal(rp_args_number(&l.args, "limit", &limit, &l.err), 0);
    assert_int_equal(limit, 7);
    rp_args_done(&l.args);
}

static void test_what_is_unknown_is_refused_with_the_nearest_name(void **state)
{
    static const struct {
        const char *line, *hint;
    } cases[] = { { "makr main:a", "reprieve mark" }, { "restor", "reprieve restore" },
                  { "mark --grase 2d", "--grace" },   { "sweep --dryrun", "--dry-run" },
                  { "marks --jsn", "--json" },        { "--stor main sweep", "after" },
                  { "marks -z", "help marks" } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct line l;
        parse(&l, cases[i].line);
        assert_int_equal(l.code, RP_EINVAL);
        assert_non_null(strstr(l.err.hint, cases[i].hint));
        rp_args_done(&l.args);
    }
}

static void test_values_that_are_missing_or_wrong_are_refused(void **state)
{
    struct line l;
    int64_t out = -7;
    (void)state;
    parse(&l, "mark main:a --grace");
    assert_int_equal(l.code, RP_EINVAL);
    rp_args_done(&l.args);
    parse(&l, "sweep --dry-run=yes");
    assert_int_equal(l.code, RP_EINVAL);
    rp_args_done(&l.args);
    parse(&l, "marks --limit 1e3");
    assert_int_equal(rp_args_number(&l.args, "limit", &out, &l.err), RP_EINVAL);
    assert_non_null(strstr(l.err.text, "--limit"));
    rp_args_done(&l.args);
    parse(&l, "mark main:a --grace soon --at never");
    assert_int_equal(rp_args_duration(&l.args, "grace", &out, &l.err), RP_EINVAL);
    assert_int_equal(rp_args_when(&l.args, "at", 0, 1, &out, &l.err), RP_EINVAL);
    assert_int_equal(out, -7);
    rp_args_done(&l.args);
}

/* ---- columns ---- */

static const struct rp_column two_columns[] = { { "KEY", false, true }, { "SIZE", true, false } };

static void print_table(int width, size_t rows, const char *key, char *out, size_t size)
{
    RP_CLEANUP(rp_table_done) struct rp_table table;
    FILE *f = tmpfile();
    assert_non_null(f);
    rp_table_init(&table, f, two_columns, 2);
    assert_int_equal(table.width, 0); /* a file is no terminal */
    table.width = width;
    for (size_t i = 0; i < rows; i++)
        rp_table_row(&table, (const char *const[]){ key, "12" });
    rp_table_end(&table);
    rewind(f);
    out[fread(out, 1, size - 1, f)] = 0;
    fclose(f);
}

static void test_columns_are_as_wide_as_they_must_be_and_no_wider_than_the_terminal(void **state)
{
    char out[65536];
    (void)state;
    print_table(0, 1, "ab", out, sizeof out);
    assert_string_equal(out, "KEY  SIZE\nab     12\n");
    print_table(0, 1, "a-rather-long-key-that-is-cut", out, sizeof out);
    assert_non_null(strstr(out, "that-is-cut"));
    print_table(20, 1, "a-rather-long-key-that-is-cut", out, sizeof out);
    assert_string_equal(out, "KEY             SIZE\na-rather-lo...    12\n");
    print_table(0, 0, "ab", out, sizeof out);
    assert_string_equal(out, "");
}

static void test_many_rows_have_one_title_and_all_are_printed(void **state)
{
    RP_CLEANUP(rp_freep) char *out = calloc(1, 1 << 16);
    size_t lines = 0;
    (void)state;
    assert_non_null(out);
    print_table(0, 2 * RP_TABLE_ROWS + 1, "k", out, 1 << 16);
    for (const char *c = out; *c != 0; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 2 * RP_TABLE_ROWS + 2);
    assert_null(strstr(out + 1, "KEY"));
}

static void test_control_characters_are_escaped_and_characters_counted(void **state)
{
    char shown[RP_SHOWN_MAX];
    (void)state;
    assert_string_equal(rp_show("a\x1b[31m\n\x7f", shown), "a\\x1b[31m\\x0a\\x7f");
    assert_string_equal(rp_show("\xc2\x9b"
                                "2J\xc2\xa0\xc3\x9b",
                                shown),
                        "\\xc2\\x9b2J\xc2\xa0\xc3\x9b"); /* CSI in one */
    /* what turns the direction of text around, and what ends a line: U+202E, U+2066, U+200F,
     * U+061C, U+2028 */
    assert_string_equal(rp_show("\xe2\x80\xaegnp.exe\xe2\x81\xa6\xe2\x80\x8f\xd8\x9c\xe2\x80\xa8", shown),
                        "\\xe2\\x80\\xaegnp.exe\\xe2\\x81\\xa6\\xe2\\x80\\x8f\\xd8\\x9c\\xe2\\x80\\xa8");
    /* bytes that are no UTF-8: to an 8-bit terminal, 0x9b alone is a CSI */
    assert_string_equal(rp_show("\x9b"
                                "2J\xff\xc3",
                                shown),
                        "\\x9b2J\\xff\\xc3");
    assert_string_equal(rp_show("\xd9\x85 \xe2\x82\xac \xf0\x9f\x98\x80", shown),
                        "\xd9\x85 \xe2\x82\xac \xf0\x9f\x98\x80");
    assert_int_equal(rp_text_columns("gr\xc3\xbc\xc3\x9f"), 4);
    char out[256];
    print_table(0, 1, "\xc3\xbc", out, sizeof out);
    assert_string_equal(out, "KEY  SIZE\n\xc3\xbc      12\n");
}

static void test_sizes_and_times_are_shown_for_people(void **state)
{
    char size[RP_SIZE_TEXT], when[RP_WHEN_TEXT];
    (void)state;
    assert_string_equal(rp_show_size(0, size), "0 B");
    assert_string_equal(rp_show_size(1023, size), "1023 B");
    assert_string_equal(rp_show_size(1536, size), "1.5 KiB");
    assert_string_equal(rp_show_size(INT64_C(5) << 30, size), "5.0 GiB");
    assert_string_equal(rp_show_when(5 * RP_DAY_MS, 0, when), "1970-01-06T00:00:00.000Z (in 5d)");
}

/* ---- subjects from a stream ---- */

static void test_lines_that_are_none_do_not_harm_the_next(void **state)
{
    RP_CLEANUP(rp_freep) char *text = calloc(1, 8192);
    struct rp_lines lines = { .separator = '\n' };
    struct rp_error err = { 0 };
    (void)state;
    assert_non_null(text);
    size_t n = (size_t)sprintf(text, "main:a\n\n\nmain:%04000d\nmain:b", 7);
    memcpy(text + n, "\0c\nmain:d", 9);
    lines.from = fmemopen(text, n + 9, "r");
    assert_int_equal(rp_lines_next(&lines, &err), 1);
    assert_string_equal(lines.text, "main:a");
    assert_int_equal(rp_lines_next(&lines, &err), RP_EINVAL);
    assert_non_null(strstr(err.text, "line 4 has 4005 bytes"));
    assert_int_equal(rp_lines_next(&lines, &err), RP_EINVAL);
    assert_non_null(strstr(err.text, "NUL"));
    assert_int_equal(rp_lines_next(&lines, &err), 1);
    assert_string_equal(lines.text, "main:d"); /* also without a newline at the end */
    assert_int_equal(rp_lines_next(&lines, &err), 0);
    fclose(lines.from);
}

static void test_separated_by_nul_a_line_may_hold_newlines(void **state)
{
    char text[] = "main:a\nb\0main:c";
    struct rp_lines lines = { .from = fmemopen(text, sizeof text - 1, "r"), .separator = 0 };
    struct rp_error err = { 0 };
    (void)state;
    assert_int_equal(rp_lines_next(&lines, &err), 1);
    assert_string_equal(lines.text, "main:a\nb");
    assert_int_equal(rp_lines_next(&lines, &err), 1);
    assert_string_equal(lines.text, "main:c");
    assert_int_equal(rp_lines_next(&lines, &err), 0);
    fclose(lines.from);
}

/* ---- one exit code for many answers ---- */

static int exit_of(int done, const int *refusals, size_t n)
{
    struct rp_cli cli = { .quiet = true, .json = true };
    struct rp_answers answers;
    rp_answers_init(&answers, &cli);
    for (int i = 0; i < done; i++)
        rp_answers_done(&answers, "done\n");
    for (size_t i = 0; i < n; i++) {
        struct rp_error why = { 0 };
        rp_error_set(&why, refusals[i], "refused");
        rp_answers_refused(&answers, &why);
    }
    return rp_answers_end(&answers, "marked");
}

static void test_the_exit_code_tells_all_done_none_or_some(void **state)
{
    (void)state;
    assert_int_equal(exit_of(0, NULL, 0), 0);
    assert_int_equal(exit_of(3, NULL, 0), 0);
    assert_int_equal(exit_of(0, (const int[]){ RP_ENOTFOUND }, 1), 4);
    assert_int_equal(exit_of(0, (const int[]){ RP_EHELD, RP_EHELD }, 2), 5);
    assert_int_equal(exit_of(0, (const int[]){ RP_EHELD, RP_ENOTFOUND }, 2), 1);
    assert_int_equal(exit_of(0, (const int[]){ RP_EHELD, RP_ENOTFOUND, RP_EHELD }, 3), 1);
    assert_int_equal(exit_of(1, (const int[]){ RP_ENOTFOUND }, 1), 8);
}

static void test_every_exit_code_of_an_error_is_explained(void **state)
{
    (void)state;
    for (int code = -1; code >= -(int)RP_ERROR_COUNT; code--) {
        bool found = false;
        for (const struct rp_exit_text *e = rp_exit_texts; e->text != NULL; e++)
            found = found || e->code == rp_error_exit(code);
        assert_true(found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_command_can_be_found_and_explained),
        cmocka_unit_test(test_verbs_name_the_options_that_they_take),
        cmocka_unit_test(test_every_visible_option_is_in_the_help_and_no_hidden_one),
        cmocka_unit_test(test_the_overview_names_every_command),
        cmocka_unit_test(test_the_committed_manual_page_is_the_one_the_table_makes),
        cmocka_unit_test(test_options_stand_before_and_after_the_command),
        cmocka_unit_test(test_letters_joined_values_repeats_and_the_end_of_options),
        cmocka_unit_test(test_what_is_unknown_is_refused_with_the_nearest_name),
        cmocka_unit_test(test_values_that_are_missing_or_wrong_are_refused),
        cmocka_unit_test(test_columns_are_as_wide_as_they_must_be_and_no_wider_than_the_terminal),
        cmocka_unit_test(test_many_rows_have_one_title_and_all_are_printed),
        cmocka_unit_test(test_control_characters_are_escaped_and_characters_counted),
        cmocka_unit_test(test_sizes_and_times_are_shown_for_people),
        cmocka_unit_test(test_lines_that_are_none_do_not_harm_the_next),
        cmocka_unit_test(test_separated_by_nul_a_line_may_hold_newlines),
        cmocka_unit_test(test_the_exit_code_tells_all_done_none_or_some),
        cmocka_unit_test(test_every_exit_code_of_an_error_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
