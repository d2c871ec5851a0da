/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/dbs.h"

#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"

static const char commit_message[] = "COMMIT"; /* and the end of the text */

static _Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

const char *dbs_kind_name(enum dbs_kind kind)
{
    static const char *const names[] = { "sqlite file", "sqlite memory", "postgres" };
    return names[kind];
}

static const char *server_url(void)
{
    const char *url = getenv("RP_TEST_POSTGRES");
    if (url == NULL || strstr(url, "?host=/") == NULL)
        give_up("RP_TEST_POSTGRES is not set to a server on a unix socket", "run under tests/lib/with-postgres");
    return url;
}

static struct rp_db *open_or_give_up(const char *url, const struct rp_db_options *options)
{
    struct rp_error err = { 0 };
    struct rp_db *db = NULL;
    if (rp_db_open(url, options, &db, &err) < 0) give_up("open a test database", err.text);
    return db;
}

void dbs_make(struct dbs *t, enum dbs_kind kind, const struct rp_db_options *options)
{
    static unsigned serial;
    const char *server = kind == DBS_POSTGRES ? server_url() : NULL; /* first: it may end the process */
    *t = (struct dbs){ .kind = kind, .dir = "/tmp/rp-db.XXXXXX" };
    if (mkdtemp(t->dir) == NULL) give_up(t->dir, "cannot be made");
    snprintf(t->schema, sizeof t->schema, "t_%d_%u", (int)getpid(), serial++);
    if (kind == DBS_POSTGRES)
        snprintf(t->url, sizeof t->url, "%s&application_name=%s&schema=%s", server, t->schema, t->schema);
    else if (kind == DBS_SQLITE_FILE)
        snprintf(t->url, sizeof t->url, "sqlite:%s/test.db", t->dir);
    else
        snprintf(t->url, sizeof t->url, "sqlite::memory:");
    t->db = open_or_give_up(t->url, options);
}

struct rp_db *dbs_open_again(const struct dbs *t, const struct rp_db_options *options)
{
    return open_or_give_up(t->url, options);
}

struct plan {
    struct rp_buf *out;
    size_t column;
};

static int take_plan_line(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct plan *plan = ctx;
    rp_buf_add(plan->out, row[plan->column].p, row[plan->column].n);
    rp_buf_char(plan->out, '\n');
    return plan->out->failed != 0 ? rp_error_set(err, plan->out->failed, "the plan does not fit") : 0;
}

int dbs_explain(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *args, struct rp_buf *out,
                struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF((size_t)1 << 20);
    const struct rp_value row[64] = { 0 };
    bool sqlite = strcmp(rp_db_engine(db), "sqlite") == 0;
    struct rp_sql explain = *sql;
    struct plan plan = { out, sqlite ? 3 : 0 };
    rp_buf_fmt(&text, "%s %s", sqlite ? "EXPLAIN QUERY PLAN" : "EXPLAIN (COSTS OFF)", sql->text);
    if (text.failed != 0) return rp_error_set(err, text.failed, "explain %s", sql->name);
    explain.text = rp_buf_text(&text);
    explain.columns = sqlite ? "iiis" : "s";
    return sql->rows == NULL ? rp_db_query(db, &explain, args, take_plan_line, &plan, err)
                             : rp_db_query_rows(db, &explain, args, row, 1, take_plan_line, &plan, err);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void dbs_drop(struct dbs *t)
{
    rp_db_close(t->db);
    if (t->kind == DBS_POSTGRES) {
        char text[96];
        struct rp_error err = { 0 };
        struct rp_db *db = open_or_give_up(t->url, NULL);
        snprintf(text, sizeof text, "DROP SCHEMA \"%s\" CASCADE", t->schema);
        if (rp_db_script(db, text, &err) < 0) give_up("drop the test's schema", err.text);
        rp_db_close(db);
    }
    nftw(t->dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- losing a COMMIT ---- */

struct cutter {
    struct sockaddr_un server;
    int listener, stop[2]; /* a pipe whose closed end ends the thread */
    enum cut cut;
    pthread_t thread;
};

static bool pass_on(int from, int to)
{
    char bytes[65536];
    ssize_t n = read(from, bytes, sizeof bytes);
    return n > 0 && write(to, bytes, (size_t)n) == n;
}

/* False when the connection has ended, by itself or by us. */
static bool pass_to_server(struct cutter *c, int client, int server)
{
    char bytes[65536];
    ssize_t n = read(client, bytes, sizeof bytes);
    bool commit = n > 0 && memmem(bytes, (size_t)n, commit_message, sizeof commit_message) != NULL;
    enum cut cut = commit ? c->cut : CUT_NOTHING;
    if (commit) c->cut = CUT_NOTHING;
    if (n <= 0 || cut == CUT_BEFORE_COMMIT) return false;
    if (write(server, bytes, (size_t)n) != n) return false;
    /* The server's answer is what shows that the commit has happened; the client never gets it. */
    return cut == CUT_AFTER_COMMIT ? read(server, bytes, sizeof bytes) < 0 : true;
}

static void serve(struct cutter *c, int client)
{
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool going = connect(server, (const struct sockaddr *)&c->server, sizeof c->server) == 0;
    while (going) {
        struct pollfd p[] = { { client, POLLIN, 0 }, { server, POLLIN, 0 }, { c->stop[0], POLLIN, 0 } };
        going = poll(p, 3, -1) >= 0 && p[2].revents == 0;
        if (going && p[0].revents != 0) going = pass_to_server(c, client, server);
        if (going && p[1].revents != 0) going = pass_on(server, client);
    }
    close(server);
    close(client);
}

static void *cutter_main(void *arg)
{
    struct cutter *c = arg;
    for (;;) {
        struct pollfd p[] = { { c->listener, POLLIN, 0 }, { c->stop[0], POLLIN, 0 } };
        if (poll(p, 2, -1) < 0 || p[1].revents != 0) return NULL;
        int client = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0) serve(c, client);
    }
}

struct cutter *cutter_start(const struct dbs *t, enum cut cut, char *url, size_t size)
{
    struct cutter *c = calloc(1, sizeof *c);
    const char *host = strstr(t->url, "?host=/") + strlen("?host=");
    int n = (int)strcspn(host, "&");
    struct sockaddr_un own = { .sun_family = AF_UNIX };
    snprintf(url, size, "%.*s%s%s", (int)(host - t->url), t->url, t->dir, host + n);
    snprintf(own.sun_path, sizeof own.sun_path, "%s/.s.PGSQL.5432", t->dir);
    c->server.sun_family = AF_UNIX;
    snprintf(c->server.sun_path, sizeof c->server.sun_path, "%.*s/.s.PGSQL.5432", n, host);
    c->cut = cut;
    c->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(c->listener, (const struct sockaddr *)&own, sizeof own) < 0 || listen(c->listener, 8) < 0 ||
        pipe(c->stop) < 0 || pthread_create(&c->thread, NULL, cutter_main, c) != 0)
        give_up("the cutter", "cannot start");
    return c;
}

void cutter_stop(struct cutter *c)
{
    close(c->stop[1]);
    pthread_join(c->thread, NULL);
    close(c->stop[0]);
    close(c->listener);
    free(c);
}
