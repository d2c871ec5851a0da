/* SPDX-License-Identifier: Apache-2.0 */
#include "config/settings.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/time.h"
#include "config/config.h"

_Static_assert(sizeof(enum rp_mode) == sizeof(int), "RP_SETTING_ENUM writes an int");

static const char *const modes[] = {
    [RP_MODE_OBSERVE] = "observe",
    [RP_MODE_QUARANTINE] = "quarantine",
    [RP_MODE_PURGE] = "purge",
    NULL,
};
static const char *const store_types[] = { "fs", NULL };
static const char *const log_levels[] = { "debug", "info", "warning", "error", NULL };

static const struct rp_setting_entries store_entries = {
    .size_bytes = sizeof(struct rp_store_config),
    .count_at = offsetof(struct rp_config, n_stores),
    .name_at = offsetof(struct rp_store_config, name),
    .line_at = offsetof(struct rp_store_config, line),
    .most = RP_STORES_MAX,
    .example = "media",
};

static const struct rp_setting_entries reference_entries = {
    .size_bytes = sizeof(struct rp_reference),
    .count_at = offsetof(struct rp_store_config, n_referenced_by),
    .name_at = RP_SETTING_NONE,
    .line_at = offsetof(struct rp_reference, line),
    .most = RP_REFERENCES_MAX,
};

static const struct rp_setting_entries database_entries = {
    .size_bytes = sizeof(struct rp_database_config),
    .count_at = offsetof(struct rp_config, n_databases),
    .name_at = offsetof(struct rp_database_config, name),
    .line_at = offsetof(struct rp_database_config, line),
    .most = RP_DATABASES_MAX,
    .example = "app",
};

#define CONFIG(member)    offsetof(struct rp_config, member)
#define STORE(member)     offsetof(struct rp_store_config, member)
#define REFERENCE(member) offsetof(struct rp_reference, member)
#define DATABASE(member)  offsetof(struct rp_database_config, member)

/* clang-format off */
const struct rp_setting rp_settings[] = {
    { .path = "environment", .type = RP_SETTING_TEXT, .offset = CONFIG(environment), .least = 1, .most = 63,
      .fallback = "dev",
      .help = "What this installation is, such as dev, staging or production. Shown in prompts and written into every "
              "store's owner record." },

    { .path = "catalog", .type = RP_SETTING_SECTION,
      .help = "The catalog: the database in which Reprieve keeps marks, runs and the audit log." },
    { .path = "catalog.url", .type = RP_SETTING_URL, .offset = CONFIG(catalog_url),
      .fallback = "sqlite:./reprieve-data/catalog.db",
      .help = "Where the catalog is. For PostgreSQL, ?schema=NAME chooses the schema." },

    { .path = "log", .type = RP_SETTING_SECTION,
      .help = "The program's log: one JSON object a line." },
    { .path = "log.file", .type = RP_SETTING_LOG, .offset = CONFIG(log_file), .fallback = "",
      .help = "Where the log goes. Without a configuration file it is reprieve.log in the data directory." },
    { .path = "log.level", .type = RP_SETTING_CHOICE, .offset = CONFIG(log_level), .choices = log_levels,
      .fallback = "info",
      .help = "The least severe lines that are written." },

    { .path = "stores", .type = RP_SETTING_MAP, .offset = CONFIG(stores), .entries = &store_entries, .fallback = "{}",
      .help = "The stores whose objects may be marked, each under a name of your choice. A store may not be inside "
              "another, nor hold the catalog, a database, the log or the configuration file." },
    { .path = "stores.*.type", .type = RP_SETTING_CHOICE, .offset = STORE(type), .choices = store_types,
      .fallback = "fs",
      .help = "The kind of store: fs is a directory." },
    { .path = "stores.*.path", .type = RP_SETTING_PATH, .offset = STORE(path), .required = true,
      .example = "/srv/media",
      .help = "The directory that holds the objects." },
    { .path = "stores.*.mode", .type = RP_SETTING_ENUM, .offset = STORE(mode), .choices = modes,
      .fallback = "observe",
      .help = "What may happen to objects. observe: nothing is written or erased. quarantine: a purge moves an object "
              "aside, and a restore moves it back. purge: a purge erases." },
    { .path = "stores.*.grace", .type = RP_SETTING_DURATION, .offset = STORE(grace_ms), .least = RP_DAY_MS,
      .most = 30 * RP_DAY_MS, .lifted_by = STORE(allow_any_grace), .fallback = "5d",
      .help = "How long a marked object can still be restored, unless the mark says otherwise." },
    { .path = "stores.*.allow_any_grace", .type = RP_SETTING_BOOL, .offset = STORE(allow_any_grace),
      .fallback = "false",
      .help = "Lifts the range of the grace, here and in marks. A grace of 0s erases at the next sweep." },
    { .path = "stores.*.quarantine", .type = RP_SETTING_DURATION, .offset = STORE(quarantine_ms), .least = 0,
      .most = 3650 * RP_DAY_MS, .fallback = "7d",
      .help = "How long an object stays in quarantine before it is erased. Used in mode quarantine." },
    { .path = "stores.*.annotate", .type = RP_SETTING_BOOL, .offset = STORE(annotate), .fallback = "false",
      .help = "Also writes a mark into the metadata of the object, where other tools can see it." },
    { .path = "stores.*.allow_window_deletes", .type = RP_SETTING_BOOL, .offset = STORE(allow_window_deletes),
      .fallback = "false",
      .help = "Allows purging a store that cannot name exactly what it deletes. An upload that arrives in the moment "
              "between the check and the delete would be lost." },
    { .path = "stores.*.referenced_by", .type = RP_SETTING_LIST, .offset = STORE(referenced_by),
      .entries = &reference_entries, .fallback = "[]",
      .example = "[ { database: app, table: post, column: image_key } ]",
      .help = "Places that may still use an object of this store. Each is a database with a table and a column that "
              "holds keys, or with a query whose only column is a key." },
    { .path = "stores.*.referenced_by.*.database", .type = RP_SETTING_TEXT, .offset = REFERENCE(database), .least = 1,
      .most = 63, .required = true, .example = "app",
      .help = "A name under databases." },
    { .path = "stores.*.referenced_by.*.table", .type = RP_SETTING_TEXT, .offset = REFERENCE(table), .least = 1,
      .most = 63,
      .help = "The table. Needs column; excludes sql." },
    { .path = "stores.*.referenced_by.*.column", .type = RP_SETTING_TEXT, .offset = REFERENCE(column), .least = 1,
      .most = 63,
      .help = "The column of the table that holds keys of objects." },
    { .path = "stores.*.referenced_by.*.sql", .type = RP_SETTING_SQL, .offset = REFERENCE(sql), .least = 1,
      .most = 16384,
      .help = "A query whose only column is a key, in place of table and column." },

    { .path = "databases", .type = RP_SETTING_MAP, .offset = CONFIG(databases), .entries = &database_entries,
      .fallback = "{}",
      .help = "Your own databases, each under a name of your choice: where references are looked up." },
    { .path = "databases.*.url", .type = RP_SETTING_URL, .offset = DATABASE(url), .required = true,
      .example = "sqlite:/srv/app/app.db",
      .help = "Where the database is." },
    { .path = "databases.*.read_url", .type = RP_SETTING_URL, .offset = DATABASE(read_url), .fallback = "",
      .help = "A replica for look-ups; empty: the url." },
    { .path = "databases.*.statement_timeout", .type = RP_SETTING_DURATION, .offset = DATABASE(statement_timeout_ms),
      .least = 1, .most = RP_DAY_MS, .fallback = "30s",
      .help = "A statement that takes longer is cancelled and counts as failed." },

    { .path = "sweep", .type = RP_SETTING_SECTION,
      .help = "The sweep purges what has come due." },
    { .path = "sweep.limit", .type = RP_SETTING_INTEGER, .offset = CONFIG(sweep_limit), .least = 1, .most = 1000000000,
      .fallback = "100000",
      .help = "The most marks that one sweep purges." },
    { .path = "sweep.max_attempts", .type = RP_SETTING_INTEGER, .offset = CONFIG(sweep_max_attempts), .least = 1,
      .most = 1000, .fallback = "20",
      .help = "A mark that failed this often becomes a dead letter and waits for a person." },
    { .path = "sweep.batch", .type = RP_SETTING_INTEGER, .offset = CONFIG(sweep_batch), .least = 1, .most = 1000,
      .fallback = "1000",
      .help = "The most marks that are claimed at once." },
    { .path = "sweep.lease", .type = RP_SETTING_DURATION, .offset = CONFIG(sweep_lease_ms), .least = RP_SECOND_MS,
      .most = RP_DAY_MS, .fallback = "2m",
      .help = "How long a claim holds before another worker may take it over." },
    { .path = "sweep.retry_first", .type = RP_SETTING_DURATION, .offset = CONFIG(sweep_retry_first_ms), .least = 1,
      .most = RP_DAY_MS, .fallback = "10s",
      .help = "The wait after the first failure of a mark; doubled after each further one." },
    { .path = "sweep.retry_most", .type = RP_SETTING_DURATION, .offset = CONFIG(sweep_retry_most_ms), .least = 1,
      .most = 30 * RP_DAY_MS, .fallback = "1h",
      .help = "The longest wait between two attempts. Not below retry_first." },

    { .path = "lock", .type = RP_SETTING_SECTION,
      .help = "The lock that lets only one run of a kind work at a time." },
    { .path = "lock.stale_after", .type = RP_SETTING_DURATION, .offset = CONFIG(lock_stale_after_ms),
      .least = RP_SECOND_MS, .most = 30 * RP_DAY_MS, .fallback = "30m",
      .help = "A lock that was not renewed for this long may be taken over." },
};
/* clang-format on */

const char *rp_mode_name(enum rp_mode mode)
{
    RP_ASSERT((size_t)mode <= RP_MODE_PURGE);
    return modes[mode];
}

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
    if (!s->lifted_by) return;
    rp_buf_fmt(out, " (up to %s with allow_any_grace: true)", rp_duration_format(RP_SETTING_LIFTED_MOST_MS, most));
}

void rp_setting_expected(const struct rp_setting *s, struct rp_buf *out)
{
    switch (s->type) {
    case RP_SETTING_TEXT:
        rp_buf_fmt(out, "a text of %" PRId64 " to %" PRId64 " bytes on one line", s->least, s->most);
        break;
    case RP_SETTING_SQL:
        rp_buf_fmt(out, "a query of at most %" PRId64 " bytes", s->most);
        break;
    case RP_SETTING_URL:
        rp_buf_str(out, "sqlite:PATH or postgres://USER@HOST/DATABASE");
        break;
    case RP_SETTING_PATH:
        rp_buf_str(out, "the path of a directory");
        break;
    case RP_SETTING_LOG:
        rp_buf_str(out, "the path of a file, \"-\" for standard error or \"\" for none");
        break;
    case RP_SETTING_BOOL:
        rp_buf_str(out, "true or false");
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
    case RP_SETTING_SECTION:
        rp_buf_str(out, "a section");
        break;
    case RP_SETTING_MAP:
        rp_buf_fmt(out, "a section of at most %zu named entries", s->entries->most);
        break;
    case RP_SETTING_LIST:
        rp_buf_fmt(out, "a list of at most %zu items", s->entries->most);
        break;
    }
}

bool rp_setting_is_name(const char *text)
{
    size_t n = strlen(text);
    return n >= 1 && n <= 63 && text[0] >= 'a' && text[0] <= 'z' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_") == n;
}

/* A database in memory would forget every promise with the process. */
bool rp_setting_is_url(const char *text)
{
    if (!strncmp(text, "sqlite:", 7)) return text[7] != '\0' && text[7] != ':';
    return !strncmp(text, "postgres://", 11) || !strncmp(text, "postgresql://", 13);
}
