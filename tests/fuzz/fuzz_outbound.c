/* SPDX-License-Identifier: Apache-2.0 */
/* Where calls out may go, and what signs them. The first 16 bytes are an address, what follows is text: a list of networks,
 * and base64. Nothing that is plainly ours may be called unless a network of the list holds it; a network holds itself; base64
 * has one spelling. */
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/network.h"
#include "base/text/base64.h"
#include "hook/address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool is_ours(const uint8_t b[4])
{
    return b[0] == 0 || b[0] == 10 || b[0] == 127 || b[0] >= 224 || (b[0] == 169 && b[1] == 254) ||
           (b[0] == 172 && b[1] >> 4 == 1) || (b[0] == 192 && b[1] == 168) || (b[0] == 100 && b[1] >> 6 == 1);
}

static void judge(const struct sockaddr *to, const struct rp_ip *ip, bool ours, const char *list)
{
    const struct rp_address_rule *why;
    bool may = rp_address_may_be_called(to, NULL, &why), may_with = rp_address_may_be_called(to, list, &why);
    RP_ASSERT(!(may && ours));
    RP_ASSERT(!(may && !may_with));
    RP_ASSERT(may || !may_with || rp_networks_hold(list, ip));
    RP_ASSERT(rp_address_may_be_called(to, "0.0.0.0/0 ::/0", &why));
}

static void try_address(const uint8_t bytes[16], const char *list)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    struct rp_ip four = { .n = 4 }, six = { .n = 16 };
    memcpy(&v4.sin_addr, memcpy(four.bytes, bytes, 4), 4);
    memcpy(&v6.sin6_addr, memcpy(six.bytes, bytes, 16), 16);
    judge((struct sockaddr *)&v4, &four, is_ours(four.bytes), list);
    judge((struct sockaddr *)&v6, &six, bytes[0] >> 5 != 1 || (bytes[0] == 0x20 && bytes[1] == 2), list);
}

static void try_text(const char *text, size_t n)
{
    struct rp_network network;
    if (rp_network_parse(text, n, &network)) RP_ASSERT(rp_network_holds(&network, &network.ip));
    RP_CLEANUP(rp_freep) uint8_t *bytes = malloc(RP_BASE64_BYTES(n) + 1);
    RP_CLEANUP(rp_freep) char *again = malloc(RP_BASE64_TEXT(RP_BASE64_BYTES(n)));
    RP_ASSERT(bytes && again);
    int64_t made = rp_base64_parse(text, n, bytes);
    RP_ASSERT(made == rp_base64_parse(text, n, NULL));
    if (made < 0) return;
    rp_base64(bytes, (size_t)made, again);
    RP_ASSERT(strlen(again) == n && memcmp(again, text, n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 16) return 0;
    RP_CLEANUP(rp_freep) char *text = malloc(n - 16 + 1);
    RP_ASSERT(text);
    memcpy(text, data + 16, n - 16);
    text[n - 16] = '\0';
    try_address(data, text);
    try_text(text, n - 16);
    return 0;
}
