/* SPDX-License-Identifier: Apache-2.0 */
/* What each verb is: a new one is a line here, and the moves that it may make in judge*.c. */
#include "verb.h"

#include "asking.h"
#include "base/assert.h"
#include "net.h"
#include "node.h"
#include "retain.h"
#include "sweeps.h"
#include "uploads.h"
#include "users.h"

enum { CLAIMS = 1, BY_ITSELF = 2, ONCE = 4, NO_STORE = 8 }; /* ONCE: nobody asks for it again */

static const struct {
    const char *name;
    int (*give)(struct sim_node *n);
    unsigned rules;
} verbs[VERBS] = {
    [VERB_NONE] = { "nothing", NULL, 0 },
    [VERB_START] = { "start", NULL, 0 },
    [VERB_MARK] = { "mark", sim_give_mark, 0 },
    [VERB_RESTORE] = { "restore", sim_give_restore, 0 },
    [VERB_SWEEP] = { "sweep", sim_give_sweep, CLAIMS | BY_ITSELF | ONCE },
    [VERB_HOLD] = { "hold", sim_give_hold, 0 },
    [VERB_LIFT] = { "lift", sim_give_lift, 0 },
    [VERB_DEAD] = { "dead letter", sim_give_dead, 0 },
    [VERB_RECOVER] = { "recover", sim_give_recover, 0 },
    [VERB_IMPORT] = { "import", sim_give_import, 0 },
    [VERB_INIT] = { "init", sim_give_init, 0 },
    [VERB_PUT] = { "put", sim_give_put, 0 },
    [VERB_CONFIRM] = { "confirm", sim_give_confirm, 0 },
    [VERB_DELETE] = { "delete", sim_give_file, 0 },
    [VERB_UNDELETE] = { "undelete", sim_give_file, 0 },
    [VERB_RETURN] = { "return from quarantine", sim_give_file, 0 },
    [VERB_RESULT] = { "result", sim_give_file, 0 },
    [VERB_BEGIN] = { "begin", sim_give_txn, 0 },
    [VERB_COMMIT] = { "commit", sim_give_txn, 0 },
    [VERB_ABORT] = { "abort", sim_give_txn, 0 },
    [VERB_QUOTA] = { "quota", sim_give_quota, 0 },
    [VERB_CLOCK] = { "clock", sim_give_clock, ONCE },
    [VERB_RETAIN] = { "retain", sim_give_retain, BY_ITSELF | ONCE | NO_STORE },
    [VERB_NET] = { "safety net", sim_give_net, BY_ITSELF | ONCE | NO_STORE },
    [VERB_ASK] = { "ask", sim_give_ask, CLAIMS | BY_ITSELF | ONCE },
    [VERB_ANSWER] = { "answer", sim_give_answer, 0 },
};

struct sim_command sim_command_of(enum sim_verb verb)
{
    return (struct sim_command){ .verb = verb, .file = SIZE_MAX, .txn = SIZE_MAX, .grace_ms = -1 };
}

const char *sim_verb_name(enum sim_verb verb)
{
    return verbs[verb].name;
}

int sim_verb_give(struct sim_node *n)
{
    RP_ASSERT(verbs[n->command.verb].give != NULL);
    return verbs[n->command.verb].give(n);
}

bool sim_claims(enum sim_verb verb)
{
    return (verbs[verb].rules & CLAIMS) != 0;
}

bool sim_is_by_itself(enum sim_verb verb)
{
    return (verbs[verb].rules & BY_ITSELF) != 0;
}

bool sim_repeats(enum sim_verb verb)
{
    return (verbs[verb].rules & ONCE) == 0;
}

bool sim_asks_store(enum sim_verb verb)
{
    return (verbs[verb].rules & NO_STORE) == 0;
}

bool sim_may_move(const struct sim_move *moves, size_t n, int from, int to, enum sim_verb by)
{
    for (size_t i = 0; i < n; i++)
        if (moves[i].from == from && moves[i].to == to) return (moves[i].by >> by & 1) != 0;
    return false;
}
