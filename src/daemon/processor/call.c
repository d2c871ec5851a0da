/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/processor/call.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text/json.h"
#include "base/time.h"
#include "base/trouble.h"

#include <stdio.h>

#define AGAIN_FIRST_MS (10 * RP_SECOND_MS)
#define AGAIN_MOST_MS  RP_HOUR_MS

const char *rp_process_id(const struct rp_process_job *job, char out[RP_PROCESS_ID])
{
    char file[RP_ID_TEXT];
    snprintf(out, RP_PROCESS_ID, "%s-%s-%llx", rp_id_format(RP_ID_FILE, job->file_id, file),
             job->action == RP_PROCESS ? "process" : "cancel", (unsigned long long)job->made_at_ms);
    return out;
}

int rp_process_body(const struct rp_process_job *job, const struct rp_file *file, const char *tenant, const char *url,
                    struct rp_buf *out, struct rp_error *err)
{
    char id[RP_ID_TEXT];
    bool cancel = job->action == RP_PROCESS_CANCEL;
    RP_CLEANUP(rp_json_decrefp) json_t *o = json_object();
    rp_json_set(o, "action", json_string(cancel ? "cancel" : "process"));
    rp_json_set(o, "file", json_string(rp_id_format(RP_ID_FILE, job->file_id, id)));
    if (!cancel) {
        rp_json_set(o, "tenant", rp_json_text(tenant));
        rp_json_set(o, "name", rp_json_text(file->name));
        rp_json_set(o, "size", json_integer(file->size_bytes));
        rp_json_set(o, "content_type", rp_json_text(file->content_type != NULL ? file->content_type : ""));
        rp_json_set(o, "url", rp_json_text(url));
    }
    rp_json_set(o, "idempotency_key", rp_json_text(job->key));
    return rp_json_write(out, o) < 0 ? rp_error_set(err, RP_ENOMEM, "no memory for a call to the processor") : 0;
}

enum rp_process_end rp_process_judge(const struct rp_process_job *job, const struct rp_process_answer *answer,
                                     int64_t *again_ms)
{
    bool cancel = job->action == RP_PROCESS_CANCEL;
    bool refused = answer->code != 0 && answer->status >= 400 && answer->status < 500 && answer->status != 408 &&
                   answer->status != 429;
    *again_ms = 0;
    if (answer->code == 0 || (cancel && refused)) return RP_PROCESS_TOLD;
    if (job->attempts >= (cancel ? RP_CANCEL_ATTEMPTS : RP_PROCESS_ATTEMPTS))
        return cancel ? RP_PROCESS_GIVEN_UP : RP_PROCESS_DEAD;
    *again_ms = rp_trouble_backoff_ms(job->attempts, AGAIN_FIRST_MS, AGAIN_MOST_MS);
    if (answer->retry_after_ms > *again_ms) *again_ms = answer->retry_after_ms;
    return RP_PROCESS_AGAIN;
}
