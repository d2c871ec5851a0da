/* SPDX-License-Identifier: Apache-2.0 */
/* handshake.h - every server of the configuration that is called, and a message that asks nothing of
 * it: for `doctor`. */
#ifndef RP_CLI_HANDSHAKE_H
#define RP_CLI_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_config;
struct rp_error;

struct rp_endpoint {
    char name[112]; /* its setting: "alerts.webhook" */
    const char *url;
    const char *secrets[2];
};

/* The endpoint with this number, from 0; false: there are no more. */
bool rp_endpoint_of(const struct rp_config *config, size_t number, struct rp_endpoint *out);
/* Sends {"event":"handshake","environment":...}, signed. 0: it was taken, with this status. */
int rp_endpoint_shake(const struct rp_endpoint *endpoint, const struct rp_config *config, int64_t now_ms, long *status,
                      struct rp_error *err);
bool rp_endpoint_is_signed(const struct rp_endpoint *endpoint);

#endif
