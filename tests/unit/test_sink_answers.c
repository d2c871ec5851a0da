/* SPDX-License-Identifier: Apache-2.0 */
/* What decides about calls out of the feed, without threads: patterns of events, messages, what
 * follows from answers (daemon/sinks, daemon/processor). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/json.h"
#include "config/events.h"
#include "daemon/processor/call.h"
#include "daemon/sinks/answer.h"
#include "daemon/sinks/message.h"

static struct rp_error err;

static void file_closep(FILE **f)
{
    if (*f != NULL) fclose(*f);
}

/* ---- patterns ---- */

static size_t count(const char *patterns)
{
    const char *names[RP_EVENT_NAMES_MAX];
    size_t n = 0;
    rp_event_names_of(patterns, names);
    while (names[n] != NULL)
        n++;
    return n;
}

static void a_pattern_is_a_name_or_a_kind(void **state)
{
    const struct {
        const char *pattern;
        bool known;
    } cases[] = { { "file.deleted", true }, { "file.*", true },   { "mark.purged", true },
                  { "file.delete", false }, { "file.", false },   { "file*", false },
                  { "*", false },           { ".*", false },      { "", false },
                  { "fil.*", false },       { "file.**", false }, { "file.deleted.*", false },
                  { "audit.heads", false }, { "FILE.*", false } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (rp_event_pattern_is_known(cases[i].pattern, strlen(cases[i].pattern)) != cases[i].known)
            fail_msg("%s", cases[i].pattern);
    assert_int_equal(count("file.deleted"), 1);
    assert_int_equal(count("file.deleted file.deleted mark.purged"), 2);
    assert_int_equal(count("file.* file.deleted"), count("file.*"));
    assert_int_equal(count("run.* alert.*"), 6);
    assert_int_equal(count(""), 0);
}

static void names_of_events_stand_in_order(void **state)
{
    (void)state;
    for (size_t i = 1; rp_event_names[i] != NULL; i++)
        assert_true(strcmp(rp_event_names[i - 1], rp_event_names[i]) < 0);
}

/* docs/events-out.md has a row for each, and for no other, in the same order. */
static void every_event_stands_in_the_guide(void **state)
{
    char path[4096], line[4096];
    const char *tree = getenv("REPRIEVE_TREE");
    const char *const *name = rp_event_names;
    bool inside = false;
    (void)state;
    snprintf(path, sizeof path, "%s/docs/events-out.md", tree != NULL ? tree : ".");
    RP_CLEANUP(file_closep) FILE *f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, "## ", 3) == 0) inside = strcmp(line, "## All events\n") == 0;
        if (!inside || strncmp(line, "| `", 3) != 0) continue;
        line[3 + strcspn(line + 3, "`")] = 0;
        assert_non_null(*name);
        assert_string_equal(line + 3, *name++);
    }
    if (*name != NULL) fail_msg("docs/events-out.md does not name %s", *name);
}

/* ---- messages ---- */

static json_t *message_of(const char *json)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf out = RP_BUF(RP_FEED_JSON_MAX);
    const struct rp_feed_event event = { .lane = 3,
                                         .seq = 120,
                                         .at_ms = INT64_C(1790000000000),
                                         .id = "1.7-3.120",
                                         .name = "run.finished",
                                         .json = json,
                                         .json_bytes = strlen(json) };
    json_t *o = NULL;
    assert_int_equal(rp_sink_message(&event, &out, &err), 0);
    assert_int_equal(rp_json_parse(rp_buf_text(&out), out.len, &o, &err), 0);
    return o;
}

/* Whichever cursor it was read with: a repetition by another node has the same id. */
static void a_message_has_an_id_that_names_the_event(void **state)
{
    RP_CLEANUP(rp_json_decrefp)
    json_t *o = message_of(
        "{\"at\":\"2026-01-01T00:00:00.000Z\",\"event\":\"file.deleted\",\"actor\":\"x\",\"file\":\"fil_1\"}");
    (void)state;
    assert_string_equal(rp_json_get_text(o, "id", ""), "evt_01a0c4506c00-3-78");
    assert_string_equal(rp_json_get_text(o, "event", ""), "file.deleted");
    assert_string_equal(rp_json_get_text(o, "at", ""), "2026-01-01T00:00:00.000Z");
    assert_string_equal(rp_json_get_text(o, "file", ""), "fil_1");
}

static void an_id_in_the_details_is_called_what_it_names(void **state)
{
    RP_CLEANUP(rp_json_decrefp)
    json_t *o = message_of(
        "{\"at\":\"x\",\"event\":\"run.finished\",\"actor\":\"x\",\"id\":\"run_0000000000001\",\"kind\":\"sweep\"}");
    RP_CLEANUP(rp_json_decrefp)
    json_t *strange = message_of("{\"at\":\"x\",\"event\":\"run.finished\",\"actor\":\"x\",\"id\":\"what\"}");
    RP_CLEANUP(rp_json_decrefp)
    json_t *inside = message_of("{\"at\":\"x\",\"event\":\"run.finished\",\"actor\":\"x\",\"in\":{\"id\":7}}");
    (void)state;
    assert_string_equal(rp_json_get_text(o, "id", ""), "evt_01a0c4506c00-3-78");
    assert_string_equal(rp_json_get_text(o, "run", ""), "run_0000000000001");
    assert_string_equal(rp_json_get_text(o, "kind", ""), "sweep");
    assert_string_equal(rp_json_get_text(strange, "about", ""), "what");
    assert_int_equal(rp_json_get_int(json_object_get(inside, "in"), "id", 0), 7);
}

/* ---- what follows from an answer to an event ---- */

#define YOUNG RP_MINUTE_MS
#define OLD   (4 * RP_DAY_MS)

static enum rp_sink_fate fate(long status, int64_t age_ms, int64_t event_refusals, int64_t in_a_row)
{
    int64_t again_ms = -1;
    int code = status >= 200 && status < 300 ? 0 : status == 0 || status >= 500 ? RP_EUNAVAILABLE : RP_EDENIED;
    const struct rp_sink_answer a = { .code = code,
                                      .status = status,
                                      .retry_after_ms = -1,
                                      .event_age_ms = age_ms,
                                      .event_refusals = event_refusals,
                                      .refusals_in_a_row = in_a_row };
    enum rp_sink_fate f = rp_sink_judge(&a, &again_ms);
    assert_int_equal(again_ms, 0);
    return f;
}

static void what_is_down_is_waited_for(void **state)
{
    static const long statuses[] = { 0, 500, 502, 503, 408, 429 };
    (void)state;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        assert_int_equal(fate(statuses[i], OLD, 1000, 1000), RP_SINK_AGAIN);
    assert_int_equal(fate(204, YOUNG, 0, 0), RP_SINK_TAKEN);
}

static void what_is_refused_for_itself_is_passed_over_by_and_by(void **state)
{
    static const long statuses[] = { 400, 413, 415, 422 };
    (void)state;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        assert_int_equal(fate(statuses[i], YOUNG, RP_SINK_REFUSALS - 1, 500), RP_SINK_AGAIN);
        assert_int_equal(fate(statuses[i], YOUNG, RP_SINK_REFUSALS, RP_SINK_REFUSALS), RP_SINK_PASSED_OVER);
    }
}

static void a_receiver_that_refuses_everything_is_given_days(void **state)
{
    static const long statuses[] = { 301, 401, 403, 404, 405, 410 };
    (void)state;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        assert_int_equal(fate(statuses[i], YOUNG, 1000, 1000), RP_SINK_AGAIN);
        assert_int_equal(fate(statuses[i], OLD, 1, RP_SINK_REFUSALS - 1), RP_SINK_AGAIN); /* it has just come back */
        assert_int_equal(fate(statuses[i], OLD, 1, RP_SINK_REFUSALS), RP_SINK_PASSED_OVER);
    }
}

static void retry_after_counts_up_to_an_hour(void **state)
{
    struct rp_sink_answer a = { .code = RP_EUNAVAILABLE, .status = 429, .retry_after_ms = 90 * RP_SECOND_MS };
    int64_t again_ms = 0;
    (void)state;
    assert_int_equal(rp_sink_judge(&a, &again_ms), RP_SINK_AGAIN);
    assert_int_equal(again_ms, 90 * RP_SECOND_MS);
    a.retry_after_ms = RP_DAY_MS;
    (void)rp_sink_judge(&a, &again_ms);
    assert_int_equal(again_ms, RP_HOUR_MS);
}

/* ---- the processor ---- */

static enum rp_process_end ending(enum rp_process_action action, int64_t attempts, long status, int64_t *again_ms)
{
    const struct rp_process_job job = { .action = action, .attempts = attempts };
    int code = status >= 200 && status < 300 ? 0 : status == 0 || status >= 500 ? RP_EUNAVAILABLE : RP_EDENIED;
    const struct rp_process_answer a = { .code = code, .status = status, .retry_after_ms = -1 };
    return rp_process_judge(&job, &a, again_ms);
}

static void a_call_is_tried_for_three_days(void **state)
{
    int64_t again_ms, spent_ms = 0, attempts = 1;
    (void)state;
    for (; ending(RP_PROCESS, attempts, attempts % 2 == 0 ? 503 : 404, &again_ms) == RP_PROCESS_AGAIN; attempts++)
        spent_ms += again_ms;
    assert_int_equal(attempts, RP_PROCESS_ATTEMPTS);
    assert_int_equal(ending(RP_PROCESS, attempts, 0, &again_ms), RP_PROCESS_DEAD);
    assert_true(spent_ms > 3 * RP_DAY_MS - 4 * RP_HOUR_MS && spent_ms < 4 * RP_DAY_MS);
    assert_int_equal(ending(RP_PROCESS, attempts, 202, &again_ms), RP_PROCESS_TOLD);
}

static void a_cancel_is_best_effort(void **state)
{
    int64_t again_ms;
    (void)state;
    assert_int_equal(ending(RP_PROCESS_CANCEL, 1, 404, &again_ms), RP_PROCESS_TOLD);
    assert_int_equal(ending(RP_PROCESS_CANCEL, 1, 503, &again_ms), RP_PROCESS_AGAIN);
    assert_int_equal(ending(RP_PROCESS_CANCEL, RP_CANCEL_ATTEMPTS, 503, &again_ms), RP_PROCESS_GIVEN_UP);
}

static void a_call_says_what_the_interface_says(void **state)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf out = RP_BUF(4096);
    char id[RP_PROCESS_ID];
    struct rp_process_job job = { .file_id = 5, .key = "fil_x", .action = RP_PROCESS, .made_at_ms = 255 };
    const struct rp_file file = { .id = 5, .name = "a \"b\"", .size_bytes = 7, .content_type = "image/png" };
    (void)state;
    assert_int_equal(rp_process_body(&job, &file, "acme", "http://h/x?y", &out, &err), 0);
    assert_string_equal(rp_buf_text(&out),
                        "{\"action\":\"process\",\"file\":\"fil_0000000000005\",\"tenant\":\"acme\",\"name\":\"a "
                        "\\\"b\\\"\",\"size\":7,\"content_type\":\"image/png\",\"url\":\"http://h/x?y\","
                        "\"idempotency_key\":\"fil_x\"}");
    assert_string_equal(rp_process_id(&job, id), "fil_0000000000005-process-ff");
    job.action = RP_PROCESS_CANCEL;
    rp_buf_clear(&out);
    assert_int_equal(rp_process_body(&job, &file, "", "", &out, &err), 0);
    assert_string_equal(rp_buf_text(&out),
                        "{\"action\":\"cancel\",\"file\":\"fil_0000000000005\",\"idempotency_key\":\"fil_x\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pattern_is_a_name_or_a_kind),
        cmocka_unit_test(names_of_events_stand_in_order),
        cmocka_unit_test(every_event_stands_in_the_guide),
        cmocka_unit_test(a_message_has_an_id_that_names_the_event),
        cmocka_unit_test(an_id_in_the_details_is_called_what_it_names),
        cmocka_unit_test(what_is_down_is_waited_for),
        cmocka_unit_test(what_is_refused_for_itself_is_passed_over_by_and_by),
        cmocka_unit_test(a_receiver_that_refuses_everything_is_given_days),
        cmocka_unit_test(retry_after_counts_up_to_an_hour),
        cmocka_unit_test(a_call_is_tried_for_three_days),
        cmocka_unit_test(a_cancel_is_best_effort),
        cmocka_unit_test(a_call_says_what_the_interface_says),
    };
    return cmocka_run_group_tests_name("sink answers", tests, NULL, NULL);
}
