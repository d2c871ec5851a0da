/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/event_client.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/json.h"
#include "base/time.h"

struct event_client event_client_open(int port, const char *query, const char *last_id)
{
    struct event_client e = { .fd = socket(AF_INET, SOCK_STREAM, 0), .cap = 1 << 16 };
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    char request[8192];
    int n = snprintf(request, sizeof request, "GET /%s HTTP/1.1\r\nHost: x\r\n%s%s%s\r\n", query,
                     last_id != NULL ? "Last-Event-ID: " : "", last_id != NULL ? last_id : "",
                     last_id != NULL ? "\r\n" : "");
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    e.text = calloc(1, e.cap);
    assert_int_equal(connect(e.fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(send(e.fd, request, (size_t)n, 0), n);
    return e;
}

void event_client_close(struct event_client *e)
{
    if (e->fd >= 0) close(e->fd);
    e->fd = -1;
    free(e->text);
    e->text = NULL;
}

/* The stream itself: without headers and without the borders of chunks; `over` if it came to its
 * end. To be freed. */
char *event_client_stream(const struct event_client *e, bool *over)
{
    char *out = calloc(1, e->len + 1), *to = out;
    const char *p = strstr(e->text, "\r\n\r\n"), *end = e->text + e->len;
    if (over != NULL) *over = e->closed;
    for (p = p != NULL ? p + 4 : end; p < end;) {
        char *data;
        size_t n = strtoul(p, &data, 16);
        if (data == p || data + 2 > end) break;
        if (n == 0 && over != NULL) *over = true;
        data += 2;
        if (n > (size_t)(end - data)) n = (size_t)(end - data);
        memcpy(to, data, n);
        to += n;
        p = data + n + 2;
    }
    *to = '\0';
    return out;
}

/* Whatever is there, waiting at most so long for it. */
void event_client_listen(struct event_client *e, int wait_ms)
{
    struct pollfd p = { .fd = e->fd, .events = POLLIN };
    if (e->closed || poll(&p, 1, wait_ms) <= 0) return;
    if (e->cap - e->len < 65536) {
        e->cap *= 2;
        e->text = realloc(e->text, e->cap);
    }
    ssize_t n = recv(e->fd, e->text + e->len, e->cap - e->len - 1, 0);
    if (n <= 0)
        e->closed = true;
    else
        e->len += (size_t)n;
    e->text[e->len] = '\0';
}

size_t event_client_occurs(const char *text, const char *what)
{
    size_t n = 0;
    for (; (text = strstr(text, what)) != NULL; text += strlen(what))
        n++;
    return n;
}

/* Waits until the stream has `n` of this; whole blocks only. */
char *event_client_until(struct event_client *e, const char *what, size_t n)
{
    int64_t end_ms = rp_time_boot_ms() + PATIENCE_MS;
    for (;;) {
        bool over;
        char *stream = event_client_stream(e, &over);
        size_t len = strlen(stream);
        if (event_client_occurs(stream, what) >= n && len >= 2 && strcmp(stream + len - 2, "\n\n") == 0) return stream;
        if (over || rp_time_boot_ms() > end_ms) {
            fprintf(stderr, "waited for %zu x '%s', over %d, have: ...%s\n", n, what, over,
                    stream + (len > 600 ? len - 600 : 0));
            fail();
        }
        free(stream);
        size_t had = e->len;
        do { /* as long as it flows: looking through the whole costs */
            len = e->len;
            event_client_listen(e, 10);
        } while (e->len > len && e->len < 2 * had);
    }
}

void event_client_until_over(struct event_client *e)
{
    int64_t end_ms = rp_time_boot_ms() + PATIENCE_MS;
    bool over = false;
    while (!over && rp_time_boot_ms() < end_ms) {
        event_client_listen(e, 100);
        free(event_client_stream(e, &over));
    }
    assert_true(over);
}

void event_client_until_quiet(struct event_client *e)
{
    size_t had;
    do {
        had = e->len;
        event_client_listen(e, 300);
    } while (e->len > had);
}

void event_client_last_id(const char *stream, char out[RP_FEED_CURSOR_TEXT])
{
    const char *at = NULL;
    for (const char *p = stream; (p = strstr(p, "id: ")) != NULL; p++)
        if (p == stream || p[-1] == '\n') at = p;
    assert_non_null(at);
    size_t n = strcspn(at + 4, "\n");
    assert_true(n < RP_FEED_CURSOR_TEXT);
    memcpy(out, at + 4, n);
    out[n] = '\0';
}

/* The stream up to and with its nth event, cut there. */
void event_client_cut(char *stream, size_t n)
{
    char *p = stream;
    for (size_t i = 0; i < n; i++) {
        p = strstr(p, "\ndata: ");
        assert_non_null(p);
        p = strstr(p + 1, "\n\n");
        assert_non_null(p);
    }
    p[2] = '\0';
}

/* "number" of every event in turn; returns how many. */
size_t event_client_numbers(const char *stream, int *out, size_t max)
{
    size_t n = 0;
    for (const char *p = stream; (p = strstr(p, "\ndata: ")) != NULL; p++) {
        RP_CLEANUP(rp_json_decrefp) json_t *data = NULL;
        struct rp_error err = { 0 };
        assert_int_equal(rp_json_parse(p + 7, strcspn(p + 7, "\n"), &data, &err), 0);
        if (strcmp(rp_json_get_text(data, "event", ""), "audit.heads") == 0) continue; /* written by the way */
        assert_true(n < max);
        out[n++] = (int)rp_json_get_int(data, "number", -1);
    }
    return n;
}

/* They follow each other; returns how many. */
size_t event_client_expect_from(const char *stream, int first)
{
    size_t max = event_client_occurs(stream, "\ndata: ") + 1;
    int *got = calloc(max, sizeof *got);
    size_t n = event_client_numbers(stream, got, max);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(got[i], first + (int)i);
    free(got);
    return n;
}
