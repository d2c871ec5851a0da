/* SPDX-License-Identifier: Apache-2.0 */
/* What the server says of itself: the description of its calls, and the page at its root. */
#include "http/content/signed_url.h"
#include "http/route/route.h"
#include "http/server/request.h"
#include "http/server/server.h"

#include <pthread.h>

#include "base/error.h"
#include "base/text/buf.h"
#include "base/text/json.h"

/* Neither the table nor our address changes: written once, for as long as the process lives. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rp_buf text = { .max = (size_t)16 << 20 };

/* "" if it cannot be. */
static const char *written(struct rp_request *q)
{
    pthread_mutex_lock(&lock);
    if (text.len == 0) {
        const char *server = rp_url_base(rp_request_config(q), rp_server_address(q->server), &q->arena);
        json_t *document = server != NULL ? rp_openapi(server) : NULL;
        if (document == NULL || rp_json_write(&text, document) < 0) rp_buf_clear(&text);
        json_decref(document);
    }
    pthread_mutex_unlock(&lock);
    return rp_buf_text(&text);
}

static void get_openapi(struct rp_request *q)
{
    struct rp_error err = { 0 };
    const char *document = written(q);
    if (document[0] != '\0') {
        rp_reply_text(q, 200, "application/json", document);
        return;
    }
    rp_error_set(&err, RP_ENOMEM, "the description of the calls could not be written");
    rp_reply_error(q, &err);
}

static const char page[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Reprieve</title>\n"
    "<meta name=\"viewport\" content=\"width=device-width\"></head>\n"
    "<body style=\"font:16px/1.5 sans-serif;max-width:40em;margin:4em auto;padding:0 1em\">\n"
    "<h1>Reprieve " REPRIEVE_VERSION "</h1>\n"
    "<p>Nothing is deleted by accident, and nothing is left behind. This daemon is running.</p>\n"
    "<ul><li><a href=\"/openapi.json\">openapi.json</a>: every call it takes</li>\n"
    "<li><a href=\"/healthz\">healthz</a>, <a href=\"/readyz\">readyz</a>: how it is</li></ul>\n"
    "</body></html>\n";

static void get_page(struct rp_request *q)
{
    rp_reply_header(q, "Content-Security-Policy",
                    "default-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'");
    rp_reply_header(q, "X-Content-Type-Options", "nosniff");
    rp_reply_header(q, "Referrer-Policy", "no-referrer");
    rp_reply_text(q, 200, "text/html; charset=utf-8", page);
}

static const struct rp_route routes[] = {
    { RP_ROUTE("GET", "/openapi.json", RP_FOR_EVERYBODY, 0, get_openapi), .media = "application/json",
      .summary = "This description." },
    { RP_ROUTE("GET", "/", RP_FOR_EVERYBODY, 0, get_page), .media = "text/html",
      .summary = "The page that a browser shows." },
};
const struct rp_routes rp_routes_service = { routes, sizeof routes / sizeof routes[0] };
