/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that only the daemon has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/size.h"
#include "base/time.h"
#include "config/config.h"
#include "config/path.h"

static void parse(struct rp_arena *arena, const char *text, struct rp_config *out)
{
    struct rp_error err = { 0 };
    int r = rp_config_parse(text, strlen(text), "reprieve.yaml", "/srv", arena, out, &err);
    if (r < 0) fail_msg("%s", err.text);
}

static void the_documented_defaults_are_the_codes(void **state)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    struct rp_config c;
    (void)state;
    parse(&arena, "", &c);
    assert_string_equal(c.listen, "127.0.0.1:8420");
    assert_false(c.listen_insecure);
    assert_string_equal(c.public_url, "");
    assert_string_equal(c.tls_certificate, "");
    assert_string_equal(c.tls_key, "");
    assert_string_equal(c.node, "");
    assert_string_equal(c.data, "/srv");
    assert_int_equal(c.http_connections_max, 12000);
    assert_int_equal(c.http_requests_per_second, 0);
    assert_int_equal(c.http_timeout_ms, 30 * RP_SECOND_MS);
    assert_int_equal(c.writers, 2);
    assert_string_equal(c.uploads_store, "");
    assert_int_equal(c.uploads_expire_ms, RP_HOUR_MS);
    assert_int_equal(c.uploads_max_size, INT64_C(5) << 30);
    assert_int_equal(c.uploads_max_open, 1000000);
    assert_false(c.uploads_scan);
    assert_int_equal(c.transactions_timeout_ms, RP_HOUR_MS);
    assert_int_equal(c.transactions_rollback_grace_ms, 5 * RP_DAY_MS);
    assert_int_equal(c.quota_default, INT64_C(100) << 30);
    assert_string_equal(c.sweep_schedule, "continuous");
    const struct rp_alert_config *a = &c.alerts;
    assert_string_equal(a->webhook, "");
    assert_string_equal(a->webhook_secret, "");
    assert_string_equal(a->webhook_secret_old, "");
    assert_string_equal(c.outbound_allow, "");
    assert_int_equal(a->marked_over, 10000);
    assert_int_equal(a->overdue_over_ms, 2 * RP_DAY_MS);
    assert_int_equal(a->run_over_ms, 4 * RP_MINUTE_MS);
    assert_int_equal(a->error_rate_over_percent, 10);
    assert_int_equal(a->error_window_ms, 30 * RP_DAY_MS);
    assert_int_equal(a->no_run_for_ms, 25 * RP_HOUR_MS);
    assert_int_equal(a->lock_stale_over_ms, RP_HOUR_MS);
    assert_int_equal(a->abandoned_per_hour_over, 100);
    assert_int_equal(a->no_worker_for_ms, 5 * RP_MINUTE_MS);
    assert_int_equal(a->dead_letters_over, 0);
}

static void every_value_arrives_in_its_field(void **state)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    struct rp_config c;
    (void)state;
    parse(&arena,
          "listen: 0.0.0.0:9000\nlisten_insecure: true\npublic_url: https://x.example/y\nnode: one\n"
          "tls: { certificate: c.pem, key: /k.pem }\n"
          "http: { max_connections: 20, requests_per_second: 21, timeout: 22s }\n"
          "catalog: { writers: 3 }\n"
          "stores: { a: { path: a }, b: { path: b, mode: purge } }\n"
          "uploads: { store: a, expire: 2m, max_size: 3MiB, max_open_per_tenant: 4, scan: true }\n"
          "transactions: { timeout: 5m, rollback_grace: 6m }\nquota: { default: 7kB }\n"
          "sweep: { schedule: '1 2 3 4 *' }\n"
          "outbound: { allow: [ 127.0.0.0/8, 'fd00:1::/32' ] }\n"
          "alerts: { webhook: 'http://h/', webhook_secret: s, webhook_secret_old: t, marked_over: 1, overdue_over: 2s, "
          "run_over: 3s,\n"
          "  error_rate_over: 4, error_window: 5m, no_run_for: 6s, lock_stale_over: 7s,\n"
          "  abandoned_per_hour_over: 8, no_worker_for: 9s, dead_letters_over: 10 }\n",
          &c);
    assert_string_equal(c.listen, "0.0.0.0:9000");
    assert_true(c.listen_insecure && c.uploads_scan);
    assert_string_equal(c.public_url, "https://x.example/y");
    assert_string_equal(c.node, "one");
    assert_string_equal(c.tls_certificate, "/srv/c.pem");
    assert_string_equal(c.tls_key, "/k.pem");
    assert_int_equal(c.http_connections_max * 10000 + c.http_requests_per_second * 100 + c.http_timeout_ms, 224100);
    assert_int_equal(c.writers, 3);
    assert_string_equal(rp_config_uploads_store(&c)->name, "a");
    assert_int_equal(c.uploads_expire_ms, 2 * RP_MINUTE_MS);
    assert_int_equal(c.uploads_max_size, 3 << 20);
    assert_int_equal(c.uploads_max_open, 4);
    assert_int_equal(c.transactions_timeout_ms, 5 * RP_MINUTE_MS);
    assert_int_equal(c.transactions_rollback_grace_ms, 6 * RP_MINUTE_MS);
    assert_int_equal(c.quota_default, 7000);
    assert_string_equal(c.sweep_schedule, "1 2 3 4 *");
    const struct rp_alert_config *a = &c.alerts;
    assert_string_equal(a->webhook, "http://h/");
    assert_string_equal(a->webhook_secret, "s");
    assert_string_equal(a->webhook_secret_old, "t");
    assert_string_equal(c.outbound_allow, "127.0.0.0/8 fd00:1::/32");
    assert_int_equal(a->marked_over * 1000 + a->error_rate_over_percent * 10 + a->abandoned_per_hour_over, 1048);
    assert_int_equal(a->overdue_over_ms + a->run_over_ms * 10, 32000);
    assert_int_equal(a->dead_letters_over, 10);
    assert_int_equal(a->error_window_ms, 5 * RP_MINUTE_MS);
    assert_int_equal(a->no_run_for_ms + a->lock_stale_over_ms * 10 + a->no_worker_for_ms * 100, 976000);
}

static void uploads_go_to_the_first_store_that_takes_them(void **state)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    struct rp_config c;
    (void)state;
    parse(&arena, "stores: { a: { path: a }, b: { path: b, mode: quarantine }, c: { path: c, mode: purge } }\n", &c);
    assert_string_equal(rp_config_uploads_store(&c)->name, "b");
    parse(&arena, "stores: { a: { path: a } }\n", &c);
    assert_null(rp_config_uploads_store(&c));
}

static void the_webhook_is_a_secret(void **state)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    struct rp_config c;
    struct rp_error err = { 0 };
    (void)state;
    static const char *const texts[] = { "alerts: { webhook: \"hunter2\" }\n",
                                         "alerts: { webhook: \"https://h/hunter2 x\" }\n",
                                         "alerts: { webhook_secret: \"hunter2\\n\" }\n" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_int_equal(rp_config_parse(texts[i], strlen(texts[i]), "f", "/", &arena, &c, &err), RP_ECONFIG);
        assert_null(strstr(err.text, "hunter2"));
    }
    char path[] = "/tmp/rp-webhook-XXXXXX", text[128];
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, "https://h/secret\n", 17) == 17);
    close(fd);
    snprintf(text, sizeof text, "alerts: { webhook_file: \"%s\" }\n", path);
    parse(&arena, text, &c);
    unlink(path);
    assert_string_equal(c.alerts.webhook, "https://h/secret");
}

static const char *reload(struct rp_arena *arena, const char *before, const char *after, struct rp_config *next,
                          struct rp_config_change *change)
{
    struct rp_config *running = rp_arena_alloc(arena, sizeof *running);
    parse(arena, before, running);
    parse(arena, after, next);
    rp_buf_clear(&change->taken);
    rp_buf_clear(&change->needs_restart);
    rp_config_reload(next, running, change);
    return rp_buf_text(&change->taken);
}

#define TWO "stores: { a: { path: a, grace: 2d }, b: { path: b } }\ndatabases: { d: { url: 'sqlite:d.db' } }\n"

#define SINK(name, host, secret) "{ name: " name ", url: 'http://" host "', secret: " secret ", events: ['file.*'] }"
#define SINKS(one, two)          "events_out: [ " one ", " two " ]\n"

/* X14. Which secret is whose goes by the names: nothing is signed for somebody else. */
static void a_running_daemon_takes_new_secrets_of_sinks(void **state)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(4 << 20);
    struct rp_config_change c = { .taken = RP_BUF(4096), .needs_restart = RP_BUF(4096) };
    struct rp_config next;
    static const char before[] = SINKS(SINK("a", "ha", "one"), SINK("b", "hb", "two"));
    (void)state;
    assert_string_equal(reload(&arena, before, SINKS(SINK("a", "ha", "new"), SINK("b", "hx", "two")), &next, &c),
                        "events_out.a.secret");
    assert_string_equal(rp_buf_text(&c.needs_restart), "events_out.b.url");
    assert_string_equal(next.sinks[0].secret, "new");
    assert_string_equal(next.sinks[1].url, "http://hb");
    assert_string_equal(reload(&arena, before, SINKS(SINK("b", "hb", "two"), SINK("a", "ha", "new")), &next, &c), "");
    assert_string_equal(rp_buf_text(&c.needs_restart), "events_out");
    assert_string_equal(next.sinks[0].name, "a");
    assert_string_equal(next.sinks[0].secret, "one");
    assert_string_equal(
        reload(&arena, "processor: { url: 'http://p' }\n", "processor: { url: 'http://p', secret: hush }\n", &next, &c),
        "processor.secret");
    rp_buf_done(&c.taken);
    rp_buf_done(&c.needs_restart);
}

static void a_sink_is_called_like_its_host(void **state)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(4 << 20);
    struct rp_config c;
    (void)state;
    parse(&arena,
          "events_out:\n  - { url: 'https://App.example:8443/a?b', events: [mark.purged, 'file.*'] }\n"
          "  - { url: 'http://h/x', name: my_app, events: [run.finished] }\n",
          &c);
    assert_int_equal(c.n_sinks, 2);
    assert_string_equal(c.sinks[0].name, "app-example-8443");
    assert_string_equal(c.sinks[0].events, "mark.purged file.*");
    assert_string_equal(c.sinks[1].name, "my_app");
}

static void a_running_daemon_takes_what_it_can_and_keeps_the_rest(void **state)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(4 << 20);
    struct rp_config_change c = { .taken = RP_BUF(4096), .needs_restart = RP_BUF(4096) };
    struct rp_config next;
    (void)state;
    assert_string_equal(reload(&arena, TWO, TWO, &next, &c), "");
    assert_string_equal(rp_buf_text(&c.needs_restart), "");
    assert_string_equal(
        reload(&arena, TWO, TWO "quota: { default: 1GiB }\nuploads: { scan: true, store: b }\n", &next, &c),
        "uploads.store, uploads.scan, quota.default");
    assert_int_equal(next.quota_default, 1 << 30);
    assert_string_equal(
        reload(&arena, "listen: 127.0.0.1:1\n", "listen: 127.0.0.1:2\nsweep: { batch: 7 }\n", &next, &c),
        "sweep.batch");
    assert_string_equal(rp_buf_text(&c.needs_restart), "listen");
    assert_string_equal(next.listen, "127.0.0.1:1");
    assert_int_equal(next.sweep_batch, 7);
    /* a store's grace and mode are taken, its path is not; a store more is not */
    assert_string_equal(
        reload(&arena, TWO, "stores: { a: { path: x, grace: 3d, mode: purge }, b: { path: b } }\n", &next, &c),
        "stores.a.mode, stores.a.grace");
    assert_string_equal(rp_buf_text(&c.needs_restart), "stores.a.path, databases");
    assert_string_equal(next.stores[0].path, "/srv/a");
    assert_int_equal(next.stores[0].grace_ms, 3 * RP_DAY_MS);
    assert_int_equal(next.n_databases, 1);
    (void)reload(&arena, TWO, "stores: { a: { path: a }, b: { path: b }, c: { path: c } }\n", &next, &c);
    assert_string_equal(rp_buf_text(&c.needs_restart), "stores, databases");
    assert_int_equal(next.n_stores, 2);
    assert_int_equal(next.stores[0].grace_ms, 2 * RP_DAY_MS);
    (void)reload(&arena, TWO, TWO "alerts: { webhook: 'https://h/hunter2' }\n", &next, &c);
    assert_string_equal(rp_buf_text(&c.taken), "alerts.webhook"); /* its name, never its value */
    rp_buf_done(&c.taken);
    rp_buf_done(&c.needs_restart);
}

static void only_this_machine_reaches_loopback(void **state)
{
    (void)state;
    assert_true(rp_config_is_loopback("127.0.0.1:1") && rp_config_is_loopback("127.9.9.9:1"));
    assert_true(rp_config_is_loopback("[::1]:1") && rp_config_is_loopback("localhost:1"));
    assert_false(rp_config_is_loopback("0.0.0.0:1") || rp_config_is_loopback("[::]:1") ||
                 rp_config_is_loopback("12.7.0.0:1"));
}

static void sizes_are_read_and_written(void **state)
{
    static const struct {
        const char *text, *again;
        int64_t bytes;
    } good[] = { { "0", "0B", 0 },
                 { "500", "500B", 500 },
                 { "500B", "500B", 500 },
                 { "64KiB", "64KiB", 65536 },
                 { "1536KiB", "1536KiB", 1572864 },
                 { "2048KiB", "2MiB", 2097152 },
                 { "7kB", "7000B", 7000 },
                 { "1MB", "1000000B", 1000000 },
                 { "1024TiB", "1024TiB", INT64_C(1) << 50 },
                 { "1048576TiB", "1048576TiB", RP_SIZE_MAX } };
    static const char *const bad[] = { "",
                                       "B",
                                       "-1",
                                       "+1",
                                       "01",
                                       "1.5MiB",
                                       " 1",
                                       "1 ",
                                       "1 MiB",
                                       "1mib",
                                       "1K",
                                       "1MIB",
                                       "1MiBs",
                                       "0x10",
                                       "1e3",
                                       "1048577TiB",
                                       "9223372036854775808",
                                       "99999999999999999999TiB" };
    char text[RP_SIZE_EXACT_TEXT];
    int64_t bytes = -7;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(rp_size_parse(good[i].text, &bytes, NULL), 0);
        assert_int_equal(bytes, good[i].bytes);
        assert_string_equal(rp_size_format(bytes, text), good[i].again);
    }
    bytes = -7;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(rp_size_parse(bad[i], &bytes, NULL), RP_EINVAL);
    assert_int_equal(bytes, -7);
}

static void paths_are_joined_and_resolved(void **state)
{
    static const struct {
        const char *dir, *path, *joined;
    } cases[] = {
        { "/a", "b", "/a/b" },       { "/a/", "./b/", "/a/b" }, { "/", "b", "/b" }, { "", "b", "b" },
        { ".", "./b", "./b" },       { "/a", "/b", "/b" },      { "/a", "/", "/" }, { "/a", ".", "/a/." },
        { "/a", "../b", "/a/../b" }, { "a", "././b//", "a/b" },
    };
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    char wanted[4200], here[4096];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(rp_path_join(cases[i].dir, cases[i].path, &arena), cases[i].joined);
    assert_string_equal(rp_path_resolve("/none/a/../b/./c//", &arena), "/none/b/c");
    assert_string_equal(rp_path_resolve("/none/../../..", &arena), "/");
    assert_string_equal(rp_path_resolve("/", &arena), "/");
    assert_non_null(getcwd(here, sizeof(here)));
    snprintf(wanted, sizeof(wanted), "%s/none", here);
    assert_string_equal(rp_path_resolve("none", &arena), wanted);
    assert_true(rp_path_is_within("/a/b", "/a"));
    assert_true(rp_path_is_within("/a", "/a"));
    assert_false(rp_path_is_within("/ab", "/a"));
    assert_true(rp_path_is_within("/a", "/"));
    assert_string_equal(rp_path_parent("/a/b", &arena), "/a");
    assert_string_equal(rp_path_parent("/a", &arena), "/");
    assert_string_equal(rp_path_parent("a", &arena), ".");
}

static void codes_that_mean_gone_are_4xx_and_never_those_that_mean_no(void **state)
{
    static const char *const bad[] = { "[409]", "[410, 423]", "[500]", "[200]", "410", "[x]", "[410", "[[410]]" };
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    struct rp_config c;
    char text[200];
    (void)state;
    parse(&arena, "confirmations: { mail: { url: \"https://h/d\", gone: [404, 410], when: now } }\n", &c);
    assert_int_equal(c.confirmers[0].gone.n, 2);
    assert_int_equal(c.confirmers[0].gone.at[0], 404);
    assert_int_equal(c.confirmers[0].when, RP_CONFIRM_NOW);
    parse(&arena, "confirmations: { mail: { url: \"https://h/d\", gone: [] } }\n", &c);
    assert_int_equal(c.confirmers[0].gone.n, 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct rp_error err = { 0 };
        snprintf(text, sizeof text, "confirmations: { mail: { url: \"https://h/d\", gone: %s } }\n", bad[i]);
        if (rp_config_parse(text, strlen(text), "r.yaml", "/srv", &arena, &c, &err) == 0)
            fail_msg("%s is taken", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_documented_defaults_are_the_codes),
        cmocka_unit_test(every_value_arrives_in_its_field),
        cmocka_unit_test(uploads_go_to_the_first_store_that_takes_them),
        cmocka_unit_test(the_webhook_is_a_secret),
        cmocka_unit_test(a_running_daemon_takes_what_it_can_and_keeps_the_rest),
        cmocka_unit_test(a_running_daemon_takes_new_secrets_of_sinks),
        cmocka_unit_test(a_sink_is_called_like_its_host),
        cmocka_unit_test(codes_that_mean_gone_are_4xx_and_never_those_that_mean_no),
        cmocka_unit_test(only_this_machine_reaches_loopback),
        cmocka_unit_test(sizes_are_read_and_written),
        cmocka_unit_test(paths_are_joined_and_resolved),
    };
    return cmocka_run_group_tests_name("config_daemon", tests, NULL, NULL);
}
