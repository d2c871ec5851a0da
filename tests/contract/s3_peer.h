/* SPDX-License-Identifier: Apache-2.0 */
/* s3_peer.h - a server on the loopback that answers each request as a test wants, badly if need be.
 * A thread a connection. What fails here ends the test. */
#ifndef RP_TESTS_CONTRACT_S3_PEER_H
#define RP_TESTS_CONTRACT_S3_PEER_H

#include "store/s3/wire/wire.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define PEER_CONNECTIONS_MAX 4096

struct request {
    unsigned number;     /* from 0, over all connections */
    unsigned connection; /* likewise */
    char head[24576];    /* request line and headers */
    size_t body_bytes;
};

struct peer;
/* Answers on fd. False: the connection is closed then. */
typedef bool peer_answer_fn(struct peer *peer, int fd, const struct request *request);

/* One answer of a script. */
struct step {
    const char *raw; /* NULL: waits until the client closes; "": nothing */
    bool closes;
};

struct peer {
    peer_answer_fn *answer;
    bool (*welcome)(struct peer *peer, unsigned connection); /* NULL: all; false: closed before a byte is read */
    void *ctx;
    const struct step *steps; /* of peer_script; the last one again and again */
    size_t n_steps;
    /* the rest is the peer's own */
    char host[32];
    int fd;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopping;
    unsigned requests, connections, under_way, under_way_max;
    int fds[PEER_CONNECTIONS_MAX];
    pthread_t threads[PEER_CONNECTIONS_MAX];
};

void peer_start(struct peer *peer);
void peer_stop(struct peer *peer);
unsigned peer_requests(struct peer *peer);
unsigned peer_connections(struct peer *peer);
/* Until it has got so many; false if the peer stops before. */
bool peer_wait_requests(struct peer *peer, unsigned n);

peer_answer_fn peer_script;
void peer_send(int fd, const char *raw);
/* "HTTP/1.1 STATUS ...", headers ("" or lines with \r\n), Content-Length, body. */
void peer_reply(int fd, int status, const char *headers, const char *body);
/* The value of a header; "" without. */
const char *request_header(const struct request *request, const char *name, char out[512]);

#define REPLY(status, body_bytes, body)                                                                                \
    "HTTP/1.1 " status "\r\nContent-Length: " body_bytes "\r\nx-test: yes\r\n\r\n" body

/* ---- a wire to it ---- */

struct trial {
    struct peer peer;
    struct rp_s3_options options; /* of the credentials; access_key NULL: some that never change */
    struct s3_wire_options wire_options;
    struct s3_credentials *credentials;
    struct s3_wire *wire;
};
/* Set the peer's fields and any of wire_options first; 10 s and 20 s are its time-out and patience
 * unless set. */
void trial_open(struct trial *t);
void trial_close(struct trial *t); /* what is still open */
struct s3_call trial_call(const char *method, const char *key);
/* Runs one call and expects this code and, if it is 0, this status. */
void trial_run(struct trial *t, struct s3_call *call, int code, int status, const char *file, int line);
#define run_expecting(t, call, code, status) trial_run(t, call, code, status, __FILE__, __LINE__)
struct s3_wire_state trial_state(struct trial *t);

#endif
