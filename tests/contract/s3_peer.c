/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "contract/s3_peer.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct connection {
    struct peer *peer;
    unsigned number;
};

void peer_send(int fd, const char *raw)
{
    for (size_t left = strlen(raw); left > 0;) {
        ssize_t n = send(fd, raw, left, MSG_NOSIGNAL);
        if (n <= 0) return; /* the client may have had enough */
        raw += n;
        left -= (size_t)n;
    }
}

void peer_reply(int fd, int status, const char *headers, const char *body)
{
    size_t size = strlen(headers) + strlen(body) + 128;
    char *raw = malloc(size);
    (void)snprintf(raw, size, "HTTP/1.1 %d X\r\n%sContent-Length: %zu\r\n\r\n%s", status, headers, strlen(body), body);
    peer_send(fd, raw);
    free(raw);
}

const char *request_header(const struct request *request, const char *name, char out[512])
{
    size_t name_n = strlen(name);
    out[0] = '\0';
    for (const char *p = request->head; (p = strstr(p, "\r\n")) != NULL;) {
        p += 2;
        if (strncasecmp(p, name, name_n) != 0 || p[name_n] != ':') continue;
        p += name_n + 1 + strspn(p + name_n + 1, " ");
        (void)snprintf(out, 512, "%.*s", (int)strcspn(p, "\r"), p);
        break;
    }
    return out;
}

static void wait_for_close(int fd)
{
    char byte;
    while (recv(fd, &byte, 1, 0) > 0)
        ;
}

bool peer_script(struct peer *peer, int fd, const struct request *request)
{
    size_t i = request->number < peer->n_steps ? request->number : peer->n_steps - 1;
    if (peer->steps[i].raw == NULL)
        wait_for_close(fd);
    else
        peer_send(fd, peer->steps[i].raw);
    return peer->steps[i].raw != NULL && !peer->steps[i].closes;
}

/* One request with its body; false: the client closed. */
static bool read_request(int fd, struct request *r)
{
    size_t n = 0;
    char *end = NULL, length[512];
    r->head[0] = '\0';
    while ((end = strstr(r->head, "\r\n\r\n")) == NULL) {
        ssize_t got = n + 1 < sizeof r->head ? recv(fd, r->head + n, sizeof r->head - 1 - n, 0) : 0;
        if (got <= 0) return false;
        n += (size_t)got;
        r->head[n] = '\0';
    }
    size_t have = n - (size_t)(end + 4 - r->head);
    end[2] = '\0';
    r->body_bytes = strtoul(request_header(r, "content-length", length), NULL, 10);
    while (have < r->body_bytes) {
        static const size_t chunk = 65536;
        char *sunk = malloc(chunk);
        ssize_t got = recv(fd, sunk, chunk, 0);
        free(sunk);
        if (got <= 0) return false;
        have += (size_t)got;
    }
    return true;
}

static void count_in(struct peer *p, struct request *r)
{
    pthread_mutex_lock(&p->lock);
    r->number = p->requests++;
    if (++p->under_way > p->under_way_max) p->under_way_max = p->under_way;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static void count_out(struct peer *p)
{
    pthread_mutex_lock(&p->lock);
    p->under_way--;
    pthread_mutex_unlock(&p->lock);
}

static void *serve(void *arg)
{
    struct connection c = *(struct connection *)arg;
    struct peer *p = c.peer;
    int fd = p->fds[c.number];
    struct request *r = calloc(1, sizeof *r);
    bool open = p->welcome == NULL || p->welcome(p, c.number);
    free(arg);
    r->connection = c.number;
    while (open && read_request(fd, r)) {
        count_in(p, r);
        open = p->answer(p, fd, r);
        count_out(p);
    }
    free(r);
    (void)shutdown(fd, SHUT_RDWR);
    return NULL;
}

static void *accept_all(void *arg)
{
    struct peer *p = arg;
    int fd, one = 1;
    while ((fd = accept(p->fd, NULL, NULL)) >= 0) {
        struct connection *c = malloc(sizeof *c);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        pthread_mutex_lock(&p->lock);
        *c = (struct connection){ .peer = p, .number = p->connections };
        if (p->connections == PEER_CONNECTIONS_MAX) abort();
        p->fds[p->connections] = fd;
        if (pthread_create(&p->threads[p->connections], NULL, serve, c) != 0) abort();
        p->connections++;
        if (p->stopping) (void)shutdown(fd, SHUT_RDWR);
        pthread_mutex_unlock(&p->lock);
    }
    return NULL;
}

void peer_start(struct peer *p)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof at;
    p->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(p->fd >= 0 && bind(p->fd, (struct sockaddr *)&at, n) == 0 && listen(p->fd, 256) == 0);
    assert_int_equal(getsockname(p->fd, (struct sockaddr *)&at, &n), 0);
    (void)snprintf(p->host, sizeof p->host, "127.0.0.1:%d", ntohs(at.sin_port));
    p->stopping = false;
    p->requests = p->connections = p->under_way = p->under_way_max = 0;
    if (p->answer == NULL) p->answer = peer_script;
    assert_int_equal(pthread_mutex_init(&p->lock, NULL), 0);
    assert_int_equal(pthread_cond_init(&p->changed, NULL), 0);
    assert_int_equal(pthread_create(&p->thread, NULL, accept_all, p), 0);
}

void peer_stop(struct peer *p)
{
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    for (unsigned i = 0; i < p->connections; i++)
        (void)shutdown(p->fds[i], SHUT_RDWR);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    (void)shutdown(p->fd, SHUT_RDWR);
    pthread_join(p->thread, NULL);
    for (unsigned i = 0; i < p->connections; i++) {
        pthread_join(p->threads[i], NULL);
        close(p->fds[i]);
    }
    close(p->fd);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
}

unsigned peer_requests(struct peer *p)
{
    pthread_mutex_lock(&p->lock);
    unsigned n = p->requests;
    pthread_mutex_unlock(&p->lock);
    return n;
}

unsigned peer_connections(struct peer *p)
{
    pthread_mutex_lock(&p->lock);
    unsigned n = p->connections;
    pthread_mutex_unlock(&p->lock);
    return n;
}

bool peer_wait_requests(struct peer *p, unsigned n)
{
    pthread_mutex_lock(&p->lock);
    while (p->requests < n && !p->stopping)
        pthread_cond_wait(&p->changed, &p->lock);
    bool got = p->requests >= n;
    pthread_mutex_unlock(&p->lock);
    return got;
}

/* ---- a wire to it ---- */

void trial_open(struct trial *t)
{
    struct rp_error err = { 0 };
    peer_start(&t->peer);
    if (t->options.access_key == NULL) {
        t->options.access_key = "AKTEST";
        t->options.secret_key = "not-so-secret";
    }
    if (t->options.session_token == NULL) t->options.session_token = "";
    if (t->options.profile == NULL) t->options.profile = "";
    t->wire_options.target = (struct s3_target){
        .scheme = "http", .host = t->peer.host, .bucket = "bucket", .path_style = true, .region = "us-east-1"
    };
    if (t->wire_options.timeout_ms == 0) t->wire_options.timeout_ms = 10000;
    if (t->wire_options.patience_ms == 0) t->wire_options.patience_ms = 20000;
    assert_int_equal(rp_s3_credentials_new(&t->options, t->wire_options.clock, &t->credentials, &err), 0);
    t->wire_options.credentials = t->credentials;
    assert_int_equal(rp_s3_wire_open(&t->wire_options, &t->wire, &err), 0);
}

void trial_close(struct trial *t)
{
    rp_s3_wire_close(t->wire);
    rp_s3_credentials_free(t->credentials);
    peer_stop(&t->peer);
    free(t);
}

struct s3_call trial_call(const char *method, const char *key)
{
    return (struct s3_call){ .message = { .method = method, .key = key }, .answer_max = 1 << 20 };
}

void trial_run(struct trial *t, struct s3_call *call, int code, int status, const char *file, int line)
{
    struct rp_error err = { 0 };
    if (rp_s3_wire_run(t->wire, call, 1, &err) != 0 || call->code != code || (code == 0 && call->status != status)) {
        print_error("code %d (%s), status %d, %u attempts, note '%s'\n", call->code, rp_error_slug(call->code),
                    call->status, call->attempts, call->note);
        _fail(file, line);
    }
}

struct s3_wire_state trial_state(struct trial *t)
{
    struct s3_wire_state state;
    rp_s3_wire_state(t->wire, &state);
    return state;
}
