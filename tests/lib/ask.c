/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/ask.h"

#include "base/cleanup.h"
#include "base/error.h"

#define ASK_ARENA ((size_t)1 << 20)

int ask_run(struct rp_catalog *catalog, struct rp_command *command, struct rp_error *err)
{
    int r = rp_command_run(catalog, command);
    if (r < 0) *err = command->error;
    return r;
}

int ask_hold(struct rp_catalog *catalog, struct rp_hold_command *hold, struct rp_arena *arena, struct rp_error *err)
{
    hold->command.verb = &rp_verb_hold_add;
    hold->arena = arena;
    return ask_run(catalog, &hold->command, err);
}

int ask_lift(struct rp_catalog *catalog, int64_t hold_id, const char *actor, struct rp_error *err)
{
    struct rp_hold_command c = { .command = { .verb = &rp_verb_hold_lift, .actor = actor }, .id = hold_id };
    return ask_run(catalog, &c.command, err);
}

int ask_resume(struct rp_catalog *catalog, const char *actor, int64_t *lifted, struct rp_error *err)
{
    struct rp_hold_command c = { .command = { .verb = &rp_verb_resume, .actor = actor } };
    int r = ask_run(catalog, &c.command, err);
    if (r == 0) *lifted = c.lifted;
    return r;
}

static int decide(struct rp_catalog *catalog, const struct rp_verb *verb, const char *actor, struct rp_dead_item *item,
                  struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(ASK_ARENA);
    struct rp_dead_command c = {
        .command = { .verb = verb, .actor = actor }, .items = item, .n = 1, .max = 1, .arena = &arena
    };
    return ask_run(catalog, &c.command, err);
}

int ask_retry(struct rp_catalog *catalog, int64_t letter_id, const char *actor, struct rp_error *err)
{
    struct rp_dead_item item = { .id = letter_id };
    return decide(catalog, &rp_verb_dead_retry, actor, &item, err);
}

int ask_keep(struct rp_catalog *catalog, int64_t letter_id, const char *actor, enum rp_state *as, struct rp_error *err)
{
    struct rp_dead_item item = { .id = letter_id };
    int r = decide(catalog, &rp_verb_dead_keep, actor, &item, err);
    if (r == 0) *as = item.as;
    return r;
}

int ask_quota(struct rp_catalog *catalog, const char *tenant, int64_t limit_bytes, const char *actor,
              struct rp_error *err)
{
    struct rp_quota_command c = { .command = { .verb = &rp_verb_quota_set, .actor = actor },
                                  .tenant = tenant,
                                  .own = limit_bytes >= 0,
                                  .limit_bytes = limit_bytes };
    return ask_run(catalog, &c.command, err);
}

int ask_proof(struct rp_catalog *catalog, bool repair, rp_quota_fn *fn, void *ctx, struct rp_quota_check *out,
              struct rp_error *err)
{
    struct rp_quota_proof p = {
        .command = { .verb = &rp_verb_quota_prove, .actor = "tester" }, .repair = repair, .fn = fn, .ctx = ctx
    };
    int r = ask_run(catalog, &p.command, err);
    *out = p.out;
    return r;
}

int ask_newest(struct rp_catalog *catalog, const struct rp_store *store, const char *key, struct rp_arena *arena,
               struct rp_mark *out, struct rp_error *err)
{
    struct rp_mark newest;
    struct rp_marks history = { .at = &newest, .max = 1, .arena = arena };
    int r = rp_marks_history(catalog->db, store->id, key, &history, err);
    if (r < 0) return r;
    if (history.n == 0) return rp_error_set(err, RP_ENOTFOUND, "%s has no mark", key);
    *out = newest;
    return 0;
}
