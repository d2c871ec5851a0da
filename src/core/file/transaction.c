/* SPDX-License-Identifier: Apache-2.0 */
/* transaction.c - the verbs begin and abort, and what they share with commit.c. */
#include "core/file/transaction.h"

#include "core/file/log.h"

#include "base/assert.h"
#include "base/id.h"
#include "catalog/audit/audit.h"

#include <stddef.h>

_Static_assert(offsetof(struct rp_txn_command, command) == 0, "a command is the first member");

static const struct {
    const char *name, *event; /* the event of arriving there */
} states[RP_TXN_STATES] = {
    [RP_TXN_OPEN] = { "open", "transaction.begun" },
    [RP_TXN_COMMITTED] = { "committed", "transaction.committed" },
    [RP_TXN_ABORTED] = { "aborted", "transaction.aborted" },
};

const char *rp_txn_state_name(const struct rp_txn *txn, int64_t now_ms)
{
    return txn->state == RP_TXN_OPEN && txn->ends_at_ms <= now_ms ? "expired" : states[txn->state].name;
}

int rp_txn_check_open(const struct rp_txn *txn, int64_t now_ms, struct rp_error *err)
{
    if (txn->state != RP_TXN_OPEN) {
        rp_error_set(err, RP_ENOTOPEN, "the transaction is %s", states[txn->state].name);
        return rp_error_hint(err, txn->state == RP_TXN_ABORTED ? "its files are purged by themselves; begin a new one"
                                                               : "begin a new one");
    }
    if (txn->ends_at_ms > now_ms) return 0;
    rp_error_set(err, RP_EEXPIRED, "the transaction's time is over");
    return rp_error_hint(err, "its files are purged by themselves; begin a new one");
}

static int audit_txn(struct rp_tx *tx, const struct rp_txn_command *c, struct rp_error *err)
{
    char id[RP_ID_TEXT];
    struct rp_audit_entry entry = { .event = states[c->txn.state].event,
                                    .actor = c->command.actor,
                                    .tenant_id = c->txn.tenant_id,
                                    .details = json_pack("{s:s,s:I}", "transaction",
                                                         rp_id_format(RP_ID_TRANSACTION, c->txn.id, id), "files",
                                                         (json_int_t)c->txn.members) };
    return rp_tx_audit(tx, &entry, err);
}

int rp_txn_end(struct rp_tx *tx, struct rp_txn_command *c, enum rp_txn_state state, struct rp_error *err)
{
    RP_ASSERT(c->txn.state == RP_TXN_OPEN);
    c->changed = true;
    c->txn.state = state;
    c->txn.changed_at_ms = tx->late_ms;
    int r = rp_txns_save(tx, &c->txn, 1, err);
    return r < 0 ? r : audit_txn(tx, c, err);
}

int rp_txn_each(struct rp_tx *tx, struct rp_command *const *commands, size_t n, rp_txn_decide_fn *decide,
                struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        struct rp_txn_command *c = (struct rp_txn_command *)commands[i];
        size_t found = 0;
        c->changed = false;
        r = rp_txns_lock(tx, &c->txn_id, 1, &c->txn, &found, err);
        if (r < 0) return r;
        if (found == 1 && (c->command.tenant_id == 0 || c->txn.tenant_id == c->command.tenant_id))
            r = decide(tx, c, err);
        else
            rp_error_set(&c->command.error, RP_ENOTFOUND, "there is no such transaction");
    }
    return r;
}

/* ---- begin ---- */

static int run_begin(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        struct rp_txn_command *c = (struct rp_txn_command *)commands[i];
        int64_t timeout = c->timeout_ms >= 0 ? c->timeout_ms : c->rules->txn_timeout_ms;
        c->txn = (struct rp_txn){ .id = rp_tx_new_id(tx),
                                  .tenant_id = c->command.tenant_id,
                                  .state = RP_TXN_OPEN,
                                  .ends_at_ms = tx->late_ms + timeout,
                                  .created_at_ms = tx->late_ms,
                                  .changed_at_ms = tx->late_ms };
        c->changed = true;
        r = rp_txn_add(tx, &c->txn, c->command.actor, err);
        if (r == 0) r = audit_txn(tx, c, err);
    }
    return r;
}

const struct rp_verb rp_verb_txn_begin = { .name = "begin", .run = run_begin, .log = rp_log_txn };

/* ---- abort ---- */

static int abort_one(struct rp_tx *tx, struct rp_txn_command *c, struct rp_error *err)
{
    if (c->txn.state == RP_TXN_ABORTED) return 0;
    if (c->txn.state == RP_TXN_OPEN) return rp_txn_end(tx, c, RP_TXN_ABORTED, err);
    rp_error_set(&c->command.error, RP_ENOTOPEN, "the transaction is committed");
    return 0;
}

static int run_abort(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    return rp_txn_each(tx, commands, n, abort_one, err);
}

const struct rp_verb rp_verb_txn_abort = { .name = "abort", .run = run_abort, .log = rp_log_txn };
