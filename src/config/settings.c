/* SPDX-License-Identifier: Apache-2.0 */
#include "config/settings.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/text/buf.h"
#include "base/text/size.h"
#include "base/time.h"
#include "config/config.h"
#include "config/form.h"

_Static_assert(sizeof(enum rp_mode) == sizeof(int), "RP_SETTING_ENUM writes an int");
_Static_assert(sizeof(enum rp_keys) == sizeof(int), "RP_SETTING_ENUM writes an int");
_Static_assert(sizeof(enum rp_confirm_when) == sizeof(int), "RP_SETTING_ENUM writes an int");
_Static_assert(sizeof(enum rp_conditional_deletes) == sizeof(int), "RP_SETTING_ENUM writes an int");

static const char *const modes[] = {
    [RP_MODE_OBSERVE] = "observe",
    [RP_MODE_QUARANTINE] = "quarantine",
    [RP_MODE_PURGE] = "purge",
    NULL,
};

const char *rp_mode_name(enum rp_mode mode)
{
    RP_ASSERT((size_t)mode <= RP_MODE_PURGE);
    return modes[mode];
}

/* ---- the table ---- */

/* clang-format off */
/* What the rows are made of. Each file of settings/ has those of one group, with the choices and the
 * entries that belong to them. */
#define CONFIG(member) offsetof(struct rp_config, member)
#define ROW(path_, type_, offset_) .path = (path_), .type = RP_SETTING_##type_, .offset = (offset_)
#define BOUNDS(least_, most_) .least = (least_), .most = (most_)
#define CHOICES(...) .choices = (const char *const[]){ __VA_ARGS__, NULL }
#define ENTRIES(...) .entries = &(const struct rp_setting_entries){ __VA_ARGS__ }
#define SECTION(path_, help_) { .path = (path_), .type = RP_SETTING_SECTION, .help = (help_) }
/* A secret that signs calls out. */
#define SIGNING(path_, offset_, help_) \
    { ROW(path_, SIGNING, offset_), .secret = true, BOUNDS(0, 1024), .fallback = "", .help = (help_) }

const struct rp_setting rp_settings[] = {
#include "config/settings/daemon.inc"
#include "config/settings/stores.inc"
#include "config/settings/databases.inc"
#include "config/settings/confirmations.inc"
#include "config/settings/uploads.inc"
#include "config/settings/runs.inc"
#include "config/settings/retention.inc"
#include "config/settings/calls_out.inc"
#include "config/settings/alerts.inc"
};
/* clang-format on */

const size_t rp_settings_count = sizeof(rp_settings) / sizeof(rp_settings[0]);

const char *rp_setting_key(const struct rp_setting *s)
{
    const char *dot = strrchr(s->path, '.');
    return dot ? dot + 1 : s->path;
}

bool rp_setting_is_group(const struct rp_setting *s)
{
    return s->type == RP_SETTING_SECTION || s->entries != NULL;
}

bool rp_setting_is_secret(const struct rp_setting *s)
{
    return s->type == RP_SETTING_URL || s->secret;
}

bool rp_setting_is_for(const struct rp_setting *s, const char *type)
{
    return s->only == NULL || strcmp(s->only, type) == 0;
}

bool rp_setting_is_member(const struct rp_setting *s, const struct rp_setting *parent)
{
    const char *rest = s->path;
    if (parent) {
        size_t n = strlen(parent->path);
        if (strncmp(rest, parent->path, n) != 0 || rest[n] != '.') return false;
        rest += n + 1;
        if (parent->entries) {
            if (strncmp(rest, "*.", 2) != 0) return false;
            rest += 2;
        }
    }
    return strchr(rest, '.') == NULL;
}

static void add_choices(const char *const *choices, struct rp_buf *out)
{
    for (size_t i = 0; choices[i]; i++) {
        if (i > 0) rp_buf_str(out, choices[i + 1] ? ", " : " or ");
        rp_buf_str(out, choices[i]);
    }
}

static void add_durations(const struct rp_setting *s, struct rp_buf *out)
{
    char least[RP_TIME_TEXT], most[RP_TIME_TEXT];
    rp_buf_fmt(out, "a duration from %s to %s", rp_duration_format(s->least, least), rp_duration_format(s->most, most));
    if (s->may_be_forever) rp_buf_str(out, ", or forever");
    if (!s->lifted_by) return;
    rp_buf_fmt(out, " (up to %s with allow_any_grace: true)", rp_duration_format(RP_SETTING_LIFTED_MOST_MS, most));
}

static void add_sizes(const struct rp_setting *s, struct rp_buf *out)
{
    char least[RP_SIZE_EXACT_TEXT], most[RP_SIZE_EXACT_TEXT];
    rp_buf_fmt(out, "a size from %s to %s", rp_size_format(s->least, least), rp_size_format(s->most, most));
}

void rp_setting_expected(const struct rp_setting *s, struct rp_buf *out)
{
    switch (s->type) {
    case RP_SETTING_TEXT:
        rp_buf_fmt(out, "a text of %" PRId64 " to %" PRId64 " bytes on one line", s->least, s->most);
        break;
    case RP_SETTING_SIGNING:
        rp_buf_fmt(out, "a text of at most %" PRId64 " bytes on one line, base64 behind whsec_", s->most);
        break;
    case RP_SETTING_SQL:
        rp_buf_fmt(out, "a query of at most %" PRId64 " bytes", s->most);
        break;
    case RP_SETTING_SIZE:
        add_sizes(s, out);
        break;
    case RP_SETTING_INTEGER:
        rp_buf_fmt(out, "a whole number from %" PRId64 " to %" PRId64, s->least, s->most);
        break;
    case RP_SETTING_DURATION:
        add_durations(s, out);
        break;
    case RP_SETTING_CHOICE:
    case RP_SETTING_ENUM:
        add_choices(s->choices, out);
        break;
    case RP_SETTING_CODES:
        rp_buf_fmt(out, "a list of at most %d codes from %" PRId64 " to %" PRId64 " without 409 and 423", RP_CODES_MAX,
                   s->least, s->most);
        break;
    case RP_SETTING_MAP:
        rp_buf_fmt(out, "a section of at most %zu named entries", s->entries->most);
        break;
    case RP_SETTING_LIST:
        rp_buf_fmt(out, "a list of at most %zu items", s->entries->most);
        break;
    default:
        rp_buf_str(out, rp_form_words(s->type));
    }
}
