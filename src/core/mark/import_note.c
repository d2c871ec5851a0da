/* SPDX-License-Identifier: Apache-2.0 */
/* import_note.c - what an annotation says (import.h, I1 to I3), by its fields alone. */
#include "base/text/utf8.h"
#include "base/time.h"
#include "core/mark/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define EARLIEST_MS INT64_C(1000000000000) /* I3 */

const char *rp_import_time_name(enum rp_import_time time)
{
    static const char *const names[] = { [RP_IMPORT_DELETE_AFTER] = RP_ANNOTATION_DELETE_AFTER,
                                         [RP_IMPORT_MARKED_ON] = RP_ANNOTATION_MARKED_ON,
                                         [RP_IMPORT_ABSENT] = "no time",
                                         [RP_IMPORT_UNREADABLE] = "unreadable time" };
    return names[time];
}

static const char *field(const struct rp_meta *meta, const char *name)
{
    for (size_t i = 0; i < meta->n_user; i++)
        if (strcmp(meta->user[i].name, name) == 0) return meta->user[i].value;
    return NULL;
}

static enum rp_import_flag read_flag(const char *text)
{
    if (text == NULL || text[0] == 0 || strcasecmp(text, "false") == 0 || strcmp(text, "0") == 0) return RP_IMPORT_NO;
    return strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0 ? RP_IMPORT_YES : RP_IMPORT_UNCLEAR;
}

/* Digits and perhaps a fraction, which is dropped: how many digits, 0 if it is no such number. */
static size_t count_digits(const char *text)
{
    size_t n = strspn(text, "0123456789");
    const char *rest = text + n;
    if (*rest == '.') rest += 1 + strspn(rest + 1, "0123456789");
    return *rest == 0 ? n : 0;
}

static bool read_time(const char *text, int64_t *out_ms)
{
    size_t digits = count_digits(text);
    int64_t ms = 0;
    if (digits == 13)
        ms = strtoll(text, NULL, 10);
    else if (digits == 10)
        ms = strtoll(text, NULL, 10) * 1000;
    else if (digits > 0 || rp_time_parse(text, &ms, NULL) < 0)
        return false;
    if (ms < EARLIEST_MS) return false;
    *out_ms = ms;
    return true;
}

/* Cut at a character; bytes that are none end it. */
static void read_reason(const char *text, char out[RP_REASON_MAX + 1])
{
    size_t n = 0, left = text != NULL ? strlen(text) : 0;
    for (size_t length; n < left && (length = rp_utf8_length(text + n, left - n)) > 0; n += length)
        if (n + length > RP_REASON_MAX) break;
    if (n == 0)
        snprintf(out, RP_REASON_MAX + 1, "imported");
    else
        snprintf(out, RP_REASON_MAX + 1, "%.*s", (int)n, text);
}

void rp_import_read(const struct rp_meta *meta, int64_t grace_ms, struct rp_import_note *out)
{
    const char *delete_after = field(meta, RP_ANNOTATION_DELETE_AFTER),
               *marked_on = field(meta, RP_ANNOTATION_MARKED_ON);
    int64_t at_ms;
    *out = (struct rp_import_note){ .flag = read_flag(field(meta, RP_ANNOTATION_MARKED)), .at_ms = -1 };
    if (out->flag == RP_IMPORT_NO) return;
    read_reason(field(meta, RP_ANNOTATION_REASON), out->reason);
    if (marked_on != NULL && read_time(marked_on, &at_ms)) out->marked_at_ms = at_ms;
    const char *text = delete_after != NULL ? delete_after : marked_on;
    out->time = text == NULL ? RP_IMPORT_ABSENT : RP_IMPORT_UNREADABLE;
    if (text == NULL || !read_time(text, &at_ms)) return;
    out->time = delete_after != NULL ? RP_IMPORT_DELETE_AFTER : RP_IMPORT_MARKED_ON;
    struct rp_due due = { .by = RP_DUE_AFTER, .from_ms = at_ms, .grace_ms = delete_after != NULL ? 0 : grace_ms };
    out->at_ms = rp_due(&due, 0); /* one that is past is due at once: the mark sees to it */
}
