/* SPDX-License-Identifier: Apache-2.0 */
/* stores.c - the stores: what each allows and guarantees, and what waits there. */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "http/api/operations.h"
#include "http/api/shapes.h"
#include "lib/store_facts.h"

static const struct rp_field store_fields[] = {
    { RP_FIELD("name", TEXT), .required = true, .help = "as configured" },
    { RP_FIELD("type", TEXT), .required = true, .help = "fs or s3" },
    { RP_FIELD("path", TEXT), .help = "where a directory is" },
    { RP_FIELD("endpoint", TEXT), .help = "where a bucket's server is; empty: AWS" },
    { RP_FIELD("bucket", TEXT), .help = "its name" },
    { RP_FIELD("mode", TEXT), .required = true, .help = "observe, quarantine or purge" },
    { RP_FIELD("guarantee", TEXT), .required = true, .help = "how exactly it deletes, as probed" },
    { RP_FIELD("raise_owed_since", TIME),
      .help = "since when this daemon owes a raise of the epoch in the owner record; none: it does not" },
    { RP_FIELD("probed_at", TIME), .help = "when that was last found out; none: never by a canary" },
    { RP_FIELD("keys_changed_at", TIME),
      .help = "when an object was seen changed though keys are declared write_once: the guarantee is the probed one" },
    { RP_FIELD("owner", TEXT), .required = true, .help = "whose it is; - in mode observe" },
    { RP_FIELD("waiting", INT), .most = INT64_MAX, .required = true, .help = "marks that wait" },
    { RP_FIELD("waiting_bytes", INT), .most = INT64_MAX, .required = true, .help = "their bytes" },
    { RP_FIELD("due", INT), .most = INT64_MAX, .required = true, .help = "marks that are due" },
    { RP_FIELD("error", OBJECT), .of = &rp_shape_why, .help = "why it cannot be used" },
};
const struct rp_shape rp_shape_store = RP_SHAPE("store", store_fields, "what a store allows and guarantees");

void rp_http_list_stores(struct rp_request *q)
{
    RP_CLEANUP(rp_tallies_freep) struct rp_tallies *tallies = NULL;
    json_t *items = json_array();
    struct rp_catalog *catalog = rp_request_catalog(q);
    struct rp_error err = { 0 };
    size_t n = 0;
    struct rp_store *const *stores = rp_request_stores(q, &n);
    int r = stores != NULL ? 0 : rp_error_set(&err, RP_ENOMEM, "no memory for a list");
    if (r == 0) r = rp_tallies_read(catalog->db, &tallies, &err);
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct rp_store *store = stores[i];
        struct rp_store_facts facts;
        r = rp_store_facts(catalog, store->config, store->backend != NULL ? store : NULL, &store->closed, tallies,
                           rp_request_now_ms(q), &facts, &err);
        if (r == 0) rp_json_append(items, rp_store_facts_json(&facts));
    }
    rp_reply_page(q, r, &err, items, NULL);
}
