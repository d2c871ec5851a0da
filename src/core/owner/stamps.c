/* SPDX-License-Identifier: Apache-2.0 */
/* stamps.c - the stamps of each store, kept as one row of meta. */
#include "core/owner/stamps.h"

#include "base/assert.h"
#include "base/error.h"
#include "core/owner/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_MAX (RP_STAMPS_MAX * RP_STAMP_TEXT)

/* Oldest first. In the row each is followed by a space. */
struct stamps {
    int64_t seen_epoch; /* of the record last seen; if that has a stamp, it is the first */
    size_t n;
    char at[RP_STAMPS_MAX][RP_STAMP_TEXT];
};

static const char *row_name(int64_t store_id, char out[RP_OWNER_FACT_MAX])
{
    return rp_owner_fact(RP_OWNER_STAMPS, store_id, out);
}

/* ---- asking ---- */

struct asking {
    const char *stamp, *own;   /* own: the name of the store's row */
    int64_t seen_epoch, other; /* other: the store whose stamp it is; 0: none */
    bool any, has_own, of_own;
};

static bool holds_stamp(const char *word, const char *stamp)
{
    for (const char *at = word; strlen(at) >= RP_STAMP_TEXT; at += RP_STAMP_TEXT)
        if (strncmp(at, stamp, RP_STAMP_TEXT - 1) == 0) return true;
    return false;
}

static int ask_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct asking *asking = ctx;
    (void)err;
    bool own = strcmp(row[0].p, asking->own) == 0;
    asking->any = true;
    if (own) asking->seen_epoch = row[1].i;
    asking->has_own = asking->has_own || own;
    if (!holds_stamp(row[2].p, asking->stamp)) return 0;
    if (own)
        asking->of_own = true;
    else
        asking->other = strtoll((const char *)row[0].p + strlen(RP_OWNER_STAMPS), NULL, 10);
    return 0;
}

static enum rp_stamp judge(const struct asking *a, int64_t epoch)
{
    if (a->of_own || !a->any) return RP_STAMP_OURS;
    if (a->other != 0) return a->has_own ? RP_STAMP_OTHERS : RP_STAMP_RENAMED;
    return epoch < a->seen_epoch ? RP_STAMP_OURS : RP_STAMP_UNKNOWN;
}

int rp_stamps_judge(struct rp_db *db, int64_t store_id, const char *stamp, int64_t epoch, enum rp_stamp *out,
                    int64_t *other, struct rp_error *err)
{
    char name[RP_OWNER_FACT_MAX];
    struct asking asking = { .stamp = stamp, .own = row_name(store_id, name) };
    int r = stamp[0] == '\0' ? 0 : rp_meta_each(db, RP_OWNER_STAMPS, ask_row, &asking, err);
    if (r < 0) return rp_error_wrap(err, r, "stamps of owner records");
    *out = judge(&asking, epoch);
    *other = *out == RP_STAMP_OTHERS || *out == RP_STAMP_RENAMED ? asking.other : 0;
    return 0;
}

int rp_stamps_any(struct rp_db *db, int64_t store_id, bool *out, struct rp_error *err)
{
    char name[RP_OWNER_FACT_MAX];
    int64_t unused;
    return rp_meta_find(db, row_name(store_id, name), out, &unused, NULL, 0, err);
}

/* ---- drawing ---- */

static int load(struct rp_db *db, const char *name, struct stamps *out, struct rp_error *err)
{
    char word[WORD_MAX + 1] = "";
    bool found;
    *out = (struct stamps){ 0 };
    int r = rp_meta_find(db, name, &found, &out->seen_epoch, word, sizeof word, err);
    if (r < 0) return r;
    if (strlen(word) % RP_STAMP_TEXT != 0)
        return rp_error_set(err, RP_ECORRUPT, "the catalog's fact '%s' is damaged", name);
    for (const char *at = word; *at != '\0'; at += RP_STAMP_TEXT)
        memcpy(out->at[out->n++], at, RP_STAMP_TEXT - 1);
    return 0;
}

static int save(struct rp_db *db, const char *name, const struct stamps *stamps, struct rp_error *err)
{
    char word[WORD_MAX + 1] = "", *to = word;
    for (size_t i = 0; i < stamps->n; i++)
        to += snprintf(to, RP_STAMP_TEXT + 1, "%s ", stamps->at[i]);
    return rp_meta_set(db, name, stamps->seen_epoch, word, err);
}

static void forget(struct stamps *stamps, size_t from, size_t n)
{
    RP_ASSERT(from + n <= stamps->n);
    stamps->n -= n;
    memmove(stamps->at[from], stamps->at[from + n], (stamps->n - from) * sizeof stamps->at[0]);
}

/* What was drawn before the record that was seen is needed no longer: that record only gives way to
 * later ones. */
static void see(struct stamps *stamps, const char *seen, int64_t seen_epoch)
{
    size_t i = 0;
    if (strlen(seen) != RP_STAMP_TEXT - 1 || seen_epoch < stamps->seen_epoch) return;
    while (i < stamps->n && strcmp(stamps->at[i], seen) != 0)
        i++;
    if (i < stamps->n) {
        forget(stamps, 0, i);
    } else { /* drawn by another store that this was swapped with, or before this catalog kept any */
        if (stamps->n == RP_STAMPS_MAX) forget(stamps, 0, 1);
        memmove(stamps->at[1], stamps->at[0], stamps->n++ * sizeof stamps->at[0]);
        memcpy(stamps->at[0], seen, RP_STAMP_TEXT);
    }
    stamps->seen_epoch = seen_epoch;
}

int rp_stamps_draw(struct rp_tx *tx, int64_t store_id, const char *seen, int64_t seen_epoch, char out[RP_STAMP_TEXT],
                   struct rp_error *err)
{
    struct stamps stamps;
    char name[RP_OWNER_FACT_MAX];
    int r = load(tx->db, row_name(store_id, name), &stamps, err);
    if (r == 0) r = rp_stamp_draw(out, err);
    if (r < 0) return r;
    see(&stamps, seen, seen_epoch);
    if (stamps.n == RP_STAMPS_MAX) forget(&stamps, 1, 1); /* the first may stand in the store */
    memcpy(stamps.at[stamps.n++], out, RP_STAMP_TEXT);
    return save(tx->db, name, &stamps, err);
}
