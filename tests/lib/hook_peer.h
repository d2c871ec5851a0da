/* SPDX-License-Identifier: Apache-2.0 */
/* hook_peer.h - a server on a real socket that calls out reach: it answers what a test says, one connection after the
 * other, each as long as the other side likes, unless an answer has no length or says that it closes. */
#ifndef RP_TEST_HOOK_PEER_H
#define RP_TEST_HOOK_PEER_H

#include <pthread.h>

#define HOOK_PEER_NETWORK "127.0.0.0/8" /* what must be allowed to reach it */

/* The whole answer, headers too, to this request, of which the body begins at `body`. NULL: the connection is closed; "":
 * nothing is said until the other side gives up. On the peer's thread. */
typedef const char *hook_peer_fn(void *ctx, const char *request, const char *body);

struct hook_peer {
    int fd;
    pthread_t thread;
    char url[64];
    hook_peer_fn *fn;
    void *ctx;
    int connections, requests; /* to be read once it has stopped, or between answers */
    char request[16384];       /* the last one */
};

void hook_peer_start(struct hook_peer *p, hook_peer_fn *fn, void *ctx);
void hook_peer_stop(struct hook_peer *p);

#endif
