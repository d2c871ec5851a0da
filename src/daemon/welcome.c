/* SPDX-License-Identifier: Apache-2.0 */
/* welcome.c - what a first start makes: the first admin token, the link to
 * sign in with. */
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/text/json.h"
#include "core/access.h"
#include "daemon/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define ADMIN_TOKEN "admin.token"

/* ---- the first token ---- */

/* Whole or not at all, and never readable by others. */
static int write_token(const char *path, const char *secret, struct rp_error *err)
{
    char beside[4200];
    snprintf(beside, sizeof beside, "%s.tmp", path);
    (void)unlink(beside);
    RP_CLEANUP(rp_fd_closep) int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return rp_error_errno(err, errno, "keep the admin token in %s", path);
    bool written = dprintf(fd, "%s\n", secret) == (int)strlen(secret) + 1 && fsync(fd) == 0;
    if (written && rename(beside, path) == 0) return 0;
    rp_error_errno(err, errno, "keep the admin token in %s", path);
    (void)unlink(beside);
    return err->code;
}

/* The file before its token: one that nobody has written down would be lost with this process. What
 * a start before this one left without its token is made anew. */
static int make_tokens(struct rp_daemon *d, struct rp_welcome *out, struct rp_error *err)
{
    static const struct rp_token admin = { .kind = RP_TOKEN_BEARER, .name = "admin", .scopes = RP_TOKEN_SCOPES_ALL };
    static const struct rp_token link = { .kind = RP_TOKEN_LINK,
                                          .name = "first sign-in",
                                          .scopes = RP_TOKEN_SCOPES_ALL };
    struct rp_token_command first, sign_in;
    int r = rp_token_command_init(&first, &admin, d->session.actor, err);
    if (r == 0) r = rp_token_command_init(&sign_in, &link, d->session.actor, err);
    if (r == 0) r = write_token(out->token_file, first.secret, err);
    if (r < 0) return r;
    sign_in.lasts_ms = RP_TOKEN_LINK_MS;
    if ((r = rp_command_run(d->session.catalog, &sign_in.command)) < 0) *err = sign_in.command.error;
    if (r == 0 && (r = rp_command_run(d->session.catalog, &first.command)) < 0) *err = first.command.error;
    if (r == 0) snprintf(out->link, sizeof out->link, "%s", sign_in.secret);
    return r;
}

static int make_first(struct rp_daemon *d, struct rp_welcome *out, struct rp_error *err)
{
    int r = make_tokens(d, out, err);
    if (r < 0) return rp_error_wrap(err, r, "make the first admin token");
    rp_daemon_log(d, RP_LOG_INFO, "daemon.first_token", rp_json_object("file", rp_json_text(out->token_file), NULL));
    return 0;
}

int rp_welcome_tokens(struct rp_daemon *d, struct rp_welcome *out, struct rp_error *err)
{
    const struct rp_config *config = &d->session.config;
    struct stat there;
    bool any = false;
    *out = (struct rp_welcome){ 0 };
    int r = rp_token_any(d->session.catalog->db, &any, err);
    if (r < 0) return r;
    out->no_token = !any && config->file != NULL;
    if (config->file != NULL) return 0;
    snprintf(out->token_file, sizeof out->token_file, "%s/" ADMIN_TOKEN, config->data);
    if (!any) return make_first(d, out, err);
    if (stat(out->token_file, &there) < 0) out->token_file[0] = 0;
    return 0;
}
