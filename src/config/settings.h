/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - THE table of settings. Reading a file, the file that `reprieve init` writes,
 * docs/config.md and the manual page all walk this table, so that they cannot disagree.
 *
 * N1  A path is made of keys joined by dots; `*` stands for the name of an entry, or for an item of
 *     a list.
 * N2  Rows stand in the order of the printed file, a section directly before its members.
 * N3  A default is text as a person would write it and goes through the same conversion as a file's
 *     value.
 * N4  An offset counts from struct rp_config or, below a `*`, from the structure of that entry. */
#ifndef RP_CONFIG_SETTINGS_H
#define RP_CONFIG_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_buf;

enum rp_setting_type {
    RP_SETTING_TEXT,     /* one line; bounds are bytes */
    RP_SETTING_SQL,      /* may have several lines; bounds are bytes */
    RP_SETTING_URL,      /* of a database; a secret: also KEY_file, never shown */
    RP_SETTING_PATH,     /* of a directory, relative to the file's */
    RP_SETTING_FOLDER,   /* of a directory, likewise; "": none */
    RP_SETTING_LOG,      /* a path, "-" or "" */
    RP_SETTING_FILE,     /* of a file, relative to the file's directory; "": none */
    RP_SETTING_WEB,      /* http:// or https://; "": none */
    RP_SETTING_ADDRESS,  /* HOST:PORT to listen on */
    RP_SETTING_EVENTS,   /* a list of names of events and patterns; kept with a space between */
    RP_SETTING_NETWORKS, /* a list in CIDR; kept with a space between */
    RP_SETTING_SIGNING,  /* what signs calls out: whsec_ and base64, or any text; bounds are bytes */
    RP_SETTING_SCHEDULE, /* "continuous", or the five fields of cron */
    RP_SETTING_CRON,     /* the five fields of cron; "": never */
    RP_SETTING_BOOL,     /* bool */
    RP_SETTING_INTEGER,  /* int64_t */
    RP_SETTING_DURATION, /* int64_t, in ms; bounds too */
    RP_SETTING_SIZE,     /* int64_t, in bytes; bounds too */
    RP_SETTING_CHOICE,   /* const char *, one of the choices */
    RP_SETTING_ENUM,     /* int-sized enum: the index of the choice */
    RP_SETTING_CODES,    /* struct rp_codes: a list of status codes of HTTP between the bounds */
    RP_SETTING_SECTION,  /* groups members, no structure of its own */
    RP_SETTING_MAP,      /* entries by name */
    RP_SETTING_LIST,     /* entries by position */
};

/* How the array behind a map or a list is laid out. */
struct rp_setting_entries {
    size_t size_bytes; /* of one element */
    size_t count_at;   /* offset of the count, beside the array's pointer */
    size_t name_at;    /* within an element; RP_SETTING_NONE for a list */
    size_t line_at;    /* within an element */
    size_t type_at;    /* within an element: what `only` is held against; 0: entries have no types */
    size_t most;
    const char *example; /* a name for the entry in examples */
};

#define RP_SETTING_NONE SIZE_MAX
/* Even a lifted bound keeps "now + duration" a moment that can be written. */
#define RP_SETTING_LIFTED_MOST_MS (36500 * RP_DAY_MS)

struct rp_setting {
    const char *path;
    enum rp_setting_type type;
    size_t offset;
    int64_t least, most;
    const char *const *choices; /* NULL-terminated */
    const char *fallback;       /* the default; NULL: none */
    const char *only;           /* belongs to entries of this type alone; NULL: to all */
    bool required;              /* of those entries */
    bool restart;               /* a running daemon keeps what it began with */
    bool secret;                /* also KEY_file, never shown; URLs of databases are without saying */
    bool may_be_forever;        /* of a duration: `forever` is RP_FOREVER_MS */
    size_t lifted_by;           /* offset of a bool that, when true, lifts the bounds of a duration; 0: none */
    const struct rp_setting_entries *entries;
    const char *example; /* a value to show where there is no default, or it says little */
    const char *help;    /* sentences, plain ASCII */
};

extern const struct rp_setting rp_settings[];
extern const size_t rp_settings_count;

/* The last key of the path. */
const char *rp_setting_key(const struct rp_setting *s);
/* Is `s` a direct member of the section, map entry or list item at `parent`? NULL: the top. */
bool rp_setting_is_member(const struct rp_setting *s, const struct rp_setting *parent);
bool rp_setting_is_group(const struct rp_setting *s);
bool rp_setting_is_secret(const struct rp_setting *s);
/* Does it belong to an entry of this type? */
bool rp_setting_is_for(const struct rp_setting *s, const char *type);
/* What a value must be, in words that fit after "expected". */
void rp_setting_expected(const struct rp_setting *s, struct rp_buf *out);

#endif
