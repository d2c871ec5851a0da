/* SPDX-License-Identifier: Apache-2.0 */
/* Stores of type s3: what init writes for them, where their keys come from. What is refused stands
 * in config_inputs.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/time.h"
#include "config/config.h"

#define BUCKET "stores:\n  media:\n    type: s3\n    bucket: media\n"

struct place {
    char dir[64], secret[80];
    struct rp_arena arena;
    struct rp_config config;
    struct rp_error err;
};

static int enter(void **state)
{
    static struct place place;
    place = (struct place){ .dir = "/tmp/rp-config-XXXXXX", .arena = RP_ARENA((size_t)4 << 20) };
    if (!mkdtemp(place.dir)) return -1;
    snprintf(place.secret, sizeof(place.secret), "%s/secret", place.dir);
    *state = &place;
    return 0;
}

static int leave(void **state)
{
    struct place *place = *state;
    (void)unlink(place->secret);
    rp_arena_done(&place->arena);
    return rmdir(place->dir);
}

static int parse(struct place *p, const char *text)
{
    rp_error_clear(&p->err);
    return rp_config_parse(text, strlen(text), "reprieve.yaml", p->dir, &p->arena, &p->config, &p->err);
}

static void accept(struct place *p, const char *text)
{
    if (parse(p, text) < 0) fail_msg("%s\nfrom: %s", p->err.text, text);
}

/* Take the # of every default away. */
static void uncomment(const char *text, struct rp_buf *out)
{
    for (; *text; text += strcspn(text, "\n") + 1) {
        size_t blanks = strspn(text, " "), n = strcspn(text, "\n");
        bool is_default = text[blanks] == '#' && text[blanks + 1] >= 'a' && text[blanks + 1] <= 'z';
        rp_buf_fmt(out, "%*s%.*s\n", (int)blanks, "", (int)(n - blanks - is_default), text + blanks + is_default);
    }
}

static void assert_bucket(const struct rp_store_config *s)
{
    assert_string_equal(s->type, "s3");
    assert_string_equal(s->bucket, "photos");
    assert_string_equal(s->endpoint, "https://s3.example.org");
    assert_string_equal(s->access_key, "AK");
    assert_string_equal(s->secret_key, "SK");
    assert_string_equal(s->region, "auto");
    assert_string_equal(s->style, "auto");
    assert_string_equal(s->ca_file, "");
    assert_int_equal(s->mode, RP_MODE_OBSERVE);
    assert_int_equal(s->keys, RP_KEYS_REUSED);
    assert_int_equal(s->request_timeout_ms, 30 * RP_SECOND_MS);
    assert_int_equal(s->requests_per_second_max, 0);
    assert_null(s->path);
}

static void a_bucket_is_written_with_its_endpoint_and_variables_for_its_keys(void **state)
{
    struct place *p = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf file = RP_BUF(1 << 20), open = RP_BUF(1 << 20);
    const struct rp_pair_text store_name = { "my-photos", "s3://photos" };
    const struct rp_config_init init = { .stores = &store_name, .n_stores = 1, .endpoint = "https://s3.example.org" };
    assert_int_equal(rp_config_write_init(&init, &file, &p->err), 0);
    assert_non_null(strstr(rp_buf_text(&file), "    access_key: \"${MY_PHOTOS_ACCESS_KEY}\"\n"));
    assert_non_null(strstr(rp_buf_text(&file), "    secret_key: \"${MY_PHOTOS_SECRET_KEY}\"\n"));
    assert_non_null(strstr(rp_buf_text(&file), "    mode: observe\n"));
    assert_null(strstr(rp_buf_text(&file), "\n    path:"));
    assert_int_equal(parse(p, rp_buf_text(&file)), RP_ECONFIG);
    assert_non_null(strstr(p->err.text, "stores.my-photos.access_key"));
    setenv("MY_PHOTOS_ACCESS_KEY", "AK", 1);
    setenv("MY_PHOTOS_SECRET_KEY", "SK", 1);
    accept(p, rp_buf_text(&file));
    assert_bucket(&p->config.stores[0]);
    uncomment(rp_buf_text(&file), &open);
    accept(p, rp_buf_text(&open));
    assert_bucket(&p->config.stores[0]);
    unsetenv("MY_PHOTOS_ACCESS_KEY");
    unsetenv("MY_PHOTOS_SECRET_KEY");
    const struct rp_pair_text dir = { "media", "/x" };
    RP_CLEANUP(rp_buf_done) struct rp_buf none = RP_BUF(1 << 20);
    struct rp_config_init wrong = { .stores = &dir, .n_stores = 1, .endpoint = "https://h" };
    assert_int_equal(rp_config_write_init(&wrong, &none, &p->err), RP_EINVAL);
    wrong = (struct rp_config_init){ .stores = &store_name, .n_stores = 1, .endpoint = "h" };
    assert_int_equal(rp_config_write_init(&wrong, &none, &p->err), RP_EINVAL);
}

static void keys_of_a_bucket_can_come_from_files(void **state)
{
    struct place *p = *state;
    FILE *f = fopen(p->secret, "w");
    const char *text = BUCKET "    access_key: AK\n    secret_key_file: secret\n    session_token_file: secret\n";
    assert_non_null(f);
    fputs("SK\n", f);
    assert_int_equal(fclose(f), 0);
    accept(p, text);
    assert_string_equal(p->config.stores[0].secret_key, "SK");
    assert_string_equal(p->config.stores[0].session_token, "SK");
}

static void every_value_arrives_in_its_field(void **state)
{
    struct place *p = *state;
    accept(p,
           "stores: { media: { type: s3, bucket: b, endpoint: \"http://127.0.0.1:9000\", region: eu-1, access_key: a,\n"
           "  secret_key: s, session_token: t, style: host, ca_file: ca.pem, max_requests_per_second: 7,\n"
           "  keys: write_once, request_timeout: 5s, mode: quarantine },\n"
           "  other: { type: s3, bucket: b, profile: prod } }\n");
    const struct rp_store_config *s = &p->config.stores[0];
    char ca[80];
    snprintf(ca, sizeof(ca), "%s/ca.pem", p->dir);
    assert_true(rp_config_is_s3(s));
    assert_string_equal(s->endpoint, "http://127.0.0.1:9000");
    assert_string_equal(s->region, "eu-1");
    assert_string_equal(s->session_token, "t");
    assert_string_equal(s->style, "host");
    assert_string_equal(s->ca_file, ca);
    assert_int_equal(s->requests_per_second_max, 7);
    assert_int_equal(s->keys, RP_KEYS_WRITE_ONCE);
    assert_int_equal(s->request_timeout_ms, 5 * RP_SECOND_MS);
    assert_int_equal(s->mode, RP_MODE_QUARANTINE);
    assert_string_equal(p->config.stores[1].profile, "prod");
    assert_string_equal(p->config.stores[1].access_key, "");
    assert_string_equal(p->config.stores[1].endpoint, "");
}

/* A store has more keys than a hint has room for. */
static void the_known_keys_end_at_a_whole_name(void **state)
{
    struct place *p = *state;
    assert_int_equal(parse(p, "stores: { a: { pth: /x } }\n"), RP_ECONFIG);
    assert_non_null(strstr(p->err.text, "did you mean 'path'?"));
    assert_int_equal(strncmp(p->err.hint, "known here: type, path, endpoint, ", 34), 0);
    const char *end = strstr(p->err.hint, "allow_any_grace, ...");
    assert_non_null(end);
    assert_string_equal(end, "allow_any_grace, ...");
}

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_PLACE(a_bucket_is_written_with_its_endpoint_and_variables_for_its_keys),
        IN_PLACE(keys_of_a_bucket_can_come_from_files),
        IN_PLACE(every_value_arrives_in_its_field),
        IN_PLACE(the_known_keys_end_at_a_whole_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
