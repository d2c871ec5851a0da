/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_init.c - `init`: writes a commented configuration file. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define INIT_BYTES_MAX ((size_t)1 << 20)

static int read_pairs(const struct rp_args *args, const char *option, struct rp_arena *arena, struct rp_pair_text *out,
                      size_t max, size_t *n, struct rp_error *err)
{
    const char *text;
    size_t at = 0;
    *n = 0;
    while ((text = rp_args_next(args, option, &at)) != NULL) {
        const char *equals = strchr(text, '=');
        if (equals == NULL || equals == text || equals[1] == 0)
            return rp_error_set(err, RP_EINVAL, "--%s: expected NAME=%s, found '%.64s'", option,
                                strcmp(option, "store") == 0 ? "DIR" : "URL", text);
        if (*n == max) return rp_error_set(err, RP_EINVAL, "--%s: %zu at most", option, max);
        out[*n].name = rp_arena_copy(arena, text, (size_t)(equals - text));
        out[*n].value = equals + 1;
        if (out[(*n)++].name == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the options");
    }
    return 0;
}

static int check_stores(const struct rp_pair_text *stores, size_t n, struct rp_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(stores[i].value, "://") != NULL)
            return rp_error_set(err, RP_ECONFIG,
                                "store '%s': only directories are supported by this version, not %.80s", stores[i].name,
                                stores[i].value);
    return 0;
}

static int write_all(int fd, const struct rp_buf *text, const char *file, struct rp_error *err)
{
    size_t done = 0;
    while (done < text->len) {
        ssize_t n = write(fd, text->data + done, text->len - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return rp_error_errno(err, errno, "write %s", file);
        done += (size_t)n;
    }
    return fsync(fd) < 0 ? rp_error_errno(err, errno, "write %s", file) : 0;
}

/* Whole or not at all: written beside the file, then given its name. */
static int write_file(const char *file, const struct rp_buf *text, bool force, struct rp_error *err)
{
    char beside[4096];
    if (snprintf(beside, sizeof beside, "%s.%ld.tmp", file, (long)getpid()) >= (int)sizeof beside)
        return rp_error_set(err, RP_EINVAL, "the name of the file is too long");
    RP_CLEANUP(rp_fd_closep) int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (fd < 0) return rp_error_errno(err, errno, "write %s", file);
    int r = write_all(fd, text, file, err);
    if (r == 0 && force && rename(beside, file) == 0) return 0;
    if (r == 0 && force) r = rp_error_errno(err, errno, "write %s", file);
    if (r == 0 && link(beside, file) < 0) r = rp_error_errno(err, errno, "write %s", file);
    unlink(beside);
    if (r != RP_EEXISTS) return r;
    rp_error_set(err, RP_EEXISTS, "%s is there already", file);
    return rp_error_hint(err, "--force overwrites it; --config FILE writes another");
}

/* The catalog's directory, so that the next command works. What stands in the way is told by that command. */
static void make_directory(const char *file, struct rp_arena *arena)
{
    struct rp_error ignored = { 0 };
    struct rp_config config;
    char path[4096];
    if (rp_config_load(file, NULL, arena, &config, &ignored) < 0) return;
    if (strncmp(config.catalog_url, "sqlite:", 7) != 0) return;
    const char *catalog = config.catalog_url + 7, *slash = strrchr(catalog, '/');
    if (slash == NULL || (size_t)(slash - catalog) >= sizeof path) return;
    snprintf(path, sizeof path, "%.*s", (int)(slash - catalog), catalog);
    (void)mkdir(path, 0700);
}

int rp_cmd_init(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA((size_t)256 << 10);
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(INIT_BYTES_MAX);
    struct rp_pair_text stores[RP_STORES_MAX], databases[RP_DATABASES_MAX];
    struct rp_config_init init = { .stores = stores, .databases = databases };
    const char *file = rp_args_text(&cli->args, "config");
    char shown[RP_SHOWN_MAX];
    if (file == NULL) file = "reprieve.yaml";
    if (rp_args_has(&cli->args, "data"))
        return rp_error_set(err, RP_EINVAL, "init: --data is for running without a configuration file");
    int r = read_pairs(&cli->args, "store", &arena, stores, RP_STORES_MAX, &init.n_stores, err);
    if (r == 0) r = check_stores(stores, init.n_stores, err);
    if (r == 0) r = read_pairs(&cli->args, "database", &arena, databases, RP_DATABASES_MAX, &init.n_databases, err);
    if (r == 0) r = rp_config_write_init(&init, &text, err);
    if (r == 0) r = write_file(file, &text, rp_args_has(&cli->args, "force"), err);
    if (r < 0) return r;
    make_directory(file, &arena);
    json_t *o = json_object();
    rp_json_set(o, "file", rp_json_text(file));
    rp_emit(cli, o);
    if (!cli->json)
        rp_say(cli, "%s written; every store is in mode observe until you change that\nnext: reprieve doctor\n",
               rp_show(file, shown));
    return 0;
}
