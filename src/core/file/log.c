/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - what the verbs over files say in the log when their fate is durable. */
#include "base/log.h"
#include "base/id.h"
#include "base/json.h"
#include "core/file/log.h"
#include "core/journal.h"

static struct rp_journal journal_of(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    return (struct rp_journal){ .log = log, .at_ms = at_ms, .actor = command->actor };
}

static const char *store_name(const struct rp_file_command *c)
{
    const struct rp_store *store = rp_store_of_file(c->stores, c->n_stores, &c->answer.file);
    return store != NULL ? store->config->name : "?";
}

static void log_change(const struct rp_command *command, struct rp_log *log, int64_t at_ms, const char *done,
                       const char *refused)
{
    const struct rp_file_command *c = (const struct rp_file_command *)command;
    struct rp_journal j = journal_of(command, log, at_ms);
    const char *reason = c->reason != NULL ? c->reason : "";
    char id[RP_ID_TEXT];
    if (command->error.code < 0)
        rp_journal_refused(&j, refused, rp_id_format(RP_ID_FILE, c->file_id, id), reason, &command->error);
    else if (c->changed)
        rp_journal_file(&j, done, store_name(c), &c->answer);
}

void rp_log_init(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    const struct rp_init *init = (const struct rp_init *)command;
    struct rp_journal j = journal_of(command, log, at_ms);
    if (command->error.code < 0)
        rp_journal_refused(&j, "upload.refused", init->name, "", &command->error);
    else
        rp_journal_born(&j, init);
}

void rp_log_confirm(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    log_change(command, log, at_ms, "mark.reprieved", "confirm.refused");
}

void rp_log_delete(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    log_change(command, log, at_ms, "mark.created", "mark.refused");
}

void rp_log_restore(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    log_change(command, log, at_ms, "mark.reprieved", "restore.refused");
}

/* An accepted file is told of by its audit row alone. */
void rp_log_result(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    if (!((const struct rp_file_command *)command)->accept) rp_log_delete(command, log, at_ms);
}

static void log_txn(const struct rp_txn_command *c, struct rp_log *log, int64_t at_ms, const char *event)
{
    char id[RP_ID_TEXT];
    if (!rp_log_takes(log, RP_LOG_INFO)) return;
    json_t *o = json_object();
    rp_json_set(o, "id", json_string(rp_id_format(RP_ID_TRANSACTION, c->txn.id, id)));
    rp_json_set(o, "state", json_string(rp_txn_state_name(&c->txn, at_ms)));
    rp_json_set(o, "members", json_integer(c->txn.members));
    rp_json_set(o, "ends_at", rp_json_time(c->txn.ends_at_ms));
    rp_json_set(o, "actor", rp_json_text(c->command.actor));
    rp_log_event(log, RP_LOG_INFO, at_ms, event, o);
}

static void log_members(const struct rp_txn_command *c, const struct rp_journal *j)
{
    for (size_t i = 0; i < c->n_members; i++) {
        const struct rp_store *store = rp_store_of_file(c->stores, c->n_stores, &c->members[i].file);
        rp_journal_file(j, "mark.reprieved", store != NULL ? store->config->name : "?", &c->members[i]);
    }
}

void rp_log_txn(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    const struct rp_txn_command *c = (const struct rp_txn_command *)command;
    struct rp_journal j = journal_of(command, log, at_ms);
    const char *event = command->verb == &rp_verb_txn_begin    ? "transaction.begun"
                        : command->verb == &rp_verb_txn_commit ? "transaction.committed"
                                                               : "transaction.aborted";
    char id[RP_ID_TEXT];
    int64_t txn_id = c->txn.id != 0 ? c->txn.id : c->txn_id;
    if (command->error.code < 0)
        rp_journal_refused(&j, "transaction.refused", rp_id_format(RP_ID_TRANSACTION, txn_id, id), event,
                           &command->error);
    if (command->error.code < 0 || !c->changed) return;
    log_txn(c, log, at_ms, event);
    if (command->verb == &rp_verb_txn_commit) log_members(c, &j);
}
