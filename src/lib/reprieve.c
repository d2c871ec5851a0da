/* SPDX-License-Identifier: Apache-2.0 */
/* reprieve.c - the installed library: a thin layer over the session and the verbs. */
#include "reprieve.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "core/mark/mark.h"
#include "core/reprieve/reprieve.h"
#include "core/sweep/sweep.h"
#include "lib/confirming.h"
#include "lib/session.h"

#include <string.h>

#define RESTORE_ARENA_MAX ((size_t)16 << 20)

struct reprieve {
    struct rp_session session;
    struct rp_error error;
};

int reprieve_open(const struct reprieve_options *options, struct reprieve **out)
{
    struct rp_session_options session = { 0 };
    if (options != NULL)
        session = (struct rp_session_options){ .config_file = options->config_file,
                                               .data = options->data,
                                               .actor = options->actor };
    *out = calloc(1, sizeof **out);
    if (*out == NULL) return RP_ENOMEM;
    return rp_session_open(&(*out)->session, &session, &(*out)->error);
}

void reprieve_close(struct reprieve *r)
{
    if (r == NULL) return;
    rp_session_close(&r->session);
    free(r);
}

const char *reprieve_error(const struct reprieve *r)
{
    return r != NULL ? r->error.text : "out of memory";
}

const char *reprieve_error_code(const struct reprieve *r)
{
    if (r == NULL) return rp_error_slug(RP_ENOMEM);
    return r->error.code < 0 ? rp_error_slug(r->error.code) : "";
}

const char *reprieve_version(void)
{
    return REPRIEVE_VERSION;
}

int reprieve_mark(struct reprieve *r, const struct reprieve_mark_request *request, struct reprieve_mark *out)
{
    struct rp_subject subject;
    struct rp_mark_answer answer;
    rp_error_clear(&r->error);
    if (request->grace_ms != 0 && request->at_ms != 0)
        return rp_error_set(&r->error, RP_EINVAL, "give a grace or a time, not both");
    int code = rp_session_subject(&r->session, request->subject, &subject, &r->error);
    if (code < 0) return code;
    if (subject.store == NULL && subject.file_id == 0)
        return rp_error_set(&r->error, RP_EINVAL, "name what to mark as STORE:KEY or as a file's id");
    struct rp_mark_request q = { .key = subject.key,
                                 .grace_ms = request->grace_ms != 0 ? request->grace_ms : -1,
                                 .at_ms = request->at_ms != 0 ? request->at_ms : -1,
                                 .reason = request->reason != NULL ? request->reason : "",
                                 .if_unreferenced = request->if_unreferenced != 0 };
    if (subject.file_id != 0)
        code = rp_session_mark_file(&r->session, subject.file_id, &q, &subject.store, &answer, &r->error);
    else {
        rp_session_look(&r->session, subject.store);
        code = rp_mark_many(r->session.catalog, subject.store, &q, 1, r->session.actor, false, &answer, &r->error);
    }
    if (code < 0) return code;
    r->error = answer.error;
    if (answer.what == RP_MARK_REFUSED) return answer.error.code;
    *out = (struct reprieve_mark){ .marked_at_ms = answer.marked_at_ms,
                                   .due_at_ms = answer.due_at_ms,
                                   .existed = answer.what == RP_MARK_SAME || answer.what == RP_MARK_EXTENDED };
    rp_id_format(RP_ID_MARK, answer.mark_id, out->id);
    return 0;
}

int reprieve_restore(struct reprieve *r, const char *subject)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(RESTORE_ARENA_MAX);
    struct rp_store *stores[RP_STORES_MAX];
    struct rp_reprieve_command c;
    struct rp_subject named;
    size_t n = 0;
    rp_error_clear(&r->error);
    int code = rp_session_subject(&r->session, subject, &named, &r->error);
    if (code == 0) code = rp_session_stores(&r->session, stores, &n, &r->error);
    if (code < 0) return code;
    struct rp_reprieve_item item = {
        .mark_id = named.mark_id, .file_id = named.file_id, .store = named.store, .key = named.key
    };
    rp_reprieve_command_init(&c, &item, 1, r->session.actor, &arena);
    c.stores = stores;
    c.n_stores = n;
    code = rp_command_run(r->session.catalog, &c.command);
    r->error = c.command.error;
    return code;
}

int reprieve_sweep(struct reprieve *r, int64_t limit, struct reprieve_sweep *out)
{
    struct rp_store *stores[RP_STORES_MAX];
    RP_CLEANUP(rp_freep) struct rp_sweep_result *result = calloc(1, sizeof *result);
    struct rp_asker_pass asked = { 0 };
    size_t n = 0;
    rp_error_clear(&r->error);
    if (result == NULL) return rp_error_set(&r->error, RP_ENOMEM, "out of memory");
    int code = rp_session_stores(&r->session, stores, &n, &r->error);
    if (code < 0) return code;
    struct rp_sweep sweep = rp_session_sweep(&r->session);
    sweep.by.stores = stores;
    sweep.by.n_stores = n;
    sweep.name = "all";
    if (limit > 0) sweep.limit = limit;
    code = rp_confirming_pass(&r->session, &sweep, &asked, &r->error);
    if (code < 0) return code;
    code = rp_sweep_run(&sweep, result, &r->error);
    if (code < 0) return code;
    const struct rp_figures *f = &result->run.figures;
    *out = (struct reprieve_sweep){ .purged = f->purged,
                                    .already_gone = f->already_gone,
                                    .skipped = f->skipped,
                                    .failed = f->failed,
                                    .bytes_freed = f->bytes_freed };
    rp_id_format(RP_ID_RUN, result->run.id, out->run);
    code = rp_outcome_code(result->outcome, result->code);
    if (code == 0) return 0;
    return rp_error_set(&r->error, code, "sweep %s: %s", result->outcome,
                        f->n_errors > 0 ? f->errors[0] : "stopped early");
}
