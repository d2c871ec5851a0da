/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/text/hex.h"
#include "base/time.h"
#include "db/postgres.h"

#define PARAMETERS_MAX  96
#define VERSION_MIN     150000
#define ANSWER_SLACK_MS 5000
#define NEXT_HOST_S     2                   /* until another host of the URL is tried */
#define COMMIT_MS       (30 * RP_SECOND_MS) /* for a COMMIT without a deadline */
#define READ_ONLY       "25006"
#define NOT_ALLOWED     "42501"
#define DEADLOCK        "40P01"
#define TEXT_MAX        ((size_t)64 << 10)

static atomic_int_fast64_t sessions, deadlocks; /* rp_db_figures */

struct rp_db_figures rp_db_figures(void)
{
    return (struct rp_db_figures){ .sessions = atomic_load(&sessions), .deadlocks = atomic_load(&deadlocks) };
}

/* ---- errors ---- */

struct state_code {
    const char *prefix;
    int code;
};

/* The first row whose prefix fits the SQLSTATE counts. */
static const struct state_code state_codes[] = {
    { "08", RP_EUNAVAILABLE },    { "57P", RP_EUNAVAILABLE }, { "57014", RP_EBUSY },     { "55P03", RP_EBUSY },
    { "25P03", RP_EUNAVAILABLE }, { "40", RP_EBUSY },         { "23505", RP_ECONFLICT }, { "23P01", RP_ECONFLICT },
    { "53100", RP_EFULL },        { "53200", RP_ENOMEM },     { "53", RP_EBUSY },        { "XX001", RP_ECORRUPT },
    { "XX002", RP_ECORRUPT },     { "42501", RP_EDENIED },    { "25006", RP_EDENIED },   { "28", RP_EDENIED },
};

static int state_code(const char *state)
{
    for (size_t i = 0; state != NULL && i < sizeof state_codes / sizeof *state_codes; i++)
        if (strncmp(state, state_codes[i].prefix, strlen(state_codes[i].prefix)) == 0) return state_codes[i].code;
    return RP_EFAILED;
}

static void blank_out(char *text, const char *secret)
{
    size_t n = secret != NULL ? strlen(secret) : 0;
    for (char *p = n > 0 ? strstr(text, secret) : NULL; p != NULL; p = strstr(p + n, secret))
        memset(p, '*', n);
}

/* One line, without the password, whatever the server or libpq put into it. */
static void tidy(const struct rp_pg *c, const char *message, char *out, size_t size)
{
    size_t n = 0;
    for (const char *p = message; *p != '\0' && n + 1 < size; p++)
        out[n++] = *p == '\n' || *p == '\t' ? ' ' : *p;
    while (n > 0 && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
    for (const PQconninfoOption *o = c->parameters; o != NULL && o->keyword != NULL; o++)
        if (strcmp(o->dispchar, "*") == 0) blank_out(out, o->val);
}

bool rp_pg_lost(const struct rp_pg *c)
{
    return c->pg == NULL || PQstatus(c->pg) != CONNECTION_OK;
}

/* A session that was made for writing is told that it may not: the server is another one's standby
 * now. */
static bool has_become_standby(const struct rp_pg *c, const char *state)
{
    return state != NULL && strcmp(state, READ_ONLY) == 0 && !c->read_only && !c->reading;
}

int rp_pg_fail(struct rp_pg *c, const PGresult *result, const char *what, struct rp_error *err)
{
    const char *state = result != NULL ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *message = result != NULL ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    if (message == NULL)
        message = c->pg != NULL ? PQerrorMessage(c->pg) : "the connection was lost, or gave no answer in time";
    char line[400];
    tidy(c, message[0] != '\0' ? message : "the connection was lost", line, sizeof line);
    int code = rp_pg_lost(c) || has_become_standby(c, state) ? RP_EUNAVAILABLE : state_code(state);
    if (state != NULL && strcmp(state, DEADLOCK) == 0) atomic_fetch_add(&deadlocks, 1);
    if (code == RP_EUNAVAILABLE) rp_pg_disconnect(c);
    rp_error_set(err, code, "postgres: %s: %s", what, line);
    if (c->guest && state != NULL && strcmp(state, NOT_ALLOWED) == 0)
        rp_error_hint(err, "use a role that may read the table and sees all rows (BYPASSRLS), or a view of its owner");
    if (code == RP_EFULL) rp_error_hint(err, "free space on the database server's disk");
    return code;
}

/* ---- waiting ---- */

void rp_pg_start_waiting(struct rp_pg *c)
{
    c->answer_ms = c->deadline_ms;
    if (c->statement_ms <= 0) return;
    int64_t answer_ms = rp_time_boot_ms() + c->statement_ms + c->busy_ms + ANSWER_SLACK_MS;
    if (c->answer_ms == 0 || answer_ms < c->answer_ms) c->answer_ms = answer_ms;
}

static bool wait_for(const struct rp_pg *c, short events, int64_t wait_ms)
{
    struct pollfd p = { .fd = PQsocket(c->pg), .events = events };
    int timeout_ms = wait_ms < 0 ? -1 : (int)(wait_ms < 60000 ? wait_ms : 60000);
    return poll(&p, 1, timeout_ms) > 0;
}

/* The server stops a statement by itself when its time is up; a server that does not even do that,
 * or does not take what is sent, is taken for lost. */
PGresult *rp_pg_result(struct rp_pg *c)
{
    bool unsent = false;
    while (c->pg != NULL && ((unsent = PQflush(c->pg) > 0) || PQisBusy(c->pg))) {
        int64_t left_ms = c->answer_ms != 0 ? c->answer_ms - rp_time_boot_ms() : -1;
        if (c->answer_ms != 0 && left_ms <= 0) {
            rp_pg_disconnect(c);
            return NULL;
        }
        short events = unsent ? POLLIN | POLLOUT : POLLIN;
        if (wait_for(c, events, left_ms) && !PQconsumeInput(c->pg)) break;
    }
    return c->pg != NULL ? PQgetResult(c->pg) : NULL;
}

void rp_pg_clearp(PGresult **result)
{
    PQclear(*result);
}

static void take_value(const PGresult *result, char *out, size_t size)
{
    if (out == NULL || PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) == 0) return;
    strncpy(out, PQgetvalue(result, 0, 0), size - 1);
    out[size - 1] = '\0';
}

static int send_command(struct rp_pg *c, const char *text, const char *what, char *out, size_t out_size,
                        struct rp_error *err)
{
    if (!PQsendQuery(c->pg, text)) return rp_pg_fail(c, NULL, what, err);
    PGresult *failed RP_CLEANUP(rp_pg_clearp) = NULL;
    for (PGresult *result = rp_pg_result(c); result != NULL; result = rp_pg_result(c)) {
        ExecStatusType status = PQresultStatus(result);
        if (failed == NULL && status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
            failed = result;
            continue;
        }
        take_value(result, out, out_size);
        PQclear(result);
    }
    if (failed != NULL || rp_pg_lost(c)) return rp_pg_fail(c, failed, what, err);
    return 0;
}

int rp_pg_command(struct rp_pg *c, const char *text, const char *what, char *out, size_t out_size, struct rp_error *err)
{
    rp_pg_start_waiting(c);
    return send_command(c, text, what, out, out_size, err);
}

int rp_pg_commit(struct rp_pg *c, const char *text, struct rp_error *err)
{
    c->answer_ms = c->deadline_ms != 0 ? c->deadline_ms : rp_time_boot_ms() + COMMIT_MS;
    return send_command(c, text, "commit", NULL, 0, err);
}

/* ---- the URL ---- */

static int bad_url(struct rp_error *err)
{
    return rp_error_advise(err, RP_ECONFIG,
                           "write postgres://USER@HOST:PORT/DATABASE?schema=NAME; %-encode special characters in it",
                           "postgres: the database URL is not valid");
}

/* NULL if it is not valid. */
static char *percent_decode(const char *p, size_t n)
{
    char *out = strndup(p, n);
    const int64_t length = out != NULL ? rp_unescape(out, '%', false) : -1;
    if (length >= 0 && strlen(out) == (size_t)length) return out;
    free(out);
    return NULL;
}

/* Where the parameters begin. A "?" may stand in the password, so the search begins after the user,
 * as in libpq. */
static const char *find_query(const char *url)
{
    const char *p = strstr(url, "://") + 3;
    size_t user = strcspn(p, "@/");
    return strchr(p[user] == '@' ? p + user : p, '?');
}

static int split_query(struct rp_pg *c, const char *query, struct rp_buf *rest, struct rp_error *err)
{
    char separator = '?';
    for (const char *p = query + 1; *p != '\0';) {
        size_t n = strcspn(p, "&");
        if (strncmp(p, "schema=", 7) == 0) {
            free(c->schema);
            c->schema = percent_decode(p + 7, n - 7);
            if (c->schema == NULL || c->schema[0] == '\0') return bad_url(err);
        } else {
            rp_buf_char(rest, separator);
            rp_buf_add(rest, p, n);
            separator = '&';
        }
        p += n + (p[n] == '&');
    }
    return 0;
}

int rp_pg_parse_url(struct rp_pg *c, const char *url, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf rest = RP_BUF(TEXT_MAX);
    const char *query = find_query(url);
    rp_buf_add(&rest, url, query != NULL ? (size_t)(query - url) : strlen(url));
    int r = query != NULL ? split_query(c, query, &rest, err) : 0;
    if (r < 0) return r;
    if (rest.failed != 0) return rp_error_set(err, RP_ECONFIG, "postgres: the database URL is too long");
    char *message = NULL;
    c->parameters = PQconninfoParse(rp_buf_text(&rest), &message);
    PQfreemem(message);
    return c->parameters != NULL ? 0 : bad_url(err);
}

/* ---- the session ---- */

static void note_warning(void *ctx, const PGresult *notice)
{
    const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (severity != NULL && strcmp(severity, "WARNING") == 0) ((struct rp_pg *)ctx)->warned = true;
}

void rp_pg_disconnect(struct rp_pg *c)
{
    if (c->pg != NULL) atomic_fetch_sub(&sessions, 1);
    PQfinish(c->pg);
    c->pg = NULL;
    c->vessel[0] = '\0';
    rp_statements_clear(&c->statements);
}

static bool has_several_hosts(const struct rp_pg *c)
{
    for (const PQconninfoOption *o = c->parameters; o->keyword != NULL; o++)
        if (o->val != NULL && strncmp(o->keyword, "host", 4) == 0 && strchr(o->val, ',') != NULL) return true;
    return false;
}

/* P4 */
static void connect_with_parameters(struct rp_pg *c)
{
    char timeout_s[16];
    int64_t seconds = has_several_hosts(c) ? NEXT_HOST_S : (c->busy_ms + 999) / 1000;
    snprintf(timeout_s, sizeof timeout_s, "%d", seconds < 2 ? 2 : seconds > 3600 ? 3600 : (int)seconds);
    /* The last one of a name counts: first what the URL may change, then the URL, then what nobody
     * changes. */
    const char *names[PARAMETERS_MAX] = { "application_name",    "connect_timeout",  "keepalives_idle",
                                          "keepalives_interval", "keepalives_count", "tcp_user_timeout" };
    const char *values[PARAMETERS_MAX] = { "reprieve", timeout_s, "3", "1", "3", "6000" };
    size_t n = 6;
    for (const PQconninfoOption *o = c->parameters; o->keyword != NULL; o++) {
        if (o->val == NULL) continue;
        RP_ASSERT(n + 3 < PARAMETERS_MAX);
        names[n] = o->keyword;
        values[n++] = o->val;
    }
    names[n] = "client_encoding";
    values[n++] = "UTF8";
    names[n] = "target_session_attrs"; /* who only reads may be forbidden to write: the server itself must not be */
    values[n] = c->any_server ? "any" : c->read_only ? "primary" : "read-write";
    c->pg = PQconnectdbParams(names, values, 0);
    if (c->pg != NULL) atomic_fetch_add(&sessions, 1);
}

/* libpq gives no SQLSTATE for a refused connection, so its words must do. */
static int connect_failed(struct rp_pg *c, struct rp_error *err)
{
    char line[400];
    const char *message = c->pg != NULL ? PQerrorMessage(c->pg) : "out of memory";
    bool denied = strstr(message, "authentication failed") != NULL || strstr(message, "no password") != NULL ||
                  strstr(message, "pg_hba.conf") != NULL;
    bool none_left = strstr(message, "too many c") != NULL || strstr(message, "connection slots are reserved") != NULL;
    tidy(c, message, line, sizeof line);
    rp_pg_disconnect(c);
    rp_error_set(err, denied ? RP_EDENIED : RP_EUNAVAILABLE, "postgres: connect: %s", line);
    if (none_left)
        rp_error_hint(err, "raise the server's max_connections, or the CONNECTION LIMIT of the role or the database; a "
                           "daemon takes 9 to 24 of its catalog (docs/guarantees.md)");
    return err->code;
}

/* Statements that set what stands between semicolons. */
static void set_each(struct rp_buf *out, bool local, const char *settings)
{
    for (const char *p = settings; *p != '\0'; p += strcspn(p, ";") + 1)
        rp_buf_fmt(out, "SET %s%.*s;", local ? "LOCAL " : "", (int)strcspn(p, ";"), p);
}

int rp_pg_settings(const struct rp_pg *c, bool local, struct rp_buf *out, struct rp_error *err)
{
    char times[80];
    snprintf(times, sizeof times, "lock_timeout=%lld;statement_timeout=%lld;", (long long)c->busy_ms,
             (long long)c->statement_ms);
    set_each(out, local, times);
    set_each(out, local, "synchronous_commit=on;standard_conforming_strings=on;bytea_output=hex;jit=off;");
    /* P2: a client that sleeps, or is gone without a word, gives back its locks within seconds */
    set_each(out, local,
             "idle_in_transaction_session_timeout=3000;client_connection_check_interval=1000;tcp_keepalives_idle=5;"
             "tcp_keepalives_interval=2;tcp_keepalives_count=3;tcp_user_timeout=10000;");
    if (c->read_only && !local) set_each(out, local, "default_transaction_read_only=on;");
    if (c->guest) set_each(out, local, "row_security=off;"); /* D10: an error instead of fewer rows */
    if (c->by_index)
        set_each(out, local,
                 "enable_seqscan=off;enable_hashjoin=off;enable_mergejoin=off;plan_cache_mode=force_generic_plan;");
    if (c->schema == NULL) return 0;
    rp_buf_fmt(out, "SET %ssearch_path=", local ? "LOCAL " : "");
    int r = rp_db_quote_name(out, c->schema, err);
    rp_buf_str(out, ",pg_catalog;");
    return r < 0 ? rp_error_wrap(err, r, "postgres: schema") : 0;
}

static int apply_settings(struct rp_pg *c, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(TEXT_MAX);
    int r = rp_pg_settings(c, false, &text, err);
    if (r < 0) return r;
    if (text.failed != 0) return rp_error_set(err, text.failed, "postgres: connect");
    return rp_pg_command(c, rp_buf_text(&text), "connect", NULL, 0, err);
}

static int connect_now(struct rp_pg *c, struct rp_error *err)
{
    connect_with_parameters(c);
    if (rp_pg_lost(c)) return connect_failed(c, err);
    PQsetNoticeReceiver(c->pg, note_warning, c);
    int r = 0;
    if (PQserverVersion(c->pg) < VERSION_MIN)
        r = rp_error_set(err, RP_ECONFIG, "postgres: version 15 or newer is needed, the server has %d",
                         PQserverVersion(c->pg) / 10000);
    if (r == 0 && PQsetnonblocking(c->pg, 1) < 0) r = rp_pg_fail(c, NULL, "connect", err); /* P2 */
    if (r == 0 && !c->guest) r = apply_settings(c, err);
    if (r < 0) rp_pg_disconnect(c);
    return r;
}

/* A session that was ended while it was idle has its end waiting in the socket: better found before
 * the next statement is sent than after. */
static void notice_end(struct rp_pg *c)
{
    while (!rp_pg_lost(c) && wait_for(c, POLLIN, 0))
        if (!PQconsumeInput(c->pg)) break;
    if (rp_pg_lost(c)) rp_pg_disconnect(c);
}

int rp_pg_ensure(struct rp_pg *c, struct rp_error *err)
{
    if (c->pg != NULL) notice_end(c);
    return c->pg != NULL ? 0 : connect_now(c, err);
}

/* CREATE SCHEMA asks for a privilege even if the schema is there, so it is only asked when it is
 * not. */
int rp_pg_create_schema(struct rp_pg *c, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(TEXT_MAX);
    char found[2] = "";
    char *literal = PQescapeLiteral(c->pg, c->schema, strlen(c->schema));
    if (literal == NULL) return rp_pg_fail(c, NULL, "open", err);
    rp_buf_fmt(&text, "SELECT 1 FROM pg_namespace WHERE nspname = %s", literal);
    PQfreemem(literal);
    int r = rp_pg_command(c, rp_buf_text(&text), "open", found, sizeof found, err);
    if (r < 0 || found[0] != '\0') return r;
    rp_buf_clear(&text);
    rp_buf_str(&text, "CREATE SCHEMA IF NOT EXISTS ");
    r = rp_db_quote_name(&text, c->schema, err);
    if (r < 0) return r;
    r = rp_pg_command(c, rp_buf_text(&text), "create schema", NULL, 0, err);
    return r == RP_ECONFLICT ? 0 : r; /* someone else made it at the same moment */
}

/* ---- the vessel ---- */

/* A function that may not be called would fail the transaction, so it is asked first. A standby has
 * no timeline of its own yet. */
#define MAY_CALL(name) "has_function_privilege('pg_catalog." name "', 'EXECUTE')"
static const char system_can_be_read[] = "SELECT " MAY_CALL("pg_control_system()");
static const char timeline_can_be_read[] = "SELECT NOT pg_catalog.pg_is_in_recovery() AND " MAY_CALL(
    "pg_current_wal_lsn()") " AND " MAY_CALL("pg_walfile_name(pg_lsn)");

static int ask_yes_or_no(struct rp_pg *c, const char *question, bool *yes, struct rp_error *err)
{
    char answer[2] = "";
    int r = rp_pg_command(c, question, "vessel", answer, sizeof answer, err);
    *yes = r == 0 && answer[0] == 't';
    return r;
}

static int ask_vessel(struct rp_pg *c, const char *table, bool *has_timeline, char out[RP_VESSEL_TEXT],
                      struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(TEXT_MAX);
    bool has_system;
    int r = ask_yes_or_no(c, system_can_be_read, &has_system, err);
    if (r == 0) r = ask_yes_or_no(c, timeline_can_be_read, has_timeline, err);
    if (r < 0) return r;
    rp_buf_fmt(&text,
               "SELECT concat_ws('/', 'server', %s,"
               " (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()),"
               " pg_catalog.to_regclass('%s')::oid, %s)",
               has_system ? "(SELECT system_identifier FROM pg_catalog.pg_control_system())" : "'-'", table,
               *has_timeline ? "substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8)" : "'-'");
    if (text.failed < 0) return rp_error_set(err, text.failed, "postgres: vessel");
    return rp_pg_command(c, rp_buf_text(&text), "vessel", out, RP_VESSEL_TEXT, err);
}

/* Kept for the session once it has a timeline. */
int rp_pg_vessel(struct rp_pg *c, const char *table, char out[RP_VESSEL_TEXT], struct rp_error *err)
{
    char found[RP_VESSEL_TEXT] = "";
    bool has_timeline = false;
    int r = c->in_transaction ? 0 : rp_pg_ensure(c, err);
    if (r == 0 && c->vessel[0] == '\0') {
        r = ask_vessel(c, table, &has_timeline, found, err);
        if (r == 0 && has_timeline) memcpy(c->vessel, found, sizeof c->vessel);
    }
    if (r == 0) memcpy(out, c->vessel[0] != '\0' ? c->vessel : found, RP_VESSEL_TEXT);
    return r;
}
