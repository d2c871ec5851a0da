/* SPDX-License-Identifier: Apache-2.0 */
/* live_steps.h - a catalog with four writers, a feed, and a server that has only the route of live
 * events. */
#ifndef RP_TESTS_LIVE_STEPS_H
#define RP_TESTS_LIVE_STEPS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/audit/audit.h"
#include "catalog/file/file.h"
#include "feed/feed.h"
#include "http/live/live.h"
#include "http/server/request.h"
#include "lib/dbs.h"
#include "lib/event_client.h"

#define LANES 4

static struct rp_error err;

static void check(int r, int line)
{
    if (r < 0) fprintf(stderr, "line %d: %s\n", line, err.text);
    assert_int_equal(r, 0);
}
#define ok(r) check((r), __LINE__)

/* ---- a catalog, the hub, and a server that has only this one route ---- */

#define SEAL_KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

struct stage {
    struct dbs dbs;
    struct rp_catalog *catalogs[LANES];
    struct rp_feed *feed;
    size_t ring_events; /* 0: as many as there are by default */
    struct rp_feed_subscription *follows;
    struct rp_live *live;
    struct MHD_Daemon *daemon;
    int port;
    _Atomic int64_t seen;
    int64_t tenants[2];
};

static enum MHD_Result refuse(struct MHD_Connection *connection, const struct rp_error *why)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(why->text), (void *)(uintptr_t)why->text, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result r = MHD_queue_response(connection, (unsigned)rp_error_http(why->code), response);
    MHD_destroy_response(response);
    return r;
}

/* ?tenant=ID&token=ID&expires_in=MS; Last-Event-ID as in life. */
static enum MHD_Result answer(void *ctx, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *n_data, void **mine)
{
    struct stage *s = ctx;
    const char *tenant = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "tenant");
    const char *token = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token");
    const char *lasts = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "expires_in");
    struct rp_live_ask ask = { .connection = connection,
                               .tenant_id = tenant != NULL ? atoll(tenant) : 0,
                               .token_id = token != NULL ? atoll(token) : 0,
                               .expires_at_ms = lasts != NULL ? rp_clock_now_ms(NULL) + atoll(lasts) : 0,
                               .after = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Last-Event-ID") };
    struct rp_stream_reply how;
    struct rp_error why = { 0 };
    (void)url, (void)method, (void)version, (void)data, (void)n_data;
    if (*mine == NULL) {
        *mine = s;
        return MHD_YES;
    }
    if (rp_live_open(s->live, &ask, &how, &why) < 0) return refuse(connection, &why);
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 1024, how.read, how.ctx, how.free);
    enum MHD_Result r = MHD_queue_response(connection, 200, response);
    MHD_destroy_response(response);
    return r;
}

static int on_seen(void *ctx, const struct rp_feed_batch *batch, struct rp_feed_dealt *all, struct rp_error *why)
{
    struct stage *s = ctx;
    (void)all, (void)why;
    for (size_t i = 0; i < batch->n; i++)
        assert_string_equal(batch->events[i]->name, "file.deleted");
    s->seen += (int64_t)batch->n;
    return 0;
}

static void stage_live(struct stage *s, struct rp_live_options options)
{
    static const char *const names[] = { "file.deleted", NULL };
    const struct rp_feed_options feed = { .catalog_url = s->dbs.url, .ring_events = s->ring_events };
    const struct rp_feed_reader reader = { .want = { .names = names }, .deliver = on_seen, .ctx = s };
    ok(rp_feed_start(&feed, &s->feed, &err));
    ok(rp_feed_subscribe(s->feed, &reader, &s->follows, &err));
    options.feed = s->feed;
    options.key = SEAL_KEY;
    ok(rp_live_start(&options, &s->live, &err));
    s->daemon = MHD_start_daemon(MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC, 0, NULL, NULL,
                                 answer, s, MHD_OPTION_THREAD_POOL_SIZE, 2U, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                 (size_t)4096, MHD_OPTION_CONNECTION_LIMIT, 2000U, MHD_OPTION_END);
    assert_non_null(s->daemon);
    s->port = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

static void stage_off(struct stage *s)
{
    rp_live_end(s->live);
    MHD_stop_daemon(s->daemon);
    rp_live_stop(s->live);
    rp_feed_unsubscribe(s->follows);
    rp_feed_stop(s->feed);
    s->live = NULL;
    s->feed = NULL;
}

static int set_up(void **state)
{
    struct stage *s = calloc(1, sizeof *s);
    dbs_make(&s->dbs, (enum dbs_kind)(uintptr_t)*state, NULL);
    for (int i = 0; i < LANES; i++) {
        struct rp_catalog_options options = { .lane = i };
        ok(rp_catalog_open(s->dbs.url, &options, &s->catalogs[i], &err));
    }
    const char *const names[] = { "acme", "zenith" };
    for (int i = 0; i < 2; i++) {
        struct rp_tenant tenant;
        ok(rp_tenant_make(s->catalogs[0], names[i], &tenant, &err));
        s->tenants[i] = tenant.id;
    }
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct stage *s = *state;
    if (s->live != NULL) stage_off(s);
    for (int i = 0; i < LANES; i++)
        rp_catalog_close(s->catalogs[i]);
    dbs_drop(&s->dbs);
    free(s);
    return 0;
}

/* ---- changes ---- */

struct change {
    int64_t tenant_id;
    int first, n;
    const char *padding;
};

static int change_tx(struct rp_tx *tx, void *ctx, struct rp_error *why)
{
    const struct change *c = ctx;
    int r = 0;
    for (int i = 0; r == 0 && i < c->n; i++) {
        struct rp_audit_entry entry = { .event = "file.deleted",
                                        .actor = "token:\"ada\"",
                                        .mark_id = rp_tx_new_id(tx),
                                        .tenant_id = c->tenant_id,
                                        .details = json_pack("{s:i,s:s}", "number", c->first + i, "name",
                                                             c->padding != NULL ? c->padding : "a\nb") };
        r = rp_tx_audit(tx, &entry, why);
    }
    return r;
}

static void commit(struct stage *s, int lane, int64_t tenant_id, int first, int n)
{
    struct change c = { .tenant_id = tenant_id, .first = first, .n = n };
    struct rp_error why = { 0 };
    if (rp_catalog_transact(s->catalogs[lane], change_tx, &c, &why) < 0) fprintf(stderr, "%s\n", why.text);
    rp_feed_poke(s->feed);
}

static void wait_for_clients(struct stage *s, size_t n)
{
    int64_t end_ms = rp_time_boot_ms() + PATIENCE_MS;
    struct timespec pause = { .tv_nsec = 5000000 };
    while (rp_live_clients(s->live) != n && rp_time_boot_ms() < end_ms)
        nanosleep(&pause, NULL);
    assert_int_equal(rp_live_clients(s->live), n);
}

static void wait_for_seen(struct stage *s, int64_t n)
{
    int64_t end_ms = rp_time_boot_ms() + PATIENCE_MS;
    struct timespec pause = { .tv_nsec = 5000000 };
    while (s->seen < n && rp_time_boot_ms() < end_ms)
        nanosleep(&pause, NULL);
    assert_true(s->seen >= n);
}

#endif
