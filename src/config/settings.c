/* SPDX-License-Identifier: Apache-2.0 */
#include "config/settings.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/cron.h"
#include "base/network.h"
#include "base/text/base64.h"
#include "base/text/buf.h"
#include "base/text/size.h"
#include "base/time.h"
#include "base/url.h"
#include "config/config.h"
#include "config/events.h"

_Static_assert(sizeof(enum rp_mode) == sizeof(int), "RP_SETTING_ENUM writes an int");
_Static_assert(sizeof(enum rp_keys) == sizeof(int), "RP_SETTING_ENUM writes an int");
_Static_assert(sizeof(enum rp_confirm_when) == sizeof(int), "RP_SETTING_ENUM writes an int");
_Static_assert(sizeof(enum rp_conditional_deletes) == sizeof(int), "RP_SETTING_ENUM writes an int");

static const char *const modes[] = {
    [RP_MODE_OBSERVE] = "observe",
    [RP_MODE_QUARANTINE] = "quarantine",
    [RP_MODE_PURGE] = "purge",
    NULL,
};
static const char *const key_promises[] = {
    [RP_KEYS_REUSED] = "reused",
    [RP_KEYS_WRITE_ONCE] = "write_once",
    NULL,
};
static const char *const delete_promises[] = {
    [RP_DELETES_PROBED] = "probed",
    [RP_DELETES_ATOMIC] = "atomic",
    NULL,
};
static const char *const whens[] = {
    [RP_CONFIRM_DUE] = "due",
    [RP_CONFIRM_NOW] = "now",
    NULL,
};
static const char *const store_types[] = { "fs", "s3", NULL };
static const char *const styles[] = { "auto", "path", "host", NULL };
static const char *const sink_types[] = { "webhook", "rabbitmq", NULL };
static const char *const failovers[] = { "stop", "synchronous", NULL };
static const char *const log_levels[] = { "debug", "info", "warning", "error", NULL };

static const struct rp_setting_entries store_entries = {
    .size_bytes = sizeof(struct rp_store_config),
    .count_at = offsetof(struct rp_config, n_stores),
    .name_at = offsetof(struct rp_store_config, name),
    .line_at = offsetof(struct rp_store_config, line),
    .type_at = offsetof(struct rp_store_config, type),
    .most = RP_STORES_MAX,
    .example = "media",
};

static const struct rp_setting_entries reference_entries = {
    .size_bytes = sizeof(struct rp_reference),
    .count_at = offsetof(struct rp_store_config, n_referenced_by),
    .name_at = RP_SETTING_NONE,
    .line_at = offsetof(struct rp_reference, line),
    .most = RP_REFERENCES_MAX,
};

static const struct rp_setting_entries database_entries = {
    .size_bytes = sizeof(struct rp_database_config),
    .count_at = offsetof(struct rp_config, n_databases),
    .name_at = offsetof(struct rp_database_config, name),
    .line_at = offsetof(struct rp_database_config, line),
    .most = RP_DATABASES_MAX,
    .example = "app",
};

static const struct rp_setting_entries sink_entries = {
    .size_bytes = sizeof(struct rp_sink_config),
    .count_at = offsetof(struct rp_config, n_sinks),
    .name_at = offsetof(struct rp_sink_config, name), /* a member, which a reload goes by */
    .line_at = offsetof(struct rp_sink_config, line),
    .most = RP_SINKS_MAX,
};

static const struct rp_setting_entries confirmer_entries = {
    .size_bytes = sizeof(struct rp_confirmer_config),
    .count_at = offsetof(struct rp_config, n_confirmers),
    .name_at = offsetof(struct rp_confirmer_config, name),
    .line_at = offsetof(struct rp_confirmer_config, line),
    .most = RP_CONFIRMERS_MAX,
    .example = "calendar",
};

#define CONFIG(member)    offsetof(struct rp_config, member)
#define ALERTS(member)    (CONFIG(alerts) + offsetof(struct rp_alert_config, member))
#define RETENTION(member) (CONFIG(retention) + offsetof(struct rp_retention_config, member))
#define RETENTION_MOST_MS (3650 * RP_DAY_MS)
#define ALERT_MOST_MS     (3650 * RP_DAY_MS)
#define STORE(member)     offsetof(struct rp_store_config, member)
#define REFERENCE(member) offsetof(struct rp_reference, member)
#define DATABASE(member)  offsetof(struct rp_database_config, member)
#define SINK(member)      offsetof(struct rp_sink_config, member)
#define CONFIRMER(member) offsetof(struct rp_confirmer_config, member)

/* clang-format off */
const struct rp_setting rp_settings[] = {
    { .path = "listen", .restart = true, .type = RP_SETTING_ADDRESS, .offset = CONFIG(listen),
      .fallback = "127.0.0.1:8420",
      .help = "Where `reprieve serve` takes requests. Only this machine can reach a loopback address; any other "
              "needs tls, or listen_insecure." },
    { .path = "listen_insecure", .restart = true, .type = RP_SETTING_BOOL, .offset = CONFIG(listen_insecure),
      .fallback = "false",
      .help = "Allows an address that others can reach without TLS: tokens and files then travel in the clear. For a "
              "daemon behind a proxy that speaks TLS." },
    { .path = "public_url", .restart = true, .type = RP_SETTING_WEB, .offset = CONFIG(public_url), .fallback = "",
      .help = "What the URLs given to clients, and the answer_url given to outside services, begin with, if it is not "
              "the address above: that of a proxy." },
    { .path = "node", .restart = true, .type = RP_SETTING_TEXT, .offset = CONFIG(node), .least = 0, .most = 60,
      .fallback = "",
      .help = "The name of this daemon among others on one catalog. Empty: the host and the port." },
    { .path = "environment", .restart = true, .type = RP_SETTING_TEXT, .offset = CONFIG(environment), .least = 1,
      .most = 63,
      .fallback = "dev",
      .help = "What this installation is, such as dev, staging or production. Shown in prompts and written into "
              "every store's owner record." },

    { .path = "tls", .type = RP_SETTING_SECTION,
      .help = "The certificate of the daemon. Both or none." },
    { .path = "tls.certificate", .restart = true, .type = RP_SETTING_FILE, .offset = CONFIG(tls_certificate),
      .fallback = "",
      .help = "The certificate and those that lead to its root, in PEM." },
    { .path = "tls.key", .restart = true, .type = RP_SETTING_FILE, .offset = CONFIG(tls_key), .fallback = "",
      .help = "The certificate's private key, in PEM." },

    { .path = "http", .type = RP_SETTING_SECTION,
      .help = "Bounds of the daemon's HTTP server." },
    { .path = "http.max_connections", .restart = true, .type = RP_SETTING_INTEGER,
      .offset = CONFIG(http_connections_max), .least = 16,
      .most = 1000000, .fallback = "12000",
      .help = "The most connections at a time." },
    { .path = "http.requests_per_second", .type = RP_SETTING_INTEGER, .offset = CONFIG(http_requests_per_second),
      .least = 0, .most = 1000000, .fallback = "0",
      .help = "The most requests a second with one token; 0: no limit." },
    { .path = "http.timeout", .restart = true, .type = RP_SETTING_DURATION, .offset = CONFIG(http_timeout_ms),
      .least = RP_SECOND_MS,
      .most = RP_HOUR_MS, .fallback = "30s",
      .help = "A connection without progress for this long is closed." },

    { .path = "catalog", .type = RP_SETTING_SECTION,
      .help = "The catalog: the database in which Reprieve keeps marks, runs and the audit log." },
    { .path = "catalog.url", .restart = true, .type = RP_SETTING_URL, .offset = CONFIG(catalog_url),
      .fallback = "sqlite:./reprieve-data/catalog.db",
      .help = "Where the catalog is. For PostgreSQL, ?schema=NAME chooses the schema." },
    { .path = "catalog.failover", .restart = true, .type = RP_SETTING_CHOICE, .offset = CONFIG(catalog_failover),
      .choices = failovers,
      .fallback = "stop",
      .help = "What follows when a standby of the catalog's PostgreSQL was promoted. stop: nothing is purged until "
              "`reprieve recover` or `recover --moved`, because an asynchronous standby may have lost the last "
              "restores. synchronous: it goes on; only where no commit is acknowledged that a standby does not have." },
    { .path = "catalog.writers", .restart = true, .type = RP_SETTING_INTEGER, .offset = CONFIG(writers), .least = 1,
      .most = 8,
      .fallback = "2",
      .help = "Connections of a daemon that write. PostgreSQL only; SQLite has one." },

    { .path = "log", .type = RP_SETTING_SECTION,
      .help = "The program's log: one JSON object a line." },
    { .path = "log.file", .type = RP_SETTING_LOG, .offset = CONFIG(log_file), .fallback = "",
      .help = "Where the log goes. Empty: no log is written. Without a configuration file it is reprieve.log in the "
              "data directory." },
    { .path = "log.level", .type = RP_SETTING_CHOICE, .offset = CONFIG(log_level), .choices = log_levels,
      .fallback = "info",
      .help = "The least severe lines that are written." },

    { .path = "stores", .type = RP_SETTING_MAP, .offset = CONFIG(stores), .entries = &store_entries, .fallback = "{}",
      .help = "The stores whose objects may be marked, each under a name of your choice. A store may not be inside "
              "another, nor hold the catalog, a database, the log or the configuration file." },
    { .path = "stores.*.type", .restart = true, .type = RP_SETTING_CHOICE, .offset = STORE(type),
      .choices = store_types,
      .fallback = "fs",
      .help = "The kind of store: fs is a directory, s3 a bucket of any server that speaks S3." },
    { .path = "stores.*.path", .restart = true, .type = RP_SETTING_PATH, .offset = STORE(path), .only = "fs",
      .required = true, .example = "/srv/media",
      .help = "The directory that holds the objects." },
    { .path = "stores.*.endpoint", .restart = true, .type = RP_SETTING_WEB, .offset = STORE(endpoint), .only = "s3",
      .fallback = "", .example = "https://s3.example.org",
      .help = "Where the server is, without the bucket. Empty: AWS, in the region." },
    { .path = "stores.*.region", .restart = true, .type = RP_SETTING_TEXT, .offset = STORE(region), .only = "s3",
      .least = 0, .most = 63, .fallback = "auto",
      .help = "The region that requests are signed for. auto: what the server's kind takes." },
    { .path = "stores.*.bucket", .restart = true, .type = RP_SETTING_TEXT, .offset = STORE(bucket), .only = "s3",
      .least = 1, .most = 255, .required = true, .example = "media",
      .help = "The bucket that holds the objects." },
    { .path = "stores.*.access_key", .restart = true, .type = RP_SETTING_TEXT, .secret = true,
      .offset = STORE(access_key), .only = "s3", .least = 0, .most = 1024, .fallback = "",
      .help = "The key id. Empty: looked for where AWS tools look: environment, profile files, container and "
              "instance. In mode observe a key that may only read and list is enough." },
    { .path = "stores.*.secret_key", .restart = true, .type = RP_SETTING_TEXT, .secret = true,
      .offset = STORE(secret_key), .only = "s3", .least = 0, .most = 1024, .fallback = "",
      .help = "The secret that belongs to access_key." },
    { .path = "stores.*.session_token", .restart = true, .type = RP_SETTING_TEXT, .secret = true,
      .offset = STORE(session_token), .only = "s3", .least = 0, .most = 8192, .fallback = "",
      .help = "The token of temporary keys." },
    { .path = "stores.*.profile", .restart = true, .type = RP_SETTING_TEXT, .offset = STORE(profile), .only = "s3",
      .least = 0, .most = 255, .fallback = "",
      .help = "The profile of the AWS files that holds the keys, instead of access_key. Empty: AWS_PROFILE, else "
              "default." },
    { .path = "stores.*.style", .restart = true, .type = RP_SETTING_CHOICE, .offset = STORE(style), .only = "s3",
      .choices = styles, .fallback = "auto",
      .help = "Where the bucket's name stands in a URL. path: behind the host; host: in front of it; auto: as the "
              "server's kind takes it." },
    { .path = "stores.*.ca_file", .restart = true, .type = RP_SETTING_FILE, .offset = STORE(ca_file), .only = "s3",
      .fallback = "",
      .help = "Certificates that the server's must lead to, in PEM. Empty: those of the system." },
    { .path = "stores.*.max_requests_per_second", .restart = true, .type = RP_SETTING_INTEGER,
      .offset = STORE(requests_per_second_max), .only = "s3", .least = 0, .most = 1000000, .fallback = "0",
      .help = "The most requests a second of one process; 0: no cap." },
    { .path = "stores.*.request_timeout", .restart = true, .type = RP_SETTING_DURATION,
      .offset = STORE(request_timeout_ms), .only = "s3", .least = RP_SECOND_MS, .most = 10 * RP_MINUTE_MS,
      .fallback = "30s",
      .help = "A request without an answer for this long is given up, and repeated where that is safe." },
    { .path = "stores.*.mode", .type = RP_SETTING_ENUM, .offset = STORE(mode), .choices = modes,
      .fallback = "observe",
      .help = "What may happen to objects. observe: nothing is written or erased. quarantine: a purge moves an "
              "object aside, and a restore moves it back. purge: a purge erases." },
    { .path = "stores.*.grace", .type = RP_SETTING_DURATION, .offset = STORE(grace_ms), .least = RP_DAY_MS,
      .most = 30 * RP_DAY_MS, .lifted_by = STORE(allow_any_grace), .fallback = "5d",
      .help = "How long a marked object can still be restored, unless the mark says otherwise." },
    { .path = "stores.*.allow_any_grace", .type = RP_SETTING_BOOL, .offset = STORE(allow_any_grace),
      .fallback = "false",
      .help = "Lifts the range of the grace, here and in marks. A grace of 0s erases at the next sweep." },
    { .path = "stores.*.quarantine", .type = RP_SETTING_DURATION, .offset = STORE(quarantine_ms), .least = 0,
      .most = 3650 * RP_DAY_MS, .fallback = "7d",
      .help = "How long an object stays in quarantine before it is erased. Used in mode quarantine." },
    { .path = "stores.*.keys", .restart = true, .type = RP_SETTING_ENUM, .offset = STORE(keys),
      .choices = key_promises,
      .fallback = "reused",
      .help = "What is promised about keys. write_once: no key is ever overwritten, so that a delete can only hit "
              "what was marked. One object seen changed under its key revokes the promise for good." },
    { .path = "stores.*.annotate", .type = RP_SETTING_BOOL, .offset = STORE(annotate), .fallback = "false",
      .help = "Also writes a mark into the metadata of the object, where other tools can see it." },
    { .path = "stores.*.import", .type = RP_SETTING_SECTION,
      .help = "Annotations that other programs write to objects of this store become marks (`reprieve import`)." },
    { .path = "stores.*.import.schedule", .type = RP_SETTING_CRON, .offset = STORE(import_schedule), .fallback = "",
      .example = "\"30 1 * * *\"",
      .help = "When the daemon imports them: a cron line in UTC, a run with a record each time, once over all "
              "daemons. A tick that was missed while no daemon ran is made up for once." },
    { .path = "stores.*.allow_window_deletes", .type = RP_SETTING_BOOL, .offset = STORE(allow_window_deletes),
      .fallback = "false",
      .help = "Allows purging a store that cannot name exactly what it deletes. An upload that arrives in the moment "
              "between the check and the delete would be lost." },
    { .path = "stores.*.conditional_deletes", .restart = true, .only = "s3", .type = RP_SETTING_ENUM,
      .offset = STORE(conditional_deletes), .choices = delete_promises, .fallback = "probed",
      .help = "What is known of the server's If-Match on a DELETE, also in a delete of many. A probe can only "
              "refute it: a server that checks first and deletes after passes as a rule. So only servers that are "
              "documented to do both in one step get the level etag. atomic: the owner of this server vouches that "
              "it does." },
    { .path = "stores.*.referenced_by", .restart = true, .type = RP_SETTING_LIST, .offset = STORE(referenced_by),
      .entries = &reference_entries, .fallback = "[]",
      .example = "[ { database: app, table: post, column: image_key } ]",
      .help = "Places that may still use an object of this store. Each is a database with a table and a column that "
              "holds keys, or with a query whose only column is a key, or a webhook that counts. They are asked "
              "whenever a mark of a person or a rule is due: what is still referenced waits, and is asked about again "
              "an hour later." },
    { .path = "stores.*.referenced_by.*.database", .type = RP_SETTING_TEXT, .offset = REFERENCE(database), .least = 1,
      .most = 63,
      .help = "A name under databases. Needs table and column, or sql." },
    { .path = "stores.*.referenced_by.*.table", .type = RP_SETTING_TEXT, .offset = REFERENCE(table), .least = 1,
      .most = 63,
      .help = "The table. Needs column; excludes sql." },
    { .path = "stores.*.referenced_by.*.column", .type = RP_SETTING_TEXT, .offset = REFERENCE(column), .least = 1,
      .most = 63,
      .help = "The column of the table that holds keys of objects." },
    { .path = "stores.*.referenced_by.*.sql", .type = RP_SETTING_SQL, .offset = REFERENCE(sql), .least = 1,
      .most = 16384,
      .help = "A query whose only column is a key, instead of table and column." },
    { .path = "stores.*.referenced_by.*.webhook", .type = RP_SETTING_WEB, .secret = true, .offset = REFERENCE(webhook),
      .help = "Instead of database: gets a POST of {\"store\", \"key\"} for each key, and answers 200 with "
              "{\"references\": N}. Any other answer, or none, counts as not known: nothing is purged. docs/references.md "
              "tells it all, and what `reprieve doctor` sends." },
    { .path = "stores.*.referenced_by.*.secret", .type = RP_SETTING_SIGNING, .secret = true,
      .offset = REFERENCE(secret), .least = 0, .most = 1024, .fallback = "",
      .help = "Signs what is sent to the webhook, as alerts.webhook_secret does." },
    { .path = "stores.*.referenced_by.*.secret_old", .type = RP_SETTING_SIGNING, .secret = true,
      .offset = REFERENCE(secret_old), .least = 0, .most = 1024, .fallback = "",
      .help = "Also signs, until the receiver has changed to secret." },

    { .path = "databases", .restart = true, .type = RP_SETTING_MAP, .offset = CONFIG(databases),
      .entries = &database_entries,
      .fallback = "{}",
      .help = "Your own databases, each under a name of your choice: where references are looked up." },
    { .path = "databases.*.url", .type = RP_SETTING_URL, .offset = DATABASE(url), .required = true,
      .example = "sqlite:/srv/app/app.db",
      .help = "Where the database is. The role needs to read all rows: where PostgreSQL's row-level security would "
              "leave some out, nothing is marked or purged." },
    { .path = "databases.*.read_url", .type = RP_SETTING_URL, .offset = DATABASE(read_url), .fallback = "",
      .help = "A replica, which may lag, for what will only look and report (check, reconcile). This version has "
              "neither and never asks it: marks and purges ask the url." },
    { .path = "databases.*.statement_timeout", .type = RP_SETTING_DURATION, .offset = DATABASE(statement_timeout_ms),
      .least = 1, .most = RP_DAY_MS, .fallback = "30s",
      .help = "A statement that takes longer is cancelled and counts as failed." },

    { .path = "confirmations", .type = RP_SETTING_MAP, .offset = CONFIG(confirmers), .entries = &confirmer_entries,
      .fallback = "{}",
      .help = "Outside services that must say yes before anything is erased, each under a name that marks and deletes "
              "give. They are asked by a POST; docs/confirmations.md tells what an answer means." },
    { .path = "confirmations.*.url", .type = RP_SETTING_WEB, .offset = CONFIRMER(url), .required = true,
      .example = "https://calendar.example.org/delete",
      .help = "Where the service is asked." },
    { .path = "confirmations.*.secret", .type = RP_SETTING_SIGNING, .secret = true, .offset = CONFIRMER(secret),
      .least = 0, .most = 1024, .fallback = "",
      .help = "Signs what is asked, as alerts.webhook_secret does. Empty: unsigned." },
    { .path = "confirmations.*.secret_old", .type = RP_SETTING_SIGNING, .secret = true, .offset = CONFIRMER(secret_old),
      .least = 0, .most = 1024, .fallback = "",
      .help = "Signs it too, while the service changes from this one to secret." },
    { .path = "confirmations.*.when", .type = RP_SETTING_ENUM, .offset = CONFIRMER(when), .choices = whens,
      .fallback = "due",
      .help = "When it is asked. due: when the mark is due, so that it can be restored until then. now: at once; from "
              "then on it cannot be restored, although it is not erased before it is due." },
    { .path = "confirmations.*.timeout", .type = RP_SETTING_DURATION, .offset = CONFIRMER(timeout_ms),
      .least = RP_SECOND_MS / 10, .most = 5 * RP_MINUTE_MS, .fallback = "15s",
      .help = "A call without an answer for this long is given up, and repeated later." },
    { .path = "confirmations.*.give_up_after", .type = RP_SETTING_DURATION, .offset = CONFIRMER(give_up_after_ms),
      .least = RP_SECOND_MS, .most = 365 * RP_DAY_MS, .fallback = "3d",
      .help = "A mark that has no yes this long after the service was asked first becomes a dead letter." },
    { .path = "confirmations.*.gone", .type = RP_SETTING_CODES, .offset = CONFIRMER(gone), .least = 400, .most = 499,
      .fallback = "[410]",
      .help = "Status codes that mean yes as well, because there is nothing left to delete. 404 only if the service "
              "gives it for that and nothing else: a mistyped URL answers 404 to everything." },

    { .path = "uploads", .type = RP_SETTING_SECTION,
      .help = "Files that clients upload through the daemon." },
    { .path = "uploads.store", .type = RP_SETTING_TEXT, .offset = CONFIG(uploads_store), .least = 0, .most = 63,
      .fallback = "",
      .help = "The store that takes them: a name under stores. Empty: the first one that is not in mode observe." },
    { .path = "uploads.expire", .type = RP_SETTING_DURATION, .offset = CONFIG(uploads_expire_ms),
      .least = RP_SECOND_MS,
      .most = 30 * RP_DAY_MS, .fallback = "1h",
      .help = "An upload that is not confirmed within this time is cleaned up and its quota given back." },
    { .path = "uploads.max_size", .type = RP_SETTING_SIZE, .offset = CONFIG(uploads_max_size), .least = 1,
      .most = RP_SIZE_MAX, .fallback = "5GiB",
      .help = "The largest file." },
    { .path = "uploads.max_open_per_tenant", .type = RP_SETTING_INTEGER, .offset = CONFIG(uploads_max_open),
      .least = 1,
      .most = 1000000000, .fallback = "1000000",
      .help = "The most uploads of one tenant that are begun and not confirmed." },
    { .path = "uploads.scan", .type = RP_SETTING_BOOL, .offset = CONFIG(uploads_scan), .fallback = "false",
      .help = "A confirmed file waits in status scanning until its processor gives a result. So it is in any case "
              "where processor.url is set." },

    { .path = "transactions", .type = RP_SETTING_SECTION,
      .help = "Several uploads that become visible together or not at all." },
    { .path = "transactions.timeout", .type = RP_SETTING_DURATION, .offset = CONFIG(transactions_timeout_ms),
      .least = RP_SECOND_MS, .most = 30 * RP_DAY_MS, .fallback = "1h",
      .help = "A transaction that is not committed within this time is rolled back." },
    { .path = "transactions.rollback_grace", .type = RP_SETTING_DURATION,
      .offset = CONFIG(transactions_rollback_grace_ms), .least = 0, .most = 365 * RP_DAY_MS, .fallback = "5d",
      .help = "How long what a rolled-back transaction had uploaded is kept." },

    { .path = "quota", .type = RP_SETTING_SECTION,
      .help = "How much a tenant may store." },
    { .path = "quota.default", .type = RP_SETTING_SIZE, .offset = CONFIG(quota_default), .least = 0,
      .most = RP_SIZE_MAX, .fallback = "100GiB",
      .help = "The limit of a tenant that has none of its own (`reprieve quota set`)." },

    { .path = "sweep", .type = RP_SETTING_SECTION,
      .help = "The sweep purges what has come due." },
    { .path = "sweep.schedule", .type = RP_SETTING_SCHEDULE, .offset = CONFIG(sweep_schedule),
      .fallback = "continuous", .example = "\"*/15 * * * *\"",
      .help = "When the daemon sweeps: within a second of the moment (continuous), or only at the ticks of a cron "
              "line in UTC, once over all daemons. A tick that was missed while no daemon ran is made up for once. "
              "Outside services (confirmations) are asked when a mark is due, whatever this says." },
    { .path = "sweep.limit", .type = RP_SETTING_INTEGER, .offset = CONFIG(sweep_limit), .least = 1,
      .most = 1000000000,
      .fallback = "100000",
      .help = "The most marks that one sweep purges." },
    { .path = "sweep.max_attempts", .type = RP_SETTING_INTEGER, .offset = CONFIG(sweep_max_attempts), .least = 1,
      .most = 1000, .fallback = "20",
      .help = "A mark that failed this often becomes a dead letter and waits for a person." },
    { .path = "sweep.batch", .type = RP_SETTING_INTEGER, .offset = CONFIG(sweep_batch), .least = 1, .most = 1000,
      .fallback = "1000",
      .help = "The most marks that are claimed at once." },
    { .path = "sweep.lease", .type = RP_SETTING_DURATION, .offset = CONFIG(sweep_lease_ms), .least = RP_SECOND_MS,
      .most = RP_DAY_MS, .fallback = "2m",
      .help = "How long a claim holds before another worker may take it over." },
    { .path = "sweep.retry_first", .type = RP_SETTING_DURATION, .offset = CONFIG(sweep_retry_first_ms), .least = 1,
      .most = RP_DAY_MS, .fallback = "10s",
      .help = "The wait after the first failure of a mark; doubled after each further one." },
    { .path = "sweep.retry_most", .type = RP_SETTING_DURATION, .offset = CONFIG(sweep_retry_most_ms), .least = 1,
      .most = 30 * RP_DAY_MS, .fallback = "1h",
      .help = "The longest wait between two attempts. Not below retry_first." },

    { .path = "safety_net", .type = RP_SETTING_SECTION,
      .help = "The safety net brings back what nothing would find any more: files whose mark is gone, files whose "
              "parent or source is gone, marks that nobody looks at. It makes marks and erases nothing." },
    { .path = "safety_net.schedule", .type = RP_SETTING_CRON, .offset = CONFIG(safety_net_schedule),
      .fallback = "15 * * * *",
      .help = "When the daemon looks: at the ticks of a cron line in UTC, once over all daemons. Empty: never; "
              "`reprieve safety-net` looks all the same." },
    { .path = "safety_net.limit", .type = RP_SETTING_INTEGER, .offset = CONFIG(safety_net_limit), .least = 1,
      .most = 1000000, .fallback = "1000",
      .help = "The most that one run brings back. The next one goes on where it stopped." },

    { .path = "lock", .type = RP_SETTING_SECTION,
      .help = "The lock that lets only one run of a kind work at a time." },
    { .path = "lock.stale_after", .type = RP_SETTING_DURATION, .offset = CONFIG(lock_stale_after_ms),
      .least = RP_SECOND_MS, .most = 30 * RP_DAY_MS, .fallback = "30m",
      .help = "A lock that was not renewed for this long may be taken over." },

    { .path = "retention", .type = RP_SETTING_SECTION,
      .help = "How long records stay after what they tell of has ended. Once a day the daemon lets older ones go. "
              "Deletion records of runs stay." },
    { .path = "retention.marks", .type = RP_SETTING_DURATION, .offset = RETENTION(marks_ms), .least = RP_HOUR_MS,
      .most = RETENTION_MOST_MS, .may_be_forever = true, .fallback = "90d",
      .help = "Marks that were purged or reprieved, dead letters that were decided, holds that were lifted, tokens "
              "that were revoked or are over." },
    { .path = "retention.files", .type = RP_SETTING_DURATION, .offset = RETENTION(files_ms), .least = RP_HOUR_MS,
      .most = RETENTION_MOST_MS, .may_be_forever = true, .fallback = "90d",
      .help = "Files that were purged or expired, with their marks, and transactions that ended. A file that stays "
              "listed after its deletion (visibility: shown) stays." },
    { .path = "retention.keys", .type = RP_SETTING_DURATION, .offset = RETENTION(keys_ms), .least = RP_HOUR_MS,
      .most = RETENTION_MOST_MS, .may_be_forever = true, .fallback = "24h",
      .help = "Answers saved under an Idempotency-Key. A request repeated later than this is done once more." },
    { .path = "retention.audit", .type = RP_SETTING_DURATION, .offset = RETENTION(audit_ms), .least = RP_DAY_MS,
      .most = RETENTION_MOST_MS, .may_be_forever = true, .fallback = "forever",
      .help = "Rows of the audit log. They go only once a sealed segment holds them: a file in retention.segments, "
              "whose SHA-256 the catalog keeps." },
    { .path = "retention.segments", .type = RP_SETTING_FOLDER, .offset = RETENTION(segments), .fallback = "",
      .help = "The directory for sealed segments of the audit log. Empty: segments, beside the file of a SQLite "
              "catalog. With PostgreSQL it is needed once retention.audit is not forever; all nodes should see the "
              "same directory. If it is missing it is made, but no directory above it." },

    { .path = "processor", .type = RP_SETTING_SECTION,
      .help = "Who looks at uploads before they live: a virus scanner, a converter." },
    { .path = "processor.url", .restart = true, .type = RP_SETTING_WEB, .secret = true, .offset = CONFIG(processor_url),
      .fallback = "",
      .help = "Gets a POST for each file that is confirmed: {\"action\": \"process\", file, tenant, name, size, "
              "content_type, idempotency_key, url}, with a URL of the content that is good for a day, and answers with "
              "2xx that it has taken it. Until its verdict comes (POST /v1/files/{id}/result, with the "
              "idempotency_key) the file is scanning. If it is deleted before, {\"action\": \"cancel\", file, "
              "idempotency_key} follows, best effort. A call that fails is tried again for three days; then the log "
              "says processor.gave_up, and the file stays scanning until it is deleted, a verdict comes, or a "
              "daemon is started again. Empty: nobody." },
    { .path = "processor.secret", .type = RP_SETTING_SIGNING, .secret = true,
      .offset = CONFIG(processor_secret), .least = 0, .most = 1024, .fallback = "",
      .help = "Signs what is sent to it, as alerts.webhook_secret does." },
    { .path = "processor.secret_old", .type = RP_SETTING_SIGNING, .secret = true,
      .offset = CONFIG(processor_secret_old), .least = 0, .most = 1024, .fallback = "",
      .help = "Also signs, until the processor has changed to secret." },

    { .path = "events_out", .type = RP_SETTING_LIST, .offset = CONFIG(sinks),
      .entries = &sink_entries, .fallback = "[]",
      .example = "[ { type: webhook, url: \"https://app.example/events\", events: [\"file.*\", mark.purged] } ]",
      .help = "Who is told of what happens, in order, each event at least once: a sink that was down catches up. Each "
              "event is a POST of {id, event, at, ...} whose header webhook-id is its id, the same however often it "
              "comes. A sink begins with what happens after its first start. A running daemon takes new secrets on "
              "SIGHUP; whatever else changes here, it takes at its next start." },
    { .path = "events_out.*.type", .restart = true, .type = RP_SETTING_CHOICE, .offset = SINK(type),
      .choices = sink_types,
      .fallback = "webhook",
      .help = "The kind of sink. rabbitmq is for a later version." },
    { .path = "events_out.*.name", .restart = true, .type = RP_SETTING_TEXT, .offset = SINK(name), .least = 0,
      .most = 63,
      .fallback = "",
      .help = "What it is called, and known by: under another name it begins anew. Empty: the host of its URL." },
    { .path = "events_out.*.url", .restart = true, .type = RP_SETTING_WEB, .secret = true, .offset = SINK(url),
      .required = true,
      .example = "https://app.example/events",
      .help = "Where events are sent." },
    { .path = "events_out.*.secret", .type = RP_SETTING_SIGNING, .secret = true, .offset = SINK(secret), .least = 0,
      .most = 1024, .fallback = "",
      .help = "Signs what is sent, as alerts.webhook_secret does." },
    { .path = "events_out.*.secret_old", .type = RP_SETTING_SIGNING, .secret = true, .offset = SINK(secret_old),
      .least = 0, .most = 1024, .fallback = "",
      .help = "Also signs, until the receiver has changed to secret." },
    { .path = "events_out.*.events", .restart = true, .type = RP_SETTING_EVENTS, .offset = SINK(events), .least = 1,
      .most = 4096,
      .required = true, .example = "[\"file.*\", mark.purged]",
      .help = "The events that it wants: names, or a group and .* (file.* is all that begin with file.). All names "
              "stand in docs/events-out.md." },

    { .path = "outbound", .type = RP_SETTING_SECTION,
      .help = "Calls out: webhooks of alerts, references and events_out, confirmations, and the processor." },
    { .path = "outbound.allow", .type = RP_SETTING_NETWORKS, .offset = CONFIG(outbound_allow), .most = 4096,
      .fallback = "[]",
      .help = "Networks that calls out may reach although they are not public: loopback, private, link-local, and "
              "others that are reserved. Anything else there is refused when it is connected to, whatever name "
              "led to it." },

    { .path = "alerts", .type = RP_SETTING_SECTION,
      .help = "Conditions that the daemon watches, and whom it tells. 0 turns a condition off." },
    { .path = "alerts.webhook", .type = RP_SETTING_WEB, .secret = true, .offset = ALERTS(webhook), .fallback = "",
      .help = "Gets a POST once when a condition begins to hold and once when it is over. Empty: nobody is told; "
              "the conditions are shown by GET /v1/alerts all the same. docs/alerts.md has its body and all names." },
    { .path = "alerts.webhook_secret", .type = RP_SETTING_SIGNING, .secret = true, .offset = ALERTS(webhook_secret),
      .least = 0, .most = 1024, .fallback = "",
      .help = "Signs what is sent, as standardwebhooks.com says: headers webhook-id, webhook-timestamp and "
              "webhook-signature. The key is what stands in base64 behind whsec_; a text without whsec_ is the key "
              "itself, byte by byte, and receivers must be told so (format raw)." },
    { .path = "alerts.webhook_secret_old", .type = RP_SETTING_SIGNING, .secret = true,
      .offset = ALERTS(webhook_secret_old), .least = 0, .most = 1024, .fallback = "",
      .help = "Also signs, until receivers have changed to webhook_secret." },
    { .path = "alerts.marked_over", .type = RP_SETTING_INTEGER, .offset = ALERTS(marked_over), .least = 0,
      .most = 1000000000, .fallback = "10000",
      .help = "More marks than this wait." },
    { .path = "alerts.overdue_over", .type = RP_SETTING_DURATION, .offset = ALERTS(overdue_over_ms), .least = 0,
      .most = ALERT_MOST_MS, .fallback = "2d",
      .help = "A mark is past its due time for longer than this." },
    { .path = "alerts.run_over", .type = RP_SETTING_DURATION, .offset = ALERTS(run_over_ms), .least = 0,
      .most = ALERT_MOST_MS, .fallback = "4m",
      .help = "A run takes longer than this. The continuous sweep, which is always under way, "
              "and a retention do not count." },
    { .path = "alerts.error_rate_over", .type = RP_SETTING_INTEGER, .offset = ALERTS(error_rate_over_percent),
      .least = 0, .most = 100, .fallback = "10",
      .help = "More than this many in a hundred runs had errors." },
    { .path = "alerts.error_window", .type = RP_SETTING_DURATION, .offset = ALERTS(error_window_ms),
      .least = RP_MINUTE_MS, .most = ALERT_MOST_MS, .fallback = "30d",
      .help = "The time over which error_rate_over is counted." },
    { .path = "alerts.no_run_for", .type = RP_SETTING_DURATION, .offset = ALERTS(no_run_for_ms), .least = 0,
      .most = ALERT_MOST_MS, .fallback = "25h",
      .help = "A run of a schedule (each schedule by itself) did not end for longer than this, but not before its "
              "interval plus one hour. A continuous sweep is watched while marks are due for longer than this." },
    { .path = "alerts.lock_stale_over", .type = RP_SETTING_DURATION, .offset = ALERTS(lock_stale_over_ms), .least = 0,
      .most = ALERT_MOST_MS, .fallback = "1h",
      .help = "The lock of a run was not renewed for longer than this." },
    { .path = "alerts.abandoned_per_hour_over", .type = RP_SETTING_INTEGER, .offset = ALERTS(abandoned_per_hour_over),
      .least = 0, .most = 1000000, .fallback = "100",
      .help = "More uploads than this were begun, not confirmed, and cleaned up within the last hour." },
    { .path = "alerts.no_worker_for", .type = RP_SETTING_DURATION, .offset = ALERTS(no_worker_for_ms), .least = 0,
      .most = ALERT_MOST_MS, .fallback = "5m",
      .help = "No daemon's sweeper gave a sign of life for longer than this." },
    { .path = "alerts.dead_letters_over", .type = RP_SETTING_INTEGER, .offset = ALERTS(dead_letters_over), .least = 0,
      .most = 1000000, .fallback = "0",
      .help = "More dead letters than this wait for a person. 0 does not turn it off: one is enough." },
    { .path = "alerts.sink_lag_over", .type = RP_SETTING_DURATION, .offset = ALERTS(sink_lag_over_ms), .least = 0,
      .most = ALERT_MOST_MS, .fallback = "15m",
      .help = "An event that a sink of events_out was not told of is older than this." },
};
/* clang-format on */

const char *rp_mode_name(enum rp_mode mode)
{
    RP_ASSERT((size_t)mode <= RP_MODE_PURGE);
    return modes[mode];
}

const size_t rp_settings_count = sizeof(rp_settings) / sizeof(rp_settings[0]);

const char *rp_setting_key(const struct rp_setting *s)
{
    const char *dot = strrchr(s->path, '.');
    return dot ? dot + 1 : s->path;
}

bool rp_setting_is_group(const struct rp_setting *s)
{
    return s->type == RP_SETTING_SECTION || s->entries != NULL;
}

bool rp_setting_is_secret(const struct rp_setting *s)
{
    return s->type == RP_SETTING_URL || s->secret;
}

bool rp_setting_is_for(const struct rp_setting *s, const char *type)
{
    return s->only == NULL || strcmp(s->only, type) == 0;
}

bool rp_setting_is_member(const struct rp_setting *s, const struct rp_setting *parent)
{
    const char *rest = s->path;
    if (parent) {
        size_t n = strlen(parent->path);
        if (strncmp(rest, parent->path, n) != 0 || rest[n] != '.') return false;
        rest += n + 1;
        if (parent->entries) {
            if (strncmp(rest, "*.", 2) != 0) return false;
            rest += 2;
        }
    }
    return strchr(rest, '.') == NULL;
}

static void add_choices(const char *const *choices, struct rp_buf *out)
{
    for (size_t i = 0; choices[i]; i++) {
        if (i > 0) rp_buf_str(out, choices[i + 1] ? ", " : " or ");
        rp_buf_str(out, choices[i]);
    }
}

static void add_durations(const struct rp_setting *s, struct rp_buf *out)
{
    char least[RP_TIME_TEXT], most[RP_TIME_TEXT];
    rp_buf_fmt(out, "a duration from %s to %s", rp_duration_format(s->least, least), rp_duration_format(s->most, most));
    if (s->may_be_forever) rp_buf_str(out, ", or forever");
    if (!s->lifted_by) return;
    rp_buf_fmt(out, " (up to %s with allow_any_grace: true)", rp_duration_format(RP_SETTING_LIFTED_MOST_MS, most));
}

static void add_sizes(const struct rp_setting *s, struct rp_buf *out)
{
    char least[RP_SIZE_EXACT_TEXT], most[RP_SIZE_EXACT_TEXT];
    rp_buf_fmt(out, "a size from %s to %s", rp_size_format(s->least, least), rp_size_format(s->most, most));
}

void rp_setting_expected(const struct rp_setting *s, struct rp_buf *out)
{
    static const char *const words[] = {
        [RP_SETTING_URL] = "sqlite:PATH or postgres://USER@HOST/DATABASE",
        [RP_SETTING_PATH] = "the path of a directory",
        [RP_SETTING_FOLDER] = "the path of a directory or \"\" for none",
        [RP_SETTING_LOG] = "the path of a file, \"-\" for standard error or \"\" for none",
        [RP_SETTING_FILE] = "the path of a file or \"\" for none",
        [RP_SETTING_WEB] = "http://HOST or https://HOST, with port and path if need be, or \"\" for none",
        [RP_SETTING_ADDRESS] = "ADDRESS:PORT such as 127.0.0.1:8420, 0.0.0.0:8420 or [::1]:8420",
        [RP_SETTING_EVENTS] = "a list of names of events, or of groups, such as [file.deleted, \"mark.*\"]",
        [RP_SETTING_NETWORKS] = "a list of networks in CIDR such as [10.1.2.0/24, \"fd00:1::/32\"]",
        [RP_SETTING_SCHEDULE] =
            "continuous, or the five fields of a cron line that fires (minute hour day month weekday)",
        [RP_SETTING_CRON] =
            "the five fields of a cron line that fires (minute hour day month weekday), or \"\" for never",
        [RP_SETTING_BOOL] = "true or false",
        [RP_SETTING_SECTION] = "a section",
    };
    switch (s->type) {
    case RP_SETTING_TEXT:
        rp_buf_fmt(out, "a text of %" PRId64 " to %" PRId64 " bytes on one line", s->least, s->most);
        break;
    case RP_SETTING_SIGNING:
        rp_buf_fmt(out, "a text of at most %" PRId64 " bytes on one line, base64 behind whsec_", s->most);
        break;
    case RP_SETTING_SQL:
        rp_buf_fmt(out, "a query of at most %" PRId64 " bytes", s->most);
        break;
    case RP_SETTING_SIZE:
        add_sizes(s, out);
        break;
    case RP_SETTING_INTEGER:
        rp_buf_fmt(out, "a whole number from %" PRId64 " to %" PRId64, s->least, s->most);
        break;
    case RP_SETTING_DURATION:
        add_durations(s, out);
        break;
    case RP_SETTING_CHOICE:
    case RP_SETTING_ENUM:
        add_choices(s->choices, out);
        break;
    case RP_SETTING_CODES:
        rp_buf_fmt(out, "a list of at most %d codes from %" PRId64 " to %" PRId64 " without 409 and 423", RP_CODES_MAX,
                   s->least, s->most);
        break;
    case RP_SETTING_MAP:
        rp_buf_fmt(out, "a section of at most %zu named entries", s->entries->most);
        break;
    case RP_SETTING_LIST:
        rp_buf_fmt(out, "a list of at most %zu items", s->entries->most);
        break;
    default:
        rp_buf_str(out, words[s->type]);
    }
}

bool rp_setting_is_name(const char *text)
{
    size_t n = strlen(text);
    return n >= 1 && n <= 63 && text[0] >= 'a' && text[0] <= 'z' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_") == n;
}

/* A database in memory would forget every promise with the process. */
bool rp_setting_is_url(const char *text)
{
    const char *file = rp_sqlite_path(text);
    if (file) return *file != '\0' && *file != ':';
    return strncmp(text, "postgres://", 11) == 0 || strncmp(text, "postgresql://", 13) == 0;
}

bool rp_setting_is_web(const char *text)
{
    static const char *const schemes[] = { "http://", "https://" };
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(schemes[i]);
        if (strncmp(text, schemes[i], n) != 0) continue;
        return strlen(text) <= 2048 && strcspn(text + n, "/?#") > 0 && !strpbrk(text, " \"<>\\^`{|}");
    }
    return false;
}

static bool is_port(const char *text)
{
    size_t n = strlen(text);
    int port = 0;
    if (n == 0 || n > 5 || strspn(text, "0123456789") != n) return false;
    for (; *text; text++)
        port = port * 10 + (*text - '0');
    return port <= 65535;
}

/* Names are not looked up: what one resolves to may change while the daemon runs. */
bool rp_setting_is_address(const char *text)
{
    char host[64], bytes[16];
    const char *colon = strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;
    if (n == 0 || n >= sizeof(host) || !is_port(colon + 1)) return false;
    bool bracketed = text[0] == '[' && text[n - 1] == ']';
    memcpy(host, bracketed ? text + 1 : text, bracketed ? n - 2 : n);
    host[bracketed ? n - 2 : n] = '\0';
    if (bracketed) return inet_pton(AF_INET6, host, bytes) == 1;
    return strcmp(host, "localhost") == 0 || inet_pton(AF_INET, host, bytes) == 1;
}

static bool is_cron_line(const char *text)
{
    struct rp_cron cron;
    int64_t next_ms;
    return rp_cron_parse(text, &cron, NULL) == 0 && rp_cron_next(&cron, 0, &next_ms, NULL) == 0;
}

bool rp_setting_is_signing(const char *text)
{
    static const char prefix[] = "whsec_";
    size_t n = sizeof prefix - 1;
    return strncmp(text, prefix, n) != 0 || rp_base64_parse(text + n, strlen(text + n), NULL) > 0;
}

bool rp_setting_is_schedule(const char *text)
{
    return strcmp(text, "continuous") == 0 || is_cron_line(text);
}

bool rp_setting_is_cron(const char *text)
{
    return text[0] == '\0' || is_cron_line(text);
}
