/* SPDX-License-Identifier: Apache-2.0 */
/* api_marks.h - what the calls about marks lend to those about files. */
#ifndef RP_HTTP_API_MARKS_H
#define RP_HTTP_API_MARKS_H

#include "core/reprieve.h"
#include "http/server/request.h"

/* Restores what a mark is about - an object, a file with what belongs to it, or what lies in quarantine - and logs it, on this thread,
 * which may block. The mark of a copy in quarantine stands for the one that the copy was made for: *mark becomes that. */
void rp_mark_restore(struct rp_request *q, struct rp_mark *mark, struct rp_reprieve_answer *answer);

#endif
