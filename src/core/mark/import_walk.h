/* SPDX-License-Identifier: Apache-2.0 */
/* import_walk.h - where an import is in its store, for its own files. */
#ifndef RP_CORE_MARK_IMPORT_WALK_H
#define RP_CORE_MARK_IMPORT_WALK_H

#include "core/mark/import.h"

#define RP_IMPORT_PAGE RP_MARK_ITEMS_MAX

struct rp_import_walk {
    struct rp_arena arena; /* of the page's keys */
    struct rp_import_item *page;
    size_t n_page, n_taken; /* taken: handed out in batches */
    struct rp_import_item **batch;
    struct rp_mark_request *requests;
    struct rp_mark_answer *answers;
    struct rp_import_item **asked; /* which item each request is of */
    char after[RP_KEY_MAX + 1];
    bool listed; /* to the end */
};

/* The keys that follow; then what their objects carry. */
int rp_import_list_page(struct rp_import *import, struct rp_error *err);
int rp_import_read_page(struct rp_import *import, struct rp_error *err);

#endif
