/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <string.h>

#include "catalog/mark/hold.h"
#include "catalog/mark/mark.h"
#include "core/subject/quarantine.h"

/* What was added last is asked for most. */
struct model_mark *model_mark(struct model *m, int64_t id)
{
    for (size_t i = m->n_marks; i-- > 0;)
        if (m->marks[i].id == id) return &m->marks[i];
    return NULL;
}

struct model_file *model_file(struct model *m, int64_t id)
{
    for (size_t i = m->n_files; i-- > 0;)
        if (m->files[i].id == id) return &m->files[i];
    return NULL;
}

struct model_txn *model_txn(struct model *m, int64_t id)
{
    for (size_t i = 0; i < m->n_txns; i++)
        if (m->txns[i].id == id) return &m->txns[i];
    return NULL;
}

struct model_confirmation *model_confirmation(struct model *m, int64_t id)
{
    for (size_t i = m->n_confirmations; i-- > 0;)
        if (m->confirmations[i].id == id) return &m->confirmations[i];
    return NULL;
}

struct model_mark *model_mark_of(struct model *m, const char *key)
{
    for (size_t i = m->n_marks; i-- > 0;)
        if (strcmp(m->marks[i].key, key) == 0) return &m->marks[i];
    return NULL;
}

struct model_file *model_file_of_key(struct model *m, const char *key)
{
    for (size_t i = 0; i < m->n_files; i++)
        if (strcmp(m->files[i].key, key) == 0) return &m->files[i];
    return NULL;
}

struct model_mark *model_original(struct model *m, const char *key)
{
    int64_t id;
    return rp_quarantine_original(key, &id) ? model_mark(m, id) : NULL;
}

bool model_is_active(const struct model_mark *mark)
{
    return mark->state != RP_PURGED && mark->state != RP_REPRIEVED && mark->state != RP_LOST;
}

bool model_is_decided(const struct model_mark *mark)
{
    return mark->state == RP_PURGING || mark->state == RP_PURGED || mark->state == RP_LOST ||
           (mark->state == RP_DEAD && mark->was == RP_PURGING);
}

bool model_is_held(struct model *m, const char *key, int64_t tenant_id)
{
    const struct model_mark *original = model_original(m, key);
    if (original != NULL && model_is_held(m, original->key, tenant_id)) return true;
    for (size_t i = 0; i < m->n_holds; i++) {
        const struct model_hold *h = &m->holds[i];
        if (h->lifted) continue;
        if (h->scope == RP_SCOPE_EVERYTHING) return true;
        if (h->scope == RP_SCOPE_SUBJECT && strcmp(h->key, key) == 0) return true;
        if (h->scope == RP_SCOPE_PREFIX && strncmp(h->key, key, strlen(h->key)) == 0) return true;
        if (h->scope == RP_SCOPE_TENANT && h->tenant_id == tenant_id) return true;
    }
    return false;
}

void model_clear(struct model *m)
{
    m->n_marks = m->n_files = m->n_holds = m->n_txns = m->n_keys = m->n_confirmations = 0;
}

/* As much of it as there is. */
void model_copy(struct model *to, const struct model *from)
{
    memcpy(to->marks, from->marks, from->n_marks * sizeof *from->marks);
    memcpy(to->files, from->files, from->n_files * sizeof *from->files);
    memcpy(to->holds, from->holds, from->n_holds * sizeof *from->holds);
    memcpy(to->txns, from->txns, from->n_txns * sizeof *from->txns);
    memcpy(to->keys, from->keys, from->n_keys * sizeof *from->keys);
    to->n_marks = from->n_marks;
    to->n_files = from->n_files;
    to->n_holds = from->n_holds;
    to->n_txns = from->n_txns;
    memcpy(to->confirmations, from->confirmations, from->n_confirmations * sizeof *from->confirmations);
    to->n_keys = from->n_keys;
    to->n_confirmations = from->n_confirmations;
}
