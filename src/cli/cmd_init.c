/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_init.c - `init`: writes a commented configuration file. */
#include "base/cleanup.h"
#include "base/text/buf.h"
#include "base/text/json.h"
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
                                strcmp(option, "store") == 0 ? "DIR or NAME=s3://BUCKET" : "URL", text);
        if (*n == max) return rp_error_set(err, RP_EINVAL, "--%s: %zu at most", option, max);
        out[*n].name = rp_arena_copy(arena, text, (size_t)(equals - text));
        out[*n].value = equals + 1;
        if (out[(*n)++].name == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the options");
    }
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
    return rp_error_advise(err, RP_EEXISTS, "--force overwrites it; --config FILE writes another",
                           "%s is there already", file);
}

/* That of the catalog, beside the file as its default says, so that the next command works. What
 * stands in the way is told by that command. The file is not read for it: it may name variables
 * that are not set yet. */
static void make_directory(const char *file)
{
    char path[4096];
    const char *slash = strrchr(file, '/');
    int n = slash != NULL ? (int)(slash - file) + 1 : 0;
    if (snprintf(path, sizeof path, "%.*sreprieve-data", n, file) < (int)sizeof path) (void)mkdir(path, 0700);
}

static bool has_bucket(const struct rp_config_init *init)
{
    for (size_t i = 0; i < init->n_stores; i++)
        if (strncmp(init->stores[i].value, "s3://", 5) == 0) return true;
    return false;
}

int rp_cmd_init(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA((size_t)256 << 10);
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(INIT_BYTES_MAX);
    struct rp_pair_text stores[RP_STORES_MAX], databases[RP_DATABASES_MAX];
    struct rp_config_init init = { .stores = stores,
                                   .databases = databases,
                                   .endpoint = rp_args_text(&cli->args, "endpoint") };
    const char *file = rp_args_text(&cli->args, "config");
    char shown[RP_SHOWN_MAX];
    if (file == NULL) file = "reprieve.yaml";
    if (rp_args_has(&cli->args, "data"))
        return rp_error_set(err, RP_EINVAL, "init: --data is for running without a configuration file");
    int r = read_pairs(&cli->args, "store", &arena, stores, RP_STORES_MAX, &init.n_stores, err);
    if (r == 0) r = read_pairs(&cli->args, "database", &arena, databases, RP_DATABASES_MAX, &init.n_databases, err);
    if (r == 0) r = rp_config_write_init(&init, &text, err);
    if (r == 0) r = write_file(file, &text, rp_args_has(&cli->args, "force"), err);
    if (r < 0) return r;
    make_directory(file);
    json_t *o = json_object();
    rp_json_set(o, "file", rp_json_text(file));
    rp_emit(cli, o);
    if (!cli->json)
        rp_say(cli, "%s written; every store is in mode observe until you change that\nnext: %sreprieve doctor\n",
               rp_show(file, shown),
               has_bucket(&init) ? "put the bucket's keys into the variables that it names, then " : "");
    return 0;
}
