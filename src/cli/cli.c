/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "catalog/file/file.h"

#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "base/time.h"
#include "lib/answer.h"
#include "store/refuse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void say_silence(void *ctx, const char *endpoint, int64_t silent_ms)
{
    const struct rp_cli *cli = ctx;
    if (!cli->quiet) rp_warn("waiting for %s, which has said nothing for %" PRId64 " s", endpoint, silent_ms / 1000);
}

struct rp_session_options rp_cli_options(const struct rp_cli *cli)
{
    return (struct rp_session_options){ .config_file = rp_args_text(&cli->args, "config"),
                                        .data = rp_args_text(&cli->args, "data"),
                                        .patient = cli->patient };
}

int rp_cli_open(struct rp_cli *cli, struct rp_error *err)
{
    struct rp_session_options options = rp_cli_options(cli);
    options.on_silence = (struct rp_on_silence){ .tell = say_silence, .ctx = cli };
    return rp_session_open(&cli->session, &options, err);
}

/* ---- talking ---- */

void rp_say(const struct rp_cli *cli, const char *fmt, ...)
{
    va_list args;
    if (cli->quiet) return;
    va_start(args, fmt);
    vfprintf(cli->json ? stderr : stdout, fmt, args);
    va_end(args);
}

void rp_say_beside(const struct rp_cli *cli, const char *fmt, ...)
{
    va_list args;
    if (cli->quiet) return;
    va_start(args, fmt);
    vfprintf(!cli->json && isatty(STDOUT_FILENO) ? stdout : stderr, fmt, args);
    va_end(args);
}

void rp_warn(const char *fmt, ...)
{
    va_list args;
    fflush(stdout); /* in the order in which it happened, also when both go to one place */
    fputs("reprieve: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

void rp_emit(const struct rp_cli *cli, json_t *value)
{
    if (cli->json && value != NULL) {
        /* not json_dumpf, which goes through stdio for every brace and comma */
        size_t form = JSON_COMPACT | JSON_ENCODE_ANY | (isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0);
        RP_CLEANUP(rp_freep) char *line = json_dumps(value, form);
        if (line != NULL) puts(line);
    }
    json_decref(value);
}

void rp_tell(const struct rp_cli *cli, json_t *value, const char *fmt, ...)
{
    va_list args;
    rp_emit(cli, value);
    if (cli->json || cli->quiet) return;
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
}

int rp_report(const struct rp_cli *cli, const struct rp_error *err)
{
    char text[RP_SHOWN_MAX];
    if (cli->json) {
        json_t *o = json_object();
        rp_json_set(o, "error", rp_error_json(err));
        fflush(stdout);
        (void)json_dumpf(o, stderr, JSON_COMPACT | (isatty(STDERR_FILENO) ? JSON_ENSURE_ASCII : 0));
        fputc('\n', stderr);
        json_decref(o);
    } else {
        rp_warn("%s", rp_show(err->text[0] != 0 ? err->text : rp_error_title(err->code), text));
        if (err->hint[0] != 0) fprintf(stderr, "  %s\n", rp_show(err->hint, text));
    }
    return rp_error_exit(err->code);
}

static bool is_among(const unsigned char *c, unsigned char first, unsigned char second, unsigned char from,
                     unsigned char to)
{
    return c[0] == first && c[1] == second && c[2] >= from && c[2] <= to;
}

/* Characters that a terminal acts upon: C0, DEL, C1; and those that turn the direction of text
 * around or end a line (U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069). */
static bool is_control(const unsigned char *c, size_t n)
{
    if (n == 1) return c[0] < 0x20 || c[0] == 0x7f;
    if (n == 2) return (c[0] == 0xc2 && c[1] < 0xa0) || (c[0] == 0xd8 && c[1] == 0x9c);
    return n == 3 && (is_among(c, 0xe2, 0x80, 0x8e, 0x8f) || is_among(c, 0xe2, 0x80, 0xa8, 0xae) ||
                      is_among(c, 0xe2, 0x81, 0xa6, 0xa9));
}

const char *rp_show(const char *text, char out[RP_SHOWN_MAX])
{
    size_t n = 0, left = strlen(text);
    while (left > 0 && n + 4 * 4 < RP_SHOWN_MAX) {
        const unsigned char *c = (const unsigned char *)text;
        size_t bytes = rp_utf8_length(text, left);
        bool plain = bytes > 0 && !is_control(c, bytes);
        if (bytes == 0) bytes = 1; /* not UTF-8 */
        for (size_t i = 0; i < bytes; i++)
            if (plain)
                out[n++] = (char)c[i];
            else
                n += (size_t)snprintf(out + n, RP_SHOWN_MAX - n, "\\x%02x", c[i]);
        text += bytes;
        left -= bytes;
    }
    out[n] = 0;
    return out;
}

const char *rp_show_subject(const char *store, const char *key, char out[RP_SHOWN_MAX])
{
    char shown[RP_SHOWN_MAX];
    snprintf(out, RP_SHOWN_MAX, "%.63s:%.4120s", store, rp_show(key, shown));
    return out;
}

const char *rp_show_when(int64_t ms, int64_t now_ms, char out[RP_WHEN_TEXT])
{
    char moment[RP_TIME_TEXT], away[RP_TIME_TEXT];
    snprintf(out, RP_WHEN_TEXT, "%s (%s)", rp_time_format(ms, moment), rp_time_distance(ms, now_ms, away));
    return out;
}

const char *rp_show_size(int64_t bytes, char out[RP_SIZE_TEXT])
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    snprintf(out, RP_SIZE_TEXT, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return out;
}

/* ---- subjects and stores ---- */

int rp_names_load(struct rp_cli *cli, struct rp_names *out, struct rp_error *err)
{
    return rp_store_list(cli->session.catalog->db, &cli->session.arena, &out->stores, err);
}

const char *rp_names_of(const struct rp_names *names, int64_t store_id)
{
    for (size_t i = 0; i < names->stores.n; i++)
        if (names->stores.at[i].id == store_id) return names->stores.at[i].name;
    return "?";
}

int rp_cli_store_of(struct rp_cli *cli, int64_t store_id, struct rp_store **out, struct rp_error *err)
{
    struct rp_session *s = &cli->session;
    for (size_t i = 0; i < s->config.n_stores; i++) {
        if (s->stores[i].backend == NULL || s->stores[i].id != store_id) continue;
        *out = &s->stores[i];
        return 0;
    }
    struct rp_names names;
    int r = rp_names_load(cli, &names, err);
    return r < 0 ? r : rp_session_store(s, rp_names_of(&names, store_id), out, err);
}

int rp_cli_subject(struct rp_cli *cli, const char *text, struct rp_arena *arena, struct rp_subject *out,
                   struct rp_error *err)
{
    struct rp_subject subject;
    struct rp_mark mark;
    struct rp_file file;
    int r = rp_session_subject(&cli->session, text, &subject, err);
    if (r == 0 && subject.file_id != 0) {
        r = rp_file_get(cli->session.catalog->db, subject.file_id, arena, &file, err);
        if (r == 0) r = rp_cli_store_of(cli, file.store_id, &subject.store, err);
        if (r == 0) subject.key = file.key;
    }
    if (r == 0 && subject.mark_id != 0) {
        r = rp_mark_get(cli->session.catalog->db, subject.mark_id, arena, &mark, err);
        if (r == 0) r = rp_cli_store_of(cli, mark.store_id, &subject.store, err);
        if (r == 0) subject.key = mark.key;
    }
    if (r == 0) *out = subject;
    return r;
}

int rp_cli_prefix(struct rp_cli *cli, const char *text, struct rp_subject *out, struct rp_error *err)
{
    char name[64];
    struct rp_store *store;
    const char *colon = strchr(text, ':');
    size_t n = colon != NULL ? (size_t)(colon - text) : strlen(text);
    const char *prefix = colon != NULL ? colon + 1 : "";
    if (n == 0 || n >= sizeof name) return rp_error_set(err, RP_EINVAL, "'%.64s' is not STORE:PREFIX", text);
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    int r = rp_session_store(&cli->session, name, &store, err);
    if (r == 0 && prefix[0] != 0) r = rp_key_check(prefix, strlen(prefix), err);
    if (r == 0) *out = (struct rp_subject){ .store = store, .key = prefix };
    return r;
}

int rp_cli_foreign_key(const struct rp_subject *subject, struct rp_error *err)
{
    return rp_key_is_own(subject->key) ? rp_refuse_own(subject->store->config->name, subject->key, err) : 0;
}

int rp_cli_id(const char *text, enum rp_id_kind kind, int64_t *out, struct rp_error *err)
{
    enum rp_id_kind found;
    int64_t id;
    char example[RP_ID_TEXT];
    if (rp_id_parse(text, &found, &id) && found == kind) {
        *out = id;
        return 0;
    }
    return rp_error_set(err, RP_EINVAL, "'%.64s' is no id of that kind: those look like %s", text,
                        rp_id_format(kind, 1, example));
}

int rp_cli_run(struct rp_cli *cli, struct rp_command *command, struct rp_error *err)
{
    command->actor = cli->session.actor;
    int r = rp_command_run(cli->session.catalog, command);
    if (r < 0) *err = command->error;
    return r;
}

volatile sig_atomic_t rp_stop_asked;

static void ask_to_stop(int signal)
{
    (void)signal;
    rp_stop_asked = 1;
}

void rp_catch_signals(int flags)
{
    struct sigaction action = { .sa_handler = ask_to_stop, .sa_flags = (int)SA_RESETHAND | flags };
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}
