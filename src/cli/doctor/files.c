/* SPDX-License-Identifier: Apache-2.0 */
/* Files with secrets that everybody on this host can read. */
#include "cli/doctor/doctor.h"

#include "base/cleanup.h"
#include "base/url.h"
#include "cli/handshake.h"
#include "config/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Whether others than its owner and group may read it: the file, and every directory above it. */
static bool is_open_to_others(const char *path)
{
    struct stat st;
    RP_CLEANUP(rp_freep) char *real = realpath(path, NULL);
    if (real == NULL || stat(real, &st) < 0 || (st.st_mode & S_IROTH) == 0) return false;
    for (char *slash; (slash = strrchr(real, '/')) != NULL && slash != real;) {
        *slash = 0;
        if (stat(real, &st) < 0 || (st.st_mode & S_IXOTH) == 0) return false;
    }
    return true;
}

static bool check_file(struct rp_doctor *d, const char *path, const char *what)
{
    if (!is_open_to_others(path)) return false;
    rp_judge(d, RP_DOUBTFUL, "take it from others: chmod o= FILE",
             "%s can be read by everybody on this host; it has %s", path, what);
    return true;
}

/* A secret that stands there in so many words; one from the environment or a file does not. */
static bool has_secret(const char *text, const char *secret)
{
    return secret != NULL && secret[0] != 0 && strstr(text, secret) != NULL;
}

/* Of postgres://user:password@host and of ?password=...: with the sign or word before it, which
 * tells it from other words. NULL: there is none. */
static const char *find_password(const char *url, size_t *n)
{
    const char *p = strstr(url, "://");
    if (p == NULL) return NULL;
    p += 3;
    size_t user = strcspn(p, ":@/"), credentials = strcspn(p, "@/");
    *n = credentials + 1 - user;
    if (p[credentials] == '@' && p[user] == ':' && *n > 2) return p + user;
    for (p = strchr(p, '?'); p != NULL; p = strchr(p + 1, '&')) {
        *n = 1 + strcspn(p + 1, "&");
        if (strncmp(p + 1, "password=", 9) == 0 && *n > 10) return p;
    }
    return NULL;
}

static bool has_password(const char *text, const char *url)
{
    size_t n;
    const char *password = find_password(url, &n);
    return password != NULL && memmem(text, strlen(text), password, n) != NULL;
}

static bool names_secrets(const struct rp_config *config)
{
    RP_CLEANUP(rp_freep) char *text = calloc(1, RP_YAML_BYTES_MAX + 1);
    FILE *file = fopen(config->file, "re");
    if (text != NULL && file != NULL) text[fread(text, 1, RP_YAML_BYTES_MAX, file)] = 0;
    if (file != NULL) (void)fclose(file);
    if (text == NULL) return true; /* rather one warning too many */
    bool found = has_password(text, config->catalog_url);
    struct rp_endpoint endpoint;
    for (size_t i = 0; rp_endpoint_of(config, i, &endpoint); i++)
        found = found || has_secret(text, endpoint.secrets[0]) || has_secret(text, endpoint.secrets[1]);
    for (size_t i = 0; i < config->n_stores; i++)
        found = found || has_secret(text, config->stores[i].secret_key) ||
                has_secret(text, config->stores[i].session_token);
    for (size_t i = 0; i < config->n_databases; i++)
        found =
            found || has_password(text, config->databases[i].url) || has_password(text, config->databases[i].read_url);
    return found;
}

void rp_doctor_files(struct rp_doctor *d)
{
    const struct rp_config *config = &d->cli->session.config;
    const char *catalog = rp_sqlite_path(config->catalog_url);
    char token[4200];
    bool open = config->file != NULL && names_secrets(config) && check_file(d, config->file, "secrets");
    if (catalog != NULL) open |= check_file(d, catalog, "the catalog, and the key that signs URLs");
    if (config->tls_key[0] != 0) open |= check_file(d, config->tls_key, "the private key of tls.key");
    (void)snprintf(token, sizeof token, "%s/admin.token", config->data);
    open |= check_file(d, token, "a token that may everything");
    if (!open) rp_judge(d, RP_FINE, "", "none with secrets can be read by everybody on this host");
}
