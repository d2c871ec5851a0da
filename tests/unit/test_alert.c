/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions as a function of figures and limits; and the rules for Prometheus, which must say the
 * same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/json.h"
#include "base/time.h"
#include "config/yaml.h"
#include "core/alert.h"

#define NOW INT64_C(1800000000000)

static const struct rp_alert_config defaults = { .webhook = "",
                                                 .webhook_secret = "",
                                                 .marked_over = 10000,
                                                 .overdue_over_ms = 2 * RP_DAY_MS,
                                                 .run_over_ms = 4 * RP_MINUTE_MS,
                                                 .error_rate_over_percent = 10,
                                                 .error_window_ms = 30 * RP_DAY_MS,
                                                 .no_run_for_ms = 25 * RP_HOUR_MS,
                                                 .lock_stale_over_ms = RP_HOUR_MS,
                                                 .abandoned_per_hour_over = 100,
                                                 .no_worker_for_ms = 5 * RP_MINUTE_MS,
                                                 .sink_lag_over_ms = 15 * RP_MINUTE_MS };

static struct rp_alert_figures quiet(void)
{
    return (struct rp_alert_figures){ .worker_seen_ms = NOW };
}

/* Which conditions hold, as bits. */
static unsigned holding(const struct rp_alert_config *limits, const struct rp_alert_figures *figures)
{
    struct rp_alert_verdict verdicts[RP_ALERTS];
    unsigned bits = 0;
    rp_alert_judge(limits, figures, NOW, verdicts);
    for (int i = 0; i < RP_ALERTS; i++)
        if (verdicts[i].holds) bits |= 1U << i;
    return bits;
}

/* Each: a figure at its limit, and the same just past it. */
static const struct {
    enum rp_alert alert;
    struct rp_alert_figures at, past;
} edges[] = {
    { RP_ALERT_MARKED, { .marked = 10000 }, { .marked = 10001 } },
    { RP_ALERT_OVERDUE, { .oldest_due_ms = NOW - 2 * RP_DAY_MS }, { .oldest_due_ms = NOW - 2 * RP_DAY_MS - 1 } },
    { RP_ALERT_RUN_LONG, { .longest_run_ms = 4 * RP_MINUTE_MS }, { .longest_run_ms = 4 * RP_MINUTE_MS + 1 } },
    { RP_ALERT_ERROR_RATE, { .runs = 1000, .run_errors = 100 }, { .runs = 1000, .run_errors = 101 } },
    { RP_ALERT_NO_RUN, { .last_run_ms = NOW - 25 * RP_HOUR_MS }, { .last_run_ms = NOW - 25 * RP_HOUR_MS - 1 } },
    { RP_ALERT_NO_RUN,
      { .interval_ms = 7 * RP_DAY_MS, .last_run_ms = NOW - 7 * RP_DAY_MS - RP_HOUR_MS },
      { .interval_ms = 7 * RP_DAY_MS, .last_run_ms = NOW - 7 * RP_DAY_MS - RP_HOUR_MS - 1 } },
    { RP_ALERT_LOCK_STALE, { .stale_lock_ms = RP_HOUR_MS }, { .stale_lock_ms = RP_HOUR_MS + 1 } },
    { RP_ALERT_ABANDONED, { .abandoned = 100 }, { .abandoned = 101 } },
    { RP_ALERT_NO_WORKER,
      { .worker_seen_ms = NOW - 5 * RP_MINUTE_MS },
      { .worker_seen_ms = NOW - 5 * RP_MINUTE_MS - 1 } },
    { RP_ALERT_SINK_BEHIND, { .sink_lag_ms = 15 * RP_MINUTE_MS }, { .sink_lag_ms = 15 * RP_MINUTE_MS + 1 } },
    { RP_ALERT_DEAD_LETTERS, { .dead = 0 }, { .dead = 1 } },
    { RP_ALERT_CLOCKS, { .clocks_apart_ms = 5 * RP_MINUTE_MS }, { .clocks_apart_ms = 5 * RP_MINUTE_MS + 1 } },
    { RP_ALERT_CLOCK_JUMP, { .clock_jump_ms = 5 * RP_MINUTE_MS }, { .clock_jump_ms = 5 * RP_MINUTE_MS + 1 } },
    { RP_ALERT_NOT_OURS, { .not_ours = 0 }, { .not_ours = 1 } },
    { RP_ALERT_DISK_FULL, { .full = 0 }, { .full = 1 } },
    { RP_ALERT_RAISE_OWED, { .raise_owed_ms = 10 * RP_MINUTE_MS }, { .raise_owed_ms = 10 * RP_MINUTE_MS + 1 } },
};
#define EDGES (sizeof edges / sizeof edges[0])

static struct rp_alert_figures alive(struct rp_alert_figures f)
{
    if (f.worker_seen_ms == 0) f.worker_seen_ms = NOW;
    return f;
}

static void nothing_holds_when_nothing_is_wrong(void **state)
{
    struct rp_alert_figures figures = quiet();
    (void)state;
    assert_int_equal(holding(&defaults, &figures), 0);
}

static void each_condition_holds_past_its_limit_and_not_at_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < EDGES; i++) {
        struct rp_alert_figures at = alive(edges[i].at), past = alive(edges[i].past);
        assert_int_equal(holding(&defaults, &at), 0);
        assert_int_equal(holding(&defaults, &past), 1U << edges[i].alert);
    }
}

static void a_limit_of_0_turns_a_condition_off(void **state)
{
    struct rp_alert_config off = { .webhook = "", .webhook_secret = "", .error_window_ms = RP_DAY_MS };
    (void)state;
    for (size_t i = 0; i < EDGES; i++) {
        struct rp_alert_figures past = alive(edges[i].past);
        /* of dead letters 0 is a limit; from clocks on none has a setting: nothing is purged
         * meanwhile, or would go unnoticed */
        assert_int_equal(holding(&off, &past), edges[i].alert >= RP_ALERT_DEAD_LETTERS ? 1U << edges[i].alert : 0);
    }
}

static void a_figure_that_is_not_known_decides_nothing(void **state)
{
    struct rp_alert_verdict verdicts[RP_ALERTS];
    struct rp_alert_figures unknown = { .marked = -1,
                                        .dead = -1,
                                        .oldest_due_ms = -1,
                                        .longest_run_ms = -1,
                                        .runs = -1,
                                        .last_run_ms = -1,
                                        .stale_lock_ms = -1,
                                        .abandoned = -1,
                                        .worker_seen_ms = -1,
                                        .sink_lag_ms = -1,
                                        .clocks_apart_ms = -1,
                                        .clock_jump_ms = -1,
                                        .not_ours = -1,
                                        .raise_owed_ms = -1,
                                        .full = -1 };
    (void)state;
    rp_alert_judge(&defaults, &unknown, NOW, verdicts);
    for (int i = 0; i < RP_ALERTS; i++)
        assert_false(verdicts[i].known || verdicts[i].holds);
}

static void a_moment_in_the_future_is_no_age(void **state)
{
    struct rp_alert_figures figures = { .oldest_due_ms = NOW + RP_DAY_MS, .worker_seen_ms = NOW + RP_DAY_MS };
    (void)state;
    assert_int_equal(holding(&defaults, &figures), 0);
}

static void details_name_the_figures(void **state)
{
    struct rp_alert_verdict verdicts[RP_ALERTS];
    struct rp_alert_figures figures = quiet();
    (void)state;
    figures.longest_run_ms = RP_HOUR_MS;
    snprintf(figures.longest_run, sizeof figures.longest_run, "all");
    rp_alert_judge(&defaults, &figures, NOW, verdicts);
    json_t *o = rp_alert_details(RP_ALERT_RUN_LONG, &verdicts[RP_ALERT_RUN_LONG]);
    const json_t *f = json_object_get(o, "figures");
    assert_string_equal(rp_json_get_text(o, "summary", ""), rp_alert_rules[RP_ALERT_RUN_LONG].summary);
    assert_int_equal(rp_json_get_int(f, "value", 0), 3600);
    assert_int_equal(rp_json_get_int(f, "limit", 0), 240);
    assert_string_equal(rp_json_get_text(f, "unit", ""), "s");
    assert_string_equal(rp_json_get_text(f, "about", ""), "all");
    json_decref(o);
}

static void names_are_found_again(void **state)
{
    (void)state;
    for (int i = 0; i < RP_ALERTS; i++)
        assert_int_equal(rp_alert_by_name(rp_alert_rules[i].name), i);
    assert_int_equal(rp_alert_by_name("Other"), RP_ALERTS);
}

/* ---- Prometheus ---- */

static const char *in_tree(const char *path)
{
    static char whole[4096];
    const char *tree = getenv("REPRIEVE_TREE");
    snprintf(whole, sizeof whole, "%s/%s", tree != NULL ? tree : ".", path);
    return whole;
}

/* docs/alerts.md has a row for each, and for no other. */
static void every_condition_stands_in_the_guide(void **state)
{
    char line[4096];
    size_t rows = 0;
    (void)state;
    FILE *f = fopen(in_tree("docs/alerts.md"), "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL) {
        char row[200];
        if (strncmp(line, "| `", 3) != 0) continue;
        line[3 + strcspn(line + 3, "`")] = 0;
        enum rp_alert alert = rp_alert_by_name(line + 3);
        if (alert == RP_ALERTS) fail_msg("docs/alerts.md: there is no %s", line + 3);
        snprintf(row, sizeof row, " | %s |", rp_alert_rules[alert].severity);
        if (strncmp(line + 3 + strlen(line + 3) + 1, row, strlen(row)) != 0)
            fail_msg("docs/alerts.md: %s is %s", line + 3, rp_alert_rules[alert].severity);
        rows++;
    }
    fclose(f);
    assert_int_equal(rows, RP_ALERTS);
}

static const struct rp_yaml *load_rules(struct rp_arena *arena)
{
    struct rp_error err = { 0 };
    struct rp_yaml *root = NULL;
    char *text = rp_arena_alloc(arena, 65536);
    FILE *f = fopen(in_tree("packaging/prometheus/reprieve.rules.yml"), "re");
    assert_non_null(f);
    size_t n = fread(text, 1, 65536, f);
    fclose(f);
    if (rp_yaml_parse(text, n, "rules", arena, &root, &err) < 0) fail_msg("%s", err.text);
    const struct rp_yaml *groups = rp_yaml_member(root, "groups");
    assert_int_equal(groups->n, 1);
    return rp_yaml_member(groups->first, "rules");
}

static void the_rules_say_what_the_table_says(void **state)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    const struct rp_yaml *rules = load_rules(&arena);
    int i = 0;
    (void)state;
    for (const struct rp_yaml *rule = rules->first; rule != NULL; rule = rule->next, i++) {
        const struct rp_yaml *annotations = rp_yaml_member(rule, "annotations");
        assert_true(i < RP_ALERTS);
        assert_string_equal(rp_yaml_member(rule, "alert")->text, rp_alert_rules[i].name);
        assert_string_equal(rp_yaml_member(rp_yaml_member(rule, "labels"), "severity")->text,
                            rp_alert_rules[i].severity);
        assert_string_equal(rp_yaml_member(annotations, "summary")->text, rp_alert_rules[i].summary);
        assert_string_equal(rp_yaml_member(annotations, "description")->text, rp_alert_rules[i].description);
    }
    assert_int_equal(i, RP_ALERTS);
}

static void promtool(const char *what, const char *file)
{
    char command[5000];
    snprintf(command, sizeof command, "promtool %s rules '%s' >&2", what, in_tree(file));
    int status = system(command);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("%s", command);
}

static void promtool_accepts_the_rules(void **state)
{
    (void)state;
    promtool("check", "packaging/prometheus/reprieve.rules.yml");
}

static void the_rules_hold_past_their_limits(void **state)
{
    (void)state;
    promtool("test", "tests/unit/alert_rules.yml");
    promtool("test", "tests/unit/alert_rules_days.yml"); /* apart: evaluated once a day, or it takes minutes */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_holds_when_nothing_is_wrong),
        cmocka_unit_test(each_condition_holds_past_its_limit_and_not_at_it),
        cmocka_unit_test(a_limit_of_0_turns_a_condition_off),
        cmocka_unit_test(a_figure_that_is_not_known_decides_nothing),
        cmocka_unit_test(a_moment_in_the_future_is_no_age),
        cmocka_unit_test(details_name_the_figures),
        cmocka_unit_test(names_are_found_again),
        cmocka_unit_test(the_rules_say_what_the_table_says),
        cmocka_unit_test(every_condition_stands_in_the_guide),
        cmocka_unit_test(promtool_accepts_the_rules),
        cmocka_unit_test(the_rules_hold_past_their_limits),
    };
    return cmocka_run_group_tests_name("alert", tests, NULL, NULL);
}
