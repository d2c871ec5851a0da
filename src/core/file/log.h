/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - the `log` step of the verbs over files (catalog/writer/writer.h, W9). */
#ifndef RP_CORE_FILE_LOG_H
#define RP_CORE_FILE_LOG_H

#include "core/file/transaction.h"

typedef void rp_log_fn(const struct rp_command *command, struct rp_log *log, int64_t at_ms);
rp_log_fn rp_log_init, rp_log_confirm, rp_log_delete, rp_log_restore, rp_log_result, rp_log_txn;

#endif
