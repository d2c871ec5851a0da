/* SPDX-License-Identifier: Apache-2.0 */
/* http.h - a server in this process, over a world (world.h), and a client for it.
 *
 * Everything here ends the test when it fails, unless it says otherwise. Calls may be made from
 * several threads. */
#ifndef RP_TESTS_LIB_HTTP_H
#define RP_TESTS_LIB_HTTP_H

#include "catalog/token.h"
#include "catalog/writer/writer.h"
#include "http/server/server.h"
#include "lib/world.h"
#include "metrics/metrics.h"

#include <jansson.h>

struct served {
    struct world w;
    struct rp_arena arena;
    struct rp_config config; /* change it in `tune` of served_make */
    struct rp_writers *writers;
    struct rp_server *server;
    char address[64]; /* where it listens; stays when it has stopped */
    struct rp_metrics *metrics;
    struct rp_log *log;
    char log_file[128];
    size_t queue_max;            /* of the writers; 0: 1000 */
    char admin[RP_TOKEN_SECRET]; /* a token that may everything */
};

void served_make(struct served *s, enum dbs_kind kind, void (*tune)(struct served *s)); /* tune may be NULL */
void served_stop(struct served *s, int64_t patience_ms);                                /* the server and the writers */
void served_drop(struct served *s);                                                     /* stops what still runs */
/* A new bearer token; tenant NULL: an admin. `secret` is written. Returns its id. */
int64_t served_token(struct served *s, const char *tenant, unsigned scopes, int64_t lasts_ms,
                     char secret[RP_TOKEN_SECRET]);
int64_t served_secret(struct served *s, enum rp_token_kind kind, const char *tenant, unsigned scopes, int64_t lasts_ms,
                      char secret[RP_TOKEN_SECRET]);

struct answer {
    long status; /* 0: no answer */
    char *body;  /* never NULL */
    size_t n;
    char headers[4096]; /* as they came, lines */
    json_t *json;       /* the body, if it is JSON */
};

struct call {
    const char *method, *path;
    const char *token;  /* NULL: none */
    const char *body;   /* NULL: none; sent as JSON */
    size_t body_n;      /* 0: strlen(body) */
    const char *type;   /* Content-Type of the body; NULL: application/json; "": none */
    const char *key;    /* Idempotency-Key */
    const char *header; /* one more line */
    const char *from;   /* the client's own address; NULL: any */
};
struct answer http_call(const struct served *s, const struct call *call);
void answer_done(struct answer *a);
/* A header's value, NULL without. */
const char *answer_header(const struct answer *a, const char *name, char out[256]);
/* The call's answer must have this status (and this code, unless NULL); the answer is released. */
void http_expect(const struct served *s, const struct call *call, long status, const char *code, const char *file,
                 int line);
#define expect(s, call, status, code) http_expect(s, call, status, code, __FILE__, __LINE__)

/* A bare connection. */
int http_connect(const struct served *s);
void http_write(int fd, const void *bytes, size_t n); /* a peer that has closed is fine */
/* Everything until the peer closes or `enough` bytes are there; the text is NUL-terminated. Waits
 * at most 20 s. */
size_t http_read(int fd, char *out, size_t size, size_t enough);

#endif
