/* SPDX-License-Identifier: Apache-2.0 */
/* inner.h - a run's record, for the files of this folder. */
#ifndef RP_CORE_RUN_INNER_H
#define RP_CORE_RUN_INNER_H

#include "core/run/run.h"

/* now_ms 0: it is over, and its progress is none any more. */
json_t *rp_run_figures_json(const struct rp_run *run, int64_t now_ms);
json_t *rp_run_record_json(const struct rp_run_row *run, const char *outcome, bool dry_run, int64_t finished_at_ms,
                           const json_t *figures);
struct rp_run_row rp_run_row_of(const struct rp_run *run);

#endif
