/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "http/server/auth.h"
#include "http/server/framing.h"
#include "http/server/incoming.h"
#include "http/server/listen.h"
#include "http/server/pool.h"
#include "http/server/slow_clients.h"
#include "http/server/tenants.h"

#define CONNECTION_BYTES ((size_t)6 << 10) /* headers and buffers of one connection */
#define PEM_MAX          ((off_t)1 << 20)
#define OTHER_FILES      256 /* of the process, beside connections */

static void on_log(void *cls, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));
static void on_log(void *cls, const char *fmt, va_list args)
{
    struct rp_server *server = cls;
    char text[300];
    if (!rp_log_takes(server->options.log, RP_LOG_DEBUG)) return;
    (void)vsnprintf(text, sizeof text, fmt, args);
    text[strcspn(text, "\n")] = '\0';
    json_t *line = json_object();
    rp_json_set(line, "text", rp_json_text(text));
    rp_log_event(server->options.log, RP_LOG_DEBUG, rp_clock_now_ms(server->options.clock), "http.library", line);
}

/* ---- start ---- */

static unsigned connections_max(const struct rp_config *config)
{
    struct rlimit files = { 0 };
    rlim_t wanted = config->http_connections_max > 0 ? (rlim_t)config->http_connections_max : 12000;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0) return 512;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    (void)getrlimit(RLIMIT_NOFILE, &files);
    rlim_t room = files.rlim_cur > 2 * OTHER_FILES ? files.rlim_cur - OTHER_FILES : files.rlim_cur / 2;
    return (unsigned)(wanted < room ? wanted : room);
}

static unsigned threads(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 2 ? 2 : cores > 4 ? 4 : (unsigned)cores;
}

static int read_pem(const char *path, struct rp_buf *out, struct rp_error *err)
{
    struct stat st;
    char chunk[4096];
    RP_CLEANUP(rp_fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) return rp_error_errno(err, errno, "tls: read %s", path);
    if (!S_ISREG(st.st_mode) || st.st_size > PEM_MAX)
        return rp_error_set(err, RP_ECONFIG, "tls: %s is no PEM file", path);
    for (ssize_t n = 1; n > 0;) {
        n = read(fd, chunk, sizeof chunk);
        if (n < 0) return rp_error_errno(err, errno, "tls: read %s", path);
        rp_buf_add(out, chunk, (size_t)n);
    }
    return out->failed < 0 ? rp_error_set(err, out->failed, "tls: read %s", path) : 0;
}

static char tls_versions[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

static int start_daemon(struct rp_server *s, struct rp_error *err)
{
    const struct rp_config *config = s->options.config;
    RP_CLEANUP(rp_buf_done) struct rp_buf certificate = RP_BUF(PEM_MAX), key = RP_BUF(PEM_MAX);
    unsigned flags =
        MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG; /* never epoll: it stalls */
    if (s->tls) {
        int r = read_pem(config->tls_certificate, &certificate, err);
        if (r == 0) r = read_pem(config->tls_key, &key, err);
        if (r < 0) return r;
        flags |= MHD_USE_TLS;
    }
    struct MHD_OptionItem tls[] = {
        { s->tls ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, certificate.data },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, key.data },
        { MHD_OPTION_HTTPS_PRIORITIES, 0, tls_versions },
        { MHD_OPTION_END, 0, NULL },
    };
    int64_t timeout_ms = config->http_timeout_ms > 0 ? config->http_timeout_ms : 30000;
    s->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, rp_incoming_call, s, MHD_OPTION_EXTERNAL_LOGGER, on_log, s, MHD_OPTION_LISTEN_SOCKET,
        s->listen_fd, MHD_OPTION_THREAD_POOL_SIZE, threads(), MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_BYTES,
        MHD_OPTION_CONNECTION_LIMIT, connections_max(config), MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)((timeout_ms + 999) / 1000), MHD_OPTION_NOTIFY_COMPLETED, rp_incoming_completed, s,
        MHD_OPTION_URI_LOG_CALLBACK, rp_framing_line, NULL, MHD_OPTION_NOTIFY_CONNECTION, rp_incoming_connection, s,
        MHD_OPTION_UNESCAPE_CALLBACK, rp_incoming_unescape, s, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY, tls,
        MHD_OPTION_END);
    if (s->daemon != NULL) return 0;
    rp_error_set(err, s->tls ? RP_ECONFIG : RP_EFAILED, "the HTTP server did not start%s",
                 s->tls ? ": certificate and key do not fit" : "");
    return err->code;
}

static int start_parts(struct rp_server *s, struct rp_error *err)
{
    const struct rp_config *config = s->options.config;
    int64_t patience_ms = 2 * (config->http_timeout_ms > 0 ? config->http_timeout_ms : 30000);
    int r =
        rp_listen(config->listen, s->tls || config->listen_insecure, &s->listen_fd, s->address, sizeof s->address, err);
    if (r == 0) r = rp_tokens_new(config->http_requests_per_second, &s->tokens, err);
    if (r == 0) r = rp_tenants_new(&s->tenants, err);
    if (r == 0) r = rp_slow_clients_start(patience_ms, &s->slow_clients, err);
    if (r == 0) r = rp_pool_start(s, RP_POOL_THREADS, RP_POOL_QUEUE_MAX, &s->pool, err);
    if (r == 0) r = rp_pool_start(s, RP_POOL_LOOKUPS, SIZE_MAX, &s->lookups, err);
    if (r == 0) r = start_daemon(s, err);
    return r;
}

int rp_server_start(const struct rp_server_options *options, struct rp_server **out, struct rp_error *err)
{
    struct rp_server *s = calloc(1, sizeof *s);
    if (s == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the server");
    s->options = *options;
    s->bodies = (struct rp_shares)RP_SHARES;
    s->listen_fd = -1;
    s->tls = options->config->tls_certificate != NULL && options->config->tls_certificate[0] != '\0';
    if (getrandom(&s->boot, sizeof s->boot, 0) < 0) s->boot = (uint32_t)rp_monotonic_us();
    int r = start_parts(s, err);
    if (r < 0) {
        rp_server_stop(s, 0);
        return r;
    }
    *out = s;
    return 0;
}

/* ---- stop ---- */

static bool wait_for_none(_Atomic int64_t *count, int64_t patience_ms)
{
    const struct timespec moment = { .tv_nsec = 2000000 };
    int64_t until_us = rp_monotonic_us() + patience_ms * 1000;
    while (atomic_load(count) > 0) {
        if (patience_ms >= 0 && rp_monotonic_us() >= until_us) return false;
        nanosleep(&moment, NULL);
    }
    return true;
}

/* A connection may not be suspended when the HTTP library stops: what is with the pool or a
 * writer is waited for, without end, as both end by themselves. */
static void stop_daemon(struct rp_server *s, int64_t patience_ms)
{
    atomic_store(&s->stopping, true);
    if (s->daemon != NULL) (void)MHD_quiesce_daemon(s->daemon);
    (void)wait_for_none(&s->open, patience_ms);
    atomic_store(&s->closing, true);
    rp_pool_stop(s->lookups);
    rp_pool_stop(s->pool);
    (void)wait_for_none(&s->away, -1);
    if (s->daemon != NULL) MHD_stop_daemon(s->daemon);
}

void rp_server_stop(struct rp_server *s, int64_t patience_ms)
{
    if (s == NULL) return;
    stop_daemon(s, patience_ms);
    RP_ASSERT(atomic_load(&s->open) == 0);
    rp_pool_free(s->lookups);
    rp_pool_free(s->pool);
    rp_slow_clients_stop(s->slow_clients);
    rp_tenants_free(s->tenants);
    rp_tokens_free(s->tokens);
    if (s->listen_fd >= 0) close(s->listen_fd);
    for (struct rp_server_now *now = atomic_load(&s->now), *before; now != NULL; now = before) {
        before = now->before;
        free(now);
    }
    free(s);
}

const char *rp_server_address(const struct rp_server *server)
{
    return server->address;
}

int64_t rp_server_body_bytes(struct rp_server *server)
{
    return rp_shares_out(&server->bodies);
}

void rp_server_forget_token(struct rp_server *server, int64_t token_id)
{
    rp_tokens_forget(server->tokens, token_id);
}

const struct rp_server_options *rp_server_options_of(const struct rp_server *server)
{
    const struct rp_server_now *now = atomic_load(&server->now);
    return now != NULL ? &now->options : &server->options;
}

void rp_server_configure(struct rp_server *server, const struct rp_config *config, struct rp_store *stores)
{
    struct rp_server_now *next = calloc(1, sizeof *next);
    if (next == NULL) return; /* it goes on with the settings that it has */
    next->options = *rp_server_options_of(server);
    next->options.config = config;
    next->options.stores = stores;
    rp_tokens_limit(server->tokens, config->http_requests_per_second);
    next->before = atomic_load(&server->now);
    while (!atomic_compare_exchange_weak(&server->now, &next->before, next))
        ;
}
