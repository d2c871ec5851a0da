/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

#define BACKLOG 1024

static void free_addresses(struct addrinfo **list)
{
    if (*list != NULL) freeaddrinfo(*list);
}

/* "[::1]:80" and "host:80" apart; an empty host is every address. */
static int split(const char *where, char *host, size_t size, const char **port, struct rp_error *err)
{
    const char *colon = strrchr(where, ':'), *start = where;
    size_t n = colon == NULL ? 0 : (size_t)(colon - where);
    if (n > 1 && where[0] == '[' && where[n - 1] == ']') {
        start++;
        n -= 2;
    }
    bool digits = colon != NULL && colon[1] != '\0' && strspn(colon + 1, "0123456789") == strlen(colon + 1);
    if (!digits || n >= size)
        return rp_error_set(err, RP_ECONFIG, "listen: expected HOST:PORT such as 127.0.0.1:8420, found '%.80s'", where);
    memcpy(host, start, n);
    host[n] = '\0';
    *port = colon + 1;
    return 0;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 six;
        memcpy(&six, address, sizeof six);
        return IN6_IS_ADDR_LOOPBACK(&six.sin6_addr);
    }
    struct sockaddr_in four;
    memcpy(&four, address, sizeof four);
    return ntohl(four.sin_addr.s_addr) >> 24 == 127;
}

static int open_socket(const struct addrinfo *at, const char *where, int *out, struct rp_error *err)
{
    const int on = 1;
    RP_CLEANUP(rp_fd_closep) int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return rp_error_errno(err, errno, "listen on %s", where);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, at->ai_addr, at->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        int e = errno;
        int r = rp_error_errno(err, e, "listen on %s", where);
        if (e == EADDRINUSE) rp_error_hint(err, "another program has it; set `listen` to another port");
        return r;
    }
    *out = fd;
    fd = -1;
    return 0;
}

static int name_it(int fd, char *address, size_t size, struct rp_error *err)
{
    struct sockaddr_storage at = { 0 };
    socklen_t n = sizeof at;
    char host[64], port[8];
    if (getsockname(fd, (struct sockaddr *)&at, &n) < 0) return rp_error_errno(err, errno, "listen");
    int r =
        getnameinfo((struct sockaddr *)&at, n, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    if (r != 0) return rp_error_set(err, RP_EFAILED, "listen: %s", gai_strerror(r));
    (void)snprintf(address, size, at.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
    return 0;
}

int rp_listen(const char *where, bool public_ok, int *fd, char *address, size_t size, struct rp_error *err)
{
    char host[256];
    const char *port = NULL;
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    RP_CLEANUP(free_addresses) struct addrinfo *found = NULL;
    int r = split(where, host, sizeof host, &port, err);
    if (r < 0) return r;
    int g = getaddrinfo(host[0] == '\0' ? NULL : host, port, &hints, &found);
    if (g != 0) return rp_error_set(err, RP_ECONFIG, "listen: '%.80s': %s", where, gai_strerror(g));
    if (!public_ok && !is_loopback(found->ai_addr)) {
        rp_error_set(err, RP_ECONFIG, "listen: %.80s can be reached from outside, and there is no TLS", where);
        return rp_error_hint(err, "set tls.certificate and tls.key, or say listen_insecure: true if a proxy does TLS");
    }
    RP_CLEANUP(rp_fd_closep) int opened = -1;
    r = open_socket(found, where, &opened, err);
    if (r == 0) r = name_it(opened, address, size, err);
    if (r < 0) return r;
    *fd = opened;
    opened = -1;
    return 0;
}
