/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_object.c - `put`, `get`, `ls`: small conveniences over the store port. */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "core/mark/mark.h"
#include "core/owner/refuse.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define META_ARENA_MAX ((size_t)256 << 10)

static json_t *identity_json(const char *store, const char *key, const struct rp_identity *identity)
{
    json_t *o =
        rp_json_object("subject", rp_subject_json(store, key), "size", json_integer(identity->size_bytes),
                       "modified_at", rp_json_time(identity->modified_ms), "etag", rp_json_text(identity->etag), NULL);
    if (identity->version[0] != 0) rp_json_set(o, "version", rp_json_text(identity->version));
    return o;
}

/* ---- put ---- */

struct reading {
    int fd;
    const char *name;
};

static int64_t read_file(void *ctx, void *to, size_t n, struct rp_error *err)
{
    const struct reading *from = ctx;
    ssize_t got;
    do {
        got = read(from->fd, to, n);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return rp_error_errno(err, errno, "read %s", from->name);
    return got;
}

static int read_meta(const struct rp_args *args, struct rp_pair *type, struct rp_pair *user, struct rp_arena *arena,
                     struct rp_meta *out, struct rp_error *err)
{
    const char *text;
    size_t at = 0, n = 0;
    type->name = "content-type";
    type->value = rp_args_text(args, "type");
    while ((text = rp_args_next(args, "meta", &at)) != NULL) {
        const char *equals = strchr(text, '=');
        if (equals == NULL || equals == text)
            return rp_error_set(err, RP_EINVAL, "--meta: expected NAME=VALUE, found '%.64s'", text);
        if (n == RP_META_MAX_PAIRS)
            return rp_error_set(err, RP_ETOOBIG, "--meta: more than %d are not kept", RP_META_MAX_PAIRS);
        user[n].name = rp_arena_copy(arena, text, (size_t)(equals - text));
        user[n].value = equals + 1;
        if (user[n++].name == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the metadata");
    }
    *out = (struct rp_meta){ .headers = type, .n_headers = type->value != NULL, .user = user, .n_user = n };
    return 0;
}

static int open_source(const char *name, struct reading *out, struct rp_error *err)
{
    *out = (struct reading){ .fd = STDIN_FILENO, .name = "standard input" };
    if (strcmp(name, "-") == 0) return 0;
    out->name = name;
    out->fd = open(name, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (out->fd >= 0 && fstat(out->fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(out->fd);
        return rp_error_set(err, RP_EINVAL, "%s is a directory", name);
    }
    return out->fd < 0 ? rp_error_errno(err, errno, "open %s", name) : 0;
}

int rp_cmd_put(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(META_ARENA_MAX);
    struct rp_pair type, user[RP_META_MAX_PAIRS];
    struct rp_meta meta;
    struct rp_subject subject;
    struct rp_identity identity;
    struct reading from;
    char shown[RP_SHOWN_MAX], size[RP_SIZE_TEXT];
    int r = read_meta(&cli->args, &type, user, &arena, &meta, err);
    if (r == 0) r = rp_cli_open(cli, err);
    if (r == 0) r = rp_cli_subject(cli, cli->args.words[0], &arena, &subject, err);
    if (r == 0) r = rp_cli_foreign_key(&subject, err);
    if (r != 0) return r;
    const struct rp_store_config *config = subject.store->config;
    if (config->mode == RP_MODE_OBSERVE)
        return rp_error_set(err, RP_EOBSERVE, "store '%s' is in mode observe: nothing is written to it", config->name);
    rp_session_look(&cli->session, subject.store);
    r = rp_owner_refuse_name(subject.store, err);
    if (r == 0) r = rp_overwrite_check(cli->session.catalog->db, subject.store, subject.key, err);
    if (r == 0) r = open_source(cli->args.words[1], &from, err);
    if (r < 0) return r;
    struct rp_source source = { .read = read_file, .ctx = &from };
    r = rp_backend_put(subject.store->backend, subject.key, &source, &meta, RP_PUT_REPLACE, &identity, err);
    if (from.fd != STDIN_FILENO) close(from.fd);
    if (r < 0) return rp_error_wrap(err, r, "put %s:%s", config->name, subject.key);
    rp_emit(cli, identity_json(config->name, subject.key, &identity));
    if (!cli->json)
        rp_say(cli, "%s  stored, %s\n", rp_show_subject(config->name, subject.key, shown),
               rp_show_size(identity.size_bytes, size));
    return 0;
}

/* ---- get ---- */

/* The file is opened with the first byte: a missing object must not empty a file that is there. */
struct writing {
    const char *name; /* NULL: standard output */
    int fd;
    bool failed; /* the file, not the store */
};

static int open_target(struct writing *to, struct rp_error *err)
{
    if (to->fd >= 0) return 0;
    to->fd = open(to->name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (to->fd >= 0) return 0;
    to->failed = true;
    return rp_error_errno(err, errno, "open %s", to->name);
}

static int write_file(void *ctx, const void *from, size_t n, struct rp_error *err)
{
    struct writing *to = ctx;
    const char *at = from;
    int r = open_target(to, err);
    while (r == 0 && n > 0) {
        ssize_t wrote = write(to->fd, at, n);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return rp_error_errno(err, errno, "write %s", to->name != NULL ? to->name : "standard output");
        at += wrote;
        n -= (size_t)wrote;
    }
    return r;
}

static int get_bytes(struct rp_cli *cli, const struct rp_subject *subject, struct rp_arena *arena, bool *file_failed,
                     struct rp_error *err)
{
    struct writing to = { .name = cli->args.n_words > 1 ? cli->args.words[1] : NULL, .fd = -1 };
    struct rp_sink sink = { .write = write_file, .ctx = &to };
    struct rp_identity identity;
    struct rp_meta meta;
    if (to.name != NULL && strcmp(to.name, "-") == 0) to.name = NULL;
    if (to.name == NULL) to.fd = STDOUT_FILENO;
    int r = rp_backend_get(subject->store->backend, subject->key, &sink, arena, &meta, &identity, err);
    if (r == 0) r = open_target(&to, err);
    *file_failed = to.failed;
    if (to.name == NULL) return r;
    if (to.fd >= 0 && close(to.fd) < 0 && r == 0) r = rp_error_errno(err, errno, "write %s", to.name);
    if (r < 0 && to.fd >= 0) rp_error_hint(err, "%s holds only a part of it", to.name);
    return r;
}

static json_t *pairs_json(const struct rp_pair *pairs, size_t n)
{
    json_t *o = json_object();
    for (size_t i = 0; i < n; i++)
        rp_json_set(o, pairs[i].name, rp_json_text(pairs[i].value));
    return o;
}

static void say_pairs(const struct rp_cli *cli, const char *title, const struct rp_pair *pairs, size_t n)
{
    char name[RP_SHOWN_MAX], value[RP_SHOWN_MAX];
    for (size_t i = 0; i < n; i++)
        rp_say(cli, "%-13s%s: %s\n", i == 0 ? title : "", rp_show(pairs[i].name, name), rp_show(pairs[i].value, value));
}

static int get_info(struct rp_cli *cli, const struct rp_subject *subject, struct rp_arena *arena, struct rp_error *err)
{
    struct rp_identity identity;
    struct rp_meta meta;
    const char *store_name = subject->store->config->name;
    char text[RP_SHOWN_MAX], size[RP_SIZE_TEXT], when[RP_WHEN_TEXT];
    int r = rp_backend_get(subject->store->backend, subject->key, NULL, arena, &meta, &identity, err);
    if (r < 0) return r;
    json_t *o = identity_json(store_name, subject->key, &identity);
    rp_json_set(o, "headers", pairs_json(meta.headers, meta.n_headers));
    rp_json_set(o, "metadata", pairs_json(meta.user, meta.n_user));
    rp_emit(cli, o);
    if (cli->json) return 0;
    rp_say(cli, "subject      %s\n", rp_show_subject(store_name, subject->key, text));
    rp_say(cli, "size         %" PRId64 " (%s)\n", identity.size_bytes, rp_show_size(identity.size_bytes, size));
    rp_say(cli, "modified_at  %s\n", rp_show_when(identity.modified_ms, rp_session_now_ms(&cli->session), when));
    rp_say(cli, "etag         %s\n", rp_show(identity.etag, text));
    say_pairs(cli, "headers", meta.headers, meta.n_headers);
    say_pairs(cli, "metadata", meta.user, meta.n_user);
    return 0;
}

int rp_cmd_get(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(META_ARENA_MAX);
    struct rp_subject subject;
    int r = rp_cli_open(cli, err);
    if (r == 0) r = rp_cli_subject(cli, cli->args.words[0], &arena, &subject, err);
    if (r == 0) r = rp_cli_foreign_key(&subject, err);
    if (r != 0) return r;
    bool info = rp_args_has(&cli->args, "info"), file_failed = false;
    if (info && cli->args.n_words > 1) return rp_error_set(err, RP_EINVAL, "--info writes no file");
    r = info ? get_info(cli, &subject, &arena, err) : get_bytes(cli, &subject, &arena, &file_failed, err);
    if (r == RP_ENOTFOUND && !file_failed)
        return rp_error_set(err, r, "%s:%s does not exist", subject.store->config->name, subject.key);
    return r < 0 ? rp_error_wrap(err, r, "get %s:%s", subject.store->config->name, subject.key) : 0;
}

/* ---- ls ---- */

struct listing {
    struct rp_cli *cli;
    const char *store;
    struct rp_table *table; /* NULL: names alone */
    int64_t left, now_ms;   /* left -1: no limit */
    bool cut;
};

static int list_entry(void *ctx, const struct rp_entry *entry, struct rp_error *err)
{
    struct listing *l = ctx;
    char text[RP_SHOWN_MAX], size[RP_SIZE_TEXT], when[RP_WHEN_TEXT];
    (void)err;
    if (l->left == 0) {
        l->cut = true;
        return 1;
    }
    if (l->left > 0) l->left--;
    if (l->cli->json) {
        rp_emit(l->cli, identity_json(l->store, entry->key, &entry->identity));
        return 0;
    }
    const char *cells[] = { rp_show_size(entry->identity.size_bytes, size),
                            rp_show_when(entry->identity.modified_ms, l->now_ms, when), entry->key };
    if (l->table != NULL)
        rp_table_row(l->table, cells);
    else
        printf("%s\n", rp_show(entry->key, text));
    return 0;
}

int rp_cmd_ls(struct rp_cli *cli, struct rp_error *err)
{
    static const struct rp_column columns[] = { RP_NUMBERS("SIZE"), RP_COLUMN("MODIFIED"), RP_TEXTS("KEY") };
    RP_CLEANUP(rp_table_done) struct rp_table table;
    struct rp_subject at;
    int64_t limit = 0;
    rp_table_init(&table, stdout, columns, 3);
    int r = rp_args_number(&cli->args, "limit", &limit, err);
    if (r == 0) r = rp_cli_open(cli, err);
    if (r == 0) r = rp_cli_prefix(cli, cli->args.words[0], &at, err);
    if (r != 0) return r;
    struct listing l = { .cli = cli,
                         .store = at.store->config->name,
                         .table = rp_args_has(&cli->args, "long") ? &table : NULL,
                         .left = limit > 0 ? limit : -1,
                         .now_ms = rp_session_now_ms(&cli->session) };
    r = rp_backend_list(at.store->backend, at.key, "", list_entry, &l, err);
    rp_table_end(&table);
    if (r < 0) return rp_error_wrap(err, r, "list store '%s'", l.store);
    if (l.cut && !cli->quiet) rp_warn("there are more: only %" PRId64 " are shown (--limit)", limit);
    return 0;
}
