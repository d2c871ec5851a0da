/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - the configuration: one table of settings {path, type, bounds, default, help} that
 * reads the YAML file, fills these structures, and prints `reprieve init`'s commented file and
 * docs/config.md.
 *
 * C1  An unknown key, a wrong type, a value out of bounds, a duplicate key, an alias or anchor, and
 *     a missing required key are errors that name file, line, key and what was expected
 *     ("reprieve.yaml:12: stores.media.mode: expected observe, quarantine or purge, found
 *     'delete'"). All are RP_ECONFIG.
 * C2  ${NAME} in a value is the environment's, put in after parsing (so it can never change the
 *     structure); an unset one is an error; $${ is a literal ${. NAME_file keys read a secret from
 *     a file (one trailing newline dropped).
 * C3  Relative paths are relative to the directory of the file that names them.
 * C4  Secrets are in fields of their own type and are printed by nothing here. */
#ifndef RP_CONFIG_CONFIG_H
#define RP_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/buf.h"

struct rp_arena;
struct rp_error;

#define RP_STORES_MAX     64
#define RP_DATABASES_MAX  64
#define RP_REFERENCES_MAX 64
#define RP_SINKS_MAX      16
#define RP_CONFIRMERS_MAX 16

enum rp_mode { RP_MODE_OBSERVE, RP_MODE_QUARANTINE, RP_MODE_PURGE };
const char *rp_mode_name(enum rp_mode mode);

/* What the users of a store promise about its keys. */
enum rp_keys { RP_KEYS_REUSED, RP_KEYS_WRITE_ONCE };

/* What is known of If-Match on a DELETE: what a probe can tell, or the word of the server's
 * owner. */
enum rp_conditional_deletes { RP_DELETES_PROBED, RP_DELETES_ATOMIC };

/* One place that may still use an object: a column, a query whose only column is a key, or a server that counts. */
struct rp_reference {
    const char *database;            /* a name under `databases`; NULL: a webhook */
    const char *table, *column;      /* both, or */
    const char *sql;                 /* this, or */
    const char *webhook;             /* this; a secret */
    const char *secret, *secret_old; /* ""; sign what is asked */
    int line;                        /* in the file, for error texts */
};

struct rp_store_config {
    const char *name;                                    /* 1 to 63 of a-z 0-9 - _ */
    const char *type;                                    /* "fs" or "s3" */
    const char *path;                                    /* fs; NULL otherwise */
    const char *endpoint, *region, *bucket;              /* s3; endpoint "": AWS's, region "auto": by vendor */
    const char *access_key, *secret_key, *session_token; /* s3, secrets; "": the usual AWS chain */
    const char *profile;                                 /* s3; of the AWS files */
    const char *style;                                   /* s3: auto, path, host */
    const char *ca_file;                                 /* s3; "": the system's */
    int64_t requests_per_second_max;                     /* s3; 0: no cap */
    int64_t request_timeout_ms;                          /* s3; 30s */
    enum rp_keys keys;                                   /* reused */
    enum rp_mode mode;                                   /* observe */
    int64_t grace_ms;                                    /* 5d */
    bool allow_any_grace;                                /* false */
    int64_t quarantine_ms;                               /* 7d */
    bool annotate;                                       /* false */
    const char *import_schedule;                         /* "": never */
    bool allow_window_deletes;                           /* false */
    enum rp_conditional_deletes conditional_deletes;     /* s3; probed */
    struct rp_reference *referenced_by;
    size_t n_referenced_by;
    int line;
};

struct rp_database_config {
    const char *name, *url, *read_url; /* read_url "" : url */
    int64_t statement_timeout_ms;      /* 30s */
    int line;
};

/* Who is told of what happens. */
struct rp_sink_config {
    const char *type;                /* webhook */
    const char *name;                /* 1 to 63 of a-z 0-9 - _; not given: made of the URL's host */
    const char *url;                 /* a secret */
    const char *secret, *secret_old; /* ""; sign what is sent */
    const char *events;              /* names and patterns (events.h), a space between */
    int line;
};

/* When a service is asked: once the mark is due, or at once. */
enum rp_confirm_when { RP_CONFIRM_DUE, RP_CONFIRM_NOW };

/* A short list of status codes of HTTP. */
#define RP_CODES_MAX 8
struct rp_codes {
    int32_t n, at[RP_CODES_MAX];
};

/* An outside service that must say yes before anything is erased (core/confirm/confirm.h). */
struct rp_confirmer_config {
    const char *name, *url;
    const char *secret, *secret_old; /* "": unsigned; the second while the service changes to the first */
    enum rp_confirm_when when;       /* due */
    int64_t timeout_ms;              /* 15s */
    int64_t give_up_after_ms;        /* 3d after it was asked first */
    struct rp_codes gone;            /* 410: answers that mean yes, too */
    int line;
};

/* When somebody is told, and where. 0 turns a condition off. */
struct rp_alert_config {
    const char *webhook;             /* ""; http:// or https:// */
    const char *webhook_secret;      /* ""; signs what is sent */
    const char *webhook_secret_old;  /* ""; also signs */
    int64_t marked_over;             /* 10000 marks waiting */
    int64_t overdue_over_ms;         /* 2d past due */
    int64_t run_over_ms;             /* 4m */
    int64_t error_rate_over_percent; /* 10 */
    int64_t error_window_ms;         /* 30d */
    int64_t no_run_for_ms;           /* 25h */
    int64_t lock_stale_over_ms;      /* 1h */
    int64_t abandoned_per_hour_over; /* 100 */
    int64_t no_worker_for_ms;        /* 5m */
    int64_t dead_letters_over;       /* 0: one is enough */
    int64_t sink_lag_over_ms;        /* 15m */
};

/* How long records stay after what they tell of has ended (core/retention/retention.h). */
#define RP_FOREVER_MS INT64_MAX
struct rp_retention_config {
    int64_t marks_ms; /* 90d; this and the others: or RP_FOREVER_MS */
    int64_t files_ms; /* 90d */
    int64_t keys_ms;  /* 24h */
    int64_t audit_ms; /* forever */
    /* Where sealed segments of the audit log go. "segments" beside a SQLite catalog; "" beside
     * none, and then audit_ms is forever. */
    const char *segments;
};

struct rp_config {
    const char *file;                       /* NULL: the embedded default */
    const char *data;                       /* the directory of the embedded default, or that of the file */
    const char *listen;                     /* 127.0.0.1:8420 */
    bool listen_insecure;                   /* false: a public address needs TLS */
    const char *public_url;                 /* "": http(s)://listen; what signed URLs begin with */
    const char *tls_certificate, *tls_key;  /* "": none; paths */
    const char *node;                       /* "": HOST:PORT; names this daemon */
    int64_t http_connections_max;           /* 12000 */
    int64_t http_requests_per_second;       /* 0: no limit; a token */
    int64_t http_timeout_ms;                /* 30s without progress */
    int64_t writers;                        /* connections that write, PostgreSQL only */
    const char *uploads_store;              /* "": the first store that is not in mode observe */
    int64_t uploads_expire_ms;              /* 1h */
    int64_t uploads_max_size;               /* 5GiB */
    int64_t uploads_max_open;               /* 1000000 a tenant */
    bool uploads_scan;                      /* false */
    int64_t transactions_timeout_ms;        /* 1h */
    int64_t transactions_rollback_grace_ms; /* 5d */
    int64_t quota_default;                  /* 100GiB */
    const char *sweep_schedule;             /* continuous, or a cron line */
    struct rp_alert_config alerts;
    const char *outbound_allow; /* ""; networks in CIDR that calls out may reach, a space between */
    const char *environment;    /* dev */
    const char *catalog_url;
    const char *catalog_failover; /* stop, or synchronous: a promoted server has lost nothing */
    const char *log_file;         /* "-": standard error; "": none */
    const char *log_level;        /* info */
    struct rp_store_config *stores;
    size_t n_stores;
    struct rp_database_config *databases;
    size_t n_databases;
    struct rp_sink_config *sinks; /* events_out */
    size_t n_sinks;
    const char *processor_url; /* ""; a secret */
    const char *processor_secret, *processor_secret_old;
    struct rp_confirmer_config *confirmers; /* `confirmations` */
    size_t n_confirmers;
    int64_t sweep_limit;          /* 100000 */
    int64_t sweep_max_attempts;   /* 20 */
    int64_t sweep_batch;          /* 1000 */
    int64_t sweep_lease_ms;       /* 2m */
    int64_t sweep_retry_first_ms; /* 10s: back-off after the first failure, doubled each time */
    int64_t sweep_retry_most_ms;  /* 1h */
    int64_t lock_stale_after_ms;  /* 30m */
    struct rp_retention_config retention;
    const char *safety_net_schedule; /* 15 * * * *; "": never */
    int64_t safety_net_limit;        /* 1000 */
};

/* `file` NULL: look in $REPRIEVE_CONFIG, ./reprieve.yaml, /etc/reprieve/reprieve.yaml; none of
 * them: the embedded default under `data` (NULL: ./reprieve-data): catalog.db, objects/ as store
 * `main` in mode purge, reprieve.log. With a file, `data` may not be given as well (RP_EINVAL
 * says why). Everything is allocated in the arena. */
int rp_config_load(const char *file, const char *data, struct rp_arena *arena, struct rp_config *out,
                   struct rp_error *err);
/* The same from memory; `name` stands for the file in errors, `dir` for its directory. For tests
 * and fuzzing. */
int rp_config_parse(const char *text, size_t n, const char *name, const char *dir, struct rp_arena *arena,
                    struct rp_config *out, struct rp_error *err);

/* What `reprieve init` writes: every setting with its help and default, stores and databases
 * filled in as asked. Values are written as they are given: ${NAME} in one is read from the
 * environment when the file is. */
struct rp_pair_text {
    const char *name, *value;
};
struct rp_config_init {
    const struct rp_pair_text *stores; /* NAME=DIR or NAME=s3://BUCKET */
    size_t n_stores;
    const struct rp_pair_text *databases; /* NAME=URL */
    size_t n_databases;
    const char *endpoint; /* of the buckets; NULL: AWS's */
};
int rp_config_write_init(const struct rp_config_init *init, struct rp_buf *out, struct rp_error *err);

/* What a running daemon does with a new configuration: names of settings that it takes, and of
 * those that it keeps as they were until it is started again, which are put back into `next`. */
struct rp_config_change {
    struct rp_buf taken, needs_restart; /* "a, b" */
};
void rp_config_reload(struct rp_config *next, const struct rp_config *running, struct rp_config_change *change);

const struct rp_store_config *rp_config_store(const struct rp_config *config, const char *name);
/* The one that takes uploads; NULL: none can. */
const struct rp_store_config *rp_config_uploads_store(const struct rp_config *config);
/* Whether only this machine can reach such an address. */
bool rp_config_is_loopback(const char *listen);
const struct rp_database_config *rp_config_database(const struct rp_config *config, const char *name);
/* What our URLs begin with, without a slash at the end: public_url, or the address that is listened
 * on (NULL: as configured). NULL: no memory. */
const char *rp_config_base_url(const struct rp_config *config, const char *address, struct rp_arena *arena);
const struct rp_confirmer_config *rp_config_confirmer(const struct rp_config *config, const char *name);
bool rp_config_is_s3(const struct rp_store_config *store);

#endif
