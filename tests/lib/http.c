/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/http.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text/json.h"
#include "catalog/file/file.h"
#include "http/route/route.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void prepare(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    curl_global_init(CURL_GLOBAL_ALL);
}

/* ---- the server ---- */

static void read_config(struct served *s)
{
    struct rp_error err = { 0 };
    char text[400];
    int n = snprintf(
        text, sizeof text,
        "listen: 127.0.0.1:0\nstores: { main: { type: fs, path: \"%s\", mode: purge, allow_any_grace: true } }\n",
        s->w.root[0] != '\0' ? s->w.root : s->w.dbs.dir);
    s->arena = RP_ARENA((size_t)1 << 20);
    ok(rp_config_parse(text, (size_t)n, "reprieve.yaml", s->w.dbs.dir, &s->arena, &s->config, &err));
    s->config.catalog_url = s->w.dbs.url;
}

void served_make(struct served *s, enum dbs_kind kind, void (*tune)(struct served *s))
{
    struct rp_error err = { 0 };
    pthread_once(&once, prepare);
    memset(s, 0, sizeof *s);
    world_make(&s->w, kind, WORLD_FS);
    read_config(s);
    (void)snprintf(s->log_file, sizeof s->log_file, "%s/http.log", s->w.dbs.dir);
    ok(rp_log_open(s->log_file, RP_LOG_DEBUG, &s->log, &err));
    ok(rp_metrics_new(rp_route_for_metrics, &s->metrics, &err));
    if (tune != NULL) tune(s);
    struct rp_writers_options w = { .url = s->w.dbs.url,
                                    .n = kind == DBS_POSTGRES ? 2 : 1,
                                    .first_lane = 1,
                                    .queue_max = s->queue_max != 0 ? s->queue_max : 1000 };
    ok(rp_writers_start(&w, &s->writers, &err));
    struct rp_server_options o = { .config = &s->config,
                                   .catalog_url = s->w.dbs.url,
                                   .writers = s->writers,
                                   .stores = &s->w.store,
                                   .n_stores = 1,
                                   .log = s->log,
                                   .metrics = s->metrics,
                                   .url_key = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff" };
    ok(rp_server_start(&o, &s->server, &err));
    (void)snprintf(s->address, sizeof s->address, "%s", rp_server_address(s->server));
    served_token(s, NULL, RP_MAY_ALL, 0, s->admin);
}

void served_stop(struct served *s, int64_t patience_ms)
{
    rp_server_stop(s->server, patience_ms);
    s->server = NULL;
    rp_writers_stop(s->writers);
    s->writers = NULL;
}

void served_drop(struct served *s)
{
    served_stop(s, 5000);
    rp_metrics_free(s->metrics);
    rp_log_close(s->log);
    rp_arena_done(&s->arena);
    world_drop(&s->w);
}

struct making {
    struct rp_token token;
    const char *secret;
    int64_t lasts_ms;
};

static int make_token(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct making *m = ctx;
    m->token.expires_at_ms = m->lasts_ms == 0 ? 0 : tx->late_ms + m->lasts_ms;
    return rp_token_create(tx, &m->token, m->secret, "tester", err);
}

int64_t served_secret(struct served *s, enum rp_token_kind kind, const char *tenant, unsigned scopes, int64_t lasts_ms,
                      char secret[RP_TOKEN_SECRET])
{
    struct rp_error err = { 0 };
    struct rp_tenant row = { 0 };
    struct making m = { .token = { .kind = kind, .name = "tester", .scopes = scopes },
                        .secret = secret,
                        .lasts_ms = lasts_ms };
    if (tenant != NULL) ok(rp_tenant_make(s->w.catalog, tenant, &row, &err));
    m.token.tenant_id = row.id;
    ok(rp_token_secret(kind, secret, &err));
    ok(rp_catalog_transact(s->w.catalog, make_token, &m, &err));
    return m.token.id;
}

int64_t served_token(struct served *s, const char *tenant, unsigned scopes, int64_t lasts_ms,
                     char secret[RP_TOKEN_SECRET])
{
    return served_secret(s, RP_TOKEN_BEARER, tenant, scopes, lasts_ms, secret);
}

/* ---- the client ---- */

static size_t on_body(char *bytes, size_t size, size_t n, void *ctx)
{
    struct answer *a = ctx;
    (void)size;
    a->body = realloc(a->body, a->n + n + 1);
    memcpy(a->body + a->n, bytes, n);
    a->n += n;
    a->body[a->n] = '\0';
    return n;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *ctx)
{
    struct answer *a = ctx;
    size_t used = strlen(a->headers);
    (void)size;
    if (used + n < sizeof a->headers) memcpy(a->headers + used, bytes, n);
    return n;
}

static struct curl_slist *headers_of(const struct call *call)
{
    char line[4096];
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    if (call->token != NULL) {
        (void)snprintf(line, sizeof line, "Authorization: Bearer %s", call->token);
        list = curl_slist_append(list, line);
    }
    if (call->key != NULL) {
        (void)snprintf(line, sizeof line, "Idempotency-Key: %s", call->key);
        list = curl_slist_append(list, line);
    }
    (void)snprintf(line, sizeof line, "Content-Type:%s%s", call->type != NULL && call->type[0] == '\0' ? "" : " ",
                   call->type != NULL ? call->type : "application/json");
    if (call->body != NULL) list = curl_slist_append(list, line);
    if (call->header != NULL) list = curl_slist_append(list, call->header);
    return list;
}

struct answer http_call(const struct served *s, const struct call *call)
{
    struct answer a = { .body = calloc(1, 1) };
    char url[2048];
    CURL *c = curl_easy_init();
    struct curl_slist *headers = headers_of(call);
    (void)snprintf(url, sizeof url, "%s://%s%s", s->config.tls_certificate[0] != '\0' ? "https" : "http", s->address,
                   call->path);
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_TIMEOUT, 60L);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, &a);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, &a);
    if (call->body != NULL) {
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE,
                         (curl_off_t)(call->body_n != 0 ? call->body_n : strlen(call->body)));
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, call->body);
    }
    if (call->from != NULL) curl_easy_setopt(c, CURLOPT_INTERFACE, call->from);
    if (strcmp(call->method, "HEAD") == 0) curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, call->method);
    if (curl_easy_perform(c) == CURLE_OK) curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &a.status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(c);
    if (a.n > 0) (void)rp_json_parse(a.body, a.n, &a.json, NULL);
    return a;
}

void answer_done(struct answer *a)
{
    json_decref(a->json);
    free(a->body);
    *a = (struct answer){ 0 };
}

const char *answer_header(const struct answer *a, const char *name, char out[256])
{
    size_t n = strlen(name);
    for (const char *p = a->headers; p != NULL && *p != '\0';
         p = strchr(p, '\n') == NULL ? NULL : strchr(p, '\n') + 1) {
        if (strncasecmp(p, name, n) != 0 || p[n] != ':') continue;
        (void)snprintf(out, 256, "%.*s", (int)strcspn(p + n + 2, "\r\n"), p + n + 2);
        return out;
    }
    return NULL;
}

void http_expect(const struct served *s, const struct call *call, long status, const char *code, const char *file,
                 int line)
{
    struct answer a = http_call(s, call);
    const char *found = rp_json_get_text(a.json, "code", "");
    if (a.status != status || (code != NULL && strcmp(found, code) != 0)) {
        print_error("%s:%d: %s %s: expected %ld %s, found %ld: %.300s\n", file, line, call->method, call->path, status,
                    code == NULL ? "" : code, a.status, a.body);
        fail();
    }
    answer_done(&a);
}

/* ---- bare connections ---- */

int http_connect(const struct served *s)
{
    const char *address = s->address, *colon = strrchr(address, ':');
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1)) };
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

void http_write(int fd, const void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t r = send(fd, (const char *)bytes + done, n - done, MSG_NOSIGNAL);
        if (r < 0 && errno == EINTR) continue;
        if (r <= 0) return;
        done += (size_t)r;
    }
}

size_t http_read(int fd, char *out, size_t size, size_t enough)
{
    size_t n = 0;
    while (n + 1 < size && n < enough) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        if (poll(&p, 1, 20000) <= 0) break;
        ssize_t r = recv(fd, out + n, size - 1 - n, 0);
        if (r <= 0) break;
        n += (size_t)r;
    }
    out[n] = '\0';
    return n;
}
