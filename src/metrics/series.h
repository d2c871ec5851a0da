/* SPDX-License-Identifier: Apache-2.0 */
/* series.h - the figures of one name with labels: any number of threads count, a bounded
 * number of labels.
 *
 * M1  Counting takes no lock: a series that was seen before is found by reading, and is added to
 *     atomically. Only one that is new takes the lock.
 * M2  At most `max` series, then all that come are one more with the label `other`. So a name that
 *     others choose (a tenant) costs a bounded amount here and in Prometheus.
 * M3  Label values are escaped, and made valid UTF-8. */
#ifndef RP_METRICS_SERIES_H
#define RP_METRICS_SERIES_H

#include "base/text/buf.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RP_SERIES_LABELS 3

struct rp_series {
    char *labels; /* {store="main",outcome="erased"} */
    char *values; /* each with its NUL, one after the other */
    uint64_t hash;
    _Atomic int64_t value;
};

struct rp_family {
    const char *name, *help, *type;
    const char *labels[RP_SERIES_LABELS]; /* NULL: no more */
    size_t max;
    int64_t divide; /* what is written is value / divide; 0: the value */
};

struct rp_series_set {
    const struct rp_family *family;
    struct rp_series *_Atomic *slots; /* 2 x max at least: never full */
    size_t n_slots, n;
    pthread_mutex_t lock;
    struct rp_series other;
};

int rp_series_init(struct rp_series_set *set, const struct rp_family *family);
void rp_series_done(struct rp_series_set *set);
/* One value a label. Never NULL. */
_Atomic int64_t *rp_series_of(struct rp_series_set *set, const char *const *values);
void rp_series_add(struct rp_series_set *set, const char *const *values, int64_t n);
/* To at least this. */
void rp_series_raise(struct rp_series_set *set, const char *const *values, int64_t to);
void rp_series_write(struct rp_series_set *set, struct rp_buf *out);

void rp_metric_head(struct rp_buf *out, const char *name, const char *type, const char *help);
void rp_metric_label(struct rp_buf *out, const char *value); /* escaped, without the quotes */

/* ---- histograms ---- */

#define RP_BUCKETS_MAX 16

struct rp_histogram_kind {
    const char *name, *help;
    const int64_t *bounds; /* upper, ascending */
    size_t n;
    double unit; /* what is written is a bound times this */
};
struct rp_histogram {
    const struct rp_histogram_kind *kind;
    _Atomic uint64_t buckets[RP_BUCKETS_MAX + 1];
    _Atomic int64_t sum;
};
void rp_histogram_add(struct rp_histogram *h, int64_t value);
void rp_histogram_write(struct rp_histogram *h, struct rp_buf *out);

#endif
