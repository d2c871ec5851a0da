/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/handshake.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "config/config.h"
#include "hook/hook.h"

#include <inttypes.h>
#include <stdio.h>

#define EVENT "handshake"

/* ---- who is called: one function for each list of the configuration ---- */

static bool is_set(const char *text)
{
    return text != NULL && text[0] != 0;
}

static bool of_alerts(const struct rp_config *config, size_t *number, struct rp_endpoint *out)
{
    const struct rp_alert_config *a = &config->alerts;
    if (!is_set(a->webhook) || (*number)-- > 0) return false;
    *out = (struct rp_endpoint){ .name = "alerts.webhook",
                                 .url = a->webhook,
                                 .secrets = { a->webhook_secret, a->webhook_secret_old } };
    return true;
}

static bool of_references(const struct rp_config *config, size_t *number, struct rp_endpoint *out)
{
    for (size_t s = 0; s < config->n_stores; s++)
        for (size_t i = 0; i < config->stores[s].n_referenced_by; i++) {
            const struct rp_reference *ref = &config->stores[s].referenced_by[i];
            if (!is_set(ref->webhook) || (*number)-- > 0) continue;
            *out = (struct rp_endpoint){ .url = ref->webhook, .secrets = { ref->secret, ref->secret_old } };
            snprintf(out->name, sizeof out->name, "stores.%s.referenced_by[%zu]", config->stores[s].name, i);
            return true;
        }
    return false;
}

static bool of_sinks(const struct rp_config *config, size_t *number, struct rp_endpoint *out)
{
    for (size_t i = 0; i < config->n_sinks; i++) {
        const struct rp_sink_config *sink = &config->sinks[i];
        if ((*number)-- > 0) continue;
        *out = (struct rp_endpoint){ .url = sink->url, .secrets = { sink->secret, sink->secret_old } };
        snprintf(out->name, sizeof out->name, "events_out %s", sink->name);
        return true;
    }
    return false;
}

static bool of_processor(const struct rp_config *config, size_t *number, struct rp_endpoint *out)
{
    if (!is_set(config->processor_url) || (*number)-- > 0) return false;
    *out = (struct rp_endpoint){ .name = "processor.url",
                                 .url = config->processor_url,
                                 .secrets = { config->processor_secret, config->processor_secret_old } };
    return true;
}

static bool of_confirmations(const struct rp_config *config, size_t *number, struct rp_endpoint *out)
{
    for (size_t i = 0; i < config->n_confirmers; i++) {
        const struct rp_confirmer_config *service = &config->confirmers[i];
        if ((*number)-- > 0) continue;
        *out = (struct rp_endpoint){ .url = service->url, .secrets = { service->secret, service->secret_old } };
        snprintf(out->name, sizeof out->name, "confirmations.%s", service->name);
        return true;
    }
    return false;
}

/* Each finds its endpoint with this number, or takes the number of its own off. */
static bool (*const lists[])(const struct rp_config *config, size_t *number, struct rp_endpoint *out) = {
    of_alerts, of_references, of_confirmations, of_sinks, of_processor,
};

bool rp_endpoint_of(const struct rp_config *config, size_t number, struct rp_endpoint *out)
{
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (lists[i](config, &number, out)) return true;
    return false;
}

bool rp_endpoint_is_signed(const struct rp_endpoint *endpoint)
{
    return is_set(endpoint->secrets[0]) || is_set(endpoint->secrets[1]);
}

/* ---- the message ---- */

int rp_endpoint_shake(const struct rp_endpoint *endpoint, const struct rp_config *config, int64_t now_ms, long *status,
                      struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf body = RP_BUF(4096);
    RP_CLEANUP(rp_json_decrefp)
    json_t *o = rp_json_object("event", json_string(EVENT), "environment", rp_json_text(config->environment), NULL);
    struct rp_hook_answer answer;
    char id[RP_HOOK_ID_MAX + 1];
    if (rp_json_write(&body, o) < 0) return rp_error_set(err, RP_ENOMEM, "out of memory");
    snprintf(id, sizeof id, EVENT "_%" PRId64, now_ms);
    struct rp_hook_call call = { .url = endpoint->url,
                                 .secrets = { endpoint->secrets[0], endpoint->secrets[1] },
                                 .id = id,
                                 .event = EVENT,
                                 .body = rp_buf_text(&body),
                                 .body_bytes = body.len,
                                 .at_ms = now_ms,
                                 .allow = config->outbound_allow };
    int r = rp_hook_send(&call, &answer, err);
    *status = answer.status;
    return r;
}
