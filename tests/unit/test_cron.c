/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdio.h>
#include <string.h>

#include "base/cron.h"
#include "base/error.h"
#include "base/time.h"

static int64_t at(const char *text)
{
    int64_t ms;
    assert_int_equal(rp_time_parse(text, &ms, NULL), 0);
    return ms;
}

static void schedules_fire_when_they_should(void **state)
{
    (void)state;
    static const struct {
        const char *schedule, *after, *next;
    } cases[] = {
        { "* * * * *", "2026-11-15T05:02:54Z", "2026-11-15T05:03:00Z" },
        { "0 2 * * *", "2026-11-15T01:59:59.999Z", "2026-11-15T02:00:00Z" },
        { "0 2 * * *", "2026-11-15T02:00:00Z", "2026-11-16T02:00:00Z" }, /* strictly after */
        { "0 2 * * *", "2026-11-15T02:00:00.001Z", "2026-11-16T02:00:00Z" },
        { "59 23 31 12 *", "2026-12-31T23:59:00Z", "2027-12-31T23:59:00Z" },
        { "* * * * *", "2026-12-31T23:59:59Z", "2027-01-01T00:00:00Z" },
        { "15 * * * *", "2026-11-15T05:15:00Z", "2026-11-15T06:15:00Z" },
        { "0 4 * * 0", "2026-11-14T00:00:00Z", "2026-11-15T04:00:00Z" }, /* a Sunday */
        { "0 4 * * 7", "2026-11-14T00:00:00Z", "2026-11-15T04:00:00Z" },
        { "0 4 * * SUN", "2026-11-14T00:00:00Z", "2026-11-15T04:00:00Z" },
        { "0 4 * * sat-sun", "2026-11-15T05:00:00Z", "2026-11-21T04:00:00Z" },
        { "0 4 * * fri-7", "2026-11-16T00:00:00Z", "2026-11-20T04:00:00Z" },
        { "0 0 * * mon-Fri", "2026-11-13T12:00:00Z", "2026-11-16T00:00:00Z" },
        { "*/15 * * * *", "2026-11-15T05:46:00Z", "2026-11-15T06:00:00Z" },
        { "10-50/20 * * * *", "2026-11-15T05:30:00Z", "2026-11-15T05:50:00Z" },
        { "10-49/20 * * * *", "2026-11-15T05:30:00Z", "2026-11-15T06:10:00Z" },
        { "5,7,9 8,20 * * *", "2026-11-15T08:09:00Z", "2026-11-15T20:05:00Z" },
        { "0 0 1 jan,Jul *", "2026-01-01T00:00:00Z", "2026-07-01T00:00:00Z" },
        { "0 0 31 * *", "2026-11-01T00:00:00Z", "2026-12-31T00:00:00Z" }, /* November has none */
        { "0 0 13 * 5", "2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z" }, /* either day field */
        { "0 0 13 * 5", "2026-12-11T00:00:00Z", "2026-12-13T00:00:00Z" },
        { "0 0 1-31 * 1", "2026-11-17T00:00:00Z", "2026-11-18T00:00:00Z" }, /* written out is restricted */
        { "0 0 */10 * *", "2026-11-21T00:00:00Z", "2026-12-01T00:00:00Z" },
        { "0 0 30 2 1", "2026-02-03T00:00:00Z", "2026-02-09T00:00:00Z" }, /* Mondays save 30 February */
        { "0 0 29 2 *", "2026-11-15T00:00:00Z", "2028-02-29T00:00:00Z" },
        { "0 0 29 2 *", "2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z" },
        { "0 0 29 2 *", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z" }, /* 2100 is no leap year */
        { "59 23 29 feb *", "2096-02-29T23:59:00Z", "2104-02-29T23:59:00Z" },
        { "0 0 1 1 *", "1970-01-01T00:00:00Z", "1971-01-01T00:00:00Z" },
        { "30 2 29 3 *", "2026-03-28T12:00:00Z", "2026-03-29T02:30:00Z" }, /* an hour that Berlin does not have */
        { "59 23 * * *", "9999-12-31T23:58:59.999Z", "9999-12-31T23:59:00Z" },
        { "\t 0  2\t* * *  ", "2026-11-15T00:00:00Z", "2026-11-15T02:00:00Z" },
        { "*,5 00 01 1-12/11 *", "2026-01-01T00:58:00Z", "2026-01-01T00:59:00Z" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rp_cron cron;
        int64_t next = -1;
        assert_int_equal(rp_cron_parse(cases[i].schedule, &cron, NULL), 0);
        assert_int_equal(rp_cron_next(&cron, at(cases[i].after), &next, NULL), 0);
        char text[RP_TIME_TEXT];
        if (next != at(cases[i].next)) fail_msg("%s: %s", cases[i].schedule, rp_time_format(next, text));
    }
}

static void what_is_no_schedule_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "   ",
        "* * * *",
        "* * * * * *",
        "@daily",
        "continuous",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 0 *",
        "* * * 13 *",
        "* * * * 8",
        "-1 * * * *",
        "5-1 * * * *",
        "1- * * * *",
        "-5 * * * *",
        "1,, * * * *",
        ",1 * * * *",
        "1, * * * *",
        "*/0 * * * *",
        "*/ * * * *",
        "*/60 * * * *", /* would fire once an hour, which is not what it says */
        "5/10 * * * *",
        "**  * * * *",
        "*5 * * * *",
        "1-2-3 * * * *",
        "*/2/3 * * * *",
        "005 * * * *",
        "1.5 * * * *",
        "jan * * * *",
        "* * * janu *",
        "* * * ja *",
        "* * * * monday",
        "* * * * jan",
        "0 2 * * *\n",
        "0\n2 * * *",
        "? * * * *",
        "* * L * *",
        "* * * * 1#2",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct rp_cron cron = { .minutes = 42 };
        struct rp_error err = { 0 };
        if (rp_cron_parse(texts[i], &cron, &err) != RP_EINVAL) fail_msg("accepted: '%s'", texts[i]);
        assert_int_equal(cron.minutes, 42);
        assert_non_null(strstr(err.text, "schedule"));
        assert_true(err.hint[0] != '\0');
    }
}

static void an_error_names_the_field(void **state)
{
    (void)state;
    struct rp_cron cron;
    struct rp_error err = { 0 };
    rp_cron_parse("0 25 * * *", &cron, &err);
    assert_string_equal(err.text, "schedule: '25' is not valid for the hour");
    assert_string_equal(err.hint, "it takes *, numbers from 0 to 23, ranges (a-b), lists (a,b) and steps (*/n, a-b/n)");
    rp_cron_parse("0 2 * * mond", &cron, &err);
    assert_string_equal(err.text, "schedule: 'mond' is not valid for the day of week");
}

static void a_day_that_never_comes_is_an_error(void **state)
{
    (void)state;
    static const char *const schedules[] = { "0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "* * 30-31 feb *" };
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        struct rp_cron cron;
        struct rp_error err = { 0 };
        int64_t next = -1;
        assert_int_equal(rp_cron_parse(schedules[i], &cron, NULL), 0);
        assert_int_equal(rp_cron_next(&cron, at("2026-11-15"), &next, &err), RP_EINVAL);
        assert_int_equal(next, -1);
        assert_non_null(strstr(err.text, "never fires"));
    }
}

static void the_end_of_time_is_an_error(void **state)
{
    (void)state;
    static const int64_t moments[] = {
        RP_TIME_MAX_MS, RP_TIME_MAX_MS - 1, RP_TIME_MAX_MS + 1, -1, INT64_MIN, INT64_MAX
    };
    struct rp_cron cron;
    assert_int_equal(rp_cron_parse("* * * * *", &cron, NULL), 0);
    for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++) {
        struct rp_error err = { 0 };
        int64_t next = -1;
        assert_int_equal(rp_cron_next(&cron, moments[i], &next, &err), RP_EINVAL);
        assert_int_equal(next, -1);
        assert_non_null(strstr(err.text, "9999"));
    }
}

/* The slow and obvious way: minute by minute. */
static int64_t next_by_trying(const struct rp_cron *c, int64_t after_ms)
{
    for (int64_t minute = after_ms / RP_MINUTE_MS + 1;; minute++) {
        int64_t day = minute / 1440;
        struct rp_date date = rp_date_of_day(day);
        bool in_days = (c->days >> date.day & 1) != 0, in_week = (c->weekdays >> ((day + 4) % 7) & 1) != 0;
        bool fits = c->any_day || c->any_weekday ? in_days && in_week : in_days || in_week;
        fits = fits && (c->months >> date.month & 1) != 0 && (c->hours >> (minute / 60 % 24) & 1) != 0;
        if (fits && (c->minutes >> (minute % 60) & 1) != 0) return minute * RP_MINUTE_MS;
    }
}

static void the_search_agrees_with_trying_every_minute(void **state)
{
    (void)state;
    static const char *const schedules[] = {
        "7 3 * * *",  "*/7 */5 */3 * *",         "0 0 31 * *",    "59 23 * * 6", "30 12 15 * 1", "1 1 1 1 *",
        "* * 29 2 *", "0,59 0,23 1,28-31 2-3 *", "13 13 13 * fri"
    };
    uint64_t random = 88172645463325252u;
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        struct rp_cron cron;
        assert_int_equal(rp_cron_parse(schedules[i], &cron, NULL), 0);
        for (int k = 0; k < 12; k++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            int64_t after = (int64_t)(random % (uint64_t)at("2060-01-01")), next = -1;
            assert_int_equal(rp_cron_next(&cron, after, &next, NULL), 0);
            assert_int_equal(next, next_by_trying(&cron, after));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_fire_when_they_should), cmocka_unit_test(what_is_no_schedule_is_refused),
        cmocka_unit_test(an_error_names_the_field),        cmocka_unit_test(a_day_that_never_comes_is_an_error),
        cmocka_unit_test(the_end_of_time_is_an_error),     cmocka_unit_test(the_search_agrees_with_trying_every_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
