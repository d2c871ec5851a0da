/* SPDX-License-Identifier: Apache-2.0 */
/* reload.c - which settings of a new configuration a running daemon can take, by the same table. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text/buf.h"
#include "config/config.h"
#include "config/settings.h"

/* Two structures of one kind: the whole configuration, or one entry. */
struct both {
    char *next;
    const char *running;
    const char *prefix; /* "stores.media." */
    struct rp_config_change *change;
};

static size_t size_of(const struct rp_setting *s)
{
    switch (s->type) {
    case RP_SETTING_BOOL:
        return sizeof(bool);
    case RP_SETTING_INTEGER:
    case RP_SETTING_DURATION:
    case RP_SETTING_SIZE:
        return sizeof(int64_t);
    case RP_SETTING_ENUM:
        return sizeof(int);
    case RP_SETTING_CODES:
        return sizeof(struct rp_codes);
    default:
        return sizeof(const char *);
    }
}

static bool is_text(const struct rp_setting *s)
{
    return size_of(s) == sizeof(const char *) && s->type != RP_SETTING_INTEGER && s->type != RP_SETTING_DURATION &&
           s->type != RP_SETTING_SIZE;
}

static bool same_value(const struct rp_setting *s, const char *a, const char *b)
{
    if (!is_text(s)) return memcmp(a + s->offset, b + s->offset, size_of(s)) == 0;
    const char *x, *y;
    memcpy(&x, a + s->offset, sizeof(x));
    memcpy(&y, b + s->offset, sizeof(y));
    return x == y || (x && y && strcmp(x, y) == 0);
}

static size_t count_of(const struct rp_setting *s, const char *base)
{
    size_t n;
    memcpy(&n, base + s->entries->count_at, sizeof(n));
    return n;
}

static char *entry_of(const struct rp_setting *s, const char *base, size_t i)
{
    char *array;
    memcpy(&array, base + s->offset, sizeof(array));
    return array + i * s->entries->size_bytes;
}

static const char *name_of(const struct rp_setting *s, const char *entry)
{
    const char *name;
    memcpy(&name, entry + s->entries->name_at, sizeof(name));
    return name;
}

static bool same_names(const struct rp_setting *s, const char *a, const char *b)
{
    if (count_of(s, a) != count_of(s, b)) return false;
    for (size_t i = 0; i < count_of(s, a) && s->entries->name_at != RP_SETTING_NONE; i++)
        if (strcmp(name_of(s, entry_of(s, a, i)), name_of(s, entry_of(s, b, i))) != 0) return false;
    return true;
}

static bool same_entries(const struct rp_setting *s, const char *a, const char *b);

static bool same_members(const struct rp_setting *s, const char *a, const char *b)
{
    for (size_t i = 0; i < rp_settings_count; i++) {
        const struct rp_setting *m = &rp_settings[i];
        if (!rp_setting_is_member(m, s)) continue;
        if (m->entries ? !same_entries(m, a, b) : !same_value(m, a, b)) return false;
    }
    return true;
}

static bool same_entries(const struct rp_setting *s, const char *a, const char *b)
{
    if (!same_names(s, a, b)) return false;
    for (size_t i = 0; i < count_of(s, a); i++)
        if (!same_members(s, entry_of(s, a, i), entry_of(s, b, i))) return false;
    return true;
}

static void note(struct rp_buf *names, const struct both *both, const char *key)
{
    rp_buf_fmt(names, "%s%s%s", names->len > 0 ? ", " : "", both->prefix, key);
}

static void keep_value(const struct rp_setting *s, const struct both *both, const char *key)
{
    if (same_value(s, both->next, both->running)) return;
    note(s->restart ? &both->change->needs_restart : &both->change->taken, both, key);
    if (s->restart) memcpy(both->next + s->offset, both->running + s->offset, size_of(s));
}

static void keep_entries(const struct rp_setting *s, const struct both *both)
{
    memcpy(both->next + s->offset, both->running + s->offset, sizeof(void *));
    memcpy(both->next + s->entries->count_at, both->running + s->entries->count_at, sizeof(size_t));
    note(&both->change->needs_restart, both, rp_setting_key(s));
}

static void walk(const struct rp_setting *scope, const struct both *both);

/* Entries that were added, removed or moved cannot be taken; within those that stay, each
 * setting for itself. */
static void walk_entries(const struct rp_setting *s, const struct both *both)
{
    if (!same_names(s, both->next, both->running) || (s->restart && !same_entries(s, both->next, both->running))) {
        keep_entries(s, both);
        return;
    }
    for (size_t i = 0; i < count_of(s, both->next) && !s->restart; i++) {
        char prefix[160];
        struct both inner = { .next = entry_of(s, both->next, i),
                              .running = entry_of(s, both->running, i),
                              .prefix = prefix,
                              .change = both->change };
        snprintf(prefix, sizeof(prefix), "%s%s.%s.", both->prefix, rp_setting_key(s), name_of(s, inner.next));
        walk(s, &inner);
    }
}

/* Below the entry that it belongs to, if it belongs to one. */
static const char *key_below(const struct rp_setting *s)
{
    const char *star = strrchr(s->path, '*');
    return star != NULL ? star + strlen("*.") : s->path;
}

static void walk(const struct rp_setting *scope, const struct both *both)
{
    for (size_t i = 0; i < rp_settings_count; i++) {
        const struct rp_setting *s = &rp_settings[i];
        if (!rp_setting_is_member(s, scope)) continue;
        if (s->type == RP_SETTING_SECTION)
            walk(s, both);
        else if (s->entries)
            walk_entries(s, both);
        else
            keep_value(s, both, key_below(s));
    }
}

void rp_config_reload(struct rp_config *next, const struct rp_config *running, struct rp_config_change *change)
{
    struct both both = { .next = (char *)next, .running = (const char *)running, .prefix = "", .change = change };
    walk(NULL, &both);
}
