/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/hook_peer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"

/* The body's beginning; NULL: the other side has gone. */
static const char *read_request(int fd, char *out, size_t size)
{
    size_t n = 0;
    while (n + 1 < size) {
        ssize_t got = read(fd, out + n, size - 1 - n);
        if (got <= 0) return NULL;
        n += (size_t)got;
        out[n] = 0;
        const char *length = strstr(out, "Content-Length: "), *end = strstr(out, "\r\n\r\n");
        if (end != NULL && length != NULL && strlen(end + 4) >= strtoul(length + 16, NULL, 10)) return end + 4;
    }
    return NULL;
}

static void talk(struct hook_peer *p, int fd)
{
    char more;
    for (const char *body; (body = read_request(fd, p->request, sizeof p->request)) != NULL;) {
        p->requests++;
        const char *answer = p->fn(p->ctx, p->request, body);
        if (answer == NULL) return;
        if (answer[0] == 0) (void)!read(fd, &more, 1);
        if (send(fd, answer, strlen(answer), MSG_NOSIGNAL) < 0) return;
        if (strstr(answer, "Content-Length: ") == NULL || strstr(answer, "Connection: close") != NULL) return;
    }
}

static void *serve(void *arg)
{
    struct hook_peer *p = arg;
    for (int fd; (fd = accept(p->fd, NULL, NULL)) >= 0; close(fd)) {
        p->connections++;
        talk(p, fd);
    }
    return NULL;
}

void hook_peer_start(struct hook_peer *p, hook_peer_fn *fn, void *ctx)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof at;
    *p = (struct hook_peer){ .fn = fn, .ctx = ctx };
    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r = p->fd < 0 ? -1 : bind(p->fd, (struct sockaddr *)&at, sizeof at);
    if (r == 0) r = listen(p->fd, 4);
    if (r == 0) r = getsockname(p->fd, (struct sockaddr *)&at, &n);
    snprintf(p->url, sizeof p->url, "http://127.0.0.1:%u/hunter2", (unsigned)ntohs(at.sin_port));
    if (r == 0) r = pthread_create(&p->thread, NULL, serve, p);
    RP_ASSERT(r == 0);
}

void hook_peer_stop(struct hook_peer *p)
{
    shutdown(p->fd, SHUT_RDWR);
    pthread_join(p->thread, NULL);
    close(p->fd);
}
