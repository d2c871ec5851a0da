/* SPDX-License-Identifier: Apache-2.0 */
/* docs/config.md and the manual page reprieve.yaml(5), from the table of settings. */
#include "config_docs.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "config/settings.h"

#define RESTART        " A running daemon takes it at its next start."
#define DOCS_BYTES_MAX ((size_t)256 << 10)

/* The same sentences in both documents. */
static const char *const rules[] = {
    "The configuration is one YAML file. It is looked for in the option --config, the environment variable "
    "REPRIEVE_CONFIG, ./reprieve.yaml and /etc/reprieve/reprieve.yaml; the first that is there is used, alone.",
    "Without any file the embedded default is in force: everything lies under the data directory (--data, "
    "./reprieve-data unless given): catalog.db, reprieve.log, and the directory objects as store main in mode purge.",
    "Unknown keys, duplicate keys, wrong types and values out of bounds are errors that name file, line, key and what "
    "was "
    "expected. Anchors, aliases, tags and a second document are refused.",
    "${NAME} in a value is replaced by the environment variable; one that is not set is an error. $${ is a literal ${. "
    "The "
    "replacement happens after the file is parsed, so it can never change the structure.",
    "A URL can hold a password. KEY_file in the place of such a KEY names a file that holds the value (one newline at "
    "the "
    "end is dropped). Values of these keys are never shown in errors.",
    "Relative paths, those in sqlite: URLs too, begin at the directory of the configuration file.",
    "The directory of a SQLite catalog and those of stores must be there; no file but the embedded default makes them, "
    "and `reprieve init` makes that of the catalog. Beside a file written by hand: mkdir -p reprieve-data.",
    "A running daemon reads the file again on SIGHUP, with the files that KEY_file names, and takes every setting, "
    "unless it, or the section or list that it stands in, says that it is taken at the next start. Where stores, "
    "databases, confirmations or sinks are added or taken out, all of that section waits for the next start. The log "
    "names what was changed, and what waits.",
    "A duration is a number with a unit: 250ms, 90s, 15m, 12h, 5d, 2w, also joined: 1h30m.",
    "A cron line has five fields: minute (0-59), hour (0-23), day of month (1-31), month (1-12 or jan-dec) and day of "
    "week (0-7 or sun-sat; 0 and 7 are Sunday), in UTC. A field is *, a number or a name of three letters, a range "
    "(mon-fri), a step (*/15, 8-18/2), or a list of these with commas. If both day of month and day of week are given "
    "(not just *), it fires on days that fit either of them. There is no @hourly and the like.",
    "The names of stores, databases and confirmations have 1 to 63 of a-z 0-9 - _ and begin with a letter.",
};
#define N_RULES (sizeof(rules) / sizeof(rules[0]))

static void add_md_default(const struct rp_setting *s, struct rp_buf *out)
{
    if (s->required)
        rp_buf_fmt(out, "required%s%s", s->only ? " for " : "", s->only ? s->only : "");
    else if (!s->fallback)
        rp_buf_str(out, "none");
    else
        rp_buf_fmt(out, "`%s`", *s->fallback ? s->fallback : "\"\"");
}

static void add_md_row(const struct rp_setting *s, struct rp_buf *out)
{
    rp_buf_fmt(out, "| `%s` | ", s->path);
    rp_setting_expected(s, out);
    rp_buf_str(out, " | ");
    add_md_default(s, out);
    rp_buf_fmt(out, " | %s%s%s%s%s |\n", s->only ? "Type " : "", s->only ? s->only : "", s->only ? " only. " : "",
               s->help, s->restart ? RESTART : "");
}

static void add_md_table(const struct rp_setting *parent, struct rp_buf *out)
{
    rp_buf_str(out, "| key | takes | default | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < rp_settings_count; i++) {
        const struct rp_setting *s = &rp_settings[i];
        bool top_group = !parent && rp_setting_is_group(s);
        if (rp_setting_is_member(s, parent) && !top_group) add_md_row(s, out);
    }
}

static void add_md_sections(struct rp_buf *out)
{
    for (size_t i = 0; i < rp_settings_count; i++) {
        const struct rp_setting *s = &rp_settings[i];
        if (!rp_setting_is_group(s)) continue;
        rp_buf_fmt(out, "\n## %s\n%s%s", s->path, s->help, s->restart ? RESTART : "");
        if (s->entries) rp_buf_fmt(out, " At most %zu.", s->entries->most);
        rp_buf_str(out, "\n\n");
        add_md_table(s, out);
        if (s->type == RP_SETTING_LIST) rp_buf_fmt(out, "\n```yaml\n%s: %s\n```\n", rp_setting_key(s), s->example);
    }
}

static int finish(const struct rp_buf *text, struct rp_buf *out, struct rp_error *err)
{
    if (text->failed) return rp_error_set(err, text->failed, "the documentation of settings does not fit into memory");
    if (rp_buf_add(out, rp_buf_text(text), text->len) < 0)
        return rp_error_set(err, out->failed, "the documentation of settings does not fit into its buffer");
    return 0;
}

int config_write_docs(struct rp_buf *out, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(DOCS_BYTES_MAX);
    rp_buf_str(&text, "# Configuration\n\nMade from the table in `src/config/settings.c`; a test keeps it true.\n\n");
    for (size_t i = 0; i < N_RULES; i++)
        rp_buf_fmt(&text, "- %s\n", rules[i]);
    rp_buf_str(&text, "\n`*` in a key stands for a name of your choice, or for each item of a list.\n\n");
    add_md_table(NULL, &text);
    add_md_sections(&text);
    return finish(&text, out, err);
}

/* A backslash, a hyphen, and a dot or quote at the beginning of a line mean something to troff. */
static void add_roff(const char *text, struct rp_buf *out)
{
    if (*text == '.' || *text == '\'') rp_buf_str(out, "\\&");
    for (; *text; text++) {
        if (*text == '\\')
            rp_buf_str(out, "\\e");
        else if (*text == '-')
            rp_buf_str(out, "\\-");
        else
            rp_buf_char(out, *text);
    }
}

static void add_man_setting(const struct rp_setting *s, struct rp_buf *out)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf takes = RP_BUF(1024);
    rp_setting_expected(s, &takes);
    if (takes.failed) out->failed = takes.failed;
    rp_buf_fmt(out, ".TP\n\\fB%s\\fR\n", s->path);
    if (s->only) rp_buf_fmt(out, "Type %s only.\n", s->only);
    add_roff(s->help, out);
    if (s->restart) rp_buf_str(out, RESTART);
    rp_buf_str(out, "\nTakes ");
    add_roff(rp_buf_text(&takes), out);
    rp_buf_str(out, ".\n");
    if (s->required) {
        rp_buf_str(out, "Required.\n");
    } else if (s->fallback) {
        rp_buf_str(out, "Default: ");
        add_roff(*s->fallback ? s->fallback : "\"\"", out);
        rp_buf_str(out, "\n");
    }
}

static void add_man_example(struct rp_buf *out)
{
    rp_buf_str(out, ".SH EXAMPLE\n.nf\n"
                    "catalog:\n"
                    "  url: \"sqlite:/var/lib/reprieve/catalog.db\"\n"
                    "stores:\n"
                    "  media:\n"
                    "    path: /srv/media\n"
                    "    mode: quarantine\n"
                    "    referenced_by:\n"
                    "      \\- { database: app, table: post, column: image_key }\n"
                    "  photos:\n"
                    "    type: s3\n"
                    "    endpoint: https://s3.example.org\n"
                    "    bucket: photos\n"
                    "    access_key: \"${PHOTOS_ACCESS_KEY}\"\n"
                    "    secret_key: \"${PHOTOS_SECRET_KEY}\"\n"
                    "databases:\n"
                    "  app:\n"
                    "    url: \"${APP_DATABASE_URL}\"\n"
                    ".fi\n");
}

int config_write_man(struct rp_buf *out, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(DOCS_BYTES_MAX);
    rp_buf_str(&text, ".\\\" Made from the table in src/config/settings.c; a test keeps it true.\n"
                      ".TH REPRIEVE.YAML 5 \"\" \"Reprieve\" \"File formats\"\n"
                      ".SH NAME\nreprieve.yaml \\- the configuration of reprieve(1)\n.SH DESCRIPTION\n");
    for (size_t i = 0; i < N_RULES; i++) {
        rp_buf_str(&text, i > 0 ? ".PP\n" : "");
        add_roff(rules[i], &text);
        rp_buf_char(&text, '\n');
    }
    rp_buf_str(&text, ".SH SETTINGS\nA * in a key stands for a name of your choice, or for each item of a list.\n");
    for (size_t i = 0; i < rp_settings_count; i++)
        add_man_setting(&rp_settings[i], &text);
    add_man_example(&text);
    rp_buf_str(&text, ".SH SEE ALSO\nreprieve(1)\n");
    return finish(&text, out, err);
}

int config_write_files(void)
{
    struct rp_error err = { 0 };
    RP_CLEANUP(rp_buf_done) struct rp_buf docs = RP_BUF(1 << 20), man = RP_BUF(1 << 20);
    if (config_write_docs(&docs, &err) < 0 || config_write_man(&man, &err) < 0) return 1;
    FILE *md = fopen("docs/config.md", "w"), *roff = fopen("man/reprieve.yaml.5", "w");
    if (!md || !roff) return 1;
    bool written = fputs(rp_buf_text(&docs), md) >= 0 && fputs(rp_buf_text(&man), roff) >= 0;
    return fclose(md) == 0 && fclose(roff) == 0 && written ? 0 : 1;
}
