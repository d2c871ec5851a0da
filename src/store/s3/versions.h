/* SPDX-License-Identifier: Apache-2.0 */
/* versions.h - the versions under many keys. */
#ifndef RP_STORE_S3_VERSIONS_H
#define RP_STORE_S3_VERSIONS_H

#include "store/s3/s3.h"

#define S3_OLDER_MAX   4096 /* versions held at a time */
#define S3_MARKERS_MAX 8

struct s3_version {
    size_t key;
    bool marker; /* a marker that lies directly on the marked version, or on nothing */
    char id[RP_VERSION_MAX];
};
/* What is known of the versions under one item's key. */
struct s3_key_versions {
    struct rp_item *item;
    bool older_sent;            /* the caller's: all older ones were sent off */
    bool read;                  /* all that follows is known; else `why` */
    bool found;                 /* the marked version is there */
    bool stands;                /* the key shows an object */
    bool objects;               /* there are versions that are no markers */
    bool more;                  /* not all older versions are held */
    bool newer;                 /* a version that is no marker lies above the marked one, or stands in its place */
    size_t covers;              /* markers on top of everything else */
    char cover[RP_VERSION_MAX]; /* the topmost of them */
    int64_t newest_ms;          /* when the newest version was written that is no marker */
    char id[RP_VERSION_MAX];
    char why[120];
    /* while it is read */
    bool begun, entered;
    size_t first;
    char markers[S3_MARKERS_MAX][RP_VERSION_MAX];
    size_t n_markers;
};
struct s3_versions {
    struct rp_s3 *s3;
    const struct rp_gate *gate;   /* of what is erased after it was read; NULL: open */
    struct s3_key_versions *keys; /* by key, each key once */
    size_t n;
    struct s3_version *held; /* S3_OLDER_MAX places: the older ones, and the markers, of each key */
    size_t n_held;
    size_t at; /* the first key not read */
};
/* Reads the versions of every key's key. Negative: a failure of the store as a whole. */
int rp_s3_versions_read(struct s3_versions *vs, struct rp_error *err);

#endif
