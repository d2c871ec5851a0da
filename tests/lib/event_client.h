/* SPDX-License-Identifier: Apache-2.0 */
/* event_client.h - a client of live events on a socket of its own, which hears as much or as little
 * as a test wants. What fails ends the test. */
#ifndef RP_TESTS_LIB_EVENT_CLIENT_H
#define RP_TESTS_LIB_EVENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "feed/cursor.h"

#define PATIENCE_MS 20000

struct event_client {
    int fd;
    char *text; /* everything that came, headers and all */
    size_t len, cap;
    bool closed;
};

/* GET /QUERY on this port of the loopback; last_id NULL: without one. */
struct event_client event_client_open(int port, const char *query, const char *last_id);
void event_client_close(struct event_client *e);
/* Whatever is there, waiting at most so long for it. */
void event_client_listen(struct event_client *e, int wait_ms);
/* The stream itself: without headers and without the borders of chunks; `over` (may be NULL) if it
 * came to its end. To be freed. */
char *event_client_stream(const struct event_client *e, bool *over);
/* Waits until the stream has `n` of this; whole blocks only. To be freed. */
char *event_client_until(struct event_client *e, const char *what, size_t n);
void event_client_until_over(struct event_client *e);
void event_client_until_quiet(struct event_client *e);

/* ---- of a stream ---- */

size_t event_client_occurs(const char *text, const char *what);
void event_client_last_id(const char *stream, char out[RP_FEED_CURSOR_TEXT]);
/* Ends the stream after its nth event. */
void event_client_cut(char *stream, size_t n);
/* "number" of every event in turn, heads of lanes left out; returns how many. */
size_t event_client_numbers(const char *stream, int *out, size_t max);
/* They follow each other from `first` on; returns how many. */
size_t event_client_expect_from(const char *stream, int first);

#endif
