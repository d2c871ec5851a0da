/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_explain.c - `explain`: the story of one subject. */
#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/json.h"
#include "catalog/mark/dead.h"
#include "cli/cli.h"
#include "core/confirm/confirm.h"
#include "core/explain.h"

#define STORY_ARENA_MAX ((size_t)4 << 20)

struct story {
    struct rp_cli *cli;
    json_t *lines; /* NULL: people read it line by line */
    int64_t now_ms;
};

static int tell(void *ctx, const struct rp_story_line *line, struct rp_error *err)
{
    struct story *s = ctx;
    char when[RP_WHEN_TEXT], words[RP_SHOWN_MAX], actor[RP_SHOWN_MAX];
    (void)err;
    if (s->lines == NULL) {
        rp_say(s->cli, "%s  %s, by %s  %s\n", rp_show_when(line->at_ms, s->now_ms, when), rp_show(line->words, words),
               rp_show(line->actor, actor), line->mark);
        return 0;
    }
    json_t *o = json_object();
    rp_json_set(o, "at", rp_json_time(line->at_ms));
    rp_json_set(o, "event", json_string(line->event));
    rp_json_set(o, "actor", rp_json_text(line->actor));
    rp_json_set(o, "words", rp_json_text(line->words));
    rp_json_set(o, "mark", json_string(line->mark));
    rp_json_append(s->lines, o);
    return 0;
}

/* As GET /v1/marks/{id} shows it. */
static json_t *mark_json(const struct rp_story_end *end, const char *store, json_t *confirmations)
{
    if (!end->has_mark) return json_null();
    json_t *o = rp_mark_line(&end->mark, store);
    rp_json_set(o, "confirmations", json_incref(confirmations));
    return o;
}

static json_t *end_json(const struct rp_story_end *end, const char *store, json_t *confirmations)
{
    char id[RP_ID_TEXT];
    json_t *o = rp_json_object("words", rp_json_text(end->words), "object", json_string(rp_outcome_name(end->object)),
                               "held", json_boolean(end->held), NULL);
    if (end->object == RP_OUT_FOUND) rp_json_set(o, "size", json_integer(end->identity.size_bytes));
    rp_json_set(o, "mark", mark_json(end, store, confirmations));
    if (end->dead_id != 0) rp_json_set(o, "dead_letter", json_string(rp_id_format(RP_ID_DEAD, end->dead_id, id)));
    return o;
}

static int keep_mark(void *ctx, const struct rp_dead *dead, struct rp_error *err)
{
    (void)err;
    rp_id_format(RP_ID_MARK, dead->mark_id, ctx);
    return 0;
}

/* A dead letter stands for its mark. */
static int find_subject(struct rp_cli *cli, struct rp_arena *arena, struct rp_subject *out, struct rp_error *err)
{
    const char *text = cli->args.words[0];
    enum rp_id_kind kind;
    char mark[RP_ID_TEXT];
    int64_t id;
    int r = 0;
    if (rp_id_parse(text, &kind, &id) && kind == RP_ID_DEAD) {
        r = rp_dead_get(cli->session.catalog->db, id, keep_mark, mark, err);
        text = mark;
        if (r == RP_ENOTFOUND) rp_error_hint(err, "`reprieve dead` lists those that wait; of others give STORE:KEY");
    }
    return r < 0 ? r : rp_cli_subject(cli, text, arena, out, err);
}

int rp_cmd_explain(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(STORY_ARENA_MAX);
    struct rp_subject subject;
    struct rp_story_end end;
    char text[RP_SHOWN_MAX];
    int r = rp_cli_open(cli, err);
    if (r == 0) r = find_subject(cli, &arena, &subject, err);
    if (r != 0) return r;
    const char *store_name = subject.store->config->name;
    RP_CLEANUP(rp_json_decrefp) json_t *lines = cli->json ? json_array() : NULL;
    struct story story = { .cli = cli, .lines = lines, .now_ms = rp_session_now_ms(&cli->session) };
    const struct rp_story told = { .fn = tell,
                                   .ctx = &story,
                                   .sweep_schedule = cli->session.config.sweep_schedule,
                                   .sweep_limit = cli->session.config.sweep_limit };
    r = rp_explain(cli->session.catalog, subject.store, subject.key, &arena, &told, &end, err);
    RP_CLEANUP(rp_json_decrefp) json_t *confirmations = NULL;
    if (r == 0 && end.has_mark)
        r = rp_confirmations_json(cli->session.catalog->db, end.mark.id, &arena, &confirmations, err);
    if (r < 0) return r;
    if (!cli->json) rp_say(cli, "now: %s\n", rp_show(end.words, text));
    json_t *o = json_object();
    rp_json_set(o, "subject", rp_subject_json(store_name, subject.key));
    if (lines != NULL) rp_json_set(o, "story", json_incref(lines));
    rp_json_set(o, "now", end_json(&end, store_name, confirmations));
    rp_emit(cli, o);
    return 0;
}
