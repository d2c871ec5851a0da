/* SPDX-License-Identifier: Apache-2.0 */
/* network.h - networks in CIDR, and whether they hold an address. An IPv4 network holds IPv4
 * addresses alone: ::ffff:127.0.0.1 is in none. */
#ifndef RP_BASE_NETWORK_H
#define RP_BASE_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_ip {
    uint8_t bytes[16]; /* IPv4: the first four */
    unsigned n;        /* 4 or 16 */
};

struct rp_network {
    struct rp_ip ip; /* what is behind the prefix is 0 */
    unsigned bits;
};

/* "10.0.0.0/8", "fd00::/8": nothing else, so no zone, no name, no bits behind the prefix. */
bool rp_network_parse(const char *text, size_t n, struct rp_network *out);
bool rp_network_holds(const struct rp_network *network, const struct rp_ip *ip);

/* Lists have one space between networks; "" is one of none. */
bool rp_networks_are(const char *list);
bool rp_networks_hold(const char *list, const struct rp_ip *ip);

#endif
