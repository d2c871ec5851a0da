/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/live */
#include "http/live/live.h"
#include "base/text/json.h"
#include "http/live/seal.h"
#include "http/server/request.h"
#include "http/server/server.h"

#include <microhttpd.h>

static const struct rp_field query_fields[] = {
    { RP_FIELD("after", TEXT), .least = 1, .most = RP_LIVE_ID_TEXT - 1,
      .help = "id of the last event seen, as the header Last-Event-ID; for clients that cannot send one" },
};
static const struct rp_shape query_shape =
    RP_SHAPE("live_query", query_fields, "Where to go on. Without it: from now on.");

/* The header is what a browser sends by itself when it comes back, and therefore newer than the
 * address it came to. */
static const char *last_id(struct rp_request *q)
{
    const char *header = MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, "Last-Event-ID");
    return header != NULL && header[0] != '\0' ? header : rp_json_get_text(q->query, "after", NULL);
}

static void get_live(struct rp_request *q)
{
    struct rp_live *live = rp_server_options_of(q->server)->live;
    struct rp_live_ask ask = {
        .connection = q->connection,
        .tenant_id = q->who.tenant_id,
        .token_id = q->who.token_id,
        .expires_at_ms = q->who.expires_at_ms,
        .after = last_id(q),
    };
    struct rp_stream_reply how;
    struct rp_error err = { 0 };
    int r = live != NULL ? rp_live_open(live, &ask, &how, &err)
                         : rp_error_set(&err, RP_EUNAVAILABLE, "live events are not served here");
    if (r < 0) {
        rp_reply_error(q, &err);
        return;
    }
    rp_reply_header(q, "Cache-Control", "no-store");
    rp_reply_header(q, "X-Accel-Buffering", "no"); /* proxies that hold answers back */
    rp_reply_stream(q, 200, "text/event-stream; charset=utf-8", &how);
}

static const struct rp_route routes[] = {
    { RP_ROUTE("GET", "/v1/live", RP_FOR_TENANTS, RP_MAY_LISTEN, get_live), .media = "text/event-stream",
      .query = &query_shape, .headers = "Last-Event-ID", .errors = "busy",
      .summary =
          "Every change as it happens, as server-sent events; Last-Event-ID goes on where a connection ended. An "
          "event reset says that some after that id have left the log: read anew what you show.",
      .example = "-N" },
};
const struct rp_routes rp_routes_live = { routes, sizeof routes / sizeof routes[0] };
