/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_doctor.c - `doctor`: one line a check, with what to do about it. Nothing that needs no
 * doctor is written: a store is probed by writing only in modes that write anyway. Urls and
 * secrets are never shown. */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/audit/feed.h"
#include "catalog/clock.h"
#include "catalog/file/process.h"
#include "catalog/mark/dead.h"
#include "catalog/run.h"
#include "cli/cli.h"
#include "cli/handshake.h"
#include "config/yaml.h"
#include "core/check/references.h"
#include "core/guarantee.h"
#include "core/hold.h"
#include "core/owner/owner.h"
#include "core/room.h"
#include "core/state.h"
#include "core/subject/subject.h"
#include "daemon/sinks/sinks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OVERDUE_MS  (2 * RP_DAY_MS)
#define LISTED_MAX  1000
#define TALLIES_MAX (256 * RP_STATES)

enum verdict { OK, WARN, FAIL };

struct doctor {
    struct rp_cli *cli;
    int warned, failed, open_files;
    json_t *more; /* for programs, with the next line; NULL: nothing */
};

static void judge(struct doctor *d, enum verdict verdict, const char *check, const char *remedy, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

static void judge(struct doctor *d, enum verdict verdict, const char *check, const char *remedy, const char *fmt, ...)
{
    static const char *const names[] = { "ok", "warn", "fail" };
    char text[600], shown[RP_SHOWN_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    d->warned += verdict == WARN;
    d->failed += verdict == FAIL;
    if (d->cli->json) {
        json_t *o = rp_json_object("check", rp_json_text(check), "status", json_string(names[verdict]), "message",
                                   rp_json_text(text), NULL);
        if (verdict != OK && remedy[0] != 0) rp_json_set(o, "remedy", rp_json_text(remedy));
        if (d->more != NULL) rp_json_merge(o, d->more);
        json_decref(d->more);
        d->more = NULL;
        rp_emit(d->cli, o);
        return;
    }
    if (d->cli->quiet && verdict == OK) return;
    printf("%-5s %-20s %s\n", names[verdict], check, rp_show(text, shown));
    if (verdict != OK && remedy[0] != 0) printf("%-26s -> %s\n", "", rp_show(remedy, shown));
}

/* It could not be found out. */
static void judge_error(struct doctor *d, const char *check, const struct rp_error *why, const char *remedy)
{
    judge(d, FAIL, check, why->hint[0] != 0 ? why->hint : remedy, "%s", why->text);
}

/* ---- configuration and catalog ---- */

/* Whether others than its owner and group may read it: the file, and every directory above it. */
static bool is_open_to_others(const char *path)
{
    struct stat st;
    RP_CLEANUP(rp_freep) char *real = realpath(path, NULL);
    if (real == NULL || stat(real, &st) < 0 || (st.st_mode & S_IROTH) == 0) return false;
    for (char *slash; (slash = strrchr(real, '/')) != NULL && slash != real;) {
        *slash = 0;
        if (stat(real, &st) < 0 || (st.st_mode & S_IXOTH) == 0) return false;
    }
    return true;
}

static void check_file(struct doctor *d, const char *path, const char *what)
{
    if (!is_open_to_others(path)) return;
    d->open_files++;
    judge(d, WARN, "files", "take it from others: chmod o= FILE", "%s can be read by everybody on this host; it has %s",
          path, what);
}

/* A secret that stands there in so many words; one from the environment or a file does not. */
static bool has_secret(const char *text, const char *secret)
{
    return secret != NULL && secret[0] != 0 && strstr(text, secret) != NULL;
}

/* Of postgres://user:password@host and of ?password=...: with the sign or word before it, which
 * tells it from other words. NULL: there is none. */
static const char *find_password(const char *url, size_t *n)
{
    const char *p = strstr(url, "://");
    if (p == NULL) return NULL;
    p += 3;
    size_t user = strcspn(p, ":@/"), credentials = strcspn(p, "@/");
    *n = credentials + 1 - user;
    if (p[credentials] == '@' && p[user] == ':' && *n > 2) return p + user;
    for (p = strchr(p, '?'); p != NULL; p = strchr(p + 1, '&')) {
        *n = 1 + strcspn(p + 1, "&");
        if (strncmp(p + 1, "password=", 9) == 0 && *n > 10) return p;
    }
    return NULL;
}

static bool has_password(const char *text, const char *url)
{
    size_t n;
    const char *password = find_password(url, &n);
    return password != NULL && memmem(text, strlen(text), password, n) != NULL;
}

static bool names_secrets(const struct rp_config *config)
{
    RP_CLEANUP(rp_freep) char *text = calloc(1, RP_YAML_BYTES_MAX + 1);
    FILE *file = fopen(config->file, "re");
    if (text != NULL && file != NULL) text[fread(text, 1, RP_YAML_BYTES_MAX, file)] = 0;
    if (file != NULL) (void)fclose(file);
    if (text == NULL) return true; /* rather one warning too many */
    bool found = has_password(text, config->catalog_url);
    struct rp_endpoint endpoint;
    for (size_t i = 0; rp_endpoint_of(config, i, &endpoint); i++)
        found = found || has_secret(text, endpoint.secrets[0]) || has_secret(text, endpoint.secrets[1]);
    for (size_t i = 0; i < config->n_stores; i++)
        found = found || has_secret(text, config->stores[i].secret_key) ||
                has_secret(text, config->stores[i].session_token);
    for (size_t i = 0; i < config->n_databases; i++)
        found =
            found || has_password(text, config->databases[i].url) || has_password(text, config->databases[i].read_url);
    return found;
}

static void check_files(struct doctor *d, const struct rp_config *config)
{
    static const char sqlite[] = "sqlite:";
    char token[4200];
    if (config->file != NULL && names_secrets(config)) check_file(d, config->file, "secrets");
    if (strncmp(config->catalog_url, sqlite, sizeof sqlite - 1) == 0)
        check_file(d, config->catalog_url + sizeof sqlite - 1, "the catalog, and the key that signs URLs");
    if (config->tls_key[0] != 0) check_file(d, config->tls_key, "the private key of tls.key");
    (void)snprintf(token, sizeof token, "%s/admin.token", config->data);
    check_file(d, token, "a token that may everything");
    if (d->open_files == 0) judge(d, OK, "files", "", "none with secrets can be read by everybody on this host");
}

static int check_config(struct doctor *d)
{
    struct rp_session_options options = rp_cli_options(d->cli);
    struct rp_session *s = &d->cli->session;
    struct rp_error why = { 0 };
    options.no_catalog = true;
    if (rp_session_open(s, &options, &why) < 0) {
        judge_error(d, "configuration", &why, "correct the file, then run `reprieve doctor` again");
        return -1;
    }
    judge(d, OK, "configuration", "", "%s, environment '%s'; stores: %zu, databases: %zu",
          s->config.file != NULL ? s->config.file : "no file: the embedded default", s->config.environment,
          s->config.n_stores, s->config.n_databases);
    check_files(d, &s->config);
    rp_session_close(s);
    return 0;
}

/* Whether a catalog that was put back can be told by the place it is found in. */
static void check_vessel(struct doctor *d, struct rp_db *db)
{
    struct rp_error why = { 0 };
    char vessel[RP_VESSEL_TEXT] = "";
    if (rp_db_vessel(db, "meta", vessel, &why) < 0)
        judge_error(d, "catalog's place", &why, "");
    else if (vessel[0] == 0)
        judge(d, WARN, "catalog's place",
              "keep it on a local file system (no FUSE, NFS, SMB, 9P or overlay), or in PostgreSQL",
              "cannot be told: of a catalog put back from a backup the last minute may go unnoticed");
    else
        judge(d, OK, "catalog's place", "", "%s", vessel);
}

static int check_catalog(struct doctor *d)
{
    struct rp_error why = { 0 };
    if (rp_cli_open(d->cli, &why) < 0) {
        judge_error(d, "catalog", &why, "see to it that the database answers (catalog.url)");
        return -1;
    }
    const struct rp_catalog *catalog = d->cli->session.catalog;
    judge(d, OK, "catalog", "", "%s, schema %d, %s", rp_db_engine(catalog->db), rp_catalog_schema_known(), catalog->id);
    check_vessel(d, catalog->db);
    return 0;
}

/* `store` NULL: the catalog's disk. */
static void check_room(struct doctor *d, const struct rp_store_config *store, const char *check)
{
    char path[RP_RESERVE_PATH], room_text[RP_SIZE_TEXT], reserve_text[RP_SIZE_TEXT];
    struct rp_error why = { 0 };
    struct rp_room room;
    if (!rp_room_reserve(&d->cli->session.config, store, path)) return;
    if (rp_reserve_look(path, &room, &why) < 0) {
        judge_error(d, check, &why, "see that the directory exists and this user may read it");
        return;
    }
    judge(d, room.full ? FAIL : OK, check,
          "free space on its disk; deletes and sweeps go on meanwhile, and the reserve is made again by itself",
          "%s%s free; reserve of %s %s", room.full ? "no space left for what is new: " : "",
          rp_show_size(room.free_bytes, room_text), rp_show_size(room.reserve_bytes, reserve_text),
          room.held ? "kept" : "not there (`reprieve serve` keeps it)");
}

/* Why no segment can be written there; NULL: nothing speaks against it. Like the writer, which
 * makes the last directory of the path and no other. */
static const char *segments_trouble(const char *dir)
{
    struct stat st;
    char parent[4096];
    if (stat(dir, &st) == 0) {
        if (!S_ISDIR(st.st_mode)) return "is no directory";
        return access(dir, R_OK | W_OK | X_OK) < 0 ? "cannot be read and written by this user" : NULL;
    }
    if (errno != ENOENT && errno != ENOTDIR) return "cannot be looked at by this user";
    snprintf(parent, sizeof parent, "%s", dir);
    for (size_t n = strlen(parent); n > 1 && parent[n - 1] == '/';)
        parent[--n] = 0;
    char *slash = strrchr(parent, '/');
    if (slash != NULL) slash[slash == parent] = 0;
    const char *above = slash != NULL ? parent : ".";
    if (stat(above, &st) < 0 || !S_ISDIR(st.st_mode)) return "has no parent directory";
    return access(above, W_OK | X_OK) < 0 ? "cannot be made by this user" : NULL;
}

/* Needed once rows of the audit log are to go. */
static void check_segments(struct doctor *d)
{
    const struct rp_retention_config *retention = &d->cli->session.config.retention;
    bool needed = retention->audit_ms != RP_FOREVER_MS;
    if (retention->segments[0] == 0) return;
    const char *why = segments_trouble(retention->segments);
    if (why == NULL && !needed) return;
    enum verdict bad = needed ? FAIL : WARN;
    judge(d, why == NULL ? OK : bad, "audit segments",
          "set retention.segments to a directory that this user may write to; only the last directory of the path is "
          "made",
          "%s%s%s", retention->segments, why != NULL ? " " : "", why != NULL ? why : "");
}

static void check_sessions(struct doctor *d)
{
    struct rp_error why = { 0 };
    bool pooled = false;
    if (strcmp(rp_db_engine(d->cli->session.catalog->db), "postgres") != 0) return;
    if (rp_db_is_pooled(d->cli->session.config.catalog_url, &pooled, &why) < 0)
        judge_error(d, "catalog sessions", &why, "see to it that the database answers (catalog.url)");
    else if (pooled)
        judge(d, FAIL, "catalog sessions", "connect catalog.url to the server itself, or to a pool in session mode",
              "a transaction pooler stands before the catalog: time-outs and prepared statements do not last");
    else
        judge(d, OK, "catalog sessions", "", "its own");
}

static void check_clock(struct doctor *d)
{
    struct rp_error why = { 0 };
    struct rp_clock_state clock;
    char apart[RP_TIME_TEXT];
    if (rp_clock_look(d->cli->session.catalog, &clock, &why) < 0 || rp_clock_refuse(clock.ahead_ms, &why) < 0) {
        judge_error(d, "clock", &why, "");
        return;
    }
    if (clock.ahead_ms < -RP_CLOCKS_APART_MS)
        judge(d, WARN, "clock",
              "if it is right now, run `reprieve clock accept`: new marks count by the later time until then",
              "it was set back by %s since this host booted", rp_duration_format(-clock.ahead_ms / 1000 * 1000, apart));
    int64_t ms = clock.db_ms - clock.wall_ms;
    if (ms < 0) ms = -ms;
    judge(d, ms > RP_CLOCKS_APART_MS ? FAIL : OK, "clock",
          "set the clocks: nothing is purged while they are over 5m apart", "host and database are %s apart",
          rp_duration_format(ms, apart));
}

/* ---- stores ---- */

static void check_owner(struct doctor *d, struct rp_store *store, const char *check)
{
    struct rp_error why = { 0 };
    struct rp_owner owner;
    char remedy[300];
    if (rp_owner_look(d->cli->session.catalog, store, &owner, &why) < 0) {
        judge_error(d, check, &why, "");
        return;
    }
    snprintf(remedy, sizeof remedy, "purging is stopped there; look, then `reprieve recover %s`%s", store->config->name,
             rp_ownership_is_moved(owner.ownership) ? ", or with --moved if nothing was lost" : "");
    if (owner.ownership == RP_OWNER_RENAMED)
        snprintf(remedy, sizeof remedy,
                 "purging is stopped there; name it '%s' again in the configuration, or `reprieve stores rename %s %s`",
                 owner.other_name, owner.other_name, store->config->name);
    bool fine = owner.ownership == RP_OWNER_OURS || owner.ownership == RP_OWNER_NONE;
    judge(d, fine ? OK : FAIL, check, remedy, "owner record: %s", rp_ownership_text(owner.ownership));
}

static const char *sentence_of(enum rp_level level)
{
    static const char *const sentences[] = {
        [RP_LEVEL_WINDOW] = "an upload between the look and the delete could be lost; allow_window_deletes accepts it",
        [RP_LEVEL_ETAG] = "a delete is refused if another upload stands there; identical bytes cannot be told apart",
        [RP_LEVEL_VERSION] = "a delete names the version that was marked, and cannot hit a newer one",
        [RP_LEVEL_EXACT] = "a key is never used for two uploads, so that a delete can only hit what was marked"
    };
    return sentences[level];
}

/* What a program can read of a probe; people have a line each. */
static json_t *findings_json(const struct rp_store *store, const struct rp_probed *probed)
{
    json_t *o = json_object(), *findings = json_array();
    rp_json_set(o, "level", json_string(rp_level_name(rp_store_level(store))));
    for (size_t i = 0; i < probed->n_findings; i++) {
        json_t *f = rp_json_object("name", json_string(probed->findings[i].name), "holds",
                                   json_boolean(probed->findings[i].holds), "says",
                                   rp_json_text(probed->findings[i].says), NULL);
        rp_json_append(findings, f);
    }
    if (probed->n_findings > 0)
        rp_json_set(o, "findings", findings);
    else
        json_decref(findings);
    return o;
}

static void say_findings(const struct doctor *d, const struct rp_probed *probed)
{
    char shown[RP_SHOWN_MAX];
    if (d->cli->json || d->cli->quiet) return;
    for (size_t i = 0; i < probed->n_findings; i++)
        printf("%-26s %-3s %-22s %s\n", "", probed->findings[i].holds ? "yes" : "no", probed->findings[i].name,
               rp_show(probed->findings[i].says, shown));
}

/* What the probe says of a thing that does not hold; NULL: it holds, or was not asked. */
static const char *broken(const struct rp_probed *probed, const char *name)
{
    for (size_t i = 0; i < probed->n_findings; i++)
        if (!probed->findings[i].holds && strcmp(probed->findings[i].name, name) == 0) return probed->findings[i].says;
    return NULL;
}

/* Whoever was given a URL once could use it for ever. */
static void check_signed_urls(struct doctor *d, const struct rp_probed *probed, const char *check)
{
    const char *why = broken(probed, RP_FINDING_SIGNED_URLS);
    if (why != NULL)
        judge(d, WARN, check,
              "give URLs of uploads and of content to nobody who must not keep them, or use another server",
              "signed URLs do not end as they should: %s", why);
}

/* What will come back from there, said before anything goes. */
static void check_quarantine(struct doctor *d, const struct rp_store *store, const struct rp_probed *probed,
                             const char *check)
{
    bool in_place = rp_subject_can_hide(store);
    if (store->config->mode != RP_MODE_QUARANTINE || !rp_config_is_s3(store->config)) return;
    judge(d, OK, check, "", "quarantine: %s",
          in_place ? "a delete marker; what comes back has its versions, ACL and tags"
                   : "a copy inside the bucket; what comes back has its headers, metadata and tags, but neither ACL, "
                     "storage class nor older versions");
    const char *why = in_place ? broken(probed, RP_FINDING_LIFECYCLE) : NULL;
    if (why != NULL)
        judge(d, WARN, check,
              "let no rule erase older versions sooner than the store's `quarantine`, which counts on them",
              "what is in quarantine is an older version to the bucket: %s", why);
}

static bool check_probe(struct doctor *d, struct rp_store *store, const char *check)
{
    const struct rp_store_config *config = store->config;
    struct rp_error why = { 0 };
    struct rp_probed probed = { 0 };
    bool observes = config->mode == RP_MODE_OBSERVE, bucket = rp_config_is_s3(config);
    if (rp_guarantee_probe(d->cli->session.catalog, store, &why) < 0) {
        judge_error(d, check, &why,
                    bucket ? "see that the endpoint answers and its keys may read, list and, in this mode, write"
                           : "give this user the right to read and write there");
        return false;
    }
    (void)rp_guarantee_probed(store, &probed);
    enum rp_level level = rp_store_level(store);
    if (d->cli->json) d->more = findings_json(store, &probed);
    judge(d, rp_store_is_weak(store) ? WARN : OK, check,
          "marks of plain objects are refused and wait; files that the daemon named go on. Versioning of the bucket "
          "ends it, allow_window_deletes: true accepts the risk",
          "%s, mode %s, guarantee %s: %s%s", config->type, rp_mode_name(config->mode), rp_level_name(level),
          sentence_of(level),
          !observes ? ""
          : bucket  ? " (nothing is written in mode observe: taken for the weakest that is not seen)"
                    : " (declared: nothing is written in mode observe)");
    say_findings(d, &probed);
    check_signed_urls(d, &probed, check);
    check_quarantine(d, store, &probed, check);
    return true;
}

/* A promise about keys that was seen broken. */
static void check_keys(struct doctor *d, const struct rp_store *store, const char *check)
{
    char when[RP_WHEN_TEXT];
    int64_t at_ms = rp_guarantee_changed_at_ms(store);
    if (store->config->keys != RP_KEYS_WRITE_ONCE || at_ms == 0) return;
    judge(d, WARN, check, "take keys: write_once out of the configuration",
          "keys: write_once is declared, but an object was seen changed under its key, %s",
          rp_show_when(at_ms, rp_session_now_ms(&d->cli->session), when));
}

/* Where its keys come from, never what they are. Asked after the probe, which has looked for
 * them. */
static void check_credentials(struct doctor *d, const struct rp_store *store, const char *check)
{
    const struct rp_store_config *config = store->config;
    char source[RP_KEYS_SOURCE] = "";
    if (!rp_backend_has_keys(store->backend)) return;
    rp_backend_keys_source(store->backend, source);
    judge(d, OK, check, "", "bucket %s at %s; its keys come from %s", config->bucket,
          config->endpoint[0] != 0 ? config->endpoint : "AWS",
          source[0] != 0 ? source : "where AWS tools look, and were not needed yet");
}

static void check_store_clock(struct doctor *d, struct rp_store *store, const char *check)
{
    struct rp_error why = { 0 };
    char apart[RP_TIME_TEXT];
    int r = rp_guarantee_ask_clock(store, d->cli->session.catalog->clock, &why);
    int64_t ahead_ms = rp_guarantee_clock_ahead_ms(store);
    if (r < 0) {
        judge_error(d, check, &why, "");
        return;
    }
    if (ahead_ms == RP_CLOCK_UNKNOWN) return;
    int64_t ms = ahead_ms < 0 ? -ahead_ms : ahead_ms;
    judge(d, ms > RP_CLOCKS_APART_MS ? FAIL : OK, check,
          "set the clocks: nothing is purged there while they are over 5m apart", "its clock is %s %s the host's",
          rp_duration_format(ms, apart), ahead_ms < 0 ? "behind" : "ahead of");
}

static void check_overdue(struct doctor *d, const struct rp_store *store, const char *check)
{
    struct rp_session *s = &d->cli->session;
    struct rp_error why = { 0 };
    struct rp_overdue due = { 0 };
    char oldest[RP_WHEN_TEXT] = "";
    int64_t now_ms = rp_session_now_ms(s);
    if (rp_marks_overdue(s->catalog->db, store->id, now_ms, &due, &why) < 0) {
        judge_error(d, check, &why, "");
        return;
    }
    bool late = due.marks > 0 && now_ms - due.oldest_due_ms > OVERDUE_MS;
    if (due.marks > 0) rp_show_when(due.oldest_due_ms, now_ms, oldest);
    judge(d, late ? WARN : OK, check, "run `reprieve sweep`, and see that something does so regularly",
          "due marks: %" PRId64 "%s%s", due.marks, due.marks > 0 ? ", the oldest since " : "", oldest);
}

static void check_references(struct doctor *d, struct rp_store *store, const char *check)
{
    struct rp_error why = { 0 };
    if (store->references == NULL) return;
    if (rp_references_check(store->references, &why) < 0)
        judge_error(d, check, &why, "guarded marks are not purged until every look-up answers");
    else
        judge(d, OK, check, "", "references: %zu %s", store->config->n_referenced_by,
              store->config->n_referenced_by == 1 ? "look-up answers" : "look-ups answer");
}

static void check_store(struct doctor *d, const struct rp_store_config *config)
{
    struct rp_error why = { 0 };
    struct rp_store *store;
    char check[80];
    snprintf(check, sizeof check, "store %s", config->name);
    if (rp_session_store(&d->cli->session, config->name, &store, &why) < 0) {
        judge_error(d, check, &why,
                    rp_config_is_s3(config) ? "correct the store's settings"
                                            : "see that the directory exists and this user may read it");
        return;
    }
    check_room(d, config, check);
    bool answers = check_probe(d, store, check);
    check_credentials(d, store, check);
    check_keys(d, store, check);
    /* one that does not answer is not asked twice: each call has its patience */
    if (answers) check_store_clock(d, store, check);
    if (answers && config->mode != RP_MODE_OBSERVE) check_owner(d, store, check);
    check_references(d, store, check);
    check_overdue(d, store, check);
}

static int64_t count_open_marks(const struct rp_tally_row *rows, size_t n, int64_t store_id)
{
    int64_t marks = 0;
    for (size_t i = 0; i < n; i++)
        if (rows[i].store_id == store_id && !rp_state_final((enum rp_state)rows[i].state)) marks += rows[i].marks;
    return marks;
}

/* A store is known by its name: marks of one that was renamed in the configuration alone, or taken
 * out, are swept by nobody. */
static void check_unconfigured(struct doctor *d)
{
    struct rp_session *s = &d->cli->session;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    RP_CLEANUP(rp_freep) struct rp_tally_row *tallies = calloc(TALLIES_MAX, sizeof *tallies);
    struct rp_store_rows stores = { 0 };
    struct rp_error why = { 0 };
    char check[80];
    size_t n = 0;
    int r = tallies == NULL ? rp_error_set(&why, RP_ENOMEM, "out of memory") : 0;
    if (r == 0) r = rp_store_list(s->catalog->db, &arena, &stores, &why);
    if (r == 0) r = rp_tally_read(s->catalog->db, tallies, TALLIES_MAX, &n, &why);
    if (r < 0) judge_error(d, "stores", &why, "");
    for (size_t i = 0; i < stores.n && r == 0; i++) {
        int64_t marks = count_open_marks(tallies, n, stores.at[i].id);
        if (marks == 0 || rp_config_store(&s->config, stores.at[i].name) != NULL) continue;
        snprintf(check, sizeof check, "store %s", stores.at[i].name);
        judge(d, WARN, check,
              "configure the store again under this name and restore its marks there, or let them come due; `reprieve "
              "stores rename OLD NEW` if it has another name now, but only as long as nothing hangs on NEW",
              "%" PRId64 " %s in it, and it is not configured: nobody sweeps it", marks,
              marks == 1 ? "mark waits" : "marks wait");
    }
}

/* ---- who is called ---- */

static void check_endpoints(struct doctor *d)
{
    const struct rp_config *config = &d->cli->session.config;
    struct rp_endpoint endpoint;
    for (size_t i = 0; rp_endpoint_of(config, i, &endpoint); i++) {
        struct rp_error why = { 0 };
        long status = 0;
        int r = rp_endpoint_shake(&endpoint, config, rp_session_now_ms(&d->cli->session), &status, &why);
        const char *remedy = status == 0
                                 ? "see that the server runs and can be reached from here"
                                 : "see in the server's log why it refuses a POST of {\"event\":\"handshake\"}; "
                                   "if it is the signature, that both have the same secret";
        if (r < 0)
            judge(d, WARN, endpoint.name, why.hint[0] != 0 ? why.hint : remedy, "%s", why.text);
        else
            judge(d, OK, endpoint.name, "", "answers %s handshake with status %ld",
                  rp_endpoint_is_signed(&endpoint) ? "a signed" : "an unsigned", status);
    }
}

/* ---- who is told ---- */

static void check_sink(struct doctor *d, const struct rp_sink_config *sink)
{
    struct rp_session *s = &d->cli->session;
    struct rp_feed_lag lag;
    struct rp_error why = { 0 };
    char check[80], reader[RP_FEED_READER], since[RP_TIME_TEXT];
    int64_t limit_ms = s->config.alerts.sink_lag_over_ms;
    snprintf(check, sizeof check, "sink %s", sink->name);
    if (rp_feed_lag(s->catalog->db, rp_sink_reader(sink, reader), &lag, &why) < 0) {
        judge_error(d, check, &why, "");
    } else if (!lag.begun) {
        judge(d, WARN, check, "start `reprieve serve` with this configuration", "no daemon has begun with it yet");
    } else if (lag.oldest_at_ms == 0) {
        judge(d, OK, check, "", "it was told of everything");
    } else {
        bool late = limit_ms > 0 && rp_session_now_ms(s) - lag.oldest_at_ms > limit_ms;
        judge(d, late ? WARN : OK, check,
              "see that a daemon runs, and what its log says in feed.reader_waits and event.refused",
              "events before it: %" PRId64 ", the oldest since %s", lag.rows, rp_time_format(lag.oldest_at_ms, since));
    }
}

static void check_processor(struct doctor *d)
{
    struct rp_session *s = &d->cli->session;
    struct rp_error why = { 0 };
    int64_t dead = 0;
    if (s->config.processor_url[0] == 0) return;
    if (rp_process_count_dead(s->catalog->db, LISTED_MAX, &dead, &why) < 0)
        judge_error(d, "processor", &why, "");
    else
        judge(d, dead > 0 ? WARN : OK, "processor",
              "the log says why in processor.gave_up; a daemon that is started again tries them once more",
              "files that it could not be told of, and that stay scanning: %" PRId64 "%s", dead,
              dead == LISTED_MAX ? " or more" : "");
}

/* ---- what waits for a person ---- */

static int count_dead(void *ctx, const struct rp_dead *dead, struct rp_error *err)
{
    (void)dead, (void)err;
    ++*(int64_t *)ctx;
    return 0;
}

static int count_pauses(void *ctx, const struct rp_hold *hold, struct rp_error *err)
{
    (void)err;
    *(int64_t *)ctx += hold->scope == RP_SCOPE_EVERYTHING;
    return 0;
}

static int count_interrupted(void *ctx, const struct rp_run_row *row, struct rp_error *err)
{
    (void)err;
    *(int64_t *)ctx += rp_worker_is_dead(row->locked_by);
    return 0;
}

static void judge_count(struct doctor *d, const char *check, int code, const struct rp_error *why, int64_t n,
                        const char *remedy, const char *one, const char *many)
{
    if (code < 0)
        judge_error(d, check, why, "");
    else
        judge(d, n > 0 ? WARN : OK, check, remedy, "%" PRId64 "%s %s", n, n == LISTED_MAX ? " or more" : "",
              n == 1 ? one : many);
}

static void check_waiting(struct doctor *d)
{
    struct rp_db *db = d->cli->session.catalog->db;
    struct rp_error why = { 0 };
    int64_t n = 0;
    int r = rp_dead_each(db, 0, LISTED_MAX, count_dead, &n, &why);
    judge_count(d, "dead letters", r, &why, n, "`reprieve dead` lists them: retry or keep each", "waits for a person",
                "wait for a person");
    n = 0;
    r = rp_hold_each(db, count_pauses, &n, &why);
    judge_count(d, "pause", r, &why, n, "`reprieve resume` lets purging go on", "hold on everything",
                "holds on everything");
    n = 0;
    r = rp_run_each_open(db, NULL, count_interrupted, &n, &why);
    judge_count(d, "runs", r, &why, n,
                "the next sweep writes the record of a sweep; a restore, a retention or a safety net is carried on by "
                "`reprieve serve`, and by the next `reprieve restore`, `retention` or `safety-net`; `reprieve cancel "
                "run_...` ends it",
                "run was left by a process that is gone", "runs were left by a process that is gone");
}

int rp_cmd_doctor(struct rp_cli *cli, struct rp_error *err)
{
    struct doctor d = { .cli = cli };
    (void)err;
    if (check_config(&d) == 0 && check_catalog(&d) == 0) {
        check_room(&d, NULL, "catalog's disk");
        check_segments(&d);
        check_sessions(&d);
        check_clock(&d);
        for (size_t i = 0; i < cli->session.config.n_stores; i++)
            check_store(&d, &cli->session.config.stores[i]);
        if (cli->session.config.n_stores == 0)
            judge(&d, WARN, "stores", "name one under `stores:`, or run `reprieve init --store NAME=DIR`",
                  "no store is configured: nothing can be uploaded, marked or purged");
        check_unconfigured(&d);
        check_endpoints(&d);
        for (size_t i = 0; i < cli->session.config.n_sinks; i++)
            check_sink(&d, &cli->session.config.sinks[i]);
        check_processor(&d);
        check_waiting(&d);
    }
    if (d.failed > 0 || d.warned > 0) rp_say(cli, "%d failed, %d to look at\n", d.failed, d.warned);
    return d.failed > 0 ? 1 : 0;
}
