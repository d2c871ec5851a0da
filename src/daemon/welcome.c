/* SPDX-License-Identifier: Apache-2.0 */
/* welcome.c - what a first start makes: the key that signs URLs, the first admin token, the link to sign in with. */
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/json.h"
#include "catalog/token.h"
#include "daemon/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define ADMIN_TOKEN "admin.token"
#define URL_KEY     "url_key"

/* ---- the key of URLs ---- */

struct keying {
    char fresh[RP_DIGEST_HEX];
    char key[RP_DIGEST_HEX];
};

static int key_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct keying *k = ctx;
    int64_t number;
    int r = rp_meta_fill(tx->db, URL_KEY, k->fresh, err);
    return r < 0 ? r : rp_meta_get(tx->db, URL_KEY, &number, k->key, sizeof k->key, err);
}

int rp_welcome_url_key(struct rp_catalog *catalog, char out[RP_DIGEST_HEX], struct rp_error *err)
{
    struct keying k;
    uint8_t random[RP_DIGEST_BYTES];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return rp_error_set(err, RP_EFAILED, "no random numbers for the key of URLs");
    rp_digest_hex(random, k.fresh);
    int r = rp_catalog_transact(catalog, key_tx, &k, err);
    if (r < 0) return rp_error_wrap(err, r, "the key of URLs");
    memcpy(out, k.key, RP_DIGEST_HEX);
    return 0;
}

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

struct making {
    struct rp_token token, link;
    char secret[RP_TOKEN_SECRET], link_secret[RP_TOKEN_SECRET];
    const char *actor;
    int64_t now_ms;
};

static int make_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct making *m = ctx;
    m->token = (struct rp_token){ .kind = RP_TOKEN_BEARER, .name = "admin", .scopes = RP_TOKEN_SCOPES_ALL };
    m->link = (struct rp_token){ .kind = RP_TOKEN_LINK,
                                 .name = "first sign-in",
                                 .scopes = RP_TOKEN_SCOPES_ALL,
                                 .expires_at_ms = tx->late_ms + RP_TOKEN_LINK_MS };
    int r = rp_token_create(tx, &m->token, m->secret, m->actor, err);
    return r < 0 ? r : rp_token_create(tx, &m->link, m->link_secret, m->actor, err);
}

/* The file first: a token that nobody has written down would be lost with this process. One in a
 * file without its row is replaced at the next start. */
static int make_token(struct rp_daemon *d, struct rp_welcome *out, struct rp_error *err)
{
    struct making m = { .actor = d->session.actor };
    int r = rp_token_secret(RP_TOKEN_BEARER, m.secret, err);
    if (r == 0) r = rp_token_secret(RP_TOKEN_LINK, m.link_secret, err);
    if (r == 0) r = write_token(out->token_file, m.secret, err);
    if (r == 0) r = rp_catalog_transact(d->session.catalog, make_tx, &m, err);
    if (r < 0) return rp_error_wrap(err, r, "make the first admin token");
    snprintf(out->link, sizeof out->link, "%s", m.link_secret);
    json_t *o = json_object();
    rp_json_set(o, "file", rp_json_text(out->token_file));
    rp_daemon_log(d, RP_LOG_INFO, "daemon.first_token", o);
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
    if (!any) return make_token(d, out, err);
    if (stat(out->token_file, &there) < 0) out->token_file[0] = 0;
    return 0;
}
