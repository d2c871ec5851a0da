/* SPDX-License-Identifier: Apache-2.0 */
/* journal.h - the words of the log: one JSON line for every mark, refusal, restore, purge, skip and
 * failure, and for each stage of a run. Every line about a subject has subject, reason, actor, and
 * marked_at and due_at where there is a mark. A NULL log drops them. */
#ifndef RP_CORE_JOURNAL_H
#define RP_CORE_JOURNAL_H

#include "base/log.h"
#include "core/file/file.h"
#include "core/mark/mark.h"
#include "core/purge/purge.h"
#include "core/reprieve/reprieve.h"

struct rp_whom;

/* Who writes: the log, the moment, in whose name, and at which request (NULL: none). */
struct rp_journal {
    struct rp_log *log;
    int64_t at_ms;
    const char *actor, *request;
};
struct rp_journal rp_journal_of(const struct rp_command *command, struct rp_log *log, int64_t at_ms);

/* A change that stands in the audit log under the same name; `fields` are stolen. */
void rp_journal_change(const struct rp_journal *j, const char *event, json_t *fields);

/* mark.created, mark.extended, mark.same, mark.refused */
void rp_journal_mark(const struct rp_journal *j, const struct rp_mark_item *item);
/* What is refused before it has a store: `subject` as it was given. */
void rp_journal_refused(const struct rp_journal *j, const char *event, const char *subject, const char *reason,
                        const struct rp_error *why);
/* mark.reprieved, file.restored, restore.refused */
void rp_journal_restore(const struct rp_journal *j, const struct rp_reprieve_item *item);
/* A file is born under its mark: file.pending. */
void rp_journal_born(const struct rp_journal *j, const struct rp_init *init);
/* A file was confirmed, accepted, deleted or brought back, as `event` says; with its mark where one
 * waits, or has ended with that. */
void rp_journal_file(const struct rp_journal *j, const char *event, const char *store,
                     const struct rp_file_answer *answer);
/* mark.created: the mark of a file that was replaced, or deleted along with another. */
void rp_journal_marked(const struct rp_journal *j, const char *store, const struct rp_file_marked *marked);
/* A dead letter was decided: mark.retried, mark.reprieved, mark.lost; `as` is the state it has
 * now. */
void rp_journal_decided(const struct rp_journal *j, const char *event, const char *store, const struct rp_mark *mark,
                        const char *as);
/* orphan.detected: the safety net has found something that was lost. Steals the fields. */
void rp_journal_orphan(const struct rp_journal *j, json_t *fields);
void rp_journal_reader_behind(const struct rp_journal *j, json_t *fields);
/* mark.purged, mark.reprieved, mark.skipped, mark.failed, mark.dead for each of the batch; then
 * cleanup_progress. */
void rp_journal_batch(const struct rp_journal *j, const struct rp_purge_batch *batch, const struct rp_run *run);

/* The stages of a run: cleanup_started, cleanup_completed, cleanup_failed; of a restore:
 * restore_started, ...; of a retention: retention_started, ...; of a safety net:
 * safety_net_started, ... */
void rp_journal_started(const struct rp_journal *j, const struct rp_run *run);
/* cleanup_completed; or cleanup_failed, `code` says why. */
void rp_journal_ended(const struct rp_journal *j, const struct rp_run *run, const char *outcome, int code);
void rp_journal_failed(const struct rp_journal *j, const char *kind, const struct rp_run *run,
                       const struct rp_error *why);
void rp_journal_skipped(const struct rp_journal *j, const char *kind, const char *name, const char *locked_by,
                        int64_t locked_since_ms);
/* A store that a run leaves out, and why. */
void rp_journal_left_out(const struct rp_journal *j, const char *store, int64_t due, const struct rp_error *why);
/* A user's database or server that is left alone for `left_ms`; a NULL `why`: it answers again. */
void rp_journal_waits(const struct rp_journal *j, const struct rp_whom *whom, int64_t left_ms,
                      const struct rp_error *why);

#endif
