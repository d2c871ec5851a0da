/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/address.h"

#include "base/assert.h"
#include "base/network.h"

#include <netinet/in.h>
#include <string.h>

/* The first that holds an address counts. After IANA's registries of special-purpose addresses, and
 * what clouds use beyond them. IPv4 that no row names is public; IPv6 is so in 2000::/3 alone. */
static const struct rp_address_rule rules[] = {
    { .network = "0.0.0.0/8", .what = "this host" },
    { .network = "10.0.0.0/8", .what = "a private network" },
    { .network = "100.64.0.0/10", .what = "a carrier's shared network" },
    { .network = "127.0.0.0/8", .what = "loopback" },
    { .network = "169.254.0.0/16", .what = "link-local, where clouds keep their metadata" },
    { .network = "172.16.0.0/12", .what = "a private network" },
    { .network = "192.0.0.0/24", .what = "reserved for protocols" },
    { .network = "192.0.2.0/24", .what = "reserved for documentation" },
    { .network = "192.88.99.0/24", .what = "a relay of 6to4" },
    { .network = "192.168.0.0/16", .what = "a private network" },
    { .network = "198.18.0.0/15", .what = "reserved for benchmarks" },
    { .network = "198.51.100.0/24", .what = "reserved for documentation" },
    { .network = "203.0.113.0/24", .what = "reserved for documentation" },
    { .network = "168.63.129.16/32", .what = "the platform of Azure" },
    { .network = "224.0.0.0/4", .what = "multicast" },
    { .network = "240.0.0.0/4", .what = "reserved" },
    { .network = "::/128", .what = "this host" },
    { .network = "::1/128", .what = "loopback" },
    { .network = "::/96", .what = "an IPv4 address in an old form", .v4_at = 12 },
    { .network = "::ffff:0:0/96", .what = "a mapped IPv4 address", .v4_at = 12 },
    { .network = "::ffff:0:0:0/96", .what = "a translated IPv4 address", .v4_at = 12 },
    { .network = "64:ff9b::/96", .what = "an IPv4 address behind NAT64", .v4_at = 12 },
    { .network = "64:ff9b:1::/48", .what = "a private NAT64" },
    { .network = "2001::/32", .what = "an IPv4 address behind Teredo", .v4_at = 12, .inverted = true },
    { .network = "2001::/23", .what = "reserved for protocols" },
    { .network = "2001:db8::/32", .what = "reserved for documentation" },
    { .network = "2002::/16", .what = "an IPv4 address in 6to4", .v4_at = 2 },
    { .network = "3fff::/20", .what = "reserved for documentation" },
    { .network = "2000::/3" },
    { .network = "fc00::/7", .what = "a private network" },
    { .network = "fe80::/10", .what = "link-local" },
    { .network = "fec0::/10", .what = "a private network in an old form" },
    { .network = "ff00::/8", .what = "multicast" },
    { .network = "::/0", .what = "reserved" },
};
static const struct rp_address_rule not_ip = { .what = "neither IPv4 nor IPv6" };

static bool read_ip(const struct sockaddr *from, struct rp_ip *out)
{
    *out = (struct rp_ip){ 0 };
    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)from;
        memcpy(out->bytes, &v4->sin_addr, out->n = 4);
    } else if (from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)from;
        memcpy(out->bytes, &v6->sin6_addr, out->n = 16);
    }
    return out->n != 0;
}

/* NULL: none speaks of it. */
static const struct rp_address_rule *rule_of(const struct rp_ip *ip)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct rp_network network;
        bool read = rp_network_parse(rules[i].network, strlen(rules[i].network), &network);
        RP_ASSERT(read);
        if (rp_network_holds(&network, ip)) return &rules[i];
    }
    return NULL;
}

static struct rp_ip carried(const struct rp_address_rule *rule, const struct rp_ip *ip)
{
    struct rp_ip v4 = { .n = 4 };
    for (unsigned i = 0; i < 4; i++)
        v4.bytes[i] = rule->inverted ? (uint8_t)~ip->bytes[rule->v4_at + i] : ip->bytes[rule->v4_at + i];
    return v4;
}

bool rp_address_may_be_called(const struct sockaddr *to, const char *allow, const struct rp_address_rule **why)
{
    struct rp_ip ip;
    *why = &not_ip;
    if (!read_ip(to, &ip)) return false;
    for (;;) { /* twice at most: what IPv6 carries is IPv4 */
        const struct rp_address_rule *rule = rule_of(&ip);
        if (rule == NULL || rule->what == NULL) return true;
        *why = rule;
        if (allow == NULL || !rp_networks_hold(allow, &ip)) return false;
        if (rule->v4_at == 0) return true;
        RP_ASSERT(ip.n == 16);
        ip = carried(rule, &ip);
    }
}
