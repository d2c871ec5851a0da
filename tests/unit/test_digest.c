/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <openssl/crypto.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/error.h"

static const char *hex_of(struct rp_digest *d, const void *bytes, size_t n, char out[RP_DIGEST_HEX])
{
    uint8_t digest[RP_DIGEST_BYTES];
    rp_digest_begin(d);
    rp_digest_add(d, bytes, n);
    rp_digest_end(d, digest);
    rp_digest_hex(digest, out);
    return out;
}

/* FIPS 180-4 examples, and lengths around a block. One context for all. */
static void known_texts_give_known_digests(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hex;
    } cases[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    };
    RP_CLEANUP(rp_digest_freep) struct rp_digest *d = rp_digest_new();
    assert_non_null(d);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char hex[RP_DIGEST_HEX];
        assert_string_equal(hex_of(d, cases[i].text, strlen(cases[i].text), hex), cases[i].hex);
    }
}

static void a_text_added_in_parts_gives_the_same_digest(void **state)
{
    (void)state;
    RP_CLEANUP(rp_digest_freep) struct rp_digest *d = rp_digest_new();
    char text[200], whole[RP_DIGEST_HEX], parts[RP_DIGEST_HEX];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)i;
    hex_of(d, text, sizeof text, whole);
    for (size_t cut = 0; cut <= sizeof text; cut++) {
        uint8_t digest[RP_DIGEST_BYTES];
        rp_digest_begin(d);
        rp_digest_add(d, text, cut);
        rp_digest_add(d, NULL, 0);
        rp_digest_add(d, text + cut, sizeof text - cut);
        rp_digest_end(d, digest);
        rp_digest_hex(digest, parts);
        assert_string_equal(parts, whole);
    }
}

static void an_integer_is_eight_bytes_big_endian(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        uint8_t bytes[8];
    } cases[] = {
        { 0, { 0 } },
        { 1, { 0, 0, 0, 0, 0, 0, 0, 1 } },
        { INT64_C(0x0102030405060708), { 1, 2, 3, 4, 5, 6, 7, 8 } },
        { -1, { 255, 255, 255, 255, 255, 255, 255, 255 } },
        { INT64_MIN, { 128, 0, 0, 0, 0, 0, 0, 0 } },
    };
    RP_CLEANUP(rp_digest_freep) struct rp_digest *d = rp_digest_new();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t digest[RP_DIGEST_BYTES];
        char expected[RP_DIGEST_HEX], hex[RP_DIGEST_HEX];
        hex_of(d, cases[i].bytes, 8, expected);
        rp_digest_begin(d);
        rp_digest_add_int(d, cases[i].value);
        rp_digest_end(d, digest);
        rp_digest_hex(digest, hex);
        assert_string_equal(hex, expected);
    }
}

static void begin_forgets_what_was_added_before(void **state)
{
    (void)state;
    RP_CLEANUP(rp_digest_freep) struct rp_digest *d = rp_digest_new();
    char hex[RP_DIGEST_HEX];
    rp_digest_begin(d);
    rp_digest_add(d, "left over", 9);
    assert_string_equal(hex_of(d, "abc", 3, hex), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void two_contexts_do_not_disturb_each_other(void **state)
{
    (void)state;
    RP_CLEANUP(rp_digest_freep) struct rp_digest *one = rp_digest_new();
    RP_CLEANUP(rp_digest_freep) struct rp_digest *two = rp_digest_new();
    uint8_t a[RP_DIGEST_BYTES], b[RP_DIGEST_BYTES];
    rp_digest_begin(one);
    rp_digest_begin(two);
    rp_digest_add(one, "ab", 2);
    rp_digest_add(two, "abc", 3);
    rp_digest_add(one, "c", 1);
    rp_digest_end(one, a);
    rp_digest_end(two, b);
    assert_memory_equal(a, b, sizeof a);
}

static void hex_keeps_leading_zeros(void **state)
{
    (void)state;
    uint8_t digest[RP_DIGEST_BYTES] = { 0x00, 0x0f, 0xf0, 0xa5 };
    char hex[RP_DIGEST_HEX];
    rp_digest_hex(digest, hex);
    assert_int_equal(strlen(hex), 64);
    assert_memory_equal(hex, "000ff0a500", 10);
}

/* RFC 4231, test cases 1, 2 and 6: a key of 20 bytes, a short one, one longer than a block. */
static void known_keys_give_known_macs(void **state)
{
    (void)state;
    uint8_t first[20], sixth[131], mac[RP_DIGEST_BYTES];
    char hex[RP_DIGEST_HEX];
    static const char larger[] = "Test Using Larger Than Block-Size Key - Hash Key First";
    memset(first, 0x0b, sizeof first);
    memset(sixth, 0xaa, sizeof sixth);
    assert_int_equal(rp_hmac(first, sizeof first, "Hi There", 8, mac), 0);
    rp_digest_hex(mac, hex);
    assert_string_equal(hex, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    assert_int_equal(rp_hmac("Jefe", 4, "what do ya want for nothing?", 28, mac), 0);
    rp_digest_hex(mac, hex);
    assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    assert_int_equal(rp_hmac(sixth, sizeof sixth, larger, sizeof larger - 1, mac), 0);
    rp_digest_hex(mac, hex);
    assert_string_equal(hex, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

/* ---- without memory ---- */

static bool refused;

static void *take(size_t n, const char *file, int line)
{
    (void)file, (void)line;
    return refused ? NULL : malloc(n);
}

static void *take_more(void *p, size_t n, const char *file, int line)
{
    (void)file, (void)line;
    return refused ? NULL : realloc(p, n);
}

static void give_back(void *p, const char *file, int line)
{
    (void)file, (void)line;
    free(p);
}

static void without_memory_the_code_says_so(void **state)
{
    char hex[RP_DIGEST_HEX];
    uint8_t mac[RP_DIGEST_BYTES];
    (void)state;
    assert_int_equal(rp_hmac("k", 1, "x", 1, mac), 0); /* the algorithms are fetched */
    refused = true;
    int of = rp_digest_of("x", 1, hex), hmac = rp_hmac("k", 1, "x", 1, mac);
    refused = false;
    assert_int_equal(of, RP_ENOMEM);
    assert_int_equal(hmac, RP_ENOMEM);
}

static void freeing_nothing_is_harmless(void **state)
{
    (void)state;
    rp_digest_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_texts_give_known_digests),
        cmocka_unit_test(a_text_added_in_parts_gives_the_same_digest),
        cmocka_unit_test(an_integer_is_eight_bytes_big_endian),
        cmocka_unit_test(begin_forgets_what_was_added_before),
        cmocka_unit_test(two_contexts_do_not_disturb_each_other),
        cmocka_unit_test(hex_keeps_leading_zeros),
        cmocka_unit_test(known_keys_give_known_macs),
        cmocka_unit_test(without_memory_the_code_says_so),
        cmocka_unit_test(freeing_nothing_is_harmless),
    };
    if (CRYPTO_set_mem_functions(take, take_more, give_back) != 1) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
