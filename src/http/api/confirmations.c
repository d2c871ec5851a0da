/* SPDX-License-Identifier: Apache-2.0 */
/* confirmations.c - what an outside service says by itself: by the signed URL that stands in the call
 * to it. */
#include "core/confirm/confirm.h"

#include "base/text/json.h"
#include "http/api/shapes.h"
#include "http/server/server.h"

#include <string.h>

static const char *const answers[] = { "yes", "no", NULL };

static const struct rp_field answer_fields[] = {
    { RP_FIELD("answer", CHOICE), .choices = answers, .required = true,
      .help = "yes: its half is deleted, or was gone before; no: nothing is to be deleted" },
    { RP_FIELD("reason", TEXT), .most = RP_REASON_MAX, .help = "for people" },
};
static const struct rp_shape answer_shape = RP_SHAPE("confirmation_answer", answer_fields, "a late answer");

static int check_url(struct rp_request *q, struct rp_error *err)
{
    enum rp_id_kind kind;
    int64_t id;
    if (!rp_id_parse(q->args[0], &kind, &id) || kind != RP_ID_CONFIRMATION)
        return rp_error_set(err, RP_ENOTFOUND, "there is no %.40s", q->args[0]);
    int64_t expires_at_ms = rp_json_get_int(q->query, "expires", 0);
    const char *signature = rp_json_get_text(q->query, "signature", "");
    if (!rp_answer_verify(rp_server_options_of(q->server)->url_key, id, expires_at_ms, signature)) {
        rp_error_set(err, RP_EFORBIDDEN, "the signature is not one for this URL");
        return rp_error_hint(err, "use answer_url as it stands in the call");
    }
    if (expires_at_ms > rp_request_now_ms(q)) return 0;
    return rp_error_set(err, RP_EEXPIRED, "the URL has ended");
}

static void then_answered(struct rp_request *q)
{
    rp_reply_empty(q, 204);
}

static void post_answer(struct rp_request *q)
{
    struct rp_error err = { 0 };
    int64_t id;
    if (!rp_request_id(q, 0, RP_ID_CONFIRMATION, &id)) return;
    if (check_url(q, &err) < 0) {
        rp_reply_error(q, &err);
        return;
    }
    struct rp_answer_command *c = rp_command_new(q, sizeof *c, &rp_verb_answer);
    if (c == NULL) return;
    c->command.actor = "answer_url";
    c->confirmation_id = id;
    c->yes = strcmp(rp_json_get_text(q->body, "answer", ""), "yes") == 0;
    c->words = rp_json_get_text(q->body, "reason", "");
    c->arena = &q->arena;
    rp_request_submit(q, &c->command, then_answered, NULL);
}

static const struct rp_route routes[] = {
    { RP_ROUTE("POST", "/v1/confirmations/{id}", RP_FOR_EVERYBODY, 0, post_answer), .judge = check_url,
      .query = &rp_shape_signed, .body = &answer_shape, .status = 204,
      .errors = "not_found forbidden expired answered gone",
      .summary = "Takes the late answer of an outside service; the URL is answer_url of the call that asked it. No "
                 "token. The same answer again is taken; a yes also brings back a dead letter.",
      .example = "-X POST -d '{\"answer\":\"yes\"}' \"$ANSWER_URL\"" },
};
const struct rp_routes rp_routes_confirmations = { routes, sizeof routes / sizeof routes[0] };
