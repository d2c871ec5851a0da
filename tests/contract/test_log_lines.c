/* SPDX-License-Identifier: Apache-2.0 */
/* M8: one JSON line in the log for each promise that is made or ended, with what it was about.
 * Needs PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/id.h"
#include "base/log.h"
#include "base/text/json.h"
#include "lib/uploads.h"

#define DAY RP_DAY_MS

static struct rp_error err;

struct told {
    struct world w; /* first: the fixtures of world.h drop it */
    char path[64];
    struct rp_log *log;
};

static int set_up(void **state)
{
    uintptr_t which = (uintptr_t)*state;
    struct told *t = calloc(1, sizeof *t);
    world_make(&t->w, which & 1 ? DBS_POSTGRES : DBS_SQLITE_FILE, WORLD_MEMORY);
    snprintf(t->path, sizeof t->path, "/tmp/reprieve-log-%d.json", (int)getpid());
    ok(rp_log_open(t->path, RP_LOG_INFO, &t->log, &err));
    t->w.catalog->log = t->log;
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct told *t = *state;
    t->w.catalog->log = NULL;
    rp_log_close(t->log);
    (void)unlink(t->path);
    world_check(&t->w);
    world_drop(&t->w);
    free(t);
    return 0;
}

/* The newest line of this event about this mark; NULL: none. */
static json_t *line_of(struct told *t, const char *event, int64_t mark_id)
{
    char text[16384], id[RP_ID_TEXT];
    json_t *found = NULL;
    rp_log_flush(t->log);
    FILE *f = fopen(t->path, "r");
    assert_non_null(f);
    rp_id_format(RP_ID_MARK, mark_id, id);
    while (fgets(text, sizeof text, f) != NULL) {
        json_t *line = json_loads(text, 0, NULL);
        assert_non_null(line);
        bool fits = strcmp(rp_json_get_text(line, "event", ""), event) == 0 &&
                    strcmp(rp_json_get_text(line, "mark", ""), id) == 0;
        json_decref(fits ? found : line);
        if (fits) found = line;
    }
    fclose(f);
    return found;
}

static void expect_line(struct told *t, const char *event, const struct rp_mark *mark, const char *reason)
{
    RP_CLEANUP(rp_json_decrefp) json_t *line = line_of(t, event, mark->id);
    char at[RP_TIME_TEXT];
    if (line == NULL) fail_msg("no line %s about %s", event, mark->key);
    assert_non_null(strstr(rp_json_get_text(line, "subject", ""), mark->key));
    assert_string_equal(rp_json_get_text(line, "reason", ""), reason);
    assert_string_equal(rp_json_get_text(line, "actor", ""), "tester");
    assert_string_equal(rp_json_get_text(line, "marked_at", ""), rp_time_format(mark->marked_at_ms, at));
    assert_string_equal(rp_json_get_text(line, "due_at", ""), rp_time_format(mark->due_at_ms, at));
}

static void expect_marked(struct told *t, int64_t file_id, const char *reason)
{
    const struct rp_mark mark = uploads_mark(&t->w, file_id);
    expect_line(t, "mark.created", &mark, reason);
}

static void test_M8_a_second_confirm_tells_of_the_mark_on_what_it_replaces(void **state)
{
    struct told *t = *state;
    int64_t old = uploads_live(&t->w, "a", "old"), thumb = uploads_child(&t->w, "thumb", 0, old);
    (void)uploads_live(&t->w, "a", "new");
    uploads_expect(&t->w, old, RP_FILE_DELETED);
    expect_marked(t, old, "replaced");
    expect_marked(t, thumb, "replaced");
}

static void test_M8_a_commit_tells_of_the_marks_on_what_it_replaces(void **state)
{
    struct told *t = *state;
    struct world *w = &t->w;
    struct rp_txn_command c;
    int64_t by_id = uploads_live(w, "old name", "old"), by_name = uploads_live(w, "b", "old");
    int64_t txn = uploads_txn_begin(w);
    (void)uploads_member(w, txn, "a", "aa", by_id);
    (void)uploads_member(w, txn, "b", "bb", 0);
    world_ok(uploads_commit(w, txn, &c), &c.command.error, __FILE__, __LINE__);
    expect_marked(t, by_id, "replaced");
    expect_marked(t, by_name, "replaced");
}

static void test_M8_a_delete_tells_of_the_marks_on_what_goes_along(void **state)
{
    struct told *t = *state;
    struct rp_file_command c;
    int64_t root = uploads_live(&t->w, "root", "x"), child = uploads_child(&t->w, "child", root, 0);
    assert_int_equal(uploads_delete(&t->w, root, 2 * DAY, &c), 0);
    const struct rp_mark own = uploads_mark(&t->w, root);
    expect_line(t, "file.deleted", &own, own.reason);
    expect_marked(t, child, own.reason);
}

static void test_M8_what_ends_a_mark_says_which_promise_that_was(void **state)
{
    struct told *t = *state;
    struct rp_file_command c;
    int64_t id = uploads_begin(&t->w, "a", "x");
    const struct rp_mark birth = uploads_mark(&t->w, id);
    uploads_put(&t->w, id, "x");
    assert_int_equal(uploads_confirm(&t->w, id, NULL, &c), 0);
    expect_line(t, "file.uploaded", &birth, "abandoned");
    assert_int_equal(uploads_delete(&t->w, id, 2 * DAY, &c), 0);
    const struct rp_mark mark = uploads_mark(&t->w, id);
    assert_int_equal(uploads_restore(&t->w, id, &c), 0);
    expect_line(t, "file.restored", &mark, mark.reason);
    assert_int_equal(c.answer.mark_id, 0); /* and the answer shows no mark that waits */
    world_put(&t->w, "k", "x");
    (void)world_mark(&t->w, "k", 2 * DAY);
    const struct rp_mark plain = world_newest(&t->w, "k");
    (void)world_restore(&t->w, "k");
    expect_line(t, "mark.reprieved", &plain, plain.reason);
}

/* clang-format off */
#define BOTH(fn) \
    { #fn " on sqlite", fn, set_up, tear_down, (void *)(uintptr_t)0 }, \
    { #fn " on postgres", fn, set_up, tear_down, (void *)(uintptr_t)1 }
/* clang-format on */

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_M8_a_second_confirm_tells_of_the_mark_on_what_it_replaces),
        BOTH(test_M8_a_commit_tells_of_the_marks_on_what_it_replaces),
        BOTH(test_M8_a_delete_tells_of_the_marks_on_what_goes_along),
        BOTH(test_M8_what_ends_a_mark_says_which_promise_that_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
