/* SPDX-License-Identifier: Apache-2.0 */
/* Whose store it is, by what the bucket and the catalog say, read from outside. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "node.h"
#include "owner.h"
#include "task.h"
#include "world.h"

/* The catalog knows that the bucket is its own: one that never was may become it, wherever its name
 * leads. */
bool sim_is_known_ours(struct sim *s)
{
    struct rp_store_row row;
    struct rp_error err = { 0 };
    int r = rp_store_find(s->inner, "main", &row, &err);
    RP_ASSERT(r == 0);
    return row.owned_at != 0;
}

int64_t sim_catalog_epoch(const struct sim *s)
{
    struct rp_error err = { 0 };
    int64_t epoch = -1;
    int r = rp_meta_get(s->inner, "epoch", &epoch, NULL, 0, &err);
    RP_ASSERT(r == 0);
    return epoch;
}

static int64_t epoch_in(const char *record)
{
    int64_t epoch = -1;
    const char *at = strstr(record, "\"epoch\":");
    if (at != NULL) (void)sscanf(at + strlen("\"epoch\":"), "%" SCNd64, &epoch);
    return epoch;
}

/* -1: there is no record. */
static int64_t epoch_of_record(const struct bucket *bucket)
{
    struct bucket_object record;
    return bucket_look(bucket, RP_STORE_OWNER, &record) ? epoch_in(record.text) : -1;
}

int64_t sim_record_epoch(struct sim *s)
{
    int64_t epoch = epoch_of_record(s->bucket);
    if (epoch != s->record.epoch) s->record.at_ms = s->now_ms;
    return s->record.epoch = epoch;
}

bool sim_drew(const struct sim *s, const char *record)
{
    static const char before[] = "\"stamp\":\"";
    struct rp_error err = { 0 };
    char name[40], word[600] = "", stamp[RP_STAMP_TEXT] = "";
    bool found = false;
    int64_t seen = 0;
    const char *at = strstr(record, before);
    if (at != NULL) (void)sscanf(at + strlen(before), "%16[0-9a-f]", stamp);
    snprintf(name, sizeof name, "stamps:%" PRId64, s->store_id);
    int r = rp_meta_find(s->inner, name, &found, &seen, word, sizeof word, &err);
    RP_ASSERT(r == 0);
    return stamp[0] == '\0' || !found || strstr(word, stamp) != NULL || epoch_in(record) < seen;
}

/* Somebody found that it was put back while it was open, and said so in it (catalog/writer/lane.h,
 * L4). */
static bool says_put_back(const struct sim *s)
{
    struct rp_error err = { 0 };
    char name[40], word[RP_VESSEL_TEXT] = "";
    bool found = false;
    int64_t unused;
    snprintf(name, sizeof name, "vessel:%" PRId64, s->store_id);
    int r = rp_meta_find(s->inner, name, &found, &unused, word, sizeof word, &err);
    RP_ASSERT(r == 0);
    return strcmp(word, "put back") == 0;
}

bool sim_owns(const struct sim *s, const struct sim_node *n)
{
    const struct bucket *bucket = s->misled[n->index] ? s->elsewhere : s->bucket;
    struct bucket_object record;
    if (s->home.moved || says_put_back(s)) return false;
    if (!bucket_look(bucket, RP_STORE_OWNER, &record)) return bucket == s->bucket; /* nobody's yet */
    return strstr(record.text, s->catalog_id) != NULL && epoch_of_record(bucket) <= sim_catalog_epoch(s) &&
           sim_drew(s, record.text);
}
