/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - one call to a service, on a thread of its own. */
#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "base/time.h"
#include "core/confirm/inner.h"
#include "core/state.h"

#include <stdio.h>
#include <string.h>

#define BODY_MAX       ((size_t)32 << 10) /* twice the longest key, and each byte of it may become six */
#define LATE_ANSWER_MS (30 * RP_DAY_MS)   /* after the deadline: a late yes still brings back a dead letter */

static void set_id(json_t *o, const char *name, enum rp_id_kind kind, int64_t id)
{
    char text[RP_ID_TEXT];
    if (id != 0) rp_json_set(o, name, json_string(rp_id_format(kind, id, text)));
}

int rp_asking_body(const struct rp_asking *asking, const char *tenant, struct rp_arena *arena, const char **out,
                   struct rp_error *err)
{
    RP_CLEANUP(rp_json_decrefp) json_t *o = json_object();
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(BODY_MAX);
    const struct rp_asker_options *options = &asking->round->asker->options;
    const struct rp_mark *mark = asking->mark;
    const char *store = rp_round_store(asking->round);
    char url[RP_ANSWER_URL];
    rp_json_set(o, "confirmation", rp_json_text(asking->now.name));
    set_id(o, "mark", RP_ID_MARK, mark->id);
    rp_json_set(o, "subject", rp_subject_json(store, mark->key));
    rp_json_set(o, "store", rp_json_text(store));
    rp_json_set(o, "key", rp_json_text(mark->key));
    set_id(o, "file", RP_ID_FILE, mark->file_id);
    if (tenant != NULL) rp_json_set(o, "tenant", rp_json_text(tenant));
    rp_json_set(o, "reason", rp_json_text(mark->reason));
    rp_json_set(o, "marked_at", rp_json_time(mark->marked_at_ms));
    rp_json_set(o, "due_at", rp_json_time(mark->due_at_ms));
    set_id(o, "idempotency_key", RP_ID_CONFIRMATION, asking->now.id);
    rp_answer_url(options->url_base, options->url_key, asking->now.id, asking->now.until_at_ms + LATE_ANSWER_MS, url);
    if (url[0] != 0) rp_json_set(o, "answer_url", rp_json_text(url));
    int r = rp_json_write(&text, o);
    if (r == RP_ETOOBIG) return rp_error_set(err, r, "the message to service '%s' is too long", asking->now.name);
    if (r < 0) return rp_round_no_memory(err);
    *out = rp_arena_strdup(arena, rp_buf_text(&text));
    return *out != NULL ? 0 : rp_round_no_memory(err);
}

/* The line end that many servers add is no word. */
static void cut_end(char *text)
{
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL)
        n--;
    text[n] = 0;
}

static void *call(void *arg)
{
    struct rp_asking *asking = arg;
    struct rp_asker *asker = asking->round->asker;
    const struct rp_confirm_call what = { .to = asking->round->service->config,
                                          .allow = asker->options.config->outbound_allow,
                                          .stop = asker->options.by.stop,
                                          .id = asking->id,
                                          .body = asking->body,
                                          .body_bytes = strlen(asking->body),
                                          .at_ms = asking->called_at_ms };
    asking->answer = (struct rp_confirm_answer){ .retry_after_ms = -1 };
    asker->options.send(asker->options.send_ctx, &what, &asking->answer);
    cut_end(asking->answer.body);
    rp_utf8_clean(asking->answer.body); /* what stands in the catalog is text */
    rp_utf8_clean(asking->answer.error);
    pthread_mutex_lock(&asker->lock);
    asking->back = true;
    pthread_cond_signal(&asker->changed);
    pthread_mutex_unlock(&asker->lock);
    return NULL;
}

void rp_asking_call(struct rp_asking *asking)
{
    struct rp_asker *asker = asking->round->asker;
    asking->called_at_ms = rp_clock_now_ms(asker->options.by.catalog->clock);
    asking->called_boot_ms = rp_clock_boot_ms(asker->options.by.catalog->clock);
    asking->calling = true;
    asking->back = false;
    asking->round->service->under_way++;
    asker->under_way++;
    asker->pass->calls++;
    asking->threaded = pthread_create(&asking->thread, NULL, call, asking) == 0;
    if (!asking->threaded) call(asking); /* no thread to be had: slower, not wrong */
}
