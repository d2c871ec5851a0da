/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/time.h"

#define UNTOUCHED INT64_C(-4711)

static void durations_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        { "0s", 0 },
        { "0ms", 0 },
        { "250ms", 250 },
        { "90s", 90000 },
        { "15m", 900000 },
        { "12h", 43200000 },
        { "5d", 432000000 },
        { "2w", 1209600000 },
        { "1h30m", 5400000 },
        { "1w2d3h4m5s6ms", 788645006 },
        { "007s", 7000 },
        { "253402300799999ms", RP_TIME_MAX_MS },
        { "253402300799s999ms", RP_TIME_MAX_MS },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t ms = UNTOUCHED;
        assert_int_equal(rp_duration_parse(cases[i].text, &ms, NULL), 0);
        assert_int_equal(ms, cases[i].ms);
    }
}

static void what_is_no_duration_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "5",
        "s",
        "-5d",
        "+5d",
        "1.5h",
        " 5d",
        "5d ",
        "5 d",
        "5D",
        "5days",
        "5y",
        "5dd",
        "1h30",
        "30m1h",
        "1h1h",
        "5d,",
        "0x5s",
        "5\xC2\xB5s",
        "five",
        "1e3s",
        "253402300800000ms",
        "253402300799s1000ms",
        "9223372036854775807ms",
        "9223372036854775808ms",
        "99999999999999999999999999d",
        "15250284453w",
        "253402300799999d",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int64_t ms = UNTOUCHED;
        struct rp_error err = { 0 };
        assert_int_equal(rp_duration_parse(texts[i], &ms, &err), RP_EINVAL);
        assert_int_equal(ms, UNTOUCHED);
        assert_int_equal(err.code, RP_EINVAL);
        assert_non_null(strstr(err.text, "duration"));
    }
}

static void durations_are_written_in_the_largest_exact_unit(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {
        { 0, "0s" },
        { 1, "1ms" },
        { 1500, "1500ms" },
        { 90000, "90s" },
        { 120000, "2m" },
        { 129600000, "36h" },
        { 5 * RP_DAY_MS, "5d" },
        { 14 * RP_DAY_MS, "14d" },
        { -90000, "-90s" },
        { INT64_MAX, "9223372036854775807ms" },
        { INT64_MIN, "-9223372036854775808ms" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[RP_TIME_TEXT];
        assert_ptr_equal(rp_duration_format(cases[i].ms, text), text);
        assert_string_equal(text, cases[i].text);
        int64_t ms;
        if (cases[i].ms < 0 || cases[i].ms > RP_TIME_MAX_MS) continue;
        assert_int_equal(rp_duration_parse(text, &ms, NULL), 0);
        assert_int_equal(ms, cases[i].ms);
    }
}

static void moments_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        { "1970-01-01T00:00:00Z", 0 },
        { "1970-01-01", 0 },
        { "1970-01-01T00:00:00.001Z", 1 },
        { "2026-11-15T05:02:54.123Z", INT64_C(1794718974123) },
        { "2026-11-15T05:02:54Z", INT64_C(1794718974000) },
        { "2026-11-15t05:02:54z", INT64_C(1794718974000) },
        { "2026-11-15T05:02:54.1Z", INT64_C(1794718974100) },
        { "2026-11-15T05:02:54.12Z", INT64_C(1794718974120) },
        { "2026-11-15T05:02:54.1239Z", INT64_C(1794718974123) },      /* cut, not rounded */
        { "2026-11-15T05:02:54.123999999Z", INT64_C(1794718974123) }, /* nine digits */
        { "2026-11-15T07:02:54+02:00", INT64_C(1794718974000) },
        { "2026-11-14T23:32:54-05:30", INT64_C(1794718974000) },
        { "2026-11-16T05:01:54.5+23:59", INT64_C(1794718974500) },
        { "2026-11-15T05:02:54-00:00", INT64_C(1794718974000) },
        { "2026-11-15", INT64_C(1794700800000) },
        { "2000-02-29", INT64_C(951782400000) },
        { "2024-02-29T23:59:59Z", INT64_C(1709251199000) },
        { "2100-02-28", INT64_C(4107456000000) },
        { "2100-03-01", INT64_C(4107542400000) },
        { "1969-12-31T23:00:00-01:00", 0 }, /* before 1970 only on the wall */
        { "9999-12-31T23:59:59.999Z", RP_TIME_MAX_MS },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t ms = UNTOUCHED;
        assert_int_equal(rp_time_parse(cases[i].text, &ms, NULL), 0);
        assert_int_equal(ms, cases[i].ms);
    }
}

static void what_is_no_moment_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "now",
        "5d",
        "2026",
        "2026-11",
        "2026-11-15T",
        "2026-11-15Z",
        "2026-11-15 05:02:54Z",  /* a space for the T */
        "2026-11-15T05:02Z",     /* no seconds */
        "2026-11-15T05:02:54",   /* no zone: whose clock? */
        "2026-11-15T05:02:54.Z", /* a point without digits */
        "2026-11-15T05:02:54,1Z",
        "2026-11-15T05:02:54.1234567890Z",
        "2026-11-15T05:02:54+0200",
        "2026-11-15T05:02:54+2:00",
        "2026-11-15T05:02:54+24:00",
        "2026-11-15T05:02:54+02:60",
        "2026-11-15T05:02:54ZZ",
        "2026-11-15T05:02:54Z ",
        " 2026-11-15T05:02:54Z",
        "2026-11-15T24:00:00Z",
        "2026-11-15T05:60:00Z",
        "2026-12-31T23:59:60Z", /* a leap second */
        "2026-00-15",
        "2026-13-15",
        "2026-11-00",
        "2026-11-31",
        "2026-02-29",
        "2100-02-29", /* a century is no leap year */
        "2026-2-9",
        "+2026-11-15",
        "12026-11-15",
        "-026-11-15",
        "20261115T050254Z",
        "1969-12-31",
        "1969-12-31T23:59:59.999Z",
        "1970-01-01T00:00:00+00:01", /* before 1970 in UTC */
        "0000-01-01",
        "9999-12-31T23:59:59-00:01", /* after 9999 in UTC */
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int64_t ms = UNTOUCHED;
        struct rp_error err = { 0 };
        assert_int_equal(rp_time_parse(texts[i], &ms, &err), RP_EINVAL);
        assert_int_equal(ms, UNTOUCHED);
        assert_int_equal(err.text[0], '\'');
    }
}

static void moments_are_written_and_any_number_can_be(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {
        { 0, "1970-01-01T00:00:00.000Z" },
        { INT64_C(1794718974123), "2026-11-15T05:02:54.123Z" },
        { RP_TIME_MAX_MS, "9999-12-31T23:59:59.999Z" },
        { RP_TIME_MAX_MS + 1, "+10000-01-01T00:00:00.000Z" },
        { -1, "1969-12-31T23:59:59.999Z" },
        { -RP_DAY_MS, "1969-12-31T00:00:00.000Z" },
        { INT64_C(-62167219200000), "0000-01-01T00:00:00.000Z" },
        { INT64_C(-62167219200001), "-0001-12-31T23:59:59.999Z" },
        { INT64_MAX, "+292278994-08-17T07:12:55.807Z" },
        { INT64_MIN, "-292275055-05-16T16:47:04.192Z" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[RP_TIME_TEXT];
        assert_ptr_equal(rp_time_format(cases[i].ms, text), text);
        assert_string_equal(text, cases[i].text);
    }
}

/* libc's gmtime_r is the second opinion. */
static void every_day_until_9999_agrees_with_libc_and_reads_back(void **state)
{
    (void)state;
    for (int64_t day = 0; day <= RP_TIME_MAX_MS / RP_DAY_MS; day++) {
        time_t seconds = day * 86400;
        struct tm tm;
        assert_non_null(gmtime_r(&seconds, &tm));
        struct rp_date date = rp_date_of_day(day);
        bool same = date.year == tm.tm_year + 1900 && date.month == tm.tm_mon + 1 && date.day == tm.tm_mday;
        if (!same || rp_date_to_day(date) != day) fail_msg("day %lld", (long long)day);
        if (date.day == rp_date_month_days(date.year, date.month)) assert_int_equal(rp_date_of_day(day + 1).day, 1);
    }
}

static void text_and_moment_round_trip(void **state)
{
    (void)state;
    for (int64_t ms = 0; ms <= RP_TIME_MAX_MS; ms += INT64_C(7919191919)) {
        char text[RP_TIME_TEXT];
        int64_t back = UNTOUCHED;
        assert_int_equal(rp_time_parse(rp_time_format(ms, text), &back, NULL), 0);
        assert_int_equal(back, ms);
    }
}

static void the_time_zone_of_the_process_does_not_matter(void **state)
{
    (void)state;
    static const char *const zones[] = { "America/New_York", "Europe/Berlin", "XYZ-14ABC,M3.2.0,M11.1.0", "UTC" };
    for (size_t i = 0; i < 4; i++) {
        setenv("TZ", zones[i], 1);
        tzset();
        char text[RP_TIME_TEXT];
        int64_t ms = UNTOUCHED;
        assert_int_equal(rp_time_parse("2026-03-29", &ms, NULL), 0); /* clocks change that day in Europe */
        assert_int_equal(ms, INT64_C(1774742400000));
        assert_string_equal(rp_time_format(ms + 2 * RP_HOUR_MS, text), "2026-03-29T02:00:00.000Z");
    }
}

static void when_is_a_moment_or_a_duration_from_now(void **state)
{
    (void)state;
    const int64_t now = INT64_C(1794718974123);
    static const struct {
        const char *text;
        int sign;
        int64_t ms;
    } cases[] = {
        { "5d", 1, INT64_C(1794718974123) + 5 * RP_DAY_MS },
        { "5d", -1, INT64_C(1794718974123) - 5 * RP_DAY_MS },
        { "0s", -1, INT64_C(1794718974123) },
        { "1794718974123ms", -1, 0 },
        { "2026-11-15", -1, INT64_C(1794700800000) },
        { "2026-11-15T05:02:54.123Z", 1, INT64_C(1794718974123) },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t ms = UNTOUCHED;
        assert_int_equal(rp_time_parse_when(cases[i].text, now, cases[i].sign, &ms, NULL), 0);
        assert_int_equal(ms, cases[i].ms);
    }
}

static void when_refuses_what_is_neither_and_what_leaves_the_range(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t now;
        int sign;
    } cases[] = {
        { "", 0, 1 },     { "tomorrow", 0, 1 },         { "-5d", RP_DAY_MS * 9, 1 }, { "2026-11-31", 0, 1 },
        { "1ms", 0, -1 }, { "1ms", RP_TIME_MAX_MS, 1 }, { "2d", INT64_MAX - 1, 1 },  { "2d", INT64_MIN + 1, -1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t ms = UNTOUCHED;
        struct rp_error err = { 0 };
        assert_int_equal(rp_time_parse_when(cases[i].text, cases[i].now, cases[i].sign, &ms, &err), RP_EINVAL);
        assert_int_equal(ms, UNTOUCHED);
        assert_true(err.text[0] != '\0');
    }
}

static void distances_read_well(void **state)
{
    (void)state;
    static const struct {
        int64_t distance;
        const char *text;
    } cases[] = {
        { 0, "now" },
        { 999, "now" },
        { -999, "now" },
        { 1000, "in 1s" },
        { -1999, "1s ago" },
        { 60000, "in 1m" },
        { -180000, "3m ago" },
        { 90000, "in 1m 30s" },
        { RP_HOUR_MS - 1, "in 59m 59s" },
        { 5 * RP_DAY_MS - 1, "in 5d" },
        { 5 * RP_DAY_MS - 30 * RP_MINUTE_MS, "in 5d" },
        { 5 * RP_DAY_MS - 30 * RP_MINUTE_MS - 1, "in 4d 23h" },
        { RP_DAY_MS - 1, "in 1d" },
        { 2 * RP_HOUR_MS - 29 * RP_SECOND_MS, "in 2h" },
        { 5 * RP_DAY_MS, "in 5d" },
        { 5 * RP_DAY_MS + 29 * RP_MINUTE_MS, "in 5d" },
        { -(2 * RP_HOUR_MS + 5 * RP_MINUTE_MS), "2h 5m ago" },
        { RP_TIME_MAX_MS, "in 2932897d" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[RP_TIME_TEXT];
        const int64_t now = INT64_C(1794718974123);
        assert_ptr_equal(rp_time_distance(now + cases[i].distance, now, text), text);
        assert_string_equal(text, cases[i].text);
    }
    char text[RP_TIME_TEXT];
    assert_string_equal(rp_time_distance(INT64_MIN, INT64_MAX, text), "213503982334d 14h ago");
    assert_string_equal(rp_time_distance(INT64_MAX, INT64_MIN, text), "in 213503982334d 14h");
}

static int64_t fixed_now(void *ctx)
{
    return *(int64_t *)ctx;
}

static void a_clock_can_be_replaced_and_none_means_the_hosts(void **state)
{
    (void)state;
    int64_t moment = 77;
    const struct rp_clock fixed = { .now_ms = fixed_now, .ctx = &moment };
    const struct rp_clock both = { .now_ms = fixed_now, .ctx = &moment, .boot_ms = fixed_now };
    assert_int_equal(rp_clock_now_ms(&fixed), 77);
    assert_int_equal(rp_clock_boot_ms(&both), 77);
    assert_in_range(rp_clock_boot_ms(&fixed), rp_time_boot_ms() - 60000, rp_time_boot_ms());
    assert_in_range(rp_clock_boot_ms(NULL), rp_time_boot_ms() - 60000, rp_time_boot_ms());
    int64_t before = (int64_t)time(NULL) * 1000;
    int64_t one = rp_clock_now_ms(&rp_clock_host), two = rp_clock_now_ms(NULL);
    assert_in_range(one, before - 1000, before + 60000);
    assert_in_range(two, before - 1000, before + 60000);
}

static void the_boot_clock_never_goes_back(void **state)
{
    (void)state;
    int64_t last = rp_time_boot_ms();
    assert_true(last > 0);
    for (int i = 0; i < 1000; i++) {
        int64_t now = rp_time_boot_ms();
        assert_true(now >= last);
        last = now;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_read),
        cmocka_unit_test(what_is_no_duration_is_refused),
        cmocka_unit_test(durations_are_written_in_the_largest_exact_unit),
        cmocka_unit_test(moments_are_read),
        cmocka_unit_test(what_is_no_moment_is_refused),
        cmocka_unit_test(moments_are_written_and_any_number_can_be),
        cmocka_unit_test(every_day_until_9999_agrees_with_libc_and_reads_back),
        cmocka_unit_test(text_and_moment_round_trip),
        cmocka_unit_test(the_time_zone_of_the_process_does_not_matter),
        cmocka_unit_test(when_is_a_moment_or_a_duration_from_now),
        cmocka_unit_test(when_refuses_what_is_neither_and_what_leaves_the_range),
        cmocka_unit_test(distances_read_well),
        cmocka_unit_test(a_clock_can_be_replaced_and_none_means_the_hosts),
        cmocka_unit_test(the_boot_clock_never_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
