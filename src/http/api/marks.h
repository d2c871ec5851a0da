/* SPDX-License-Identifier: Apache-2.0 */
/* marks.h - what the calls about marks lend to those about files and about restores in bulk. */
#ifndef RP_HTTP_API_MARKS_H
#define RP_HTTP_API_MARKS_H

#include "core/reprieve/reprieve.h"
#include "http/server/request.h"

/* What became of one mark that was to be restored. */
extern const struct rp_shape rp_shape_restored;

/* A command that restores what this mark, or this file's, is about; of this tenant (0: any).
 * NULL: answered. */
struct rp_reprieve_command *rp_restore_command(struct rp_request *q, int64_t tenant_id, int64_t mark_id,
                                               int64_t file_id);
/* The restored file, with what of its family could not come back. NULL: the mark is of no file. */
json_t *rp_restored_file_json(struct rp_request *q);

#endif
