/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - what the verbs over files say in the log when their fate is durable. */
#include "base/log.h"
#include "base/id.h"
#include "base/text/json.h"
#include "core/file/log.h"
#include "core/journal.h"

static const char *store_name(struct rp_store *const *stores, size_t n, int64_t store_id)
{
    const struct rp_file file = { .store_id = store_id };
    const struct rp_store *store = rp_store_of_file(stores, n, &file);
    return store != NULL ? store->config->name : "?";
}

static void log_marked(const struct rp_journal *j, const struct rp_file_marked *marked, struct rp_store *const *stores,
                       size_t n)
{
    for (; marked != NULL; marked = marked->next)
        rp_journal_marked(j, store_name(stores, n, marked->store_id), marked);
}

static void log_change(const struct rp_command *command, struct rp_log *log, int64_t at_ms, const char *refused)
{
    const struct rp_file_command *c = (const struct rp_file_command *)command;
    struct rp_journal j = rp_journal_of(command, log, at_ms);
    const char *reason = c->reason != NULL ? c->reason : "";
    char id[RP_ID_TEXT];
    if (command->error.code < 0)
        rp_journal_refused(&j, refused, rp_id_format(RP_ID_FILE, c->file_id, id), reason, &command->error);
    if (command->error.code < 0 || c->event == NULL) return;
    rp_journal_file(&j, c->event, store_name(c->stores, c->n_stores, c->answer.file.store_id), &c->answer);
    log_marked(&j, c->marked, c->stores, c->n_stores);
}

void rp_log_init(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    const struct rp_init *init = (const struct rp_init *)command;
    struct rp_journal j = rp_journal_of(command, log, at_ms);
    if (command->error.code < 0)
        rp_journal_refused(&j, "upload.refused", init->name, "", &command->error);
    else
        rp_journal_born(&j, init);
}

void rp_log_confirm(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    log_change(command, log, at_ms, "confirm.refused");
}

void rp_log_delete(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    log_change(command, log, at_ms, "mark.refused");
}

void rp_log_restore(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    log_change(command, log, at_ms, "restore.refused");
}

void rp_log_result(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    log_change(command, log, at_ms, "result.refused");
}

static void log_txn(const struct rp_txn_command *c, const struct rp_journal *j, const char *event)
{
    char id[RP_ID_TEXT];
    if (!rp_log_takes(j->log, RP_LOG_INFO)) return;
    json_t *o = json_object();
    rp_json_set(o, "transaction", json_string(rp_id_format(RP_ID_TRANSACTION, c->txn.id, id)));
    rp_json_set(o, "state", json_string(rp_txn_state_name(&c->txn, j->at_ms)));
    rp_json_set(o, "members", json_integer(c->txn.members));
    rp_json_set(o, "ends_at", rp_json_time(c->txn.ends_at_ms));
    rp_journal_change(j, event, o);
}

static void log_members(const struct rp_txn_command *c, const struct rp_journal *j)
{
    for (size_t i = 0; i < c->n_members; i++)
        rp_journal_file(j, "file.uploaded", store_name(c->stores, c->n_stores, c->members[i].file.store_id),
                        &c->members[i]);
    log_marked(j, c->marked, c->stores, c->n_stores);
}

void rp_log_txn(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    const struct rp_txn_command *c = (const struct rp_txn_command *)command;
    struct rp_journal j = rp_journal_of(command, log, at_ms);
    const char *event = command->verb == &rp_verb_txn_begin    ? "transaction.begun"
                        : command->verb == &rp_verb_txn_commit ? "transaction.committed"
                                                               : "transaction.aborted";
    char id[RP_ID_TEXT];
    int64_t txn_id = c->txn.id != 0 ? c->txn.id : c->txn_id;
    if (command->error.code < 0)
        rp_journal_refused(&j, "transaction.refused", rp_id_format(RP_ID_TRANSACTION, txn_id, id), event,
                           &command->error);
    if (command->error.code < 0 || !c->changed) return;
    log_txn(c, &j, event);
    if (command->verb == &rp_verb_txn_commit) log_members(c, &j);
}
