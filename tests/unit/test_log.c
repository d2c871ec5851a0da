/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text/buf.h"
#include "base/text/json.h"

#define AT_MS INT64_C(1794718974123)

/* A directory of its own for every test; `path` names a log in it. */
struct place {
    char dir[64], path[80];
};

static int make_place(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    if (p == NULL) return -1;
    snprintf(p->dir, sizeof p->dir, "/tmp/reprieve-log-XXXXXX");
    if (mkdtemp(p->dir) == NULL) return -1;
    snprintf(p->path, sizeof p->path, "%s/log", p->dir);
    *state = p;
    return 0;
}

static int remove_place(void **state)
{
    struct place *p = *state;
    unlink(p->path);
    int r = rmdir(p->dir);
    free(p);
    return r;
}

static void read_all(const char *path, struct rp_buf *out)
{
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;)
        assert_int_equal(rp_buf_add(out, part, n), 0);
    fclose(f);
}

/* Calls `check` on every line, parsed; returns how many there were. The file must end with a
 * newline. */
static size_t each_line(const char *path, void (*check)(const json_t *line, void *ctx), void *ctx)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(64 << 20);
    read_all(path, &b);
    size_t lines = 0;
    for (const char *p = rp_buf_text(&b); *p != '\0'; lines++) {
        const char *end = strchr(p, '\n');
        assert_non_null(end);
        RP_CLEANUP(rp_json_decrefp) json_t *line = NULL;
        assert_int_equal(rp_json_parse(p, (size_t)(end - p), &line, NULL), 0);
        if (check != NULL) check(line, ctx);
        p = end + 1;
    }
    return lines;
}

static struct rp_log *opened(const char *path, enum rp_log_level least)
{
    struct rp_log *log = NULL;
    struct rp_error err = { 0 };
    assert_int_equal(rp_log_open(path, least, &log, &err), 0);
    assert_non_null(log);
    return log;
}

static void a_line_has_time_level_event_and_fields_in_that_order(void **state)
{
    struct place *p = *state;
    struct rp_log *log = opened(p->path, RP_LOG_DEBUG);
    rp_log_event(log, RP_LOG_WARNING, AT_MS, "mark_purged", json_pack("{s:s, s:i}", "subject", "media:a", "size", 3));
    rp_log_event(log, RP_LOG_DEBUG, 0, "bare", NULL);
    rp_log_close(log);
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(10000);
    read_all(p->path, &b);
    assert_string_equal(rp_buf_text(&b),
                        "{\"at\":\"2026-11-15T05:02:54.123Z\",\"level\":\"warning\",\"event\":\"mark_purged\","
                        "\"subject\":\"media:a\",\"size\":3}\n"
                        "{\"at\":\"1970-01-01T00:00:00.000Z\",\"level\":\"debug\",\"event\":\"bare\"}\n");
}

static void members_given_as_text_make_the_same_line(void **state)
{
    struct place *p = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf members = RP_BUF(1000), b = RP_BUF(10000);
    struct rp_log *log = opened(p->path, RP_LOG_INFO);
    rp_buf_str(&members, "\"subject\":");
    rp_json_quote(&members, "a\n\"b\\");
    rp_log_members(log, RP_LOG_INFO, AT_MS, "e\"", rp_buf_text(&members));
    rp_log_members(log, RP_LOG_INFO, 0, "bare", "");
    rp_log_members(log, RP_LOG_DEBUG, 0, "below", "");
    rp_log_members(NULL, RP_LOG_INFO, 0, "nowhere", "");
    rp_log_event(log, RP_LOG_INFO, AT_MS, "e\"", json_pack("{s:s}", "subject", "a\n\"b\\"));
    rp_log_close(log);
    read_all(p->path, &b);
    assert_string_equal(
        rp_buf_text(&b),
        "{\"at\":\"2026-11-15T05:02:54.123Z\",\"level\":\"info\",\"event\":\"e\\\"\",\"subject\":\"a\\u000a"
        "\\\"b\\\\\"}\n"
        "{\"at\":\"1970-01-01T00:00:00.000Z\",\"level\":\"info\",\"event\":\"bare\"}\n"
        "{\"at\":\"2026-11-15T05:02:54.123Z\",\"level\":\"info\",\"event\":\"e\\\"\",\"subject\":\"a\\n"
        "\\\"b\\\\\"}\n");
}

static void check_hostile(const json_t *line, void *ctx)
{
    (void)ctx;
    assert_string_equal(rp_json_get_text(line, "key", ""), "a\nb\"},{\x1b\xEF\xBF\xBD");
    assert_string_equal(rp_json_get_text(line, "event", ""), "e\nf");
}

static void a_key_with_a_newline_stays_one_line(void **state)
{
    struct place *p = *state;
    struct rp_log *log = opened(p->path, RP_LOG_INFO);
    rp_log_event(log, RP_LOG_INFO, AT_MS, "e\nf", json_pack("{s:o}", "key", rp_json_text("a\nb\"},{\x1b\xFF")));
    rp_log_close(log);
    assert_int_equal(each_line(p->path, check_hostile, NULL), 1);
}

static void check_honest(const json_t *line, void *ctx)
{
    (void)ctx;
    assert_string_equal(rp_json_get_text(line, "event", ""), "real");
    assert_string_equal(rp_json_get_text(line, "level", ""), "error");
    assert_string_equal(rp_json_get_text(line, "at", ""), "2026-11-15T05:02:54.123Z");
    assert_int_equal(rp_json_get_int(line, "n", 0), 1);
}

static void a_field_cannot_replace_what_every_line_has(void **state)
{
    struct place *p = *state;
    struct rp_log *log = opened(p->path, RP_LOG_INFO);
    rp_log_event(log, RP_LOG_ERROR, AT_MS, "real",
                 json_pack("{s:s, s:s, s:i, s:i}", "event", "forged", "level", "info", "at", 0, "n", 1));
    rp_log_close(log);
    assert_int_equal(each_line(p->path, check_honest, NULL), 1);
}

static void levels_below_the_least_are_dropped_and_not_lost(void **state)
{
    struct place *p = *state;
    struct rp_log *log = opened(p->path, RP_LOG_WARNING);
    for (int level = RP_LOG_DEBUG; level <= RP_LOG_ERROR; level++)
        rp_log_event(log, (enum rp_log_level)level, AT_MS, "x", json_object());
    assert_int_equal(rp_log_lost(log), 0);
    rp_log_close(log);
    assert_int_equal(each_line(p->path, NULL, NULL), 2);
}

static off_t size_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static void lines_wait_until_a_flush(void **state)
{
    struct place *p = *state;
    struct rp_log *log = opened(p->path, RP_LOG_INFO);
    rp_log_event(log, RP_LOG_INFO, AT_MS, "x", NULL);
    assert_int_equal(size_of(p->path), 0);
    rp_log_flush(log);
    assert_int_equal(each_line(p->path, NULL, NULL), 1);
    rp_log_flush(log);
    assert_int_equal(each_line(p->path, NULL, NULL), 1);
    rp_log_close(log);
}

static void a_full_buffer_writes_whole_lines_only(void **state)
{
    struct place *p = *state;
    struct rp_log *log = opened(p->path, RP_LOG_INFO);
    size_t sent = 0;
    while (size_of(p->path) == 0) {
        rp_log_event(log, RP_LOG_INFO, AT_MS, "x", json_pack("{s:i}", "n", (int)sent));
        sent++;
    }
    assert_in_range(size_of(p->path), (256 << 10) - 100, 256 << 10);
    assert_int_equal(each_line(p->path, NULL, NULL), sent - 1);
    rp_log_close(log);
    assert_int_equal(each_line(p->path, NULL, NULL), sent);
}

static json_t *filler_of(size_t n)
{
    char *text = malloc(n + 1);
    assert_non_null(text);
    memset(text, 'x', n);
    text[n] = '\0';
    json_t *fields = json_pack("{s:s}", "f", text);
    free(text);
    return fields;
}

static void a_line_of_exactly_the_buffer_is_written_and_a_longer_one_is_lost(void **state)
{
    struct place *p = *state;
    struct rp_log *log = opened(p->path, RP_LOG_INFO);
    rp_log_event(log, RP_LOG_INFO, AT_MS, "x", filler_of(0));
    rp_log_flush(log);
    size_t frame = (size_t)size_of(p->path);
    rp_log_event(log, RP_LOG_INFO, AT_MS, "x", filler_of((256 << 10) - frame));
    assert_int_equal(rp_log_lost(log), 0);
    rp_log_event(log, RP_LOG_INFO, AT_MS, "x", filler_of((256 << 10) - frame + 1));
    assert_int_equal(rp_log_lost(log), 1);
    rp_log_event(log, RP_LOG_INFO, AT_MS, "x", NULL);
    assert_int_equal(rp_log_lost(log), 1);
    rp_log_close(log);
    assert_int_equal(each_line(p->path, NULL, NULL), 3);
}

static void an_existing_log_is_continued(void **state)
{
    struct place *p = *state;
    for (int i = 0; i < 3; i++) {
        struct rp_log *log = opened(p->path, RP_LOG_INFO);
        rp_log_event(log, RP_LOG_INFO, AT_MS, "x", NULL);
        rp_log_close(log);
    }
    assert_int_equal(each_line(p->path, NULL, NULL), 3);
}

static void a_new_log_is_not_for_everyone(void **state)
{
    struct place *p = *state;
    mode_t before = umask(0);
    struct rp_log *log = opened(p->path, RP_LOG_INFO);
    umask(before);
    struct stat st;
    assert_int_equal(stat(p->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    rp_log_close(log);
}

static void a_log_that_cannot_be_opened_says_why(void **state)
{
    struct place *p = *state;
    struct rp_log *log = NULL;
    struct rp_error err = { 0 };
    char path[128];
    snprintf(path, sizeof path, "%s/missing/log", p->dir);
    assert_int_equal(rp_log_open(path, RP_LOG_INFO, &log, &err), RP_ENOTFOUND);
    assert_null(log);
    assert_non_null(strstr(err.text, "missing/log: No such file or directory"));
}

static void no_path_and_no_log_drop_everything(void **state)
{
    (void)state;
    static const char *const paths[] = { NULL, "" };
    for (size_t i = 0; i < 2; i++) {
        struct rp_log *log = opened(paths[i], RP_LOG_DEBUG);
        rp_log_event(log, RP_LOG_ERROR, AT_MS, "x", json_object());
        rp_log_flush(log);
        assert_int_equal(rp_log_lost(log), 0);
        rp_log_close(log);
    }
    rp_log_event(NULL, RP_LOG_ERROR, AT_MS, "x", json_object());
    rp_log_flush(NULL);
    assert_int_equal(rp_log_lost(NULL), 0);
    rp_log_close(NULL);
}

static void a_full_disk_loses_lines_and_counts_them(void **state)
{
    (void)state;
    struct rp_log *log = opened("/dev/full", RP_LOG_INFO);
    for (int i = 0; i < 5; i++)
        rp_log_event(log, RP_LOG_INFO, AT_MS, "x", NULL);
    assert_int_equal(rp_log_lost(log), 0);
    rp_log_flush(log);
    assert_int_equal(rp_log_lost(log), 5);
    rp_log_event(log, RP_LOG_INFO, AT_MS, "x", NULL);
    rp_log_flush(log);
    assert_int_equal(rp_log_lost(log), 6);
    rp_log_close(log);
}

static void drain(int fd, struct rp_buf *out)
{
    char part[4096];
    for (ssize_t n; (n = read(fd, part, sizeof part)) > 0;)
        assert_int_equal(rp_buf_add(out, part, (size_t)n), 0);
}

/* A pipe that nobody reads takes part of a line; when it is read again, the next line must not hang
 * on to that part. */
static void a_line_cut_short_does_not_swallow_the_next(void **state)
{
    struct place *p = *state;
    assert_int_equal(mkfifo(p->path, 0600), 0);
    RP_CLEANUP(rp_fd_closep) int reader = open(p->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    assert_int_equal(fcntl(reader, F_SETPIPE_SZ, 65536), 65536);
    struct rp_log *log = opened(p->path, RP_LOG_INFO);
    for (int i = 0; i < 3; i++)
        rp_log_event(log, RP_LOG_INFO, AT_MS, "x", filler_of(50000));
    rp_log_flush(log);
    assert_int_equal(rp_log_lost(log), 2); /* the pipe took one whole line and part of the second */
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(1 << 20);
    drain(reader, &b);
    rp_log_event(log, RP_LOG_INFO, AT_MS, "after", NULL);
    rp_log_flush(log);
    drain(reader, &b);
    assert_int_equal(rp_log_lost(log), 2);
    const char *last =
        strstr(rp_buf_text(&b), "\n{\"at\":\"2026-11-15T05:02:54.123Z\",\"level\":\"info\",\"event\":\"after\"}\n");
    assert_non_null(last);
    rp_log_close(log);
}

static void a_dash_is_standard_error_and_stays_open(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int kept = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    struct rp_log *log = opened("-", RP_LOG_INFO);
    rp_log_event(log, RP_LOG_INFO, 0, "x", NULL);
    rp_log_close(log);
    bool still_open = fcntl(STDERR_FILENO, F_GETFD) >= 0;
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(ends[1]);
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(1000);
    drain(ends[0], &b);
    close(ends[0]);
    assert_true(still_open);
    assert_string_equal(rp_buf_text(&b), "{\"at\":\"1970-01-01T00:00:00.000Z\",\"level\":\"info\",\"event\":\"x\"}\n");
}

enum { WRITERS = 4, LINES = 1000 };

struct writer {
    struct rp_log *log;
    int number;
};

static void *write_lines(void *arg)
{
    const struct writer *w = arg;
    for (int i = 0; i < LINES; i++) {
        rp_log_event(w->log, RP_LOG_INFO, AT_MS, "x", json_pack("{s:i, s:i}", "writer", w->number, "n", i));
        if (i % 100 == 0) rp_log_flush(w->log);
    }
    return NULL;
}

static void check_sequence(const json_t *line, void *ctx)
{
    int64_t *next = ctx;
    int64_t writer = rp_json_get_int(line, "writer", -1);
    assert_in_range(writer, 0, WRITERS - 1);
    assert_int_equal(rp_json_get_int(line, "n", -1), next[writer]++);
}

static void threads_share_a_log_without_mixing_or_losing_lines(void **state)
{
    struct place *p = *state;
    struct rp_log *log = opened(p->path, RP_LOG_INFO);
    pthread_t threads[WRITERS];
    struct writer writers[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){ log, i };
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(rp_log_lost(log), 0);
    rp_log_close(log);
    int64_t next[WRITERS] = { 0 };
    assert_int_equal(each_line(p->path, check_sequence, next), WRITERS * LINES);
}

static void processes_share_a_file_without_mixing_lines(void **state)
{
    struct place *p = *state;
    pid_t children[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] > 0) continue;
        struct rp_log *log = NULL;
        if (rp_log_open(p->path, RP_LOG_INFO, &log, NULL) < 0) _exit(1);
        struct writer w = { log, i };
        write_lines(&w);
        rp_log_close(log);
        _exit(0);
    }
    for (int i = 0; i < WRITERS; i++) {
        int status = -1;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    int64_t next[WRITERS] = { 0 };
    assert_int_equal(each_line(p->path, check_sequence, next), WRITERS * LINES);
}

static bool file_has(const char *path, const char *words)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(10000);
    read_all(path, &b);
    return strstr(rp_buf_text(&b), words) != NULL;
}

static void a_log_goes_on_in_a_new_file_after_a_rotation(void **state)
{
    struct place *p = *state;
    struct rp_error err = { 0 };
    struct rp_log *log;
    char moved[sizeof p->path + 8];
    snprintf(moved, sizeof moved, "%s.1", p->path);
    assert_int_equal(rp_log_open(p->path, RP_LOG_INFO, &log, NULL), 0);
    rp_log_event(log, RP_LOG_INFO, 0, "before", NULL);
    assert_int_equal(rename(p->path, moved), 0);
    assert_int_equal(rp_log_reopen(log, "/nowhere/x", RP_LOG_ERROR, &err), RP_ENOTFOUND);
    rp_log_event(log, RP_LOG_INFO, 0, "still", NULL);
    assert_int_equal(rp_log_reopen(log, p->path, RP_LOG_WARNING, &err), 0);
    rp_log_event(log, RP_LOG_INFO, 0, "dropped", NULL);
    rp_log_event(log, RP_LOG_WARNING, 0, "after", NULL);
    rp_log_close(log);
    assert_true(file_has(moved, "before") && file_has(moved, "still") && !file_has(moved, "after"));
    assert_true(file_has(p->path, "after") && !file_has(p->path, "dropped") && !file_has(p->path, "before"));
    unlink(moved);
}

static void level_names_are_read(void **state)
{
    (void)state;
    static const char *const names[] = { "debug", "info", "warning", "error" };
    for (int i = 0; i < 4; i++) {
        enum rp_log_level level = RP_LOG_DEBUG;
        assert_int_equal(rp_log_level_parse(names[i], &level, NULL), 0);
        assert_int_equal(level, i);
    }
    static const char *const others[] = { "", "INFO", "warn", "info ", "0" };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        enum rp_log_level level = RP_LOG_ERROR;
        struct rp_error err = { 0 };
        assert_int_equal(rp_log_level_parse(others[i], &level, &err), RP_EINVAL);
        assert_int_equal(level, RP_LOG_ERROR);
        assert_non_null(strstr(err.text, "debug, info, warning or error"));
    }
}

#define placed(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
        placed(a_line_has_time_level_event_and_fields_in_that_order),
        placed(members_given_as_text_make_the_same_line),
        placed(a_key_with_a_newline_stays_one_line),
        placed(a_field_cannot_replace_what_every_line_has),
        placed(levels_below_the_least_are_dropped_and_not_lost),
        placed(lines_wait_until_a_flush),
        placed(a_full_buffer_writes_whole_lines_only),
        placed(a_line_of_exactly_the_buffer_is_written_and_a_longer_one_is_lost),
        placed(an_existing_log_is_continued),
        placed(a_new_log_is_not_for_everyone),
        placed(a_log_that_cannot_be_opened_says_why),
        placed(no_path_and_no_log_drop_everything),
        placed(a_full_disk_loses_lines_and_counts_them),
        placed(a_line_cut_short_does_not_swallow_the_next),
        placed(a_dash_is_standard_error_and_stays_open),
        placed(threads_share_a_log_without_mixing_or_losing_lines),
        placed(processes_share_a_file_without_mixing_lines),
        placed(a_log_goes_on_in_a_new_file_after_a_rotation),
        placed(level_names_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
