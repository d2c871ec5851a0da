/* SPDX-License-Identifier: Apache-2.0 */
/* Where a call out may go: more than 300 URLs, sent through libcurl as any call is. This program takes the places of
 * getaddrinfo() and connect(), so that names have the addresses that the test wants, nothing leaves the machine, and every
 * address that would have been connected to is seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/network.h"
#include "hook/address.h"
#include "hook/hook.h"

#define PUBLIC "93.184.216.34"

/* ---- the world ---- */

static const struct {
    const char *name, *addresses; /* with spaces between */
    const char *later;            /* the second time it is asked; NULL: the same */
} names[] = {
    { .name = "public.test", .addresses = PUBLIC },
    { .name = "public6.test", .addresses = "2606:2800:220:1::1" },
    { .name = "localhost", .addresses = "127.0.0.1 ::1" }, /* libcurl knows it, but not with a dot behind it */
    { .name = "loopback.test", .addresses = "127.0.0.1" },
    { .name = "loopback6.test", .addresses = "::1" },
    { .name = "127.0.0.1.nip.test", .addresses = "127.0.0.1" },
    { .name = "128.0.0.1.nip.test", .addresses = "127.0.0.1" },
    { .name = "zero.test", .addresses = "0.0.0.0" },
    { .name = "private.test", .addresses = "10.1.2.3" },
    { .name = "router.test", .addresses = "192.168.1.1" },
    { .name = "private6.test", .addresses = "fd12:3456::1" },
    { .name = "metadata.test", .addresses = "169.254.169.254" },
    { .name = "metadata.google.internal", .addresses = "169.254.169.254" },
    { .name = "multicast.test", .addresses = "224.0.0.251" },
    { .name = "mapped.test", .addresses = "::ffff:127.0.0.1" },
    { .name = "nat64.test", .addresses = "64:ff9b::7f00:1" },
    { .name = "mixed.test", .addresses = "10.0.0.1 127.0.0.1 " PUBLIC },
    { .name = "mixed6.test", .addresses = "::1 fe80::1 " PUBLIC },
    { .name = "allprivate.test", .addresses = "10.0.0.1 ::1 192.168.0.1 fd00::1" },
    { .name = "rebinding.test", .addresses = PUBLIC, .later = "127.0.0.1" },
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* libcurl asks for names on a thread of its own */
static int asked;                                        /* how often, in this call */
static char connected[512];                              /* addresses, with spaces between */

typedef int lookup(const char *, const char *, const struct addrinfo *, struct addrinfo **);

/* What stands there in numbers is left to libc, which asks nobody then. */
static int look_up_number(const char *text, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    static lookup *real;
    struct addrinfo numeric = hints != NULL ? *hints : (struct addrinfo){ 0 };
    if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    numeric.ai_flags |= AI_NUMERICHOST;
    numeric.ai_family = AF_UNSPEC;
    return real(text, service, &numeric, out);
}

static bool is_name(const char *asked_for, const char *name)
{
    size_t n = strlen(name);
    return strncasecmp(asked_for, name, n) == 0 && (strcmp(asked_for + n, "") == 0 || strcmp(asked_for + n, ".") == 0);
}

static int look_up_all(const char *addresses, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    char copy[200], *rest = copy;
    struct addrinfo **end = out;
    snprintf(copy, sizeof copy, "%s", addresses);
    for (const char *one; (one = strsep(&rest, " ")) != NULL;) {
        if (look_up_number(one, service, hints, end) != 0) abort();
        while (*end != NULL)
            end = &(*end)->ai_next;
    }
    return 0;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *req, struct addrinfo **pai)
{
    pthread_mutex_lock(&lock);
    int before = asked++;
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; name != NULL && i < sizeof names / sizeof names[0]; i++) {
        if (!is_name(name, names[i].name)) continue;
        const char *addresses = before > 0 && names[i].later != NULL ? names[i].later : names[i].addresses;
        return look_up_all(addresses, service, req, pai);
    }
    return look_up_number(name, service, req, pai);
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    char text[INET6_ADDRSTRLEN] = "?";
    (void)fd, (void)len;
    if (addr->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)addr)->sin_addr, text, 16);
    if (addr->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr, text, sizeof text);
    pthread_mutex_lock(&lock);
    size_t used = strlen(connected);
    snprintf(connected + used, sizeof connected - used, "%s%s", used > 0 ? " " : "", text);
    pthread_mutex_unlock(&lock);
    errno = ECONNREFUSED;
    return -1;
}

/* A machine without IPv6 is asked for the same addresses. */
int socket(int domain, int type, int protocol)
{
    return (int)syscall(SYS_socket, domain == AF_INET6 ? AF_INET : domain, type, protocol);
}

/* ---- calls ---- */

static int call(const char *url, const char *allow, struct rp_error *err)
{
    struct rp_hook_answer answer;
    struct rp_hook_call how = {
        .url = url, .secrets = { "hush" }, .id = "msg_1", .body = "{}", .body_bytes = 2, .at_ms = 1000, .allow = allow
    };
    pthread_mutex_lock(&lock);
    asked = 0;
    connected[0] = 0;
    pthread_mutex_unlock(&lock);
    *err = (struct rp_error){ 0 };
    int r = rp_hook_send(&how, &answer, err);
    assert_int_equal(answer.status, 0);
    assert_true(r < 0);
    assert_null(strstr(err->text, "hush"));
    return r;
}

/* NULL: it is as the corpus says. */
static const char *judge(const char *what, const char *url, const char *allow)
{
    struct rp_error err;
    int r = call(url, allow, &err);
    bool calls = connected[0] != 0;
    if (strcmp(what, "refused") == 0) {
        if (calls || r != RP_EDENIED || strstr(err.text, "the address is") == NULL) return "not refused by its address";
        return strstr(err.hint, "outbound: { allow: [") != NULL ? NULL : "the hint does not name the setting";
    }
    if (strcmp(what, "invalid") == 0) return !calls && r == RP_ECONFIG ? NULL : "not refused by its form";
    if (strcmp(what, "fails") == 0) return !calls ? NULL : "something was connected to";
    if (r != RP_EUNAVAILABLE) return "a failed connection cannot be repeated";
    return strcmp(connected, what) == 0 ? NULL : "another address was connected to, or none";
}

static void every_url_of_the_corpus_goes_where_it_may(void **state)
{
    char path[4096], line[1024];
    int n = 0, wrong = 0;
    (void)state;
    const char *tree = getenv("REPRIEVE_TREE");
    assert_non_null(tree);
    snprintf(path, sizeof path, "%s/tests/unit/outbound_urls.txt", tree);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#') continue;
        line[strcspn(line, "\n")] = 0;
        char *rest = line;
        const char *what = strsep(&rest, "\t"), *url = strsep(&rest, "\t");
        char *allow = strsep(&rest, "\t");
        assert_non_null(url);
        for (char *comma = allow; comma != NULL && (comma = strchr(comma, ',')) != NULL;)
            *comma = ' ';
        const char *mistake = judge(what, url, allow);
        if (mistake != NULL) print_error("%s %s: %s (connected to: %s)\n", what, url, mistake, connected);
        wrong += mistake != NULL;
        n++;
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(wrong, 0);
    assert_true(n > 300);
}

static void a_name_is_asked_for_once(void **state)
{
    struct rp_error err;
    (void)state;
    assert_int_equal(call("http://rebinding.test/", NULL, &err), RP_EUNAVAILABLE);
    assert_int_equal(asked, 1);
    assert_string_equal(connected, PUBLIC);
}

static void a_proxy_of_the_environment_is_not_used(void **state)
{
    static const char *const variables[] = { "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY" };
    struct rp_error err;
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        setenv(variables[i], "http://" PUBLIC ":3128", 1);
    assert_int_equal(call("http://10.0.0.1/", NULL, &err), RP_EDENIED);
    assert_string_equal(connected, "");
    assert_int_equal(call("http://1.1.1.1/", NULL, &err), RP_EUNAVAILABLE);
    assert_string_equal(connected, "1.1.1.1");
}

/* ---- the judgement alone ---- */

static bool may(const char *text, const char *allow)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    const struct rp_address_rule *why;
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return rp_address_may_be_called((struct sockaddr *)&v4, allow, &why);
    assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return rp_address_may_be_called((struct sockaddr *)&v6, allow, &why);
}

static void what_is_no_ip_address_is_not_called(void **state)
{
    struct sockaddr local = { .sa_family = AF_UNIX };
    const struct rp_address_rule *why = NULL;
    (void)state;
    assert_false(rp_address_may_be_called(&local, "0.0.0.0/0 ::/0", &why));
    assert_null(why->network);
}

static void all_may_be_called_where_all_is_allowed(void **state)
{
    static const char *const addresses[] = {
        "127.0.0.1",    "10.0.0.1",        "::1",     "::ffff:10.0.0.1", "64:ff9b::a00:1",
        "2002:a00:1::", "2001::f5ff:fffe", "fe80::1", "ff02::1",         "::"
    };
    (void)state;
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        assert_false(may(addresses[i], NULL));
        assert_false(may(addresses[i], ""));
        assert_true(may(addresses[i], "0.0.0.0/0 ::/0"));
    }
}

/* ---- networks ---- */

static void networks_are_read_as_they_are_written(void **state)
{
    static const char *const good[] = { "0.0.0.0/0", "10.0.0.0/8",    "10.1.2.3/32", "128.0.0.0/1",
                                        "::/0",      "fd00:1:2::/48", "::1/128",     "::ffff:0:0/96" };
    static const char *const bad[] = { "",
                                       "10.0.0.0",
                                       "10.0.0.0/",
                                       "10.0.0.0/33",
                                       "10.0.0.0/08",
                                       "10.0.0.0/8 ",
                                       " 10.0.0.0/8",
                                       "10.0.0.1/8",
                                       "10.0.0/8",
                                       "10.0.0.0/-1",
                                       "10.0.0.0/+8",
                                       "0x0a.0.0.0/8",
                                       "010.0.0.0/8",
                                       "::/129",
                                       "fe80::%lo/64",
                                       "fd00::1/8",
                                       "localhost/8",
                                       "10.0.0.0/8/8",
                                       "/8",
                                       "10.0.0.0/1000",
                                       "[::1]/128",
                                       "*",
                                       "10.0.0.0-10.1.0.0",
                                       "10.0.0.0/255.0.0.0" };
    struct rp_network network;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(rp_network_parse(good[i], strlen(good[i]), &network));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (rp_network_parse(bad[i], strlen(bad[i]), &network)) fail_msg("%s was read", bad[i]);
    assert_false(rp_network_parse("10.0.0.0\0/8", 11, &network));
    assert_true(rp_networks_are("") && rp_networks_are("10.0.0.0/8") && rp_networks_are("10.0.0.0/8 ::1/128"));
    assert_false(rp_networks_are(" ") || rp_networks_are("10.0.0.0/8 ") || rp_networks_are("10.0.0.0/8  ::1/128") ||
                 rp_networks_are("10.0.0.0/8,::1/128"));
}

static void a_network_holds_what_shares_its_bits(void **state)
{
    static const struct {
        const char *network, *address;
        bool holds;
    } cases[] = { { "10.0.0.0/8", "10.255.255.255", true },
                  { "10.0.0.0/8", "11.0.0.0", false },
                  { "172.16.0.0/12", "172.31.0.1", true },
                  { "172.16.0.0/12", "172.32.0.0", false },
                  { "192.168.1.1/32", "192.168.1.1", true },
                  { "192.168.1.1/32", "192.168.1.0", false },
                  { "0.0.0.0/0", "255.255.255.255", true },
                  { "fc00::/7", "fdff::1", true },
                  { "fc00::/7", "fe00::1", false },
                  { "128.0.0.0/1", "127.255.255.255", false },
                  { "128.0.0.0/1", "200.0.0.0", true },
                  { "::/0", "::1", true },
                  { "2001:db8::/33", "2001:db8:8000::", false } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rp_ip ip = { .n = strchr(cases[i].address, ':') != NULL ? 16 : 4 };
        assert_int_equal(inet_pton(ip.n == 16 ? AF_INET6 : AF_INET, cases[i].address, ip.bytes), 1);
        assert_int_equal(rp_networks_hold(cases[i].network, &ip), cases[i].holds);
    }
    struct rp_ip v4 = { .n = 4 }, v6 = { .n = 16 };
    assert_false(rp_networks_hold("::/0", &v4));
    assert_false(rp_networks_hold("0.0.0.0/0", &v6));
    assert_true(rp_networks_hold("10.0.0.0/8 ::/0", &v6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_url_of_the_corpus_goes_where_it_may),
        cmocka_unit_test(a_name_is_asked_for_once),
        cmocka_unit_test(a_proxy_of_the_environment_is_not_used),
        cmocka_unit_test(what_is_no_ip_address_is_not_called),
        cmocka_unit_test(all_may_be_called_where_all_is_allowed),
        cmocka_unit_test(networks_are_read_as_they_are_written),
        cmocka_unit_test(a_network_holds_what_shares_its_bits),
    };
    return cmocka_run_group_tests_name("outbound", tests, NULL, NULL);
}
