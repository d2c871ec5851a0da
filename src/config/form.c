/* SPDX-License-Identifier: Apache-2.0 */
#include "config/form.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/assert.h"
#include "base/cron.h"
#include "base/network.h"
#include "base/text/base64.h"
#include "base/url.h"

bool rp_form_is_name(const char *text)
{
    size_t n = strlen(text);
    return n >= 1 && n <= 63 && text[0] >= 'a' && text[0] <= 'z' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_") == n;
}

bool rp_form_is_line(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f) return false;
    return true;
}

/* A database in memory would forget every promise with the process. */
bool rp_form_is_url(const char *text)
{
    const char *file = rp_sqlite_path(text);
    if (file) return *file != '\0' && *file != ':';
    return strncmp(text, "postgres://", 11) == 0 || strncmp(text, "postgresql://", 13) == 0;
}

bool rp_form_has_user(const char *text)
{
    const char *scheme = strstr(text, "://");
    const char *host = scheme ? scheme + 3 : text;
    return memchr(host, '@', strcspn(host, "/?#")) != NULL;
}

bool rp_form_is_web(const char *text)
{
    static const char *const schemes[] = { "http://", "https://" };
    if (rp_form_has_user(text)) return false;
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(schemes[i]);
        if (strncmp(text, schemes[i], n) != 0) continue;
        return strlen(text) <= 2048 && strcspn(text + n, "/?#") > 0 && !strpbrk(text, " \"<>\\^`{|}");
    }
    return false;
}

static bool is_web_or_none(const char *text)
{
    return !*text || (rp_form_is_web(text) && rp_form_is_line(text));
}

static bool is_port(const char *text)
{
    size_t n = strlen(text);
    int port = 0;
    if (n == 0 || n > 5 || strspn(text, "0123456789") != n) return false;
    for (; *text; text++)
        port = port * 10 + (*text - '0');
    return port <= 65535;
}

/* Names are not looked up: what one resolves to may change while the daemon runs. */
static bool is_address(const char *text)
{
    char host[64], bytes[16];
    const char *colon = strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;
    if (n == 0 || n >= sizeof(host) || !is_port(colon + 1)) return false;
    bool bracketed = text[0] == '[' && text[n - 1] == ']';
    memcpy(host, bracketed ? text + 1 : text, bracketed ? n - 2 : n);
    host[bracketed ? n - 2 : n] = '\0';
    if (bracketed) return inet_pton(AF_INET6, host, bytes) == 1;
    return strcmp(host, "localhost") == 0 || inet_pton(AF_INET, host, bytes) == 1;
}

static bool is_cron_line(const char *text)
{
    struct rp_cron cron;
    int64_t next_ms;
    return rp_cron_parse(text, &cron, NULL) == 0 && rp_cron_next(&cron, 0, &next_ms, NULL) == 0;
}

static bool is_signing(const char *text)
{
    static const char prefix[] = "whsec_";
    size_t n = sizeof prefix - 1;
    return strncmp(text, prefix, n) != 0 || rp_base64_parse(text + n, strlen(text + n), NULL) > 0;
}

static bool is_schedule(const char *text)
{
    return strcmp(text, "continuous") == 0 || is_cron_line(text);
}

static bool is_cron_or_none(const char *text)
{
    return text[0] == '\0' || is_cron_line(text);
}

static const struct {
    const char *words;
    bool (*fits)(const char *text); /* NULL: bounds say all, or whoever converts it */
} forms[RP_SETTING_LIST + 1] = {
    [RP_SETTING_URL] = { "sqlite:PATH or postgres://USER@HOST/DATABASE", NULL },
    [RP_SETTING_PATH] = { "the path of a directory", NULL },
    [RP_SETTING_FOLDER] = { "the path of a directory or \"\" for none", NULL },
    [RP_SETTING_LOG] = { "the path of a file, \"-\" for standard error or \"\" for none", NULL },
    [RP_SETTING_FILE] = { "the path of a file or \"\" for none", NULL },
    [RP_SETTING_WEB] = { "http://HOST or https://HOST, with port and path if need be, or \"\" for none",
                         is_web_or_none },
    [RP_SETTING_ADDRESS] = { "ADDRESS:PORT such as 127.0.0.1:8420, 0.0.0.0:8420 or [::1]:8420", is_address },
    [RP_SETTING_EVENTS] = { "a list of names of events, or of groups, such as [file.deleted, \"mark.*\"]", NULL },
    [RP_SETTING_NETWORKS] = { "a list of networks in CIDR such as [10.1.2.0/24, \"fd00:1::/32\"]", rp_networks_are },
    [RP_SETTING_SIGNING] = { NULL, is_signing },
    [RP_SETTING_SCHEDULE] = { "continuous, or the five fields of a cron line that fires (minute hour day month "
                              "weekday)",
                              is_schedule },
    [RP_SETTING_CRON] = { "the five fields of a cron line that fires (minute hour day month weekday), or \"\" for "
                          "never",
                          is_cron_or_none },
    [RP_SETTING_BOOL] = { "true or false", NULL },
    [RP_SETTING_SECTION] = { "a section", NULL },
};

const char *rp_form_words(enum rp_setting_type type)
{
    RP_ASSERT(forms[type].words != NULL);
    return forms[type].words;
}

bool rp_form_fits(enum rp_setting_type type, const char *text)
{
    return forms[type].fits == NULL || forms[type].fits(text);
}
