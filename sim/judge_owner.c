/* SPDX-License-Identifier: Apache-2.0 */
/* The owner record: who overwrites it, and is the epoch raised when something was kept alive? */
#include <inttypes.h>
#include <string.h>

#include "core/owner/raise.h"
#include "judge.h"
#include "node.h"
#include "owner.h"
#include "task.h"
#include "verb.h"
#include "world.h"

void sim_judge_record(struct sim *s, const struct sim_node *n, const struct bucket_object *o, bool overwritten)
{
    bool recovers = n != NULL && n->command.verb == VERB_RECOVER;
    if (strcmp(o->key, RP_STORE_OWNER) != 0 || !overwritten || !bucket_has_condition(s->kind) || recovers) return;
    if (strstr(o->text, s->catalog_id) == NULL) sim_violate(s, "OWNER", "another catalog's record was overwritten");
    /* of a node that went on while a backup was put back: what it writes must show that, too */
    if (n != NULL && !sim_drew(s, o->text) && (!sim_is_stale(n) || sim_owns(s, n)))
        sim_violate(s, "OWNER", "the record of another copy of the catalog was overwritten");
}

/* Nothing was promised while the store could not be written, which the product shows, or is
 * another's. */
static bool is_excused(const struct sim_node *n)
{
    struct rp_raise_state state;
    rp_raise_state(&n->store, &state);
    return n->config.mode == RP_MODE_OBSERVE || n->sim->misled[n->index] || state.owed_since_ms != 0 ||
           rp_raise_is_lost(&state) || n->jumps_at_begin != n->sim->jumps;
}

void sim_judge_kept(struct sim_node *n)
{
    struct sim *s = n->sim;
    (void)sim_record_epoch(s);
    n->kept_ms = n->began_ms;
    if (s->record.at_ms >= n->began_ms - RP_MINUTE_MS || is_excused(n)) return;
    sim_violate(s, "OWNER", "something was kept alive, and the epoch is as it was %" PRId64 " s before",
                (n->began_ms - s->record.at_ms) / 1000);
}

void sim_judge_once_more(struct sim_node *n)
{
    struct sim *s = n->sim;
    if (n->kept_ms == 0 || s->now_ms < n->kept_ms + 3 * RP_MINUTE_MS) return;
    (void)sim_record_epoch(s);
    if (s->record.at_ms < n->kept_ms && s->jumps == 0 && n->clock.frozen_at_ms == 0 && !is_excused(n))
        sim_violate(s, "OWNER", "something was kept alive %" PRId64 " s ago, and the epoch was not raised once more",
                    (s->now_ms - n->kept_ms) / 1000);
    n->kept_ms = 0;
}
