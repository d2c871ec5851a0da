/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_clock.c - `clock`: what this host's clocks say; `clock accept`: purging goes on after a
 * jump. */
#include "base/text/json.h"
#include "base/time.h"
#include "cli/cli.h"
#include "core/clock.h"

#include <inttypes.h>
#include <stdlib.h>

static const char *state_name(const struct rp_clock_state *c)
{
    if (!c->known) return "unknown";
    return rp_clock_has_jumped(c->ahead_ms) ? "jumped" : c->ahead_ms < -RP_CLOCKS_APART_MS ? "set_back" : "ok";
}

static json_t *clock_json(const struct rp_cli *cli, const struct rp_clock_state *c)
{
    const struct rp_clock *clock = cli->session.catalog->clock;
    const struct rp_boot *boot = clock->boot(clock->ctx);
    json_t *o = json_object();
    rp_json_set(o, "host", rp_json_text(boot->host));
    rp_json_set(o, "boot", rp_json_text(boot->id));
    rp_json_set(o, "up_ms", json_integer(c->boot_ms));
    rp_json_set(o, "wall", rp_json_time(c->wall_ms));
    rp_json_set(o, "by_boot_clock", c->known ? rp_json_time(c->by_boot_ms) : json_null());
    rp_json_set(o, "database", rp_json_time(c->db_ms));
    rp_json_set(o, "ahead_ms", json_integer(c->ahead_ms));
    rp_json_set(o, "state", json_string(state_name(c)));
    return o;
}

static const char *seconds(int64_t ms, char out[RP_TIME_TEXT])
{
    return rp_duration_format(llabs(ms) / RP_SECOND_MS * RP_SECOND_MS, out);
}

static void say_clock(const struct rp_cli *cli, const struct rp_clock_state *c)
{
    const struct rp_clock *clock = cli->session.catalog->clock;
    char wall[RP_TIME_TEXT], by_boot[RP_TIME_TEXT], by[RP_TIME_TEXT], shown[RP_SHOWN_MAX];
    rp_say(cli, "host           %s\n", rp_show(clock->boot(clock->ctx)->host, shown));
    rp_say(cli, "wall clock     %s\n", rp_time_format(c->wall_ms, wall));
    rp_say(cli, "by boot clock  %s\n",
           c->known ? rp_time_format(c->by_boot_ms, by_boot) : "not known yet: nothing was changed since the boot");
    if (rp_clock_has_jumped(c->ahead_ms))
        rp_say(cli,
               "the clock jumped: it is %s ahead. Nothing is purged from this host until it is set right, or, if it is "
               "right "
               "now, until `reprieve clock accept`\n",
               seconds(c->ahead_ms, by));
    else if (c->ahead_ms < -RP_CLOCKS_APART_MS)
        rp_say(cli,
               "the clock was set back by %s. New marks count by the later time until it has caught up, or, if it is "
               "right now, "
               "until `reprieve clock accept`\n",
               seconds(c->ahead_ms, by));
    else
        rp_say(cli, "they agree\n");
}

int rp_cmd_clock(struct rp_cli *cli, struct rp_error *err)
{
    struct rp_clock_state clock;
    int r = rp_clock_look(cli->session.catalog, &clock, err);
    if (r < 0) return r;
    rp_emit(cli, clock_json(cli, &clock));
    if (!cli->json) say_clock(cli, &clock);
    return 0;
}

static json_t *accept_json(const struct rp_cli *cli, const struct rp_clock_accept *a)
{
    json_t *o = clock_json(cli, &a->before);
    rp_json_set(o, "accepted", json_boolean(a->stands && !a->dry_run));
    rp_json_set(o, "as_is", json_boolean(a->as_is));
    rp_json_set(o, "dry_run", json_boolean(a->dry_run));
    rp_json_set(o, "made_due", json_integer(a->made_due));
    rp_json_set(o, "moved", json_integer(a->moved));
    return o;
}

static void say_accept(const struct rp_cli *cli, const struct rp_clock_accept *a)
{
    char by[RP_TIME_TEXT], wall[RP_TIME_TEXT];
    if (!a->stands) {
        rp_say(cli, "nothing to accept: the clock has not jumped\n");
        return;
    }
    rp_say(cli, "%s: %s is the time\n", a->dry_run ? "would accept" : "accepted",
           rp_time_format(a->before.wall_ms, wall));
    const char *were = a->moved == 1 ? "was" : "were";
    rp_say(cli, "%" PRId64 " %s %s due by that; %" PRId64 " %s moved by %s, %" PRId64 " %s due\n", a->made_due,
           a->made_due == 1 ? "mark" : "marks", a->dry_run ? "would become" : "became", a->moved,
           a->dry_run ? "would be" : were, seconds(a->before.ahead_ms, by),
           a->made_due > a->moved ? a->made_due - a->moved : 0, a->dry_run ? "would stay" : "stay");
}

int rp_cmd_clock_accept(struct rp_cli *cli, struct rp_error *err)
{
    struct rp_session *s = &cli->session;
    struct rp_clock_accept accept = { .actor = s->actor,
                                      .as_is = rp_args_has(&cli->args, "as-is"),
                                      .dry_run = rp_args_has(&cli->args, "dry-run") };
    int r = rp_clock_accept(s->catalog, &accept, err);
    if (r < 0) return r;
    if (accept.stands && !accept.dry_run) {
        json_t *o = accept_json(cli, &accept);
        rp_json_set(o, "actor", rp_json_text(s->actor));
        rp_session_log(s, RP_LOG_WARNING, "clock.accepted", o);
    }
    rp_emit(cli, accept_json(cli, &accept));
    if (!cli->json) say_accept(cli, &accept);
    return 0;
}
