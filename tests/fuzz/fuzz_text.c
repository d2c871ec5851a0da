/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds the parsers of base. The first byte chooses one; the rest is the text, and for a schedule
 * its first eight bytes are the moment to start from. What is accepted must be in range and survive
 * being written and read again; what is refused must leave the output alone and say why. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/cron.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "base/time.h"

#define UNTOUCHED INT64_C(-4711)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* True if it was accepted; either way the outcome is consistent. */
static bool settled(int r, int64_t value, const struct rp_error *err)
{
    RP_ASSERT(r == 0 || r == RP_EINVAL);
    RP_ASSERT(r == 0 ? value >= 0 && value <= RP_TIME_MAX_MS : value == UNTOUCHED);
    RP_ASSERT(r == err->code && (r == 0) == (err->text[0] == '\0'));
    return r == 0;
}

static void try_duration(const char *text)
{
    int64_t ms = UNTOUCHED, again = UNTOUCHED;
    struct rp_error err = { 0 };
    char written[RP_TIME_TEXT];
    int r = rp_duration_parse(text, &ms, &err);
    if (!settled(r, ms, &err)) return;
    r = rp_duration_parse(rp_duration_format(ms, written), &again, &err);
    RP_ASSERT(r == 0 && again == ms);
}

static void try_time(const char *text)
{
    int64_t ms = UNTOUCHED, again = UNTOUCHED;
    struct rp_error err = { 0 };
    char written[RP_TIME_TEXT];
    int r = rp_time_parse(text, &ms, &err);
    if (!settled(r, ms, &err)) return;
    r = rp_time_parse(rp_time_format(ms, written), &again, &err);
    RP_ASSERT(r == 0 && again == ms);
}

static void try_when(const char *text)
{
    const int64_t now_ms = INT64_C(1794718974123);
    for (int sign = -1; sign <= 1; sign += 2) {
        int64_t ms = UNTOUCHED;
        struct rp_error err = { 0 };
        char written[RP_TIME_TEXT];
        int r = rp_time_parse_when(text, now_ms, sign, &ms, &err);
        if (settled(r, ms, &err)) RP_ASSERT(strlen(rp_time_distance(ms, now_ms, written)) < sizeof written);
    }
}

static bool fires_at(const struct rp_cron *cron, int64_t ms)
{
    int64_t day = ms / RP_DAY_MS, minute = ms / RP_MINUTE_MS;
    struct rp_date date = rp_date_of_day(day);
    bool in_days = (cron->days >> date.day & 1) != 0, in_week = (cron->weekdays >> ((day + 4) % 7) & 1) != 0;
    bool in_both = in_days && in_week, in_one = in_days || in_week;
    return (cron->any_day || cron->any_weekday ? in_both : in_one) && (cron->months >> date.month & 1) != 0 &&
           (cron->hours >> (minute / 60 % 24) & 1) != 0 && (cron->minutes >> (minute % 60) & 1) != 0;
}

static void try_cron(const char *text, int64_t after_ms)
{
    struct rp_cron cron;
    struct rp_error err = { 0 };
    int r = rp_cron_parse(text, &cron, &err);
    RP_ASSERT(r == 0 || (r == RP_EINVAL && err.text[0] != '\0'));
    if (r < 0) return;
    RP_ASSERT(cron.minutes >> 60 == 0 && cron.hours >> 24 == 0 && cron.weekdays >> 7 == 0);
    RP_ASSERT((cron.days & 1) == 0 && (cron.months & 1) == 0 && cron.months >> 13 == 0);
    int64_t next = UNTOUCHED, same = UNTOUCHED;
    r = rp_cron_next(&cron, after_ms, &next, &err);
    if (!settled(r, next, &err)) return;
    RP_ASSERT(next > after_ms && next % RP_MINUTE_MS == 0 && fires_at(&cron, next));
    /* Nothing lies between: the moment just before gives the same answer. */
    r = rp_cron_next(&cron, next - 1, &same, &err);
    RP_ASSERT(r == 0 && same == next);
}

static void try_id(const char *text)
{
    enum rp_id_kind kind = RP_ID_KINDS;
    int64_t id = UNTOUCHED;
    char written[RP_ID_TEXT];
    if (!rp_id_parse(text, &kind, &id)) {
        RP_ASSERT(kind == RP_ID_KINDS && id == UNTOUCHED);
        return;
    }
    RP_ASSERT(id >= 0 && strcasecmp(rp_id_format(kind, id, written), text) == 0);
}

static void try_json(const char *text, size_t n)
{
    RP_CLEANUP(rp_json_decrefp) json_t *value = NULL;
    struct rp_error err = { 0 };
    int r = rp_json_parse(text, n, &value, &err);
    RP_ASSERT(r == err.code && (r == 0) == (value != NULL));
    if (r < 0) return;
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(1 << 20);
    if (rp_json_write(&b, value) < 0) return;
    RP_CLEANUP(rp_json_decrefp) json_t *again = NULL;
    r = rp_json_parse(rp_buf_text(&b), b.len, &again, &err);
    RP_ASSERT(r == 0 && json_equal(value, again));
}

static void try_repair(const char *text)
{
    RP_CLEANUP(rp_json_decrefp) json_t *value = rp_json_text(text);
    RP_CLEANUP(rp_json_decrefp) json_t *same = rp_json_text(json_string_value(value));
    RP_ASSERT(json_is_string(value) && json_equal(value, same));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 1) return 0;
    char *text = malloc(n); /* exactly as large as needed, so that a read past the end is seen */
    RP_ASSERT(text != NULL);
    memcpy(text, data + 1, n - 1);
    text[n - 1] = '\0';
    int64_t after_ms = 0;
    switch (data[0] % 7) {
    case 0:
        try_duration(text);
        break;
    case 1:
        try_time(text);
        break;
    case 2:
        try_when(text);
        break;
    case 3:
        if (n <= sizeof after_ms) break;
        memcpy(&after_ms, text, sizeof after_ms);
        try_cron(text + sizeof after_ms, after_ms);
        break;
    case 4:
        try_id(text);
        break;
    case 5:
        try_json(text, n - 1);
        break;
    default:
        try_repair(text);
    }
    free(text);
    return 0;
}
