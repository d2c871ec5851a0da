/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/confirming.h"

#include "base/arena.h"
#include "base/cleanup.h"
#include "hook/hook.h"
#include "lib/url_key.h"

#include <stdio.h>

#define OPTIONS_ARENA ((size_t)64 << 10)

static void send_call(void *ctx, const struct rp_confirm_call *call, struct rp_confirm_answer *out)
{
    struct rp_hook_call hook = { .url = call->to->url,
                                 .secrets = { call->to->secret, call->to->secret_old },
                                 .id = call->id,
                                 .event = "confirmation",
                                 .body = call->body,
                                 .body_bytes = call->body_bytes,
                                 .at_ms = call->at_ms,
                                 .timeout_ms = call->to->timeout_ms,
                                 .allow = call->allow,
                                 .stop = call->stop };
    struct rp_hook_answer answer;
    struct rp_error why = { 0 };
    (void)ctx;
    int r = rp_hook_send(&hook, &answer, &why);
    out->status = answer.status;
    out->retry_after_ms = answer.retry_after_ms;
    snprintf(out->body, sizeof out->body, "%s", answer.body);
    if (r < 0 && answer.status == 0) snprintf(out->error, sizeof out->error, "%.150s", why.text);
}

int rp_confirming_options(struct rp_session *s, struct rp_arena *arena, struct rp_asker_options *out,
                          struct rp_error *err)
{
    char *key = rp_arena_alloc(arena, RP_DIGEST_HEX);
    const char *base = rp_config_base_url(&s->config, NULL, arena);
    if (key == NULL || base == NULL) return rp_error_set(err, RP_ENOMEM, "no memory to ask for confirmations");
    int r = 0;
    key[0] = 0;
    if (s->config.n_confirmers > 0) r = rp_url_key(s->catalog, key, err);
    if (r < 0) return r;
    *out = (struct rp_asker_options){ .by = rp_session_sweep(s).by,
                                      .config = &s->config,
                                      .url_base = base,
                                      .url_key = key,
                                      .send = send_call,
                                      .log = s->log };
    return 0;
}

int rp_confirming_pass(struct rp_session *s, const struct rp_sweep *sweep, struct rp_asker_pass *out,
                       struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(OPTIONS_ARENA);
    struct rp_asker_options options = { 0 };
    int r = rp_hook_start(err);
    if (r == 0) r = rp_confirming_options(s, &arena, &options, err);
    if (r < 0) return r;
    options.by.stores = sweep->by.stores;
    options.by.n_stores = sweep->by.n_stores;
    options.by.stop = sweep->by.stop;
    options.most = sweep->limit;
    RP_CLEANUP(rp_asker_freep) struct rp_asker *asker = rp_asker_new(&options, err);
    r = asker != NULL ? rp_asker_pass(asker, out, err) : RP_ENOMEM;
    rp_log_flush(s->log);
    return r;
}
