/* SPDX-License-Identifier: Apache-2.0 */
/* The installed library (include/reprieve.h) beside the command, over one catalog. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/hook_peer.h"
#include "reprieve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct scene {
    char dir[64], config[96], object[96];
    struct hook_peer service;
};

static const char *say_yes(void *ctx, const char *request, const char *body)
{
    (void)ctx, (void)request, (void)body;
    return "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    char text[1024], files[96];
    assert_non_null(s);
    snprintf(s->dir, sizeof s->dir, "/tmp/rp-library.XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->config, sizeof s->config, "%s/reprieve.yaml", s->dir);
    snprintf(files, sizeof files, "mkdir %s/files", s->dir);
    snprintf(s->object, sizeof s->object, "%s/files/a", s->dir);
    assert_int_equal(system(files), 0);
    write_text(s->object, "bytes");
    hook_peer_start(&s->service, say_yes, NULL);
    snprintf(text, sizeof text,
             "catalog: { url: \"sqlite:%s/catalog.db\" }\n"
             "log: { file: %s/log }\n"
             "outbound: { allow: [127.0.0.0/8] }\n"
             "stores:\n  main: { path: %s/files, mode: purge, allow_any_grace: true }\n"
             "confirmations:\n  calendar: { url: \"%s/delete\", secret: hush }\n",
             s->dir, s->dir, s->dir, s->service.url);
    write_text(s->config, text);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;
    char line[128];
    hook_peer_stop(&s->service);
    snprintf(line, sizeof line, "rm -rf %s", s->dir);
    assert_int_equal(system(line), 0);
    free(s);
    return 0;
}

static void command(const struct scene *s, const char *words)
{
    char line[512];
    snprintf(line, sizeof line, "%s --config %s --quiet %s", getenv("REPRIEVE_BIN"), s->config, words);
    assert_int_equal(system(line), 0);
}

static void test_a_sweep_asks_the_outside_services_first(void **state)
{
    struct scene *s = *state;
    struct reprieve *r = NULL;
    struct reprieve_sweep swept;
    command(s, "mark main:a --grace 0s --confirm calendar");
    assert_int_equal(reprieve_open(&(struct reprieve_options){ .config_file = s->config }, &r), 0);
    assert_int_equal(reprieve_sweep(r, 0, &swept), 0);
    assert_int_equal(s->service.requests, 1);
    assert_int_equal(swept.purged, 1);
    assert_int_not_equal(access(s->object, F_OK), 0);
    reprieve_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_sweep_asks_the_outside_services_first, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
