/* SPDX-License-Identifier: Apache-2.0 */
/* time.h - moments and durations: milliseconds, UTC, int64.
 * The core never reads a clock: surfaces read one here and pass the moment in. */
#ifndef RP_BASE_TIME_H
#define RP_BASE_TIME_H

#include <stdint.h>

struct rp_error;

#define RP_SECOND_MS ((int64_t)1000)
#define RP_MINUTE_MS (60 * RP_SECOND_MS)
#define RP_HOUR_MS   (60 * RP_MINUTE_MS)
#define RP_DAY_MS    (24 * RP_HOUR_MS)
/* Moments are between 1970 and the end of 9999. */
#define RP_TIME_MAX_MS INT64_C(253402300799999)
#define RP_TIME_TEXT   32 /* bytes for any text made here, NUL included */

/* More than this between two clocks that should agree, and nothing is purged. */
#define RP_CLOCKS_APART_MS (5 * RP_MINUTE_MS)

/* One start of a host. */
struct rp_boot {
    char id[40];   /* no other start of any host has it */
    char host[64]; /* the host's name, for people */
};

/* A host's clocks: the wall clock, which people and NTP set, and the boot clock, which only
 * runs, also during suspend. A wall clock that ran away is told by the boot clock once it is
 * known when the host booted (catalog/clock.h). Tests may put others in their place. */
struct rp_clock {
    int64_t (*now_ms)(void *ctx);             /* the wall clock */
    int64_t (*boot_ms)(void *ctx);            /* since the boot; NULL: rp_time_boot_ms */
    const struct rp_boot *(*boot)(void *ctx); /* which one; NULL: not known, the wall clock is all there is */
    void *ctx;
    int64_t *booted_at_ms; /* atomic: when the host booted, as this process knows it; NULL or 0: it does not */
};
extern const struct rp_clock rp_clock_host;
int64_t rp_clock_wall_ms(const struct rp_clock *clock); /* NULL: the host's */
/* The time: by the wall clock; by the boot clock where the wall clock is too far ahead of it. */
int64_t rp_clock_now_ms(const struct rp_clock *clock); /* NULL: the host's wall clock */
/* The same of a moment that another clock gave, such as the database's on the same host. */
int64_t rp_clock_held_ms(const struct rp_clock *clock, int64_t moment_ms);
int64_t rp_clock_boot_ms(const struct rp_clock *clock); /* NULL: the host's */
int64_t rp_time_boot_ms(void);                          /* CLOCK_BOOTTIME: goes on during suspend, never jumps */

/* A day of the calendar; `day` numbers count from 1970-01-01, which is 0 and a Thursday. */
struct rp_date {
    int year, month, day; /* month and day from 1 */
};
struct rp_date rp_date_of_day(int64_t day);
int64_t rp_date_to_day(struct rp_date date);
int rp_date_month_days(int year, int month);

/* "90s" "15m" "12h" "5d" "2w" "250ms", also joined "1h30m"; "0s" is allowed, a bare number, a sign,
 * a fraction, an unknown unit and an overflow are not. Joined units go from large to small, each
 * once. The longest is RP_TIME_MAX_MS, so that a moment and a duration can always be added. */
int rp_duration_parse(const char *text, int64_t *out_ms, struct rp_error *err);
/* The largest unit up to days that is exact: 5d, 14d, 36h, 90s, 1500ms, 0s. */
const char *rp_duration_format(int64_t ms, char out[RP_TIME_TEXT]);

/* "2026-11-15T05:02:54.123Z"; input also without fraction, with 1 to 9 digits (cut to ms), with an
 * offset (+02:00), lower-case t/z, or a date alone (midnight UTC). Impossible dates are refused.
 * Leap second 60 is refused. */
int rp_time_parse(const char *text, int64_t *out_ms, struct rp_error *err);
/* Takes any number, as a file's own time may be out of range: a year outside 0000 to 9999 gets a
 * sign and all its digits. */
const char *rp_time_format(int64_t ms, char out[RP_TIME_TEXT]);
/* A moment, or a duration from now ("5d"): what --at, --since and --due-before take.
 * `sign` is +1 for "from now on", -1 for "ago". */
int rp_time_parse_when(const char *text, int64_t now_ms, int sign, int64_t *out_ms, struct rp_error *err);
/* How far away, for people: "in 4d 23h", "3m ago", "now". Two units at most, rounded. */
const char *rp_time_distance(int64_t ms, int64_t now_ms, char out[RP_TIME_TEXT]);

#endif
