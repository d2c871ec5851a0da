/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics/series.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/text/utf8.h"

#include <string.h>

#define LABELS_BYTES 4096

void rp_metric_head(struct rp_buf *out, const char *name, const char *type, const char *help)
{
    rp_buf_fmt(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void rp_metric_label(struct rp_buf *out, const char *value)
{
    for (size_t n = strlen(value); n > 0;) {
        size_t length = rp_utf8_length(value, n);
        if (length == 0)
            rp_buf_str(out, "\xef\xbf\xbd");
        else if (*value == '\n')
            rp_buf_str(out, "\\n");
        else if (*value == '"' || *value == '\\')
            rp_buf_fmt(out, "\\%c", *value);
        else
            rp_buf_add(out, value, length);
        if (length == 0) length = 1;
        value += length;
        n -= length;
    }
}

/* ---- series ---- */

static size_t n_labels(const struct rp_family *family)
{
    size_t n = 0;
    while (n < RP_SERIES_LABELS && family->labels[n] != NULL)
        n++;
    return n;
}

static uint64_t hash_of(const struct rp_family *family, const char *const *values)
{
    uint64_t hash = rp_hash_text(0, "");
    for (size_t i = 0; i < n_labels(family); i++)
        hash = rp_hash_bytes(hash, values[i], strlen(values[i]) + 1);
    return hash ^ hash >> 29;
}

static bool is_of(const struct rp_family *family, const struct rp_series *series, uint64_t hash,
                  const char *const *values)
{
    const char *own = series->values;
    if (series->hash != hash) return false;
    for (size_t i = 0; i < n_labels(family); i++) {
        if (strcmp(own, values[i]) != 0) return false;
        own += strlen(own) + 1;
    }
    return true;
}

static int fill(const struct rp_family *family, struct rp_series *series, const char *const *values)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf labels = RP_BUF(LABELS_BYTES);
    RP_CLEANUP(rp_buf_done) struct rp_buf raw = RP_BUF(LABELS_BYTES);
    for (size_t i = 0; i < n_labels(family); i++) {
        rp_buf_fmt(&labels, "%s%s=\"", i == 0 ? "{" : ",", family->labels[i]);
        rp_metric_label(&labels, values[i]);
        rp_buf_char(&labels, '"');
        rp_buf_add(&raw, values[i], strlen(values[i]) + 1);
    }
    rp_buf_char(&labels, '}');
    if (labels.failed < 0 || raw.failed < 0) return RP_ENOMEM;
    series->hash = hash_of(family, values);
    series->labels = labels.data;
    series->values = raw.data;
    labels.data = raw.data = NULL;
    return 0;
}

int rp_series_init(struct rp_series_set *set, const struct rp_family *family)
{
    static const char *const others[RP_SERIES_LABELS] = { "other", "other", "other" };
    size_t n_slots = 16;
    while (n_slots < 2 * family->max)
        n_slots *= 2;
    *set = (struct rp_series_set){ .family = family, .n_slots = n_slots };
    pthread_mutex_init(&set->lock, NULL);
    set->slots = calloc(n_slots, sizeof *set->slots);
    return set->slots == NULL ? RP_ENOMEM : fill(family, &set->other, others);
}

void rp_series_done(struct rp_series_set *set)
{
    if (set->family == NULL) return;
    for (size_t i = 0; set->slots != NULL && i < set->n_slots; i++) {
        struct rp_series *series = atomic_load(&set->slots[i]);
        if (series == NULL) continue;
        free(series->labels);
        free(series->values);
        free(series);
    }
    free(set->slots);
    free(set->other.labels);
    free(set->other.values);
    pthread_mutex_destroy(&set->lock);
    *set = (struct rp_series_set){ 0 };
}

/* With the lock: the slot is free, and only who holds the lock fills one. */
static struct rp_series *make(struct rp_series_set *set, size_t slot, const char *const *values)
{
    if (set->n == set->family->max) return &set->other;
    struct rp_series *series = calloc(1, sizeof *series);
    if (series == NULL || fill(set->family, series, values) < 0) {
        free(series);
        return &set->other;
    }
    set->n++;
    atomic_store_explicit(&set->slots[slot], series, memory_order_release);
    return series;
}

/* The series, or the free slot where it would stand. */
static struct rp_series *seek(struct rp_series_set *set, uint64_t hash, const char *const *values, size_t *slot)
{
    for (size_t i = (size_t)hash & (set->n_slots - 1);; i = (i + 1) & (set->n_slots - 1)) {
        struct rp_series *series = atomic_load_explicit(&set->slots[i], memory_order_acquire);
        if (series != NULL && !is_of(set->family, series, hash, values)) continue;
        *slot = i;
        return series;
    }
}

_Atomic int64_t *rp_series_of(struct rp_series_set *set, const char *const *values)
{
    uint64_t hash = hash_of(set->family, values);
    size_t slot = 0;
    struct rp_series *series = seek(set, hash, values, &slot);
    if (series == NULL) {
        pthread_mutex_lock(&set->lock);
        series = seek(set, hash, values, &slot);
        if (series == NULL) series = make(set, slot, values);
        pthread_mutex_unlock(&set->lock);
    }
    return &series->value;
}

void rp_series_add(struct rp_series_set *set, const char *const *values, int64_t n)
{
    atomic_fetch_add_explicit(rp_series_of(set, values), n, memory_order_relaxed);
}

void rp_series_raise(struct rp_series_set *set, const char *const *values, int64_t to)
{
    _Atomic int64_t *value = rp_series_of(set, values);
    int64_t was = atomic_load_explicit(value, memory_order_relaxed);
    while (was < to && !atomic_compare_exchange_weak(value, &was, to))
        continue;
}

static void write_series(const struct rp_family *family, struct rp_series *series, struct rp_buf *out)
{
    int64_t value = atomic_load_explicit(&series->value, memory_order_relaxed);
    rp_buf_fmt(out, "%s%s ", family->name, series->labels);
    if (family->divide > 1)
        rp_buf_fmt(out, "%.3f\n", (double)value / (double)family->divide);
    else
        rp_buf_fmt(out, "%lld\n", (long long)value);
}

void rp_series_write(struct rp_series_set *set, struct rp_buf *out)
{
    const struct rp_family *family = set->family;
    rp_metric_head(out, family->name, family->type, family->help);
    for (size_t i = 0; i < set->n_slots; i++) {
        struct rp_series *series = atomic_load_explicit(&set->slots[i], memory_order_acquire);
        if (series != NULL) write_series(family, series, out);
    }
    if (atomic_load(&set->other.value) != 0) write_series(family, &set->other, out);
}

/* ---- histograms ---- */

void rp_histogram_add(struct rp_histogram *h, int64_t value)
{
    size_t i = 0;
    RP_ASSERT(h->kind->n <= RP_BUCKETS_MAX);
    while (i < h->kind->n && value > h->kind->bounds[i])
        i++;
    atomic_fetch_add_explicit(&h->buckets[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum, value, memory_order_relaxed);
}

void rp_histogram_write(struct rp_histogram *h, struct rp_buf *out)
{
    const struct rp_histogram_kind *kind = h->kind;
    uint64_t n = 0;
    rp_metric_head(out, kind->name, "histogram", kind->help);
    for (size_t i = 0; i <= kind->n; i++) {
        n += atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
        if (i < kind->n)
            rp_buf_fmt(out, "%s_bucket{le=\"%g\"} %llu\n", kind->name, (double)kind->bounds[i] * kind->unit,
                       (unsigned long long)n);
    }
    rp_buf_fmt(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.6f\n%s_count %llu\n", kind->name, (unsigned long long)n,
               kind->name, (double)atomic_load_explicit(&h->sum, memory_order_relaxed) * kind->unit, kind->name,
               (unsigned long long)n);
}
