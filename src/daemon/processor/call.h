/* SPDX-License-Identifier: Apache-2.0 */
/* call.h - what a processor is told of an upload, and what follows from its answer. Pure.
 *
 *   {"action":"process","file","tenant","name","size","content_type","idempotency_key","url"}
 *   {"action":"cancel","file","idempotency_key"}
 *
 * J1  2xx: it has taken the job; its verdict comes by POST /v1/files/{id}/result.
 * J2  Anything else is tried again, after 10 s at first and an hour at most: RP_PROCESS_ATTEMPTS
 *     times, which takes three days. A wrong URL or a secret that was changed on one side alone is
 *     mended in that time, so a 4xx is no exception. Then the job is dead.
 * J3  A cancel is tried RP_CANCEL_ATTEMPTS times, and given up. A 4xx says that there is nothing to
 *     stop. */
#ifndef RP_DAEMON_PROCESSOR_CALL_H
#define RP_DAEMON_PROCESSOR_CALL_H

#include "base/text/buf.h"
#include "catalog/file/file.h"
#include "catalog/file/process.h"

#define RP_PROCESS_ATTEMPTS 80
#define RP_CANCEL_ATTEMPTS  6

/* The id of the message, the same in every attempt. */
#define RP_PROCESS_ID 64
const char *rp_process_id(const struct rp_process_job *job, char out[RP_PROCESS_ID]);
/* `tenant` and `url`: of action process. */
int rp_process_body(const struct rp_process_job *job, const struct rp_file *file, const char *tenant, const char *url,
                    struct rp_buf *out, struct rp_error *err);

struct rp_process_answer {
    int code;               /* of the call: 0 or an error */
    long status;            /* HTTP; 0: none came */
    int64_t retry_after_ms; /* -1: not said */
};
enum rp_process_end rp_process_judge(const struct rp_process_job *job, const struct rp_process_answer *answer,
                                     int64_t *again_ms);

#endif
