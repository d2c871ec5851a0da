/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sinks/message.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text/json.h"

#include <stdio.h>
#include <string.h>

const char *rp_sink_event_id(const struct rp_feed_event *event, char out[RP_SINK_EVENT_ID])
{
    snprintf(out, RP_SINK_EVENT_ID, "evt_%012llx-%llx-%llx", (unsigned long long)event->at_ms,
             (unsigned long long)event->lane, (unsigned long long)event->seq);
    return out;
}

/* What a record calls its own id. */
static const char *noun_of(const char *id)
{
    static const char *const nouns[RP_ID_KINDS] = {
        [RP_ID_FILE] = "file", [RP_ID_MARK] = "mark",        [RP_ID_TRANSACTION] = "transaction",
        [RP_ID_RUN] = "run",   [RP_ID_EVENT] = "about",      [RP_ID_TOKEN] = "token",
        [RP_ID_HOLD] = "hold", [RP_ID_DEAD] = "dead_letter",
    };
    enum rp_id_kind kind;
    int64_t number;
    return id != NULL && rp_id_parse(id, &kind, &number) ? nouns[kind] : "about";
}

/* {"id":"run_..."} in the details would be a second id of the message: it is called {"run":...}. */
static int rename_id(const struct rp_feed_event *event, struct rp_buf *out, struct rp_error *err)
{
    RP_CLEANUP(rp_json_decrefp) json_t *o = NULL;
    int r = rp_json_parse(event->json, event->json_bytes, &o, err);
    if (r < 0) return r;
    json_t *id = json_incref(json_object_get(o, "id"));
    const char *noun = noun_of(json_string_value(id));
    (void)json_object_del(o, "id");
    if (id != NULL && json_object_get(o, noun) == NULL)
        rp_json_set(o, noun, id);
    else
        json_decref(id);
    return rp_json_write(out, o);
}

int rp_sink_message(const struct rp_feed_event *event, struct rp_buf *out, struct rp_error *err)
{
    char id[RP_SINK_EVENT_ID];
    RP_CLEANUP(rp_buf_done) struct rp_buf renamed = RP_BUF(RP_FEED_JSON_MAX);
    const char *json = event->json;
    size_t n = event->json_bytes;
    if (strstr(json, "\"id\":") != NULL) {
        int r = rename_id(event, &renamed, err);
        if (r == RP_ENOMEM) return r;
        json = r == 0 ? rp_buf_text(&renamed) : json; /* damaged: `audit verify` says it */
        n = r == 0 ? renamed.len : n;
    }
    rp_buf_clear(out);
    rp_buf_fmt(out, "{\"id\":\"%s\",", rp_sink_event_id(event, id));
    rp_buf_add(out, json + 1, n - 1);
    return out->failed < 0 ? rp_error_set(err, out->failed, "event %s: no memory", id) : 0;
}
