/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/id.h"
#include "http/content/signed_url.h"

static const char first_key[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
static const char other_key[] = "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
static const uint8_t checksum[RP_DIGEST_BYTES] = { 1, 2, 3 }, other_checksum[RP_DIGEST_BYTES] = { 1, 2, 4 };

static const struct rp_grant granted = {
    .method = "PUT",
    .file_id = 4711,
    .store = "main",
    .key = "a/b",
    .size_bytes = 10,
    .content_type = "text/plain",
    .checksum = checksum,
    .expires_at_ms = 1794700000000,
};

static bool verifies(const struct rp_grant *grant, const char *key, const char *signature)
{
    return rp_grant_verify(grant, &key, 1, signature);
}

static void signed_with(const struct rp_grant *grant, const char *key, char out[RP_DIGEST_HEX])
{
    struct rp_error err = { 0 };
    assert_int_equal(rp_grant_sign(grant, key, out, &err), 0);
    assert_int_equal(strlen(out), 64);
}

static void a_signature_fits_its_grant_and_key_only(void **state)
{
    char signature[RP_DIGEST_HEX], wrong[RP_DIGEST_HEX];
    (void)state;
    signed_with(&granted, first_key, signature);
    assert_true(verifies(&granted, first_key, signature));
    assert_false(verifies(&granted, other_key, signature));
    for (size_t i = 0; i < 64; i++) {
        memcpy(wrong, signature, sizeof wrong);
        wrong[i] = wrong[i] == '0' ? '1' : '0';
        assert_false(verifies(&granted, first_key, wrong));
    }
    assert_false(verifies(&granted, first_key, ""));
    assert_false(verifies(&granted, first_key, NULL));
    memcpy(wrong, signature, sizeof wrong);
    wrong[63] = '\0';
    assert_false(verifies(&granted, first_key, wrong));
}

/* The signature as another program would compute it: hmac over length-prefixed fields. */
static void the_bytes_that_are_signed_stay_as_they_are(void **state)
{
    char signature[RP_DIGEST_HEX];
    (void)state;
    signed_with(&granted, first_key, signature);
    assert_string_equal(signature, "03aeda31d5453529f944adee7c5160451de631e82750ee5a73400a46c99764bd");
}

static void every_member_of_a_grant_is_signed(void **state)
{
    char signature[RP_DIGEST_HEX], plain[RP_DIGEST_HEX];
    (void)state;
    signed_with(&granted, first_key, signature);
    struct rp_grant others[10];
    for (size_t i = 0; i < 10; i++)
        others[i] = granted;
    others[0].method = "GET";
    others[1].file_id++;
    others[2].store = "mai";
    others[3].key = "a/b/";
    others[4].size_bytes++;
    others[5].content_type = "";
    others[6].checksum = other_checksum;
    others[7].checksum = NULL;
    others[8].expires_at_ms++;
    /* The same bytes in a row, cut elsewhere. */
    others[9].store = "maina/";
    others[9].key = "b";
    for (size_t i = 0; i < 10; i++)
        assert_false(verifies(&others[i], first_key, signature));
    struct rp_grant dash = granted;
    dash.checksum = NULL;
    signed_with(&dash, first_key, plain);
    assert_true(verifies(&dash, first_key, plain));
}

static void any_of_the_keys_verifies(void **state)
{
    char signature[RP_DIGEST_HEX];
    const char *const both[] = { first_key, other_key }, *const turned[] = { other_key, first_key };
    (void)state;
    signed_with(&granted, other_key, signature);
    assert_true(rp_grant_verify(&granted, both, 2, signature));
    assert_true(rp_grant_verify(&granted, turned, 2, signature));
    assert_false(rp_grant_verify(&granted, both, 1, signature));
    assert_false(rp_grant_verify(&granted, both, 0, signature));
}

static void a_bad_key_signs_and_verifies_nothing(void **state)
{
    char signature[RP_DIGEST_HEX] = "untouched", odd[RP_DIGEST_HEX];
    struct rp_error err = { 0 };
    (void)state;
    memset(odd, 'g', 64);
    odd[64] = '\0';
    const char *const bad[] = { NULL, "", "00", odd };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(rp_grant_sign(&granted, bad[i], signature, &err), RP_ECONFIG);
        assert_string_equal(signature, "untouched");
    }
    signed_with(&granted, first_key, signature);
    assert_false(rp_grant_verify(&granted, bad, 4, signature));
}

static void what_is_too_long_is_refused(void **state)
{
    static char key[70000];
    char signature[RP_DIGEST_HEX];
    struct rp_error err = { 0 };
    struct rp_grant grant = granted;
    (void)state;
    memset(key, 'k', sizeof key - 1);
    grant.key = key;
    assert_int_equal(rp_grant_sign(&grant, first_key, signature, &err), RP_ETOOBIG);
    key[1024] = '\0';
    signed_with(&grant, first_key, signature);
}

static void a_url_has_its_file_end_and_signature(void **state)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(65536);
    char signature[RP_DIGEST_HEX], want[256], id[RP_ID_TEXT];
    const char *url;
    struct rp_error err = { 0 };
    struct rp_grant grant = granted;
    (void)state;
    rp_id_format(RP_ID_FILE, granted.file_id, id);
    for (int i = 0; i < 2; i++) {
        grant.method = i ? "GET" : "PUT";
        signed_with(&grant, first_key, signature);
        snprintf(want, sizeof want, "https://files.example/v1/%s/%s?expires=1794700000000&signature=%s",
                 i ? "content" : "uploads", id, signature);
        assert_int_equal(rp_signed_url(&grant, "https://files.example", first_key, &arena, &url, &err), 0);
        assert_string_equal(url, want);
    }
}

static void the_base_is_public_or_where_we_listen(void **state)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(65536);
    struct rp_config config = { .listen = "127.0.0.1:0", .public_url = "", .tls_certificate = "" };
    (void)state;
    assert_string_equal(rp_url_base(&config, "127.0.0.1:8420", &arena), "http://127.0.0.1:8420");
    assert_string_equal(rp_url_base(&config, NULL, &arena), "http://127.0.0.1:0");
    config.tls_certificate = "/etc/cert.pem";
    assert_string_equal(rp_url_base(&config, "127.0.0.1:8420", &arena), "https://127.0.0.1:8420");
    config.public_url = "https://files.example/base//";
    assert_string_equal(rp_url_base(&config, "127.0.0.1:8420", &arena), "https://files.example/base");
    const char *url = NULL;
    struct rp_error err = { 0 };
    assert_int_equal(rp_signed_url(&granted, "http://x", "no key", &arena, &url, &err), RP_ECONFIG);
    assert_null(url);
}

static void a_grant_is_made_of_its_file(void **state)
{
    const struct rp_file file = { .id = 7, .key = "k", .size_bytes = 3, .content_type = NULL, .checksum = checksum };
    (void)state;
    struct rp_grant grant = rp_grant_of("GET", &file, "main", 99);
    assert_string_equal(grant.content_type, "");
    assert_string_equal(grant.key, "k");
    assert_int_equal(grant.file_id, 7);
    assert_int_equal(grant.expires_at_ms, 99);
    assert_ptr_equal(grant.checksum, checksum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signature_fits_its_grant_and_key_only),
        cmocka_unit_test(the_bytes_that_are_signed_stay_as_they_are),
        cmocka_unit_test(every_member_of_a_grant_is_signed),
        cmocka_unit_test(any_of_the_keys_verifies),
        cmocka_unit_test(a_bad_key_signs_and_verifies_nothing),
        cmocka_unit_test(what_is_too_long_is_refused),
        cmocka_unit_test(a_url_has_its_file_end_and_signature),
        cmocka_unit_test(the_base_is_public_or_where_we_listen),
        cmocka_unit_test(a_grant_is_made_of_its_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
