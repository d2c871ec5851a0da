/* SPDX-License-Identifier: Apache-2.0 */
#include "base/network.h"

#include <arpa/inet.h>
#include <string.h>

static bool parse_bits(const char *text, size_t n, unsigned most, unsigned *out)
{
    unsigned bits = 0;
    if (n == 0 || n > 3 || (text[0] == '0' && n > 1)) return false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        bits = bits * 10 + (unsigned)(text[i] - '0');
    }
    *out = bits;
    return bits <= most;
}

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned bytes = bits / 8, rest = bits % 8;
    if (memcmp(a, b, bytes) != 0) return false;
    return rest == 0 || (a[bytes] ^ b[bytes]) >> (8 - rest) == 0;
}

static bool has_bits_behind(const struct rp_network *network)
{
    for (unsigned i = network->bits; i < network->ip.n * 8; i++)
        if ((network->ip.bytes[i / 8] & 0x80 >> i % 8) != 0) return true;
    return false;
}

bool rp_network_parse(const char *text, size_t n, struct rp_network *out)
{
    char address[INET6_ADDRSTRLEN];
    const char *slash = memchr(text, '/', n);
    size_t length = slash != NULL ? (size_t)(slash - text) : n;
    struct rp_network made = { .ip.n = memchr(text, ':', length) != NULL ? 16 : 4 };
    if (slash == NULL || length >= sizeof address || memchr(text, 0, length) != NULL) return false;
    memcpy(address, text, length);
    address[length] = '\0';
    if (inet_pton(made.ip.n == 16 ? AF_INET6 : AF_INET, address, made.ip.bytes) != 1) return false;
    if (!parse_bits(slash + 1, n - length - 1, made.ip.n * 8, &made.bits) || has_bits_behind(&made)) return false;
    *out = made;
    return true;
}

bool rp_network_holds(const struct rp_network *network, const struct rp_ip *ip)
{
    return network->ip.n == ip->n && same_bits(network->ip.bytes, ip->bytes, network->bits);
}

/* The next network of the list; NULL: that was the last. */
static const char *next(const char *list, size_t *n)
{
    if (*list == '\0') return NULL;
    *n = strcspn(list, " ");
    return list + *n + (list[*n] == ' ');
}

bool rp_networks_are(const char *list)
{
    struct rp_network network;
    size_t n;
    for (const char *rest; (rest = next(list, &n)) != NULL; list = rest)
        if (!rp_network_parse(list, n, &network) || (list[n] == ' ' && *rest == '\0')) return false;
    return true;
}

bool rp_networks_hold(const char *list, const struct rp_ip *ip)
{
    struct rp_network network;
    size_t n;
    for (const char *rest; (rest = next(list, &n)) != NULL; list = rest)
        if (rp_network_parse(list, n, &network) && rp_network_holds(&network, ip)) return true;
    return false;
}
