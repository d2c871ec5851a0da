/* SPDX-License-Identifier: Apache-2.0 */
/* The calendar is computed here, not by libc: no time zone, no locale, no shared state. It is the
 * proleptic Gregorian one; years begin in March in the arithmetic, so that the leap day comes
 * last. */
#include "base/time.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/text/hex.h"

#define DAYS_PER_ERA  146097  /* 400 years */
#define DAYS_TO_EPOCH 719468  /* from 0000-03-01 to 1970-01-01 */
#define SHOWN         "%.64s" /* how much of a bad text an error repeats */

static int64_t clock_ms(clockid_t id)
{
    struct timespec now;
    int r = clock_gettime(id, &now);
    RP_ASSERT(r == 0);
    return (int64_t)now.tv_sec * RP_SECOND_MS + now.tv_nsec / 1000000;
}

static int64_t host_now_ms(void *ctx)
{
    (void)ctx;
    return clock_ms(CLOCK_REALTIME);
}

int64_t rp_time_boot_ms(void)
{
    return clock_ms(CLOCK_BOOTTIME);
}

static int64_t host_boot_ms(void *ctx)
{
    (void)ctx;
    return rp_time_boot_ms();
}

static struct rp_boot this_boot;

/* Where there is no /proc the name is drawn: then each process judges for itself. */
static void read_boot(void)
{
    uint64_t drawn[2] = { 0 };
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f == NULL || fscanf(f, "%39[0-9a-f-]", this_boot.id) != 1) {
        (void)!getrandom(drawn, sizeof drawn, 0);
        snprintf(this_boot.id, sizeof this_boot.id, "%016" PRIx64 "%016" PRIx64, drawn[0], drawn[1]);
    }
    if (f != NULL) fclose(f);
    if (gethostname(this_boot.host, sizeof this_boot.host - 1) != 0)
        snprintf(this_boot.host, sizeof this_boot.host, "?");
}

static const struct rp_boot *host_boot(void *ctx)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)ctx;
    pthread_once(&once, read_boot);
    return &this_boot;
}

const struct rp_clock rp_clock_host = { .now_ms = host_now_ms, .boot_ms = host_boot_ms, .boot = host_boot };

int64_t rp_clock_wall_ms(const struct rp_clock *clock)
{
    if (clock == NULL) clock = &rp_clock_host;
    return clock->now_ms(clock->ctx);
}

int64_t rp_clock_held_ms(const struct rp_clock *clock, int64_t moment_ms)
{
    if (clock == NULL || clock->booted_at_ms == NULL || clock->boot_ms == NULL) return moment_ms;
    int64_t booted_at_ms = __atomic_load_n(clock->booted_at_ms, __ATOMIC_RELAXED);
    if (booted_at_ms == 0) return moment_ms;
    int64_t by_boot_ms = booted_at_ms + clock->boot_ms(clock->ctx);
    return moment_ms > by_boot_ms + RP_CLOCKS_APART_MS ? by_boot_ms : moment_ms;
}

int64_t rp_clock_now_ms(const struct rp_clock *clock)
{
    return rp_clock_held_ms(clock, rp_clock_wall_ms(clock));
}

int64_t rp_clock_boot_ms(const struct rp_clock *clock)
{
    return clock != NULL && clock->boot_ms != NULL ? clock->boot_ms(clock->ctx) : rp_time_boot_ms();
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

struct rp_date rp_date_of_day(int64_t day)
{
    int64_t shifted = day + DAYS_TO_EPOCH;
    int64_t era = floor_div(shifted, DAYS_PER_ERA);
    int64_t in_era = shifted - era * DAYS_PER_ERA;
    int64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / (DAYS_PER_ERA - 1)) / 365;
    int64_t in_year = in_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * in_year + 2) / 153; /* 0: March */
    struct rp_date date = { .day = (int)(in_year - (153 * month + 2) / 5 + 1) };
    date.month = (int)(month < 10 ? month + 3 : month - 9);
    date.year = (int)(year + era * 400 + (date.month <= 2));
    return date;
}

int64_t rp_date_to_day(struct rp_date date)
{
    int64_t year = (int64_t)date.year - (date.month <= 2);
    int64_t era = floor_div(year, 400);
    int64_t in_era = year - era * 400;
    int64_t month = date.month > 2 ? date.month - 3 : date.month + 9;
    int64_t in_year = (153 * month + 2) / 5 + date.day - 1;
    return era * DAYS_PER_ERA + in_era * 365 + in_era / 4 - in_era / 100 + in_year - DAYS_TO_EPOCH;
}

int rp_date_month_days(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    RP_ASSERT(month >= 1 && month <= 12);
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && leap ? 29 : days[month - 1];
}

/* Largest first; weeks are read but not written, because people count a grace period in days. */
static const struct unit {
    const char *name;
    int64_t ms;
} units[] = {
    { "w", 7 * RP_DAY_MS }, { "d", RP_DAY_MS },    { "h", RP_HOUR_MS },
    { "m", RP_MINUTE_MS },  { "s", RP_SECOND_MS }, { "ms", 1 },
};
enum { WEEK, DAY, HOUR, MINUTE, SECOND, MILLISECOND, UNITS };

/* Takes digits off *text; false without any, or when the number passes RP_TIME_MAX_MS. */
static bool take_number(const char **text, int64_t *out)
{
    const char *p = *text;
    int64_t value = 0;
    if (!rp_is_digit(*p)) return false;
    for (; rp_is_digit(*p); p++) {
        value = value * 10 + (*p - '0');
        if (value > RP_TIME_MAX_MS) return false;
    }
    *text = p;
    *out = value;
    return true;
}

static int take_unit(const char **text)
{
    size_t n = strspn(*text, "abcdefghijklmnopqrstuvwxyz");
    for (int i = 0; i < UNITS; i++) {
        if (strlen(units[i].name) != n || memcmp(units[i].name, *text, n) != 0) continue;
        *text += n;
        return i;
    }
    return -1;
}

static int bad_duration(const char *text, struct rp_error *err)
{
    rp_error_set(err, RP_EINVAL, "'" SHOWN "' is not a duration", text);
    rp_error_hint(err, "write a number and a unit, such as 90s, 15m, 12h, 5d, 2w or 1h30m");
    return RP_EINVAL;
}

int rp_duration_parse(const char *text, int64_t *out_ms, struct rp_error *err)
{
    RP_ASSERT(text != NULL);
    const char *p = text;
    int64_t total = 0;
    int last = -1;
    do {
        int64_t count, part;
        if (!take_number(&p, &count)) return bad_duration(text, err);
        int unit = take_unit(&p);
        if (unit <= last) return bad_duration(text, err); /* unknown, twice, or a larger one after a smaller */
        if (__builtin_mul_overflow(count, units[unit].ms, &part) || part > RP_TIME_MAX_MS - total)
            return rp_error_set(err, RP_EINVAL, "'" SHOWN "' is too long a duration", text);
        total += part;
        last = unit;
    } while (*p != '\0');
    *out_ms = total;
    return 0;
}

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

const char *rp_duration_format(int64_t ms, char out[RP_TIME_TEXT])
{
    uint64_t left = magnitude(ms);
    int unit = DAY;
    while (left == 0 ? unit < SECOND : left % (uint64_t)units[unit].ms != 0)
        unit++;
    snprintf(out, RP_TIME_TEXT, "%s%" PRIu64 "%s", ms < 0 ? "-" : "", left / (uint64_t)units[unit].ms,
             units[unit].name);
    return out;
}

/* Exactly `width` digits, then the value between the bounds. */
static bool take_field(const char **text, int width, int least, int most, int *out)
{
    int value = 0;
    for (int i = 0; i < width; i++) {
        if (!rp_is_digit((*text)[i])) return false;
        value = value * 10 + ((*text)[i] - '0');
    }
    if (value < least || value > most) return false;
    *text += width;
    *out = value;
    return true;
}

static bool take_char(const char **text, char wanted)
{
    if (**text != wanted) return false;
    (*text)++;
    return true;
}

static bool take_date(const char **text, int64_t *day)
{
    struct rp_date date;
    if (!take_field(text, 4, 0, 9999, &date.year) || !take_char(text, '-')) return false;
    if (!take_field(text, 2, 1, 12, &date.month) || !take_char(text, '-')) return false;
    if (!take_field(text, 2, 1, rp_date_month_days(date.year, date.month), &date.day)) return false;
    *day = rp_date_to_day(date);
    return true;
}

static bool take_fraction(const char **text, int *ms)
{
    if (!take_char(text, '.')) return true;
    int digits = 0, scale = 100;
    for (; rp_is_digit(**text); (*text)++, digits++, scale /= 10)
        *ms += (**text - '0') * scale;
    return digits >= 1 && digits <= 9;
}

static bool take_clock(const char **text, int64_t *ms)
{
    int hour, minute, second, fraction = 0;
    if (!take_field(text, 2, 0, 23, &hour) || !take_char(text, ':')) return false;
    if (!take_field(text, 2, 0, 59, &minute) || !take_char(text, ':')) return false;
    if (!take_field(text, 2, 0, 59, &second) || !take_fraction(text, &fraction)) return false;
    *ms = hour * RP_HOUR_MS + minute * RP_MINUTE_MS + second * RP_SECOND_MS + fraction;
    return true;
}

static bool take_offset(const char **text, int64_t *ms)
{
    *ms = 0;
    if (take_char(text, 'Z') || take_char(text, 'z')) return true;
    int sign = **text == '-' ? -1 : 1, hour, minute;
    if (!take_char(text, '+') && !take_char(text, '-')) return false;
    if (!take_field(text, 2, 0, 23, &hour) || !take_char(text, ':')) return false;
    if (!take_field(text, 2, 0, 59, &minute)) return false;
    *ms = sign * (hour * RP_HOUR_MS + minute * RP_MINUTE_MS);
    return true;
}

static bool take_moment(const char **text, int64_t *ms)
{
    int64_t day, clock = 0, offset = 0;
    if (!take_date(text, &day)) return false;
    if (**text != '\0') {
        if (!take_char(text, 'T') && !take_char(text, 't')) return false;
        if (!take_clock(text, &clock) || !take_offset(text, &offset)) return false;
    }
    *ms = day * RP_DAY_MS + clock - offset;
    return **text == '\0';
}

static int check_range(const char *text, int64_t ms, struct rp_error *err)
{
    if (ms >= 0 && ms <= RP_TIME_MAX_MS) return 0;
    return rp_error_set(err, RP_EINVAL, "'" SHOWN "' is not between 1970 and the end of 9999", text);
}

int rp_time_parse(const char *text, int64_t *out_ms, struct rp_error *err)
{
    RP_ASSERT(text != NULL);
    const char *p = text;
    int64_t ms;
    if (!take_moment(&p, &ms)) {
        rp_error_set(err, RP_EINVAL, "'" SHOWN "' is not a moment", text);
        rp_error_hint(err, "write it as 2026-11-15T05:02:54Z, with an offset (+02:00), or as a date");
        return RP_EINVAL;
    }
    int r = check_range(text, ms, err);
    if (r == 0) *out_ms = ms;
    return r;
}

/* Times stand in every line of JSON and of the audit log: snprintf would be a tenth of what a mark
 * costs. */
static void put_digits(char *to, int value, int n)
{
    for (; n > 0; value /= 10)
        to[--n] = (char)('0' + value % 10);
}

/* Total: a file's own time may lie outside of what we accept, and must be shown all the same. */
const char *rp_time_format(int64_t ms, char out[RP_TIME_TEXT])
{
    struct rp_date date = rp_date_of_day(floor_div(ms, RP_DAY_MS));
    int rest = (int)((ms % RP_DAY_MS + RP_DAY_MS) % RP_DAY_MS);
    int n = 4;
    if (date.year < 0 || date.year > 9999)
        n = snprintf(out, RP_TIME_TEXT, "%+05d", date.year);
    else
        put_digits(out, date.year, 4);
    RP_ASSERT(n > 0 && n <= 10);
    char *at = out + n;
    memcpy(at, "-00-00T00:00:00.000Z", sizeof "-00-00T00:00:00.000Z");
    put_digits(at + 1, date.month, 2);
    put_digits(at + 4, date.day, 2);
    put_digits(at + 7, rest / 3600000, 2);
    put_digits(at + 10, rest / 60000 % 60, 2);
    put_digits(at + 13, rest / 1000 % 60, 2);
    put_digits(at + 16, rest % 1000, 3);
    return out;
}

int rp_time_parse_when(const char *text, int64_t now_ms, int sign, int64_t *out_ms, struct rp_error *err)
{
    RP_ASSERT(text != NULL && (sign == 1 || sign == -1));
    if (strchr(text, '-') != NULL) return rp_time_parse(text, out_ms, err); /* no duration has one, every date has */
    int64_t distance, ms;
    int r = rp_duration_parse(text, &distance, err);
    if (r < 0) {
        rp_error_set(err, r, "'" SHOWN "' is neither a moment nor a duration", text);
        rp_error_hint(err, "write it as 2026-11-15T05:02:54Z, 2026-11-15, or 90s, 15m, 12h, 5d");
        return r;
    }
    if (__builtin_add_overflow(now_ms, sign * distance, &ms)) ms = -1;
    r = check_range(text, ms, err);
    if (r == 0) *out_ms = ms;
    return r;
}

const char *rp_time_distance(int64_t ms, int64_t now_ms, char out[RP_TIME_TEXT])
{
    bool ahead = ms >= now_ms;
    uint64_t left = ahead ? (uint64_t)ms - (uint64_t)now_ms : (uint64_t)now_ms - (uint64_t)ms;
    if (left < (uint64_t)RP_SECOND_MS) return memcpy(out, "now", sizeof "now");
    int unit = DAY;
    while (left < (uint64_t)units[unit].ms)
        unit++;
    /* rounded to the smaller of the two units: right after a mark of 5 days it says so */
    uint64_t least = (uint64_t)units[unit < SECOND ? unit + 1 : unit].ms;
    if (least > (uint64_t)RP_SECOND_MS && left <= UINT64_MAX - least) left = (left + least / 2) / least * least;
    while (unit > DAY && left >= (uint64_t)units[unit - 1].ms)
        unit--;
    uint64_t count = left / (uint64_t)units[unit].ms;
    uint64_t second = unit < SECOND ? left % (uint64_t)units[unit].ms / (uint64_t)units[unit + 1].ms : 0;
    char tail[RP_TIME_TEXT] = "";
    if (second > 0) snprintf(tail, sizeof tail, " %d%s", (int)second, units[unit + 1].name);
    int n = snprintf(out, RP_TIME_TEXT, "%s%" PRIu64 "%s%s%s", ahead ? "in " : "", count, units[unit].name, tail,
                     ahead ? "" : " ago");
    RP_ASSERT(n > 0 && n < RP_TIME_TEXT);
    return out;
}
