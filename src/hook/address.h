/* SPDX-License-Identifier: Apache-2.0 */
/* address.h - may a call go to this address? Judged by one table of networks.
 *
 * N1  Public addresses may be called. Those of the table may not: this host, private and shared
 *     networks, link-local ones (where clouds keep their metadata), multicast, what is reserved,
 *     and all forms of IPv6 that carry an IPv4 address.
 * N2  `allow` lifts that for the networks that it names. A form that carries an IPv4 address needs
 *     both: that its own network is named, and that the carried address may be called.
 * N3  What is no IPv4 or IPv6 address may not be called. */
#ifndef RP_HOOK_ADDRESS_H
#define RP_HOOK_ADDRESS_H

#include <stdbool.h>

struct sockaddr;

/* A row of the table. */
struct rp_address_rule {
    const char *network; /* in CIDR; NULL: of N3 */
    const char *what;    /* in words; NULL: public */
    unsigned v4_at;      /* it carries an IPv4 address at this byte; 0: none */
    bool inverted;       /* whose bits are inverted */
};

/* If not, `why` is the rule that says so. `allow`: setting outbound.allow; NULL: none. */
bool rp_address_may_be_called(const struct sockaddr *to, const char *allow, const struct rp_address_rule **why);

#endif
