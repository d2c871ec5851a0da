/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cron.h"

#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/text/hex.h"
#include "base/time.h"

/* 29 February may be eight years away (2096 to 2104): nothing that fires at all waits longer. */
#define SEARCH_DAYS     (9 * 366)
#define MINUTES_PER_DAY (24 * 60)

struct field {
    const char *title;
    int least, most;   /* what `*` covers */
    int accept;        /* the largest number that may be written: 7 is Sunday too */
    const char *names; /* three letters each, from `least` on; "" for none */
};

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };

static const struct field fields[FIELDS] = {
    [MINUTE] = { "minute", 0, 59, 59, "" },
    [HOUR] = { "hour", 0, 23, 23, "" },
    [DAY] = { "day of month", 1, 31, 31, "" },
    [MONTH] = { "month", 1, 12, 12, "janfebmaraprmayjunjulaugsepoctnovdec" },
    [WEEKDAY] = { "day of week", 0, 6, 7, "sunmontuewedthufrisat" },
};

static bool take_char(const char **text, const char *end, char wanted)
{
    if (*text == end || **text != wanted) return false;
    (*text)++;
    return true;
}

/* One or two digits. */
static bool take_number(const char **text, const char *end, int *out)
{
    const char *p = *text;
    int value = 0;
    while (p < end && rp_is_digit(*p) && p - *text < 2)
        value = value * 10 + (*p++ - '0');
    if (p == *text || (p < end && rp_is_digit(*p))) return false;
    *text = p;
    *out = value;
    return true;
}

static bool take_name(const struct field *f, const char **text, const char *end, int *out)
{
    if (end - *text < 3) return false;
    for (size_t i = 0; f->names[i] != '\0'; i += 3) {
        size_t same = 0;
        while (same < 3 && ((*text)[same] | 0x20) == f->names[i + same])
            same++;
        if (same < 3) continue;
        *text += 3;
        *out = f->least + (int)(i / 3);
        return true;
    }
    return false;
}

static bool take_value(const struct field *f, const char **text, const char *end, int *out)
{
    if (!take_number(text, end, out) && !take_name(f, text, end, out)) return false;
    return *out >= f->least && *out <= f->accept;
}

/* `*`, n or a-b, the first and the last with an optional step. */
static bool take_range(const struct field *f, const char **text, const char *end, uint64_t *bits)
{
    int from = f->least, to = f->most, step = 1;
    bool many = take_char(text, end, '*');
    if (!many) {
        if (!take_value(f, text, end, &from)) return false;
        to = from;
        many = take_char(text, end, '-');
        if (many && !take_value(f, text, end, &to)) return false;
        if (f->accept == 7 && to == 0) to = from > 0 ? 7 : 0; /* fri-sun */
    }
    if (take_char(text, end, '/') && (!many || !take_number(text, end, &step))) return false;
    if (from > to || step < 1 || step > f->accept) return false;
    for (int value = from; value <= to; value += step)
        *bits |= UINT64_C(1) << (f->accept == 7 ? value % 7 : value);
    return true;
}

static bool parse_field(const struct field *f, const char *text, const char *end, uint64_t *bits)
{
    do {
        if (!take_range(f, &text, end, bits)) return false;
    } while (take_char(&text, end, ','));
    return text == end;
}

static int bad_field(const struct field *f, const char *text, size_t n, struct rp_error *err)
{
    int shown = n < 64 ? (int)n : 64;
    rp_error_set(err, RP_EINVAL, "schedule: '%.*s' is not valid for the %s", shown, text, f->title);
    rp_error_hint(err, "it takes *, numbers from %d to %d%s, ranges (a-b), lists (a,b) and steps (*/n, a-b/n)",
                  f->least, f->accept, f->names[0] != '\0' ? ", names of three letters" : "");
    return RP_EINVAL;
}

static int bad_count(const char *text, struct rp_error *err)
{
    rp_error_set(err, RP_EINVAL, "schedule '%.64s' does not have five fields", text);
    rp_error_hint(err,
                  "write minute, hour, day of month, month and day of week, such as \"0 2 * * *\" (daily, 02:00 UTC)");
    return RP_EINVAL;
}

int rp_cron_parse(const char *text, struct rp_cron *out, struct rp_error *err)
{
    RP_ASSERT(text != NULL);
    static const char blanks[] = " \t";
    uint64_t bits[FIELDS] = { 0 };
    bool any[FIELDS] = { false };
    const char *p = text;
    for (int i = 0; i < FIELDS; i++) {
        p += strspn(p, blanks);
        size_t n = strcspn(p, blanks);
        if (n == 0) return bad_count(text, err);
        if (!parse_field(&fields[i], p, p + n, &bits[i])) return bad_field(&fields[i], p, n, err);
        any[i] = n == 1 && *p == '*';
        p += n;
    }
    if (p[strspn(p, blanks)] != '\0') return bad_count(text, err);
    *out = (struct rp_cron){ .minutes = bits[MINUTE],
                             .hours = (uint32_t)bits[HOUR],
                             .days = (uint32_t)bits[DAY],
                             .months = (uint32_t)bits[MONTH],
                             .weekdays = (uint32_t)bits[WEEKDAY],
                             .any_day = any[DAY],
                             .any_weekday = any[WEEKDAY] };
    return 0;
}

static bool matches_day(const struct rp_cron *cron, struct rp_date date, int64_t day)
{
    bool in_days = (cron->days >> date.day & 1) != 0;
    bool in_weekdays = (cron->weekdays >> ((day + 4) % 7) & 1) != 0; /* day 0 was a Thursday */
    if (cron->any_day) return in_weekdays;
    if (cron->any_weekday) return in_days;
    return in_days || in_weekdays;
}

/* The first minute of a day, from `from` on, at which it fires; -1 if the day has none left. */
static int first_minute(const struct rp_cron *cron, int from)
{
    int minute = from % 60;
    for (int hour = from / 60; hour < 24; hour++, minute = 0) {
        if ((cron->hours >> hour & 1) == 0) continue;
        for (; minute < 60; minute++)
            if ((cron->minutes >> minute & 1) != 0) return hour * 60 + minute;
    }
    return -1;
}

int rp_cron_next(const struct rp_cron *cron, int64_t after_ms, int64_t *out_ms, struct rp_error *err)
{
    RP_ASSERT(cron->minutes != 0 && cron->hours != 0 && cron->months != 0);
    if (after_ms < 0 || after_ms > RP_TIME_MAX_MS)
        return rp_error_set(err, RP_EINVAL,
                            "schedule: the moment to start from is not between 1970 and the end of 9999");
    int64_t first = after_ms / RP_MINUTE_MS + 1;
    int64_t day = first / MINUTES_PER_DAY, end = day + SEARCH_DAYS, last = RP_TIME_MAX_MS / RP_DAY_MS;
    int from = (int)(first % MINUTES_PER_DAY);
    while (day <= end && day <= last) {
        struct rp_date date = rp_date_of_day(day);
        if ((cron->months >> date.month & 1) == 0) {
            day += rp_date_month_days(date.year, date.month) - date.day + 1;
            from = 0;
            continue;
        }
        int minute = matches_day(cron, date, day) ? first_minute(cron, from) : -1;
        if (minute >= 0) {
            *out_ms = day * RP_DAY_MS + minute * RP_MINUTE_MS;
            return 0;
        }
        day++;
        from = 0;
    }
    if (day > last) return rp_error_set(err, RP_EINVAL, "schedule: does not fire again before the end of 9999");
    return rp_error_set(err, RP_EINVAL, "schedule: never fires, because no month it names has such a day");
}
