/* SPDX-License-Identifier: Apache-2.0 */
#include "core/mark/annotation.h"

#include "base/error.h"
#include "catalog/mark/mark.h"
#include "core/guarantee.h"
#include "core/subject/subject.h"

#include <inttypes.h>
#include <stdio.h>

#define FIELDS 4

static int change(struct rp_catalog *catalog, struct rp_store *store, const char *key, struct rp_identity *identity,
                  const struct rp_pair fields[FIELDS], struct rp_error *err)
{
    if (store->config->mode == RP_MODE_OBSERVE)
        return rp_error_set(err, RP_EOBSERVE, "store '%s' is in mode observe: nothing is written to it",
                            store->config->name);
    int r = rp_guarantee_ensure(catalog, store, RP_GUARANTEE_SWEEP, err);
    return r < 0 ? r : rp_backend_annotate(store->backend, key, identity, fields, FIELDS, err);
}

int rp_annotation_write(struct rp_catalog *catalog, struct rp_store *store, const char *key,
                        struct rp_identity *identity, const struct rp_annotation *annotation, struct rp_error *err)
{
    char marked_on[24], delete_after[24];
    snprintf(marked_on, sizeof marked_on, "%" PRId64, annotation->marked_at_ms);
    snprintf(delete_after, sizeof delete_after, "%" PRId64, annotation->due_at_ms);
    const struct rp_pair fields[FIELDS] = { { RP_ANNOTATION_MARKED, "true" },
                                            { RP_ANNOTATION_MARKED_ON, marked_on },
                                            { RP_ANNOTATION_DELETE_AFTER, delete_after },
                                            { RP_ANNOTATION_REASON, annotation->reason } };
    return change(catalog, store, key, identity, fields, err);
}

static const struct rp_pair no_fields[FIELDS] = { { RP_ANNOTATION_MARKED, NULL },
                                                  { RP_ANNOTATION_MARKED_ON, NULL },
                                                  { RP_ANNOTATION_DELETE_AFTER, NULL },
                                                  { RP_ANNOTATION_REASON, NULL } };

int rp_annotation_remove(struct rp_catalog *catalog, struct rp_store *store, const char *key,
                         const struct rp_identity *identity, struct rp_error *err)
{
    struct rp_identity now = *identity;
    return change(catalog, store, key, &now, no_fields, err);
}

int rp_annotation_take_off(struct rp_store *store, const char *key, const struct rp_identity *identity,
                           struct rp_error *err)
{
    struct rp_identity now = *identity;
    return rp_backend_annotate(store->backend, key, &now, no_fields, FIELDS, err);
}

void rp_annotation_end(struct rp_catalog *catalog, struct rp_store *store, const struct rp_mark *mark,
                       char note[RP_ANNOTATE_NOTE])
{
    const struct rp_identity identity = rp_subject_identity(mark);
    struct rp_error why = { 0 };
    note[0] = 0;
    if (!mark->annotated) return;
    int r = store != NULL ? rp_store_refuse_closed(store, &why)
                          : rp_error_set(&why, RP_EUNAVAILABLE, "the store of this mark is not configured any more");
    if (r == 0) r = rp_annotation_remove(catalog, store, mark->key, &identity, &why);
    if (r < 0 && r != RP_ENOTFOUND && r != RP_ECHANGED) snprintf(note, RP_ANNOTATE_NOTE, "%.119s", why.text);
}
