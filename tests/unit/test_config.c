/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/time.h"
#include "config/config.h"
#include "config/load.h"
#include "config/settings.h"
#include "config/yaml.h"
#include "config_docs.h"
#include "config_inputs.h"

/* A directory of its own that is the working directory while a test runs; removed with what the
 * test put there. */
struct place {
    char dir[64];
    int before; /* the former working directory */
    struct rp_arena arena;
    struct rp_config config;
    struct rp_error err;
};

static int enter(void **state)
{
    static struct place place;
    place = (struct place){ .dir = "/tmp/rp-config-XXXXXX", .arena = RP_ARENA((size_t)4 << 20) };
    if (!mkdtemp(place.dir)) return -1;
    place.before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    unsetenv("REPRIEVE_CONFIG");
    *state = &place;
    return place.before >= 0 ? chdir(place.dir) : -1;
}

static int leave(void **state)
{
    static const char *const made[] = { "reprieve.yaml", "system.yaml", "other.yaml", "secret", "fifo",
                                        "link",          "sub/c.yaml",  "sub",        "real" };
    struct place *place = *state;
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
        (void)remove(made[i]);
    rp_arena_done(&place->arena);
    int rc = fchdir(place->before);
    close(place->before);
    return rc < 0 ? rc : rmdir(place->dir);
}

static int parse(struct place *p, const char *text)
{
    rp_error_clear(&p->err);
    return rp_config_parse(text, strlen(text), "reprieve.yaml", "/srv", &p->arena, &p->config, &p->err);
}

static void accept(struct place *p, const char *text)
{
    if (parse(p, text) < 0) fail_msg("%s\nfrom: %s", p->err.text, text);
}

static void refuse(struct place *p, const char *text, const char *words)
{
    int rc = parse(p, text);
    if (rc == 0) fail_msg("accepted: %s", text);
    if (!strstr(p->err.text, words)) fail_msg("expected '%s' in '%s'", words, p->err.text);
    assert_int_equal(rc, RP_ECONFIG);
    assert_int_equal(p->err.code, RP_ECONFIG);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fputs(text, f) < 0, 0);
    assert_int_equal(fclose(f), 0);
}

static void bad_inputs_are_refused_with_line_key_and_what_was_expected(void **state)
{
    struct place *p = *state;
    for (size_t i = 0; i < sizeof(bad_inputs) / sizeof(bad_inputs[0]); i++)
        refuse(p, bad_inputs[i].text, bad_inputs[i].words);
}

static void good_inputs_are_accepted(void **state)
{
    for (size_t i = 0; i < sizeof(good_inputs) / sizeof(good_inputs[0]); i++)
        accept(*state, good_inputs[i]);
}

static void assert_defaults(const struct rp_config *c)
{
    assert_string_equal(c->environment, "dev");
    assert_string_equal(c->log_level, "info");
    assert_int_equal(c->sweep_limit, 100000);
    assert_int_equal(c->sweep_max_attempts, 20);
    assert_int_equal(c->sweep_batch, 1000);
    assert_int_equal(c->sweep_lease_ms, 2 * RP_MINUTE_MS);
    assert_int_equal(c->sweep_retry_first_ms, 10 * RP_SECOND_MS);
    assert_int_equal(c->sweep_retry_most_ms, RP_HOUR_MS);
    assert_int_equal(c->lock_stale_after_ms, 30 * RP_MINUTE_MS);
    assert_string_equal(c->safety_net_schedule, "15 * * * *");
    assert_int_equal(c->safety_net_limit, 1000);
    assert_int_equal(c->retention.marks_ms, 90 * RP_DAY_MS);
    assert_int_equal(c->retention.files_ms, 90 * RP_DAY_MS);
    assert_int_equal(c->retention.keys_ms, RP_DAY_MS);
    assert_true(c->retention.audit_ms == RP_FOREVER_MS);
}

static void assert_store_defaults(const struct rp_store_config *s)
{
    assert_string_equal(s->type, "fs");
    assert_int_equal(s->grace_ms, 5 * RP_DAY_MS);
    assert_int_equal(s->quarantine_ms, 7 * RP_DAY_MS);
    assert_false(s->allow_any_grace);
    assert_false(s->annotate);
    assert_false(s->allow_window_deletes);
    assert_int_equal(s->n_referenced_by, 0);
}

static void an_empty_file_gives_the_promised_defaults(void **state)
{
    struct place *p = *state;
    accept(p, "");
    assert_defaults(&p->config);
    assert_string_equal(p->config.file, "reprieve.yaml");
    assert_string_equal(p->config.catalog_url, "sqlite:/srv/reprieve-data/catalog.db");
    assert_string_equal(p->config.log_file, "");
    assert_int_equal(p->config.n_stores + p->config.n_databases, 0);
    accept(p, STORE "databases: { app: { url: \"postgres://h/d\" } }\n");
    assert_store_defaults(&p->config.stores[0]);
    assert_int_equal(p->config.stores[0].mode, RP_MODE_OBSERVE);
    assert_string_equal(p->config.databases[0].read_url, "");
    assert_int_equal(p->config.databases[0].statement_timeout_ms, 30 * RP_SECOND_MS);
}

static void every_value_of_a_file_arrives_in_its_field(void **state)
{
    struct place *p = *state;
    accept(p, "environment: staging\n"
              "log: { file: log/x.log, level: warning }\n"
              "stores:\n"
              "  media: { path: files/, mode: purge, grace: 36h, quarantine: 3d, annotate: true,\n"
              "           allow_window_deletes: true, allow_any_grace: true,\n"
              "           referenced_by: [ { database: app, table: post, column: image },\n"
              "                            { database: app, sql: \"SELECT a\\nFROM b\" } ] }\n"
              "  docs: { path: /var/docs }\n"
              "databases: { app: { url: \"sqlite:./app.db\", read_url: \"postgres://r/d\", statement_timeout: 5s } }\n"
              "sweep: { limit: 7, max_attempts: 8, batch: 9, lease: 10s, retry_first: 11s, retry_most: 12s }\n"
              "safety_net: { schedule: \"1 2 3 4 *\", limit: 5 }\n"
              "lock: { stale_after: 13m }\n"
              "retention: { marks: 2h, files: forever, audit: 400d }\n");
    const struct rp_config *c = &p->config;
    assert_string_equal(c->environment, "staging");
    assert_string_equal(c->log_file, "/srv/log/x.log");
    assert_string_equal(c->log_level, "warning");
    assert_int_equal(c->n_stores, 2);
    const struct rp_store_config *s = rp_config_store(c, "media");
    assert_string_equal(s->path, "/srv/files");
    assert_int_equal(s->mode, RP_MODE_PURGE);
    assert_int_equal(s->grace_ms, 36 * RP_HOUR_MS);
    assert_int_equal(s->quarantine_ms, 3 * RP_DAY_MS);
    assert_true(s->annotate && s->allow_window_deletes && s->allow_any_grace);
    assert_int_equal(s->line, 4);
    assert_int_equal(s->n_referenced_by, 2);
    assert_string_equal(s->referenced_by[0].table, "post");
    assert_string_equal(s->referenced_by[0].column, "image");
    assert_null(s->referenced_by[0].sql);
    assert_int_equal(s->referenced_by[0].line, 6);
    assert_string_equal(s->referenced_by[1].sql, "SELECT a\nFROM b");
    assert_null(s->referenced_by[1].table);
    assert_string_equal(rp_config_store(c, "docs")->path, "/var/docs");
    assert_null(rp_config_store(c, "none"));
    const struct rp_database_config *d = rp_config_database(c, "app");
    assert_string_equal(d->url, "sqlite:/srv/app.db");
    assert_string_equal(d->read_url, "postgres://r/d");
    assert_int_equal(d->statement_timeout_ms, 5 * RP_SECOND_MS);
    assert_null(rp_config_database(c, "none"));
    assert_int_equal(c->sweep_limit * 10000 + c->sweep_max_attempts * 100 + c->sweep_batch, 70809);
    assert_int_equal(c->sweep_lease_ms, 10000);
    assert_int_equal(c->sweep_retry_first_ms, 11000);
    assert_int_equal(c->sweep_retry_most_ms, 12000);
    assert_int_equal(c->lock_stale_after_ms, 13 * RP_MINUTE_MS);
    assert_string_equal(c->safety_net_schedule, "1 2 3 4 *");
    assert_int_equal(c->safety_net_limit, 5);
    assert_int_equal(c->retention.marks_ms, 2 * RP_HOUR_MS);
    assert_true(c->retention.files_ms == RP_FOREVER_MS);
    assert_int_equal(c->retention.audit_ms, 400 * RP_DAY_MS);
    assert_string_equal(rp_mode_name(s->mode), "purge");
}

static void a_grace_out_of_range_needs_words_before_or_after_it(void **state)
{
    struct place *p = *state;
    refuse(
        p, STORE "    grace: 23h\n",
        "reprieve.yaml:4: stores.media.grace: expected a duration from 1d to 30d (up to 36500d with allow_any_grace: "
        "true), found '23h'");
    refuse(p, STORE "    grace: 31d\n", "from 1d to 30d");
    refuse(p, STORE "    allow_any_grace: false\n    grace: 0s\n", "from 1d to 30d");
    refuse(p, STORE "    allow_any_grace: true\n    grace: 36501d\n", "up to 36500d");
    accept(p, STORE "    grace: 0s\n    allow_any_grace: true\n");
    assert_int_equal(p->config.stores[0].grace_ms, 0);
    accept(p, STORE "    allow_any_grace: true\n    grace: 365d\n");
    assert_int_equal(p->config.stores[0].grace_ms, 365 * RP_DAY_MS);
}

static void a_reference_is_a_column_or_a_query(void **state)
{
    static const struct bad cases[] = {
        { "table: a", "expected table and column, or sql, found table alone" },
        { "column: a", "found column alone" },
        { "table: a, column: b, sql: c", "found both" },
        { "column: b, sql: c", "found both" },
        { "sql: \"\"", "sql: expected a query of at most 16384 bytes, found an empty text" },
        { "table: \"\"", "table: expected a text of 1 to 63 bytes" },
    };
    struct place *p = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text),
                 STORE "    referenced_by: [{ database: app, %s }]\ndatabases: { app: { url: \"sqlite:/a\" } }\n",
                 cases[i].text);
        refuse(p, text, cases[i].words);
    }
    refuse(p, STORE "    referenced_by: [{ database: app }]\ndatabases: { app: { url: \"sqlite:/a\" } }\n",
           "found neither");
}

static void places_that_would_mix_files_and_objects_are_refused(void **state)
{
    static const struct bad cases[] = {
        { "stores: { a: { path: /x/m }, b: { path: /x/m/ } }",
          "stores.b.path: expected a directory apart from stores.a.path, found the same one" },
        { "stores: { a: { path: m }, b: { path: /srv/./n/../m } }", "found the same one" },
        { "stores: { a: { path: /x/m }, b: { path: /x/m/sub } }",
          "stores.b.path: expected a directory apart from stores.a.path, found one inside it" },
        { "stores: { a: { path: /x/m/sub }, b: { path: /x/m } }", "found one that contains it" },
        { "stores: { a: { path: /x }, b: { path: / } }", "found one that contains it" },
        { "stores: { a: { path: reprieve-data } }",
          "stores.a.path: expected a directory of objects only, found one that contains the file of catalog.url" },
        { "catalog: { url: \"sqlite:/x/c.db\" }\nstores: { a: { path: /x } }",
          "reprieve.yaml:2: stores.a.path: expected a directory of objects only, found one that contains the file of" },
        { "log: { file: /x/l }\nstores: { a: { path: /x } }", "found one that contains the file of log.file" },
        { "databases: { d: { url: \"sqlite:/x/d\" } }\nstores: { a: { path: /x } }", "the file of databases.d.url" },
        { "databases: { d: { url: \"postgres://h/d\", read_url: \"sqlite:/x/d\" } }\nstores: { a: { path: /x } }",
          "the file of databases.d.read_url" },
        { "catalog: { url: \"postgres://h/d\" }\nstores: { a: { path: . } }", "contains the configuration file" },
        { "catalog: { url: \"postgres://h/d\" }\nstores: { a: { path: / } }", "contains the configuration file" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        refuse(*state, cases[i].text, cases[i].words);
    accept(*state,
           "catalog: { url: \"sqlite:/x/media.db\" }\nstores: { a: { path: /x/media }, b: { path: /x/media-b } }\n");
    accept(*state, "log: { file: \"-\" }\nstores: { a: { path: /x } }\n");
}

static void a_symbolic_link_does_not_hide_a_shared_directory(void **state)
{
    struct place *p = *state;
    assert_int_equal(mkdir("real", 0700), 0);
    assert_int_equal(symlink("real", "link"), 0);
    char text[256];
    snprintf(text, sizeof(text), "stores: { a: { path: %s/real/new }, b: { path: %s/link/new } }\n", p->dir, p->dir);
    refuse(p, text, "found the same one");
    snprintf(text, sizeof(text), "stores: { a: { path: %s/real }, b: { path: %s/link } }\n", p->dir, p->dir);
    refuse(p, text, "found the same one");
}

static void the_environment_is_put_in_after_parsing(void **state)
{
    static const struct {
        const char *yaml, *value;
    } cases[] = {
        { "environment: ${RP_T}", "a: b, c" },
        { "environment: \"${RP_T}\"", "a: b, c" },
        { "environment: 'x${RP_T}y'", "xa: b, cy" },
        { "environment: ${RP_T}${RP_T}", "a: b, ca: b, c" },
        { "environment: \"$${RP_T}\"", "${RP_T}" },
        { "environment: \"$$${RP_T}\"", "$${RP_T}" },
        { "environment: $RP_T", "$RP_T" },
        { "environment: $", "$" },
        { "environment: 5$$", "5$$" },
    };
    struct place *p = *state;
    setenv("RP_T", "a: b, c", 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        accept(p, cases[i].yaml);
        assert_string_equal(p->config.environment, cases[i].value);
    }
    setenv("RP_T", "30d", 1);
    accept(p, STORE "    grace: ${RP_T}\n");
    assert_int_equal(p->config.stores[0].grace_ms, 30 * RP_DAY_MS);
    setenv("RP_T", "{ other: { path: /x } }", 1);
    refuse(p, "stores: ${RP_T}\n", "stores: expected a section");
    setenv("RP_T", "dev\nlog:\n  level: debug", 1);
    refuse(p, "environment: ${RP_T}\n", "environment: expected a text of 1 to 63 bytes on one line, found '${RP_T}'");
    setenv("RP_T", "${RP_T}", 1);
    accept(p, "environment: ${RP_T}\n");
    assert_string_equal(p->config.environment, "${RP_T}");
    unsetenv("RP_T");
}

static void a_variable_that_is_unset_or_misspelt_is_an_error(void **state)
{
    struct place *p = *state;
    unsetenv("RP_UNSET");
    refuse(p, "environment: ${RP_UNSET}\n", "environment: expected the environment variable RP_UNSET, found it unset");
    refuse(p, "environment: a${\n", "expected ${NAME} of an environment variable");
    refuse(p, "environment: \"${}\"\n", "expected ${NAME}");
    refuse(p, "environment: \"${1A}\"\n", "expected ${NAME}");
    refuse(p, "environment: \"${A-b}\"\n", "expected ${NAME}");
    refuse(p, "environment: \"${A\"\n", "expected ${NAME}");
    setenv("RP_T", "", 1);
    refuse(p, "environment: ${RP_T}\n", "environment: expected a text of 1 to 63 bytes on one line, found '${RP_T}'");
    unsetenv("RP_T");
    refuse(p, "${HOME}: dev\n", "(not a name): expected one of");
}

static void expansion_is_bounded(void **state)
{
    struct place *p = *state;
    static char big[60001], text[256];
    memset(big, 'x', sizeof(big) - 1);
    setenv("RP_T", big, 1);
    snprintf(text, sizeof(text), "environment: ${RP_T}${RP_T}${RP_T}\n");
    refuse(p, text, "environment: expected at most 65536 bytes, found more");
    unsetenv("RP_T");
}

static void secrets_never_stand_in_an_error(void **state)
{
    static const char *const cases[] = {
        "catalog: { url: \"mysql://u:hunter2@h\" }\n",
        "catalog: { url: \"${RP_T}\" }\n",
        "catalog: { url_file: secret }\n",
        "catalog:\n  url:postgres://u:hunter2@h\n",
        "catalog: { url:\"hunter2\" }\n",
        "catalog: { \"url:postgres://u:hunter2@h\" }\n",
        "databases:\n  app: postgres://u:hunter2@h\n",
        "databases: { app:postgres://hunter2@h }\n",
        "databases: { \"hunter2:x\": { url: \"sqlite:a\" } }\n",
        "databases: { app: { url: \"sqlite:a\", read_url: \"hunter2\" } }\n",
        "environment: \"${RP_T}\"\n",
        "log: { level: \"${RP_T}\" }\n",
        STORE "    referenced_by: [{ database: \"${RP_T}\", table: a, column: b }]\n",
        "catalog: { url: \"hunter2\n",
        BUCKET "    secret_key: \"hunter2\n",
        BUCKET "    secret_key: [hunter2]\n",
        BUCKET "    access_key: hunter2\n",
        BUCKET "    secret_key: \"${RP_T}\"\n",
        BUCKET "    secret_key_file: secret\n",
        BUCKET "    session_token: hunter2\n",
        BUCKET "    endpoint: https://u:hunter2@h\n",
        "confirmations: { calendar: { url: \"https://u:hunter2@h/x\" } }\n",
        "confirmations: { calendar: { url: \"gopher://hunter2\" } }\n",
        "processor: { url: \"https://hunter2@h\" }\n",
        STORE "    secret_key: hunter2\n",
        "\"hunter2 x\": 1\n\"hunter2 x\": 2\n",
    };
    struct place *p = *state;
    write_file("secret", "mysql://hunter2\n");
    setenv("RP_T", "hunter2\n", 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        rp_error_clear(&p->err);
        int rc = rp_config_parse(cases[i], strlen(cases[i]), "reprieve.yaml", p->dir, &p->arena, &p->config, &p->err);
        if (rc == 0) fail_msg("accepted: %s", cases[i]);
        if (strstr(p->err.text, "hunter2") || strstr(p->err.hint, "hunter2")) fail_msg("%s", p->err.text);
    }
    setenv("RP_T", "hunter2", 1);
    refuse(p, STORE "    referenced_by: [{ database: \"${RP_T}\", table: a, column: b }]\n",
           "referenced_by[0].database: expected a name under databases, found '${RP_T}'");
    unsetenv("RP_T");
}

static int parse_here(struct place *p, const char *text)
{
    rp_error_clear(&p->err);
    return rp_config_parse(text, strlen(text), "reprieve.yaml", p->dir, &p->arena, &p->config, &p->err);
}

static void a_secret_can_come_from_a_file(void **state)
{
    struct place *p = *state;
    static const char text[] = "catalog: { url_file: secret }\n"
                               "databases: { app: { url_file: ./secret, read_url_file: secret } }\n";
    write_file("secret", "postgres://u:p@h/d\n");
    assert_int_equal(parse_here(p, text), 0);
    assert_string_equal(p->config.catalog_url, "postgres://u:p@h/d");
    assert_string_equal(p->config.databases[0].url, "postgres://u:p@h/d");
    assert_string_equal(p->config.databases[0].read_url, "postgres://u:p@h/d");
    write_file("secret", "postgres://${HOME}");
    assert_int_equal(parse_here(p, text), 0);
    assert_string_equal(p->config.catalog_url, "postgres://${HOME}");
    write_file("secret", "postgres://h/d\n\n");
    assert_int_equal(parse_here(p, text), RP_ECONFIG);
    assert_non_null(strstr(p->err.text, "reprieve.yaml:1: catalog.url_file: expected sqlite:PATH or postgres://"));
}

static void a_secret_file_that_cannot_be_used_is_an_error(void **state)
{
    struct place *p = *state;
    static const char text[] = "catalog:\n  url_file: secret\n";
    assert_int_equal(parse_here(p, text), RP_ECONFIG);
    assert_non_null(strstr(p->err.text, "reprieve.yaml:2: catalog.url_file: expected a file that can be read"));
    assert_non_null(strstr(p->err.text, "No such file"));
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(parse_here(p, "catalog: { url_file: fifo }\n"), RP_ECONFIG);
    assert_non_null(strstr(p->err.text, "not a regular file"));
    assert_int_equal(parse_here(p, "catalog: { url_file: . }\n"), RP_ECONFIG);
    assert_int_equal(parse_here(p, "catalog: { url_file: \"\" }\n"), RP_ECONFIG);
    assert_int_equal(parse_here(p, "catalog: { url_file: [a] }\n"), RP_ECONFIG);
    write_file("secret", "sqlite:x");
    assert_int_equal(parse_here(p, "catalog: { url_file: secret, url: \"sqlite:y\" }\n"), RP_ECONFIG);
    assert_non_null(strstr(p->err.text, "catalog.url: expected either it or url_file, found both"));
    static char big[65538];
    memset(big, 'x', sizeof(big) - 1);
    write_file("secret", big);
    assert_int_equal(parse_here(p, text), RP_ECONFIG);
    assert_non_null(strstr(p->err.text, "more than 65536 bytes"));
}

static void bytes_nodes_depth_and_entries_are_bounded(void **state)
{
    struct place *p = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF((size_t)4 << 20);
    rp_buf_str(&text, "environment: dev\n");
    while (text.len < RP_YAML_BYTES_MAX)
        rp_buf_char(&text, '\n');
    accept(p, rp_buf_text(&text));
    rp_buf_char(&text, '\n');
    refuse(p, rp_buf_text(&text), "reprieve.yaml:1: expected at most 1048576 bytes, found more");

    rp_buf_clear(&text);
    rp_buf_str(&text, "a: [");
    for (int i = 0; i < RP_YAML_NODES_MAX; i++)
        rp_buf_str(&text, "1,");
    rp_buf_str(&text, "]\n");
    refuse(p, rp_buf_text(&text), "expected at most 10000 values and keys, found more");

    rp_buf_clear(&text);
    for (int i = 0; i < 100000; i++)
        rp_buf_char(&text, '[');
    refuse(p, rp_buf_text(&text), "expected at most 16 levels, found more");

    rp_buf_clear(&text);
    rp_buf_str(&text, "stores:\n");
    for (int i = 0; i < RP_STORES_MAX; i++)
        rp_buf_fmt(&text, "  s%d: { path: /x/%d }\n", i, i);
    accept(p, rp_buf_text(&text));
    assert_int_equal(p->config.n_stores, RP_STORES_MAX);
    rp_buf_str(&text, "  more: { path: /x/more }\n");
    refuse(p, rp_buf_text(&text), "reprieve.yaml:1: stores: expected at most 64 entries, found 65");
}

static void without_memory_the_output_is_untouched(void **state)
{
    struct place *p = *state;
    static const char text[] = STORE "    referenced_by: [{ database: app, sql: s }]\n"
                                     "databases: { app: { url: \"sqlite:/a\" } }\n";
    int rc = RP_ENOMEM;
    for (size_t max = 0; rc == RP_ENOMEM && max < ((size_t)1 << 20); max += 64) {
        RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(max);
        struct rp_config config = { .sweep_limit = -7 };
        rc = rp_config_parse(text, strlen(text), "f", "/srv", &arena, &config, &p->err);
        if (rc < 0) assert_int_equal(config.sweep_limit, -7);
    }
    assert_int_equal(rc, 0);
    p->config.sweep_limit = -7;
    refuse(p, "environment: x\nenvironment: y\n", "expected once");
    refuse(p, "stores: { a: { path: / } }\n", "contains");
    assert_int_equal(p->config.sweep_limit, -7);
}

static int search(struct place *p, const char *file, const char *data)
{
    rp_error_clear(&p->err);
    return rp_load_search(file, data, "system.yaml", &p->arena, &p->config, &p->err);
}

static void without_a_file_the_embedded_default_is_used(void **state)
{
    struct place *p = *state;
    assert_int_equal(search(p, NULL, NULL), 0);
    assert_null(p->config.file);
    assert_defaults(&p->config);
    assert_string_equal(p->config.catalog_url, "sqlite:./reprieve-data/catalog.db");
    assert_string_equal(p->config.log_file, "./reprieve-data/reprieve.log");
    assert_int_equal(p->config.n_stores, 1);
    assert_store_defaults(&p->config.stores[0]);
    assert_string_equal(p->config.stores[0].name, "main");
    assert_string_equal(p->config.stores[0].path, "./reprieve-data/objects");
    assert_int_equal(p->config.stores[0].mode, RP_MODE_PURGE);
    assert_int_equal(access("reprieve-data", F_OK), -1);
    assert_int_equal(search(p, NULL, "/var/lib/r"), 0);
    assert_string_equal(p->config.catalog_url, "sqlite:/var/lib/r/catalog.db");
    assert_string_equal(p->config.log_file, "/var/lib/r/reprieve.log");
    assert_string_equal(p->config.stores[0].path, "/var/lib/r/objects");
    assert_int_equal(search(p, NULL, ""), RP_EINVAL);
}

static void files_are_looked_for_in_the_promised_order(void **state)
{
    struct place *p = *state;
    write_file("system.yaml", "environment: system\n");
    assert_int_equal(search(p, NULL, NULL), 0);
    assert_string_equal(p->config.environment, "system");
    write_file("reprieve.yaml", "environment: here\n");
    assert_int_equal(search(p, NULL, NULL), 0);
    assert_string_equal(p->config.environment, "here");
    assert_string_equal(p->config.catalog_url, "sqlite:./reprieve-data/catalog.db");
    assert_int_equal(rp_config_load(NULL, NULL, &p->arena, &p->config, &p->err), 0);
    assert_string_equal(p->config.file, "reprieve.yaml");
    write_file("other.yaml", "environment: variable\n");
    setenv("REPRIEVE_CONFIG", "other.yaml", 1);
    assert_int_equal(search(p, NULL, NULL), 0);
    assert_string_equal(p->config.environment, "variable");
    assert_int_equal(mkdir("sub", 0700), 0);
    write_file("sub/c.yaml", "environment: option\nstores: { a: { path: objects } }\n");
    assert_int_equal(search(p, "sub/c.yaml", NULL), 0);
    assert_string_equal(p->config.environment, "option");
    assert_string_equal(p->config.stores[0].path, "sub/objects");
    setenv("REPRIEVE_CONFIG", "", 1);
    assert_int_equal(search(p, NULL, NULL), 0);
    assert_string_equal(p->config.environment, "here");
}

static void a_file_that_was_asked_for_must_be_there(void **state)
{
    struct place *p = *state;
    write_file("reprieve.yaml", "environment: here\n");
    assert_int_equal(search(p, "none.yaml", NULL), RP_ECONFIG);
    assert_non_null(strstr(p->err.text, "none.yaml: expected a configuration file that can be read: No such file"));
    setenv("REPRIEVE_CONFIG", "none.yaml", 1);
    assert_int_equal(search(p, NULL, NULL), RP_ECONFIG);
    unsetenv("REPRIEVE_CONFIG");
    assert_int_equal(search(p, ".", NULL), RP_ECONFIG);
}

static void a_data_directory_beside_a_file_is_refused(void **state)
{
    struct place *p = *state;
    write_file("reprieve.yaml", "");
    assert_int_equal(search(p, NULL, "data"), RP_EINVAL);
    assert_non_null(strstr(p->err.text, "reprieve.yaml is in use"));
    assert_int_equal(search(p, "other.yaml", "data"), RP_EINVAL);
    assert_non_null(strstr(p->err.text, "other.yaml is in use"));
    assert_int_equal(remove("reprieve.yaml"), 0);
    assert_int_equal(search(p, NULL, "data"), 0);
}

/* Take the # of every default away: "#key: value", at any depth. */
static void uncomment(const char *text, struct rp_buf *out)
{
    while (*text) {
        size_t blanks = strspn(text, " "), n = strcspn(text, "\n");
        bool is_default = text[blanks] == '#' && text[blanks + 1] >= 'a' && text[blanks + 1] <= 'z';
        rp_buf_add(out, text, blanks);
        size_t from = blanks + (is_default ? 1 : 0);
        if (n > from) rp_buf_add(out, text + from, n - from);
        rp_buf_char(out, '\n');
        text += n + (text[n] == '\n');
    }
}

static const struct rp_pair_text init_stores[] = { { "media", "/x/me\"d\\ia" }, { "docs", "docs" } };
static const struct rp_pair_text init_databases[] = { { "app", "sqlite:/y/app.db" } };
static const struct rp_config_init init_example = {
    .stores = init_stores, .n_stores = 2, .databases = init_databases, .n_databases = 1
};

static void assert_init_config(const struct rp_config *c)
{
    assert_defaults(c);
    assert_string_equal(c->catalog_url, "sqlite:/srv/reprieve-data/catalog.db");
    assert_string_equal(c->log_file, "");
    assert_int_equal(c->n_stores, 2);
    assert_store_defaults(&c->stores[0]);
    assert_int_equal(c->stores[0].mode, RP_MODE_OBSERVE);
    assert_string_equal(c->stores[0].path, "/x/me\"d\\ia");
    assert_string_equal(c->stores[1].path, "/srv/docs");
    assert_int_equal(c->n_databases, 1);
    assert_string_equal(c->databases[0].url, "sqlite:/y/app.db");
    assert_string_equal(c->databases[0].read_url, "");
    assert_int_equal(c->databases[0].statement_timeout_ms, 30 * RP_SECOND_MS);
}

static void the_written_file_gives_the_defaults_commented_or_not(void **state)
{
    struct place *p = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf file = RP_BUF(1 << 20), open = RP_BUF(1 << 20);
    assert_int_equal(rp_config_write_init(&init_example, &file, &p->err), 0);
    accept(p, rp_buf_text(&file));
    assert_init_config(&p->config);
    uncomment(rp_buf_text(&file), &open);
    accept(p, rp_buf_text(&open));
    assert_init_config(&p->config);
}

/* Without this, a default that is not printed would pass the test above. */
static void every_setting_stands_in_the_written_file_and_the_documents(void **state)
{
    struct place *p = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf file = RP_BUF(1 << 20), docs = RP_BUF(1 << 20), man = RP_BUF(1 << 20);
    /* a bucket without endpoint, so that this one is a default too; its keys, type and mode stand
     * open */
    const struct rp_pair_text both[] = { { "media", "/x" }, { "photos", "s3://photos" } };
    const struct rp_config_init init = { .stores = both, .n_stores = 2, .databases = init_databases, .n_databases = 1 };
    assert_int_equal(rp_config_write_init(&init, &file, &p->err), 0);
    assert_int_equal(config_write_docs(&docs, &p->err), 0);
    assert_int_equal(config_write_man(&man, &p->err), 0);
    for (size_t i = 0; i < rp_settings_count; i++) {
        const struct rp_setting *s = &rp_settings[i];
        char wanted[128];
        bool in_example = strncmp(s->path, "confirmations.", 14) == 0; /* init writes none */
        bool in_list = strstr(s->path, "referenced_by.*.") != NULL || strstr(s->path, "events_out.*.") != NULL;
        bool is_open = s->required || (rp_setting_is_group(s) && s->type != RP_SETTING_LIST) ||
                       strstr(s->path, "access_key") || strstr(s->path, "secret_key");
        snprintf(wanted, sizeof(wanted),
                 in_list      ? "#   %s "
                 : is_open    ? "%s:"
                 : in_example ? "  %s: "
                              : "#%s: ",
                 rp_setting_key(s));
        if (!strstr(rp_buf_text(&file), wanted)) fail_msg("%s is not in the written file", wanted);
        snprintf(wanted, sizeof(wanted), rp_setting_is_group(s) ? "## %s\n" : "| `%s` |", s->path);
        if (!strstr(rp_buf_text(&docs), wanted)) fail_msg("%s is not in the documentation", s->path);
        snprintf(wanted, sizeof(wanted), "\\fB%s\\fR\n", s->path);
        if (!strstr(rp_buf_text(&man), wanted)) fail_msg("%s is not in the manual page", s->path);
    }
}

static void a_written_file_without_stores_shows_an_example(void **state)
{
    struct place *p = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf file = RP_BUF(1 << 20);
    assert_int_equal(rp_config_write_init(&(struct rp_config_init){ 0 }, &file, &p->err), 0);
    accept(p, rp_buf_text(&file));
    assert_int_equal(p->config.n_stores + p->config.n_databases, 0);
    RP_CLEANUP(rp_buf_done) struct rp_buf open = RP_BUF(1 << 20);
    for (const char *at = rp_buf_text(&file); *at; at += strcspn(at, "\n") + 1) {
        bool example = !strncmp(at, "  #   ", 6) || !strncmp(at, "  # media:", 10) || !strncmp(at, "  # app:", 8) ||
                       !strncmp(at, "  # calendar:", 13);
        if (example) rp_buf_str(&open, "  ");
        rp_buf_add(&open, at + (example ? 4 : 0), strcspn(at, "\n") + 1 - (example ? 4 : 0));
    }
    accept(p, rp_buf_text(&open));
    assert_string_equal(rp_config_store(&p->config, "media")->path, "/srv/media");
    assert_store_defaults(rp_config_store(&p->config, "media"));
    assert_string_equal(rp_config_database(&p->config, "app")->url, "sqlite:/srv/app/app.db");
    const struct rp_confirmer_config *calendar = rp_config_confirmer(&p->config, "calendar");
    assert_string_equal(calendar->url, "https://calendar.example.org/delete");
    assert_int_equal(calendar->timeout_ms, 15 * RP_SECOND_MS);
    assert_int_equal(calendar->give_up_after_ms, 3 * RP_DAY_MS);
    assert_int_equal(calendar->when, RP_CONFIRM_DUE);
    assert_int_equal(calendar->gone.n, 1);
    assert_int_equal(calendar->gone.at[0], 410);
}

static void the_examples_in_the_documents_are_accepted(void **state)
{
    struct place *p = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf man = RP_BUF(1 << 20), text = RP_BUF(1 << 20);
    assert_int_equal(config_write_man(&man, &p->err), 0);
    const char *at = strstr(rp_buf_text(&man), ".nf\n");
    assert_non_null(at);
    for (at += 4; strncmp(at, ".fi", 3) != 0; at++)
        if (*at != '\\') rp_buf_char(&text, *at);
    static const char *const variables[] = { "APP_DATABASE_URL", "PHOTOS_ACCESS_KEY", "PHOTOS_SECRET_KEY" };
    for (size_t i = 0; i < 3; i++)
        setenv(variables[i], "postgres://h/d", 1);
    accept(p, rp_buf_text(&text));
    for (size_t i = 0; i < 3; i++)
        unsetenv(variables[i]);
    assert_int_equal(p->config.stores[0].n_referenced_by, 1);
    for (size_t i = 0; i < rp_settings_count; i++) {
        if (rp_settings[i].type != RP_SETTING_LIST) continue;
        rp_buf_clear(&text);
        bool is_top = strchr(rp_settings[i].path, '.') == NULL;
        rp_buf_fmt(&text, "%s%s: %s\ndatabases: { app: { url: \"sqlite:/a\" } }\n", is_top ? "" : STORE "    ",
                   rp_setting_key(&rp_settings[i]), rp_settings[i].example);
        accept(p, rp_buf_text(&text));
    }
}

static void what_init_cannot_write_is_refused(void **state)
{
    static const struct {
        struct rp_pair_text store, database;
        const char *words;
    } cases[] = {
        { { "Media", "/a" }, { "app", "sqlite:a" }, "store 'Media': expected a name" },
        { { "a", "" }, { "app", "sqlite:a" }, "store 'a': expected a directory" },
        { { "a", "s3://" }, { "app", "sqlite:a" }, "store 'a': expected a directory, or s3://BUCKET" },
        { { "a", "s3://bucket/prefix" }, { "app", "sqlite:a" }, "expected a directory, or s3://BUCKET" },
        { { "a", "gs://bucket" }, { "app", "sqlite:a" }, "expected a directory, or s3://BUCKET" },
        { { "a", "x\ny" }, { "app", "sqlite:a" }, "expected a directory" },
        { { "a", "\xff" }, { "app", "sqlite:a" }, "expected text in UTF-8" },
        { { "a", "/a" }, { "9", "sqlite:a" }, "database '9': expected a name" },
        { { "a", "/a" }, { "app", "mysql://u:hunter2@h" }, "database 'app': expected sqlite:PATH" },
    };
    struct place *p = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        RP_CLEANUP(rp_buf_done) struct rp_buf out = RP_BUF(1 << 20);
        struct rp_config_init init = {
            .stores = &cases[i].store, .n_stores = 1, .databases = &cases[i].database, .n_databases = 1
        };
        assert_int_equal(rp_config_write_init(&init, &out, &p->err), RP_EINVAL);
        if (!strstr(p->err.text, cases[i].words)) fail_msg("%s", p->err.text);
        assert_null(strstr(p->err.text, "hunter2"));
        assert_int_equal(out.len, 0);
    }
    const struct rp_pair_text twice[] = { { "a", "/a" }, { "a", "/b" } };
    RP_CLEANUP(rp_buf_done) struct rp_buf out = RP_BUF(1 << 20), small = RP_BUF(16);
    assert_int_equal(rp_config_write_init(&(struct rp_config_init){ .stores = twice, .n_stores = 2 }, &out, &p->err),
                     RP_EINVAL);
    assert_int_equal(rp_config_write_init(&init_example, &small, &p->err), RP_ETOOBIG);
    const struct rp_pair_text later = { "app", "${APP_URL}" };
    assert_int_equal(
        rp_config_write_init(&(struct rp_config_init){ .databases = &later, .n_databases = 1 }, &out, &p->err), 0);
    assert_non_null(strstr(rp_buf_text(&out), "    url: \"${APP_URL}\"\n"));
}

static void read_source(const char *path, struct rp_buf *out)
{
    char whole[512], chunk[4096];
    const char *tree = getenv("REPRIEVE_TREE");
    snprintf(whole, sizeof(whole), "%s/%s", tree ? tree : ".", path);
    FILE *f = fopen(whole, "r");
    if (!f) fail_msg("cannot open %s", whole);
    for (size_t n; (n = fread(chunk, 1, sizeof(chunk), f)) > 0;)
        rp_buf_add(out, chunk, n);
    fclose(f);
}

/* The source's root is $REPRIEVE_TREE or, without it, where the test was started. */
static void the_documents_are_what_the_table_says(void **state)
{
    (void)state;
    struct rp_error err = { 0 };
    RP_CLEANUP(rp_buf_done) struct rp_buf made = RP_BUF(1 << 20), kept = RP_BUF(1 << 20);
    assert_int_equal(config_write_docs(&made, &err), 0);
    read_source("docs/config.md", &kept);
    assert_string_equal(rp_buf_text(&made), rp_buf_text(&kept));
    rp_buf_clear(&made);
    rp_buf_clear(&kept);
    assert_int_equal(config_write_man(&made, &err), 0);
    read_source("man/reprieve.yaml.5", &kept);
    assert_string_equal(rp_buf_text(&made), rp_buf_text(&kept));
}

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, leave)

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--write")) return config_write_files();
    const struct CMUnitTest tests[] = {
        IN_PLACE(bad_inputs_are_refused_with_line_key_and_what_was_expected),
        IN_PLACE(good_inputs_are_accepted),
        IN_PLACE(an_empty_file_gives_the_promised_defaults),
        IN_PLACE(every_value_of_a_file_arrives_in_its_field),
        IN_PLACE(a_grace_out_of_range_needs_words_before_or_after_it),
        IN_PLACE(a_reference_is_a_column_or_a_query),
        IN_PLACE(places_that_would_mix_files_and_objects_are_refused),
        IN_PLACE(a_symbolic_link_does_not_hide_a_shared_directory),
        IN_PLACE(the_environment_is_put_in_after_parsing),
        IN_PLACE(a_variable_that_is_unset_or_misspelt_is_an_error),
        IN_PLACE(expansion_is_bounded),
        IN_PLACE(secrets_never_stand_in_an_error),
        IN_PLACE(a_secret_can_come_from_a_file),
        IN_PLACE(a_secret_file_that_cannot_be_used_is_an_error),
        IN_PLACE(bytes_nodes_depth_and_entries_are_bounded),
        IN_PLACE(without_memory_the_output_is_untouched),
        IN_PLACE(without_a_file_the_embedded_default_is_used),
        IN_PLACE(files_are_looked_for_in_the_promised_order),
        IN_PLACE(a_file_that_was_asked_for_must_be_there),
        IN_PLACE(a_data_directory_beside_a_file_is_refused),
        IN_PLACE(the_written_file_gives_the_defaults_commented_or_not),
        IN_PLACE(every_setting_stands_in_the_written_file_and_the_documents),
        IN_PLACE(a_written_file_without_stores_shows_an_example),
        IN_PLACE(the_examples_in_the_documents_are_accepted),
        IN_PLACE(what_init_cannot_write_is_refused),
        cmocka_unit_test(the_documents_are_what_the_table_says),
    };
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
